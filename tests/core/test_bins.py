"""Assignment of rows to bins, and the folds, resamples and halves made of them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import stats

from classprior._core.bins import (
    BANDWIDTHS,
    CENTERS,
    MOST_RANKED,
    N_BINS,
    SUBSAMPLE,
    Bins,
    choose,
    deal,
    group_keys,
)

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(st.integers(1, 450), st.integers(1, 450))
N = 500


def even(counts):
    """Tell whether counts differ by at most one."""
    return counts.max() - counts.min() <= 1


def bins_of(bins, sample):
    return bins.of_rows(sample, 0, int(bins.n_rows[sample].sum()))


# --- rows ------------------------------------------------------------------------------------


@given(
    seed=SEEDS,
    cuts=st.lists(st.integers(0, N), max_size=6),
    size=st.sampled_from([N, MOST_RANKED + N]),  # dealt by rank, and by the hash alone
    n_bins=st.integers(1, 130),
    sample=st.integers(0, 1),
)
def test_a_row_has_its_bin_however_rows_are_cut(seed, cuts, size, n_bins, sample):
    parts = [deal(seed, sample, a, b - a, size, n_bins) for a, b in pairwise([0, *sorted(cuts), N])]
    assert_array_equal(np.concatenate(parts), deal(seed, sample, 0, N, size, n_bins))


@given(seed=SEEDS, sizes=SIZES)
def test_bins_are_even_and_counted(seed, sizes):
    bins = Bins.dealt(seed, sizes)
    for sample, size in enumerate(sizes):
        counts = bins.n_rows[sample]
        assert len(counts) == min(N_BINS, size)
        assert even(counts)
        assert_array_equal(np.bincount(bins_of(bins, sample), minlength=len(counts)), counts)
    assert bins.n_units == tuple(min(N_BINS, size) for size in sizes)


@given(seed=SEEDS, rows=st.sets(st.integers(0, 9_999), max_size=300))
@pytest.mark.parametrize("size", [10_000, MOST_RANKED + 1])
def test_bins_of_single_rows_are_those_of_all_rows(size, seed, rows):
    bins = Bins.dealt(seed, (1, size))
    numbers = np.array(sorted(rows), dtype=np.int64)
    assert_array_equal(bins.of_numbers(1, numbers), bins_of(bins, 1)[numbers])


def test_bins_by_the_hash_alone_are_counted_and_nearly_even():
    size = 3 * MOST_RANKED
    bins = Bins.dealt(0, (1, size))
    assert_array_equal(bins.n_rows[1], np.bincount(bins_of(bins, 1), minlength=N_BINS))
    deviations = (bins.n_rows[1] - size / N_BINS) / np.sqrt(size / N_BINS * (1 - 1 / N_BINS))
    assert np.abs(deviations).max() < 4.5
    assert 0.7 < np.std(deviations) < 1.3


@pytest.mark.parametrize("size", [10_000, 2 * MOST_RANKED])
def test_neighboring_rows_are_dealt_independently(size):
    """Rows sorted by class must not be spread more evenly over bins than shuffled ones."""
    bins = deal(0, 1, 0, size, size, N_BINS)
    run = bins[: size // 2]  # rows of one class, at the beginning of a file
    counts = np.bincount(run, minlength=N_BINS)
    share = len(run) / size
    expected = share * size / N_BINS
    variance = expected * (1 - share if size <= MOST_RANKED else 1)
    assert stats.chi2.sf(np.sum((counts - expected) ** 2) / variance, N_BINS - 1) > 1e-3
    assert stats.chi2.cdf(np.sum((counts - expected) ** 2) / variance, N_BINS - 1) > 1e-3
    assert abs(np.mean(bins[1:] == bins[:-1]) - 1 / N_BINS) < 4 * np.sqrt(1 / N_BINS / size)
    assert abs(np.mean(bins[N_BINS:] == bins[:-N_BINS]) - 1 / N_BINS) < 4 * np.sqrt(
        1 / N_BINS / size
    )


def test_seeds_and_samples_differ():
    dealt = [deal(seed, sample, 0, N, N, N_BINS) for seed, sample in ((0, 0), (0, 1), (1, 0))]
    assert len({tuple(bins) for bins in dealt}) == 3


def test_chosen_rows():
    """Distinct, increasing, uniform over all rows, and others for every purpose and sample."""
    assert_array_equal(choose(0, CENTERS, 0, 7, 9), np.arange(7))
    drawn = [choose(seed, CENTERS, 1, 10_000_000, 500) for seed in range(20)]
    for rows in drawn:
        assert np.all(np.diff(rows) > 0)
    shares = np.histogram(np.concatenate(drawn), bins=10, range=(0, 10_000_000))[0] / 10_000
    assert np.abs(shares - 0.1).max() < 4 * np.sqrt(0.09 / 10_000)
    purposes = [(CENTERS, 0), (CENTERS, 1), (BANDWIDTHS, 0), (SUBSAMPLE, 0)]
    assert len({tuple(choose(0, *purpose, N, 50)) for purpose in purposes}) == 4


# --- folds -----------------------------------------------------------------------------------


@given(seed=SEEDS, sizes=SIZES, n_folds=st.integers(2, 9), number=st.integers(0, 3))
def test_folds_are_unions_of_bins_with_rows_of_both_samples(seed, sizes, n_folds, number):
    bins = Bins.dealt(seed, sizes)
    assume(n_folds <= min(bins.n_units))
    for folds, counts in zip(bins.folds(n_folds, number), bins.n_rows, strict=True):
        assert even(np.bincount(folds, minlength=n_folds))
        assert np.all(np.bincount(folds, counts, n_folds) > 0)


def test_rounds_have_other_folds():
    bins = Bins.dealt(0, (300, 300))
    rounds = [tuple(bins.folds(5, number)[sample]) for number in range(4) for sample in (0, 1)]
    assert len(set(rounds)) == 8


# --- groups ----------------------------------------------------------------------------------

GROUPS = st.lists(st.integers(0, 40), min_size=1, max_size=150)
FEW_BINS = st.integers(1, 30)


def grouped(seed, positive, unlabeled, n_bins=N_BINS):
    keys = group_keys([*map(str, positive)]), group_keys([*map(str, unlabeled)])
    return Bins.of_groups(seed, keys, n_bins)


def one_each(groups, values):
    """Return the one value of every group, or fail."""
    found = {}
    for group, value in zip(groups, values, strict=True):
        assert found.setdefault(group, value) == value
    return found


@given(seed=SEEDS, positive=GROUPS, unlabeled=GROUPS, n_bins=FEW_BINS)
def test_a_group_has_one_bin_in_both_samples(seed, positive, unlabeled, n_bins):
    bins = grouped(seed, positive, unlabeled, n_bins)
    rows = bins_of(bins, 0), bins_of(bins, 1)
    of_group = one_each([*positive, *unlabeled], np.concatenate(rows))
    n = len(bins.n_rows[0])
    assert n == len(bins.n_rows[1]) == min(n_bins, len(of_group))
    for bins_of_rows, counts in zip(rows, bins.n_rows, strict=True):
        assert_array_equal(np.bincount(bins_of_rows, minlength=n), counts)
    # Groups are spread evenly, and so are those that have positives.
    assert even(np.bincount([*of_group.values()], minlength=n))
    assert even(np.bincount([of_group[group] for group in set(positive)], minlength=n))


@given(seed=SEEDS, positive=GROUPS, unlabeled=GROUPS, order=st.randoms(use_true_random=False))
def test_the_bin_of_a_group_does_not_depend_on_the_order_of_rows(seed, positive, unlabeled, order):
    before = one_each(positive, bins_of(grouped(seed, positive, unlabeled), 0))
    positive, unlabeled = positive.copy(), unlabeled.copy()
    order.shuffle(positive)
    order.shuffle(unlabeled)
    assert one_each(positive, bins_of(grouped(seed, positive, unlabeled), 0)) == before


@given(seed=SEEDS, positive=GROUPS, unlabeled=GROUPS, n_bins=FEW_BINS, n_folds=st.integers(2, 6))
def test_folds_of_groups(seed, positive, unlabeled, n_bins, n_folds):
    """One fold for a group; rows of both samples in every fold, if there are enough bins."""
    bins = grouped(seed, positive, unlabeled, n_bins)
    assume(n_folds <= min(bins.n_units))
    for number in range(3):
        folds = bins.folds(n_folds, number)
        of_rows = [folds[sample][bins_of(bins, sample)] for sample in (0, 1)]
        one_each([*positive, *unlabeled], np.concatenate(of_rows))
        for part in of_rows:
            assert np.all(np.bincount(part, minlength=n_folds) > 0)


@given(seed=SEEDS, positive=GROUPS, unlabeled=GROUPS)
def test_weights_of_groups(seed, positive, unlabeled):
    """One weight for a group; rows of both samples in every resample."""
    bins = grouped(seed, positive, unlabeled)
    weights = bins.weights(25)
    assert_array_equal(*weights)
    assert weights[0].shape == (25, len(bins.n_rows[0]))
    for of_sample, counts in zip(weights, bins.n_rows, strict=True):
        assert np.all(of_sample @ counts > 0)


def test_seeds_deal_groups_differently():
    groups = np.arange(200), np.arange(300)
    dealt = {tuple(bins_of(grouped(seed, *groups), 0)) for seed in range(3)}
    assert len(dealt) == 3


def test_names_of_groups_have_keys_of_their_own():
    names = [f"customer {number}" for number in range(10_000)]
    assert len(np.unique(group_keys(names))) == 10_000
    assert_array_equal(group_keys(names[:5] * 2), np.tile(group_keys(names[:5]), 2))


# --- folds of the user's ---------------------------------------------------------------------

FOLDS = st.integers(2, 7).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, n - 1), min_size=1, max_size=120)] * 2)
)


@given(seed=SEEDS, folds=FOLDS, n_bins=st.integers(1, 40))
def test_given_folds_are_kept(seed, folds, n_bins):
    """Some may lack rows of a sample, as after a draw; bins are dealt within them."""
    folds = np.array(folds[0]), np.array(folds[1])
    bins = Bins.within_folds(seed, folds, n_bins=n_bins)
    for sample, given_folds in enumerate(folds):
        rows = bins_of(bins, sample)
        for number in range(2):
            assert_array_equal(bins.folds(5, number)[sample][rows], given_folds)
        for fold in set(given_folds):
            in_fold = rows[given_folds == fold]
            n = int(np.sum(bins.folds(5)[sample] == fold))
            counts = np.bincount(in_fold, minlength=len(bins.n_rows[sample]))
            assert_array_equal(counts[counts > 0], bins.n_rows[sample][counts > 0])
            assert even(counts[bins.folds(5)[sample] == fold])
            assert n == max(1, n_bins // (1 + max(part.max() for part in folds)))


def test_bins_within_folds_depend_on_the_seed_and_not_on_a_period():
    """Alternating rows, such as those of two machines, would otherwise be in separate bins."""
    folds = np.zeros(2000, dtype=np.int64), np.repeat([0, 1], 1000)
    rows = [bins_of(Bins.within_folds(seed, folds), 0) for seed in (0, 1)]
    assert np.any(rows[0] != rows[1])
    odd = np.bincount(rows[0], np.arange(2000) % 2, 50) / np.bincount(rows[0], minlength=50)
    assert odd.min() > 0.0
    assert odd.max() < 1.0


@given(seed=SEEDS, positive=GROUPS, unlabeled=GROUPS, n_folds=st.integers(2, 5))
def test_groups_within_given_folds(seed, positive, unlabeled, n_folds):
    folds = np.array(positive) % n_folds, np.array(unlabeled) % n_folds
    keys = group_keys([*map(str, positive)]), group_keys([*map(str, unlabeled)])
    bins = Bins.within_folds(seed, folds, keys)
    rows = bins_of(bins, 0), bins_of(bins, 1)
    of_group = one_each([*positive, *unlabeled], np.concatenate(rows))
    for sample in (0, 1):
        assert_array_equal(bins.folds(2)[sample][rows[sample]], folds[sample])
    assert len(set(of_group.values())) == len(of_group)  # there are enough bins for all of them
    assert_array_equal(*bins.weights(20))


# --- resamples -------------------------------------------------------------------------------


def test_weights_are_multinomial():
    bins = Bins.dealt(0, (1000, 70))
    for weights, n_bins in zip(bins.weights(4000), (100, 70), strict=True):
        assert weights.shape == (4000, n_bins)
        assert_array_equal(weights.sum(axis=1), n_bins)
        # Mean 1, variance 1 - 1/n, covariance -1/n; the mean over bins is exactly 1 each time.
        error = np.sqrt(1.0 / 4000)
        assert np.abs(weights.mean(axis=0) - 1.0).max() < 4.5 * error
        assert abs(weights.var(axis=0).mean() - (1.0 - 1.0 / n_bins)) < 0.01
        off_diagonal = np.cov(weights.T)[np.triu_indices(n_bins, 1)]
        assert np.abs(off_diagonal + 1.0 / n_bins).max() < 5.0 * error
        never = np.mean(weights == 0.0)
        assert abs(never - (1.0 - 1.0 / n_bins) ** n_bins) < 0.005


def test_the_samples_are_resampled_independently():
    first, second = Bins.dealt(3, (100, 100)).weights(4000)
    correlations = [np.corrcoef(first[:, i], second[:, i])[0, 1] for i in range(100)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(4000)


def test_bins_without_rows_have_no_weight():
    folds = np.array([0, 0, 1, 1]), np.array([0, 1, 1])
    bins = Bins.within_folds(0, folds)
    for weights, counts in zip(bins.weights(50), bins.n_rows, strict=True):
        assert np.all(weights[:, counts == 0] == 0.0)
        assert_array_equal(weights.sum(axis=1), np.count_nonzero(counts))


def standard_error(bins, values):
    """Return the standard error of a mean from resampled bins."""
    sums = np.bincount(bins_of(bins, 1), values, len(bins.n_rows[1]))
    weights = bins.weights(1000)[1]
    return np.std((weights @ sums) / (weights @ bins.n_rows[1]))


def test_the_standard_error_of_rows_and_of_groups():
    """The mean over 200 groups of equal rows has the standard error of 200 rows.

    One estimate from 100 bins is off by 7%, the mean of 20 by 1.6%.
    """
    by_row, by_group, blind = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        independent = rng.normal(size=4000)
        dealt = Bins.dealt(seed, (1, 4000))
        by_row.append(standard_error(dealt, independent) * np.sqrt(4000))
        clustered, groups = np.repeat(rng.normal(size=200), 20), np.repeat(np.arange(200), 20)
        shuffled = rng.permutation(4000)
        bins = grouped(seed, [0], groups[shuffled])
        by_group.append(standard_error(bins, clustered[shuffled]) * np.sqrt(200))
        blind.append(
            standard_error(Bins.dealt(seed, (1, 4000)), clustered[shuffled]) * np.sqrt(200)
        )
    assert np.mean(by_row) == pytest.approx(1.0, abs=0.06)
    assert np.mean(by_group) == pytest.approx(1.0, abs=0.06)
    assert np.mean(blind) < 0.3  # without groups it is the error of 4,000 rows, sqrt(20) less


# --- halves ----------------------------------------------------------------------------------


@given(seed=SEEDS, sizes=SIZES, number=st.integers(0, 5))
def test_half_of_the_bins_of_each_sample(seed, sizes, number):
    bins = Bins.dealt(seed, sizes)
    for half, n_units in zip(bins.half(number), bins.n_units, strict=True):
        assert len(half) == len(set(half)) == min(n_units, max(2, -(-n_units // 2)))


def test_halves_differ():
    bins = Bins.dealt(0, (200, 200))
    halves = [tuple(half) for number in range(5) for half in bins.half(number)]
    assert len(set(halves)) == 10
    taken = np.concatenate([bins.half(number)[0] for number in range(400)])
    shares = np.bincount(taken, minlength=100) / 400
    assert np.abs(shares - 0.5).max() < 4.5 * 0.5 / np.sqrt(400)


@given(seed=SEEDS, positive=GROUPS, unlabeled=GROUPS, number=st.integers(0, 5))
def test_half_of_the_groups_has_rows_of_both_samples(seed, positive, unlabeled, number):
    """At least two bins of each, without which nothing can be cross-validated."""
    bins = grouped(seed, positive, unlabeled)
    half = bins.half(number)
    assert_array_equal(*half)
    n_bins = len(bins.n_rows[0])
    assert n_bins // 2 <= len(half[0]) <= n_bins // 2 + 4
    for counts, n_units in zip(bins.n_rows, bins.n_units, strict=True):
        found = np.count_nonzero(counts[half[0]])
        assert found >= min(2, n_units)
        assert abs(found - n_units / 2) <= 2.5


@given(seed=SEEDS, number=st.integers(0, 5))
def test_half_of_given_folds_has_all_folds(seed, number):
    folds = np.arange(20) % 5, np.arange(40) % 5
    bins = Bins.within_folds(seed, folds)
    for half, of_bins in zip(bins.half(number), bins.folds(2), strict=True):
        assert set(of_bins[half]) == set(range(5))


@given(seed=SEEDS, positive=GROUPS, unlabeled=GROUPS, number=st.integers(0, 5))
def test_half_of_groups_in_given_folds_can_be_cross_validated(seed, positive, unlabeled, number):
    """Rows of each sample are in at least two folds, if they were before."""
    folds = np.array(positive) % 3, np.array(unlabeled) % 3
    keys = group_keys([*map(str, positive)]), group_keys([*map(str, unlabeled)])
    bins = Bins.within_folds(seed, folds, keys)
    for sample, half in enumerate(bins.half(number)):
        in_half = np.isin(bins_of(bins, sample), half)
        assert len(set(folds[sample][in_half])) >= min(2, len(set(folds[sample])))
