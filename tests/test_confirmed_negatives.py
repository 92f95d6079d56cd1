"""Confirmed negatives: left out, counted, and a check of the estimate, by every door."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from classprior import AutoPrior, Estimation, PUClassifier, estimate_prior
from cli.conftest import EVIDENCE

LABELS = ["fraud", "unknown", "ok"]


@pytest.fixture(scope="module")
def rows():
    """Two columns on which the classes overlap: positives, unlabeled rows and negatives."""
    rng = np.random.default_rng(0)
    positive, hidden = rng.normal(1.0, 1.0, (300, 2)), rng.normal(1.0, 1.0, (300, 2))
    negative = rng.normal(size=(1300, 2))
    return positive, np.vstack([hidden, negative[:900]]), negative[900:]


def quick(positive, unlabeled, negative, **options):
    options = {"evidence": EVIDENCE, "random_state": 0, **options}
    return estimate_prior(positive, unlabeled, X_negative=negative, **options)


def is_warned(estimate):
    return any("onfirmed negatives score like positives" in text for text in estimate.warnings)


def test_they_are_counted_and_change_no_estimate(rows):
    positive, unlabeled, negative = rows
    without = quick(positive, unlabeled, None)
    found = quick(positive, unlabeled, negative)
    assert (found.n_negative, without.n_negative) == (400, 0)
    assert found.to_dict()["n_negative"] == 400
    for name in ("prior", "low", "high", "upper_bound", "label_frequency", "n_unlabeled"):
        assert getattr(found, name) == getattr(without, name)
    assert np.isclose(found.prior_pooled, (300 + 1200 * found.prior) / 1900)
    assert any("Confirmed negatives (400)" in note for note in found.notes)


@pytest.mark.parametrize("method", ["auto", "scores", "pe"])
def test_they_check_the_estimate(rows, method):
    """Rows that look like positives, but are negative, speak against the estimate."""
    positive, unlabeled, negative = rows
    if method == "scores":
        positive, unlabeled, negative = (part.sum(axis=1) for part in rows)
    options = {} if method == "scores" else {"method": method, "evidence": EVIDENCE}
    found = quick(positive, unlabeled, negative[:1], **{"evidence": None, **options})
    assert not is_warned(found)
    chosen = positive[:200]  # negatives that look like positives
    assert is_warned(quick(positive, unlabeled, chosen, **{"evidence": None, **options}))


def test_every_kind_of_rows(rows, tmp_path):
    """Arrays, frames, sparse rows and files give the same check."""
    expected = quick(*rows)
    frames = [pd.DataFrame(part, columns=["a", "b"]) for part in rows]
    scores = expected.evidence.kind_scores_
    paths = [tmp_path / f"{name}.csv" for name in LABELS]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_csv(path, index=False)
    frames[2] = frames[2][["b", "a"]].assign(other=1.0)  # matched by name
    for kinds in (frames, paths):
        found = quick(*kinds).evidence.kind_scores_
        for part, values in zip(found, scores, strict=True):
            np.testing.assert_allclose(part, values)
    assert quick(*map(sparse.csr_array, rows)).n_negative == 400


def test_fit_leaves_them_out(rows):
    X, y = np.vstack(rows), np.repeat(LABELS, list(map(len, rows)))
    order = np.random.default_rng(0).permutation(len(y))
    estimator = AutoPrior(**EVIDENCE.get_params()).set_params(neg_label="ok", random_state=0)
    fitted = estimator.fit(X[order], y[order])
    is_kept = y[order] != "ok"
    expected = AutoPrior(**EVIDENCE.get_params()).set_params(random_state=0)
    expected.fit(X[order][is_kept], y[order][is_kept])
    assert fitted.prior_ == expected.prior_
    # The classifiers of the bound are fitted to three of five folds.
    assert list(map(len, fitted.kind_scores_)) == [120, 480, 400]
    assert (fitted.n_negative_, expected.n_negative_, expected.kind_scores_) == (400, 0, None)
    assert list(fitted.classes_) == ["fraud", "unknown"]


def test_arrays_beside_the_rows_are_split_alike(rows):
    """Weights, groups and folds have a value for each row, also for the negatives."""
    X, y = np.vstack(rows), np.repeat([1, 0, -1], list(map(len, rows)))
    rng = np.random.default_rng(1)
    beside = {"sample_weight": rng.uniform(1, 2, len(y)), "groups": np.arange(len(y)) // 2}
    estimator = AutoPrior(**EVIDENCE.get_params()).set_params(random_state=0, neg_label=-1)
    fitted = estimator.fit(X, y, **beside)
    kept = y >= 0
    expected = AutoPrior(**EVIDENCE.get_params()).set_params(random_state=0)
    expected.fit(X[kept], y[kept], **{name: values[kept] for name, values in beside.items()})
    assert fitted.prior_ == expected.prior_
    w = beside["sample_weight"]
    positives = w[y == 1].sum() + fitted.prior_ * w[y == 0].sum()
    assert np.isclose(fitted.prior_pooled_, positives / w.sum())


def test_classifier(rows):
    X, y = np.vstack(rows), np.repeat(LABELS, list(map(len, rows)))
    model = PUClassifier(prior=0.25, neg_label="ok", random_state=0).fit(X, y)
    assert len(model.oof_proba_) == 1200
    assert set(model.predict(X)) == {"fraud", "unknown"}
    estimation = Estimation.of(*rows[:2], X_negative=rows[2], evidence=EVIDENCE, random_state=0)
    assert estimation.probabilities().shape == (1200,)


@pytest.mark.parametrize(
    ("labels", "parameters", "fact"),
    [
        (LABELS, {}, "neg_label"),
        (LABELS, {"neg_label": "ok", "pos_label": "ok"}, "'ok'"),
        (LABELS, {"neg_label": ["ok"]}, r"\['ok'\]"),
        (["fraud", "ok", "ok"], {"neg_label": "ok"}, "1 class: 'fraud'"),
    ],
)
def test_labels_that_do_not_fit(rows, labels, parameters, fact):
    X, y = np.vstack(rows), np.repeat(labels, list(map(len, rows)))
    with pytest.raises(ValueError, match=fact):
        AutoPrior(**parameters).fit(X, y)


def test_absent_negatives_are_fine(rows):
    X, y = np.vstack(rows[:2]), np.repeat(LABELS[:2], list(map(len, rows[:2])))
    fitted = AutoPrior(**EVIDENCE.get_params()).set_params(neg_label="ok").fit(X, y)
    assert fitted.n_negative_ == 0
    assert quick(*rows[:2], rows[2][:0]).n_negative == 0


def test_what_does_not_go_together(rows):
    positive, unlabeled, negative = rows
    with pytest.raises(ValueError, match="weights"):
        quick(positive, unlabeled, negative, weights=(np.ones(300), np.ones(1200)))
    with pytest.raises(ValueError, match=r"neg_label='ok'.*fit\(X, y\)"):
        AutoPrior(neg_label="ok").fit_samples(positive, unlabeled)
    with pytest.raises(ValueError, match=r"2 columns.*X_negative.*1"):
        quick(positive, unlabeled, negative[:, :1])
    frames = [pd.DataFrame(part, columns=["a", "b"]) for part in rows]
    with pytest.raises(ValueError, match=r"'b'.*X_negative"):
        quick(*frames[:2], frames[2][["a"]])
    groups = np.arange(300), np.arange(300, 1500)
    grouped = quick(positive, unlabeled, positive[:200], groups=groups)
    assert not is_warned(grouped)
    assert any("not checked with them" in note for note in grouped.notes)
