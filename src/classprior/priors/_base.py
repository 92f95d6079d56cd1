"""What every prior estimator shares: scikit-learn's contract and the result."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags

from classprior._basis import Doubles, Rows
from classprior._messages import warn
from classprior._parameters import split_folds
from classprior._validation import check_labelled


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PriorResult:
    """An estimated prior.

    Parameters
    ----------
    prior : float
        Share of positives in the unlabeled rows.
    n_positive, n_unlabeled : int
        Rows in the two samples.
    """

    prior: float
    n_positive: int
    n_unlabeled: int

    @property
    def prior_pooled(self) -> float:
        """Share of positives in labelled and unlabeled rows together."""
        return self._n_positives / (self.n_positive + self.n_unlabeled)

    @property
    def label_frequency(self) -> float:
        """Labelled share of all positives, c in the literature on labelling."""
        return self.n_positive / self._n_positives

    @property
    def _n_positives(self) -> float:
        return self.n_positive + self.prior * self.n_unlabeled

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(prior={self.prior:.3f}, n_positive={self.n_positive}, "
            f"n_unlabeled={self.n_unlabeled})"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PriorCurve(PriorResult):
    """An estimated prior and the curve whose minimum it is.

    Parameters
    ----------
    prior : float
        Share of positives in the unlabeled rows.
    n_positive, n_unlabeled : int
        Rows in the two samples.
    thetas : array of shape (n_thetas,)
        Candidate priors.
    objective : array of shape (n_thetas,)
        The objective at each candidate.
    sigma, lam : arrays of shape (n_thetas,)
        Bandwidth and regularisation used at each candidate.
    centers : array or CSR matrix of shape (n_centers, n_features)
        Centres of the basis.
    coef : array of shape (n_centers,)
        Coefficients alpha of the basis at the estimate.
    """

    thetas: Doubles
    objective: Doubles
    sigma: Doubles
    lam: Doubles
    centers: Rows
    coef: Doubles


class BasePriorEstimator(BaseEstimator, metaclass=ABCMeta):
    """Base of the estimators of the share of positives in unlabeled rows.

    A subclass has the parameters ``cv`` and ``pos_label`` and turns two samples into a
    ``PriorResult``, whose fields become attributes.
    """

    cv: Any
    pos_label: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the share of positives in the unlabeled rows of X.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            Known positives and unlabeled rows together.
        y : array-like of shape (n_rows,)
            Two labels. 1 marks a known positive in {0, 1}, {-1, 1} and booleans; with any other
            pair set ``pos_label``, or the greater label is taken and a warning says so.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, is_positive = check_labelled(self, X, y, self.pos_label)
        cv = split_folds(self.cv, is_positive)
        return self._keep(self._estimate(X[is_positive], X[~is_positive], cv))

    def _keep(self, result: PriorResult) -> Self:
        """Make the fields of a result attributes."""
        self.prior_pooled_ = result.prior_pooled
        self.label_frequency_ = result.label_frequency
        for field in fields(result):
            if field.name not in ("n_positive", "n_unlabeled"):
                setattr(self, field.name + "_", getattr(result, field.name))
        return self

    @abstractmethod
    def _estimate(self, X_positive: Rows, X_unlabeled: Rows, cv: Any) -> PriorResult:
        """Estimate from validated samples; ``cv`` is a number of folds or a pair of fold ids."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        # Not a classifier, but y has two labels and no more.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def inside_unit_interval(prior: float, because: str) -> float:
    """Return a raw estimate clipped to [0, 1], and say so where it was outside.

    Parameters
    ----------
    prior : float
        The raw estimate.
    because : str
        What the warning says after it.

    Returns
    -------
    prior : float
        From 0 to 1.
    """
    clipped = min(1.0, max(0.0, prior))
    if clipped != prior:
        warn(f"The raw estimate {prior:.3f} is outside [0, 1]: taking {clipped:.0f}. {because}")
    return clipped
