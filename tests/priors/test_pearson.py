import numpy as np
import pytest
from numpy.testing import assert_allclose

from classprior import PearsonPrior
from classprior._samples.samples import Samples
from classprior.datasets import make_overlapping_uniforms
from reference import phi


def estimate(*samples, **options):
    return PearsonPrior(**options).fit_samples(*samples)


def test_objective_is_the_formula(separated):
    samples = separated[0][:80], separated[1][:200]
    curve = estimate(*samples, sigmas=0.9, lams=0.05, n_centers=40, random_state=0)
    phi_p, phi_u = (phi(X, curve.centers_, 0.9) for X in samples)
    H, h = phi_u.T @ phi_u / 200, phi_p.mean(axis=0)
    G = np.linalg.inv(H + 0.05 * np.eye(40))
    bracket = 2.0 * h @ G @ h - h @ G @ H @ G @ h
    assert_allclose(curve.prior_, 1.0 / bracket, rtol=1e-5)
    exact = curve.thetas_**2 / 2.0 * bracket - curve.thetas_ + 0.5
    assert_allclose(curve.objective_, exact, rtol=1e-5, atol=1e-6)
    assert_allclose(curve.coef_, curve.prior_ * G @ h, rtol=1e-4, atol=1e-6)


def test_objective_is_the_lower_bound_of_the_divergence(separated):
    """Alpha maximizes theta E1[r] - E[f*(r)] - lam/2 |alpha|^2 with r = alpha'phi - 1."""
    samples = separated[0][:80], separated[1][:200]
    curve = estimate(*samples, sigmas=0.9, lams=0.05, n_centers=40, random_state=0)
    phi_p, phi_u = (phi(X, curve.centers_, 0.9) for X in samples)

    def bound(alpha):
        r_p, r_u = phi_p @ alpha - 1.0, phi_u @ alpha - 1.0
        return curve.prior_ * r_p.mean() - np.mean(r_u**2 / 2.0 + r_u)

    best = bound(curve.coef_) - 0.025 * curve.coef_ @ curve.coef_
    assert_allclose(
        bound(curve.coef_), np.interp(curve.prior_, curve.thetas_, curve.objective_), atol=1e-5
    )
    for direction in np.random.default_rng(0).normal(size=(20, 40)):
        other = curve.coef_ + 0.01 * direction
        assert bound(other) - 0.025 * other @ other < best


@pytest.mark.parametrize(("overlap", "population"), [(0.25, 0.757), (0.75, 0.903)])
def test_over_estimates_as_worked_out(overlap, population):
    """At the population PE is 1 / integral of p1^2/p: .757 and .903 for a true .7."""
    estimates = [
        estimate(
            *make_overlapping_uniforms(
                overlap=overlap, n_positive=3000, n_unlabeled=3000, random_state=seed
            ),
            n_centers=100,
            random_state=0,
        ).prior_
        for seed in range(5)
    ]
    assert abs(np.mean(estimates) - population) < 0.02
    assert np.min(estimates) > 0.72


def test_a_value_outside_is_said():
    X = np.random.default_rng(0).normal(size=(50, 1))
    with pytest.warns(UserWarning, match=r"outside \[0, 1\].* 1\."):
        assert estimate(X, X, sigmas=1.0, lams=100.0).prior_ == 1.0


def test_resampling_the_ratio_agrees_with_refits(separated):
    """The delta method on bins has the standard error of refits to resampled rows."""
    resampled, refitted = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        P = rng.normal(0, 1, (300, 1))
        U = np.r_[rng.normal(0, 1, (240, 1)), rng.normal(2.5, 1, (560, 1))]
        estimator = PearsonPrior(sigmas=0.8, lams=0.05, n_centers=60, random_state=0)
        samples = Samples.of_rows(P, U, 0)
        resampled.append(np.std(estimator.fit_opened(samples)(samples.bins.weights(400))))
        centers, coef = estimator.centers_, []
        for _ in range(400):
            phi_p, phi_u = (phi(X[rng.integers(0, len(X), len(X))], centers, 0.8) for X in (P, U))
            H, h = phi_u.T @ phi_u / len(U), phi_p.mean(axis=0)
            ratio = np.linalg.solve(H + 0.05 * np.eye(len(h)), h)
            coef.append(1.0 / (2.0 * h @ ratio - ratio @ H @ ratio))
        refitted.append(np.std(coef))
    # Three ratios, each with a standard error of 5% for 400 resamples of either kind.
    assert_allclose(np.mean(np.divide(resampled, refitted)), 1.0, atol=0.12)
