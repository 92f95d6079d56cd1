"""One table with a column of labels: known positives, confirmed negatives and unlabeled rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classprior._core.messages import OptionError
from classprior._core.types import Bools
from classprior._files.csv import MISSING_VALUES
from classprior._samples.inputs import FileSource, as_source, is_path, is_table
from classprior._tables.columns import text_of, texts_of
from classprior._tables.labels import means_no, means_unlabeled, positive_beside_unlabeled
from classprior._tables.tables import check_columns, column_names, take_rows
from classprior._tables.typed import columns_of

_YES = ("1", "true", "yes")
_MOST_VALUES = 6
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")


class UnclearLabelsError(OptionError):
    """Nothing says which label marks the known positives."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoTables:
    """Known positives and unlabeled rows, sources or tables, and what is said about them."""

    positive: Any
    unlabeled: Any
    negative: Any = None  # rows confirmed to be negative, if any
    is_unlabeled: Bools | None = None  # which rows of a single table are unlabeled
    notes: tuple[str, ...] = ()  # what the labels mean, unless that is obvious
    perhaps_negative: str | None = None  # a label that may mark confirmed negatives
    columns: list[str] | None = None  # used even if they look like identifiers; None to choose
    drop: list[str] = field(default_factory=list)
    key: list[str] | None = None  # columns that tell the rows of a sample apart; None for numbers
    segments: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)  # for the report

    @property
    def is_one_table(self) -> bool:
        """Whether both samples come from one table."""
        return self.is_unlabeled is not None


def split_by_label(
    X: Any,
    label: str,
    positive: Any = None,
    negative: Any = None,
    *,
    read_options: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> TwoTables:
    """Split a data frame, or the rows of files, by the values of a column."""
    if is_path(X):
        data = as_source(X, "the data", read_options=read_options, n_jobs=n_jobs)
        if not isinstance(data, FileSource):
            raise ValueError(f"{str(X)!r} has no column names. Save the data as CSV or Parquet.")
        return split_files(data, label, _as_text(positive), _as_text(negative), n_jobs)
    names = column_names(X) if is_table(X) else None
    if names is None:
        raise TypeError(
            f"label={label!r} names a column of a data frame or a file, got a {type(X).__name__}. "
            "Pass known positives and unlabeled rows instead, without label."
        )
    check_columns([label], names, "the table")
    texts = texts_of(columns_of(X, [str(name) for name in names])[label])
    marks, about = _marked_rows(texts, label, _as_text(positive), _as_text(negative))
    parts = [take_rows(X, np.flatnonzero(rows)) for rows in marks]
    return _two_tables(parts, marks[1], about, negative)


def split_files(
    data: FileSource,
    label: str,
    positive: str | None = None,
    negative: str | None = None,
    n_jobs: int | None = None,
) -> TwoTables:
    """Split the rows of files by the values of a column; those of CSV files as written."""
    check_columns([label], data.columns or (), data.opened.files.label)
    read = _label_texts(data, [label], [text for text in (positive, negative) if text is not None])
    texts = np.concatenate([part[label] for part in read])
    marks, about = _marked_rows(texts, label, positive, negative)
    names = "the known positives", "the unlabeled rows", "the confirmed negatives"
    parts = [
        FileSource(data.opened, name, rows, n_jobs=n_jobs)
        for name, rows in zip(names, marks, strict=True)
    ]
    return _two_tables(parts, marks[1], about, negative)


def _two_tables(
    parts: list[Any], is_unlabeled: Bools, about: tuple[tuple[str, ...], str | None], negative: Any
) -> TwoTables:
    known, others, checked = parts
    return TwoTables(
        positive=known,
        unlabeled=others,
        negative=None if negative is None else checked,
        is_unlabeled=is_unlabeled,
        notes=about[0],
        perhaps_negative=about[1],
    )


def _as_text(value: Any) -> str | None:
    return None if value is None else text_of(value)


def count_labels(
    data: FileSource, names: Sequence[str], most: int
) -> dict[str, dict[str | None, int]]:
    """Count the values of columns, as labels; without columns of more than ``most`` values."""
    found: dict[str, Counter[str | None]] = {name: Counter() for name in names}
    for part in _label_texts(data, names):
        for name in [name for name in found if name in part]:
            found[name].update(part[name])
            if len(found[name]) > most:
                del found[name]
    return {name: dict(counts) for name, counts in found.items()}


def _label_texts(
    data: FileSource, names: Sequence[str], kept: Sequence[str] = ()
) -> Iterator[dict[str, NDArray[Any]]]:
    """Read columns as text, None if missing; in CSV, gaps are text, too, unless they are kept."""
    is_csv = data.opened.dialect is not None
    gaps = [text for text in MISSING_VALUES if is_csv and text not in kept]
    blocks = data.opened.blocks()
    tables = (t for block in blocks for t in block.tables(tuple(names)))
    for table in data.opened.as_written() if is_csv else tables:
        texts = {name: _arrow_texts(table[name], name) for name in names}
        for column in texts.values():
            column[np.isin(column, gaps)] = None
        yield texts


def _arrow_texts(column: Any, name: str) -> NDArray[Any]:
    """Return the values of an Arrow column as text, exactly as written in CSV; None if missing."""
    import pyarrow as pa

    try:
        return np.array(column.cast(pa.string()).to_pylist(), dtype=object)
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"Column {name!r} has {column.type} values, not labels.") from error
    except pa.ArrowInvalid as error:
        raise ValueError(f"Column {name!r} has bytes that are not UTF-8, not labels.") from error


