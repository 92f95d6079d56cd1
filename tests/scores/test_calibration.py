"""Probabilities from scores: against the truth, and against a general optimizer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, logit

from classprior._scores.calibration import calibrate


def make_scores(n, m, a, b, seed=0):
    """Return scores of known positives and of unlabeled rows, and which of these are positive."""
    rng = np.random.default_rng(seed)
    s = rng.normal(size=200 * n + m)
    y = rng.uniform(size=len(s)) < expit(a + b * s)
    return (s[:-m][y[:-m]][:n], s[-m:]), y[-m:]


def probabilities(scores, *args, **kwargs):
    calibration = calibrate(scores, *args, **kwargs)
    return calibration.probability(calibration.decision(scores[1]))


@pytest.mark.parametrize(("a", "b"), [(-6.0, 1.5), (-2.0, 3.0), (0.0, 1.0), (2.0, 1.0)])
def test_a_logistic_truth_is_recovered(a, b):
    """Shares of 0.7%, 29%, 50% and 84%."""
    scores, y = make_scores(2000, 50_000, a, b, seed=1)
    error = probabilities(scores, y.mean()) - expit(a + b * scores[1])
    assert np.abs(error).mean() < 0.02


def test_scores_that_end_where_all_rows_are_positive():
    """Ideal log-odds of being labeled are bounded; with a single slope, the error is 0.07."""
    rng = np.random.default_rng(0)
    x, n, m = rng.normal(size=1_000_000), 4000, 20_000
    p = expit(3 * x)
    labeled = x[rng.uniform(size=len(x)) < p][:n]
    scores = tuple(np.log(n / m / 0.5) + np.log(expit(3 * part)) for part in (labeled, x[-m:]))
    assert np.abs(probabilities(scores, p[-m:].mean()) - p[-m:]).mean() < 0.045


def test_it_is_the_constrained_maximum():
    """SLSQP finds the same map from the formula as it stands in the docstring."""
    (positive, unlabeled), y = make_scores(60, 300, -1.0, 2.0)
    prior, eps = y.mean(), 1 / 61
    c = -np.log(prior * 300 / 60)

    def q(s, x):
        return expit(x[0] + x[1] * np.log(expit(s - c)) - x[2] * np.log(expit(c - s)))

    def loss(x):
        p = (1 - eps) * q(positive, x) + eps * prior
        return -np.log(p).sum() + (np.log(x[1:]) ** 2).sum() / 2

    mean = {"type": "eq", "fun": lambda x: q(unlabeled, x).mean() - prior}
    bounds = [(-10, 10), (0.1, 10), (0.1, 10)]
    expected = minimize(loss, [0.0, 1.0, 1.0], constraints=mean, bounds=bounds, tol=1e-12)
    found = calibrate((positive, unlabeled), prior)
    slopes = found.slope_below, found.slope_above
    assert_allclose((found.intercept, *slopes), expected.x, rtol=0.01)


@pytest.mark.parametrize("prior", [0.005, 0.3, 0.9])
@pytest.mark.parametrize("distance", [-1.0, 0.0, 2.0, 50.0])
def test_mean_order_and_limits(prior, distance):
    """Whether scores say nothing, the opposite, or all, and whether or not the prior is right."""
    rng = np.random.default_rng(0)
    is_positive = rng.uniform(size=2000) < 0.3
    scores = rng.normal(size=200) + distance, rng.normal(size=2000) + distance * is_positive
    calibration = calibrate(scores, prior)
    decision = calibration.decision(np.sort(scores[1]))
    p = calibration.probability(decision)
    assert_allclose(p.mean(), prior)
    assert (np.diff(decision) > 0).all()
    assert (np.diff(p) > -1e-12).all()
    assert_array_equal(p >= 0.5, decision >= 0)
    assert p[0] > 0.999 * prior / 201
    assert 1 - p[-1] > 0.999 * (1 - prior) / 201


def test_a_weight_is_a_number_of_copies():
    (positive, unlabeled), y = make_scores(80, 400, -1.0, 2.0)
    rng = np.random.default_rng(1)
    w = rng.integers(1, 4, 80), rng.integers(1, 4, 400)
    prior = np.average(y, weights=w[1])
    weighted = calibrate((positive, unlabeled), prior, weights=w, n_positive=w[0].sum())
    copied = calibrate((np.repeat(positive, w[0]), np.repeat(unlabeled, w[1])), prior)
    p, expected = (c.probability(c.decision(unlabeled)) for c in (weighted, copied))
    assert_allclose(p, expected, atol=1e-4)
    assert_allclose(np.average(p, weights=w[1]), prior)


@pytest.mark.parametrize(("prior", "bounded"), [(0.0, 0.5 / 300), (0.4, 0.4), (1.0, 1 - 0.5 / 300)])
def test_scores_that_are_all_equal_and_shares_of_0_and_1(prior, bounded):
    scores = np.zeros(60), np.zeros(300)
    assert_allclose(probabilities(scores, prior), bounded)
    scores, _ = make_scores(60, 300, -1.0, 2.0)
    assert_allclose(probabilities(scores, prior).mean(), bounded)
    assert 0 < probabilities(scores, prior).min() < probabilities(scores, prior).max() < 1


def test_one_half_is_zero():
    scores, y = make_scores(5, 300, -1.0, 2.0)
    calibration = calibrate(scores, y.mean())
    assert_allclose(calibration.probability(np.zeros(1)), 0.5)
    assert calibration.pseudo_share == 1 / 6
    assert logit(calibration.probability(np.array([1e9]))) < 5
