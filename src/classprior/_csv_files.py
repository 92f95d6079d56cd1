"""CSV files as people write them: their delimiter, decimal mark, encoding and faults."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classprior._messages import listed

if TYPE_CHECKING:
    import pyarrow as pa

#: What stands for a missing value, beside nothing at all.
MISSING_VALUES = ("", "?", "-", ".", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")

_DELIMITERS = ",;\t|"
_HEAD = 1 << 20  # bytes that are looked at before reading
_SNIFFED = 1 << 17  # characters; the csv module takes no longer value
_MOST_COLUMNS = 10_000
_LONGEST_ROW = 1 << 24  # bytes
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_OTHER_FILES = {
    b"PAR1": "a parquet file; try --format parquet",
    b"ARROW1": "an Arrow file; try --format arrow",
    b"FEA1": "a Feather file; try --format arrow",
    b"PK\x03\x04": "a zip archive or a spreadsheet; save it as CSV first",
    b"\xd0\xcf\x11\xe0": "a spreadsheet; save it as CSV first",
    b"%PDF": "a PDF document; a table is needed",
}
_NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?(\d*|\d{1,3}(\.\d{3})+),\d+\s*")
_DECIMAL_POINT = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class CsvDialect:
    """How a CSV file is written.

    Parameters
    ----------
    delimiter : str
        Between values: comma, semicolon, tab or bar.
    decimal : str
        Point or comma.
    encoding : str
        Of the text.
    """

    delimiter: str
    decimal: str
    encoding: str


def read_csv(
    source: Any, label: str, encoding: str | None, header: bool, keep_text: bool
) -> tuple[pa.Table, pa.Table | None, CsvDialect]:
    """Read a CSV file, compressed or not.

    Parameters
    ----------
    source : path or file
        Where the bytes are.
    label : str
        How messages call it.
    encoding : str or None
        Of the text; None finds it.
    header : bool
        Whether the first line has the names.
    keep_text : bool
        Whether to return the text of all values too.

    Returns
    -------
    table : pyarrow Table
        Numbers, booleans, dates and text.
    text : pyarrow Table or None
        The same rows as they stand in the file.
    dialect : CsvDialect
        How it is written.
    """
    data = _bytes_of(source)
    head = data.slice(0, min(_HEAD, data.size)).to_pybytes()
    _refuse_other_files(head, label)
    encoding = _encoding(head, encoding)
    dialect = _dialect(head, label, encoding, header)
    table = _parsed(data, label, dialect, header)
    table = _with_local_numbers_and_dates(table, dialect.decimal)
    names = [f"column_{i + 1}" for i in range(table.num_columns)]
    if header:
        names = [n.strip() or f for n, f in zip(table.column_names, names, strict=True)]
    text = None
    if keep_text:
        text = _arrow_table(data, dialect, header, as_text=table.column_names)
        text = text.rename_columns(names)
    return table.rename_columns(names), text, dialect


def arrow_format_of(path: Path, label: str, encoding: str | None, header: bool) -> Any:
    """Return how a CSV file is written as pyarrow's datasets, which read in blocks, want it.

    Parameters
    ----------
    path : Path
        The file, of which the first megabyte is read.
    label : str
        How messages call it.
    encoding : str or None
        Of the text; None finds it.
    header : bool
        Whether the first line has the names.

    Returns
    -------
    format : pyarrow.dataset.CsvFileFormat
        Gaps and dates are what they are in ``read_csv``; numbers with grouped thousands are text.
    """
    from pyarrow import csv as arrow_csv
    from pyarrow.dataset import CsvFileFormat

    with path.open("rb") as file:
        head = (gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else file).read(_HEAD)
    _refuse_other_files(head, label)
    dialect = _dialect(head, label, _encoding(head, encoding), header)
    options = _arrow_options(dialect, header)
    # In blocks, nobody sees all of a column, to tell dates by their text.
    options["convert_options"].timestamp_parsers = [arrow_csv.ISO8601, "%d.%m.%Y"]
    return CsvFileFormat(**options)


def has_grouped_numbers(column: Any) -> bool:
    """Tell whether text is numbers, thousands grouped in some, such as 1,234.50 or 1.234,50.

    Parameters
    ----------
    column : pyarrow array
        Text.

    Returns
    -------
    answer : bool
        Whether all values are such numbers.
    """
    return any(_all_match(column, _number_pattern(decimal)[0]) for decimal in ".,")


def _bytes_of(source: Any) -> pa.Buffer:
    import pyarrow as pa

    is_file = hasattr(source, "read")
    stream = pa.BufferReader(source.read()) if is_file else pa.memory_map(str(source))
    head = stream.read(2)
    stream.seek(0)
    if head == b"\x1f\x8b":
        stream = pa.CompressedInputStream(stream, "gzip")
    try:
        return stream.read_buffer()
    except OSError as error:
        raise ValueError(f"Expected a whole gzip file, could not unpack it: {error}.") from error


def _refuse_other_files(head: bytes, label: str) -> None:
    if not head.strip():
        raise ValueError(f"Expected a table in {label}, found an empty file.")
    for mark, what in _OTHER_FILES.items():
        if head.startswith(mark):
            raise ValueError(f"Expected CSV text in {label}, found {what}.")
    if b"\0" in head and not head.startswith(tuple(_BYTE_ORDER_MARKS)):
        raise ValueError(
            f"Expected CSV text in {label}, found binary data (a zero at byte "
            f"{head.index(0)}). Say what it is with --format, or its --encoding if it is text."
        )


def _encoding(head: bytes, encoding: str | None) -> str:
    if encoding is not None:
        try:
            return codecs.lookup(encoding).name
        except LookupError:
            raise ValueError(
                f"Expected the name of an encoding, got {encoding!r}. Try utf-8, latin-1, cp1252 "
                "or utf-16."
            ) from None
    return next((e for mark, e in _BYTE_ORDER_MARKS.items() if head.startswith(mark)), "utf-8")


def _dialect(head: bytes, label: str, encoding: str, header: bool) -> CsvDialect:
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head).lstrip("\r\n\ufeff")
    rows = {delimiter: _first_rows(text, delimiter) for delimiter in _DELIMITERS}
    delimiter = max(_DELIMITERS, key=lambda d: _plausibility(rows[d]))
    width = re.split("[\r\n]", text, maxsplit=1)[0].count(delimiter) + 1
    if width > _MOST_COLUMNS:
        raise ValueError(
            f"Expected at most {_MOST_COLUMNS:,} columns in {label}, got a first line with at "
            f"least {width:,}. Are lines ended the usual way? Wide tables are read from parquet."
        )
    first = rows[delimiter][0]
    if header and all(_NUMBER.fullmatch(value) for value in first):
        raise ValueError(
            f"Expected names of columns in the first line of {label}, got numbers: "
            f"{listed(first, 4)}. Add a line with names, or say --no-header."
        )
    values = [value for row in rows[delimiter][1:1000] for value in row]
    commas = sum(_DECIMAL_COMMA.fullmatch(value) is not None for value in values)
    points = sum(_DECIMAL_POINT.fullmatch(value) is not None for value in values)
    decimal = "," if delimiter != "," and commas > points else "."
    return CsvDialect(delimiter, decimal, encoding)


def _first_rows(text: str, delimiter: str) -> list[list[str]]:
    """Return the first rows; a line that the end of the text cuts off is not among them."""
    start = text[:_SNIFFED]
    lines = io.StringIO(start, newline="").readlines()
    if len(start) < len(text) and len(lines) > 1:
        lines = lines[:-1]
    return [row for row in csv.reader(lines, delimiter=delimiter) if row] or [[""]]


def _plausibility(rows: list[list[str]]) -> tuple[float, int]:
    """Return how many lines have as many values as the first, and that number."""
    width = len(rows[0])
    if width < 2:
        return 0.0, 0
    rows = rows[:100]
    return sum(len(row) == width for row in rows) / len(rows), width


def _parsed(data: pa.Buffer, label: str, dialect: CsvDialect, header: bool) -> pa.Table:
    import pyarrow as pa

    try:
        table = _arrow_table(data, dialect, header)
        kinds = dict(zip(table.column_names, table.schema.types, strict=True))  # decodes the names
    except UnicodeDecodeError as error:
        raise _wrong_encoding(data, label, dialect.encoding) from error
    except pa.ArrowInvalid as error:
        raise _fault(error, data, label, dialect, header) from error
    if any(map(pa.types.is_binary, kinds.values())):
        raise _wrong_encoding(data, label, dialect.encoding)
    if "\n" in _last_values(table) and _quotation_marks(data) % 2:
        raise ValueError(
            f"Expected closed quotation marks in {label}, found one that is opened and never "
            "closed, so that the rest of the file is one value. Close it, or double it where it "
            "is part of a value."
        )
    return table


def _arrow_table(
    data: pa.Buffer,
    dialect: CsvDialect,
    header: bool,
    *,
    as_text: Sequence[str] = (),
    threads: bool = True,
) -> pa.Table:
    """Return the rows, all typed or, given the names of the columns, as text."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    options = _arrow_options(dialect, header)
    options["read_options"].use_threads = threads
    if as_text:
        types = dict.fromkeys(as_text, pa.string())
        options["convert_options"] = arrow_csv.ConvertOptions(null_values=[], column_types=types)
    return arrow_csv.read_csv(pa.BufferReader(data), **options)


