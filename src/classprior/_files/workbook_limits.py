"""What a workbook would take in memory, counted while it is unpacked: its own figures may be false.

The reader of spreadsheets holds a sheet as a rectangle from its first to its last cell, each with a
copy of its text, so that a few bytes can stand for any amount of memory.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from xml.parsers import expat

import numpy as np

from classprior._core.messages import OptionError
from classprior._files.stored import StoredFile

_MOST_BYTES = 2**31  # of an unpacked workbook, and of the texts in its cells
_MOST_ROWS, _MOST_COLUMNS, _MOST_CELLS = 2**20, 2**14, 2**26
_MOST_CELLS_IF_EMPTY = 2**24  # of a rectangle that is mostly empty
_FULL = 8  # a rectangle is mostly empty if it has more cells than this for each one in the file
_PART = 2**20  # bytes unpacked at a time
_TAG = 2**12  # bytes that hold any usual tag, which parts may cut in two
# Tags may have a prefix, as in <x:c>. The patterns begin with a letter or a mark, which is fast.
_PLACE = re.compile(rb"""r\s*=\s*["']([A-Za-z]+)(\d+)["']""")  # such as r="XFD1048576"
_ROW = re.compile(rb"row[\s/>]")
_CELLS = b"<c ", b"<c>", b":c ", b":c>"
_TEXT = re.compile(rb"""t\s*=\s*["']s["']""")  # the value is the number of a shared text
_NUMBER_OF_TEXT = re.compile(
    _TEXT.pattern + rb"[^<]*(?:<(?!(?:\w+:)?[cv][\s/>])[^<]*)*<(?:\w+:)?v\s*>\s*(\d+)"
)
_SHARED = re.compile(rb"si[\s/>]")
_UNPACKED = f"unpacked, it has more than {_MOST_BYTES / 2**30:g} GiB"
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
            _check_members(packed)
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


def _check_members(packed: zipfile.ZipFile) -> None:
    """Unpack all members and check what they would take; any of them may be a sheet."""
    left = _MOST_BYTES
    sheets, longest = [], np.zeros(0, dtype=np.int64)  # lengths of shared texts
    is_open_document = "content.xml" in packed.namelist()
    for member in packed.infolist():
        is_content = member.filename == "content.xml"
        found: Any = _OpenDocument() if is_open_document and is_content else _Sheet()
        for part in _unpacked(packed, member, left):
            left -= len(part)
            found.add(part)
        found.end()
        sheets.append(found)
        n = max(len(longest), len(found.shared))
        longest = np.maximum(*(np.pad(a, (0, n - len(a))) for a in (longest, found.shared)))
    for sheet in sheets:
        if (n_bytes := sheet.n_bytes_of_text(longest)) > _MOST_BYTES:
            raise _TooLargeError(f"it has {n_bytes / 2**30:,.0f} GiB of text in its cells")


def _unpacked(packed: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> Iterator[bytes]:
    """Yield the bytes of a member; its size in the directory of the file is only a claim."""
    claimed = member.file_size
    if claimed > limit:
        raise _TooLargeError(_UNPACKED)
    member.file_size = limit + 2 * _PART  # up to which the module reads
    n_bytes = 0
    with packed.open(member) as file:
        while part := file.read(_PART):
            n_bytes += len(part)
            if n_bytes > limit:
                raise _TooLargeError(_UNPACKED)
            yield part
    if n_bytes != claimed:
        raise zipfile.BadZipFile(
            f"{member.filename!r} has {n_bytes:,} bytes, not {claimed:,} as the file claims"
        )


def _check_rectangle(height: int, width: int, n_cells: int) -> None:
    """Raise if a sheet has too many rows, columns or cells, or if too many are empty."""
    area = max(height * width, n_cells)
    is_empty = area > _MOST_CELLS_IF_EMPTY and area > _FULL * n_cells
    if height > _MOST_ROWS or width > _MOST_COLUMNS or area > _MOST_CELLS or is_empty:
        raise _TooLargeError(
            f"up to the last cell, a sheet has {height:,} rows and {width:,} columns, of which "
            f"{n_cells:,} cells have values"
        )


class _Sheet:
    """The cells of an .xlsx sheet, or the texts that its sheets share; others have neither."""

    def __init__(self) -> None:
        self._rest = b""
        self._height = self._width = self._n_cells = self._n_rows = self._n_texts = 0
        self._n_in_row = 0  # cells since the beginning of a row, if they have no places
        self._counts = np.zeros(0, dtype=np.int64)  # cells with each of the shared texts
        self._lengths: list[int] = []  # of shared texts
        self._shared_bytes = -1  # since the beginning of the last shared text

    def add(self, part: bytes) -> None:
        """Look at the next bytes."""
        text = self._rest + part
        cut = text.rfind(b"<", -_TAG)
        # A text cell and its number stay together: a cell begins with <c.
        cell = max(text.rfind(b"<c ", -_TAG), text.rfind(b":c ", -_TAG))
        cut = cell if cell > 0 else cut
        cut = cut if cut > 0 else len(text)
        self._rest = text[cut:]
        self._look(text[:cut])

    def end(self) -> None:
        """Look at the last bytes, and check the size of the sheet."""
        self._look(self._rest)
        if self._shared_bytes >= 0:
            self._lengths.append(self._shared_bytes)
        if self._height:
            _check_rectangle(self._height, self._width, self._n_cells)

    def _look(self, text: bytes) -> None:
        n_cells, places = _count_cells(text), _PLACE.findall(text)
        if n_cells or places:
            self._look_at_cells(text, n_cells, places)
        starts = [] if n_cells else [found.start() for found in _SHARED.finditer(text)]
        if starts or self._shared_bytes >= 0:
            ends = [*starts, len(text)]
            self._shared_bytes += ends[0] if self._shared_bytes >= 0 else 0
            for start, end in pairwise(ends):
                if self._shared_bytes >= 0:
                    self._lengths.append(self._shared_bytes)
                self._shared_bytes = end - start

    def _look_at_cells(self, text: bytes, n_cells: int, places: list[tuple[bytes, bytes]]) -> None:
        self._n_cells += n_cells
        for letters in {letters for letters, _ in places}:
            self._width = max(self._width, _number_of_column(letters.upper()))
        self._height = max([self._height, *(int(row[:9]) for row in {row for _, row in places})])
        if len(places) < n_cells:  # cells without a place follow each other
            first, *rows = _ROW.split(text)
            in_rows = [_count_cells(row) for row in rows]
            self._n_in_row += _count_cells(first)
            self._n_rows += len(rows)
            self._height = max(self._height, self._n_rows)
            self._width = max([self._width, self._n_in_row, *in_rows])
            self._n_in_row = in_rows[-1] if in_rows else self._n_in_row
        else:
            self._n_rows += len(_ROW.findall(text))
        if self._n_cells > _MOST_CELLS or self._height > _MOST_ROWS:  # before more time is spent
            _check_rectangle(self._height, self._width, self._n_cells)
        self._n_texts += len(_TEXT.findall(text))
        numbers = [int(n[:9]) for n in _NUMBER_OF_TEXT.findall(text)]
        counts = np.bincount([n for n in numbers if n < _MOST_CELLS] or [0], minlength=1)
        counts[0] -= not numbers
        n = max(len(counts), len(self._counts))
        self._counts = np.pad(counts, (0, n - len(counts))) + np.pad(
            self._counts, (0, n - len(self._counts))
        )

    @property
    def shared(self) -> Any:
        """Lengths of the shared texts, in bytes."""
        return np.array(self._lengths, dtype=np.int64)

    def n_bytes_of_text(self, lengths: Any) -> int:
        """Return the bytes of the shared texts in all cells, given the length of each text."""
        if not len(lengths):
            return 0
        n = min(len(lengths), len(self._counts))
        unknown = self._n_texts - int(self._counts.sum())
        return int(self._counts[:n] @ lengths[:n]) + max(0, unknown) * int(lengths.max())


def _count_cells(text: bytes) -> int:
    return sum(map(text.count, _CELLS))


def _number_of_column(letters: bytes) -> int:
    """Return the number of a column such as A, which is 1, or XFD."""
    number = 0
    for letter in letters[:4]:  # no sheet has a column with four letters
        number = 26 * number + letter - 64
    return number


class _OpenDocument:
    """The cells of an .ods file, in which cells and rows may be repeated."""

    shared = np.zeros(0, dtype=np.int64)

    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add_text
        self._parser.StartDoctypeDeclHandler = _refuse_doctype
        self._height = self._width = self._n_cells = self._n_rows = self._n_bytes = 0
        self._row_repeats = self._column = self._last = self._row_bytes = 0
        self._repeats = self._length = 0
        self._has_value = self._is_in_cell = False

    def add(self, part: bytes) -> None:
        """Look at the next bytes."""
        self._parser.Parse(part, False)

    def end(self) -> None:
        """Check the end of the file."""
        self._parser.Parse(b"", True)

    def n_bytes_of_text(self, lengths: Any) -> int:
        """Return the bytes of the texts in all cells."""
        return self._n_bytes

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "table:table":
                self._height = self._width = self._n_rows = self._n_cells = 0
            case "table:table-row":
                self._row_repeats = int(attributes.get("table:number-rows-repeated", 1))
                self._column = self._last = self._row_bytes = 0
            case "table:table-cell" | "table:covered-table-cell":
                self._repeats = int(attributes.get("table:number-columns-repeated", 1))
                self._has_value = any(name.startswith("office:") for name in attributes)
                self._length = sum(map(len, attributes.values()))
                self._is_in_cell = True

    def _add_text(self, text: str) -> None:
        if self._is_in_cell:
            self._length += len(text)
            self._has_value = self._has_value or bool(text.strip())

    def _end(self, name: str) -> None:
        match name:
            case "table:table-cell" | "table:covered-table-cell":
                self._is_in_cell = False
                self._column += self._repeats
                if self._has_value:
                    self._last = self._column
                    self._n_cells += 1
                    self._row_bytes += self._repeats * self._length
            case "table:table-row":
                self._n_rows += self._row_repeats
                if self._last:
                    self._height = self._n_rows
                    self._width = max(self._width, self._last)
                    self._n_bytes += self._row_repeats * self._row_bytes
            case "table:table":
                _check_rectangle(self._height, self._width, self._n_cells)


def _refuse_doctype(*_: Any) -> None:
    raise zipfile.BadZipFile("it has a document type declaration")
