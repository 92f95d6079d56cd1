"""Same rows, same seed, every door: one answer, however the rows come in."""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from classprior import (
    AutoPrior,
    DensityRatio,
    DivergencePrior,
    PearsonPrior,
    PenalizedL1Prior,
    PUClassifier,
    estimate_prior,
)
from classprior.cli import main
from classprior.engines import fit_blocks, predict_blocks
from classprior.priors import BestBinPrior, KernelMeanPrior, ReCPEPrior, TIcEPrior

COLUMNS = ["x", "y", "z"]
THETA_STEP = 0.001
ROUNDING = 1e-6  # sums of float32 tiles that begin at other rows


def _frames():
    rng = np.random.default_rng(0)
    known = rng.normal(size=(150, 3))
    unlabeled = rng.normal(size=(400, 3))
    unlabeled[120:] += 2.0
    unlabeled = rng.permutation(unlabeled)
    both = np.vstack([known, unlabeled])
    both = (both - both.mean(axis=0)) / both.std(axis=0)  # so that scaling changes next to nothing
    table = pd.DataFrame(both, columns=COLUMNS)
    table["household"] = rng.integers(0, 90, len(table))
    return table[:150].reset_index(drop=True), table[150:].reset_index(drop=True)


FRAMES = _frames()
ARRAYS = tuple(frame[COLUMNS].to_numpy() for frame in FRAMES)
HOUSEHOLDS = [frame["household"].to_numpy() for frame in FRAMES]
GRID = np.random.default_rng(1).normal(size=(50, 3))

# --- where the rows may be -------------------------------------------------------------------


def arrays(frame, folder):
    return frame.to_numpy()


def frames(frame, folder):
    return frame


def reordered_frames(frame, folder):
    return frame[frame.columns[::-1]] if folder.name == "known" else frame


def polars_frames(frame, folder):
    return pl.from_pandas(frame)


def arrow_tables(frame, folder):
    return pa.Table.from_pandas(frame, preserve_index=False)


def csv(frame, folder, name="rows.csv", **how):
    frame.to_csv(folder / name, index=False, **how)
    return str(folder / name)


semicolons = partial(csv, sep=";", decimal=",")
tabs = partial(csv, name="rows.tsv", sep="\t")
packed_csv = partial(csv, name="rows.csv.gz")


def utf_16(frame, folder):
    return csv(frame, folder, encoding="utf-16")


def parquet_folder(frame, folder):
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        table = pa.Table.from_pandas(frame.iloc[part], preserve_index=False)
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=31)
    return str(folder)


def pattern(frame, folder):
    return parquet_folder(frame, folder) + "/*.parquet"


def feather(frame, folder):
    frame.to_feather(folder / "rows.feather")
    return folder / "rows.feather"


def dataset(frame, folder):
    return pyarrow.dataset.dataset(parquet_folder(frame, folder))


def memory_map(frame, folder):
    np.save(folder / "rows.npy", frame.to_numpy())
    return np.load(folder / "rows.npy", mmap_mode="r")


def blocks(frame, folder):
    X = frame.to_numpy()
    return [X[:1], X[1:70], X[70:70], X[70:]]


def dask_array(frame, folder):
    import dask.array as da

    return da.from_array(frame.to_numpy(), chunks=(47, 2))


def dask_frame(frame, folder):
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=3)


class Shuffled:
    """A stream of Arrow batches that comes in another order whenever it is read."""

    def __init__(self, frame):
        self.frame, self.rng = frame, np.random.default_rng(0)

    def __arrow_c_stream__(self, requested_schema=None):
        rows = self.frame.iloc[self.rng.permutation(len(self.frame))]
        table = pa.Table.from_pandas(rows, preserve_index=False)
        return table.to_reader(61).__arrow_c_stream__(requested_schema)


def arrow_stream(frame, folder):
    return Shuffled(frame)


def duckdb_relation(frame, folder):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect(str(folder / "rows.duckdb"))
    connection.register("given", pa.Table.from_pandas(frame, preserve_index=False))
    connection.execute("create table stored as select * from given")
    return connection.sql("select * from stored")


