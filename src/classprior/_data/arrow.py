"""Blocks of pyarrow datasets and Arrow files: parquet row groups, or record batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classprior._core.messages import listed
from classprior._data.blocks import BLOCK_ROWS, Block

if TYPE_CHECKING:
    import pyarrow as pa


def identity_of_file(path: str) -> str:
    """Return a text that changes when the file changes."""
    found = stat(path)
    return f"{path} of {found.st_size} bytes, changed at {found.st_mtime_ns}"


def identity_of_files(paths: list[str]) -> str:
    """Return a text that changes when any of the files changes."""
    files = [identity_of_file(path) if Path(path).is_file() else path for path in paths]
    digest = hashlib.sha256("\n".join(files).encode()).hexdigest()[:16]
    return f"{len(files)} files from {paths[0]} on ({digest})" if files else "no files"


class DatasetBlocks:
    """Iterate over a pyarrow dataset in blocks, cast to ``schema`` if there is one.

    Parquet row groups are read lazily; other files are read in blocks of ``block_rows`` rows.
    """

    def __init__(
        self, dataset: Any, name: str, block_rows: int = BLOCK_ROWS, schema: Any = None
    ) -> None:
        self.columns: tuple[str, ...] = tuple(dataset.schema.names)
        self._fragments = list(dataset.get_fragments())
        self._schema = dataset.schema
        self._name = name
        self._block_rows = block_rows
        self._cast_to = schema

    def __call__(self) -> Iterator[Block]:
        """Iterate over the blocks."""
        for fragment in self._fragments:
            path = getattr(fragment, "path", "table in memory")
            with readable(path, self._name):
                schema = self._schema_of(fragment)
            if set(self.columns) != set(schema.names):
                raise ValueError(
                    f"The files of {self._name} have different columns: "
                    f"{listed(self.columns)} in the first file, {listed(schema.names)} in {path}."
                )
            if hasattr(fragment, "split_by_row_group"):
                with readable(path, self._name):
                    groups = fragment.split_by_row_group()
                for group in groups:
                    (info,) = group.row_groups
                    where = f"{path}, row group {info.id}"
                    content = _RowGroup(group, schema, where, self._name, self._cast_to)
                    yield Block(where, content, info.num_rows)
            else:
                batches = fragment.to_batches(schema=self._schema, batch_size=self._block_rows)
                yield from blocks_of_batches(batches, path, self._name, self._block_rows)

    @property
    def identity(self) -> str:
        """Text that changes when a file changes."""
        return identity_of_files([getattr(fragment, "path", "") for fragment in self._fragments])

    def _schema_of(self, fragment: Any) -> Any:
        """Return the schema of a file, including the partition columns in its path."""
        from pyarrow.dataset import get_partition_keys

        schema = fragment.physical_schema
        for name in get_partition_keys(fragment.partition_expression):
            if name not in schema.names:
                schema = schema.append(self._schema.field(name))
        return schema


@dataclass(frozen=True, eq=False)
class _RowGroup:
    """A row group of a parquet file, read lazily."""

    fragment: Any
    schema: Any
    where: str
    name: str
    cast_to: Any = None

    def tables(self, columns: tuple[str, ...] | None = None) -> Iterator[pa.Table]:
        import pyarrow as pa

        known = self.schema.names
        wanted = None if columns is None else [name for name in columns if name in known]
        schema = self.cast_to
        if schema is not None and wanted is not None:
            schema = pa.schema([schema.field(name) for name in wanted])
        with readable(self.where, self.name):
            for batch in self.fragment.to_batches(
                schema=self.schema, columns=wanted, batch_size=BLOCK_ROWS, use_threads=False
            ):
                yield cast_table(pa.Table.from_batches([batch]), schema)


def cast_table(table: pa.Table, schema: Any) -> pa.Table:
    """Return a table with the columns of a schema, in its order and types."""
    if schema is None or table.schema.equals(schema):
        return table
    return table.select(schema.names).cast(schema, safe=False)


def blocks_of_batches(
    batches: Iterator[Any], path: str, name: str, block_rows: int
) -> Iterator[Block]:
    """Regroup record batches or tables into blocks of ``block_rows`` rows."""
    import pyarrow as pa

    start, held, n_held = 0, [], 0
    while True:
        with readable(f"{path} after row {start + n_held:,}", name):
            batch = next(batches, None)
        if batch is not None:
            held.append(batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch]))
            n_held += batch.num_rows
        while n_held >= block_rows or (batch is None and n_held):
            table = pa.concat_tables(held)
            block, rest = table.slice(0, block_rows), table.slice(block_rows)
            where = f"{path}, rows {start:,} to {start + block.num_rows - 1:,}"
            yield Block(where, block, block.num_rows)
            start += block.num_rows
            held, n_held = [rest], rest.num_rows
        if batch is None:
            return


def ipc_schema(source: Path | bytes) -> Any:
    """Return the schema of an Arrow file."""
    return _open_ipc(source)[0]


def ipc_batches(source: Path | bytes) -> Iterator[Any]:
    """Iterate over the record batches of an Arrow IPC file (Feather) or stream."""
    yield from _open_ipc(source)[1]


def _open_ipc(source: Path | bytes) -> tuple[Any, Iterator[Any]]:
    import pyarrow as pa
    from pyarrow import feather

    is_read = isinstance(source, bytes)
    file = pa.BufferReader(source) if is_read else pa.memory_map(str(source))
    head = file.read(6)
    file.seek(0)
    if head == b"ARROW1":
        reader = pa.ipc.open_file(file)
        return reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))
    if head[:4] == b"FEA1":
        table = feather.read_table(file)
        return table.schema, iter(table.to_batches())
    stream = pa.ipc.open_stream(file)
    return stream.schema, iter(stream)


@contextmanager
def readable(where: str, name: str) -> Iterator[None]:
    """Name the file and the sample in read errors."""
    import pyarrow as pa

    try:
        yield
    except (PermissionError, IsADirectoryError):
        raise
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"Could not read {where} of {name}: the file no longer exists. Keep all input files "
            "in place until the fit has finished."
        ) from error
    except (pa.ArrowException, OSError, EOFError) as error:
        reason = (str(error).splitlines() or ["unknown reason"])[0].removesuffix(".")
        raise ValueError(
            f"Could not read {where} of {name}: {reason}. The file may be truncated or have "
            "another format. Write it again, leave it out, or specify its format."
        ) from error
