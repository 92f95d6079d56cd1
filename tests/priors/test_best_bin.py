import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from classprior.priors import BestBinPrior
from classprior.priors._best_bin import best_bin


def by_enumeration(positive, unlabeled, delta, gamma):
    """Return the estimate of every threshold there is, and its upper limit."""
    rows = []
    for c in np.unique(np.r_[positive, unlabeled]):
        q_p, q_u = np.mean(positive >= c), np.mean(unlabeled >= c)
        if q_p > 0.0:
            term = np.sqrt(np.log(4.0 / delta) / 2.0 / len(unlabeled))
            term += np.sqrt(np.log(4.0 / delta) / 2.0 / len(positive))
            rows.append((q_u / q_p + (1.0 + gamma) / q_p * term, q_u / q_p))
    return min(rows)


@pytest.mark.parametrize("decimals", [0, 1, 8])
@pytest.mark.parametrize(("delta", "gamma"), [(0.1, 0.01), (0.9, 0.5), (1.0, 0.0)])
def test_estimate_is_the_best_of_all_thresholds(delta, gamma, decimals):
    """With few decimals, many scores are equal."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        positive = rng.normal(2.0, 1.0, 40).round(decimals)
        unlabeled = rng.normal(0.0, 2.0, 90).round(decimals)
        _, expected = by_enumeration(positive, unlabeled, delta, gamma)
        prior, threshold = best_bin(positive, unlabeled, delta, gamma)
        assert_allclose(prior, expected, rtol=1e-12)
        ratio = np.mean(unlabeled >= threshold) / np.mean(positive >= threshold)
        assert_allclose(prior, ratio, rtol=1e-12)


def test_only_the_order_of_scores_matters():
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.normal(1.0, 1.0, 300), rng.normal(0.0, 2.0, 800)
    prior, threshold = best_bin(positive, unlabeled, 0.1, 0.01)
    other, moved = best_bin(np.exp(3.0 * positive), np.exp(3.0 * unlabeled), 0.1, 0.01)
    assert other == prior
    assert_allclose(moved, np.exp(3.0 * threshold))
    shuffled, _ = best_bin(rng.permutation(positive), rng.permutation(unlabeled), 0.1, 0.01)
    assert shuffled == prior


def test_never_above_one():
    """Positives score lowest: every ratio but that of all rows is above one."""
    prior, _ = best_bin(np.arange(50.0), np.arange(100.0, 200.0), 0.1, 0.01)
    assert prior == 1.0


def test_recovers_the_prior_of_separated_classes():
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        U = np.vstack([rng.normal(0, 1, (600, 2)), rng.normal(6, 1, (1400, 2))])
        P = rng.normal(0, 1, (1000, 2))
        estimator = BestBinPrior(classifier=LogisticRegression(), random_state=0)
        errors.append(estimator.fit_samples(P, U).prior_ - 0.3)
    assert np.abs(errors).max() < 0.02


class OneColumn(ClassifierMixin, BaseEstimator):
    """A classifier whose scores do not depend on the rows it is fitted to."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = 1.0 / (1.0 + np.exp(-X[:, 0]))
        return np.column_stack([1.0 - p, p])


def test_fit_scores_the_rows():
    rng = np.random.default_rng(1)
    P, U = rng.normal(1.0, 1.0, (80, 1)), rng.normal(0.0, 2.0, (150, 1))
    fitted = BestBinPrior(classifier=OneColumn(), delta=0.3, gamma=0.2).fit_samples(P, U)
    _, expected = by_enumeration(P.ravel(), U.ravel(), 0.3, 0.2)
    assert_allclose(fitted.prior_, expected, rtol=1e-12)
    tails = [np.mean(fitted.threshold_ - 1e-5 <= X) for X in (U, P)]  # scores are rounded
    assert_allclose(tails[0] / tails[1], expected)


@pytest.mark.parametrize("options", [{"delta": 0.0}, {"delta": 1.5}, {"gamma": -0.1}])
def test_parameters_are_checked(options, separated):
    ((name, _),) = options.items()
    with pytest.raises(ValueError, match=name):
        BestBinPrior(**options).fit_samples(*separated)


def test_classifier_needs_probabilities(separated):
    with pytest.raises(TypeError, match=r"LinearSVC.*predict_proba"):
        BestBinPrior(classifier=LinearSVC()).fit_samples(*separated)
