import numpy as np
import pytest
from numpy.testing import assert_allclose

from classprior._core import gram as _gram
from classprior._core.basis import GaussianBasis
from classprior._core.cross_validation import ratio_scores
from classprior._core.gram import fold_grams, ratio_score, ridge_path
from classprior._core.moments import fold_moments
from reference import phi

RNG = np.random.default_rng(0)
X, CENTERS = RNG.normal(size=(70, 2)), RNG.normal(size=(9, 2))
FOLDS = RNG.permutation(70) % 3


def basis(sigma=0.8):
    return GaussianBasis(CENTERS, np.array([sigma]))


@pytest.mark.parametrize("block_values", [1, 100, 2**18])
def test_grams_are_those_of_brute_force(monkeypatch, block_values):
    monkeypatch.setattr(_gram, "_BLOCK_VALUES", block_values)
    sigmas = np.array([0.5, 0.8])
    grams = fold_grams(GaussianBasis(CENTERS, sigmas), X, FOLDS, 3)
    for some in ([True, False, False], [False, True, True]):
        rows = np.isin(FOLDS, np.flatnonzero(some))
        for index, sigma in enumerate(sigmas):
            values = phi(X[rows], CENTERS, sigma)
            exact = values.T @ values / len(values)
            assert_allclose(grams.mean(index, np.array(some)), exact, rtol=1e-6)


def test_ridge_path_solves_every_system():
    values = phi(X, CENTERS, 0.8)
    H, h, lams = values.T @ values / 70, values[:20].mean(axis=0), np.array([1e-4, 0.1, 3.0])
    exact = [np.linalg.solve(H + lam * np.eye(9), h) for lam in lams]
    assert_allclose(ridge_path(H, h, lams).T, exact, rtol=1e-9)
    both = ridge_path(H, np.column_stack([2.0 * h, h]), lams)
    assert_allclose(both[:, :, 0], 2.0 * both[:, :, 1], rtol=1e-12)
    assert_allclose(both[:, :, 1].T, exact, rtol=1e-9)


def test_ridge_path_of_a_singular_matrix():
    """Copies of a center make H singular, but not H + lambda I."""
    H = np.ones((4, 4))
    exact = np.linalg.solve(H + 1e-3 * np.eye(4), np.ones(4))
    assert_allclose(ridge_path(H, np.ones(4), np.array([1e-3]))[:, 0], exact, rtol=1e-9)


def test_score_is_the_formula():
    values = phi(X, CENTERS, 0.8)
    H, h, alphas = values.T @ values / 70, values.mean(axis=0), RNG.normal(size=(9, 4))
    exact = [0.5 * a @ H @ a - h @ a for a in alphas.T]
    assert_allclose(ratio_score(alphas, H, h), exact, rtol=1e-12)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_cross_validation_is_that_of_refitting(nonnegative):
    samples = X[:30], X[30:]
    folds = tuple(np.random.default_rng(0).permutation(size) % 3 for size in (30, 40))
    sigmas, lams = np.array([0.4, 1.1]), np.array([0.01, 0.5, 2.0])
    both = GaussianBasis(CENTERS, sigmas)
    (scores,) = ratio_scores(
        [fold_moments(both, samples[0], folds[0], 3)],
        fold_grams(both, samples[1], folds[1], 3),
        lams,
        nonnegative=nonnegative,
    )
    for s, sigma in enumerate(sigmas):
        for i, lam in enumerate(lams):
            exact = 0.0
            for fold in range(3):
                train, test = [], []
                for rows, ids in zip(samples, folds, strict=True):
                    train.append(phi(rows[ids != fold], CENTERS, sigma))
                    test.append(phi(rows[ids == fold], CENTERS, sigma))
                H = train[1].T @ train[1] / len(train[1])
                alpha = np.linalg.solve(H + lam * np.eye(9), train[0].mean(axis=0))
                alpha = np.maximum(alpha, 0.0) if nonnegative else alpha
                exact += 0.5 * np.mean((test[1] @ alpha) ** 2) - np.mean(test[0] @ alpha)
            assert_allclose(scores[s, i], exact, rtol=1e-5, atol=1e-7)
