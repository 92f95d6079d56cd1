import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from classprior import (
    AutoPrior,
    DensityRatio,
    DivergencePrior,
    ElkanNotoPrior,
    PearsonPrior,
    PenalizedL1Prior,
    PUClassifier,
    ScottBlanchardPrior,
)
from classprior.engines import _estimators, fit_blocks
from classprior.engines._sources import as_blocks

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.mark.parametrize("kind", [PearsonPrior, DensityRatio])
def test_least_squares_fits_are_those_of_memory(kind, samples):
    """With all positives, or rows, as centres and given folds there is nothing left to draw."""
    X_positive, X_unlabeled = samples[0][:60], samples[1][:140]
    estimator = kind(sigmas=[0.7, 1.4], n_centers=200, cv=4, random_state=0)
    fitted = fit_blocks(estimator, X_positive, X_unlabeled)
    roles = _estimators.Roles(_estimators.seed_of(0))
    folds = [roles.folds(s, 0, n, 4) for s, n in enumerate((60, 140))]
    X, y = np.vstack([X_positive, X_unlabeled]), np.repeat([1, 0], [60, 140])
    expected = kind(sigmas=[0.7, 1.4], n_centers=200, cv=np.concatenate(folds)).fit(X, y)
    assert_array_equal(fitted.sigma_, expected.sigma_)
    assert_array_equal(fitted.lam_, expected.lam_)
    assert_allclose(fitted.coef_, expected.coef_, rtol=1e-4, atol=1e-5)
    assert vars(fitted).keys() == vars(expected).keys()


def test_fitted_attributes_are_those_of_fit(samples):
    frames = [pd.DataFrame(X, columns=list("abc")) for X in samples]
    fitted = fit_blocks(PenalizedL1Prior(n_centers=50), *frames, columns=["b", "c"])
    y = np.repeat([1, 0], [600, 1500])
    expected = PenalizedL1Prior(n_centers=50).fit(pd.concat(frames)[["b", "c"]], y)
    assert vars(fitted).keys() == vars(expected).keys()
    assert_array_equal(fitted.feature_names_in_, ["b", "c"])
    assert_array_equal(fitted.classes_, expected.classes_)
    assert fitted.centers_.shape == (50, 2)


def test_steps_before_the_last_see_a_sample_of_all_rows(samples):
    scales = [1.0, 100.0, 0.01]
    frames = [pd.DataFrame(X * scales + 5.0, columns=list("abc")) for X in samples]
    pipeline = make_pipeline(StandardScaler(), PenalizedL1Prior(n_centers=80, random_state=0))
    fitted = fit_blocks(pipeline, *frames)
    both = pd.concat(frames)
    assert_allclose(fitted[0].mean_, both.mean(), rtol=1e-9)  # all rows: they are few
    assert fitted[-1].n_features_in_ == 3
    alone = fit_blocks(
        PenalizedL1Prior(n_centers=80, random_state=0),
        *((frame - fitted[0].mean_) / fitted[0].scale_ for frame in frames),
    )
    assert_allclose(fitted[-1].objective_, alone.objective_, rtol=1e-6, atol=1e-6)


def test_a_pipeline_that_ends_in_a_classifier(samples):
    scaled = [X * [1.0, 100.0, 0.01] for X in samples]
    pipeline = fit_blocks(make_pipeline(StandardScaler(), PUClassifier(random_state=0)), *scaled)
    new = np.array([[0.0, 0.0, 0.0], [2.5, 2.5, 2.5]]) * [1.0, 100.0, 0.01]
    assert_array_equal(pipeline.predict(new), [1, 0])


