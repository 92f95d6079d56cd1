"""From counts of rows by score to an estimate with intervals for population and sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from classprior._core.types import Doubles
from classprior._scores.limits import exact_limits
from classprior._scores.tails import (
    EXAMINED,
    ScoreTails,
    TailEstimate,
    average,
    combine,
    separation_of,
)

#: For each round of cross-fitting and each score, the counts of both samples by bin and threshold.
BinCounts = Sequence[Sequence[tuple[Doubles, Doubles]]]
_FEWEST_BEYOND = 5  # resamples needed beyond a quantile to estimate it
#: Separation below which known positives do not stand out, and from which they clearly do.
MIXED, _APART = 0.6, 0.85
# P-value above which nothing suggests that there are negatives in the tail of the estimate.
_PURE = 0.3
_NOT_REFITTED = 1.2  # factor of the standard error, because resamples share their classifiers


def resampled_limits(values: Sequence[float] | Doubles, delta: float) -> tuple[float, float]:
    """Return the limits between which resampled values lie with probability 1 - delta.

    Quantiles with fewer than five resamples beyond them are extrapolated from the last that has
    five, in proportion to normal quantiles. So the limits keep widening with the confidence.
    """
    inner = min(0.5, max(delta, 2.0 * _FEWEST_BEYOND / len(values)))
    low, middle, high = np.quantile(values, [inner / 2.0, 0.5, 1.0 - inner / 2.0])
    stretch = max(1.0, stats.norm.isf(delta / 2.0) / stats.norm.isf(inner / 2.0))
    return float(middle + stretch * (low - middle)), float(middle + stretch * (high - middle))


def resampled_interval(
    prior: float, priors: Sequence[float] | Doubles, delta: float
) -> tuple[float, float]:
    """Return, on each side, the wider of the percentile and the reflected percentile limit."""
    low, high = resampled_limits(priors, delta)
    low, high = min(low, 2.0 * prior - high, prior), max(high, 2.0 * prior - low, prior)
    return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))


class Interval(NamedTuple):
    """Limits of the share in the population and in the sample."""

    low: float
    high: float
    low_sample: float
    high_sample: float

    def allowing_for(self, heaviest: float) -> Interval:
        """Return limits of the sample that hold whatever the class of its heaviest row."""
        return self._replace(
            low_sample=max(0.0, self.low_sample - heaviest),
            high_sample=min(1.0, self.high_sample + heaviest),
        )


def tail_interval(
    estimate: TailEstimate,
    resampled: TailEstimate,
    exact: Doubles,
    sizes: tuple[float, float],
    delta: float,
    purity_p_value: float,
    separation: float,
) -> Interval:
    r"""Return the interval of an estimate from tails, given the numbers of rows.

    ``exact`` are the limits of ``exact_limits`` for the population (first row) and the sample. The
    upper end is the smaller of the exact limit, which is wide because it allows for the choice of
    tails, and :math:`\hat\pi \exp(1.2\,z\,s/\hat\pi)`, where s is the standard deviation over
    resamples, with one row more or less; the factor 1.2 is for classifiers, which are not refitted.
    The lower end is that of the extrapolated share, or :math:`\hat\pi - 2 z s` if it is higher and
    nothing suggests that negatives are in the tail of the estimate. For the sample, the variance of
    drawing it is removed from s, but not that of the positives outside of the tail. Both lower ends
    are moved down where known positives do not stand out (``lowest_share``).
    """
    (n, m), share, z = sizes, float(estimate.share), float(stats.norm.isf(delta / 2.0))
    prior, end = min(1.0, float(estimate.prior)), min(1.0, float(estimate.extrapolated))
    variance = float(np.var(resampled.prior)) + 1.0 / (m * share) ** 2
    unseen = prior**2 * (1.0 / share - 1.0) * (1.0 / (prior * m) + 1.0 / n)
    of_sample = max(variance - prior * (1.0 - prior) / m, min(unseen, variance))
    # Exact limits are those of the sharpest minimum, from which the estimate may differ.
    correction = prior / float(estimate.ratio)
    exact = exact * [min(1.0, correction), max(1.0, correction)]
    low = resampled_limits(resampled.extrapolated, delta)[0]
    low_sample = without_drawing(
        low, min(end, prior), prior, m, float(np.var(resampled.extrapolated))
    )

    def limits(low: float, s: float, exact: Doubles) -> tuple[float, float]:
        near = prior - 2.0 * z * s if purity_p_value > _PURE else 0.0
        with np.errstate(over="ignore"):
            far = float(prior * np.exp(_NOT_REFITTED * z * s / prior))
        lowest, highest = max(min(low, exact[0]), near, 0.0), min(far, exact[1], 1.0)
        return lowest_share(min(lowest, prior), separation), float(max(highest, prior))

    return Interval(
        *limits(low, np.sqrt(variance), exact[0]), *limits(low_sample, np.sqrt(of_sample), exact[1])
    )


def lowest_share(low: float, separation: float) -> float:
    r"""Return the lower end of an interval, given how far known positives stand out.

    .. math:: g\,\mathrm{low}, \qquad
              g = \min\left(1, \max\left(0, \frac{J - 0.6}{0.25}\right)\right)

    with J for the ``separation``. Where J is small, negatives are found wherever positives are, so
    that any part of the estimate may be negatives.
    """
    return low * min(1.0, max(0.0, (separation - MIXED) / (_APART - MIXED)))


def sample_interval(
    prior: float, low: float, high: float, n_unlabeled: float, variance: float
) -> tuple[float, float]:
    """Return the interval for the share in the sample, given the interval for the population."""
    return (
        without_drawing(low, prior, prior, n_unlabeled, variance),
        without_drawing(high, prior, prior, n_unlabeled, variance),
    )


def without_drawing(
    limit: float, center: float, prior: float, n_unlabeled: float, variance: float
) -> float:
    """Move a limit toward its center, because the sample at hand need not be drawn again."""
    # The part of the variance that is due to drawing the sample from the population is removed.
    # The factor does not depend on the confidence level, so more confidence never narrows.
    drawing = prior * (1.0 - prior) / n_unlabeled
    factor = np.sqrt(max(0.0, 1.0 - drawing / variance)) if variance > 0.0 else 1.0
    return float(np.clip(center + factor * (limit - center), 0.0, 1.0))


class TailResult(NamedTuple):
    """An estimate, the same for resamples and for each round, and the interval."""

    estimate: TailEstimate
    resampled: TailEstimate
    of_rounds: list[TailEstimate]
    interval: Interval
    purity_p_value: float
    separation: float


def purity_p_value(estimate: TailEstimate, n: float, m: float) -> float:
    r"""Return the p-value of the hypothesis that the tail of the estimate is purely positive.

    The share w of the positives that score higher than an unlabeled row is then uniform in the
    tail, and the share extrapolated within it, ``purest``, divided by the ratio r of the tail, has
    mean 1 and variance :math:`\frac{A - 1}{W} \left(\frac{1}{r m} + \frac{2}{n}\right)` with A = 9
    and the window W of ``extrapolated_share``, for n positives, which count twice as in
    ``tail_ratio``, and m unlabeled rows.
    """
    ratio, window = float(estimate.ratio), EXAMINED * float(estimate.share)
    variance = 8.0 / window * (1.0 / (ratio * m) + 2.0 / n)
    return float(stats.norm.sf((1.0 - float(estimate.purest) / ratio) / np.sqrt(variance)))


def tail_result(
    counts: BinCounts,
    weights: tuple[Doubles, Doubles],
    delta: float,
    independent: tuple[float, float] = (1.0, 1.0),
    separation: float | None = None,
) -> TailResult:
    """Return the estimate and its interval, given weights of the bins for each resample.

    ``independent`` is the number of independent groups per row in both samples, and ``separation``
    that of these rows unless it is given.
    """
    tails = tails_of(counts)
    of_rounds = [combine([tail.counts() for tail in of_round]) for of_round in tails]
    estimate = average(of_rounds)
    resampled = resampled_estimate(tails, weights, estimate.window)
    n_bins = (len(part) for part in (tails[0][0].n_positive, tails[0][0].n_unlabeled))
    p, u = map(np.full, n_bins, independent)
    exact = [exact_limits([tail.counts((p, u)) for tail in of_round], delta) for of_round in tails]
    n, m = float(tails[0][0].n_positive.sum()), float(tails[0][0].n_unlabeled.sum())
    p_value = purity_p_value(estimate, independent[0] * n, independent[1] * m)
    J = mean_separation(tails, float(estimate.prior)) if separation is None else separation
    exact = np.mean(exact, axis=0)
    interval = tail_interval(estimate, resampled, exact, (n, m), delta, p_value, J)
    return TailResult(estimate, resampled, of_rounds, interval, p_value, J)


def mean_separation(tails: Sequence[Sequence[ScoreTails]], prior: float) -> float:
    """Return how far known positives stand out, averaged over rounds."""
    return float(np.mean([separation_of([t.counts() for t in each], prior) for each in tails]))


def tails_of(counts: BinCounts) -> list[list[ScoreTails]]:
    """Return the tails of each round and score."""
    return [[ScoreTails.from_counts(*pair) for pair in of_round] for of_round in counts]


def resampled_estimate(
    tails: Sequence[Sequence[ScoreTails]],
    weights: tuple[Doubles, Doubles],
    window: Any = None,
) -> TailEstimate:
    """Return the estimate of each resample of the bins; ``window`` is as in ``combine``.

    A resample without rows of a sample tells nothing: the share may be anything from 0 to 1.
    """
    first = tails[0][0]
    tells = (weights[0] @ first.n_positive > 0.0) & (weights[1] @ first.n_unlabeled > 0.0)
    used = weights[0][tells], weights[1][tells]
    found = average(
        [
            combine([tail.counts(used) for tail in of_round], resampled=True, window=window)
            for of_round in tails
        ]
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
    return replace(found, prior=prior, extrapolated=extrapolated, of_scores=of_scores)
