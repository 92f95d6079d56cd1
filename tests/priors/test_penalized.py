import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from sklearn.base import clone

from classprior import PenalizedL1Prior
from classprior._core import moments
from classprior.datasets import make_overlapping_uniforms
from reference import literal_penl1, means, objective

STEP = 0.001


def match(X_positive, X_unlabeled, **options):
    return PenalizedL1Prior(**options).fit_samples(X_positive, X_unlabeled)


def fit(X, y, **options):
    return PenalizedL1Prior(**{"random_state": 0, **options}).fit(X, y)


# Recovery, and a control that shows it can fail


@pytest.mark.parametrize("overlap", [0.25, 0.75])
def test_recovers_the_prior_of_the_overlapping_uniforms(overlap):
    estimates = [
        match(
            *make_overlapping_uniforms(
                overlap=overlap, n_positive=5000, n_unlabeled=5000, random_state=seed
            ),
            n_centers=1000,
            random_state=0,
        ).prior_
        for seed in range(10)
    ]
    # Three standard errors, and 0.02 for the bias that is left at this size.
    allowed = 3 * np.std(estimates) / np.sqrt(10) + 0.02
    assert abs(np.mean(estimates) - 0.7) < allowed < 0.06


@pytest.mark.parametrize("hidden", [50, 300, 900])
def test_follows_the_prior(hidden):
    estimates = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        positive, negative = rng.normal(0, 1, (1300, 2)), rng.normal(4, 1, (1000, 2))
        unlabeled = np.vstack([positive[:hidden], negative[: 1000 - hidden]])
        estimates.append(match(positive[hidden:][:400], unlabeled, random_state=0).prior_)
    allowed = 3 * np.std(estimates) / np.sqrt(20) + 0.01
    assert abs(np.mean(estimates) - hidden / 1000) < allowed < 0.08


def test_foreign_positives_are_not_found(separated):
    X_positive, X_unlabeled = separated
    assert match(X_positive - 40.0, X_unlabeled, random_state=0).prior_ <= STEP


def test_all_positive_gives_one():
    estimates = [
        match(*np.random.default_rng(seed).normal(size=(2, 500, 2)), random_state=0).prior_
        for seed in range(20)
    ]
    assert np.median(estimates) > 0.95
    assert np.max(estimates) == 1.0


# Attributes


def test_two_tables_are_one_with_labels(separated, labeled):
    two, one = match(*separated, random_state=0), fit(*labeled)
    for name in ("prior_", "thetas_", "objective_", "sigma_", "lam_", "centers_", "coef_"):
        assert_array_equal(getattr(two, name), getattr(one, name))


def test_attributes(labeled):
    X, y = labeled
    estimator = fit(pd.DataFrame(X, columns=["height", "weight"]), y, n_centers=50)
    assert_array_equal(estimator.thetas_, np.arange(1001) / 1000)
    assert estimator.objective_.shape == estimator.sigma_.shape == estimator.lam_.shape == (1001,)
    assert estimator.centers_.shape == (50, 2)
    assert estimator.coef_.shape == (50,)
    assert np.all(estimator.coef_ >= 0)
    assert_array_equal(estimator.classes_, [0, 1])
    assert estimator.n_features_in_ == 2
    assert_array_equal(estimator.feature_names_in_, ["height", "weight"])
    assert estimator.prior_ == estimator.thetas_[np.argmin(estimator.objective_)]
    assert not hasattr(estimator, "score")


def test_the_three_shares_are_one_statement(labeled):
    estimator = fit(*labeled)
    hidden = estimator.prior_ * 1000
    assert_allclose(estimator.prior_pooled_, (400 + hidden) / 1400, rtol=1e-15)
    assert_allclose(estimator.label_frequency_, 400 / (400 + hidden), rtol=1e-15)


# The paper's literal form


@pytest.mark.parametrize("seed", range(8))
def test_literal_form_is_the_public_program(seed):
    """In one or several columns, with overlap and without, on the same folds."""
    rng = np.random.default_rng(seed)
    n_columns, distance = 1 + seed % 4, 1.0 + seed % 3
    samples = [rng.normal(size=(n, n_columns)) for n in (40 + 10 * seed, 90)]
    samples[1][: 10 * (1 + seed)] += distance
    folds = tuple(rng.permutation(len(X)) % 5 for X in samples)
    thetas, values = literal_penl1(samples, folds)
    curve = PenalizedL1Prior.literal(cv=folds).fit_samples(*samples)
    assert_array_equal(curve.thetas_, thetas)
    assert_allclose(curve.objective_, values, rtol=1e-4)
    assert curve.prior_ == thetas[np.argmin(values)]


