import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import gaussian_kde, norm
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from classprior.priors import DEDPULPrior
from classprior.priors._dedpul import densities, prior_of_ratio, smoothed_ratio

BANDWIDTHS = np.array([0.1, 0.05])


def em(ratio, steps=200_000):
    """Return the prior that EM reaches from 1."""
    prior = 1.0
    for _ in range(steps):
        new = np.mean(np.minimum(1.0, prior * ratio))
        if abs(new - prior) < 1e-15:
            break
        prior = new
    return prior


def test_densities_are_those_of_scipy():
    rng = np.random.default_rng(0)
    samples = rng.normal(1.0, 2.0, 300), np.r_[rng.normal(0.0, 1.0, 700), 25.0]
    at = np.sort(samples[1])
    for found, scores, bandwidth in zip(
        densities(samples, BANDWIDTHS, at), samples, BANDWIDTHS, strict=True
    ):
        exact = gaussian_kde(scores, bandwidth)(at)
        assert_allclose(found, exact, rtol=1e-3, atol=1e-6 * exact.max())


def test_estimate_is_the_fixed_point_of_em():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ratio = rng.gamma(0.5, 3.0, 200).round(seed % 3)  # rounded: equal ratios and zeros
        assert np.mean(ratio) > 1.05
        assert_allclose(prior_of_ratio(ratio), em(ratio), rtol=1e-9)


def test_two_uniforms_in_closed_form():
    """30% of the rows have the ratio 1 / 0.3, the others none: any prior up to 0.3 is fixed."""
    ratio = np.repeat([1.0 / 0.3, 0.0], [300, 700])
    assert_allclose(prior_of_ratio(ratio * (1.0 + 1e-9)), 0.3, rtol=1e-6)
    # Too small a ratio has no fixed point; the bend is at the step of the grid after 1 / max.
    assert_allclose(prior_of_ratio(0.97 * ratio), 0.3 / 0.97, atol=0.0011)
    # If it is far too small, prior and mean posterior differ by more than 0.05 at the bend.
    assert_allclose(prior_of_ratio(0.7 * ratio), 0.3 / 0.7)


def test_no_ratio_no_positives():
    assert prior_of_ratio(np.zeros(50)) == 0.0
    assert prior_of_ratio(np.ones(50)) == 1.0


def test_two_normals_with_known_posterior():
    """Positives N(2, 1), negatives N(-2, 1), prior 0.4; the scores are the values themselves."""
    rng = np.random.default_rng(0)
    positive = rng.normal(2.0, 1.0, 5000)
    unlabeled = np.r_[rng.normal(2.0, 1.0, 4000), rng.normal(-2.0, 1.0, 6000)]
    ratio = smoothed_ratio(positive, unlabeled, BANDWIDTHS, over_all=False)
    prior = prior_of_ratio(ratio)
    assert abs(prior - 0.4) < 0.02
    likelihoods = 0.4 * norm.pdf(unlabeled, 2.0), 0.6 * norm.pdf(unlabeled, -2.0)
    posterior = likelihoods[0] / (likelihoods[0] + likelihoods[1])
    assert np.mean(np.abs(np.minimum(1.0, prior * ratio) - posterior)) < 0.01


