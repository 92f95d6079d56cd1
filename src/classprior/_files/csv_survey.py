"""A first pass over a CSV file: types judged from all rows, and clear errors."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from classprior._core.messages import warn
from classprior._files.csv import (
    BLOCK_SIZE,
    MISSING_VALUES,
    CsvFile,
    open_csv,
    parsed_dates,
    wider_type,
)
from classprior._files.dialect import (
    CsvDialect,
    as_utf8,
    dialect_of,
    encoding_of,
    head_of,
    refuse_other_files,
    refuse_utf8,
    wrong_encoding,
)
from classprior._files.marks import Marks, marks_of
from classprior._files.stored import unpacked, unpacking

_FEW = 0.01  # share of values that may differ from the rest of a column
_LOCAL_DATE = r"^\d{1,2}\.\d{1,2}\.\d{4}$"


def survey_csv(
    source: Any,
    label: str,
    encoding: str | None = None,
    header: bool = True,
    block_size: int = BLOCK_SIZE,
) -> CsvFile:
    """Read a CSV file once to find its dialect and the types of its columns over all rows."""
    head = head_of(source, label)
    refuse_other_files(head, label, is_encoding_known=encoding is not None)
    dialect, rows = dialect_of(head, label, encoding_of(head, encoding), header)
    if encoding is not None:
        refuse_utf8(source, label, encoding)
    with unpacking(label):
        source = as_utf8(source, label, dialect.encoding)
        seen, widened = _survey_rows(source, label, dialect, header, block_size)
        _refuse_swallowed_rows(source, label, seen)
    if "\n" in seen.last_values and _quotation_marks(source) % 2:
        raise ValueError(
            f"A quotation mark in {label} is never closed, so the rest of the file is one value. "
            "Close it, or double it if it is part of a value."
        )
    names = [f"column_{i + 1}" for i in range(len(seen.names))]
    if header:
        names = [n.strip() or f for n, f in zip(seen.names, names, strict=True)]
    for place, impossible in seen.dates.items():
        if impossible:
            warn(
                f"Column {names[place]!r} of {label} has {len(impossible):,} impossible dates, "
                f"such as {impossible[0]!r}. They count as missing."
            )
    file = CsvFile(
        source,
        label,
        header,
        dialect,
        tuple(names),
        seen.schema,
        widened,
        frozenset(seen.dates),
        seen.marks,
        seen.n_rows,
        block_size,
    )
    return replace(file, marks={**file.marks, **_marks_of_parsed(file, rows)})


def _marks_of_parsed(file: CsvFile, head: list[list[str]]) -> dict[int, Marks]:
    """Return what the numbers that pyarrow has parsed show about their decimal marks."""
    import pyarrow as pa

    floats = [i for i, found in enumerate(file.schema.types) if pa.types.is_floating(found)]
    if file.dialect.delimiter == ",":  # the comma is taken
        return {place: Marks(point="a decimal point") for place in floats}
    marks = {}
    for place in floats:
        values = [row[place] for row in head[1:] if len(row) > place]
        texts = [value for value in values if value not in MISSING_VALUES]
        marks[place] = marks_of(pa.array(texts, pa.string()))
    # The first rows nearly always show the mark. Where they do not, look at all rows.
    if unsure := [place for place in floats if not (marks[place].comma or marks[place].point)]:
        names = file.schema.names
        names = [names[place] for place in unsure]
        types = {**file.widened, **dict.fromkeys(names, pa.string())}
        marks |= dict.fromkeys(unsure, Marks())
        for batch in open_csv(file.source, file.dialect, file.header, file.block_size, types):
            for place in unsure:
                marks[place] |= marks_of(batch.column(place))
    return marks


def _survey_rows(
    source: Any, label: str, dialect: CsvDialect, header: bool, block_size: int
) -> tuple[_Seen, dict[str, Any]]:
    """Iterate over all rows; return what was seen and the types that had to be widened."""
    import pyarrow as pa

    # pyarrow infers types from the first block; if later rows conflict, the type is widened.
    widened: dict[str, Any] = {}
    schema = None
    while True:
        try:
            reader = open_csv(source, dialect, header, block_size, widened)
            schema = reader.schema
            if any(map(pa.types.is_binary, schema.types)):
                raise wrong_encoding(source, label, "utf-8")
            seen = _Seen(schema, dialect.delimiter, first_row=2 if header else 1)
            for batch in reader:
                seen.add(batch)
            return seen, widened
        except UnicodeDecodeError as error:
            raise wrong_encoding(source, label, "utf-8") from error
        except pa.ArrowInvalid as error:
            wider = wider_type(error, schema, widened, dialect)
            if wider is None:
                raise _fault(error, source, label, dialect, header, block_size, schema) from error
            widened |= wider


class _Seen:
    """Facts collected in a pass over all rows of a file."""

    def __init__(self, schema: Any, delimiter: str, first_row: int) -> None:
        import pyarrow as pa

        self.schema = schema
        self.names = schema.names  # decodes them
        self.first_row = first_row  # as an editor counts
        self.n_rows = 0
        self.last_values = ""
        texts = [place for place, found in enumerate(schema.types) if pa.types.is_string(found)]
        self.marks = dict.fromkeys(texts, Marks())
        self._may_be_dates = dict.fromkeys(texts, True)
        self._n_values = dict.fromkeys(texts, 0)
        self._impossible: dict[int, list[str]] = {place: [] for place in texts}
        self.like_rows: list[tuple[int, str]] = []  # rows and values of lines that look like rows
        self._delimiter = delimiter

    def add(self, batch: Any) -> None:
        """Update with a batch of rows."""
        if not batch.num_rows:
            return
        for place, marks in self.marks.items():
            column = batch.column(place)
            like_rows = _like_rows(column, place, len(self.names), self._delimiter)
            self.like_rows += [
                (self.first_row + self.n_rows + row, value) for row, value in like_rows
            ]
            column = column.drop_null()
            self._n_values[place] += len(column)
            if marks.is_number:
                self.marks[place] |= marks_of(column)
            if self._may_be_dates[place]:
                self._look_for_dates(column, place)
        self.n_rows += batch.num_rows
        self.last_values = "".join(str(batch.column(place)[-1].as_py()) for place in self.marks)

    def _look_for_dates(self, column: Any, place: int) -> None:
        import pyarrow.compute as pc

        if not len(column):
            return
        self._may_be_dates[place] = bool(re.match(_LOCAL_DATE, column[0].as_py())) and bool(
            pc.all(pc.match_substring_regex(column, _LOCAL_DATE)).as_py()
        )
        if self._may_be_dates[place]:
            self._impossible[place] += column.filter(pc.is_null(parsed_dates(column))).to_pylist()

    @property
    def dates(self) -> dict[int, list[str]]:
        """Text columns in which nearly every value is a date, with the values that are not."""
        return {
            place: self._impossible[place]
            for place, possible in self._may_be_dates.items()
            if possible and len(self._impossible[place]) < _FEW * self._n_values[place]
        }


def _like_rows(column: Any, place: int, width: int, delimiter: str) -> list[tuple[int, str]]:
    """Return the positions and values whose lines have as many delimiters as rows would have."""
    import pyarrow.compute as pc

    rows = pc.indices_nonzero(pc.fill_null(pc.match_substring(column, "\n"), False)).to_pylist()
    if width == 1 or len(rows) > max(3, _FEW * len(column)):
        return []  # values of several lines are usual in this column
    found = []
    for row in rows:
        value = column[row].as_py()
        counts = [line.count(delimiter) for line in value.split("\n")]
        expected = [width - 1 - place, *[width - 1] * (len(counts) - 2), place]
        is_open = place == width - 1 and counts[-1] in (0, width - 1)  # to the end of the file
        if counts == expected or (is_open and counts[:-1] == expected[:-1]):
            found.append((row, value))
    return found


def _refuse_swallowed_rows(source: Any, label: str, seen: _Seen) -> None:
    """Raise if a value is probably several rows between stray quotation marks."""
    for row, value in seen.like_rows:
        # A value of two lines that is quoted as it should be may be just that.
        doubled = value.replace('"', '""')
        if value.count("\n") > 1 or not _contains(source, f'"{doubled}"'.encode()):
            raise ValueError(
                f"A value in row {row} of {label} has {value.count(chr(10)) + 1} lines that look "
                f"like rows of the table: {value[:40]!r}, ... A quotation mark there, or a few "
                "rows further down, is probably not closed. Close it, or double it if it is part "
                "of a value."
            )


def _contains(source: Any, wanted: bytes) -> bool:
    """Return whether a file contains some bytes."""
    before = b""
    with unpacked(source) as stream:
        for part in iter(lambda: bytes(stream.read(1 << 24)), b""):
            if wanted in before + part:
                return True
            before = (before + part)[-len(wanted) :]
    return False


def _quotation_marks(source: Any) -> int:
    with unpacked(source) as stream:
        return sum(part.count(b'"') for part in iter(lambda: bytes(stream.read(1 << 24)), b""))


def _fault(
    error: Exception,
    source: Any,
    label: str,
    dialect: CsvDialect,
    header: bool,
    block_size: int,
    schema: Any,
) -> ValueError:
    """Return an error that names the row, which pyarrow counts only in one thread."""
    import pyarrow as pa

    message = str(error)
    if message.endswith("invalid UTF8 data"):
        return wrong_encoding(source, label, "utf-8")
    types = {} if schema is None else dict.fromkeys(schema.names, pa.binary())
    try:
        for _ in open_csv(source, dialect, header, block_size, types, use_threads=False):
            pass
    except pa.ArrowInvalid as again:
        message = str(again)
    if "straddling" in message:
        return ValueError(
            f"A row in {label} is too long (limit {block_size / 2**20:g} MiB). Check for a "
            "quotation mark that is never closed."
        )
    found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
    if found:
        row, expected, got = found.groups()
        name = {"\t": "tab"}.get(dialect.delimiter, repr(dialect.delimiter))
        return ValueError(
            f"Expected {expected} values in every row of {label}, got {got} in row {row} (the "
            f"first line is row 1, the delimiter is {name}). Fix the row; a value that contains "
            "the delimiter needs quotation marks."
        )
    return ValueError(f"Could not read {label} as CSV: {message}.")
