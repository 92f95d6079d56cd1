from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from classprior._scores import tails as _tails
from classprior._scores.diagnostics import falls
from classprior._scores.intervals import lowest_share, purity_p_value
from classprior._scores.limits import binomial_limits, bound_ranks, certified_bounds, exact_limits
from classprior._scores.tails import (
    EXAMINED,
    ScoreTails,
    average,
    combine,
    extrapolated_share,
    separation_of,
    sharpened,
    soft_minima,
    tail_ratio,
)

SCORES = arrays(float, st.integers(1, 30), elements=st.integers(-3, 3).map(float))


def tails(rng, n=200, m=500, prior=0.4, shift=4.0):
    """Scores of positives around 0, of negatives lower."""
    k = round(prior * m)
    unlabeled = np.r_[rng.normal(size=k), rng.normal(-shift, 1.0, m - k)]
    return rng.normal(size=n), unlabeled


def bounds(positive, unlabeled, delta):
    """Bounds with the positives themselves as thresholds."""
    k = bound_ranks(len(positive))
    beyond = [np.sum(unlabeled >= threshold) for threshold in np.sort(positive)[-k]]
    return certified_bounds(k, np.array(beyond), len(positive), len(unlabeled), delta)


@given(positive=SCORES, unlabeled=SCORES)
def test_counts_are_the_rows_at_or_beyond_each_threshold(positive, unlabeled):
    """Tied scores enter together."""
    p, u, n, m = ScoreTails.from_scores(positive, unlabeled).counts()
    assert (n, m) == (len(positive), len(unlabeled))
    P, U = np.cumsum(p), np.cumsum(u)
    for i, threshold in enumerate(np.unique(positive)[::-1]):
        assert P[i] == np.sum(positive >= threshold)
        assert U[i] == np.sum(unlabeled >= threshold)
    assert P[-1] == len(positive)


def test_thresholds_are_limited_and_weights_count():
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.normal(size=3000), rng.normal(size=100)
    bins = np.arange(3000) % 7, np.arange(100) % 5
    tail = ScoreTails.from_scores(positive, unlabeled, bins, (7, 5))
    assert tail.positive.shape == (7, _tails.MOST_THRESHOLDS)
    weights = np.arange(7.0), np.array([1.0, 0.0, 2.0, 0.0, 0.0])
    p, u, n, m = tail.counts(weights)
    repeated = positive.repeat(bins[0]), unlabeled.repeat(weights[1][bins[1]].astype(int))
    thresholds = np.unique(positive[np.argsort(-positive)][np.linspace(0, 2999, 400).astype(int)])
    for counts, scores in zip((p, u), repeated, strict=True):
        assert_array_equal(np.cumsum(counts)[::-1], [np.sum(scores >= t) for t in thresholds])
    assert (n, m) == (len(repeated[0]), len(repeated[1]))


@pytest.mark.parametrize("resampled", [False, True])
@pytest.mark.parametrize(("prior", "m"), [(0.4, 90), (0.05, 2000)])
def test_tail_ratio_is_that_of_brute_force(prior, m, resampled):
    n = 60
    positive, unlabeled = tails(np.random.default_rng(1), n=n, m=m, prior=prior, shift=1.0 / prior)
    rows = []
    for threshold in positive:
        P, U = np.sum(positive >= threshold), np.sum(unlabeled >= threshold)
        log = np.log((U + 0.5) / (m + 0.5) / ((P - 0.5) / (n + 0.5)))
        variance = 1 / (U + 0.5) - 1 / (m + 0.5) + 2 / (P - 0.5) - 2 / (n + 0.5)
        rows.append((P, log, np.sqrt(variance * (2 if resampled else 1))))
    quarter = next(log for P, log, _ in rows if n / 4 == P)
    smallest = min(0.25, np.exp(quarter)) * n
    assert (smallest < n / 4) == (prior < 0.25)
    logs, errors = np.array([(log, e) for P, log, e in rows if smallest <= P]).T
    upper = logs + errors
    shares = [P / n for P, _, _ in rows if smallest <= P]
    weights = [
        np.exp(-k * (upper - np.min(upper)) / errors[np.argmin(upper)]) for k in (2.0, 1.0, 0.5)
    ]
    expected = [[np.average(v, weights=w) for w in weights] for v in (logs, errors, shares)]
    counts = ScoreTails.from_scores(positive, unlabeled).counts()
    assert_allclose(tail_ratio(*counts, resampled=resampled), expected, rtol=1e-12)


