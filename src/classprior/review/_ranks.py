"""Unlabeled rows from the highest score to the lowest, and random draws of their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from classprior._core.types import Doubles, Ints
from classprior.review._design import Design

# Cutoffs are where this share of the positives is expected to rank higher.
_EXPECTED_RECALL = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)
# To read for a recall: where so much of what may be missed is expected to be, and beyond that,
# where rows below are so many times fewer.
_EXPECTED_MISSES = (2.5, 1.5, 1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08, 0.03)
_FEWER_BELOW = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.03)
_MOST_KNOWN = 1000  # known positives whose ranks are kept


@dataclass(frozen=True)
class Cutoff:
    """The rows that rank first, up to a rank."""

    rank: int
    probability: float  # of the last of these rows
    expected: float  # positives among them: the sum of their probabilities


@dataclass(frozen=True, eq=False)
class Ranked:
    """The rows from the highest score to the lowest, by their indices."""

    order: Ints
    scores: Doubles
    probabilities: Doubles

    @classmethod
    def of(
        cls, scores: ArrayLike, probabilities: ArrayLike, rows: ArrayLike | None = None
    ) -> Ranked:
        s, p = np.asarray(scores, dtype=float), np.asarray(probabilities, dtype=float)
        if s.ndim != 1 or s.shape != p.shape:
            raise ValueError(
                "Expected one score and one probability for each row, got arrays of shapes "
                f"{s.shape} and {p.shape}."
            )
        if not np.isfinite(s).all() or not ((p >= 0.0) & (p <= 1.0)).all():
            raise ValueError("Expected finite scores, and probabilities between 0 and 1.")
        # Last digits may depend on the blocks in which rows are scored.
        order = np.argsort(-s.round(9), kind="stable")
        numbers = order if rows is None else np.asarray(rows)[order]
        return cls(numbers, s[order], p[order])

    def places(self, scores: Doubles) -> tuple[int, ...]:
        """Return the ranks that other scores would have; of many, evenly spaced ones."""
        some = np.sort(scores)[:: max(1, -(-len(scores) // _MOST_KNOWN))]
        return tuple(map(int, 1 + np.searchsorted(-self.scores, -some)))


def checked_budget(budget: int, n_rows: int) -> int:
    check_scalar(budget, "budget", (int, np.integer), min_val=1)
    if budget > n_rows:
        raise ValueError(f"The budget is {budget:,} rows, but there are only {n_rows:,}.")
    return int(budget)


def draw(design: Design, blocks: Sequence[Sequence[int]], rng: np.random.Generator) -> Ints:
    """Draw ranks from each stratum, in blocks that mix the strata at random."""
    ends = np.cumsum(design.sizes)
    drawn = [
        end - rng.choice(size, n, replace=False)
        for end, size, n in zip(ends, design.sizes, design.drawn, strict=True)
    ]
    starts = np.cumsum([[0] * len(ends), *blocks], axis=0)
    parts = [
        np.concatenate([ranks[a:b] for ranks, a, b in zip(drawn, start, end, strict=True)])
        for start, end in pairwise(starts)
    ]
    return np.concatenate([rng.permutation(part) for part in parts]).astype(np.int64)


def cutoffs_of(probabilities: Doubles, design: Design) -> tuple[Cutoff, ...]:
    """Return the cutoffs at which recall is computed, from the recall expected at each."""
    sums = np.cumsum(probabilities)
    ranks = 1 + np.searchsorted(sums, np.array(_EXPECTED_RECALL) * sums[-1])
    ranks = {min(int(rank), len(sums) - 1) for rank in ranks} | set(np.cumsum(design.sizes)[:-1])
    return tuple(
        Cutoff(int(rank), float(probabilities[rank - 1]), float(sums[rank - 1]))
        for rank in sorted(ranks)
        if rank > 0
    )


def reading_of(probabilities: Doubles, design: Design, recall: float) -> tuple[int, ...]:
    """Return numbers of rows to read, from the most on, of which the recall will be tested."""
    n, sums = len(probabilities), np.cumsum(probabilities)
    shares = 1.0 - (1.0 - recall) * np.array(_EXPECTED_MISSES)
    expected = 1 + np.searchsorted(sums, shares[shares > 0.0] * sums[-1])
    last = min(n, int(expected.max()))
    beyond = n - np.round((n - last) * np.array(_FEWER_BELOW)).astype(np.int64)
    ranks = {*map(int, expected), *map(int, beyond), *map(int, np.cumsum(design.sizes)[:-1])}
    return tuple(sorted((rank for rank in ranks if rank < n), reverse=True))
