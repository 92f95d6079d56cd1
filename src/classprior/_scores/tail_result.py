"""From counts of rows by score to an estimate with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from classprior._core.types import Doubles
from classprior._scores.intervals import Interval, tail_interval
from classprior._scores.tails import ScoreTails, TailEstimate, average, combine, exact_limits

#: For each round of cross-fitting and each score, the counts of both samples by bin and threshold.
BinCounts = Sequence[Sequence[tuple[Doubles, Doubles]]]


class TailResult(NamedTuple):
    """An estimate, the same for resamples and for each round, and the interval."""

    estimate: TailEstimate
    resampled: TailEstimate
    of_rounds: list[TailEstimate]
    interval: Interval


def tail_result(
    counts: BinCounts,
    weights: tuple[Doubles, Doubles],
    delta: float,
    independent: tuple[float, float] = (1.0, 1.0),
) -> TailResult:
    """Return the estimate and its interval, given weights of the bins for each resample.

    ``independent`` is the number of independent groups per row in both samples.
    """
    tails = tails_of(counts)
    of_rounds = [combine([tail.counts() for tail in of_round]) for of_round in tails]
    estimate, resampled = average(of_rounds), resampled_estimate(tails, weights)
    n_bins = (len(part) for part in (tails[0][0].n_positive, tails[0][0].n_unlabeled))
    p, u = map(np.full, n_bins, independent)
    exact = [exact_limits([tail.counts((p, u)) for tail in of_round], delta) for of_round in tails]
    n_unlabeled = float(tails[0][0].n_unlabeled.sum())
    interval = tail_interval(estimate, resampled, np.mean(exact, axis=0), n_unlabeled, delta)
    return TailResult(estimate, resampled, of_rounds, interval)


def tails_of(counts: BinCounts) -> list[list[ScoreTails]]:
    """Return the tails of each round and score."""
    return [[ScoreTails.from_counts(*pair) for pair in of_round] for of_round in counts]


def resampled_estimate(
    tails: Sequence[Sequence[ScoreTails]], weights: tuple[Doubles, Doubles]
) -> TailEstimate:
    """Return the estimate of each resample of the bins.

    A resample without rows of a sample tells nothing: the share may be anything from 0 to 1.
    """
    first = tails[0][0]
    tells = (weights[0] @ first.n_positive > 0.0) & (weights[1] @ first.n_unlabeled > 0.0)
    used = weights[0][tells], weights[1][tells]
    found = average(
        [combine([tail.counts(used) for tail in of_round], resampled=True) for of_round in tails]
    )
    if tells.all():
        return found
    prior, extrapolated = np.ones(len(tells)), np.zeros(len(tells))
    of_scores = np.ones((len(tells), len(tails[0])))
    prior[tells], extrapolated[tells], of_scores[tells] = (
        found.prior,
        found.extrapolated,
        found.of_scores,
    )
    return TailEstimate(prior, extrapolated, of_scores)
