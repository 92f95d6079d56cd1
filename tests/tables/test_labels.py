"""Which of two labels marks the known positives."""

import numpy as np
import pytest

from classprior import ElkanNotoPrior, PUClassifier
from classprior._tables.labels import means_no, means_unlabeled, positive_beside_unlabeled
from classprior.metrics import make_pu_scorer, pu_precision, pu_recall

UNLABELED = [
    *("unknown", "Unlabeled", "unlabel" + "led", "UNCHECKED", "open", "missing", "pending", "n/a"),
    *("un-determined", "not checked", "Not_Yet_Reviewed", "unreviewed", "", "?", "-", "None"),
]


@pytest.mark.parametrize("word", UNLABELED)
def test_words_that_mean_unlabeled(word):
    assert means_unlabeled(word)
    assert positive_beside_unlabeled([word, "fraud"]) == "fraud"


@pytest.mark.parametrize("word", ["fraud", "checked", "labeled", "reopened", "no", 0, 1.0, True])
def test_other_labels_do_not(word):
    assert not means_unlabeled(word)


@pytest.mark.parametrize("label", ["No", "false", " negative", "0", "-1", "0.0", 0, False])
def test_no_beside_unknown_is_not_positive(label):
    assert means_no(label)
    assert positive_beside_unlabeled(["unknown", label]) is None


@pytest.mark.parametrize(
    "labels", [["fraud", "ok"], ["unknown", "open"], ["fraud"], ["fraud", "ok", "open"], [0, 1]]
)
def test_undecided(labels):
    assert positive_beside_unlabeled(labels) is None


def test_a_word_for_unlabeled_as_positive_is_questioned(labeled):
    """The user decides, but "unknown" as the positive label is most likely a mistake."""
    X, y = (part[::3] for part in labeled)
    expected = ElkanNotoPrior(random_state=0).fit(X, y).prior_
    estimator = ElkanNotoPrior(pos_label="unknown", random_state=0)
    with pytest.warns(UserWarning, match="'unknown'.*pos_label='fraud'"):
        assert estimator.fit(X, np.array(["fraud", "unknown"])[y]).prior_ == expected
    estimator.set_params(pos_label="open")  # beside another such word, it can only be meant
    assert estimator.fit(X, np.array(["unknown", "open"])[y]).prior_ == expected


def test_classifier_and_metrics_agree(labeled):
    X, y = (part[::3] for part in labeled)
    names = np.array(["unknown", "fraud"])[y]
    numbers, words = (
        PUClassifier(prior=0.3, random_state=0).fit(X, labels).predict(X) for labels in (y, names)
    )
    np.testing.assert_array_equal(words, np.array(["unknown", "fraud"])[numbers])
    assert pu_recall(names, words) == pu_recall(y, numbers)
    assert pu_precision(names, words, prior=0.3) == pu_precision(y, numbers, prior=0.3)
    model = PUClassifier(prior=0.3, random_state=0)
    scorer = make_pu_scorer("pu_error_rate", prior=0.3)
    assert scorer(model.fit(X, names), X, names) == scorer(model.fit(X, y), X, y)
