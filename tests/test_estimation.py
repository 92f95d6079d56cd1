"""Estimation: from the estimate to the rows, without reading or fitting anything twice."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, Estimation, PUClassifier, TableEncoder, estimate_prior
from classprior.datasets import make_transactions
from classprior.saving import load_model


class Counted(LogisticRegression):
    """Counts how often it is fitted."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        Counted.n_fits += 1
        return super().fit(X, y, sample_weight)


EVIDENCE = AutoPrior(classifiers={"linear": Counted()}, n_repeats=1, n_resamples=20)


@pytest.fixture(scope="module")
def frames():
    return make_transactions(n_positive=120, n_unlabeled=400, random_state=0)


def test_the_parameters_and_defaults_are_those_of_estimate_prior():
    ours, theirs = (inspect.signature(f).parameters for f in (Estimation.of, estimate_prior))
    assert list(ours.items()) == list(theirs.items())


def test_the_estimate_is_that_of_estimate_prior(frames):
    how = {"evidence": EVIDENCE, "random_state": 3, "confidence": 0.9}
    estimation = Estimation.of(*frames, **how)
    assert estimation.estimate.to_dict() == estimate_prior(*frames, **how).to_dict()
    assert estimation.samples.sizes == (120, 400)


def test_the_rows_cost_one_more_fit(frames):
    """Five folds and the half for the bound; then the classifier of all rows, once."""
    Counted.n_fits = 0
    estimation = Estimation.of(*frames, evidence=EVIDENCE, random_state=0)
    assert Counted.n_fits == 6
    estimation.probabilities()
    estimation.model.predict_proba(frames[1])
    estimation.probabilities()
    assert Counted.n_fits == 7


def test_files_are_opened_once(frames, tmp_path, monkeypatch):
    import classprior._files.reading as reading

    opened = []
    monkeypatch.setattr(
        "classprior._samples.inputs.open_files",
        lambda files, *how: opened.append(files.label) or reading.open_files(files, *how),
    )
    paths = [tmp_path / "p.csv", tmp_path / "u.csv"]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_csv(path, index=False)
    estimation = Estimation.of(*paths, evidence=EVIDENCE, random_state=0)
    assert estimation.probabilities().shape == (400,)
    assert len(opened) == 2


def test_probabilities_are_those_of_the_classifier(frames):
    evidence = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)
    estimation = Estimation.of(*frames, evidence=evidence, random_state=0)
    rows = TableEncoder().fit_tables(frames)
    expected = PUClassifier(prior=evidence, random_state=0).fit_samples(*rows)
    np.testing.assert_allclose(estimation.probabilities(), expected.oof_proba_, rtol=1e-12)
    assert estimation.model[-1].prior_ == estimation.estimate.prior == expected.prior_


def test_rows_beyond_those_that_were_fitted(frames):
    """They are scored by the model of all fitted rows, the others out-of-fold."""
    linear = {"linear": LogisticRegression()}
    evidence = AutoPrior(classifiers=linear, n_repeats=1, n_resamples=20, max_rows=100)
    estimation = Estimation.of(*frames, evidence=evidence, random_state=0)
    found, classifier = estimation.probabilities(), estimation.model[-1]
    drawn = classifier.oof_rows_
    assert len(drawn) == 100
    expected = estimation.model.predict_proba(frames[1])[:, 1]
    others = np.setdiff1d(np.arange(400), drawn)
    np.testing.assert_allclose(found[others], expected[others], rtol=1e-9)
    np.testing.assert_array_equal(found[drawn], classifier.oof_proba_)
    assert np.any(found[drawn] != expected[drawn])


def test_a_saved_model_has_the_estimate_and_its_warnings(frames, tmp_path):
    few = frames[0][:20]
    evidence = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)
    estimation = Estimation.of(few, frames[1], evidence=evidence, random_state=0)
    estimation.save_model(tmp_path / "fitted.model")
    saved = load_model(tmp_path / "fitted.model")
    assert saved.warnings == tuple(map(str, estimation.estimate.warnings)) != ()
    np.testing.assert_allclose(
        saved.model.predict_proba(frames[1]), estimation.model.predict_proba(frames[1]), rtol=1e-9
    )


def test_it_can_be_pickled_and_printed_and_nobody_can_spoil_it(frames):
    evidence = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)
    estimation = Estimation.of(*frames, evidence=evidence, random_state=0)
    found = estimation.probabilities()
    expected = found.copy()
    found *= 100.0
    np.testing.assert_array_equal(estimation.probabilities(), expected)
    again = pickle.loads(pickle.dumps(estimation))
    np.testing.assert_array_equal(again.probabilities(), expected)
    assert len(repr(estimation)) < 200


def test_weights_are_refused_before_any_work(frames):
    weights = [np.arange(1.0, 1.0 + len(frame)) for frame in frames]
    with pytest.raises(ValueError, match=r"KernelMeanPrior.*weights"):
        Estimation.of(None, None, method="km2", weights=weights)


def test_scores_alone_tell_no_rows_apart():
    rng = np.random.default_rng(0)
    scores = rng.normal(2, 1, 100), np.r_[rng.normal(2, 1, 90), rng.normal(-2, 1, 210)]
    estimation = Estimation.of(*scores, random_state=0)
    assert estimation.estimate.method == "scores"
    with pytest.raises(ValueError, match="scores"):
        estimation.probabilities()
