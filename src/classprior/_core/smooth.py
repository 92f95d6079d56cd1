r"""The inner problem of the smooth divergences: unconstrained concave maximization.

.. math:: \max_\alpha \theta\, \alpha^\top a - \frac{1}{n'} \sum_j f^*(\alpha^\top\varphi(x'_j) - 1)
          - \frac{\lambda}{2} \|\alpha\|^2

This is equation (9) of du Plessis, Niu and Sugiyama (2017) with the model of equation (10) and a
regularizer, where a is the mean of phi over the positives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from classprior._core.threads import single_threaded
from classprior._core.types import Doubles

GRADIENT_TOLERANCE = 1e-9
# Directions in which the root mean square of the basis is below this are dropped; their effect on
# the gradient is of the same order.
_RANK_TOLERANCE = 1e-10
_MOST_STEPS = 500
_MOST_HALVINGS = 100
_SLOW = 0.1  # recompute the Hessian if a step leaves more than this fraction of the gradient
_FLAT = 0.5  # end the line search when the slope is at most this fraction of the initial one


@dataclass(frozen=True, eq=False)
class Conjugate:
    """A conjugate, infinite outside its domain, and its first and second derivatives."""

    value: Callable[[Doubles], Doubles]
    slope: Callable[[Doubles], Doubles]
    curvature: Callable[[Doubles], Doubles]


def rotation(phi: Doubles) -> Doubles:
    """Return an orthonormal basis of the row space of phi, shape (n_centers, n_directions)."""
    # Wide Gaussians are nearly dependent: a few dozen directions express as much as hundreds of
    # centers, and a rotation preserves the norm of the coefficients.
    with single_threaded():
        # R of a QR decomposition has the same right singular vectors as phi.
        triangle = linalg.qr(phi, mode="r", overwrite_a=False, check_finite=False)[0]
        _, singular, Qt = linalg.svd(
            triangle[: phi.shape[1]], full_matrices=False, check_finite=False
        )
    return Qt[singular > _RANK_TOLERANCE * np.sqrt(len(phi))].T


def concave_path(
    phi: Doubles,
    a: Doubles,
    thetas: Doubles,
    lam: float,
    conjugate: Conjugate,
    weights: Doubles | None = None,
) -> Doubles:
    """Solve for each theta of an increasing grid, starting from the previous solutions.

    ``phi`` has shape (n_unlabeled, n_features); the solutions have shape (n_thetas, n_features).
    Weights, if any, replace the weights 1/n' of the rows; they sum to one.
    """
    alphas = np.zeros((len(thetas), phi.shape[1]))
    if weights is None:
        weights = np.full(len(phi), 1.0 / len(phi))
    newton = _Newton(phi, weights, lam, conjugate)
    for i, theta in enumerate(thetas):
        start, before = alphas[max(i - 1, 0)], alphas[max(i - 2, 0)]
        alphas[i] = newton.maximize(theta * a, start, start - before)
    return alphas


class _Newton:
    """Newton's method for a sequence of similar problems, with a reused Hessian."""

    # A Hessian costs as much as a dozen steps and changes little from theta to theta. With dozens
    # of columns, few directions of 200 Gaussians are negligible, and a tolerance of 1e-6 during
    # cross-validation saves only a tenth of the work (with a larger _SLOW, less than half), so all
    # problems are solved to the same accuracy.

    def __init__(self, phi: Doubles, weights: Doubles, lam: float, conjugate: Conjugate) -> None:
        self._phi = phi
        self._weights = weights
        self._lam = lam
        self._conjugate = conjugate
        self._cholesky: Doubles | None = None

    def maximize(self, linear: Doubles, alpha: Doubles, step: Doubles) -> Doubles:
        """Maximize, starting at alpha with a first step in the given direction."""
        phi, lam = self._phi, self._lam

        def slope(z: Doubles) -> Doubles:
            return self._weights * self._conjugate.slope(z)

        z = phi @ alpha - 1.0
        largest = np.inf
        for _ in range(_MOST_STEPS):
            rise = phi @ step
            ridge = float((lam * alpha - linear) @ step), float(lam * step @ step)
            length = _line_search(ridge, z, rise, slope)
            alpha, z = alpha + length * step, z + length * rise
            gradient = lam * alpha - linear + slope(z) @ phi
            before, largest = largest, np.abs(gradient).max(initial=0.0)
            if largest <= GRADIENT_TOLERANCE:
                return alpha
            if self._cholesky is None or largest > _SLOW * before:
                self._cholesky = self._factorize(z)
            step = lapack.dpotrs(self._cholesky, -gradient)[0]
        raise ArithmeticError(
            "The inner problem of the divergence did not converge: its gradient is "
            f"{largest:.1e}, above the tolerance {GRADIENT_TOLERANCE:.0e}. Try larger lams."
        )

    def _factorize(self, z: Doubles) -> Doubles:
        weights = self._weights * self._conjugate.curvature(z)
        curved = weights > 0.0  # a penalized conjugate is linear at most rows
        root = self._phi[curved] * np.sqrt(weights[curved])[:, None]
        hessian = root.T @ root
        hessian.flat[:: len(hessian) + 1] += self._lam
        cholesky, failed = lapack.dpotrf(hessian)
        if failed:
            raise ArithmeticError(
                "The inner problem of the divergence has a singular Hessian. Try larger lams."
            )
        return cholesky


def _line_search(
    ridge: tuple[float, float], z: Doubles, rise: Doubles, conjugate_slope: Callable[..., Doubles]
) -> float:
    """Return a step length in [0, 1] at which the slope of the loss has become small."""
    # Slopes are compared, not values, since values become equal up to rounding near the minimum.
    # Outside the domain the slope is infinite.

    def slope(length: float) -> float:
        along = conjugate_slope(z + length * rise) @ rise
        return float(ridge[0] + length * ridge[1] + along)

    first = slope(0.0)
    if first >= 0.0:
        return 0.0
    low, high, length = 0.0, 1.0, 1.0
    for _ in range(_MOST_HALVINGS):
        here = slope(length)
        if here > -_FLAT * first:
            high = length
        elif here < _FLAT * first and length < 1.0:
            low = length
        else:
            break
        length = (low + high) / 2.0
    return length
