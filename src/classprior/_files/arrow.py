"""Arrow files and streams, and blocks of record batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from classprior._core.messages import OptionError
from classprior._files.stored import StoredFile
from classprior._tables.tables import Block

if TYPE_CHECKING:
    import pyarrow as pa


def unchanged(file: StoredFile | None) -> AbstractContextManager[None]:
    """Check before and after reading that a file is the same; None is not checked."""
    return nullcontext() if file is None else file.unchanged()


def validated(batch: Any) -> Any:
    """Return a record batch or a table, checked: invalid offsets would crash the interpreter."""
    batch.validate(full=True)
    return batch


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


def with_names(schema: Any) -> Any:
    """Return a schema whose names can be decoded; the index of a pandas frame is a column."""
    assert schema.names is not None  # decodes them
    return schema.remove_metadata()


class ArrowFile:
    """An Arrow IPC file (Feather) or stream."""

    first_row = 0

    def __init__(self, file: StoredFile) -> None:
        self.label = file.label
        self._file = file
        self.schema = with_names(_open_ipc(file)[0])

    def tables(self, columns: tuple[str, ...] | None = None) -> Iterator[pa.Table]:
        """Read the record batches, with all columns."""
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

    opened = pa.OSFile(str(file.path))  # a memory map would crash if the file were cut off
    head = opened.read(6)
    opened.seek(0)
    if head == b"ARROW1":
        reader = pa.ipc.open_file(opened)
        return reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))
    if head[:4] == b"FEA1":
        raise ValueError(
            f"{file.label} is a Feather file of version 1, which cannot be checked for damage "
            "before it is read. Convert it, for example with pandas: "
            "pandas.read_feather(old).to_parquet(new)."
        )
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