def test_soft_minima():
    """Distant values have no weight, equal ones have equal weight, excluded ones none."""
    values, errors = np.array([[0.0, 0.0, 9.0, -5.0]]), np.full((1, 4), 0.1)
    weights = soft_minima(values, errors, np.array([1, 1, 1, 0]))
    assert_allclose(weights, [[0.5, 0.5, 0.0, 0.0]] * 3, atol=1e-12)


def test_sharper_minima_are_lower():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1, 50, 30))
    minima = np.sum(soft_minima(values, np.full_like(values, 0.5)) * values, axis=-1)
    assert np.all(np.diff(minima, axis=0) > 0.0)
    assert np.all(minima[0] > values[0].min(axis=-1))


def test_noise_alone_is_hardly_corrected():
    """Every tail has the same ratio; the correction adds little bias, and less noise remains."""
    rng = np.random.default_rng(1)
    found, minima = [], []
    for _ in range(400):
        hidden = rng.normal(8.0, 1.0, 200)
        scores = rng.normal(8.0, 1.0, 200), np.r_[hidden, rng.normal(0.0, 1.0, 200)]
        estimate = combine([ScoreTails.from_scores(*scores).counts()])
        found.append(float(estimate.prior) - 0.5)
        minima.append(float(estimate.ratio) - 0.5)
    assert abs(np.mean(found) - np.mean(minima)) < 0.005
    assert np.mean(np.square(found)) < 0.95 * np.mean(np.square(minima))


@pytest.mark.parametrize("prior", [0.1, 0.3])
def test_overlap_is_corrected(prior):
    """Negatives are exponential, and thin out toward the end of the tail: the minimum is high."""
    rng = np.random.default_rng(2)
    found, minima = [], []
    for _ in range(100):
        hidden = rng.exponential(1.0, int(4000 * prior))
        unlabeled = np.r_[hidden, rng.exponential(1 / 3, 4000 - len(hidden))]
        estimate = combine([ScoreTails.from_scores(rng.exponential(1.0, 500), unlabeled).counts()])
        found.append(float(estimate.prior) - prior)
        minima.append(float(estimate.ratio) - prior)
    assert np.mean(minima) > 0.03
    assert 0.0 < np.mean(found) < 0.5 * np.mean(minima)


@pytest.mark.parametrize("n", [300, 3000, 30_000])
def test_the_correction_vanishes_with_many_rows(n):
    """A box of positives, of which 40% stand alone: ratios rise where the negatives begin."""
    rng = np.random.default_rng(n)
    unlabeled = np.r_[rng.random(2 * n), rng.random(2 * n) - 0.4]
    estimate = combine([ScoreTails.from_scores(rng.random(n), unlabeled).counts()])
    error = np.sqrt(2.0 / n)
    assert abs(float(estimate.prior - estimate.ratio)) < error
    assert estimate.prior == pytest.approx(0.5, abs=2.0 * error)


def test_corrections_are_limited():
    """An extreme step between flat minima would make the share negative, others too large."""
    minima, error = np.array([[0.01], [0.012], [0.05]]), np.array([0.4])
    assert_allclose(sharpened(minima, error), 0.01 * np.exp(-0.4), rtol=1e-12)
    minima = np.array([[0.1], [0.12], [0.131]])
    assert_allclose(sharpened(minima, error), 0.1 + 3.0 * 0.02 - 4.0 * 0.011, rtol=1e-12)
    assert_allclose(sharpened(np.array([[0.1], [0.15], [0.16]]), error), 0.15, rtol=1e-12)


def test_rare_positives_are_found_in_a_small_tail():
    """Only the top tenth of the positives stands alone, and 1% of the unlabeled rows are positive.

    The ratio of the tail with a quarter of the positives is 0.04.
    """
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        hidden, negative = rng.uniform(0.0, 1.0, 200), rng.uniform(-20.0, 0.9, 19_800)
        counts = ScoreTails.from_scores(rng.uniform(0.0, 1.0, 400), np.r_[hidden, negative])
        found.append(float(combine([counts.counts()]).prior))
    assert_allclose(np.exp(np.mean(np.log(found))), 0.01, rtol=0.2)


