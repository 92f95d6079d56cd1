import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from classprior import DensityRatio, PearsonPrior, PenalizedL1Prior, PUClassifier


def test_probability_is_prior_times_ratio(labelled):
    X, y = labelled
    model = PUClassifier(prior=0.25, random_state=0).fit(X, y)
    ratio = DensityRatio(random_state=0).fit(X, y).predict(X)
    assert_array_equal(model.predict_proba(X)[:, 1], np.minimum(1.0, 0.25 * ratio))
    assert_array_equal(model.predict(X), (0.25 * ratio >= 0.5).astype(int))
    assert_allclose(model.decision_function(X), 0.25 * ratio - 0.5)
    assert model.prior_ == 0.25


def test_finds_the_hidden_positives(labelled):
    X, y = labelled
    model = PUClassifier(random_state=0).fit(X, y)
    is_positive = X.sum(axis=1) < 4.0  # midway between the two classes
    assert np.mean(model.predict(X) == is_positive) > 0.97
    assert abs(model.predict(X[y == 0]).mean() - 0.3) < 0.05


def test_prior_may_come_from_any_estimator(labelled):
    X, y = labelled
    default = PUClassifier(random_state=0).fit(X, y)
    assert default.prior_ == PenalizedL1Prior(random_state=0).fit(X, y).prior_
    prior = PearsonPrior(random_state=1)
    assert (
        PUClassifier(prior=prior).fit(X, y).prior_ == PearsonPrior(random_state=1).fit(X, y).prior_
    )
    assert not hasattr(prior, "prior_")  # the user's estimator is left alone


def test_ratio_may_come_from_a_classifier(labelled):
    X, y = labelled
    model = PUClassifier(prior=0.3, ratio=LogisticRegression()).fit(X, y)
    g = LogisticRegression().fit(X, y).predict_proba(X)[:, 1]
    assert_allclose(model.predict_proba(X)[:, 1], np.minimum(1.0, 0.3 * 1000 / 400 * g / (1 - g)))


def test_a_certain_classifier_gives_one():
    class Certain(LogisticRegression):
        def predict_proba(self, X):
            return np.repeat([[0.0, 1.0]], len(X), axis=0)

    X, y = np.arange(500.0)[:, None], np.arange(500) < 5
    model = PUClassifier(prior=0.3, ratio=Certain()).fit(X, y)
    assert_array_equal(model.predict_proba(X)[:, 1], 1.0)
    assert np.isfinite(model.decision_function(X)).all()


def test_estimators_may_be_pipelines_with_labels_of_their_own(labelled):
    X, y = labelled
    names = np.array(["unlabeled", "labeled"])[y]
    model = PUClassifier(
        prior=make_pipeline(StandardScaler(), PearsonPrior(pos_label="labeled", random_state=0)),
        ratio=make_pipeline(StandardScaler(), DensityRatio(random_state=0)),
        pos_label="labeled",
    ).fit(X, names)
    scaled = StandardScaler().fit_transform(X)
    assert model.prior_ == PearsonPrior(random_state=0).fit(scaled, y).prior_
    ratio = DensityRatio(random_state=0).fit(scaled, y).predict(scaled)
    assert_allclose(model.predict_proba(X)[:, 0], np.minimum(1.0, model.prior_ * ratio))


def test_one_half_is_positive(labelled):
    class One(LogisticRegression):
        def predict_proba(self, X):
            return np.repeat([[0.5, 0.5]], len(X), axis=0)

    X, y = np.arange(20.0)[:, None], np.arange(20) < 10
    assert PUClassifier(prior=0.5, ratio=One()).fit(X, y).predict(X).all()


def test_labels_in_the_other_order(labelled):
    X, y = labelled
    names = np.array(["unlabeled", "labeled"])[y]  # the positive one sorts first
    model = PUClassifier(prior=0.3, pos_label="labeled", random_state=0).fit(X, names)
    plain = PUClassifier(prior=0.3, random_state=0).fit(X, y)
    assert_array_equal(model.classes_, ["labeled", "unlabeled"])
    assert_array_equal(model.predict_proba(X)[:, 0], plain.predict_proba(X)[:, 1])
    assert_array_equal(model.predict(X) == "labeled", plain.predict(X) == 1)
    assert_array_equal(model.decision_function(X), -plain.decision_function(X))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"prior": 1.5}, ValueError, "prior between 0 and 1, got 1.5"),
        ({"prior": "half"}, TypeError, "a number or a prior estimator, got a str"),
        ({"ratio": LinearSVC()}, TypeError, "with predict_proba as ratio, got a LinearSVC"),
    ],
)
def test_bad_parameters_are_answered(labelled, parameters, error, message):
    with pytest.raises(error, match=message):
        PUClassifier(**parameters).fit(*labelled)


def test_a_ratio_that_tells_no_row_from_another_is_named():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (500, 2)), rng.normal(4, 1, (700, 2))])
    y = np.arange(1200) < 200  # 300 of the 1000 unlabeled rows are positive
    flat = PUClassifier(prior=0.3, ratio=DensityRatio(sigmas=[1e4], random_state=0))
    with pytest.warns(UserWarning, match=r"No unlabeled row is called .* although 30\.0% are"):
        flat.fit(X, y)
    assert not flat.predict(X).any()
    PUClassifier(prior=0.3, random_state=0).fit(X, y)  # says nothing
