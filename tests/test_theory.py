import re
from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from classprior import PenalizedL1Prior, theory
from classprior.datasets import make_overlapping_uniforms
from classprior.theory import (
    coefficient_bound,
    deviation_bound,
    estimation_error_bound,
    feasible_bound,
    feature_bound,
    fixed_objective,
    uniform_deviation_bound,
)
from reference import objective, phi

N, M, B, LAM, DELTA = 400, 900, 12, 0.7, 0.1
ROOT = np.sqrt(np.log(2 / DELTA) / 2 * (1 / N + 1 / M))
RATE = 1 / np.sqrt(N) + 1 / np.sqrt(M)


def test_bounds_are_the_formulas():
    options = {"n_centers": B, "lam": LAM, "delta": DELTA}
    assert_allclose(deviation_bound(N, M, **options), 3 * B / LAM * ROOT)
    finite = (2 * B / LAM + 5.0 * np.sqrt(B)) * ROOT
    assert_allclose(deviation_bound(N, M, feasible=5.0, **options), finite)
    three = np.sqrt(np.log(3 / DELTA) / np.log(2 / DELTA))
    assert_allclose(
        deviation_bound(N, M, feasible=5.0, feasible_always=False, **options), finite * three
    )
    assert_allclose(
        uniform_deviation_bound(N, M, features=2.0, coefficients=3.0, **options),
        2 * 2.0 * 3.0 * RATE + 3 * B / LAM * ROOT,
    )
    assert_allclose(
        estimation_error_bound(
            N, M, n_centers=B, coefficients=3.0, coefficient_rate=0.5, delta=DELTA, features=2.0
        ),
        (4 * 2.0 * 3.0 + 2 * 0.5 * np.sqrt(B)) * RATE
        + 2 * 3.0 * np.sqrt(B) * np.sqrt(np.log(4 / DELTA) / 2 * (1 / N + 1 / M)),
    )


def test_defaults_are_the_largest_the_constants_can_be():
    options = {"n_centers": B, "lam": LAM, "delta": DELTA}
    explicit = {"features": np.sqrt(B), "coefficients": np.sqrt(B) / LAM}
    assert uniform_deviation_bound(N, M, **options) == uniform_deviation_bound(
        N, M, **explicit, **options
    )


CENTERS = np.random.default_rng(9).uniform(0, 2, (B, 1))


def test_feature_bound_is_the_largest_norm():
    X = np.random.default_rng(0).normal(size=(300, 1))
    exact = np.linalg.norm(phi(X, CENTERS, 0.5), axis=1).max()
    assert_allclose(feature_bound(X, CENTERS, 0.5), exact, rtol=1e-6)
    assert exact <= np.sqrt(B)


def test_coefficient_bound_is_the_largest_norm_over_theta():
    P, U = make_overlapping_uniforms(n_positive=50, n_unlabeled=60, random_state=0)
    a, b = (phi(X, CENTERS, 0.3).mean(axis=0) for X in (P, U))
    norms = [np.linalg.norm(np.maximum(0, t * a - b)) / LAM for t in np.linspace(0, 1, 50)]
    bound = coefficient_bound(P, U, CENTERS, 0.3, LAM)
    assert_allclose(bound, max(norms), rtol=1e-5)
    assert bound <= np.sqrt(B) / LAM


