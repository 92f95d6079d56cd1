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
from classprior._scores.limits import binomial_limits
from classprior._scores.resampling import interval_of
from classprior.density_ratio import LeastSquaresClassifier
from classprior.engines import fit_blocks
from classprior.metrics import pu_error_rate, pu_precision, pu_recall
from classprior.priors import ScorePrior

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
    assert_allclose(found, values, atol=1e-9)


QUICK = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)


def flat(values, name=""):
    """Return nested dicts and lists as one dict of numbers and texts."""
    if not isinstance(values, dict | list):
        return {name: values}
    pairs = values.items() if isinstance(values, dict) else enumerate(values)
    return {k: v for key, part in pairs for k, v in flat(part, f"{name}/{key}").items()}


def with_weightless(frame, rng, n):
    """Add n rows of weight 0, far from the others, at random places."""
    far = frame.sample(n, replace=True, random_state=0).assign(a=99.0, group="x", w=0.0)
    together = pd.concat([frame, far])
    is_far = np.zeros(len(together), dtype=bool)
    is_far[rng.choice(len(together), n, replace=False)] = True
    places = np.empty(len(together), dtype=int)
    places[~is_far], places[is_far] = np.arange(len(frame)), len(frame) + np.arange(n)
    return together.iloc[places].reset_index(drop=True)


