from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

from classprior.divergences import L1, KullbackLeibler, Pearson

DIVERGENCES = [KullbackLeibler(), Pearson(), L1(), L1(0.3), L1(7.0)]
DOMAINS = {"KullbackLeibler": (1e-9, 1e4), "Pearson": (-50.0, 50.0), "L1": (0.0, 50.0)}
each = pytest.mark.parametrize(
    "divergence", DIVERGENCES, ids=["kl", "pearson", "l1", "l1-0.3", "l1-7"]
)
Z = st.floats(-20.0, 20.0)


def supremum(divergence, z, low, high):
    """Return the largest tz - f(t) over an interval, by search from many starting points."""
    candidates = [low, 1.0, high]
    edges = np.unique(np.r_[low, np.geomspace(max(low, 1e-9), high, 40), 0.0, 1.0, high])
    edges = edges[(edges >= low) & (edges <= high)]
    for start, stop in pairwise(edges):
        found = minimize_scalar(
            lambda t: divergence.f(t) - t * z, bounds=(start, stop), options={"xatol": 1e-10}
        )
        candidates.append(found.x)
    candidates = np.array(candidates)
    return np.max(candidates * z - divergence.f(candidates))


@each
@pytest.mark.parametrize("z", [-15.0, -3.0, -1.0, -0.4, -0.01, 0.0, 0.2, 0.3, 1.0, 2.5])
def test_conjugate_is_the_supremum(divergence, z):
    low, high = DOMAINS[type(divergence).__name__]
    conjugate = divergence.conjugate(z)
    if np.isfinite(conjugate):
        assert_allclose(supremum(divergence, z, low, high), conjugate, rtol=1e-6, atol=1e-8)
    else:  # the supremum grows with the interval, without end
        assert supremum(divergence, z, low, high) > supremum(divergence, z, low, high / 10.0)


@each
@pytest.mark.parametrize("z", [-15.0, -3.0, -1.0, -0.4, 0.0, 0.2, 2.5, 15.0])
def test_penalized_conjugate_is_the_supremum_over_the_unit_interval(divergence, z):
    low = max(0.0, DOMAINS[type(divergence).__name__][0])
    assert_allclose(
        supremum(divergence, z, low, 1.0),
        divergence.penalized_conjugate(z),
        rtol=1e-6,
        atol=1e-7,
    )


@each
@given(t=st.floats(1e-6, 20.0), z=Z)
def test_fenchel_young(divergence, t, z):
    """Fenchel: f(t) + f*(z) >= tz for all t and z, with equality at the maximizer."""
    assert divergence.f(t) + divergence.conjugate(z) >= t * z - 1e-9
    if t <= 1.0:
        assert divergence.f(t) + divergence.penalized_conjugate(z) >= t * z - 1e-9


@each
@given(z=Z)
def test_fenchel_young_is_an_equality_at_the_maximizer(divergence, z):
    t = divergence.penalized_maximizer(z)
    assert 0.0 <= t <= 1.0
    assume(t > 0.0 or np.isfinite(divergence.f(t)))
    assert_allclose(
        divergence.f(t) + divergence.penalized_conjugate(z), t * z, rtol=1e-12, atol=1e-12
    )
    t = divergence.maximizer(z)
    if np.isfinite(t):
        assert_allclose(divergence.f(t) + divergence.conjugate(z), t * z, rtol=1e-12, atol=1e-12)


@each
@given(z=Z)
def test_the_penalty_can_only_lower_the_conjugate(divergence, z):
    assert divergence.penalized_conjugate(z) <= divergence.conjugate(z) + 1e-12


@each
def test_a_divergence_is_zero_at_one_and_convex(divergence):
    assert divergence.f(1.0) == 0.0
    t = np.linspace(0.01, 5.0, 500)
    assert np.all(np.diff(divergence.f(t), 2) >= -1e-12)


def test_an_infinite_slope_is_the_penalized_distance():
    z, t = np.linspace(-3.0, 30.0, 100), np.array([-0.1, 0.0, 0.5, 1.0, 1.1])
    assert_array_equal(L1(np.inf).conjugate(z), L1(1.0).penalized_conjugate(z))
    assert_array_equal(L1(np.inf).f(t), [np.inf, 1.0, 0.5, 0.0, np.inf])
    assert_array_equal(L1(1e3).conjugate(z), L1(np.inf).conjugate(z))


def test_the_paper_tables_the_ordinary_distance():
    t = np.linspace(0.0, 5.0, 50)
    assert_allclose(L1().f(t), np.abs(t - 1.0), atol=1e-15)


@pytest.mark.parametrize("slope", [0.0, -1.0, np.nan])
def test_slope_must_be_positive(slope):
    with pytest.raises(ValueError, match=rf"slope.* {slope}"):
        L1(slope)


@each
@given(z=Z)
def test_curvature_is_the_derivative_of_the_maximizer(divergence, z):
    step = 1e-6
    for maximizer, curvature in (
        (divergence.maximizer, divergence.curvature),
        (divergence.penalized_maximizer, divergence.penalized_curvature),
    ):
        low, high = maximizer(z - step), maximizer(z + step)
        left, right = curvature(z - step), curvature(z + step)
        # No derivative at a kink, and none outside the domain.
        if np.isfinite(high) and (left == 0.0) == (right == 0.0) and abs(z) > 0.01:
            if isinstance(divergence, L1) and low != high:
                continue
            assert_allclose(curvature(z), (high - low) / (2.0 * step), rtol=1e-3, atol=1e-8)
