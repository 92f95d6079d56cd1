"""Tables in files of any format, read in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classprior._core.messages import OptionError
from classprior._files.arrow import ArrowFile, blocks_of_batches, readable, unchanged
from classprior._files.common_schema import (
    OpenedFile,
    cast_tables,
    check_names,
    common_schema,
    exact_cast,
)
from classprior._files.csv import CsvFile, with_decimals, with_floats
from classprior._files.csv_survey import survey_csv
from classprior._files.dialect import CsvDialect
from classprior._files.finding import ARROW, CSV, JSON, PARQUET, SHEET, STDIN, FileSet
from classprior._files.json_lines import JsonFile
from classprior._files.marks import Doubt
from classprior._files.parquet import ParquetFile
from classprior._files.sheets import SheetFile
from classprior._files.stored import StoredFile, identity_of, store, store_stdin
from classprior._files.texts import has_codes, with_decimal, without_gaps
from classprior._tables.tables import BLOCK_ROWS, Block

if TYPE_CHECKING:
    import pyarrow as pa

_HELD_BYTES = 2**25  # of small CSV files, held in memory as they are
_CACHED_BYTES = 2**28  # of parsed CSV to cache; larger files are parsed again in every pass


@dataclass(frozen=True)
class ReadOptions:
    """How to read files; what does not apply to a format is ignored, but for the sheet."""

    encoding: str | None = None  # of CSV files; by default UTF-8, or by the byte-order mark
    header: bool = True  # whether the first line or row has the column names
    decimal: str | None = None  # decimal mark of CSV files; by default inferred from all files
    sheet: str | None = None  # by default the first
    file_format: str | None = None  # by default inferred from the file names
    spool: bool = False  # copy queries and streams to a temporary file first


def open_files(
    files: FileSet,
    name: str,
    block_rows: int = BLOCK_ROWS,
    options: ReadOptions | None = None,
    kinds: Mapping[str, str] | None = None,
) -> TableFiles:
    """Open files; ``name`` is that of the sample in messages.

    ``kinds`` are known kinds of columns, such as those that a model was fitted to.
    """
    try:
        import pyarrow as pa  # noqa: F401 - only to see whether it is installed
    except ImportError as error:
        raise ImportError("Reading files needs pyarrow: pip install 'classprior[cli]'.") from error
    options = options or ReadOptions()
    if options.sheet is not None and files.format != SHEET:
        raise ValueError(f"{files.label} has no sheet {options.sheet!r}: it is not a spreadsheet.")
    opened = _OPENERS[files.format](files, name, block_rows, options, kinds=kinds)
    if sum(opened.sizes) == 0:
        n_columns = len(opened.columns)
        raise ValueError(f"{files.label} has no rows, only the names of {n_columns} columns.")
    return opened


class TableFiles(ABC):
    """Files of one format with the same columns, whose rows are read in blocks."""

    columns: tuple[str, ...]
    _schema: pa.Schema  # of the values that are read

    def __init__(self, files: FileSet, name: str, block_rows: int) -> None:
        self.files = files
        self._stored = store_files(files)
        self._name = name
        self._block_rows = block_rows

    @property
    def identity(self) -> str:
        """Text that changes when a file changes."""
        return identity_of([file.identity for file in self._stored])

    @cached_property
    def sizes(self) -> list[int]:
        """Number of rows in each block."""
        return [block.n_rows for block in self.blocks()]

    @property
    def dialect(self) -> CsvDialect | None:
        """Dialect of CSV files; None for other formats."""
        return None

    @property
    def empty_columns(self) -> list[str]:
        """Columns without values, as far as the types of the files show it."""
        import pyarrow as pa

        return [field.name for field in self._schema if pa.types.is_null(field.type)]

    def with_local_times(self, names: Collection[str]) -> TableFiles:
        """Return the files with times in some columns as written, if text with an offset."""
        return self

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Read all rows, from the first."""

    def as_written(self, *, as_text: bool = True) -> Iterator[pa.Table]:
        """Read the rows again, the values of CSV files as text.

        Without ``as_text``, columns of CSV files are parsed if their text can be restored.
        """
        import pyarrow as pa

        for block in self.blocks():
            for table in block.tables():
                yield table if isinstance(table, pa.Table) else pa.Table.from_batches([table])


