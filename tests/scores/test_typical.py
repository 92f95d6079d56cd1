"""The test whether known positives are typical: its level, its power, and its arithmetic."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.isotonic import isotonic_regression

from classprior import AutoPrior
from classprior._samples.opening import open_samples
from classprior._samples.units import RowOptions
from classprior._scores.typical import (
    _THETAS,
    Bands,
    about_typicality,
    bands_of_kind,
    increasing,
    log_likelihoods,
    typicality_of,
)
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


def result_for(known, pile, options=None):
    opened = open_samples(known, pile, options, seed=0).settled()
    fitted = AutoPrior(**QUICK)
    fitted.fit_opened(opened)
    return typicality_of(opened.subsample(fitted.max_rows), fitted.scores_, fitted.prior_)


@pytest.mark.parametrize("seed", range(2))
def test_bias_is_seen(seed):
    result = result_for(*blobs([300, 300], [20, 200], seed=seed))
    assert result.p_value < 0.001
    assert result.labeled.sum() == pytest.approx(1.0)
    assert np.any(result.found > 2.0 * result.expected)
    assert result.found.sum() == pytest.approx(220, rel=0.25)


@pytest.mark.parametrize("seed", range(4))
def test_no_alarm_without_bias(seed):
    assert result_for(*blobs([300, 300], [100, 100], seed=seed)).p_value > 0.01


@pytest.mark.parametrize("apart", [1.0, 2.0, 3.0])
def test_overlap_does_not_look_like_bias(apart):
    """One kind is far from the negatives, the other overlaps with them."""
    known, pile = blobs([400, 400], [150, 150], n_negative=1500)
    known[400:, 1] -= 8.0 - apart
    pile[150:300, 1] -= 8.0 - apart
    assert result_for(known, pile).p_value > 0.05


def test_slices_of_a_cloud_are_not_kinds():
    """Two normal classes, one column that separates them, many rows."""
    rng = np.random.default_rng(0)
    known, hidden, negative = rng.normal(size=(2000, 3)), *rng.normal(size=(2, 1000, 3))
    pile = np.vstack([hidden, negative, rng.normal(size=(6000, 3))])
    pile[1000:, 0] += 2.0
    assert result_for(known, pile).p_value > 0.05


def test_segments_do_not_change_the_p_value():
    known, pile = blobs([300, 300], [40, 120])
    segments = tuple(np.arange(len(rows)) % 3 for rows in (known, pile))
    found = result_for(known, pile, RowOptions(segments=segments)).p_value
    assert 0.0 < found < 1.0
    assert found == result_for(known, pile).p_value


def test_few_positives_cannot_be_compared():
    result = result_for(*blobs([30, 20], [5, 100]))
    assert result.labeled == [1.0]
    assert result.p_value == 1.0


def test_increasing_densities_are_those_of_isotonic_regression():
    rng = np.random.default_rng(0)
    counts, length = rng.poisson(4.0, (20, 9)).astype(float), rng.uniform(0.2, 2.0, 9)
    expected = [isotonic_regression(row / length, sample_weight=length) for row in counts]
    np.testing.assert_allclose(increasing(counts, length), np.maximum(expected, 1e-9), atol=1e-12)


def test_the_likelihood_is_that_of_the_best_increasing_density():
    bands = Bands(
        np.array([3.0, 1.0, 4.0, 0.0, 6.0]),
        np.array([9.0, 9.0, 9.0, 9.0, 2.0]),
        np.array([2.0, 0.5, 0.5, 1.0, 1.5]),
    )
    found = log_likelihoods(bands, 0.7)
    for i in (0, 40, 60, len(_THETAS) - 1):

        def negative_likelihood(steps, i=i):
            positives = _THETAS[i] * 0.7 * bands.positive
            mean = positives + np.cumsum(steps) * bands.length + 1e-12
            return np.sum(mean - bands.unlabeled * np.log(mean))

        best = min(
            optimize.minimize(
                negative_likelihood, np.full(5, start), bounds=[(0, None)] * 5, tol=1e-12
            ).fun
            for start in (0.1, 1.0)
        )
        assert found[i] <= -best + 1e-6
        assert found[i] == pytest.approx(-best, abs=0.02)


def test_bands_end_at_the_bulk_and_count_all_rows_above():
    scores = np.r_[np.linspace(10.0, 20.0, 91), np.linspace(-5.0, 25.0, 61)]
    is_positive = np.arange(len(scores)) < 91
    inside = np.ones(len(scores), dtype=bool)
    bands = bands_of_kind(scores, is_positive, inside, bulk=6.0)
    lowest = 19.9 - bands.length.sum()
    assert lowest >= 6.0
    rows = scores[~is_positive]
    assert bands.unlabeled.sum() == np.sum(rows >= lowest)
    assert bands.positive.sum() == 91
    assert len(bands_of_kind(scores, is_positive, inside, bulk=19.0).length) == 0
    np.testing.assert_array_equal(log_likelihoods(Bands(*np.zeros((3, 0))), 1.0), 0.0)


@pytest.mark.slow
def test_the_p_value_is_uniform_or_larger_without_negatives():
    """Kinds with the same share, and no negatives among them: the least favorable case."""
    rng = np.random.default_rng(0)
    rejected = []
    for _ in range(60):
        known, pile = rng.normal(size=(500, 3)), rng.normal(size=(800, 3))
        pile[100:] += 12.0
        rejected.append(result_for(known, pile).p_value < 0.1)
    assert np.mean(rejected) < 0.2


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
