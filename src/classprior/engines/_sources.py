"""What users have, as blocks: arrays, data frames, files, anything that can be gone through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from scipy import sparse

from classprior._messages import listed
from classprior._validation import column_names, lazy_loader
from classprior.engines._blocks import BLOCK_ROWS, Block, Blocks, LocalBlocks, Map, Result, rows_of
from classprior.engines._files import DatasetBlocks, identity_of_file, is_path, open_files


def as_blocks(
    source: Any,
    name: str,
    *,
    columns: list[str] | None = None,
    n_jobs: int | None = None,
    map: Map | None = None,
) -> Blocks:
    """Return a sample as blocks, whatever it is.

    Parameters
    ----------
    source : object
        As in ``fit_blocks``.
    name : str
        What errors call the sample.
    columns : list of str, optional
        The columns to read. By default all.
    n_jobs : int, optional
        Threads over blocks.
    map : callable, optional
        Used in place of threads.

    Returns
    -------
    blocks : Blocks
        Nothing but metadata has been read.
    """
    how: dict[str, Any] = {"only": columns is None, "n_jobs": n_jobs, "map": map}
    if isinstance(source, Blocks):
        return source
    if hasattr(source, "__dask_graph__") or hasattr(source, "map_blocks"):
        return _on_a_cluster(source, name, columns)
    if is_path(source) or (isinstance(source, list | tuple) and source and is_path(source[0])):
        source = open_files([source] if is_path(source) else list(source), name)
    if hasattr(source, "get_fragments"):
        chosen = chosen_columns(source.schema.names, columns, name)
        dataset = DatasetBlocks(source, name, chosen, only=columns is None)
        return LocalBlocks(name, chosen, len(chosen or ()), dataset, dataset.identity, **how)
    if isinstance(source, Iterator):
        raise TypeError(
            f"Expected rows that can be gone through several times as {name}, got a "
            f"{type(source).__name__}, which is used up after once. Give a list of blocks, or an "
            "object whose __iter__ begins anew."
        )
    if lazy_loader(source):
        raise TypeError(
            f"Expected rows that can be read in blocks as {name}, got a lazy "
            f"{type(source).__name__}. Write it to parquet files first, with sink_parquet."
        )
    names = column_names(source)
    if len(getattr(source, "shape", ())) == 2 or (names is not None and hasattr(source, "slice")):
        chosen = chosen_columns(names, columns, name)
        width = source.shape[1] if chosen is None else len(chosen)
        identity = _identity_of_array(source)
        rows = source.tocsr() if sparse.issparse(source) else source  # COO has no slices
        return LocalBlocks(name, chosen, width, partial(_slices, rows), identity, **how)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | dict):
        first = next(iter(source), None)
        if first is None or len(getattr(first, "shape", ())) != 2:
            got = "nothing" if first is None else f"a {type(first).__name__}"
            raise TypeError(
                f"Expected blocks of rows, each a table or an array of two dimensions, in {name}, "
                f"got {got} as the first."
            )
        chosen = chosen_columns(column_names(first), columns, name)
        width = first.shape[1] if chosen is None else len(chosen)
        return LocalBlocks(name, chosen, width, partial(_stream, source), "blocks", **how)
    raise TypeError(
        f"Expected an array, a data frame, files or blocks of rows as {name}, got a "
        f"{type(source).__name__}."
    )


def _on_a_cluster(source: Any, name: str, columns: list[str] | None) -> Blocks:
    if not hasattr(source, "__dask_graph__"):
        return DistributedBlocks(source, name, columns)
    from classprior.engines._dask import DaskBlocks

    return DaskBlocks(source, name, columns)


class DistributedBlocks(Blocks):
    """Rows that an object of the user's sends work to.

    Parameters
    ----------
    source : object
        Has ``n_rows``, ``columns`` (names or their number) and ``map_blocks(function)``, which
        calls the function with a ``Block`` for all rows and returns the results in a fixed order.
    name : str
        What errors call the sample.
    columns : list of str, optional
        The columns to take. By default all.
    """

    can_go_on = False  # only the object knows its blocks

    def __init__(self, source: Any, name: str, columns: list[str] | None) -> None:
        names = None if isinstance(source.columns, int) else list(source.columns)
        self.name = name
        self.columns = chosen_columns(names, columns, name)
        self.n_features = source.columns if self.columns is None else len(self.columns)
        self.only = columns is None
        self.identity = f"a {type(source).__name__}"
        self._source = source

    @property
    def sizes(self) -> list[int]:
        """All rows: only the object knows its blocks."""
        return [int(self._source.n_rows)]

    def map(self, function: Callable[[Block], Result], skip: int = 0) -> Iterator[Result]:
        """Yield what the function makes of every block, in order."""
        return islice(self._source.map_blocks(function), skip, None)


def chosen_columns(
    names: list[Any] | None, columns: list[str] | None, name: str
) -> tuple[Any, ...] | None:
    """Return the columns to read.

    Parameters
    ----------
    names : list or None
        Those there are, where they have names.
    columns : list of str or None
        Those that are wanted; None for all.
    name : str
        What errors call the sample.

    Returns
    -------
    columns : tuple or None
        Their names, where they have names.
    """
    if columns is None:
        return None if names is None else tuple(names)
    if names is None:
        raise ValueError(
            f"Expected named columns in {name} to choose {listed(columns)} from, got an array "
            "without names. Leave columns out."
        )
    if missing := [column for column in columns if column not in names]:
        raise ValueError(
            f"Expected the columns {listed(columns)} in {name}, got none named {listed(missing)}. "
            f"There are {listed(names)}."
        )
    return tuple(columns)


def _slices(source: Any) -> Iterator[Block]:
    """Cut what is in memory, or mapped into it, into blocks."""
    n_rows = source.shape[0]
    for start in range(0, n_rows, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, n_rows)
        rows = rows_of(source, start, stop)
        yield Block(f"rows {start:,} to {stop - 1:,}", rows, stop - start)


def _stream(source: Iterable[Any]) -> Iterator[Block]:
    for number, table in enumerate(source):
        yield Block(f"block {number}", table, table.shape[0])


def _identity_of_array(source: Any) -> str:
    words = f"{type(source).__name__} of shape {source.shape}"
    file = getattr(source, "filename", None)
    return words if file is None else f"{words}, {identity_of_file(str(file))}"
