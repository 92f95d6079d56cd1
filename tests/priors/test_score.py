"""The share of positives from given scores: exact where it can be, alike by every door."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from classprior import AutoPrior, estimate_prior
from classprior._scores.own_scores import seem_too_high
from classprior.cli import main
from classprior.engines import fit_blocks
from classprior.plotting import ScoreDisplay, TailDisplay
from classprior.priors import ScorePrior
from classprior.report import render_report

TRAINED = "score higher than hidden ones can"


def normals(prior=0.3, shift=4.0, n=300, m=900, seed=0):
    """Scores of positives around 0, and of unlabeled rows, most of them lower by ``shift``."""
    rng = np.random.default_rng(seed)
    is_positive = rng.uniform(size=m) < prior
    return rng.normal(size=n), rng.normal(np.where(is_positive, 0.0, -shift))


def numbers(estimate):
    """Return all numbers of an estimate but the description of the column."""
    return {name: value for name, value in estimate.to_dict().items() if name != "columns"}


# --- right ------------------------------------------------------------------------------------


class Identity(ClassifierMixin, BaseEstimator):
    """Predicts what the only column says, whatever it is fitted to."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = 1.0 / (1.0 + np.exp(-X[:, 0]))
        return np.column_stack([1.0 - p, p])


@pytest.mark.parametrize("max_rows", [20_000, 100])
def test_same_as_auto_with_a_classifier_that_returns_the_score(max_rows):
    samples = [np.round(part, 3) for part in normals()]
    given_scores = ScorePrior(max_rows=max_rows, random_state=0).fit_samples(*samples)
    auto = AutoPrior(
        classifiers={"identity": Identity()}, n_repeats=1, max_rows=max_rows, random_state=0
    ).fit_samples(*(part[:, None] for part in samples))
    for name in ("prior_", "low_", "high_", "low_sample_", "high_sample_", "extrapolated_"):
        assert getattr(given_scores, name) == getattr(auto, name)
    assert given_scores.upper_bound_ < auto.upper_bound_  # all rows count, not half


def test_two_normals_with_many_rows():
    n, m, prior = 200_000, 1_000_000, 0.2
    fitted = ScorePrior(random_state=0).fit_samples(*normals(prior, 7.0, n, m))
    error = np.sqrt(prior * (1.0 - prior) / m + prior**2 / n)
    assert fitted.prior_ == pytest.approx(prior, abs=4.0 * error)
    assert fitted.low_ < prior < fitted.high_ < prior + 0.01
    assert not fitted.is_upper_bound_


def test_the_limit_of_overlapping_normals_is_an_upper_bound():
    """The ratio falls toward the top, so that its minimum is at the smallest tail used."""
    prior, shift = 0.1, 1.5
    fitted = ScorePrior(random_state=0).fit_samples(*normals(prior, shift, 100_000, 400_000))

    def ratio(share):
        t = stats.norm.isf(share)
        return prior + (1.0 - prior) * stats.norm.sf(t + shift) / share

    # The smallest tail has a quarter of the positives, or a share as small as its ratio.
    assert fitted.prior_ == pytest.approx(ratio(ratio(0.25)), rel=0.05)
    assert fitted.is_upper_bound_


def test_bound_by_hand():
    """Without ties, thresholds are order statistics of all known positives."""
    positive, unlabeled = normals()
    fitted = ScorePrior(random_state=0).fit_samples(positive, unlabeled)
    n, m, level = len(positive), len(unlabeled), 0.05 / 6 / 2
    bounds = []
    for share in (0.1, 0.2, 0.35, 0.5, 0.7, 0.9):
        k = int(np.ceil(share * n))
        beyond = np.sum(unlabeled >= np.sort(positive)[-k])
        high = stats.binomtest(int(beyond), m).proportion_ci(1 - 2 * level).high
        low = stats.binomtest(k, n).proportion_ci(1 - 2 * level).low
        bounds.append(high / low)
    assert fitted.upper_bound_ == pytest.approx(min(bounds), rel=1e-6)


