"""What is known of each row beside its features: its fold, group, weight and segment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from classprior._core.bins import group_keys
from classprior._core.keys import repeated
from classprior._core.types import Doubles, Ints, Keys
from classprior._samples.sample import Reader, Sample
from classprior._samples.segments import (
    GAPS,
    Coded,
    Segments,
    in_periods,
    matched_segments,
    segments_of,
    values_of,
)
from classprior._tables.columns import coded_texts, text_of
from classprior._tables.keys import hashed_column, repeated_key
from classprior._tables.parameters import SAMPLES, check_fold_ids, check_is_pair, check_weights
from classprior._tables.tables import Block, Span, unmasked


@dataclass(frozen=True, eq=False)
class Units:
    """Folds, groups, weights and segments of the rows of two samples, each if given."""

    folds: tuple[Ints, Ints] | None = None
    groups: tuple[Keys, Keys] | None = None  # 64-bit keys
    # Of mean 1 over the rows that count, and 0 for the others; None if all rows count alike.
    weights: tuple[Doubles, Doubles] | None = None
    segments: Segments | None = None
    are_weighted: bool = False  # whether the user gave weights
    scales: tuple[float, float] = (1.0, 1.0)  # the user's weights divided by ``weights``
    # Number of unlabeled rows that were left out because they repeat known positives, if asked for.
    n_known_left_out: int | None = None

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
            self.are_weighted,
            self.scales,
            self.n_known_left_out,
        )

    def without_known(self, rows: Ints, sizes: tuple[int, int]) -> Units:
        """Return the units with weight 0 for some unlabeled rows, which repeat known positives."""
        positive, unlabeled = self.weights or (np.ones(sizes[0]), np.ones(sizes[1]))
        unlabeled = unlabeled.copy()
        unlabeled[rows] = 0.0
        if not unlabeled.any():
            raise ValueError(
                "All unlabeled rows repeat known positives, so that none would be left."
            )
        mean = float(unlabeled[unlabeled > 0.0].mean())
        return replace(
            self,
            weights=(positive, unlabeled / mean),
            scales=(self.scales[0], self.scales[1] * mean),
            n_known_left_out=len(rows),
        )

    @cached_property
    def counted(self) -> tuple[Ints, Ints] | None:
        """Indices of the rows that count, those of weight above 0; None if all do."""
        if self.weights is None or all(part.all() for part in self.weights):
            return None
        return np.flatnonzero(self.weights[0]), np.flatnonzero(self.weights[1])

    @cached_property
    def count_alike(self) -> bool:
        """Whether all rows that count have the same weight."""
        return self.weights is None or all(np.ptp(part[part > 0.0]) == 0.0 for part in self.weights)

    @property
    def are_alike(self) -> bool:
        """Whether all rows that count are independent and have the same weight."""
        return self.count_alike and self.groups is None

    @property
    def counted_segments(self) -> Segments | None:
        """Segments of the rows that count."""
        if self.segments is None or self.counted is None:
            return self.segments
        return self.segments.take(self.counted)

    @property
    def segments_present(self) -> list[int]:
        """Indices of the segments that have unlabeled rows, not only rows of weight 0."""
        return [] if self.segments is None else self.segments.present(1, self.weights).tolist()

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Weights and segments, on which sums over rows depend beside the bins."""
        segments = self.segments
        given = [] if segments is None else [segments.positive, segments.unlabeled]
        return [part for part in (*(self.weights or ()), *given) if part is not None]


def _taken(pair: Any, rows: tuple[Ints, Ints]) -> Any:
    return None if pair is None else (pair[0][rows[0]], pair[1][rows[1]])


