"""Each warning has a case in which it must be given and one in which it must not."""

import pickle
from copy import copy

import numpy as np
import pytest

from classprior import AutoPrior, estimate_prior
from classprior._scores.diagnostics import (
    about_bound,
    about_disagreement,
    about_interval,
    about_method,
    diagnose,
    foreign_positives_p_value,
)
from classprior.result import REMEDIES, Caution

QUICK = {"n_repeats": 2, "n_resamples": 50, "random_state": 0}
MARKS = {
    "few": "Few rows",
    "mixed": "Known positives do not stand out",
    "overlap": "No purely positive region",
    "foreign": "resemble no unlabeled row",
    "one": "The estimate is at 1",
    "zero": "The estimate is at 0",
    "unstable": "Unstable",
    "leak": " alone ",
}


def normals(n=300, m=900, prior=0.4, shift=6.0, seed=0, n_features=3):
    rng = np.random.default_rng(seed)
    unlabeled = rng.normal(size=(m, n_features))
    unlabeled[round(prior * m) :, 0] += shift
    return rng.normal(size=(n, n_features)), unlabeled


def evidence_of(samples, **changes):
    """Fit an AutoPrior and overwrite some of its attributes."""
    fitted = copy(AutoPrior(**QUICK).fit_samples(*samples))
    vars(fitted).update(changes)
    return fitted


def found(samples, evidence=None):
    warnings = [*diagnose(evidence or evidence_of(samples))]
    assert all(warning.finding and warning.advice.endswith(".") for warning in warnings)
    return {name for name, mark in MARKS.items() if any(mark in text for text in warnings)}


@pytest.mark.parametrize("seed", range(3))
def test_nothing_to_say_of_good_data(seed):
    assert found(normals(seed=seed)) == set()


def test_few_rows():
    assert "few" in found(normals(n=30, m=60))


def test_negatives_everywhere():
    """Negatives everywhere among the positives, thinning out toward one end."""
    samples = normals(n=2000, m=6000, prior=0.2, shift=0.7, n_features=1)
    evidence = evidence_of(samples)
    assert evidence.separation_ < 0.6
    assert evidence.low_ == 0.0
    assert "mixed" in found(samples, evidence)
    # If they stood out elsewhere, the tail of the estimate alone would be questioned.
    evidence.separation_ = 0.9
    assert "overlap" in found(samples, evidence)


def test_foreign_positives():
    """Some of the known positives lie where there are no unlabeled rows."""
    positive, unlabeled = normals(n=600, m=4000)
    positive[:70, 1] += 8.0
    assert "foreign" in found((positive, unlabeled))
    positive[:200, 1] = 8.0  # beyond a quarter of them nothing is left to compare with
    assert "zero" in found((positive, unlabeled))


@pytest.mark.parametrize("seed", range(5))
def test_foreign_positives_are_not_seen_where_there_are_none(seed):
    for prior in (0.05, 0.9):
        evidence = evidence_of(normals(prior=prior, shift=2.0, seed=seed))
        assert foreign_positives_p_value(evidence) > 0.001


def of_two_kinds(known, hidden, seed=0):
    """Positives around 0 and around 8 in the second column; negatives apart from both."""
    rng = np.random.default_rng(seed)
    positive, unlabeled = rng.normal(size=(sum(known), 2)), rng.normal(size=(sum(hidden) + 900, 2))
    positive[known[0] :, 1] += 8.0
    unlabeled[hidden[0] :, 1] += 8.0
    unlabeled[sum(hidden) :, 0] += 8.0
    return positive, unlabeled


def test_an_estimate_far_below_auto_is_questioned():
    evidence = evidence_of(normals(), prior_=0.4, low_=0.3, high_=0.5)
    (warning,) = about_interval(0.1, evidence)
    assert "10.0%" in warning
    assert "30.0% to 50.0%" in warning
    assert about_interval(0.3, evidence) == []


def test_disagreement_is_that_of_the_intervals():
    evidence = evidence_of(normals(), prior_=0.2, low_=0.1, high_=0.3)
    for low, high, is_found in ((0.3, 0.5, False), (0.31, 0.5, True), (0.01, 0.09, True)):
        other = copy(evidence)
        vars(other).update(prior_=(low + high) / 2, low_=low, high_=high)
        found = about_disagreement(other, evidence)
        assert bool(found) == is_found
        # "auto" sends those who suspect biased labels to "subtypes", which must not send them back.
        assert all(w.remedy is None and "classprior review" in w for w in found)


def test_all_positive():
    """An estimate of exactly 1 is always questioned."""
    samples = normals(prior=1.0)
    evidence = evidence_of(samples, prior_=1.0)
    assert evidence.high_ > 0.95
    assert "one" in found(samples, evidence)


def test_none_positive():
    samples = normals(prior=0.0, shift=9.0, m=3000)
    assert "zero" in found(samples)


def test_unstable():
    samples = normals()
    assert "unstable" in found(samples, evidence_of(samples, round_priors_=np.array([0.1, 0.7])))


def test_rows_sorted_by_a_column_are_no_leak():
    """The rows that are checked are a random sample, not the first ones."""
    rng = np.random.default_rng(0)
    positive = rng.uniform(0.5, 1.0, (300, 1))
    unlabeled = np.sort(rng.uniform(0.0, 1.0, (3000, 1)), axis=0)
    estimate = estimate_prior(positive, unlabeled, max_rows=500, **QUICK)
    assert not any(MARKS["leak"] in warning for warning in estimate.warnings)


# Advice ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("remedy", [None, *REMEDIES])
def test_a_warning_is_a_text_with_a_finding_and_advice(remedy):
    caution = Caution("Found.", "Do this.", remedy, "age")
    how = remedy and REMEDIES[remedy].format(column="'age'")
    assert caution == f"{caution.finding} {caution.advice}"
    assert caution.advice == ("Do this." if how is None else f"Do this. {how}")
    for same in (copy(caution), pickle.loads(pickle.dumps(caution))):
        assert vars(same) == vars(caution)
    other = caution.worded("Like this.")
    assert other == "Found. Do this. Like this."
    assert (other.remedy, other.column) == (remedy, "age")


def test_what_is_said_of_a_method():
    assert about_bound(0.3, 0.4) == []
    (above,) = about_bound(0.5, 0.4)
    assert "50.0%" in above
    assert "40.0%" in above
    assert '`method="auto"`' in above
    assert about_method("penl1", False, 3) == []
    overlap, dimension = about_method("pe", True, 30)
    assert "'pe'" in overlap
    assert "30 columns" in dimension
    assert all('`method="auto"`' in text for text in (above, overlap, dimension))
