"""Files of one sample with different types: no value changes, or the file is named."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, TableEncoder
from classprior._samples.inputs import as_source
from classprior._tables.tables import stacked_tables
from classprior.cli import main

FAR = dt.datetime(9999, 12, 31, 12)
NEAR = dt.datetime(2020, 1, 1)
EXACT = 2**53 + 1  # not a float


def times(values, unit, zone=None):
    return pa.array(values, pa.timestamp(unit, zone))


WRITERS = {
    "parquet": pq.write_table,
    "feather": lambda table, path: pyarrow.feather.write_feather(table, path, compression="lz4"),
}


def written(tmp_path, kind, *columns):
    paths = [tmp_path / f"part-{number}.{kind}" for number in range(len(columns))]
    for path, column in zip(paths, columns, strict=True):
        WRITERS[kind](pa.table({"x": column, "n": range(len(column))}), path)
    return paths


def read(source):
    return pa.concat_tables(t for block in as_source(source, "X") for t in block.tables())["x"]


DOORS = {
    "folder": lambda paths: paths[0].parent,
    "list": lambda paths: paths,
    "dataset": lambda paths: pa.dataset.dataset(paths),
}
CASES = {
    "far dates": ([times([FAR], "us"), times([NEAR], "ns")], "timestamp[us]"),
    "far dates in a zone": ([times([NEAR], "ns", "UTC"), times([FAR], "ms", "UTC")], None),
    "fine dates": ([times([1], "ns"), times([NEAR], "us")], "timestamp[ns]"),
    "durations": (
        [pa.array([1000], pa.duration("ns")), pa.array([2**60], pa.duration("us"))],
        None,
    ),
    "small integers": ([pa.array([-1]), pa.array([2**63 - 1], pa.uint64())], "int64"),
    "large integers": ([pa.array([3]), pa.array([2**64 - 1], pa.uint64())], "uint64"),
    "both": ([pa.array([-1]), pa.array([2**64 - 1], pa.uint64())], "decimal128(20, 0)"),
    "floats": ([pa.array([2**53]), pa.array([0.5])], "double"),
    "floats of half the size": ([pa.array([2**24 + 1]), pa.array([0.5], pa.float32())], "double"),
    "whole floats": ([pa.array([EXACT]), pa.array([1.0, None])], "int64"),
    "decimals": ([pa.array([Decimal("149.17")]), pa.array([0.5], pa.float32())], "double"),
    "decimals and integers": ([pa.array([Decimal("1.50")]), pa.array([2**62])], None),
    "bytes": ([pa.array(["é", "b"]), pa.array([b"b", None])], "string"),
    "bytes of one length": ([pa.array([b"ab"], pa.binary(2)), pa.array(["b"])], "string"),
    "codes of bytes": ([pa.array([b"ab"]).dictionary_encode(), pa.array(["b"])], "string"),
    "large text": ([pa.array([b"ab"]), pa.array(["b"], pa.large_string())], "large_string"),
    "nothing": ([pa.nulls(2), times([FAR], "us")], "timestamp[us]"),
}


if hasattr(pa, "string_view"):
    CASES["views"] = ([pa.array(["b"], pa.string_view()), pa.array([b"ab"])], "large_string")


def same(found, columns):
    """Compare values one by one, each in the type that it was written with."""
    start = 0
    for column in columns:
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        part = found.slice(start, len(plain))
        if plain.type == pa.null():
            assert part.null_count == len(part)
        elif pa.types.is_decimal(plain.type):  # floats with the same text
            assert [float(v) for v in part.to_pylist()] == [float(v) for v in plain.to_pylist()]
        else:
            assert part.cast(plain.type).combine_chunks().equals(plain)
        start += len(plain)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("order", [1, -1])
def test_no_value_changes(tmp_path, door, case, order):
    columns, kind = CASES[case]
    columns = columns[::order]
    found = read(DOORS[door](written(tmp_path, "parquet", *columns)))
    same(found, columns)
    assert str(found.type) == (kind or str(found.type))


@pytest.mark.parametrize("case", CASES)
def test_no_value_of_arrow_files_changes(tmp_path, case):
    columns, _ = CASES[case]
    same(read(written(tmp_path, "feather", *columns)), columns)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("columns", "file", "fact"),
    [
        ([times([1], "ns"), times([NEAR, FAR], "us")], 1, r"9999-12-31 12:00.* in row 1\b"),
        ([pa.array([EXACT]), pa.array([1.0, 0.5])], 1, r"0\.5 in row 1\b"),
        ([pa.array([0.5]), pa.array([0, EXACT])], 1, rf"{EXACT} in row 1\b"),
        ([pa.array([b"ab", b"K\xf6ln"]), pa.array(["ab"])], 0, r"b'K\\xf6ln' in row 1\b"),
        ([pa.array([Decimal("12345678901234567890.12")]), pa.array([0.5])], 0, r"\.12 in row 0\b"),
        ([pa.array([1]), pa.array(["a"])], 1, "string"),
    ],
)
def test_what_no_type_can_hold_is_named(tmp_path, door, columns, file, fact):
    paths = written(tmp_path, "parquet", *columns)
    with pytest.raises(ValueError, match=fact) as caught:
        read(DOORS[door](paths))
    assert "'x'" in str(caught.value)
    assert paths[file].name in str(caught.value)


def test_dates_of_arrow_datasets_are_refused_by_file(tmp_path):
    paths = written(tmp_path, "feather", times([1], "ns"), times([FAR], "us"))
    with pytest.raises(ValueError, match=r"part-1\.feather"):
        read(pa.dataset.dataset(paths, format="feather"))


def old_dates(tmp_path, *values, unit="us"):
    path = tmp_path / "old.parquet"
    table = pa.table({"x": times(list(values), unit)})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    return path


@pytest.mark.parametrize("door", ["folder", "list", "dataset"])
def test_dates_as_old_writers_store_them(tmp_path, door):
    path = old_dates(tmp_path, FAR, None, NEAR)
    assert read(DOORS[door]([path])).to_pylist() == [FAR, None, NEAR]
    path = old_dates(tmp_path, 1, 2, unit="ns")
    assert read(DOORS[door]([path])).cast(pa.int64()).to_pylist() == [1, 2]


def test_old_dates_that_no_type_can_hold(tmp_path):
    path = old_dates(tmp_path, FAR, NEAR)
    far = pq.read_table(path, coerce_int96_timestamp_unit="us")
    pq.write_table(
        pa.table({"x": far["x"], "y": times([1, 2], "ns")}),
        path,
        use_deprecated_int96_timestamps=True,
    )
    with pytest.raises(ValueError, match=r"old\.parquet.*'x'.*'y'"):
        read(path)


# --- CSV files -----------------------------------------------------------------------------------


def csv_files(tmp_path, *texts):
    for number, values in enumerate(texts):
        lines = "".join(f"{value},{n}\n" for n, value in enumerate(values))
        (tmp_path / f"part-{number}.csv").write_text("x,n\n" + lines)
    return tmp_path


def test_far_dates_beside_fractions_of_seconds_in_csv(tmp_path):
    part = "2020-01-01 00:00:00.5"
    csv_files(tmp_path, ["9999-12-31 12:00:00"], [part])
    expected = [FAR, dt.datetime(2020, 1, 1, 0, 0, 0, 500_000)]
    assert read(tmp_path).to_pylist() == expected
    (tmp_path / "one.csv").write_text(f"x,n\n9999-12-31 12:00:00,1\n{part},2\n")
    assert read(tmp_path / "one.csv").to_pylist() == expected


def test_what_no_type_of_date_can_hold_in_csv(tmp_path):
    csv_files(tmp_path, ["2020-01-01 00:00:00.123456789"], [NEAR, FAR])
    with pytest.raises(ValueError, match=r"'x'.*9999-12-31 12:00:00.* row 3 .*part-1\.csv"):
        read(tmp_path)


def test_long_integers_beside_decimals_are_rounded_as_in_one_file(tmp_path):
    csv_files(tmp_path, [EXACT], ["0.5"])
    assert read(tmp_path).to_pylist() == [float(EXACT), 0.5]


@pytest.mark.parametrize("options", [{}, {"version": "1.0"}, {"coerce_timestamps": "ms"}])
@pytest.mark.parametrize("old", [True, False])
def test_all_types_that_arrow_writes_are_read(tmp_path, options, old):
    now = [dt.datetime(2020, 1, 1), None]
    values = {
        str(kind): pa.array([None, None], kind)
        for kind in (
            *(pa.int8(), pa.uint32(), pa.uint64(), pa.float32(), pa.bool_(), pa.null()),
            *(pa.string(), pa.large_string(), pa.binary(), pa.binary(3), pa.decimal128(9, 2)),
            *(pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("ns"), pa.duration("s")),
            *(
                pa.list_(pa.int64()),
                pa.struct([("a", pa.string())]),
                pa.map_(pa.string(), pa.int8()),
            ),
        )
    }
    zones = (
        (unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Asia/Tokyo")
    )
    values |= {f"{u} {z}": pa.array(now, pa.timestamp(u, z)) for u, z in zones}
    values["codes"] = pa.array(["a", "b"]).dictionary_encode()
    path = tmp_path / "all.parquet"
    pq.write_table(pa.table(values), path, use_deprecated_int96_timestamps=old, **options)
    assert sum(t.num_rows for block in as_source(path, "X") for t in block.tables()) == 2


# --- the rows that are written -------------------------------------------------------------------


@pytest.fixture
def samples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame({"a": rng.normal(m, 1, n)}) for m, n in ((1, 60), (0, 40), (1, 40))]
    days = np.datetime64("2020-01-01T00:00:00", "us") + np.arange(60) * np.timedelta64(86_400, "s")
    for frame, unit in zip(frames, ("us", "ns", "us"), strict=True):
        frame["day"] = days[: len(frame)].astype(f"datetime64[{unit}]")
        frame["town"] = ["Graz", "Linz"] * (len(frame) // 2)
    frames[2].loc[::7, "day"] = np.datetime64(FAR, "us")
    frames[2]["town"] = [text.encode() for text in frames[2]["town"]]
    (tmp_path / "all").mkdir()
    frames[0].to_parquet("known.parquet")
    for number, frame in enumerate(frames[1:]):
        frame.to_parquet(f"all/{number}.parquet")
    return frames


@pytest.mark.parametrize("out", ["scored.parquet", "scored.csv", "scored.feather"])
def test_far_dates_and_bytes_are_written_as_they_are(samples, out):
    quick = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)
    done = CliRunner().invoke(
        main, ["classify", "known.parquet", "all", "--quiet", "--out", out], obj=quick
    )
    assert done.exit_code == 0, done.output
    table = as_source(out, "X")
    found = pa.concat_tables(t for block in table for t in block.tables())
    expected = [str(day) for frame in samples[1:] for day in frame["day"]]
    assert [str(day) for day in found["day"].to_pylist()] == expected
    assert found["town"].to_pylist() == ["Graz", "Linz"] * 40
    assert "9999" in done.output  # the dates that count as missing


# --- tables in memory ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "polars"])
def test_blocks_with_dates_in_different_units(kind):
    import polars as pl

    tables = [pa.table({"x": times([FAR, NEAR], "us")}), pa.table({"x": times([1, 2], "ns")})]
    convert = {"pandas": pa.Table.to_pandas, "pyarrow": pa.table, "polars": pl.from_arrow}[kind]
    stacked = stacked_tables([convert(table) for table in tables])
    with pytest.warns(UserWarning, match="9999-12-31"):
        encoder = TableEncoder(scale=False).fit(stacked)
    assert encoder.transform(stacked)[1:, 0].tolist() == [1_577_836_800.0, 1e-9, 2e-9]