def _arrow_options(dialect: CsvDialect, header: bool) -> dict[str, Any]:
    """Return how pyarrow is to read, in memory and in blocks."""
    from pyarrow import csv as arrow_csv

    parse_options = arrow_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)
    return {
        "read_options": arrow_csv.ReadOptions(
            block_size=_LONGEST_ROW,
            autogenerate_column_names=not header,
            encoding=dialect.encoding.removesuffix("-sig"),
        ),
        "parse_options": parse_options,
        "convert_options": arrow_csv.ConvertOptions(
            decimal_point=dialect.decimal, null_values=MISSING_VALUES, strings_can_be_null=True
        ),
    }


def _with_local_numbers_and_dates(table: pa.Table, decimal: str) -> pa.Table:
    """Return a table in which 1.234,50 (or 1,234.50) and 31.12.2026 are text no longer."""
    import pyarrow as pa

    number, group = _number_pattern(decimal)
    date = r"^\d{1,2}\.\d{1,2}\.\d{4}$"
    for place, column in enumerate(table.columns):
        if not pa.types.is_string(column.type):
            continue
        values = None
        if _all_match(column, number):
            values = _ungrouped(column, group, decimal)
        elif _all_match(column, date):
            values = _dates(column)
        if values is not None:
            table = table.set_column(place, table.schema.field(place).name, values)
    return table


