r"""The f-divergences used in partial matching, with their conjugates.

Partial matching minimizes over theta the divergence of theta p(x|y=1) from p(x),

.. math:: \mathrm{Div}_f(\theta) = \int f\left(\frac{\theta p(x|y=1)}{p(x)}\right) p(x) dx
          \ge \sup_r \theta E_{p(x|y=1)}[r(x)] - E_{p(x)}[f^*(r(x))].

With an ordinary f, theta p(x|y=1) may exceed p(x) at a finite cost, and the minimizer is too large
if the classes overlap. The penalized f equals f on [0, 1] and is infinite elsewhere.

du Plessis, Niu and Sugiyama (2017), equations (2) and (8) and Table 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["L1", "Divergence", "KullbackLeibler", "Pearson"]

Doubles = NDArray[np.float64]


class Divergence(ABC):
    """A convex function f with f(1) = 0, its conjugate and its penalized conjugate."""

    @abstractmethod
    def f(self, t: ArrayLike) -> Doubles:
        """Return f(t), infinite outside its domain."""

    @abstractmethod
    def conjugate(self, z: ArrayLike) -> Doubles:
        r"""Return :math:`f^*(z) = \sup_t tz - f(t)` over the domain of f."""

    @abstractmethod
    def penalized_conjugate(self, z: ArrayLike) -> Doubles:
        r"""Return :math:`\tilde f^*(z) = \sup_{0 \le t \le 1} tz - f(t)`."""

    @abstractmethod
    def maximizer(self, z: ArrayLike) -> Doubles:
        """Return the t that attains the supremum in the conjugate: its derivative at z."""

    @abstractmethod
    def curvature(self, z: ArrayLike) -> Doubles:
        """Return the second derivative of the conjugate."""

    def penalized_maximizer(self, z: ArrayLike) -> Doubles:
        """Return the t in [0, 1] that attains the supremum in the penalized conjugate."""
        # tz - f(t) is concave in t, so its maximizer on an interval is the clipped maximizer.
        return np.clip(self.maximizer(z), 0.0, 1.0)

    def penalized_curvature(self, z: ArrayLike) -> Doubles:
        """Return the second derivative of the penalized conjugate."""
        t = self.maximizer(z)
        return np.where((t > 0.0) & (t < 1.0), self.curvature(z), 0.0)


class KullbackLeibler(Divergence):
    r"""Kullback-Leibler divergence, :math:`f(t) = -\log t` on t > 0.

    Examples
    --------
    >>> from classprior.divergences import KullbackLeibler
    >>> KullbackLeibler().conjugate([-1.0, 1.0])
    array([-1., inf])
    >>> KullbackLeibler().penalized_conjugate([-1.0, 1.0])
    array([-1.,  1.])
    """

    def f(self, t: ArrayLike) -> Doubles:
        """Return -log t."""
        t = np.asarray(t, dtype=np.float64)
        return -_log(t)

    def conjugate(self, z: ArrayLike) -> Doubles:
        """Return -1 - log(-z) for z < 0, else infinity."""
        z = np.asarray(z, dtype=np.float64)
        return -1.0 - _log(-z)

    def penalized_conjugate(self, z: ArrayLike) -> Doubles:
        """Return -1 - log(-z) for z <= -1, else z."""
        z = np.asarray(z, dtype=np.float64)
        return np.where(z <= -1.0, -1.0 - _log(-z), z)

    def maximizer(self, z: ArrayLike) -> Doubles:
        """Return -1/z for z < 0, else infinity."""
        z = np.asarray(z, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.divide(-1.0, z, out=np.full_like(z, np.inf), where=z < 0.0)

    def curvature(self, z: ArrayLike) -> Doubles:
        """Return 1/z^2 for z < 0, else infinity."""
        with np.errstate(over="ignore"):
            return np.square(self.maximizer(z))


class Pearson(Divergence):
    r"""Pearson divergence, :math:`f(t) = (t - 1)^2 / 2` for all real t.

    Examples
    --------
    >>> from classprior.divergences import Pearson
    >>> Pearson().conjugate([-2.0, -0.5, 1.0])
    array([ 0.   , -0.375,  1.5  ])
    >>> Pearson().penalized_conjugate([-2.0, -0.5, 1.0])
    array([-0.5  , -0.375,  1.   ])
    """

    def f(self, t: ArrayLike) -> Doubles:
        """Return (t - 1)^2 / 2."""
        t = np.asarray(t, dtype=np.float64)
        return (t - 1.0) ** 2 / 2.0

    def conjugate(self, z: ArrayLike) -> Doubles:
        """Return z^2 / 2 + z."""
        z = np.asarray(z, dtype=np.float64)
        return z**2 / 2.0 + z

    def penalized_conjugate(self, z: ArrayLike) -> Doubles:
        """Return -1/2 for z < -1, z^2 / 2 + z for -1 <= z <= 0, and z for z > 0."""
        z = np.asarray(z, dtype=np.float64)
        return np.where(z < -1.0, -0.5, np.where(z <= 0.0, z**2 / 2.0 + z, z))

    def maximizer(self, z: ArrayLike) -> Doubles:
        """Return 1 + z."""
        return 1.0 + np.asarray(z, dtype=np.float64)

    def curvature(self, z: ArrayLike) -> Doubles:
        """Return 1."""
        return np.ones_like(np.asarray(z, dtype=np.float64))


class L1(Divergence):
    r"""L1 distance with slope c above 1, for t >= 0.

    .. math:: f(t) = 1 - t \text{ for } t \le 1, \qquad c (t - 1) \text{ for } t > 1

    Slope 1 gives the ordinary L1 distance; an infinite slope gives the penalized L1 distance (du
    Plessis, Niu and Sugiyama, 2017, section 2.2).

    Parameters
    ----------
    slope : float, default=1.0
        The slope c > 0 of f for t > 1.

    Examples
    --------
    >>> from classprior.divergences import L1
    >>> L1(slope=1.0).conjugate([-2.0, 0.5, 2.0])
    array([-1. ,  0.5,  inf])
    >>> L1(slope=1.0).penalized_conjugate([-2.0, 0.5, 2.0])
    array([-1. ,  0.5,  2. ])
    """

    def __init__(self, slope: float = 1.0) -> None:
        if not slope > 0.0:  # also rejects NaN
            raise ValueError(f"Expected a slope above 0, got {slope}.")
        self.slope = slope

    def f(self, t: ArrayLike) -> Doubles:
        """Return 1 - t for 0 <= t <= 1, c (t - 1) for t > 1, and infinity for t < 0."""
        t = np.asarray(t, dtype=np.float64)
        with np.errstate(invalid="ignore"):  # infinity times zero, not selected below
            beyond = self.slope * (t - 1.0)
        return np.where(t < 0.0, np.inf, np.where(t <= 1.0, 1.0 - t, beyond))

    def conjugate(self, z: ArrayLike) -> Doubles:
        """Return -1 for z <= -1, z for -1 < z <= c, and infinity for z > c."""
        z = np.asarray(z, dtype=np.float64)
        return np.where(z > self.slope, np.inf, np.maximum(z, -1.0))

    def penalized_conjugate(self, z: ArrayLike) -> Doubles:
        """Return max(z, -1)."""
        return np.maximum(np.asarray(z, dtype=np.float64), -1.0)

    def maximizer(self, z: ArrayLike) -> Doubles:
        """Return 0 for z <= -1, 1 for -1 < z <= c, and infinity for z > c."""
        z = np.asarray(z, dtype=np.float64)
        return np.where(z <= -1.0, 0.0, np.where(z <= self.slope, 1.0, np.inf))

    def curvature(self, z: ArrayLike) -> Doubles:
        """Return 0, since the conjugate is piecewise linear."""
        return np.zeros_like(np.asarray(z, dtype=np.float64))


def _log(x: Doubles) -> Doubles:
    """Return the natural logarithm, or minus infinity for x <= 0; NaN stays NaN."""
    return np.log(x, out=np.where(np.isnan(x), np.nan, -np.inf), where=x > 0.0)
