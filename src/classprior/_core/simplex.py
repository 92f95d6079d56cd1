r"""Quadratic programs over the probability simplex, by a primal-dual interior-point method.

.. math:: \min_v \tfrac12 v^\top K v - v^\top q \quad
          \text{subject to} \quad v \ge 0, \; \mathbf{1}^\top v = 1

With multipliers z of the inequalities and y of the equation, a solution has :math:`Kv - q = y + z`
and :math:`v_i z_i = 0`. Each step is Mehrotra's: a predictor that aims at the solution, and a
corrector that uses what the predictor has learned. Both share one Cholesky decomposition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from classprior._core.types import Doubles

_MOST_STEPS = 100
_SHORTENED = 0.995  # share of the step to the boundary that is taken
_JITTER = 1e-13  # added to the diagonal, times its mean: K may be singular


def minimize_over_simplex(K: Doubles, q: Doubles, tolerance: float) -> Doubles:
    """Return v whose objective is at most ``tolerance`` above the minimum; K is semidefinite."""
    n = len(q)
    v = np.full(n, 1.0 / n)
    gradient = K @ v - q
    y = gradient.min()
    z = gradient - y + max(float(np.ptp(gradient)), tolerance)
    jitter = _JITTER * np.trace(K) / n
    best, gap = v, np.inf
    for _ in range(_MOST_STEPS):
        feasible = v / v.sum()
        gradient = K @ feasible - q
        # The minimum is not below that of the tangent plane, which is at a corner.
        gap_here = float(feasible @ gradient - gradient.min())
        if gap_here < gap:
            best, gap = feasible, gap_here
        if gap <= tolerance:
            break
        mu = float(v @ z) / n
        residual = K @ v - q - y - z
        try:
            system = K + np.diag(z / v + jitter)
            factor = linalg.cho_factor(system, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:  # v is as good as rounding allows
            break
        step = _NewtonStep(factor, v, z, residual)
        dv, _, dz = step(np.zeros(n))
        length = min(_to_boundary(v, dv), _to_boundary(z, dz))
        centering = (float((v + length * dv) @ (z + length * dz)) / n / mu) ** 3
        dv, dy, dz = step(centering * mu - dv * dz)
        length = min(1.0, _SHORTENED * min(_to_boundary(v, dv), _to_boundary(z, dz)))
        v, y, z = v + length * dv, y + length * dy, z + length * dz
    return best


class _NewtonStep:
    """The step from v and z to a point with a given product v z."""

    def __init__(self, factor: Any, v: Doubles, z: Doubles, residual: Doubles) -> None:
        self._factor, self._v, self._z, self._residual = factor, v, z, residual
        self._of_y = self._solved(np.ones_like(v))  # by how much v moves with y

    def __call__(self, target: Doubles) -> tuple[Doubles, float, Doubles]:
        pull = target / self._v - self._z
        dv = self._solved(pull - self._residual)
        dy = float((1.0 - self._v.sum() - dv.sum()) / self._of_y.sum())
        dv += dy * self._of_y
        return dv, dy, pull - self._z / self._v * dv

    def _solved(self, right: Doubles) -> Doubles:
        solution: Doubles = linalg.cho_solve(self._factor, right, check_finite=False)
        return solution


def _to_boundary(x: Doubles, dx: Doubles) -> float:
    """Return the longest step, up to 1, for which x stays nonnegative."""
    falls = dx < 0.0
    return float(min(1.0, np.min(-x[falls] / dx[falls], initial=np.inf)))
