"""Rows that come in blocks: where they are, how to read them, how to send work to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from numbers import Integral
from typing import Any, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from classprior._core.messages import listed
from classprior._core.threads import single_threaded
from classprior._core.types import Rows
from classprior._data.checks import check_rows, column_names

Result = TypeVar("Result", bound=Any)
Span = tuple[int, int]  # first row and number of rows
Map = Callable[[Callable[["Block"], Any], Iterable["Block"]], Iterable[Any]]
#: Rows of a block where the source does not say: small beside memory, large beside a task's start.
BLOCK_ROWS = 2**15


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a sample, or the way to read them.

    Parameters
    ----------
    where : str
        What errors call it, such as "part-3.parquet, row group 2".
    content : table or object
        An array or data frame; or an object whose ``tables(columns)`` reads them one by one, all
        columns for None.
    n_rows : int
        How many rows there are.
    start : int
        Number of the first row in its sample.
    """

    where: str
    content: Any
    n_rows: int
    start: int = 0

    @property
    def span(self) -> Span:
        """Number of the first row, and how many rows there are."""
        return self.start, self.n_rows

    def tables(self, columns: tuple[Any, ...] | None = None) -> Iterator[Any]:
        """Read the rows, as tables of bounded size; of files that can, only some columns."""
        is_unread = hasattr(self.content, "tables")
        for table in self.content.tables(columns) if is_unread else [self.content]:
            table = table.tocsr() if sparse.issparse(table) else table
            for start in range(0, table.shape[0], BLOCK_ROWS):
                yield rows_of(table, start, min(start + BLOCK_ROWS, table.shape[0]))


def rows_of(table: Any, start: int, stop: int) -> Any:
    """Return consecutive rows of an array or a table, without a copy where that can be."""
    if hasattr(table, "iloc"):
        return table.iloc[start:stop]
    if hasattr(table, "slice"):  # polars, pyarrow
        return table.slice(start, stop - start)
    return table[start:stop]


def select_columns(table: Any, columns: Iterable[Any]) -> Any:
    """Return columns of a pandas, polars or pyarrow table, in that order."""
    select = table.select if hasattr(table, "select") else table.__getitem__
    return select(list(columns))


def as_frame(table: Any, names: Iterable[Any] | None) -> Any:
    """Return a table as a pandas data frame, or an array as it is if its columns have no names."""
    if hasattr(table, "to_pandas"):
        return table.to_pandas()
    if names is None or column_names(table) is not None:
        return table
    import pandas as pd

    return pd.DataFrame(table.toarray() if sparse.issparse(table) else table, columns=list(names))


def bytes_of_row(X: Any) -> float:
    """Return about how much memory a row takes as numbers."""
    if sparse.issparse(X) and X.shape[0]:
        return 12.0 * X.nnz / X.shape[0]
    return 8.0 * X.shape[1]


class Source(ABC):
    """One sample, wherever its rows are.

    Attributes
    ----------
    name : str
        What errors call the sample.
    columns : tuple of str or None
        Names of the columns, where they have names.
    n_features : int
        Number of columns.
    identity : str
        Words that change when the data do, as far as one can tell without reading them.
    can_resume : bool
        Whether the blocks are the same in another run, which may then leave out those done.
    is_local : bool
        Whether this process reads the rows itself.
    is_sparse : bool
        Whether the rows are sparse.
    row_bytes : float or None
        About how much memory a row takes as numbers, where columns do not tell.
    """

    name: str
    columns: tuple[Any, ...] | None
    n_features: int
    identity: str = ""
    can_resume: bool = True
    is_local: bool = True
    is_sparse: bool = False
    row_bytes: float | None = None

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Rows in every block."""

    @property
    def n_rows(self) -> int:
        """Rows in the sample."""
        return sum(self.sizes)

    @abstractmethod
    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield what the function makes of every block, in order, the first few skipped."""

    def narrowed(self, columns: Iterable[Any]) -> Self:
        """Return the same rows with some of their columns."""
        narrow = copy(self)
        narrow.columns = tuple(columns)
        narrow.n_features = len(narrow.columns)
        return narrow


class LocalSource(Source):
    """Blocks that this process can read, worked on by threads.

    Parameters
    ----------
    name : str
        What errors call the sample.
    columns : tuple of str or None
        Names of the columns, where they have names.
    n_features : int
        Number of columns.
    contents : callable
        Returns blocks without start, from the first one on, whenever it is called.
    identity : str
        Words that change when the data do.
    is_sparse : bool
        Whether the rows are sparse.
    row_bytes : float, optional
        About how much memory a row takes as numbers.
    n_jobs : int, optional
        Threads; -1 for all cores.
    map : callable, optional
        Used in place of threads: ``map(function, blocks)`` returns the results in order.
    """

    def __init__(
        self,
        name: str,
        columns: tuple[Any, ...] | None,
        n_features: int,
        contents: Callable[[], Iterable[Block]],
        identity: str = "",
        *,
        is_sparse: bool = False,
        row_bytes: float | None = None,
        n_jobs: int | None = None,
        map: Map | None = None,
    ) -> None:
        self.name = name
        self.columns = columns
        self.n_features = n_features
        self.identity = identity
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
        """Rows in every block."""
        return [block.n_rows for block in self]

    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield what the function makes of every block, in order, the first few skipped."""
        blocks = islice(self, skip, None)
        if self._map is not None:
            return iter(self._map(function, blocks))
        n_threads = min(effective_n_jobs(self._n_jobs), len(self.sizes))
        return _threaded_map(function, blocks, max(1, n_threads))

    def _changed(self, got: str) -> ValueError:
        return ValueError(
            f"{self.name} changed while it was read: now {got}, which was not so the first time. "
            "The data must not change until the fit is done."
        )


class DistributedSource(Source):
    """Rows that an object of the user's sends work to.

    Parameters
    ----------
    source : object
        With ``n_rows``, ``columns`` (names, or how many) and ``map_blocks(function)``.
    name : str
        What errors call the sample.
    """

    can_resume = False  # only the object knows its blocks
    is_local = False

    def __init__(self, source: Any, name: str) -> None:
        self.name = name
        self.columns = None if isinstance(source.columns, Integral) else tuple(source.columns)
        self.n_features = int(source.columns) if self.columns is None else len(self.columns)
        self.identity = f"a {type(source).__name__}"
        self.is_sparse = getattr(source, "is_sparse", False)
        self._source = source

    @property
    def sizes(self) -> list[int]:
        """All rows: only the object knows its blocks."""
        return [int(self._source.n_rows)]

    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield what the function makes of every block, in order."""
        return islice(self._source.map_blocks(function), skip, None)


