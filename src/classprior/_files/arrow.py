"""Blocks of pyarrow datasets and Arrow files: parquet row groups, or record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classprior._core.messages import OptionError, listed
from classprior._files.stored import StoredFile, identity_of, store
from classprior._tables.tables import BLOCK_ROWS, Block

if TYPE_CHECKING:
    import pyarrow as pa


class DatasetBlocks:
    """Iterate over a pyarrow dataset in blocks, cast to ``schema`` if there is one.

    Parquet row groups are read lazily; other files are read in blocks of ``block_rows`` rows.
    """

    def __init__(
        self,
        dataset: Any,
        name: str,
        block_rows: int = BLOCK_ROWS,
        schema: Any = None,
        files: Sequence[StoredFile] | None = None,
    ) -> None:
        self.columns: tuple[str, ...] = tuple(dataset.schema.names)
        self._fragments = list(dataset.get_fragments())
        self._schema = dataset.schema
        self._name = name
        self._block_rows = block_rows
        self._cast_to = schema
        self._files: Sequence[StoredFile | None] = files or [
            _local_file(fragment, name) for fragment in self._fragments
        ]

    def __call__(self) -> Iterator[Block]:
        """Iterate over the blocks."""
        for fragment, file in zip(self._fragments, self._files, strict=True):
            path = file.label if file else getattr(fragment, "path", "table in memory")
            with unchanged(file):
                with readable(path, self._name):
                    schema = self._schema_of(fragment)
                if set(self.columns) != set(schema.names):
                    raise ValueError(
                        f"The files of {self._name} have different columns: {listed(self.columns)} "
                        f"in the first file, {listed(schema.names)} in {path}."
                    )
                if hasattr(fragment, "split_by_row_group"):
                    yield from self._row_groups(fragment, schema, path, file)
                else:
                    batches = map(
                        validated,
                        fragment.to_batches(schema=self._schema, batch_size=self._block_rows),
                    )
                    yield from blocks_of_batches(batches, path, self._name, self._block_rows)

    def _row_groups(
        self, fragment: Any, schema: Any, path: str, file: StoredFile | None
    ) -> Iterator[Block]:
        with readable(path, self._name):
            groups = fragment.split_by_row_group()
        first = 0
        for group in groups:
            (info,) = group.row_groups
            where = f"{path}, row group {info.id}"
            content = _RowGroup(group, schema, where, self._name, self._cast_to, file)
            numbers = range(first, first + info.num_rows)
            yield Block(where, content, info.num_rows, numbers=numbers)
            first += info.num_rows

    @property
    def identity(self) -> str | None:
        """Text that changes when a file changes; None if the rows are not in files."""
        parts = []
        for fragment, file in zip(self._fragments, self._files, strict=True):
            if not hasattr(fragment, "path"):
                return None
            if file is not None:
                parts.append(file.identity)
            else:  # in a store of objects, such as S3
                found = fragment.filesystem.get_file_info(fragment.path)
                parts.append(f"{found.path} of {found.size} bytes, changed at {found.mtime_ns}")
        return identity_of(parts)

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
    cast_to: Any
    file: StoredFile | None

    def tables(self, columns: tuple[str, ...] | None = None) -> Iterator[pa.Table]:
        import pyarrow as pa

        known = self.schema.names
        wanted = None if columns is None else [name for name in columns if name in known]
        schema = self.cast_to
        if schema is not None and wanted is not None:
            schema = pa.schema([schema.field(name) for name in wanted])
        options = self.fragment.format.default_fragment_scan_options
        options.page_checksum_verification = True
        with readable(self.where, self.name), unchanged(self.file):
            for batch in self.fragment.to_batches(
                schema=self.schema,
                columns=wanted,
                batch_size=BLOCK_ROWS,
                use_threads=False,
                fragment_scan_options=options,
            ):
                yield cast_table(pa.Table.from_batches([validated(batch)]), schema)


def unchanged(file: StoredFile | None) -> AbstractContextManager[None]:
    """Check before and after reading that a file is the same; None is not checked."""
    return nullcontext() if file is None else file.unchanged()


def _local_file(fragment: Any, name: str) -> StoredFile | None:
    """Return the file of a fragment, None if it is in memory or in a store of objects."""
    from pyarrow.fs import LocalFileSystem

    if not isinstance(getattr(fragment, "filesystem", None), LocalFileSystem):
        return None
    with readable(fragment.path, name):
        return store(Path(fragment.path), fragment.path)


def validated(batch: Any) -> Any:
    """Return a record batch or a table, checked: invalid offsets would crash the interpreter."""
    batch.validate(full=True)
    return batch


def cast_table(table: pa.Table, schema: Any) -> pa.Table:
    """Return a table with the columns of a schema, in its order and types."""
    if schema is None or table.schema.equals(schema):
        return table
    return table.select(schema.names).cast(schema, safe=False)


def blocks_of_batches(
    batches: Iterator[Any], path: str, name: str, block_rows: int, first_row: int = 0
) -> Iterator[Block]:
    """Regroup record batches or tables into blocks of ``block_rows`` rows."""
    import pyarrow as pa

    start, held, n_held = first_row, [], 0
    while True:
        with readable(f"{path} after row {start + n_held - 1:,}", name):
            batch = next(batches, None)
        if batch is not None:
            held.append(batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch]))
            n_held += batch.num_rows
        while n_held >= block_rows or (batch is None and n_held):
            table = pa.concat_tables(held)
            block, rest = table.slice(0, block_rows), table.slice(block_rows)
            numbers = range(start, start + block.num_rows)
            where = f"{path}, rows {start:,} to {numbers[-1]:,}"
            yield Block(where, block, block.num_rows, numbers=numbers)
            start += block.num_rows
            held, n_held = [rest], rest.num_rows
        if batch is None:
            return


def parquet_schema(file: StoredFile) -> Any:
    """Return the schema of a Parquet file."""
    import pyarrow.parquet as pq

    return _with_names(pq.read_schema(file.path))


def _with_names(schema: Any) -> Any:
    """Return a schema whose names can be decoded; the index of a pandas frame is a column."""
    assert schema.names is not None  # decodes them
    return schema.remove_metadata()


class ArrowFile:
    """An Arrow IPC file (Feather) or stream."""

    first_row = 0

    def __init__(self, file: StoredFile) -> None:
        self.label = file.label
        self._file = file
        self.schema = _with_names(_open_ipc(file)[0])

    def tables(self) -> Iterator[pa.Table]:
        """Read the record batches."""
        import pyarrow as pa

        with self._file.unchanged():
            for number, batch in enumerate(_open_ipc(self._file)[1]):
                try:
                    table = pa.Table.from_batches([validated(batch)])
                except pa.ArrowInvalid as error:
                    raise pa.ArrowInvalid(f"record batch {number} is damaged ({error})") from error
                yield table.replace_schema_metadata(None)


def _open_ipc(file: StoredFile) -> tuple[Any, Iterator[Any]]:
    import pyarrow as pa
    from pyarrow import feather

    opened = pa.OSFile(str(file.path))  # a memory map would crash if the file were cut off
    head = opened.read(6)
    opened.seek(0)
    if head == b"ARROW1":
        reader = pa.ipc.open_file(opened)
        return reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))
    if head[:4] == b"FEA1":
        table = feather.read_table(opened, memory_map=False)
        return table.schema, iter(validated(table).to_batches())
    stream = pa.ipc.open_stream(opened)
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
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        reason = (str(error).splitlines() or ["unknown reason"])[0].removesuffix(".")
        raise OptionError(
            f"Could not read {where} of {name}: {reason}. The file may be truncated or have "
            "another format. Write it again, leave it out, or specify its format.",
            "file_format",
        ) from error
