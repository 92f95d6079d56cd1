"""Exact limits for finite strata, against brute force over all populations and results."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import stats

from classprior.review import limits_of_count
from classprior.review._limits import _BOX_SHARE, hypergeometric, upper_limit, upper_limit_alone

ERRORS = (0.04, 0.06)


@cache
def law(N, M, n):
    return stats.hypergeom(N, M, n).pmf(np.arange(n + 1))


def result_probability(sizes, drawn, positives, found):
    """Probability of a result, by scipy."""
    each = zip(sizes, drawn, positives, found, strict=True)
    return math.prod(law(N, M, n)[x] for N, n, M, x in each)


def all_results(drawn):
    return list(product(*(range(n + 1) for n in drawn)))


@pytest.mark.parametrize(("size", "drawn"), [(7, 7), (30, 4), (200, 60), (10**7, 12)])
def test_hypergeometric_is_that_of_scipy(size, drawn):
    M = np.unique(np.linspace(0, size, 9).astype(int))
    expected = [stats.hypergeom(size, m, drawn).pmf(np.arange(drawn + 1)) for m in M]
    np.testing.assert_allclose(hypergeometric(size, drawn, M), expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "drawn"), [((15,), (5,)), ((6, 9), (3, 4)), ((20, 5), (3, 5)), ((4, 5, 6), (2, 2, 2))]
)
def test_limits_hold_for_every_population(sizes, drawn):
    limits = {x: limits_of_count(sizes, drawn, x, ERRORS) for x in all_results(drawn)}
    for positives in product(*(range(N + 1) for N in sizes)):
        total, too_high, too_low = sum(positives), 0.0, 0.0
        for found, (low, high) in limits.items():
            p = result_probability(sizes, drawn, positives, found)
            too_high += p * (low > total)
            too_low += p * (high < total)
        assert too_high + too_low <= sum(ERRORS) + 1e-12
        assert too_high <= ERRORS[0] + 1e-12
        assert too_low <= ERRORS[1] + 1e-12


def approximate_limit(sizes, drawn, found, error):
    """Return the approximate upper limit by which results are ordered, stratum by stratum."""
    z = stats.norm.isf(error)
    total = variance = 0.0
    for N, n, x in zip(sizes, drawn, found, strict=True):
        p, m = (x + z * z / 4) / (n + z * z / 2), n + z * z / 2
        total, variance = total + N * p, variance + N * (N - n) * p * (1 - p) / m
    return total + z * math.sqrt(variance)


def by_definition(sizes, drawn, found, error):
    """Largest total with a distribution within the strata's own limits that is not ruled out."""
    own, rest = _BOX_SHARE * error / (2 * len(sizes)), (1 - _BOX_SHARE) * error
    strata = list(zip(sizes, drawn, found, strict=True))
    most = [upper_limit_alone(N, n, x, own) for N, n, x in strata]
    fewest = [N - upper_limit_alone(N, n, n - x, own) for N, n, x in strata]
    observed = approximate_limit(sizes, drawn, found, rest) + 1e-9
    as_low = [x for x in all_results(drawn) if approximate_limit(sizes, drawn, x, rest) <= observed]
    possible = [
        sum(M)
        for M in product(*(range(a, b + 1) for a, b in zip(fewest, most, strict=True)))
        if sum(result_probability(sizes, drawn, M, x) for x in as_low) > rest
    ]
    return max(possible)


@pytest.mark.parametrize("found", [(0, 0), (0, 4), (1, 3), (3, 2)])
def test_the_upper_limit_is_the_supremum_over_distributions(found):
    sizes, drawn = (12, 9), (3, 4)
    limit = upper_limit(np.array(sizes), np.array(drawn), np.array(found), 0.1, resolution=0.0)
    assert limit == by_definition(sizes, drawn, found, 0.1)


@pytest.mark.parametrize("error", [0.3, 0.025, 0.001])
@pytest.mark.parametrize(("sizes", "drawn"), [((40, 9), (6, 4)), ((8, 900), (8, 5)), ((9,), (1,))])
def test_the_order_grows_with_each_stratum(sizes, drawn, error):
    """So a result with more positives is never more extreme, and corners bound boxes."""
    value = {x: approximate_limit(sizes, drawn, x, error) for x in all_results(drawn)}
    for x, u in value.items():
        for k in range(len(x)):
            more = (*x[:k], x[k] + 1, *x[k + 1 :])
            assert value.get(more, math.inf) > u


