"""Data with a known share of positives, to try an estimator on."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, check_random_state, check_scalar

__all__ = ["make_overlapping_uniforms", "sample_positive_unlabeled"]


def make_overlapping_uniforms(
    *,
    overlap: float = 0.25,
    prior: float = 0.7,
    n_positive: int = 300,
    n_unlabeled: int = 300,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Draw the paper's two overlapping uniforms.

    .. math:: p(x|y=1) = U(0, 1), \qquad p(x|y=-1) = U(1 - \gamma, 2 - \gamma)

    Parameters
    ----------
    overlap : float, default=0.25
        The overlap :math:`\gamma` of the two classes, from 0 to 1.
    prior : float, default=0.7
        Probability that an unlabeled row is positive.
    n_positive, n_unlabeled : int, default=300
        Rows to draw.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    X_positive : ndarray of shape (n_positive, 1)
        Draws from p(x|y=1).
    X_unlabeled : ndarray of shape (n_unlabeled, 1)
        Draws from the mixture.

    References
    ----------
    du Plessis, Niu and Sugiyama (2017), *Class-prior Estimation for Learning from Positive and
    Unlabeled Data*, Machine Learning 106, section 5.2.

    Examples
    --------
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> X_positive, X_unlabeled = make_overlapping_uniforms(overlap=0.75, random_state=0)
    >>> X_positive.shape, X_unlabeled.shape
    ((300, 1), (300, 1))
    """
    _check_share(overlap, "overlap")
    _check_share(prior, "prior")
    check_scalar(n_positive, "n_positive", Integral, min_val=1)
    check_scalar(n_unlabeled, "n_unlabeled", Integral, min_val=1)
    rng = check_random_state(random_state)
    X_positive = rng.uniform(size=(n_positive, 1))
    is_negative = rng.uniform(size=(n_unlabeled, 1)) >= prior
    return X_positive, rng.uniform(size=(n_unlabeled, 1)) + (1.0 - overlap) * is_negative


def sample_positive_unlabeled(
    X: Any,
    is_positive: Any,
    *,
    prior: float,
    n_positive: int,
    n_unlabeled: int,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Any, Any]:
    """Turn fully labeled data into a positive and an unlabeled sample with a chosen prior.

    No row is drawn twice, within or across the two samples.

    Parameters
    ----------
    X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
        The rows.
    is_positive : array-like of bool of shape (n_rows,)
        Which of them are positive.
    prior : float
        Share of positives in the unlabeled sample: it holds exactly ``round(prior *
        n_unlabeled)``.
    n_positive, n_unlabeled : int
        Rows to draw.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    X_positive : same type as X, of shape (n_positive, n_features)
        Labeled positives.
    X_unlabeled : same type as X, of shape (n_unlabeled, n_features)
        A shuffled mixture.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from classprior.datasets import sample_positive_unlabeled
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_positive, X_unlabeled = sample_positive_unlabeled(
    ...     X, y == 0, prior=0.3, n_positive=100, n_unlabeled=200, random_state=0
    ... )
    >>> X_positive.shape, X_unlabeled.shape
    ((100, 30), (200, 30))
    """
    _check_share(prior, "prior")
    check_scalar(n_positive, "n_positive", Integral, min_val=1)
    check_scalar(n_unlabeled, "n_unlabeled", Integral, min_val=1)
    rng = check_random_state(random_state)
    is_positive = np.asarray(is_positive)
    if is_positive.dtype != bool:
        raise TypeError(
            f"Expected is_positive to hold True and False, got {is_positive.dtype}. Compare labels "
            "with the positive one, as in is_positive=labels == 'yes'."
        )
    check_consistent_length(X, is_positive)
    positive, negative = (
        rng.permutation(np.flatnonzero(part)) for part in (is_positive, ~is_positive)
    )
    n_hidden = round(prior * n_unlabeled)
    needed = n_positive + n_hidden, n_unlabeled - n_hidden
    if needed[0] > len(positive) or needed[1] > len(negative):
        raise ValueError(
            f"Expected at least {needed[0]} positive and {needed[1]} negative rows, got "
            f"{len(positive)} and {len(negative)}. Ask for fewer rows."
        )
    unlabeled = np.concatenate([positive[n_positive : needed[0]], negative[: needed[1]]])
    return _take(X, positive[:n_positive]), _take(X, rng.permutation(unlabeled))


def _check_share(value: float, name: str) -> None:
    check_scalar(value, name, Real)
    if not 0.0 <= value <= 1.0:  # refuses NaN as well
        raise ValueError(f"Expected {name} between 0 and 1, got {value}.")


def _take(X: Any, rows: NDArray[np.int64]) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "take") and hasattr(X, "column_names"):  # pyarrow
        return X.take(rows)
    return np.asarray(X)[rows] if isinstance(X, list) else X[rows]
