"""The columns that files have in common, with types that can hold the values of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from classprior._core.messages import OptionError, listed
from classprior._files.dialect import NO_HEADER, is_number
from classprior._files.finding import CSV, SHEET, FileSet

if TYPE_CHECKING:
    import pyarrow as pa

_WITH_HEADER = (CSV, SHEET)  # formats whose files may lack column names
#: Units of times, from the finest.
UNITS = ("ns", "us", "ms", "s")
_DIGITS = 20  # of the largest integers


class OpenedFile(Protocol):
    """A file whose rows are read as tables."""

    @property
    def label(self) -> str:
        """Name in messages."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""

    @property
    def first_row(self) -> int:
        """Number of the first row in messages."""

    def tables(self, columns: tuple[str, ...] | None = None) -> Iterable[pa.Table]:
        """Read the rows, at least the given columns."""


def common_schema(opened: Sequence[OpenedFile], label: str) -> Any:
    """Return the columns of the first file, with types that hold the values of all files.

    Where the types alone do not tell, as with dates in other units, all values are looked at.
    """
    import pyarrow as pa

    fields: dict[str, Any] = {}
    undecided: dict[str, list[Any]] = {}
    for first in opened[0].schema:
        kinds = [file.schema.field(first.name).type for file in opened]
        choices = [first.type] if len(set(kinds)) == 1 else types_for(kinds)
        if not choices:
            n = next(n for n in range(2, len(kinds) + 1) if not types_for(kinds[:n]))
            raise ValueError(
                f"The files of {label} have different column types: column {first.name!r} is "
                f"{kinds[n - 1]} in {opened[n - 1].label} and {kinds[0]} in {opened[0].label}. A "
                "single non-numeric value turns a column into text."
            )
        if len(choices) > 1:
            undecided[first.name] = choices
        is_gappy = any(file.schema.field(first.name).nullable for file in opened)
        fields[first.name] = pa.field(first.name, choices[0], nullable=is_gappy)
    if undecided:
        for name, kind in _decided(opened, undecided).items():
            fields[name] = fields[name].with_type(kind)
    return pa.schema(list(fields.values()))


def types_for(kinds: Iterable[Any]) -> list[Any]:
    """Return types that may hold the values of several types, the most natural first."""
    import pyarrow as pa

    plain = [kind for kind in dict.fromkeys(map(without_codes, kinds)) if kind != pa.null()]
    if len(plain) < 2:
        return plain or [pa.null()]
    try:
        schemas = [pa.schema([("", kind)]) for kind in plain]
        wide = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return []
    are_whole = [pa.types.is_integer(kind) for kind in plain]
    if any(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in plain):
        is_large = wide in (pa.large_string(), pa.large_binary())
        return [pa.large_string() if is_large else pa.string()]  # bytes beside text are text
    if pa.types.is_timestamp(wide):
        return [pa.timestamp(unit, wide.tz) for unit in UNITS[UNITS.index(wide.unit) :]]
    if pa.types.is_duration(wide):
        return [pa.duration(unit) for unit in UNITS[UNITS.index(wide.unit) :]]
    if pa.types.is_floating(wide):
        if any(map(pa.types.is_decimal, plain)):
            return [pa.float64()]
        whole = [pa.int64(), pa.uint64()] if any(are_whole) else []
        return list(dict.fromkeys([wide, pa.float64(), *whole]))
    if pa.types.is_decimal(wide) and any(are_whole):
        return _decimal(max(wide.precision - wide.scale, _DIGITS), wide.scale)
    if all(are_whole) and pa.uint64() in plain and wide != pa.uint64():
        return [pa.int64(), pa.uint64(), *_decimal(_DIGITS, 0)]
    return [wide]


