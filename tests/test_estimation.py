"""Estimation: from the estimate to the rows, without reading or fitting anything twice."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, Estimation, PUClassifier, Reason, TableEncoder, estimate_prior
from classprior._scores.by_column import cell_texts
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
    later = ("checked", "random_sample")  # which are for with_checked
    assert list(ours.items()) == [item for item in theirs.items() if item[0] not in later]


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
    np.testing.assert_allclose(estimation.scores(), expected.oof_decision_, rtol=1e-12)
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
    assert again.reasons([3]) == estimation.reasons([3])
    assert len(repr(estimation)) < 200


def test_weights_are_refused_before_any_work(frames):
    weights = [np.arange(1.0, 1.0 + len(frame)) for frame in frames]
    with pytest.raises(ValueError, match=r"KernelMeanPrior.*weights"):
        Estimation.of("p.csv", "u.csv", method="km2", weights=weights)


def test_scores_alone_tell_no_rows_apart():
    rng = np.random.default_rng(0)
    scores = rng.normal(2, 1, 100), np.r_[rng.normal(2, 1, 90), rng.normal(-2, 1, 210)]
    estimation = Estimation.of(*scores, random_state=0)
    assert estimation.estimate.method == "scores"
    with pytest.raises(ValueError, match="scores"):
        estimation.probabilities()


# Columns that matter, and reasons for rows --------------------------------------------------------

LINEAR = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, n_resamples=20)


@pytest.fixture(scope="module")
def explained(frames):
    return Estimation.of(*frames, evidence=LINEAR, random_state=0)


def test_each_input_column_has_an_importance(frames, explained):
    found = explained.importances()
    identifiers = {"payment_id", "customer"}  # left out
    assert {importance.column for importance in found} == set(frames[0]) - identifiers
    assert [i.increase for i in found] == sorted((i.increase for i in found), reverse=True)
    assert found[0].column == "minutes_since_last"
    assert found[0].increase > 5 * found[0].standard_error > 0


@pytest.mark.parametrize("max_rows", [150, 20_000])
def test_importances_and_reasons_are_the_same_by_every_door(frames, tmp_path, max_rows):
    paths = [tmp_path / "p.csv", tmp_path / "u.csv"]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_csv(path, index=False)
    evidence = AutoPrior(**{**LINEAR.get_params(), "max_rows": max_rows})
    how = {"evidence": evidence, "random_state": 0}
    of_frames, of_files = Estimation.of(*frames, **how), Estimation.of(*paths, **how)
    assert of_frames.importances() == of_files.importances()
    rows = [399, 7, 7, 0]
    assert of_frames.reasons(rows) == of_files.reasons(rows)
    assert of_frames.reasons(rows) == [of_frames.reasons(n=3)[row] for row in rows]


class ByHeart(ClassifierMixin, BaseEstimator):
    """Knows the labels of all values of the second column that it has seen, and nothing else."""

    def fit(self, X, y):
        self.classes_, self.known_ = np.array([False, True]), dict(zip(X[:, 1], y, strict=True))
        return self

    def predict_proba(self, X):
        p = np.array([0.98 * self.known_.get(value, 0.5) + 0.01 for value in X[:, 1]])
        return np.column_stack([1.0 - p, p])


def test_what_is_known_by_heart_is_no_reason():
    """Rows are scored by models that have seen neither them nor the values they are given."""
    X = np.random.default_rng(0).normal(size=(300, 2))
    evidence = AutoPrior(classifiers={"by heart": ByHeart()}, n_repeats=1, n_resamples=20)
    estimation = Estimation.of(X[:100], X[100:], evidence=evidence, random_state=0)
    assert [importance.increase for importance in estimation.importances()] == [0.0, 0.0]
    assert set(estimation.reasons()) == {()}


def test_importances_are_those_of_scikit_learn_in_held_out_halves():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1100, 3)), np.arange(1100) < 100
    X[y] += [2.0, 1.0, 0.0]
    estimation = Estimation.of(X[y], X[~y], evidence=LINEAR, random_state=0)
    Z = np.vstack(estimation.samples.rows)
    half = np.concatenate(estimation.samples.folds_of_rows(estimation.samples.folds(2)))
    expected, spread = [], []
    for k in (0, 1):
        model = LogisticRegression().fit(Z[half != k], y[half != k])
        model.intercept_ -= np.log(100 / 1000)  # as if both samples had the same size
        of_half = y[half == k]
        found = permutation_importance(
            model,
            Z[half == k],
            of_half,
            scoring="neg_log_loss",
            sample_weight=np.where(of_half, 1 / of_half.sum(), 1 / (~of_half).sum()),
            n_repeats=20,
            random_state=0,
        )
        expected.append(found.importances_mean)
        spread.append(found.importances_std)
    mean, noise = np.mean(expected, axis=0), np.linalg.norm(spread, axis=0) / 2
    for importance in estimation.importances():
        column = int(importance.column)
        assert importance.increase == pytest.approx(mean[column], abs=4 * noise[column])


def test_the_effects_of_a_linear_model_are_those_of_its_coefficients():
    """Either half has a model of its own, with about the same coefficients."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)) * [1.0, 10.0]
    X[:1000] += [1.0, 10.0]
    how = {"evidence": LINEAR, "random_state": 0}
    estimation = Estimation.of(X[:1000], X[1000:], **how)
    reasons = estimation.reasons([3, 4])
    Z = X[1000:] / X.std(axis=0)
    model = LogisticRegression().fit(X / X.std(axis=0), np.arange(3000) < 1000)
    expected = model.coef_[0] * (Z[[3, 4]] - Z.mean(axis=0))
    for row, found in enumerate(reasons):
        effects = {reason.column: reason.effect for reason in found}
        assert set(effects) == {str(j) for j in np.flatnonzero(expected[row] > 0)}
        for column, effect in effects.items():
            assert effect == pytest.approx(expected[row, int(column)], abs=0.25)


