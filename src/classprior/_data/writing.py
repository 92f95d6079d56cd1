"""Atomic file output: a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from classprior._data.csv import CsvDialect


def check_outputs(*paths: Path | None, force: bool) -> None:
    """Check output paths before starting; with ``force``, existing files may be replaced."""
    given = [path for path in paths if path is not None]
    places = [path.resolve() for path in given]
    for path, place in zip(given, places, strict=True):
        _refuse_special(place)
        if place.exists() and not force:
            raise ValueError(
                f"{str(path)!r} already exists. Choose another file name, or replace it."
            )
        if places.count(place) > 1:
            raise ValueError(
                f"{str(path)!r} is given for two outputs. Choose different file names."
            )
        folder = next(folder for folder in place.parents if folder.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise ValueError(
                f"Cannot write {str(path)!r}: {str(folder)!r} is not a writable folder. Choose "
                "another folder."
            )


def _refuse_special(path: Path) -> None:
    """Raise if the path is a folder, a device, a pipe or a socket."""
    if path.is_dir():
        raise ValueError(f"Cannot write {str(path)!r}: it is a folder. Choose a file name.")
    if path.exists() and not path.is_file():
        raise ValueError(
            f"Cannot write {str(path)!r}: it is a device, pipe or socket. Choose another file name."
        )


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write to a temporary file in the same folder and rename it on success.

    Missing folders are created. The target of a symbolic link is replaced, not the link, and an
    existing file keeps its mode.
    """
    import tempfile

    path = path.resolve()
    _refuse_special(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, stat.S_IMODE(path.stat().st_mode) if path.exists() else _usual_mode())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _usual_mode() -> int:
    """Return the default mode of a new file; temporary files are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, atomically."""
    with whole_file(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def table_writer(
    path: Path | None, file_format: str, dialect: CsvDialect, stdout: Any
) -> Iterator[Callable[[pa.Table], None]]:
    """Open a file, atomically, or standard output; return a function that writes tables."""
    with contextlib.ExitStack() as stack:
        file = stdout.buffer if path is None else stack.enter_context(whole_file(path))
        if path is not None and path.suffix.lower() == ".gz":
            import gzip

            packed = gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="")
            file = stack.enter_context(packed)
        if file_format == "csv":
            yield _csv_writer(file, dialect)
            return
        writers: list[Any] = []

        def write(table: pa.Table) -> None:
            if not writers:
                writers.append(stack.enter_context(_arrow_writer(file, file_format, table.schema)))
            writers[0].write_table(table)

        yield write


def _arrow_writer(file: Any, file_format: str, schema: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return (
        pq.ParquetWriter(file, schema)
        if file_format == "parquet"
        else pa.ipc.new_file(file, schema)
    )


def dialect_for(path: Path | str) -> CsvDialect:
    """Return the dialect of a new CSV file: tabs for .tsv and .tab, else commas."""
    from classprior._data.csv import CsvDialect

    is_tabbed = any(end in (".tsv", ".tab") for end in Path(path).suffixes)
    return CsvDialect("\t" if is_tabbed else ",", ".", "utf-8")


def _csv_writer(file: Any, dialect: CsvDialect) -> Callable[[pa.Table], None]:
    """Return a function that appends tables to an open binary file, with one header."""
    import codecs
    import csv

    # One encoder for all tables writes the byte-order mark only once.
    encode = codecs.getincrementalencoder(dialect.encoding)().encode
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=dialect.delimiter, lineterminator="\n")
    started = False

    def write(table: pa.Table) -> None:
        nonlocal started
        if not started:
            writer.writerow(table.column_names)
            started = True
        for batch in table.to_batches(max_chunksize=10_000):
            columns = [[_as_text(v, dialect) for v in c.to_pylist()] for c in batch.columns]
            writer.writerows(zip(*columns, strict=True))
            flush()
        flush()

    def flush() -> None:
        file.write(encode(text.getvalue()))
        text.seek(0)
        text.truncate()

    return write


def _as_text(value: Any, dialect: CsvDialect) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value).replace(".", dialect.decimal)
    return str(value)


@contextlib.contextmanager
def answer_writer(path: Path) -> Iterator[Callable[[int, Any, Any], None]]:
    """Open a file, atomically; return a function that writes rows, probabilities and labels."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    kinds = {".parquet": pq.ParquetWriter, ".feather": pa.ipc.new_file, ".csv": pa.csv.CSVWriter}
    if path.suffix.lower() not in kinds:
        raise ValueError(
            f"Expected an output file that ends in {', '.join(kinds)}, got {path.name!r}."
        )
    with whole_file(path) as file, contextlib.ExitStack() as stack:
        writers: list[Any] = []

        def write(row: int, probabilities: Any, labels: Any) -> None:
            table = pa.table(
                {
                    "row": np.arange(row, row + len(probabilities)),
                    "probability": probabilities,
                    "label": labels,
                }
            )
            if not writers:  # the type of the labels is known only now
                open_writer = kinds[path.suffix.lower()]
                writers.append(stack.enter_context(open_writer(file, table.schema)))
            writers[0].write_table(table)

        yield write