def test_literal_form_is_a_set_of_parameters(labeled):
    X, y = labeled
    estimator = PenalizedL1Prior.literal(random_state=0, n_jobs=2)
    assert estimator.get_params()["n_jobs"] == 2
    copy = clone(estimator).fit(X, y)
    assert_array_equal(estimator.fit(X, y).objective_, copy.objective_)
    assert_array_equal(estimator.centers_, np.vstack([X[y == 1], X[y == 0]]))
    assert_array_equal(estimator.thetas_, np.arange(1, 20) / 20)
    assert set(estimator.lam_) <= {1e-3, 1e1}
    two = PenalizedL1Prior.literal(thetas=[0.2, 0.25], random_state=0).fit(X, y)
    assert_array_equal(two.thetas_, [0.2, 0.25])
    assert two.prior_ in two.thetas_


def test_literal_bandwidths_need_distances(labeled):
    X, y = labeled
    with pytest.raises(ValueError, match="zero"):
        PenalizedL1Prior.literal().fit(np.ones_like(X), y)
    with pytest.raises(TypeError, match="'wide'"):
        PenalizedL1Prior(sigmas="wide").fit(X, y)


# The default grids


def test_default_lambdas_follow_the_noise(separated):
    """At the chosen theta, compare with the variance of a . beta over bins, by brute force."""
    positive, unlabeled = separated
    sigma, thetas = 1.5, np.linspace(0.0, 1.0, 11)
    model = PenalizedL1Prior(
        sigmas=sigma, thetas=thetas, n_centers=50, leave_one_out=False, random_state=0
    ).fit_samples(positive, unlabeled)
    phi_p, phi_u = (
        np.exp(-cdist(X, model.centers_, "sqeuclidean") / (2 * sigma**2))
        for X in (positive, unlabeled)
    )
    a = phi_p.mean(axis=0)
    # Bins are random, so the variance over rows agrees with that over 100 bins up to noise of 20%.
    noise = np.sqrt(thetas**2 * np.var(phi_p @ a) / 400 + np.var(phi_u @ a) / 1000)
    is_small = model.lam_ < 1.0
    assert is_small.any()
    assert not is_small.all()
    assert_allclose(model.lam_, np.where(is_small, 2e-3, 2e1) * noise, rtol=0.2)


@pytest.mark.parametrize("n_features", [2, 10, 30])
def test_bias_vanishes_with_more_rows(n_features):
    """With the lambdas of the public program, it stays, and grows with the number of columns."""
    errors = {}
    for lams in (None, (1e-3, 1e1)):
        rng = np.random.default_rng(0)
        unlabeled = rng.normal(size=(40_000, n_features))
        unlabeled[12_000:] += 4.0 / np.sqrt(n_features)
        model = PenalizedL1Prior(n_centers=300, lams=lams, random_state=0)
        model.fit_samples(rng.normal(size=(8000, n_features)), unlabeled)
        errors[lams] = model.prior_ - 0.3
    assert abs(errors[None]) < 0.02 + 0.001 * n_features
    if n_features > 2:
        assert errors[1e-3, 1e1] > 2 * abs(errors[None])


def test_default_bandwidths_come_from_the_unlabeled_rows():
    rng = np.random.default_rng(0)
    X_positive, X_unlabeled = rng.normal(size=(100, 1)), 50.0 * rng.normal(size=(100, 1))
    chosen = match(X_positive, X_unlabeled, n_centers=None, random_state=0).sigma_
    centers = np.vstack([X_positive, X_unlabeled])
    distances = np.abs(X_unlabeled - centers.T)
    median = np.median(distances[distances > 0])
    median = np.median(distances[distances > 1e-3 * median])  # what is closer counts as a copy
    ladder = 0.1 * median * np.sqrt(2.0) ** np.arange(11)
    assert np.all(np.isclose(chosen[:, None], ladder, rtol=1e-6).any(axis=1))


