r"""The inner problem of penL1 over alpha, and the objective as a function of theta.

Throughout, a and b are the means of phi over the positives and over the unlabeled rows, one entry
per center, and :math:`\beta(\theta) = \theta a - b`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from classprior._core.types import Doubles, Ints


def closed_form(beta: Doubles, lam: float) -> Doubles:
    r"""Solve the inner problem of the penalized L1 distance.

    .. math::
        \hat\alpha = \arg\min_{\alpha \ge 0} \frac{\lambda}{2} \|\alpha\|^2 - \alpha^\top \beta
                   = \frac{1}{\lambda} \max(0, \beta)

    du Plessis, Niu and Sugiyama (2017), equation (11) with :math:`c = \infty`.
    """
    return np.maximum(0.0, beta) / lam


class PenalizedL1Path:
    r"""The penalized L1 distance as a function of theta, for one bandwidth and one lambda.

    .. math:: \mathrm{penL}_1(\theta) = \frac{1}{\lambda} \sum_\ell \max(0, \beta_\ell) \beta_\ell
              - \theta + 1, \qquad \beta_\ell = \theta a_\ell - b_\ell

    du Plessis, Niu and Sugiyama (2017), end of section 2.4. The function is a convex piecewise
    quadratic with knots :math:`b_\ell / a_\ell`. After sorting the knots once, cumulative sums of
    its coefficients give the value at any theta without a pass over the centers.
    """

    def __init__(self, a: Doubles, b: Doubles, lam: float) -> None:
        a, b = a[a > 0.0], b[a > 0.0]  # if a is zero, beta is never positive
        knots = b / a
        order = np.argsort(knots)
        a, b = a[order], b[order]
        self.knots = knots[order]
        self.lam = lam
        self._aa, self._ab, self._bb = (
            np.concatenate([[0.0], np.cumsum(terms)]) for terms in (a * a, a * b, b * b)
        )

    def value(self, theta: ArrayLike) -> Doubles:
        """Return penL1 at each theta."""
        theta = np.asarray(theta, dtype=np.float64)
        aa, ab, bb = self._open_sums(theta)
        return (theta**2 * aa - 2.0 * theta * ab + bb) / self.lam - theta + 1.0

    def slope(self, theta: ArrayLike) -> Doubles:
        """Return the derivative of penL1, which is continuous, at each theta."""
        theta = np.asarray(theta, dtype=np.float64)
        aa, ab, _ = self._open_sums(theta)
        return 2.0 * (theta * aa - ab) / self.lam - 1.0

    def minimizer(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the minimizer of penL1 in [low, high]."""
        # The slope increases from -1. It crosses zero after the last knot at which it is negative,
        # and is linear there.
        piece = int(np.searchsorted(self.slope(self.knots), 0.0))
        if piece == 0:
            return high  # there are no knots, so the slope is -1 everywhere
        return float(np.clip((self._ab[piece] + self.lam / 2.0) / self._aa[piece], low, high))

    def _open_sums(self, theta: Doubles) -> tuple[Doubles, Doubles, Doubles]:
        n_open = np.searchsorted(self.knots, theta)
        return self._aa[n_open], self._ab[n_open], self._bb[n_open]


def hinge_products(
    thetas: Doubles, a: Doubles, b: Doubles, a_held: Doubles, b_held: Doubles
) -> Doubles:
    r"""Return :math:`\sum_\ell \max(0, \theta a_\ell - b_\ell) (\theta a'_\ell - b'_\ell)`.

    The means have shape (n_sigmas, n_centers), the result (n_sigmas, n_thetas). Thetas increase.
    """
    # A term becomes positive at the first theta beyond its knot b / a, so a cumulative sum over the
    # grid gives all values. The last bin holds terms that are never positive.
    n_sigmas, n_bins = len(a), len(thetas) + 1
    knots = np.divide(b, a, out=np.full_like(a, np.inf), where=a > 0.0)
    bins = _first_theta(thetas, knots) + n_bins * np.arange(n_sigmas)[:, None]

    def running_sum(terms: Doubles) -> Doubles:
        sums = np.bincount(bins.ravel(), terms.ravel(), minlength=n_sigmas * n_bins)
        return np.cumsum(sums.reshape(n_sigmas, n_bins)[:, :-1], axis=1)

    return (
        thetas**2 * running_sum(a * a_held)
        - thetas * running_sum(a * b_held + b * a_held)
        + running_sum(b * b_held)
    )


def _first_theta(thetas: Doubles, knots: Doubles) -> Ints:
    """Return ``np.searchsorted(thetas, knots)``, but several times faster on a uniform grid."""
    steps = np.diff(thetas)
    if len(steps) == 0 or np.ptp(steps) > 1e-9 * steps[0]:
        return np.searchsorted(thetas, knots)
    guess = np.ceil((knots - thetas[0]) / steps.mean())
    place = np.clip(guess, 0, len(thetas)).astype(np.int64)  # correct, or off by one
    padded = np.concatenate([[-np.inf], thetas, [np.inf]])
    place -= padded[place] >= knots
    place += padded[place + 1] < knots
    return place
