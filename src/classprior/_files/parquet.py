"""Parquet files: footers that contradict themselves are refused, dates of INT96 do not wrap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from classprior._files.arrow import readable, unchanged, validated, with_names
from classprior._files.common_schema import UNITS, cast_tables, exact_cast, without_codes
from classprior._files.footer import leaves_of
from classprior._files.stored import StoredFile
from classprior._tables.columns import YEARS
from classprior._tables.tables import BLOCK_ROWS, Block

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetFile:
    """A Parquet file, as the fragment of a dataset; its row groups are read lazily."""

    first_row = 0

    def __init__(
        self, fragment: Any, label: str, name: str, file: StoredFile | None, partitions: Any = ()
    ) -> None:
        self.label = label
        self._name = name
        self._file = file
        with readable(label, name), unchanged(file):
            old_dates = _checked_footer(fragment, label)
            self._fragment = _with_all_dates(fragment, old_dates, label)
            self.schema = with_names(self._fragment.physical_schema)
            for field in partitions:  # columns in the path of the file
                if field.name not in self.schema.names:
                    self.schema = self.schema.append(field)

    @cached_property
    def _groups(self) -> list[Any]:
        with readable(self.label, self._name):
            return list(self._fragment.split_by_row_group())

    def blocks(self, schema: Any) -> Iterator[Block]:
        """Return the row groups as blocks, cast to a schema."""
        first = 0
        for group in self._groups:
            (info,) = group.row_groups
            where = f"{self.label}, row group {info.id}"
            content = _RowGroup(self, group, schema, where, self._name, self._file, first)
            numbers = range(first, first + info.num_rows)
            yield Block(where, content, info.num_rows, numbers=numbers)
            first += info.num_rows

    def tables(self, columns: tuple[str, ...] | None = None) -> Iterator[pa.Table]:
        """Read the rows."""
        for block in self.blocks(None):
            yield from block.content.tables(columns)


@dataclass(frozen=True, eq=False)
class _RowGroup:
    """A row group of a Parquet file, read lazily."""

    of: ParquetFile
    fragment: Any
    cast_to: Any
    where: str
    name: str
    file: StoredFile | None
    first_row: int

    def tables(self, columns: tuple[str, ...] | None = None) -> Iterator[pa.Table]:
        import pyarrow as pa

        known = self.of.schema.names
        wanted = None if columns is None else [name for name in columns if name in known]
        schema = self.cast_to
        if schema is not None and wanted is not None:
            schema = pa.schema([schema.field(name) for name in wanted])
        with readable(self.where, self.name), unchanged(self.file):
            tables = _tables_of(self.fragment, self.of.schema, wanted)
            yield from cast_tables(tables, schema, self.of.label, self.first_row)


def _tables_of(fragment: Any, schema: Any, columns: list[str] | None) -> Iterator[pa.Table]:
    """Read a row group, checking the pages that have checksums and the number of rows."""
    import pyarrow as pa

    options = fragment.format.default_fragment_scan_options
    options.page_checksum_verification = True
    n_rows = 0
    for batch in fragment.to_batches(
        schema=schema,
        columns=columns,
        batch_size=BLOCK_ROWS,
        use_threads=False,
        fragment_scan_options=options,
    ):
        n_rows += batch.num_rows
        yield pa.Table.from_batches([validated(batch)])
    expected = sum(group.num_rows for group in fragment.row_groups)
    if n_rows != expected:
        raise pa.ArrowInvalid(f"{n_rows:,} rows instead of {expected:,}")


def _checked_footer(fragment: Any, label: str) -> set[str]:
    """Raise if a footer is damaged; return the columns that hold dates as old writers did."""
    assert fragment.metadata is not None  # raises if pyarrow cannot read it
    with fragment.open() as file:
        try:
            leaves = leaves_of(file)
        except ValueError as error:
            raise _damaged(label, str(error)) from error
    old_dates = {leaf.path[0].decode() for leaf in leaves if leaf.is_int96}
    _check_types(fragment, old_dates, label)
    return old_dates


def _check_types(fragment: Any, old_dates: set[str], label: str) -> None:
    """Raise if types differ from those that Arrow stored beside them."""
    import base64

    import pyarrow as pa

    stored = (fragment.metadata.metadata or {}).get(b"ARROW:schema")
    if stored is None:
        return
    try:
        wanted = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored, validate=True)))
    except (pa.ArrowException, ValueError, OSError) as error:
        raise _damaged(label, "its footer is damaged") from error
    for field in fragment.physical_schema:
        place = wanted.get_field_index(field.name)
        if place >= 0 and field.name not in old_dates:  # which lose their unit and zone
            was, is_now = wanted.field(place).type, field.type
            kinds = _kind(was), _kind(is_now)
            if _is_finer(is_now, was) or (None not in kinds and kinds[0] != kinds[1]):
                about = f"its footer contradicts itself about the type of column {field.name!r}"
                raise _damaged(label, about)


def _is_finer(one: Any, other: Any) -> bool:
    """Return whether times have a finer unit, for which writers have no reason but for seconds."""
    import pyarrow as pa

    if not pa.types.is_timestamp(one) or not pa.types.is_timestamp(other):
        return False
    return UNITS.index(one.unit) < UNITS.index(other.unit) and (other.unit, one.unit) != ("s", "ms")


def _damaged(label: str, fault: str) -> ValueError:
    return ValueError(f"{label} is damaged: {fault}. Write the file again, or leave it out.")


def _kind(kind: Any) -> str | None:
    """Return what a type and the one that Arrow stored must have in common, if anything."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return "time" if kind.tz is None else "time in a zone"
    text = str(without_codes(kind))
    if text.startswith(("string", "large_string")):
        return "text"
    if text.startswith(("binary", "large_binary", "fixed_size_binary")):
        return "bytes"
    return "integer" if pa.types.is_integer(kind) else None


