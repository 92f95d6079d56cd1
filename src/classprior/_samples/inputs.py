"""Conversion of any input to a source: arrays, data frames, files, datasets, dask, blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from classprior._core.messages import OptionError, listed
from classprior._core.types import Bools
from classprior._files.dataset import DatasetBlocks
from classprior._files.dialect import NO_HEADER, is_number
from classprior._files.finding import NPY, FileSet, find_files
from classprior._files.reading import (
    ReadOptions,
    TableFiles,
    open_files,
    store_files,
)
from classprior._files.reading import read_together as files_together
from classprior._files.stored import StoredFile
from classprior._files.streams import Stream, is_stream
from classprior._samples.sources import DistributedSource, LocalSource, Map, Source
from classprior._samples.unordered import UnorderedSource
from classprior._tables.checks import lazy_loader, refuse_fields, refuse_non_rows
from classprior._tables.tables import (
    BLOCK_ROWS,
    Block,
    bytes_of_row,
    check_unique,
    column_names,
    rows_of,
    take_rows,
    unmasked,
)


class FileSource(LocalSource):
    """Rows in files: all, or those selected by a mask."""

    def __init__(
        self, opened: TableFiles, name: str, mask: Bools | None = None, **how: Any
    ) -> None:
        blocks = opened.blocks if mask is None else partial(_selected_rows, opened, mask)
        super().__init__(name, opened.columns, len(opened.columns), blocks, **how)
        self.opened = opened
        self.mask = mask

    @property
    def label(self) -> str:
        """Name in messages about the whole sample, with its files."""
        return f"{self.name} in {self.opened.files.label}"

    @cached_property
    def identity(self) -> str:
        """Text that changes when a file changes."""
        part = "" if self.mask is None else f"{self.name} in "
        return f"{part}{self.opened.identity}"

    def with_files(self, opened: TableFiles) -> FileSource:
        """Return the same rows of the same files, read in another way."""
        if opened is self.opened:
            return self
        other = FileSource(opened, self.name, self.mask, n_jobs=self._n_jobs, map=self._map)
        other._sizes = self._sizes
        return other

    def _count_rows(self) -> list[int]:
        return self.opened.sizes if self.mask is None else super()._count_rows()


def _selected_rows(opened: TableFiles, mask: Bools) -> Iterator[Block]:
    start = 0
    for block in opened.blocks():
        first = start
        for table in block.tables():
            places = np.flatnonzero(mask[start : start + table.shape[0]])
            numbers = block.numbers_of(start - first + places)
            yield Block(block.where, take_rows(table, places), len(places), numbers=numbers)
            start += table.shape[0]


def as_source(
    X: Any,
    name: str,
    *,
    block_rows: int = BLOCK_ROWS,
    read_options: Mapping[str, Any] | None = None,
    kinds: Mapping[str, str] | None = None,
    n_jobs: int | None = None,
    map: Map | None = None,
) -> Source:
    """Convert an input of any type to a source.

    ``read_options`` are those of ``ReadOptions``, ``kinds`` the known kinds of columns in files.
    """
    if block_rows < 1:
        raise ValueError(f"Expected block_rows of at least 1, got {block_rows}.")
    given, known = read_options or {}, [option.name for option in fields(ReadOptions)]
    if unknown := [name for name in given if name not in known]:
        raise TypeError(f"Expected read_options among {listed(known)}, got {listed(unknown)}.")
    options = ReadOptions(**given)
    how: dict[str, Any] = {"n_jobs": n_jobs, "map": map}
    if isinstance(X, Source):
        return X
    if is_path(X) or (isinstance(X, list | tuple) and X and all(is_path(part) for part in X)):
        files = find_files(X, options.file_format)
        if files.format == NPY:
            return _of_npy(files, name, block_rows, **how)
        return FileSource(open_files(files, name, block_rows, options, kinds), name, **how)
    if is_stream(X):
        stream = Stream(X, name, block_rows, spool=options.spool)
        return UnorderedSource(stream, name, **how)
    if hasattr(X, "__dask_graph__"):
        from classprior._samples.dask import DaskSource

        return DaskSource(X, name)
    is_frame = hasattr(X, "iloc")  # whose columns may have any name
    if not is_frame and hasattr(X, "map_blocks"):
        return DistributedSource(X, name)
    if not is_frame and hasattr(X, "get_fragments"):
        blocks = DatasetBlocks(X, name, block_rows)
        width = len(blocks.columns)
        return LocalSource(name, blocks.columns, width, blocks, blocks.identity, **how)
    return _of_rows(X, name, block_rows, **how)


def _of_rows(X: Any, name: str, block_rows: int, **how: Any) -> Source:
    if isinstance(X, Iterator):
        raise TypeError(
            f"{name} is a {type(X).__name__}, which can be read only once. Pass a list of blocks, "
            "or an object whose __iter__ starts again at the first block."
        )
    if is_table(X) or len(getattr(X, "shape", ())) > 2:
        return _of_table(X, name, block_rows, **how)
    if isinstance(X, Iterable) and not isinstance(X, str | bytes | dict) and not lazy_loader(X):
        first = next(iter(X), None)
        if len(getattr(first, "shape", ())) == 2:
            return _of_blocks(X, first, name, **how)
    refuse_non_rows(X, name)
    return _of_table(np.asarray(unmasked(X)), name, block_rows, **how)  # nested lists


def read_together(
    sources: Sequence[Source],
    names: Collection[str] | None = None,
    *,
    text: Collection[str] = (),
    local: Collection[str] = (),
) -> list[Source]:
    """Return sources as they are read together, see ``classprior._files.reading.read_together``."""
    opened = list(dict.fromkeys(s.opened for s in sources if isinstance(s, FileSource)))
    read = dict(zip(opened, files_together(opened, names, text=text, local=local), strict=True))
    return [s.with_files(read[s.opened]) if isinstance(s, FileSource) else s for s in sources]


def is_path(X: Any) -> bool:
    """Return whether an object is a path."""
    return isinstance(X, str | PathLike)


def is_table(X: Any) -> bool:
    """Return whether an object is a table in memory or a memory map."""
    return len(getattr(X, "shape", ())) == 2 and not lazy_loader(X)


def same_columns(
    sources: tuple[Source, Source], left_out: Collection[Any] = ()
) -> tuple[Any, ...] | None:
    """Return the column names, in the order of the unlabeled sample; raise if they differ."""
    positive, unlabeled = sources
    if positive.columns is None or unlabeled.columns is None:
        if positive.n_features != unlabeled.n_features:
            raise ValueError(
                f"Expected the same columns in both samples, got {_width(positive)} in "
                f"{positive.label} and {_width(unlabeled)} in {unlabeled.label}."
            )
        return unlabeled.columns or positive.columns
    extra = {
        one: _without(one.columns, {*(other.columns or ()), *left_out})
        for one, other in ((positive, unlabeled), (unlabeled, positive))
    }
    if any(extra.values()):
        raise _other_columns(extra)
    return tuple(_without(unlabeled.columns, set(left_out)))


def _other_columns(extra: dict[Source, list[Any]]) -> OptionError:
    """Return an error about columns that only one of two samples has."""
    only = " and ".join(
        f"{listed(names)} only in {one.label}, not in {other.label}"
        for (one, names), other in zip(extra.items(), reversed(extra), strict=True)
        if names
    )
    expected = f"Expected the same columns in both samples, got {only}."
    for source, names in extra.items():
        if isinstance(source, FileSource) and any(map(is_number, names)):
            question = f"Is the first line of {source.label} data?"
            return OptionError(f"{expected} {question} {NO_HEADER}", "header")
    return OptionError(
        f"{expected} Leave them out, or choose the shared columns.",
        "drop",
    )


def _without(names: Iterable[Any] | None, others: set[Any]) -> list[Any]:
    return [name for name in names or () if name not in others]


def _width(source: Source) -> str:
    names = f" ({listed(source.columns)})" if source.columns else ""
    return f"{source.n_features} columns{names}"


def _of_table(X: Any, name: str, block_rows: int, **how: Any) -> Source:
    names = column_names(X)
    check_unique(names or (), name)
    refuse_fields(X, name)
    if len(X.shape) != 2:
        refuse_non_rows(X, name)
        raise ValueError(
            f"Expected a two-dimensional table as {name}, got {len(X.shape)} dimensions "
            f"(shape {X.shape})."
        )
    rows = X.tocsr() if sparse.issparse(X) else X  # COO cannot be sliced
    slices = partial(_slices, rows, name, block_rows, *_mapped_file(X))  # it can be pickled
    columns = None if names is None else tuple(names)
    how |= {"is_sparse": sparse.issparse(X), "row_bytes": bytes_of_row(X)}
    return LocalSource(name, columns, X.shape[1], slices, **how)


def _slices(
    rows: Any, name: str, block_rows: int, mapped: Path | None, n_bytes: int
) -> Iterator[Block]:
    n_rows = rows.shape[0]
    for start in range(0, n_rows, block_rows):
        if mapped is not None and mapped.stat().st_size < n_bytes:
            raise ValueError(
                f"The file {str(mapped)!r} of {name} was cut off while it was in use. Keep all "
                "input files unchanged until the fit has finished."
            )
        stop = min(start + block_rows, n_rows)
        where = f"rows {start:,} to {stop - 1:,}"
        numbers = range(start, stop)
        yield Block(where, rows_of(rows, start, stop), stop - start, numbers=numbers)


def _mapped_file(X: Any) -> tuple[Path | None, int]:
    """Return the file of a memory map and its size; None for other arrays and deleted files."""
    file = X.filename if isinstance(X, np.memmap) else None
    if file is None or not Path(file).is_file():
        return None, 0
    return Path(file), Path(file).stat().st_size


def _of_blocks(X: Iterable[Any], first: Any, name: str, **how: Any) -> Source:
    names = column_names(first)
    columns = None if names is None else tuple(names)
    row_bytes = bytes_of_row(first) if first.shape[0] else None
    how |= {"is_sparse": sparse.issparse(first), "row_bytes": row_bytes}
    stream = partial(_stream, X, type(first).__name__, names is not None, name)
    return LocalSource(name, columns, first.shape[1], stream, **how)


def _stream(X: Iterable[Any], first: str, has_names: bool, name: str) -> Iterator[Block]:
    for number, table in enumerate(X):
        if len(getattr(table, "shape", ())) != 2:
            raise TypeError(
                f"Expected an array or data frame as block {number} of {name}, got a "
                f"{type(table).__name__}."
            )
        if (column_names(table) is not None) != has_names:
            raise ValueError(
                f"Expected column names in all blocks of {name} or in none, got a {first} as block "
                f"0 and a {type(table).__name__} as block {number}."
            )
        yield Block(f"block {number}", table, table.shape[0])


@dataclass(frozen=True, eq=False)
class _NpyRows:
    """Rows of a .npy file, read lazily; a memory map would crash if the file were cut off."""

    file: StoredFile
    dtype: Any
    shape: tuple[int, int]
    first_byte: int
    is_by_row: bool
    rows: range

    def tables(self, columns: tuple[Any, ...] | None = None) -> Iterator[Any]:
        """Read the rows; they have no column names to select."""
        n_rows, width = self.shape
        with self.file.unchanged():
            if self.is_by_row:
                yield self._values(self.rows.start * width, len(self.rows) * width, width)
                return
            starts = (column * n_rows + self.rows.start for column in range(width))
            yield np.hstack([self._values(start, len(self.rows), 1) for start in starts])

    def _values(self, start: int, count: int, width: int) -> Any:
        first = self.first_byte + start * self.dtype.itemsize
        return np.fromfile(self.file.path, self.dtype, count, offset=first).reshape(-1, width)


def _of_npy(files: FileSet, name: str, block_rows: int, **how: Any) -> Source:
    if len(files.paths) != 1:
        raise ValueError(f"Expected a single .npy file as {name}, got {len(files.paths)} files.")
    (file,) = store_files(files)
    try:
        layout = np.load(file.path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        reason = str(error).removesuffix(".")
        raise ValueError(f"Could not read {file.label} of {name}: {reason}.") from error
    if layout.ndim != 2:
        return _of_table(layout, name, block_rows, **how)  # raises
    about = layout.dtype, layout.shape, layout.offset, layout.flags.c_contiguous
    blocks = partial(_npy_blocks, file, about, block_rows)
    return LocalSource(name, None, layout.shape[1], blocks, file.identity, **how)


def _npy_blocks(
    file: StoredFile, about: tuple[Any, tuple[int, int], int, bool], block_rows: int
) -> Iterator[Block]:
    n_rows = about[1][0]
    for start in range(0, n_rows, block_rows):
        rows = range(start, min(start + block_rows, n_rows))
        where = f"{file.label}, rows {start:,} to {rows[-1]:,}"
        yield Block(where, _NpyRows(file, *about, rows), len(rows), numbers=rows)
