r"""The inner problem of the smooth divergences, a concave one with no constraint.

.. math:: \max_\alpha \theta\, \alpha^\top a - \frac{1}{n'} \sum_j f^*(\alpha^\top\varphi(x'_j) - 1)
          - \frac{\lambda}{2} \|\alpha\|^2
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
# Directions in which the basis is smaller than this on every row, in the mean, are left out: they
# could change the gradient by as much.
_RANK_TOLERANCE = 1e-10
_MOST_STEPS = 500
_MOST_HALVINGS = 100
_SLOW = 0.1  # the Hessian is computed anew where a step leaves more of the gradient
_FLAT = 0.5  # a step ends where the slope along it is this share of the first one, or less


@dataclass(frozen=True, eq=False)
class Conjugate:
    """A convex function of a real variable and its two derivatives, vectorised.

    Parameters
    ----------
    value, slope, curvature : callables
        The function, infinite outside its domain, its derivative and its second derivative.
    """

    value: Callable[[Doubles], Doubles]
    slope: Callable[[Doubles], Doubles]
    curvature: Callable[[Doubles], Doubles]


def rotation(phi: Doubles) -> Doubles:
    """Return orthonormal directions that carry all of the basis, as the columns of a matrix.

    Wide Gaussians are nearly dependent: a few dozen directions hold what hundreds of centers can
    express, and the norm of the coefficients does not change under a rotation.

    Parameters
    ----------
    phi : array of shape (n_rows, n_centers)
        The basis on all rows.

    Returns
    -------
    Q : array of shape (n_centers, n_directions)
        With orthonormal columns.
    """
    with single_threaded():
        # The triangle of a QR decomposition has the same right singular vectors as phi.
        triangle = linalg.qr(phi, mode="r", overwrite_a=False, check_finite=False)[0]
        _, singular, Qt = linalg.svd(
            triangle[: phi.shape[1]], full_matrices=False, check_finite=False
        )
    return Qt[singular > _RANK_TOLERANCE * np.sqrt(len(phi))].T


def concave_path(
    phi: Doubles, a: Doubles, thetas: Doubles, lam: float, conjugate: Conjugate
) -> Doubles:
    """Solve at every theta, each solution the start of the next.

    Parameters
    ----------
    phi : array of shape (n_unlabeled, n_features)
        The basis on the unlabeled rows.
    a : array of shape (n_features,)
        Its mean over the positives.
    thetas : array of shape (n_thetas,)
        Increasing grid.
    lam : float
        Regularization.
    conjugate : Conjugate
        Of the divergence.

    Returns
    -------
    alphas : array of shape (n_thetas, n_features)
        The coefficients; no entry of the gradient exceeds 1e-9.
    """
    alphas = np.zeros((len(thetas), phi.shape[1]))
    newton = _Newton(phi, lam, conjugate)
    for i, theta in enumerate(thetas):
        start, before = alphas[max(i - 1, 0)], alphas[max(i - 2, 0)]
        alphas[i] = newton.maximize(theta * a, start, start - before)
    return alphas


class _Newton:
    """Newton's method for neighbouring problems, which keeps its Hessian as long as that serves.

    A Hessian costs as much as hundreds of gradients, and changes little from one theta to the
    next.
    """

    def __init__(self, phi: Doubles, lam: float, conjugate: Conjugate) -> None:
        self._phi = phi
        self._lam = lam
        self._conjugate = conjugate
        self._cholesky: Doubles | None = None

    def maximize(self, linear: Doubles, alpha: Doubles, step: Doubles) -> Doubles:
        """Maximise from alpha, after a first step in the direction given."""
        phi, lam, conjugate = self._phi, self._lam, self._conjugate
        z = phi @ alpha - 1.0
        largest = np.inf
        for _ in range(_MOST_STEPS):
            rise = phi @ step
            ridge = float((lam * alpha - linear) @ step), float(lam * step @ step)
            length = _line_search(ridge, z, rise, conjugate.slope)
            alpha, z = alpha + length * step, z + length * rise
            gradient = lam * alpha - linear + conjugate.slope(z) @ phi / len(phi)
            before, largest = largest, np.abs(gradient).max(initial=0.0)
            if largest <= GRADIENT_TOLERANCE:
                return alpha
            if self._cholesky is None or largest > _SLOW * before:
                self._cholesky = self._factorise(z)
            step = lapack.dpotrs(self._cholesky, -gradient)[0]
        raise ArithmeticError(
            f"The inner problem of the divergence was not solved: its gradient is still "
            f"{largest:.1e}, above {GRADIENT_TOLERANCE:.0e}. Try larger lams."
        )

    def _factorise(self, z: Doubles) -> Doubles:
        weights = self._conjugate.curvature(z) / len(z)
        curved = weights > 0.0  # a penalized conjugate is straight at most rows
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
    """Return a length up to 1 at which the loss along a step has fallen most of the way.

    By its derivative, which still tells up from down where values have become equal to rounding.
    Outside the domain the derivative is infinite.
    """

    def slope(length: float) -> float:
        along = conjugate_slope(z + length * rise) @ rise / len(z)
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