@dataclass(frozen=True, eq=False, kw_only=True)
class RowOptions:
    """What the user says about each row: names of columns, or pairs of arrays, one per sample."""

    weights: Any = None
    groups: Any = None
    segments: Any = None  # or several names; the segments of the positives may be None
    every: str | None = None  # period to which segments, which are then dates, are rounded
    segment_positives: str = "all"  # that a segment is compared with, "all" or its "own"
    folds: Any = None  # a pair of arrays; a number of folds says nothing about the rows
    key: Any = None  # or several names, whose values together tell rows apart

    @property
    def segment_columns(self) -> tuple[str, ...]:
        """Names of the segment columns; none for arrays."""
        return _names_of(self.segments)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Names of the columns of the key; none for arrays."""
        return _names_of(self.key)

    def keys_of(self, sizes: tuple[int, int]) -> tuple[tuple[str, ...] | Keys | None, ...]:
        """Return the columns of the key, or the hashes of given values, for both samples."""
        if self.key is None or self.key_columns:
            return self.key_columns or None, self.key_columns or None
        return tuple(map(_hashed_keys, _pair(self.key, sizes, "key"), SAMPLES))

    @property
    def given_as_values(self) -> str | None:
        """What is given as values for each row instead of by columns, the first of several."""
        folds = None if isinstance(self.folds, Integral) else self.folds
        given = ("weights", self.weights), ("groups", self.groups), ("segments", self.segments)
        each = (*given, ("key", self.key), ("cv", folds))
        return next((name for name, v in each if v is not None and not _names_of(v)), None)

    @property
    def unit_columns(self) -> list[str]:
        """Names of the columns of groups and weights, which both samples must have."""
        return [name for name in (self.groups, self.weights) if isinstance(name, str)]

    def units_of(self, each: tuple[Sample, Sample]) -> Units:
        """Return the validated units of two samples."""
        if self.segment_positives not in ("all", "own"):
            raise ValueError(
                f"Expected segment_positives to be 'all' or 'own', got {self.segment_positives!r}."
            )
        if self.every is not None and self.segments is None:
            raise ValueError(f"every={self.every!r} applies to segments, but there are none.")
        sizes = each[0].n_rows, each[1].n_rows
        positive, unlabeled = self._read(each[0]), self._read(each[1])
        segments = self._segments(positive.segments, unlabeled.segments, sizes)
        groups, weights = self.groups, self.weights
        if isinstance(groups, str):
            groups = positive.groups, unlabeled.groups
        elif groups is not None:
            groups = tuple(map(_keys_of, _pair(groups, sizes, "groups"), SAMPLES))
        folds = None if self.folds is None else check_fold_ids(self.folds, sizes)
        units = Units(folds, groups, segments=segments)
        if isinstance(weights, str):
            weights = positive.weights, unlabeled.weights
        if weights is not None:
            scaled, scales = _scaled_weights(_pair(weights, sizes, "weights"))
            units = replace(units, weights=scaled, scales=scales, are_weighted=True)
        if segments is not None:
            segments.check_own_positives(units.weights)
        return units

    def _segments(
        self,
        positive: list[Coded] | None,
        unlabeled: list[Coded] | None,
        sizes: tuple[int, int],
    ) -> Segments | None:
        """Return the segments, given the values of their columns if they have names."""
        about: dict[str, Any] = {
            "every": self.every,
            "own_positives": self.segment_positives == "own",
        }
        if columns := self.segment_columns:
            return matched_segments(positive, unlabeled, columns=columns, **about)
        return None if self.segments is None else segments_of(self.segments, sizes, **about)

    def _read(self, sample: Sample) -> _Columns:
        """Read groups, weights and segments in one pass over their columns."""
        group = self.groups if isinstance(self.groups, str) else None
        weight = self.weights if isinstance(self.weights, str) else None
        segments = self.segment_columns
        if not set(segments) <= set(sample.source.columns or ()):
            segments = ()  # those of the positives may be unknown
        wanted = dict.fromkeys([*self.unit_columns, *segments])
        if not wanted:
            return _Columns(None, None, None)
        reader = replace(
            sample.reader, columns=tuple(wanted), transform=None, n_features=None, key=None
        )
        read = _ReadColumns(reader, group, weight, segments, self.every)
        of_groups, of_weights, of_segments = zip(*sample.collect(read, "Units of"), strict=True)
        return _Columns(
            np.concatenate(of_groups) if group else None,
            np.concatenate(of_weights) if weight else None,
            [Coded.joined(column) for column in zip(*of_segments, strict=True)]
            if segments
            else None,
        )


class _Columns(NamedTuple):
    """Values of the unit columns of a sample, each if its column was named."""

    groups: Keys | None
    weights: Doubles | None
    segments: list[Coded] | None  # one for each column


@dataclass(frozen=True, eq=False)
class _ReadColumns:
    """Reads groups, weights and segments of a block from columns."""

    reader: Reader
    group: str | None = None
    weight: str | None = None
    segments: tuple[str, ...] = ()
    every: str | None = None

    def __call__(self, block: Block) -> tuple[Span, _Columns]:
        keys, weights = [np.empty(0, dtype=np.uint64)], [np.empty(0)]
        coded: list[list[Coded]] = [[] for _ in self.segments]
        for row, table, _ in self.reader.tables(block):
            if self.group is not None:
                keys.append(self._keys(table[self.group], block, row))
            if self.weight is not None:
                weights.append(self._weights(table, block, row))
            for part, name in zip(coded, self.segments, strict=True):
                part.append(Coded.of(in_periods(values_of(table[name], self.every), self.every)))
        return block.span, _Columns(
            None if self.group is None else np.concatenate(keys),
            None if self.weight is None else np.concatenate(weights),
            [Coded.joined(part) for part in coded] if self.segments else None,
        )

    def _keys(self, column: Any, block: Block, row: int) -> Keys:
        codes, texts = coded_texts(column)
        if len(gaps := np.flatnonzero(codes < 0)):
            raise ValueError(
                f"The group column {self.group!r} of {self.reader.name}, {block.where}, has no "
                f"value in row {block.number_of(row + gaps[0])}. Fill in missing groups, or "
                "drop those rows."
            )
        return group_keys(texts)[codes]  # there are fewer groups than rows

    def _weights(self, table: Any, block: Block, row: int) -> Doubles:
        where = f"{self.reader.name}, {block.where}"

        def number_of(place: int) -> int:
            return block.number_of(row + place)

        name = f"the weight column {self.weight!r} of {where}"
        return check_weights(table[self.weight], name, number_of)


def _scaled_weights(
    weights: list[NDArray[Any]],
) -> tuple[tuple[Doubles, Doubles] | None, tuple[float, float]]:
    """Return weights of mean 1 for both samples, None if all are equal, and their scales."""
    parts, scales = [], []
    for values, called in zip(weights, SAMPLES, strict=True):
        part = check_weights(values, f"weights of the {called}")
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


def check_groups_in_folds(groups: tuple[Any, Any], folds: tuple[Ints, Ints]) -> None:
    """Raise if a group has rows in several folds."""
    pairs = np.unique(np.column_stack([np.concatenate(groups), np.concatenate(folds)]), axis=0)
    if len(pairs) > len(np.unique(pairs[:, 0])):
        raise ValueError(
            "A group has rows in several folds of cv. Put each group in one fold, or leave out cv "
            "or groups."
        )


def _names_of(given: Any) -> tuple[str, ...]:
    """Return the names of columns; none if arrays were given."""
    names = (given,) if isinstance(given, str) else given
    is_named = isinstance(names, tuple | list) and all(isinstance(n, str) for n in names)
    return tuple(names) if is_named else ()


def _hashed_keys(values: NDArray[Any], called: str) -> Keys:
    """Return the hashes of the keys of a sample; raise if one is missing or repeats."""
    keys, is_missing = hashed_column(values)
    if is_missing.any():
        raise ValueError(
            f"The key of row {int(np.argmax(is_missing))} of the {called} is missing. A key must "
            "tell every row from the others."
        )
    if (twice := repeated(keys)) is not None:
        raise repeated_key(f"the {called}", twice, repr(text_of(values[twice[0]])))
    return keys


def _pair(values: Any, sizes: tuple[int, int], name: str) -> list[NDArray[Any]]:
    """Return one array for each sample."""
    check_is_pair(values, name)
    parts = [np.asarray(unmasked(part)) for part in values]
    for part, size, called in zip(parts, sizes, SAMPLES, strict=True):
        if part.shape != (size,):
            raise ValueError(
                f"Expected one value in {name} for each of the {size} {called}, got an array of "
                f"shape {part.shape}."
            )
    return parts


def _keys_of(values: NDArray[Any], called: str) -> Keys:
    """Return group keys by the text of the values: 1, 1.0 and "1" are the same group."""
    if values.dtype.kind == "f" and len(gaps := np.flatnonzero(np.isnan(values))):
        raise ValueError(f"The group of row {gaps[0]} of the {called} is missing (nan).")
    if values.dtype.kind in "iufUS":  # there are fewer groups than rows
        values, where = np.unique(values, return_inverse=True, equal_nan=False)
    else:
        where = np.arange(len(values))
    texts = [text_of(value) for value in values.tolist()]
    for place, (value, text) in enumerate(zip(values, texts, strict=True)):
        if text in GAPS and not isinstance(value, str):
            row = int(np.flatnonzero(where == place)[0])
            raise ValueError(f"The group of row {row} of the {called} is missing ({text}).")
    return group_keys(texts)[where]
