import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from classprior import ScottBlanchardPrior, scott_blanchard_prior
from classprior.datasets import make_overlapping_uniforms
from classprior.priors._scott_blanchard import _density_scores, _ratio_scores, _rejection_curve


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


@pytest.mark.parametrize("scores", ["ratio", "kde"])
def test_scores_are_cross_fitted(scores):
    """Rows move only the scores of other folds: their own are fitted without them."""
    rng = np.random.default_rng(0)
    P, U = rng.normal(size=(40, 1)), rng.normal(size=(60, 1))
    folds = np.arange(40) % 2, np.arange(60) % 2
    score = {
        "ratio": lambda P, U: _ratio_scores(P, U, folds, 0.7, 0.1, None, np.random.RandomState(0)),
        "kde": lambda P, U: _density_scores(P, U, folds),
    }[scores]
    before = score(P, U)
    # Swap two held-out rows of each sample: the scale stays, the fits of their own fold stay
    P[[0, 2]], U[[0, 2]] = P[[2, 0]], U[[2, 0]]
    after = score(P, U)
    for old, new in zip(before, after, strict=True):
        assert_allclose(new[[0, 2]], old[[2, 0]], rtol=1e-6)
    # Move them: their own scores' fit does not change, the other fold's does
    moved = P.copy()
    moved[0] += 3.0
    other = score(moved, U)
    assert_allclose(other[0][2], after[0][2], rtol=1e-6)
    assert not np.allclose(other[0][1::2], after[0][1::2], rtol=1e-6)
    if scores == "ratio":  # the units of kernel densities come from all unlabeled rows
        moved = U.copy()
        moved[0] += 3.0
        other = score(P, moved)
        assert_allclose(other[1][2], after[1][2], rtol=1e-6)
        assert not np.allclose(other[1][1::2], after[1][1::2], rtol=1e-6)


@pytest.mark.parametrize("scores", ["ratio", "kde"])
def test_units_do_not_change_the_estimate(separated, scores):
    results = [
        scott_blanchard_prior(*(f * X for X in separated), scores=scores, random_state=0).prior
        for f in (1.0, 1e3)
    ]
    assert_allclose(*results, atol=0.01)


def test_few_centres_and_few_folds(separated):
    for seed in range(6):
        prior = scott_blanchard_prior(*separated, n_centers=2, cv=2, random_state=seed).prior
        assert 0.0 <= prior <= 1.0


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
