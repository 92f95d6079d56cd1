"""From command-line arguments to two samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from classprior._core.types import Bools
    from classprior._samples.inputs import FileSource
    from classprior._samples.sources import Source

_YES = ("1", "true", "yes")
_MOST_VALUES = 6
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Known positives and unlabeled rows, with notes for the user and settings for the report."""

    positive: Source
    unlabeled: FileSource
    negative: FileSource | None  # rows confirmed to be negative
    is_unlabeled: Bools | None  # which rows of the file are unlabeled; None for all
    columns: list[str] | None  # used even if they look like identifiers; None to choose
    drop: list[str]
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
    from classprior._samples.inputs import FileSource

    _check_usage(positive_or_data, unlabeled, label, positive, negative)
    notes: tuple[str, ...] = ()
    is_unlabeled = checked = None
    if unlabeled is None:
        data = open_file(positive_or_data, "the data", jobs, **reading)
        is_positive, is_negative, note = _kinds_of_rows(data, str(label), positive, negative)
        is_unlabeled = ~(is_positive | is_negative)
        known = FileSource(data.opened, "the known positives", is_positive, n_jobs=jobs)
        others = FileSource(data.opened, "the unlabeled rows", is_unlabeled, n_jobs=jobs)
        if negative is not None:
            checked = FileSource(data.opened, "the confirmed negatives", is_negative, n_jobs=jobs)
        notes = (note,) if note else ()
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
        _names([*drop, *ids], either, others.label),
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


def _kinds_of_rows(
    data: FileSource, label: str, positive: str | None, negative: str | None
) -> tuple[Bools, Bools, str | None]:
    """Return masks of known positives and confirmed negatives, and a note about the labels."""
    from collections import Counter

    import numpy as np

    from classprior._files.csv import MISSING_VALUES
    from classprior._tables.tables import check_columns

    check_columns([label], data.columns or (), data.opened.files.label)
    is_csv = data.opened.dialect is not None
    tables = data.opened.as_written() if is_csv else _columns(data, label)
    texts = np.concatenate([_as_texts(table[label], label) for table in tables])
    if is_csv:  # gaps are text, too
        gaps = [text for text in MISSING_VALUES if text not in (positive, negative)]
        texts[np.isin(texts, gaps)] = None
    found: dict[str | None, int] = Counter(texts)
    negatives = _rows_with(found, negative, label, "--negative")
    rest = {text: count for text, count in found.items() if text not in negatives}
    if positive is None:
        positive = _obvious_positive(rest, label)
    positives = _rows_with(rest, positive, label, "--positive")
    others = {text: count for text, count in rest.items() if text not in positives}
    if not others:
        raise ValueError(
            f"There are no unlabeled rows: column {label!r} has {_counted(found)}, and none of "
            "these values is left for them."
        )
    note = _note_on_labels(label, positive, positives, negatives, others)
    return np.isin(texts, list(positives)), np.isin(texts, list(negatives)), note


def _rows_with(
    found: Mapping[str | None, int], wanted: str | None, label: str, option: str
) -> dict[str, int]:
    """Return the values equal to a given one, with their numbers of rows."""
    if wanted is None:
        return {}
    rows = {text: n for text, n in found.items() if text is not None and _same_label(text, wanted)}
    if not rows:
        kind = {"--positive": "known positives", "--negative": "confirmed negatives"}[option]
        alike = [t for t in found if t is not None and t.strip().lower() == wanted.strip().lower()]
        raise ValueError(
            f"No row has {wanted!r} in column {label!r}, which has {_counted(found)}. "
            + (f"Did you mean {alike[0]!r}? " if alike else "")
            + f"Use {option} to say which value marks {kind}."
        )
    return rows


def _note_on_labels(
    label: str,
    positive: str,
    positives: Mapping[str, int],
    negatives: Mapping[str, int],
    others: Mapping[str | None, int],
) -> str | None:
    """Return what the values of the label column mean, unless that is obvious."""
    from classprior._tables.labels import means_no, means_unlabeled

    if set(positives) == {positive} and len(others) == 1 and not means_unlabeled(positive):
        return None
    checked = f", {_counted(negatives)} confirmed negatives" if negatives else ""
    note = (
        f"In column {label!r}, {_counted(positives)} marks known positives{checked}. All other "
        f"rows count as unlabeled: {_counted(others)}."
    )
    no = [text for text in others if text is not None and means_no(text)]
    if no and len(others) > len(no) and not negatives:
        note += f" If {no[0]!r} marks rows that were checked, use --negative {no[0]}."
    return note


def _columns(data: FileSource, *names: str) -> Iterator[Any]:
    """Read some columns."""
    for block in data.opened.blocks():
        yield from block.tables(names)


def _as_texts(column: Any, name: str) -> NDArray[Any]:
    """Return the values of an Arrow column as text, exactly as written in CSV; None if missing."""
    import numpy as np
    import pyarrow as pa

    try:
        return np.array(column.cast(pa.string()).to_pylist(), dtype=object)
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"Column {name!r} has {column.type} values, not labels.") from error
    except pa.ArrowInvalid as error:
        raise ValueError(f"Column {name!r} has bytes that are not UTF-8, not labels.") from error


def _obvious_positive(found: dict[str | None, int], label: str) -> str:
    """Return the value beside gaps and words such as "unknown", or the yes beside a no."""
    from classprior._tables.labels import means_no, means_unlabeled, positive_beside_unlabeled

    if (positive := positive_beside_unlabeled(text or "" for text in found)) is not None:
        return str(positive)
    texts = [text for text in found if text is not None and not means_unlabeled(text)]
    yes = [text for text in texts if any(_same_label(text.lower(), known) for known in _YES)]
    if len(yes) != 1 or not all(text in yes or means_no(text) for text in texts):
        raise click.UsageError(
            f"Use --positive to say which value of column {label!r} marks known positives. It has "
            f"{_counted(found)}."
            + (
                " Use --negative for a value that marks confirmed negatives."
                if len(found) > 2
                else ""
            )
        )
    return yes[0]


def _same_label(text: str, wanted: str) -> bool:
    """Return whether two labels are equal; 1.0 equals 1 and True equals true, but 007 is not 7."""
    if {text.lower(), wanted.lower()} & {"true", "false"}:
        return text.lower() == wanted.lower()
    if _PLAIN_NUMBER.fullmatch(text) and _PLAIN_NUMBER.fullmatch(wanted):
        return Decimal(text) == Decimal(wanted)  # floats would round long numbers
    return text == wanted


def _counted(found: Mapping[Any, int]) -> str:
    most = sorted(found.items(), key=lambda item: -item[1])
    shown = [
        f"{'nothing' if text is None else repr(text)} in {n:,} row{'' if n == 1 else 's'}"
        for text, n in most[:_MOST_VALUES]
    ]
    more = len(most) - _MOST_VALUES
    return ", ".join(shown) + (f" and {more:,} other values" if more > 0 else "")


def _names(texts: Sequence[str], known: Sequence[str], place: str) -> list[str]:
    """Split names at commas, except in the name of a column that contains one."""
    from classprior._tables.tables import check_columns

    names = []
    for text in texts:
        names += [text] if text in known else [part.strip() for part in text.split(",")]
    check_columns(names, known, place)
    return names
