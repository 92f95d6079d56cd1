"""Blocks of rows: sources that map a function over blocks, and the reader of a block."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from numbers import Integral
from typing import Any, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from classprior._core.messages import listed
from classprior._core.threads import single_threaded
from classprior._core.types import Ints, Rows
from classprior._data.checks import RowError, check_rows, column_names, unmasked

Result = TypeVar("Result", bound=Any)
Span = tuple[int, int]  # first row and number of rows
Map = Callable[[Callable[["Block"], Any], Iterable["Block"]], Iterable[Any]]
#: Default block size: small compared with memory, large enough to amortize the cost of a task.
BLOCK_ROWS = 2**15


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a sample, in memory or read lazily."""

    where: str  # name in error messages, such as "part-3.parquet, row group 2"
    content: Any  # an array, a table, or an object whose tables(columns) reads them one by one
    n_rows: int
    start: int = 0  # index of the first row in the sample
    numbers: range | Ints | None = None  # of the rows in their file; by default, from 0 on

    @property
    def span(self) -> Span:
        """Index of the first row and number of rows."""
        return self.start, self.n_rows

    def number_of(self, row: int) -> int:
        """Return the number in its file of a row of the sample."""
        place = row - self.start
        return place if self.numbers is None else int(self.numbers[place])

    def tables(self, columns: tuple[Any, ...] | None = None) -> Iterator[Any]:
        """Read the rows as tables of bounded size, only some columns where the file allows it."""
        is_unread = hasattr(self.content, "tables")
        for table in self.content.tables(columns) if is_unread else [self.content]:
            table = table.tocsr() if sparse.issparse(table) else unmasked(table)
            for start in range(0, table.shape[0], BLOCK_ROWS):
                yield rows_of(table, start, min(start + BLOCK_ROWS, table.shape[0]))


def rows_of(table: Any, start: int, stop: int) -> Any:
    """Return consecutive rows of an array or a table, as a view where possible."""
    if hasattr(table, "iloc"):
        return table.iloc[start:stop]
    if hasattr(table, "slice"):  # polars, pyarrow
        return table.slice(start, stop - start)
    return table[start:stop]


def select_columns(table: Any, columns: Iterable[Any]) -> Any:
    """Return columns of a pandas, polars or pyarrow table, in the given order."""
    select = table.select if hasattr(table, "select") else table.__getitem__
    return select(list(columns))


def as_frame(table: Any, names: Iterable[Any] | None) -> Any:
    """Return a table or an array as a pandas data frame; an array without names is unchanged."""
    if hasattr(table, "replace_schema_metadata"):  # pyarrow: a stored index is a column
        table = table.replace_schema_metadata(None)
    if hasattr(table, "to_pandas"):
        return table.to_pandas()
    if names is None or column_names(table) is not None:
        return table
    import pandas as pd

    return pd.DataFrame(table.toarray() if sparse.issparse(table) else table, columns=list(names))


def digest_of_table(table: Any, where: str) -> bytes:
    """Return a hash of the types and values of an array, a CSR matrix or a data frame."""
    found = hashlib.sha256()
    names = column_names(table)
    if names is None and sparse.issparse(table):
        parts = [table.data, table.indices, table.indptr]
    elif names is None and table.dtype != object:
        parts = [np.ascontiguousarray(table)]
    else:
        import pandas as pd

        frame = as_frame(table, range(table.shape[1]) if names is None else names)
        try:
            parts = [pd.util.hash_pandas_object(frame, index=False).to_numpy()]
        except TypeError as error:
            raise ValueError(
                f"checkpoint does not support {where}, because its values cannot be compared with "
                f"those of another run: {error}. Leave checkpoint out."
            ) from error
        found.update(repr([*zip(names or (), frame.dtypes, strict=False)]).encode())
    for part in parts:
        found.update(repr((part.dtype, part.shape)).encode())
        found.update(part.tobytes())
    return found.digest()


def bytes_of_row(X: Any) -> float:
    """Return the approximate size of a row in bytes, as numbers."""
    if sparse.issparse(X) and X.shape[0]:
        return 12.0 * X.nnz / X.shape[0]
    return 8.0 * X.shape[1]


