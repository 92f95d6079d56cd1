"""What a workbook would take in memory by its own figures: a stray cell may be a million rows away.

The reader of spreadsheets holds a sheet as a rectangle from its first to its last cell, so that a
small file can stand for any amount of memory.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from xml.parsers import expat

from classprior._core.messages import OptionError
from classprior._files.stored import StoredFile

_MOST_BYTES = 2**31  # of an unpacked workbook
_MOST_ROWS, _MOST_COLUMNS, _MOST_CELLS = 2**20, 2**14, 2**26
_MOST_CELLS_IF_EMPTY = 2**24  # of a rectangle that is mostly empty
_FULL = 8  # a rectangle is mostly empty if it has more cells than this for each one in the file
_BYTES_PER_CELL = 20  # of an .xlsx sheet, at least
_HEAD = 2**12  # bytes of a sheet in which it says its dimension
_DIMENSION = re.compile(rb"""<(?:\w+:)?dimension\s+ref\s*=\s*["'](?:\w+:)?([A-Z]+)(\d+)["']""")
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError),
    *(OSError, EOFError, expat.ExpatError, OverflowError),
)


class _TooLargeError(ValueError):
    """A workbook would take too much memory."""


def refuse_huge(file: StoredFile) -> None:
    """Raise if a file is no workbook, or if reading it would take too much memory."""
    try:
        with zipfile.ZipFile(file.path) as packed:
            members = packed.infolist()
            if sum(member.file_size for member in members) > _MOST_BYTES:
                raise _TooLargeError(f"unpacked, it has more than {_MOST_BYTES / 2**30:g} GiB")
            if "content.xml" in packed.namelist():
                _OpenDocument().check(packed)
            for member in members:
                if member.filename.startswith("xl/worksheets/"):
                    with packed.open(member) as sheet:
                        found = _DIMENSION.search(sheet.read(_HEAD))
                    if found:
                        width = 0
                        for letter in found[1]:
                            width = 26 * width + letter - 64
                        _check_rectangle(int(found[2]), width, member.file_size // _BYTES_PER_CELL)
    except _TooLargeError as error:
        raise ValueError(
            f"The spreadsheet {file.label} is too large: {error}. Save the sheet as CSV or Parquet."
        ) from None
    except _BROKEN as error:
        reason = str(error).removesuffix(".") or type(error).__name__
        raise OptionError(
            f"Could not read {file.label} as a spreadsheet: {reason}. Write the file again, or "
            "specify its format.",
            "file_format",
        ) from error


def _check_rectangle(height: int, width: int, most_cells: int) -> None:
    """Raise if a sheet has too many rows, columns or cells, or if too many are empty."""
    area = height * width
    is_empty = area > _MOST_CELLS_IF_EMPTY and area > _FULL * most_cells
    if height > _MOST_ROWS or width > _MOST_COLUMNS or area > _MOST_CELLS or is_empty:
        raise _TooLargeError(
            f"up to the last cell, a sheet has {height:,} rows and {width:,} columns, of which at "
            f"most {most_cells:,} cells have values"
        )


class _OpenDocument:
    """The cells of an .ods file, in which cells and rows may be repeated."""

    def __init__(self) -> None:
        self._height = self._width = self._n_cells = self._n_rows = 0
        self._row_repeats = self._column = self._last = self._repeats = 0
        self._has_value = self._is_in_cell = False

    def check(self, packed: zipfile.ZipFile) -> None:
        """Raise if a sheet would take too much memory."""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        with packed.open("content.xml") as file:
            parser.ParseFile(file)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "table:table":
                self._height = self._width = self._n_rows = self._n_cells = 0
            case "table:table-row":
                self._row_repeats = int(attributes.get("table:number-rows-repeated", 1))
                self._column = self._last = 0
            case "table:table-cell" | "table:covered-table-cell":
                self._repeats = int(attributes.get("table:number-columns-repeated", 1))
                self._has_value = any(name.startswith("office:") for name in attributes)
                self._is_in_cell = True

    def _add_text(self, text: str) -> None:
        self._has_value |= self._is_in_cell and bool(text.strip())

    def _end(self, name: str) -> None:
        match name:
            case "table:table-cell" | "table:covered-table-cell":
                self._is_in_cell = False
                self._column += self._repeats
                if self._has_value:
                    self._last = self._column
                    self._n_cells += 1
            case "table:table-row":
                self._n_rows += self._row_repeats
                if self._last:
                    self._height = self._n_rows
                    self._width = max(self._width, self._last)
            case "table:table":
                _check_rectangle(self._height, self._width, self._n_cells)
