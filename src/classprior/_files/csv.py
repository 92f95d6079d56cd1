"""Reading CSV files, with numbers and dates as people write them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from classprior._files.dialect import CsvDialect
from classprior._files.marks import MarkedFile, Marks, decided
from classprior._files.stored import unpacked

if TYPE_CHECKING:
    import pyarrow as pa

#: Values that mean missing.
MISSING_VALUES = ("", "?", "-", ".", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")

#: Largest number of bytes parsed at a time; the length limit of a row.
BLOCK_SIZE = 1 << 24
_BLANKS = " \t"  # may surround numbers, dates and times
_FIRST, _PART = 2**4, 2**14  # values tried at a time
_BOOLEANS = "true", "false", "True", "False", "TRUE", "FALSE", "1", "0"


@dataclass(frozen=True)
class CsvText:
    """The text of a CSV file with known dialect."""

    source: Any  # a StoredFile or bytes, in UTF-8
    label: str  # in messages
    header: bool  # whether the first line has column names
    dialect: CsvDialect
    names: tuple[str, ...]  # as in the first line
    block_size: int  # bytes parsed at a time, and the length limit of a row

    def open(self, *, gaps: bool = True, kind: str = "string", use_threads: bool = True) -> Any:
        """Return pyarrow's streaming reader; with ``gaps``, missing values are null."""
        from pyarrow import csv as arrow_csv

        reader = arrow_csv.open_csv(
            unpacked(self.source),
            read_options=arrow_csv.ReadOptions(
                block_size=self.block_size,
                autogenerate_column_names=not self.header,
                use_threads=use_threads,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.dialect.delimiter, newlines_in_values=True
            ),
            convert_options=arrow_csv.ConvertOptions(
                null_values=MISSING_VALUES if gaps else [],
                strings_can_be_null=gaps,
                column_types=dict.fromkeys(self.names, kind),
            ),
        )
        names = tuple(reader.schema.names)
        if names == self.names:
            return reader
        return replace(self, names=names).open(gaps=gaps, kind=kind, use_threads=use_threads)