def test_values_are_shown_as_text(frames):
    odd = pd.DataFrame(
        {
            "amount": [np.nan, 4210.5, 4210.0, 1 / 3],
            "day": pd.to_datetime(
                ["2026-03-01", "2026-03-01 12:30", None, "2026-03-02"], format="ISO8601"
            ),
            "note": ["a\nb\0", "x" * 200, None, "ok"],
        }
    )
    texts = {name: cell_texts(odd, name, None) for name in odd}
    assert texts["amount"] == ["(missing)", "4210.5", "4210", "0.33333333"]
    assert texts["day"] == ["2026-03-01", "2026-03-01 12:30:00", "(missing)", "2026-03-02"]
    assert texts["note"][0] == "a b?"
    assert len(texts["note"][1]) == 60
    assert cell_texts(np.array([[1.0, np.nan]]), "b", ["a", "b"]) == ["(missing)"]
    assert str(Reason("amount", "4210.5", 1.84)) == "amount = 4210.5 (+1.8)"


def test_missing_values_and_levels_can_be_reasons():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=600), "kind": rng.choice(["a", "b"], 600)})
    frame.loc[:200, "kind"] = "b"
    frame.loc[:150, "x"] = np.nan
    estimation = Estimation.of(frame[:200], frame[200:], evidence=LINEAR, random_state=0)
    row = int(np.flatnonzero(frame["kind"][200:] == "b")[0])
    (reason,) = (r for r in estimation.reasons([row])[0] if r.column == "kind")
    assert reason.value == "b"
    hidden = pd.concat([frame[200:], frame[:1]], ignore_index=True)
    estimation = Estimation.of(frame[:200], hidden, evidence=LINEAR, random_state=0)
    assert [r.text for r in estimation.reasons([400], n=1)[0]] == ["x = (missing)"]