def _number_pattern(decimal: str) -> tuple[str, str]:
    """Return what numbers look like, their thousands grouped or not, and the mark that groups."""
    point, group = re.escape(decimal), "." if decimal == "," else ","
    number = rf"^\s*[-+]?(\d+|\d{{1,3}}({re.escape(group)}\d{{3}})+)({point}\d+)?\s*$"
    return number, group


def _all_match(column: Any, pattern: str) -> bool:
    """Whether all values look like that; mostly the first tells."""
    import pyarrow.compute as pc

    present = column.drop_null()
    if not len(present) or not re.match(pattern, present[0].as_py()):
        return False
    return bool(pc.all(pc.match_substring_regex(present, pattern)).as_py())


def _ungrouped(column: Any, group: str, decimal: str) -> Any:
    import pyarrow.compute as pc

    text = pc.replace_substring(pc.replace_substring(column, group, ""), decimal, ".")
    return pc.cast(pc.utf8_trim_whitespace(text), "float64")


def _dates(column: Any) -> Any | None:
    """Return dates such as 31.12.2026, None where one is none, such as 31.13.2026."""
    import pyarrow.compute as pc

    dates = pc.strptime(column, format="%d.%m.%Y", unit="s", error_is_null=True)
    return dates if dates.null_count == column.null_count else None


def _last_values(table: pa.Table) -> str:
    import pyarrow as pa

    columns = [c for c in table.columns if pa.types.is_string(c.type) and len(c)]
    return "".join(str(column[-1].as_py()) for column in columns)


def _quotation_marks(data: pa.Buffer) -> int:
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord('"')))


def _wrong_encoding(data: pa.Buffer, label: str, encoding: str) -> ValueError:
    try:
        data.to_pybytes().decode(encoding)
        where = "in the first line"
    except UnicodeDecodeError as error:
        where = f"at byte {error.start}: {error.object[error.start : error.start + 1]!r}"
    return ValueError(
        f"Expected text in {encoding} in {label}, found something else {where}. Say how the file "
        "was saved, for instance --encoding latin-1 or --encoding cp1252."
    )


def _fault(
    error: Exception, data: pa.Buffer, label: str, dialect: CsvDialect, header: bool
) -> ValueError:
    """Return what is wrong with the file, with the row, which only one thread can count."""
    import pyarrow as pa

    message = str(error)
    try:
        _arrow_table(data, dialect, header, threads=False)
    except pa.ArrowInvalid as again:
        message = str(again)
    if "straddling" in message:
        return ValueError(
            f"Expected rows of at most {_LONGEST_ROW >> 20} MiB in {label}, found a longer one. Is "
            "a quotation mark opened and never closed?"
        )
    found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
    if found:
        row, expected, got = found.groups()
        name = {"\t": "tab"}.get(dialect.delimiter, repr(dialect.delimiter))
        return ValueError(
            f"Expected {expected} values in every row of {label}, got {got} in row {row}, counted "
            f"with the first line as 1 (values are separated by {name}). Repair that row; a value "
            "that holds the separator needs quotation marks."
        )
    return ValueError(f"Expected a CSV file in {label}, could not read it: {message}.")