def test_a_few_foreign_positives_do_not_spoil_the_answer():
    """One known positive in twenty scores above all unlabeled rows."""
    rng = np.random.default_rng(5)
    positive, unlabeled = tails(rng, n=300, m=1000)
    positive[:15] = 9.0
    estimate = combine([ScoreTails.from_scores(positive, unlabeled).counts()])
    assert 0.3 < estimate.prior < 0.45


@pytest.mark.parametrize(("n", "bias"), [(10, 0.2), (50, 0.1), (300, 0.05)])
def test_small_tails_are_hardly_chosen_by_chance(n, bias):
    """All unlabeled rows are positive, so every tail has the same ratio up to noise.

    The smallest log-ratio of all tails has a mean of -0.7.
    """
    rng = np.random.default_rng(n)
    logs = []
    for _ in range(200):
        counts = ScoreTails.from_scores(rng.random(n), rng.random(5 * n)).counts()
        logs.append(float(tail_ratio(*counts).log_ratio[0]))
    assert abs(np.mean(logs)) < bias


def test_cross_fitting_doubles_the_noise_of_the_positives_at_most():
    """Two samples of the same distribution, scored along the difference of their means."""
    rng = np.random.default_rng(0)
    n, m, P = 60, 1200, np.array([6, 18, 36])
    logs = []
    for _ in range(800):
        X, is_positive = rng.normal(size=(n + m, 3)), np.arange(n + m) < n
        folds = np.concatenate([rng.permutation(n), rng.permutation(m)]) % 5
        scores = np.empty(n + m)
        for fold in range(5):
            fitted = folds != fold
            direction = X[fitted & is_positive].mean(axis=0) - X[fitted & ~is_positive].mean(axis=0)
            scores[~fitted] = X[~fitted] @ direction / np.linalg.norm(direction)
        thresholds = np.sort(scores[:n])[::-1][P - 1]
        U = np.sum(scores[n:] >= thresholds[:, None], axis=1)
        logs.append(np.log((U + 0.5) / (m + 0.5)) - np.log((P - 0.5) / (n + 0.5)))
    assert_allclose(np.mean(logs, axis=0), 0.0, atol=0.06)
    of_positives = 1 / (P - 0.5) - 1 / (n + 0.5)
    of_unlabeled = n / (P * m) - 1 / m
    variance = np.var(logs, axis=0)
    assert np.all(variance > 1.05 * (of_positives + of_unlabeled))
    assert np.all(variance < 2.0 * of_positives + of_unlabeled)


def test_weights_below_one_row():
    """Known positives may weigh less than one row in all, and their weights may be any numbers."""
    rng = np.random.default_rng(0)
    p, u, n, m = ScoreTails.from_scores(*tails(rng)).counts()
    for factor in (1e-4, 0.013, 0.7):
        estimate = combine([(factor * p, u, factor * n, m)])
        assert 0.2 < estimate.prior < 0.9
    limits = exact_limits([(0.7 * p, 0.9 * u, 0.7 * n, 0.9 * m)], 0.05)
    assert all(low < 0.4 < high for low, high in limits)


def test_resamples_are_handled_all_at_once():
    rng = np.random.default_rng(2)
    bins = np.arange(200) % 20, np.arange(500) % 30
    tail = ScoreTails.from_scores(*tails(rng), bins, (20, 30))
    weights = rng.poisson(1, (5, 20)).astype(float), rng.poisson(1, (5, 30)).astype(float)
    each = [combine([tail.counts(pair)]).prior for pair in zip(*weights, strict=True)]
    assert_allclose(combine([tail.counts(weights)]).prior, each, rtol=1e-12)


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("window", [0.2, 0.7])
@pytest.mark.parametrize(("prior", "slope"), [(0.3, 0.0), (0.3, 0.4), (0.0, 1.0)])
def test_extrapolation_is_exact_for_a_power_of_the_share(prior, slope, window, power):
    """The density of unlabeled rows at tail share w is prior + slope w^p, in a fine grid of w."""
    w = (np.arange(100_000) + 0.5) / 100_000
    unlabeled = (prior + slope * w**power) / 100_000
    positive = np.full(100_000, 1.0 / 100_000)
    assert_allclose(extrapolated_share(positive, unlabeled, 1, 1, window, power), prior, atol=1e-4)


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("n_blocks", [1, 2, 3, 7])
def test_extrapolation_with_ties(n_blocks, power):
    """Scores that cannot tell the samples apart give 1, in however few blocks they are tied."""
    share = np.full(n_blocks, 1.0 / n_blocks)
    assert_allclose(extrapolated_share(share, share, 1, 1, 0.7, power), 1.0, rtol=1e-12)
    # Two blocks, all unlabeled rows in the second, which is outside the window.
    two = np.array([0.7, 0.3])
    assert extrapolated_share(two, np.array([0.0, 1.0]), 1, 1, 0.7, power) == 0.0


