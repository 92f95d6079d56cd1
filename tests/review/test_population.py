"""Limits for the population from which the unlabeled rows were drawn."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats

from classprior.review._limits import limits_of_count, limits_of_population
from review.test_limits import all_results, approximate_limit, result_probability

ERRORS = (0.04, 0.06)


def limits(sizes, drawn, found, errors=ERRORS):
    return limits_of_population(*map(np.array, (sizes, drawn, found)), errors, np.array(0))


@pytest.mark.parametrize("found", [0, 1, 9, 30])
def test_one_stratum_has_the_limits_of_clopper_and_pearson(found):
    expected = stats.binomtest(found, 30).proportion_ci(0.9)
    low, high = limits([500], [30], [found], (0.05, 0.05))
    assert (low, high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("sizes", "drawn"), [((4, 9), (2, 3)), ((10, 5), (3, 3)), ((6, 6), (6, 2))]
)
def test_limits_hold_for_every_population_and_division(sizes, drawn):
    """Positives may fall into the strata by any law, so by the worst for each of their numbers."""
    found = {x: limits(sizes, drawn, x) for x in all_results(drawn)}
    N = sum(sizes)
    for prior in np.linspace(0.01, 0.99, 33):
        too_high, too_low = np.zeros(N + 1), np.zeros(N + 1)
        for M in product(*(range(size + 1) for size in sizes)):
            ways = {x: result_probability(sizes, drawn, M, x) for x in found}
            high = sum(p for x, p in ways.items() if found[x][0] > prior)
            low = sum(p for x, p in ways.items() if found[x][1] < prior)
            too_high[sum(M)] = max(too_high[sum(M)], high)
            too_low[sum(M)] = max(too_low[sum(M)], low)
        weights = stats.binom(N, prior).pmf(np.arange(N + 1))
        assert weights @ too_high <= ERRORS[0] + 1e-9
        assert weights @ too_low <= ERRORS[1] + 1e-9


@pytest.mark.parametrize("found", [(0, 0), (2, 1), (3, 4)])
def test_two_strata_have_the_limit_of_the_definition(found):
    sizes, drawn, error = (7, 12), (3, 5), 0.1
    observed = approximate_limit(sizes, drawn, found, error) + 1e-9
    as_low = [
        x for x in all_results(drawn) if approximate_limit(sizes, drawn, x, error) <= observed
    ]
    highest = np.zeros(20)
    for M in product(*(range(size + 1) for size in sizes)):
        p = sum(result_probability(sizes, drawn, M, x) for x in as_low)
        highest[sum(M)] = max(highest[sum(M)], p)

    def excess(prior):
        return stats.binom(19, prior).pmf(np.arange(20)) @ highest - error

    high = limits(sizes, drawn, found, (0.1, error))[1]
    assert high == pytest.approx(optimize.brentq(excess, 1e-9, 1 - 1e-9), abs=1e-6)


@pytest.mark.parametrize(
    ("sizes", "drawn", "found", "most"),
    [
        ((150, 450), (32, 68), (31, 1), 0.7),
        ((300, 1700), (160, 240), (155, 1), 0.7),
        ((12_514, 87_486), (114, 286), (110, 3), 0.9),
        ((2_000_000, 8_000_000), (50, 50), (40, 1), 0.99),  # nearly no error of the second kind
    ],
)
def test_they_are_narrower_than_with_an_error_probability_for_each_source(
    sizes, drawn, found, most
):
    """Binomial limits of the limits of these rows hold, too, but add both errors."""
    N, low, high = sum(sizes), *limits(sizes, drawn, found, (0.025, 0.025))
    a, b = limits_of_count(sizes, drawn, found, (0.025, 0.025))
    assert low < a / N < b / N < high
    a, b = limits_of_count(sizes, drawn, found, (0.9 * 0.025, 0.9 * 0.025))
    split = stats.beta.isf(0.0025, b + 1, N - b) - stats.beta.ppf(0.0025, a, N - a + 1)
    assert high - low < most * split
