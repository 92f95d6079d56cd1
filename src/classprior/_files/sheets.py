"""Spreadsheets: a table in one sheet of a workbook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from classprior._core.messages import OptionError, listed, warn
from classprior._core.types import Ints
from classprior._files.csv import MISSING_VALUES
from classprior._files.dialect import NO_HEADER
from classprior._files.stored import StoredFile
from classprior._files.workbook_limits import refuse_huge
from classprior._tables.columns import CATEGORY, text_of

if TYPE_CHECKING:
    import pyarrow as pa

_PART = 2**13  # rows converted at a time
_EXACT = 2**53  # below it, all integers are floats


class SheetFile:
    """A sheet of a workbook, held in memory; its first row has the column names."""

    def __init__(
        self,
        file: StoredFile,
        sheet: str | None = None,
        header: bool = True,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        refuse_huge(file)
        cells, name = _cells_of(file, sheet)
        self.label = f"{file.label}, sheet {name!r}"
        numbers: list[int] = []
        rows = self._rows(cells, numbers)
        first = next(rows, None)
        if first is None:
            raise ValueError(f"Expected a table in {self.label}, but it is empty.")
        width = len(first)
        names = [f"column_{place + 1}" for place in range(width)]
        if header:
            if all(isinstance(value, int | float) for value in first):
                raise OptionError(
                    f"Expected column names in row {numbers[0]} of {self.label}, got numbers: "
                    f"{listed([text_of(value) for value in first], 4)}. {NO_HEADER}",
                    "header",
                )
            named = zip(first, names, strict=True)
            names = [_as_text(value).strip() if value is not None else n for value, n in named]
        kept = () if header else (first,)
        as_text = [(kinds or {}).get(name) == CATEGORY for name in names]
        rows, parts = chain(kept, rows), []
        while part := list(islice(rows, _PART)):
            columns = zip(zip(*part, strict=True), as_text, strict=True)
            parts.append([_as_array(column, as_text=is_text) for column, is_text in columns])
        self.numbers: Ints = np.array(numbers[1:] if header else numbers)  # of the rows
        self.table = _joined(names, parts, [header and value is None for value in first])
        self.schema = self.table.schema

    @property
    def first_row(self) -> int:
        """Number of the first row, if none between the rows is empty."""
        return int(self.numbers[0]) if len(self.numbers) else 1

    def tables(self, columns: tuple[str, ...] | None = None) -> list[pa.Table]:
        """Return the rows, as one table."""
        return [self.table]

    @staticmethod
    def _rows(cells: Any, numbers: list[int]) -> Iterator[list[Any]]:
        """Yield the rows that are not empty, with None for empty cells, and note their numbers."""
        for number, row in enumerate(cells, 1):
            if any(value != "" for value in row):
                numbers.append(number)
                yield [None if value in MISSING_VALUES else value for value in row]


def _cells_of(file: StoredFile, sheet: str | None) -> tuple[Any, str]:
    """Return an iterator over the rows of a sheet, by default the first, and its name."""
    try:
        import python_calamine as calamine
    except ImportError as error:
        raise ImportError(
            f"Reading the spreadsheet {file.label} needs python-calamine: pip install "
            "'classprior[cli]'."
        ) from error
    try:
        with file.unchanged(), file.path.open("rb") as opened:
            book = calamine.CalamineWorkbook.from_filelike(opened)
            names = [
                found.name
                for found in book.sheets_metadata
                if found.typ == calamine.SheetTypeEnum.WorkSheet
            ]
            name = sheet if sheet is not None else next(iter(names), "")
            found = book.get_sheet_by_name(name) if name in names else None
            rows = found.iter_rows() if found is not None and found.start is not None else ()
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"  # not an Exception
        if not is_panic and not isinstance(error, calamine.CalamineError):
            raise
        reason = str(error).removesuffix(".")
        raise ValueError(
            f"Could not read {file.label} as a spreadsheet: {reason}. It may be damaged or "
            "protected by a password. Save it again."
        ) from error
    if found is None:
        raise ValueError(f"There is no sheet {name!r} in {file.label}. It has {listed(names)}.")
    if sheet is None and len(names) > 1:
        warn(
            f"Reading the first sheet of {file.label}, {name!r}, and not {listed(names[1:])}. To "
            "choose another, name the sheet.",
            "sheet",
        )
    return rows, name


def _as_array(values: Sequence[Any], *, as_text: bool = False) -> Any:
    """Convert cells to an array: numbers, dates, booleans, times or, if they differ, text."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float} and not as_text:
        return pa.array(values, pa.float64())
    if kinds == {date, datetime} and not as_text:
        values = [v if type(v) is not date else datetime(v.year, v.month, v.day) for v in values]
        return pa.array(values, pa.timestamp("us"))
    if len(kinds) > 1 or as_text:
        return pa.array([None if v is None else _as_text(v) for v in values], pa.string())
    return pa.array(values)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else text_of(value)


def _joined(names: Sequence[str], parts: list[list[Any]], is_unnamed: Sequence[bool]) -> pa.Table:
    """Return the table of all parts, without columns that have neither a name nor values."""
    import pyarrow as pa

    columns = {}
    for place, name in enumerate(names):
        arrays = [part[place] for part in parts] or [pa.nulls(0)]
        kinds = {array.type for array in arrays if array.type != pa.null()}
        if not kinds and is_unnamed[place]:
            continue
        kind = _common_type(kinds)
        column = pa.chunked_array([array.cast(kind) for array in arrays], kind)
        columns[place] = (name, _as_integers(column))
    return pa.table([column for _, column in columns.values()], [n for n, _ in columns.values()])


def _common_type(kinds: set[Any]) -> Any:
    import pyarrow as pa

    if len(kinds) < 2:
        return next(iter(kinds), pa.null())
    if kinds <= {pa.int64(), pa.float64()}:
        return pa.float64()
    if kinds <= {pa.date32(), pa.timestamp("us")}:
        return pa.timestamp("us")
    return pa.string()


def _as_integers(column: Any) -> Any:
    """Return floats as integers if all are: sheets know one type of number only."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.type != pa.float64() or column.null_count == len(column):
        return column
    is_whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), _EXACT))
    return column.cast(pa.int64()) if pc.all(is_whole).as_py() else column