def polars_lazy(frame, folder):
    pl.from_pandas(frame).write_parquet(folder / "rows.parquet")
    return pl.scan_parquet(folder / "rows.parquet")


PLACES = [arrays, frames, reordered_frames, polars_frames, arrow_tables, csv, semicolons, tabs]
PLACES += [packed_csv, utf_16, parquet_folder, pattern, feather, dataset, memory_map, blocks]
PLACES += [dask_array, dask_frame]
NAMELESS = (arrays, memory_map, blocks, dask_array)
UNORDERED = [duckdb_relation, polars_lazy, arrow_stream]  # the same as memory with a key


def name_of(place):
    return getattr(place, "__name__", None) or "_".join(map(str, place.keywords.values()))


def placed(place, tmp_path, columns, frames=FRAMES):
    """Put both samples somewhere; one without names of columns has no groups."""
    rows = []
    for name, frame in zip(("known", "unlabeled"), frames, strict=True):
        folder = tmp_path / name
        folder.mkdir()
        rows.append(place(frame[columns], folder))
    return rows


# --- what is fitted --------------------------------------------------------------------------

LINEAR = LogisticRegression()
QUICK = {"linear": LINEAR, "curved": LogisticRegression(C=0.1)}


def _prior(fitted):
    return [fitted.prior_]


def _auto(fitted):
    return [fitted.prior_, fitted.low_, fitted.high_, fitted.upper_bound_]


def _ratio(fitted):
    return fitted.predict(named(fitted, GRID))


def _classes(fitted):
    return [fitted.prior_, *fitted.predict_proba(named(fitted, GRID))[:, 1]]


def named(fitted, X):
    return pd.DataFrame(X, columns=COLUMNS) if hasattr(fitted, "feature_names_in_") else X


AUTO = AutoPrior(classifiers=QUICK, n_repeats=1, n_resamples=50, random_state=0)
RATIO = DensityRatio(n_centers=40, sigmas=[0.5, 1.0], random_state=0)
ESTIMATORS = {
    "penl1": (PenalizedL1Prior(random_state=0), _prior),
    "pe": (PearsonPrior(n_centers=40, sigmas=[0.5, 1.0], random_state=0), _prior),
    "auto": (AUTO, _auto),
    "tice": (TIcEPrior(random_state=0), _prior),
    "km2": (KernelMeanPrior(max_rows=40, random_state=0), _prior),
    "recpe": (
        ReCPEPrior(estimator=BestBinPrior(classifier=LINEAR), classifier=LINEAR, random_state=0),
        _prior,
    ),
    "ratio": (RATIO, _ratio),
    "classifier": (PUClassifier(prior=AUTO, random_state=0), _classes),
    "paper's classifier": (
        PUClassifier(
            prior=PenalizedL1Prior(random_state=0),
            ratio=DensityRatio(n_centers=40, sigmas=[0.5, 1.0]),
            random_state=0,
        ),
        _classes,
    ),
}
GROUPED = pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])


@cache
def in_memory(name, grouped):
    """Fit to X and y, which every other door is compared with."""
    estimator, answer = ESTIMATORS[name]
    X, y = np.vstack(ARRAYS), np.repeat([1, 0], [150, 400])
    groups = pd.concat(FRAMES)["household"].to_numpy() if grouped else None
    return answer(clone(estimator).fit(X, y, groups=groups))


def assert_same(got, expected):
    """One theta step for what is the best theta of a grid, rounding for all else."""
    got, expected = np.asarray(got), np.asarray(expected)
    is_theta = expected == expected.round(3)
    tolerance = (1.01 * THETA_STEP if is_theta.any() else ROUNDING) * np.maximum(1.0, expected)
    assert np.all(np.abs(got - expected) <= tolerance)


