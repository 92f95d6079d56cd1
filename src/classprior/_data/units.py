"""What is known of each row beside its features: its fold, group, weight and segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from classprior._core.bins import KEPT, generator, group_keys
from classprior._core.messages import listed
from classprior._core.types import Bools, Doubles, Ints
from classprior._data.blocks import Block, Reader, Span, as_frame, select_columns
from classprior._data.checks import check_rows, unmasked
from classprior._data.columns import MISSING, is_gap, text_of, texts_of
from classprior._data.parameters import SAMPLES

Keys = NDArray[np.uint64]
_NEARLY_ALL = 0.9
_GAPS = "None", "nan", "NaT", "<NA>"  # missing values as text
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

    def check_own_positives(self, weights: tuple[Doubles, Doubles] | None) -> None:
        """Raise if a segment is to be compared with its own positives, but has none."""
        if not self.own_positives:
            return
        own: Any = () if self.positive is None else _weighing(self.positive, weights, 0)
        lacking = np.setdiff1d(_weighing(self.unlabeled, weights, 1), own)
        if len(lacking):
            raise ValueError(
                f"The segment {self.names[lacking[0]]!r} has no known positives, so segments "
                "cannot be compared with their own positives. Use the positives of all segments, "
                "or merge segments."
            )

    @property
    def of_samples(self) -> list[Ints]:
        """Segments of the unlabeled rows and, if known, of the positives."""
        return [self.unlabeled] if self.positive is None else [self.unlabeled, self.positive]

    def take(self, rows: tuple[Ints, Ints]) -> Segments:
        """Return the segments of some rows; the names stay."""
        positive = None if self.positive is None else self.positive[rows[0]]
        return replace(self, positive=positive, unlabeled=self.unlabeled[rows[1]])


@dataclass(frozen=True, eq=False)
class Units:
    """Folds, groups, weights and segments of the rows of two samples, each if given."""

    folds: tuple[Ints, Ints] | None = None
    groups: tuple[Keys, Keys] | None = None  # 64-bit keys
    weights: tuple[Doubles, Doubles] | None = None  # of mean 1, without the rows of weight 0
    segments: Segments | None = None
    scales: tuple[float, float] = (1.0, 1.0)  # the user's weights divided by ``weights``
    # Rows kept at random in proportion to their weights, so that they count alike.
    kept: tuple[Bools, Bools] | None = None

    def take(self, rows: tuple[Ints, Ints]) -> Units:
        """Return the units of some rows, given their indices."""
        folds = _taken(self.folds, rows)
        if folds is not None:  # renumber: some folds may have no rows left
            _, numbered = np.unique(np.concatenate(folds), return_inverse=True)
            folds = numbered[: len(folds[0])], numbered[len(folds[0]) :]
        segments = None if self.segments is None else self.segments.take(rows)
        return Units(
            folds,
            _taken(self.groups, rows),
            _taken(self.weights, rows),
            segments,
            self.scales,
            _taken(self.kept, rows),
        )

    @property
    def segments_present(self) -> list[int]:
        """Indices of the segments that have unlabeled rows, not only rows of weight 0."""
        if self.segments is None:
            return []
        return np.unique(_weighing(self.segments.unlabeled, self.weights, 1)).tolist()

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Weights and segments, on which sums over rows depend beside the bins."""
        segments = self.segments
        given = [] if segments is None else [segments.positive, segments.unlabeled]
        return [part for part in (*(self.weights or ()), *given) if part is not None]


def _weighing(codes: Ints, weights: tuple[Doubles, Doubles] | None, sample: int) -> Ints:
    """Return the codes of the rows whose weight is not 0."""
    return codes if weights is None else codes[weights[sample] > 0.0]


def _taken(pair: Any, rows: tuple[Ints, Ints]) -> Any:
    return None if pair is None else (pair[0][rows[0]], pair[1][rows[1]])


class Columns(NamedTuple):
    """Values of the unit columns of a sample, each if its column was named."""

    groups: Keys | None
    weights: Doubles | None
    segments: list[Coded] | None  # one for each column


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
        gaps = () if kind == "U" else _GAPS
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


def column_names_of(segments: Any) -> tuple[str, ...]:
    """Return the names of the segment columns; none for arrays."""
    names = (segments,) if isinstance(segments, str) else segments
    is_named = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
    return tuple(names) if is_named else ()


