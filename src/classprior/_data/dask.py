"""Dask arrays and data frames as blocks: the work goes to the rows, sums come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from classprior._data.blocks import Block, Result, Source

_TASKS_PER_CORE = 2  # under way at a time: their results are held, of which each may be large


class DaskSource(Source):
    """The partitions of a dask collection, worked on where dask computes them.

    Parameters
    ----------
    collection : dask.array.Array or dask.dataframe.DataFrame
        The rows.
    name : str
        What errors call the sample.
    """

    is_local = False

    def __init__(self, collection: Any, name: str) -> None:
        self.name = name
        self.identity = f"a dask {type(collection).__name__}"
        self.columns = None
        self._known_sizes = None
        ndim = getattr(collection, "ndim", None)
        if not isinstance(ndim, int) or ndim != 2:  # a Delayed has whatever it is asked for
            raise TypeError(
                f"Expected a dask array of two dimensions or a dask data frame as {name}, got a "
                f"{type(collection).__name__}."
            )
        if hasattr(collection, "columns"):
            self.columns = tuple(collection.columns)
            self.n_features = len(self.columns)
            self._parts = collection.to_delayed()
            # One column is enough to count, and all that a parquet file is read for then.
            self._to_count = collection[list(self.columns[:1])].to_delayed()
            return
        if np.isnan(collection.shape[1]):
            raise ValueError(
                f"{name} is a dask array that does not know its number of columns. Call its "
                "compute_chunk_sizes() first."
            )
        self.n_features = int(collection.shape[1])
        self.is_sparse = sparse.issparse(collection._meta)
        collection = collection.rechunk({1: -1})  # a block holds whole rows
        self._parts = self._to_count = list(collection.to_delayed().ravel())
        if not np.isnan(collection.shape[0]):
            self._known_sizes = list(collection.chunks[0])

    @cached_property
    def sizes(self) -> list[int]:
        """Rows in every partition, counted where they are if the collection does not know."""
        return self._known_sizes or list(
            self._computed(_n_rows, [(part,) for part in self._to_count])
        )

    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield what the function makes of every partition, in order, the first few skipped."""
        starts = np.cumsum([0, *self.sizes])
        arguments = [
            (number, part, self.sizes[number], int(starts[number]))
            for number, part in enumerate(self._parts)
        ]
        return self._computed(_OnPartition(function), arguments[skip:])

    def _computed(self, function: Callable[..., Any], arguments: list[Any]) -> Iterator[Any]:
        import dask

        # One task holds the function for all: if its worker dies, it is there to be sent again.
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
    """Calls the function with a partition as a block."""

    def __init__(self, function: Callable[[Block], Any]) -> None:
        self._function = function

    def __call__(self, number: int, content: Any, n_rows: int, start: int) -> Any:
        return self._function(Block(f"partition {number}", content, n_rows, start))


def _n_rows(table: Any) -> int:
    return int(table.shape[0])  # a sparse matrix has no len


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