def test_yes_or_no():
    """Scores of 0 and 1 have a single tail: 80% of the positives and 31% of the other rows."""
    positive, unlabeled = np.repeat([1, 0], [80, 20]), np.repeat([1, 0], [310, 690])
    fitted = ScorePrior(random_state=0).fit_samples(positive, unlabeled)
    P, U, entering = np.array([[80, 100], [310, 1000], [80, 20]])  # the second tail is all rows
    logs = np.log((U + 0.5) / 1000.5) - np.log((P - 0.5) / 100.5)
    errors = np.sqrt(1 / (U + 0.5) - 1 / 1000.5 + 2 / (P - 0.5) - 2 / 100.5)
    x = (logs + errors - np.min(logs + errors)) / errors[0]
    sharp, middle, flat = (
        np.exp(np.average(logs, weights=entering * np.exp(-k * x))) for k in (2.0, 1.0, 0.5)
    )
    expected = sharp + 3 * (middle - sharp) - 4 * (flat - middle)
    assert fitted.prior_ == pytest.approx(expected, rel=1e-8)
    as_bools = ScorePrior(random_state=0).fit_samples(positive > 0, unlabeled > 0)
    assert as_bools.prior_ == fitted.prior_


@pytest.mark.parametrize(("shift", "decimals"), [(4.0, 8), (4.0, 0), (1.0, 8)])
def test_coverage(shift, decimals):
    """95% intervals and bounds; with overlap, or in large steps, only the bound must hold."""
    in_interval = below_bound = 0
    for seed in range(100):
        samples = [np.round(x, decimals) for x in normals(0.2, shift, 150, 500, seed)]
        fitted = ScorePrior(random_state=seed).fit_samples(*samples)
        in_interval += fitted.low_ <= 0.2 <= fitted.high_
        below_bound += fitted.upper_bound_ >= 0.2
    assert below_bound >= 97
    assert in_interval >= 90 or shift < 4.0


# --- only ranks matter ------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_increasing_transformations_change_nothing(data):
    some = st.lists(st.integers(0, 12), min_size=12, max_size=40)
    positive, unlabeled = np.array(data.draw(some)) + 6, np.array(data.draw(some))
    finite = st.floats(-1e100, 1e100)
    levels = np.sort(data.draw(st.lists(finite, min_size=19, max_size=19, unique=True)))
    try:
        expected = numbers(estimate_prior(positive, unlabeled, random_state=0, n_resamples=20))
    except ValueError:  # constant
        with pytest.raises(ValueError, match="equal"):
            estimate_prior(levels[positive], levels[unlabeled], random_state=0)
        return
    found = estimate_prior(levels[positive], levels[unlabeled], random_state=0, n_resamples=20)
    assert numbers(found) == expected


def test_probabilities_and_log_odds_give_the_same_answer():
    positive, unlabeled = normals()
    p, u = stats.logistic.cdf(positive), stats.logistic.cdf(unlabeled)
    both = estimate_prior(positive, unlabeled, random_state=0), estimate_prior(p, u, random_state=0)
    assert numbers(both[0]) == numbers(both[1])


# --- every door -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples():
    return normals(n=230, m=701)


@pytest.fixture
def frames(samples):
    rng = np.random.default_rng(1)
    return [
        pd.DataFrame({"id": np.arange(len(s)), "risk": s, "w": rng.integers(1, 3, len(s))})
        for s in samples
    ]


def mapped(scores, folder):
    path = folder / f"{len(scores)}.npy"
    np.save(path, scores)
    return np.load(path, mmap_mode="r")


