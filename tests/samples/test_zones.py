"""Times in a zone: periods are those of the local time, and features the same by every door."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classprior import TableEncoder
from classprior._samples.opening import open_samples
from classprior._samples.units import RowOptions

#: Two hours around midnight of a month in summer and one in winter, so that offsets differ.
LOCAL = [
    *pd.date_range("2026-06-30 22:59", periods=60, freq="min"),
    *pd.date_range("2026-12-01 00:01", periods=60, freq="min"),
]
FRAME = pd.DataFrame(
    {"x": np.arange(120) % 7, "when": pd.Series(LOCAL).dt.tz_localize("Europe/Amsterdam")}
)
ARROW = pa.Table.from_pandas(FRAME, preserve_index=False)


def of_parquet(path):
    pq.write_table(ARROW, path / "rows.parquet")
    return path / "rows.parquet"


def of_feather(path):
    pa.feather.write_feather(ARROW, path / "rows.feather")
    return path / "rows.feather"


def of_csv(path, sep=" "):
    times = [value.isoformat(sep) for value in FRAME["when"]]
    FRAME.assign(when=times).to_csv(path / "rows.csv", index=False)
    return path / "rows.csv"


def of_folder(path):
    """Write a file with times in summer, and another in winter."""
    (path / "folder").mkdir()
    for number, part in enumerate((FRAME[:60], FRAME[60:])):
        part.to_csv(path / "folder" / f"{number}.csv", index=False)
    return path / "folder"


def of_json(path, spec="auto"):
    lines = [
        json.dumps({"x": int(x), "when": when.isoformat(timespec=spec)})
        for x, when in FRAME.itertuples(index=False)
    ]
    (path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    return path / "rows.jsonl"


DOORS = {
    "pandas": lambda path: FRAME,
    "polars": lambda path: pl.from_arrow(ARROW),
    "pyarrow": lambda path: ARROW,
    "blocks": lambda path: [FRAME[:70], FRAME[70:]],
    "Parquet": of_parquet,
    "dataset": lambda path: ds.dataset(of_parquet(path)),
    "Feather": of_feather,
    "CSV": of_csv,
    "CSV with T": lambda path: of_csv(path, "T"),
    "folder": of_folder,
    "JSON lines": of_json,
    "JSON lines with milliseconds": lambda path: of_json(path, "milliseconds"),
}


@pytest.mark.parametrize("door", DOORS)
def test_periods_are_those_of_the_local_time(door, tmp_path):
    rows = DOORS[door](tmp_path)
    samples = open_samples(rows, rows, RowOptions(segments="when", every="month"), seed=0)
    segments = samples.units.segments
    assert segments.names == ("2026-06", "2026-12")
    for codes in (segments.positive, segments.unlabeled):
        assert_array_equal(np.bincount(codes), [60, 60])


@pytest.mark.parametrize("door", DOORS)
def test_times_without_a_period_are_named_alike(door, tmp_path):
    rows = DOORS[door](tmp_path)
    segments = open_samples(rows, rows, RowOptions(segments="when"), seed=0).units.segments
    assert segments.names[0] == "2026-06-30T22:59:00"
    assert len(segments.names) == 120


@pytest.mark.parametrize(
    "times",
    [
        FRAME["when"],
        pd.DatetimeIndex(FRAME["when"]),
        FRAME[["when"]],
        ARROW["when"],
        ARROW.select(["when"]),
        pl.from_arrow(ARROW)["when"],
        np.array(FRAME["when"].dt.to_pydatetime()),
        [str(value) for value in FRAME["when"]],
    ],
    ids=["Series", "Index", "frame", "pyarrow", "table", "polars", "objects", "text"],
)
def test_arrays_of_times_have_the_same_periods(times):
    X = FRAME[["x"]].to_numpy(dtype=float)
    options = RowOptions(segments=(times, times), every="month")
    segments = open_samples(X, X, options, seed=0).units.segments
    assert segments.names == ("2026-06", "2026-12")
    assert_array_equal(np.bincount(segments.unlabeled), [60, 60])


@pytest.mark.parametrize("door", DOORS)
def test_features_are_instants(door, tmp_path):
    rows = DOORS[door](tmp_path)
    table = open_samples(rows, rows, seed=0).draw_tables(1000)[0]
    encoder = TableEncoder(scale=False).fit(table)
    names = list(encoder.get_feature_names_out())
    assert encoder.kinds_["when"] == "date"
    expected = [value.timestamp() for value in FRAME["when"]]
    assert_allclose(encoder.transform(table)[:, names.index("when")], expected, atol=0)
