"""Files that are written whole or not at all."""

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
    """Check output paths before starting; with ``force`` they may replace files."""
    given = [path for path in paths if path is not None]
    places = [path.resolve() for path in given]
    for path, place in zip(given, places, strict=True):
        _refuse_special(place)
        if place.exists() and not force:
            raise ValueError(
                f"Expected a new file, but {str(path)!r} exists. Choose another name, or replace "
                "it."
            )
        if places.count(place) > 1:
            raise ValueError(
                f"Expected a file of its own for every output, got {str(path)!r} for two of them."
            )
        folder = next(folder for folder in place.parents if folder.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise ValueError(
                f"Expected a folder that can be written to, got {str(folder)!r} for the file "
                f"{str(path)!r}. Choose another folder."
            )


def _refuse_special(path: Path) -> None:
    """Refuse to put a file in the place of anything else."""
    if path.is_dir():
        raise ValueError(f"Expected the name of a file to write, got the folder {str(path)!r}.")
    if path.exists() and not path.is_file():
        raise ValueError(
            f"Expected the name of a file to write, got {str(path)!r}, a device, pipe or socket. "
            "Choose another name."
        )


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file beside the place where it belongs, and move it there when it is whole.

    Its folder is made if need be. Where a link points to a file, that file is replaced, and its
    mode is kept.
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
    """Return the mode of a new file; a temporary one only its owner may read."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def table_writer(
    path: Path | None, file_format: str, dialect: CsvDialect, stdout: Any
) -> Iterator[Callable[[pa.Table], None]]:
    """Open a file, or standard output, for tables; a file gets its name when it is whole."""
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
    """Return how a new CSV file is written: with tabs if its name says so, else with commas."""
    from classprior._data.csv import CsvDialect

    is_tabbed = any(end in (".tsv", ".tab") for end in Path(path).suffixes)
    return CsvDialect("\t" if is_tabbed else ",", ".", "utf-8")


def _csv_writer(file: Any, dialect: CsvDialect) -> Callable[[pa.Table], None]:
    """Return a function that adds tables to an open binary file, the first with its header."""
    import codecs
    import csv

    # One encoder for all tables: there is one byte-order mark, at the beginning.
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
    """Open a file for row numbers, probabilities and labels; it gets its name when it is whole."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    kinds = {".parquet": pq.ParquetWriter, ".feather": pa.ipc.new_file, ".csv": pa.csv.CSVWriter}
    if path.suffix.lower() not in kinds:
        raise ValueError(
            f"Expected a file that ends in {', '.join(kinds)} to write, got {path.name!r}."
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
            if not writers:  # only answers tell the type of labels
                open_writer = kinds[path.suffix.lower()]
                writers.append(stack.enter_context(open_writer(file, table.schema)))
            writers[0].write_table(table)

        yield write
