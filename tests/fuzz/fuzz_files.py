"""Feed damaged files to the readers, and compare what they accept with independent readers.

    python tests/fuzz/fuzz_files.py [--seconds 60] [--seed 0] [--keep FOLDER]

Small tables are written as CSV (several dialects, plain and compressed), Parquet with checksums,
Feather, Arrow streams and JSON lines; bytes are flipped, cut, repeated and inserted; and each file
is read in a process of its own, with limited memory and time. A file is either refused with an
error that names it, or accepted. CSV text that is accepted must be what Python's csv module reads,
and a damaged Parquet file must be refused. Exits with 1 after a crash, an unforeseen error or a
difference; ``--keep`` saves the files that caused them.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import io
import json
import multiprocessing
import random
import re
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from classprior._files.csv import MISSING_VALUES
from classprior._samples.inputs import as_source, settle_decimals

MEMORY = 2**30  # that a file of a few kilobytes may take
_ADDRESSES = 12 * 2**30  # beyond this, the system would be in danger
SECONDS_PER_FILE = 20.0
FILES_PER_PROCESS = 2000  # pyarrow leaks some memory with each compressed file that it cannot read
#: Pieces that have caused trouble: marks, quotes, line ends, dates, encodings, missing values.
PIECES = [
    *(b'"', b'""', b"\r", b"\r\n", b"\n", b",", b";", b"\t", b"|", b"\0", b" ", b"'"),
    *(b"1.234", b"1,234", b"0,5", b"1.234,5", b"007", b"1e999", b"-", b"NA", b"31.02.2026"),
    *(b"9999-12-31", b"\xff", b"\xc3\xa9", b"\xe9", b"\xef\xbb\xbf", b"true", b"nan", b"inf"),
]
FORESEEN = (ValueError, TypeError, OSError)


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


def read(path: Path) -> str:
    """Read a file as the library does; return "accepted", or how it differs from other readers."""
    source = as_source(path, "X")
    settle_decimals([source], source.columns)
    tables = [table for block in source for table in block.tables()]
    n_rows = sum(table.shape[0] for table in tables)
    if n_rows != source.n_rows:
        return f"{n_rows} rows instead of {source.n_rows}"
    ours = pa.concat_tables(pa.table(table) for table in tables)
    ours.to_pandas()  # touches every value
    if path.suffix == ".csv":
        return differs_from_csv(path, source, ours) or "accepted"
    if path.suffix == ".parquet" and not ours.equals(pq.read_table(undamaged(path))):
        return "other values than before the damage"
    return "accepted"


def undamaged(path: Path) -> Path:
    """Return the path of the file before it was damaged."""
    return path.with_name(f"undamaged{path.suffix}")


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


def work(pipe: Connection) -> None:
    """Read the files whose paths arrive, with limited memory."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    warnings.simplefilter("ignore")
    usual = peak()
    while True:
        path = Path(pipe.recv())
        try:
            found = read(path)
            pipe.send(found if peak() < usual + MEMORY else f"{peak() / 2**30:.1f} GiB of memory")
        except FORESEEN as error:
            named = path.name in str(error) or isinstance(error, OSError)
            pipe.send("refused" if named else f"an error without a file name: {error}")
        except BaseException as error:
            pipe.send(f"unforeseen: {type(error).__name__}: {error}")


def peak() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Worker:
    """A process that reads files, replaced when it dies or takes too long."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._pipe, other = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=work, args=(other,), daemon=True
        )
        self._process.start()
        self._n_files = 0
        other.close()

    def read(self, path: Path) -> str:
        """Return what became of a file."""
        self._n_files += 1
        if self._n_files > FILES_PER_PROCESS:
            self._process.kill()
            self._start()
        self._pipe.send(str(path))
        try:
            if self._pipe.poll(SECONDS_PER_FILE):
                return str(self._pipe.recv())
            outcome = "hang"
        except EOFError:
            self._process.join()
            outcome = f"crash ({self._process.exitcode})"
        self._process.kill()
        self._start()
        return outcome


def main() -> None:
    """Read damaged files until the time is up."""
    parser = argparse.ArgumentParser(description="Feed damaged files to the readers.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for files that caused a problem")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    counts: Counter[str] = Counter()
    problems: list[str] = []
    worker = Worker()
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            suffix, content = base_file(rng)
            path = Path(folder) / f"mutant{suffix}"
            undamaged(path).write_bytes(content)
            path.write_bytes(damaged(rng, content))
            outcome = worker.read(path)
            counts[f"{suffix} {outcome if outcome in ('accepted', 'refused') else 'PROBLEM'}"] += 1
            if outcome not in ("accepted", "refused"):
                problems.append(f"{suffix}: {outcome}")
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{len(problems)}{suffix}").write_bytes(path.read_bytes())
    for name, count in sorted(counts.items()):
        print(f"{name:22} {count:6}")
    print(f"{sum(counts.values())} files, {len(problems)} problems")
    for problem in problems[:20]:
        print(f"  {problem[:200]}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
