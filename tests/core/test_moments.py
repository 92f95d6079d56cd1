import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from classprior._core import moments as _moments
from classprior._core.basis import GaussianBasis
from classprior._core.moments import (
    BinnedMoments,
    Moments,
    binned_sums,
    fastest_kernel,
    paired_means,
)
from reference import means, phi

N_FOLDS = 3
ACCURACY = {"numpy": 7.5e-5, "numba": 1e-5}


@pytest.fixture(params=ACCURACY)
def kernel(request):
    if request.param == "numba":
        pytest.importorskip("numba", reason="needs the extra 'fast'")
    return request.param


def binned_moments(basis, X, folds, own_center=None, weights=None, *, n_folds=N_FOLDS, **how):
    """Return moments of folds that are unions of seven bins each."""
    bins = 7 * folds + np.arange(X.shape[0]) % 7
    sums = np.zeros((7 * n_folds, len(basis.sigmas), basis.centers.shape[0]))
    binned_sums(basis, X, bins, sums, own_center=own_center, **how)
    own_bins = np.full(basis.centers.shape[0], -1)
    if own_center is not None:
        own_bins[own_center[own_center >= 0]] = bins[own_center >= 0]
    binned = BinnedMoments(sums, np.bincount(bins, minlength=7 * n_folds), own_bins)
    return binned.of_folds(np.arange(7 * n_folds) // 7, weights)


def setting(X):
    """Centers on every fourth row, a ladder around the median distance, three folds."""
    centers = X[::4]
    squared = ((X[:, None, :] - centers[None]) ** 2).sum(axis=2)
    scale = np.sqrt(np.median(squared[squared > 0]))
    basis = GaussianBasis(centers, 0.1 * scale * np.sqrt(2.0) ** np.arange(11))
    folds = np.random.default_rng(0).permutation(len(X)) % N_FOLDS
    own_center = np.full(len(X), -1)
    own_center[::4] = np.arange(len(centers))
    return basis, folds, own_center


@pytest.mark.parametrize("leave_one_out", [True, False])
def test_moments_are_those_of_brute_force(hard_rows, leave_one_out, kernel):
    basis, folds, own_center = setting(hard_rows)
    own_center = own_center if leave_one_out else None
    moments = binned_moments(basis, hard_rows, folds, own_center=own_center, kernel=kernel)
    for fold in range(N_FOLDS):
        rows = np.flatnonzero(folds == fold)
        for index, sigma in enumerate(basis.sigmas):
            exact, counts = means(hard_rows, basis.centers, sigma, rows, own_center)
            assert_allclose(moments[fold].mean[index], exact, rtol=ACCURACY[kernel], atol=1e-18)
            assert_array_equal(moments[fold].counts[0], counts)


@pytest.mark.parametrize("n_features", [30, 700], ids=["narrow", "wide"])
def test_sparse_moments_are_those_of_dense_rows(n_features):
    X = sparse.random(400, n_features, density=0.2, random_state=0).toarray()
    basis, folds, own_center = setting(X)
    dense = binned_moments(basis, X, folds, own_center=own_center)
    basis = GaussianBasis(sparse.csr_array(basis.centers), basis.sigmas)
    thin = binned_moments(basis, sparse.csr_array(X), folds, own_center=own_center)
    assert_allclose(thin.sums, dense.sums, rtol=1e-5)
    assert_array_equal(thin.counts, dense.counts)


def test_float32_rows_are_measured_in_float64(kernel):
    X = (np.random.default_rng(0).normal(size=(400, 3)) + 1e4).astype(np.float32)
    basis, folds, _ = setting(X.astype(np.float64))
    exact = binned_moments(basis, X.astype(np.float64), folds, kernel=kernel)
    basis = GaussianBasis(X[::4], basis.sigmas)
    assert_array_equal(binned_moments(basis, X, folds, kernel=kernel).sums, exact.sums)


@pytest.mark.parametrize(("tile_values", "task_rows"), [(1, 1), (1000, 50), (10**9, 10**9)])
def test_moments_do_not_depend_on_blocks(monkeypatch, tile_values, task_rows, kernel):
    X = np.random.default_rng(0).normal(size=(900, 3))
    basis, folds, own_center = setting(X)
    expected = binned_moments(basis, X, folds, own_center=own_center, kernel=kernel)
    monkeypatch.setattr(_moments, "_TILE_VALUES", tile_values)
    monkeypatch.setattr(_moments, "_TASK_ROWS", task_rows)
    result = binned_moments(basis, X, folds, own_center=own_center, kernel=kernel)
    assert_allclose(result.sums, expected.sums, rtol=1e-5)


def test_moments_do_not_depend_on_threads(kernel):
    X = np.random.default_rng(0).normal(size=(9000, 3))
    basis, _, _ = setting(X[:400])
    folds = np.arange(9000) % N_FOLDS
    one = binned_moments(basis, X, folds, n_jobs=1, kernel=kernel)
    three = binned_moments(basis, X, folds, n_jobs=3, kernel=kernel)
    assert_array_equal(one.sums, three.sums)


def test_training_moments_come_by_subtraction():
    X = np.random.default_rng(0).normal(size=(600, 3))
    basis, folds, own_center = setting(X)
    whole = binned_moments(basis, X, folds, own_center=own_center)
    # Training moments by subtraction are the moments of the other folds.
    others = binned_moments(basis, X, (folds == 0).astype(int), own_center=own_center)[0]
    training = whole.total() - whole[0]
    assert np.all(np.abs(training.sums - others.sums) <= 1e-6 * whole.total().sums)
    assert_array_equal(training.counts, others.counts)


def test_a_center_without_rows_is_out_of_play():
    empty = Moments(np.zeros((2, 1)), np.zeros((1, 1), dtype=int))
    full = Moments(np.ones((2, 1)), np.ones((1, 1), dtype=int))
    assert_array_equal(empty.mean, np.zeros((2, 1)))
    for pair in ((empty, full), (full, empty)):
        assert all(not mean.any() for mean in paired_means(*pair))
    assert all(mean.all() for mean in paired_means(full, full))


def test_weights_count_a_bin_several_times():
    X = np.random.default_rng(0).normal(size=(600, 3))
    basis, folds, own_center = setting(X)
    of_bins = np.random.default_rng(1).poisson(1.0, 7 * N_FOLDS).astype(float)
    weighted = binned_moments(basis, X, folds, own_center=own_center, weights=of_bins)
    times = of_bins[7 * folds + np.arange(600) % 7]
    values = phi(X, basis.centers, basis.sigmas[5])
    counted = np.ones_like(values)
    on_center = np.flatnonzero(own_center >= 0)
    for array in (values, counted):
        array[on_center, own_center[on_center]] = 0.0
    for fold in range(N_FOLDS):
        rows = folds == fold
        assert_allclose(weighted[fold].sums[5], times[rows] @ values[rows], rtol=1e-4)
        assert_array_equal(weighted[fold].counts[0], times[rows] @ counted[rows])


def test_rows_may_be_missing_from_bins_or_altogether(kernel):
    X = np.random.default_rng(0).normal(size=(50, 3))
    basis, _, _ = setting(X)
    part = binned_moments(basis, X, np.ones(50, dtype=int), kernel=kernel)
    assert not part[0].sums.any()
    assert_array_equal(part.counts[:, 0, 0], [0, 50, 0])
    sums = np.zeros((3, 11, 13))
    binned_sums(basis, X[:0], np.empty(0, dtype=int), sums, kernel=kernel)
    assert not sums.any()


@pytest.mark.parametrize("n_rows", [1, 4, 7, 300])
@pytest.mark.parametrize(("n_features", "n_centers"), [(1, 1), (4, 128), (5, 129), (130, 300)])
@pytest.mark.parametrize(
    "sigmas",
    [3.0 * np.sqrt(2.0) ** np.arange(-12, 11), np.array([2.0, 0.7, 1.4]), np.array([1.0])],
    ids=["two runs", "no ladder", "one"],
)
def test_sums_of_any_shape(n_rows, n_features, n_centers, sigmas, kernel):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(n_rows, n_features)), rng.normal(size=(n_centers, n_features))
    sums = np.ones((2, len(sigmas), n_centers))
    binned_sums(GaussianBasis(C, sigmas), X, np.arange(n_rows) % 2, sums, kernel=kernel)
    for index, sigma in enumerate(sigmas):
        exact = phi(X, C, sigma)
        expected = [1.0 + exact[::2].sum(axis=0), 1.0 + exact[1::2].sum(axis=0)]
        assert_allclose(sums[:, index], expected, rtol=ACCURACY[kernel])


