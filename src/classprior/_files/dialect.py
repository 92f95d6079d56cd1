"""The dialect of CSV files: delimiter, decimal mark, encoding, and what is not CSV at all."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from classprior._core.messages import OptionError, listed
from classprior._files.stored import recoded, unpacked

#: Advice on a file whose first line is data. Other files may have a header, so it comes first.
NO_HEADER = "Add a line with names, or, if no file has one, read the files without a header."
_DELIMITERS = ",;\t|"
_SNIFFED = 1 << 17  # characters; the limit of the csv module for one value
_MOST_COLUMNS = 10_000
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # tested before UTF-16, whose mark is its prefix
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: What is not CSV, by its first bytes, and its format if it can be read.
_OTHER_FILES = {
    b"PAR1": ("a Parquet file", "parquet"),
    b"ARROW1": ("an Arrow file", "arrow"),
    b"FEA1": ("a Feather file", "arrow"),
    b"PK\x03\x04": ("a spreadsheet or another zip archive", "sheet"),
    b"\xd0\xcf\x11\xe0": ("an old spreadsheet", None),
    b"%PDF": ("a PDF document", None),
}
_INTEGER = re.compile(r"0|[1-9]\d*")
_NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?(\d*|\d{1,3}(\.\d{3})+),\d+\s*")
_DECIMAL_POINT = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class CsvDialect:
    """Delimiter, decimal mark and encoding of a CSV file."""

    delimiter: str  # comma, semicolon, tab or bar
    decimal: str  # point or comma, as most numbers have it
    encoding: str


def parts_of(source: Any, size: int = 1 << 24) -> Iterator[bytes]:
    """Yield the unpacked bytes of a file, a few megabytes at a time."""
    with unpacked(source) as stream:
        yield from iter(lambda: bytes(stream.read(size)), b"")


def refuse_other_files(head: bytes, label: str, *, is_encoding_known: bool) -> None:
    if not head.strip():
        raise ValueError(f"Expected a table in {label}, but it is empty.")
    for mark, (what, file_format) in _OTHER_FILES.items():
        if head.startswith(mark):
            advice = f"Specify its format, {file_format}." if file_format else "Save it as CSV."
            raise OptionError(
                f"Expected CSV text in {label}, got {what}. {advice}",
                "file_format" if file_format else None,
            )
    is_text = is_encoding_known or head.startswith(tuple(_BYTE_ORDER_MARKS))
    if b"\0" in head and not is_text:
        raise OptionError(
            f"Expected CSV text in {label}, got binary data (a zero at byte {head.index(0)}). If "
            "it is text, specify its encoding; otherwise, specify its format.",
            "file_format",
        )


def encoding_of(head: bytes, encoding: str | None) -> str:
    if encoding is not None:
        try:
            "".encode(encoding)  # raises if the codec is not for text, such as base64
            return codecs.lookup(encoding).name
        except (LookupError, UnicodeError):
            raise ValueError(
                f"Unknown encoding {encoding!r}. Try utf-8, latin-1, cp1252 or utf-16."
            ) from None
    return next((e for mark, e in _BYTE_ORDER_MARKS.items() if head.startswith(mark)), "utf-8")


def dialect_of(
    head: bytes, label: str, encoding: str, header: bool
) -> tuple[CsvDialect, list[list[str]]]:
    """Return the dialect and the first rows."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head).lstrip("\r\n\ufeff")
    rows = {delimiter: _first_rows(text, delimiter) for delimiter in _DELIMITERS}
    delimiter = max(_DELIMITERS, key=lambda d: _plausibility(rows[d]))
    width = re.split("[\r\n]", text, maxsplit=1)[0].count(delimiter) + 1
    if width > _MOST_COLUMNS:
        raise ValueError(
            f"The first line of {label} has at least {width:,} columns (limit "
            f"{_MOST_COLUMNS:,}). Check the line endings, or save a wide table as Parquet."
        )
    first = rows[delimiter][0]
    if header and all(_NUMBER.fullmatch(value) for value in first):
        raise OptionError(
            f"Expected column names in the first line of {label}, got numbers: "
            f"{listed(first, 4)}. {NO_HEADER}",
            "header",
        )
    values = [value for row in rows[delimiter][1:1000] for value in row]
    commas = sum(_DECIMAL_COMMA.fullmatch(value) is not None for value in values)
    points = sum(_DECIMAL_POINT.fullmatch(value) is not None for value in values)
    decimal = "," if delimiter != "," and commas > points else "."
    return CsvDialect(delimiter, decimal, encoding), rows[delimiter][:1000]


def is_number(name: str) -> bool:
    """Return whether the name of a column is a number, as if its file had no header."""
    return _NUMBER.fullmatch(name) is not None


def is_like_data(names: list[str]) -> bool:
    """Return whether names of columns of numbers are numbers themselves, but no sequence.

    The years 2024, 2025 and 2026 may well be names; 3.1, or 5 and 120, are hardly ever.
    """
    numbers = [name for name in names if is_number(name)]
    if not all(map(_INTEGER.fullmatch, numbers)):
        return True
    steps = {abs(after - before) for before, after in pairwise(map(int, numbers))}
    return bool(steps - {1})


def _first_rows(text: str, delimiter: str) -> list[list[str]]:
    """Return the first rows, without a last line that may be cut off."""
    start = text[:_SNIFFED]
    lines = io.StringIO(start, newline="").readlines()
    if len(start) < len(text) and len(lines) > 1:
        lines = lines[:-1]
    return [row for row in csv.reader(lines, delimiter=delimiter) if row] or [[""]]


def _plausibility(rows: list[list[str]]) -> tuple[float, int]:
    """Return the share of rows with the same number of values as the first, and that number."""
    width = len(rows[0])
    if width < 2:
        return 0.0, 0
    rows = rows[:100]
    return sum(len(row) == width for row in rows) / len(rows), width


def as_utf8(source: Any, label: str, encoding: str) -> Any:
    if encoding in ("utf-8", "utf-8-sig"):
        return source
    try:
        return recoded(source, encoding)
    except UnicodeError as error:
        raise wrong_encoding(source, label, encoding) from error


def wrong_encoding(source: Any, label: str, encoding: str) -> ValueError:
    decoder, n_read, where = codecs.getincrementaldecoder(encoding)(), 0, "in the first line"
    for part in parts_of(source):
        try:
            decoder.decode(part)
        except UnicodeDecodeError as error:
            byte = error.object[error.start : error.start + 1]
            where = f"at byte {n_read + error.start}: {byte!r}"
            break
        n_read += len(part)
    return OptionError(
        f"{label} is not {encoding} text ({where}). Specify its encoding, such as latin-1 or "
        "cp1252.",
        "encoding",
    )


def refuse_utf8(source: Any, label: str, encoding: str) -> None:
    """Raise if a file said to have another encoding is UTF-8: its letters would be garbled."""
    if codecs.lookup(encoding).name.startswith("utf"):
        return
    decoder, is_ascii = codecs.getincrementaldecoder("utf-8")(), True
    for part in parts_of(source):
        is_ascii &= part.isascii()
        try:
            decoder.decode(part)
        except UnicodeDecodeError:
            return
    if not is_ascii:
        raise ValueError(
            f"{label} is UTF-8 text, not {encoding}. Save all files in the same encoding, or leave "
            "the encoding out if all of them are UTF-8."
        )
