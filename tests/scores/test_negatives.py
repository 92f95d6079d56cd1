"""The check of an estimate by confirmed negatives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from classprior._scores.negatives import KindScores, about_negatives, compare_with_negatives
from classprior.priors import ScorePrior


def draw(rng, prior, n=300, m=1000, k=200, shift=1.5):
    """Draw scores of two normal classes; the share of positives in the population is known."""
    hidden = rng.binomial(m, prior)
    unlabeled = np.r_[rng.normal(shift, size=hidden), rng.normal(size=m - hidden)]
    return KindScores(rng.normal(shift, size=n), unlabeled, rng.normal(size=k))


def test_the_implied_share_solves_the_mixture():
    """With scores at the quantiles of both classes, the mixture holds without noise."""
    quantiles = (np.arange(1000) + 0.5) / 1000
    positive, negative = stats.norm.ppf(quantiles, 1.0), stats.norm.ppf(quantiles)
    scores = KindScores(positive, np.r_[np.tile(positive, 3), np.tile(negative, 7)], negative)
    found = compare_with_negatives(scores, 0.3, 0.0)
    assert_allclose(found.prior, 0.3, rtol=1e-12)
    assert abs(found.p_value - 0.5) < 0.05
    assert compare_with_negatives(scores, 0.45, 0.0).p_value < 1e-3
    assert_allclose(
        found.share_beyond, np.mean(negative >= np.quantile(positive, 1 - found.share_positive)),
        atol=2e-3,
    )  # fmt: skip


def test_level_and_power():
    """At the true share, at most 5% are rejected; a wrong share is seen."""
    rng = np.random.default_rng(0)
    draws = [draw(rng, 0.3) for _ in range(400)]
    at_truth, too_high = (
        np.mean([compare_with_negatives(scores, prior, 0.0).p_value < 0.05 for scores in draws])
        for prior in (0.3, 0.5)
    )
    assert 0.0 < at_truth < 0.07
    assert too_high > 0.95


def test_false_alarms_are_rare():
    """The estimate is right and the median positive is among negatives: nothing to warn about."""
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(40):
        scores = draw(rng, 0.3, shift=3.0)
        estimator = ScorePrior(n_resamples=20, random_state=0).fit_samples(*scores[:2])
        error = (estimator.high_ - estimator.prior_) / 1.96
        alarms += len([*about_negatives(scores, estimator.prior_, error)])
    assert alarms <= 2


def test_the_warning_has_the_facts():
    scores = draw(np.random.default_rng(2), 0.3, k=1500)
    (warning,) = about_negatives(scores, 0.6, 0.02)
    found = compare_with_negatives(scores, 0.6, 0.02)
    for fact in ("1,500", f"{found.share_beyond:.1%}", f"{found.prior:.1%}", "60.0%"):
        assert fact in warning
    assert [*about_negatives(scores, 0.3, 0.02)] == []


@pytest.mark.parametrize("n_negative", [1, 3])
def test_a_handful_of_negatives_proves_nothing(n_negative):
    rng = np.random.default_rng(3)
    scores = draw(rng, 0.3, k=n_negative)._replace(negative=np.zeros(n_negative))
    assert [*about_negatives(scores, 0.35, 0.03)] == []
