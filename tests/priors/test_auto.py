from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from classprior import AutoPrior
from classprior._scores.crossfit import default_classifiers
from classprior._scores.tails import combine

QUICK = {"n_repeats": 1, "n_resamples": 50, "random_state": 0}
LINEAR = {"linear": LogisticRegression()}


def estimate(X_positive, X_unlabeled, **options):
    return AutoPrior(**options).fit_samples(X_positive, X_unlabeled)


def normals(seed, prior=0.3, n=200, m=500, shift=3.0, n_features=2):
    rng = np.random.default_rng(seed)
    k = rng.binomial(m, prior)
    unlabeled = rng.normal(size=(m, n_features))
    unlabeled[k:, 0] += shift
    return rng.normal(size=(n, n_features)), rng.permutation(unlabeled)


def test_recovers_the_share_on_average():
    """Sixteen draws of classes that hardly touch; a single one may be off by two standard errors.

    The minimum over tails and classifiers is biased low by half a standard error.
    """
    errors = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        positive, negative = rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))
        unlabeled = np.vstack([positive[400:], negative])
        errors.append(estimate(positive[:400], unlabeled, random_state=0).prior_ - 0.3)
    assert -0.02 < np.mean(errors) < 0.01
    assert np.sqrt(np.mean(np.square(errors))) < 0.025


def test_what_a_fit_knows(separated):
    result = estimate(*separated, random_state=0)
    assert result.low_ < 0.3 < result.high_ < result.upper_bound_ + 0.05
    assert result.low_ <= result.low_sample_ <= result.prior_ <= result.high_sample_ <= result.high_
    assert (
        set(result.classifier_priors_)
        == set(result.scores_)
        == {"linear", "kernel", "trees", "together"}
    )
    assert [len(part) for part in result.scores_["trees"]] == [400, 1000]
    assert result.round_priors_.shape == (5,)


def test_finds_a_ring_that_a_line_cannot_see():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 700)
    ring = 5.0 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(size=(700, 2))
    core = rng.normal(size=(500, 2))
    result = estimate(core[:200], np.vstack([core[200:], ring]), **QUICK)
    assert result.classifier_priors_["linear"] > 0.6
    assert abs(result.prior_ - 0.3) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("prior", [0.05, 0.5, 0.95])
def test_interval_covers_the_population_share(prior):
    """Of 60 intervals at 80%, at least 40 cover: 48 less two and a half standard errors."""
    covered, too_high, too_low = 0, 0, 0
    for seed in range(60):
        samples = normals(seed, prior)
        result = estimate(*samples, classifiers=LINEAR, confidence=0.8, **QUICK)
        covered += result.low_ <= prior <= result.high_
        too_high += result.low_ > prior
        too_low += result.high_ < prior
    assert covered >= 40
    assert max(too_high, too_low) <= 15


@pytest.mark.parametrize(("prior", "shift"), [(0.0, 6.0), (0.01, 6.0), (0.3, 4.0), (0.3, 2.0)])
def test_more_confidence_never_narrows(prior, shift):
    """Neither for the population nor for the rows; at the ends as in between."""
    samples = normals(0, prior, shift=shift)
    levels = (0.6, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999999)
    results = [estimate(*samples, classifiers=LINEAR, confidence=c, **QUICK) for c in levels]
    for narrow, wide in pairwise(results):
        assert narrow.prior_ == wide.prior_
        assert wide.low_ <= narrow.low_ <= narrow.high_ <= wide.high_
        assert wide.low_sample_ <= narrow.low_sample_
        assert wide.high_sample_ >= narrow.high_sample_
        assert wide.upper_bound_ >= narrow.upper_bound_
    assert results[-1].high_ > results[0].high_
    assert results[-1].high_sample_ > results[0].high_sample_


def test_no_hit_leaves_room_for_the_rule_of_three():
    """Of 600 rows none is like the positives: the share may still be 3 / 600."""
    result = estimate(*normals(1, 0.0, shift=9.0), classifiers=LINEAR, **QUICK)
    m = len(normals(1, 0.0)[1])
    assert result.low_ == result.low_sample_ == 0.0
    assert stats.beta.isf(0.025, 1, m) <= result.high_ < 12.0 / m
    assert 1.0 / m <= result.high_sample_ < 6.0 / m


def test_constant_rows():
    """Nothing can be told apart: all rows may be positive, or none."""
    result = estimate(np.ones((60, 2)), np.ones((200, 2)), classifiers=LINEAR, **QUICK)
    assert result.prior_ == result.high_ == result.extrapolated_ == 1.0
    assert result.extrapolated_wide_ == result.extrapolated_tail_ == 1.0
    assert result.low_ == result.separation_ == 0.0
    assert result.is_upper_bound_


