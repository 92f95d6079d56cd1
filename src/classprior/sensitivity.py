"""Sensitivity of an estimate to its parameters and to mislabeled positives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_scalar

from classprior._core.messages import progress
from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._data.checks import last_step, unmasked
from classprior._data.opening import open_samples
from classprior._data.parameters import seed_of

__all__ = ["SensitivityCurve", "sensitivity_curve"]

FOREIGN = "foreign_positives"
_GRIDS = (
    "sigmas",
    "lams",
)  # a number is passed as a grid of one value


@dataclass(frozen=True, eq=False, kw_only=True)
class SensitivityCurve:
    """Estimates and error rates at each value of one parameter.

    Attributes
    ----------
    param_name : str
        Name of the parameter.
    param_range : tuple
        Values of the parameter.
    priors : array of shape (n_values, n_repeats)
        Estimated share of positives in the unlabeled rows.
    error_rates : array of shape (n_values, n_repeats), or None
        Share of the unlabeled rows that the classifier misclassifies. None if the true labels
        are unknown or the estimator is not a classifier.
    """

    param_name: str
    param_range: tuple[Any, ...]
    priors: Doubles
    error_rates: Doubles | None


def sensitivity_curve(
    estimator: Any,
    X_positive: Any,
    X_unlabeled: Any,
    *,
    param_name: str,
    param_range: Sequence[Any],
    is_positive: Any = None,
    n_repeats: int = 5,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> SensitivityCurve:
    r"""Fit an estimator at each value of one of its parameters.

    Parameters
    ----------
    estimator : object
        A prior estimator or a ``PUClassifier``.
    X_positive, X_unlabeled : array-likes, data frames or CSR matrices
        Known positives and unlabeled rows.
    param_name : str
        A parameter of the estimator, such as ``"n_centers"``, ``"sigmas"`` or ``"lams"``, or
        ``"prior__sigmas"`` or ``"ratio__lams"`` for a ``PUClassifier``. Alternatively
        ``"foreign_positives"``, the share of the known positives to replace with unlabeled rows.
    param_range : sequence
        Values of the parameter. A number for ``sigmas`` or ``lams`` means a grid with only this
        value.
    is_positive : array-like of bool of shape (n_unlabeled,), optional
        True labels of the unlabeled rows, for the error rate of a classifier.
    n_repeats : int, default=5
        Number of fits at each value, with different folds, centers and foreign rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the first repeat; the other repeats use the integers that follow. The seeds are
        the same at each value.
    n_jobs : int, optional
        Number of processes; -1 uses all cores.
    verbose : int, default=0
        If positive, show a progress bar.

    Returns
    -------
    curve : SensitivityCurve
        The estimates at each value.

    See Also
    --------
    classprior.plotting.SensitivityDisplay : Plot a sensitivity curve.

    Notes
    -----
    If a share :math:`\epsilon` of the known positives are in fact random unlabeled rows, even an
    ideal estimator finds :math:`\pi / (1 - \epsilon (1 - \pi))` instead of :math:`\pi`, because
    the known positives then resemble the unlabeled rows.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import PenalizedL1Prior
    >>> from classprior.sensitivity import sensitivity_curve
    >>> rng = np.random.default_rng(0)
    >>> known = rng.normal(0, 1, (400, 2))
    >>> pile = np.vstack([rng.normal(0, 1, (300, 2)), rng.normal(4, 1, (700, 2))])
    >>> curve = sensitivity_curve(
    ...     PenalizedL1Prior(), known, pile, param_name="n_centers", param_range=[50, 200],
    ...     n_repeats=2, random_state=0,
    ... )
    >>> curve.priors.shape
    (2, 2)
    """
    check_scalar(n_repeats, "n_repeats", Integral, min_val=1)
    samples = open_samples(X_positive, X_unlabeled, seed=0)
    X, is_known = samples.stacked_rows()
    truth = None if is_positive is None else _check_truth(is_positive, samples.sizes[1])
    values = _check_values(estimator, param_name, param_range)
    if param_name == FOREIGN:
        _check_enough_unlabeled(max(values), *samples.sizes)
    seeds = (seed_of(random_state) + np.arange(n_repeats)) % 2**32
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    fits = parallel(
        delayed(_fit)(estimator, X, is_known, truth, param_name, value, int(seed))
        for value in values
        for seed in seeds
    )
    found = np.array(list(progress(fits, len(values) * n_repeats, "Sensitivity", verbose)))
    priors, error_rates = found.T.reshape(2, len(values), n_repeats)
    return SensitivityCurve(
        param_name=param_name,
        param_range=values,
        priors=priors,
        error_rates=None if np.isnan(error_rates).all() else error_rates,
    )


def _check_truth(is_positive: Any, n_unlabeled: int) -> Bools:
    truth = np.asarray(unmasked(is_positive))
    if truth.dtype != bool or truth.shape != (n_unlabeled,):
        raise ValueError(
            f"Expected is_positive to be {n_unlabeled} booleans, one per unlabeled row, got "
            f"{truth.dtype} of shape {truth.shape}."
        )
    return truth


def _check_values(estimator: Any, param_name: str, param_range: Sequence[Any]) -> tuple[Any, ...]:
    values = tuple(param_range)
    if not values:
        raise ValueError("param_range is empty.")
    if param_name == FOREIGN:
        for share in values:
            check_scalar(share, FOREIGN, Real, min_val=0, max_val=1, include_boundaries="left")
    elif param_name not in estimator.get_params():
        raise ValueError(
            f"{type(estimator).__name__} has no parameter {param_name!r}. Try {FOREIGN!r} or one "
            f"of {', '.join(sorted(estimator.get_params()))}."
        )
    return values


def _check_enough_unlabeled(share: float, n_positive: int, n_unlabeled: int) -> None:
    n_foreign = round(share * n_positive)
    if n_foreign > n_unlabeled // 2:
        raise ValueError(
            f"Foreign positives may use at most half of the {n_unlabeled} unlabeled rows, but a "
            f"share of {share:g} of {n_positive} positives is {n_foreign} rows. Try a smaller "
            "share."
        )


def _fit(
    estimator: Any,
    X: Rows,
    is_known: Bools,
    truth: Bools | None,
    param_name: str,
    value: Any,
    seed: int,
) -> tuple[float, float]:
    """Return the prior and the error rate, or NaN if it is unknown."""
    estimator = clone(estimator)
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    estimator.set_params(**dict.fromkeys(names, seed))
    n_positive = int(is_known.sum())
    rows = np.arange(len(is_known))
    if param_name == FOREIGN:
        is_known, rows = _with_foreign_positives(is_known, value, np.random.default_rng(seed))
    else:
        one_value = param_name.split("__")[-1] in _GRIDS and isinstance(value, Real)
        estimator.set_params(**{param_name: [value] if one_value else value})
    estimator.fit(X[rows], is_known[rows])
    prior = float(last_step(estimator).prior_)
    if truth is None or not hasattr(estimator, "predict"):
        return prior, np.nan
    unlabeled = np.flatnonzero(~is_known)
    wrong = estimator.predict(X[unlabeled]) != truth[unlabeled - n_positive]
    return prior, float(np.mean(wrong))


def _with_foreign_positives(
    is_known: Bools, share: float, rng: np.random.Generator
) -> tuple[Bools, Ints]:
    """Replace a share of the known positives by relabeled unlabeled rows."""
    known, unlabeled = (rng.permutation(np.flatnonzero(part)) for part in (is_known, ~is_known))
    n_foreign = round(share * len(known))
    relabeled = is_known.copy()
    relabeled[unlabeled[:n_foreign]] = True
    return relabeled, np.sort(np.concatenate([known[n_foreign:], unlabeled]))
