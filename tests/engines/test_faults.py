"""What goes wrong is named: the file, the row group or block, the row, the column."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from classprior import PenalizedL1Prior
from classprior.engines import fit_blocks

ESTIMATOR = PenalizedL1Prior(n_centers=20, random_state=0)


def written(X, folder, names=("a", "b", "c")):
    for number, part in enumerate(np.array_split(X, 3)):
        table = pa.table(dict(zip(names, part.T, strict=True)))
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=100)
    return folder


def failing(samples, source, *parts, error=ValueError):
    with pytest.raises(error) as caught:
        fit_blocks(ESTIMATOR, samples[0], source)
    for part in parts:
        assert re.search(part, str(caught.value)), str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_a_bad_number(samples, tmp_path, value):
    X = samples[1].copy()
    X[1234, 1] = value
    where = r"column 'b' of X_unlabeled, .*part-2.parquet, row group 2 \(first in row 1234\)"
    failing(samples, written(X, tmp_path), where)
    failing(samples, [X[:700], X[700:]], r"column 1 of X_unlabeled, block 1 \(first in row 1234\)")


def test_a_gap(samples, tmp_path):
    values = samples[1].T.tolist()
    values[2][777] = None
    pq.write_table(pa.table(dict(zip("abc", values, strict=True))), tmp_path / "rows.parquet")
    failing(samples, tmp_path, "NaN in column 'c' .*rows.parquet, row group 0 .*row 777")


def test_text(samples, tmp_path):
    table = pa.table({"a": ["x"] * 9, "b": [1.0] * 9, "c": [1.0] * 9})
    pq.write_table(table, tmp_path / "rows.parquet")
    failing(samples, tmp_path, "Expected numbers in column 'a' of .*rows.parquet, row group 0")


def test_text_far_down_a_csv(samples, tmp_path):
    lines = ["a,b,c"] + ["1,2,3"] * 300_000 + ["1,oops,3"]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    failing(samples, tmp_path / "rows.csv", r"Expected to read .*rows.csv after row \d", "oops")


def test_a_corrupt_row_group(samples, tmp_path):
    file = written(samples[1], tmp_path) / "part-1.parquet"
    group = pq.ParquetFile(file).metadata.row_group(3)
    start = group.column(0).dictionary_page_offset or group.column(0).data_page_offset
    content = bytearray(file.read_bytes())
    content[start : start + 40] = bytes(40)
    file.write_bytes(content)
    failing(samples, tmp_path, "Expected to read .*part-1.parquet, row group 3 of X_unlabeled")


def test_a_file_that_is_no_parquet(samples, tmp_path):
    (written(samples[1], tmp_path) / "part-1.parquet").write_bytes(b"PAR1 or not")
    failing(samples, tmp_path, "Expected to read .*part-1.parquet of X_unlabeled, got an error")


def test_a_file_that_vanishes(samples, tmp_path):
    """After the first pass has found all of them."""
    import pyarrow.dataset

    dataset = pyarrow.dataset.dataset(written(samples[1], tmp_path), format="parquet")
    (tmp_path / "part-2.parquet").unlink()
    failing(
        samples, dataset, "part-2.parquet of X_unlabeled, but the file is", error=FileNotFoundError
    )
    dataset = pyarrow.dataset.dataset(written(samples[1], tmp_path), format="parquet")
    removed = []

    def map_then_remove(function, blocks):
        for block in blocks:
            if block.where.endswith("part-1.parquet, row group 3") and not removed:
                (tmp_path / "part-1.parquet").unlink()
                removed.append(block)
            yield function(block)

    with pytest.raises(
        FileNotFoundError, match=r"part-1\.parquet, row group 3 of X_unlabeled, but"
    ):
        fit_blocks(ESTIMATOR, samples[0], dataset, map=map_then_remove)


def test_other_columns(samples, tmp_path):
    written(samples[1], tmp_path)
    pq.write_table(pa.table({"a": [1.0], "x": [1.0], "c": [1.0]}), tmp_path / "part-9.parquet")
    failing(samples, tmp_path, "columns 'a', 'b', 'c' in .*part-9.parquet .* got 'a', 'x', 'c'")
    pq.write_table(
        pa.table({"a": [1.0], "b": [1.0], "c": [1.0], "d": [1.0]}), tmp_path / "part-9.parquet"
    )
    failing(samples, tmp_path, "part-9.parquet .* got 'a', 'b', 'c', 'd'")
    failing(samples, [samples[1], samples[1][:, :2]], "Expected 3 columns in block 1 .* got 2")
    frames = [pa.table({"a": [1.0], "b": [1.0], "c": [1.0]}).to_pandas() for _ in range(2)]
    failing(
        samples, [frames[0], frames[1][["a", "b"]]], "in block 1 of X_unlabeled, .* got 'a', 'b'"
    )


def test_rows_that_come_and_go(samples, tmp_path):
    class Shrinking:
        def __init__(self):
            self.times = 0

        def __iter__(self):
            self.times += 1
            yield samples[1][: 1500 - self.times]

    failing(samples, Shrinking(), "Expected the blocks of X_unlabeled to be the same")


def test_positives_are_named_too(samples):
    X = samples[0].copy()
    X[33, 0] = np.nan
    with pytest.raises(
        ValueError, match=r"column 0 of X_positive, rows 0 to 599 \(first in row 33\)"
    ):
        fit_blocks(ESTIMATOR, X, samples[1])
