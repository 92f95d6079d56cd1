"""Tables in files: which files are meant, and their rows in memory."""

from __future__ import annotations

import glob
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classprior._csv_files import CsvDialect, read_csv
from classprior._messages import listed

if TYPE_CHECKING:
    import pyarrow as pa

CSV, PARQUET, ARROW = "csv", "parquet", "arrow"
#: What a file is, by the end of its name.
SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), CSV),
    **dict.fromkeys((".csv.gz", ".tsv.gz", ".tab.gz", ".txt.gz"), CSV),
    **dict.fromkeys((".parquet", ".pq"), PARQUET),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), ARROW),
}
FORMATS = (CSV, PARQUET, ARROW)
STDIN = "-"


@dataclass(frozen=True)
class FileSet:
    """The files behind one name, all of one format.

    Parameters
    ----------
    source : str
        What the user named: a file, a folder, a pattern or ``-``.
    format : str
        One of ``FORMATS``.
    paths : tuple of Path
        The files in order; none for standard input.
    """

    source: str
    format: str
    paths: tuple[Path, ...] = ()

    @property
    def label(self) -> str:
        """How messages call it."""
        return "standard input" if self.source == STDIN else repr(self.source)


@dataclass(frozen=True, eq=False)
class TableFile:
    """The rows of a set of files.

    Parameters
    ----------
    files : FileSet
        Where they come from.
    table : pyarrow Table
        The rows, typed.
    dialect : CsvDialect or None
        How the text was written, where it was text.
    as_written : pyarrow Table or None
        The rows of a CSV file as the text that stands there, where that was asked for.
    """

    files: FileSet
    table: pa.Table
    dialect: CsvDialect | None = None
    as_written: pa.Table | None = None


def format_of(path: Path | str) -> str | None:
    """Return the format that the end of a file's name tells, None if it tells none.

    Parameters
    ----------
    path : Path or str
        The file.

    Returns
    -------
    format : str or None
        One of ``FORMATS``.
    """
    name = Path(path).name.lower()
    return next((kind for end, kind in SUFFIXES.items() if name.endswith(end)), None)


def find_files(source: str, file_format: str | None = None) -> FileSet:
    """Return the files that are meant.

    Parameters
    ----------
    source : str
        A file, a folder (all its tables, those in folders below it too), a pattern such as
        ``data/*.csv``, or ``-`` for standard input.
    file_format : str, optional
        One of ``FORMATS``, whatever the names say.

    Returns
    -------
    files : FileSet
        At least one file, all of one format.
    """
    if source == STDIN:
        return FileSet(source, file_format or CSV)
    path = Path(source)
    if path.is_dir():
        paths = [p for p in files_below(path) if file_format or format_of(p)]
        if not paths:
            raise ValueError(
                f"Expected tables in the folder {source!r}, found no file that ends in "
                f"{', '.join(SUFFIXES)}. Name the files, or their format with --format."
            )
    elif path.exists():
        paths = [path]
    else:
        paths = [Path(name) for name in sorted(glob.glob(source, recursive=True))]
        paths = [p for p in paths if p.is_file()]
        if not paths:
            raise ValueError(
                f"Expected a file, a folder or a pattern, found no file called {source!r}. "
                "Look for a typing error, or for a pattern that lacks its quotation marks."
            )
    return FileSet(source, file_format or _one_format(source, paths), tuple(paths))


def files_below(folder: Path) -> list[Path]:
    """Return the files in a folder and in those below it that may be data, by their names.

    Parameters
    ----------
    folder : Path
        Of which ``_temporary/part-0.parquet`` or ``.ipynb_checkpoints/rows.csv`` are not data.

    Returns
    -------
    files : list of Path
        In the order of their names.
    """
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    )


