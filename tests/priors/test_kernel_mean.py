import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel

from classprior.priors import KernelMeanPrior
from classprior.priors._kernel_mean import DistanceCurve


@pytest.fixture
def samples():
    """60 positives and 90 unlabeled rows, half of them positive."""
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(0, 1, (105, 2)), rng.normal(5, 1, (45, 2))
    return positive[:60], np.vstack([positive[60:], negative])


@pytest.fixture
def curve(samples):
    X = np.vstack(samples)
    return DistanceCurve(rbf_kernel(X, gamma=0.5), np.arange(150) < 60)


def test_distance_is_that_of_another_solver(samples):
    P, U = samples[0][:15], samples[1][::4]
    X, n, m = np.vstack([P, U]), 15, len(U)
    K = rbf_kernel(X, gamma=0.5)
    curve = DistanceCurve(K, np.arange(n + m) < n)
    for lam in (1.05, 1.5, 4.0):
        target = np.repeat([(1.0 - lam) / n, lam / m], [n, m])
        other = minimize(
            lambda v, t=target: (t - v) @ K @ (t - v),
            np.full(n + m, 1.0 / (n + m)),
            jac=lambda v, t=target: -2.0 * K @ (t - v),
            bounds=[(0.0, 1.0)] * (n + m),
            constraints={"type": "eq", "fun": lambda v: v.sum() - 1.0},
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        assert_allclose(curve.value_and_slope(lam)[0], np.sqrt(other.fun), rtol=1e-5)


def test_distance_to_two_points_in_closed_form():
    """One row each: the target is beyond the unlabeled row, and the nearest point is that row."""
    K = np.array([[1.0, 0.2], [0.2, 1.0]])
    curve = DistanceCurve(K, np.array([True, False]))
    assert_allclose(curve.D, np.sqrt(2.0 - 0.4))
    for lam in (1.1, 3.0):
        d, slope = curve.value_and_slope(lam)
        assert_allclose(d, (lam - 1.0) * curve.D, rtol=1e-6)
        assert_allclose(slope, curve.D, rtol=1e-6)


def test_slope_is_the_derivative(curve):
    for lam in (1.3, 2.0, 2.5, 6.0):
        step = 1e-3
        ends = [curve.value_and_slope(lam + sign * step)[0] for sign in (-1, 1)]
        _, slope = curve.value_and_slope(lam)
        assert_allclose(slope, (ends[1] - ends[0]) / (2.0 * step), rtol=1e-3, atol=1e-4 * curve.D)


def test_slope_increases_to_the_distance_of_the_means(curve):
    slopes = [curve.value_and_slope(lam)[1] for lam in (1.02, 1.2, 1.6, 2.0, 3.0, 10.0, 1000.0)]
    assert np.all(np.diff(slopes) > -1e-6)
    assert_allclose(slopes[-1], curve.D, rtol=1e-2)


def test_prior_is_where_the_slope_crosses(curve):
    for share in (0.3, 0.6, 0.9):
        prior = curve.prior(share * curve.D)
        around = [curve.value_and_slope(1.0 / (1.0 - p))[1] for p in (prior - 1e-3, prior + 1e-3)]
        assert around[0] < share * curve.D < around[1]
    assert curve.prior(curve.D) == 1.0


def test_thresholds_are_those_of_the_paper(samples):
    by_name = {
        name: KernelMeanPrior(threshold=name, random_state=0).fit_samples(*samples)
        for name in ("km1", "km2")
    }
    assert_allclose(by_name["km1"].threshold_, 1.0 / np.sqrt(60))
    X = np.vstack(samples)
    curve = DistanceCurve(
        rbf_kernel(X, gamma=0.5 / by_name["km2"].sigma_ ** 2), np.arange(150) < 60
    )
    assert_allclose(by_name["km2"].distance_, curve.D, rtol=1e-6)
    assert_allclose(
        by_name["km2"].threshold_,
        0.8 * curve.value_and_slope(1.05)[0] / 0.05 + 0.2 * curve.D,
        rtol=1e-4,
    )


@pytest.mark.filterwarnings("ignore:Gaussian kernels can hardly")
def test_km1_is_km2_if_its_threshold_is_out_of_reach():
    U = np.random.default_rng(0).normal(size=(30, 1))
    P = U[:20]
    first, second = (
        KernelMeanPrior(threshold=name, random_state=0).fit_samples(P, U) for name in ("km1", "km2")
    )
    assert 0.0 < 0.9 * first.distance_ < 1.0 / np.sqrt(20)
    assert first.threshold_ == second.threshold_ < first.distance_
    assert first.prior_ == second.prior_


def test_bandwidth_tells_the_samples_apart_best(samples):
    sigmas = [0.01, 0.5, 2.0, 100.0]
    fitted = KernelMeanPrior(sigmas=sigmas, random_state=0).fit_samples(*samples)
    is_positive = np.arange(150) < 60
    distances = [
        DistanceCurve(rbf_kernel(np.vstack(samples), gamma=0.5 / s**2), is_positive).D
        for s in sigmas
    ]
    assert fitted.sigma_ == sigmas[int(np.argmax(distances))]
    assert_allclose(fitted.distance_, max(distances), rtol=1e-6)


@pytest.mark.parametrize("threshold", ["km1", "km2"])
def test_recovers_the_prior_of_separated_classes(threshold):
    estimates = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        U = np.vstack([rng.normal(0, 1, (60, 2)), rng.normal(6, 1, (90, 2))])
        fitted = KernelMeanPrior(threshold=threshold, random_state=0)
        estimates.append(fitted.fit_samples(rng.normal(0, 1, (150, 2)), U).prior_)
    assert abs(np.mean(estimates) - 0.4) < 0.08


@pytest.mark.parametrize("threshold", ["km1", "km2"])
@pytest.mark.parametrize("prior", [0.1, 0.3, 0.5, 0.7])
def test_categories_have_a_closed_form(prior, threshold):
    """Each row is one of four points, so kappa is the smallest ratio of their shares."""
    rng = np.random.default_rng(0)
    of_positives, of_negatives = [0.5, 0.3, 0.2, 0.0], [0.0, 0.2, 0.2, 0.6]
    hidden = int(400 * prior)
    P = rng.choice(4, 200, p=of_positives)
    U = np.r_[rng.choice(4, hidden, p=of_positives), rng.choice(4, 400 - hidden, p=of_negatives)]
    p, u = (np.bincount(points, minlength=4)[:3] / len(points) for points in (P, U))
    fitted = KernelMeanPrior(threshold=threshold).fit_samples(np.eye(4)[P], np.eye(4)[U])
    assert fitted.prior_ == pytest.approx(np.min(u / p), abs=1e-3)


@pytest.mark.parametrize("threshold", ["km1", "km2"])
def test_samples_that_kernels_cannot_tell_apart_are_named(threshold):
    rng = np.random.default_rng(0)
    same = rng.normal(size=(2, 100, 300))  # so many columns that all rows are far apart
    with pytest.warns(UserWarning, match=r"hardly tell .* 'auto'"):
        fitted = KernelMeanPrior(threshold=threshold, random_state=0).fit_samples(*same)
    assert fitted.distance_ == pytest.approx(np.sqrt(2 / 100), rel=1e-3)
    assert fitted.prior_ == (0.0 if threshold == "km1" else 1.0)
    one = KernelMeanPrior(threshold=threshold, sigmas=1.0)
    with pytest.warns(UserWarning, match="hardly tell"):
        one.fit_samples(np.ones((20, 2)), np.ones((30, 2)))
    assert one.prior_ == 1.0


def test_rows_beyond_the_limit_are_drawn(samples):
    fitted = KernelMeanPrior(max_rows=40, random_state=0).fit_samples(*samples)
    assert fitted.n_fitted_ == (40, 40)
    again = KernelMeanPrior(max_rows=40, random_state=0).fit_samples(*samples)
    assert again.prior_ == fitted.prior_
    assert KernelMeanPrior(max_rows=90, random_state=0).fit_samples(*samples).n_fitted_ == (60, 90)


def test_order_of_rows_and_sparseness_do_not_matter(samples):
    P, U = samples
    priors = [
        KernelMeanPrior(random_state=0).fit_samples(*pair).prior_
        for pair in ((P, U), (P[::-1], U[::-1]), (sparse.csr_array(P), sparse.csr_array(U)))
    ]
    assert_allclose(priors, priors[0], atol=1e-3)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"threshold": "km3"}, ValueError),
        ({"max_rows": 1}, ValueError),
        ({"max_rows": None}, TypeError),
        ({"sigmas": [1.0, -1.0]}, ValueError),
    ],
    ids=str,
)
def test_parameters_are_checked(options, error, samples):
    ((name, _),) = options.items()
    with pytest.raises(error, match=name):
        KernelMeanPrior(**options).fit_samples(*samples)