def _marked_rows(
    texts: NDArray[Any], label: str, positive: str | None, negative: str | None
) -> tuple[tuple[Bools, Bools, Bools], tuple[tuple[str, ...], str | None]]:
    """Return masks of positive, unlabeled and negative rows, and notes about the labels."""
    found: dict[str | None, int] = Counter(texts)
    negatives = _rows_with(found, negative, label, are_negative=True)
    rest = {text: count for text, count in found.items() if text not in negatives}
    if positive is None:
        positive = _obvious_or_error(rest, label)
    positives = _rows_with(rest, positive, label, are_negative=False)
    others = {text: count for text, count in rest.items() if text not in positives}
    if not others:
        raise ValueError(
            f"There are no unlabeled rows: column {label!r} has {_counted(found)}, and none of "
            "these values is left for them."
        )
    notes = _notes_on_labels(label, positive, positives, negatives, others)
    is_positive, is_negative = (np.isin(texts, list(rows)) for rows in (positives, negatives))
    return (is_positive, ~(is_positive | is_negative), is_negative), notes


def _rows_with(
    found: Mapping[str | None, int], wanted: str | None, label: str, *, are_negative: bool
) -> dict[str, int]:
    """Return the values equal to a given one, with their numbers of rows."""
    if wanted is None:
        return {}
    rows = {text: n for text, n in found.items() if text is not None and _same_label(text, wanted)}
    if not rows:
        kind = "confirmed negatives" if are_negative else "known positives"
        alike = [t for t in found if t is not None and t.strip().lower() == wanted.strip().lower()]
        raise OptionError(
            f"No row has {wanted!r} in column {label!r}, which has {_counted(found)}. "
            + (f"Did you mean {alike[0]!r}? " if alike else "")
            + f"Say which value marks {kind}.",
            "negative" if are_negative else "positive",
        )
    return rows


def _notes_on_labels(
    label: str,
    positive: str,
    positives: Mapping[str, int],
    negatives: Mapping[str, int],
    others: Mapping[str | None, int],
) -> tuple[tuple[str, ...], str | None]:
    """Return what the labels mean, unless that is obvious, and one that may mark negatives."""
    if set(positives) == {positive} and len(others) == 1 and not means_unlabeled(positive):
        return (), None
    checked = f", {_counted(negatives)} confirmed negatives" if negatives else ""
    note = (
        f"In column {label!r}, {_counted(positives)} marks known positives{checked}. All other "
        f"rows count as unlabeled: {_counted(others)}."
    )
    no = [text for text in others if text is not None and means_no(text)]
    if no and len(others) > len(no) and not negatives:
        note += f" Does {no[0]!r} mark rows that were checked? Then they are confirmed negatives."
        return (note,), no[0]
    return (note,), None


def obvious_positive(found: Iterable[str | None]) -> str | None:
    """Return the label beside gaps and words such as "unknown", or the yes beside a no."""
    labels = list(found)
    if (positive := positive_beside_unlabeled(text or "" for text in labels)) is not None:
        return str(positive)
    texts = [text for text in labels if text is not None and not means_unlabeled(text)]
    yes = [text for text in texts if any(_same_label(text.lower(), known) for known in _YES)]
    is_clear = len(yes) == 1 and all(text in yes or means_no(text) for text in texts)
    return yes[0] if is_clear else None


def _obvious_or_error(found: dict[str | None, int], label: str) -> str:
    if (positive := obvious_positive(found)) is None:
        negative = " One value may also mark confirmed negatives." if len(found) > 2 else ""
        raise UnclearLabelsError(
            f"Say which value of column {label!r} marks known positives. It has "
            f"{_counted(found)}.{negative}",
            "positive",
        )
    return positive


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