def _with_all_dates(fragment: Any, old_dates: set[str], label: str) -> Any:
    """Return a file whose INT96 dates are read in a unit that can hold them.

    pyarrow reads them as nanoseconds, in which dates beyond 2262 become others.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = sorted(old_dates)
    if not columns or fragment.format.read_options.coerce_int96_timestamp_unit != "ns":
        return fragment
    coarse = _with_microseconds(fragment)
    far, fine = set(), set()
    both = (one.to_batches(columns=columns, use_threads=False) for one in (coarse, fragment))
    for rows, same_rows in zip(*both, strict=True):
        for name, dates, same in zip(columns, rows.columns, same_rows.columns, strict=True):
            is_flat = pa.types.is_timestamp(dates.type)
            if exact_cast(dates, same.type) is None:
                far.add(name)
                if is_flat:
                    same = same.filter(pc.less(pc.abs(dates.cast(pa.int64())), 2**63 // 1000))
            if is_flat and exact_cast(same, dates.type) is None:
                fine.add(name)
    if far and fine:
        raise ValueError(
            f"{label} has dates outside the years {YEARS[0]} to {YEARS[1]} in column "
            f"{min(far)!r}, and fractions of microseconds in column {min(fine)!r}, both as INT96, "
            "and no type can hold both. Write the file again with another type of dates."
        )
    return coarse if far else fragment


def _with_microseconds(fragment: Any) -> Any:
    """Return a file whose INT96 dates are read as microseconds, as Spark means them."""
    from pyarrow.dataset import ParquetFileFormat

    coded = fragment.format.read_options.dictionary_columns
    form = ParquetFileFormat(dictionary_columns=coded, coerce_int96_timestamp_unit="us")
    groups = [group.id for group in fragment.row_groups]
    return form.make_fragment(
        fragment.path, fragment.filesystem, fragment.partition_expression, groups
    )
