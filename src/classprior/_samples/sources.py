"""Sources: one sample in blocks, and who maps a function over them."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from itertools import islice
from numbers import Integral
from typing import Any, TypeVar

from joblib import effective_n_jobs

from classprior._core.threads import single_threaded
from classprior._core.types import Rows
from classprior._tables.tables import Block, digest_of_table

Result = TypeVar("Result", bound=Any)
Map = Callable[[Callable[[Block], Any], Iterable[Block]], Iterable[Any]]


class Source(ABC):
    """One sample, split into blocks."""

    name: str  # in error messages
    columns: tuple[Any, ...] | None  # names, if the columns have any
    n_features: int
    can_resume: bool = True  # whether another run sees the same blocks and may skip finished ones
    has_order: bool = True  # whether rows come in the same order in every pass, and in every run
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

    @property
    def label(self) -> str:
        """Name in messages about the whole sample, with its files if there are any."""
        return self.name

    def place_of(self, row: int) -> str:
        """Describe where a row of the sample is."""
        return f"{self.name} (first in row {row})"

    @property
    def n_rows(self) -> int:
        """Number of rows in the sample."""
        return sum(self.sizes)

    def keep_order(self) -> None:
        """Raise if rows come in different orders, in the passes so far or in later ones."""
        return

    @abstractmethod
    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield ``function(block)`` for each block, in order, after the first ``skip``."""


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
        self._sizes: list[int] | None = None  # known after the first pass

    @classmethod
    def of_rows(cls, X: Rows, name: str) -> LocalSource:
        """Return rows in memory as a source of one block."""
        blocks = [Block("all rows", X, X.shape[0])]
        return cls(name, None, X.shape[1], blocks.copy)  # unlike a lambda, it can be pickled

    def __iter__(self) -> Iterator[Block]:
        start = 0
        for number, block in enumerate(self._contents()):
            known = self._sizes
            if known is not None and (number >= len(known) or known[number] != block.n_rows):
                raise self._changed(f"{block.n_rows:,} rows in {block.where}")
            yield replace(block, start=start)
            start += block.n_rows
        if self._sizes is not None and start != sum(self._sizes):
            raise self._changed(f"{start:,} rows in all")

    @property
    def sizes(self) -> list[int]:
        """Number of rows in each block."""
        if self._sizes is None:
            self._sizes = self._count_rows()
        return self._sizes

    def _count_rows(self) -> list[int]:
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
        self._sizes = self._sizes or sizes  # counted in the same pass
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
