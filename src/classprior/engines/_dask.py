"""Dask arrays and data frames as blocks: the work goes to the rows, sums come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from classprior._messages import listed
from classprior.engines._blocks import Block, Blocks, Result

_PARTITIONS_AT_A_TIME = 64  # without a cluster


class DaskBlocks(Blocks):
    """The partitions of a dask collection, worked on where dask computes them.

    That is the cluster of the current client, if there is one. No partition comes to the client.

    Parameters
    ----------
    collection : dask array or data frame
        The rows.
    name : str
        What errors call the sample.
    columns : list of str, optional
        The columns to take. By default all.
    """

    def __init__(self, collection: Any, name: str, columns: list[str] | None) -> None:
        self.name = name
        self.only = columns is None
        self.identity = f"a dask {type(collection).__name__}"
        if hasattr(collection, "columns"):
            self._check_columns(list(collection.columns), columns)
            collection = collection if columns is None else collection[columns]
            self.columns = tuple(collection.columns)
            self.n_features = len(self.columns)
            self._parts = collection.to_delayed()
            # One column is enough to count, and all that a parquet file is read for then.
            self._to_count = collection[list(self.columns[:1])].to_delayed()
            self._known_sizes = None
        elif len(getattr(collection, "shape", ())) == 2:
            self.columns = None
            self.n_features = int(collection.shape[1])
            collection = collection.rechunk({1: -1})  # a block holds whole rows
            self._parts = self._to_count = list(collection.to_delayed().ravel())
            is_known = not np.isnan(collection.shape[0])
            self._known_sizes = list(collection.chunks[0]) if is_known else None
        else:
            raise TypeError(
                f"Expected a dask array of two dimensions or a dask data frame as {name}, got a "
                f"{type(collection).__name__}."
            )

    def _check_columns(self, names: list[Any], columns: list[str] | None) -> None:
        if missing := [column for column in columns or () if column not in names]:
            raise ValueError(
                f"Expected the columns {listed(columns)} in {self.name}, got none named "
                f"{listed(missing)}. There are {listed(names)}."
            )

    @cached_property
    def sizes(self) -> list[int]:
        """Rows in every partition, counted where they are if the collection does not know."""
        return self._known_sizes or list(self._computed(len, [(part,) for part in self._to_count]))

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
        tasks = [dask.delayed(_call)(sent, *some) for some in arguments]
        client = _current_client()
        if client is None:
            for first in range(0, len(tasks), _PARTITIONS_AT_A_TIME):
                yield from dask.compute(*tasks[first : first + _PARTITIONS_AT_A_TIME])
            return
        futures = deque(client.compute(tasks))
        try:
            while futures:
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