def test_the_variance_of_the_purity_test():
    """In a pure tail, purest / prior varies as stated, but for the factor 2 of cross-fitting."""
    rng = np.random.default_rng(4)
    n, m, prior, window = 2000, 20_000, 0.3, 0.5
    of_unlabeled, of_positives = 8.0 / window / (prior * m), 8.0 / window / n
    ratios = []
    for _ in range(400):
        positive, hidden = rng.random(n), rng.random(rng.binomial(m, prior))
        p, u, _, _ = ScoreTails.from_scores(positive, hidden).counts()
        inside = np.sum(u[np.cumsum(p) <= window * n]) / m / window
        ratios.append(float(extrapolated_share(p, u, n, m, window, 0.5)) / inside)
    variance = of_unlabeled + of_positives
    assert_allclose(np.mean(ratios), 1.0, atol=4 * np.sqrt(variance / 400))
    assert_allclose(np.var(ratios), variance, rtol=0.25)
    counts = ScoreTails.from_scores(rng.random(n), rng.random(m)).counts()
    estimate = replace(combine([counts]), ratio=prior, purest=0.7 * prior, share=window / EXAMINED)
    z = stats.norm.isf(purity_p_value(estimate, n, m))
    assert_allclose((0.3 / z) ** 2, of_unlabeled + 2.0 * of_positives, rtol=1e-9)


def scores_of(kind, n, m, prior, rng):
    """One score: a pure fifth of the positives, or negatives that thin out without an end."""
    hidden = rng.binomial(m, prior)
    if kind == "pure":
        positive, negative = rng.random(n + hidden), 0.8 * (1.0 - np.sqrt(rng.random(m - hidden)))
    else:
        positive, negative = rng.normal(1, 1, n + hidden), rng.normal(0, 1, m - hidden)
    return positive[:n], np.concatenate([positive[n:], negative])


@pytest.mark.parametrize(
    ("kind", "n", "m", "prior", "least", "most"),
    [
        ("pure", 300, 3000, 0.1, 0, 7),
        ("pure", 4000, 20_000, 0.1, 0, 7),
        ("pure", 4000, 20_000, 0.5, 0, 7),
        ("overlap", 4000, 20_000, 0.1, 57, 60),
        ("overlap", 4000, 20_000, 0.3, 30, 60),
    ],
)
def test_false_alarms_and_power_of_the_purity_test(kind, n, m, prior, least, most):
    """Of 60 draws, so many are said to have negatives in the tail of the estimate."""
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(60):
        estimate = combine([ScoreTails.from_scores(*scores_of(kind, n, m, prior, rng)).counts()])
        p_value = purity_p_value(estimate, n, m)
        found += falls(p_value, float(estimate.purest), float(estimate.prior))
    assert least <= found <= most


def test_exact_limits_of_a_perfect_tail():
    """All positives and k unlabeled rows in one tail: Clopper-Pearson up to the noise of s."""
    n, m, delta = 1e7, 600.0, 0.05
    for k in (0.0, 1.0, 30.0, 600.0):
        (low, high), (low_sample, high_sample) = exact_limits(
            [(np.array([n]), np.array([k]), n, m)], delta
        )
        expected = stats.binomtest(int(k), int(m)).proportion_ci(0.95, "exact")
        assert_allclose([low, high], expected, rtol=1e-4, atol=1e-12)
        assert_allclose([low_sample, high_sample], k / m, atol=1e-6)  # the rows are known


def test_exact_limits_of_a_count_cover_it():
    """K hidden positives, of which those above the r-th of n known scores are seen."""
    rng = np.random.default_rng(0)
    n, m, K, r = 60, 400, 9, 40
    missed = 0
    for _ in range(2000):
        known, hidden = rng.random(n), rng.random(K)
        seen = np.sum(hidden > np.sort(known)[n - r])
        (low, high), (low_sample, high_sample) = exact_limits(
            [(np.array([float(r)]), np.array([float(seen)]), float(n), float(m))], 0.1
        )
        missed += not np.floor(low_sample * m) <= K <= np.ceil(high_sample * m)
        assert low <= seen / m / (r / n) <= high
    assert missed / 2000 <= 0.1