def test_repeats_differ_and_are_averaged(separated):
    result = estimate(*normals(0), classifiers=LINEAR, n_repeats=4, random_state=0)
    assert len(set(result.round_priors_)) > 1
    assert result.prior_ == pytest.approx(result.round_priors_.mean(), rel=1e-12)


@pytest.mark.parametrize(("n_unlabeled", "n_rounds"), [(4900, 5), (4901, 2)])
def test_few_rows_get_more_rounds(n_unlabeled, n_rounds):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(100, 1)), rng.normal(size=(n_unlabeled, 1))
    result = estimate(*samples, classifiers=LINEAR, n_resamples=20, random_state=0)
    assert len(result.round_priors_) == n_rounds


def test_one_seed_one_answer(separated):
    one, two = (estimate(*separated, n_jobs=n_jobs, **QUICK) for n_jobs in (1, 2))
    assert (one.prior_, one.low_, one.upper_bound_) == (two.prior_, two.low_, two.upper_bound_)
    other = estimate(*separated, **{**QUICK, "random_state": 1})
    assert other.prior_ != one.prior_


def test_sparse_rows_have_the_views_that_take_them(separated):
    result = estimate(*map(sparse.csr_array, separated), **QUICK)
    assert set(result.classifier_priors_) == {"linear", "kernel", "together"}
    assert abs(result.prior_ - 0.3) < 0.06


