"""Data in which the share of positives is known, for trying out estimators."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, check_random_state, check_scalar

__all__ = ["make_overlapping_uniforms", "make_transactions", "sample_positive_unlabeled"]

_COUNTRIES = ("US", "CA", "GB", "MX", "BR", "RO")
_MERCHANTS = ("grocery", "fuel", "travel", "electronics", "gift cards", "restaurant")
_CHANNELS = ("chip", "online", "contactless")


def make_overlapping_uniforms(
    *,
    overlap: float = 0.25,
    prior: float = 0.7,
    n_positive: int = 300,
    n_unlabeled: int = 300,
    random_state: int | np.random.RandomState | None = None,
    return_truth: bool = False,
) -> tuple[Any, ...]:
    r"""Draw the two overlapping uniform distributions of the paper.

    .. math:: p(x|y=1) = U(0, 1), \qquad p(x|y=-1) = U(1 - \gamma, 2 - \gamma)

    Parameters
    ----------
    overlap : float, default=0.25
        Overlap :math:`\gamma` of the two classes, between 0 and 1.
    prior : float, default=0.7
        Probability that an unlabeled row is positive.
    n_positive, n_unlabeled : int, default=300
        Number of rows in each sample.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.
    return_truth : bool, default=False
        Whether to return the hidden classes of the unlabeled rows as well.

    Returns
    -------
    X_positive : ndarray of shape (n_positive, 1)
        Draws from p(x|y=1).
    X_unlabeled : ndarray of shape (n_unlabeled, 1)
        Draws from the mixture.
    is_positive : ndarray of bool of shape (n_unlabeled,)
        Which unlabeled rows are positive. Only if ``return_truth=True``.

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
    X_unlabeled = rng.uniform(size=(n_unlabeled, 1)) + (1.0 - overlap) * is_negative
    if return_truth:
        return X_positive, X_unlabeled, ~is_negative[:, 0]
    return X_positive, X_unlabeled


def make_transactions(
    *,
    prior: float = 0.08,
    n_positive: int = 400,
    n_unlabeled: int = 5_000,
    random_state: int | np.random.RandomState | None = None,
    return_truth: bool = False,
) -> tuple[Any, ...]:
    """Draw synthetic card payments, some of them fraudulent.

    Frauds tend to be larger, far from home, at night and soon after the previous payment. They
    overlap with honest payments in every single column, and a few values are missing.

    Parameters
    ----------
    prior : float, default=0.08
        Share of frauds among the transactions, which contain exactly ``round(prior *
        n_unlabeled)`` frauds.
    n_positive : int, default=400
        Number of known frauds.
    n_unlabeled : int, default=5000
        Number of transactions that nobody has checked.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.
    return_truth : bool, default=False
        Whether to return the hidden classes of the transactions as well.

    Returns
    -------
    frauds : pandas.DataFrame
        Known frauds.
    transactions : pandas.DataFrame
        Unchecked transactions, with the same columns.
    is_fraud : ndarray of bool of shape (n_unlabeled,)
        Which transactions are frauds. Only if ``return_truth=True``.

    Examples
    --------
    >>> from classprior.datasets import make_transactions
    >>> frauds, transactions = make_transactions(random_state=0)
    >>> len(frauds), len(transactions)
    (400, 5000)
    >>> list(transactions.columns[:6])
    ['payment_id', 'customer', 'amount', 'hour', 'minutes_since_last', 'km_from_home']
    """
    _check_share(prior, "prior")
    check_scalar(n_positive, "n_positive", Integral, min_val=1)
    check_scalar(n_unlabeled, "n_unlabeled", Integral, min_val=1)
    rng = check_random_state(random_state)
    n_hidden = round(prior * n_unlabeled)
    is_fraud = rng.permutation(np.repeat([True, False], [n_hidden, n_unlabeled - n_hidden]))
    table = _payments(np.concatenate([np.ones(n_positive, dtype=bool), is_fraud]), rng)
    frauds = table.iloc[:n_positive].reset_index(drop=True)
    transactions = table.iloc[n_positive:].reset_index(drop=True)
    return (frauds, transactions, is_fraud) if return_truth else (frauds, transactions)