@given(
    st.integers(13, 50),  # a tail that is used has a quarter of the positives
    st.integers(0, 200),
    st.floats(0.001, 0.4),
    st.floats(0.001, 0.4),
)
def test_more_confidence_never_narrows_the_exact_limits(P, U, delta, other):
    tail = [(np.array([float(P)]), np.array([float(U)]), 50.0, 200.0)]
    wide, narrow = (exact_limits(tail, d) for d in sorted((delta, other)))
    for outer, inner in zip(wide, narrow, strict=True):
        assert outer.low <= inner.low + 1e-12
        assert outer.high >= inner.high - 1e-12


def test_a_blind_score_does_not_spoil_the_answer():
    rng = np.random.default_rng(3)
    seeing = ScoreTails.from_scores(*tails(rng)).counts()
    blind = ScoreTails.from_scores(rng.normal(size=200), rng.normal(size=500)).counts()
    alone = combine([seeing])
    both = combine([seeing, blind])
    assert both.of_scores[1] > 0.85
    assert abs(both.prior - alone.prior) < 0.01 < abs(both.of_scores.mean() - alone.prior)


def test_equal_scores_share_the_answer():
    tail = ScoreTails.from_scores(*tails(np.random.default_rng(4))).counts()
    once, twice = combine([tail]), combine([tail, tail])
    assert_allclose(twice.prior, once.prior, rtol=1e-12)
    assert_allclose(average([once, once]).prior, once.prior, rtol=1e-12)


def test_recovers_the_share_with_a_negative_control():
    estimates = {0.1: [], 0.4: []}
    for prior, found in estimates.items():
        for seed in range(30):
            tail = ScoreTails.from_scores(*tails(np.random.default_rng(seed), prior=prior))
            found.append(combine([tail.counts()]).prior)
    # One estimate has a standard deviation of some 10%, so that the mean of 30 has 2%.
    assert_allclose([np.mean(v) for v in estimates.values()], [0.1, 0.4], rtol=0.06)
    assert np.mean(estimates[0.4]) > np.mean(estimates[0.1]) + 0.25


def test_certified_bound_is_built_from_exact_limits():
    rng = np.random.default_rng(5)
    positive, unlabeled = tails(rng, n=40, m=70)
    each = 0.1 / 12
    ratios, squares = [], []
    for share in (0.1, 0.2, 0.35, 0.5, 0.7, 0.9):
        k = int(np.ceil(share * 40))
        beyond = int(np.sum(unlabeled >= np.sort(positive)[::-1][k - 1]))
        exact = stats.binomtest(beyond, 70).proportion_ci(1.0 - 2.0 * each, method="exact").high
        ratios.append(exact / stats.beta(k, 41 - k).ppf(each))
        most = stats.binomtest(beyond, 70).proportion_ci(1.0 - 4.0 * each, method="exact").high
        up = np.log(most) - np.log((beyond + 0.5) / 70.5)
        down = np.log(k / 41) - np.log(stats.beta(k, 41 - k).ppf(2.0 * each))
        squares.append((beyond + 0.5) / 70.5 * 41 / k * np.exp(np.sqrt(up**2 + down**2)))
    assert_allclose(
        bounds(positive, unlabeled, 0.1), [min(1.0, *ratios), min(1.0, *squares)], rtol=1e-9
    )


