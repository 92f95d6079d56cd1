import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classprior import PearsonPrior, pearson_prior
from classprior.datasets import make_overlapping_uniforms
from reference import phi


def test_objective_is_the_formula(separated):
    samples = separated[0][:80], separated[1][:200]
    curve = pearson_prior(*samples, sigmas=0.9, lams=0.05, n_centers=40, random_state=0)
    phi_p, phi_u = (phi(X, curve.centers, 0.9) for X in samples)
    H, h = phi_u.T @ phi_u / 200, phi_p.mean(axis=0)
    G = np.linalg.inv(H + 0.05 * np.eye(40))
    bracket = 2.0 * h @ G @ h - h @ G @ H @ G @ h
    assert_allclose(curve.prior, 1.0 / bracket, rtol=1e-5)
    exact = curve.thetas**2 / 2.0 * bracket - curve.thetas + 0.5
    assert_allclose(curve.objective, exact, rtol=1e-5, atol=1e-6)
    assert_allclose(curve.coef, curve.prior * G @ h, rtol=1e-4, atol=1e-6)


def test_objective_is_the_lower_bound_of_the_divergence(separated):
    """Alpha maximises theta E1[r] - E[f*(r)] - lam/2 |alpha|^2 with r = alpha'phi - 1."""
    samples = separated[0][:80], separated[1][:200]
    curve = pearson_prior(*samples, sigmas=0.9, lams=0.05, n_centers=40, random_state=0)
    phi_p, phi_u = (phi(X, curve.centers, 0.9) for X in samples)

    def bound(alpha):
        r_p, r_u = phi_p @ alpha - 1.0, phi_u @ alpha - 1.0
        return curve.prior * r_p.mean() - np.mean(r_u**2 / 2.0 + r_u)

    best = bound(curve.coef) - 0.025 * curve.coef @ curve.coef
    assert_allclose(
        bound(curve.coef), np.interp(curve.prior, curve.thetas, curve.objective), atol=1e-5
    )
    for direction in np.random.default_rng(0).normal(size=(20, 40)):
        other = curve.coef + 0.01 * direction
        assert bound(other) - 0.025 * other @ other < best


@pytest.mark.parametrize(("overlap", "population"), [(0.25, 0.757), (0.75, 0.903)])
def test_over_estimates_as_worked_out(overlap, population):
    """At the population PE is 1 / integral of p1^2/p: .757 and .903 for a true .7."""
    estimates = [
        pearson_prior(
            *make_overlapping_uniforms(
                overlap=overlap, n_positive=3000, n_unlabeled=3000, random_state=seed
            ),
            n_centers=100,
            random_state=0,
        ).prior
        for seed in range(5)
    ]
    assert abs(np.mean(estimates) - population) < 0.02
    assert np.min(estimates) > 0.72


def test_function_and_estimator_agree(separated, labelled):
    curve = pearson_prior(*separated, random_state=0)
    estimator = PearsonPrior(random_state=0).fit(*labelled)
    assert estimator.prior_ == curve.prior
    assert_array_equal(estimator.coef_, curve.coef)


def test_a_value_outside_is_said():
    X = np.random.default_rng(0).normal(size=(50, 1))
    with pytest.warns(UserWarning, match=r"raw estimate .* is outside \[0, 1\]: taking 1"):
        assert pearson_prior(X, X, sigmas=1.0, lams=100.0).prior == 1.0