def ratio_step_by_step(positive, unlabeled, over_all):
    """Return the ratio with explicit windows, from the kernel density estimates of SciPy."""
    n, m = len(positive), len(unlabeled)
    order = np.argsort(unlabeled)
    at = unlabeled[order]

    def medians(values, reach):
        padded = np.r_[np.full(reach, values[0]), values, np.full(reach, values[-1])]
        return np.array([np.median(padded[i : i + 2 * reach + 1]) for i in range(m)])

    def balanced(scores):
        return 1.0 / (1.0 + n / m * np.exp(-scores))

    ratio = gaussian_kde(positive, 0.1)(at) / gaussian_kde(unlabeled, 0.05)(at)
    ratio = medians(np.minimum(ratio, 50.0), 5)
    middle = (balanced(positive).mean() + balanced(unlabeled).mean()) / 2.0
    highest = 0.0
    for i in np.flatnonzero(balanced(at) >= middle):
        highest = ratio[i] = max(ratio[i], highest)
    ratio = medians(ratio, m // 20)
    if over_all:
        ratio = np.array([ratio[: i + 1].max() for i in range(m)])
    found = np.empty(m)
    found[order] = ratio
    return found


@pytest.mark.parametrize("over_all", [False, True])
@pytest.mark.parametrize("shift", [0.0, 6.0])
def test_ratio_is_that_of_the_steps(over_all, shift):
    """With a shift of 6, hardly any unlabeled row scores like the positives: the ratio is cut."""
    rng = np.random.default_rng(1)
    positive, unlabeled = rng.normal(1.0 + shift, 1.0, 150), rng.normal(0.0, 1.5, 1500)
    unlabeled[:15] = positive[:15] + 0.01
    expected = ratio_step_by_step(positive, unlabeled, over_all)
    assert (expected.max() == 50.0) == (shift == 6.0)
    found = smoothed_ratio(positive, unlabeled, BANDWIDTHS, over_all=over_all)
    assert_allclose(found, expected, rtol=2e-3, atol=1e-6 * expected.max())


def test_the_top_is_monotone_and_everything_on_request():
    rng = np.random.default_rng(3)
    positive, unlabeled = rng.normal(1.0, 1.0, 100), rng.normal(0.0, 1.5, 400)
    order = np.argsort(unlabeled)
    top, all_of_it = (
        smoothed_ratio(positive, unlabeled, BANDWIDTHS, over_all=over_all)[order]
        for over_all in (False, True)
    )
    assert np.all(np.diff(all_of_it) >= 0.0)
    assert np.any(np.diff(top) < 0.0)
    assert np.all(np.diff(top[-100:]) >= 0.0)
    assert np.all(all_of_it >= top)


def test_rows_may_be_permuted():
    rng = np.random.default_rng(4)
    positive, unlabeled = rng.normal(1.0, 1.0, 100), rng.normal(0.0, 1.5, 400)
    order = rng.permutation(400)
    ratio = smoothed_ratio(positive, unlabeled, BANDWIDTHS, over_all=False)
    again = smoothed_ratio(positive[::-1], unlabeled[order], BANDWIDTHS, over_all=False)
    assert_allclose(again, ratio[order], rtol=1e-9)


@pytest.mark.parametrize(("unlabeled", "expected"), [(1.0, 1.0), (0.0, 0.0)])
def test_equal_scores_have_an_answer(unlabeled, expected):
    """All scores are equal, or each sample has a value of its own."""
    ratio = smoothed_ratio(np.ones(30), np.full(60, unlabeled), BANDWIDTHS, over_all=False)
    assert prior_of_ratio(ratio) == expected


def test_posteriors_are_those_of_the_unlabeled_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(7000, 2)), (np.arange(7000) < 2000).astype(int)
    X[3500:] += 4.0  # 1,500 of the 5,000 unlabeled rows are positive
    estimator = DEDPULPrior(classifier=LogisticRegression(), random_state=0).fit(X, y)
    assert abs(estimator.prior_ - 0.3) < 0.02
    assert_allclose(estimator.posteriors_.mean(), estimator.prior_, atol=0.05)
    near = np.linalg.norm(X[y == 0], axis=1) < 2.0  # positives are around 0, negatives around 4
    assert estimator.posteriors_[near].mean() > 0.95
    assert estimator.posteriors_[~near].mean() < 0.1


@pytest.mark.parametrize("bandwidths", [0.1, (0.1,), (0.1, 0.0), (0.1, 0.1, 0.1), None])
def test_bandwidths_are_checked(bandwidths, separated):
    with pytest.raises(ValueError, match="bandwidths"):
        DEDPULPrior(bandwidths=bandwidths).fit_samples(*separated)


def test_parameters_are_checked(separated):
    with pytest.raises(ValueError, match=r"monotone.*'bottom'"):
        DEDPULPrior(monotone="bottom").fit_samples(*separated)
    with pytest.raises(TypeError, match=r"LinearSVC.*predict_proba"):
        DEDPULPrior(classifier=LinearSVC()).fit_samples(*separated)
