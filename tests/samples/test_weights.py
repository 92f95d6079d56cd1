"""Weights: zero weight is absence, doubled weight a doubled row, the scale is irrelevant."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from classprior import (
    AutoPrior,
    DensityRatio,
    DivergencePrior,
    ElkanNotoPrior,
    PearsonPrior,
    PenalizedL1Prior,
    PUClassifier,
    ScottBlanchardPrior,
    estimate_prior,
)
from classprior._core.basis import GaussianBasis
from classprior._samples.samples import Samples
from classprior._samples.sums import grams_of, moments_of
from classprior._samples.units import RowOptions
from classprior.density_ratio import LeastSquaresClassifier
from classprior.engines import fit_blocks
from classprior.metrics import pu_error_rate, pu_precision, pu_recall

ESTIMATORS = [
    AutoPrior(n_repeats=1),
    PenalizedL1Prior(n_centers=50),
    DivergencePrior(divergence="l1", penalized=False, n_centers=20),
    DivergencePrior(divergence="pearson", n_centers=20),
    ElkanNotoPrior(classifier=LogisticRegression()),
    PearsonPrior(n_centers=30),
    ScottBlanchardPrior(n_centers=30),
]
NAMES = ["auto", "penl1", "l1", "pen-pearson", "en", "pe", "sb"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (150, 2)), rng.normal(3, 1, (150, 2))])
    y = np.arange(300) < 80
    return X, y, rng.permutation(300), rng.integers(0, 4, 300).astype(float)


def fitted(estimator, X, y, weights=None, cv=5):
    return estimator.set_params(cv=cv, random_state=0).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
def test_scale_of_weights_is_irrelevant(table, estimator):
    X, y, _, weights = table
    once = fitted(estimator, X, y, weights).prior_
    assert fitted(estimator, X, y, 4.0 * weights).prior_ == once
    assert fitted(estimator, X, y, 1e-3 * weights).prior_ == pytest.approx(once, abs=1e-6)
    equal = fitted(estimator, X, y, np.full(len(y), 7.0)).prior_
    assert equal == pytest.approx(fitted(estimator, X, y).prior_, abs=1e-6)


def sums(X, y, weights, bins, basis):
    """Return the moments and grams of both samples with given bins."""
    samples = Samples.of_rows(X[y], X[~y], 0).with_units(
        RowOptions(weights=(weights[y], weights[~y]), folds=(bins[y], bins[~y]))
    )
    folds = samples.folds(2)
    return [
        np.concatenate(
            [
                moments_of(samples, s, basis).of_folds(folds[s]).mean.ravel(),
                *(
                    grams_of(samples, s, basis, folds).mean(0, np.arange(2) == k).ravel()
                    for k in (0, 1)
                ),
            ]
        )
        for s in (0, 1)
    ]


def test_weights_are_numbers_of_rows_in_all_sums(table):
    X, y, _, weights = table
    bins = np.arange(300) % 2
    basis = GaussianBasis(X[:7], np.array([1.0, 2.0]))
    repeated = np.repeat(np.arange(300), weights.astype(int))
    ones = np.ones(len(repeated))
    expected = sums(X[repeated], y[repeated], ones, bins[repeated], basis)
    for found, exact in zip(sums(X, y, weights, bins, basis), expected, strict=True):
        assert_allclose(found, exact, rtol=2e-6)


@pytest.mark.parametrize("name", ["penl1", "pe", "l1", "pen-pearson", "sb", "en"])
def test_weights_are_numbers_of_rows(table, name):
    # Centers are given by a weight that is only 0 or 1, so that they are the same rows.
    X, y, _, weights = table
    keep = np.flatnonzero(weights)
    estimator = ESTIMATORS[NAMES.index(name)]
    folds = np.arange(300) % 3
    with_zeros = fitted(estimator, X, y, np.minimum(weights, 1.0), cv=folds).prior_
    without = fitted(estimator, X[keep], y[keep], cv=folds[keep]).prior_
    assert with_zeros == pytest.approx(without, abs=1e-4)


def test_auto_ignores_rows_of_weight_zero(table):
    X, y, _, _ = table
    rng = np.random.default_rng(1)
    far = rng.normal(50, 1, (40, 2))  # would change every scale
    folds = np.arange(300) % 5
    estimator = AutoPrior(n_repeats=1)
    clean = fitted(estimator, X, y, np.ones(300), cv=folds)
    values = clean.prior_, clean.low_, clean.high_, clean.upper_bound_, clean.prior_pooled_
    dirty = fitted(
        estimator,
        np.vstack([X, far]),
        np.r_[y, np.arange(40) % 2 == 0],
        np.r_[np.ones(300), np.zeros(40)],
        cv=np.r_[folds, np.arange(40) % 5],
    )
    found = dirty.prior_, dirty.low_, dirty.high_, dirty.upper_bound_, dirty.prior_pooled_
    # Bins within folds differ, and with them the resamples.
    assert_allclose(found[0], values[0], atol=1e-9)
    assert_allclose(found[3:], values[3:], atol=1e-9)
    assert_allclose(found, values, atol=0.02)


def test_metrics_take_weights():
    rng = np.random.default_rng(3)
    y, predicted = rng.random(200) < 0.3, rng.random(200) < 0.5
    weights = rng.integers(0, 4, 200)
    rows = np.repeat(np.arange(200), weights)
    given = {"prior": 0.2}
    for metric, options in ((pu_recall, {}), (pu_precision, given), (pu_error_rate, given)):
        found = metric(y, predicted, sample_weight=weights, pos_label=True, **options)
        expected = metric(y[rows], predicted[rows], pos_label=True, **options)
        assert found == pytest.approx(expected, rel=1e-12)


def weighted_draw(rng, n, m, prior):
    """Positives score high; half of the positives were sampled four times as often."""
    kinds = rng.random(n) < 0.8, rng.random(round(m * prior)) < 0.8
    P = np.column_stack([np.where(kinds[0], 0.0, 3.0), rng.normal(0, 1, n)])
    H = np.column_stack([np.where(kinds[1], 0.0, 3.0), rng.normal(0, 1, len(kinds[1]))])
    N = np.column_stack([rng.choice([0.0, 3.0], m - len(H)), rng.normal(6, 1, m - len(H))])
    U = np.vstack([H, N])
    weights = [np.where(X[:, 0] == 0.0, 0.25, 1.0) for X in (P, U)]
    return P, U, weights, weights[1][: len(H)].sum() / weights[1].sum()


@pytest.mark.parametrize(
    "estimator",
    [
        AutoPrior(n_repeats=1),
        PenalizedL1Prior(n_centers=200),
        ElkanNotoPrior(classifier=LogisticRegression()),
        PearsonPrior(n_centers=50),
    ],
    ids=["auto", "penl1", "en", "pe"],
)
def test_estimate_is_the_weighted_share(estimator):
    """Six draws; a single one may be off by more than weights change."""
    estimator.set_params(random_state=0)
    errors, covered = [], []
    for seed in range(6):
        P, U, weights, truth = weighted_draw(np.random.default_rng(seed), 500, 1500, 0.4)
        plain = estimator.fit_samples(P, U).prior_ - truth
        weighted = estimator.fit_samples(P, U, weights=tuple(weights)).prior_ - truth
        errors.append((plain, weighted))
        covered.append(getattr(estimator, "low_", 0.0) <= truth <= getattr(estimator, "high_", 1.0))
    plain, weighted = np.mean(errors, axis=0)
    assert plain > 0.06
    assert abs(weighted) < 0.5 * plain
    assert sum(covered) >= 5


def test_bound_holds_with_weights():
    rng = np.random.default_rng(1)
    failed = 0
    for seed in range(20):
        P, U, weights, _ = weighted_draw(rng, 150, 400, 0.5)
        truth = 0.5 * 0.4 / (0.5 * 0.4 + 0.5 * 0.625)  # of the population
        estimator = AutoPrior(
            n_repeats=1, random_state=seed, classifiers={"l": LogisticRegression()}
        )
        failed += estimator.fit_samples(P, U, weights=tuple(weights)).upper_bound_ < truth
    assert failed <= 3  # 20 draws at 5%: more than 3 with probability 0.016


def test_the_same_through_every_door(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    P, U, weights, _ = weighted_draw(rng, 120, 500, 0.4)
    frames = [
        pd.DataFrame(X, columns=["a", "b"]).assign(w=w)
        for X, w in zip((P, U), weights, strict=True)
    ]
    for method in ("auto", "penl1", "pe"):
        expected = estimate_prior(P, U, method=method, weights=tuple(weights), random_state=0)
        named = estimate_prior(*frames, method=method, weights="w", random_state=0)
        assert named.prior == pytest.approx(expected.prior, abs=1e-12)
        assert (named.low, named.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
        assert [c.name for c in named.columns] == ["a", "b"]
    estimator = PenalizedL1Prior(random_state=0)
    blocks = [[frame[:70], frame[70:]] for frame in frames]
    in_blocks = fit_blocks(estimator, *blocks, weights="w").prior_
    assert in_blocks == estimator.fit_samples(P, U, weights=tuple(weights)).prior_


def test_classifiers_take_weights(table):
    X, y, _, weights = table
    weights = weights.copy()
    keep = np.flatnonzero(weights)
    repeated = np.repeat(np.arange(300), weights.astype(int))
    one = LeastSquaresClassifier(sigmas=1.0, lams=0.1, n_centers=None)
    with_weights = one.fit(X, y, sample_weight=weights).predict_proba(X)
    assert_allclose(with_weights, one.fit(X, y, 3 * weights).predict_proba(X), atol=1e-12)
    assert len(one.centers_) == len(keep)
    rows = one.fit(X[repeated], y[repeated])
    assert rows._shares == pytest.approx(np.bincount(y, weights) / weights.sum())
    weights[y], weights[~y] = np.arange(80) % 4, np.arange(220) % 4  # with equal means
    repeated = np.repeat(np.arange(300), weights.astype(int))
    model = PUClassifier(prior=0.3, ratio=LogisticRegression(C=1e6), random_state=0)
    found = model.fit(X, y, sample_weight=weights).predict_proba(X)
    assert_allclose(found, model.fit(X[repeated], y[repeated]).predict_proba(X), atol=1e-3)
    ratio = DensityRatio(sigmas=1.0, lams=0.1, n_centers=None, random_state=0)
    predicted = ratio.fit(X, y, sample_weight=np.minimum(weights, 1.0)).predict(X)
    keep = np.flatnonzero(weights)
    assert_allclose(predicted, ratio.fit(X[keep], y[keep]).predict(X), rtol=1e-5)


@pytest.mark.parametrize(
    ("weights", "error", "facts"),
    [
        (np.r_[-1.0, np.ones(299)], ValueError, ["-1", "row 0"]),
        (np.r_[np.ones(5), np.nan, np.ones(294)], ValueError, ["nan", "row 5"]),
        (np.ones(7), ValueError, ["300", "7"]),
        (np.zeros(300), ValueError, ["known positives", "zero"]),
        ("w", TypeError, ["sample_weight", "'w'"]),
    ],
)
def test_bad_weights(table, weights, error, facts):
    X, y, _, _ = table
    with pytest.raises(error) as caught:
        PenalizedL1Prior(random_state=0).fit(X, y, sample_weight=weights)
    assert all(fact in str(caught.value) for fact in facts)


def test_bad_weight_column(tmp_path):
    pytest.importorskip("pandas")
    paths = tmp_path / "p.csv", tmp_path / "u.csv"
    paths[0].write_text("a,w\n1,1\n2,1\n3,1\n")
    paths[1].write_text("a,w\n1,1\n2,-4\n3,1\n")
    with pytest.raises(ValueError, match=r"'w'.*u\.csv.*-4.*row 3"):
        estimate_prior(*map(str, paths), weights="w", random_state=0)
    with pytest.raises(ValueError, match="no column 'v'"):
        estimate_prior(*map(str, paths), weights="v", random_state=0)


@pytest.mark.parametrize("method", ["dedpul", "bbe", "tice", "km1", "recpe"])
def test_methods_that_do_not_take_weights_say_so(method):
    P, U, weights, _ = weighted_draw(np.random.default_rng(4), 60, 100, 0.4)
    with pytest.raises(ValueError, match="does not take weights"):
        estimate_prior(P, U, method=method, weights=tuple(weights), random_state=0)


def test_text_among_weights_is_named_with_its_row():
    frames = [pd.DataFrame({"x": np.arange(5.0), "w": ["1", "2", "heavy", "1", "1"]})] * 2
    with pytest.raises(TypeError, match=r"'w'.*'heavy' in row 2"):
        estimate_prior(*frames, weights="w")
    with pytest.raises(TypeError, match="'heavy' in row 2"):
        estimate_prior(*(f[["x"]] for f in frames), weights=[f["w"] for f in frames])