@pytest.mark.parametrize("weigh_alike", [False, True], ids=["unequal", "equal"])
@pytest.mark.parametrize(
    "options",
    [
        {"evidence": QUICK, "segments": "segment"},
        {"evidence": QUICK, "groups": "group"},
        {"method": "scores", "columns": ["a"], "segments": "segment", "max_weight": 4.0},
        {"method": "en", "classifier": LogisticRegression(), "evidence": QUICK, "n_resamples": 5},
    ],
    ids=["auto", "groups", "scores", "en"],
)
def test_rows_of_weight_zero_change_no_number(weigh_alike, options, tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    clean, dirty = [], []
    for n, shift in ((90, 3.0), (100, 0.0)):
        frame = pd.DataFrame(rng.normal(shift, 1, (n, 2)), columns=["a", "b"])
        frame["group"] = [f"{n}-{group}" for group in rng.integers(0, 60, n)]
        frame["segment"] = rng.integers(0, 2, n)
        frame["w"] = 2.0 if weigh_alike else rng.choice([1.0, 4.0], n)
        clean.append(frame)
        dirty.append(with_weightless(frame, rng, 9 * n))
        dirty[-1].to_csv(tmp_path / f"{n}.csv", index=False)
    columns = {"columns": ["a", "b"], "weights": "w", "random_state": 0, **options}
    expected = estimate_prior(*clean, **columns).to_dict()
    assert (expected["n_positive"], expected["n_unlabeled"]) == (90, 100)
    monkeypatch.setattr("classprior._samples.samples.SETTLED_BYTES", 0)
    for samples in (dirty, [str(tmp_path / f"{n}.csv") for n in (90, 100)]):
        found = estimate_prior(*samples, **columns).to_dict()
        left_out = found["notes"].pop()
        assert "810 of the 900 known positives" in left_out
        assert "900 of the 1,000 unlabeled rows" in left_out
        assert flat(found) == pytest.approx(flat(expected), abs=1e-9)


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


def heavy_draw(rng, n=300):
    """In the population, one row in 500 weighs 1,000 and is positive; the others are negative."""
    is_heavy = rng.random(n) < 0.002
    scores = rng.normal(3, 1, n), rng.normal(np.where(is_heavy, 3, 0), 1)
    return *scores, (np.ones(n), np.where(is_heavy, 1000.0, 1.0))


@pytest.mark.parametrize("method", ["auto", "penl1", "scores"])
def test_one_row_that_outweighs_all_others(method):
    """The share in these rows is 0 or 1, the class of that row, which nobody knows."""
    for is_positive in (True, False):
        rng = np.random.default_rng(int(is_positive))
        scores = rng.normal(2, 1, 150), rng.normal(np.r_[2 * is_positive, np.zeros(299)], 1)
        weights = np.ones(150), np.r_[1e12, np.ones(299)]
        samples = scores if method == "scores" else [part[:, None] for part in scores]
        estimate = estimate_prior(*samples, method=method, weights=weights, random_state=0)
        assert (estimate.low_count, estimate.high_count) == (0, 300)
        (warning,) = (w for w in estimate.warnings if w.startswith("Unequal weights"))
        assert "300 unlabeled rows" in warning
        assert "only 1 row " in warning


def test_unequal_weights_are_mentioned_only_if_little_is_left():
    scores = normals_with_share(0.3)
    weights = tuple(np.where(np.arange(len(part)) % 2, 3.0, 1.0) for part in scores)
    estimate = estimate_prior(*scores, weights=weights, random_state=0)
    assert not any(w.startswith("Unequal weights") for w in estimate.warnings)


def normals_with_share(share):
    rng = np.random.default_rng(0)
    return rng.normal(3, 1, 200), rng.normal(np.where(rng.random(500) < share, 3, 0), 1)


def test_bound_needs_the_largest_weight_of_the_population():
    """Most samples have no heavy row, so that the largest weight seen says nothing."""
    truth = 2.0 / (2.0 + 0.998)
    failed = {None: 0, 1000.0: 0}
    for seed in range(200):
        *scores, weights = heavy_draw(np.random.default_rng(seed))
        for max_weight in failed:
            prior = ScorePrior(max_weight=max_weight, n_resamples=20, random_state=seed)
            prior.fit_samples(*scores, weights=weights)
            failed[max_weight] += prior.upper_bound_ < truth
            assert prior.bound_is_exact_ == (max_weight is not None)
    assert failed[None] > 100
    assert failed[1000.0] == 0


def test_bound_with_a_largest_weight_says_something():
    """Thinned by w / max w, the bound is that of the rows that are kept."""
    rng = np.random.default_rng(0)
    is_positive = rng.random(4000) < 0.3
    weights = np.where(is_positive, 1.0, rng.choice([1.0, 3.0], 4000))  # a share of .18
    scores = rng.normal(4, 1, 500), rng.normal(np.where(is_positive, 4, 0), 1)
    pair = (np.ones(500), weights)
    of_seen = estimate_prior(*scores, weights=pair, random_state=0)
    declared = estimate_prior(*scores, weights=pair, max_weight=(1, 3), random_state=0)
    assert 0.18 < declared.upper_bound < 0.24
    assert declared.upper_bound == of_seen.upper_bound  # the largest was seen
    assert declared.bound_is_exact
    assert not of_seen.bound_is_exact
    rarely = estimate_prior(*scores, weights=pair, max_weight=(1, 30), random_state=0)
    assert rarely.upper_bound > declared.upper_bound
    assert "certified upper bound" in str(declared)
    assert "certified" not in str(of_seen)
    for shown in (str(of_seen), of_seen.to_html()):
        assert "upper bound (asymptotic)" in shown.lower()
    assert of_seen.to_dict()["bound_is_exact"] is False


def test_bound_of_groups_needs_their_largest_size():
    rng = np.random.default_rng(0)
    scores = rng.normal(4, 1, 600), rng.normal(np.where(rng.random(3000) < 0.2, 4, 0), 1)
    groups = np.arange(600) // 2, 300 + np.arange(3000) // 2
    alone = estimate_prior(*scores, groups=groups, random_state=0)
    declared = estimate_prior(*scores, groups=groups, max_weight=2, random_state=0)
    assert not alone.bound_is_exact
    assert declared.bound_is_exact
    assert 0.2 < declared.upper_bound < alone.upper_bound  # which allows for groups of 4


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"max_weight": 3.0, "weights": (np.ones(60), np.r_[4.0, np.ones(99)])}, ["4", "3"]),
        ({"max_weight": (0.5, 9), "weights": (np.ones(60), np.ones(100))}, ["known", "0.5"]),
        ({"max_weight": 2, "groups": (np.arange(60) // 3, 60 + np.arange(100))}, ["group", "3"]),
        ({"max_weight": 2.0}, ["max_weight", "groups"]),
        ({"max_weight": -1.0, "weights": (np.ones(60), np.ones(100))}, ["-1"]),
        ({"max_weight": (1, 2, 3), "weights": (np.ones(60), np.ones(100))}, ["(1, 2, 3)"]),
    ],
)
def test_bad_largest_weights(options, facts):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="max_weight") as caught:
        estimate_prior(rng.normal(2, 1, 60), rng.normal(0, 1, 100), **options)
    assert all(fact in str(caught.value) for fact in facts)


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
        (np.ones(300) * 1j, TypeError, ["1j", "row 0"]),
        (np.full(300, "1.5"), TypeError, ["'1.5'", "row 0"]),
        (np.full(300, np.datetime64("2024-02-03")), TypeError, ["2024-02-03", "row 0"]),
        (np.full(300, np.timedelta64(7, "s")), TypeError, ["7 seconds", "row 0"]),
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
    paths[1].write_text("a,w\n1,1\n2,\n3,1\n")
    with pytest.raises(ValueError, match=r"'w'.*u\.csv.*nan.*row 3") as caught:
        estimate_prior(*map(str, paths), weights="w", random_state=0)
    assert "estimate_prior" not in str(caught.value)
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


def test_no_interval_is_narrower_than_that_of_classified_rows():
    """Half of the rows weigh nearly nothing, and resamples do not vary."""
    rows = Samples.of_rows(np.ones((100, 1)), np.ones((400, 1)), 0)
    samples = rows.with_units(RowOptions(weights=(np.ones(100), np.tile([1e-9, 1.0], 200))))
    estimator = PearsonPrior()
    estimator.prior_ = 0.25
    found, _ = interval_of(estimator, lambda weights: np.full(200, 0.25), samples, delta=0.05)
    assert_allclose((found.low, found.high), binomial_limits(50, 200, 0.025), rtol=1e-6)
