"""Parquet files whose footers contradict themselves are refused."""

import base64
import datetime as dt
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from classprior import estimate_prior
from classprior._files.footer import _CONVERTED, _decoded, leaves_of
from classprior._samples.inputs import as_source

N = 60
TABLE = pa.table(
    {
        "number": [None if n % 9 == 0 else n for n in range(N)],
        "town": ["Graz", "Linz", "Wien"] * (N // 3),
        "time": [dt.datetime(2020, 1, 1) + dt.timedelta(days=n) for n in range(N)],
    }
)


def varint(number):
    """Return an integer as a footer has it."""
    number *= 2
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def footer_of(data):
    size = int.from_bytes(data[-8:-4], "little")
    return len(data) - 8 - size, len(data) - 8


def written(table=TABLE, **options):
    out = io.BytesIO()
    pq.write_table(table, out, write_page_checksum=True, **options)
    return out.getvalue()


def mutants(data, place):
    """Yield the data with one of the bits of a byte flipped."""
    for bit in range(8):
        changed = bytearray(data)
        changed[place] ^= 1 << bit
        yield bytes(changed)


def read(source):
    return pa.concat_tables(t for block in as_source(source, "X") for t in block.tables())


DOORS = {
    "path": lambda path: path,
    "list": lambda path: [path],
    "dataset": pa.dataset.dataset,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("what", ["rows of a group", "all rows", "values of a column"])
def test_fewer_rows_than_there_are(tmp_path, door, what):
    """The footer has the number of rows of the file, of each column and of the row group."""
    data = written(compression="none", write_statistics=False)
    start, end = footer_of(data)
    numbers = [start + n for n in range(end - start) if data[start + n] == varint(N)[0]]
    before = {number: changed_number(data, number, varint(52)) for number in numbers}
    fields = {"all rows": 3, "rows of a group": (4, 0, 3), "values of a column": (4, 0, 1, 1, 3, 5)}
    places = [place for place, found in before.items() if found == fields[what]]
    assert len(places) == 1
    changed = bytearray(data)
    changed[places[0]] = varint(52)[0]
    path = tmp_path / "damaged.parquet"
    path.write_bytes(changed)
    with pytest.raises(ValueError, match=r"damaged\.parquet.*number of (rows|values)"):
        read(DOORS[door](path))


def changed_number(data, place, byte):
    """Return which number in the footer a byte changes; None if it is another part."""
    changed = bytearray(data)
    changed[place : place + 1] = byte
    try:
        footers = [_decoded(pa.BufferReader(bytes(d))) for d in (data, changed)]
    except ValueError:
        return None
    for path in (3, (4, 0, 3), (4, 0, 1, 1, 3, 5)):
        values = footers
        for key in path if isinstance(path, tuple) else (path,):
            values = [value[key] for value in values]
        if values == [N, 52]:
            return path
    return None


def outcome(path):
    """Return the message of an error and what was read, of which one is empty."""
    try:
        return "", read(path)
    except ValueError as error:
        return str(error), None


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd", "row_group_size": 20},
        {"compression": "none", "data_page_version": "2.0", "write_page_index": True},
    ],
)
def test_every_fifth_byte_of_a_footer(tmp_path, options):
    """A flipped bit is noticed, or changes nothing that is read."""
    data = written(**options)
    path = tmp_path / "mutant.parquet"
    rng = np.random.default_rng(0)
    for place in range(footer_of(data)[0], len(data), 5):
        path.write_bytes(list(mutants(data, place))[rng.integers(8)])
        fault, found = outcome(path)
        assert "mutant.parquet" in fault or found.equals(TABLE)


@pytest.mark.parametrize("name", TABLE.column_names)
def test_names_that_differ_within_a_footer(tmp_path, name):
    data = written()
    place = data.index(name.encode(), footer_of(data)[0])
    path = tmp_path / "mutant.parquet"
    for mutant in mutants(data, place):
        path.write_bytes(mutant)
        with pytest.raises(ValueError, match=r"mutant\.parquet"):
            read(path)


@pytest.mark.skipif(not hasattr(pq.ParquetWriter, "add_key_value_metadata"), reason="old pyarrow")
@pytest.mark.parametrize(
    ("values", "stored"),
    [
        (pa.array([b"a"]), pa.string()),
        (pa.array([1]), pa.timestamp("us")),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.timestamp("us")),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
    ],
)
def test_types_that_differ_from_those_that_arrow_stored(tmp_path, values, stored):
    path = tmp_path / "mutant.parquet"
    text = base64.b64encode(pa.schema([("x", stored)]).serialize().to_pybytes())
    table = pa.table({"x": values})
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"ARROW:schema": text})
    with pytest.raises(ValueError, match=r"mutant\.parquet.*'x'"):
        read(path)


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
    assert read(path).num_rows == 2


def test_columns_of_a_footer():
    nested = pa.table({"a": [1], "b": [[1, 2]], "c": [{"d": "x", "e": [1.5]}]})
    found = leaves_of(pa.BufferReader(written(nested)))
    assert [(b".".join(leaf.path).decode(), leaf.is_repeated) for leaf in found] == [
        ("a", False),
        ("b.list.element", True),
        ("c.d", False),
        ("c.e.list.element", True),
    ]
    assert len(set(_CONVERTED.values())) == len(_CONVERTED)


def test_a_damaged_file_gives_no_estimate(tmp_path):
    data = written()
    start, end = footer_of(data)
    path = tmp_path / "mutant.parquet"
    path.write_bytes(data[:start] + b"\x1c" * (end - start) + data[end:])
    with pytest.raises(ValueError, match=r"mutant\.parquet"):
        estimate_prior(path, pd.DataFrame(TABLE.to_pandas()))
