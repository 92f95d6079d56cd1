"""Sensitivity of an estimate to its parameters, to mislabeled positives and to biased labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_scalar

from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._samples.opening import open_samples
from classprior._samples.progress import progress
from classprior._samples.units import RowOptions
from classprior._scores.tails import ScoreTails, combine
from classprior._scores.typical import typicality_of
from classprior._tables.checks import last_step
from classprior._tables.parameters import seed_of
from classprior._tables.tables import unmasked
from classprior.priors._auto import AutoPrior

__all__ = [
    "LabelBiasTest",
    "SensitivityCurve",
    "label_bias_curve",
    "label_bias_test",
    "sensitivity_curve",
]

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


def label_bias_curve(
    estimate: Any, *, factors: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 4.0)
) -> SensitivityCurve:
    r"""Show how an estimate moves if some positives are more likely to be labeled than others.

    The estimate rests on tails: rows that look most like the known positives. If a positive in the
    tail is c times as likely to be labeled as one outside, a share s of the known positives in the
    tail means a share :math:`s / (s + c(1 - s))` of the hidden ones, so that

    .. math:: \pi(c) = \min_t \frac{S_{\mathrm{unlabeled}}(t)}{S_{\mathrm{positive}}(t)}
              \left(s + c\,(1 - s)\right), \qquad s = S_{\mathrm{positive}}(t).

    Parameters
    ----------
    estimate : PriorEstimate or AutoPrior
        A result of ``estimate_prior``, or a fitted ``AutoPrior``.
    factors : sequence of float, default=(0.25, 0.5, 1, 2, 4)
        Values of c. Above 1, the most typical positives are the easy kind, which is labeled more
        often; below 1, the hard kind.

    Returns
    -------
    curve : SensitivityCurve
        The share at each factor, at most 1; at factor 1, the estimate of ``AutoPrior``.

    See Also
    --------
    label_bias_test : Test whether labels favor some kinds of positives.
    classprior.priors.SubtypePrior : Estimate the share if they do.
    classprior.plotting.SensitivityDisplay : Plot a sensitivity curve.

    Notes
    -----
    If no positive is more than c times as likely to be labeled as another, the share is at most
    :math:`\pi(c)`, up to noise: of all such ways to label, this is the worst for each tail. The
    lower end, :math:`\pi(1/c)`, also assumes a purely positive tail, as the estimate does.

    Examples
    --------
    >>> from classprior import estimate_prior
    >>> from classprior.datasets import make_transactions
    >>> from classprior.sensitivity import label_bias_curve
    >>> estimate = estimate_prior(*make_transactions(random_state=0), random_state=0)
    >>> curve = label_bias_curve(estimate, factors=(1, 2))
    >>> bool(curve.priors[0, 0] < curve.priors[1, 0] < 2 * curve.priors[0, 0])
    True
    """
    values = tuple(factors)
    if not values:
        raise ValueError("factors is empty.")
    for factor in values:
        check_scalar(factor, "factors", Real, min_val=0, include_boundaries="neither")
    fitted = getattr(estimate, "evidence", estimate)
    if not hasattr(fitted, "scores_"):
        raise TypeError(
            "Expected a result of estimate_prior or a fitted AutoPrior, got "
            f"{type(estimate).__name__}."
        )
    tails = [ScoreTails.from_scores(*pair).counts() for pair in fitted.scores_.values()]

    def share(factor: float) -> float:
        return float(combine([_relabeled(*tail, factor) for tail in tails]).ratio)

    # The scores are means over rounds, so only the relative change is taken from them.
    priors = [fitted.prior_ * share(factor) / share(1.0) for factor in values]
    return SensitivityCurve(
        param_name="label_bias",
        param_range=values,
        priors=np.minimum(1.0, priors)[:, None],
        error_rates=None,
    )


def _relabeled(
    positive: Doubles, unlabeled: Doubles, n: Doubles, m: Doubles, factor: float
) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Return the counts of a tail if its positives are ``factor`` times as likely to be labeled."""
    s = np.cumsum(positive) / n
    return np.diff(n * s / (s + factor * (1.0 - s)), prepend=0.0), unlabeled, n, m


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelBiasTest:
    """Result of ``label_bias_test``.

    Attributes
    ----------
    p_value : float
        Small if known positives are not typical of all positives.
    labeled_shares : array of shape (n_kinds,)
        Share of each kind in the known positives.
    found : array of shape (n_kinds,)
        Estimated number of positives of each kind among the unlabeled rows, of which at most
        20,000 are used.
    expected : array of shape (n_kinds,)
        The same if known positives are typical of all positives.
    """

    p_value: float
    labeled_shares: Doubles
    found: Doubles
    expected: Doubles


def label_bias_test(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    evidence: AutoPrior | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> LabelBiasTest:
    r"""Test whether known positives are typical of all positives.

    It tests whether all kinds of known positives have the same number of hidden positives per known
    one, if negatives become more frequent from the top of the score downward.

    With U and P for the numbers of unlabeled rows and of known positives of kind j in a band b of
    the score, of length :math:`\ell_b`,

    .. math:: E[U_{jb}] = \theta_j \frac mn P_{jb} + \nu_{jb} \ell_b, \qquad
              0 \le \nu_{j1} \le \nu_{j2} \le \dots,

    where :math:`\nu` is the density of the negatives. A likelihood ratio compares one
    :math:`\theta` for all kinds with one for each.

    Parameters
    ----------
    X_positive, X_unlabeled : array-likes, data frames or CSR matrices
        Known positives and unlabeled rows.
    evidence : AutoPrior, optional
        Estimator of the share. By default, ``AutoPrior()``.
    random_state : int, RandomState instance or None, default=None
        Seed of the estimator, the kinds and the scores.

    Returns
    -------
    result : LabelBiasTest
        The p-value, and the numbers of rows that were compared.

    See Also
    --------
    label_bias_curve : How an estimate moves if labels are biased.
    classprior.priors.SubtypePrior : Estimate the share if labels are biased.

    Notes
    -----
    Kinds are up to eight clusters of the known positives, with at least 30 rows each, by columns
    that tell known positives from unlabeled rows, without what the score itself explains.

    If negatives come in the same kinds as positives, they need not become more frequent downward.
    Therefore the p-value is 1 unless the shares of all kinds, extrapolated to the purest positives
    of each, add up to more than the estimate. The test cannot see bias within a kind, kinds that
    are never labeled, or kinds with few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior.sensitivity import label_bias_test
    >>> rng = np.random.default_rng(0)
    >>> easy, hard, negative = rng.normal(0, 1, (3, 1500, 2)) + [[[0, 0]], [[0, 9]], [[9, 0]]]
    >>> known = np.vstack([easy[:900], hard[:300]])  # three to one
    >>> pile = np.vstack([easy[900:1100], hard[300:900], negative[:900]])  # one to three
    >>> label_bias_test(known, pile, random_state=0).p_value < 0.01
    True
    """
    fitted = AutoPrior() if evidence is None else clone(evidence)
    fitted.set_params(random_state=seed_of(random_state))
    samples = open_samples(
        X_positive, X_unlabeled, RowOptions(folds=fitted.cv), seed=fitted.random_state
    ).settled()
    fitted.fit_opened(samples)
    found = typicality_of(samples.subsample(fitted.max_rows), fitted.scores_, fitted.prior_)
    return LabelBiasTest(
        p_value=found.p_value,
        labeled_shares=found.labeled,
        found=found.found,
        expected=found.expected,
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
