"""Positives of several kinds, some of which are labeled more often than others."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, estimate_prior
from classprior._scores.subtypes import (
    FEWEST_POSITIVES,
    beside_scores,
    clusters_of_rows,
    important_columns,
    standardized,
    tails_of_subtypes,
)
from classprior.priors import SubtypePrior

QUICK = {
    "classifiers": {"linear": LogisticRegression()},
    "n_repeats": 2,
    "n_resamples": 50,
    "random_state": 0,
}
DEFAULT = {"n_repeats": 1, "n_resamples": 50, "random_state": 0}  # with all three classifiers
CENTERS = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 9.0]])  # three kinds, negatives


def mixture(labeled, hidden, n_negative=1500, seed=0):
    """Known positives and unlabeled rows with given numbers of three kinds of positives."""
    rng = np.random.default_rng(seed)

    def rows(counts):
        return np.repeat(CENTERS[: len(counts)], counts, axis=0) + rng.normal(size=(sum(counts), 2))

    return rows(labeled), rows([*hidden, n_negative])


def stacked(known, pile):
    return np.vstack([known, pile]), np.arange(len(known) + len(pile)) < len(known)


def test_one_cluster_is_the_plain_estimate():
    samples = mixture([100, 100, 100], [200, 200, 200])
    one = SubtypePrior(n_clusters=1, **QUICK).fit_samples(*samples)
    plain = AutoPrior(**QUICK).fit_samples(*samples)
    names = ["prior_", "low_", "high_", "low_sample_", "high_sample_", "extrapolated_"]
    names += [
        "extrapolated_wide_",
        "extrapolated_tail_",
        "purity_p_value_",
        "is_upper_bound_",
        "label_frequency_",
        "prior_pooled_",
    ]
    assert [getattr(one, name) for name in names] == [getattr(plain, name) for name in names]
    np.testing.assert_array_equal(one.round_priors_, plain.round_priors_)
    for own, other in zip(one.mean_scores_, plain.mean_scores_, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("seed", range(2))
def test_without_evidence_of_bias_there_is_one_cluster(seed):
    samples = mixture([100, 100, 100], [200, 200, 200], seed=seed)
    chosen = SubtypePrior(**QUICK).fit_samples(*samples)
    one = SubtypePrior(n_clusters=1, **QUICK).fit_samples(*samples)
    assert chosen.typicality_p_value_ > 0.05
    assert one.typicality_p_value_ is None
    assert (chosen.prior_, chosen.low_, chosen.high_) == (one.prior_, one.low_, one.high_)


def test_few_positives_are_divided_too():
    """Hidden one to three, labeled three to one, and too few rows for the test."""
    samples = mixture([120, 40, 0], [100, 300, 0], n_negative=800)
    chosen = SubtypePrior(**DEFAULT).fit_samples(*samples)
    one = SubtypePrior(n_clusters=1, **DEFAULT).fit_samples(*samples)
    assert one.high_ < 1 / 3
    assert chosen.prior_ == pytest.approx(1 / 3, abs=0.06)
    assert chosen.low_ <= one.low_ or chosen.typicality_p_value_ < 0.01


def test_the_share_is_found_although_one_kind_is_seldom_labeled():
    """A hidden share of 0.3; the plain estimate, here as a control, finds the favored kinds."""
    found, plain = [], []
    for seed in range(3):
        samples = mixture([360, 360, 80], [200, 200, 800], n_negative=2800, seed=seed)
        options = {**DEFAULT, "random_state": seed}
        found.append(SubtypePrior(**options).fit_samples(*samples).prior_)
        plain.append(AutoPrior(**options).fit_samples(*samples).prior_)
    assert abs(np.mean(found) - 0.3) < 0.03
    assert np.mean(plain) < 0.2


def test_unbiased_labels_cost_little():
    found = [
        SubtypePrior(**{**QUICK, "random_state": seed})
        .fit_samples(*mixture([100, 100, 100], [200, 200, 200], n_negative=1400, seed=seed))
        .prior_
        for seed in range(4)
    ]
    assert abs(np.mean(found) - 0.3) < 0.03


def test_tails_count_the_rows_of_a_part():
    rng = np.random.default_rng(0)
    is_positive = np.arange(500) < 200
    subtypes = rng.integers(3, size=500)
    scores = rng.normal(size=500)
    bins = rng.integers(10, size=200), rng.integers(10, size=300)
    tails = tails_of_subtypes({"score": scores}, is_positive, subtypes, bins, (10, 10))
    assert len(tails) == 3
    for subtype, (tail,) in enumerate(tails):
        own = np.sort(scores[is_positive & (subtypes == subtype)])[::-1]
        rows = scores[~is_positive & (subtypes == subtype)]
        positive, unlabeled, n, m = tail.counts()
        np.testing.assert_array_equal(np.cumsum(positive), np.arange(1, len(own) + 1))
        np.testing.assert_array_equal(np.cumsum(unlabeled), [np.sum(rows >= t) for t in own])
        assert (n, m) == (len(own), 300)


def test_rows_belong_to_the_nearest_cluster_whatever_the_units():
    X, is_positive = stacked(*mixture([100, 100, 100], [100, 100, 100], n_negative=10))
    parts = clusters_of_rows(standardized(X), is_positive, 3, seed=0)
    kinds = np.repeat([0, 1, 2, 0, 1, 2], 100)
    assert len({(kind, part) for kind, part in zip(kinds, parts, strict=False)}) == 3
    other_units = standardized(X * [1000.0, 0.001] + [5.0, -7.0])
    again = clusters_of_rows(other_units, is_positive, 3, seed=0)
    np.testing.assert_array_equal(again, parts)
    for rows in (sparse.csr_array(X), sparse.csr_matrix(X)):
        found = clusters_of_rows(standardized(rows), is_positive, 3, seed=0)
        assert len(set(zip(parts.tolist(), found.tolist(), strict=True))) == 3


def test_columns_that_do_not_matter_count_little():
    X, is_positive = stacked(*mixture([150, 150, 150], [300, 20, 20], n_negative=800))
    noise = np.random.default_rng(1).normal(size=(len(X), 20))
    Z = important_columns(np.hstack([X, noise]), is_positive, seed=0).values
    assert Z.shape == (len(X), 22)
    assert Z[:, 2:].std(axis=0).max() < 0.3 * Z[:, :2].std(axis=0).min()
    wide = np.hstack([X, np.random.default_rng(2).normal(size=(len(X), 600))])
    for rows in (sparse.csr_array(X), wide):
        found = important_columns(rows, is_positive, seed=0).values
        assert found.shape == (len(X), min(50, rows.shape[1] - 1))
        assert np.isfinite(found).all()


def test_only_fitted_rows_decide_on_the_columns():
    X, is_positive = stacked(*mixture([100, 100, 100], [100, 100, 100]))
    fitted = np.arange(len(X)) % 2 == 0
    Z = important_columns(X, is_positive, 0, fitted).values
    moved = np.where(fitted[:, None], X, X + 3.0)
    again = important_columns(moved, np.where(fitted, is_positive, ~is_positive), 0, fitted).values
    np.testing.assert_array_equal(again[fitted], Z[fitted])


def test_columns_beside_the_scores():
    """A cloud loses the direction of its score; separate kinds stay apart."""
    rng = np.random.default_rng(0)
    Z, is_positive = rng.normal(size=(3000, 3)), np.ones(3000, dtype=bool)
    left = beside_scores(Z, is_positive, Z @ [2.0, 1.0, 0.0], seed=0)
    assert np.std(left @ [2.0, 1.0, 0.0]) < 0.05
    assert np.std(left[:, 2]) > 0.95
    assert np.ptp(beside_scores(Z[:, :1], is_positive, Z[:, 0] ** 3, seed=0)) == 0.0
    kinds = np.arange(3000) % 2
    Z[:, 0] += 20.0 * kinds
    scores = Z[:, 1] - 5.0 * kinds  # one kind is labeled less often
    left = beside_scores(Z, is_positive, scores, seed=0)
    assert np.std(left[:, 1]) < 0.2
    assert abs(left[kinds == 1, 0].mean() - left[kinds == 0, 0].mean()) > 19.0


def test_clusters_of_half_of_the_rows_are_found_for_the_others():
    X, is_positive = stacked(*mixture([200, 200, 200], [100, 100, 100], n_negative=10))
    fitted = np.arange(len(X)) % 2 == 0
    parts = clusters_of_rows(X, is_positive, 3, seed=0, n_init=5, fitted=fitted)
    kinds = np.repeat([0, 1, 2, 0, 1, 2], [200, 200, 200, 100, 100, 100])
    assert len({(kind, part) for kind, part in zip(kinds, parts, strict=False)}) == 3
    moved = np.where(fitted[:, None], X, X + 3.0)  # the other rows must not matter
    again = clusters_of_rows(moved, is_positive, 3, seed=0, n_init=5, fitted=fitted)
    np.testing.assert_array_equal(again[fitted], parts[fitted])


@pytest.mark.parametrize("labeled", [[200, 29, 200], [200, 30, 200], [20, 20, 19], [1, 1, 2]])
def test_small_clusters_are_dissolved(labeled):
    X, is_positive = stacked(*mixture(labeled, [50, 50, 50]))
    parts = clusters_of_rows(X, is_positive, 3, seed=0)
    sizes = np.bincount(parts[is_positive])
    assert len(sizes) == 1 or sizes.min() >= FEWEST_POSITIVES
    assert (len(sizes) == 3) == (min(labeled) >= FEWEST_POSITIVES)
    assert set(parts) <= set(range(len(sizes)))


def test_fewer_distinct_rows_than_clusters():
    X, is_positive = stacked(np.repeat([[0.0], [1.0]], 60, axis=0), np.zeros((50, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = clusters_of_rows(X, is_positive, 8, seed=0)
    assert set(zip(X[:, 0], parts, strict=True)) in ({(0, 0), (1, 1)}, {(0, 1), (1, 0)})


def test_limits_contain_the_estimate_and_widen_with_confidence():
    samples = mixture([180, 180, 40], [100, 100, 400])
    narrow, wide = (
        SubtypePrior(**QUICK, confidence=level).fit_samples(*samples) for level in (0.5, 0.99)
    )
    assert narrow.prior_ == wide.prior_
    assert wide.low_ <= narrow.low_ <= narrow.prior_ <= narrow.high_ <= wide.high_
    assert wide.low_sample_ <= narrow.low_sample_ <= narrow.prior_
    assert narrow.prior_ <= narrow.high_sample_ <= wide.high_sample_


def test_a_kind_of_a_single_group_may_be_missing_in_resamples():
    known, pile = mixture([100, 100, 40], [100, 100, 100])
    groups = np.r_[np.arange(200), np.full(40, 200)], 201 + np.arange(len(pile))
    fitted = SubtypePrior(**QUICK, n_clusters=3).fit_samples(known, pile, groups=groups)
    assert np.isfinite([fitted.low_, fitted.high_, fitted.low_sample_, fitted.high_sample_]).all()


def test_only_max_rows_are_used():
    samples = mixture([180, 180, 40], [100, 100, 400])
    fitted = SubtypePrior(**QUICK, max_rows=300).fit_samples(*samples)
    assert fitted.n_fitted_ == tuple(map(len, fitted.mean_scores_)) == (300, 300)
    estimate = estimate_prior(
        *samples, method="subtypes", max_rows=300, evidence=AutoPrior(**QUICK)
    )
    (note,) = estimate.notes
    assert "300 of the 400 known positives" in note
    assert "All rows" not in note


@pytest.mark.parametrize(("name", "value"), [("n_clusters", 0), ("n_repeats", 0), ("max_rows", 1)])
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} == {value}"):
        SubtypePrior(**{**QUICK, name: value}).fit_samples(*mixture([40], [40]))


def test_method_of_estimate_prior():
    """The estimate of the class; no warning about bias, but one about the bound."""
    samples = mixture([600, 600, 200], [50, 50, 700], n_negative=800)
    evidence = AutoPrior(**DEFAULT)
    plain = estimate_prior(*samples, scale=False, evidence=evidence, random_state=0)
    found = estimate_prior(
        *samples, method="subtypes", scale=False, evidence=evidence, random_state=0, n_clusters=5
    )
    fitted = SubtypePrior(**DEFAULT, n_clusters=5).fit_samples(*samples)
    assert (found.prior, found.low, found.high) == (fitted.prior_, fitted.low_, fitted.high_)
    assert (found.upper_bound, found.bound_is_exact) == (fitted.upper_bound_, True)
    (biased,) = (w for w in plain.warnings if w.remedy == "subtypes")
    assert '`method="subtypes"`' in biased
    assert "label_bias_curve" in biased
    # Neither sends users back to the other: where they disagree, only a look at rows decides.
    assert not any(w.remedy in ("subtypes", "auto") for w in found.warnings)
    assert "classprior review" in biased
    (disagreement,) = (w for w in found.warnings if "disagrees" in w)
    assert "classprior review" in disagreement
    assert (plain.meaning, plain.bound_is_exact, plain.prior_if_typical) == ("biased", False, None)
    assert (found.meaning, found.prior_if_typical) == ("disagree", plain.prior)
    assert plain.bound_holds_if == "known positives are typical of all positives"
    assert "kind" in found.bound_holds_if
    for estimate in (plain, found):
        assert f"%, if {estimate.bound_holds_if}\n" in estimate.to_text()
        assert f"%, if {estimate.bound_holds_if}." in estimate.to_html()
    assert "certified" not in plain.to_text() + plain.to_html()
    assert plain.answer.startswith("Probably more than ")


def test_the_bound_holds_if_labels_favor_some_kinds():
    """At a confidence of 50%, it may fail in half of the draws; that of all rows always does."""
    bounds, plain = [], []
    for seed in range(4):
        samples = mixture([360, 360, 80], [200, 200, 800], n_negative=2800, seed=seed)
        options = {**DEFAULT, "random_state": seed, "confidence": 0.5}
        fitted = SubtypePrior(**options).fit_samples(*samples)
        assert fitted.upper_bound_asymptotic_ <= fitted.upper_bound_ < 0.6
        bounds.append(fitted.upper_bound_)
        plain.append(AutoPrior(**options).fit_samples(*samples).upper_bound_)
    assert np.mean(np.array(bounds) >= 0.3) >= 0.5
    assert np.max(plain) < 0.3


@pytest.mark.parametrize("option", ["weights", "groups"])
def test_no_bound_with_weights_or_groups(option):
    samples = mixture([100, 100, 40], [50, 50, 200])
    values = tuple(np.arange(1.0, len(X) + 1.0) for X in samples)
    fitted = SubtypePrior(**QUICK).fit_samples(*samples, **{option: values})
    assert (fitted.upper_bound_, fitted.bound_is_exact_) == (1.0, False)
