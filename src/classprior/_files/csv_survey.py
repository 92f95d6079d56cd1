"""A first pass over the text of a CSV file: types judged from all rows, and clear errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from classprior._core.messages import listed, warn
from classprior._files.csv import (
    BLOCK_SIZE,
    MISSING_VALUES,
    CsvColumn,
    CsvFile,
    CsvText,
    csv_types,
    fits,
    local_dates,
)
from classprior._files.dialect import (
    NO_HEADER,
    as_utf8,
    dialect_of,
    encoding_of,
    is_like_data,
    is_number,
    parts_of,
    refuse_other_files,
    refuse_utf8,
    wrong_encoding,
)
from classprior._files.marks import Marks, marks_of, marks_of_integers
from classprior._files.quotes import QuotedText, rows_in_value
from classprior._files.stored import held, unpacked, unpacking
from classprior._files.texts import text_bytes
from classprior._tables.columns import CATEGORY, DATE

_HEAD = 1 << 20  # bytes read to detect the dialect
_USUAL_BLOCK = 1 << 22  # bytes that hold any usual row; larger blocks take more memory
_BYTES_PER_COLUMN = 1 << 13  # of a block, at least: each column of each block takes some time
_FEW = 0.01  # share of values that may differ from the rest of a column
_TO_QUOTE = "Close it, or double it if it is part of a value."
_HAS_LINES = re.compile("[\n\r]")
_LOCAL_DATE = r"^\d{1,2}\.\d{1,2}\.\d{4}$"


def survey_csv(
    source: Any,
    label: str,
    encoding: str | None = None,
    header: bool = True,
    block_size: int = BLOCK_SIZE,
    kinds: Mapping[str, str] | None = None,
    held_bytes: int = 0,
) -> CsvFile:
    """Read a CSV file once to find its dialect and the types of its columns over all rows.

    ``kinds`` are known kinds of columns: a category is text, whatever its values look like. A file
    of up to ``held_bytes`` is held in memory, and its text is not parsed again.
    """
    with unpacking(label):
        source = held(source, held_bytes)
        with unpacked(source) as stream:
            head = bytes(stream.read(_HEAD))
    refuse_other_files(head, label, is_encoding_known=encoding is not None)
    dialect, rows = dialect_of(head, label, encoding_of(head, encoding), header)
    if encoding is not None:
        refuse_utf8(source, label, encoding)
    names = rows[0] if header else [f"f{place}" for place in range(len(rows[0]))]
    with unpacking(label):
        source = as_utf8(source, label, dialect.encoding)
        usual = min(block_size, max(_USUAL_BLOCK, _BYTES_PER_COLUMN * len(names)))
        text = CsvText(source, label, header, dialect, tuple(names), usual)
        seen = _survey_rows(text, rows[1:], block_size, kinds or {})
        if _HAS_LINES.search("".join(names)) or any(column.has_lines for column in seen.columns):
            _refuse_stray_quotes(seen)
    columns = tuple(column.settled() for column in seen.columns)
    file = CsvFile(seen.text, columns, seen.n_rows, seen.batches)
    if header:
        _question_header(file)
    return file


def _question_header(file: CsvFile) -> None:
    """Warn if the first line has numbers where the other rows have numbers."""
    import pyarrow as pa

    kinds = pa.int64(), pa.float64()
    names = [column.name for column in file.columns if column.type in kinds]
    if is_like_data(names):
        numbers = [name for name in names if is_number(name)]
        warn(
            f"The first line of {file.text.label} seems to be data: its names of columns of "
            f"numbers are numbers, {listed(numbers, 4)}. {NO_HEADER}",
            "header",
        )


def _survey_rows(
    text: CsvText, first_rows: list[list[str]], largest_block: int, kinds: Mapping[str, str]
) -> _Seen:
    """Iterate over all rows, in the largest blocks if a row is too long; errors name the row."""
    import pyarrow as pa

    try:
        return _Seen(text, first_rows, kinds)
    except UnicodeDecodeError as error:
        raise wrong_encoding(text.source, text.label, "utf-8") from error
    except pa.ArrowInvalid as error:
        if "straddling" not in str(error) or text.block_size == largest_block:
            raise _fault(error, text) from error
    return _survey_rows(replace(text, block_size=largest_block), first_rows, largest_block, kinds)


class _Seen:
    """Facts collected in a pass over all rows of a file."""

    def __init__(
        self, text: CsvText, first_rows: list[list[str]], kinds: Mapping[str, str]
    ) -> None:
        reader = text.open()
        self.text = replace(text, names=tuple(reader.schema.names))
        self.columns = [_Column(self.text, place, kinds) for place in range(len(self.text.names))]
        self.n_rows = 0
        self.batches: list[Any] | None = [] if isinstance(text.source, bytes) else None
        for batch in reader:
            for column, texts in zip(self.columns, batch.columns, strict=True):
                column.add(texts)
            self.n_rows += batch.num_rows
            if self.batches is not None:
                self.batches.append(batch)
        for column in self.columns:
            column.look_at_first(first_rows)
        if unsettled := [column for column in self.columns if column.is_unsettled]:
            for batch in self.text.open() if self.batches is None else self.batches:
                for column in unsettled:
                    column.look(batch.column(column.place))


class _Column:
    """What the text of a column shows."""

    def __init__(self, text: CsvText, place: int, kinds: Mapping[str, str]) -> None:
        own_name = text.names[place].strip() if text.header else ""
        self.name = own_name or f"column_{place + 1}"
        self.place = place
        self.has_lines = False  # whether some value has several lines
        self._text = text
        self._kind = kinds.get(self.name)  # if it is known
        is_category = self._kind == CATEGORY
        self._types = () if is_category else csv_types()  # that may fit all values
        self._has_values = False
        self._is_contradicted = False  # whether the first values have a type that others have not
        self._marks = Marks(is_number=not is_category)
        self._integers = Marks()  # if all values are
        self._may_be_dates = not is_category
        self._n_texts = 0
        self._impossible: list[str] = []

    @property
    def _type(self) -> Any:
        """The first type that fits all values."""
        import pyarrow as pa

        return next(iter(self._types), pa.string()) if self._has_values else pa.null()

    @property
    def is_unsettled(self) -> bool:
        """Whether another look at all rows is needed, for the type or the decimal mark."""
        import pyarrow as pa

        return self._is_contradicted or (self._type == pa.float64() and not self._marks.shown)

    def add(self, texts: Any) -> None:
        """Check the type of more values, and look at them if they are text."""
        import pyarrow as pa

        if self._is_contradicted or texts.null_count == len(texts):
            return
        if not self._has_values:
            self._has_values = True
            self._types = tuple(islice(self._fitting(texts), 1))
        elif self._types and not any(self._fitting(texts)):
            self._is_contradicted = True
            self._types = csv_types()
        if not self._types:
            self.look(texts)
        elif pa.types.is_integer(self._types[0]) and "large" not in self._integers.examples:
            self._integers |= marks_of_integers(texts)

    def _fitting(self, texts: Any) -> Iterator[Any]:
        """Yield the types so far that fit more values, too."""
        return (kind for kind in self._types if fits(texts, kind, self._text.dialect.decimal))

    def look(self, texts: Any) -> None:
        """Look for types, lines, decimal marks and dates in more values."""
        import pyarrow.compute as pc

        self._types = tuple(self._fitting(texts))
        content = text_bytes(texts)
        self.has_lines |= b"\n" in content or b"\r" in content
        texts = texts.drop_null()
        self._n_texts += len(texts)
        if self._marks.is_number:
            self._marks |= marks_of(texts)
        if self._may_be_dates and len(texts):
            is_first = re.match(_LOCAL_DATE, texts[0].as_py())  # most columns of text end here
            are_dates = is_first and pc.all(pc.match_substring_regex(texts, _LOCAL_DATE)).as_py()
            self._may_be_dates = bool(are_dates)
            if are_dates:
                self._impossible += texts.filter(pc.is_null(local_dates(texts))).to_pylist()

    def look_at_first(self, rows: list[list[str]]) -> None:
        """Look for the mark of decimal numbers in the first rows, which nearly always show it."""
        import pyarrow as pa

        if self.is_unsettled and not self._is_contradicted:
            values = [row[self.place] for row in rows if len(row) > self.place]
            texts = [value for value in values if value not in MISSING_VALUES]
            marks = marks_of(pa.array(texts, pa.string()))
            self._marks = marks if marks.shown else Marks()

    def settled(self) -> CsvColumn:
        """Return the column; if nearly all values are dates, others are missing, with a warning.

        In a column that is known to have dates, any number may be missing.
        """
        import pyarrow as pa

        dialect, kind, marks = self._text.dialect, self._type, self._marks
        name = self.name
        if kind not in (pa.float64(), pa.string()):
            marks = self._integers if kind == pa.int64() else Marks(is_number=False)
        n_impossible = len(self._impossible)
        is_few = self._kind == DATE or n_impossible < _FEW * self._n_texts
        if kind != pa.string() or not (self._may_be_dates and is_few):
            return CsvColumn(name, kind, dialect.decimal, marks)
        if n_impossible:
            warn(
                f"Column {name!r} of {self._text.label} has {n_impossible:,} impossible dates, "
                f"such as {self._impossible[0]!r}. They count as missing."
            )
        return CsvColumn(name, pa.timestamp("s"), dialect.decimal, marks, is_local_date=True)


def _refuse_stray_quotes(seen: _Seen) -> None:
    """Raise if a value of several lines is probably rows between stray quotation marks."""
    text, row = seen.text, 1 + seen.text.header
    quoted = QuotedText(parts_of(text.source, _USUAL_BLOCK))
    if not all(quoted.has(name) for name in text.names if _HAS_LINES.search(name)):
        raise _stray_quote(text, 1)
    for batch in text.open() if seen.batches is None else seen.batches:
        values = _with_lines(batch, [column.place for column in seen.columns if column.has_lines])
        for place, _, value in values:
            if not quoted.has(value):
                raise _stray_quote(text, row + place)
        for column in sorted({column for _, column, _ in values}):
            if found := rows_in_value(batch.columns, column, text.dialect.delimiter):
                place, value = found
                raise ValueError(
                    f"A value in row {row + place:,} of {text.label} has "
                    f"{value.count(chr(10)) + 1} lines that look like rows of the table: "
                    f"{value[:40]!r}, ... A quotation mark there, or a few rows further down, is "
                    f"probably not closed. {_TO_QUOTE}"
                )
        row += batch.num_rows


def _with_lines(batch: Any, columns: list[int]) -> list[tuple[int, int, str]]:
    """Return the values of several lines, in their order in the file, with row and column."""
    import pyarrow.compute as pc

    return sorted(
        (row, column, batch.column(column)[row].as_py())
        for column in columns
        for row in pc.indices_nonzero(
            pc.fill_null(pc.match_substring_regex(batch.column(column), _HAS_LINES.pattern), False)
        ).to_pylist()
    )


def _stray_quote(text: CsvText, row: int) -> ValueError:
    return ValueError(
        f"A quotation mark in row {row:,} of {text.label} is not closed at the end of a value, so "
        f"that the next rows are part of the value. {_TO_QUOTE}"
    )


def _fault(error: Exception, text: CsvText) -> ValueError:
    """Return an error that names the row, which pyarrow counts only in one thread."""
    import pyarrow as pa

    message = str(error)
    if message.endswith("invalid UTF8 data"):
        return wrong_encoding(text.source, text.label, "utf-8")
    try:
        for _ in text.open(kind="binary", use_threads=False):
            pass
    except pa.ArrowInvalid as again:
        message = str(again)
    if "straddling" in message:
        return ValueError(
            f"A row in {text.label} is too long (limit {text.block_size / 2**20:g} MiB). Check for "
            "a quotation mark that is never closed."
        )
    found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
    if found:
        row, expected, got = found.groups()
        delimiter = text.dialect.delimiter
        name = {"\t": "tab"}.get(delimiter, repr(delimiter))
        return ValueError(
            f"Expected {expected} values in every row of {text.label}, got {got} in row {row} (the "
            f"first line is row 1, the delimiter is {name}). Fix the row; a value that contains "
            "the delimiter needs quotation marks, and a mark that is not closed joins rows."
        )
    return ValueError(f"Could not read {text.label} as CSV: {message}.")
