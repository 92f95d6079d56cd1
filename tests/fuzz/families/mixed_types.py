"""Folders of files whose columns have different types, such as dates in different units.

The values that are read, and those that ``classify`` would write, are those of the files.
"""

from __future__ import annotations

import io
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from classprior._files.dialect import CsvDialect
from classprior._files.writing import table_writer
from classprior._samples.inputs import as_source, read_together
from families.base import Family

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DAY = 86_400 * 10**9
#: Types whose values may belong together.
TYPES = [
    [pa.int8(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64()],
    [pa.int64(), pa.decimal128(12, 2), pa.decimal128(30, 4), pa.float32(), pa.float64()],
    [pa.timestamp(unit) for unit in PER_SECOND] + [pa.date32()],
    [pa.timestamp(unit, "UTC") for unit in PER_SECOND],
    [pa.duration(unit) for unit in PER_SECOND],
    [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
    [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(2)],
    [pa.bool_(), pa.int64(), pa.null(), pa.string()],
]
TEXTS = ["1999-12-31 12:00:00", "9999-12-31 12:00:00", "2020-01-01 00:00:00.5"]
TEXTS += ["2020-01-01 00:00:00.123456789", "0001-01-01 00:00:00", "2020-06-30 07:08:09"]


def column(rng: random.Random, kind: Any) -> pa.Array:
    """Return a few values of a type, often at its limits."""
    n_rows = rng.randint(1, 5)
    if kind == pa.null():
        return pa.nulls(n_rows)
    values = [None if rng.random() < 0.1 else value(rng, kind) for _ in range(n_rows)]
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, width).cast(kind)
    array = pa.array(values, kind)
    is_text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    return array.dictionary_encode() if is_text and rng.random() < 0.2 else array


def value(rng: random.Random, kind: Any) -> Any:
    """Return a value of a type; times are numbers of their unit."""
    is_far = rng.random() < 0.2
    if pa.types.is_integer(kind):
        bits = kind.bit_width - pa.types.is_signed_integer(kind)
        return rng.choice([2**bits - 1, 2 ** (bits - 1) + 1, 0]) if is_far else rng.randint(0, 99)
    if pa.types.is_decimal(kind):
        digits = rng.randint(1, kind.precision if is_far else 5)
        return Decimal(rng.randrange(10**digits)).scaleb(-kind.scale)
    if pa.types.is_floating(kind):
        return rng.choice([float(rng.randint(0, 99)), 0.5, 2.0**60 if is_far else 0.1])
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_date32(kind):
        return rng.choice([2_932_896, -700_000]) if is_far else rng.randint(0, 20_000)
    if pa.types.is_time(kind):
        return rng.randrange(86_400 * PER_SECOND[kind.unit])
    if pa.types.is_temporal(kind):
        per_second = PER_SECOND[kind.unit]
        seconds = 253_402_257_600 if is_far and kind.unit != "ns" else rng.randrange(2**31)
        return seconds * per_second + rng.choice([0, rng.randrange(per_second)])
    texts = ["ab", "é", "no"]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return rng.choice(texts)
    return b"\xe9b" if is_far else rng.choice(texts).encode()


def plain(values: Any) -> list[str | None]:
    """Return values as texts that do not depend on their type: numbers, or nanoseconds."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        values = values.cast(kind.value_type)
        kind = values.type
    if pa.types.is_temporal(kind):
        factor = DAY if pa.types.is_date32(kind) else 10**9 // PER_SECOND[kind.unit]
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return [None if v is None else str(v * factor) for v in values.cast(width).to_pylist()]
    return [None if value is None else plain_value(value) for value in values.to_pylist()]


def plain_value(value: Any) -> str:
    """Return the text of a value: 1, 1.0 and Decimal("1.00") have the same."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        number = Decimal(repr(value) if isinstance(value, float) else value)
        return str(int(number)) if number == number.to_integral_value() else str(number.normalize())
    return str(value)


def nanoseconds(text: str) -> str:
    """Return the time that a text says, as a number."""
    whole, _, part = text.partition(".")
    found = pa.array([whole]).cast(pa.timestamp("s")).cast(pa.int64())[0].as_py()
    return str(found * 10**9 + int(part.ljust(9, "0")))


def write(rng: random.Random, folder: Path) -> None:
    """Write a folder of files, and all their values."""
    suffix = rng.choice([".parquet", ".parquet", ".feather", ".csv"])
    kinds = rng.choice(TYPES)
    expected = []
    (folder / "files").mkdir()
    for number in range(rng.randint(2, 3)):
        path = folder / "files" / f"part-{number}{suffix}"
        if suffix == ".csv":
            texts = [text for text in rng.choices(TEXTS, k=2) if "." in text or number] or TEXTS[:1]
            path.write_text("x,n\n" + "".join(f"{text},1\n" for text in texts))
            expected += [[nanoseconds(text), text] for text in texts]
            continue
        values = column(rng, rng.choice(kinds))
        expected += [[text, text] for text in plain(values)]
        table = pa.table({"x": values, "n": range(len(values))})
        if suffix == ".feather":
            pyarrow.feather.write_feather(table, path, compression="uncompressed")
        else:
            units = {kind.unit for kind in table.schema.types if pa.types.is_timestamp(kind)}
            old = rng.random() < 0.3 and bool(units) and values.null_count == 0
            pq.write_table(table, path, use_deprecated_int96_timestamps=old)
    (folder / "expected.json").write_text(json.dumps(expected))


def read(folder: Path) -> str:
    """Read the folder; return how the values differ from those of the files."""
    expected = json.loads((folder / "expected.json").read_text())
    source = as_source(folder / "files", "X")
    (source,) = read_together([source], source.columns)
    tables = [table for block in source for table in block.tables()]
    found = [text for table in tables for text in plain(table["x"])]
    out = io.BytesIO()
    out.buffer = out  # as standard output
    with table_writer(None, "parquet", CsvDialect(",", ".", "utf-8"), out) as write_table:
        for table in source.opened.as_written(as_text=False):
            write_table(table)
    written = plain(pq.read_table(pa.BufferReader(out.getvalue()))["x"])
    for what, values in (("read", found), ("written", written)):
        for value, (number, text) in zip(values, expected, strict=True):
            if value not in (number, text):
                return f"{value} {what} instead of {number} ({text})"
    return ""


MIXED_TYPES = Family("mixed types", write, read)
