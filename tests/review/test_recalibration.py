"""Probabilities corrected by checked rows, and the pictures of what they show."""

import numpy as np
import pytest
from scipy.special import expit, logit

from classprior import Estimation
from classprior._scores.calibration import Calibration, recalibrate
from classprior.plotting import RecallDisplay, ReliabilityDisplay
from classprior.review import evaluate_review, plan_review
from cli.conftest import EVIDENCE
from review.test_plan import population


def test_the_log_odds_are_shifted_and_stretched_as_they_should_be():
    """Answers drawn from known log-odds, a + b z, are fitted by them."""
    rng = np.random.default_rng(0)
    before = Calibration(0.3, 0.0, 0.0, 1.0, 1.0, 0.0)
    decision = rng.normal(scale=2.0, size=20_000)
    is_positive = rng.random(20_000) < expit(1.0 + 0.5 * decision)
    after = recalibrate(before, decision, is_positive, np.ones(20_000), is_positive.mean())
    z = np.array([-2.0, 0.0, 2.0])
    decided = after.decision(z)
    old = before.decision(z)
    np.testing.assert_allclose(logit(after.probability(decided)), 1.0 + 0.5 * old, atol=0.1)
    assert after.probability(np.zeros(1))[0] == pytest.approx(0.5)


def test_weights_stand_for_rows_that_were_not_drawn():
    """A row of weight 3 counts like three rows."""
    rng = np.random.default_rng(1)
    before = Calibration(0.3, 0.0, 0.0, 1.0, 1.0, 0.01)
    z = rng.normal(size=300)
    y = rng.random(300) < expit(0.5 + 0.7 * z)
    twice = np.repeat(np.arange(300), np.where(np.arange(300) % 2, 3, 1))
    weights = np.where(np.arange(300) % 2, 3.0, 1.0)
    one = recalibrate(before, z, y, weights, 0.4)
    other = recalibrate(before, z[twice], y[twice], np.ones(len(twice)), 0.4)
    alike = recalibrate(before, z, y, np.ones(300), 0.4)
    assert one.intercept == pytest.approx(other.intercept, abs=0.02)
    assert one.slope_above == pytest.approx(other.slope_above, abs=0.02)
    assert abs(alike.slope_above - other.slope_above) > 0.05


def test_corrected_probabilities_add_up_to_the_checked_share():
    """Known positives of one of two kinds: the estimate is too low, and checked rows mend it."""
    rng = np.random.default_rng(0)
    known = rng.normal([3.0, 0.0], 1.0, (150, 2))
    hidden = np.vstack([rng.normal([3, 0], 1, (60, 2)), rng.normal([1.5, 1.5], 1, (140, 2))])
    X = np.vstack([hidden, rng.normal([-1.5, 0.0], 1.0, (400, 2))])
    is_positive = np.arange(600) < 200
    estimation = Estimation.of(known, X, evidence=EVIDENCE, random_state=0)
    plan = estimation.plan_review(150)
    checked = estimation.with_checked((plan, is_positive[list(plan.rows)]))
    before, after = estimation.probabilities(), checked.probabilities()
    assert before.mean() < 0.25
    share = checked.estimate.checked.prior
    assert abs(after.mean() - 1 / 3) < 0.05 < abs(before.mean() - 1 / 3)
    assert after.mean() == pytest.approx(share, abs=0.06)
    loss = [np.mean((p - is_positive) ** 2) for p in (before, after)]
    assert loss[1] < loss[0]
    np.testing.assert_array_equal(np.argsort(before), np.argsort(after))
    assert checked.model[-1].prior_ == share


@pytest.fixture(scope="module")
def checked():
    is_positive, scores, p = population(n_rows=900)
    plan = plan_review(scores, p, budget=150, random_state=0)
    return evaluate_review(plan, is_positive[list(plan.rows)]), is_positive, scores


def test_bins_of_rows_cover_all_and_contain_the_truth(checked):
    found, is_positive, scores = checked
    ranked = is_positive[np.argsort(-scores)]
    assert [b.first_rank for b in found.bins] == [1, *(b.last_rank + 1 for b in found.bins[:-1])]
    assert found.bins[-1].last_rank == 900
    assert sum(b.n_checked for b in found.bins) == 150
    inside = [
        b.observed.low <= ranked[b.first_rank - 1 : b.last_rank].mean() <= b.observed.high
        for b in found.bins
    ]
    assert all(inside)
    assert [b.predicted for b in found.bins] == sorted(b.predicted for b in found.bins)[::-1]


def test_displays_show_the_numbers(checked):
    found, *_ = checked
    display = RecallDisplay.from_estimate(found)
    lows = [0.0, *(c.recall.low for c in found.cutoffs), 1.0]
    np.testing.assert_array_equal(display.lower_.get_ydata(), lows)
    np.testing.assert_array_equal(
        display.recall_.get_xdata(), [0, *(c.rank for c in found.cutoffs), 900]
    )
    points = ReliabilityDisplay.from_estimate(found).points_
    np.testing.assert_array_equal(points.get_xdata(), [b.predicted for b in found.bins])
    with pytest.raises(ValueError, match="checked"):
        RecallDisplay.from_estimate(Estimation.of([1.0, 2, 3] * 9, [0.0, 1, 2] * 9).estimate)
