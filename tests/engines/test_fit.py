"""Fits in blocks: who adds up, what a Pipeline sees, and what is refused.

That every door gives one answer is shown in ``tests/test_doors.py``.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from classprior import (
    AutoPrior,
    DensityRatio,
    DivergencePrior,
    ElkanNotoPrior,
    PearsonPrior,
    PenalizedL1Prior,
    PUClassifier,
)
from classprior.engines import fit_blocks

ESTIMATOR = PenalizedL1Prior(n_centers=40, random_state=3)
LINEAR = {"linear": LogisticRegression()}
AUTO = AutoPrior(classifiers=LINEAR, n_repeats=1, n_resamples=20, random_state=0)
RATIO = DensityRatio(n_centers=40, sigmas=[0.5, 1.0], random_state=0)


def in_blocks(estimator, X_positive, X_unlabeled, folder, **how):
    """Fit a clone; a checkpoint keeps small samples from being read at once."""
    how = {"block_rows": 200, "checkpoint": folder / "sums", **how}
    return fit_blocks(clone(estimator), X_positive, X_unlabeled, **how)


def as_frames(samples):
    return [pd.DataFrame(X, columns=list("abc")) for X in samples]


def assert_same_fit(fitted, expected):
    """Compare bandwidths, and sums of float32 tiles that begin at other rows."""
    assert_array_equal(fitted.sigma_, expected.sigma_)
    # The objective divides by lam, 0.0003 here, which is how far rounding goes.
    assert_allclose(fitted.objective_, expected.objective_, rtol=1e-5, atol=1e-5)


# --- who adds up -----------------------------------------------------------------------------


def test_threads_do_not_matter_at_all(samples, tmp_path):
    one, three = (in_blocks(ESTIMATOR, *samples, tmp_path, n_jobs=n).objective_ for n in (1, 3))
    assert_array_equal(one, three)


def test_processes_of_ones_own(samples, tmp_path):
    """An engine is anything with a map: here the executor of the standard library."""
    rows = tmp_path / "rows"
    rows.mkdir()
    for number, part in enumerate(np.array_split(samples[1], 3)):
        table = pa.table(dict(zip("abc", part.T, strict=True)))
        pq.write_table(table, rows / f"{number}.parquet", row_group_size=111)
    expected = in_blocks(ESTIMATOR, samples[0], rows, tmp_path).objective_
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        fitted = in_blocks(ESTIMATOR, samples[0], rows, tmp_path, map=pool.map).objective_
    assert_array_equal(fitted, expected)


@pytest.mark.parametrize("name", ["fewer blocks", "map"])
def test_small_samples_are_read_once(name, samples, tmp_path):
    """Where the blocks end is then the same to the last bit; a checkpoint needs the blocks."""
    how = {"block_rows": 1000} if name == "fewer blocks" else {"block_rows": 70, "map": map}
    expected = clone(ESTIMATOR).fit_samples(*samples)
    fitted = fit_blocks(clone(ESTIMATOR), *samples, **how)
    assert_array_equal(fitted.objective_, expected.objective_)


def test_a_memory_map_whose_file_was_deleted(samples, tmp_path):
    """As temporary files are on some systems, whose pages stay until they are let go."""
    mapped = np.memmap(tmp_path / "rows", dtype=">f8", mode="w+", shape=samples[1].shape)
    mapped[:] = samples[1]
    (tmp_path / "rows").unlink()
    fitted = fit_blocks(clone(ESTIMATOR), samples[0], mapped)
    assert_array_equal(fitted.objective_, clone(ESTIMATOR).fit_samples(*samples).objective_)


def test_a_center_at_every_row(samples, tmp_path):
    few = samples[0][:60], samples[1][:140]
    every = PenalizedL1Prior(n_centers=None, random_state=0)
    X, y = np.vstack(few), np.repeat([1, 0], [60, 140])
    assert_same_fit(in_blocks(every, *few, tmp_path), clone(every).fit(X, y))
    many = np.zeros((20_000, 3))
    with pytest.raises(ValueError, match=r"n_centers=None .* 20,060 rows"):
        in_blocks(every, few[0], many, tmp_path)


def test_fitted_attributes_are_those_of_fit(samples, tmp_path):
    frames = as_frames(samples)
    fitted = in_blocks(ESTIMATOR, *frames, tmp_path, columns=["b", "c"])
    y = np.repeat([1, 0], [600, 1500])
    expected = clone(ESTIMATOR).fit(pd.concat(frames)[["b", "c"]], y)
    assert vars(fitted).keys() == vars(expected).keys()
    assert_array_equal(fitted.feature_names_in_, ["b", "c"])
    assert_array_equal(fitted.classes_, expected.classes_)
    assert fitted.centers_.shape == (40, 2)


def test_a_progress_bar_counts_rows(samples, tmp_path, capsys):
    in_blocks(ESTIMATOR, *samples, tmp_path, verbose=1)
    shown = capsys.readouterr().err
    assert "Sums over unlabeled rows" in shown
    assert "rows/s" in shown


# --- pipelines -------------------------------------------------------------------------------


def test_steps_before_the_last_see_a_sample_of_all_rows(samples, tmp_path):
    scales = [1.0, 100.0, 0.01]
    frames = [5.0 + frame * scales for frame in as_frames(samples)]
    pipeline = in_blocks(make_pipeline(StandardScaler(), ESTIMATOR), *frames, tmp_path)
    assert_allclose(pipeline[0].mean_, pd.concat(frames).mean(), rtol=1e-9)  # all: they are few
    assert pipeline[-1].n_features_in_ == 3
    scaled = [(frame - pipeline[0].mean_) / pipeline[0].scale_ for frame in frames]
    assert_same_fit(pipeline[-1], clone(ESTIMATOR).fit_samples(*scaled))


KINDS = {
    "array": np.asarray,
    "frame": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "sparse": sparse.csr_array,
    "blocks of two kinds": lambda frame: [pl.from_pandas(frame[:100]), frame[100:]],
}


@pytest.mark.parametrize(
    "kinds",
    [
        ("frame", "array"),
        ("array", "frame"),
        ("polars", "frame"),
        ("arrow", "polars"),
        ("frame", "sparse"),
        ("array", "blocks of two kinds"),
    ],
    ids=" and ".join,
)
def test_a_pipeline_of_samples_of_two_kinds(kinds, samples, tmp_path):
    """Transformers get data frames if any sample has names; scikit-learn warns of anything else."""
    frames = as_frames(samples)
    pipeline = make_pipeline(MaxAbsScaler(), ESTIMATOR)
    y = np.repeat([1, 0], [600, 1500])
    expected = clone(pipeline).fit(pd.concat(frames), y)
    rows = [KINDS[kind](frame) for kind, frame in zip(kinds, frames, strict=True)]
    fitted = in_blocks(pipeline, *rows, tmp_path)
    assert_allclose(fitted[-1].centers_, expected[-1].centers_, rtol=1e-12)
    assert_same_fit(fitted[-1], expected[-1])


def test_a_pipeline_that_makes_sparse_rows(tmp_path):
    """Of categories, in blocks of which some lack a level."""
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame({"k": rng.choice(list("abcd"), n), "x": rng.normal(size=n)})
        for n in (300, 500)
    ]
    frames[1].loc[:150, "k"] = "a"
    encoder = make_column_transformer(
        (OneHotEncoder(), ["k"]), remainder="passthrough", sparse_threshold=1.0
    )
    pipeline = make_pipeline(encoder, PenalizedL1Prior(n_centers=40, random_state=0))
    fitted = in_blocks(pipeline, *frames, tmp_path, block_rows=60)
    assert sparse.issparse(fitted[-1].centers_)
    expected = clone(pipeline).fit(pd.concat(frames), np.repeat([1, 0], [300, 500]))
    assert_same_fit(fitted[-1], expected[-1])


@pytest.mark.parametrize("memory", [False, True])
def test_steps_that_need_y_and_a_memory(memory, samples, tmp_path):
    """Steps see known positives as 1 and unlabeled rows as 0, as in ``fit``."""
    where = str(tmp_path / "cache") if memory else None
    pipeline = make_pipeline(SelectKBest(k=2), ESTIMATOR, memory=where)
    fitted = in_blocks(pipeline, *samples, tmp_path)
    expected = clone(pipeline).fit(np.vstack(samples), np.repeat([1, 0], [600, 1500]))
    assert_array_equal(fitted[0].get_support(), expected[0].get_support())
    assert_same_fit(fitted[-1], expected[-1])


def test_a_pipeline_of_one_step(samples):
    fitted = fit_blocks(make_pipeline(clone(ESTIMATOR)), *samples)
    expected = clone(ESTIMATOR).fit_samples(*samples)
    assert_array_equal(fitted[-1].objective_, expected.objective_)


def test_a_pipeline_that_ends_in_a_classifier(samples):
    scaled = [X * [1.0, 100.0, 0.01] for X in samples]
    model = PUClassifier(prior=AUTO, random_state=0)
    pipeline = fit_blocks(make_pipeline(StandardScaler(), model), *scaled)
    new = np.array([[0.0, 0.0, 0.0], [2.5, 2.5, 2.5]]) * [1.0, 100.0, 0.01]
    assert_array_equal(pipeline.predict(new), [1, 0])


class Picky(BaseEstimator):
    """Takes any rows to be fitted to, but transforms no large numbers."""

    def fit(self, X, y=None):
        return self

    def fit_transform(self, X, y=None):
        self.fitted_ = True
        return X

    def transform(self, X):
        if np.any(X > 1000.0):
            raise ValueError("too large for me")
        return X


def test_a_step_that_fails_names_the_block(samples):
    X = samples[1].copy()
    X[1234, 1] = 2000.0
    pipeline = make_pipeline(Picky(), ESTIMATOR)
    with pytest.raises(ValueError, match=r"X_unlabeled, rows 1,200 to 1,399.* too large for me"):
        fit_blocks(pipeline, samples[0], X, block_rows=200)


# --- sparse rows -----------------------------------------------------------------------------


@pytest.mark.parametrize("sparse_one", [0, 1])
@pytest.mark.parametrize("estimator", [ESTIMATOR, AUTO, RATIO], ids=lambda e: type(e).__name__)
def test_a_dense_and_a_sparse_sample(samples, sparse_one, estimator):
    expected = clone(estimator).fit_samples(*samples)
    mixed = list(samples)
    mixed[sparse_one] = sparse.coo_matrix(mixed[sparse_one])
    fitted = fit_blocks(clone(estimator), *mixed, block_rows=200)
    if estimator is RATIO:
        assert_allclose(fitted.coef_, expected.coef_, rtol=1e-6, atol=1e-9)
    else:
        assert fitted.prior_ == pytest.approx(expected.prior_, abs=1e-6)


@pytest.mark.parametrize("first", ["dense", "sparse"])
def test_dense_and_sparse_blocks_of_one_sample(samples, first, tmp_path):
    kinds = (np.asarray, sparse.csr_array) if first == "dense" else (sparse.csr_array, np.asarray)
    blocks = [kinds[i % 2](part) for i, part in enumerate(np.split(samples[1], 10))]
    fitted = in_blocks(ESTIMATOR, samples[0], blocks, tmp_path)
    assert sparse.issparse(fitted.centers_) == (first == "sparse")
    assert_same_fit(fitted, clone(ESTIMATOR).fit_samples(*samples))


def test_sparse_rows_take_the_memory_of_what_they_hold():
    """As dense numbers these would take 5 GB, more than any method is given."""
    words = np.random.default_rng(0).integers(0, 200_000, 60_000)
    X = sparse.csr_array((np.ones(60_000), words, 20 * np.arange(3001)), shape=(3000, 200_000))
    counts = clone(AUTO).set_params(classifiers={"counts": MultinomialNB()})
    fitted = clone(counts).fit_samples(X[:1000], X[1000:])
    expected = clone(counts).fit(X, np.repeat([1, 0], [1000, 2000]))
    assert fitted.prior_ == pytest.approx(expected.prior_, abs=1e-9)


# --- groups ----------------------------------------------------------------------------------


def as_text(values):
    return values.astype(str)


def as_floats(values):
    return values.astype(float)


def as_objects(values):
    return np.array([str(v) if i % 2 else v for i, v in enumerate(values.tolist())], dtype=object)


def as_series(values):
    return pd.Series(values, dtype="Int64")


@pytest.mark.parametrize("kind", [as_text, as_floats, as_objects, as_series])
@pytest.mark.parametrize("door", ["arrays", "columns"])
def test_a_group_is_what_its_name_reads(kind, door, samples):
    """1 in one sample, and 1.0 or "1" in the other, are one group."""
    rng = np.random.default_rng(0)
    groups = [rng.integers(0, 40, len(X)) for X in samples]
    expected = clone(ESTIMATOR).fit_samples(*samples, groups=groups).objective_
    alone = clone(ESTIMATOR).fit_samples(*samples, groups=[groups[0], groups[1] + 1000])
    others = groups[0], kind(groups[1])
    if door == "arrays":
        fitted = clone(ESTIMATOR).fit_samples(*samples, groups=others)
    else:
        frames = [f.assign(g=g) for f, g in zip(as_frames(samples), others, strict=True)]
        fitted = clone(ESTIMATOR).fit_samples(*frames, groups="g")
    assert_array_equal(fitted.objective_, expected)
    assert np.any(alone.objective_ != expected)


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT], ids=str)
def test_rows_without_a_group_are_refused(gap, samples, tmp_path):
    groups = [np.arange(len(X)).astype(object) for X in samples]
    groups[1][777] = gap
    with pytest.raises(ValueError, match=r"row 777 of the unlabeled rows"):
        clone(ESTIMATOR).fit_samples(*samples, groups=groups)
    frames = [f.assign(g=g) for f, g in zip(as_frames(samples), groups, strict=True)]
    with pytest.raises(ValueError, match=r"'g' of X_unlabeled, .* row 777\b"):
        in_blocks(ESTIMATOR, *frames, tmp_path, groups="g")


class Passes(list):
    """Blocks that count how often they are gone through."""

    times = 0

    def __iter__(self):
        self.times += 1
        return super().__iter__()


def test_seeds_of_parts_and_groups(samples, tmp_path):
    """Parts with seeds of their own deal groups alike from any door; a column is read once."""
    rng = np.random.default_rng(0)
    groups = [rng.integers(0, 40, len(X)) for X in samples]
    prior, ratio = clone(ESTIMATOR).set_params(random_state=7), clone(RATIO)
    model = PUClassifier(prior=prior, ratio=ratio.set_params(random_state=5), random_state=0)
    expected = clone(model).fit_samples(*samples, groups=groups)
    known, unlabeled = (f.assign(g=g) for f, g in zip(as_frames(samples), groups, strict=True))
    by_group, by_row = Passes([unlabeled]), Passes([unlabeled])
    fitted = in_blocks(model, known, by_group, tmp_path, groups="g")
    assert fitted.prior_ == pytest.approx(expected.prior_, abs=1.01e-3)
    assert_allclose(fitted.ratio_.coef_, expected.ratio_.coef_, rtol=1e-5)
    in_blocks(model, known, by_row, tmp_path, columns=["a", "b", "c"])
    assert by_group.times == by_row.times + 1


@pytest.mark.parametrize(
    ("groups", "error", "facts"),
    [
        ("g", ValueError, "X_positive .*'g'"),
        ([np.zeros(3), np.zeros(1500)], ValueError, r"600 known positives.*\(3,\)"),
        (np.zeros(2100), TypeError, "groups"),
    ],
)
def test_groups_that_cannot_be(groups, error, facts, samples):
    with pytest.raises(error, match=facts):
        fit_blocks(clone(ESTIMATOR), *samples, groups=groups)


def test_the_name_of_a_column_is_not_for_fit(samples):
    with pytest.raises(TypeError, match=r"groups .*'g'"):
        clone(ESTIMATOR).fit(np.vstack(samples), np.repeat([1, 0], [600, 1500]), groups="g")


def test_columns_beside_groups_are_checked(samples):
    frames = [f.assign(g=0) for f in as_frames(samples)]
    with pytest.raises(ValueError, match="'z' only in X_positive"):
        fit_blocks(clone(ESTIMATOR), frames[0].assign(z=1.0), frames[1], groups="g")
    with pytest.raises(ValueError, match=r"'g' in X_positive"):
        fit_blocks(clone(ESTIMATOR), frames[0].drop(columns="g"), frames[1], groups="g")


# --- classifiers -----------------------------------------------------------------------------


def test_the_default_classifier_takes_a_sample(samples):
    model = fit_blocks(PUClassifier(prior=AUTO, max_rows=500, random_state=0), *samples)
    assert abs(model.prior_ - 0.3) < 0.1
    assert_array_equal(model.predict([[0.0, 0.0, 0.0], [2.5, 2.5, 2.5]]), [1, 0])


def test_auto_fits_its_classifiers_to_a_sample(samples):
    estimator = clone(AUTO).set_params(max_rows=500)
    fitted = fit_blocks(estimator, *samples)
    assert fitted.n_fitted_ == (500, 500)
    assert abs(fitted.prior_ - 0.3) < 0.1
    positives = 600 + 1500 * fitted.prior_
    assert fitted.label_frequency_ == pytest.approx(600 / positives)
    assert fitted.high_sample_ - fitted.low_sample_ < fitted.high_ - fitted.low_


def test_a_classifier_of_named_columns_predicts_without_warning(samples, tmp_path):
    """Its ratio sees arrays, as in memory; warnings are errors here."""
    model = in_blocks(
        PUClassifier(prior=0.3, ratio=RATIO, random_state=0), *as_frames(samples), tmp_path
    )
    new = pd.DataFrame([[0.0, 0.0, 0.0], [2.5, 2.5, 2.5]], columns=list("abc"))
    assert_array_equal(model.predict(new), [1, 0])
    assert_array_equal(model.feature_names_in_, list("abc"))


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "settings", "error", "facts"),
    [
        (LogisticRegression(), {}, TypeError, "LogisticRegression"),
        (PUClassifier(prior=3), {}, ValueError, "prior .* 3"),
        (PenalizedL1Prior(pos_label="yes"), {}, ValueError, "pos_label='yes'"),
        (PenalizedL1Prior(cv=np.zeros(2100)), {}, TypeError, "cv"),
        (
            PenalizedL1Prior(cv=[np.zeros(600, int), np.zeros(9, int)]),
            {},
            ValueError,
            r"1500.*\(9,\)",
        ),
        (PenalizedL1Prior(), {"checkpoint": "file"}, ValueError, "random_state.*PenalizedL1.*None"),
        (
            PenalizedL1Prior(random_state=np.random.RandomState(0)),
            {"checkpoint": "file"},
            ValueError,
            "random_state .*RandomState",
        ),
        (ESTIMATOR, {"checkpoint": "no/such/file"}, FileNotFoundError, "no/such"),
        (ElkanNotoPrior(), {"checkpoint": "file"}, ValueError, "ElkanNotoPrior .*checkpoint"),
        (PUClassifier(), {"checkpoint": "file"}, ValueError, "PUClassifier .*checkpoint"),
        (ESTIMATOR, {"columns": ["a"]}, ValueError, "X_positive .*'a'"),
        (ESTIMATOR, {"block_rows": 0}, ValueError, "block_rows.* 0"),
    ],
)
def test_settings_that_cannot_be(samples, estimator, settings, error, facts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=facts):
        fit_blocks(clone(estimator), *samples, **settings)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("estimator", [DivergencePrior(), PearsonPrior(n_centers=40)])
def test_samples_must_have_the_same_columns(samples, estimator):
    with pytest.raises(ValueError, match="3 columns in X_positive and 2 columns in X_unlabeled"):
        fit_blocks(estimator, samples[0], samples[1][:, :2])
    frames = as_frames(samples)
    with pytest.raises(ValueError, match=r"'c' only in X_positive.* and 'd' only in X_unlabeled"):
        fit_blocks(estimator, frames[0], frames[1].rename(columns={"c": "d"}))


@pytest.mark.parametrize("how", [{}, {"columns": ["a", "b"]}, {"groups": "c"}], ids=str)
def test_no_rows(samples, how):
    frames = as_frames(samples)
    for rows, name in (
        ((frames[0][:0], frames[1]), "positive"),
        ((frames[0], [frames[1][:0]]), "unlabeled"),
    ):
        with pytest.raises(ValueError, match=f"X_{name} has no rows"):
            fit_blocks(clone(ESTIMATOR), *rows, **how)


def test_methods_that_need_all_rows_say_so(tmp_path):
    """Before anything but the shape is read: these rows are not there."""
    rows = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", float, (100_000_000, 6))
    with pytest.raises(ValueError, match=r"100,000,010 rows .* 4 GiB"):
        fit_blocks(DivergencePrior(divergence="kl"), np.zeros((10, 6)), rows)
