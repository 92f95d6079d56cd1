"""Segments of rows: values of columns, combinations of several, or periods of dates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from classprior._core.messages import OptionError, listed
from classprior._core.types import Doubles, Ints
from classprior._tables.columns import MISSING, is_gap, text_of, texts_of, without_zone
from classprior._tables.parameters import SAMPLES, check_is_pair
from classprior._tables.tables import column_names, unmasked

GAPS = "None", "nan", "NaT", "<NA>"  # missing values as text
#: Periods of dates: the unit of NumPy's dates, and how many of them a period has.
PERIODS = {
    "day": ("D", 1),
    "week": ("D", 7),
    "month": ("M", 1),
    "quarter": ("M", 3),
    "year": ("Y", 1),
}
_MOST_SEGMENTS = 200


@dataclass(frozen=True, eq=False)
class Segments:
    """Segment of each row, as an index into the names."""

    names: tuple[Any, ...]  # values of a column, or tuples of values of several columns
    positive: Ints | None  # None if the segments of the positives are unknown
    unlabeled: Ints
    own_positives: bool = False  # compare each segment with its own positives only
    columns: tuple[str, ...] = ()  # that the segments were read from
    every: str | None = None  # the period, if the segments are dates

    def of(self, sample: int) -> Ints | None:
        """Return the segments of a sample."""
        return self.unlabeled if sample == 1 else self.positive

    def present(self, sample: int, weights: tuple[Doubles, Doubles] | None) -> Ints:
        """Return the segments that have rows in a sample, not only rows of weight 0."""
        codes = self.of(sample)
        if codes is None:
            return np.empty(0, dtype=np.int64)
        return np.unique(codes if weights is None else codes[weights[sample] > 0.0])

    def check_own_positives(self, weights: tuple[Doubles, Doubles] | None) -> None:
        """Raise if a segment is to be compared with its own positives, but has none."""
        if not self.own_positives:
            return
        lacking = np.setdiff1d(self.present(1, weights), self.present(0, weights))
        if len(lacking):
            raise OptionError(
                f"The segment {self.names[lacking[0]]!r} has no known positives, so segments "
                "cannot be compared with their own positives. Merge segments, or use the "
                "positives of all segments.",
                "segment_positives",
            )

    @property
    def of_samples(self) -> list[Ints]:
        """Segments of the unlabeled rows and, if known, of the positives."""
        return [self.unlabeled] if self.positive is None else [self.unlabeled, self.positive]

    def take(self, rows: tuple[Ints, Ints]) -> Segments:
        """Return the segments of some rows; the names stay."""
        positive = None if self.positive is None else self.positive[rows[0]]
        return replace(self, positive=positive, unlabeled=self.unlabeled[rows[1]])


class Coded(NamedTuple):
    """Values as indices into the distinct values."""

    names: list[Any]
    codes: Ints

    @classmethod
    def of(cls, values: NDArray[Any]) -> Coded:
        """Code an array; only integers, booleans and text keep their type."""
        kind = values.dtype.kind
        if kind not in "iubUM":
            values = np.array([text_of(value) for value in values.tolist()], dtype=str)
        distinct, codes = np.unique(values, return_inverse=True)
        if kind in "iub":
            return cls(distinct.tolist(), codes)
        if kind == "M":
            distinct = np.datetime_as_string(distinct, unit="s")
        texts = [text.removesuffix("T00:00:00").removesuffix(" 00:00:00") for text in distinct]
        gaps = () if kind == "U" else GAPS
        names = [MISSING if text in gaps else str(text) for text in texts]
        return cls.joined([cls(names, codes)])  # names may have become equal

    @classmethod
    def joined(cls, parts: Sequence[Coded]) -> Coded:
        """Stack the values of several blocks; 1, 1.0 and "1" are the same if types differ."""
        of_parts = [part.names for part in parts]
        if len({type(name) for names in of_parts for name in names}) > 1:
            of_parts = [[text_of(name) for name in names] for names in of_parts]
        distinct = {name for of_part in of_parts for name in of_part}
        names = sorted(distinct, key=lambda name: (name == MISSING, name))
        index = {name: i for i, name in enumerate(names)}
        codes = [
            np.array([index[name] for name in of_part], dtype=np.int64)[part.codes]
            for of_part, part in zip(of_parts, parts, strict=True)
        ]
        return cls(names, np.concatenate([np.empty(0, dtype=np.int64), *codes]))

    @classmethod
    def crossed(cls, parts: Sequence[Coded]) -> Coded:
        """Combine several columns; the names are tuples of their values that occur together."""
        if len(parts) == 1:
            return parts[0]
        pairs, codes = np.unique(
            np.stack([part.codes for part in parts]), axis=1, return_inverse=True
        )
        names = [
            tuple(part.names[i] for part, i in zip(parts, pair, strict=True)) for pair in pairs.T
        ]
        return cls(names, codes)


def segments_of(
    segments: Any, sizes: tuple[int, int], *, every: str | None = None, own_positives: bool = False
) -> Segments:
    """Return the segments of both samples; those of the positives may be None."""
    check_is_pair(segments, "segments")
    columns = [None if part is None else _columns_of(part) for part in segments]
    for part, size, called in zip(columns, sizes, SAMPLES, strict=True):
        if part is not None and len(part[0]) != size:
            raise ValueError(
                f"Expected one value in segments for each of the {size} {called}, got "
                f"{len(part[0])}."
            )
    positive, unlabeled = (
        None if part is None else [Coded.of(in_periods(column, every)) for column in part]
        for part in columns
    )
    return matched_segments(positive, unlabeled, every=every, own_positives=own_positives)


def matched_segments(
    positive: list[Coded] | None, unlabeled: list[Coded] | None, **about: Any
) -> Segments:
    """Return segments that are numbered alike in both samples, given the codes of each column."""
    if unlabeled is None:
        raise ValueError("Expected a segment for each unlabeled row, got None.")
    samples = [unlabeled] if positive is None else [unlabeled, positive]
    if len({len(columns) for columns in samples}) > 1:
        raise ValueError(
            f"Expected as many columns in the segments of the known positives as in those of the "
            f"unlabeled rows, {len(unlabeled)}, got {len(samples[1])}."
        )
    both = Coded.crossed([Coded.joined(column) for column in zip(*samples, strict=True)])
    if len(both.names) > _MOST_SEGMENTS:
        raise OptionError(
            f"Expected at most {_MOST_SEGMENTS} segments, got {len(both.names):,}, such as "
            f"{listed(both.names[:3])}. Group the values, or give dates a longer period.",
            "every",
        )
    m = len(unlabeled[0].codes)
    of_positives = both.codes[m:] if positive is not None else None
    return Segments(tuple(both.names), of_positives, both.codes[:m], **about)


def in_periods(values: NDArray[Any], every: str | None) -> NDArray[Any]:
    """Return dates as the first day, month, quarter or year of their period, as text."""
    if every is None:
        return values
    if every not in PERIODS:
        raise ValueError(f"Expected every to be one of {', '.join(PERIODS)}, got {every!r}.")
    unit, length = PERIODS[every]
    dates = _dates(values, every).astype(f"datetime64[{unit}]")
    numbers = dates.astype(np.int64)
    shift = 3 if every == "week" else 0  # 1970-01-01 was a Thursday; weeks begin on Monday
    first = (numbers + shift) // length * length - shift
    texts = first.astype(f"datetime64[{unit}]").astype(str)
    texts[np.isnat(dates)] = MISSING
    if every == "quarter":
        quarters = 1 + numbers % 12 // 3
        texts = np.where(
            np.isnat(dates),
            MISSING,
            np.char.add(np.char.add(texts.astype("U4"), "-Q"), quarters.astype(str)),
        )
    return texts


def period_numbers(names: Sequence[str], every: str) -> Ints:
    """Return how many periods after the first each is, given their names by ``in_periods``.

    Missing dates come two periods after the last.
    """
    unit, length = PERIODS[every]
    is_known = np.array([name != MISSING for name in names])
    known = [name for name in names if name != MISSING]
    if every == "quarter":
        years, quarters = (
            np.array([name.split("-Q") for name in known], dtype=np.int64).reshape(-1, 2).T
        )
        periods = 4 * years + quarters
    else:
        periods = np.array(known, dtype=f"datetime64[{unit}]").astype(np.int64) // length
    numbers = np.zeros(len(names), dtype=np.int64)
    numbers[is_known] = periods - periods.min(initial=np.iinfo(np.int64).max) if known else 0
    numbers[~is_known] = numbers.max(initial=0) + 2
    return numbers


def _dates(values: NDArray[Any], every: str) -> NDArray[np.datetime64]:
    """Return dates, which may be ISO text; a time and its zone are left out."""
    if values.dtype.kind == "M":
        return values
    texts = values.astype(str).astype("U10")
    texts[np.isin(texts, [*GAPS, ""])] = "NaT"
    is_iso = np.isin(np.char.str_len(texts), [3, 4, 7, 10])  # NaT, a year, a month or a day
    try:
        if values.dtype.kind in "iufb" or not is_iso.all():
            wrong = values[0] if is_iso.all() else values[~is_iso][0]
            raise ValueError(f"got {str(wrong)!r}")
        return texts.astype("datetime64[D]")
    except ValueError as error:
        raise ValueError(
            f"Expected dates such as 2024-03-31 to count by {every}: {error}."
        ) from error


def _columns_of(values: Any) -> list[NDArray[Any]]:
    """Return an array, or each column of a table, as one-dimensional arrays."""
    if (names := column_names(values)) is not None:
        return [np.asarray(without_zone(values[name])) for name in names]
    array = np.asarray(without_zone(unmasked(values)))
    if array.ndim == 2:
        return list(array.T)
    if array.ndim != 1:
        raise ValueError(
            f"Expected one or two dimensions in segments, got an array of shape {array.shape}."
        )
    return [array]


def values_of(column: Any, every: str | None) -> NDArray[Any]:
    """Return a column of any table as an array of integers, booleans, dates or text.

    Times in a zone become local times, as a reader of the data knows them.
    """
    column = without_zone(column)
    values = np.asarray(column)
    if values.dtype.kind in "iubM":
        return values
    texts = texts_of(column)
    return np.where(is_gap(texts), "NaT" if every else MISSING, texts).astype(str)
