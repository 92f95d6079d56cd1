"""Dask arrays and data frames as blocks: functions run on the workers and return sums."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from classprior._samples.sources import Result, Source
from classprior._tables.tables import Block, digest_of_table

_TASKS_PER_CORE = 2  # in flight at a time: each result may be large


class DaskSource(Source):
    """The partitions of a dask array or data frame, processed where dask computes them."""

    is_local = False

    def __init__(self, collection: Any, name: str) -> None:
        self.name = name
        self._kind = type(collection).__name__
        self.columns = None
        self._sizes: list[int] | None = None  # unknown for most data frames
        ndim = getattr(collection, "ndim", None)
        if not isinstance(ndim, int) or ndim != 2:  # a Delayed has every attribute
            raise TypeError(
                f"Expected a two-dimensional dask array or a dask data frame as {name}, got a "
                f"{type(collection).__name__}."
            )
        if hasattr(collection, "columns"):
            self.columns = tuple(collection.columns)
            self.n_features = len(self.columns)
            self._parts = collection.to_delayed()
            # One column is enough to count rows, so that only that column of parquet is read.
            self._to_count = collection[list(self.columns[:1])].to_delayed()
            return
        if np.isnan(collection.shape[1]):
            raise ValueError(
                f"{name} is a dask array with an unknown number of columns. Call its "
                "compute_chunk_sizes() first."
            )
        self.n_features = int(collection.shape[1])
        self.is_sparse = sparse.issparse(collection._meta)
        collection = collection.rechunk({1: -1})  # a block holds whole rows
        self._parts = self._to_count = list(collection.to_delayed().ravel())
        if not np.isnan(collection.shape[0]):
            self._sizes = list(collection.chunks[0])

    @cached_property
    def identity(self) -> str:
        """Digest of the contents, taken by the workers."""
        found = list(self._computed(_size_and_digest, [(part, self.name) for part in self._parts]))
        self._sizes = self._sizes or [size for size, _ in found]  # counted in the same pass
        contents = hashlib.sha256(b"".join(digest for _, digest in found)).hexdigest()
        return f"a dask {self._kind} with the digest {contents[:32]}"

    @property
    def sizes(self) -> list[int]:
        """Number of rows in each partition, counted by the workers if unknown."""
        if self._sizes is None:
            self._sizes = list(self._computed(_n_rows, [(part,) for part in self._to_count]))
        return self._sizes

    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield ``function(block)`` for each partition, in order, after the first ``skip``."""
        starts = np.cumsum([0, *self.sizes])
        arguments = [
            (number, part, self.sizes[number], int(starts[number]))
            for number, part in enumerate(self._parts)
        ]
        return self._computed(_OnPartition(function), arguments[skip:])

    def _computed(self, function: Callable[..., Any], arguments: list[Any]) -> Iterator[Any]:
        import dask

        # The function is one task that all others share: dask recomputes it if a worker dies.
        sent = dask.delayed(function, traverse=False)
        client = _current_client()
        if client is None:
            tasks = (dask.delayed(_call)(sent, *some) for some in arguments)
            while some := list(islice(tasks, _TASKS_PER_CORE * effective_n_jobs(-1))):
                yield from dask.compute(*some)
            return
        sent = client.persist(sent)  # held from the first task to the last
        tasks = (dask.delayed(_call)(sent, *some) for some in arguments)
        futures: deque[Any] = deque()
        try:
            while True:
                n_cores = max(1, sum(client.nthreads().values()))  # workers come and go
                room = _TASKS_PER_CORE * n_cores - len(futures)
                futures.extend(client.compute(list(islice(tasks, max(0, room)))))
                if not futures:
                    return
                yield futures[0].result()
                futures.popleft()
        finally:
            client.cancel(list(futures))


class _OnPartition:
    """Calls a function with a partition as a block."""

    def __init__(self, function: Callable[[Block], Any]) -> None:
        self._function = function

    def __call__(self, number: int, content: Any, n_rows: int, start: int) -> Any:
        return self._function(Block(f"partition {number}", content, n_rows, start))


def _n_rows(table: Any) -> int:
    return int(table.shape[0])  # a sparse matrix has no len


def _size_and_digest(content: Any, name: str) -> tuple[int, bytes]:
    found = hashlib.sha256()
    for table in Block("", content, content.shape[0]).tables():
        found.update(digest_of_table(table, name))
    return content.shape[0], found.digest()


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _current_client() -> Any:
    try:
        import distributed
    except ImportError:
        return None
    try:
        return distributed.Client.current()
    except ValueError:  # there is none
        return None
