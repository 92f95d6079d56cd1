import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar, nnls

from classprior._core.solvers import (
    PenalizedL1Path,
    _first_theta,
    closed_form,
    hinge_products,
)
from reference import objective

UNIT = st.floats(0.0, 1.0).map(lambda x: 0.0 if x < 1e-6 else x)
MEANS = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*(arrays(np.float64, n, elements=UNIT) for _ in range(2)))
)
LAM = st.floats(1e-3, 10.0)


def random_means(seed=0, n=200):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=n) ** 2, rng.uniform(size=n)


def test_closed_form_solves_the_quadratic_program():
    beta = np.random.default_rng(0).normal(size=30)
    lam = 0.37
    alpha = closed_form(beta, lam)
    # min lam/2 |alpha|^2 - alpha'beta = min |sqrt(lam) alpha - beta / sqrt(lam)|^2, alpha >= 0
    oracle, _ = nnls(np.sqrt(lam) * np.eye(30), beta / np.sqrt(lam))
    assert_allclose(alpha, oracle, rtol=1e-12, atol=1e-14)


@given(MEANS, LAM, arrays(np.float64, 5, elements=UNIT))
@settings(max_examples=300, deadline=None)
def test_path_has_the_value_of_the_formula(means, lam, thetas):
    a, b = means
    exact = [objective(theta, a, b, lam) for theta in thetas]
    assert_allclose(PenalizedL1Path(a, b, lam).value(thetas), exact, rtol=1e-12, atol=1e-13 / lam)


@given(MEANS, LAM, UNIT)
@settings(max_examples=300, deadline=None)
def test_path_has_the_slope_of_the_formula(means, lam, theta):
    a, b = means
    exact = 2.0 * np.sum(np.maximum(0.0, theta * a - b) * a) / lam - 1.0
    assert_allclose(PenalizedL1Path(a, b, lam).slope(theta), exact, rtol=1e-12, atol=1e-13 / lam)


@given(MEANS, LAM)
@settings(max_examples=300, deadline=None)
def test_slope_rises_from_minus_one(means, lam):
    a, b = means
    path = PenalizedL1Path(a, b, lam)
    slopes = path.slope(np.linspace(0.0, 1.0, 50))
    assert slopes[0] == -1.0
    assert np.all(np.diff(slopes) >= -1e-12 / lam)


@given(MEANS, LAM)
@settings(max_examples=300, deadline=None)
def test_minimizer_is_optimal(means, lam):
    a, b = means
    path = PenalizedL1Path(a, b, lam)
    best = path.minimizer()
    assert 0.0 <= best <= 1.0
    if best < 1.0:
        assert abs(path.slope(best)) <= 1e-11 / lam
    else:
        assert path.slope(1.0) <= 1e-11 / lam


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_minimizer_agrees_with_a_numeric_search(seed, lam):
    a, b = random_means(seed)
    search = minimize_scalar(
        lambda theta: objective(theta, a, b, lam), bounds=(0, 1), options={"xatol": 1e-10}
    )
    best = PenalizedL1Path(a, b, lam).minimizer()
    assert objective(best, a, b, lam) <= search.fun + 1e-14
    assert_allclose(best, search.x, atol=1e-6)


def test_minimizer_is_one_where_nothing_stands_in_the_way():
    assert PenalizedL1Path(np.zeros(3), np.ones(3), 1.0).minimizer() == 1.0
    assert PenalizedL1Path(np.array([0.1]), np.array([0.5]), 1.0).minimizer() == 1.0


def test_products_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    a, b, a_held, b_held = rng.uniform(size=(4, 3, 50)) ** 2
    a[0, :5] = b[0, :5] = 0.0  # centers that nothing is near
    thetas = np.sort(rng.uniform(size=40))
    exact = [
        [
            sum(
                max(0.0, theta * a[s, i] - b[s, i]) * (theta * a_held[s, i] - b_held[s, i])
                for i in range(50)
            )
            for theta in thetas
        ]
        for s in range(3)
    ]
    assert_allclose(hinge_products(thetas, a, b, a_held, b_held), exact, rtol=1e-12, atol=1e-14)


def test_products_agree_with_the_path():
    a, b = random_means()
    thetas = np.linspace(0.0, 1.0, 1001)
    fit = hinge_products(thetas, a[None], b[None], a[None], b[None])[0]
    path = PenalizedL1Path(a, b, 0.2)
    assert_allclose(fit / 0.2 - thetas + 1.0, path.value(thetas), rtol=1e-12)


@given(
    n_thetas=st.integers(1, 60),
    knots=arrays(float, 40, elements=st.floats(0.0, 2.0)),
    places=arrays(int, 40, elements=st.integers(0, 59)),
)
def test_the_first_theta_beyond_a_knot_is_that_of_a_search(n_thetas, knots, places):
    """On even and uneven grids, with knots at the thetas, right before and right behind them."""
    even = np.linspace(0.1, 1.0, n_thetas)
    for thetas in (even, even**2):
        at = thetas[places % n_thetas]
        for values in (knots, at, np.nextafter(at, 2.0), np.nextafter(at, 0.0), at * np.inf):
            assert_array_equal(_first_theta(thetas, values), np.searchsorted(thetas, values))
