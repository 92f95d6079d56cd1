"""One seed, one answer: classifiers without a seed are seeded, others are fitted once per fold."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classprior import AutoPrior, ElkanNotoPrior, PUClassifier, estimate_prior
from classprior.priors import BestBinPrior
from classprior.sensitivity import sensitivity_curve

FOREST = RandomForestClassifier(10, min_samples_leaf=5)
CLASSIFIERS = {
    "forest": FOREST,
    "pipeline": make_pipeline(StandardScaler(), FOREST),
    "vote": VotingClassifier([("a", FOREST), ("b", LogisticRegression())], voting="soft"),
}
QUICK = {"n_repeats": 1, "n_resamples": 20, "cv": 3}
ESTIMATORS = {
    "en": lambda c: ElkanNotoPrior(classifier=c),
    "bbe": lambda c: BestBinPrior(classifier=c),
    "auto": lambda c: AutoPrior(classifiers={"c": c}, **QUICK),
    "ratio": lambda c: PUClassifier(prior=0.3, ratio=c),
    "prior": lambda c: PUClassifier(prior=ElkanNotoPrior(classifier=c), ratio=LogisticRegression()),
    "both": lambda c: PUClassifier(prior=AutoPrior(classifiers={"c": c}, **QUICK)),
}


def numbers(fitted, X):
    """Return all that an estimator says: its prior and bound, and the probabilities it predicts."""
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    found = [last.prior_, getattr(last, "upper_bound_", 0.0)]
    return np.r_[found, fitted.predict_proba(X)[:, 1]] if hasattr(last, "ratio_") else found


@pytest.mark.parametrize("within", ["alone", "in a pipeline"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_seed_one_answer(name, classifier, within, labeled):
    X, y = labeled
    X, y = X[::4], y[::4]
    estimator = ESTIMATORS[name](CLASSIFIERS[classifier]).set_params(random_state=3)
    if within == "in a pipeline":
        estimator = make_pipeline(StandardScaler(), estimator)
    first, second = (numbers(clone(estimator).fit(X, y), X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    last = estimator[-1] if within == "in a pipeline" else estimator
    last.set_params(random_state=4)
    assert np.any(numbers(estimator.fit(X, y), X) != np.asarray(first))  # the seed is used


@pytest.mark.parametrize("name", ["en", "ratio"])
def test_two_samples_are_seeded_alike(name, separated):
    P, U = separated[0][::4], separated[1][::4]
    estimator = ESTIMATORS[name](FOREST).set_params(random_state=3)
    first, second = (numbers(clone(estimator).fit_samples(P, U), U) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_one_call_is_seeded(separated):
    P, U = separated[0][::4], separated[1][::4]
    evidence = AutoPrior(classifiers={"c": FOREST}, **QUICK)
    options = {"method": "en", "classifier": FOREST, "n_resamples": 3, "random_state": 0}
    options["evidence"] = evidence
    first, second = (estimate_prior(P, U, **options) for _ in range(2))
    for name in ("prior", "low", "high", "upper_bound"):
        assert getattr(first, name) == getattr(second, name)


def test_a_sensitivity_curve_is_seeded(separated):
    P, U = separated[0][::4], separated[1][::4]
    estimator = ElkanNotoPrior(classifier=FOREST)
    first, second = (
        sensitivity_curve(estimator, P, U, param_name="cv", param_range=[2, 3], random_state=0)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.priors, second.priors)


class Counting(ClassifierMixin, BaseEstimator):
    """A classifier that cannot be seeded: each fit adds ``step`` to all of its log-odds."""

    fits = 0

    def __init__(self, step=0.7):
        self.step = step

    def fit(self, X, y):
        type(self).fits += 1
        self.classes_ = np.unique(y)
        self.shift_ = self.step * type(self).fits
        return self

    def predict_proba(self, X):
        p = 1.0 / (1.0 + np.exp(0.5 * X[:, 0] - self.shift_))
        return np.column_stack([1.0 - p, p])


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.setattr(Counting, "fits", 0)
    return Counting


def test_the_bound_takes_both_samples_from_one_fit(counting, separated):
    """A shift of all scores leaves shares of tails alone; a shift of one sample does not."""
    options = {**QUICK, "random_state": 0}
    steady = AutoPrior(classifiers={"c": counting(step=0.0)}, **options).fit_samples(*separated)
    assert counting.fits == 3 + 1  # one per fold, and one for the bound
    drifting = AutoPrior(classifiers={"c": counting()}, **options).fit_samples(*separated)
    assert counting.fits == 2 * (3 + 1)
    assert drifting.upper_bound_ == steady.upper_bound_ < 0.5
    assert drifting.upper_bound_asymptotic_ == steady.upper_bound_asymptotic_


def test_the_elkan_noto_prior_fits_once_per_fold(counting, separated):
    """Against the formula, with the log-odds of the k-th fit in the k-th fold."""
    P, U = separated[0][:90], separated[1][:210]
    folds = np.arange(90) % 3, np.arange(210) % 3
    found = ElkanNotoPrior(classifier=counting(), cv=folds, random_state=0).fit_samples(P, U)
    assert counting.fits == 3
    c = np.mean(1.0 / (1.0 + np.exp(0.5 * P[:, 0] - 0.7 * (1 + folds[0]))))
    assert found.prior_ == pytest.approx(min(1.0, 90 * (1 - c) / (c * 210)), rel=1e-12)


def test_the_classifier_fits_its_ratio_once(counting, separated):
    model = PUClassifier(prior=0.3, ratio=counting(), random_state=0).fit_samples(*separated)
    assert counting.fits == 1
    g = model.ratio_.predict_proba(separated[1])[:, 1]
    expected = np.minimum(1.0, 0.3 * 1000 / 400 * g / (1 - g))
    np.testing.assert_allclose(model.predict_proba(separated[1])[:, 1], expected, rtol=1e-12)
