r"""Theoretical bounds of du Plessis, Niu and Sugiyama (2017) and the constants in them.

The bounds hold if the centers, the bandwidth and the regularization are fixed before the data are
seen, as in ``fixed_objective``, and for basis functions between 0 and 1. They concern the value of
the penalized L1 distance, not the difference between the estimate and the true prior, and they are
loose.

Theorems 1 to 4 give rates without constants. :math:`\hat\alpha` and
:math:`\widehat{\mathrm{penL}}_1(\theta)` converge at the rate :math:`1/\sqrt n + 1/\sqrt{n'}` for
an infinite slope (Theorem 1), and for a finite slope if no constraint is active at the population
optimum (Theorem 3). In general, the rate for a finite slope is
:math:`n^{-1/4} + n'^{-1/4} + \sqrt{h(n')}`, where h is the Hausdorff distance between the features
of the unlabeled sample and the features of the support (Theorem 2). Theorem 4 restores the
parametric rate by turning the active constraints into equalities; since an oracle must identify
these constraints, it is not implemented. The rates also hold for a regularization parameter that
depends on the sample sizes, if it converges to a positive limit at least as fast.
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
from classprior._tables.checks import check_rows

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
    r"""Bound the deviation of the objective at one theta from its expectation.

    With probability at least :math:`1 - \delta`,

    .. math:: \left|\widehat{\mathrm{penL}}_1(\theta) - E\,\widehat{\mathrm{penL}}_1(\theta)\right|
              \le C_c \sqrt{\frac{\ln(2/\delta)}{2} \left(\frac1n + \frac1{n'}\right)}

    where :math:`C_c = 3b/\lambda` for an infinite slope (du Plessis, Niu and Sugiyama, 2017,
    Theorem 5) and :math:`C_c = 2b/\lambda + B\sqrt b` for a finite slope (Theorem 6).

    Parameters
    ----------
    n_positive, n_unlabeled : int
        Sample sizes n and n'.
    n_centers : int
        Number b of basis functions.
    lam : float
        Regularization parameter.
    delta : float, default=0.05
        Probability that the bound fails.
    feasible : float, optional
        For a finite slope, B, the largest norm of feasible coefficients, or an upper bound on it
        from ``feasible_bound``. None for an infinite slope.
    feasible_always : bool, default=True
        For a finite slope, whether the empirical optimum is feasible in the population almost
        surely. False if this holds only with probability at least :math:`1 - \delta/3`; then
        :math:`\ln(3/\delta)` replaces :math:`\ln(2/\delta)`.

    Returns
    -------
    bound : float
        The bound.

    Examples
    --------
    >>> from classprior.theory import deviation_bound
    >>> round(deviation_bound(10_000, 10_000, n_centers=10, lam=1.0), 2)
    0.58
    """
    _check_sizes(n_positive, n_unlabeled, n_centers)
    _check_positive(lam=lam)
    _check_nonnegative(feasible=feasible)
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
    r"""Bound the deviation of the objective from its expectation, uniformly over theta.

    With probability at least :math:`1 - \delta`, the deviation is at most

    .. math:: 2 C_x C_{\hat\alpha} \left(\frac1{\sqrt n} + \frac1{\sqrt{n'}}\right)
              + C_c \sqrt{\frac{\ln(2/\delta)}{2} \left(\frac1n + \frac1{n'}\right)}

    for all theta at once, with :math:`C_c` as in ``deviation_bound`` (du Plessis, Niu and
    Sugiyama, 2017, Theorem 7).

    Parameters
    ----------
    n_positive, n_unlabeled : int
        Sample sizes n and n'.
    n_centers : int
        Number b of basis functions.
    lam : float
        Regularization parameter.
    delta : float, default=0.05
        Probability that the bound fails.
    feasible : float, optional
        For a finite slope, B, the largest norm of feasible coefficients. None for an infinite
        slope.
    features : float, optional
        :math:`C_x`, the largest norm of the features. By default :math:`\sqrt b`, its largest
        possible value.
    coefficients : float, optional
        :math:`C_{\hat\alpha}`, the largest norm of the coefficients over all theta and all data.
        By default :math:`\sqrt b/\lambda`, its largest possible value.

    Returns
    -------
    bound : float
        The bound.

    Examples
    --------
    >>> from classprior.theory import uniform_deviation_bound
    >>> round(uniform_deviation_bound(10_000, 10_000, n_centers=10, lam=1.0), 2)
    0.98
    """
    _check_nonnegative(features=features, coefficients=coefficients)
    at_one_theta = deviation_bound(  # checks the other parameters
        n_positive, n_unlabeled, n_centers=n_centers, lam=lam, delta=delta, feasible=feasible
    )
    features = np.sqrt(n_centers) if features is None else features
    coefficients = np.sqrt(n_centers) / lam if coefficients is None else coefficients
    return float(2.0 * features * coefficients * _rate(n_positive, n_unlabeled)) + at_one_theta


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
    r"""Bound the estimation error of theta, measured by the objective.

    With probability at least :math:`1 - \delta`, :math:`\mathrm{penL}_1^*(\hat\theta) -
    \mathrm{penL}_1^*(\theta^*)` is at most

    .. math:: (4 C_x C_{\alpha^*} + 2 C_{\Delta\alpha}\sqrt b)
              \left(\frac1{\sqrt n} + \frac1{\sqrt{n'}}\right)
              + 2 C_{\alpha^*} \sqrt b
              \sqrt{\frac{\ln(4/\delta)}{2} \left(\frac1n + \frac1{n'}\right)}

    (du Plessis, Niu and Sugiyama, 2017, Theorem 8).

    Parameters
    ----------
    n_positive, n_unlabeled : int
        Sample sizes n and n'.
    n_centers : int
        Number b of basis functions.
    coefficients : float
        :math:`C_{\alpha^*}`, the largest norm of the population coefficients over theta.
    coefficient_rate : float
        :math:`C_{\Delta\alpha}`. With probability :math:`1 - \delta/4` each, the coefficients at
        :math:`\hat\theta` and at :math:`\theta^*` differ from those of the population by at most
        :math:`C_{\Delta\alpha} (1/\sqrt n + 1/\sqrt{n'})`. The paper proves that this constant
        exists but gives no formula; it can be measured by simulation.
    delta : float, default=0.05
        Probability that the bound fails.
    features : float, optional
        :math:`C_x`, the largest norm of the features. By default :math:`\sqrt b`, its largest
        possible value.

    Returns
    -------
    bound : float
        The bound.

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
    _check_sizes(n_positive, n_unlabeled, n_centers)
    _check_nonnegative(
        coefficients=coefficients, coefficient_rate=coefficient_rate, features=features
    )
    features = np.sqrt(n_centers) if features is None else features
    root_b = np.sqrt(n_centers)
    return float(
        (4.0 * features * coefficients + 2.0 * coefficient_rate * root_b)
        * _rate(n_positive, n_unlabeled)
        + 2.0 * coefficients * root_b * _concentration(n_positive, n_unlabeled, 4.0, delta)
    )


def feature_bound(X: Any, centers: Any, sigma: float) -> float:
    r"""Return the largest :math:`\|\varphi(x)\|_2` over the rows of a sample.

    The constant :math:`C_x` of the paper is the supremum over the whole support, so this is a lower
    bound on it. The bounds are guaranteed only with their default, :math:`\sqrt b`.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows that represent the support.
    centers : ndarray of shape (n_centers, n_features)
        Centers of the Gaussians.
    sigma : float
        Bandwidth of the Gaussians.

    Returns
    -------
    bound : float
        The norm, at most the square root of the number of centers.

    Examples
    --------
    >>> from classprior.theory import feature_bound
    >>> feature_bound([[0.0], [99.0]], [[0.0]], sigma=1.0)
    1.0
    """
    X, basis = _rows(X, "X"), _basis(centers, sigma)
    blocks = (basis.exact(X[block]) for block in row_blocks(basis, len(X)))
    return float(max(np.sqrt(np.max(np.sum(phi**2, axis=1))) for phi in blocks))


def coefficient_bound(
    X_positive: Any, X_unlabeled: Any, centers: Any, sigma: float, lam: float
) -> float:
    r"""Return the largest norm of the coefficients over theta, for given data.

    For an infinite slope, :math:`\hat\alpha(\theta) = \max(0, \theta a - b)/\lambda` increases with
    theta, so :math:`\sup_\theta \|\hat\alpha(\theta)\|_2` is its norm at theta = 1. The constant
    :math:`C_{\hat\alpha}` of the paper is the supremum over all data as well; it is at most
    :math:`\sqrt b/\lambda`.

    Parameters
    ----------
    X_positive, X_unlabeled : ndarrays of shape (n_rows, n_features)
        The two samples.
    centers : ndarray of shape (n_centers, n_features)
        Centers of the Gaussians, not taken from the samples.
    sigma : float
        Bandwidth of the Gaussians.
    lam : float
        Regularization parameter.

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
    _check_positive(lam=lam)
    basis = _basis(centers, sigma)
    a, b = (
        _mean(basis, _rows(X, name))
        for X, name in ((X_positive, "X_positive"), (X_unlabeled, "X_unlabeled"))
    )
    return float(np.linalg.norm(np.maximum(0.0, a - b)) / lam)


def feasible_bound(X_unlabeled: Any, centers: Any, sigma: float, slope: float) -> float:
    r"""Return an upper bound on B, the largest norm of feasible coefficients at a finite slope.

    Coefficients are feasible if :math:`\alpha \ge 0` and
    :math:`\sum_\ell \alpha_\ell \varphi_\ell(x'_j) \le 1 + c` for each unlabeled row. Each row
    bounds each coefficient,
    :math:`\alpha_\ell \le u_\ell = (1 + c)/\max_j \varphi_\ell(x'_j)`, and the mean over rows
    bounds their sum. So B is at most the smaller of :math:`\|u\|_2` and
    :math:`(1 + c)/\min_\ell \mathrm{mean}_j \varphi_\ell(x'_j)`. In the paper, the constraints
    hold on the whole support, which only makes B smaller.

    Parameters
    ----------
    X_unlabeled : ndarray of shape (n_unlabeled, n_features)
        The unlabeled rows.
    centers : ndarray of shape (n_centers, n_features)
        Centers of the Gaussians.
    sigma : float
        Bandwidth of the Gaussians.
    slope : float
        The finite slope c.

    Returns
    -------
    bound : float
        The bound; infinite if some Gaussian is numerically zero on all unlabeled rows.

    Examples
    --------
    >>> from classprior.theory import feasible_bound
    >>> feasible_bound([[0.0], [0.0]], [[0.0]], sigma=1.0, slope=1.0)
    2.0
    """
    _check_positive(slope=slope)
    X, basis = _rows(X_unlabeled, "X_unlabeled"), _basis(centers, sigma)
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
    r"""Return penL1 for fixed centers, bandwidth and regularization, as in the theorems.

    .. math:: \widehat{\mathrm{penL}}_1(\theta) = \hat\alpha^\top \beta - \theta + 1, \qquad
              \hat\alpha = \arg\min_{\alpha \ge 0} \frac\lambda2 \|\alpha\|^2
              - \alpha^\top \beta

    where :math:`\beta = \theta\, \mathrm{mean}_i \varphi(x_i) - \mathrm{mean}_j \varphi(x'_j)`. For
    a finite slope c, the minimization is subject to :math:`\alpha^\top \varphi(x'_j) \le 1 + c` at
    all unlabeled rows (du Plessis, Niu and Sugiyama, 2017, equation (11) and section 3.1). As in
    the paper, the value omits the regularizer.

    Parameters
    ----------
    X_positive, X_unlabeled : ndarrays of shape (n_rows, n_features)
        The two samples.
    centers : ndarray of shape (n_centers, n_features)
        Centers of the Gaussians. The bounds require that they are independent of the samples,
        so no row is left out of any mean.
    sigma : float
        Bandwidth of the Gaussians.
    lam : float
        Regularization parameter.
    thetas : array-like of shape (n_thetas,)
        Values of theta; a finite slope is fastest if they are sorted.
    slope : float, default=inf
        Slope c of the L1 distance above 1. A finite slope needs memory for a matrix of shape
        (n_unlabeled, n_centers).

    Returns
    -------
    objective : ndarray of shape (n_thetas,)
        Penalized L1 distance at each theta.
    coef : ndarray of shape (n_thetas, n_centers)
        Coefficients :math:`\hat\alpha` at each theta.

    Examples
    --------
    >>> from classprior.theory import fixed_objective
    >>> objective, coef = fixed_objective(
    ...     [[0.0]], [[0.0], [99.0]], centers=[[0.0]], sigma=1.0, lam=0.5, thetas=[0.5, 1.0]
    ... )
    >>> objective, coef.ravel()  # half of the unlabeled rows equal the positive
    (array([0.5, 0.5]), array([0., 1.]))
    """
    _check_positive(lam=lam, slope=slope)
    thetas = np.atleast_1d(np.asarray(thetas, dtype=float))
    if len(wrong := thetas[~((thetas >= 0.0) & (thetas <= 1.0))]):
        raise ValueError(f"Expected thetas between 0 and 1, got {wrong[0]}.")
    X_positive, X_unlabeled = _rows(X_positive, "X_positive"), _rows(X_unlabeled, "X_unlabeled")
    basis = _basis(centers, sigma)
    a, b = (_exact_mean(basis, X) for X in (X_positive, X_unlabeled))
    beta = thetas[:, None] * a - b
    if np.isinf(slope):
        coef = closed_form(beta, lam)
    else:
        coef = FiniteSlopeL1(basis.exact(X_unlabeled), slope).path(beta / lam)
    return np.sum(coef * beta, axis=1) - thetas + 1.0, coef


def _check_sizes(n_positive: int, n_unlabeled: int, n_centers: int) -> None:
    sizes = {"n_positive": n_positive, "n_unlabeled": n_unlabeled, "n_centers": n_centers}
    for name, value in sizes.items():
        if not value >= 1:  # also rejects NaN
            raise ValueError(f"Expected {name} of at least 1, got {value}.")


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0.0:  # also rejects NaN
            raise ValueError(f"Expected {name} above 0, got {value}.")


def _check_nonnegative(**values: float | None) -> None:
    for name, value in values.items():
        if value is not None and not value >= 0.0:  # also rejects NaN
            raise ValueError(f"Expected {name} of at least 0, got {value}.")


def _slope_constant(n_centers: int, lam: float, feasible: float | None) -> float:
    if feasible is None:
        return 3.0 * n_centers / lam
    return float(2.0 * n_centers / lam + feasible * np.sqrt(n_centers))


def _concentration(n_positive: int, n_unlabeled: int, events: float, delta: float) -> float:
    if not 0.0 < delta < 1.0:
        raise ValueError(f"Expected delta between 0 and 1, got {delta}.")
    inverse_sizes = 1.0 / n_positive + 1.0 / n_unlabeled
    return float(np.sqrt(np.log(events / delta) / 2.0 * inverse_sizes))


def _rate(n_positive: int, n_unlabeled: int) -> float:
    return float(1.0 / np.sqrt(n_positive) + 1.0 / np.sqrt(n_unlabeled))


def _rows(X: Any, name: str) -> Doubles:
    return np.asarray(check_rows(X, name), dtype=float)


def _basis(centers: Any, sigma: float) -> GaussianBasis:
    _check_positive(sigma=sigma)
    return GaussianBasis(_rows(centers, "centers"), np.array([float(sigma)]))


def _mean(basis: GaussianBasis, X: Doubles) -> Any:
    return fold_moments(basis, X, np.zeros(len(X), dtype=int), 1)[0].mean[0]


def _exact_mean(basis: GaussianBasis, X: Doubles) -> Doubles:
    """Return the mean of phi in float64, accurate enough to measure rates of convergence."""
    return sum(basis.exact(X[block]).sum(axis=0) for block in row_blocks(basis, len(X))) / len(X)
