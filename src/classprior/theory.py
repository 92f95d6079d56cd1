r"""The paper's bounds as functions of sample sizes and constants, and the constants themselves.

All of them hold for centers, bandwidth and regularization fixed before the data are seen, which is
the objective of ``fixed_objective``, and for basis functions between 0 and 1. They are about the
value of the penalized L1-distance, not about the distance of the estimate to the true prior, and
they are loose.

What the paper proves about rates without a formula: :math:`\hat\alpha` and
:math:`\widehat{\mathrm{penL}}_1(\theta)` converge like :math:`1/\sqrt n + 1/\sqrt{n'}` for an
infinite slope (Theorem 1), and for a finite one if no constraint is active at the population's
optimum (Theorem 3). In general a finite slope only gives
:math:`n^{-1/4} + n'^{-1/4} + \sqrt{h(n')}`, with h the Hausdorff distance between the features of
the unlabeled sample and those of the support (Theorem 2). Theorem 4 restores the parametric rate by
turning the active constraints into equalities. It needs an oracle to know them, as its own footnote
says, and is therefore no option of a solver. The rates remain valid for a regularization that
depends on the data, if it converges to a positive limit no slower than they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from classprior._core.basis import GaussianBasis
from classprior._core.finite_slope import FiniteSlopeL1
from classprior._core.gram import row_blocks
from classprior._core.moments import fold_moments
from classprior._core.solvers import closed_form
from classprior._core.types import Doubles

__all__ = [
    "coefficient_bound",
    "deviation_bound",
    "estimation_error_bound",
    "feasible_bound",
    "feature_bound",
    "fixed_objective",
    "uniform_deviation_bound",
]


def deviation_bound(
    n_positive: int,
    n_unlabeled: int,
    *,
    n_centers: int,
    lam: float,
    delta: float = 0.05,
    feasible: float | None = None,
    feasible_always: bool = True,
) -> float:
    r"""Bound how far the objective at one theta is from its own expectation.

    With probability at least :math:`1 - \delta`,

    .. math:: \left|\widehat{\mathrm{penL}}_1(\theta) - E\,\widehat{\mathrm{penL}}_1(\theta)\right|
              \le C_c \sqrt{\frac{\ln(2/\delta)}{2} \left(\frac1n + \frac1{n'}\right)}

    with :math:`C_c = 3b/\lambda` for an infinite slope (Theorem 5) and
    :math:`2b/\lambda + B\sqrt b` for a finite one (Theorem 6).

    Parameters
    ----------
    n_positive, n_unlabeled : int
        Sizes n and n' of the samples.
    n_centers : int
        Number b of basis functions.
    lam : float
        Regularization.
    delta : float, default=0.05
        Probability with which the bound may fail.
    feasible : float, optional
        For a finite slope: B, the largest norm of feasible coefficients, or a bound of it such as
        ``feasible_bound`` gives. None for an infinite slope.
    feasible_always : bool, default=True
        For a finite slope: whether the empirical optimum is feasible for the population almost
        surely. False if only with probability at least :math:`1 - \delta/3`; then
        :math:`\ln(3/\delta)` takes the place of :math:`\ln(2/\delta)`.

    Returns
    -------
    bound : float
        The right-hand side.

    Examples
    --------
    >>> from classprior.theory import deviation_bound
    >>> round(deviation_bound(10_000, 10_000, n_centers=10, lam=1.0), 2)
    0.58
    """
    events = 2.0 if feasible is None or feasible_always else 3.0
    return _slope_constant(n_centers, lam, feasible) * _concentration(
        n_positive, n_unlabeled, events, delta
    )


def uniform_deviation_bound(
    n_positive: int,
    n_unlabeled: int,
    *,
    n_centers: int,
    lam: float,
    delta: float = 0.05,
    feasible: float | None = None,
    features: float | None = None,
    coefficients: float | None = None,
) -> float:
    r"""Bound how far the objective is from its own expectation, at all theta at once (Theorem 7).

    .. math:: 2 C_x C_{\hat\alpha} \left(\frac1{\sqrt n} + \frac1{\sqrt{n'}}\right)
              + C_c \sqrt{\frac{\ln(2/\delta)}{2} \left(\frac1n + \frac1{n'}\right)}

    Parameters
    ----------
    n_positive, n_unlabeled : int
        Sizes n and n' of the samples.
    n_centers : int
        Number b of basis functions.
    lam : float
        Regularization.
    delta : float, default=0.05
        Probability with which the bound may fail.
    feasible : float, optional
        B for a finite slope; None for an infinite one.
    features : float, optional
        :math:`C_x`, the largest norm of the features; by default :math:`\sqrt b`, which it never
        exceeds.
    coefficients : float, optional
        :math:`C_{\hat\alpha}`, the largest norm of the coefficients over all theta and data; by
        default :math:`\sqrt b/\lambda`, which it never exceeds.

    Returns
    -------
    bound : float
        The sum.

    Examples
    --------
    >>> from classprior.theory import uniform_deviation_bound
    >>> round(uniform_deviation_bound(10_000, 10_000, n_centers=10, lam=1.0), 2)
    0.98
    """
    features = np.sqrt(n_centers) if features is None else features
    coefficients = np.sqrt(n_centers) / lam if coefficients is None else coefficients
    return float(2.0 * features * coefficients * _rate(n_positive, n_unlabeled)) + deviation_bound(
        n_positive, n_unlabeled, n_centers=n_centers, lam=lam, delta=delta, feasible=feasible
    )


def estimation_error_bound(
    n_positive: int,
    n_unlabeled: int,
    *,
    n_centers: int,
    coefficients: float,
    coefficient_rate: float,
    delta: float = 0.05,
    features: float | None = None,
) -> float:
    r"""Bound the estimation error of theta, in terms of the objective (Theorem 8).

    With probability at least :math:`1 - \delta`, :math:`\mathrm{penL}_1^*(\hat\theta) -
    \mathrm{penL}_1^*(\theta^*)` is at most

    .. math:: (4 C_x C_{\alpha^*} + 2 C_{\Delta\alpha}\sqrt b)
              \left(\frac1{\sqrt n} + \frac1{\sqrt{n'}}\right)
              + 2 C_{\alpha^*} \sqrt b
              \sqrt{\frac{\ln(4/\delta)}{2} \left(\frac1n + \frac1{n'}\right)}.

    Parameters
    ----------
    n_positive, n_unlabeled : int
        Sizes n and n' of the samples.
    n_centers : int
        Number b of basis functions.
    coefficients : float
        :math:`C_{\alpha^*}`, the largest norm of the population's coefficients over theta.
    coefficient_rate : float
        :math:`C_{\Delta\alpha}`: with probability :math:`1 - \delta/4` each, the coefficients at
        :math:`\hat\theta` and at :math:`\theta^*` are within it times
        :math:`1/\sqrt n + 1/\sqrt{n'}` of the population's. The paper proves that it exists and
        gives no formula; it can be measured by simulation.
    delta : float, default=0.05
        Probability with which the bound may fail.
    features : float, optional
        :math:`C_x`; by default :math:`\sqrt b`, which it never exceeds.

    Returns
    -------
    bound : float
        The right-hand side.

    Examples
    --------
    >>> from classprior.theory import estimation_error_bound
    >>> round(
    ...     estimation_error_bound(
    ...         10_000, 10_000, n_centers=10, coefficients=1.0, coefficient_rate=1.0
    ...     ),
    ...     2,
    ... )
    0.51
    """
    features = np.sqrt(n_centers) if features is None else features
    root_b = np.sqrt(n_centers)
    return float(
        (4.0 * features * coefficients + 2.0 * coefficient_rate * root_b)
        * _rate(n_positive, n_unlabeled)
        + 2.0 * coefficients * root_b * _concentration(n_positive, n_unlabeled, 4.0, delta)
    )


def feature_bound(X: Any, centers: Any, sigma: float) -> float:
    r"""Return the largest :math:`\|\varphi(x)\|_2` over the rows of a sample.

    The paper's :math:`C_x` is the supremum over the whole support, of which this is an estimate
    from below; the bounds are only certain with :math:`\sqrt b`, their default.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows that stand for the support.
    centers : ndarray of shape (n_centers, n_features)
        Centers of the Gaussians.
    sigma : float
        Their bandwidth.

    Returns
    -------
    bound : float
        At most the root of the number of centers.

    Examples
    --------
    >>> from classprior.theory import feature_bound
    >>> feature_bound([[0.0], [99.0]], [[0.0]], sigma=1.0)
    1.0
    """
    X, basis = np.asarray(X, dtype=float), _basis(centers, sigma)
    blocks = (basis.exact(X[block]) for block in row_blocks(basis, len(X)))
    return float(max(np.sqrt(np.max(np.sum(phi**2, axis=1))) for phi in blocks))


def coefficient_bound(
    X_positive: Any, X_unlabeled: Any, centers: Any, sigma: float, lam: float
) -> float:
    r"""Return the largest norm of the coefficients over all theta, for the data at hand.

    For an infinite slope, :math:`\hat\alpha(\theta) = \max(0, \theta a - b)/\lambda` grows with
    theta, so that :math:`\sup_\theta \|\hat\alpha(\theta)\|_2` is its norm at theta = 1. The
    paper's :math:`C_{\hat\alpha}` is the supremum over all data as well; it never exceeds
    :math:`\sqrt b/\lambda`.

    Parameters
    ----------
    X_positive, X_unlabeled : ndarrays of shape (n_rows, n_features)
        The two samples.
    centers : ndarray of shape (n_centers, n_features)
        Centers of the Gaussians, not taken from the samples.
    sigma : float
        Their bandwidth.
    lam : float
        Regularization.

    Returns
    -------
    bound : float
        The norm.

    Examples
    --------
    >>> from classprior.theory import coefficient_bound
    >>> coefficient_bound([[0.0]], [[99.0]], [[0.0]], sigma=1.0, lam=0.5)
    2.0
    """
    basis = _basis(centers, sigma)
    a, b = (_mean(basis, X) for X in (X_positive, X_unlabeled))
    return float(np.linalg.norm(np.maximum(0.0, a - b)) / lam)


def feasible_bound(X_unlabeled: Any, centers: Any, sigma: float, slope: float) -> float:
    r"""Bound B, the largest norm of coefficients that a finite slope allows.

    Feasible are :math:`\alpha \ge 0` with
    :math:`\sum_\ell \alpha_\ell \varphi_\ell(x'_j) \le 1 + c` for every unlabeled row. One row
    bounds one coefficient,
    :math:`\alpha_\ell \le u_\ell = (1 + c)/\max_j \varphi_\ell(x'_j)`, and the mean over rows
    bounds their sum, so that B is at most the smaller of :math:`\|u\|_2` and
    :math:`(1 + c)/\min_\ell \mathrm{mean}_j \varphi_\ell(x'_j)`.

    Parameters
    ----------
    X_unlabeled : ndarray of shape (n_unlabeled, n_features)
        The unlabeled rows.
    centers : ndarray of shape (n_centers, n_features)
        Centers of the Gaussians.
    sigma : float
        Their bandwidth.
    slope : float
        The slope c, finite.

    Returns
    -------
    bound : float
        Infinite if some Gaussian is zero, to rounding, on all unlabeled rows.

    Examples
    --------
    >>> from classprior.theory import feasible_bound
    >>> feasible_bound([[0.0], [0.0]], [[0.0]], sigma=1.0, slope=1.0)
    2.0
    """
    X, basis = np.asarray(X_unlabeled, dtype=float), _basis(centers, sigma)
    blocks = (basis.exact(X[block]) for block in row_blocks(basis, len(X)))
    largest = np.max([phi.max(axis=0) for phi in blocks], axis=0)
    with np.errstate(divide="ignore"):
        by_rows = np.linalg.norm((1.0 + slope) / largest)
        by_mean = (1.0 + slope) / _mean(basis, X).min()
    return float(min(by_rows, by_mean))


def fixed_objective(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    centers: Any,
    sigma: float,
    lam: float,
    thetas: ArrayLike,
    slope: float = np.inf,
) -> tuple[Doubles, Doubles]:
    r"""Return the objective that the bounds are about: centers, sigma and lam fixed beforehand.

    .. math:: \widehat{\mathrm{penL}}_1(\theta) = \hat\alpha^\top \beta - \theta + 1, \qquad
              \hat\alpha = \arg\min_{\alpha \ge 0} \frac\lambda2 \|\alpha\|^2
              - \alpha^\top \beta

    with :math:`\beta = \theta\, \mathrm{mean}_i \varphi(x_i) - \mathrm{mean}_j \varphi(x'_j)` and,
    for a finite slope c, the limits :math:`\alpha^\top \varphi(x'_j) \le 1 + c` at all unlabeled
    rows. As in the paper, the value leaves the regularizer out.

    Parameters
    ----------
    X_positive, X_unlabeled : ndarrays of shape (n_rows, n_features)
        The two samples.
    centers : ndarray of shape (n_centers, n_features)
        Centers of the Gaussians, not taken from the samples: the bounds ask for that, and no
        center leaves a row out.
    sigma : float
        Their bandwidth.
    lam : float
        Regularization.
    thetas : array-like of shape (n_thetas,)
        Where to evaluate; fastest in order.
    slope : float, default=inf
        The slope c of the L1-distance beyond 1. A finite one holds a matrix of all unlabeled rows
        by all centers.

    Returns
    -------
    objective : ndarray of shape (n_thetas,)
        The distance at each theta.
    coef : ndarray of shape (n_thetas, n_centers)
        The coefficients :math:`\hat\alpha` there.

    Examples
    --------
    >>> from classprior.theory import fixed_objective
    >>> objective, coef = fixed_objective(
    ...     [[0.0]], [[0.0], [99.0]], centers=[[0.0]], sigma=1.0, lam=0.5, thetas=[0.5, 1.0]
    ... )
    >>> objective, coef.ravel()  # half of the unlabeled rows are where the positive is
    (array([0.5, 0.5]), array([0., 1.]))
    """
    _check_positive(lam=lam, slope=slope)
    thetas = np.atleast_1d(np.asarray(thetas, dtype=float))
    basis = _basis(centers, sigma)
    a, b = (_exact_mean(basis, X) for X in (X_positive, X_unlabeled))
    beta = thetas[:, None] * a - b
    if np.isinf(slope):
        coef = closed_form(beta, lam)
    else:
        phi = basis.exact(np.asarray(X_unlabeled, dtype=float))
        coef = FiniteSlopeL1(phi, slope).path(beta / lam)
    return np.sum(coef * beta, axis=1) - thetas + 1.0, coef


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0.0:  # refuses NaN as well
            raise ValueError(f"Expected {name} above 0, got {value}.")


def _slope_constant(n_centers: int, lam: float, feasible: float | None) -> float:
    _check_positive(n_centers=n_centers, lam=lam)
    if feasible is None:
        return 3.0 * n_centers / lam
    return float(2.0 * n_centers / lam + feasible * np.sqrt(n_centers))


def _concentration(n_positive: int, n_unlabeled: int, events: float, delta: float) -> float:
    if not 0.0 < delta < 1.0:
        raise ValueError(f"Expected delta between 0 and 1, got {delta}.")
    _check_positive(n_positive=n_positive, n_unlabeled=n_unlabeled)
    inverse_sizes = 1.0 / n_positive + 1.0 / n_unlabeled
    return float(np.sqrt(np.log(events / delta) / 2.0 * inverse_sizes))


def _rate(n_positive: int, n_unlabeled: int) -> float:
    _check_positive(n_positive=n_positive, n_unlabeled=n_unlabeled)
    return float(1.0 / np.sqrt(n_positive) + 1.0 / np.sqrt(n_unlabeled))


def _basis(centers: Any, sigma: float) -> GaussianBasis:
    _check_positive(sigma=sigma)
    return GaussianBasis(np.asarray(centers, dtype=float), np.array([float(sigma)]))


def _mean(basis: GaussianBasis, X: Any) -> Any:
    X = np.asarray(X, dtype=float)
    return fold_moments(basis, X, np.zeros(len(X), dtype=int), 1)[0].mean[0]


def _exact_mean(basis: GaussianBasis, X: Any) -> Doubles:
    """Return the mean of phi in float64: a rate is measured over many orders of magnitude."""
    X = np.asarray(X, dtype=float)
    return sum(basis.exact(X[block]).sum(axis=0) for block in row_blocks(basis, len(X))) / len(X)