@pytest.mark.parametrize("shift", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("n", [15, 200])
def test_certified_bound_covers(shift, n):
    """At least at its level, whether or not the classes can be told apart."""
    rng = np.random.default_rng(6)
    failures = sum(
        bounds(*tails(rng, n=n, m=300, prior=0.5, shift=shift), delta=0.3).exact < 0.5
        for _ in range(400)
    )
    assert failures <= 0.3 * 400 + 3 * np.sqrt(400 * 0.3 * 0.7)


@pytest.mark.parametrize("prior", [0.1, 0.5, 0.9])
def test_certified_bound_covers_the_share_in_these_rows(prior):
    """The number of positives is fixed, and half of the rows are counted, as in AutoPrior."""
    rng, m, n, failed = np.random.default_rng(1), 120, 60, 0
    for _ in range(2000):
        positive = rng.normal(size=n)
        unlabeled = np.r_[rng.normal(size=round(prior * m)), np.full(m - round(prior * m), -9.0)]
        exact, _ = bounds(positive, rng.permutation(unlabeled)[: m // 2], 0.2)
        failed += exact < prior
    # As rare as it may be, but for four standard errors.
    assert failed <= 2000 * 0.2 + 4 * np.sqrt(2000 * 0.2 * 0.8)


def separation(positive, unlabeled, prior):
    return separation_of([ScoreTails.from_scores(positive, unlabeled).counts()], prior)


@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0, 6.0])
@pytest.mark.parametrize("prior", [0.1, 0.5])
def test_separation_is_the_index_of_youden(shift, prior):
    """The largest difference of two normal distribution functions, halfway between the classes."""
    positive, unlabeled = tails(np.random.default_rng(0), 20_000, 100_000, prior, shift)
    expected = 2.0 * stats.norm.cdf(shift / 2.0) - 1.0
    assert_allclose(separation(positive, unlabeled, prior), expected, atol=0.015)


def test_separation_by_brute_force():
    positive, unlabeled = tails(np.random.default_rng(0), 60, 300, 0.3, 2.0)
    best = 0.0
    for threshold in positive:
        w, share = np.mean(positive >= threshold), np.mean(unlabeled >= threshold)
        error = np.sqrt((w * (1 - w) + 0.5 / 60) / 60 + (share * (1 - share) + 0.5 / 300) / 300)
        if w - share > 3.5 * error:
            best = max(best, w - max(0.0, share - 0.3 * w) / 0.7)
    assert best > 0.5
    assert separation(positive, unlabeled, 0.3) == pytest.approx(best)


@pytest.mark.parametrize("prior", [0.3, 0.9, 0.99, 0.9999, 1.0])
def test_classes_that_look_alike_do_not_stand_out(prior):
    """Whatever the estimate is; close to 1 it would magnify noise."""
    rng = np.random.default_rng(0)
    found = [separation(rng.normal(size=300), rng.normal(size=2000), prior) for _ in range(200)]
    assert np.mean(np.array(found) > 0.2) < 0.1


def test_the_interval_falls_to_zero_where_known_positives_do_not_stand_out():
    assert lowest_share(0.2, 0.9) == 0.2
    assert lowest_share(0.2, 0.85) == pytest.approx(0.2)
    assert lowest_share(0.2, 0.725) == pytest.approx(0.1)
    assert lowest_share(0.2, 0.6) == 0.0
    assert lowest_share(0.2, 0.0) == 0.0


@pytest.mark.parametrize("prior", [0.3, 0.9])
@pytest.mark.parametrize("n", [15, 200])
def test_asymptotic_bound_covers_even_with_few_rows(prior, n):
    rng = np.random.default_rng(8)
    failures = sum(
        bounds(*tails(rng, n=n, m=300, prior=prior, shift=5.0), delta=0.2).asymptotic < prior
        for _ in range(400)
    )
    assert failures <= 0.2 * 400 + 3 * np.sqrt(400 * 0.2 * 0.8)


def test_certified_bounds_say_something():
    rng = np.random.default_rng(7)
    found = bounds(*tails(rng, n=2000, m=5000, prior=0.2), delta=0.05)
    assert 0.2 < found.asymptotic < found.exact < 0.25
    assert bounds(np.ones(3), np.ones(5), 0.05).exact == 1.0


def test_certified_bound_at_given_thresholds():
    """Both limits are Clopper-Pearson limits; a threshold without positives says nothing."""
    k, beyond = np.array([0, 20]), np.array([2, 12])
    exact, asymptotic = certified_bounds(k, beyond, 30, 200, 0.1)
    high = stats.binomtest(12, 200).proportion_ci(0.95, method="exact").high
    low = stats.binomtest(20, 30).proportion_ci(0.95, method="exact").low
    assert_allclose(exact, high / low, rtol=1e-9)
    assert 12 / 200 * 30 / 20 < asymptotic < exact
    assert certified_bounds(k[:1], beyond[:1], 30, 200, 0.1) == (1.0, 1.0)


@pytest.mark.parametrize("k", [0, 1, 7, 20])
def test_binomial_limits_are_those_of_scipy(k):
    expected = stats.binomtest(k, 20).proportion_ci(0.9, "exact")
    assert_allclose(binomial_limits(k, 20, 0.05), (expected.low, expected.high))
