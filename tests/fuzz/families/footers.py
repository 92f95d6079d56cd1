"""Parquet files with checksums, in whose footers a bit is flipped.

They are refused, or have the values that they had before. Files of other writers than Arrow, and
compressed pages of version 2, have fewer witnesses of their types and are not tried.
"""

from __future__ import annotations

import datetime
import io
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from classprior._samples.inputs import as_source
from families.base import Family


def write(rng: random.Random, folder: Path) -> None:
    """Write a file as it was before and after the damage."""
    n_rows = rng.randint(1, 80)
    first = datetime.datetime(2020, 1, 1)
    table = pa.table(
        {
            "number": [rng.choice([None, rng.randrange(1000)]) for _ in range(n_rows)],
            "share": [rng.random() for _ in range(n_rows)],
            "town": [rng.choice(["Graz", "Linz", "Wien"]) for _ in range(n_rows)],
            "time": [first + datetime.timedelta(days=rng.randrange(999)) for _ in range(n_rows)],
            "known": [rng.random() < 0.5 for _ in range(n_rows)],
        }
    )
    is_new = rng.random() < 0.3
    out = io.BytesIO()
    pq.write_table(
        table,
        out,
        row_group_size=rng.choice([20, 1000]),
        compression="none" if is_new else rng.choice(["none", "snappy", "zstd", "gzip"]),
        use_dictionary=rng.random() < 0.5,
        data_page_version="2.0" if is_new else "1.0",
        write_statistics=rng.random() < 0.5,
        write_page_index=rng.random() < 0.5,
        write_page_checksum=True,
    )
    data = bytearray(out.getvalue())
    (folder / "undamaged.parquet").write_bytes(data)
    size = int.from_bytes(data[-8:-4], "little")
    place = rng.randrange(len(data) - 8 - size, len(data))
    data[place] ^= 1 << rng.randrange(8)
    (folder / "mutant.parquet").write_bytes(data)


def read(folder: Path) -> str:
    """Read the damaged file; return how it differs from the one before."""
    source = as_source(folder / "mutant.parquet", "X")
    tables = [table for block in source for table in block.tables()]
    before = pq.read_table(folder / "undamaged.parquet")
    found = pa.concat_tables(pa.table(table) for table in tables)
    if found.num_rows != before.num_rows:
        return f"{found.num_rows} rows instead of {before.num_rows}"
    return "" if found.equals(before) else f"other values or types: {found.schema}"


FOOTERS = Family("footers", write, read)
