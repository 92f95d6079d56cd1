"""Files that are too large to be read into memory: gone through in blocks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classprior.cli._samples import check_usage, columns_to_use

if TYPE_CHECKING:
    from classprior._files import FileSet
    from classprior.estimate import PriorEstimate

#: Files that together have more than this share of the machine's memory are not read into it.
SHARE_OF_MEMORY = 0.25


@dataclass(frozen=True)
class LargeSamples:
    """What the user should know of two sets of files.

    Parameters
    ----------
    settings : dict of str to str
        Files and choices, for a report.
    notes : tuple of str
        What was decided.
    one_table : bool
        Never: the known positives have files of their own.
    """

    settings: dict[str, str]
    notes: tuple[str, ...]
    one_table: bool = False


def go_in_blocks(
    positive: str, unlabeled: str | None, method: str, file_format: str | None, checkpoint: Any
) -> bool:
    """Tell whether files are to be gone through in blocks.

    Parameters
    ----------
    positive, unlabeled : str
        What stands on the command line; for one table, None.
    method : str
        Short name of the method.
    file_format : str or None
        Of the files.
    checkpoint : Path or None
        Given, they are.

    Returns
    -------
    answer : bool
        For two sets of files, too large together for memory, and a method that can.
    """
    from classprior._files import STDIN, find_files
    from classprior.engines._estimate import METHODS_IN_BLOCKS

    if checkpoint is not None:
        return True
    if unlabeled is None or STDIN in (positive, unlabeled) or method not in METHODS_IN_BLOCKS:
        return False
    files = [*find_files(positive, file_format).paths, *find_files(unlabeled, file_format).paths]
    return sum(path.stat().st_size for path in files) > SHARE_OF_MEMORY * memory_of_machine()


def memory_of_machine() -> float:
    """Return its bytes; infinity where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def estimated_in_blocks(
    positive_or_data: str,
    unlabeled: str | None,
    reading: dict[str, Any],
    *,
    method: str,
    checkpoint: Path | None,
    file_format: str | None,
    **options: Any,
) -> tuple[LargeSamples, PriorEstimate]:
    """Estimate the share from files without reading them into memory.

    Parameters
    ----------
    positive_or_data, unlabeled : str
        The two sets of files.
    reading : dict
        Has label, positive, columns, drop, ids, encoding and no_header, as in ``load_samples``.
    method, checkpoint : any
        How, and where sums are kept.
    file_format : str or None
        Of the files.
    **options : any
        As in ``estimate_blocks``.

    Returns
    -------
    samples : LargeSamples
        What was read.
    estimate : PriorEstimate
        The answer.
    """
    from classprior._files import STDIN, find_files
    from classprior.engines._estimate import estimate_blocks

    check_usage(positive_or_data, unlabeled, reading["label"], reading["positive"])
    if unlabeled is None or STDIN in (positive_or_data, unlabeled):
        raise ValueError(
            "Expected two sets of files to go through in blocks, known positives and unlabeled "
            "rows, got one table or standard input. Leave --checkpoint out, or make two files."
        )
    files = find_files(positive_or_data, file_format), find_files(unlabeled, file_format)
    sources = [_opened(some, reading["encoding"], not reading["no_header"]) for some in files]
    names = columns_to_use(
        [source.schema.names for source in sources],
        [some.label for some in files],
        reading["columns"],
        [*reading["drop"], *reading["ids"]],
    )
    answer = estimate_blocks(
        *sources,
        method=method,
        columns=names,
        keep=names if reading["columns"] else (),
        checkpoint=checkpoint,
        **options,
    )
    n_files = sum(len(some.paths) for some in files)
    note = f"{n_files:,} files were gone through in blocks, without reading them into memory."
    settings = {"positive": positive_or_data, "unlabeled": unlabeled}
    return LargeSamples(settings, (note,)), answer


def _opened(files: FileSet, encoding: str | None, header: bool) -> Any:
    from classprior._csv_files import arrow_format_of
    from classprior._files import CSV
    from classprior.engines._files import open_dataset

    csv_format = None
    if files.format == CSV:
        csv_format = arrow_format_of(files.paths[0], files.label, encoding, header)
    return open_dataset([str(path) for path in files.paths], files.format, files.label, csv_format)
