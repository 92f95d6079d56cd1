"""Metrics for classifiers, estimated from positive and unlabeled rows.

In positive-unlabeled data, y marks labels, not classes: an unlabeled row that is predicted positive
may well be positive, so scikit-learn's accuracy and precision are wrong. Given the share of
positives in the unlabeled rows, these functions estimate the true metrics. They follow the
conventions of scikit-learn's metrics, and ``make_pu_scorer`` makes scorers of them for
``GridSearchCV`` and ``cross_val_score``.

The known positives must look like the hidden ones.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer
from sklearn.utils import check_consistent_length, column_or_1d

from classprior._tables.labels import positive_beside_unlabeled
from classprior._tables.parameters import check_sample_weight

__all__ = ["make_pu_scorer", "pu_error_rate", "pu_precision", "pu_recall"]


def pu_recall(
    y_true: Any,
    y_pred: Any,
    *,
    pos_label: Any = None,
    neg_label: Any = None,
    sample_weight: Any = None,
) -> float:
    r"""Estimate the share of positives that are predicted positive.

    .. math:: \widehat{\mathrm{recall}} = \frac1n \#\{\text{known positives predicted positive}\}

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        ``pos_label`` for known positives, another label for unlabeled rows.
    y_pred : array-like of shape (n_rows,)
        ``pos_label`` for rows that are predicted positive.
    pos_label : label, optional
        Label of the positives. By default 1, or the label beside a word such as "unknown".
    neg_label : label, optional
        Label in y_true of confirmed negatives. These rows are left out.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows; shares are then weighted shares.

    Returns
    -------
    recall : float
        Between 0 and 1.

    Examples
    --------
    >>> from classprior.metrics import pu_recall
    >>> pu_recall([1, 1, 0, 0, 0], [1, 0, 1, 0, 0])
    0.5
    """
    recall, _ = _predicted_shares(y_true, y_pred, pos_label, neg_label, sample_weight)
    return recall


def pu_precision(
    y_true: Any,
    y_pred: Any,
    *,
    prior: float,
    pos_label: Any = None,
    neg_label: Any = None,
    sample_weight: Any = None,
) -> float:
    r"""Estimate the share of positives among the unlabeled rows that are predicted positive.

    .. math:: \widehat{\mathrm{precision}} = \min\left(1, \frac{\pi\, \widehat{\mathrm{recall}}}{q}
              \right), \qquad q = \text{share of unlabeled rows predicted positive}

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        ``pos_label`` for known positives, another label for unlabeled rows.
    y_pred : array-like of shape (n_rows,)
        ``pos_label`` for rows that are predicted positive.
    prior : float
        Share of positives in the unlabeled rows.
    pos_label : label, optional
        Label of the positives. By default 1, or the label beside a word such as "unknown".
    neg_label : label, optional
        Label in y_true of confirmed negatives. These rows are left out, since they are not among
        the unlabeled rows, which ``prior`` refers to.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows; shares are then weighted shares.

    Returns
    -------
    precision : float
        Between 0 and 1; 0 with a warning if no unlabeled row is predicted positive.

    Examples
    --------
    >>> from classprior.metrics import pu_precision
    >>> pu_precision([1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0], prior=0.25)
    0.5
    """
    recall, predicted = _predicted_shares(y_true, y_pred, pos_label, neg_label, sample_weight)
    _check_prior(prior)
    if predicted == 0.0:
        warnings.warn(
            "No unlabeled row is predicted positive: precision is undefined and set to 0.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        return 0.0
    return min(1.0, prior * recall / predicted)


def pu_error_rate(
    y_true: Any,
    y_pred: Any,
    *,
    prior: float,
    pos_label: Any = None,
    neg_label: Any = None,
    sample_weight: Any = None,
) -> float:
    r"""Estimate the share of unlabeled rows that are misclassified.

    .. math:: \widehat{\mathrm{error}} = \pi (1 - \widehat{\mathrm{recall}})
              + q - \pi\, \widehat{\mathrm{recall}}

    The first term counts missed positives; the others count unlabeled rows predicted positive,
    minus the positives among them. Given the true prior and rows that were not used for fitting,
    the estimate is unbiased. It can therefore be negative where the true rate is close to 0, and a
    warning says so. A clearly negative value means that ``prior`` is too high, or that the known
    positives are easier to recognize than the hidden ones.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        ``pos_label`` for known positives, another label for unlabeled rows.
    y_pred : array-like of shape (n_rows,)
        ``pos_label`` for rows that are predicted positive.
    prior : float
        Share of positives in the unlabeled rows.
    pos_label : label, optional
        Label of the positives. By default 1, or the label beside a word such as "unknown".
    neg_label : label, optional
        Label in y_true of confirmed negatives. These rows are left out, since they are not among
        the unlabeled rows, which ``prior`` refers to.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows; shares are then weighted shares.

    Returns
    -------
    error_rate : float
        Between ``-prior`` and ``1 + prior``; close to the true rate on large samples.

    Examples
    --------
    >>> from classprior.metrics import pu_error_rate
    >>> pu_error_rate([1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0], prior=0.25)
    0.25
    """
    recall, predicted = _predicted_shares(y_true, y_pred, pos_label, neg_label, sample_weight)
    _check_prior(prior)
    error_rate = prior * (1.0 - recall) + predicted - prior * recall
    if error_rate < 0.0:
        warnings.warn(
            f"The estimated error rate is negative ({error_rate:.3g}): {prior:.3g} * "
            f"{recall:.3g} of the unlabeled rows should be predicted positive, but only "
            f"{predicted:.3g} are. Close to 0 this is chance: read it as 0. Otherwise the prior is "
            "too high, or the known positives are easier to recognize than the hidden ones.",
            UserWarning,
            stacklevel=2,
        )
    return error_rate


def make_pu_scorer(
    name: str, *, prior: float | None = None, pos_label: Any = None, neg_label: Any = None
) -> Any:
    """Make a scorer for scikit-learn's model selection.

    By default, ``GridSearchCV`` and ``cross_val_score`` compare predictions with y, which marks
    labels, not classes: the best model would be one that finds no hidden positives.

    Parameters
    ----------
    name : {"pu_error_rate", "pu_precision", "pu_recall"}
        The metric. Precision and recall each reward one side only, so select models by
        "pu_error_rate".
    prior : float, optional
        Share of positives in the unlabeled rows, the same for all models. Not needed for
        "pu_recall".
    pos_label : label, optional
        Label in y that marks known positives. By default 1, or the label beside a word such as
        "unknown".
    neg_label : label, optional
        Label in y that marks confirmed negatives, which are left out.

    Returns
    -------
    scorer : callable
        For the parameter ``scoring``. Greater is better: "pu_error_rate" is negated. A negative
        error rate, which is chance, gives no warning.

    See Also
    --------
    pu_error_rate : Share of unlabeled rows that are misclassified.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV, StratifiedKFold
    >>> from classprior import PUClassifier
    >>> from classprior.metrics import make_pu_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (300, 2)), rng.normal(3, 1, (300, 2))])
    >>> y = np.arange(600) < 200  # 100 of the 400 unlabeled rows are positive
    >>> search = GridSearchCV(
    ...     PUClassifier(prior=0.25, ratio=LogisticRegression()),
    ...     {"ratio__C": [0.01, 1.0]},
    ...     scoring=make_pu_scorer("pu_error_rate", prior=0.25),
    ...     cv=StratifiedKFold(3, shuffle=True, random_state=0),
    ... )
    >>> search.fit(X, y).best_params_
    {'ratio__C': 1.0}
    """
    metrics = {"pu_recall": pu_recall, "pu_precision": pu_precision, "pu_error_rate": _error_rate}
    if name not in metrics:
        raise ValueError(f"Expected a metric among {', '.join(metrics)}, got {name!r}.")
    parameters = {"pos_label": pos_label, "neg_label": neg_label}
    if name != "pu_recall":
        if prior is None:
            raise ValueError(f"{name} needs prior, the share of positives in the unlabeled rows.")
        _check_prior(prior)
        parameters["prior"] = prior
    return make_scorer(metrics[name], greater_is_better=name != "pu_error_rate", **parameters)


def _error_rate(y_true: Any, y_pred: Any, **parameters: Any) -> float:
    """Return the error rate, also if it is negative: to compare models, no warning is needed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The estimated error rate is negative")
        return pu_error_rate(y_true, y_pred, **parameters)


