import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from classprior import DensityRatio, PUClassifier, metrics
from classprior.metrics import make_pu_scorer, pu_error_rate, pu_precision, pu_recall


def test_metrics_estimate_the_true_ones():
    """Label positives at random: what labels alone give is what the hidden classes would give."""
    rng = np.random.default_rng(0)
    n, prior = 200_000, 0.3
    is_positive = rng.uniform(size=n) < prior
    called = np.where(is_positive, rng.uniform(size=n) < 0.8, rng.uniform(size=n) < 0.1)
    known = rng.uniform(size=50_000) < 0.8  # how known positives are called
    y_true = np.r_[np.ones(50_000, int), np.zeros(n, int)]
    y_pred = np.r_[known, called].astype(int)
    assert abs(pu_recall(y_true, y_pred) - called[is_positive].mean()) < 0.01
    precision = is_positive[called].mean()
    assert abs(pu_precision(y_true, y_pred, prior=prior) - precision) < 0.01
    error = np.mean(called != is_positive)
    assert abs(pu_error_rate(y_true, y_pred, prior=prior) - error) < 0.01
    assert abs(np.mean(y_true != y_pred) - error) > 0.05  # what accuracy would have said


def test_metrics_by_hand():
    y_true, y_pred = ["p", "p", "p", "p", "u", "u", "u", "u", "u"], list("pppu") + list("ppuuu")
    assert pu_recall(y_true, y_pred, pos_label="p") == 0.75
    assert_allclose(pu_precision(y_true, y_pred, prior=0.2, pos_label="p"), 0.2 * 0.75 / 0.4)
    assert_allclose(
        pu_error_rate(y_true, y_pred, prior=0.2, pos_label="p"), 0.2 * 0.25 + 0.4 - 0.2 * 0.75
    )


def test_labels_need_no_order():
    y_true, y_pred = np.array([1, 1, None, None]), np.array([1, None, 1, None])
    assert pu_recall(y_true, y_pred) == 0.5


@pytest.mark.parametrize("name", ["pu_recall", "pu_precision", "pu_error_rate"])
def test_confirmed_negatives_are_left_out(name):
    y_true, y_pred = np.array(list("pppnuuuun")), np.array(list("ppupuppup"))
    kept, options = y_true != "n", {} if name == "pu_recall" else {"prior": 0.4}
    metric, options = getattr(metrics, name), {"pos_label": "p", **options}
    weights = np.arange(1.0, 10.0)
    found = metric(y_true, y_pred, neg_label="n", sample_weight=weights, **options)
    assert found == metric(y_true[kept], y_pred[kept], sample_weight=weights[kept], **options)
    assert found != metric(y_true, y_pred, sample_weight=weights, **options) or name == "pu_recall"


def test_precision_stays_a_share():
    with pytest.warns(UndefinedMetricWarning, match="precision is undefined"):
        assert pu_precision([1, 0, 0], [1, 0, 0], prior=0.5) == 0.0
    assert pu_precision([1, 0, 0, 0], [1, 1, 0, 0], prior=0.9) == 1.0


def test_a_negative_error_rate_is_explained():
    """All known positives are found, but fewer unlabeled rows than the prior says."""
    y_true, y_pred = [1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]
    assert pu_error_rate(y_true, y_pred, prior=0.25) == 0.0  # not negative: no warning
    with pytest.warns(UserWarning, match=r"-0\.25\b.*prior is too high"):
        assert_allclose(pu_error_rate(y_true, y_pred, prior=0.5), -0.25)


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose predictions are the rows."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return X


@pytest.mark.parametrize(
    ("name", "expected"), [("pu_recall", 1.0), ("pu_precision", 1.0), ("pu_error_rate", 0.25)]
)
def test_scorers_are_the_metrics_and_greater_is_better(name, expected):
    """A negative error rate is the best score, and no reason for a warning in each fold."""
    scorer = make_pu_scorer(name, prior=0.5)
    y_true, y_pred = np.array([1, 1, 0, 0, 0, 0]), np.array([1, 1, 1, 0, 0, 0])
    for each in (scorer, pickle.loads(pickle.dumps(scorer))):
        assert_allclose(each(Given().fit(y_pred, y_true), y_pred, y_true), expected)


def test_scorers_with_other_labels_and_without_what_they_need():
    y_true, y_pred = np.array(["yes", "yes", "no"]), np.array(["yes", "no", "no"])
    scorer = make_pu_scorer("pu_recall", pos_label="yes")
    assert scorer(Given().fit(y_pred, y_true), y_pred, y_true) == 0.5
    with pytest.raises(ValueError, match=r"pu_error_rate.*prior"):
        make_pu_scorer("pu_error_rate")
    with pytest.raises(ValueError, match=r"1\.5"):
        make_pu_scorer("pu_precision", prior=1.5)
    with pytest.raises(ValueError, match="'accuracy'"):
        make_pu_scorer("accuracy")


def test_a_search_prefers_the_model_that_finds_hidden_positives(labeled):
    """By accuracy on the labels, a prior of 0 is the best: it finds no hidden positives."""
    X, y = (part[300:] for part in labeled)  # 100 known positives, 300 hidden ones
    model = PUClassifier(ratio=DensityRatio(n_centers=50), random_state=0)
    best = {}
    for scoring in ("accuracy", make_pu_scorer("pu_error_rate", prior=0.3)):
        grid = {"prior": [0.0, 0.3]}
        search = GridSearchCV(model, grid, scoring=scoring, cv=StratifiedKFold(3)).fit(X, y)
        best[scoring] = search.best_params_["prior"]
    assert list(best.values()) == [0.0, 0.3]


def test_score_says_what_it_compares(labeled):
    X, y = labeled
    model = PUClassifier(prior=0.3, ratio=DensityRatio(n_centers=50), random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="make_pu_scorer") as record:
        found = model.score(X, y)
    assert len(record) == 1
    assert found == np.mean(model.predict(X) == y)


@pytest.mark.parametrize("y_true", [[1, 1], [0, 0]])
def test_both_samples_are_needed(y_true):
    with pytest.raises(ValueError, match=r"known positives \(label 1\) and unlabeled rows"):
        pu_recall(y_true, [1, 0])


def test_precision_of_a_few_calls():
    y_true, y_pred = [1] * 10 + [0] * 100, [1] * 2 + [0] * 8 + [1] * 5 + [0] * 95
    assert_allclose(pu_precision(y_true, y_pred, prior=0.1), 0.1 * 0.2 / 0.05)


def test_predictions_have_the_labels_of_the_truth():
    with pytest.raises(ValueError, match="label 2"):
        pu_recall([1, 1, 0, 0], [2, 2, 2, 3])


def test_prior_is_a_share():
    with pytest.raises(ValueError, match="prior between 0 and 1, got 30"):
        pu_error_rate([1, 0], [1, 0], prior=30)