def test_folds_keep_groups_together():
    """Copies of a row in one fold cannot be memorized by a classifier."""
    positive, unlabeled = normals(0, n=60, m=120, n_features=20)
    copies = [np.repeat(X, 5, axis=0) for X in (positive, unlabeled)]
    groups = [np.arange(len(X)) // 5 % 5 for X in copies]
    apart = estimate(*copies, **QUICK)
    together = estimate(*copies, cv=tuple(groups), **QUICK)
    assert apart.prior_ < 0.1 < 0.2 < together.prior_


def test_groups_are_kept_together_by_name():
    """The same with groups in place of folds, and one group in both samples."""
    positive, unlabeled = normals(0, n=60, m=120, n_features=20)
    copies = [np.repeat(X, 5, axis=0) for X in (positive, unlabeled)]
    groups = [np.arange(300) // 5, 1000 + np.arange(600) // 5]
    together = AutoPrior(**QUICK).fit_samples(*copies, groups=groups)
    assert estimate(*copies, **QUICK).prior_ < 0.1 < 0.2 < together.prior_


def test_many_rows_are_scored_by_models_of_a_sample():
    """The classifiers are fitted to at most max_rows of each sample; shares refer to all rows."""
    samples = normals(0, n=400, m=3000)
    options = {**QUICK, "classifiers": LINEAR}
    fitted = estimate(*samples, max_rows=500, **options)
    assert fitted.n_fitted_ == (400, 500)
    assert [len(part) for part in fitted.mean_scores_] == [400, 500]
    assert fitted.prior_pooled_ == pytest.approx((400 + 3000 * fitted.prior_) / 3400)
    assert estimate(*samples, max_rows=None, **options).n_fitted_ == (400, 3000)


class FirstColumn(ClassifierMixin, BaseEstimator):
    """Scores by the first column, and remembers the rows that it was fitted to."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen_ = {row.tobytes() for row in X}
        return self

    def predict_proba(self, X):
        assert not any(row.tobytes() in self.seen_ for row in X), "a row that it was fitted to"
        p = expit(-X[:, 0])
        return np.column_stack([1.0 - p, p])


@pytest.mark.parametrize("sizes", [(300, 2000), (2000, 2500), (2000, 300)])
def test_all_rows_are_counted(sizes):
    """With a fixed score, the estimate is that of the tails of all rows at the sample's thresholds.

    No row is ever scored by a model that was fitted to it.
    """
    positive, unlabeled = normals(0, n=sizes[0], m=sizes[1])
    options = {**QUICK, "n_repeats": 2, "classifiers": {"first": FirstColumn()}}
    fitted = estimate(positive, unlabeled, max_rows=500, **options)
    thresholds = np.unique(fitted.scores_["first"][0])  # at most 400 quantiles of them are used
    if len(thresholds) > 400:
        thresholds = thresholds[500 - 1 - np.linspace(0, 499, 400).astype(int)][::-1]
    scores = [-X[:, 0].astype(np.float32) for X in (positive, unlabeled)]
    P, U = (np.sum(s >= thresholds[::-1, None], axis=1).astype(float) for s in scores)
    counts = np.diff(P, prepend=0.0), np.diff(U, prepend=0.0), float(sizes[0]), float(sizes[1])
    expected = combine([counts])
    assert fitted.prior_ == pytest.approx(float(expected.prior), rel=1e-6)
    assert fitted.extrapolated_ == pytest.approx(float(expected.extrapolated), rel=1e-6)
    alone = estimate(positive, unlabeled, max_rows=None, **options)
    assert fitted.prior_ == pytest.approx(alone.prior_, abs=0.02)
    assert fitted.upper_bound_ == pytest.approx(alone.upper_bound_, abs=0.06)


@pytest.mark.parametrize("n", [80, 400])
def test_the_bound_from_a_sample_covers(n):
    """Positives that set the thresholds are not counted; the error is at most the level."""
    options = {**QUICK, "classifiers": {"first": FirstColumn()}, "n_resamples": 20}
    failures = sum(
        estimate(*normals(seed, n=n, m=400), max_rows=100, confidence=0.7, **options).upper_bound_
        < 0.3
        for seed in range(150)
    )
    assert failures <= 0.3 * 150 + 3 * np.sqrt(150 * 0.3 * 0.7)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"confidence": 95}, ValueError, "confidence.* 95"),
        ({"classifiers": LogisticRegression()}, TypeError, "classifiers.*LogisticRegression"),
        ({"classifiers": {"svm": LinearSVC()}}, TypeError, "svm.*LinearSVC.*predict_proba"),
        ({"n_repeats": 0}, ValueError, "n_repeats.* 0"),
        ({"max_rows": 1}, ValueError, "max_rows.* 1"),
    ],
)
def test_what_cannot_be_asked(options, error, message, separated):
    with pytest.raises(error, match=message):
        estimate(*separated, **options)


def test_a_progress_bar_on_standard_error(separated, capsys):
    estimate(*separated, classifiers=LINEAR, verbose=1, **QUICK)
    assert "Cross-fitting" in capsys.readouterr().err


def test_bound_with_slightly_more_positives_than_are_drawn():
    """Positives that are not drawn may be few, but those that are drawn count as well."""
    rng = np.random.default_rng(0)
    positive = rng.normal(2.0, 1.0, (1010, 1))
    unlabeled = np.r_[rng.normal(2.0, 1.0, (300, 1)), rng.normal(-2.0, 1.0, (700, 1))]
    all_drawn, most_drawn = (
        AutoPrior(
            classifiers={"linear": LogisticRegression()}, n_repeats=1, max_rows=n, random_state=0
        )
        .fit_samples(positive, unlabeled)
        .upper_bound_
        for n in (1010, 1000)
    )
    assert most_drawn == pytest.approx(all_drawn, abs=0.05)


def test_a_fold_without_drawn_rows_is_scored():
    """Of 2,300 rows 200 are drawn, none of them in the last fold of one row of each sample."""
    rng = np.random.default_rng(0)
    P, U = rng.normal(3, 1, (300, 2)), rng.normal([3, 3] * (rng.random((2000, 1)) < 0.3), 1)
    folds = [np.arange(len(X)) % 4 for X in (P, U)]
    for fold in folds:
        fold[0] = 4
    for seed in range(3):
        fitted = AutoPrior(max_rows=100, n_repeats=1, cv=tuple(folds), random_state=seed)
        assert 0.2 < fitted.fit_samples(P, U).prior_ < 0.4


def test_one_large_group_leaves_nothing_to_fit():
    rng = np.random.default_rng(0)
    groups = np.r_[np.zeros(195), np.arange(1, 6)], np.arange(10, 410)
    estimator = AutoPrior(max_rows=3, random_state=0)  # most likely of the large group
    with pytest.raises(ValueError, match=r"known positives .* in one fold"):
        estimator.fit_samples(rng.normal(size=(200, 2)), rng.normal(size=(400, 2)), groups=groups)


def test_groups_of_which_none_is_counted_for_the_bound():
    """Two groups of positives: one is fitted, the other sets the thresholds."""
    rng = np.random.default_rng(0)
    groups = np.array([0, 0, 1]), 100 + np.arange(30) // 3
    X = rng.normal(size=(3, 2)), rng.normal(size=(30, 2))
    estimator = AutoPrior(classifiers=LINEAR, **QUICK)
    with pytest.warns(UserWarning, match="2"):  # fewer folds
        estimator.fit_samples(*X, groups=groups)
    assert estimator.upper_bound_ == 1.0


@pytest.mark.parametrize(("n_columns", "has_trees"), [(5000, True), (5001, False)])
def test_wide_tables_have_no_trees(n_columns, has_trees):
    assert ("trees" in default_classifiers(np.zeros((4, n_columns)))) == has_trees