@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_no_feasible_coefficients_exceed_the_bound(sigma):
    """Extend random directions until the first constraint is active."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (80, 1))
    values = phi(X, CENTERS, sigma)
    bound = feasible_bound(X, CENTERS, sigma, slope=1.5)
    directions = np.vstack([rng.exponential(size=(500, B)) ** 4, np.eye(B)])
    steps = 2.5 / (directions @ values.T).max(axis=1)
    largest = np.linalg.norm(directions * steps[:, None], axis=1).max()
    assert largest <= bound * (1 + 1e-6)
    assert bound < 20 * largest  # and it is of the right order


def test_feasible_bound_by_hand():
    # Two centers far apart, a row on each: each coefficient up to 2, together the root of 8.
    assert_allclose(feasible_bound([[0.0], [99.0]], [[0.0], [99.0]], 1.0, slope=1.0), np.sqrt(8.0))
    # Two centers at one place, rows there: the sum is at most 2.
    assert_allclose(feasible_bound([[0.0]], [[0.0], [0.0]], 1.0, slope=1.0), 2.0)


def test_feasible_bound_is_infinite_where_a_gaussian_sees_no_row():
    assert feasible_bound([[0.0]], [[0.0], [1e3]], sigma=1.0, slope=1.0) == np.inf


def test_the_deviation_stays_within_the_bound():
    """Independent centers, bandwidth and regularization fixed; the bound is loose and holds."""
    values = []
    for seed in range(200):
        samples = make_overlapping_uniforms(n_positive=100, n_unlabeled=100, random_state=seed)
        a, b = (phi(X, CENTERS, 0.3).mean(axis=0) for X in samples)
        values.append(objective(0.8, a, b, LAM))
    deviations = np.abs(values - np.mean(values))
    bound = deviation_bound(100, 100, n_centers=B, lam=LAM, delta=0.05)
    assert np.mean(deviations > bound) <= 0.05
    assert bound / np.quantile(deviations, 0.95) > 5  # loose, as the docstring says


def test_formula_is_about_the_literal_objective():
    """The theory has no leave-one-out, so its objective is that of leave_one_out=False."""
    samples = make_overlapping_uniforms(n_positive=100, n_unlabeled=100, random_state=0)
    options = {"sigmas": 0.3, "lams": LAM, "leave_one_out": False, "n_centers": None}
    curve = PenalizedL1Prior(**options).fit_samples(*samples)
    a, b = (phi(X, curve.centers_, 0.3).mean(axis=0) for X in samples)
    assert_allclose(curve.objective_[800], objective(0.8, a, b, LAM), rtol=1e-5)


SIZES = {"n_positive": 10, "n_unlabeled": 10, "n_centers": 3}
ROWS = {"X_positive": [[0.0], [1.0]], "X_unlabeled": [[0.5], [1.5]], "centers": [[0.0]]}
VALID = {
    deviation_bound: {**SIZES, "lam": 1.0, "delta": 0.1, "feasible": 2.0},
    uniform_deviation_bound: {
        **SIZES,
        **{"lam": 1.0, "delta": 0.1, "feasible": 2.0, "features": 1.0, "coefficients": 1.0},
    },
    estimation_error_bound: {
        **SIZES,
        **{"coefficients": 1.0, "coefficient_rate": 1.0, "delta": 0.1, "features": 1.0},
    },
    feature_bound: {"X": ROWS["X_unlabeled"], "centers": ROWS["centers"], "sigma": 1.0},
    coefficient_bound: {**ROWS, "sigma": 1.0, "lam": 1.0},
    feasible_bound: {
        **{"X_unlabeled": ROWS["X_unlabeled"], "centers": ROWS["centers"]},
        **{"sigma": 1.0, "slope": 1.0},
    },
    fixed_objective: {**ROWS, "sigma": 1.0, "lam": 1.0, "thetas": [0.5], "slope": 1.0},
}
NAN = float("nan")
WRONG = {
    "rows": [[[NAN], [1.0]], [[0.0], [float("inf")]]],
    "thetas": [[0.5, NAN], [-0.1], [1.1]],
    "delta": [0.0, 1.0, -0.1, 1.5, NAN],
    **dict.fromkeys(SIZES, (0, -5, 0.5, NAN)),
    **dict.fromkeys(["lam", "sigma", "slope"], (0.0, -1.5, NAN)),
    **dict.fromkeys(["feasible", "features", "coefficients", "coefficient_rate"], (-1.5, NAN)),
}
CASES = [
    (function, name, value)
    for function, options in VALID.items()
    for name in options
    for value in WRONG["rows" if name in ("X", *ROWS) else name]
]


def test_every_parameter_of_every_function_is_tried():
    assert {function.__name__ for function in VALID} == set(theory.__all__)
    for function, options in VALID.items():
        function(**options)
        assert signature(function).parameters.keys() - {"feasible_always"} == options.keys()


@pytest.mark.parametrize(
    ("function", "name", "value"), CASES, ids=[f"{f.__name__}-{n}-{v}" for f, n, v in CASES]
)
def test_what_cannot_be_is_refused(function, name, value):
    """The message has the name and the wrong value."""
    values = np.ravel(value)
    wrong = values[~np.isfinite(values)] if name in ("X", *ROWS) else values[-1:]
    facts = rf"(?i)(?=.*\b{name}\b)(?=.*{re.escape(f'{wrong[0]:g}')})"
    with pytest.raises(ValueError, match=facts):
        function(**{**VALID[function], name: value})


@pytest.mark.parametrize("name", ["feasible", "features", "coefficients", "coefficient_rate"])
def test_constants_may_be_zero_or_infinite(name):
    for function, options in VALID.items():
        if name in options:
            assert function(**{**options, name: np.inf}) == np.inf
            assert 0.0 < function(**{**options, name: 0.0}) < function(**options)


def _fixed(seed=0, n_positive=40, n_unlabeled=50):
    samples = make_overlapping_uniforms(
        n_positive=n_positive, n_unlabeled=n_unlabeled, random_state=seed
    )
    return samples, [phi(X, CENTERS, 0.3).mean(axis=0) for X in samples]


def test_fixed_objective_is_the_papers_formula():
    samples, (a, b) = _fixed()
    thetas = np.linspace(0, 1, 7)
    values, coef = fixed_objective(*samples, centers=CENTERS, sigma=0.3, lam=LAM, thetas=thetas)
    assert_allclose(values, [objective(theta, a, b, LAM) for theta in thetas], rtol=1e-12)
    assert_allclose(coef, [np.maximum(0, theta * a - b) / LAM for theta in thetas], atol=1e-14)


@pytest.mark.parametrize("lam", [1e-3, 0.02, 5.0])
def test_fixed_objective_of_a_finite_slope_solves_the_quadratic_program(lam):
    """Compare with a general-purpose solver, with and without active constraints."""
    samples, (a, b) = _fixed()
    limits = phi(samples[1], CENTERS, 0.3)
    values, coef = fixed_objective(
        *samples, centers=CENTERS, sigma=0.3, lam=lam, thetas=[0.8, 1.0], slope=1.0
    )
    for theta, value, alpha in zip([0.8, 1.0], values, coef, strict=True):
        beta = theta * a - b
        found = minimize(
            lambda x, beta=beta: lam / 2 * x @ x - x @ beta,
            np.zeros(B),
            jac=lambda x, beta=beta: lam * x - beta,
            bounds=[(0, None)] * B,
            constraints={
                "type": "ineq",
                "fun": lambda x: 2.0 - limits @ x,
                "jac": lambda _: -limits,
            },
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        assert found.success
        assert (limits @ alpha).max() <= 2.0 * (1 + 1e-8)
        assert lam / 2 * alpha @ alpha - alpha @ beta <= found.fun + 1e-9
        assert_allclose(value, found.x @ beta - theta + 1, atol=1e-5)
    binds = (limits @ np.maximum(0, a - b) / lam).max() > 2.0
    assert binds == (lam < 1.0)


def test_fixed_objective_takes_any_number_of_rows():
    """A repeated sample, processed in blocks, has the same means."""
    samples, _ = _fixed()
    options = {"centers": CENTERS, "sigma": 0.3, "lam": LAM, "thetas": [0.9]}
    once, _ = fixed_objective(*samples, **options)
    many, _ = fixed_objective(*(np.repeat(X, 600, axis=0) for X in samples), **options)
    assert_allclose(many, once, rtol=1e-12)