def test_importances_with_groups_weights_and_other_methods(frames):
    groups = [np.arange(len(frame)) // 2 for frame in frames]
    weights = [np.ones(120), np.repeat([0.0, 1.0, 2.0, 1.0], 100)]
    for how in (
        {"groups": (groups[0], groups[1] + 60)},
        {"weights": weights},
        {"cv": [np.arange(len(frame)) % 3 for frame in frames]},
        {"method": "subtypes"},
    ):
        estimation = Estimation.of(*frames, evidence=LINEAR, random_state=0, **how)
        assert estimation.importances()[0].column == "minutes_since_last", how
        assert len(estimation.reasons([5, 150])) == 2


def test_scores_and_sparse_rows_have_no_columns(frames):
    rng = np.random.default_rng(0)
    scores = Estimation.of(rng.normal(1, 1, 100), rng.normal(0, 1, 200), random_state=0)
    rows = [sparse.random_array((n, 5), density=0.3, rng=rng, format="csr") for n in (80, 200)]
    sparse_rows = Estimation.of(*rows, evidence=LINEAR, random_state=0)
    for estimation, fact in ((scores, "scores"), (sparse_rows, "sparse")):
        assert not estimation.has_columns
        for ask in (estimation.importances, estimation.reasons):
            with pytest.raises(ValueError, match=fact):
                ask()


@pytest.mark.parametrize(
    ("rows", "n", "error", "fact"),
    [
        ([400], 3, IndexError, "400"),
        ([-1], 3, IndexError, "-1"),
        ([0.5], 3, TypeError, "0.5"),
        ([0], 0, ValueError, "n == 0"),
    ],
)
def test_rows_that_do_not_exist(explained, rows, n, error, fact):
    with pytest.raises(error, match=fact):
        explained.reasons(rows, n)


def test_no_rows_have_no_reasons(explained):
    assert explained.reasons([]) == []


def test_rows_of_weight_zero_get_probabilities(frames):
    counts = np.arange(len(frames[1])) % 4 > 0
    weights = np.ones(len(frames[0])), np.where(counts, 2.0, 0.0)
    how = {"evidence": EVIDENCE, "random_state": 0}
    weighted = Estimation.of(*frames, weights=weights, **how)
    alone = Estimation.of(frames[0], frames[1][counts], **how)
    assert weighted.estimate.count == pytest.approx(alone.estimate.count)
    probabilities = weighted.probabilities()
    assert probabilities[counts] == pytest.approx(alone.probabilities())
    expected = alone.model.predict_proba(frames[1][~counts])[:, 1]
    assert probabilities[~counts] == pytest.approx(expected)


@pytest.mark.parametrize("as_file", [False, True])
def test_one_table_with_labels_equals_two_samples(tmp_path, as_file):
    frauds, transactions = make_transactions(n_positive=80, n_unlabeled=300, random_state=0)
    fine = transactions[:40]
    others = {"unknown": transactions[40:200], "open": transactions[200:]}
    parts = {"fraud": frauds, "fine": fine, **others}
    table = pd.concat([part.assign(status=name) for name, part in parts.items()])
    if as_file:
        table.to_csv(tmp_path / "t.csv", index=False)
        table = tmp_path / "t.csv"
    settings = {"random_state": 0, "evidence": AutoPrior(n_repeats=1, n_resamples=20)}
    told = {"label": "status", "positive": "fraud", "negative": "fine"}
    one = estimate_prior(table, **told, **settings)
    two = estimate_prior(frauds, transactions[40:], X_negative=fine, **settings)
    assert (one.prior, one.low, one.high) == (two.prior, two.low, two.high)
    assert (one.n_positive, one.n_unlabeled, one.n_negative) == (80, 260, 40)
    assert [c.name for c in one.columns] == list(frauds.columns)
    assert "'fine' in 40 rows" in one.notes[0]
    assert one.notes[1:] == two.notes


@pytest.mark.parametrize(
    ("arguments", "options", "fact"),
    [
        (1, {}, "only one table"),
        (1, {"label": "y", "positive": "b"}, "'b'.*'y'.*'a' in 2 rows"),
        (1, {"label": "z"}, "'z'"),
        (1, {"label": "x"}, "Say which value of column 'x'"),
        (2, {"label": "y"}, "single table"),
        (2, {"positive": "a"}, "'positive' needs label"),
    ],
)
def test_one_table_or_two_samples(arguments, options, fact):
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["a", "a", None]})
    with pytest.raises((TypeError, ValueError), match=fact):
        estimate_prior(*[table] * arguments, **options)


def test_a_label_is_a_column_of_a_table():
    with pytest.raises(TypeError, match="ndarray"):
        estimate_prior(np.zeros((3, 2)), label="y")
