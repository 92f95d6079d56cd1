"""Files that once ended the process: brackets in brackets in JSON lines, damaged Arrow files."""

from __future__ import annotations

import io
import json
import random
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather

from classprior._samples.inputs import as_source
from families.base import Family
from families.damaged import as_arrow, damaged, table


def nested_lines(rng: random.Random) -> bytes:
    """Return lines, in one of which brackets are nested, perhaps in a string or over lines."""
    lines = [b'{"a": 1, "b": "x]["}'] * rng.randint(0, 5)
    depth = rng.choice([3, 30, 100, 10_000, 100_000])
    opening, closing = rng.choice([(b"[", b"]"), (b'{"a":', b"}"), (b'["]",', b"]")])
    if rng.random() < 0.3:
        opening += b"\n"
    value = opening * depth + b"1" + closing * (depth if rng.random() < 0.7 else 0)
    if rng.random() < 0.2:
        value = json.dumps(value.decode()).encode()
    lines.insert(rng.randint(0, len(lines)), b'{"c": ' + value + b"}")
    return b"\n".join(lines) + b"\n"


def damaged_arrow(rng: random.Random) -> bytes:
    """Return an Arrow file or stream in which a few bytes are changed."""
    rows = as_arrow(*table(rng))
    out = io.BytesIO()
    if rng.random() < 0.2:
        with warnings.catch_warnings(action="ignore"):  # deprecated
            pyarrow.feather.write_feather(rows, out, version=1)
    else:
        options = pa.ipc.IpcWriteOptions(compression=rng.choice([None, "lz4", "zstd"]))
        make = rng.choice([pa.ipc.new_file, pa.ipc.new_stream])
        coded = rng.random() < 0.3
        columns = [c.combine_chunks().dictionary_encode() if coded else c for c in rows.columns]
        rows = pa.table(columns, rows.column_names)
        with make(out, rows.schema, options=options) as writer:
            writer.write_table(rows, max_chunksize=rng.choice([7, 1000]))
    return damaged(rng, out.getvalue())


def write(rng: random.Random, folder: Path) -> None:
    """Write a file of either kind."""
    if rng.random() < 0.3:
        (folder / "mutant.jsonl").write_bytes(nested_lines(rng))
    else:
        (folder / "mutant.feather").write_bytes(damaged_arrow(rng))


def decoded(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects in a text, which may have several lines each."""
    place = 0
    while place < len(text):
        found, end = json.JSONDecoder().raw_decode(text, place)
        yield found
        place = end + 1


def read(folder: Path) -> str:
    """Read the file; return how JSON lines differ from what Python reads."""
    (path,) = folder.glob("mutant*")
    try:
        tables = [table for block in as_source(path, "X") for table in block.tables()]
    except ValueError as error:
        if path.suffix == ".jsonl" and not re.search(r"line \d", str(error)):
            return f"no line is named: {error}"
        raise
    rows = pa.concat_tables(map(pa.table, tables), promote_options="permissive").to_pylist()
    if path.suffix != ".jsonl":
        return ""
    objects = list(decoded(path.read_text()))
    are_equal = all(
        {name: value for name, value in row.items() if value is not None} == expected
        for row, expected in zip(rows, objects, strict=True)
    )
    return "" if are_equal else "other values than Python reads"


NESTED = Family("nested", write, read)
