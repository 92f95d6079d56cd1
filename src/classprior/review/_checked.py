"""What the rows that were looked at prove, by exact limits at the looks of their plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from classprior._core.types import Doubles, Ints
from classprior.review._limits import is_ruled_out, limits_of_count, limits_of_population
from classprior.review._plan import Look, ReviewPlan
from classprior.review._results import (
    CheckedEstimate,
    CutoffResult,
    Limits,
    ReliabilityBin,
    SegmentCount,
)

UNKNOWN = -1  # neither yes nor no
_FEWEST_COMPARED = 10  # positives found, to compare them with the known ones
_FEWEST_IN_BIN = 5  # checked rows
# Limits of positives above and below a cutoff: the lower one above and the upper one below, on
# which the lower limit of recall depends, get most of the error probability.
_MOST, _LEAST = 0.4, 0.1


def evaluate_review(
    plan: ReviewPlan,
    answers: ArrayLike,
    *,
    groups: bool = False,
    notes: Sequence[str] = (),
) -> CheckedEstimate:
    """Return what the rows that were looked at prove.

    Parameters
    ----------
    plan : ReviewPlan
        The plan by which the rows were drawn.
    answers : array-like of shape (n,)
        For each row of the plan, in its order: 1 if it is positive, 0 if not, -1 if unknown. Fewer
        answers than rows mean that no more rows were looked at.
    groups : bool, default=False
        Whether rows come in groups, so that there are no limits for the population.
    notes : sequence of str, optional
        Remarks on the answers.

    Returns
    -------
    checked : CheckedEstimate
        Share and number of positives, recall, and their exact limits.
    """
    given = np.asarray(answers, dtype=np.int64)
    if given.ndim != 1 or len(given) > len(plan.rows) or not np.isin(given, (-1, 0, 1)).all():
        raise ValueError(
            f"Expected up to {len(plan.rows):,} answers of 1, 0 or -1, one for each row of the "
            "plan."
        )
    answers = np.concatenate([given, np.full(len(plan.rows) - len(given), UNKNOWN)])
    is_known = answers != UNKNOWN
    if not is_known.any():
        raise ValueError("No row was checked. Fill in yes or no in the column 'checked'.")
    judge = _Judge(plan, answers)
    n_unsure = int((~is_known[: judge.n_drawn]).sum())
    if n_unsure:
        notes = [
            *notes,
            f"{n_unsure:,} of the first {judge.n_drawn:,} rows of the plan have no answer, or "
            "'unsure'. The limits allow for both, so they would be narrower with these answers.",
        ]
    strata, sizes = plan.strata, np.array(plan.design.sizes)
    low, high = judge.limits(strata, sizes)
    count = float(np.clip(judge.estimate(strata, sizes), low, high))
    population = (None, None) if groups else judge.limits_of_population()
    return CheckedEstimate(
        prior=count / plan.n_rows,
        low=low / plan.n_rows,
        high=high / plan.n_rows,
        count=count,
        low_count=low,
        high_count=high,
        population_low=population[0],
        population_high=population[1],
        confidence=plan.confidence,
        n_rows=plan.n_rows,
        n_planned=len(plan.rows),
        n_checked=int(is_known.sum()),
        n_positive=int((answers == 1).sum()),
        n_unsure=n_unsure,
        n_known=plan.n_known,
        recall=plan.recall,
        rows_to_read=_rows_to_read(judge, plan),
        cutoffs=_cutoffs(judge, plan),
        segments=_segments(judge, plan),
        unlike_p_value=_unlike(judge, plan),
        bins=_bins(judge, plan),
        notes=tuple(notes),
        rows=tuple(np.array(plan.rows)[is_known].tolist()),
        answers=tuple(answers[is_known].tolist()),
        weights=tuple(judge.weights[is_known].tolist()),
    )


@dataclass(frozen=True, eq=False)
class _Judge:
    """Computes limits at the looks of a plan, of all rows or of some cells of them."""

    plan: ReviewPlan
    answers: Ints

    @property
    def n_drawn(self) -> int:
        """Number of rows up to the last one with an answer."""
        return int(np.flatnonzero(self.answers != UNKNOWN)[-1]) + 1

    def limits(
        self, cells: Ints, sizes: Ints, errors: tuple[float, float] | None = None
    ) -> tuple[int, int]:
        """Return the limits of the number of positives in some cells.

        ``cells`` is the cell of each row of the plan, or -1, and ``errors`` the shares of the error
        probability for the lower and the upper limit. All looks hold together, so the best limits
        of any of them do. Rows of a look that have no answer may be positive or negative.
        """
        lower_share, upper_share = errors or self.plan.design.sides
        limits = [(0, int(np.sum(sizes)))]
        for look in self.useful_looks():
            drawn, found, unsure = self._counts(look, cells, len(sizes))
            both = lower_share * look.error, upper_share * look.error
            limits.append(limits_of_count(sizes, drawn, found, both, unsure=unsure))
        low, high = (int(max(a for a, _ in limits)), int(min(b for _, b in limits)))
        return (low, high) if low <= high else limits[-1]

    def limits_of_population(self) -> tuple[float, float]:
        """Return limits of the share in the population from which the unlabeled rows were drawn."""
        plan, sizes = self.plan, np.array(self.plan.design.sizes)
        limits = [(0.0, 1.0)]
        for look in self.useful_looks():
            drawn, found, unsure = self._counts(look, plan.strata, len(sizes))
            errors = plan.design.sides[0] * look.error, plan.design.sides[1] * look.error
            limits.append(limits_of_population(sizes, drawn, found, errors, unsure))
        low, high = max(a for a, _ in limits), min(b for _, b in limits)
        return (low, high) if low <= high else limits[-1]

    def _counts(self, look: Look, cells: Ints, n_cells: int) -> tuple[Ints, Ints, Ints]:
        """Return numbers of rows, of positives, and of those without an answer in each cell."""
        answers, cells = self.answers[: look.n_rows], cells[: look.n_rows]
        drawn, found, unsure = (
            np.bincount(cells[(cells >= 0) & mask], minlength=n_cells)
            for mask in (np.full(len(cells), True), answers == 1, answers == UNKNOWN)
        )
        return drawn, found, unsure

    def proves(self, look: Look, rank: int) -> bool:
        """Return whether the rows up to a rank contain the planned share of the positives.

        It is so unless positives below and negatives above outweigh the rows above, with the recall
        and the rest as their weights.
        """
        plan, recall, sizes = self.plan, self.plan.recall, np.array(self.plan.design.sizes)
        n_above, n_strata = np.clip(rank - (np.cumsum(sizes) - sizes), 0, sizes), len(sizes)
        cells = plan.strata + n_strata * (np.array(plan.ranks) > rank)
        drawn, found, unsure = self._counts(look, cells, 2 * n_strata)
        return is_ruled_out(
            np.concatenate([n_above, sizes - n_above]),
            drawn,
            np.where(np.arange(2 * n_strata) < n_strata, drawn - found - unsure, found),
            look.error,
            np.repeat([1.0 - recall, recall], n_strata),
            (1.0 - recall) * rank,
            unsure,
        )

    def useful_looks(self) -> list[Look]:
        """Return the looks that are complete, but for some that say less, and the next one."""
        looks = self.plan.looks
        n_complete = sum(look.n_rows <= self.n_drawn for look in looks)
        complete, rest = looks[:n_complete], looks[n_complete : n_complete + 1]
        # A later look with as much error probability has more rows.
        useful = [
            look
            for place, look in enumerate(complete, 1)
            if all(later.error < look.error for later in complete[place:])
        ]
        return [*useful, *rest]

    def estimate(self, cells: Ints, sizes: Ints) -> float:
        """Return the usual estimate of the number of positives, from the rows with an answer."""
        is_known = (self.answers != UNKNOWN) & (cells >= 0)
        n = np.bincount(cells[is_known], minlength=len(sizes))
        x = np.bincount(cells[is_known & (self.answers == 1)], minlength=len(sizes))
        pooled = x.sum() / max(1, n.sum())  # in cells without any
        return float(np.sum(sizes * np.where(n > 0, x / np.maximum(n, 1), pooled)))

    @property
    def weights(self) -> Doubles:
        """One over the probability with which each row got an answer; 0 without one."""
        is_known, strata = self.answers != UNKNOWN, self.plan.strata
        n = np.bincount(strata[is_known], minlength=len(self.plan.design.sizes))
        weights = np.array(self.plan.design.sizes) / np.maximum(n, 1)
        return np.where(is_known, weights[strata], 0.0)


def _rows_to_read(judge: _Judge, plan: ReviewPlan) -> int | None:
    """Return the smallest number of rows that contain the planned share of the positives.

    If this is false of a number of rows, it is false of all smaller ones. So numbers are tested
    from the largest on, each with all of the error probability of a look, until the first that is
    not proven (Marcus, Peritz and Gabriel, 1976).
    """
    proven = []
    for look in judge.useful_looks():
        for rank in plan.reading:
            if not judge.proves(look, rank):
                break
            proven.append(rank)
    return min(proven, default=None)


def _cutoffs(judge: _Judge, plan: ReviewPlan) -> tuple[CutoffResult, ...]:
    """Return recall, precision and elusion with limits that hold for all cutoffs together."""
    parts = [_above_and_below(judge, plan, cutoff.rank) for cutoff in plan.cutoffs]
    above = _growing([part for part, _ in parts])
    below = _growing([part for _, part in parts][::-1])[::-1]
    return tuple(
        CutoffResult(
            cutoff.rank,
            cutoff.probability,
            a,
            b,
            _recall(a, b, 0),
            _recall(a, b, plan.n_known),
            a.over(cutoff.rank),
            b.over(plan.n_rows - cutoff.rank),
        )
        for cutoff, a, b in zip(plan.cutoffs, above, below, strict=True)
    )


def _growing(parts: Sequence[Limits]) -> list[Limits]:
    """Use that limits hold together, and that each part of the rows contains the one before."""
    values = accumulate((part.value for part in parts), max)
    lows = accumulate((part.low for part in parts), max)
    highs = reversed([*accumulate((part.high for part in reversed(parts)), min)])
    return [
        Limits(min(max(value, low), high), min(low, high), high)
        for value, low, high in zip(values, lows, highs, strict=True)
    ]


def _above_and_below(judge: _Judge, plan: ReviewPlan, rank: int) -> tuple[Limits, Limits]:
    """Return the positives among the rows up to a rank, and among the others."""
    sizes = np.array(plan.design.sizes)
    n_above = np.clip(rank - (np.cumsum(sizes) - sizes), 0, sizes)
    strata, is_above = plan.strata, np.array(plan.ranks) <= rank
    most, least = (error / len(plan.cutoffs) for error in (_MOST, _LEAST))
    return (
        _part(judge, np.where(is_above, strata, -1), n_above, (most, least)),
        _part(judge, np.where(is_above, -1, strata), sizes - n_above, (least, most)),
    )


def _part(judge: _Judge, cells: Ints, sizes: Ints, errors: tuple[float, float]) -> Limits:
    low, high = judge.limits(cells, sizes, errors)
    return Limits(float(np.clip(judge.estimate(cells, sizes), low, high)), low, high)


def _recall(above: Limits, below: Limits, n_known: int) -> Limits:
    """Return the share of positives above, with the known positives if they count as found."""

    def share(a: float, b: float) -> float:
        return (a + n_known) / (a + n_known + b) if a + n_known + b else 1.0

    return Limits(
        share(above.value, below.value), share(above.low, below.high), share(above.high, below.low)
    )


def _bins(judge: _Judge, plan: ReviewPlan) -> tuple[ReliabilityBin, ...]:
    """Return predicted and observed shares of the rows between cutoffs."""
    total = sum(plan.design.expected)
    ends = [*((c.rank, c.expected) for c in plan.cutoffs), (plan.n_rows, total)]
    ranks, strata = np.array(plan.ranks), plan.strata
    starts = np.cumsum(plan.design.sizes) - plan.design.sizes
    bins, before, predicted = [], 0, 0.0
    for rank, expected in ends if plan.cutoffs else ():
        is_here = (ranks > before) & (ranks <= rank)
        n_checked = int((is_here & (judge.answers != UNKNOWN)).sum())
        if n_checked < _FEWEST_IN_BIN and rank < plan.n_rows:
            continue  # the next bin begins where this one does
        below, above = (np.clip(r - starts, 0, plan.design.sizes) for r in (before, rank))
        cells, sizes = np.where(is_here, strata, -1), (above - below).astype(np.int64)
        share = _part(judge, cells, sizes, plan.design.sides).over(rank - before)
        mean = min(1.0, (expected - predicted) / (rank - before))
        bins.append(ReliabilityBin(before + 1, rank, mean, share, n_checked))
        before, predicted = rank, expected
    return tuple(bins)


def _segments(judge: _Judge, plan: ReviewPlan) -> dict[Any, SegmentCount]:
    """Return the share and the number of positives in each segment."""
    segments, strata = np.array(plan.row_segments, dtype=np.int64), plan.strata
    is_known = judge.answers != UNKNOWN
    found = {}
    for place, (name, sizes) in enumerate(plan.segment_sizes):
        is_here, n_rows = segments == place, sum(sizes)
        part = _part(judge, np.where(is_here, strata, -1), np.array(sizes), plan.design.sides)
        share = part.over(n_rows)
        found[name] = SegmentCount(
            share.value,
            share.low,
            share.high,
            part.value,
            int(part.low),
            int(part.high),
            n_rows,
            int((is_here & is_known).sum()),
            int((is_here & (judge.answers == 1)).sum()),
        )
    return found


def _unlike(judge: _Judge, plan: ReviewPlan) -> float | None:
    """Return the p-value of a test that found and known positives have the same scores.

    The positives that were found are weighted by the design, since rows were drawn by score. Their
    mean place among the known positives is 1/2 if both have the same distribution.
    """
    is_found = judge.answers == 1
    n, m = int(is_found.sum()), len(plan.known_ranks)
    if n < _FEWEST_COMPARED or m < _FEWEST_COMPARED:
        return None
    known, ranks = np.sort(plan.known_ranks), np.array(plan.ranks)[is_found]
    places = (np.searchsorted(known, ranks) + np.searchsorted(known, ranks, side="right")) / (2 * m)
    weights = judge.weights[is_found] / judge.weights[is_found].sum()
    mean = weights @ places
    # At least the variance of uniform places, that of the null hypothesis.
    of_found = max(np.sum(weights**2 * (places - mean) ** 2), np.sum(weights**2) / 12.0)
    variance = of_found + 1.0 / (12.0 * m)
    # A few positives with large weights decide: degrees of freedom by Welch and Satterthwaite.
    freedom = (variance / of_found) ** 2 * (1.0 / np.sum(weights**2) - 1.0)
    return float(2.0 * stats.t.sf(abs(mean - 0.5) / np.sqrt(variance), max(1.0, freedom)))
