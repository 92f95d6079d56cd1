"""Base class of the prior estimators."""

from __future__ import annotations

from typing import Any, Self

from classprior._base import Resampler, TwoSampleEstimator
from classprior._core.messages import warn
from classprior._samples.samples import Samples


class BasePriorEstimator(TwoSampleEstimator):
    """Base class of estimators of the share of positives in unlabeled rows."""

    prior_: float

    @classmethod
    def check_weights_allowed(cls) -> None:
        """Raise if the estimator does not take weights."""

    def _set_prior(self, prior: float, masses: tuple[float, float]) -> None:
        of_positives = masses[0] + prior * masses[1]
        self.prior_ = float(prior)
        self.prior_pooled_ = float(of_positives / (sum(masses) + self._negative_mass))
        self.label_frequency_ = float(masses[0] / of_positives)


class UnweightedPriorEstimator(BasePriorEstimator):
    """Base class of prior estimators that do not take weights."""

    @classmethod
    def check_weights_allowed(cls) -> None:
        """Raise, since the estimator does not take weights."""
        raise ValueError(
            f"{cls.__name__} does not take weights. Leave them out, or use AutoPrior, the method "
            "'auto'."
        )

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, groups: Any = None, key: Any = None
    ) -> Self:
        """Fit to known positives and unlabeled rows in one table.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            Known positives and unlabeled rows together.
        y : array-like of shape (n_rows,)
            Two labels, one for known positives and one for unlabeled rows, as in the other
            estimators; a third one for confirmed negatives if ``neg_label`` is set.
        groups : array-like of shape (n_rows,), optional
            Group of each row, such as a customer or a patient. Rows of a group are always in the
            same fold.
        key : array-like of shape (n_rows,), optional
            What tells each row from the others, instead of its index.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return super().fit(X, y, groups=groups, key=key)

    def fit_opened(self, samples: Samples, columns: Any = None) -> Resampler | None:
        if samples.units.are_weighted:
            self.check_weights_allowed()
        if samples.units.counted is not None:
            samples = samples.subsample(None)
        return super().fit_opened(samples, columns)


def inside_unit_interval(prior: float, because: str) -> float:
    """Clip a raw estimate to [0, 1], with a warning if it was outside."""
    clipped = min(1.0, max(0.0, prior))
    if clipped != prior:
        warn(f"The raw estimate {prior:.3f} is outside [0, 1]; using {clipped:.0f}. {because}")
    return clipped
