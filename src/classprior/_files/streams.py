"""Queries and streams of Arrow batches: DuckDB, polars' lazy frames, and what speaks Arrow.

Each pass runs the query again, and holds a few blocks at a time. What can be read only once is
copied to a temporary file, if the user says so.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from classprior._files.arrow import ArrowFile, blocks_of_batches
from classprior._files.stored import copied
from classprior._tables.checks import is_relation
from classprior._tables.tables import Block, check_unique

SPOOL = "read_options={'spool': True}"


def is_stream(X: Any) -> bool:
    """Return whether an object is a query or a stream of record batches, not a table in memory."""
    if is_relation(X):  # its columns are attributes, as are those of a data frame
        return True
    if hasattr(X, "iloc") or hasattr(X, "get_fragments"):
        return False
    if hasattr(X, "collect_batches"):  # a lazy frame of polars
        return True
    is_column = hasattr(X, "chunks")
    return hasattr(X, "__arrow_c_stream__") and not hasattr(X, "shape") and not is_column


class Stream:
    """The rows of a query or a stream, read anew in each pass, in whatever order they come."""

    def __init__(self, X: Any, name: str, block_rows: int, *, spool: bool = False) -> None:
        try:
            import pyarrow as pa  # noqa: F401 - only to see whether it is installed
        except ImportError as error:
            extra = "duckdb" if is_relation(X) else "cli"
            raise ImportError(
                f"Reading {_kind_of(X)} needs pyarrow: pip install 'classprior[{extra}]'."
            ) from error
        self.kind = _kind_of(X)
        self._X = X
        self._name = name
        self._block_rows = block_rows
        self._opened: Any = None  # the stream from which the names come, for the first pass
        self._file: ArrowFile | None = None
        if isinstance(X, Iterator) and not spool:
            raise self.read_only_once()
        if spool:
            self._file = ArrowFile(copied(_as_bytes(self._batches()), f"the copy of {name}"))
        self.columns = tuple(self._names())
        check_unique(self.columns, name)

    def __call__(self) -> Iterator[Block]:
        """Read all rows in blocks, from the first."""
        batches = self._batches() if self._file is None else self._file.tables()
        return blocks_of_batches(batches, self.kind, self._name, self._block_rows)

    def read_only_once(self) -> ValueError:
        """Return an error about a stream that is empty in its second pass."""
        return ValueError(
            f"{self._name} is {self.kind}, which can be read only once, but several passes over "
            "the rows are needed. Pass the query or the table behind it, or have it copied to a "
            f"temporary file first, with {SPOOL}."
        )

    def _names(self) -> list[str]:
        """Return the names of the columns, without running a query where the engine allows it."""
        if self._file is not None:
            return self._file.schema.names
        if is_relation(self._X):
            return self._X.columns
        with self._running():
            if hasattr(self._X, "collect_schema"):
                return self._X.collect_schema().names()
            self._opened = self._open()
        return self._opened.schema.names

    def _batches(self) -> Iterator[Any]:
        """Run the query; yield record batches or tables of Arrow."""
        with self._running():
            if not is_relation(self._X) and hasattr(self._X, "collect_batches"):
                for frame in self._X.collect_batches(
                    chunk_size=self._block_rows, maintain_order=False
                ):
                    yield frame.to_arrow()
                return
            reader, self._opened = self._opened or self._open(), None
            with reader:  # DuckDB runs no other query before it is closed
                yield from reader

    def _open(self) -> Any:
        import pyarrow as pa

        if not is_relation(self._X):
            return pa.RecordBatchReader.from_stream(self._X)
        read = getattr(self._X, "to_arrow_reader", None) or self._X.fetch_record_batch
        return read(self._block_rows)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Name the sample in errors of an engine, which may be of any type."""
        try:
            yield
        except Exception as error:
            raise ValueError(
                f"{self._name}, {self.kind}, could not be read: {str(error).removesuffix('.')}."
            ) from error


def _kind_of(X: Any) -> str:
    """Return what an object is, in messages."""
    kind = type(X).__name__
    return "a DuckDB relation" if is_relation(X) else f"{'an' if kind[0] in 'AEIO' else 'a'} {kind}"


def _as_bytes(batches: Iterator[Any]) -> Iterator[bytes]:
    """Yield an Arrow stream of record batches or tables, piece by piece."""
    import pyarrow as pa

    pieces, writer = io.BytesIO(), None
    for batch in batches:
        if writer is None:
            writer = pa.ipc.new_stream(pa.PythonFile(pieces, "w"), batch.schema)
        writer.write(batch)
        yield _taken(pieces)
    if writer is not None:
        writer.close()
        yield _taken(pieces)


def _taken(pieces: io.BytesIO) -> bytes:
    """Return what was written so far, and forget it."""
    written = pieces.getvalue()
    pieces.seek(0)
    pieces.truncate()
    return written
