"""Reading CSV files, with numbers and dates as people write them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from classprior._files.dialect import CsvDialect
from classprior._files.marks import Doubt, MarkedFile, Marks, decided
from classprior._files.stored import unpacked

if TYPE_CHECKING:
    import pyarrow as pa

#: Values that mean missing: those of pandas, R, SAS and databases, and the errors of spreadsheets.
#: Words that are as often a category, such as "none", "missing" or "unknown", are not among them.
MISSING_VALUES = (
    *("", "?", "-", ".", "NA", "N/A", "n/a", "<NA>", "NULL", "Null", "null", "None", r"\N"),
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    *("#N/A", "#N/A N/A", "#NA", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"),
    *("#SPILL!", "#CALC!", "#ERROR!"),
)

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
    is_float: bool = False  # whether integers are read as floats, since other files have decimals
    is_local_time: bool = False  # whether the offset from UTC is left out

    @property
    def is_decimal(self) -> bool:
        """Whether the values are decimal numbers."""
        import pyarrow as pa

        return bool(pa.types.is_floating(self.type))

    def with_type(self, *, as_text: bool, as_local: bool) -> CsvColumn:
        """Return the column with the text of numbers, and with times without offset from UTC."""
        import pyarrow as pa

        local = local_type(self.type)
        if as_local and local != self.type:
            return replace(self, type=local, is_local_time=True)
        is_time = pa.types.is_temporal(self.type) or self.is_local_date
        if not as_text or is_time or pa.types.is_null(self.type):
            return self
        return replace(self, type=pa.string(), marks=Marks(is_number=False), is_float=False)

    def with_decimal(self, mark: str | None) -> CsvColumn:
        """Return the column with a decimal mark; numbers stay text if it is None."""
        import pyarrow as pa

        if not self.marks.is_number:
            return self
        if mark is None:
            return replace(self, type=pa.string())
        is_other = mark != self.decimal and self.marks.unclear
        if self.type == pa.string() or is_other:
            return replace(self, type=pa.float64(), decimal=mark, is_grouped=True)
        return self

    def parsed(self, texts: Any) -> Any:
        """Parse the text of some rows."""
        import pyarrow as pa

        if pa.types.is_null(self.type):
            return pa.nulls(len(texts))
        if self.is_local_date:
            return local_dates(texts)
        if self.is_local_time:
            texts = without_offsets(texts)
        if self.is_grouped:
            return grouped_numbers(texts, self.decimal)
        values = parsed(texts, self.type, self.decimal)
        return values.cast(pa.float64(), safe=False) if self.is_float else values


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with known columns and number of rows."""

    text: CsvText
    columns: tuple[CsvColumn, ...]
    n_rows: int  # without the header
    # The rows as text with null for missing values, if they are few.
    batches: list[Any] | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        import pyarrow as pa

        return pa.schema([(c.name, pa.float64() if c.is_float else c.type) for c in self.columns])

    def with_types(self, *, text: Collection[str], local: Collection[str]) -> CsvFile:
        """Return the file with the text of numbers, and with local times, in some columns."""
        columns = (
            c.with_type(as_text=c.name in text, as_local=c.name in local) for c in self.columns
        )
        return replace(self, columns=tuple(columns))

    @property
    def label(self) -> str:
        """Name in messages."""
        return self.text.label

    @property
    def first_row(self) -> int:
        """Number of the first row, as an editor counts."""
        return 1 + self.text.header

    def tables(
        self, columns: tuple[str, ...] | None = None, *, as_text: bool = False
    ) -> Iterator[pa.Table]:
        """Read the rows, a few megabytes at a time; with ``as_text`` values are not parsed."""
        import pyarrow as pa

        held = None if as_text else self.batches
        for batch in self.text.open(gaps=not as_text) if held is None else held:
            values = batch.columns
            if not as_text:
                values = [c.parsed(texts) for c, texts in zip(self.columns, values, strict=True)]
            yield pa.Table.from_arrays(values, names=self.names)

    def row_of(self, name: str, value: str) -> int:
        """Return the first row that has a text in a column, as an editor counts."""
        import pyarrow.compute as pc

        row = 1 + self.text.header
        for table in self.tables(as_text=True):
            place = pc.index(table[name], value).as_py()
            if place >= 0:
                return int(row + place)
            row += table.num_rows
        raise LookupError(value)


def with_decimals(
    files: Sequence[CsvFile], given: str | None = None
) -> tuple[list[CsvFile], dict[str, Doubt]]:
    """Return the files with the decimal marks of all columns, and doubts about columns.

    The numbers of columns in doubt stay text.
    """
    marked = [
        MarkedFile(
            file.text.label,
            file.text.dialect.delimiter,
            {column.name: column.marks for column in file.columns},
        )
        for file in files
    ]
    decimals, doubts = decided(marked, given)
    settled = [
        replace(file, columns=tuple(c.with_decimal(marks.get(c.name)) for c in file.columns))
        for file, marks in zip(files, decimals, strict=True)
    ]
    return settled, doubts


def with_floats(files: Sequence[CsvFile]) -> list[CsvFile]:
    """Return the files with floats for integers in columns that have decimals in some file."""
    import pyarrow as pa

    decimals = {c.name for file in files for c in file.columns if c.is_decimal}
    return [
        replace(
            file,
            columns=tuple(
                replace(c, is_float=c.name in decimals and c.type == pa.int64())
                for c in file.columns
            ),
        )
        for file in files
    ]


@cache
def csv_types() -> tuple[Any, ...]:
    """Return the types that text may have; a column has the first that fits all its values."""
    import pyarrow as pa

    return pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), *time_types(), pa.float64()


@cache
def time_types() -> tuple[Any, ...]:
    """Return the types of times that text may have, without and with an offset from UTC."""
    import pyarrow as pa

    # Nanoseconds hold all fractions, but few years.
    units = "s", "ns", "us"
    return tuple(pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in units)


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
        # Such as 12:30 or 12:30:00, which pyarrow casts only after a date.
        texts = pc.utf8_trim(texts, _BLANKS)
        _require(pc.match_substring_regex(texts, r"^\d\d:\d\d(:\d\d)?$"), "times")
        moments = pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp("s"))
        return moments.cast(kind)
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


def grouped_numbers(texts: Any, decimal: str) -> Any:
    """Parse numbers with the given decimal mark, whose thousands may be grouped by the other."""
    import pyarrow.compute as pc

    group = "." if decimal == "," else ","
    texts = pc.replace_substring(pc.replace_substring(texts, group, ""), decimal, ".")
    return pc.cast(pc.utf8_trim_whitespace(texts), "float64")


def local_type(kind: Any) -> Any:
    """Return a type with local times instead of times in a zone; other types are unchanged."""
    import pyarrow as pa

    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) and kind.tz else kind


def without_offsets(texts: Any) -> Any:
    """Return times without their offset from UTC, such as Z, +01:00 or -0530."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(texts, r"(Z|[-+]\d\d(:?\d\d)?)$", "")


def local_dates(texts: Any) -> Any:
    """Parse dates such as 31.12.2026; an impossible date becomes null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    dates = pc.strptime(texts, format="%d.%m.%Y", unit="s", error_is_null=True)
    # The parser makes 3 March of 31 February, so the day must come back.
    day = pc.cast(pc.list_element(pc.split_pattern(texts, "."), 0), pa.int64())
    return pc.if_else(pc.equal(pc.day(dates), day), dates, None)
