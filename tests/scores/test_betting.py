"""Limits from independent groups: exact, and the bound of AutoPrior that rests on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior
from classprior._core.bins import Bins
from classprior._samples.samples import Samples
from classprior._samples.units import RowOptions
from classprior._scores.betting import group_limits
from classprior._scores.held_out import HeldOut

LINEAR = {"linear": LogisticRegression()}


def mean_capital(r, in_tail, sizes, largest, *, upper):
    """Return the capital of a gambler at each of eight bets, by the formula, averaged."""
    total = 0.0
    if r in (0.0, 1.0):
        return 0.0
    for power in range(8):
        bet = 0.5**power / (((1.0 - r) if upper else r) * largest)
        capital = 1.0
        for t, s in zip(in_tail, sizes, strict=True):
            capital *= 1.0 + bet * ((r * s - t) if upper else (t - r * s))
        total += capital / 8
    return total


@pytest.mark.parametrize("upper", [False, True])
def test_the_capital_at_the_limit_is_one_over_alpha(upper):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, 60).astype(float)
    tails = np.column_stack([rng.binomial(sizes.astype(int), share) for share in (0.1, 0.4, 0.9)])
    alpha = 0.03
    limits = group_limits(tails.astype(float), sizes, 7.0, alpha, upper=upper)
    for limit, of_tail in zip(limits, tails.T, strict=True):
        capital = mean_capital(limit, of_tail, sizes, 7.0, upper=upper)
        if limit in (0.0, 1.0):  # no share is rejected
            assert capital < 1.0 / alpha
        else:
            assert capital == pytest.approx(1.0 / alpha, rel=1e-9)
        share = of_tail.sum() / sizes.sum()
        assert (limit > share) if upper else (limit < share)
    assert np.sum((limits > 0.0) & (limits < 1.0)) >= 2


def grouped(rng, n_groups, share, n_tails=1):
    """Return counts of groups of 1, 2, 4 or 8 rows that are nearly all in the tail or out of it."""
    sizes = rng.choice([1, 2, 4, 8], n_groups)
    p = rng.beta(0.05 * share, 0.05 * (1.0 - share), (n_tails, n_groups))
    return rng.binomial(sizes, p).T.astype(float), sizes.astype(float)


@pytest.mark.parametrize("share", [0.03, 0.3, 0.8])
@pytest.mark.parametrize("upper", [False, True])
def test_limits_cover_with_correlated_groups(share, upper):
    rng = np.random.default_rng(1)
    alpha, draws = 0.1, 400
    failed = wrong_rows = 0
    for _ in range(draws):
        tail, sizes = grouped(rng, 50, share)
        (limit,) = group_limits(tail, sizes, 8.0, alpha, upper=upper)
        failed += (limit < share) if upper else (limit > share)
        k, n = tail.sum(), sizes.sum()  # as if rows were independent
        if upper:
            wrong_rows += k < n and stats.beta.isf(alpha, k + 1, n - k) < share
        else:
            wrong_rows += k > 0 and stats.beta.ppf(alpha, k, n - k + 1) > share
    assert failed <= stats.binom.isf(0.001, draws, alpha)
    assert wrong_rows > 1.2 * alpha * draws  # which this test can see


@pytest.mark.parametrize("upper", [False, True])
def test_less_alpha_gives_a_wider_limit(upper):
    tail, sizes = grouped(np.random.default_rng(2), 80, 0.3, n_tails=3)
    alphas = [0.5, 0.2, 0.05, 0.01, 1e-4]
    limits = np.array([group_limits(tail, sizes, 9.0, alpha, upper=upper) for alpha in alphas])
    steps = np.diff(limits, axis=0)
    assert np.all(steps > 0.0) if upper else np.all(steps < 0.0)


def test_trivial_limits():
    tail, sizes = grouped(np.random.default_rng(3), 30, 0.3)
    assert group_limits(tail, sizes, 7.9, 0.1, upper=True) == [1.0]
    assert group_limits(tail, sizes, 7.9, 0.1, upper=False) == [0.0]
    none = np.empty((0, 2)), np.empty(0)
    assert_allclose(group_limits(*none, 5.0, 0.1, upper=True), 1.0)
    assert_allclose(group_limits(*none, 5.0, 0.1, upper=False), 0.0)
    # With all rows in the tail, or none, one limit is trivial and the other is not.
    full = sizes[:, None] * np.array([0.0, 1.0])
    none_up, all_up = group_limits(full, sizes, 8.0, 0.1, upper=True)
    none_low, all_low = group_limits(full, sizes, 8.0, 0.1, upper=False)
    assert 0.0 < none_up < 0.5 < all_low < 1.0
    assert_allclose([none_low, all_up], [0.0, 1.0], atol=1e-9)


def test_scale_of_sizes_is_irrelevant():
    tail, sizes = grouped(np.random.default_rng(4), 40, 0.3)
    for upper in (False, True):
        once = group_limits(tail, sizes, 8.0, 0.1, upper=upper)
        assert_allclose(group_limits(3 * tail, 3 * sizes, 24.0, 0.1, upper=upper), once, rtol=1e-9)


@pytest.mark.parametrize("k", [0, 3, 30, 150])
def test_for_groups_of_one_row_the_limit_is_near_clopper_pearson(k):
    """Its distance from the share is 1 to 2.2 times as large."""
    n, alpha = 300, 0.025
    tail = (np.arange(n) < k).astype(float)[:, None]
    (found,) = group_limits(tail, np.ones(n), 1.0, alpha, upper=True)
    exact = stats.beta.isf(alpha, k + 1, n - k)
    assert 1.0 <= (found - k / n) / (exact - k / n) < 2.2


# --- the bound of AutoPrior ------------------------------------------------------------------


def correlated(rng, n_groups=(150, 300), prior=0.2):
    """Return groups of 15 to 20 near-copies of one row each."""
    rows, groups, first = [], [], 0
    for sample, n in enumerate(n_groups):
        is_negative = rng.random(n) < (0.0, 1.0 - prior)[sample]
        centers = rng.normal(3.5 * is_negative[:, None], 1.0, (n, 2))
        sizes = rng.integers(15, 21, n)
        of_rows = np.repeat(np.arange(n), sizes)
        rows.append(centers[of_rows] + rng.normal(0.0, 0.02, (len(of_rows), 2)))
        groups.append(first + of_rows)
        first += n
    return rows, groups


def test_the_bound_holds_with_groups_where_that_of_rows_fails():
    rng = np.random.default_rng(0)
    below, trivial = {True: 0, False: 0}, 0
    for seed in range(40):
        (P, U), groups = correlated(rng)
        for told in below:
            estimator = AutoPrior(
                classifiers=LINEAR, n_repeats=1, n_resamples=20, confidence=0.8, random_state=seed
            )
            estimator.fit_samples(P, U, groups=groups if told else None)
            below[told] += estimator.upper_bound_ < 0.2
            trivial += estimator.upper_bound_ == 1.0
    assert below[True] <= 13  # 40 draws at 20%: more with probability 0.02
    assert below[False] > 13
    assert trivial < 10


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_weight_zero_do_not_count_in_groups(weighted):
    rng = np.random.default_rng(1)
    (P, U), groups = correlated(rng, (300, 600))
    weights = [rng.choice([1.0, 2.0], len(X)) if weighted else np.ones(len(X)) for X in (P, U)]
    clean = bounds_of((P, U), groups, weights)
    assert clean.exact < 1.0
    more = [np.vstack([X, X[:30] + 50.0]) for X in (P, U)]
    added = [np.r_[g, g[:30]] for g in groups]
    zeros = [np.r_[w, np.zeros(30)] for w in weights]
    found = bounds_of(more, added, zeros, n_clean=len(P))
    assert_allclose(found, clean, rtol=1e-9)


def test_groups_of_weight_zero_are_left_out():
    (P, U), groups = correlated(np.random.default_rng(2))
    many = [np.r_[g, 10_000 + np.arange(40)] for g in groups]
    more = [np.vstack([X, np.full((40, 2), -50.0)]) for X in (P, U)]
    weights = [np.r_[np.ones(len(X)), np.zeros(40)] for X in (P, U)]
    estimator = AutoPrior(classifiers=LINEAR, n_repeats=1, n_resamples=20, random_state=0)
    clean = estimator.fit_samples(P, U, groups=groups)
    expected = clean.prior_, clean.upper_bound_
    found = estimator.fit_samples(*more, groups=many, weights=weights)
    assert found.prior_ == pytest.approx(expected[0], abs=0.02)  # bins differ
    assert 0.2 < found.upper_bound_ < 1.0
    assert found.upper_bound_ == pytest.approx(expected[1], abs=0.15)


def bounds_of(rows, groups, weights, n_clean=None):
    """Return the bounds of a fixed score, the first column, with folds by parity of the group."""
    folds = [group % 2 for group in groups]
    samples = Samples.of_rows(*rows, 0).with_units(
        RowOptions(groups=tuple(groups), weights=tuple(weights), folds=tuple(folds))
    )
    drawn = samples.subsample(None)
    held_out = HeldOut(samples, drawn, samples.folds(2))
    tables = []
    thresholds = np.quantile(rows[0][:n_clean, 0], [0.3, 0.6])
    for s in (0, 1):
        beside = held_out.beside(s)
        units = beside["units"]
        table = np.zeros((held_out.n_cells(s)[2], 3))
        cells = 2 - np.searchsorted(thresholds, -rows[s][:, 0], side="right")
        w = beside.get("weights", np.ones(len(units)))
        used = units >= 0
        np.add.at(table, (units[used], cells[used]), w[used])
        tables.append(table)
    return held_out.bounds(*tables, 0.1)


def test_bins_of_drawn_rows_do_not_count_weight_zero():
    """Rows read into memory keep the bins without the rows of weight 0."""
    weights = np.r_[np.ones(50), np.zeros(50)], np.r_[np.ones(150), np.zeros(150)]
    X = np.zeros((100, 1)), np.zeros((300, 1))
    samples = Samples.of_rows(*X, 0).with_units(RowOptions(weights=weights))
    numbers = np.arange(100), np.arange(300)
    assert samples.bins.n_counted == (50, 150)
    assert samples._of_drawn(numbers, X).bins.n_counted == (50, 150)
    assert isinstance(samples.bins, Bins)
