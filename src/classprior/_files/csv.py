"""Reading CSV files, with numbers and dates as people write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from classprior._files.dialect import CsvDialect
from classprior._files.marks import MarkedFile, Marks, decided
from classprior._files.stored import unpacked

if TYPE_CHECKING:
    import pyarrow as pa

#: Values that mean missing.
MISSING_VALUES = ("", "?", "-", ".", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")

#: Number of bytes parsed at a time; the length limit of a row.
BLOCK_SIZE = 1 << 24


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with known dialect, column types and number of rows."""

    source: Any  # a StoredFile or bytes, in UTF-8
    label: str  # in messages
    header: bool  # whether the first line has column names
    dialect: CsvDialect
    names: tuple[str, ...]
    schema: Any  # as pyarrow reads the columns, with the names in the file
    widened: dict[str, Any]  # types of columns that pyarrow infers wrongly from the first block
    dates: frozenset[int]  # positions of text columns with dates such as 31.12.2026
    marks: dict[int, Marks]  # what numbers show about their decimal marks, by position
    n_rows: int  # without the header
    block_size: int  # bytes parsed at a time, and the length limit of a row
    decimals: dict[int, str] = field(default_factory=dict)  # of columns to parse from text

    def with_decimals(self, decimals: Mapping[str, str], unclear: Iterable[str]) -> CsvFile:
        """Return the file with the decimal marks of columns, by name; unclear ones are text."""
        import pyarrow as pa

        texts, widened = {}, dict(self.widened)
        types, own_names = self.schema.types, self.schema.names  # each makes a list
        for place, marks in self.marks.items():
            name, mark = self.names[place], decimals.get(self.names[place])
            is_text = pa.types.is_string(types[place])
            if mark is not None and (is_text or (mark != self.dialect.decimal and marks.unclear)):
                texts[place] = mark
            if place in texts or name in unclear:
                widened[own_names[place]] = pa.string()
        return replace(self, decimals=texts, widened=widened)

    def tables(self, *, as_text: bool = False) -> Iterator[pa.Table]:
        """Read the rows, a few megabytes at a time; with ``as_text`` values are not parsed."""
        import pyarrow as pa

        types = dict.fromkeys(self.schema.names, pa.string()) if as_text else self.widened
        options = self.dialect, self.header, self.block_size
        for batch in open_csv(self.source, *options, types, as_text=as_text):
            table = pa.Table.from_batches([batch]).rename_columns(list(self.names))
            yield table if as_text else self._parsed(table)

    def _parsed(self, table: pa.Table) -> pa.Table:
        """Parse numbers such as 1.234,50 (or 1,234.50) and dates such as 31.12.2026."""
        for place, mark in self.decimals.items():
            table = table.set_column(place, self.names[place], _numbers(table.column(place), mark))
        for place in self.dates:
            table = table.set_column(place, self.names[place], parsed_dates(table.column(place)))
        return table

    @property
    def marks_of_numbers(self) -> dict[str, str]:
        """Decimal mark of each column with decimal numbers."""
        import pyarrow as pa

        return {
            self.names[place]: self.decimals.get(place, self.dialect.decimal)
            for place, found in enumerate(self.types)
            if pa.types.is_floating(found)
        }

    @property
    def types(self) -> list[Any]:
        """Column types of ``tables()``."""
        import pyarrow as pa

        return [
            pa.float64()
            if place in self.decimals
            else pa.timestamp("s")
            if place in self.dates
            else self.widened.get(name, found)
            for place, (name, found) in enumerate(
                zip(self.schema.names, self.schema.types, strict=True)
            )
        ]


def with_decimals(
    files: Sequence[CsvFile], given: str | None = None
) -> tuple[list[CsvFile], dict[str, str]]:
    """Return the files with the decimal marks of all columns, and why some are unclear."""
    marked = [
        MarkedFile(
            file.label,
            file.dialect.delimiter,
            {file.names[place]: marks for place, marks in file.marks.items()},
        )
        for file in files
    ]
    decimals, unclear = decided(marked, given)
    settled = [
        file.with_decimals(marks, unclear) for file, marks in zip(files, decimals, strict=True)
    ]
    return settled, unclear


def open_csv(
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
        unpacked(source),
        read_options=arrow_csv.ReadOptions(
            block_size=block_size,
            autogenerate_column_names=not header,
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


def wider_type(
    error: Exception, schema: Any, widened: dict[str, Any], dialect: CsvDialect
) -> dict[str, Any] | None:
    """Return the column named in a conversion error, with a type that can hold the value."""
    import pyarrow as pa

    found = re.search(r"In CSV column #(\d+): .*conversion error to", str(error))
    if found is None or schema is None:
        return None
    field = schema.field(int(found[1]))
    current = widened.get(field.name, field.type)
    if current == pa.string():  # the widest type: the encoding must be wrong
        return None
    value = re.search(r"invalid value '(.*)'$", str(error), re.DOTALL)
    wider = _common_type(current, _type_of(value[1], dialect)) if value else current
    return {field.name: pa.string() if wider == current else wider}


def _type_of(value: str, dialect: CsvDialect) -> Any:
    """Return the type that pyarrow infers for a single value."""
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
    """Return the narrowest type that can hold both a column and a new value."""
    import pyarrow as pa

    pair = {current, other}
    if pa.null() in pair and len(pair) == 2:
        return (pair - {pa.null()}).pop()
    if pair == {pa.int64(), pa.float64()}:
        return pa.float64()
    if (current, other) == (pa.int64(), pa.bool_()):  # works if all numbers are 0 or 1
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


def _numbers(column: Any, decimal: str) -> Any:
    """Parse numbers with the given decimal mark, whose thousands may be grouped by the other."""
    import pyarrow.compute as pc

    group = "." if decimal == "," else ","
    text = pc.replace_substring(pc.replace_substring(column, group, ""), decimal, ".")
    return pc.cast(pc.utf8_trim_whitespace(text), "float64")


def parsed_dates(column: Any) -> Any:
    """Parse dates such as 31.12.2026; an impossible date becomes null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    dates = pc.strptime(column, format="%d.%m.%Y", unit="s", error_is_null=True)
    # The parser makes 3 March of 31 February, so the day must come back.
    day = pc.cast(pc.list_element(pc.split_pattern(column, "."), 0), pa.int64())
    return pc.if_else(pc.equal(pc.day(dates), day), dates, None)