FORMS = {
    "list": lambda s, _: s.tolist(),
    "pandas": lambda s, _: pd.Series(s, name=f"named {len(s)}", index=np.arange(len(s)) + 7),
    "nullable": lambda s, _: pd.Series(s).astype("Float64"),
    "polars": lambda s, _: pl.Series("score", s),
    "masked": lambda s, _: np.ma.array(s),
    "memory map": mapped,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_in_memory(samples, form, tmp_path):
    found = estimate_prior(*(FORMS[form](s, tmp_path) for s in samples), random_state=0)
    assert numbers(found) == numbers(estimate_prior(*samples, random_state=0))
    assert found.method == "scores"
    assert [column.kind for column in found.columns] == ["score"]


@pytest.mark.parametrize("max_rows", [100_000, 60])
def test_columns_of_files(samples, frames, tmp_path, max_rows):
    """In memory, in blocks, from columns of files and from the command line."""
    expected = ScorePrior(max_rows=max_rows, random_state=3).fit_samples(*samples)
    blocks = fit_blocks(
        ScorePrior(max_rows=max_rows, random_state=3),
        *(s[:, None] for s in samples),
        block_rows=50,
        checkpoint=tmp_path / "sums",  # so that they are not loaded at once
    )
    paths = [tmp_path / "positive.parquet", tmp_path / "unlabeled.csv"]
    frames[0].to_parquet(paths[0])
    frames[1].to_csv(paths[1], index=False)
    files = estimate_prior(
        *paths, method="scores", columns=["risk"], max_rows=max_rows, random_state=3
    )
    for fitted in (blocks, files.estimator):
        for name in ("prior_", "low_", "high_", "upper_bound_", "upper_bound_asymptotic_"):
            assert getattr(fitted, name) == getattr(expected, name)
    assert files.columns[0].name == "risk"


def test_command_line(samples, frames, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frames[0].to_csv("positive.csv", index=False)
    frames[1].to_parquet("unlabeled.parquet", index=False)
    pd.concat([frame.assign(y=1 - i) for i, frame in enumerate(frames)]).to_csv("both.csv")
    expected = estimate_prior(*samples, random_state=0).to_dict()
    for given_files in (["positive.csv", "unlabeled.parquet"], ["both.csv", "--label", "y"]):
        run = CliRunner().invoke(
            main, ["estimate", *given_files, "--score", "risk", "--json", "--report", "page.html"]
        )
        assert run.exit_code == 0, run.output
        found = json.loads(run.stdout)
        for name in ("prior", "low", "high", "upper_bound", "low_count", "method", "warnings"):
            assert found[name] == expected[name]
        assert "trained on other rows" in (tmp_path / "page.html").read_text(encoding="utf-8")
        (tmp_path / "page.html").unlink()
    wrong = CliRunner().invoke(
        main, ["estimate", *given_files, "--score", "risk", "--method", "en"]
    )
    assert wrong.exit_code == 2
    assert "--score" in wrong.output


def test_labels_of_rows(samples):
    X, y = np.concatenate(samples), np.repeat([1, 0], [len(s) for s in samples])
    expected = ScorePrior(random_state=0).fit_samples(*samples).prior_
    assert ScorePrior(random_state=0).fit(X, y).prior_ == expected
    fitted = ScorePrior(random_state=0).fit(X[:, None], y)
    assert pickle.loads(pickle.dumps(fitted)).prior_ == fitted.prior_ == expected
    assert clone(fitted).get_params() == fitted.get_params()


def test_pictures_and_report(samples):
    estimate = estimate_prior(*samples, random_state=0)
    assert list(TailDisplay.from_estimator(estimate).lines_) == ["score"]
    assert ScoreDisplay.from_estimator(estimate).prior == estimate.prior
    page = render_report(estimate)
    assert "The model scores" in page
    assert estimate.answer in page


# --- weights, groups, segments ------------------------------------------------------------------


def test_weights_undo_unequal_sampling(frames, tmp_path):
    positive, unlabeled = normals(0.3, 6.0, 2000, 8000)
    chance = np.where(unlabeled < -3.0, 0.25, 1.0)  # most negatives were not sampled
    drawn = np.random.default_rng(1).uniform(size=8000) < chance
    weights = np.ones(2000), 1.0 / chance[drawn]
    plain = estimate_prior(positive, unlabeled[drawn], random_state=0)
    weighted = estimate_prior(positive, unlabeled[drawn], weights=weights, random_state=0)
    assert weighted.prior == pytest.approx(0.3, abs=0.03)
    assert weighted.low < 0.3 < weighted.high
    assert plain.low > 0.4
    assert not weighted.warnings
    paths = [tmp_path / "positive.csv", tmp_path / "unlabeled.csv"]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_csv(path, index=False)
    by_name = estimate_prior(*paths, method="scores", columns=["risk"], weights="w", random_state=0)
    by_array = estimate_prior(
        *(f["risk"] for f in frames), weights=[f["w"] for f in frames], random_state=0
    )
    assert numbers(by_name) == numbers(by_array)


@pytest.mark.parametrize("units", [["weights"], ["groups"], ["weights", "groups"], ["segments"]])
def test_weights_groups_and_segments_in_blocks(samples, units, tmp_path):
    rng = np.random.default_rng(0)
    given_units = {name: [rng.integers(1, 4, len(s)) for s in samples] for name in units}
    if "groups" in units:
        given_units["groups"] = [np.arange(len(s)) // 3 + 1000 * i for i, s in enumerate(samples)]
    whole = estimate_prior(*samples, **given_units, max_rows=90, random_state=0)
    blocks = ([s[i : i + 64, None] for i in range(0, len(s), 64)] for s in samples)
    summed = estimate_prior(
        *blocks,
        method="scores",
        **given_units,
        max_rows=90,
        random_state=0,
        checkpoint=tmp_path / "sums",  # so that they are not loaded at once
    )
    # Weighted sums of blocks are rounded differently in the last digit.
    for name in ("prior", "low", "high", "upper_bound", "upper_bound_asymptotic"):
        assert getattr(summed, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    if whole.segments is not None:
        assert summed.segments.to_list() == whole.segments.to_list()


def test_copies_in_groups_do_not_narrow_the_interval():
    samples = normals(n=200, m=600)
    groups = [np.repeat(np.arange(len(s)) + 1000 * i, 10) for i, s in enumerate(samples)]
    copied = [np.repeat(s, 10) for s in samples]
    once = estimate_prior(*samples, random_state=0)
    grouped = estimate_prior(*copied, groups=groups, random_state=0)
    ungrouped = estimate_prior(*copied, random_state=0)
    assert grouped.prior == pytest.approx(once.prior, abs=0.02)
    assert grouped.high - grouped.low > 2.0 * (ungrouped.high - ungrouped.low)
    assert 1.0 > grouped.upper_bound > once.upper_bound


def test_segments():
    low, high = normals(0.1, 6.0, 400, 2000), normals(0.5, 6.0, 400, 2000, seed=1)
    positive, unlabeled = (np.concatenate(parts) for parts in zip(low, high, strict=True))
    segments = np.repeat(["low", "high"], 400), np.repeat(["low", "high"], 2000)
    for how in ("all", "own"):
        estimate = estimate_prior(
            positive, unlabeled, segments=segments, segment_positives=how, random_state=0
        )
        for name, share in (("low", 0.1), ("high", 0.5)):
            part = estimate.segments[name]
            assert part.prior == pytest.approx(share, abs=0.04)
            assert share < part.upper_bound < share + 0.15
        assert estimate.segments.p_value < 0.001


# --- refused ------------------------------------------------------------------------------------


POSITIVE, UNLABELED = normals()
REFUSED = {
    "negated": ((-POSITIVE, -UNLABELED), {}, r"lower than unlabeled.*Negate"),
    "constant": ((np.ones(5), np.ones(9)), {}, r"equal \(1\)"),
    "missing": ((np.r_[POSITIVE, np.nan], UNLABELED), {}, "nan of X_positive.*row 300"),
    "None": (([1.0, None, 2.0], UNLABELED), {}, "nan of X_positive.*row 1"),
    "a gap": ((pd.Series([1, None, 2], dtype="Int64"), UNLABELED), {}, "nan of X_positive.*row 1"),
    "infinite": ((POSITIVE, np.r_[0.0, -np.inf]), {}, "-inf of X_unlabeled.*row 1"),
    "text": ((POSITIVE, pd.Series(["a", "b"])), {}, "'a' of X_unlabeled.*row 0"),
    **{
        f"large {np.dtype(kind)}": (
            tuple((part * 2**20).astype(kind) + kind(2**60) for part in (POSITIVE, UNLABELED)),
            {},
            r"Score 11529\d+ of X_positive.*row 0.*2\*\*53",
        )
        for kind in (np.int64, np.uint64)
    },
    "large Int64": (
        (pd.Series([1, None, 2**54], dtype="Int64").dropna(), UNLABELED),
        {},
        r"Score 18014398509481984 of X_positive.*row 1.*2\*\*53",
    ),
    "large objects": (([1, 3**50], UNLABELED), {}, r"X_positive.*row 1.*2\*\*53"),
    "empty": (([], UNLABELED), {}, "X_positive has no rows"),
    "method": ((POSITIVE, UNLABELED), {"method": "penl1"}, "'penl1'.*one-dimensional"),
    "evidence": ((POSITIVE, UNLABELED), {"evidence": AutoPrior()}, "evidence"),
    "columns": (
        (np.ones((5, 2)), np.ones((9, 2))),
        {"method": "scores"},
        "one column of scores, got 2 columns",
    ),
    "named columns": (
        (pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"a": [1], "b": [2]})),
        {"method": "scores"},
        "'a', 'b'",
    ),
    "one of each": ((POSITIVE, UNLABELED[:, None]), {}, "X_positive, got one dimension"),
    "labels": ((UNLABELED[:, None], POSITIVE > 0), {}, "one dimension.*labels y"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    samples, options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        estimate_prior(*samples, random_state=0, **options)


@pytest.mark.parametrize("end", [".csv", ".parquet"])
def test_large_integers_in_files_are_refused(end, tmp_path):
    """They are distinct, but not as floating-point numbers, in which their order is lost."""
    paths = []
    for name, scores in (("positive", [7, 2**60 + 1]), ("unlabeled", [3, 2, 2**60])):
        frame, path = pd.DataFrame({"score": scores}), tmp_path / f"{name}{end}"
        frame.to_csv(path, index=False) if end == ".csv" else frame.to_parquet(path, index=False)
        paths.append(path)
    where = "row 3" if end == ".csv" else "row 1"
    with pytest.raises(ValueError, match=rf"positive{end}.*{where}.*2\*\*53"):
        estimate_prior(*paths, method="scores", random_state=0)


def test_integers_up_to_2_to_the_53_keep_their_order():
    small = [np.round(1000 * part).astype(np.int64) for part in (POSITIVE, UNLABELED)]
    large = [part - max(map(np.max, small)) + 2**53 for part in small]
    one, other = (estimate_prior(*part, random_state=0).prior for part in (small, large))
    assert one == other


def test_direction_is_refused_only_if_significant():
    """Useless scores are not refused, since they point nowhere."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        ScorePrior(n_resamples=20, random_state=0).fit_samples(
            rng.normal(size=9), rng.normal(size=9)
        )
    with pytest.raises(ValueError, match=r"ROC curve 0\.000"):
        ScorePrior().fit_samples(np.arange(9), np.arange(9, 18))


def test_area_in_the_error_is_that_of_scikit_learn():
    """With ties and weights."""
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.integers(0, 5, 200), rng.integers(1, 6, 400)
    weights = rng.integers(1, 4, 200), rng.integers(1, 4, 400)
    area = roc_auc_score(
        np.repeat([1, 0], [200, 400]),
        np.concatenate([positive, unlabeled]),
        sample_weight=np.concatenate(weights),
    )
    with pytest.raises(ValueError, match=f"ROC curve {area:.3f}"):
        estimate_prior(positive, unlabeled, weights=weights)


# --- models that were trained on these rows -----------------------------------------------------


def rows(seed, prior=0.1, n=1500, m=6000, shift=4.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + m, 3))
    X[np.r_[np.ones(n, bool), rng.uniform(size=m) < prior], 0] += shift
    return X, np.arange(n + m) < n


def warnings_of(model, seed, *, trained):
    """Return the warnings about scores of rows that the model was trained on, or of others."""
    X, y = rows(seed)
    model = clone(model).fit(X, y)
    X, y = (X, y) if trained else rows(seed + 1000)
    scores = model.predict_proba(X)[:, 1]
    return " ".join(estimate_prior(scores[y], scores[~y], random_state=0).warnings)


NEIGHBORS = KNeighborsClassifier(5)
FOREST = RandomForestClassifier(20, random_state=0)
BOOSTED = HistGradientBoostingClassifier(max_iter=300, random_state=0)


@pytest.mark.parametrize(
    ("model", "mark"),
    [
        (NEIGHBORS, f"{TRAINED}|at 0%"),
        (FOREST, "at 0%"),
        (BOOSTED, "No purely positive region|at 0%"),
    ],
    ids=["neighbors", "forest", "boosted trees"],
)
def test_scores_of_training_rows_are_questioned(model, mark):
    found = warnings_of(model, 0, trained=True)
    assert any(part in found for part in mark.split("|"))
    assert "cross_val_predict" in found
    assert warnings_of(model, 0, trained=False) == ""


def test_honest_scores_are_hardly_ever_called_too_high():
    """The test is conservative: at most 0.2% of honest draws, and none of these 200."""
    for seed in range(100):
        for prior, shift in ((0.02, 2.5), (0.3, 4.0)):
            fitted = ScorePrior(n_resamples=20, random_state=0).fit_samples(
                *normals(prior, shift, 200, 2000, seed)
            )
            assert not seem_too_high(fitted)


def test_positives_above_all_others_are_too_high():
    positive, unlabeled = normals(0.3, 4.0, 1000, 4000)
    positive[:100] += 10.0
    estimate = estimate_prior(positive, unlabeled, random_state=0)
    assert TRAINED in " ".join(estimate.warnings)
    assert not estimate.is_upper_bound


def test_the_order_of_rows_does_not_change_the_interval():
    """Bins dealt in runs of rows would stratify the sorted ones: 35 of 40, four fifths as wide."""
    widths, covered = np.zeros((2, 30)), np.zeros(2)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n_hidden = rng.binomial(1000, 0.4)
        positive, unlabeled = rng.normal(size=200), rng.normal(size=1000)
        unlabeled[n_hidden:] -= 6.0
        for order, rows in enumerate((unlabeled, rng.permutation(unlabeled))):
            fitted = ScorePrior(n_resamples=100, random_state=seed).fit_samples(positive, rows)
            widths[order, seed] = fitted.high_ - fitted.low_
            covered[order] += fitted.low_ <= 0.4 <= fitted.high_
    assert covered.min() >= 28
    assert abs(widths[0].mean() / widths[1].mean() - 1.0) < 0.05