def mean_width(sizes, drawn, positives):
    """Mean width of 95% limits of the share, over nearly all results."""
    ways = {x: result_probability(sizes, drawn, positives, x) for x in all_results(drawn)}
    likely = sorted(ways, key=lambda x: -ways[x])
    likely = likely[: 1 + np.searchsorted(np.cumsum([ways[x] for x in likely]), 0.99)]
    limits = [limits_of_count(sizes, drawn, x, (0.025, 0.025)) for x in likely]
    widths = [(high - low) / sum(sizes) for low, high in limits]
    return np.average(widths, weights=[ways[x] for x in likely])


@pytest.mark.parametrize(
    ("sizes", "drawn", "positives", "most"),
    [
        ((100, 400), (15, 35), (90, 10), 0.140),
        ((150, 450), (32, 68), (143, 6), 0.074),
        ((600, 1400), (60, 40), (500, 100), 0.145),
    ],
)
def test_limits_are_shorter_than_those_ordered_by_the_estimate(sizes, drawn, positives, most):
    """The usual estimate as the order gives mean widths of 0.189, 0.109 and 0.176."""
    assert mean_width(sizes, drawn, positives) < most


@pytest.mark.parametrize(
    ("sizes", "drawn"),
    [((15,), (6,)), ((30, 9), (6, 4)), ((40, 400), (7, 7)), ((5, 6, 20), (3, 2, 3))],
)
def test_one_more_positive_never_lowers_a_limit(sizes, drawn):
    limits = {
        x: limits_of_count(sizes, drawn, x, ERRORS, resolution=0.0) for x in all_results(drawn)
    }
    for found, (low, high) in limits.items():
        for k in range(len(found)):
            more = limits.get((*found[:k], found[k] + 1, *found[k + 1 :]))
            assert more is None or (more[0] >= low and more[1] >= high)


def blaker_by_definition(size, drawn, found, error):
    """Numbers of positives whose p-value, by Blaker's definition, is above the error."""
    accepted = []
    for M in range(found, size - drawn + found + 1):
        p = law(size, M, drawn)
        smaller = np.minimum(np.cumsum(p), np.cumsum(p[::-1])[::-1])
        if p[smaller <= smaller[found] * (1 + 1e-9)].sum() > error:
            accepted.append(M)
    return accepted[0], accepted[-1]


@pytest.mark.parametrize("found", [0, 1, 7, 15, 20])
def test_one_stratum_has_the_limits_of_blaker(found):
    assert limits_of_count([90], [20], [found], (0.025, 0.025)) == blaker_by_definition(
        90, 20, found, 0.05
    )


def test_a_large_stratum_has_nearly_the_binomial_limits():
    N, n, x = 10**7, 80, 3
    upper = upper_limit_alone(N, n, x, 0.025) / N
    assert upper == pytest.approx(stats.beta.isf(0.025, x + 1, n - x), abs=1e-4)


def test_no_positive_in_a_large_stratum_still_leaves_room_for_some():
    low, high = limits_of_count([9000, 1000], [60, 40], [0, 40], (0.025, 0.025))
    assert low < 1000
    assert high > 1000 + 9000 * (1 - 0.1 ** (1 / 60))  # a normal interval ends at 1,000


def test_unsure_rows_may_be_positive_or_negative():
    sizes, drawn = np.array([50, 80]), np.array([10, 12])
    low, high = limits_of_count(sizes, drawn, [3, 2], ERRORS, unsure=[1, 2])
    filled = [limits_of_count(sizes, drawn, x, ERRORS) for x in product((3, 4), (2, 3, 4))]
    assert low <= min(a for a, _ in filled)
    assert high >= max(b for _, b in filled)
    known = limits_of_count(sizes, drawn, [3, 3], ERRORS)
    assert high - low < known[1] - known[0] + 3 * max(sizes / drawn)


def test_strata_without_drawn_rows_are_unknown_and_full_ones_are_known():
    assert limits_of_count([10, 5], [10, 0], [4, 0], ERRORS) == (4, 9)
    assert limits_of_count([10, 5], [10, 5], [4, 2], ERRORS) == (6, 6)


def test_a_smaller_error_gives_wider_limits_and_rounding_stays_on_the_safe_side():
    sizes, drawn, found = [3000, 700], [70, 50], [2, 40]
    exact = limits_of_count(sizes, drawn, found, ERRORS, resolution=0.0)
    for errors, resolution in ((ERRORS, 0.1), ((0.01, 0.01), 0.0)):
        low, high = limits_of_count(sizes, drawn, found, errors, resolution=resolution)
        assert low <= exact[0] < exact[1] <= high