def test_intervals_cover_and_shrink(samples):
    fitted = fit_blocks(PenalizedL1Prior(n_centers=60, random_state=0), *samples, confidence=0.95)
    assert fitted.low_ < fitted.prior_ < fitted.high_
    assert 0.02 < fitted.high_ - fitted.low_ < 0.2
    rng = np.random.default_rng(0)
    ten_times = rng.normal(size=(6000, 3)), rng.normal(size=(15_000, 3))
    ten_times[1][rng.random(15_000) > 0.3] += 2.5
    more = fit_blocks(PenalizedL1Prior(n_centers=60, random_state=0), *ten_times, confidence=0.95)
    assert more.high_ - more.low_ < 0.6 * (fitted.high_ - fitted.low_)


def test_resampling_by_weights_is_resampling_of_rows(samples):
    """Rows that are there as often as their weights say give the estimate of that resample."""
    estimator = PenalizedL1Prior(sigmas=0.8, lams=0.1, n_centers=40, random_state=0)
    fit_blocks(estimator, *samples)
    blocks = [as_blocks(X, name) for X, name in zip(samples, "pu", strict=True)]
    fit = _estimators.FitInBlocks(tuple(blocks))
    in_blocks = fit._samples(estimator, n_resamples=2)
    estimator._match(in_blocks)
    roles = _estimators.Roles(_estimators.seed_of(0))
    resample = _estimators.Resample(in_blocks, 2)
    for sample, X in enumerate(samples):
        times = roles.weights(sample, 0, len(X), 2)[1].astype(int)
        repeated = np.repeat(X, times, axis=0)
        moments = resample.moments(sample, None, None)
        away = np.sum((repeated[:, None] - in_blocks.centers[None]) ** 2, axis=2)
        phi = np.exp(-away / (2 * 0.8**2)) * (away > 0)  # a centre leaves its own copies out
        assert_array_equal(moments.counts[0, 0], np.sum(away > 0, axis=0))
        assert_allclose(moments.sums[0, 0], phi.sum(axis=0), rtol=1e-5)


def test_auto_takes_a_sample_and_says_so(samples, monkeypatch):
    monkeypatch.setattr(_estimators, "SUBSAMPLE_ROWS", 500)
    estimator = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, random_state=0)
    with pytest.warns(UserWarning, match="500 of the 600 known .* 500 of the 1,500 unlabeled rows"):
        fit_blocks(estimator, *samples)
    assert abs(estimator.prior_ - 0.3) < 0.1
    positives = 600 + 1500 * estimator.prior_
    assert estimator.label_frequency_ == pytest.approx(600 / positives)
    narrower = estimator.high_realised_ - estimator.low_realised_
    assert narrower < estimator.high_ - estimator.low_


def test_the_classifier(samples):
    model = fit_blocks(PUClassifier(random_state=0), *samples)
    assert abs(model.prior_ - 0.3) < 0.1
    assert_array_equal(model.predict([[0.0, 0.0, 0.0], [2.5, 2.5, 2.5]]), [1, 0])
    given = fit_blocks(PUClassifier(prior=0.25, random_state=0), *samples)
    assert given.prior_ == 0.25
    assert_array_equal(given.ratio_.coef_, model.ratio_.coef_)
    with pytest.raises(TypeError, match=r"Expected a DensityRatio as ratio, .* LogisticRegression"):
        fit_blocks(PUClassifier(prior=0.25, ratio=LogisticRegression()), *samples)
    with pytest.raises(ValueError, match="Expected prior between 0 and 1, got 3"):
        fit_blocks(PUClassifier(prior=3), *samples)
    with pytest.raises(TypeError, match="got a ElkanNotoPrior, which needs all rows"):
        fit_blocks(PUClassifier(prior=ElkanNotoPrior()), *samples)


def test_a_classifier_of_named_columns_predicts_without_warning(samples):
    """Its ratio sees arrays, as in memory; warnings are errors here."""
    frames = [pd.DataFrame(X, columns=list("abc")) for X in samples]
    model = fit_blocks(PUClassifier(prior=0.3, random_state=0), *frames)
    new = pd.DataFrame([[0.0, 0.0, 0.0], [2.5, 2.5, 2.5]], columns=list("abc"))
    assert_array_equal(model.predict(new), [1, 0])
    assert_array_equal(model.feature_names_in_, list("abc"))