def test_rows_beyond_the_reach_of_all_centers_add_nothing(kernel):
    C = np.random.default_rng(0).normal(size=(40, 3))
    basis = GaussianBasis(C, 0.1 * np.sqrt(2.0) ** np.arange(11))
    X = np.array([[1e140, 0.0, 0.0], [-1e140, 1e140, 0.0], [1e20, 1.0, 1.0], [500.0, 0.0, 0.0]])
    moments = binned_moments(basis, X, np.zeros(4, dtype=int), kernel=kernel)
    assert_allclose(moments.sums, 0.0, atol=1e-18)
    sigmas = np.array([1e-6, 1e6])
    far = binned_moments(GaussianBasis(C, sigmas), C, np.zeros(40, dtype=int), kernel=kernel)
    assert_allclose(far[0].sums, [np.ones(40), np.full(40, 40.0)], rtol=1e-6)


def test_numba_is_used_for_dense_rows_with_few_columns():
    pytest.importorskip("numba", reason="needs the extra 'fast'")
    X = np.random.default_rng(0).normal(size=(20, 129))
    sigmas = np.array([1.0])
    assert fastest_kernel(GaussianBasis(X[:, :128], sigmas)) == "numba"
    assert fastest_kernel(GaussianBasis(X, sigmas)) == "numpy"
    assert fastest_kernel(GaussianBasis(sparse.csr_array(X[:, :9]), sigmas)) == "numpy"


def test_numba_may_be_missing(monkeypatch):
    """Here, or only on a worker that was told to use it; mixed sums would not be reproducible."""
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "classprior._core.fused", raising=False)
    monkeypatch.delattr("classprior._core.fused", raising=False)
    X = np.random.default_rng(0).normal(size=(20, 3))
    basis = GaussianBasis(X, np.array([1.0]))
    assert fastest_kernel(basis) == "numpy"
    with pytest.raises(ImportError, match=r"classprior\[fast\]"):
        binned_sums(basis, X, np.zeros(20, dtype=int), np.zeros((1, 1, 20)), kernel="numba")


def test_variance_along_a_direction():
    """With equal bins it is the sample variance of their means over their number, exactly."""
    rng = np.random.default_rng(0)
    sums, direction = rng.random((20, 3, 7)), rng.random((3, 7))
    moments = BinnedMoments(sums, np.full(20, 5), np.full(7, -1))
    means = np.einsum("bsc,sc->bs", sums, direction) / 5
    assert_allclose(moments.variance_along(direction), means.var(axis=0, ddof=1) / 20, rtol=1e-12)
    assert_allclose(moments.variance_along(2 * direction), 4 * moments.variance_along(direction))
