import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from classprior import ScottBlanchardPrior, scott_blanchard_prior
from classprior.datasets import make_overlapping_uniforms
from classprior.priors._scott_blanchard import _rejection_curve


def test_curve_counts_rows():
    positive, unlabeled = np.array([3.0, 1.0, 2.0, 2.0]), np.array([4.0, 2.0, 0.5, 2.5, 1.0])
    rejected, accepted = _rejection_curve(positive, unlabeled)
    for r, a, threshold in zip(rejected, accepted, [np.inf, 3.0, 2.0, 2.0, 1.0], strict=True):
        assert_allclose(r, np.mean(positive < threshold))
        assert_allclose(a, np.mean(unlabeled >= threshold))


@pytest.mark.parametrize("scores", ["ratio", "kde"])
def test_estimate_is_the_slope_of_the_line(separated, scores):
    curve = scott_blanchard_prior(*separated, share=0.3, scores=scores, random_state=0)
    end = (curve.rejected < 1.0) & (curve.rejected >= 0.7 - 1e-12)
    slope, *_ = np.linalg.lstsq(1.0 - curve.rejected[end, None], curve.accepted[end], rcond=None)
    assert_allclose(curve.prior, slope[0], rtol=1e-10)
    assert curve.rejected[0] == 1.0
    assert curve.accepted[0] == 0.0
    assert np.all(np.diff(curve.rejected) <= 0.0)
    assert np.all(np.diff(curve.accepted) >= 0.0)


def test_recovers_the_prior_under_overlap():
    """Unlike EN and PE, whose population value here is 0.9."""
    estimates = [
        scott_blanchard_prior(
            *make_overlapping_uniforms(
                overlap=0.75, n_positive=2000, n_unlabeled=2000, random_state=seed
            ),
            share=0.2,
            n_centers=60,
            random_state=0,
        ).prior
        for seed in range(5)
    ]
    assert abs(np.mean(estimates) - 0.7) < 3 * np.std(estimates) / np.sqrt(5) + 0.03 < 0.12


def test_function_and_estimator_agree(separated, labelled):
    curve = scott_blanchard_prior(*separated, random_state=0)
    estimator = ScottBlanchardPrior(random_state=0).fit(*labelled)
    assert estimator.prior_ == curve.prior
    assert_array_equal(estimator.rejected_, curve.rejected)
    assert_array_equal(estimator.accepted_, curve.accepted)


def test_scores_are_cross_fitted():
    """A ratio that has seen its rows would find pure noise more telling than it is."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(60, 30)), rng.normal(size=(60, 30))
    assert scott_blanchard_prior(*noise, share=0.5, random_state=0).prior > 0.7


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, "all"])
def test_share_must_be_a_share(separated, share):
    with pytest.raises(ValueError, match="share above 0 and up to 1"):
        scott_blanchard_prior(*separated, share=share)


def test_unknown_scores_are_named(separated):
    with pytest.raises(ValueError, match="'ratio' or 'kde', got 'tree'"):
        scott_blanchard_prior(*separated, scores="tree")


def test_kernel_densities_take_dense_rows_only(separated):
    thin = [sparse.csr_array(X) for X in separated]
    with pytest.raises(TypeError, match=r"dense rows for scores='kde'.*scores='ratio'"):
        scott_blanchard_prior(*thin, scores="kde")
