import daqp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from classprior._core import finite_slope as _finite_slope
from classprior._core.finite_slope import FiniteSlopeL1
from reference import phi


def problem(seed, n_rows=60, n_centers=30, sigma=0.5, n_features=1):
    """Return phi on unlabeled rows, and its means a and b over positives and unlabeled rows."""
    rng = np.random.default_rng(seed)
    positive = rng.normal(0, 1, (n_rows, n_features))
    unlabeled = np.vstack([positive[: n_rows // 3], rng.normal(1, 1, (n_rows, n_features))])
    centers = np.vstack([positive[: n_centers // 2], unlabeled[-n_centers // 2 :]])
    phi_u = phi(unlabeled, centers, sigma)
    return phi_u, phi(positive, centers, sigma).mean(axis=0), phi_u.mean(axis=0)


def objective(alpha, gamma):
    return 0.5 * alpha @ alpha - gamma @ alpha


def oracle(phi_u, gamma, slope):
    """Solve the same quadratic program by a library, with its tolerances tightened."""
    n_rows, n = phi_u.shape
    upper = np.r_[np.full(n, 1e30), np.full(n_rows, 1.0 + slope)]
    lower = np.r_[np.zeros(n), np.full(n_rows, -1e30)]
    sense = np.zeros(n + n_rows, dtype=np.int32)
    alpha, _, flag, _ = daqp.solve(np.eye(n), -gamma, phi_u, upper, lower, sense, primal_tol=1e-11)
    assert flag == 1
    return alpha


@settings(deadline=None, max_examples=60)
@example(seed=0, slope=1.0, sigma=0.05, scale=481.0, theta=1.0, n_features=3)  # a tiny step
@given(
    seed=st.integers(0, 10**6),
    slope=st.floats(0.05, 20.0),
    sigma=st.sampled_from([0.05, 0.5, 3.0]),
    scale=st.floats(0.1, 1e4),
    theta=st.floats(0.0, 1.0),
    n_features=st.integers(1, 3),
)
def test_optimality_conditions(seed, slope, sigma, scale, theta, n_features):
    phi_u, a, b = problem(seed, sigma=sigma, n_features=n_features)
    gamma = scale * (theta * a - b)
    found = FiniteSlopeL1(phi_u, slope).project(gamma)
    nu = np.zeros(len(phi_u))
    nu[found.rows] = found.multipliers
    assert np.all(found.alpha >= 0.0)
    assert np.all(nu >= 0.0)
    assert np.all(phi_u @ found.alpha <= (1.0 + slope) * (1.0 + 1e-9))
    # Alpha is a difference of two numbers that may be large: rounding is relative to them.
    rounding = 1e-13 * (np.abs(gamma).max() + nu.sum())
    assert_allclose(found.alpha, np.maximum(0.0, gamma - phi_u.T @ nu), rtol=0.0, atol=rounding)
    assert_allclose(phi_u[found.rows] @ found.alpha, 1.0 + slope, rtol=1e-9)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("slope", [0.2, 1.0, 8.0])
def test_agrees_with_a_library(sigma, slope):
    phi_u, a, b = problem(1, sigma=sigma)
    active = 0
    for theta in (0.3, 0.7, 1.0):
        gamma = 300.0 * (theta * a - b)
        alpha = FiniteSlopeL1(phi_u, slope).project(gamma).alpha
        exact = objective(oracle(phi_u, gamma, slope), gamma)
        assert_allclose(objective(alpha, gamma), exact, rtol=1e-8, atol=1e-12)
        active += np.max(phi_u @ alpha) > 0.999 * (1.0 + slope)
    assert active or slope == 8.0  # the limits matter, or this would test the closed form


def test_path_is_the_solution_at_every_point():
    phi_u, a, b = problem(2)
    gammas = 500.0 * (np.linspace(0.0, 1.0, 21)[:, None] * a - b)
    feasible = FiniteSlopeL1(phi_u, 1.0)
    cold = np.stack([feasible.project(gamma).alpha for gamma in gammas])
    assert_allclose(feasible.path(gammas), cold, rtol=1e-6, atol=1e-8 * cold.max())
    assert cold.max() > 0.0


def test_a_slope_that_never_binds_is_the_closed_form():
    phi_u, a, b = problem(3)
    gamma = 10.0 * (a - b)
    slope = 2.0 * np.max(phi_u @ np.maximum(0.0, gamma))
    alpha = FiniteSlopeL1(phi_u, slope).project(gamma).alpha
    assert np.array_equal(alpha, np.maximum(0.0, gamma))


def test_copies_of_rows_do_not_stop_it():
    phi_u, a, b = problem(4)
    gamma = 300.0 * (a - b)
    once = FiniteSlopeL1(phi_u, 1.0).project(gamma).alpha
    assert_allclose(FiniteSlopeL1(np.repeat(phi_u, 3, axis=0), 1.0).project(gamma).alpha, once)


@pytest.mark.parametrize("limit", [1, 2])
def test_an_unsolved_problem_is_an_error(monkeypatch, limit):
    monkeypatch.setattr(_finite_slope, "_MOST_STEPS", limit)
    phi_u, a, b = problem(5)
    with pytest.raises(ArithmeticError, match=r"\de[+-]\d\d.*1 \+ slope.*lams"):
        FiniteSlopeL1(phi_u, 0.2).project(1e4 * (a - b))
