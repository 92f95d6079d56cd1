r"""The inner problem of the L1 distance with a finite slope c: a quadratic program.

.. math:: \min_{\alpha \ge 0} \frac{\lambda}{2} \|\alpha\|^2 - \alpha^\top\beta
          \quad \text{subject to} \quad \Phi\alpha \le 1 + c

with one row of :math:`\Phi` per unlabeled row (du Plessis, Niu and Sugiyama, 2017, equation (11)).
The solution is the projection of :math:`\gamma = \beta / \lambda` onto the feasible set. Few
constraints are active, and given their multipliers :math:`\nu \ge 0` the solution has a closed
form, :math:`\alpha = \max(0, \gamma - \Phi^\top\nu)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lapack

from classprior._core.types import Doubles, Ints

# Relative deviation from 1 + c allowed for an active row. A row violates its constraint if it
# exceeds 1 + c by more than ten times this.
_TOLERANCE = 1e-10
_RIDGE = 1e-15  # relative to the trace, since rows with equal phi make the Newton system singular
_SMALLEST = 1e-100  # keeps the step finite if no coefficient is positive
_MOST_STEPS = 10_000


@dataclass(frozen=True, eq=False)
class Projection:
    """A solution alpha, with the active rows and their positive multipliers nu."""

    alpha: Doubles
    rows: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    multipliers: Doubles = field(default_factory=lambda: np.empty(0))


class FiniteSlopeL1:
    r"""Projections onto the feasible set :math:`\alpha \ge 0, \Phi\alpha \le 1 + c`."""

    def __init__(self, phi: Doubles, slope: float) -> None:
        self._phi = phi
        self._limit = 1.0 + slope

    def path(self, gammas: Doubles) -> Doubles:
        """Project each row of gammas, starting from the projection of the previous row."""
        alphas = np.empty_like(gammas)
        solution = Projection(alphas[0])
        for i, gamma in enumerate(gammas):
            solution = self.project(gamma, solution)
            alphas[i] = solution.alpha
        return alphas

    def project(self, gamma: Doubles, start: Projection | None = None) -> Projection:
        """Project gamma onto the feasible set by a dual active-set method."""
        # Solve for the multipliers of the active rows and add the row with the largest violation,
        # until no row violates its constraint.
        solution = start or Projection(gamma)
        for _ in range(_MOST_STEPS):
            solution = self._solve_active(gamma, solution)
            values = self._phi @ solution.alpha
            worst = int(np.argmax(values))
            if values[worst] <= self._limit * (1.0 + 10.0 * _TOLERANCE):
                return solution
            if worst in solution.rows:
                break
            solution = Projection(
                solution.alpha,
                np.append(solution.rows, worst),
                np.append(solution.multipliers, 0.0),
            )
        raise _not_solved(float(values[worst] / self._limit - 1.0))

    def _solve_active(self, gamma: Doubles, start: Projection) -> Projection:
        r"""Solve subject to the constraints of the active rows, dropping inactive ones.

        Minimizes the dual :math:`\frac12\|\max(0, \gamma - \Phi^\top\nu)\|^2 + (1 + c)
        \sum_j \nu_j`, a piecewise quadratic, over :math:`\nu \ge 0` by Newton steps with an exact
        line search. A step ends where a multiplier would become negative.
        """
        rows, nu = start.rows, start.multipliers
        phi = self._phi[rows]
        for _ in range(_MOST_STEPS):
            slack = gamma - nu @ phi
            alpha = np.maximum(0.0, slack)
            gradient = self._limit - phi @ alpha
            if np.all(np.abs(gradient) <= self._limit * _TOLERANCE):
                return Projection(alpha, rows, nu)
            step = _newton_step(phi[:, alpha > 0.0], gradient)
            shrinking = step < 0.0
            room = np.full(len(nu), np.inf)
            with np.errstate(over="ignore"):  # tiny steps have unlimited room
                room[shrinking] = -nu[shrinking] / step[shrinking]
            first = int(np.argmin(room))
            length = _line_search(slack, step @ phi, self._limit * step.sum(), room[first])
            nu = nu + length * step
            if length >= room[first]:
                nu[first] = 0.0
                # A row that was just added also has a zero multiplier; keep it if it grows.
                kept = (nu > 0.0) | (step >= 0.0)
                rows, nu, phi = rows[kept], nu[kept], phi[kept]
        raise _not_solved(float(np.abs(gradient).max() / self._limit))


def _newton_step(phi: Doubles, gradient: Doubles) -> Doubles:
    hessian = phi @ phi.T
    hessian.flat[:: len(hessian) + 1] += _RIDGE * np.trace(hessian) + _SMALLEST
    _, step, failed = lapack.dposv(hessian, -gradient)
    if failed:
        raise _not_solved(float(np.abs(gradient).max()))
    return step


def _line_search(slack: Doubles, fall: Doubles, rise: float, furthest: float) -> float:
    r"""Return the t in [0, furthest] that minimizes :math:`\frac12\|\max(0, s - tq)\|^2 + tr`.

    Its derivative :math:`r - q^\top\max(0, s - tq)` is nondecreasing and piecewise linear.
    """

    def derivative(t: float) -> float:
        return float(rise - fall @ np.maximum(0.0, slack - t * fall))

    low, high = 0.0, min(furthest, 1.0)
    while derivative(high) < 0.0:
        if high >= furthest:
            return furthest
        low, high = high, min(furthest, 2.0 * high)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        knots = slack / fall
    knots = np.sort(knots[(knots > low) & (knots < high)])
    knots = np.concatenate([[low], knots, [high]])
    # Bisect the sorted knots for the sign change; between two knots the derivative is linear.
    left, right = 0, len(knots) - 1
    while right - left > 1:
        middle = (left + right) // 2
        left, right = (middle, right) if derivative(knots[middle]) < 0.0 else (left, middle)
    below, above = derivative(knots[left]), derivative(knots[right])
    if above <= below:
        return float(knots[right])
    share = min(1.0, max(0.0, -below / (above - below)))
    return float(knots[left] + share * (knots[right] - knots[left]))


def _not_solved(residual: float) -> ArithmeticError:
    return ArithmeticError(
        "The quadratic program of the L1 distance did not converge: the residual of its "
        f"optimality conditions is {residual:.1e}, relative to 1 + slope. Try larger lams or fewer "
        "centers."
    )
