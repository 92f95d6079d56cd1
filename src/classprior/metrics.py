"""How good a classifier is, judged by positive and unlabeled rows alone.

In positive-unlabeled data y marks labels, not classes: an unlabeled row that is called positive may
well be right, so that scikit-learn's accuracy and precision are wrong. Given the share of positives
in the unlabeled rows, these functions estimate the true ones. They take what scikit-learn's
metrics take and become a ``scoring`` with ``make_scorer``::

    make_scorer(pu_error_rate, greater_is_better=False, prior=0.3)

The known positives must look like the hidden ones.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_consistent_length, column_or_1d

__all__ = ["pu_error_rate", "pu_precision", "pu_recall"]


def pu_recall(y_true: Any, y_pred: Any, *, pos_label: Any = 1) -> float:
    r"""Estimate the share of positives that are called positive.

    .. math:: \widehat{\mathrm{recall}} = \frac1n \#\{\text{known positives called positive}\}

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        ``pos_label`` for known positives, another label for unlabeled rows.
    y_pred : array-like of shape (n_rows,)
        ``pos_label`` for rows that are called positive.
    pos_label : label, default=1
        The label of positives.

    Returns
    -------
    recall : float
        From 0 to 1.

    Examples
    --------
    >>> from classprior.metrics import pu_recall
    >>> pu_recall([1, 1, 0, 0, 0], [1, 0, 1, 0, 0])
    0.5
    """
    recall, _ = _called(y_true, y_pred, pos_label)
    return recall


def pu_precision(y_true: Any, y_pred: Any, *, prior: float, pos_label: Any = 1) -> float:
    r"""Estimate the share of positives among the unlabeled rows that are called positive.

    .. math:: \widehat{\mathrm{precision}} = \min\left(1, \frac{\pi\, \widehat{\mathrm{recall}}}{q}
              \right), \qquad q = \text{share of unlabeled rows called positive}

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        ``pos_label`` for known positives, another label for unlabeled rows.
    y_pred : array-like of shape (n_rows,)
        ``pos_label`` for rows that are called positive.
    prior : float
        Share of positives in the unlabeled rows.
    pos_label : label, default=1
        The label of positives.

    Returns
    -------
    precision : float
        From 0 to 1; 0 with a warning if no unlabeled row is called positive.

    Examples
    --------
    >>> from classprior.metrics import pu_precision
    >>> pu_precision([1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0], prior=0.25)
    0.5
    """
    recall, called_unlabeled = _called(y_true, y_pred, pos_label)
    _check_prior(prior)
    if called_unlabeled == 0.0:
        warnings.warn(
            "No unlabeled row is called positive: precision is undefined and set to 0.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        return 0.0
    return min(1.0, prior * recall / called_unlabeled)


def pu_error_rate(y_true: Any, y_pred: Any, *, prior: float, pos_label: Any = 1) -> float:
    r"""Estimate the share of unlabeled rows that are called wrongly.

    .. math:: \widehat{\mathrm{error}} = \pi (1 - \widehat{\mathrm{recall}})
              + q - \pi\, \widehat{\mathrm{recall}}

    Positives that are missed, and unlabeled rows called positive less the positives among them.
    Unbiased for the true prior and rows that were not used for fitting, and therefore negative now
    and then on small samples.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        ``pos_label`` for known positives, another label for unlabeled rows.
    y_pred : array-like of shape (n_rows,)
        ``pos_label`` for rows that are called positive.
    prior : float
        Share of positives in the unlabeled rows.
    pos_label : label, default=1
        The label of positives.

    Returns
    -------
    error_rate : float
        From -prior to 1 + prior, near the true rate on large samples.

    Examples
    --------
    >>> from classprior.metrics import pu_error_rate
    >>> pu_error_rate([1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0], prior=0.25)
    0.25
    """
    recall, called_unlabeled = _called(y_true, y_pred, pos_label)
    _check_prior(prior)
    return prior * (1.0 - recall) + called_unlabeled - prior * recall


def _called(y_true: Any, y_pred: Any, pos_label: Any) -> tuple[float, float]:
    """Return the shares of known positives and of unlabeled rows that are called positive."""
    y_true, y_pred = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y_true, y_pred)
    is_positive = y_true == pos_label
    if is_positive.all() or not is_positive.any():
        raise ValueError(
            f"Expected known positives (label {pos_label!r}) and unlabeled rows in y_true, got "
            f"{np.sum(is_positive)} of {len(y_true)} rows with that label. Set pos_label, and "
            "split data so that both are in every part."
        )
    if not np.isin(y_pred, y_true).all():
        raise ValueError(
            f"Expected the labels of y_true in y_pred, got {np.setdiff1d(y_pred, y_true)[0]!r}. "
            "Negatives carry the label of unlabeled rows."
        )
    called = y_pred == pos_label
    return float(called[is_positive].mean()), float(called[~is_positive].mean())


def _check_prior(prior: float) -> None:
    if not 0.0 <= prior <= 1.0:
        raise ValueError(f"Expected prior between 0 and 1, got {prior}.")