def test_coefficients_are_those_of_the_formula_at_the_estimate(separated):
    """The only candidate lies above the truth, so that some coefficients are positive."""
    samples = separated[0][:150], separated[1][:300]
    curve = match(*samples, thetas=[0.6], n_centers=None, random_state=0)
    at = int(np.argmin(curve.objective_))
    own = np.arange(150), 150 + np.arange(300)
    a, b = (
        means(X, curve.centers_, curve.sigma_[at], own_center=o)[0]
        for X, o in zip(samples, own, strict=True)
    )
    exact = np.maximum(0.0, curve.prior_ * a - b) / curve.lam_[at]
    assert exact.max() > 0.0
    assert_allclose(curve.coef_, exact, rtol=1e-3, atol=1e-5 * exact.max())


def test_positives_are_among_the_centers_however_rare():
    rng = np.random.default_rng(0)
    X_positive, X_unlabeled = rng.normal(size=(7, 2)), rng.normal(size=(5000, 2))
    centers = match(X_positive, X_unlabeled, n_centers=20, random_state=0).centers_
    assert_array_equal(centers[:7], X_positive)
    assert len(centers) == 20


# One sigma, one lambda: the exact minimizer


@pytest.mark.parametrize("leave_one_out", [True, False])
def test_without_cross_validation_the_estimate_is_the_exact_minimizer(separated, leave_one_out):
    samples = separated[0][:60], separated[1][:150]
    curve = match(*samples, sigmas=0.8, lams=0.3, leave_one_out=leave_one_out, n_centers=None)
    own = (np.arange(60), 60 + np.arange(150)) if leave_one_out else (None, None)
    a, b = (
        means(X, np.vstack(samples), 0.8, own_center=o)[0]
        for X, o in zip(samples, own, strict=True)
    )
    search = minimize_scalar(
        lambda theta: objective(theta, a, b, 0.3), bounds=(0, 1), options={"xatol": 1e-12}
    )
    assert_allclose(curve.prior_, search.x, atol=1e-6)
    exact = [objective(theta, a, b, 0.3) for theta in curve.thetas_]
    assert_allclose(curve.objective_, exact, rtol=1e-5, atol=1e-6)
    assert_allclose(curve.coef_, np.maximum(0, curve.prior_ * a - b) / 0.3, rtol=1e-3, atol=1e-7)
    assert np.unique(curve.sigma_) == 0.8
    assert np.unique(curve.lam_) == 0.3


def test_the_exact_minimizer_stays_between_the_ends_of_the_grid(separated):
    options = {"sigmas": 0.8, "lams": 0.01}
    free = match(*separated, **options).prior_
    narrow = match(*separated, thetas=[0.0, free / 2.0], **options)
    assert narrow.prior_ == free / 2.0


def test_one_positive_is_enough_without_cross_validation():
    curve = match(np.zeros((1, 1)), np.arange(5.0)[:, None], sigmas=1.0, lams=0.1)
    assert 0.0 <= curve.prior_ <= 1.0
    assert np.isfinite(curve.objective_).all()


# What must not matter


@pytest.mark.parametrize(
    "container",
    [
        pd.DataFrame,
        lambda X: pl.DataFrame(X, schema=["a", "b"]),
        lambda X: pa.table({"a": X[:, 0], "b": X[:, 1]}),
        sparse.csr_matrix,
        sparse.csr_array,
        sparse.csc_array,
        np.asfortranarray,
        np.ndarray.tolist,
        lambda X: X.astype(np.longdouble),
    ],
    ids=[
        "pandas",
        "polars",
        "pyarrow",
        "csr_matrix",
        "csr_array",
        "csc",
        "fortran",
        "list",
        "longdouble",
    ],
)
def test_containers_of_the_same_numbers_agree(labeled, container):
    X, y = labeled
    assert abs(fit(container(X), y).prior_ - fit(X, y).prior_) <= STEP


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, bool, "Int64"])
def test_types_of_numbers_are_taken_for_what_they_are(labeled, dtype):
    X, y = labeled
    X = (X > 2.0).astype(int) if dtype is bool else np.round(X)
    given = pd.DataFrame(X).astype(dtype) if dtype == "Int64" else X.astype(dtype)
    assert fit(given, y).prior_ == fit(X.astype(float), y).prior_


def test_a_wide_sparse_matrix_stays_sparse():
    X = sparse.random(300, 200_000, density=1e-4, random_state=0).tocsr()  # 480 MB if dense
    y = np.arange(300) < 100
    tracemalloc.start()
    try:
        estimator = fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6
    assert sparse.issparse(estimator.centers_)
    assert 0.0 <= estimator.prior_ <= 1.0


