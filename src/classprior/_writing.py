"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from classprior._csv_files import CsvDialect


def check_outputs(*paths: Path | None, force: bool) -> None:
    """Refuse files that could not be written, before the work of which they are the result.

    Parameters
    ----------
    *paths : Path or None
        What is to be written, if anything.
    force : bool
        Whether they may replace files.
    """
    given = [path for path in paths if path is not None]
    places = [path.resolve() for path in given]
    for path, place in zip(given, places, strict=True):
        _refuse_special(place)
        if place.exists() and not force:
            raise ValueError(
                f"Expected a new file, but {str(path)!r} exists. Choose another name, or say "
                "--force to replace it."
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
    """Write a file beside the place where it belongs, and move it there when it is whole.

    Parameters
    ----------
    path : Path
        Where it belongs; its folder is made if need be. Where a link points to a file, that file
        is replaced, and its mode is kept.

    Yields
    ------
    file : binary file
        Gone if anything goes wrong.
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
    """Write text as UTF-8, whole or not at all.

    Parameters
    ----------
    path : Path
        The file.
    text : str
        What it shall hold.
    """
    with whole_file(path) as file:
        file.write(text.encode())


def write_table(path: Path, table: pa.Table, file_format: str, dialect: CsvDialect | None) -> None:
    """Write a table, whole or not at all.

    Parameters
    ----------
    path : Path
        The file.
    table : pyarrow Table
        The rows.
    file_format : str
        csv, parquet or arrow.
    dialect : CsvDialect or None
        Of CSV text; by default commas, points and UTF-8.
    """
    with whole_file(path) as file:
        if file_format == "csv":
            dialect = dialect or dialect_for(path)
            if path.suffix.lower() == ".gz":
                import gzip

                with gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
                    write_csv(packed, table, dialect)
            else:
                write_csv(file, table, dialect)
        elif file_format == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, file)
        else:
            from pyarrow import feather

            feather.write_feather(table, file)


def dialect_for(path: Path | str) -> CsvDialect:
    """Return how a new CSV file of that name is written.

    Parameters
    ----------
    path : Path or str
        The file.

    Returns
    -------
    dialect : CsvDialect
        Tabs if its name says so, else commas.
    """
    from classprior._csv_files import CsvDialect

    is_tabbed = any(end in (".tsv", ".tab") for end in Path(path).suffixes)
    return CsvDialect("\t" if is_tabbed else ",", ".", "utf-8")


def write_csv(file: Any, table: pa.Table, dialect: CsvDialect) -> None:
    """Write a table as CSV into an open binary file.

    Parameters
    ----------
    file : binary file
        Stays open.
    table : pyarrow Table
        The rows.
    dialect : CsvDialect
        How to write them.
    """
    import csv

    text = io.TextIOWrapper(file, encoding=dialect.encoding, newline="")
    try:
        writer = csv.writer(text, delimiter=dialect.delimiter, lineterminator="\n")
        writer.writerow(table.column_names)
        for batch in table.to_batches(max_chunksize=10_000):
            columns = [[_as_text(v, dialect) for v in c.to_pylist()] for c in batch.columns]
            writer.writerows(zip(*columns, strict=True))
        text.flush()
    finally:
        text.detach()


def _as_text(value: Any, dialect: CsvDialect) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value).replace(".", dialect.decimal)
    return str(value)
