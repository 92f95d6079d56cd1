"""From command-line arguments to two samples."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from classprior._core.types import Bools
    from classprior._samples.inputs import FileSource
    from classprior._samples.sources import Source


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Known positives and unlabeled rows, with notes for the user and settings for the report."""

    positive: Source
    unlabeled: FileSource
    negative: FileSource | None  # rows confirmed to be negative
    is_unlabeled: Bools | None  # which rows of the file are unlabeled; None for all
    columns: list[str] | None  # used even if they look like identifiers; None to choose
    drop: list[str]
    key: list[str] | None  # columns that tell the rows of a sample apart; None for row numbers
    segments: list[str]
    notes: tuple[str, ...]
    settings: dict[str, str]

    @property
    def is_one_table(self) -> bool:
        """Whether both samples come from one table."""
        return self.is_unlabeled is not None


def open_two_samples(
    positive_or_data: str,
    unlabeled: str | None,
    *,
    label: str | None,
    positive: str | None,
    negative: str | None = None,
    columns: Sequence[str],
    drop: Sequence[str],
    ids: Sequence[str],
    by: Sequence[str] = (),
    jobs: int = -1,
    check: Callable[[FileSource], None] | None = None,
    **reading: Any,
) -> TwoSamples:
    """Open the files; ``check`` is called with the one that has the unlabeled rows."""
    from classprior._samples.labeled import UnclearLabelsError, split_files

    _check_usage(positive_or_data, unlabeled, label, positive, negative)
    notes: tuple[str, ...] = ()
    is_unlabeled = checked = None
    if unlabeled is None:
        data = open_file(positive_or_data, "the data", jobs, **reading)
        try:
            split = split_files(data, str(label), positive, negative, jobs)
        except UnclearLabelsError as error:
            raise click.UsageError(f"{error} Use --positive and --negative.") from error
        known, others, checked, is_unlabeled, notes, no = split
        hint = "" if no is None else f" Use --negative {shlex.quote(no)}."
        notes = tuple(note + hint for note in notes)
        settings = {"data": positive_or_data, "label": str(label)}
        values = {"positive": positive, "negative": negative}
        settings |= {name: value for name, value in values.items() if value is not None}
        drop = [*drop, str(label)]
    else:
        known = open_file(positive_or_data, "the known positives", jobs, **reading)
        others = open_file(unlabeled, "the unlabeled rows", jobs, **reading)
        settings = {"positive": positive_or_data, "unlabeled": unlabeled}
    if check is not None:
        check(others)
    either = list(dict.fromkeys([*(others.columns or ()), *(known.columns or ())]))
    return TwoSamples(
        known,
        others,
        checked,
        is_unlabeled,
        _names(columns, either, others.label) or None,
        _names(drop, either, others.label),
        _key_columns(ids, known, others) or None,
        _names(by, others.columns or (), others.label),
        notes,
        settings,
    )


def open_file(
    source: str,
    name: str,
    jobs: int = -1,
    *,
    file_format: str | None = None,
    encoding: str | None = None,
    no_header: bool = False,
    decimal: str | None = None,
    sheet: str | None = None,
    kinds: Mapping[str, str] | None = None,
) -> FileSource:
    """Open a file, a folder or a pattern given on the command line."""
    from classprior._files.finding import FORMATS, find_files
    from classprior._files.reading import ReadOptions, open_files
    from classprior._samples.inputs import FileSource

    files = find_files(source, file_format)
    if files.format not in FORMATS:
        raise ValueError(f"{files.label} has no column names. Save the data as CSV or Parquet.")
    options = ReadOptions(encoding, not no_header, decimal, sheet, file_format)
    opened = open_files(files, name, options=options, kinds=kinds)
    return FileSource(opened, name, n_jobs=jobs)


def _check_usage(
    positive_or_data: str,
    unlabeled: str | None,
    label: str | None,
    positive: str | None,
    negative: str | None,
) -> None:
    """Check that there are either two files, or one file with a label."""
    if unlabeled is None and label is None:
        raise click.UsageError(
            f"There is only one file, {positive_or_data!r}. Add the file with the unlabeled rows, "
            "or use --label to name the column that marks the known positives."
        )
    given = {"--label": label, "--positive": positive, "--negative": negative}
    for option, value in given.items():
        if unlabeled is not None and value is not None:
            raise click.UsageError(f"{option} applies to a single file, but there are two.")
    if positive_or_data == unlabeled == "-":
        raise click.UsageError("Only one of the two samples can be read from standard input.")
    if positive_or_data == unlabeled:
        raise click.UsageError(f"Both samples are the same file, {unlabeled!r}.")


def _key_columns(ids: Sequence[str], known: Source, others: Source) -> list[str]:
    """Return the columns of --id, which both samples must have."""
    names = _names(ids, [*(others.columns or ()), *(known.columns or ())], others.label)
    for source in (known, others):
        if missing := [name for name in names if name not in (source.columns or ())]:
            raise click.UsageError(
                f"There is no column {missing[0]!r} in {source.label}, but --id tells the rows of "
                "both samples apart. Use --drop to only leave a column out."
            )
    return names


def _names(texts: Sequence[str], known: Sequence[str], place: str) -> list[str]:
    """Split names at commas, except in the name of a column that contains one."""
    from classprior._tables.tables import check_columns

    names = []
    for text in texts:
        names += [text] if text in known else [part.strip() for part in text.split(",")]
    check_columns(names, known, place)
    return names