class Source(ABC):
    """One sample, split into blocks."""

    name: str  # in error messages
    columns: tuple[Any, ...] | None  # names, if the columns have any
    n_features: int
    can_resume: bool = True  # whether another run sees the same blocks and may skip finished ones
    is_local: bool = True  # whether this process reads the rows itself
    is_sparse: bool = False
    row_bytes: float | None = None  # approximate, if n_features does not determine it

    @property
    @abstractmethod
    def identity(self) -> str:
        """Text that changes when the data change."""

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Number of rows in each block."""

    def place_of(self, row: int) -> str:
        """Describe where a row of the sample is."""
        return f"{self.name} (first in row {row})"

    @property
    def n_rows(self) -> int:
        """Number of rows in the sample."""
        return sum(self.sizes)

    @abstractmethod
    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield ``function(block)`` for each block, in order, after the first ``skip``."""

    def narrowed(self, columns: Iterable[Any]) -> Self:
        """Return the same rows with a subset of the columns."""
        narrow = copy(self)
        narrow.columns = tuple(columns)
        narrow.n_features = len(narrow.columns)
        return narrow


class LocalSource(Source):
    """Blocks that this process reads, in ``n_jobs`` threads or with the user's ``map``.

    Each call of ``contents`` iterates over all blocks from the first; their ``start`` is ignored.
    """

    def __init__(
        self,
        name: str,
        columns: tuple[Any, ...] | None,
        n_features: int,
        contents: Callable[[], Iterable[Block]],
        identity: str | None = None,
        *,
        is_sparse: bool = False,
        row_bytes: float | None = None,
        n_jobs: int | None = None,
        map: Map | None = None,
    ) -> None:
        self.name = name
        self.columns = columns
        self.n_features = n_features
        self._identity = identity
        self._contents = contents
        self.is_sparse = is_sparse
        self.row_bytes = row_bytes
        self._n_jobs = n_jobs
        self._map = map

    @classmethod
    def of_rows(cls, X: Rows, name: str) -> LocalSource:
        """Return rows in memory as a source of one block."""
        return cls(name, None, X.shape[1], lambda: [Block("all rows", X, X.shape[0])])

    def __iter__(self) -> Iterator[Block]:
        start = 0
        for number, block in enumerate(self._contents()):
            known = self.__dict__.get("sizes")
            if known is not None and (number >= len(known) or known[number] != block.n_rows):
                raise self._changed(f"{block.n_rows:,} rows in {block.where}")
            yield replace(block, start=start)
            start += block.n_rows
        known = self.__dict__.get("sizes")
        if known is not None and start != sum(known):
            raise self._changed(f"{start:,} rows in all")

    @cached_property
    def sizes(self) -> list[int]:
        """Number of rows in each block."""
        return [block.n_rows for block in self]

    @cached_property
    def identity(self) -> str:
        """Text that changes when the data change; rows that are not in files are read for it."""
        if self._identity is not None:
            return self._identity
        contents, sizes = hashlib.sha256(), []
        for block in self:
            for table in block.tables():
                contents.update(digest_of_table(table, f"{block.where} of {self.name}"))
            sizes.append(block.n_rows)
        self.__dict__.setdefault("sizes", sizes)  # counted in the same pass
        return f"rows with the digest {contents.hexdigest()[:32]}"

    def place_of(self, row: int) -> str:
        """Describe where a row of the sample is: the block, and its number there."""
        block = next(b for b in self if b.start <= row < b.start + b.n_rows)
        return f"{self.name}, {block.where} (first in row {block.number_of(row)})"

    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield ``function(block)`` for each block, in order, after the first ``skip``."""
        blocks = islice(self, skip, None)
        if self._map is not None:
            return iter(self._map(function, blocks))
        n_threads = min(effective_n_jobs(self._n_jobs), len(self.sizes))
        return _threaded_map(function, blocks, max(1, n_threads))

    def _changed(self, got: str) -> ValueError:
        return ValueError(
            f"{self.name} changed between two passes: it now has {got}. The data must not change "
            "until the fit has finished."
        )


class DistributedSource(Source):
    """A user's object with ``n_rows``, ``columns`` (names or a number) and ``map_blocks``."""

    can_resume = False  # only the object knows its blocks
    is_local = False

    def __init__(self, source: Any, name: str) -> None:
        self.name = name
        self.columns = None if isinstance(source.columns, Integral) else tuple(source.columns)
        self.n_features = int(source.columns) if self.columns is None else len(self.columns)
        self.is_sparse = getattr(source, "is_sparse", False)
        self._source = source

    @property
    def identity(self) -> str:
        """Type of the object."""
        return f"a {type(self._source).__name__}"

    @property
    def sizes(self) -> list[int]:
        """Number of rows as if in one block: only the object knows its blocks."""
        return [int(self._source.n_rows)]

    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield ``function(block)`` for each block, after the first ``skip``."""
        return islice(self._source.map_blocks(function), skip, None)


@dataclass(frozen=True, eq=False)
class Reader:
    """Converts the tables of a block to finite numbers; errors name the block and the row."""

    name: str  # of the sample, in error messages
    columns: tuple[Any, ...] | None = None  # to select, in this order, if columns have names
    n_features: int | None = None  # number of columns in the tables
    n_out: int | None = None  # number of columns after conversion
    transform: Any = None  # fitted transformer from tables to numbers
    as_frames: bool = False  # whether the transformer needs pandas data frames
    as_sparse: bool = False  # return CSR matrices, also for dense tables
    row_bytes: float = 0.0  # approximate, after conversion
    is_clean: bool = False  # rows are already checked and returned unchanged

    def __call__(self, block: Block) -> Iterator[tuple[int, Rows]]:
        """Yield the index of the first row of each table, and its rows as numbers."""
        if self.is_clean:
            yield block.start, block.content
            return
        where = f"{self.name}, {block.where}"
        for row, table in self.tables(block):
            numbers = table if self.transform is None else self._transformed(table, block, row)
            place = partial(_number_in_file, block, row)
            rows = check_rows(numbers, where, place)
            if self.as_sparse:
                yield row, sparse.csr_array(rows)
            else:  # the sums access single rows, which are not contiguous in data frames
                rows = rows.toarray() if sparse.issparse(rows) else rows
                yield row, np.ascontiguousarray(rows)

    def tables(self, block: Block) -> Iterator[tuple[int, Any]]:
        """Yield the index of the first row of each table, and the selected columns."""
        row = block.start
        for table in block.tables(self.columns):
            yield row, self._selected(table, block.where)
            row += table.shape[0]
        if row != block.start + block.n_rows:
            raise ValueError(
                f"Expected {block.n_rows:,} rows in {block.where} of {self.name}, got "
                f"{row - block.start:,}. The data must not change while they are being read."
            )

    def _transformed(self, table: Any, block: Block, row: int) -> Any:
        where = f"{self.name}, {block.where}"
        try:
            return self.transform.transform(
                as_frame(table, self.columns) if self.as_frames else table
            )
        except RowError as error:
            number = block.number_of(row + error.row)
            raise ValueError(error.at(f"{where} (first in row {number})")) from error
        except (TypeError, ValueError) as error:
            number = block.number_of(row)
            raise type(error)(f"{where}, starting at row {number:,}: {error}") from error

    def _selected(self, table: Any, where: str) -> Any:
        """Return the table with the selected columns, in order."""
        names = column_names(table)
        if self.columns is None or names is None:
            if table.shape[1] != self.n_features:
                raise ValueError(
                    f"Expected {self.n_features} columns in {where} of {self.name}, the number in "
                    f"the first block, got {table.shape[1]}."
                )
            return table
        if tuple(names) == self.columns:
            return table
        if missing := [name for name in self.columns if name not in names]:
            raise ValueError(
                f"Expected the columns {listed(self.columns)} in every block, but {where} of "
                f"{self.name} has no {listed(missing)}."
            )
        return select_columns(table, self.columns)


def _number_in_file(block: Block, row: int, place: int) -> int:
    return block.number_of(row + place)


class NotAllRowsError(ValueError):
    """The results do not cover every row exactly once."""


def of_all_rows(
    results: Iterable[Result], source: Source, skip: int = 0, *, in_order: bool
) -> Iterator[Result]:
    """Yield results, checking by the span in their first item that they cover each row once."""
    first = n_rows = sum(source.sizes[:skip])
    spans = []
    for result in results:
        start, size = result[0]
        if in_order and size and start != n_rows:
            raise _not_all_rows(source, f"row {start:,} after {n_rows:,} rows, out of order")
        n_rows += size
        if n_rows > source.n_rows:
            raise _not_all_rows(source, f"results for at least {n_rows:,}")
        spans.append((start, size))
        yield result
    if n_rows != source.n_rows:
        raise _not_all_rows(source, f"results for {n_rows:,}")
    for start, size in sorted(span for span in spans if span[1]):
        if start != first:
            raise _not_all_rows(source, f"none or two for row {min(start, first):,}")
        first += size


def _not_all_rows(source: Source, got: str) -> NotAllRowsError:
    return NotAllRowsError(
        f"Expected one result for each of the {source.n_rows:,} rows of {source.name}, got {got}. "
        "The function that maps over blocks must return one result per block."
    )


def _threaded_map(
    function: Callable[[Block], Result], blocks: Iterable[Block], n_threads: int
) -> Iterator[Result]:
    """Yield results in the order of the blocks, with a bounded number of blocks in flight."""
    pool = ThreadPoolExecutor(n_threads)
    under_way: deque[Future[Result]] = deque()
    # Restore the threads of BLAS only after ours have ended: their functions set limits, too.
    with single_threaded():
        try:
            for block in blocks:
                under_way.append(pool.submit(function, block))
                if len(under_way) > 2 * n_threads:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
