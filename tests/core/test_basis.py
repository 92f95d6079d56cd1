import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from classprior._core.basis import (
    GaussianBasis,
    SquaredDistances,
    bandwidth_ladder,
    centers_of_samples,
)
from reference import phi


def exact_squared_distances(X, C):
    return ((X[:, None, :] - C[None, :, :]) ** 2).sum(axis=2)


def test_squared_distances_are_right_to_the_resolution(hard_rows):
    X, C = hard_rows, hard_rows[::3]
    exact = exact_squared_distances(X, C)
    resolution = 0.1 * np.sqrt(np.median(exact[exact > 0]))
    result = SquaredDistances(C, resolution)(X)
    assert_allclose(result, exact, rtol=1e-9, atol=1e-6 * resolution**2)


def test_rows_far_from_the_bulk_keep_their_small_differences():
    """Subtracting the median of the others would round 0.001 away."""
    C = np.array([[1e-3, 16777218.0], *[[16777218.0, 16777218.0]] * 4])
    X = np.array([[0.0, 16777218.0]])
    assert_allclose(SquaredDistances(C, 1e-3)(X)[0, 0], 1e-6, rtol=1e-12)


def test_a_common_shift_costs_nothing(monkeypatch):
    """Only rows far from the bulk are computed from differences."""
    X = np.random.default_rng(0).normal(size=(400, 3)) + 1e6
    monkeypatch.setattr("classprior._core.basis._from_differences", None)
    assert_allclose(SquaredDistances(X, 0.1)(X), exact_squared_distances(X, X), atol=1e-9)


def test_the_plain_formula_would_fail_that_test():
    X = np.random.default_rng(0).normal(size=(400, 3)) + 1e7
    norms = (X**2).sum(axis=1)
    plain = norms[:, None] + norms - 2.0 * X @ X.T
    assert np.abs(plain - exact_squared_distances(X, X)).max() > 0.01


@pytest.mark.parametrize("n_features", [40, 700], ids=["narrow", "wide"])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_have_the_distances_of_dense_ones(container, n_features):
    X = sparse.random(300, n_features, density=0.1, random_state=0).toarray()
    X[4] *= 1e7  # a far center, and a row beside it, which products of matrices would lose
    X[5] = X[4]
    X[5, 0] += 0.5
    C = X[::4]
    result = SquaredDistances(container(C), 0.1)(container(X))
    assert_allclose(result, exact_squared_distances(X, C), rtol=1e-9, atol=1e-10)


def test_products_are_trusted_only_where_they_are_right():
    """Rows just inside the limit beyond which differences are used."""
    resolution = 0.1
    limit = np.sqrt(1e-8 / np.finfo(float).eps) * resolution
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:50] += 0.99 * limit / np.sqrt(3.0)
    exact = exact_squared_distances(X, X)
    error = np.abs(SquaredDistances(X, resolution)(X) - exact)[exact < 100.0].max()
    assert 0.0 < error < 1e-7 * resolution**2


def test_float32_at_the_end_of_its_range():
    X = np.array([[3e38], [3.1e38], [3.2e38]], dtype=np.float32)
    exact = exact_squared_distances(X.astype(float), X.astype(float))
    assert_allclose(SquaredDistances(X, 1e36)(X), exact, rtol=1e-6, atol=1e64)


def test_differences_go_through_features_in_slices():
    X = np.random.default_rng(0).normal(size=(20, 700)) + 1e8 * (np.arange(20) > 2)[:, None]
    result = SquaredDistances(X, 0.1)(X)
    assert_allclose(result, exact_squared_distances(X, X), rtol=1e-9, atol=1e-10)


ROWS = arrays(np.float64, (5, 2), elements=st.floats(-1e9, 1e9, width=32))


@given(ROWS, ROWS, st.floats(1e-3, 1e6))
@settings(max_examples=200, deadline=None)
def test_squared_distances_of_any_rows(X, C, resolution):
    assert_allclose(
        SquaredDistances(C, resolution)(X),
        exact_squared_distances(X, C),
        rtol=1e-8,
        atol=1e-6 * resolution**2,
    )


LADDER = 0.1 * np.sqrt(2.0) ** np.arange(11)


@pytest.mark.parametrize(
    "sigmas",
    [
        LADDER,
        LADDER[::-1],
        np.r_[LADDER[3:6], 0.77, 5.0],
        np.array([0.3]),
        np.array([0.2, 0.2]),
        np.array([1.0, 1.0001 / np.sqrt(2.0)]),
    ],
    ids=["ladder", "falling", "mixed", "one", "equal", "nearly a rung"],
)
def test_phi_is_the_gaussian(sigmas):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(50, 2)), rng.normal(size=(60, 2))
    basis = GaussianBasis(C, sigmas)
    seen = []
    for index, values in basis.evaluate(X):
        exact = phi(X, C, sigmas[index])
        assert values.dtype == np.float32
        # Nine squarings of 1.4e-7; float32 ends at 1e-38, and its root at 1e-19.
        assert_allclose(values, exact, rtol=7.5e-5, atol=1e-18)
        seen.append(index)
    assert sorted(seen) == list(range(len(sigmas)))