def read_files(
    files: FileSet,
    *,
    encoding: str | None = None,
    header: bool = True,
    keep_text: bool = False,
) -> TableFile:
    """Read all rows into memory.

    Parameters
    ----------
    files : FileSet
        What to read.
    encoding : str, optional
        Of CSV files, where it is not UTF-8 or told by a byte-order mark.
    header : bool, default=True
        Whether the first line of a CSV file has the names of the columns.
    keep_text : bool, default=False
        Whether to keep the text of CSV files beside the numbers.

    Returns
    -------
    rows : TableFile
        At least one row.
    """
    sources: list[Any] = [p if p.is_file() else io.BytesIO(p.read_bytes()) for p in files.paths]
    if files.source == STDIN:
        sources = [io.BytesIO(sys.stdin.buffer.read())]
    tables, texts, dialect = [], [], None
    for source in sources:
        label = files.label if len(sources) == 1 else repr(str(source))
        if files.format == CSV:
            table, text, dialect = read_csv(source, label, encoding, header, keep_text)
            texts.append(text)
        else:
            table = _read_binary(source, label, files.format)
        _check_names(table.column_names, label, files.format)
        tables.append(table)
    table = _joined(tables, files)
    if table.num_rows == 0:
        raise ValueError(
            f"Expected rows in {files.label}, found the names of {table.num_columns} columns and "
            "nothing below them."
        )
    return TableFile(files, table, dialect, _joined(texts, files) if keep_text and texts else None)


def _one_format(source: str, paths: list[Path]) -> str:
    formats = {path: format_of(path) for path in paths}
    unknown = [path.name for path, kind in formats.items() if kind is None]
    if unknown:
        raise ValueError(
            f"Expected a file that ends in {', '.join(SUFFIXES)}, got {listed(unknown)}. Say what "
            "it is with --format csv, parquet or arrow."
        )
    if len(set(formats.values())) > 1:
        kinds = sorted({str(kind) for kind in formats.values()})
        raise ValueError(
            f"Expected files of one format, found {' and '.join(kinds)} in {source!r}. Name some "
            f"of them with a pattern, such as '{Path(source) / '*.csv'}'."
        )
    return str(formats[paths[0]])


def _read_binary(source: Any, label: str, file_format: str) -> pa.Table:
    import pyarrow as pa

    try:
        if file_format == PARQUET:
            import pyarrow.parquet as pq

            return pq.read_table(source, partitioning=None)
        return _read_arrow(source)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, EOFError) as error:
        if isinstance(error, PermissionError | FileNotFoundError | IsADirectoryError):
            raise
        raise ValueError(
            f"Expected {label} to be a whole {file_format} file, could not read it: "
            f"{str(error).splitlines()[0]} Say what it is with --format, or make it again."
        ) from error


def _read_arrow(source: Any) -> pa.Table:
    """Read either of Arrow's two formats: the file, also called Feather, and the stream."""
    import pyarrow as pa
    from pyarrow import feather

    try:
        return feather.read_table(source)
    except pa.ArrowInvalid:
        if hasattr(source, "seek"):
            source.seek(0)
        with pa.input_stream(source if hasattr(source, "read") else str(source)) as stream:
            return pa.ipc.open_stream(stream).read_all()


def _check_names(names: list[str], label: str, file_format: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"Expected distinct column names in {label}, got {listed(twice)} more than once. "
            "Rename the columns in the file"
            + (", or say --no-header if its first line is data." if file_format == CSV else ".")
        )


def _joined(tables: list[pa.Table], files: FileSet) -> pa.Table:
    import pyarrow as pa

    names = tables[0].column_names
    for path, table in zip(files.paths, tables, strict=False):
        if set(table.column_names) != set(names):
            raise ValueError(
                f"Expected the same columns in all files of {files.label}, got "
                f"{_difference(names, table.column_names)} in {path.name!r}."
            )
    try:
        return pa.concat_tables(
            [table.select(names) for table in tables], promote_options="permissive"
        )
    except pa.ArrowTypeError as error:
        raise ValueError(
            f"Expected the same types in all files of {files.label}, got different ones: "
            f"{str(error).splitlines()[0]}."
        ) from error


def _difference(expected: list[str], got: list[str]) -> str:
    more = [name for name in got if name not in expected]
    fewer = [name for name in expected if name not in got]
    parts = [f"{listed(more)} besides"] if more else []
    return " and ".join([*parts, *([f"no {listed(fewer)}"] if fewer else [])])
