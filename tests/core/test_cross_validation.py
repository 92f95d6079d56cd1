import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from test_moments import binned_moments

from classprior._core.basis import GaussianBasis
from classprior._core.cross_validation import held_out_gain, select
from reference import held_out_score

GAIN = arrays(np.float64, (3, 7), elements=st.floats(-1.0, 1.0, width=16))
LAMS = st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=6, unique=True).map(np.array)


@given(GAIN, LAMS)
def test_only_the_ends_of_the_lambda_grid_can_win(gain, lams):
    """The double loop over sigma and lambda finds no smaller score."""
    sigma_index, lam = select(gain, lams)
    for theta in range(gain.shape[1]):
        best = min(-gain[s, theta] / one for s in range(len(gain)) for one in lams)
        assert lam[theta] in (lams.min(), lams.max())
        assert -gain[sigma_index[theta], theta] / lam[theta] == best


@pytest.mark.parametrize("sizes", [(40, 60), (4, 9)], ids=["plenty", "folds of one row"])
@pytest.mark.parametrize("leave_one_out", [True, False])
def test_choice_is_that_of_refitting_in_a_double_loop(sizes, leave_one_out):
    """Train and score from the rows themselves, for every theta, sigma, lambda and fold."""
    rng = np.random.default_rng(3)
    samples = rng.normal(0, 1, (sizes[0], 2)), rng.normal(0.7, 1.5, (sizes[1], 2))
    centers = np.vstack(samples)
    own_centers = np.arange(sizes[0]), sizes[0] + np.arange(sizes[1])
    if not leave_one_out:
        own_centers = None, None
    folds = tuple(np.random.default_rng(0).permutation(size) % 4 for size in sizes)
    basis = GaussianBasis(centers, np.array([0.3, 0.8, 2.0]))
    thetas, lams = np.linspace(0.0, 1.0, 14), np.array([0.01, 0.1, 1.0, 5.0])

    gain = held_out_gain(
        *(
            binned_moments(basis, X, fold, own_center=own, n_folds=4)
            for X, fold, own in zip(samples, folds, own_centers, strict=True)
        ),
        thetas,
    )
    sigma_index, lam = select(gain, lams)
    for t, theta in enumerate(thetas):
        scores = {
            (s, one): held_out_score(theta, sigma, one, samples, folds, centers, own_centers)
            for s, sigma in enumerate(basis.sigmas)
            for one in lams
        }
        best = min(scores.values())
        assert_allclose(scores[sigma_index[t], lam[t]], best, rtol=1e-5, atol=1e-7)
        for (s, one), score in scores.items():
            assert_allclose(-gain[s, t] / one, score, rtol=1e-4, atol=1e-6)
    assert (gain < 0).any()
    assert (gain > 0).any() or sizes == (4, 9)  # both ends of the grid were at stake
