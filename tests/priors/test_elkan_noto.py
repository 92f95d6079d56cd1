import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from classprior import ElkanNotoPrior
from classprior._core.bins import FOLDS, generator
from classprior.datasets import make_overlapping_uniforms
from classprior.density_ratio import LeastSquaresClassifier
from reference import phi


def estimate(*samples, **options):
    return ElkanNotoPrior(**options).fit_samples(*samples)


def test_estimate_is_the_formula(separated):
    X_positive, X_unlabeled = separated[0][:90], separated[1][:210]
    folds = np.arange(90) % 3, np.arange(210) % 3
    result = estimate(
        X_positive, X_unlabeled, classifier=LogisticRegression(), cv=folds, random_state=0
    )
    g = []
    for fold in range(3):
        X = np.vstack([X_positive[folds[0] != fold], X_unlabeled[folds[1] != fold]])
        labels = np.arange(len(X)) < np.sum(folds[0] != fold)
        model = LogisticRegression().fit(X, labels)
        g.extend(model.predict_proba(X_positive[folds[0] == fold])[:, 1])
    c = np.mean(g)
    assert_allclose(result.prior_, 90 * (1 - c) / (c * 210), rtol=1e-12)
    # c is also what the two shares of the result say
    assert_allclose(result.label_frequency_, c, rtol=1e-12)


def test_folds_of_unequal_shares_do_not_move_the_estimate():
    """A training fold with few positives teaches other odds of being labeled."""
    even, skewed = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        P = rng.normal(0, 1, (400, 2))
        U = np.vstack([rng.normal(0, 1, (300, 2)), rng.normal(5, 1, (700, 2))])
        folds = tuple(
            (rng.uniform(size=len(X)) < share).astype(int) for X, share in ((P, 0.85), (U, 0.5))
        )
        for cv, estimates in ((5, even), (folds, skewed)):
            estimates.append(
                estimate(P, U, classifier=LogisticRegression(), cv=cv, random_state=0).prior_
            )
    assert abs(np.mean(skewed) - np.mean(even)) < 0.06


@pytest.mark.parametrize(("overlap", "population"), [(0.25, 0.766), (0.75, 0.915)])
def test_over_estimates_as_worked_out(overlap, population):
    """At n = n' the population's c is (1 - overlap)/1.7 + overlap/2, so EN is (1 - c)/c."""
    c = (1.0 - overlap) / 1.7 + overlap / 2.0
    assert_allclose((1.0 - c) / c, population, atol=1e-3)
    estimates = [
        estimate(
            *make_overlapping_uniforms(
                overlap=overlap, n_positive=3000, n_unlabeled=3000, random_state=seed
            ),
            classifier=LeastSquaresClassifier(n_centers=60, random_state=0),
            random_state=0,
        ).prior_
        for seed in range(3)
    ]
    assert abs(np.mean(estimates) - population) < 0.04


def test_classifier_needs_probabilities(separated):
    with pytest.raises(TypeError, match=r"LinearSVC.*predict_proba"):
        estimate(*separated, classifier=LinearSVC())


def test_a_value_outside_is_said():
    """Positives that look unlabeled: c is small, the raw share above one."""
    rng = np.random.default_rng(0)
    X_positive, X_unlabeled = rng.normal(size=(100, 1)), np.r_[np.zeros((30, 1)), [[9.0]]]
    with pytest.warns(UserWarning, match=r"outside \[0, 1\].* 1\."):
        result = estimate(X_positive, X_unlabeled, classifier=Pessimist())
    assert result.prior_ == 1.0


class Pessimist(LogisticRegression):
    def predict_proba(self, X):
        return np.repeat([[0.9, 0.1]], len(X), axis=0)


def test_least_squares_classifier_is_the_formula():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.repeat([0, 1, 2], [60, 40, 20])
    model = LeastSquaresClassifier(sigmas=0.9, lams=0.1, n_centers=30, random_state=0).fit(X, y)
    values = phi(X, model.centers_, 0.9)
    H = values.T @ values / 120
    exact = np.column_stack(
        [np.linalg.solve(H + 0.1 * np.eye(30), values[y == c].sum(axis=0) / 120) for c in range(3)]
    )
    assert_allclose(model.coef_, exact, rtol=1e-4, atol=1e-6)
    posterior = np.maximum(values @ exact, 0.0)
    posterior /= posterior.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), posterior, rtol=1e-4, atol=1e-6)


def test_least_squares_classifier_far_from_all_centers():
    X, y = np.random.default_rng(0).normal(size=(100, 1)), np.arange(100) < 30
    model = LeastSquaresClassifier(random_state=0).fit(X, y)
    assert_allclose(model.predict_proba([[1e6]]), [[0.7, 0.3]])


@pytest.mark.parametrize(("n_centers", "expected"), [(None, 140), (3, 3), (60, 60), (110, 110)])
def test_least_squares_classifier_has_the_centers_it_was_told(n_centers, expected):
    X, y = np.random.default_rng(0).normal(size=(140, 2)), np.arange(140) < 40
    model = LeastSquaresClassifier(n_centers=n_centers, sigmas=1.0, lams=0.1).fit(X, y)
    assert len(model.centers_) == expected


def test_least_squares_classifier_cross_validates():
    """The choice is that of refitting on every fold, for every bandwidth and regularization."""
    sigmas, lams = [0.3, 0.5, 0.8, 1.2, 2.0], [1e-2, 1e-1, 3e-1, 1.0, 3.0]
    sizes, shares = (64, 16), np.array([0.8, 0.2])
    weights_matter = False
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.vstack([rng.normal(0, 1, (sizes[0], 1)), rng.normal(1.5, 1, (sizes[1], 1))])
        y = np.repeat([0, 1], sizes)
        folds = np.concatenate(
            [generator(seed, FOLDS, c).permutation(size) % 5 for c, size in enumerate(sizes)]
        )
        scores = np.zeros((2, len(sigmas), len(lams)))
        for s, sigma in enumerate(sigmas):
            values = phi(X, X, sigma)
            for fold in range(5):
                train, test = folds != fold, folds == fold
                H, H_test = (values[k].T @ values[k] / k.sum() for k in (train, test))
                for c in range(2):
                    h, h_test = (values[k & (y == c)].mean(axis=0) for k in (train, test))
                    for i, lam in enumerate(lams):
                        alpha = np.linalg.solve(H + lam * np.eye(80), h)
                        scores[c, s, i] += 0.5 * alpha @ H_test @ alpha - h_test @ alpha
        best = np.unravel_index(np.argmin(np.tensordot(shares**2, scores, 1)), scores.shape[1:])
        unsquared = np.unravel_index(np.argmin(np.tensordot(shares, scores, 1)), scores.shape[1:])
        weights_matter |= best != unsquared
        model = LeastSquaresClassifier(sigmas=sigmas, lams=lams, n_centers=None, random_state=seed)
        model.fit(X, y)
        assert (model.sigma_, model.lam_) == (sigmas[best[0]], lams[best[1]])
    assert weights_matter  # or the test would not see a wrong weight


@pytest.mark.parametrize("cv", [1, 0, 2.5, "a"])
def test_least_squares_classifier_checks_its_folds(cv):
    X, y = np.random.default_rng(0).normal(size=(40, 1)), np.arange(40) < 20
    with pytest.raises(ValueError, match=f"cv={cv!r}"):
        LeastSquaresClassifier(cv=cv).fit(X, y)
