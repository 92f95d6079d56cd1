"""Write tables to an Excel workbook, in which text stays text."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

#: The size of a sheet, with the row of column names.
MOST_ROWS, MOST_COLUMNS = 2**20, 2**14
_MOST_CHARACTERS = 2**15 - 1  # in a cell
_EXACT = 2**53  # larger integers would be rounded
_FORMULA = "=", "+", "-", "@"
_FIRST_DAY = date(1900, 3, 1)  # before it, Excel counts a day that never was


def check_size(n_rows: int, n_columns: int, name: str) -> None:
    """Raise if a sheet cannot hold so many rows below their names, or so many columns."""
    for number, most, kind in (
        (n_rows, MOST_ROWS - 1, "rows"),
        (n_columns, MOST_COLUMNS, "columns"),
    ):
        if number > most:
            raise ValueError(
                f"A spreadsheet has at most {most:,} {kind}, and {name!r} would have {number:,}. "
                "Write a .csv or .parquet file."
            )


class WorkbookWriter:
    """Appends tables to the only sheet of a workbook, below one header."""

    def __init__(self, file: Any) -> None:
        import xlsxwriter

        # Rows are written as they come; the workbook is put together at the end.
        self._book = xlsxwriter.Workbook(file, {"constant_memory": True})
        self._sheet = self._book.add_worksheet("rows")
        self._bold = self._book.add_format({"bold": True, "quote_prefix": True})
        # Text that begins like a formula stays text, also after it was edited.
        self._text = self._book.add_format({"quote_prefix": True})
        self._day = self._book.add_format({"num_format": "yyyy-mm-dd"})
        self._time = self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        self._n_rows = self._n_columns = 0

    def write(self, table: pa.Table) -> None:
        """Write the rows of a table, after the header if it is the first."""
        names = table.column_names
        if self._n_rows == 0:
            for place, name in enumerate(names):
                self._sheet.write_string(0, place, name, self._bold)
            self._sheet.freeze_panes(1, 0)
            self._n_rows, self._n_columns = 1, len(names)
        columns = [column.to_pylist() for column in table.columns]
        for row, values in enumerate(zip(*columns, strict=True), self._n_rows):
            for place, value in enumerate(values):
                if value is not None:
                    self._write_cell(row, place, value, names[place])
        self._n_rows += table.num_rows

    def close(self) -> None:
        """Write the workbook to the file."""
        if self._n_rows:
            self._sheet.autofilter(0, 0, self._n_rows - 1, self._n_columns - 1)
        self._book.close()

    def _write_cell(self, row: int, place: int, value: Any, name: str) -> None:
        """Write a value by its type; text is never taken for a formula, a number or a link."""
        sheet = self._sheet
        if isinstance(value, bool):
            sheet.write_boolean(row, place, value)
        elif _is_number(value):
            sheet.write_number(row, place, value)
        elif isinstance(value, datetime) and _is_day(value.date()) and value.tzinfo is None:
            sheet.write_datetime(row, place, value, self._time)
        elif type(value) is date and _is_day(value):
            sheet.write_datetime(row, place, value, self._day)
        elif not isinstance(value, float) or not math.isnan(value):
            text = value.decode() if isinstance(value, bytes) else str(value)
            if len(text) > _MOST_CHARACTERS:
                raise ValueError(
                    f"Column {name!r} has a text of {len(text):,} characters in row {row:,}, and a "
                    f"cell holds at most {_MOST_CHARACTERS:,}. Write a .csv or .parquet file."
                )
            is_like_formula = text.startswith(_FORMULA)
            sheet.write_string(row, place, text, self._text if is_like_formula else None)


def _is_number(value: Any) -> bool:
    """Return whether a cell can hold the number exactly."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Decimal):
        return Decimal(repr(float(value))) == value
    return isinstance(value, int) and abs(value) <= _EXACT


def _is_day(day: date) -> bool:
    return day >= _FIRST_DAY
