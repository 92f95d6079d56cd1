"""DuckDB relations, lazy frames of polars and streams of Arrow batches as samples."""

from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from classprior import (
    AutoPrior,
    DensityRatio,
    Estimation,
    PenalizedL1Prior,
    PUClassifier,
    estimate_prior,
)
from classprior._tables.keys import keys_of_contents
from classprior.engines import fit_blocks, predict_blocks

duckdb = pytest.importorskip("duckdb")

PENL1 = PenalizedL1Prior(n_centers=40, sigmas=[0.5, 1.0], random_state=0)
AUTO = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, n_resamples=20)
QUICK = {"evidence": AUTO, "random_state": 0}
SPOOLED = {"read_options": {"spool": True}}


def _tables():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(120, 2)).round(1), rng.normal(size=(300, 2)).round(1)
    samples[1][90:] += 3.0
    samples[1][50:80] = samples[1][50]  # copies, which must not all be in the same bin
    return [
        pa.table({"x": X[:, 0], "y": X[:, 1], "house": np.arange(len(X)) // 3, "id": range(len(X))})
        for X in samples
    ]


TABLES = _tables()
FEATURES = [table.select(["x", "y"]) for table in TABLES]


class Reads:
    """A stream of Arrow batches whose rows may differ in each pass."""

    def __init__(self, read):
        self.read, self.n_passes = read, 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.n_passes += 1
        return self.read(self.n_passes).to_reader(70).__arrow_c_stream__(requested_schema)


def shuffled(table, number):
    return table.take(np.random.default_rng(number).permutation(table.num_rows))


def in_any_order(table):
    return Reads(partial(shuffled, table))


def relation(table):
    connection = duckdb.connect()
    connection.register("given", table)
    connection.execute("create table stored as select * from given order by hash(x + 7 * y)")
    return connection.sql("select * from stored")


def lazy(table):
    return pl.from_arrow(shuffled(table, 9)).lazy()


@pytest.mark.parametrize("place", [in_any_order, relation, lazy])
def test_rows_without_a_key_are_told_apart_by_their_contents(place):
    fitted = fit_blocks(PENL1, *map(place, FEATURES), block_rows=64)
    keys = [keys_of_contents(table) for table in FEATURES]
    expected = PenalizedL1Prior(**PENL1.get_params())
    expected.fit_samples(*(np.column_stack([t["x"], t["y"]]) for t in FEATURES), key=keys)
    assert_allclose(fitted.objective_, expected.objective_, rtol=1e-9)


def test_one_sample_without_an_order():
    answers = [
        fit_blocks(PENL1, FEATURES[0], place(FEATURES[1])).objective_.copy()
        for place in (in_any_order, relation)
    ]
    assert_allclose(*answers, rtol=1e-9)


def test_a_stream_that_can_be_read_only_once():
    streams = [table.to_reader() for table in FEATURES]
    with pytest.raises(ValueError, match=r"X_positive.*RecordBatchReader.*only once.*'spool'"):
        fit_blocks(PENL1, *streams)
    spooled = fit_blocks(PENL1, *streams, **SPOOLED).objective_.copy()
    expected = fit_blocks(PENL1, *map(in_any_order, FEATURES)).objective_
    assert_allclose(spooled, expected, rtol=1e-9)


def test_a_stream_that_is_empty_in_its_second_pass():
    def once(number):
        return FEATURES[1] if number == 1 else FEATURES[1].slice(0, 0)

    with pytest.raises(ValueError, match=r"X_unlabeled is a Reads.*only once.*'spool'"):
        fit_blocks(PENL1, FEATURES[0], Reads(once))


@pytest.mark.parametrize("what", ["value", "row"])
def test_rows_that_change_between_passes(what):
    connection = duckdb.connect()
    connection.register("given", FEATURES[1])
    connection.execute("create table stored as select * from given")

    def read(number):
        if number == 3 and what == "value":
            connection.execute("update stored set x = x + 1 where y = (select max(y) from stored)")
        elif number == 3:
            connection.execute("insert into stored values (0.0, 0.0)")
        return connection.sql("select * from stored").to_arrow_table()

    stream = Reads(read)
    with pytest.raises(ValueError, match="X_unlabeled changed between two passes"):
        fit_blocks(PENL1, FEATURES[0], stream)
    assert stream.n_passes == 3
    fit_blocks(PENL1, FEATURES[0], Reads(read), **SPOOLED)


def test_groups_in_rows_that_change_their_order():
    samples = [table.select(["x", "y", "house"]) for table in TABLES]
    with pytest.raises(ValueError, match=r"X_positive.*different orders.*ORDER BY.*'spool'"):
        fit_blocks(PENL1, *map(in_any_order, samples), groups="house")
    spooled = fit_blocks(PENL1, *map(in_any_order, samples), groups="house", **SPOOLED)
    found = spooled.objective_.copy()
    expected = fit_blocks(PENL1, *map(relation, samples), groups="house").objective_
    assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["weights", "groups", "key"])
def test_values_for_rows_without_an_order(name):
    values = [np.arange(1, table.num_rows + 1) for table in FEATURES]
    with pytest.raises(TypeError, match=f"name of a column as {name}.*DuckDB relation.*no order"):
        fit_blocks(PENL1, *map(relation, FEATURES), **{name: values})


def test_a_checkpoint_of_a_query(tmp_path):
    with pytest.raises(ValueError, match=r"checkpoint.*X_positive, a DuckDB relation"):
        fit_blocks(PENL1, *map(relation, FEATURES), checkpoint=tmp_path / "sums.npz")


def test_a_query_that_fails():
    connection = duckdb.connect()
    failing = connection.sql("select 1.0 as x, error('too old') as y")
    with pytest.raises(ValueError, match=r"X_unlabeled, a DuckDB relation.*too old"):
        fit_blocks(PENL1, FEATURES[0], failing)


def test_columns_with_the_names_of_attributes():
    columns = "x as iloc, y as shape, y as collect_batches, y as map_blocks"
    connection = duckdb.connect()
    samples = [connection.from_arrow(table).project(columns) for table in FEATURES]
    assert fit_blocks(PENL1, *samples).n_features_in_ == 4


def test_names_that_repeat():
    connection = duckdb.connect()
    with pytest.raises(ValueError, match="Duplicate column name 'x' in X_unlabeled"):
        fit_blocks(PENL1, FEATURES[0], connection.sql("select 1.0 as x, 2.0 as x"))


@pytest.mark.parametrize(("place", "load"), [(relation, "df"), (lazy, "collect")])
def test_queries_that_an_estimator_in_memory_refuses(place, load):
    with pytest.raises(TypeError, match=rf"lazy.*{load}\(\).*fit_blocks"):
        PENL1.fit(place(FEATURES[0]), np.arange(120) % 2)


def test_the_connection_is_free_after_an_estimate():
    connection = duckdb.connect()
    for name, table in zip(("known", "others"), TABLES, strict=True):
        connection.register(f"given_{name}", table)
        connection.execute(f"create table {name} as select * from given_{name}")
    samples = [connection.sql(f"select x, y, id from {name}") for name in ("known", "others")]
    answer = estimate_prior(*samples, key="id", **QUICK)
    assert connection.sql("select count(*) from others").fetchall() == [(300,)]
    frames = [table.select(["x", "y", "id"]) for table in TABLES]
    expected = estimate_prior(*frames, key="id", **QUICK)
    assert_allclose(answer.prior, expected.prior, rtol=1e-9)


def test_probabilities_need_an_order():
    with pytest.raises(ValueError, match=r"X_unlabeled.*different orders"):
        Estimation.of(*map(in_any_order, FEATURES), **QUICK).probabilities()
    found = Estimation.of(*map(relation, FEATURES), **QUICK).probabilities()
    assert len(found) == 300


def test_predictions_for_a_query(tmp_path):
    model = PUClassifier(prior=0.3, ratio=DensityRatio(n_centers=20), random_state=0)
    fit_blocks(model, *FEATURES)
    query = relation(FEATURES[1])
    assert predict_blocks(model, query, tmp_path / "found.parquet", block_rows=64) == 300
    found = pq.read_table(tmp_path / "found.parquet")["probability"].to_numpy()
    assert_allclose(found, model.predict_proba(query.df())[:, 1], rtol=1e-9)
