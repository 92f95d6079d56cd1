import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from classprior._core.simplex import minimize_over_simplex


def gaussian_gram(seed, n, n_columns, width):
    X = np.random.default_rng(seed).normal(size=(n, n_columns))
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2.0 * width**2))


@pytest.mark.parametrize("width", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("lam", [1.01, 1.5, 30.0])
def test_minimum_is_that_of_another_solver(width, lam):
    """SLSQP, from the center of the simplex; the kernel is nearly singular for wide Gaussians."""
    n = 30
    K = gaussian_gram(0, n, 2, width)
    q = K @ np.repeat([(1.0 - lam) / 12, lam / 18], [12, 18])

    def objective(v):
        return 0.5 * v @ K @ v - v @ q

    v = minimize_over_simplex(K, q, 1e-12)
    other = minimize(
        objective,
        np.full(n, 1.0 / n),
        jac=lambda v: K @ v - q,
        bounds=[(0.0, 1.0)] * n,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1.0, "jac": lambda _: np.ones(n)},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert_allclose(objective(v), other.fun, rtol=1e-8)
    assert objective(v) <= other.fun + 1e-12 * max(1.0, abs(other.fun))
    assert v.min() >= 0.0
    assert_allclose(v.sum(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_projection_on_the_simplex_has_a_closed_form(n):
    """With K = I, v is (q - t)+ with the t that makes it sum to one."""
    q = np.random.default_rng(n).normal(size=n)
    ordered = np.sort(q)[::-1]
    shifts = (np.cumsum(ordered) - 1.0) / np.arange(1, n + 1)
    t = shifts[np.flatnonzero(ordered > shifts)[-1]]
    v = minimize_over_simplex(np.eye(n), q, 1e-14)
    assert_allclose(v, np.maximum(0.0, q - t), atol=1e-6)


def test_a_point_of_the_simplex_is_found():
    K = gaussian_gram(1, 40, 3, 1.0)
    u = np.random.default_rng(1).dirichlet(np.ones(40))
    v = minimize_over_simplex(K, K @ u, 1e-14)
    assert (u - v) @ K @ (u - v) < 1e-13


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_gap_is_below_the_tolerance(scale):
    """The certificate: the minimum over the simplex of the tangent plane is at a corner."""
    K = scale * gaussian_gram(2, 300, 5, 2.0)
    q = K @ np.repeat([-0.01, 0.04], [200, 100]) / 2.0
    v = minimize_over_simplex(K, q, 1e-10 * scale)
    gradient = K @ v - q
    assert v @ gradient - gradient.min() <= 1e-10 * scale
