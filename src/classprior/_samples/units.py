"""What is known of each row beside its features: its fold, group, weight and segment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from classprior._core.bins import KEPT, generator, group_keys
from classprior._core.types import Bools, Doubles, Ints
from classprior._samples.reader import Reader
from classprior._samples.sample import Sample
from classprior._samples.segments import (
    GAPS,
    Coded,
    Segments,
    column_names_of,
    in_periods,
    matched_segments,
    segments_of,
    values_of,
)
from classprior._tables.blocks import Block, Span
from classprior._tables.checks import check_rows
from classprior._tables.columns import is_gap, text_of, texts_of
from classprior._tables.parameters import SAMPLES, check_fold_ids, check_is_pair
from classprior._tables.tables import select_columns, unmasked

Keys = NDArray[np.uint64]


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
        return [] if self.segments is None else self.segments.present(1, self.weights).tolist()

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Weights and segments, on which sums over rows depend beside the bins."""
        segments = self.segments
        given = [] if segments is None else [segments.positive, segments.unlabeled]
        return [part for part in (*(self.weights or ()), *given) if part is not None]


def _taken(pair: Any, rows: tuple[Ints, Ints]) -> Any:
    return None if pair is None else (pair[0][rows[0]], pair[1][rows[1]])


def given_units(
    each: tuple[Sample, Sample],
    seed: int,
    *,
    groups: Any = None,
    weights: Any = None,
    segments: Any = None,
    every: str | None = None,
    own_positives: bool = False,
    cv: Any = None,
) -> Units:
    """Return the user's groups, weights, segments and folds of two samples, validated.

    Each is a pair of arrays or, but for the folds, the name of a column (or several).
    """
    sizes = each[0].n_rows, each[1].n_rows
    group = groups if isinstance(groups, str) else None
    weight = weights if isinstance(weights, str) else None
    names = column_names_of(segments)
    # The segments of the positives may be unknown.
    of_positives = names if set(names) <= set(each[0].source.columns or ()) else ()
    positive = _read_columns(each[0], group, weight, of_positives, every)
    unlabeled = _read_columns(each[1], group, weight, names, every)
    found = None
    if names:
        found = matched_segments(
            positive.segments,
            unlabeled.segments,
            columns=names,
            every=every,
            own_positives=own_positives,
        )
    elif segments is not None:
        found = segments_of(segments, sizes, every=every, own_positives=own_positives)
    if group:
        groups = positive.groups, unlabeled.groups
    elif groups is not None:
        groups = tuple(map(_keys_of, _pair(groups, sizes, "groups"), SAMPLES))
    folds = None if cv is None else check_fold_ids(cv, sizes)
    units = Units(folds, groups, segments=found)
    if weight:
        weights = positive.weights, unlabeled.weights
    if weights is not None:
        scaled, scales = _checked_weights(weights, sizes)
        kept = None if groups is not None or scaled is None else _kept_rows(seed, scaled)
        units = replace(units, weights=scaled, scales=scales, kept=kept)
    if found is not None:
        found.check_own_positives(units.weights)
    return units


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
        for row, table in self.reader.tables(block):
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
        column = select_columns(table, [self.weight])
        weights = check_rows(column, where, lambda place: block.number_of(row + place))[:, 0]
        if len(wrong := np.flatnonzero(weights < 0.0)):
            raise ValueError(
                f"The weight column {self.weight!r} of {where}, has {weights[wrong[0]]:g} in row "
                f"{block.number_of(row + wrong[0])}. Expected nonnegative numbers."
            )
        return weights


def _read_columns(
    sample: Sample,
    group: str | None,
    weight: str | None,
    segments: tuple[str, ...],
    every: str | None,
) -> _Columns:
    """Read groups, weights and segments in one pass over their columns."""
    wanted = dict.fromkeys(name for name in (group, weight, *segments) if name)
    if not wanted:
        return _Columns(None, None, None)
    reader = replace(sample.reader, columns=tuple(wanted), transform=None, n_features=None)
    parts = sample.collect(_ReadColumns(reader, group, weight, segments, every), "Units of")
    of_groups, of_weights, of_segments = zip(*parts, strict=True)
    return _Columns(
        np.concatenate(of_groups) if group else None,
        np.concatenate(of_weights) if weight else None,
        [Coded.joined(column) for column in zip(*of_segments, strict=True)] if segments else None,
    )


def _checked_weights(
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


def _kept_rows(seed: int, weights: tuple[Doubles, Doubles]) -> tuple[Bools, Bools]:
    """Keep each row with the probability w / max w."""
    positive, unlabeled = (
        generator(seed, KEPT, sample).random(len(part)) < part / part.max()
        for sample, part in enumerate(weights)
    )
    return positive, unlabeled


def check_groups_in_folds(groups: tuple[Any, Any], folds: tuple[Ints, Ints]) -> None:
    """Raise if a group has rows in several folds."""
    pairs = np.unique(np.column_stack([np.concatenate(groups), np.concatenate(folds)]), axis=0)
    if len(pairs) > len(np.unique(pairs[:, 0])):
        raise ValueError(
            "A group has rows in several folds of cv. Put each group in one fold, or leave out cv "
            "or groups."
        )


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
    if values.dtype.kind in "iuf":  # there are fewer groups than rows
        values, where = np.unique(values, return_inverse=True, equal_nan=False)
    else:
        where = np.arange(len(values))
    texts = [text_of(value) for value in values.tolist()]
    for place, (value, text) in enumerate(zip(values, texts, strict=True)):
        if text in GAPS and not isinstance(value, str):
            row = int(np.flatnonzero(where == place)[0])
            raise ValueError(f"The group of row {row} of the {called} is missing ({text}).")
    return group_keys(texts)[where]