def without_codes(kind: Any) -> Any:
    """Return the type of the values, also if they are stored as codes or views."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    views = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
    return views.get(str(kind), kind)


def _decimal(n_whole: int, scale: int) -> list[Any]:
    import pyarrow as pa

    if n_whole + scale <= 38:
        return [pa.decimal128(n_whole + scale, scale)]
    return [pa.decimal256(n_whole + scale, scale)] if n_whole + scale <= 76 else []


def _decided(opened: Sequence[OpenedFile], choices: dict[str, list[Any]]) -> dict[str, Any]:
    """Return, for each column, the first of the types that holds all values of all files."""
    for file in opened:
        row = file.first_row
        for table in file.tables(tuple(choices)):
            for name, kinds in choices.items():
                choices[name] = [
                    kind for kind in kinds if exact_cast(table[name], kind) is not None
                ]
                if not choices[name]:
                    raise _misfit(table[name], kinds[0], name, file.label, row)
            row += table.num_rows
    return {name: kinds[0] for name, kinds in choices.items()}


def cast_tables(
    tables: Iterable[pa.Table], schema: Any, label: str, first_row: int = 0
) -> Iterator[pa.Table]:
    """Yield tables with the columns of a schema, in its order and types; no value changes."""
    import pyarrow as pa

    for table in tables:
        if schema is None or table.schema.equals(schema):
            yield table
        else:
            table = table.select(schema.names)
            columns = []
            for column, field in zip(table.columns, schema, strict=True):
                columns.append(exact_cast(column, field.type))
                if columns[-1] is None:
                    raise _misfit(column, field.type, field.name, label, first_row)
            yield pa.table(columns, schema=schema)
        first_row += table.num_rows


def exact_cast(column: Any, kind: Any) -> Any:
    """Return a column with another type, None if a value would change."""
    import pyarrow as pa

    if column.type == kind:
        return column
    try:
        is_decimal = pa.types.is_decimal(column.type)  # which pyarrow turns into inexact floats
        values = (column.cast(pa.string()) if is_decimal else column).cast(kind)
        if pa.types.is_floating(kind) and not pa.types.is_floating(column.type):
            # Safe casts may still round.
            return values if values.cast(column.type).equals(column) else None
    except pa.ArrowInvalid:
        return None
    return values


def _misfit(column: Any, kind: Any, name: str, label: str, first_row: int) -> ValueError:
    """Return an error about the first value that does not fit a type."""
    import pyarrow as pa

    place, size = 0, len(column)
    while size > 1:
        half = size // 2
        is_later = exact_cast(column.slice(place, half), kind) is not None
        place, size = (place + half, size - half) if is_later else (place, half)
    value = column.slice(place, 1)
    text = None if pa.types.is_nested(value.type) else exact_cast(value, pa.string())
    shown = repr(value[0].as_py()) if text is None else text[0].as_py()
    return ValueError(
        f"Column {name!r} has {str(shown)[:40]} in row {first_row + place:,} of {label}, which the "
        f"type {kind}, needed for other files, cannot hold: the type there is {column.type}. Write "
        "all files with the same types."
    )


def check_names(names: list[list[str]], labels: list[str], files: FileSet) -> None:
    """Raise if column names of the first file repeat, or if other files have other names."""
    twice = sorted(name for name, count in Counter(names[0]).items() if count > 1)
    if twice:
        raise OptionError(
            f"Duplicate column names in {files.label}: {listed(twice)}. Rename the columns in the "
            "file" + (f", if they are names. {NO_HEADER}" if files.format in _WITH_HEADER else "."),
            "header" if files.format in _WITH_HEADER else None,
        )
    for others, label in zip(names[1:], labels[1:], strict=True):
        _check_same_names(names[0], others, label, files)


def _check_same_names(expected: list[str], got: list[str], label: str, files: FileSet) -> None:
    if sorted(got) == sorted(expected):
        return
    more = [name for name in got if name not in expected]
    fewer = [name for name in expected if name not in got]
    parts = [f"has an extra {listed(more)}"] if more else []
    parts += [f"has no {listed(fewer)}"] if fewer else []
    is_headless = files.format in _WITH_HEADER and any(map(is_number, more))
    raise OptionError(
        f"Expected the same columns in all files of {files.label}, but {label} "
        f"{' and '.join(parts) or 'has one of them twice'}."
        + (f" Is its first line data? {NO_HEADER}" if is_headless else ""),
        "header" if is_headless else None,
    )
