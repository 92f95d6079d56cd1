import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from classprior._core import smooth as _smooth
from classprior._core.smooth import Conjugate, concave_path, rotation
from classprior.divergences import KullbackLeibler, Pearson
from reference import phi

THETAS = np.linspace(0.0, 1.0, 11)
RNG = np.random.default_rng(0)
POSITIVE, UNLABELED = RNG.normal(0, 1, (80, 1)), RNG.normal(0.7, 1.2, (90, 1))
PHI_P, PHI_U = (
    phi(X, np.vstack([POSITIVE[:8], UNLABELED[:7]]), 0.7) for X in (POSITIVE, UNLABELED)
)


def ordinary(d):
    return Conjugate(d.conjugate, d.maximizer, d.curvature)


def penalized(d):
    return Conjugate(d.penalized_conjugate, d.penalized_maximizer, d.penalized_curvature)


each = pytest.mark.parametrize(
    "conjugate",
    [
        ordinary(KullbackLeibler()),
        penalized(KullbackLeibler()),
        ordinary(Pearson()),
        penalized(Pearson()),
    ],
    ids=["kl", "pen-kl", "pearson", "pen-pearson"],
)


def loss(alpha, theta, lam, conjugate):
    bound = theta * (PHI_P @ alpha).mean() - conjugate.value(PHI_U @ alpha - 1.0).mean()
    return 0.5 * lam * alpha @ alpha - bound


@each
@pytest.mark.parametrize("lam", [1e-3, 0.1, 10.0])
def test_gradient_vanishes(conjugate, lam):
    a = PHI_P.mean(axis=0)
    for theta, alpha in zip(THETAS, concave_path(PHI_U, a, THETAS, lam, conjugate), strict=True):
        z = PHI_U @ alpha - 1.0
        gradient = lam * alpha - theta * a + np.mean(conjugate.slope(z)[:, None] * PHI_U, axis=0)
        assert np.abs(gradient).max() <= 2e-9  # computed in another order


@each
def test_no_other_solver_finds_a_better_point(conjugate):
    lam = 0.01
    alphas = concave_path(PHI_U, PHI_P.mean(axis=0), THETAS, lam, conjugate)
    for theta, alpha in zip(THETAS[::5], alphas[::5], strict=True):
        found = minimize(loss, 0.0 * alpha, (theta, lam, conjugate), "Nelder-Mead", tol=1e-10)
        assert loss(alpha, theta, lam, conjugate) <= found.fun + 1e-12
        nudged = [alpha + 1e-3 * step for step in RNG.normal(size=(50, len(alpha)))]
        assert min(loss(other, theta, lam, conjugate) for other in nudged) > loss(
            alpha, theta, lam, conjugate
        )


def test_penalized_divergences_are_not_the_ordinary_ones():
    """A control: where theta p1 exceeds p the two differ."""
    a = PHI_P.mean(axis=0)
    for d in (KullbackLeibler(), Pearson()):
        free, limited = (
            concave_path(PHI_U, a, [1.0], 0.01, c) for c in (ordinary(d), penalized(d))
        )
        assert np.abs(free - limited).max() > 0.1


@pytest.mark.parametrize("sigma", [0.05, 0.7, 20.0])
def test_rotation_keeps_the_basis(sigma):
    values = phi(UNLABELED, POSITIVE, sigma)
    Q = rotation(values)
    assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)
    assert_allclose(values @ Q @ Q.T, values, atol=1e-9)
    assert (Q.shape[1] < 15) == (sigma == 20.0)


def test_rotation_of_more_centers_than_rows():
    values = phi(UNLABELED[:5], POSITIVE, 0.3)
    assert_allclose(values @ rotation(values) @ rotation(values).T, values, atol=1e-12)


def test_an_unsolved_problem_is_an_error(monkeypatch):
    monkeypatch.setattr(_smooth, "_MOST_STEPS", 2)
    with pytest.raises(ArithmeticError, match=r"gradient .*1e-09.*lams"):
        concave_path(PHI_U, PHI_P.mean(axis=0), [1.0], 1e-4, penalized(KullbackLeibler()))
