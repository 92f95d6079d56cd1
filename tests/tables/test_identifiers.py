"""Columns that number the rows are left out; columns that describe them are kept."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from classprior import AutoPrior, TableEncoder
from classprior import estimate_prior as estimate_with_any_evidence
from classprior._tables.identifiers import why_identifier

QUICK = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, n_resamples=50)
estimate_prior = partial(estimate_with_any_evidence, evidence=QUICK, random_state=0)
SIZES = (80, 400)  # of the two samples


def is_left_out(samples, name="x", names=("x", "y")):
    return why_identifier(samples, "number", name, names) is not None


def split(values, rng):
    is_positive = rng.permutation(len(values)) < SIZES[0]
    return [values[is_positive], values[~is_positive]]


def some_of(n, density, rng):
    """Return a sorted random sample of 0, 1, 2, ..."""
    return np.sort(rng.permutation(round(n / density))[:n])


# --- numbers of rows -----------------------------------------------------------------------------

NUMBERINGS = {
    "per file": lambda rng: [np.arange(n) for n in SIZES],
    "from 1": lambda rng: [1 + np.arange(n) for n in SIZES],
    "from anywhere": lambda rng: [12_345_678 + np.arange(n) for n in SIZES],
    "over both files": lambda rng: np.split(np.arange(sum(SIZES)), SIZES[:1]),
    "one table": lambda rng: split(np.arange(sum(SIZES)), rng),
    "shuffled": lambda rng: [rng.permutation(n) for n in SIZES],
    "of remaining rows": lambda rng: split(some_of(sum(SIZES), 0.1, rng), rng),
    "of some rows per file": lambda rng: [some_of(n, 0.1, rng) for n in SIZES],
    "of some rows, shuffled": lambda rng: [rng.permutation(some_of(n, 0.1, rng)) for n in SIZES],
    "with copied rows": lambda rng: [np.r_[np.arange(n), np.arange(0, n, 30)] for n in SIZES],
    "in one sample": lambda rng: [np.arange(SIZES[1])],
}


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint32, np.uint64, float])
@pytest.mark.parametrize("kind", NUMBERINGS)
def test_numbers_of_rows_are_left_out(kind, dtype):
    samples = NUMBERINGS[kind](np.random.default_rng(0))
    assert is_left_out([values.astype(dtype) for values in samples])


def test_numbers_of_drawn_rows_are_left_out():
    """The encoder may see 20,000 of ten million rows."""
    rng = np.random.default_rng(0)
    drawn = np.unique(rng.integers(0, 10**7, 20_000))
    assert is_left_out([np.arange(300), drawn])


@pytest.mark.parametrize("name", ["row_id", "PassengerId", "No.", "#", "index", "id_client", "row"])
def test_a_name_needs_less_evidence(name):
    rng = np.random.default_rng(0)
    sparse = [rng.permutation(10**6)[:n] for n in SIZES]
    assert not is_left_out(sparse)
    assert is_left_out(sparse, name, (name, "y"))
    per_part = np.tile(np.arange(100), 4)
    assert is_left_out([np.arange(80), per_part], name, (name, "y"))
    assert not is_left_out([np.arange(80), np.sort(per_part)], name, (name, "y"))


@pytest.mark.parametrize("name", ["column_1", "Unnamed: 0", "Unnamed: 0.1", "level_0", ""])
def test_an_unnamed_first_column_needs_less_evidence(name):
    rng = np.random.default_rng(0)
    labels = [rng.choice(10**3, n) for n in SIZES]  # drawn with replacement
    assert is_left_out(labels, name, (name, "y"))
    assert not is_left_out(labels, name, (name, "column_2"))  # a file without a header
    per_part = np.tile(np.arange(100), 4)
    assert is_left_out([np.arange(80), per_part], name, (name, "y"))
    assert not is_left_out([np.tile([0, 1], 40), np.tile([0, 1], 200)], name, (name, "y"))


def test_text_that_starts_again_in_each_file():
    samples = [np.array([f"row {i}" for i in range(n)], dtype=object) for n in (20, 40)]
    assert why_identifier(samples, "category", "x") is not None
    months = np.array([f"month {i}" for i in range(12)], dtype=object)
    assert why_identifier([months, months], "category", "x") is None


# --- columns that describe rows ------------------------------------------------------------------


def both(draw):
    """Draw the values of each sample."""
    return lambda rng: [draw(n, rng) for n in SIZES]


def events(n, rng, seconds_between):
    return 1_700_000_000 + np.sort(rng.integers(0, n * seconds_between, n))


DESCRIPTIONS = {
    "cents": both(lambda n, rng: np.round(100 * rng.lognormal(4, 1.2, n)).astype(int)),
    "cents, sorted": both(lambda n, rng: np.sort(rng.integers(0, 10**6, n))),
    "distinct amounts": both(lambda n, rng: rng.integers(0, 10**9, n)),
    "ages": both(lambda n, rng: rng.integers(18, 90, n)),
    "postcodes": both(lambda n, rng: rng.integers(1067, 99_999, n)),
    "years": both(lambda n, rng: np.sort(rng.integers(1950, 2026, n))),
    "counts": both(lambda n, rng: rng.poisson(300, n)),
    "scores": both(lambda n, rng: rng.normal(600, 100, n).astype(np.int32)),
    "sensor": both(lambda n, rng: rng.normal(30_000, 8_000, n).astype(np.uint16)),
    "wide": both(lambda n, rng: rng.integers(-(2**31), 2**31 - 1, n).astype(np.int32)),
    "events each second": both(lambda n, rng: events(n, rng, 1)),
    "events each minute": both(lambda n, rng: events(n, rng, 60)),
    "events each hour": both(lambda n, rng: events(n, rng, 3600)),
    "readings": both(lambda n, rng: 1_700_000_000 + 60 * np.arange(n)),
    "irregular readings": both(lambda n, rng: np.cumsum(rng.integers(60, 90, n))),
    "positions": both(lambda n, rng: np.arange(-n // 2, n // 2)),
    "cycles of machines": both(lambda n, rng: np.tile(np.arange(n // 4), 4)),
}


@pytest.mark.parametrize("kind", DESCRIPTIONS)
def test_columns_that_describe_rows_are_kept(kind):
    samples = DESCRIPTIONS[kind](np.random.default_rng(0))
    assert not is_left_out(samples)
    assert not is_left_out(samples[1:])


@pytest.mark.parametrize("name", ["timestamp", "eventTime", "created_at", "year_no"])
def test_the_name_of_a_time_needs_more_evidence(name):
    each_second = [1_700_000_000 + np.arange(n) for n in SIZES]
    assert is_left_out(each_second)
    assert not is_left_out(each_second, name)
    assert is_left_out([np.arange(n) for n in SIZES], name)


@pytest.mark.parametrize("name", ["paid", "grid", "amount", "heat_index", "number_of_rooms"])
def test_words_that_name_no_identifier(name):
    rng = np.random.default_rng(0)
    assert not is_left_out([rng.permutation(10**6)[:n] for n in SIZES], name)


@pytest.mark.parametrize(("sizes", "n_values"), [((60,), 360), ((80, 80), 2100)])
def test_independent_values_are_hardly_ever_left_out(sizes, n_values):
    """In the worst range for the rule, which is where values just begin to repeat."""
    rng = np.random.default_rng(0)
    draws = ([rng.integers(0, n_values, n) for n in sizes] for _ in range(2000))
    assert sum(map(is_left_out, draws)) <= 4  # below 2 expected, see the docstring of the rule


# --- through every door --------------------------------------------------------------------------


@pytest.fixture
def tables(separated):
    """Return samples whose row labels start again."""
    return [pd.DataFrame(X, columns=["a", "b"]) for X in separated]


def assert_named(estimate, expected, name):
    assert estimate.prior == expected.prior
    assert [c.name for c in estimate.columns if c.is_left_out] == [name]
    for text in (str(estimate), estimate.to_html()):
        assert name in text.replace("&#x27;", "'")


def test_row_numbers_change_no_estimate(tables, tmp_path):
    """Whether pandas wrote them, or the user."""
    expected = estimate_prior(*tables)
    numbered = [t.assign(row_id=np.arange(1, 1 + len(t))) for t in tables]
    assert_named(estimate_prior(*numbered), expected, "row_id")
    frames = [t.assign(n=np.arange(len(t), dtype=np.uint32)) for t in tables]
    assert_named(estimate_prior(*map(pl.from_pandas, frames)), expected, "n")
    arrays = estimate_prior(*(frame.to_numpy() for frame in frames))
    assert_named(arrays, expected, "2")
    paths = [tmp_path / name for name in ("positive", "unlabeled")]
    for table, path in zip(tables, paths, strict=True):
        table.to_csv(path.with_suffix(".csv"))
        table.set_index(np.random.default_rng(0).permutation(len(table))).to_parquet(
            path.with_suffix(".parquet")
        )
    csv = [path.with_suffix(".csv") for path in paths]
    assert_named(estimate_prior(*csv), expected, "column_1")
    assert_named(estimate_prior(*map(pd.read_csv, csv)), expected, "Unnamed: 0")
    stored = [path.with_suffix(".parquet") for path in paths]
    assert_named(estimate_prior(*stored), expected, "__index_level_0__")
    kept = estimate_prior(*numbered, columns=["a", "b", "row_id"])
    assert not any(column.is_left_out for column in kept.columns)
    assert kept.prior < expected.prior / 2  # as row numbers reveal the sample


def test_labels_tell_the_samples_of_one_table(tables):
    """Otherwise, each number is there twice."""
    X = pd.concat(t.assign(n=np.arange(len(t))) for t in tables)
    y = np.repeat([1, 0], [len(t) for t in tables])
    in_random_order = np.random.default_rng(0).permutation(len(X))
    X, y = X.iloc[in_random_order], y[in_random_order]
    model = make_pipeline(TableEncoder(), QUICK).fit(X, y)
    assert list(model[0].kinds_) == ["a", "b"]
    for no_labels in (None, np.arange(len(X)), y[1:], np.array(["a", None] * 300)):
        assert list(TableEncoder().fit(X, no_labels).kinds_) == ["a", "b", "n"]
