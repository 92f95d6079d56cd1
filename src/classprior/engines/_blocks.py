"""Rows that come in blocks: where they are, how to read them, how to send work to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from classprior._basis import Rows
from classprior._messages import listed
from classprior._threads import single_threaded
from classprior._validation import check_rows, column_names

Result = TypeVar("Result", bound=Any)
Map = Callable[[Callable[["Block"], Any], Iterable["Block"]], Iterable[Any]]
# Rows of a block where the source does not say: small beside memory, large beside a task's start.
BLOCK_ROWS = 2**15


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a sample, or the way to read them.

    Parameters
    ----------
    where : str
        What errors call it, such as "part-3.parquet, row group 2".
    content : table or object
        An array or data frame; or an object whose ``tables()`` reads them one after the other.
    n_rows : int
        How many rows there are.
    start : int
        Number of the first row in its sample.
    """

    where: str
    content: Any
    n_rows: int
    start: int = 0

    def tables(self) -> Iterator[Any]:
        """Read the rows, as tables of bounded size."""
        for table in self.content.tables() if hasattr(self.content, "tables") else [self.content]:
            table = table.tocsr() if sparse.issparse(table) else table
            for start in range(0, table.shape[0], BLOCK_ROWS):
                yield rows_of(table, start, min(start + BLOCK_ROWS, table.shape[0]))


def rows_of(table: Any, start: int, stop: int) -> Any:
    """Return consecutive rows of a table, without a copy where that can be.

    Parameters
    ----------
    table : array, CSR matrix or data frame
        Of pandas, polars or pyarrow.
    start, stop : int
        The first row, and the one after the last.

    Returns
    -------
    rows : table
        Of the same kind.
    """
    if hasattr(table, "iloc"):
        return table.iloc[start:stop]
    if hasattr(table, "slice"):  # polars, pyarrow
        return table.slice(start, stop - start)
    return table[start:stop]


@dataclass(frozen=True, eq=False)
class Reader:
    """Turns the tables of a block into finite numbers, or says which block and row are wrong.

    Parameters
    ----------
    name : str
        What errors call the sample.
    columns : tuple of str or None
        The columns to take, where they have names.
    only : bool
        Whether other columns are an error.
    n_features : int, optional
        Number of columns.
    transform : object, optional
        A fitted transformer of tables to numbers.
    as_frames : bool
        Whether tables are read as pandas data frames, where columns have names.
    as_sparse : bool
        Whether dense rows become sparse.
    """

    name: str
    columns: tuple[Any, ...] | None = None
    only: bool = True
    n_features: int | None = None
    transform: Any = None
    as_frames: bool = False
    as_sparse: bool = False

    def __call__(self, block: Block) -> Iterator[tuple[int, Rows]]:
        """Yield the number of the first row of each table, and its rows as numbers."""
        for row, table in self.tables(block):
            numbers = table if self.transform is None else self.transform.transform(table)
            rows = check_rows(numbers, f"{self.name}, {block.where}", first_row=row)
            if self.as_sparse or sparse.issparse(rows):
                yield row, sparse.csr_array(rows)
            else:  # sums gather rows, far apart where columns are together, as in data frames
                yield row, np.ascontiguousarray(rows)

    def tables(self, block: Block) -> Iterator[tuple[int, Any]]:
        """Yield the number of the first row of each table, and the table as it is."""
        row = block.start
        for table in block.tables():
            yield row, self._for_transform(self._selected(table, block.where))
            row += table.shape[0]
        if row != block.start + block.n_rows:
            raise ValueError(
                f"Expected {block.n_rows:,} rows in {block.where} of {self.name}, as there were "
                f"before, got {row - block.start:,}. The data must not change while they are read."
            )

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
        if set(self.columns) - set(names) or (self.only and len(names) != len(self.columns)):
            raise ValueError(
                f"Expected the columns {listed(self.columns)} in {where} of {self.name}, as in "
                f"the first block, got {listed(names)}. Name the columns that all blocks have."
            )
        select = table.select if hasattr(table, "select") else table.__getitem__
        return select(list(self.columns))

    def _for_transform(self, table: Any) -> Any:
        """Return a named table as a pandas data frame, which is what transformers know."""
        wanted = self.transform is not None or self.as_frames
        return table.to_pandas() if wanted and hasattr(table, "to_pandas") else table


class Blocks(ABC):
    """A sample that comes in blocks.

    Attributes
    ----------
    name : str
        What errors call the sample.
    columns : tuple of str or None
        Names of the columns, where they have names.
    n_features : int
        Number of columns.
    only : bool
        Whether columns that were not asked for are an error.
    identity : str
        Words that change when the data do, as far as one can tell without reading them.
    can_go_on : bool
        Whether the blocks are the same in another run, which may then leave out those done.
    """

    name: str
    columns: tuple[Any, ...] | None
    n_features: int
    only: bool
    identity: str
    can_go_on: bool = True

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Rows in every block."""

    @property
    def n_rows(self) -> int:
        """Rows in the sample."""
        return sum(self.sizes)

    @property
    def reader(self) -> Reader:
        """What turns the blocks into numbers."""
        return Reader(self.name, self.columns, self.only, self.n_features)

    @abstractmethod
    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield what the function makes of every block, in order, the first few skipped."""


class LocalBlocks(Blocks):
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
    only : bool
        Whether columns that were not asked for are an error.
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
        only: bool = True,
        n_jobs: int | None = None,
        map: Map | None = None,
    ) -> None:
        self.name = name
        self.columns = columns
        self.n_features = n_features
        self.only = only
        self._contents = contents
        self.identity = identity
        self._n_jobs = n_jobs
        self._map = map

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
        return _threaded_map(function, blocks, effective_n_jobs(self._n_jobs))

    def _changed(self, got: str) -> ValueError:
        return ValueError(
            f"Expected the blocks of {self.name} to be the same whenever they are gone through, "
            f"got {got}, which was not so the first time. The data must not change while they "
            "are read."
        )


def of_all_rows(results: Iterable[Result], blocks: Blocks, skip: int = 0) -> Iterator[Result]:
    """Yield results, and refuse such as are not of every row once.

    Parameters
    ----------
    results : iterable of tuple
        What came back from the blocks; first in each is the number of rows it is of.
    blocks : Blocks
        What they are of.
    skip : int
        Blocks at the beginning that were left out.

    Yields
    ------
    result : tuple
        The same, in their order.
    """
    n_rows = sum(blocks.sizes[:skip])
    for result in results:
        n_rows += result[0]
        if n_rows > blocks.n_rows:
            raise _not_all_rows(blocks, f"results of at least {n_rows:,}")
        yield result
    if n_rows != blocks.n_rows:
        raise _not_all_rows(blocks, f"results of {n_rows:,}")


class NotAllRowsError(ValueError):
    """Results that are not of every row once."""


def _not_all_rows(blocks: Blocks, got: str) -> NotAllRowsError:
    return NotAllRowsError(
        f"Expected results of {blocks.n_rows:,} rows of {blocks.name}, each once, got {got}. What "
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
