"""Tables in files of any format, read in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classprior._data.arrow import (
    ArrowFile,
    DatasetBlocks,
    blocks_of_batches,
    cast_table,
    parquet_schema,
    readable,
)
from classprior._data.blocks import BLOCK_ROWS, Block, LocalSource
from classprior._data.common_schema import common_schema
from classprior._data.csv import CsvFile, with_decimals
from classprior._data.csv_survey import survey_csv
from classprior._data.dialect import CsvDialect
from classprior._data.finding import ARROW, CSV, JSON, PARQUET, SHEET, STDIN, FileSet
from classprior._data.json_lines import JsonFile
from classprior._data.sheets import SheetFile
from classprior._data.stored import StoredFile, identity_of, store, store_stdin
from classprior._data.texts import faithful_types, with_decimal, with_types

if TYPE_CHECKING:
    import pyarrow as pa

_KEPT_BYTES = 2**28  # of parsed CSV to cache; larger files are parsed again in every pass


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
        if self.csv is not None:
            return self.csv.sizes  # counted on opening
        return [block.n_rows for block in self]

    def as_written(self, *, as_text: bool = True) -> Iterator[pa.Table]:
        """Read the rows again, the values of CSV files as text.

        Without ``as_text``, columns of CSV files are parsed if their text can be restored.
        """
        import pyarrow as pa

        if self.csv is not None:
            yield from self.csv.texts() if as_text else self.csv.restorable()
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
        return None if self.csv is None else self.csv.dialect


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
        self._schema = common_schema(schemas, [file.label for file in self.files], self._set)
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
        self._schema = common_schema([file.schema for file in opened], labels, files)
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


class _SheetBlocks(_TableBlocks):
    """Slices of sheets, which are in memory."""

    def __call__(self) -> Iterator[Block]:
        for sheet in self._opened:
            table = cast_table(sheet.table, self._schema)
            for start in range(0, table.num_rows, self._block_rows):
                rows = table.slice(start, self._block_rows)
                numbers = sheet.numbers[start : start + rows.num_rows]
                where = f"{sheet.label}, rows {numbers[0]:,} to {numbers[-1]:,}"
                yield Block(where, rows, rows.num_rows, numbers=numbers)


def _open_sheets(
    stored: list[StoredFile],
    files: FileSet,
    name: str,
    block_rows: int,
    *,
    sheet: str | None,
    header: bool,
    **_: Any,
) -> _SheetBlocks:
    opened = [SheetFile(file, sheet, header) for file in stored]
    return _SheetBlocks(opened, files, name, block_rows)


def _open_parquet(
    stored: list[StoredFile], files: FileSet, name: str, block_rows: int, **_: Any
) -> Any:
    import pyarrow.dataset

    schemas = []
    for file in stored:
        with readable(file.label, name):
            schemas.append(parquet_schema(file))
    schema = common_schema(schemas, [file.label for file in stored], files)
    paths = [str(file.path) for file in stored]
    dataset = pyarrow.dataset.dataset(paths, schema=schema, format="parquet")
    return DatasetBlocks(dataset, name, block_rows, schema, stored)


_OPENERS: dict[str, Callable[..., Any]] = {
    CSV: _CsvBlocks,
    PARQUET: _open_parquet,
    ARROW: _open_arrow,
    JSON: _open_json,
    SHEET: _open_sheets,
}


def store_files(files: FileSet) -> list[StoredFile]:
    """Open the files as bytes."""
    if files.source == STDIN:
        return [store_stdin(files.label)]
    return [
        store(path, files.label if path == Path(files.source) else repr(str(path)))
        for path in files.paths
    ]
