import numpy as np
import pandas as pd
import pytest
from densratio import densratio
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from classprior import DensityRatio
from classprior._samples.samples import Samples
from classprior._samples.sums import Centers
from classprior.density_ratio import fit_ratio, linear_model


def density_ratio(*samples, **options):
    return DensityRatio(**options).fit_samples(*samples)


def test_agrees_with_another_library():
    """The same centers, bandwidth and regularization give the same ratio as ``densratio``."""
    rng = np.random.default_rng(0)
    X_positive, X_unlabeled = rng.normal(size=(200, 2)), 1.5 * rng.normal(size=(300, 2))
    theirs = densratio(
        X_positive,
        X_unlabeled,
        method="uLSIF",
        sigma=1.3,
        lambda_=0.05,
        kernel_num=50,
        verbose=False,
    )
    ours = fit_ratio(
        Samples.of_rows(X_positive, X_unlabeled, 0),
        Centers(np.asarray(theirs.kernel_info.centers), (np.arange(0), np.arange(0)), X_unlabeled),
        sigmas=1.3,
        lams=0.05,
        cv=5,
        nonnegative=True,
    )
    new = rng.normal(size=(40, 2))
    ratio = linear_model(new, ours.centers, ours.sigma, ours.coef)
    assert_allclose(ratio, np.ravel(theirs.compute_density_ratio(new)), rtol=1e-5, atol=1e-7)
    assert ratio.min() < 0.5 < 1.5 < ratio.max()


def test_recovers_a_known_ratio():
    """The ratio is 1 / prior in the region of the positives and 0 elsewhere."""
    rng = np.random.default_rng(0)
    X_positive = rng.uniform(0, 2, (3000, 1))
    X_unlabeled = np.r_[rng.uniform(0, 2, (1500, 1)), rng.uniform(2, 4, (1500, 1))]
    model = density_ratio(X_positive, X_unlabeled, random_state=0)
    ratio = model.predict(X_unlabeled)
    assert np.all(ratio >= 0.0)
    assert abs(ratio.mean() - 1.0) < 0.05  # E_p[p1/p] = 1
    assert np.mean((ratio - 2.0 * (X_unlabeled[:, 0] < 2.0)) ** 2) < 0.15


def test_the_two_doors_agree(separated, labeled):
    by_samples = density_ratio(*separated, random_state=0)
    by_labels = DensityRatio(random_state=0).fit(*labeled)
    assert_array_equal(by_samples.coef_, by_labels.coef_)
    assert_array_equal(by_samples.predict(labeled[0]), by_labels.predict(labeled[0]))


def test_sparse_rows_have_the_ratio_of_dense_ones(labeled):
    X, y = labeled
    dense, thin = (DensityRatio(random_state=0).fit(Z, y) for Z in (X, sparse.csr_array(X)))
    assert_allclose(thin.predict(sparse.csr_array(X)), dense.predict(X), rtol=1e-6, atol=1e-9)


def test_centers_are_positives(labeled):
    X, y = labeled
    model = DensityRatio(n_centers=30, random_state=0).fit(X, y)
    assert model.centers_.shape == (30, 2)
    assert {tuple(row) for row in model.centers_} <= {tuple(row) for row in X[y == 1]}
    assert DensityRatio(n_centers=None, sigmas=1.0, lams=0.1).fit(X, y).centers_.shape == (400, 2)


def test_one_of_each_needs_no_folds():
    model = density_ratio([[0.0]], [[0.0], [3.0]], sigmas=1.0, lams=0.1)
    # H = (1 + e^-9)/2, h = 1 at the only center
    assert_allclose(model.coef_, [1.0 / ((1.0 + np.exp(-9.0)) / 2.0 + 0.1)], rtol=1e-6)


def test_names_of_columns_are_remembered(separated):
    tables = [pd.DataFrame(X, columns=["a", "b"]) for X in separated]
    model = density_ratio(*tables, sigmas=1.0, lams=0.1, random_state=0)
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(tables[0][["b", "a"]])


def test_new_rows_are_checked(labeled):
    model = DensityRatio(random_state=0).fit(*labeled)
    with pytest.raises(ValueError, match="3 features, but DensityRatio is expecting 2"):
        model.predict(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="got NaN in column 1 of X"):
        model.predict([[0.0, np.nan]])
