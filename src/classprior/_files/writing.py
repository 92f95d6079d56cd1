"""Atomic file output: a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

from classprior._core.messages import OptionError
from classprior._files.temporary import lock
from classprior._files.texts import as_texts, joined, raw_texts, text_bytes
from classprior._files.workbook import WorkbookWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from classprior._files.dialect import CsvDialect

_ROWS_AT_ONCE = 20_000  # lines made at a time
_LONG_NAME = 200  # bytes
STDOUT = "standard output"


def check_outputs(
    *paths: Path | None,
    force: bool,
    inputs: Sequence[Any] = (),
    file_format: str | None = None,
    resumed: Path | None = None,
) -> None:
    """Check output paths before starting.

    With ``force``, existing files may be replaced, but never those of ``inputs``, given as for
    ``find_files``. The file ``resumed`` may exist in any case.
    """
    given = [path for path in (*paths, resumed) if path is not None]
    places = [path.resolve() for path in given]
    for path, place in zip(given, places, strict=True):
        _refuse_special(path)
        for source in inputs:
            refuse_input(path, source, file_format)
        if place.exists() and not force and path is not resumed:
            message = f"{str(path)!r} already exists. Choose another file name, or replace it."
            raise OptionError(message, "force")
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


def refuse_input(path: Path, source: Any, file_format: str | None = None) -> None:
    """Raise if an output is one of the files of a source, or would be after it was written."""
    from classprior._files.finding import would_find

    if isinstance(source, list | tuple):
        for part in source:
            refuse_input(path, part, file_format)
        return
    if not isinstance(source, str | os.PathLike):
        return
    if path.exists() and any(
        os.path.samefile(path, found) for found in _files_of(source, file_format)
    ):
        raise ValueError(
            f"{str(path)!r} is an input, given as {str(source)!r}, and would be lost. Choose "
            "another file name for the output."
        )
    if would_find(source, path, file_format):
        raise ValueError(
            f"{str(path)!r} is among the inputs {str(source)!r}, so that the next run would read "
            "it. Choose another folder or file name for the output."
        )


def _files_of(source: Any, file_format: str | None) -> Sequence[Any]:
    """Return the files of a source, as far as they can be found."""
    from classprior._files.finding import STDIN, find_files

    if Path(source).is_file():
        return [source]
    with contextlib.suppress(OSError, ValueError):  # explained when the source is opened
        if str(source) == STDIN:
            return [sys.stdin.fileno()]
        return find_files(source, file_format).paths
    return []


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
    existing file keeps its mode. Temporary files of processes that were killed are removed.
    """
    _refuse_special(path)
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path)
    handle, beside = _open_beside(path)
    try:
        with _kept_locked(handle):
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.umask(mask := os.umask(0))
            # Temporary files are private; a new file has the usual mode.
            mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~mask
            os.chmod(beside, mode)
            os.replace(beside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        name_file(error, str(path))
        raise


def name_file(error: BaseException, name: str) -> None:
    """Add the name of the file to an error of the system that has none, such as a full disk."""
    if isinstance(error, OSError) and error.errno and error.filename is None:
        error.filename = name


def _open_beside(path: Path) -> tuple[int, str]:
    """Create a temporary file beside another, locked while it is open."""
    import tempfile

    while True:
        prefix, suffix = _temporary_name(path)
        handle, beside = tempfile.mkstemp(suffix, f"{prefix}{os.getpid()}.", path.parent)
        lock(handle)
        if os.fstat(handle).st_nlink or fcntl is None:
            return handle, beside
        os.close(handle)  # removed by another process before it was locked


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files that no process has locked: their writers were killed."""
    prefix, suffix = _temporary_name(path)
    with contextlib.suppress(OSError):
        for beside in list(path.parent.iterdir()):
            if beside.name.startswith(prefix) and beside.name.endswith(suffix):
                with beside.open("rb") as file:
                    if lock(file.fileno(), wait=False):
                        beside.unlink()


def _temporary_name(path: Path) -> tuple[str, str]:
    """Return how the names of temporary files beside a file begin and end."""
    name = path.name
    if len(os.fsencode(name)) > _LONG_NAME:  # with what is added, it could be too long
        import hashlib

        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    return f".{name}.", ".part"


@contextlib.contextmanager
def _kept_locked(handle: int) -> Iterator[None]:
    """Keep the lock of a file that is closed before it is renamed, as Windows demands."""
    if fcntl is None:
        yield
        return
    other = os.dup(handle)
    try:
        yield
    finally:
        os.close(other)


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
        whole = _named_output(stdout) if path is None else whole_file(path)
        file: Any = stack.enter_context(whole)
        if path is not None and path.suffix.lower() == ".gz":
            import gzip

            packed = gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="")
            file = stack.enter_context(packed)
        if file_format in ("csv", "sheet"):
            is_csv = file_format == "csv"
            lines: Any = _CsvWriter(file, dialect) if is_csv else WorkbookWriter(file)
            try:
                yield lines.write
            finally:
                lines.close()
            return
        writers: list[Any] = []

        def write(table: pa.Table) -> None:
            if not writers:
                writers.append(stack.enter_context(_arrow_writer(file, file_format, table.schema)))
            writers[0].write_table(table)

        yield write


@contextlib.contextmanager
def _named_output(stdout: Any) -> Iterator[IO[bytes]]:
    """Name standard output in errors of the system."""
    try:
        yield stdout.buffer
        stdout.buffer.flush()
    except OSError as error:
        name_file(error, STDOUT)
        raise


def _arrow_writer(file: Any, file_format: str, schema: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return (
        pq.ParquetWriter(file, schema)
        if file_format == "parquet"
        else pa.ipc.new_file(file, schema)
    )


def dialect_for(path: Path | str, source: CsvDialect | None = None) -> CsvDialect:
    """Return the dialect of a new CSV file: that of the source; tabs for .tsv and .tab."""
    from classprior._files.dialect import CsvDialect

    dialect = source or CsvDialect(",", ".", "utf-8")
    is_tabbed = any(end in (".tsv", ".tab") for end in Path(path).suffixes)
    return replace(dialect, delimiter="\t") if is_tabbed else dialect


class _CsvWriter:
    """Appends tables to an open binary file, below one header."""

    def __init__(self, file: Any, dialect: CsvDialect) -> None:
        import codecs

        self._file = file
        self._dialect = dialect
        # One encoder for all tables writes the byte-order mark only once.
        self._encode = codecs.getincrementalencoder(dialect.encoding)().encode
        self._n_rows = 0
        self._is_started = False

    def write(self, table: pa.Table) -> None:
        """Write the rows of a table, after the header if it is the first."""
        import pyarrow as pa

        if not self._is_started:
            self._is_started = True
            self._write_lines(*(pa.array([name], pa.large_string()) for name in table.column_names))
        for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            try:
                self._write_lines(*(as_texts(c, self._dialect.decimal) for c in batch.columns))
            except UnicodeError:
                check_texts(batch, "the output", self._dialect.encoding, self._n_rows)
                raise
            self._n_rows += batch.num_rows

    def close(self) -> None:
        """Return to the initial state of an encoding that has states."""
        self._file.write(self._encode("", True))

    def _write_lines(self, *columns: Any) -> None:
        *first, last = (self._quoted(column, is_alone=len(columns) == 1) for column in columns)
        lines = joined(*first, joined(last, "\n"), by=self._dialect.delimiter)
        self._file.write(self._encode(text_bytes(lines).decode()))

    def _quoted(self, column: Any, *, is_alone: bool) -> Any:
        """Put values that contain a delimiter, a quotation mark or a line end in quotes."""
        import pyarrow.compute as pc

        special = f'"\r\n{self._dialect.delimiter}'
        content = text_bytes(column)
        if not is_alone and not any(character.encode() in content for character in special):
            return column
        # A line with nothing in it would be no row.
        pattern = f"[{special}]" + ("|^$" if is_alone else "")
        column = pc.fill_null(column, "")
        doubled = pc.replace_substring(column, '"', '""')
        return pc.if_else(
            pc.match_substring_regex(column, pattern), joined('"', doubled, '"'), column
        )


def check_texts(table: Any, where: str, encoding: str = "utf-8", n_before: int = 0) -> None:
    """Raise if a CSV file cannot hold the texts of a table, which follows ``n_before`` rows."""
    for batch in table.to_batches() if hasattr(table, "to_batches") else [table]:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            texts = raw_texts(column)
            if texts is not None and not _is_writable(text_bytes(texts), encoding):
                values = enumerate(texts.to_pylist(), n_before + 1)
                row, value = next(v for v in values if not _is_writable(v[1] or b"", encoding))
                shown = value.decode(errors="backslashreplace")[:40]
                raise ValueError(
                    f"Column {name!r} has {shown!r} in row {row:,} of {where}, which a CSV file in "
                    f"the encoding {encoding} cannot hold. Write a .parquet file."
                )
        n_before += batch.num_rows


def _is_writable(content: bytes, encoding: str) -> bool:
    try:
        content.decode().encode(encoding)
    except UnicodeError:
        return False
    return b"\0" not in content


@contextlib.contextmanager
def answer_writer(path: Path) -> Iterator[Callable[[int, Any, Any, Any], None]]:
    """Open a file, atomically; return a function that writes rows and what was predicted."""
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

        def write(row: int, probabilities: Any, scores: Any, labels: Any) -> None:
            table = pa.table(
                {
                    "row": np.arange(row, row + len(scores)),
                    "probability": probabilities,
                    "score": scores,
                    "label": labels,
                }
            )
            if not writers:  # the type of the labels is known only now
                open_writer = kinds[path.suffix.lower()]
                writers.append(stack.enter_context(open_writer(file, table.schema)))
            writers[0].write_table(table)

        yield write
