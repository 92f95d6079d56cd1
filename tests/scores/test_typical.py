"""The test whether known positives are typical: its level, its power, and its arithmetic."""

import numpy as np
import pytest

from classprior import AutoPrior
from classprior._samples.opening import open_samples
from classprior._scores.typical import _excess, _middle, _z_at_end, about_typicality, typicality
from classprior.sensitivity import label_bias_test

QUICK = {"n_repeats": 1, "n_resamples": 50, "random_state": 0}


def blobs(labeled, hidden, n_negative=900, apart=8.0, seed=0, n_features=4):
    """Positives of kinds on two axes, negatives around the origin."""
    rng = np.random.default_rng(seed)
    centers = apart * np.eye(n_features)[: len(labeled)]

    def rows(counts):
        where = np.repeat(centers, counts, axis=0)
        return where + rng.normal(size=where.shape)

    negative = rng.normal(size=(n_negative, n_features))
    return rows(labeled), np.vstack([rows(hidden), negative])


def result_for(*samples):
    opened = open_samples(*samples, seed=0).settled()
    fitted = AutoPrior(**QUICK)
    fitted.fit_opened(opened)
    error = (fitted.high_ - fitted.prior_) / 1.96
    return typicality(opened, fitted.scores_, fitted.prior_, error)


@pytest.mark.parametrize("seed", range(2))
def test_bias_is_seen(seed):
    result = result_for(*blobs([300, 300], [20, 200], seed=seed))
    assert result.p_value < 0.001
    assert result.labeled.sum() == pytest.approx(1.0)
    assert np.any(result.found > 2.0 * result.expected)


@pytest.mark.parametrize("seed", range(3))
def test_no_alarm_without_bias(seed):
    assert result_for(*blobs([300, 300], [100, 100], seed=seed)).p_value > 0.01


@pytest.mark.parametrize("apart", [1.0, 2.0, 3.0])
def test_overlap_does_not_look_like_bias(apart):
    """One kind is far from the negatives, the other overlaps with them."""
    known, pile = blobs([400, 400], [150, 150], n_negative=1500)
    known[400:, 1] -= 8.0 - apart
    pile[150:300, 1] -= 8.0 - apart
    assert result_for(known, pile).p_value > 0.05


def test_few_positives_cannot_be_compared():
    result = result_for(*blobs([30, 20], [5, 100]))
    assert result.labeled == [1.0]
    assert result.p_value > 0.01


def test_the_middle_is_the_shortest_half():
    values = np.array([0.0, 5.0, 6.0, 6.5, 7.0, 20.0])
    assert _middle(values) == (6.0, 7.0)
    rng = np.random.default_rng(0)
    values = np.sort(rng.normal(size=31))
    pairs = [(values[i + 15] - values[i], i) for i in range(16)]
    _, first = min(pairs)
    assert _middle(values) == (values[first], values[first + 15])


def test_the_excess_is_that_of_the_formula():
    """Ten positives between 10 and 11, four rows there, one in each unit below, a bulk at 0."""
    own, other = np.linspace(10.0, 11.0, 11), np.array([9.25, -1.0])
    unlabeled = np.r_[10.5, 10.5, 10.5, 10.5, 9.6, 8.6, np.full(50, 0.1)]
    scores = np.r_[own, other, unlabeled]
    is_positive = np.arange(len(scores)) < 13
    is_own = np.arange(len(scores)) < 11
    z, found, expected = _excess(scores, is_positive, is_own, 0.1, 0.05)
    start, end = _middle(own)
    assert found == np.sum((unlabeled >= start) & (unlabeled <= end))
    m_per_n, best = len(unlabeled) / 13, -np.inf
    length, P = end - start, np.r_[own, other]
    for step in range(400):
        low = start - length * (1.0 + step / 4.0)
        U_F, P_F = (np.sum((x >= low) & (x < low + length)) for x in (unlabeled, P))
        P_C = np.sum((start <= P) & (end >= P))
        net = m_per_n * (P_C - P_F)
        variance = found + U_F + 1 + (0.1 * m_per_n) ** 2 * (P_C + P_F) + (0.05 * net) ** 2
        value = (found - U_F - 0.1 * net) / np.sqrt(variance)
        if value > best:
            best, bound = value, U_F + 0.1 * net
        if U_F == 50:
            break
    assert z == pytest.approx(best)
    assert expected == pytest.approx(bound)


def test_no_excess_where_most_rows_are():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=500)
    is_positive = np.arange(500) < 100
    assert _excess(scores, is_positive, is_positive, 0.1, 0.01).z == -np.inf
    assert _excess(np.ones(500), is_positive, is_positive, 0.1, 0.01).z == -np.inf


def test_the_end_of_a_tail_has_mean_zero_if_positives_are_typical():
    rng = np.random.default_rng(0)
    n, m, prior, z = 400, 1000, 0.3, []
    for _ in range(60):
        scores = np.r_[rng.uniform(size=n + 300), rng.uniform(-1.0, 0.0, 700)]
        is_positive, is_own = np.arange(n + m) < n, np.arange(n + m) < n
        z.append(_z_at_end(scores, is_positive, is_own, ~is_positive, prior, 0.0))
    assert abs(np.mean(z)) < 0.4
    assert 0.6 < np.std(z) < 1.3


def test_the_warning_leads_to_a_review():
    assert about_typicality(0.02) == []
    (warning,) = about_typicality(0.001)
    assert warning.finding.startswith("Biased labels?")
    assert "classprior review" in warning
    assert warning.remedy == "subtypes"


def test_public_test_is_the_same():
    samples = blobs([300, 300], [20, 200])
    result = label_bias_test(*samples, evidence=AutoPrior(**QUICK), random_state=0)
    expected = result_for(*samples)
    assert result.p_value == pytest.approx(expected.p_value, rel=1e-3)
    np.testing.assert_array_equal(result.found, expected.found)
