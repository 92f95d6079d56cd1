"""Whatever holds the rows, the same numbers come out of it, in order and in blocks."""

from dataclasses import replace

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

from classprior.engines._sources import as_blocks

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


def rows_of(blocks, **options):
    reader = replace(blocks.reader, **options)
    parts = [
        (start, rows) for part in blocks.map(lambda b: list(reader(b))) for start, rows in part
    ]
    assert_array_equal(
        [start for start, _ in parts], np.cumsum([0] + [len(r) for _, r in parts])[:-1]
    )
    return np.vstack([rows for _, rows in parts])


@pytest.mark.parametrize("kind", SOURCES)
def test_the_same_rows_come_out(kind, tmp_path, small_blocks):
    blocks = as_blocks(SOURCES[kind](tmp_path), "X", n_jobs=2)
    assert blocks.n_rows == 1000
    assert blocks.n_features == 3
    assert len(blocks.sizes) > 1
    for _ in range(2):
        assert_array_equal(rows_of(blocks), X)
    is_named = kind not in ("array", "memory map", "npy", "list of arrays", "iterable")
    assert blocks.columns == (tuple(COLUMNS) if is_named else None)


@pytest.mark.parametrize("kind", ["csr_array", "coo_matrix", "csc_array", "blocks"])
def test_sparse_rows_stay_sparse(small_blocks, kind):
    source = [sparse.coo_matrix(X[:300]), sparse.coo_matrix(X[300:])]
    blocks = as_blocks(source if kind == "blocks" else getattr(sparse, kind)(X), "X")
    parts = [rows for part in blocks.map(lambda b: list(blocks.reader(b))) for _, rows in part]
    assert_array_equal(sparse.vstack(parts).toarray(), X)


@pytest.mark.parametrize(
    "kind", [parquet, lambda path, table: table, lambda path, table: ds.dataset(table)]
)
def test_only_the_wanted_columns_are_read(kind, tmp_path):
    """The text in the fourth column would be refused."""
    blocks = as_blocks(kind(tmp_path, WIDE), "X", columns=["c", "a"])
    assert_array_equal(rows_of(blocks), X[:, [2, 0]])


def test_whole_numbers_at_the_top_of_a_csv_do_not_fix_its_type(tmp_path):
    lines = ["a,b,c"] + ["1,2,"] * 3 + ["1.5,2.5,3.5"] * 200_000  # beyond the first guess
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    blocks = as_blocks(tmp_path / "rows.csv", "X")
    assert blocks.n_rows == 200_003
    with pytest.raises(ValueError, match="NaN in column 'c'"):
        rows_of(blocks)


def test_blocks_that_change_are_noticed():
    grows = [X[:300], X[300:]]
    blocks = as_blocks(grows, "X")
    assert blocks.n_rows == 1000
    grows.append(X)
    with pytest.raises(ValueError, match="same whenever they are gone through"):
        list(blocks)
    del grows[1:]
    with pytest.raises(ValueError, match="got 300 rows in all"):
        list(blocks)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((X for _ in range(3)), "a generator, which is used up after once"),
        (iter([X]), "a list_iterator, which is used up"),
        ([], "got nothing as the first"),
        ([[1.0, 2.0], [3.0, 4.0]], "got a list as the first"),
        ({"a": X}, "got a dict"),
        (3, "got a int"),
        (pl.LazyFrame({"a": [1.0]}), "got a lazy LazyFrame. Write it to parquet"),
        ("nowhere.parquet", "nowhere.parquet: no such file"),
    ],
)
def test_what_is_not_rows_is_refused(source, message):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=message):
        as_blocks(source, "X_unlabeled")


def test_folders_named_after_values_are_a_column(tmp_path):
    ds.write_dataset(
        TABLE.append_column("y", pa.array(np.arange(1000) // 400)),
        tmp_path,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("y", pa.int64())]), flavor="hive"),
    )
    blocks = as_blocks(ds.dataset(tmp_path, partitioning="hive"), "X")
    assert blocks.columns == ("a", "b", "c", "y")
    assert_array_equal(rows_of(blocks), np.column_stack([X, np.arange(1000) // 400]))
    blocks = as_blocks(ds.dataset(tmp_path, partitioning="hive"), "X", columns=["y", "b"])
    assert_array_equal(rows_of(blocks), np.column_stack([np.arange(1000) // 400, X[:, 1]]))


@pytest.mark.parametrize("hidden", ["_temporary", ".ipynb_checkpoints", "_delta_log/deeper"])
def test_hidden_folders_hold_no_data(hidden, tmp_path):
    parquet(tmp_path)
    (tmp_path / hidden).mkdir(parents=True)
    pq.write_table(TABLE, tmp_path / hidden / "part-0.parquet")
    assert as_blocks(tmp_path, "X").n_rows == 1000


def test_files_of_several_kinds_are_refused(tmp_path):
    parquet(tmp_path)
    csv(tmp_path)
    with pytest.raises(ValueError, match=r"Expected files of one kind, .* got 'csv', 'parquet'"):
        as_blocks(tmp_path, "X_unlabeled")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="got an empty folder"):
        as_blocks(tmp_path / "empty", "X_unlabeled")


def test_unknown_columns_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"got none named 'z'\. There are 'a', 'b', 'c'"):
        as_blocks(parquet(tmp_path), "X", columns=["a", "z"])
    with pytest.raises(ValueError, match="an array without names"):
        as_blocks(X, "X", columns=["a"])


def test_a_frame_is_what_a_transformer_gets():
    class Doubled:
        def transform(self, X):
            assert isinstance(X, pd.DataFrame)
            return 2.0 * X.to_numpy()

    assert_array_equal(rows_of(as_blocks(TABLE, "X"), transform=Doubled()), 2.0 * X)