def test_seed_decides_the_result(labeled):
    first = fit(*labeled, n_centers=100)
    assert_array_equal(first.objective_, fit(*labeled, n_centers=100).objective_)
    other = fit(*labeled, n_centers=100, random_state=1)
    assert not np.array_equal(first.centers_, other.centers_)


def test_threads_do_not_change_the_result(labeled):
    assert_array_equal(fit(*labeled, n_jobs=2).objective_, fit(*labeled).objective_)


def test_blocks_do_not_change_the_estimate(labeled, monkeypatch):
    expected = fit(*labeled).prior_
    monkeypatch.setattr(moments, "_TILE_VALUES", 5000)
    assert abs(fit(*labeled).prior_ - expected) <= STEP


@pytest.mark.parametrize(("factor", "shift"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6), (1e-3, -1e3)])
def test_units_do_not_change_the_estimate(labeled, factor, shift):
    X, y = labeled
    assert abs(fit(factor * X + shift, y).prior_ - fit(X, y).prior_) <= STEP


def test_constant_columns_do_not_change_the_estimate(labeled):
    X, y = labeled
    constant = np.full((len(X), 1), 3.0)
    assert fit(np.hstack([X, constant]), y).prior_ == fit(X, y).prior_


def test_one_wild_row_hardly_moves_the_estimate(labeled):
    X, y = labeled
    expected = fit(X, y).prior_
    X[-1] = 1e7
    assert abs(fit(X, y).prior_ - expected) < 0.02


def test_folds_given_are_the_folds_used(labeled):
    """Cross-validation sees rows through sums of folds, so labels and bins do not matter."""
    X, y = labeled
    folds = np.random.RandomState(0).permutation(len(X)) % 5
    sigmas = [0.3, 1.0]
    given, renamed = (fit(X, y, sigmas=sigmas, cv=cv) for cv in (folds, 10 * folds + 3))
    assert_array_equal(given.objective_, renamed.objective_)
    assert not np.array_equal(fit(X, y, sigmas=sigmas, cv=folds % 2).objective_, given.objective_)


def test_duplicated_rows_are_not_taken_for_centers(separated):
    """A copy of a center is data; only the center's own row is left out."""
    X_positive, X_unlabeled = (np.repeat(X[:100], 3, axis=0) for X in separated)
    curve = match(X_positive, X_unlabeled, sigmas=0.5, lams=0.3, n_centers=None)
    own = np.arange(300), 300 + np.arange(300)
    centers = np.vstack([X_positive, X_unlabeled])
    a, b = (
        means(X, centers, 0.5, own_center=o)[0]
        for X, o in zip((X_positive, X_unlabeled), own, strict=True)
    )
    exact = [objective(theta, a, b, 0.3) for theta in curve.thetas_]
    assert_allclose(curve.objective_, exact, rtol=1e-5, atol=1e-6)


def test_copies_bias_the_estimate_unless_they_share_a_fold():
    """A known weakness: copies in different folds confirm each other."""
    errors = {"dealt": [], "together": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        positive, negative = rng.normal(0, 1, (100, 5)), rng.normal(2, 1, (140, 5))
        samples = positive[:60], np.vstack([positive[60:], negative[:93]])  # a share of 0.3
        copies = [np.repeat(X, 5, axis=0) for X in samples]
        folds = tuple(np.repeat(rng.permutation(len(X)) % 5, 5) for X in samples)
        errors["dealt"].append(match(*copies, random_state=0).prior_ - 0.3)
        errors["together"].append(match(*copies, cv=folds, random_state=0).prior_ - 0.3)
    assert np.mean(errors["dealt"]) < -0.15
    assert abs(np.mean(errors["together"])) < abs(np.mean(errors["dealt"])) - 0.05


def test_a_center_that_counts_itself_holds_the_estimate_down():
    """If rows are far apart, a mean without leave-one-out contains only the self-term.

    Then a = 1/n and b = 0 at the n positive centers, so penL1 = theta^2 / (n lam) - theta + 1.
    """
    X = np.arange(150.0)[:, None]
    options = {"sigmas": 1e-3, "lams": 0.01}
    literal = match(X[:50], X[50:], leave_one_out=False, **options)
    assert_allclose(literal.prior_, 50 * 0.01 / 2.0, rtol=1e-12)
    assert match(X[:50], X[50:], **options).prior_ == 1.0
