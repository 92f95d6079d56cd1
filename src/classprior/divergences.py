r"""The f-divergences of partial matching and their conjugates, as in Table 1 of the paper.

Partial matching looks for the theta at which theta p(x|y=1) comes closest to p(x) in

.. math:: \mathrm{Div}_f(\theta) = \int f\left(\frac{\theta p(x|y=1)}{p(x)}\right) p(x) dx
          \ge \sup_r \theta E_{p(x|y=1)}[r(x)] - E_{p(x)}[f^*(r(x))].

An ordinary f lets theta p(x|y=1) exceed p(x) at a finite price, and over-estimates wherever the
classes overlap. The penalized f is the same on [0, 1] and infinite elsewhere, which forbids it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["L1", "Divergence", "KullbackLeibler", "Pearson"]

Doubles = NDArray[np.float64]


class Divergence(ABC):
    """A convex function f with f(1) = 0, its conjugate, and the conjugate of its penalized form."""

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
        r"""Return the t at which the supremum in the conjugate is attained, its derivative in z."""

    @abstractmethod
    def curvature(self, z: ArrayLike) -> Doubles:
        """Return the second derivative of the conjugate, that of its maximizer in z."""

    def penalized_maximizer(self, z: ArrayLike) -> Doubles:
        """Return the t in [0, 1] at which the supremum of the penalized conjugate is attained."""
        # tz - f(t) is concave in t: restricted to an interval, its maximizer is the nearest point.
        return np.clip(self.maximizer(z), 0.0, 1.0)

    def penalized_curvature(self, z: ArrayLike) -> Doubles:
        """Return the second derivative of the penalized conjugate, 0 where its maximizer rests."""
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
    r"""Pearson divergence, :math:`f(t) = (t - 1)^2 / 2` on the whole line.

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
        """Return -1/2 for z < -1, z^2 / 2 + z up to 0, and z beyond."""
        z = np.asarray(z, dtype=np.float64)
        return np.where(z < -1.0, -0.5, np.where(z <= 0.0, z**2 / 2.0 + z, z))

    def maximizer(self, z: ArrayLike) -> Doubles:
        """Return 1 + z."""
        return 1.0 + np.asarray(z, dtype=np.float64)

    def curvature(self, z: ArrayLike) -> Doubles:
        """Return 1."""
        return np.ones_like(np.asarray(z, dtype=np.float64))


class L1(Divergence):
    r"""L1-distance with a slope c beyond 1, on t >= 0.

    .. math:: f(t) = 1 - t \text{ for } t \le 1, \qquad c (t - 1) \text{ for } t > 1

    Slope 1 is the ordinary L1-distance. An infinite slope is the penalized one: penL1.

    Parameters
    ----------
    slope : float, default=1.0
        The slope c > 0.

    Examples
    --------
    >>> from classprior.divergences import L1
    >>> L1(slope=1.0).conjugate([-2.0, 0.5, 2.0])
    array([-1. ,  0.5,  inf])
    >>> L1(slope=1.0).penalized_conjugate([-2.0, 0.5, 2.0])
    array([-1. ,  0.5,  2. ])
    """

    def __init__(self, slope: float = 1.0) -> None:
        if not slope > 0.0:  # refuses NaN as well
            raise ValueError(f"Expected a slope above 0, got {slope}.")
        self.slope = slope

    def f(self, t: ArrayLike) -> Doubles:
        """Return 1 - t up to t = 1, c (t - 1) beyond, and infinity below 0."""
        t = np.asarray(t, dtype=np.float64)
        with np.errstate(invalid="ignore"):  # an infinite slope times zero, which is not taken
            beyond = self.slope * (t - 1.0)
        return np.where(t < 0.0, np.inf, np.where(t <= 1.0, 1.0 - t, beyond))

    def conjugate(self, z: ArrayLike) -> Doubles:
        """Return -1 for z <= -1, z up to c, and infinity beyond."""
        z = np.asarray(z, dtype=np.float64)
        return np.where(z > self.slope, np.inf, np.maximum(z, -1.0))

    def penalized_conjugate(self, z: ArrayLike) -> Doubles:
        """Return max(z, -1)."""
        return np.maximum(np.asarray(z, dtype=np.float64), -1.0)

    def maximizer(self, z: ArrayLike) -> Doubles:
        """Return 0 for z <= -1, 1 up to c, and infinity beyond."""
        z = np.asarray(z, dtype=np.float64)
        return np.where(z <= -1.0, 0.0, np.where(z <= self.slope, 1.0, np.inf))

    def curvature(self, z: ArrayLike) -> Doubles:
        """Return 0: the conjugate is piecewise linear."""
        return np.zeros_like(np.asarray(z, dtype=np.float64))


def _log(x: Doubles) -> Doubles:
    """Natural logarithm, minus infinity for what is not positive; NaN stays NaN."""
    return np.log(x, out=np.where(np.isnan(x), np.nan, -np.inf), where=x > 0.0)