@dataclass(frozen=True, eq=False)
class Reader:
    """Turns the tables of a block into finite numbers, or says which block and row are wrong.

    Parameters
    ----------
    name : str
        What errors call the sample.
    columns : tuple of str or None
        The columns to take, in that order, where they have names.
    n_features : int, optional
        Number of columns of the tables.
    n_out : int, optional
        Number of columns of the rows as numbers.
    transform : object, optional
        A fitted transformer of tables to numbers.
    as_frames : bool
        Whether the transformer wants pandas data frames.
    as_sparse : bool
        Whether the rows as numbers are a CSR matrix, whatever the tables are.
    row_bytes : float
        About how much memory a row takes as numbers.
    is_clean : bool
        Whether the rows have been checked already, and pass as they are.
    """

    name: str
    columns: tuple[Any, ...] | None = None
    n_features: int | None = None
    n_out: int | None = None
    transform: Any = None
    as_frames: bool = False
    as_sparse: bool = False
    row_bytes: float = 0.0
    is_clean: bool = False

    def __call__(self, block: Block) -> Iterator[tuple[int, Rows]]:
        """Yield the number of the first row of each table, and its rows as numbers."""
        if self.is_clean:
            yield block.start, block.content
            return
        for row, table in self.tables(block):
            where = f"{self.name}, {block.where}"
            numbers = table if self.transform is None else self._transformed(table, where, row)
            rows = check_rows(numbers, where, first_row=row)
            if self.as_sparse:
                yield row, sparse.csr_array(rows)
            else:  # sums gather rows, far apart where columns are together, as in data frames
                rows = rows.toarray() if sparse.issparse(rows) else rows
                yield row, np.ascontiguousarray(rows)

    def tables(self, block: Block) -> Iterator[tuple[int, Any]]:
        """Yield the number of the first row of each table, and the table with its columns."""
        row = block.start
        for table in block.tables(self.columns):
            yield row, self._selected(table, block.where)
            row += table.shape[0]
        if row != block.start + block.n_rows:
            raise ValueError(
                f"Expected {block.n_rows:,} rows in {block.where} of {self.name}, as there were "
                f"before, got {row - block.start:,}. The data must not change while they are read."
            )

    def _transformed(self, table: Any, where: str, row: int) -> Any:
        try:
            return self.transform.transform(
                as_frame(table, self.columns) if self.as_frames else table
            )
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}, from row {row:,} on: {error}") from error

    def _selected(self, table: Any, where: str) -> Any:
        """Return the table with the wanted columns, in their order."""
        names = column_names(table)
        if self.columns is None or names is None:
            if table.shape[1] != self.n_features:
                raise ValueError(
                    f"Expected {self.n_features} columns in {where} of {self.name}, as in the "
                    f"first block, got {table.shape[1]}."
                )
            return table
        if tuple(names) == self.columns:
            return table
        if missing := [name for name in self.columns if name not in names]:
            raise ValueError(
                f"Expected the columns {listed(self.columns)} in {where} of {self.name}, as in "
                f"the first block, got no {listed(missing)}. Name the columns that all blocks have."
            )
        return select_columns(table, self.columns)


class NotAllRowsError(ValueError):
    """Results that are not of every row once."""


def of_all_rows(
    results: Iterable[Result], source: Source, skip: int = 0, *, in_order: bool
) -> Iterator[Result]:
    """Yield results, whose first item is the span of a block, if they cover every row once."""
    first = n_rows = sum(source.sizes[:skip])
    spans = []
    for result in results:
        start, size = result[0]
        if in_order and size and start != n_rows:
            raise _not_all_rows(source, f"row {start:,} after {n_rows:,} rows, out of order")
        n_rows += size
        if n_rows > source.n_rows:
            raise _not_all_rows(source, f"results of at least {n_rows:,}")
        spans.append((start, size))
        yield result
    if n_rows != source.n_rows:
        raise _not_all_rows(source, f"results of {n_rows:,}")
    for start, size in sorted(span for span in spans if span[1]):
        if start != first:
            raise _not_all_rows(source, f"none or two of row {min(start, first):,}")
        first += size


def _not_all_rows(source: Source, got: str) -> NotAllRowsError:
    return NotAllRowsError(
        f"Expected results of {source.n_rows:,} rows of {source.name}, each once, got {got}. What "
        "sends the work to the blocks must return one result for every block."
    )


def _threaded_map(
    function: Callable[[Block], Result], blocks: Iterable[Block], n_threads: int
) -> Iterator[Result]:
    """Yield results in the order of the blocks, a few of which are under way at any time."""
    pool = ThreadPoolExecutor(n_threads)
    under_way: deque[Future[Result]] = deque()
    # Linear algebra gets its threads back after ours have ended, whose work limits it as well.
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