def test_phi_is_zero_where_a_center_stands_on_the_row():
    basis = GaussianBasis(np.zeros((2, 1)), LADDER)
    for _, values in basis.evaluate(np.zeros((3, 1)), own_center=np.array([1, -1, 0])):
        assert_array_equal(values, [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_exact_phi(container):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(50, 2)), rng.normal(size=(60, 2))
    own = np.where(np.arange(50) < 3, np.arange(50), -1)
    values = GaussianBasis(container(C), np.array([0.3])).exact(container(X), own)
    assert_array_equal(values[np.arange(3), np.arange(3)], 0.0)
    values[np.arange(3), np.arange(3)] = phi(X, C, 0.3)[np.arange(3), np.arange(3)]
    # A rounding of the squared distance, 4 eps, over 2 sigma^2 = 0.18.
    assert_allclose(values, phi(X, C, 0.3), rtol=1e-12, atol=1e-18)
    assert GaussianBasis(C, np.array([0.3])).exact(C).max() == 1.0


@given(
    n_positive=st.integers(1, 40),
    n_unlabeled=st.integers(1, 40),
    n_centers=st.none() | st.integers(2, 100),
)
def test_centers_come_from_both_samples(n_positive, n_unlabeled, n_centers):
    shares = centers_of_samples(n_positive, n_unlabeled, n_centers)
    total = n_positive + n_unlabeled
    assert sum(shares) == min(n_centers or total, total)
    assert 0 < shares[0] <= n_positive
    assert 0 < shares[1] <= n_unlabeled
    fewest, most = sorted(shares)
    # Half from each, unless one sample has given all it has.
    assert most - fewest <= 1 or fewest in (n_positive, n_unlabeled)


def test_ladder_spans_the_median_distance():
    X = np.random.default_rng(0).normal(size=(300, 3))
    sigmas = bandwidth_ladder(X, X[::2])
    distances = np.sqrt(exact_squared_distances(X, X[::2]))
    median = np.median(distances[distances > 0])
    assert_allclose(sigmas, 0.1 * median * np.sqrt(2.0) ** np.arange(11), rtol=1e-9)
    assert_allclose(sigmas[-1] / median, 3.2, rtol=1e-9)


def test_ladder_follows_the_scale_and_ignores_the_place():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    sigmas = bandwidth_ladder(X, X[:900])
    assert_allclose(bandwidth_ladder(X + 1e6, X[:900] + 1e6), sigmas, rtol=1e-8)
    assert_allclose(bandwidth_ladder(1e-9 * X, 1e-9 * X[:900]), 1e-9 * sigmas, rtol=1e-8)


def test_ladder_of_two_far_clusters_is_not_lost_in_rounding():
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[:90] += 1e9
    distances = np.sqrt(exact_squared_distances(X, X))
    median = np.median(distances[distances > 0])
    assert median < 10  # most pairs are within a cluster
    assert_allclose(bandwidth_ladder(X, X)[0], 0.1 * median, rtol=1e-6)


def test_sparse_ladder_is_the_dense_one_far_from_the_origin():
    X = sparse.random(300, 700, density=0.1, random_state=0).toarray()
    shifted = np.column_stack([X, np.full(300, 1e9)])
    expected = bandwidth_ladder(X, X[:150])
    shifted_sparse = sparse.csr_array(shifted)
    assert_allclose(bandwidth_ladder(shifted_sparse, shifted_sparse[:150]), expected)


def test_ladder_of_mostly_equal_rows_uses_the_others():
    X = np.r_[np.zeros((290, 1)), np.arange(1.0, 11.0)[:, None]]
    distances = np.sqrt(exact_squared_distances(X, X))
    assert_allclose(bandwidth_ladder(X, X)[0], 0.1 * np.median(distances[distances > 0]))


def test_phi_is_zero_or_a_normal_number(hard_rows):
    """A product with subnormal numbers takes ten times as long."""
    distances = np.sqrt(exact_squared_distances(hard_rows, hard_rows[::4]))
    sigmas = 0.02 * np.median(distances[distances > 0]) * np.sqrt(2.0) ** np.arange(15)
    basis = GaussianBasis(hard_rows[::4], sigmas)
    for index, values in basis.evaluate(hard_rows):
        assert np.all((values == 0.0) | (values >= np.finfo(np.float32).tiny))
        exact = phi(hard_rows, hard_rows[::4], sigmas[index])
        assert_allclose(values, exact, rtol=7.5e-5, atol=2e-18)
