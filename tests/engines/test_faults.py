"""What goes wrong is named: the file, the row group or block, the row, the column."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from classprior import PenalizedL1Prior
from classprior.engines import fit_blocks

ESTIMATOR = PenalizedL1Prior(n_centers=20, random_state=0)


def written(X, folder, names=("a", "b", "c")):
    for number, part in enumerate(np.array_split(X, 3)):
        table = pa.table(dict(zip(names, part.T, strict=True)))
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=100)
    return folder


def failing(samples, source, *facts, error=ValueError, **how):
    with pytest.raises(error) as caught:
        fit_blocks(clone(ESTIMATOR), samples[0], source, **how)
    for fact in facts:
        assert fact in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_a_bad_number(samples, tmp_path, value):
    X = samples[1].copy()
    X[1234, 1] = value
    place = "part-2.parquet', row group 2"
    failing(samples, written(X, tmp_path), "column 'b' of X_unlabeled", place, "row 234)")
    blocks = [X[:700], X[700:700], X[700:]]
    failing(samples, blocks, "column 1 of X_unlabeled, block 2", "row 534)")


def test_a_gap(samples, tmp_path):
    values = samples[1].T.tolist()
    values[2][777] = None
    pq.write_table(pa.table(dict(zip("abc", values, strict=True))), tmp_path / "rows.parquet")
    failing(samples, tmp_path, "NaN in column 'c'", "rows.parquet', row group 0", "row 777)")


def test_text(samples, tmp_path):
    table = pa.table({"a": ["1", None] + ["x"] * 7, "b": [1.0] * 9, "c": [1.0] * 9})
    pq.write_table(table, tmp_path / "rows.parquet")
    failing(samples, tmp_path, "column 'a'", "rows.parquet', row group 0", "row 2)")


def test_text_far_down_a_csv(samples, tmp_path):
    lines = ["a,b,c"] + ["1,2,3"] * 300_000 + ["1,oops,3"]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    failing(
        samples,
        tmp_path / "rows.csv",
        "column 'b' of X_unlabeled",
        "rows.csv",
        "'oops'",
        "row 300002",
    )


def test_a_corrupt_row_group(samples, tmp_path):
    file = written(samples[1], tmp_path) / "part-1.parquet"
    group = pq.ParquetFile(file).metadata.row_group(3)
    start = group.column(0).dictionary_page_offset or group.column(0).data_page_offset
    content = bytearray(file.read_bytes())
    content[start : start + 40] = bytes(40)
    file.write_bytes(content)
    failing(samples, tmp_path, "part-1.parquet', row group 3 of X_unlabeled")


def test_a_file_that_is_no_parquet(samples, tmp_path):
    (written(samples[1], tmp_path) / "part-1.parquet").write_bytes(b"PAR1 or not")
    failing(samples, tmp_path, "part-1.parquet", "X_unlabeled")


def test_a_file_that_vanishes(samples, tmp_path):
    """Before the first pass, and after it has found all of them."""
    dataset = pyarrow.dataset.dataset(written(samples[1], tmp_path), format="parquet")
    (tmp_path / "part-2.parquet").unlink()
    failing(samples, dataset, "part-2.parquet of X_unlabeled", error=FileNotFoundError)
    dataset = pyarrow.dataset.dataset(written(samples[1], tmp_path), format="parquet")
    where = "part-1.parquet, row group 3"

    def map_then_remove(function, blocks):
        for block in blocks:
            if block.where.endswith(where):
                (tmp_path / "part-1.parquet").unlink(missing_ok=True)
            yield function(block)

    facts = f"{where} of X_unlabeled"
    failing(samples, dataset, facts, error=FileNotFoundError, map=map_then_remove)


def test_other_columns(samples, tmp_path):
    written(samples[1], tmp_path)
    pq.write_table(pa.table({"a": [1.0], "x": [1.0], "c": [1.0]}), tmp_path / "part-9.parquet")
    failing(samples, tmp_path, "part-9.parquet", "'x'", "'b'")
    pq.write_table(
        pa.table({"a": [1.0], "b": [1.0], "c": [1.0], "d": [1.0]}), tmp_path / "part-9.parquet"
    )
    failing(samples, tmp_path, "part-9.parquet", "'d'")
    blocks = [samples[1], samples[1][:, :2]]
    failing(samples, blocks, "3 columns in block 1 of X_unlabeled", "2")
    frame = pd.DataFrame({"a": [1.0], "b": [1.0], "c": [1.0]})
    failing(samples, [frame, frame[["a", "b"]]], "block 1 of X_unlabeled", "'c'")
    failing(samples, [frame, frame.to_numpy()], "block", "X_unlabeled", "DataFrame", "ndarray")
    failing(samples, [frame.to_numpy(), frame], "block", "X_unlabeled", "DataFrame", "ndarray")


def test_blocks_that_are_not_tables(samples):
    blocks = [samples[1], samples[1].tolist()]
    failing(samples, blocks, "block 1 of X_unlabeled", "list", error=TypeError)
    failing(samples, np.zeros((5, 4, 3)), "X_unlabeled", "(5, 4, 3)")


def test_rows_that_come_and_go(samples):
    class Shrinking:
        def __init__(self):
            self.times = 0

        def __iter__(self):
            self.times += 1
            yield samples[1][: 1500 - self.times]

    failing(samples, Shrinking(), "X_unlabeled", "1,497 rows in block 0")


def test_positives_are_named_too(samples):
    X = samples[0].copy()
    X[33, 0] = np.nan
    with pytest.raises(ValueError, match=r"column 0 of X_positive, rows 0 to 599 .*row 33\)"):
        fit_blocks(clone(ESTIMATOR), X, samples[1])
