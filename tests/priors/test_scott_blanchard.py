import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from classprior import ScottBlanchardPrior
from classprior.datasets import make_overlapping_uniforms
from classprior.priors._scott_blanchard import _rejection_curve


def estimate(*samples, **options):
    return ScottBlanchardPrior(**options).fit_samples(*samples)


def test_curve_counts_rows():
    positive, unlabeled = np.array([3.0, 1.0, 2.0, 2.0]), np.array([4.0, 2.0, 0.5, 2.5, 1.0])
    falling = np.sort(positive)[::-1]
    rejected, accepted = _rejection_curve(falling, unlabeled, np.ones(4), np.ones(5))
    for r, a, threshold in zip(rejected, accepted, [np.inf, 3.0, 2.0, 2.0, 1.0], strict=True):
        assert_allclose(r, np.mean(positive < threshold))
        assert_allclose(a, np.mean(unlabeled >= threshold))


def test_curve_with_weights_counts_repeated_rows():
    rng = np.random.default_rng(0)
    positive, unlabeled = np.sort(rng.integers(0, 9, 20))[::-1], rng.integers(0, 9, 50)
    times = rng.integers(0, 4, 20), rng.integers(0, 4, 50)
    found = _rejection_curve(positive, unlabeled, *(part.astype(float) for part in times))
    rows = np.repeat(positive, times[0]), np.repeat(unlabeled, times[1])
    expected = _rejection_curve(*rows, *(np.ones(len(part)) for part in rows))
    each = np.r_[0, 1 + np.repeat(np.arange(20), times[0])]
    for curve, repeated in zip(found, expected, strict=True):
        assert_allclose(curve[each], repeated, atol=1e-15)


@pytest.mark.parametrize("scores", ["ratio", "kde"])
def test_estimate_is_the_slope_of_the_line(separated, scores):
    curve = estimate(*separated, tail_fraction=0.3, scores=scores, random_state=0)
    end = (curve.rejected_ < 1.0) & (curve.rejected_ >= 0.7 - 1e-12)
    slope, *_ = np.linalg.lstsq(1.0 - curve.rejected_[end, None], curve.accepted_[end], rcond=None)
    assert_allclose(curve.prior_, slope[0], rtol=1e-10)
    assert curve.rejected_[0] == 1.0
    assert curve.accepted_[0] == 0.0
    assert np.all(np.diff(curve.rejected_) <= 0.0)
    assert np.all(np.diff(curve.accepted_) >= 0.0)


def test_recovers_the_prior_under_overlap():
    """Unlike EN and PE, whose population value here is 0.9."""
    estimates = [
        estimate(
            *make_overlapping_uniforms(
                overlap=0.75, n_positive=2000, n_unlabeled=2000, random_state=seed
            ),
            tail_fraction=0.2,
            n_centers=60,
            random_state=0,
        ).prior_
        for seed in range(5)
    ]
    assert abs(np.mean(estimates) - 0.7) < 3 * np.std(estimates) / np.sqrt(5) + 0.03 < 0.12


@pytest.mark.parametrize("scores", ["ratio", "kde"])
def test_units_do_not_change_the_estimate(separated, scores):
    results = [
        estimate(*(f * X for X in separated), scores=scores, random_state=0).prior_
        for f in (1.0, 1e3)
    ]
    assert_allclose(*results, atol=0.01)


def test_few_centers_and_few_folds(separated):
    for seed in range(6):
        prior = estimate(*separated, n_centers=2, cv=2, random_state=seed).prior_
        assert 0.0 <= prior <= 1.0


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, "all"])
def test_share_must_be_a_share(separated, share):
    with pytest.raises(ValueError, match="tail_fraction"):
        estimate(*separated, tail_fraction=share)


def test_unknown_scores_are_named(separated):
    with pytest.raises(ValueError, match=r"scores.*'tree'"):
        estimate(*separated, scores="tree")


def test_kernel_densities_take_dense_rows_only(separated):
    thin = [sparse.csr_array(X) for X in separated]
    with pytest.raises(TypeError, match=r"scores='kde'.*sparse"):
        estimate(*thin, scores="kde")
