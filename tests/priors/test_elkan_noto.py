import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from classprior import ElkanNotoPrior, elkan_noto_prior
from classprior._least_squares_classifier import LeastSquaresClassifier
from classprior.datasets import make_overlapping_uniforms
from reference import phi


def test_estimate_is_the_formula(separated):
    X_positive, X_unlabeled = separated[0][:90], separated[1][:200]
    folds = np.arange(90) % 3, np.arange(200) % 3
    result = elkan_noto_prior(
        X_positive, X_unlabeled, classifier=LogisticRegression(), cv=folds, random_state=0
    )
    g = []
    for fold in range(3):
        X = np.vstack([X_positive[folds[0] != fold], X_unlabeled[folds[1] != fold]])
        labels = np.arange(len(X)) < np.sum(folds[0] != fold)
        model = LogisticRegression().fit(X, labels)
        g.extend(model.predict_proba(X_positive[folds[0] == fold])[:, 1])
    c = np.mean(g)
    assert_allclose(result.prior, 90 * (1 - c) / (c * 200), rtol=1e-12)
    # c is also what the two shares of the result say
    assert_allclose(result.label_frequency, c, rtol=1e-12)


@pytest.mark.parametrize(("overlap", "population"), [(0.25, 0.757), (0.75, 0.903)])
def test_over_estimates_like_pe(overlap, population):
    """With the true p(s=1|x), EN and PE have the same population value."""
    estimates = [
        elkan_noto_prior(
            *make_overlapping_uniforms(
                overlap=overlap, n_positive=2000, n_unlabeled=2000, random_state=seed
            ),
            classifier=LeastSquaresClassifier(n_centers=60, random_state=0),
            random_state=0,
        ).prior
        for seed in range(3)
    ]
    assert abs(np.mean(estimates) - population) < 0.05
    assert np.min(estimates) > 0.72


def test_function_and_estimator_agree(separated, labelled):
    options = {"classifier": LogisticRegression(), "random_state": 0}
    result = elkan_noto_prior(*separated, **options)
    assert ElkanNotoPrior(**options).fit(*labelled).prior_ == result.prior


def test_classifier_needs_probabilities(separated):
    with pytest.raises(TypeError, match=r"with predict_proba, got a LinearSVC.*Calibrated"):
        elkan_noto_prior(*separated, classifier=LinearSVC())


def test_a_value_outside_is_said():
    """Positives that look unlabeled: c is small, the raw share above one."""
    rng = np.random.default_rng(0)
    X_positive, X_unlabeled = rng.normal(size=(100, 1)), np.r_[np.zeros((30, 1)), [[9.0]]]
    with pytest.warns(UserWarning, match=r"outside \[0, 1\]: taking 1"):
        result = elkan_noto_prior(X_positive, X_unlabeled, classifier=Pessimist())
    assert result.prior == 1.0


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


def test_least_squares_classifier_far_from_all_centres():
    X, y = np.random.default_rng(0).normal(size=(100, 1)), np.arange(100) < 30
    model = LeastSquaresClassifier(random_state=0).fit(X, y)
    assert_allclose(model.predict_proba([[1e6]]), [[0.7, 0.3]])