def checked_weights(
    weights: Any, sizes: tuple[int, int]
) -> tuple[tuple[Doubles, Doubles] | None, tuple[float, float]]:
    """Return weights of mean 1 for both samples, None if all are equal, and their scales."""
    parts, scales, name = [], [], "weights"
    for values, called in zip(_pair(weights, sizes, name), SAMPLES, strict=True):
        try:
            part = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"Expected numbers in {name}, got {values.dtype} values.") from error
        if len(wrong := np.flatnonzero(~(np.isfinite(part) & (part >= 0.0)))):
            raise ValueError(
                f"Expected finite, nonnegative numbers in {name}, got {part[wrong[0]]:g} in row "
                f"{wrong[0]} of the {called}."
            )
        if not part.any():
            raise ValueError(
                f"The weights of all {called} are zero, but each class needs rows that count."
            )
        largest = part.max()
        part = part / largest  # sums of huge or tiny weights would overflow
        mean = part[part > 0.0].mean()
        parts.append(part / mean)
        scales.append(float(largest * mean))
    if all(np.all(part == 1.0) for part in parts):
        return None, (scales[0], scales[1])
    return (parts[0], parts[1]), (scales[0], scales[1])


def kept_rows(seed: int, weights: tuple[Doubles, Doubles]) -> tuple[Bools, Bools]:
    """Keep each row with the probability w / max w."""
    positive, unlabeled = (
        generator(seed, KEPT, sample).random(len(part)) < part / part.max()
        for sample, part in enumerate(weights)
    )
    return positive, unlabeled


def group_keys_of(groups: Any, sizes: tuple[int, int]) -> tuple[Keys, Keys]:
    """Return the key of each row's group in both samples."""
    positive, unlabeled = map(_keys_of, _pair(groups, sizes, "groups"), SAMPLES)
    return positive, unlabeled