class CsvTables(TableFiles):
    """CSV files; small ones are read and parsed once, and cached.

    The decimal marks are those that the files show by themselves, see ``read_together``.
    """

    def __init__(
        self,
        files: FileSet,
        name: str,
        block_rows: int,
        options: ReadOptions,
        cached_bytes: int = _CACHED_BYTES,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(files, name, block_rows)
        self._cached_bytes = cached_bytes
        self.given_decimal = options.decimal
        self.surveyed: list[CsvFile] = []
        left = min(_HELD_BYTES, cached_bytes)
        for stored in self._stored:
            how = (stored.label, options.encoding, options.header)
            file = survey_csv(stored, *how, kinds=kinds, held_bytes=left)
            left -= len(file.text.source) if file.batches is not None else 0
            self.surveyed.append(file)
        labels = [file.text.label for file in self.surveyed]
        check_names([file.names for file in self.surveyed], labels, files)
        self.columns = tuple(self.surveyed[0].names)
        self.csv_files = with_floats(with_decimals(self.surveyed, self.given_decimal)[0])
        self._cached: list[Block] | None = None

    def read_as(self, surveyed: list[CsvFile], decided: list[CsvFile]) -> CsvTables:
        """Return the files with other decimal marks or types of their columns."""
        decided = with_floats(decided)
        if decided == self.csv_files:
            return self
        other = copy(self)
        other.surveyed, other.csv_files, other._cached = surveyed, decided, None
        other.__dict__.pop("_schema", None)
        return other

    @cached_property
    def _schema(self) -> pa.Schema:
        return common_schema(self.csv_files, self.files.label)

    @property
    def dialect(self) -> CsvDialect:
        """Dialect of the first file, with the decimal mark of most of its numbers."""
        first = self.csv_files[0]
        marks = [column.decimal for column in first.columns if column.is_grouped]
        usual = max(marks, key=marks.count) if marks else first.text.dialect.decimal
        return replace(first.text.dialect, decimal=usual)

    @property
    def sizes(self) -> list[int]:
        """Number of rows in each block."""
        return [
            min(self._block_rows, file.n_rows - start)
            for file in self.surveyed
            for start in range(0, file.n_rows, self._block_rows)
        ]

    def blocks(self) -> Iterator[Block]:
        """Read all rows, from the first."""
        files = self.csv_files
        if self._cached is not None:
            yield from self._cached
            return
        cached: list[Block] | None = []
        n_bytes = 0
        for file in files:
            tables = cast_tables(file.tables(), self._schema, file.label, file.first_row)
            with unchanged(None if file.batches is not None else file.text.source):
                for block in blocks_of_batches(
                    tables, file.label, self._name, self._block_rows, file.first_row
                ):
                    yield block
                    n_bytes += block.content.nbytes
                    if cached is not None and n_bytes < self._cached_bytes:
                        cached.append(block)
                    else:
                        cached = None
        self._cached = cached

    def as_written(self, *, as_text: bool = True) -> Iterator[pa.Table]:
        """Read the rows again as text, numbers with the decimal mark of the first file.

        Without ``as_text``, columns are parsed unless they have codes, such as 007.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        decimal = self.dialect.decimal
        kept = set(self.columns) if as_text else self._codes()
        for file in self.csv_files:
            for table in file.tables(as_text=True):
                columns = {}
                for column, texts in zip(file.columns, table.columns, strict=True):
                    if column.name not in kept:
                        kind = self._schema.field(column.name).type
                        texts = exact_cast(column.parsed(without_gaps(texts)), kind)
                    elif file is not self.csv_files[0] and column.is_decimal:
                        texts = with_decimal(texts, column.decimal, decimal)
                    if not as_text and column.name in kept:
                        texts = pc.if_else(pc.equal(texts, ""), None, texts)
                    columns[column.name] = texts
                yield pa.table({name: columns[name] for name in self.columns})

    def _codes(self) -> set[str]:
        """Return the columns whose texts say more than their values."""
        import pyarrow as pa

        kept = {field.name for field in self._schema if field.type in (pa.string(), pa.null())}
        for file in self.csv_files:
            for table in file.tables(as_text=True):
                for column, texts in zip(file.columns, table.columns, strict=True):
                    if column.name not in kept:
                        texts = without_gaps(texts)
                        if column.is_local_time or has_codes(texts, column.parsed(texts)):
                            kept.add(column.name)
        return kept


def read_together(
    opened: Sequence[TableFiles],
    names: Iterable[str] | None = None,
    *,
    text: Collection[str] = (),
    local: Collection[str] = (),
) -> list[TableFiles]:
    """Return files as they are read together: decimal marks are decided from all of them.

    Numbers in the columns ``text`` of CSV files are read as they are written, such as 007, and
    times in the columns ``local`` without their offset from UTC. Raise if the decimal mark of a
    column among ``names``, by default of any column, is unclear.
    """
    csv = [tables for tables in opened if isinstance(tables, CsvTables)]
    surveyed = [[f.with_types(text=text, local=local) for f in tables.surveyed] for tables in csv]
    files = [file for part in surveyed for file in part]
    given = next((tables.given_decimal for tables in csv if tables.given_decimal), None)
    decided, doubts = with_decimals(files, given)
    for name, doubt in doubts.items():
        if names is None or name in names:
            raise _in_doubt(name, doubt, files[doubt.file], given)
    read: dict[TableFiles, TableFiles] = {}
    for tables, part in zip(csv, surveyed, strict=True):
        read[tables] = tables.read_as(part, decided[: len(part)])
        decided = decided[len(part) :]
    return [read.get(tables) or tables.with_local_times(local) for tables in opened]


def _in_doubt(name: str, doubt: Doubt, file: CsvFile, given: str | None) -> OptionError:
    where = f"row {file.row_of(name, doubt.value):,} of {file.text.label}"
    if given is not None:
        message = (
            f"Column {name!r} has {doubt.value!r} in {where}, where the decimal mark should be "
            f"{given!r} and the other mark can only separate groups of three digits. Correct the "
            "value, leave the column out, or specify the other decimal mark."
        )
    else:
        beside = f" and {doubt.beside}" if doubt.beside else ""
        message = (
            f"The decimal mark of column {name!r} is unclear: it has {doubt.value!r} in {where}"
            f"{beside}, and nothing tells whether the mark is decimal or groups thousands. Leave "
            "the column out, or specify the decimal mark, a point or a comma."
        )
    return OptionError(message, "decimal")


class _EachTables(TableFiles):
    """Files that know their schema and yield their rows as tables."""

    def __init__(
        self,
        files: FileSet,
        name: str,
        block_rows: int,
        options: ReadOptions,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(files, name, block_rows)
        self._opened = [self._open(file, options, kinds) for file in self._stored]
        self._join_schemas()
        self.columns = tuple(self._schema.names)

    def _join_schemas(self) -> None:
        self._schema = _schema_of(self._opened, self.files, self._name)

    @abstractmethod
    def _open(self, file: StoredFile, options: ReadOptions, kinds: Any) -> Any:
        """Return an object with ``label``, ``schema``, ``first_row`` and ``tables()``."""

    def blocks(self) -> Iterator[Block]:
        """Read all rows, from the first."""
        for file in self._opened:
            tables = cast_tables(file.tables(), self._schema, file.label, file.first_row)
            yield from blocks_of_batches(
                tables, file.label, self._name, self._block_rows, file.first_row
            )


class ArrowTables(_EachTables):
    """Arrow IPC files (Feather) and streams."""

    def _open(self, file: StoredFile, options: ReadOptions, kinds: Any) -> ArrowFile:
        with readable(file.label, self._name):
            return ArrowFile(file)


class JsonTables(_EachTables):
    """JSON lines."""

    def with_local_times(self, names: Collection[str]) -> TableFiles:
        """Return the files with times in some columns as written, if text with an offset."""
        other = copy(self)
        other._opened = [file.with_local_times(names) for file in self._opened]
        other._join_schemas()
        return other if names else self

    def _open(self, file: StoredFile, options: ReadOptions, kinds: Any) -> JsonFile:
        return JsonFile(file, kinds=kinds)


class SheetTables(_EachTables):
    """Sheets of workbooks, which are in memory."""

    def _open(self, file: StoredFile, options: ReadOptions, kinds: Any) -> SheetFile:
        return SheetFile(file, options.sheet, options.header, kinds)

    def blocks(self) -> Iterator[Block]:
        """Read all rows, from the first."""
        for sheet in self._opened:
            (table,) = cast_tables(sheet.tables(), self._schema, sheet.label, sheet.first_row)
            for start in range(0, table.num_rows, self._block_rows):
                rows = table.slice(start, self._block_rows)
                numbers = sheet.numbers[start : start + rows.num_rows]
                where = f"{sheet.label}, rows {numbers[0]:,} to {numbers[-1]:,}"
                yield Block(where, rows, rows.num_rows, numbers=numbers)


class ParquetTables(TableFiles):
    """Parquet files, a row group at a time."""

    def __init__(self, files: FileSet, name: str, block_rows: int, *_: Any, **__: Any) -> None:
        import pyarrow.dataset
        from pyarrow.fs import LocalFileSystem

        super().__init__(files, name, block_rows)
        parquet, disk = pyarrow.dataset.ParquetFileFormat(), LocalFileSystem()
        self._opened = [
            ParquetFile(parquet.make_fragment(str(file.path), disk), file.label, name, file)
            for file in self._stored
        ]
        self._schema = _schema_of(self._opened, files, name)
        self.columns = tuple(self._schema.names)

    def blocks(self) -> Iterator[Block]:
        """Read all rows, from the first."""
        for file, stored in zip(self._opened, self._stored, strict=True):
            with stored.unchanged():
                yield from file.blocks(self._schema)


_OPENERS: dict[str, type[Any]] = {
    CSV: CsvTables,
    PARQUET: ParquetTables,
    ARROW: ArrowTables,
    JSON: JsonTables,
    SHEET: SheetTables,
}


def _schema_of(opened: Sequence[OpenedFile], files: FileSet, name: str) -> Any:
    """Return the columns of files, with types that hold the values of all."""
    labels = [file.label for file in opened]
    check_names([file.schema.names for file in opened], labels, files)
    with readable(files.label, name):
        return common_schema(opened, files.label)


def store_files(files: FileSet) -> list[StoredFile]:
    """Open the files as bytes."""
    if files.source == STDIN:
        return [store_stdin(files.label)]
    return [
        store(path, files.label if path == Path(files.source) else repr(str(path)))
        for path in files.paths
    ]