def _predicted_shares(
    y_true: Any, y_pred: Any, pos_label: Any, neg_label: Any, sample_weight: Any
) -> tuple[float, float]:
    """Return the shares of known positives and of unlabeled rows that are predicted positive."""
    for name, labels in (("y_true", y_true), ("y_pred", y_pred)):
        if np.ma.is_masked(labels):
            raise ValueError(f"{name} has masked values. Drop these rows, or fill in the labels.")
    y_true, y_pred = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y_true, y_pred)
    weights = np.ones(len(y_true))
    if sample_weight is not None:
        weights = check_sample_weight(sample_weight, len(y_true))
        y_true, y_pred, weights = y_true[weights > 0], y_pred[weights > 0], weights[weights > 0]
    if neg_label is not None:
        kept = y_true != neg_label
        y_true, y_pred, weights = y_true[kept], y_pred[kept], weights[kept]
    if pos_label is None:
        beside = positive_beside_unlabeled(set(y_true.tolist()))
        pos_label = 1 if beside is None else beside
    is_positive = y_true == pos_label
    if is_positive.all() or not is_positive.any():
        raise ValueError(
            f"Expected known positives (label {pos_label!r}) and unlabeled rows in y_true, got "
            f"{np.sum(is_positive)} of {len(y_true)} rows with that label. Set pos_label, or use a "
            "stratified split so that every part has both."
        )
    if not np.isin(y_pred, y_true).all():
        raise ValueError(
            f"y_pred contains the label {np.setdiff1d(y_pred, y_true).tolist()[0]!r}, which y_true "
            "does not. Give negatives the label of the unlabeled rows."
        )
    predicted = y_pred == pos_label
    recall, share = (
        float(np.average(predicted[rows], weights=weights[rows]))
        for rows in (is_positive, ~is_positive)
    )
    return recall, share


def _check_prior(prior: float) -> None:
    if not 0.0 <= prior <= 1.0:
        raise ValueError(f"Expected prior between 0 and 1, got {prior}.")