def segments_of(
    segments: Any, sizes: tuple[int, int], *, every: str | None = None, own_positives: bool = False
) -> Segments:
    """Return the segments of both samples; those of the positives may be None."""
    if not (isinstance(segments, tuple | list) and len(segments) == 2):
        raise TypeError(_expected("segments"))
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
        raise ValueError(
            f"Expected at most {_MOST_SEGMENTS} segments, got {len(both.names):,}, such as "
            f"{listed(both.names[:3])}. Group the values, or give dates a longer period."
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
    texts[np.isin(texts, [*_GAPS, ""])] = "NaT"
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


def check_groups_in_folds(groups: tuple[Any, Any], folds: tuple[Ints, Ints]) -> None:
    """Raise if a group has rows in several folds."""
    pairs = np.unique(np.column_stack([np.concatenate(groups), np.concatenate(folds)]), axis=0)
    if len(pairs) > len(np.unique(pairs[:, 0])):
        raise ValueError(
            "A group has rows in several folds of cv. Put each group in one fold, or leave out cv "
            "or groups."
        )


def column_of_groups(tables: Sequence[Any], pairs: Ints, most: int) -> str | None:
    """Return the column with equal values in nearly all pairs, each in at most ``most`` rows.

    Pairs are row numbers in the tables together; columns of fractions are not considered.
    """
    import pandas as pd

    if not all(hasattr(table, "columns") for table in tables):
        return None
    frame = pd.concat([as_frame(table, None) for table in tables], ignore_index=True)
    equal = {}
    for name, column in frame.items():
        if pd.api.types.is_float_dtype(column):
            continue
        codes, _ = pd.factorize(column.map(str))
        counts = np.bincount(codes)
        if np.sum(counts.astype(float) ** 2) <= most * len(codes):  # the mean over rows
            equal[str(name)] = float(np.mean(codes[pairs[:, 0]] == codes[pairs[:, 1]]))
    name = max(equal, key=equal.__getitem__, default=None)
    return name if name is not None and equal[name] >= _NEARLY_ALL else None


@dataclass(frozen=True, eq=False)
class UnitColumns:
    """Reads groups, weights and segments of a block from columns."""

    reader: Reader
    group: str | None = None
    weight: str | None = None
    segments: tuple[str, ...] = ()
    every: str | None = None

    def __call__(self, block: Block) -> tuple[Span, Columns]:
        keys, weights = [np.empty(0, dtype=np.uint64)], [np.empty(0)]
        coded: list[list[Coded]] = [[] for _ in self.segments]
        for row, table in self.reader.tables(block):
            if self.group is not None:
                keys.append(self._keys(table[self.group], block, row))
            if self.weight is not None:
                weights.append(self._weights(table, block, row))
            for part, name in zip(coded, self.segments, strict=True):
                part.append(Coded.of(in_periods(_values_of(table[name], self.every), self.every)))
        return block.span, Columns(
            None if self.group is None else np.concatenate(keys),
            None if self.weight is None else np.concatenate(weights),
            [Coded.joined(part) for part in coded] if self.segments else None,
        )

    def _keys(self, column: Any, block: Block, row: int) -> Keys:
        texts = texts_of(column)
        if len(gaps := np.flatnonzero(is_gap(texts))):
            raise ValueError(
                f"The group column {self.group!r} of {self.reader.name}, {block.where}, has no "
                f"value in row {block.number_of(row + gaps[0])}. Fill in missing groups, or "
                "drop those rows."
            )
        return group_keys(texts.tolist())

    def _weights(self, table: Any, block: Block, row: int) -> Doubles:
        where = f"{self.reader.name}, {block.where}"
        number_of = partial(_number_in_file, block, row)
        weights = check_rows(select_columns(table, [self.weight]), where, number_of)[:, 0]
        if len(wrong := np.flatnonzero(weights < 0.0)):
            raise ValueError(
                f"The weight column {self.weight!r} of {where}, has {weights[wrong[0]]:g} in row "
                f"{number_of(int(wrong[0]))}. Expected nonnegative numbers."
            )
        return weights


def joined_columns(parts: Sequence[Columns]) -> Columns:
    """Stack the values of several blocks."""
    groups, weights, segments = zip(*parts, strict=True)
    return Columns(
        None if groups[0] is None else np.concatenate(groups),
        None if weights[0] is None else np.concatenate(weights),
        None
        if segments[0] is None
        else [Coded.joined(column) for column in zip(*segments, strict=True)],
    )


def _pair(values: Any, sizes: tuple[int, int], name: str) -> list[NDArray[Any]]:
    """Return one array for each sample."""
    if not (isinstance(values, tuple | list) and len(values) == 2):
        raise TypeError(_expected(name))
    parts = [np.asarray(unmasked(part)) for part in values]
    for part, size, called in zip(parts, sizes, SAMPLES, strict=True):
        if part.shape != (size,):
            raise ValueError(
                f"Expected one value in {name} for each of the {size} {called}, got an array of "
                f"shape {part.shape}."
            )
    return parts


def _expected(name: str) -> str:
    return f"Expected {name} to be a column name, or a pair of arrays, one for each sample."


def _keys_of(values: NDArray[Any], called: str) -> Keys:
    """Return group keys by the text of the values: 1, 1.0 and "1" are the same group."""
    if values.dtype.kind in "iuf":  # there are fewer groups than rows
        values, where = np.unique(values, return_inverse=True, equal_nan=False)
    else:
        where = np.arange(len(values))
    texts = [text_of(value) for value in values.tolist()]
    for place, (value, text) in enumerate(zip(values, texts, strict=True)):
        if text in _GAPS and not isinstance(value, str):
            row = int(np.flatnonzero(where == place)[0])
            raise ValueError(f"The group of row {row} of the {called} is missing ({text}).")
    return group_keys(texts)[where]


def _columns_of(values: Any) -> list[NDArray[Any]]:
    """Return an array, or each column of a table, as one-dimensional arrays."""
    array = np.asarray(unmasked(values))
    if array.ndim == 2:
        return list(array.T)
    if array.ndim != 1:
        raise ValueError(
            f"Expected one or two dimensions in segments, got an array of shape {array.shape}."
        )
    return [array]


def _values_of(column: Any, every: str | None) -> NDArray[Any]:
    """Return a column of any table as an array of integers, booleans, dates or text."""
    values = np.asarray(column)
    if values.dtype.kind in "iubM":
        return values
    texts = texts_of(column)
    return np.where(is_gap(texts), "NaT" if every else MISSING, texts).astype(str)


def _number_in_file(block: Block, row: int, place: int) -> int:
    return block.number_of(row + place)
