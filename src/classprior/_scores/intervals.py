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


def sample_interval(
    prior: float, low: float, high: float, n_unlabeled: int, delta: float
) -> tuple[float, float]:
    """Return the interval for the share in the sample, given the interval for the population."""
    # The share in the sample does not vary by sampling from the population, so the variance of
    # that sampling is subtracted on both sides.
    drawing = stats.norm.isf(delta / 2.0) ** 2 * prior * (1.0 - prior) / n_unlabeled
    return (
        prior - float(np.sqrt(max(0.0, (prior - low) ** 2 - drawing))),
        prior + float(np.sqrt(max(0.0, (high - prior) ** 2 - drawing))),
    )
