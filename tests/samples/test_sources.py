"""Whatever holds the rows, the same numbers come out of it, in order and in blocks."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from classprior import PenalizedL1Prior, estimate_prior
from classprior._core.basis import stacked
from classprior._samples.inputs import as_source
from classprior._samples.opening import open_samples
from classprior._samples.sample import Reader
from classprior._samples.units import RowOptions

COLUMNS = ["a", "b", "c"]
X = np.round(np.random.default_rng(0).normal(size=(1000, 3)), 3)
TABLE = pa.table(dict(zip(COLUMNS, X.T, strict=True)))
WIDE = TABLE.append_column("d", pa.array(["text"] * 1000))


class Again:
    """Blocks that can be gone through as often as one likes."""

    def __iter__(self):
        return (X[start : start + 170] for start in range(0, 1000, 170))


def memory_map(path):
    np.save(path / "rows.npy", X)
    return np.load(path / "rows.npy", mmap_mode="r")


def npy(path):
    memory_map(path)
    return path / "rows.npy"


def parquet(path, table=TABLE):
    for number in range(2):
        part = table.slice(500 * number, 500)
        pq.write_table(part, path / f"part-{number}.parquet", row_group_size=130)
    (path / "_SUCCESS").touch()
    return path


def feather(path):
    pa.feather.write_feather(TABLE, path / "rows.feather", chunksize=70)
    return str(path / "rows.feather")


def csv(path):
    for number in range(2):
        pa.csv.write_csv(TABLE.slice(500 * number, 500), path / f"{number}.csv")
    return [path / "0.csv", path / "1.csv"]


SOURCES = {
    "array": lambda path: X,
    "memory map": memory_map,
    "npy": npy,
    "pandas": lambda path: TABLE.to_pandas(),
    "polars": lambda path: pl.from_arrow(TABLE),
    "pyarrow": lambda path: TABLE,
    "dataset in memory": lambda path: ds.dataset(TABLE),
    "parquet": parquet,
    "dataset": lambda path: ds.dataset(parquet(path), format="parquet"),
    "feather": feather,
    "csv": csv,
    "list of arrays": lambda path: [X[:400], X[400:400], X[400:]],
    "list of frames": lambda path: [TABLE[:300].to_pandas(), TABLE[300:].to_pandas()],
    "iterable": lambda path: Again(),
}


def rows_of(source, columns=None, **options):
    """Read all rows as an estimator does, and check their numbers."""
    columns = source.columns if columns is None else columns
    width = source.n_features if columns is None else len(columns)
    reader = Reader("X", columns, width, **options)
    parts = [
        (start, rows) for part in source.map(lambda b: list(reader(b))) for start, rows, _ in part
    ]
    assert_array_equal(
        [start for start, _ in parts], np.cumsum([0] + [r.shape[0] for _, r in parts])[:-1]
    )
    return stacked(*(rows for _, rows in parts))


@pytest.mark.parametrize("kind", SOURCES)
def test_the_same_rows_come_out(kind, tmp_path):
    blocks = as_source(SOURCES[kind](tmp_path), "X", n_jobs=2, block_rows=200)
    assert blocks.n_rows == 1000
    assert blocks.n_features == 3
    assert len(blocks.sizes) > 1
    for _ in range(2):
        assert_array_equal(rows_of(blocks), X)
    is_named = kind not in ("array", "memory map", "npy", "list of arrays", "iterable")
    assert blocks.columns == (tuple(COLUMNS) if is_named else None)


@pytest.mark.parametrize("kind", ["csr_array", "coo_matrix", "csc_array", "blocks"])
def test_sparse_rows_stay_sparse(kind):
    blocks = [sparse.coo_matrix(X[:300]), sparse.coo_matrix(X[300:])]
    rows = blocks if kind == "blocks" else getattr(sparse, kind)(X)
    source = as_source(rows, "X", block_rows=200)
    assert source.is_sparse
    found = rows_of(source, as_sparse=source.is_sparse)
    assert sparse.issparse(found)
    assert_array_equal(found.toarray(), X)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_dense_and_sparse_blocks_become_of_one_kind(as_sparse):
    source = as_source([X[:300], sparse.coo_array(X[300:400]), X[400:]], "X")
    found = rows_of(source, as_sparse=as_sparse)
    assert sparse.issparse(found) == as_sparse
    assert_array_equal(found.toarray() if as_sparse else found, X)


def test_large_blocks_are_read_in_parts():
    """So that what is made of them, such as a row for every category, stays small."""
    many = np.zeros((100_000, 1))
    for rows in ([many], as_source(many, "X", block_rows=100_000)):
        source = as_source(rows, "X")
        assert source.sizes == [100_000]
        (parts,) = source.map(lambda block: [table.shape[0] for table in block.tables()])
        assert sum(parts) == 100_000
        assert max(parts) <= 2**15


@pytest.mark.parametrize(
    "kind", [parquet, lambda path, table: table, lambda path, table: ds.dataset(table)]
)
def test_only_the_wanted_columns_are_read(kind, tmp_path):
    """The text in the fourth column would be refused."""
    source = as_source(kind(tmp_path, WIDE), "X")
    assert_array_equal(rows_of(source, ("c", "a")), X[:, [2, 0]])


def test_whole_numbers_at_the_top_of_a_csv_do_not_fix_its_type(tmp_path):
    lines = ["a,b,c"] + ["1,2,"] * 3 + ["1.5,2.5,3.5"] * 200_000  # beyond the first guess
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    source = as_source(tmp_path / "rows.csv", "X")
    assert source.n_rows == 200_003
    with pytest.raises(ValueError, match="NaN in column 'c'"):
        rows_of(source)


def test_blocks_that_change_are_noticed():
    grows = [X[:300], X[300:]]
    source = as_source(grows, "X")
    assert source.n_rows == 1000
    grows.append(X)
    with pytest.raises(ValueError, match="1,000 rows in block 2"):
        list(source)
    del grows[1:]
    with pytest.raises(ValueError, match="300 rows in all"):
        list(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((X for _ in range(3)), "X_unlabeled is a generator"),
        (iter([X]), "X_unlabeled is a list_iterator"),
        ([], r"X_unlabeled.*\b0 values"),
        ([1.0, 2.0], r"X_unlabeled.*\b2 values"),
        (X[0], r"X_unlabeled.*\b3 values"),
        (X[None], r"X_unlabeled.* \(1, 1000, 3\)"),
        ([[[1.0]]], r"X_unlabeled.* \(1, 1, 1\)"),
        ([X, [1.0]], "block 1 of X_unlabeled.* list"),
        ({"a": X}, "X_unlabeled.* dict"),
        (3, "X_unlabeled"),
        (None, "X_unlabeled.* None"),
        ("nowhere.parquet", "nowhere.parquet"),
    ],
)
def test_what_is_not_rows_is_refused(source, message):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=message):
        list(as_source(source, "X_unlabeled"))


def test_nested_lists_are_rows():
    source = as_source([[1.0, 2.0], [3.0, 4.0]], "X")
    assert_array_equal(rows_of(source), [[1.0, 2.0], [3.0, 4.0]])


def test_folders_named_after_values_are_a_column(tmp_path):
    ds.write_dataset(
        TABLE.append_column("y", pa.array(np.arange(1000) // 400)),
        tmp_path,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("y", pa.int64())]), flavor="hive"),
    )
    source = as_source(ds.dataset(tmp_path, partitioning="hive"), "X")
    assert source.columns == ("a", "b", "c", "y")
    assert_array_equal(rows_of(source), np.column_stack([X, np.arange(1000) // 400]))
    expected = np.column_stack([np.arange(1000) // 400, X[:, 1]])
    assert_array_equal(rows_of(source, ("y", "b")), expected)


@pytest.mark.parametrize("hidden", ["_temporary", ".ipynb_checkpoints", "_delta_log/deeper"])
def test_hidden_folders_hold_no_data(hidden, tmp_path):
    parquet(tmp_path)
    (tmp_path / hidden).mkdir(parents=True)
    pq.write_table(TABLE, tmp_path / hidden / "part-0.parquet")
    assert as_source(tmp_path, "X").n_rows == 1000


def test_files_of_several_kinds_are_refused(tmp_path):
    parquet(tmp_path)
    csv(tmp_path)
    with pytest.raises(ValueError, match="csv and parquet"):
        as_source(tmp_path, "X_unlabeled")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty\b.* \.parquet"):
        as_source(tmp_path / "empty", "X_unlabeled")


@pytest.mark.parametrize("chosen", [["b", "a"], ["a", "b"]])
def test_columns_are_taken_in_the_order_of_the_unlabeled_rows(chosen, tmp_path):
    """Whatever the order in which they are named, or stand in the other sample."""
    known = TABLE.select(["c", "b", "a"]).slice(0, 100)
    samples = open_samples(known, parquet(tmp_path), seed=0, columns=chosen)
    assert samples.columns == ("a", "b")
    positive, unlabeled = samples.rows
    assert_array_equal(positive, X[:100, :2])
    assert_array_equal(unlabeled, X[:, :2])


def test_unknown_columns_are_refused(tmp_path):
    rows = parquet(tmp_path)
    with pytest.raises(ValueError, match=r"'z'.*X_positive.* 'a', 'b', 'c'"):
        open_samples(rows, rows, seed=0, columns=["a", "z"])
    with pytest.raises(ValueError, match=r"X_unlabeled .*'a'"):
        open_samples(rows, X, seed=0, columns=["a"])


def test_a_frame_is_what_a_transformer_gets():
    class Doubled:
        def transform(self, X):
            assert isinstance(X, pd.DataFrame)
            return 2.0 * X.to_numpy()

    source = as_source(TABLE, "X")
    assert_array_equal(rows_of(source, transform=Doubled(), as_frames=True), 2.0 * X)
    # An array has the names of the other sample's columns.
    found = rows_of(as_source(X, "X"), tuple(COLUMNS), transform=Doubled(), as_frames=True)
    assert_array_equal(found, 2.0 * X)


def test_columns_that_are_called_like_methods():
    """Columns of a data frame are attributes, too."""
    names = ["filename", "tables", "map_blocks", "get_fragments", "select", "to_pandas", "slice"]
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame(rng.normal(size=(n, 7)), columns=names) for n in (40, 90)]
    plain = [frame.to_numpy() for frame in frames]
    got, expected = (
        PenalizedL1Prior(n_centers=20, random_state=0).fit_samples(*samples).prior_
        for samples in (frames, plain)
    )
    assert got == expected
    assert estimate_prior(*frames, method="penl1", n_resamples=2, random_state=0).n_unlabeled == 90


def test_every_needs_segments():
    with pytest.raises(ValueError, match="every='month'"):
        open_samples(TABLE, TABLE, RowOptions(every="month"), seed=0)


def test_the_first_missing_group_is_named():
    groups = [np.array([1.0, np.nan, 2.0, np.nan]), np.ones(4)]
    with pytest.raises(ValueError, match="row 1 of the known positives"):
        open_samples(np.ones((4, 2)), np.ones((4, 2)), RowOptions(groups=groups), seed=0)