@dataclass(frozen=True)
class CsvColumn:
    """A column of a CSV file, and how its text is parsed."""

    name: str
    type: Any  # of the parsed values
    decimal: str  # decimal mark of its numbers
    marks: Marks  # what its numbers show about the decimal mark
    is_local_date: bool = False  # such as 31.12.2026
    is_grouped: bool = False  # whether thousands may be grouped, by the other mark

    @property
    def is_decimal(self) -> bool:
        """Whether the values are decimal numbers."""
        import pyarrow as pa

        return bool(pa.types.is_floating(self.type))

    def with_decimal(self, mark: str | None, *, is_unclear: bool) -> CsvColumn:
        """Return the column with a decimal mark; if that is unclear, it stays text."""
        import pyarrow as pa

        is_other = mark != self.decimal and self.marks.unclear
        if mark is not None and (self.type == pa.string() or is_other):
            return replace(self, type=pa.float64(), decimal=mark, is_grouped=True)
        return replace(self, type=pa.string()) if is_unclear and self.is_decimal else self

    def parsed(self, texts: Any) -> Any:
        """Parse the text of some rows."""
        import pyarrow as pa

        if pa.types.is_null(self.type):
            return pa.nulls(len(texts))
        if self.is_local_date:
            return local_dates(texts)
        if self.is_grouped:
            return grouped_numbers(texts, self.decimal)
        return parsed(texts, self.type, self.decimal)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with known columns and number of rows."""

    text: CsvText
    columns: tuple[CsvColumn, ...]
    n_rows: int  # without the header

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        import pyarrow as pa

        return pa.schema([(column.name, column.type) for column in self.columns])

    def tables(self, *, as_text: bool = False) -> Iterator[pa.Table]:
        """Read the rows, a few megabytes at a time; with ``as_text`` values are not parsed."""
        import pyarrow as pa

        for batch in self.text.open(gaps=not as_text):
            columns = batch.columns
            if not as_text:
                columns = [c.parsed(texts) for c, texts in zip(self.columns, columns, strict=True)]
            yield pa.Table.from_arrays(columns, names=self.names)


def with_decimals(
    files: Sequence[CsvFile], given: str | None = None
) -> tuple[list[CsvFile], dict[str, str]]:
    """Return the files with the decimal marks of all columns, and why some are unclear."""
    marked = [
        MarkedFile(
            file.text.label,
            file.text.dialect.delimiter,
            {column.name: column.marks for column in file.columns},
        )
        for file in files
    ]
    decimals, unclear = decided(marked, given)
    settled = [_settled(file, marks, unclear) for file, marks in zip(files, decimals, strict=True)]
    return settled, unclear


def _settled(file: CsvFile, decimals: dict[str, str], unclear: Collection[str]) -> CsvFile:
    columns = (
        column.with_decimal(decimals.get(column.name), is_unclear=column.name in unclear)
        for column in file.columns
    )
    return replace(file, columns=tuple(columns))


@cache
def csv_types() -> tuple[Any, ...]:
    """Return the types that text may have; a column has the first that fits all its values."""
    import pyarrow as pa

    times = [pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in ("s", "ns")]
    return pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), *times, pa.float64()


def fits(texts: Any, kind: Any, decimal: str) -> bool:
    """Return whether all texts of a column can be parsed."""
    import pyarrow as pa

    # In parts, since pyarrow takes long to describe each value that it cannot cast.
    parts = [
        texts.slice(0, _FIRST),
        *(texts.slice(i, _PART) for i in range(_FIRST, len(texts), _PART)),
    ]
    try:
        for part in parts:
            parsed(part, kind, decimal)
    except pa.ArrowInvalid:
        return False
    return True


def parsed(texts: Any, kind: Any, decimal: str = ".") -> Any:
    """Parse text by the rules of pyarrow's CSV reader; raise ArrowInvalid if it does not fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(kind):
        _require(pc.is_in(texts, value_set=pa.array([*_BOOLEANS, None])), "booleans")
    if pa.types.is_time(kind):
        return _times(pc.utf8_trim(texts, _BLANKS)).cast(kind)
    if pa.types.is_floating(kind) and decimal == ",":
        _require(pc.invert(pc.match_substring(texts, ".")), "decimal commas")
        texts = pc.replace_substring(texts, ",", ".")
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        if pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
            raise
        return pc.utf8_trim(texts, _BLANKS).cast(kind)


def _require(is_right: Any, what: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.all(is_right).as_py() is False:
        raise pa.ArrowInvalid(f"Expected {what}.")


def _times(texts: Any) -> Any:
    """Parse times of day, such as 12:30 or 12:30:00, which pyarrow casts only after a date."""
    import pyarrow as pa
    import pyarrow.compute as pc

    _require(pc.match_substring_regex(texts, r"^\d\d:\d\d(:\d\d)?$"), "times")
    return pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp("s"))


def grouped_numbers(texts: Any, decimal: str) -> Any:
    """Parse numbers with the given decimal mark, whose thousands may be grouped by the other."""
    import pyarrow.compute as pc

    group = "." if decimal == "," else ","
    texts = pc.replace_substring(pc.replace_substring(texts, group, ""), decimal, ".")
    return pc.cast(pc.utf8_trim_whitespace(texts), "float64")


def local_dates(texts: Any) -> Any:
    """Parse dates such as 31.12.2026; an impossible date becomes null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    dates = pc.strptime(texts, format="%d.%m.%Y", unit="s", error_is_null=True)
    # The parser makes 3 March of 31 February, so the day must come back.
    day = pc.cast(pc.list_element(pc.split_pattern(texts, "."), 0), pa.int64())
    return pc.if_else(pc.equal(pc.day(dates), day), dates, None)
