"""Parquet files, read a row group at a time, or in parts of it; dates of INT96 do not wrap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from classprior._files.arrow import blocks_of_batches, readable, unchanged, validated, with_names
from classprior._files.common_schema import cast_tables, exact_cast
from classprior._files.stored import StoredFile
from classprior._tables.columns import YEARS
from classprior._tables.tables import BLOCK_ROWS, Block

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ROWS = 4 * BLOCK_ROWS  # of a row group that is one block
_BUFFER = 2**16  # bytes of each column read at a time
_MOST_AHEAD = 32  # parts of a larger one that were read, and not asked for


class ParquetFile:
    """A Parquet file, as the fragment of a dataset; its row groups are read lazily."""

    first_row = 0

    def __init__(
        self, fragment: Any, label: str, name: str, file: StoredFile | None, partitions: Any = ()
    ) -> None:
        self.label = label
        self._has_partitions = bool(partitions)
        self._name = name
        self._file = file
        with readable(label, name), unchanged(file):
            self._fragment = _with_all_dates(fragment, label)
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
            if info.num_rows > _MOST_ROWS and self._file is not None and not self._has_partitions:
                stream = _Stream(content, self._file.path)
                for place in range(0, info.num_rows, BLOCK_ROWS):
                    part = numbers[place : place + BLOCK_ROWS]
                    yield Block(where, _Part(stream, place // BLOCK_ROWS), len(part), numbers=part)
            else:
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

    def tables(
        self, columns: tuple[str, ...] | None = None, path: Path | None = None
    ) -> Iterator[pa.Table]:
        """Read the rows; from the path of the file, a batch at a time."""
        import pyarrow as pa

        known = self.of.schema.names
        wanted = None if columns is None else [name for name in columns if name in known]
        schema = self.cast_to
        if schema is not None and wanted is not None:
            schema = pa.schema([schema.field(name) for name in wanted])
        with readable(self.where, self.name), unchanged(self.file):
            tables = (
                _tables_of(self.fragment, self.of.schema, wanted)
                if path is None
                else _batches_of(self.fragment, path, wanted or known)
            )
            yield from cast_tables(tables, schema, self.of.label, self.first_row)


class _Stream:
    """A large row group, read from its beginning and handed out in parts.

    pyarrow reads the row group of a dataset as a whole, which for files of pandas is the file.
    """

    def __init__(self, group: _RowGroup, path: Path) -> None:
        self._group, self._path = group, path
        self._lock = Lock()
        # By columns: an iterator, the number of its next part, and parts that nobody has taken.
        self._opened: dict[Any, tuple[Iterator[Block], Iterator[int], dict[int, pa.Table]]] = {}

    def __reduce__(self) -> Any:
        return _Stream, (self._group, self._path)  # for another process

    def part(self, number: int, columns: tuple[str, ...] | None) -> pa.Table:
        """Return the part with this number; parts that are read out of order are read anew."""
        with self._lock:
            if columns not in self._opened:
                self._opened[columns] = self._parts(columns), count(), {}
            parts, numbers, left = self._opened[columns]
            while number not in left and (block := next(parts, None)) is not None:
                left[next(numbers)] = block.content
                left.pop(min(left)) if len(left) > _MOST_AHEAD else None
            if number in left:
                return left.pop(number)
        return next(islice(self._parts(columns), number, None)).content

    def _parts(self, columns: tuple[str, ...] | None) -> Iterator[Block]:
        group = self._group
        tables = group.tables(columns, self._path)
        return blocks_of_batches(tables, group.where, group.name, BLOCK_ROWS)


@dataclass(frozen=True, eq=False)
class _Part:
    """Consecutive rows of a large row group, read lazily."""

    stream: _Stream
    number: int

    def tables(self, columns: tuple[str, ...] | None = None) -> Iterator[pa.Table]:
        yield self.stream.part(self.number, columns)


def _batches_of(fragment: Any, path: Path, columns: list[str]) -> Iterator[pa.Table]:
    """Read a row group a batch at a time, checking the pages that have checksums."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (group,) = fragment.row_groups
    file = pq.ParquetFile(
        path,
        read_dictionary=fragment.format.read_options.dictionary_columns,
        coerce_int96_timestamp_unit=fragment.format.read_options.coerce_int96_timestamp_unit,
        page_checksum_verification=True,
        pre_buffer=False,  # which would read the whole row group
        buffer_size=_BUFFER,
    )
    n_rows = 0
    for batch in file.iter_batches(BLOCK_ROWS, row_groups=[group.id], columns=columns):
        n_rows += batch.num_rows
        table = pa.Table.from_batches([validated(batch)])
        yield table.select(columns).replace_schema_metadata(None)
    if n_rows != group.num_rows:
        raise pa.ArrowInvalid(f"{n_rows:,} rows instead of {group.num_rows:,}")


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


def _with_all_dates(fragment: Any, label: str) -> Any:
    """Return a file whose INT96 dates are read in a unit that can hold them.

    pyarrow reads them as nanoseconds, in which dates beyond 2262 become others.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    leaves = fragment.metadata.schema
    parts = (leaves.column(place) for place in range(len(leaves)))
    old = [f"{part.path}." for part in parts if part.physical_type == "INT96"]
    names = fragment.physical_schema.names
    columns = [name for name in names if any(path.startswith(f"{name}.") for path in old)]
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