def sample_positive_unlabeled(
    X: Any,
    is_positive: Any,
    *,
    prior: float,
    n_positive: int,
    n_unlabeled: int,
    random_state: int | np.random.RandomState | None = None,
    return_truth: bool = False,
) -> tuple[Any, ...]:
    """Draw a positive and an unlabeled sample with a given prior from labeled data.

    Rows are drawn without replacement, within and across the two samples.

    Parameters
    ----------
    X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
        Rows to draw from.
    is_positive : array-like of bool of shape (n_rows,)
        Which rows are positive.
    prior : float
        Share of positives in the unlabeled sample, which contains exactly ``round(prior *
        n_unlabeled)`` positives.
    n_positive, n_unlabeled : int
        Number of rows in each sample.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.
    return_truth : bool, default=False
        Whether to return the hidden classes of the unlabeled rows as well, for example to judge a
        classifier.

    Returns
    -------
    X_positive : same type as X, of shape (n_positive, n_features)
        Known positives.
    X_unlabeled : same type as X, of shape (n_unlabeled, n_features)
        Positives and negatives, shuffled.
    is_positive : ndarray of bool of shape (n_unlabeled,)
        Which unlabeled rows are positive. Only if ``return_truth=True``.

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
    if np.ma.is_masked(is_positive):
        raise ValueError("is_positive has masked values. Drop these rows, or fill in the labels.")
    is_positive = np.asarray(is_positive)
    if is_positive.dtype != bool:
        raise TypeError(
            f"Expected is_positive to be of type bool, got {is_positive.dtype}. Compare the labels "
            "with the positive label, for example is_positive=(labels == 'yes')."
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
            f"{len(positive)} and {len(negative)}. Draw smaller samples."
        )
    hidden = positive[n_positive : needed[0]]
    unlabeled = rng.permutation(np.concatenate([hidden, negative[: needed[1]]]))
    samples = _take(X, positive[:n_positive]), _take(X, unlabeled)
    return (*samples, is_positive[unlabeled]) if return_truth else samples


def _payments(is_fraud: NDArray[np.bool_], rng: np.random.RandomState) -> Any:
    """Draw a payment of the given class for each entry."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("Data frames need pandas: pip install 'classprior[cli]'") from error
    n = len(is_fraud)

    def choice(values: tuple[str, ...], honest: list[float], fraud: list[float]) -> Any:
        drawn = [rng.choice(values, n, p=p) for p in (honest, fraud)]
        return np.where(is_fraud, drawn[1], drawn[0])

    amount = np.exp(rng.normal(np.where(is_fraud, 5.2, 3.6), np.where(is_fraud, 0.7, 0.9)))
    hour = rng.normal(np.where(is_fraud, 3.0, 15.0), np.where(is_fraud, 3.0, 4.0)) % 24
    minutes = rng.exponential(np.where(is_fraud, 25.0, 900.0))
    km = np.exp(rng.normal(np.where(is_fraud, 6.0, 2.0), np.where(is_fraud, 1.2, 1.4)))
    km[rng.uniform(size=n) < 0.03] = np.nan
    return pd.DataFrame(
        {
            "payment_id": [f"P{number:07d}" for number in rng.permutation(n)],
            "customer": [f"C{number:05d}" for number in rng.randint(n, size=n)],
            "amount": amount.round(2),
            "hour": hour.astype(int),
            "minutes_since_last": minutes.round(),
            "km_from_home": km.round(1),
            "country": choice(
                _COUNTRIES, [0.8, 0.08, 0.04, 0.04, 0.02, 0.02], [0.4, 0.1, 0.1, 0.1, 0.15, 0.15]
            ),
            "merchant": choice(
                _MERCHANTS, [0.35, 0.15, 0.05, 0.1, 0.05, 0.3], [0.05, 0.1, 0.2, 0.35, 0.25, 0.05]
            ),
            "channel": choice(_CHANNELS, [0.45, 0.25, 0.3], [0.15, 0.7, 0.15]),
            "new_device": rng.uniform(size=n) < np.where(is_fraud, 0.5, 0.03),
        }
    )


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