@GROUPED
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("place", PLACES, ids=name_of)
def test_an_estimator_fitted_through_any_door(place, name, grouped, tmp_path):
    estimator, answer = ESTIMATORS[name]
    has_names = place not in NAMELESS
    columns = [*COLUMNS, "household"] if grouped and has_names else COLUMNS
    groups = None
    if grouped:
        groups = "household" if has_names else HOUSEHOLDS
    rows = placed(place, tmp_path, columns)
    expected = in_memory(name, grouped)
    assert_same(answer(clone(estimator).fit_samples(*rows, groups=groups)), expected)
    fitted = fit_blocks(clone(estimator), *rows, groups=groups, block_rows=37)
    assert_same(answer(fitted), expected)


@pytest.mark.parametrize("name", ["penl1", "pe", "ratio", "paper's classifier"])
@pytest.mark.parametrize("how", ["map", "threads", "checkpoint"])
def test_who_adds_up_makes_no_difference(name, how, tmp_path):
    estimator, answer = ESTIMATORS[name]
    with ThreadPoolExecutor(2) as pool:
        more = {
            "map": {"map": pool.map},
            "threads": {"n_jobs": 3},
            "checkpoint": {"checkpoint": tmp_path / "sums.npz"},
        }[how]
        # A checkpoint keeps rows from being loaded at once, so blocks are read one by one.
        fitted = fit_blocks(clone(estimator), *ARRAYS, block_rows=37, **more)
    assert_same(answer(fitted), in_memory(name, grouped=False))


def test_the_closed_form_has_one_answer():
    fits = [
        e.fit_samples(*ARRAYS)
        for e in (PenalizedL1Prior(random_state=0), DivergencePrior(random_state=0))
    ]
    assert_array_equal(fits[0].objective_, fits[1].objective_)
    assert fits[0].prior_ == fits[1].prior_


# --- estimates -------------------------------------------------------------------------------


def numbers(estimate):
    return [estimate[name] for name in ("prior", "low", "high", "upper_bound", "high_count")]


def command(*arguments, evidence=None):
    arguments = [str(a) for a in arguments]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False, obj=evidence)
    assert result.exit_code == 0, result.output
    return result


def estimated(X_positive, X_unlabeled, method, **how):
    """Estimate in Python."""
    estimate = estimate_prior(X_positive, X_unlabeled, method=method, random_state=0, **how)
    return numbers(estimate.to_dict())


QUICKLY = {"evidence": AUTO, "n_resamples": 20}


@cache
def expected_estimate(method, grouped, quick=False):
    """Arrays in memory, which every other door is compared with."""
    return estimated(
        *ARRAYS, method, groups=HOUSEHOLDS if grouped else None, **(QUICKLY if quick else {})
    )


@cache
def expected_of_command(method, grouped):
    return estimated(*ARRAYS, method, groups=HOUSEHOLDS if grouped else None, evidence=AUTO)


@GROUPED
@pytest.mark.parametrize("method", ["penl1", "pe"])
@pytest.mark.parametrize("place", [p for p in PLACES if p not in NAMELESS], ids=name_of)
def test_an_estimate_through_any_door(place, method, grouped, tmp_path):
    rows = placed(place, tmp_path, [*COLUMNS, "household"] if grouped else COLUMNS)
    got = estimated(*rows, method, groups="household" if grouped else None, **QUICKLY)
    assert_allclose(got, expected_estimate(method, grouped, quick=True), rtol=1e-9)


@pytest.mark.parametrize("place", [packed_csv, dask_frame], ids=name_of)
def test_the_default_estimate_through_any_door(place, tmp_path):
    rows = placed(place, tmp_path, [*COLUMNS, "household"])
    got = estimated(*rows, "auto", groups="household")
    assert_allclose(got, expected_estimate("auto", grouped=True), rtol=1e-9)


# --- keys ------------------------------------------------------------------------------------

# Long numbers and leading zeros, which are not numbers; other values in the other sample.
KEYS = [[f"{i}{'' if i % 2 else '0' * 20}" for i in range(150)], np.arange(400) * 3]
KEYED = [frame.assign(key=keys) for frame, keys in zip(FRAMES, KEYS, strict=True)]
REORDERED = [frame.sample(frac=1.0, random_state=5).reset_index(drop=True) for frame in KEYED]


