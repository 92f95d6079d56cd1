"""Tables in files: finding the files, and reading their rows in blocks."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classprior._core.messages import listed
from classprior._data.arrow import (
    ArrowFile,
    DatasetBlocks,
    blocks_of_batches,
    cast_table,
    parquet_schema,
    readable,
)
from classprior._data.blocks import BLOCK_ROWS, Block, LocalSource
from classprior._data.csv import CsvFile, survey_csv, with_decimals
from classprior._data.dialect import CsvDialect
from classprior._data.json_lines import JsonFile
from classprior._data.sheets import SheetFile
from classprior._data.stored import StoredFile, identity_of, store, store_stdin
from classprior._data.texts import faithful_types, with_decimal, with_types

if TYPE_CHECKING:
    import pyarrow as pa

CSV, PARQUET, ARROW, NPY, JSON, SHEET = "csv", "parquet", "arrow", "npy", "json", "sheet"
#: File format by suffix, for reading and writing.
SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), CSV),
    **dict.fromkeys((".csv.gz", ".tsv.gz", ".tab.gz", ".txt.gz"), CSV),
    **dict.fromkeys((".parquet", ".pq"), PARQUET),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), ARROW),
    ".npy": NPY,
}
#: File format by suffix, for reading.
_PACKED = "", ".gz", ".bz2", ".zst"
_INPUTS = {
    **SUFFIXES,
    **{end + packed: JSON for end in (".jsonl", ".ndjson") for packed in _PACKED},
    **dict.fromkeys((".xlsx", ".ods"), SHEET),
    **dict.fromkeys(_PACKED[1:], CSV),
}
#: Formats of tables with column names, and those that can be written.
FORMATS = (CSV, PARQUET, ARROW, JSON, SHEET)
WRITTEN = (CSV, PARQUET, ARROW)
STDIN = "-"
_KEPT_BYTES = 2**28  # of parsed CSV to cache; larger files are parsed again in every pass


@dataclass(frozen=True)
class FileSet:
    """One or more files of the same format."""

    source: str  # as the user wrote it
    format: str  # one of FORMATS, or "npy"
    paths: tuple[Path, ...] = ()  # empty for standard input

    @property
    def label(self) -> str:
        """Name in messages."""
        return "standard input" if self.source == STDIN else repr(self.source)


def format_of(path: Path | str) -> str | None:
    """Return the format by the suffix of a file name, None if unknown."""
    return _by_suffix(path, SUFFIXES)


def _format_of_input(path: Path) -> str | None:
    return _by_suffix(path, _INPUTS)


def _by_suffix(path: Path | str, formats: dict[str, str]) -> str | None:
    name = Path(path).name.lower()
    return next((kind for end, kind in formats.items() if name.endswith(end)), None)


def find_files(source: Any, file_format: str | None = None) -> FileSet:
    """Return the files of a path, a glob pattern, a folder or a list of these."""
    if isinstance(source, list | tuple):
        sets = [find_files(part, file_format) for part in source]
        paths = [path for part in sets for path in part.paths]
        _refuse_repeated(paths)
        label = f"{sets[0].source} and {len(sets) - 1} more" if len(sets) > 1 else sets[0].source
        return FileSet(label, file_format or _one_format(label, paths), tuple(paths))
    source = str(source)
    if source == STDIN:
        return FileSet(source, file_format or CSV)
    if not source:
        raise ValueError(
            "Expected the path of a file or folder, got an empty text. In a shell, a variable that "
            "is not set is empty."
        )
    path = Path(source)
    if path.is_dir():
        paths = [p for p in _files_below(path) if file_format or _format_of_input(p)]
        if not paths:
            raise ValueError(
                f"No table found in the folder {source!r}: no file ends in {', '.join(_INPUTS)}. "
                "Name the files, or specify their format."
            )
    elif os.path.lexists(path):
        paths = [path]
    else:
        paths = [p for p in map(Path, _matches(source)) if not p.is_dir()]
        if not paths:
            raise FileNotFoundError(
                f"No file or folder matches {source!r}. Check the spelling of the path or pattern."
            )
    for path in paths:
        _refuse_broken_link(path)
    paths = _each_once(paths)
    return FileSet(source, file_format or _one_format(source, paths), tuple(paths))


def would_find(source: Any, path: Path, file_format: str | None = None) -> bool:
    """Return whether ``find_files`` would find a file in a folder or by a pattern."""
    path, base = path.resolve(), Path(source)
    if base.is_dir():
        parts = path.parts[len(base.resolve().parts) :] if base.resolve() in path.parents else ()
        is_hidden = any(part.startswith((".", "_")) for part in parts)
        return bool(parts) and not is_hidden and bool(file_format or format_of(path))
    if base.exists():
        return False
    fixed = base
    while glob.has_magic(str(fixed)):
        fixed = fixed.parent
    start, patterns = fixed.resolve().parts, base.parts[len(fixed.parts) :]
    n_fixed = len(start)
    return path.parts[:n_fixed] == start and _is_matched(path.parts[n_fixed:], patterns)


def _is_matched(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """Return whether the parts of a path match a pattern, in which ** is any number of folders."""
    if not patterns or not parts:
        return not parts and all(pattern == "**" for pattern in patterns)
    if patterns[0] == "**" and _is_matched(parts[1:], patterns):
        return True
    if patterns[0] == "**":
        return _is_matched(parts, patterns[1:])
    return fnmatch(parts[0], patterns[0]) and _is_matched(parts[1:], patterns[1:])


def _matches(pattern: str) -> Iterator[str]:
    """Yield the paths that match a pattern, in which ** is any number of folders."""
    parts = Path(pattern).parts
    if "**" not in parts:
        yield from glob.glob(pattern)
        return
    place = parts.index("**")
    rest = parts[place + 1 :] or ("*",)
    for start in glob.glob(os.path.join(*parts[:place])) if place else [""]:
        for folder in _folders_from(Path(start)):
            yield from _matches(os.path.join(glob.escape(str(folder)), *rest))


def _folders_from(folder: Path) -> Iterator[Path]:
    """Yield a folder and all visible folders below, each once: links may lead back up."""
    seen, ahead = set(), [folder]
    while ahead:
        folder = ahead.pop(0)
        if (place := os.path.realpath(folder)) in seen or not os.path.isdir(folder or "."):
            continue
        seen.add(place)
        yield folder
        ahead += sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def _files_below(folder: Path) -> list[Path]:
    """Return all files in a folder and its subfolders, except hidden ones."""
    return [
        path
        for below in _folders_from(folder)
        if not any(part.startswith("_") for part in below.relative_to(folder).parts)
        for path in below.iterdir()
        if not path.name.startswith((".", "_")) and not path.is_dir()
    ]


def _each_once(paths: list[Path]) -> list[Path]:
    """Return sorted paths without those that lead to the same file by a longer way."""
    places: dict[str, Path] = {}
    for path in sorted(paths, key=lambda p: (len(p.parts), p)):
        places.setdefault(os.path.realpath(path), path)
    return sorted(places.values())


def _refuse_repeated(paths: list[Path]) -> None:
    places: dict[str, Path] = {}
    for path in paths:
        first = places.setdefault(os.path.realpath(path), path)
        if first is not path:
            raise ValueError(
                f"The file {str(path)!r} is given twice"
                + (f", also as {str(first)!r}" if first != path else "")
                + ". Its rows would be counted twice."
            )


def _refuse_broken_link(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise ValueError(
            f"{str(path)!r} is a symbolic link that leads nowhere, or back to itself. Remove it, "
            "or restore the file it stands for."
        )


def open_files(
    files: FileSet,
    name: str,
    block_rows: int = BLOCK_ROWS,
    *,
    encoding: str | None = None,
    header: bool = True,
    decimal: str | None = None,
    sheet: str | None = None,
    **how: Any,
) -> FileSource:
    """Open files as a source."""
    try:
        import pyarrow as pa  # noqa: F401 - only to see whether it is installed
    except ImportError as error:
        raise ImportError("Reading files needs pyarrow: pip install 'classprior[cli]'.") from error
    if sheet is not None and files.format != SHEET:
        raise ValueError(f"{files.label} has no sheet {sheet!r}: it is not a spreadsheet.")
    stored = store_files(files)
    opened = _OPENERS[files.format](
        stored,
        files,
        name,
        block_rows,
        encoding=encoding,
        header=header,
        decimal=decimal,
        sheet=sheet,
    )
    identity = identity_of([file.identity for file in stored])
    width = len(opened.columns)
    source = FileSource(name, opened.columns, width, opened, identity, files=files, **how)
    if source.n_rows == 0:
        raise ValueError(f"{files.label} has no rows, only the names of {width} columns.")
    return source


class FileSource(LocalSource):
    """Rows in files, which can also be read as unparsed text."""

    def __init__(self, *args: Any, files: FileSet, **how: Any) -> None:
        super().__init__(*args, **how)
        self.files = files

    @cached_property
    def sizes(self) -> list[int]:
        """Number of rows in each block."""
        if isinstance(self._contents, _CsvBlocks):  # counted on opening
            return self._contents.sizes
        return [block.n_rows for block in self]

    def as_written(self, *, as_text: bool = True) -> Iterator[pa.Table]:
        """Read the rows again, the values of CSV files as text.

        Without ``as_text``, columns of CSV files are parsed if their text can be restored.
        """
        import pyarrow as pa

        if isinstance(self._contents, _CsvBlocks):
            yield from self._contents.texts() if as_text else self._contents.restorable()
            return
        for block in self:
            for table in block.tables():
                yield table if isinstance(table, pa.Table) else pa.Table.from_batches([table])

    @property
    def csv(self) -> _CsvBlocks | None:
        """The blocks of CSV files; None for other formats."""
        return self._contents if isinstance(self._contents, _CsvBlocks) else None

    @property
    def dialect(self) -> Any:
        """Dialect of the first CSV file, and of ``as_written``; None for other formats."""
        return self._contents.dialect if isinstance(self._contents, _CsvBlocks) else None


class _CsvBlocks:
    """The blocks of CSV files; small files are parsed once and cached."""

    def __init__(
        self,
        stored: list[StoredFile],
        files: FileSet,
        name: str,
        block_rows: int,
        *,
        encoding: str | None,
        header: bool,
        decimal: str | None,
        **_: Any,
    ) -> None:
        self.given_decimal = decimal
        self.files: list[CsvFile] = [
            survey_csv(file, file.label, encoding, header) for file in stored
        ]
        self._set = files
        self._name = name
        self._block_rows = block_rows
        self._kept: list[Block] | None = None
        self._schema: Any
        decide_decimals([self], names=())
        self.columns: tuple[str, ...] = tuple(self._schema.names)

    @property
    def dialect(self) -> CsvDialect:
        """Dialect of the first file, with the decimal mark of most of its numbers."""
        first = self.files[0]
        marks = [*first.decimals.values()]
        usual = max(marks, key=marks.count) if marks else first.dialect.decimal
        return replace(first.dialect, decimal=usual)

    def replace_files(self, files: list[CsvFile]) -> None:
        """Read the same files with other decimal marks."""
        import pyarrow as pa

        self.files = files
        schemas = [pa.schema(list(zip(file.names, file.types, strict=True))) for file in self.files]
        self._schema = _common_schema(schemas, [file.label for file in self.files], self._set)
        self._kept = None

    @property
    def sizes(self) -> list[int]:
        """Number of rows in each block."""
        return [
            min(self._block_rows, file.n_rows - start)
            for file in self.files
            for start in range(0, file.n_rows, self._block_rows)
        ]

    def __call__(self) -> Iterator[Block]:
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Block] | None = []
        n_bytes = 0
        for file in self.files:
            tables = (cast_table(table, self._schema) for table in file.tables())
            with file.source.unchanged():
                for block in blocks_of_batches(
                    tables, file.label, self._name, self._block_rows, 1 + file.header
                ):
                    yield block
                    n_bytes += block.content.nbytes
                    if kept is not None and n_bytes < _KEPT_BYTES:
                        kept.append(block)
                    else:
                        kept = None
        self._kept = kept

    def texts(self) -> Iterator[pa.Table]:
        """Read the rows as text, numbers with the decimal mark of the first file."""
        decimal = self.dialect.decimal
        for file in self.files:
            marks = file.marks_of_numbers if file is not self.files[0] else {}
            others = {name: mark for name, mark in marks.items() if mark != decimal}
            for table in file.tables(as_text=True):
                table = table.select(list(self.columns))
                for name, mark in others.items():
                    texts = with_decimal(table[name], mark, decimal)
                    table = table.set_column(self.columns.index(name), name, texts)
                yield table

    def restorable(self) -> Iterator[pa.Table]:
        """Read the rows; columns are parsed only if the text of all values comes back."""
        schema = faithful_types(self.texts(), self._schema, self.dialect.decimal)
        for table in self.texts():
            yield with_types(table, schema, self.dialect.decimal)


def decide_decimals(sources: Sequence[_CsvBlocks], names: Iterable[str] | None = None) -> None:
    """Decide the decimal marks of all columns of CSV files together.

    Raise if the mark of a column among ``names``, by default of any column, is unclear.
    """
    files = [file for source in sources for file in source.files]
    given = next((source.given_decimal for source in sources if source.given_decimal), None)
    settled, unclear = with_decimals(files, given)
    for name, why in unclear.items():
        if names is None or name in names:
            raise ValueError(
                f"The decimal mark of column {name!r} is unclear: it has {why}, and nothing tells "
                "whether the mark is decimal or groups thousands. Specify the decimal mark, a "
                "point or a comma, or leave the column out."
            )
    for source in sources:
        source.replace_files(settled[: len(source.files)])
        settled = settled[len(source.files) :]


class _TableBlocks:
    """Blocks of files that know their schema and yield their rows as tables."""

    def __init__(self, opened: Sequence[Any], files: FileSet, name: str, block_rows: int) -> None:
        self._opened = opened
        self._name = name
        self._block_rows = block_rows
        labels = [file.label for file in opened]
        self._schema = _common_schema([file.schema for file in opened], labels, files)
        self.columns: tuple[str, ...] = tuple(self._schema.names)

    def __call__(self) -> Iterator[Block]:
        for file in self._opened:
            tables = (cast_table(table, self._schema) for table in file.tables())
            yield from blocks_of_batches(
                tables, file.label, self._name, self._block_rows, file.first_row
            )


def _open_arrow(
    stored: list[StoredFile], files: FileSet, name: str, block_rows: int, **_: Any
) -> _TableBlocks:
    opened = []
    for file in stored:
        with readable(file.label, name):
            opened.append(ArrowFile(file))
    return _TableBlocks(opened, files, name, block_rows)


def _open_json(
    stored: list[StoredFile], files: FileSet, name: str, block_rows: int, **_: Any
) -> _TableBlocks:
    return _TableBlocks([JsonFile(file) for file in stored], files, name, block_rows)


class _SheetBlocks:
    """Slices of sheets, which are in memory."""

    def __init__(
        self,
        stored: list[StoredFile],
        files: FileSet,
        name: str,
        block_rows: int,
        *,
        sheet: str | None,
        header: bool,
        **_: Any,
    ) -> None:
        self._sheets = [SheetFile(file, sheet, header) for file in stored]
        self._block_rows = block_rows
        schemas = [opened.table.schema for opened in self._sheets]
        labels = [opened.label for opened in self._sheets]
        self._schema = _common_schema(schemas, labels, files)
        self.columns: tuple[str, ...] = tuple(self._schema.names)

    def __call__(self) -> Iterator[Block]:
        for sheet in self._sheets:
            table = cast_table(sheet.table, self._schema)
            for start in range(0, table.num_rows, self._block_rows):
                rows = table.slice(start, self._block_rows)
                numbers = sheet.numbers[start : start + rows.num_rows]
                where = f"{sheet.label}, rows {numbers[0]:,} to {numbers[-1]:,}"
                yield Block(where, rows, rows.num_rows, numbers=numbers)


def _open_parquet(
    stored: list[StoredFile], files: FileSet, name: str, block_rows: int, **_: Any
) -> Any:
    import pyarrow.dataset

    schemas = []
    for file in stored:
        with readable(file.label, name):
            schemas.append(parquet_schema(file))
    schema = _common_schema(schemas, [file.label for file in stored], files)
    paths = [str(file.path) for file in stored]
    dataset = pyarrow.dataset.dataset(paths, schema=schema, format="parquet")
    return DatasetBlocks(dataset, name, block_rows, schema, stored)


_OPENERS: dict[str, Callable[..., Any]] = {
    CSV: _CsvBlocks,
    PARQUET: _open_parquet,
    ARROW: _open_arrow,
    JSON: _open_json,
    SHEET: _SheetBlocks,
}


def store_files(files: FileSet) -> list[StoredFile]:
    """Open the files as bytes."""
    if files.source == STDIN:
        return [store_stdin(files.label)]
    return [
        store(path, files.label if path == Path(files.source) else repr(str(path)))
        for path in files.paths
    ]


def _one_format(source: str, paths: list[Path]) -> str:
    formats = {path: _format_of_input(path) for path in paths}
    unknown = [path.name for path, kind in formats.items() if kind is None]
    if unknown:
        raise ValueError(
            f"Expected a file that ends in {', '.join(_INPUTS)}, got {listed(unknown)}. Save "
            f"other spreadsheets as CSV; for other files, specify its format: {', '.join(FORMATS)}."
        )
    if len(set(formats.values())) > 1:
        kinds = sorted({str(kind) for kind in formats.values()})
        raise ValueError(
            f"Expected files of one format, got {' and '.join(kinds)} in {source!r}. Select some "
            f"with a pattern, such as '{Path(source) / '*.csv'}'."
        )
    return str(formats[paths[0]])


def _common_schema(schemas: list[Any], labels: list[str], files: FileSet) -> Any:
    """Return the columns of the first file, with types that can hold the values of all files."""
    import pyarrow as pa

    common = schemas[0]
    _check_names(common.names, files)
    for schema, label in zip(schemas[1:], labels[1:], strict=True):
        _check_same_names(common.names, schema.names, label, files)
        try:
            common = pa.unify_schemas([common, schema], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise ValueError(
                f"The files of {files.label} have different column types: "
                f"{_clash(common, schema, label)}. A single non-numeric value turns a column into "
                "text."
            ) from error
    return common


def _clash(common: Any, schema: Any, label: str) -> str:
    """Describe the first column whose types are incompatible."""
    import pyarrow as pa

    for field in common:
        other = schema.field(field.name)
        try:
            pa.unify_schemas([pa.schema([field]), pa.schema([other])], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            return f"column {field.name!r} is {other.type} in {label} and {field.type} elsewhere"
    return f"{label} differs"


def _check_names(names: list[str], files: FileSet) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(
            f"Duplicate column names in {files.label}: {listed(twice)}. Rename the columns in the "
            "file" + (", or read it without a header." if files.format == CSV else ".")
        )


def _check_same_names(expected: list[str], got: list[str], label: str, files: FileSet) -> None:
    if sorted(got) == sorted(expected):
        return
    more = [name for name in got if name not in expected]
    fewer = [name for name in expected if name not in got]
    parts = [f"has an extra {listed(more)}"] if more else []
    parts += [f"has no {listed(fewer)}"] if fewer else []
    raise ValueError(
        f"Expected the same columns in all files of {files.label}, but {label} "
        f"{' and '.join(parts) or 'has one of them twice'}."
    )
