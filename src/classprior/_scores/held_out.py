"""The half of the rows that the classifiers of the bound have not seen, and its counts."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from classprior._core.bins import GROUPS, KEPT, generator
from classprior._core.messages import OptionError
from classprior._core.types import Bools, Doubles, Ints
from classprior._samples.samples import Samples
from classprior._scores.betting import group_limits
from classprior._scores.limits import Bounds, bound_ranks, certified_bounds
from classprior._tables.parameters import SAMPLES, check_max_weight

_MOST_GROUPS = 20_000  # counted for the bound; more hardly lower it
# If it is unknown how large groups can be, those in this half may be so many times as large as the
# largest in the other half.
_LARGEST_GROUP = 2.0
_ROUNDING = 1e-9  # relative error of sums of weights


class _Units(NamedTuple):
    """Units that are counted: groups, or their parts in different segments."""

    of_rows: Ints  # -1 for rows that are not counted
    group: Ints  # index of each unit's group
    segment: Ints
    largest: float  # total weight that no group should exceed


class HeldOut:
    """The second half of the folds, on which the bound is counted.

    Thresholds are scores of positives. If all of these positives are counted, the ranks of the
    thresholds have a known distribution. Otherwise (not all positives were drawn, or there are
    groups, or segments that are compared with their own positives), the positives in a quarter of
    the bins set the thresholds and are not counted.

    A single row or group must not weigh too much. ``max_weight`` is the most that one can weigh, in
    the population and in the units of the user; the bound is exact only if it is known, which it is
    if rows have neither weights nor groups. Otherwise, the largest weight seen takes its place.
    """

    def __init__(
        self,
        samples: Samples,
        drawn: Samples,
        folds: tuple[Ints, Ints],
        max_weight: Any = None,
    ) -> None:
        segments, units = samples.units.segments, samples.units
        self._max_weights = _declared(max_weight, samples)
        self.is_exact = self._max_weights is not None or not (
            units.are_weighted or units.groups is not None
        )
        own_positives = segments is not None and segments.own_positives
        middle = -(-(1 + int(max(map(np.max, folds)))) // 2)
        self.halves = (folds[0] >= middle).astype(int), (folds[1] >= middle).astype(int)
        self._samples, self._drawn, self._own_positives = samples, drawn, own_positives
        self._is_counted = self.halves[0] == 1, self.halves[1] == 1  # bins
        all_are_drawn = drawn.sizes[0] == samples.bins.n_counted[0]  # positives
        self._ranks_are_known = all_are_drawn and units.groups is None and not own_positives
        self._sets = self._is_counted[0]
        if not self._ranks_are_known:
            used = np.flatnonzero(self._sets & (samples.bins.n_rows[0] > 0))
            self._sets = np.zeros(len(folds[0]), dtype=bool)
            self._sets[used[::4]] = True
            self._is_counted = self._is_counted[0] & ~self._sets, self._is_counted[1]

    @cached_property
    def numbers(self) -> tuple[Ints, Ints]:
        """Indices of the drawn rows in both samples."""
        return self._samples.drawn_numbers(max(self._drawn.sizes))

    def thresholds(self, scores: Doubles) -> Doubles:
        """Return increasing thresholds, given the scores of the drawn positives."""
        used = self._sets[self._drawn.bins_of_rows[0]]
        if self._ranks_are_known and self._kept is not None:
            used &= self._kept[0][self.numbers[0]]
        falling = np.sort(scores[used])[::-1]
        return falling[bound_ranks(len(falling)) - 1][::-1] if len(falling) else np.zeros(1)

    @cached_property
    def _kept(self) -> tuple[Bools, Bools] | None:
        """Rows kept with the probability w / max w, so that they count alike; None for all."""
        units, samples = self._samples.units, self._samples
        if units.groups is not None or (units.weights is None and self._max_weights is None):
            return None
        kept = []
        for sample, size in enumerate(samples.sizes):
            rows = np.arange(size) if units.counted is None else units.counted[sample]
            w = np.ones(len(rows)) if units.weights is None else units.weights[sample][rows]
            largest = w.max() if self._max_weights is None else self._max_weights[sample]
            of_sample = np.zeros(size, dtype=bool)
            of_sample[rows] = samples.draws(sample).chances(KEPT, rows) < w / largest
            kept.append(of_sample)
        return kept[0], kept[1]

    def n_cells(self, sample: int) -> tuple[int, int, int | None]:
        """Return the numbers of bins, of segments and of units, if there are groups."""
        segments, groups = self._samples.units.segments, self._samples.units.groups
        is_known = segments is not None and segments.of(sample) is not None
        return (
            len(self._samples.bins.n_rows[sample]),
            len(segments.names) if segments is not None and is_known else 1,
            None if groups is None else len(self._units[sample].group),
        )

    def beside(self, sample: int) -> dict[str, Any]:
        """Return the arrays, one value per row, by which rows are counted."""
        units = self._samples.units
        found = {
            "segments": None if units.segments is None else units.segments.of(sample),
            "weights": self._samples.weights(sample),
            "kept": None if self._kept is None else self._kept[sample],
            "units": None if units.groups is None else self._units[sample].of_rows,
        }
        return {name: values for name, values in found.items() if values is not None}

    def bounds(
        self, positive: Doubles, unlabeled: Doubles, delta: float, segment: int | None = None
    ) -> Bounds:
        """Return the bounds for all rows or for a segment, from the counts of both samples."""
        if self._samples.units.groups is not None:
            return self._bounds_of_groups(positive, unlabeled, delta, segment)
        own = segment is not None and self._own_positives
        p = positive[segment] if own else positive.sum(axis=0)
        u = unlabeled.sum(axis=0) if segment is None else unlabeled[segment]
        p = np.cumsum(p[self._is_counted[0]].sum(axis=0))
        u = np.cumsum(u[self._is_counted[1]].sum(axis=0))
        if p[-1] == 0.0 or u[-1] == 0.0:
            return Bounds(1.0, 1.0)
        k = bound_ranks(int(p[-1])) if self._ranks_are_known else p[:-1]
        return certified_bounds(k, u[:-1], p[-1], u[-1], delta)

    def _bounds_of_groups(
        self, positive: Doubles, unlabeled: Doubles, delta: float, segment: int | None
    ) -> Bounds:
        """Return the bounds from independent groups."""
        own = segment if self._own_positives else None
        parts = []
        for s, (table, only) in enumerate(((positive, own), (unlabeled, segment))):
            units = self._units[s]
            counted = slice(None) if only is None else units.segment == only
            of_groups = np.zeros((int(units.group.max(initial=-1)) + 1, table.shape[1]))
            np.add.at(of_groups, units.group[counted], table[counted])
            of_groups = of_groups[of_groups.sum(axis=1) > 0.0]
            if not len(of_groups):
                return Bounds(1.0, 1.0)
            parts.append((np.cumsum(of_groups[:, :-1], axis=1), of_groups.sum(axis=1)))
        (p, n), (u, m) = parts
        each = delta / p.shape[1] / 2.0
        most = group_limits(u, m, self._units[1].largest, each, upper=True)
        least = group_limits(p, n, self._units[0].largest, each, upper=False)
        with np.errstate(divide="ignore"):
            exact = min(1.0, float(np.min(most / least)))
        (k, n_rows), (beyond, m_rows) = (
            (tail.sum(axis=0) * size.sum() / (size @ size), size.sum() ** 2 / (size @ size))
            for tail, size in parts
        )
        asymptotic = certified_bounds(k, beyond, n_rows, m_rows, delta).asymptotic
        return Bounds(exact, asymptotic)

    @cached_property
    def _units(self) -> tuple[_Units, _Units]:
        return self._units_of(0), self._units_of(1)

    def _units_of(self, sample: int) -> _Units:
        samples = self._samples
        assert samples.units.groups is not None
        _, groups = np.unique(samples.units.groups[sample], return_inverse=True)
        totals = np.bincount(groups, samples.weights(sample))
        rows = self._is_counted[sample][samples.bins_of_rows[sample]]
        if samples.units.weights is not None:
            rows &= samples.units.weights[sample] > 0.0
        is_counted = np.zeros(len(totals), dtype=bool)
        is_counted[groups[rows]] = True
        if self._max_weights is None:
            largest = _LARGEST_GROUP * totals[~is_counted].max(initial=0.0)
        else:
            largest = self._max_weights[sample]
        chosen = np.flatnonzero(is_counted)
        if len(chosen) > _MOST_GROUPS:
            rng = generator(samples.seed, GROUPS, sample)
            chosen = np.sort(rng.choice(chosen, _MOST_GROUPS, replace=False))
        index = np.full(len(totals), -1)
        index[chosen] = np.arange(len(chosen))
        of_rows = index[groups]
        segments = samples.units.segments
        codes = None if segments is None else segments.of(sample)
        if segments is None or codes is None:
            return _Units(of_rows, np.arange(len(chosen)), np.zeros(len(chosen), int), largest)
        n_segments = len(segments.names)
        counted = of_rows >= 0
        parts, units = np.unique(
            of_rows[counted] * n_segments + codes[counted], return_inverse=True
        )
        of_rows[counted] = units
        return _Units(of_rows, parts // n_segments, parts % n_segments, largest)


def _declared(max_weight: Any, samples: Samples) -> tuple[float, float] | None:
    """Return the declared largest weights in the units of the samples' weights."""
    pair = check_max_weight(max_weight)
    if pair is None:
        return None
    units = samples.units
    if not units.are_weighted and units.groups is None:
        raise OptionError(
            f"max_weight={max_weight!r} applies to weights or groups, got neither.", "max_weight"
        )
    scaled = []
    for sample, (declared, scale) in enumerate(zip(pair, units.scales, strict=True)):
        w = samples.weights(sample)
        if units.groups is not None:
            _, codes = np.unique(units.groups[sample], return_inverse=True)
            w = np.bincount(codes, w).astype(np.float64)
        seen = scale * (1.0 if w is None else float(w.max()))
        if seen > declared * (1.0 + _ROUNDING):
            unit = "row" if units.groups is None else "group"
            raise OptionError(
                f"Expected max_weight to be at least {seen:g}, the largest weight of a {unit} "
                f"among the {SAMPLES[sample]}, got {declared:g}.",
                "max_weight",
            )
        scaled.append(declared / scale)
    return scaled[0], scaled[1]