@pytest.mark.parametrize("sparse_one", [0, 1])
def test_a_dense_and_a_sparse_sample(samples, sparse_one):
    expected = fit_blocks(PenalizedL1Prior(n_centers=40, random_state=0), *samples).prior_
    mixed = list(samples)
    mixed[sparse_one] = sparse.coo_matrix(mixed[sparse_one])
    fitted = fit_blocks(PenalizedL1Prior(n_centers=40, random_state=0), *mixed)
    assert fitted.prior_ == pytest.approx(expected, abs=2e-3)
    linear = {"linear": LogisticRegression()}
    auto = AutoPrior(classifiers=linear, n_repeats=1, n_resamples=20, random_state=0)
    expected = fit_blocks(auto, *samples).prior_
    assert fit_blocks(auto, *mixed).prior_ == pytest.approx(expected, abs=1e-6)
    pipeline = make_pipeline(MaxAbsScaler(), PenalizedL1Prior(n_centers=40, random_state=0))
    scaled = [X / np.abs(np.vstack(samples)).max(axis=0) for X in samples]
    expected = fit_blocks(PenalizedL1Prior(n_centers=40, random_state=0), *scaled).prior_
    assert fit_blocks(pipeline, *mixed)[-1].prior_ == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize(
    "estimator", [DivergencePrior(), ElkanNotoPrior(), ScottBlanchardPrior(), LogisticRegression()]
)
def test_who_needs_all_rows_is_refused_by_name(estimator, samples):
    with pytest.raises(TypeError, match=rf"got a {type(estimator).__name__}, .* PenalizedL1Prior"):
        fit_blocks(estimator, *samples)


@pytest.mark.parametrize(
    ("options", "settings", "message"),
    [
        ({"n_centers": None}, {}, "Expected n_centers to be a number, got None"),
        ({"cv": np.zeros(2100)}, {}, "Expected cv as a number of folds, .* got a ndarray"),
        ({"pos_label": "yes"}, {}, "Expected no pos_label, .* got 'yes'"),
        ({}, {"confidence": 2.0}, "Expected confidence from"),
        (
            {},
            {"checkpoint": "file"},
            "Expected a number as random_state of PenalizedL1Prior with a checkpoint, got None",
        ),
        (
            {"random_state": np.random.RandomState(0)},
            {"checkpoint": "file"},
            "Expected a number as random_state .* got a RandomState",
        ),
        ({"random_state": 0}, {"checkpoint": "no/such/file"}, "no/such: no such folder"),
    ],
)
def test_settings_that_blocks_cannot_have(samples, options, settings, message):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=message):
        fit_blocks(PenalizedL1Prior(**options), *samples, **settings)


def test_intervals_are_for_penl1_only(samples):
    with pytest.raises(TypeError, match="Expected a PenalizedL1Prior for an interval"):
        fit_blocks(PearsonPrior(), *samples, confidence=0.9)


def test_samples_must_have_the_same_columns(samples):
    with pytest.raises(ValueError, match="got 3 columns and 2 columns"):
        fit_blocks(PenalizedL1Prior(), samples[0], samples[1][:, :2])
    frames = (
        pd.DataFrame(X, columns=list(c)) for X, c in zip(samples, ("abc", "abd"), strict=True)
    )
    with pytest.raises(ValueError, match=r"3 columns \('a', 'b', 'c'\) and .* 'd'\)"):
        fit_blocks(PenalizedL1Prior(), *frames)
    with pytest.raises(ValueError, match="Expected rows in X_positive, got none"):
        fit_blocks(PenalizedL1Prior(), samples[0][:0], samples[1])


def test_a_progress_bar_counts_rows(samples, capsys):
    fit_blocks(PenalizedL1Prior(n_centers=20, random_state=0), *samples, verbose=1)
    shown = capsys.readouterr().err
    assert "Sums over unlabeled rows" in shown
    assert "rows/s" in shown