@cache
def expected_by_key(method, grouped):
    """Arrays in memory, in the first order of the rows."""
    groups = HOUSEHOLDS if grouped else None
    return estimated(*ARRAYS, method, groups=groups, key=KEYS, **QUICKLY)


BY_KEY = [(place, "pe", False) for place in [*PLACES, *UNORDERED] if place not in NAMELESS]
BY_KEY += [(place, "auto", is_grouped) for place in (csv, dask_frame) for is_grouped in (0, 1)]
BY_KEY += [(place, "auto", place is not arrow_stream) for place in UNORDERED]


@pytest.mark.parametrize(("place", "method", "grouped"), BY_KEY)
def test_an_estimate_by_key_through_any_door_in_any_order(place, method, grouped, tmp_path):
    columns = [*COLUMNS, "key", *(["household"] if grouped else [])]
    rows = placed(place, tmp_path, columns, REORDERED)
    got = estimated(*rows, method, groups="household" if grouped else None, key="key", **QUICKLY)
    assert_allclose(got, expected_by_key(method, grouped), rtol=1e-9)


@pytest.mark.parametrize("place", NAMELESS, ids=name_of)
def test_an_estimate_by_arrays_of_keys(place, tmp_path):
    rows = placed(place, tmp_path, COLUMNS, REORDERED)
    got = estimated(*rows, "pe", key=[frame["key"] for frame in REORDERED], **QUICKLY)
    assert_allclose(got, expected_by_key("pe", grouped=False), rtol=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("place", [dask_array, parquet_folder, arrow_stream], ids=name_of)
def test_an_estimator_fitted_by_key_in_any_order(place, name, tmp_path):
    estimator, answer = ESTIMATORS[name]
    has_names = place not in NAMELESS
    rows = placed(place, tmp_path, [*COLUMNS, "key"] if has_names else COLUMNS, REORDERED)
    key = "key" if has_names else [frame["key"] for frame in REORDERED]
    fitted = fit_blocks(clone(estimator), *rows, key=key, block_rows=37)
    y = np.repeat([1, 0], [150, 400])
    keys = np.concatenate([np.array(part, dtype=object) for part in KEYS])
    assert_same(answer(fitted), answer(clone(estimator).fit(np.vstack(ARRAYS), y, key=keys)))


def test_a_checkpoint_of_rows_with_keys(tmp_path):
    how = {"columns": COLUMNS, "block_rows": 37, "checkpoint": tmp_path / "sums.npz"}
    for name in ("penl1", "pe"):
        estimator, answer = ESTIMATORS[name]
        fitted = fit_blocks(clone(estimator), *REORDERED, key="key", **how)
        expected = clone(estimator).fit_samples(*ARRAYS, key=KEYS)
        assert_same(answer(fitted), answer(expected))


@pytest.mark.parametrize(
    "command_name", ["estimate", pytest.param("compare", marks=pytest.mark.slow)]
)
def test_keys_on_the_command_line(command_name, tmp_path):
    files = placed(csv, tmp_path, [*COLUMNS, "key"], REORDERED)
    more = ["--method", "pe"] if command_name == "estimate" else ["--methods", "pe"]
    printed = command(command_name, *files, "--id", "key", *more, "--json", evidence=AUTO).stdout
    values = json.loads(printed)
    got = values["prior"] if command_name == "estimate" else values["methods"][0]["prior"]
    expected = estimated(*ARRAYS, "pe", key=KEYS, evidence=AUTO)
    assert_allclose(got, expected[0], rtol=1e-9)


def test_a_key_on_the_command_line_that_repeats(tmp_path):
    frames = KEYED[0], KEYED[1].assign(key=KEYED[1]["key"] // 6)
    files = [str(f) for f in placed(csv, tmp_path, [*COLUMNS, "key"], frames)]
    result = CliRunner().invoke(main, ["estimate", *files, "--id", "key"])
    assert result.exit_code == 1
    for fact in ("repeats", "'key'", "--groups", "--drop"):
        assert fact in result.stderr


COMMANDS = [
    (door, method)
    for door in ("two files", "checkpoint", "one table")
    for method in ("auto", "penl1", "pe")
    if (door, method) != ("checkpoint", "auto")  # auto uses a sample and takes no checkpoint
]


@GROUPED
@pytest.mark.parametrize(("door", "method"), COMMANDS)
def test_an_estimate_from_the_command_line(door, method, grouped, tmp_path):
    columns = [*COLUMNS, "household"] if grouped else COLUMNS
    if door == "one table":
        table = pd.concat(FRAMES)[columns].assign(known=np.repeat(["yes", "no"], [150, 400]))
        table.to_parquet(tmp_path / "rows.parquet")
        files = [tmp_path / "rows.parquet", "--label", "known"]
    else:
        files = placed(csv, tmp_path, columns)
    more = ["--checkpoint", tmp_path / "sums.npz"] if door == "checkpoint" else []
    more += ["--groups", "household"] if grouped else []
    given = ("--method", method, "--json", *more)
    printed = command("estimate", *files, *given, evidence=AUTO).stdout
    got, expected = numbers(json.loads(printed)), expected_of_command(method, grouped)
    assert_allclose(got[:-1], expected[:-1], atol=1.01 * THETA_STEP if more else 1e-9)


def test_one_column_on_any_scale():
    """Arrays and frames are standardized alike, one of each as well."""
    rng = np.random.default_rng(3)
    known = rng.normal(size=(300, 1))
    unlabeled = np.vstack([rng.normal(size=(300, 1)), rng.normal(6.0, 1.0, (700, 1))])
    answers = [
        estimate_prior(*samples, method="penl1", random_state=0, **QUICKLY).prior
        for samples in (
            (known, unlabeled),
            (1000.0 * known, 1000.0 * unlabeled),
            tuple(pd.DataFrame(1000.0 * X, columns=["amount"]) for X in (known, unlabeled)),
            (pd.DataFrame(1000.0 * known, columns=["amount"]), 1000.0 * unlabeled),
        )
    ]
    assert len(set(answers)) == 1
    assert abs(answers[0] - 0.3) < 0.1


# --- which rows ------------------------------------------------------------------------------


@GROUPED
def test_classify_is_the_default_classifier(grouped, tmp_path):
    groups = HOUSEHOLDS if grouped else None
    model = PUClassifier(random_state=0).fit_samples(*ARRAYS, groups=groups)
    files = placed(csv, tmp_path, [*COLUMNS, "household"] if grouped else COLUMNS)
    out, saved = tmp_path / "rows.parquet", tmp_path / "fitted.model"
    more = ["--groups", "household"] if grouped else []
    command("classify", *files, "--out", out, "--save-model", saved, *more)
    scored = pq.read_table(out)
    assert_allclose(scored["probability"].to_numpy(), model.oof_proba_, atol=2e-6)
    assert_array_equal(scored["positive"].to_numpy(), model.oof_proba_ >= 0.5)

    command("predict", saved, files[1], "--out", tmp_path / "again.parquet")
    again = pq.read_table(tmp_path / "again.parquet")["probability"].to_numpy()
    assert_allclose(again, model.predict_proba(ARRAYS[1])[:, 1], atol=2e-6)


@pytest.mark.parametrize("place", PLACES, ids=name_of)
def test_answers_about_rows_through_any_door(place, tmp_path):
    model = PUClassifier(
        prior=0.3, ratio=DensityRatio(n_centers=40, sigmas=[0.5, 1.0]), random_state=0
    )
    model.fit_samples(*ARRAYS)
    _, rows = placed(place, tmp_path, COLUMNS)
    n_rows = predict_blocks(model, rows, tmp_path / "answers.parquet", block_rows=37)
    answers = pq.read_table(tmp_path / "answers.parquet").to_pandas()
    assert n_rows == 400
    assert_allclose(answers["probability"], model.predict_proba(ARRAYS[1])[:, 1], rtol=1e-9)
    assert_array_equal(answers["label"], model.predict(ARRAYS[1]))
