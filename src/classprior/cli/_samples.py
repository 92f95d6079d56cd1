"""From what stands on the command line to two samples."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from classprior._messages import listed

if TYPE_CHECKING:
    import pyarrow as pa

    from classprior._files import TableFile
    from classprior._frames import EncodedSamples

_YES = ("1", "true", "yes")
_NO = ("0", "-1", "false", "no")
_MOST_VALUES = 6


@dataclass(frozen=True, eq=False)
class Samples:
    """Known positives and unlabeled rows, with what the user should know of them.

    Parameters
    ----------
    positive, unlabeled : pyarrow Tables
        The columns to learn from, the same in both.
    source : TableFile
        The unlabeled rows with all their columns, as they were read.
    one_table : bool
        Whether a column told them apart.
    notes : tuple of str
        What was decided.
    settings : dict of str to str
        Files and choices, for a report.
    chosen : tuple of str
        Columns that the user named, which are no identifiers.
    """

    positive: pa.Table
    unlabeled: pa.Table
    source: TableFile
    one_table: bool
    notes: tuple[str, ...]
    settings: dict[str, str]
    chosen: tuple[str, ...]

    def encoded(self) -> EncodedSamples:
        """Return both samples as numbers."""
        from classprior._frames import as_numbers

        return as_numbers(self.positive, self.unlabeled, keep=self.chosen)


def load_samples(
    positive_or_data: str,
    unlabeled: str | None,
    *,
    label: str | None,
    positive: str | None,
    columns: Sequence[str],
    drop: Sequence[str],
    ids: Sequence[str],
    file_format: str | None,
    encoding: str | None,
    no_header: bool,
    keep_text: bool = False,
) -> Samples:
    """Read the samples.

    Parameters
    ----------
    positive_or_data, unlabeled : str
        The two files, or one and None.
    label, positive : str or None
        The column that marks positives in one file, and what stands there.
    columns, drop, ids : sequences of str
        Names of columns, several in one text separated by commas.
    file_format, encoding, no_header : any
        How to read.
    keep_text : bool, default=False
        Whether the unlabeled rows are to be written again as they stand.

    Returns
    -------
    samples : Samples
        Both with at least one row.
    """
    from classprior._files import find_files, read_files

    check_usage(positive_or_data, unlabeled, label, positive)

    def read(source: str, keep: bool) -> TableFile:
        files = find_files(source, file_format)
        return read_files(files, encoding=encoding, header=not no_header, keep_text=keep)

    settings: dict[str, str] = {}
    notes: list[str] = []
    if unlabeled is None:
        data = read(positive_or_data, keep_text)
        is_positive, note = _known_positives(data, str(label), positive)
        tables = [data.table.filter(is_positive), data.table.filter(_inverted(is_positive))]
        source = _only(data, _inverted(is_positive))
        where = [data.files.label] * 2
        notes += [note] if note else []
        settings |= {"data": positive_or_data, "label": str(label)}
        settings |= {} if positive is None else {"positive": positive}
        drop = [*drop, str(label)]
    else:
        known, source = read(positive_or_data, keep=False), read(unlabeled, keep_text)
        tables, where = [known.table, source.table], [known.files.label, source.files.label]
        settings |= {"positive": positive_or_data, "unlabeled": unlabeled}
    names = columns_to_use([table.column_names for table in tables], where, columns, [*drop, *ids])
    return Samples(
        positive=tables[0].select(names),
        unlabeled=tables[1].select(names),
        source=source,
        one_table=unlabeled is None,
        notes=tuple(notes),
        settings=settings,
        chosen=tuple(names) if columns else (),
    )


def check_usage(
    positive_or_data: str, unlabeled: str | None, label: str | None, positive: str | None
) -> None:
    """Refuse what can be neither two samples nor one table with a label.

    Parameters
    ----------
    positive_or_data, unlabeled, label, positive : str or None
        As in ``load_samples``.
    """
    from classprior._files import STDIN

    if unlabeled is None and label is None:
        raise click.UsageError(
            "Expected two files, known positives and unlabeled rows, or one file and --label, the "
            f"column that marks the known positives. Got {positive_or_data!r} only."
        )
    if unlabeled is not None and (label is not None or positive is not None):
        raise click.UsageError(
            "Expected two files, or one file with --label and --positive. Got two files with "
            f"{'--label' if label is not None else '--positive'}."
        )
    if positive_or_data == unlabeled == STDIN:
        raise click.UsageError("Only one of the two samples can be standard input.")
    if positive_or_data == unlabeled:
        raise click.UsageError(f"Expected two different files, got {unlabeled!r} twice.")


def _known_positives(data: TableFile, label: str, positive: str | None) -> tuple[Any, str | None]:
    """Return which rows are known positives, and what was decided about the others."""
    import numpy as np
    import pyarrow as pa

    from classprior._columns import text_of

    _check_names([label], data.table.column_names, data.files.label)
    texts = [None if v is None else text_of(v) for v in data.table[label].to_pylist()]
    found: dict[str | None, int] = {}
    for text in texts:
        found[text] = found.get(text, 0) + 1
    if positive is None:
        positive = _obvious_positive(found, label)
    wanted = {text for text in found if text is not None and _same_label(text, positive)}
    if not wanted:
        raise ValueError(
            f"Expected rows with {positive!r} in column {label!r}, found {_counted(found)}. Say "
            "which of them marks known positives with --positive."
        )
    others = {text: count for text, count in found.items() if text not in wanted}
    if not others:
        raise ValueError(
            f"Expected unlabeled rows beside those with {positive!r} in column {label!r}, found "
            "none."
        )
    note = f"all other rows are taken as unlabeled; column {label!r} has {_counted(others)} there."
    is_positive = np.array([text in wanted for text in texts])
    return pa.array(is_positive), note if len(others) > 1 else None


def _obvious_positive(found: dict[str | None, int], label: str) -> str:
    texts = [text for text in found if text is not None]
    yes = [text for text in texts if text.lower() in _YES]
    no = [text for text in texts if text.lower() in _NO]
    if len(yes) != 1 or len(yes) + len(no) != len(texts):
        raise click.UsageError(
            f"Say with --positive which value of column {label!r} marks known positives: it has "
            f"{_counted(found)}."
        )
    return yes[0]


def _same_label(text: str, wanted: str) -> bool:
    """Whether a value is the one wanted; 1.0 is 1 and True is true."""
    if text in ("True", "False"):
        return text.lower() == wanted.lower()
    try:
        return text == wanted or float(text) == float(wanted)
    except ValueError:
        return False


def _counted(found: dict[str | None, int]) -> str:
    most = sorted(found.items(), key=lambda item: -item[1])
    shown = [f"{'nothing' if t is None else repr(t)} in {n:,} rows" for t, n in most[:_MOST_VALUES]]
    more = len(most) - _MOST_VALUES
    return ", ".join(shown) + (f" and {more:,} other values" if more > 0 else "")


def _inverted(mask: Any) -> Any:
    import pyarrow.compute as pc

    return pc.invert(mask)


def _only(data: TableFile, mask: Any) -> TableFile:
    text = data.as_written
    return replace(
        data, table=data.table.filter(mask), as_written=None if text is None else text.filter(mask)
    )


def columns_to_use(
    names_of_samples: Sequence[Sequence[str]],
    where: Sequence[str],
    columns: Sequence[str],
    drop: Sequence[str],
) -> list[str]:
    """Return the columns to learn from, in the order of the unlabeled rows.

    Parameters
    ----------
    names_of_samples : two sequences of str
        The columns of the known positives and of the unlabeled rows.
    where : two str
        How messages call them.
    columns, drop : sequences of str
        What options say, several names in one text separated by commas.

    Returns
    -------
    names : list of str
        At least one.
    """
    positive, unlabeled = names_of_samples
    either = list(dict.fromkeys([*unlabeled, *positive]))
    dropped = set(_names(drop, either, where[1]))
    chosen = _names(columns, either, where[1])
    wanted = [n for n in (chosen or either) if n not in dropped]
    for names, place in zip((positive, unlabeled), where, strict=True):
        absent = [name for name in wanted if name not in names]
        if absent:
            raise ValueError(
                f"Expected the same columns in both samples, got none called {listed(absent)} in "
                f"{place}. Leave columns out with --drop, or name those to use with --columns."
            )
    if not wanted:
        raise ValueError(
            f"Expected columns to learn from, but all are left out; {where[1]} has "
            f"{listed(either)}."
        )
    return [name for name in unlabeled if name in wanted]


def _names(texts: Sequence[str], known: Sequence[str], place: str) -> list[str]:
    """Return the columns that options name; a comma may separate names or be part of one."""
    names = []
    for text in texts:
        names += [text] if text in known else [part.strip() for part in text.split(",")]
    _check_names(names, known, place)
    return names


def _check_names(names: Sequence[str], known: Sequence[str], place: str) -> None:
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            advice = f"Did you mean {close[0]!r}?" if close else f"It has {listed(known)}."
            raise ValueError(f"Expected a column of {place}, got {name!r}. {advice}")
