"""Confidence intervals for the population and for the sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from classprior._core.types import Doubles


def resampled_interval(
    prior: float, priors: Sequence[float] | Doubles, delta: float
) -> tuple[float, float]:
    """Return, on each side, the wider of the percentile and the reflected percentile limit."""
    low, high = np.quantile(priors, [delta / 2.0, 1.0 - delta / 2.0])
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
    # The share in the sample does not vary by sampling from the population, so the part of the
    # variance that is due to that sampling is removed on both sides. The factor is the same at
    # every confidence level, so that more confidence never gives a narrower interval.
    drawing = prior * (1.0 - prior) / n_unlabeled
    factor = np.sqrt(max(0.0, 1.0 - drawing / variance)) if variance > 0.0 else 1.0
    return prior - float(factor * (prior - low)), prior + float(factor * (high - prior))
