"""Confidence intervals for the population and for the sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from classprior._core.types import Doubles

_FEWEST_BEYOND = 5  # resamples needed beyond a quantile to estimate it


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


def binomial_limits(prior: float, n_unlabeled: int, delta: float) -> tuple[float, float]:
    """Return the Clopper-Pearson limits that hold even if every row could be classified."""
    k, m = prior * n_unlabeled, n_unlabeled
    low = stats.beta.ppf(delta / 2.0, k, m - k + 1.0) if k > 0.0 else 0.0
    high = stats.beta.isf(delta / 2.0, k + 1.0, m - k) if k < m else 1.0
    return float(low), float(high)


def sample_interval(
    prior: float, low: float, high: float, n_unlabeled: int, variance: float
) -> tuple[float, float]:
    """Return the interval for the share in the sample, given the interval for the population."""
    return (
        without_drawing(low, prior, prior, n_unlabeled, variance),
        without_drawing(high, prior, prior, n_unlabeled, variance),
    )


def without_drawing(
    limit: float, center: float, prior: float, n_unlabeled: int, variance: float
) -> float:
    """Move a limit toward its center, because the sample at hand need not be drawn again."""
    # The part of the variance that is due to drawing the sample from the population is removed.
    # The factor does not depend on the confidence level, so more confidence never narrows.
    drawing = prior * (1.0 - prior) / n_unlabeled
    factor = np.sqrt(max(0.0, 1.0 - drawing / variance)) if variance > 0.0 else 1.0
    return float(np.clip(center + factor * (limit - center), 0.0, 1.0))
