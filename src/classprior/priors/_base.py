"""Base class of the prior estimators."""

from __future__ import annotations

from classprior._core.messages import warn
from classprior._data.estimator import TwoSampleEstimator


class BasePriorEstimator(TwoSampleEstimator):
    """Base class of estimators of the share of positives in unlabeled rows."""

    prior_: float

    def _set_prior(self, prior: float, masses: tuple[float, float]) -> None:
        of_positives = masses[0] + prior * masses[1]
        self.prior_ = prior
        self.prior_pooled_ = of_positives / sum(masses)
        self.label_frequency_ = masses[0] / of_positives


def inside_unit_interval(prior: float, because: str) -> float:
    """Clip a raw estimate to [0, 1], with a warning if it was outside."""
    clipped = min(1.0, max(0.0, prior))
    if clipped != prior:
        warn(f"The raw estimate {prior:.3f} is outside [0, 1]; using {clipped:.0f}. {because}")
    return clipped
