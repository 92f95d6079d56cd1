import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit, logit
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from classprior import AutoPrior, DensityRatio, PearsonPrior, PenalizedL1Prior, PUClassifier
from classprior._scores.calibration import calibrate

AUTO = AutoPrior(n_repeats=1, n_resamples=20)


def test_probability_is_prior_times_ratio(labeled):
    X, y = labeled
    model = PUClassifier(prior=0.25, ratio=DensityRatio(), random_state=0).fit(X, y)
    ratio = DensityRatio(random_state=0).fit(X, y).predict(X)
    assert_allclose(model.predict_proba(X)[:, 1], np.minimum(1.0, 0.25 * ratio), atol=1e-15)
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


@pytest.mark.parametrize("share", [0.05, 0.5, 0.8])
def test_probabilities_are_calibrated_where_classes_overlap(share):
    """Compared with the true posterior of two normal classes, for old and for new rows."""
    rng = np.random.default_rng(0)
    hidden = rng.uniform(size=4000) < share
    X = np.vstack([rng.normal(2, 1, (400, 1)), rng.normal(np.where(hidden, 2, 0), 1)[:, None]])
    prior = hidden[:2000].mean()
    evidence = AutoPrior(classifiers={"linear": LogisticRegression()}, n_resamples=20)
    samples = np.arange(2400) < 400
    model = PUClassifier(prior=evidence, random_state=0).fit(X[:2400], samples)
    with_truth = PUClassifier(prior=prior, random_state=0).fit(X[:2400], samples)
    posterior = expit(2 * X[:, 0] - 2 + logit(prior))  # log of the ratio of two normal densities
    for p, rows in (
        (with_truth.oof_proba_, slice(400, 2400)),
        (with_truth.predict_proba(X[2400:])[:, 1], slice(2400, None)),
    ):
        y = hidden[rows.start - 400 : rows.stop and rows.stop - 400]
        assert log_loss(y, p) < 1.1 * log_loss(y, posterior[rows]) + 0.02
        assert abs(p.mean() - prior) < 0.02
    assert_allclose(model.oof_proba_.mean(), model.prior_)
    for p in (model.oof_proba_, model.predict_proba(1e6 * X)[:, 1]):
        assert p.min() > 0.0
        assert p.max() < 1.0 - 0.9 * (1.0 - model.prior_) / 401.0


def test_the_default_calibrates_the_mean_score(labeled):
    X, y = labeled
    candidates = {"blind": DummyClassifier(strategy="prior"), "linear": LogisticRegression()}
    prior = AutoPrior(classifiers=candidates, n_repeats=1, n_resamples=20, random_state=0)
    model = PUClassifier(prior=prior, random_state=0).fit(X, y)
    assert list(model.classifiers_) == ["blind", "linear"]
    assert model.ratio_ is None
    scores = prior.fit(X, y).mean_scores_
    calibration = calibrate(scores, prior.prior_)
    assert_array_equal(model.oof_decision_, calibration.decision(scores[1]))
    assert_array_equal(model.oof_proba_, calibration.probability(model.oof_decision_))
    assert_array_equal(model.oof_rows_, np.arange(1000))
    linear = LogisticRegression().fit(X, y).decision_function(X)
    blind = logit(400 / 1400)
    assert_allclose(model.decision_function(X), calibration.decision((linear + blind) / 2))


def test_weights_are_used_in_the_calibration(labeled):
    X, y = labeled
    w = np.random.default_rng(0).choice([0.0, 1.0, 5.0], len(y))
    model = PUClassifier(prior=AUTO, random_state=0).fit(X, y, sample_weight=w)
    used = w[y == 0][model.oof_rows_]
    assert (used > 0).all()
    assert_allclose(np.average(model.oof_proba_, weights=used), model.prior_)
    assert abs(np.mean(model.oof_proba_) - model.prior_) > 1e-4
    of_positives = w[y == 1].sum() ** 2 / (w[y == 1] ** 2).sum()
    assert_allclose(model.calibration_.pseudo_share, 1 / (of_positives + 1))


def test_sparse_rows_are_calibrated_alike(labeled):
    X, y = labeled
    linear = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, n_resamples=20)
    dense = PUClassifier(prior=linear, random_state=0).fit(X, y)
    thin = PUClassifier(prior=linear, random_state=0).fit(sparse.csr_array(X), y)
    assert_allclose(thin.oof_proba_, dense.oof_proba_, atol=1e-4)
    assert_allclose(thin.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("ratio", [None, LogisticRegression(), DensityRatio(sigmas=[1e4])])
def test_advice_is_not_what_was_just_done(ratio):
    """Classes that overlap everywhere: no row is more likely positive than not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2)), np.arange(600) < 200
    with pytest.warns(UserWarning, match="No unlabeled row.*20\\.0%") as record:
        PUClassifier(prior=0.2, ratio=ratio, random_state=0).fit(X, y)
    advice = str(record[-1].message)
    assert ("rank" in advice) == (ratio is None)
    assert ("a classifier as ratio" in advice) == isinstance(ratio, DensityRatio)


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
    assert_allclose(model.oof_proba_.mean(), model.prior_)
    assert abs(model.predict(X[y == 0]).mean() - 0.3) < 0.08
