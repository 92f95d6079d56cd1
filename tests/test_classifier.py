import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from classprior import AutoPrior, DensityRatio, PearsonPrior, PenalizedL1Prior, PUClassifier

AUTO = AutoPrior(n_repeats=1, n_resamples=20)


def test_probability_is_prior_times_ratio(labeled):
    X, y = labeled
    model = PUClassifier(prior=0.25, ratio=DensityRatio(), random_state=0).fit(X, y)
    ratio = DensityRatio(random_state=0).fit(X, y).predict(X)
    assert_array_equal(model.predict_proba(X)[:, 1], np.minimum(1.0, 0.25 * ratio))
    assert_array_equal(model.predict(X), (0.25 * ratio >= 0.5).astype(int))
    assert_allclose(model.decision_function(X), 0.25 * ratio - 0.5)
    assert model.prior_ == 0.25


def test_finds_the_hidden_positives(labeled):
    X, y = labeled
    is_positive = X.sum(axis=1) < 4.0  # midway between the two classes
    paper = PUClassifier(prior=PenalizedL1Prior(), ratio=DensityRatio(), random_state=0)
    for model, least in ((PUClassifier(prior=AUTO, random_state=0), 0.96), (paper, 0.97)):
        model.fit(X, y)
        assert np.mean(model.predict(X) == is_positive) > least
        assert abs(model.predict(X[y == 0]).mean() - 0.3) < 0.05


def test_prior_may_come_from_any_estimator(labeled):
    X, y = labeled
    paper = PUClassifier(prior=PenalizedL1Prior(), ratio=DensityRatio(), random_state=0).fit(X, y)
    assert paper.prior_ == PenalizedL1Prior(random_state=0).fit(X, y).prior_
    prior = PearsonPrior(random_state=1)
    assert (
        PUClassifier(prior=prior, ratio=DensityRatio()).fit(X, y).prior_
        == PearsonPrior(random_state=1).fit(X, y).prior_
    )
    assert not hasattr(prior, "prior_")  # the user's estimator is left alone


def test_ratio_may_come_from_a_classifier(labeled):
    X, y = labeled
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


def test_estimators_may_be_pipelines_with_labels_of_their_own(labeled):
    X, y = labeled
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


def test_one_half_is_positive(labeled):
    class One(LogisticRegression):
        def predict_proba(self, X):
            return np.repeat([[0.5, 0.5]], len(X), axis=0)

    X, y = np.arange(20.0)[:, None], np.arange(20) < 10
    assert PUClassifier(prior=0.5, ratio=One()).fit(X, y).predict(X).all()


def test_labels_in_the_other_order(labeled):
    X, y = labeled
    names = np.array(["unlabeled", "labeled"])[y]  # the positive one sorts first
    model = PUClassifier(prior=0.3, ratio=DensityRatio(), pos_label="labeled", random_state=0)
    model.fit(X, names)
    plain = PUClassifier(prior=0.3, ratio=DensityRatio(), random_state=0).fit(X, y)
    assert_array_equal(model.classes_, ["labeled", "unlabeled"])
    assert_array_equal(model.predict_proba(X)[:, 0], plain.predict_proba(X)[:, 1])
    assert_array_equal(model.predict(X) == "labeled", plain.predict(X) == 1)
    assert_array_equal(model.decision_function(X), -plain.decision_function(X))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"prior": 1.5}, ValueError, "prior.*1.5"),
        ({"prior": "half"}, TypeError, "prior.*str"),
        ({"prior": 0.3, "ratio": LinearSVC()}, TypeError, "predict_proba.*LinearSVC"),
    ],
)
def test_bad_parameters_are_answered(labeled, parameters, error, message):
    with pytest.raises(error, match=message):
        PUClassifier(**parameters).fit(*labeled)


def test_a_ratio_that_tells_no_row_from_another_is_named():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (500, 2)), rng.normal(4, 1, (700, 2))])
    y = np.arange(1200) < 200  # 300 of the 1000 unlabeled rows are positive
    flat = PUClassifier(prior=0.3, ratio=DensityRatio(sigmas=[1e4], random_state=0))
    with pytest.warns(UserWarning, match=r"30\.0%"):
        flat.fit(X, y)
    assert not flat.predict(X).any()
    PUClassifier(prior=0.3, ratio=DensityRatio(), random_state=0).fit(X, y)  # says nothing


def test_the_default_ratio_is_the_best_classifier_of_the_prior(labeled):
    """The choice is by held-out log-loss; a constant score loses in any position."""
    X, y = labeled
    candidates = {"blind": DummyClassifier(strategy="prior"), "linear": LogisticRegression()}
    prior = AutoPrior(classifiers=candidates, n_repeats=1, n_resamples=20, random_state=0)
    model = PUClassifier(prior=prior, random_state=0).fit(X, y)
    assert isinstance(model.ratio_, LogisticRegression)
    scores = prior.fit(X, y).scores_["linear"][1]
    expected = np.minimum(1.0, model.prior_ * 1000 / 400 * np.exp(scores))
    assert_allclose(model.oof_proba_, expected, rtol=1e-12)
    assert_allclose(np.minimum(model.oof_decision_ + 0.5, 1.0), expected, rtol=1e-12)
    assert_array_equal(model.oof_rows_, np.arange(1000))


def test_rows_of_the_fit_are_judged_out_of_fold():
    """A classifier that memorizes its training rows finds no positives among them."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (600, 1)), rng.normal(8, 1, (400, 1))])
    y = np.arange(1000) < 300  # 300 of the 700 unlabeled rows are positive
    prior = AutoPrior(
        classifiers={"heart": RandomForestClassifier(20)}, n_repeats=2, n_resamples=20
    )
    model = PUClassifier(prior=prior, random_state=0).fit(X, y)
    hidden = np.arange(700) < 300
    in_sample = model.predict_proba(X[~y])[:, 1]
    assert np.mean(in_sample[hidden]) < np.mean(model.oof_proba_[hidden]) - 0.1
    assert np.mean(model.oof_proba_[~hidden]) < 0.1


def test_more_rows_than_are_used(labeled):
    X, y = labeled
    prior = AutoPrior(n_repeats=1, n_resamples=20, max_rows=200)
    model = PUClassifier(prior=prior, random_state=0).fit(X, y)
    assert len(model.oof_rows_) == len(model.oof_proba_) == 200
    assert np.all(np.diff(model.oof_rows_) > 0)
    assert model.odds_ == 1.0
    assert abs(model.predict(X[y == 0]).mean() - 0.3) < 0.08
