"""Single files in many formats and dialects, in which a few bytes are changed.

CSV text that is accepted must be what Python's csv module reads, and a Parquet file with damaged
pages must be refused.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from classprior._files.csv import MISSING_VALUES
from classprior._samples.inputs import as_source, read_together
from families.base import Family

#: Pieces that have caused trouble: marks, quotes, line ends, dates, encodings, missing values.
PIECES = [
    *(b'"', b'""', b"\r", b"\r\n", b"\n", b",", b";", b"\t", b"|", b"\0", b" ", b"'"),
    *(b"1.234", b"1,234", b"0,5", b"1.234,5", b"007", b"1e999", b"-", b"NA", b"31.02.2026"),
    *(b"9999-12-31", b"\xff", b"\xc3\xa9", b"\xe9", b"\xef\xbb\xbf", b"true", b"nan", b"inf"),
]


def table(rng: random.Random) -> tuple[list[str], list[list[str]]]:
    """Return the names and the text values of a small table."""
    kinds: list[Callable[[], str]] = [
        lambda: str(rng.randint(-999, 99_999)),
        lambda: f"{rng.gauss(0, 100):.{rng.randint(1, 4)}f}",
        lambda: rng.choice(["NL", "DE", "a b", 'say "x"', "x,y", "two\nlines", ""]),
        lambda: f"20{rng.randint(10, 30)}-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}",
        lambda: rng.choice(["true", "false"]),
    ]
    columns = [rng.choice(kinds) for _ in range(rng.randint(1, 5))]
    rows = [[kind() for kind in columns] for _ in range(rng.randint(1, 60))]
    return [f"c{i}" for i in range(len(columns))], rows


def as_csv(rng: random.Random, names: list[str], rows: list[list[str]]) -> bytes:
    """Write a table as CSV in a random dialect."""
    out = io.StringIO(newline="")
    writer = csv.writer(
        out, delimiter=rng.choice(",;\t|"), lineterminator=rng.choice(["\n", "\r\n"])
    )
    writer.writerows([names, *rows])
    return out.getvalue().encode(rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))


def as_arrow(names: list[str], rows: list[list[str]]) -> pa.Table:
    """Return a table as pyarrow infers it."""
    columns = list(zip(*rows, strict=True))
    return pa.table({name: list(values) for name, values in zip(names, columns, strict=True)})


def base_file(rng: random.Random) -> tuple[str, bytes]:
    """Return the suffix and the bytes of an undamaged file."""
    names, rows = table(rng)
    suffix = rng.choice([*[".csv"] * 6, ".csv.gz", ".csv.bz2", ".parquet", ".feather", ".jsonl"])
    if suffix.startswith(".csv"):
        text = as_csv(rng, names, rows)
        packed = {".csv": bytes, ".csv.gz": gzip.compress, ".csv.bz2": bz2.compress}
        return suffix, packed[suffix](text)
    if suffix == ".jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        return suffix, ("\n".join(lines) + "\n").encode()
    out = io.BytesIO()
    arrow = as_arrow(names, rows)
    if suffix == ".parquet":
        pq.write_table(arrow, out, write_page_checksum=True)
    else:
        pyarrow.feather.write_feather(arrow, out, compression="uncompressed")
    return suffix, out.getvalue()


def damaged(rng: random.Random, content: bytes) -> bytes:
    """Change a few bytes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0 if data:
                data[place % len(data)] ^= 1 << rng.randrange(8)
            case 1:
                del data[place : place + rng.randint(1, 20)]
            case 2:
                data[place:place] = data[place : place + rng.randint(1, 40)]
            case 3:
                del data[place:]
            case _:
                data[place:place] = rng.choice(PIECES)
    return bytes(data)


def differs_from_csv(path: Path, source: Any, ours: pa.Table) -> str:
    """Compare all values with what Python's csv module and float make of them."""
    (file,) = source.opened.csv_files
    delimiter = file.text.dialect.delimiter
    text = path.read_bytes().decode(file.text.dialect.encoding).lstrip("\ufeff")
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    rows = [row for row in rows if row][1:]  # empty lines are not rows
    if delimiter not in text:  # but in a single column, they are values
        return ""
    texts = [list(row.values()) for part in file.tables(as_text=True) for row in part.to_pylist()]
    if texts != rows:
        return "other text than the csv module reads"
    for place, column in enumerate(file.columns):
        if pa.types.is_integer(column.type) or column.is_decimal:
            expected = [number(row[place], column.decimal) for row in rows]
            found = ours.column(place).to_pylist()
            if any(not same(a, b) for a, b in zip(expected, found, strict=True)):
                return f"other numbers in column {place}"
    return ""


def same(expected: float | None, found: float | None) -> bool:
    """Return whether two numbers are equal; NaN equals NaN."""
    if expected is None or found is None:
        return expected is found
    return expected == found or (expected != expected and found != found)


def number(text: str, mark: str) -> float | None:
    """Return the number in a text with the given decimal mark; None if it is missing."""
    if text in MISSING_VALUES:
        return None
    if re.fullmatch(r"\s*0x[0-9a-fA-F]+\s*", text):
        return int(text, 16)
    plain = text.replace("." if mark == "," else ",", "").replace(mark, ".").strip()
    return int(plain) if re.fullmatch(r"[-+]?\d+", plain) else float(plain)


def write(rng: random.Random, folder: Path) -> None:
    """Write a file as it was before and after the damage."""
    suffix, content = base_file(rng)
    (folder / f"undamaged{suffix}").write_bytes(content)
    footer = 8 + int.from_bytes(content[-8:-4], "little") if suffix == ".parquet" else 0
    pages = len(content) - footer  # a footer has no checksum
    (folder / f"mutant{suffix}").write_bytes(damaged(rng, content[:pages]) + content[pages:])


def read(folder: Path) -> str:
    """Read the damaged file; return how it differs from what other readers find."""
    (path,) = folder.glob("mutant*")
    source = as_source(path, "X")
    (source,) = read_together([source], source.columns)
    tables = [table for block in source for table in block.tables()]
    n_rows = sum(table.shape[0] for table in tables)
    if n_rows != source.n_rows:
        return f"{n_rows} rows instead of {source.n_rows}"
    ours = pa.concat_tables(pa.table(table) for table in tables)
    ours.to_pandas()  # touches every value
    if path.suffix == ".csv":
        return differs_from_csv(path, source, ours)
    undamaged = path.with_name("undamaged.parquet")
    if path.suffix == ".parquet" and not ours.equals(pq.read_table(undamaged)):
        return "other values than before the damage"
    return ""


DAMAGED = Family("damaged", write, read)
