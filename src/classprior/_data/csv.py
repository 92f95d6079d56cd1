"""CSV files as people write them: their delimiter, decimal mark, encoding and faults."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from classprior._core.messages import listed

if TYPE_CHECKING:
    import pyarrow as pa

#: What stands for a missing value, beside nothing at all.
MISSING_VALUES = ("", "?", "-", ".", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")

#: Bytes that are parsed at a time; no row may be longer.
BLOCK_SIZE = 1 << 24
_DELIMITERS = ",;\t|"
_HEAD = 1 << 20  # bytes that are looked at before reading
_SNIFFED = 1 << 17  # characters; the csv module takes no longer value
_MOST_COLUMNS = 10_000
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_OTHER_FILES = {
    b"PAR1": "a parquet file; give its format as parquet",
    b"ARROW1": "an Arrow file; give its format as arrow",
    b"FEA1": "a Feather file; give its format as arrow",
    b"PK\x03\x04": "a zip archive or a spreadsheet; save it as CSV first",
    b"\xd0\xcf\x11\xe0": "a spreadsheet; save it as CSV first",
    b"%PDF": "a PDF document; a table is needed",
}
_NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?(\d*|\d{1,3}(\.\d{3})+),\d+\s*")
_LOCAL_DATE = r"^\d{1,2}\.\d{1,2}\.\d{4}$"
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


@dataclass(frozen=True)
class CsvFile:
    """One CSV file, surveyed: how it is written, and what its columns hold.

    Parameters
    ----------
    source : path or bytes
        Where the text is.
    label : str
        How messages call it.
    header : bool
        Whether its first line has the names of the columns.
    dialect : CsvDialect
        How it is written.
    names : tuple of str
        Names of the columns.
    schema : pyarrow.Schema
        Columns as pyarrow reads them, under the names that stand in the file.
    widened : dict of str to pyarrow.DataType
        Types of columns that hold something else than their first values suggest.
    local : dict of int to str
        Positions of columns of text that hold a "number" or a "date" written the local way.
    n_rows : int
        Rows below the header.
    block_size : int
        Bytes that are parsed at a time, and the longest row.
    """

    source: Any
    label: str
    header: bool
    dialect: CsvDialect
    names: tuple[str, ...]
    schema: Any
    widened: dict[str, Any]
    local: dict[int, str]
    n_rows: int
    block_size: int

    def tables(self, *, as_text: bool = False) -> Iterator[pa.Table]:
        """Read the rows, a few megabytes at a time; as text, just as they are written."""
        import pyarrow as pa

        types = dict.fromkeys(self.schema.names, pa.string()) if as_text else self.widened
        local = {} if as_text else self.local
        options = self.dialect, self.header, self.block_size
        for batch in _opened(self.source, *options, types, as_text=as_text):
            table = pa.Table.from_batches([batch]).rename_columns(list(self.names))
            yield _with_local_values(table, local, self.dialect.decimal)

    @property
    def types(self) -> list[Any]:
        """Types of the columns of ``tables()``."""
        import pyarrow as pa

        local = {"number": pa.float64(), "date": pa.timestamp("s")}
        return [
            local[self.local[place]] if place in self.local else found
            for place, found in enumerate(self.schema.types)
        ]


def survey_csv(
    source: Any,
    label: str,
    encoding: str | None = None,
    header: bool = True,
    block_size: int = BLOCK_SIZE,
) -> CsvFile:
    """Read a CSV file once: find out how it is written, and what all rows of its columns hold."""
    head = _head(source, label)
    _refuse_other_files(head, label, is_encoding_known=encoding is not None)
    dialect = _dialect(head, label, _encoding(head, encoding), header)
    with _unpacked(label):
        seen, widened = _passed(source, label, dialect, header, block_size)
    if "\n" in seen.last_values and _quotation_marks(source) % 2:
        raise ValueError(
            f"A quotation mark in {label} is opened and never closed, so that the rest of the file "
            "is one value. Close it, or double it where it is part of a value."
        )
    names = [f"column_{i + 1}" for i in range(len(seen.names))]
    if header:
        names = [n.strip() or f for n, f in zip(seen.names, names, strict=True)]
    return CsvFile(
        source,
        label,
        header,
        dialect,
        tuple(names),
        seen.schema,
        widened,
        seen.local_columns(),
        seen.n_rows,
        block_size,
    )


def _passed(
    source: Any, label: str, dialect: CsvDialect, header: bool, block_size: int
) -> tuple[_Seen, dict[str, Any]]:
    """Go through all rows, and return what was seen and the types that had to be widened.

    pyarrow takes the types from the first block; one that later rows contradict is widened.
    """
    import pyarrow as pa

    widened: dict[str, Any] = {}
    schema = None
    while True:
        try:
            reader = _opened(source, dialect, header, block_size, widened)
            schema = reader.schema
            if any(map(pa.types.is_binary, schema.types)):
                raise _wrong_encoding(source, label, dialect.encoding)
            seen = _Seen(schema, dialect.decimal)
            for batch in reader:
                seen.add(batch)
            return seen, widened
        except UnicodeDecodeError as error:
            raise _wrong_encoding(source, label, dialect.encoding) from error
        except pa.ArrowInvalid as error:
            wider = _wider(error, schema, widened, dialect)
            if wider is None:
                raise _fault(error, source, label, dialect, header, block_size, schema) from error
            widened |= wider


class _Seen:
    """What a pass over all rows of a file has seen."""

    def __init__(self, schema: Any, decimal: str) -> None:
        import pyarrow as pa

        self.schema = schema
        self.names = schema.names  # decodes them
        self.n_rows = 0
        self.last_values = ""
        number, _ = _number_pattern(decimal)
        self._patterns = {"number": number, "date": _LOCAL_DATE}
        texts = [place for place, found in enumerate(schema.types) if pa.types.is_string(found)]
        self._local = {place: dict.fromkeys(self._patterns, True) for place in texts}
        self._has_values = dict.fromkeys(texts, False)

    def add(self, batch: Any) -> None:
        """Take note of some rows."""
        self.n_rows += batch.num_rows
        if not batch.num_rows:
            return
        for place, possible in self._local.items():
            column = batch.column(place).drop_null()
            self._has_values[place] |= len(column) > 0
            for kind, pattern in self._patterns.items():
                possible[kind] = possible[kind] and _all_match(column, pattern, kind)
        self.last_values = "".join(str(batch.column(place)[-1].as_py()) for place in self._local)

    def local_columns(self) -> dict[int, str]:
        """Return the columns of text all of whose values are local numbers or dates."""
        return {
            place: next(kind for kind in self._patterns if possible[kind])
            for place, possible in self._local.items()
            if self._has_values[place] and any(possible.values())
        }


def _opened(
    source: Any,
    dialect: CsvDialect,
    header: bool,
    block_size: int,
    types: dict[str, Any],
    *,
    as_text: bool = False,
    use_threads: bool = True,
) -> Any:
    """Return pyarrow's streaming reader of a file."""
    from pyarrow import csv as arrow_csv

    return arrow_csv.open_csv(
        _stream(source),
        read_options=arrow_csv.ReadOptions(
            block_size=block_size,
            autogenerate_column_names=not header,
            encoding=dialect.encoding.removesuffix("-sig"),
            use_threads=use_threads,
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        convert_options=_convert_options(dialect, types, as_text=as_text),
    )


def _convert_options(dialect: CsvDialect, types: dict[str, Any], *, as_text: bool = False) -> Any:
    from pyarrow import csv as arrow_csv

    return arrow_csv.ConvertOptions(
        decimal_point=dialect.decimal,
        null_values=[] if as_text else MISSING_VALUES,
        strings_can_be_null=not as_text,
        column_types=types,
    )


def _stream(source: Any) -> Any:
    """Open the text of a file, compressed or not."""
    import pyarrow as pa

    stream = pa.BufferReader(source) if isinstance(source, bytes) else pa.OSFile(str(source))
    is_packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    return pa.CompressedInputStream(stream, "gzip") if is_packed else stream


def _head(source: Any, label: str) -> bytes:
    with _unpacked(label), _stream(source) as stream:
        return bytes(stream.read(_HEAD))


@contextmanager
def _unpacked(label: str) -> Iterator[None]:
    """Say which file could not be unpacked; what the system itself says needs no more words."""
    try:
        yield
    except OSError as error:
        if error.strerror:
            raise
        raise ValueError(
            f"Expected a whole gzip file in {label}, could not unpack it: {error}."
        ) from error


def _wider(
    error: Exception, schema: Any, widened: dict[str, Any], dialect: CsvDialect
) -> dict[str, Any] | None:
    """Return the column whose type an error complains about, with one that takes the value."""
    import pyarrow as pa

    found = re.search(r"In CSV column #(\d+): .*conversion error to", str(error))
    if found is None or schema is None:
        return None
    field = schema.field(int(found[1]))
    current = widened.get(field.name, field.type)
    if current == pa.string():  # which takes everything but another encoding
        return None
    value = re.search(r"invalid value '(.*)'$", str(error), re.DOTALL)
    wider = _common_type(current, _type_of(value[1], dialect)) if value else current
    return {field.name: pa.string() if wider == current else wider}


def _type_of(value: str, dialect: CsvDialect) -> Any:
    """Return the type that pyarrow gives to a value that stands alone."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    quoted = value.replace('"', '""')
    table = arrow_csv.read_csv(
        pa.BufferReader(f'x\n"{quoted}"\n'.encode()),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=_convert_options(dialect, {}),
    )
    return table.schema.types[0]


def _common_type(current: Any, other: Any) -> Any:
    """Return the narrowest type that takes a column and a value that it could not take so far."""
    import pyarrow as pa

    pair = {current, other}
    if pa.null() in pair and len(pair) == 2:
        return (pair - {pa.null()}).pop()
    if pair == {pa.int64(), pa.float64()}:
        return pa.float64()
    if (current, other) == (pa.int64(), pa.bool_()):  # if all numbers are 0 or 1
        return pa.bool_()
    if pair == {pa.date32(), pa.timestamp("s")}:
        return pa.timestamp("s")
    times = pair - {pa.date32()}
    zones = {found.tz for found in times if pa.types.is_timestamp(found)}
    if len(pair) == 2 and all(map(pa.types.is_timestamp, times)) and len(zones) == 1:
        zone = zones.pop()
        if zone is None or times == pair:  # a date has no zone
            return pa.timestamp("ns", zone)
    return pa.string()


def _refuse_other_files(head: bytes, label: str, *, is_encoding_known: bool) -> None:
    if not head.strip():
        raise ValueError(f"Expected a table in {label}, found an empty file.")
    for mark, what in _OTHER_FILES.items():
        if head.startswith(mark):
            raise ValueError(f"Expected CSV text in {label}, found {what}.")
    is_text = is_encoding_known or head.startswith(tuple(_BYTE_ORDER_MARKS))
    if b"\0" in head and not is_text:
        raise ValueError(
            f"Expected CSV text in {label}, found binary data (a zero at byte "
            f"{head.index(0)}). Give its format, or its encoding if it is text."
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
            f"{listed(first, 4)}. Add a line with names, or read it without a header."
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


def _with_local_values(table: pa.Table, local: dict[int, str], decimal: str) -> pa.Table:
    """Return a table in which 1.234,50 (or 1,234.50) and 31.12.2026 are text no longer."""
    _, group = _number_pattern(decimal)
    for place, kind in local.items():
        column = table.column(place)
        values = _ungrouped(column, group, decimal) if kind == "number" else _dates(column)
        table = table.set_column(place, table.schema.names[place], values)
    return table


def _number_pattern(decimal: str) -> tuple[str, str]:
    """Return what numbers look like, their thousands grouped or not, and the mark that groups."""
    point, group = re.escape(decimal), "." if decimal == "," else ","
    number = rf"^\s*[-+]?(\d+|\d{{1,3}}({re.escape(group)}\d{{3}})+)({point}\d+)?\s*$"
    return number, group


def _all_match(column: Any, pattern: str, kind: str) -> bool:
    """Tell whether all values look like that; mostly the first tells."""
    import pyarrow.compute as pc

    if not len(column):
        return True
    if not re.match(pattern, column[0].as_py()):
        return False
    if not pc.all(pc.match_substring_regex(column, pattern)).as_py():
        return False
    return kind != "date" or _dates(column).null_count == 0  # 31.13.2026 is none


def _ungrouped(column: Any, group: str, decimal: str) -> Any:
    import pyarrow.compute as pc

    text = pc.replace_substring(pc.replace_substring(column, group, ""), decimal, ".")
    return pc.cast(pc.utf8_trim_whitespace(text), "float64")


def _dates(column: Any) -> Any:
    """Return dates such as 31.12.2026; a gap where one is none."""
    import pyarrow.compute as pc

    return pc.strptime(column, format="%d.%m.%Y", unit="s", error_is_null=True)


def _quotation_marks(source: Any) -> int:
    with _stream(source) as stream:
        return sum(part.count(b'"') for part in iter(lambda: bytes(stream.read(1 << 24)), b""))


def _wrong_encoding(source: Any, label: str, encoding: str) -> ValueError:
    decoder, n_read, where = codecs.getincrementaldecoder(encoding)(), 0, "in the first line"
    with _stream(source) as stream:
        for part in iter(lambda: bytes(stream.read(1 << 24)), b""):
            try:
                decoder.decode(part)
            except UnicodeDecodeError as error:
                byte = error.object[error.start : error.start + 1]
                where = f"at byte {n_read + error.start}: {byte!r}"
                break
            n_read += len(part)
    return ValueError(
        f"Expected text in {encoding} in {label}, found something else {where}. Say how the file "
        "was saved: give its encoding, such as latin-1 or cp1252."
    )


def _fault(
    error: Exception,
    source: Any,
    label: str,
    dialect: CsvDialect,
    header: bool,
    block_size: int,
    schema: Any,
) -> ValueError:
    """Return what is wrong with the file, with the row, which only one thread can count."""
    import pyarrow as pa

    message = str(error)
    if message.endswith("invalid UTF8 data"):
        return _wrong_encoding(source, label, dialect.encoding)
    types = {} if schema is None else dict.fromkeys(schema.names, pa.binary())
    try:
        for _ in _opened(source, dialect, header, block_size, types, use_threads=False):
            pass
    except pa.ArrowInvalid as again:
        message = str(again)
    if "straddling" in message:
        return ValueError(
            f"Expected rows of at most {block_size / 2**20:g} MiB in {label}, found a longer one. "
            "Is a quotation mark opened and never closed?"
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
