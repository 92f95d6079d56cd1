"""Functions of a block, which can run on any worker: gather rows, or sum over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse

from classprior._core.basis import GaussianBasis, stacked
from classprior._core.bins import Bins
from classprior._core.gram import fold_grams
from classprior._core.moments import binned_sums
from classprior._core.threads import single_threaded
from classprior._core.types import Doubles, Ints
from classprior._data.blocks import BLOCK_ROWS, Block, Reader, Span, as_frame
from classprior._data.checks import column_names


@dataclass(frozen=True, eq=False)
class Gather:
    """Gathers rows of a block by index; a block without any of them is not read."""

    reader: Reader
    rows: Ints
    raw: bool

    def __call__(self, block: Block) -> tuple[Span, Any]:
        inside = _between(self.rows, block.start, block.n_rows)
        if not len(inside):
            return block.span, None
        parts = []
        for start, table in (self.reader.tables if self.raw else self.reader)(block):
            places = _between(inside, start, table.shape[0]) - start
            if len(places) == table.shape[0]:
                parts.append(table)
            elif len(places):
                parts.append(take_rows(table, places))
        return block.span, stacked_tables(parts)


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums phi over the rows of a block, per bin."""

    reader: Reader
    bins: Bins
    sample: int
    weights: Doubles | None
    basis: GaussianBasis
    center_rows: Ints
    first_center: int
    n_jobs: int | None
    kernel: str

    def __call__(self, block: Block) -> tuple[Span, Doubles]:
        n_bins = len(self.bins.n_rows[self.sample])
        sums = np.zeros((n_bins, len(self.basis.sigmas), self.basis.centers.shape[0]))
        for start, X in self.reader(block):
            binned_sums(
                self.basis,
                X,
                self.bins.of_rows(self.sample, start, X.shape[0]),
                sums,
                weights=_part(self.weights, start, X.shape[0]),
                own_center=self._own_center(start, X.shape[0]),
                n_jobs=self.n_jobs,
                kernel=self.kernel,
            )
        return block.span, sums

    def _own_center(self, start: int, n_rows: int) -> Ints:
        own = np.full(n_rows, -1)
        inside = _between(self.center_rows, start, n_rows)
        before = int(np.searchsorted(self.center_rows, start))
        own[inside - start] = self.first_center + before + np.arange(len(inside))
        return own


@dataclass(frozen=True, eq=False)
class FoldGrams:
    """Sums phi phi' over the rows of a block, per fold."""

    reader: Reader
    bins: Bins
    sample: int
    weights: Doubles | None
    basis: GaussianBasis
    folds: Ints

    def __call__(self, block: Block) -> tuple[Span, Doubles]:
        n_folds, n_centers = int(self.folds.max()) + 1, self.basis.centers.shape[0]
        sums = np.zeros((n_folds, len(self.basis.sigmas), n_centers, n_centers))
        for start, X in self.reader(block):
            folds = self.folds[self.bins.of_rows(self.sample, start, X.shape[0])]
            weights = _part(self.weights, start, X.shape[0])
            sums += fold_grams(self.basis, X, folds, n_folds, weights).sums
        return block.span, sums


@dataclass(frozen=True, eq=False)
class FunctionSums:
    """Adds up a function of rows and their bins over a block, a slice of rows at a time."""

    reader: Reader
    bins: Bins
    sample: int
    function: Callable[..., Doubles]
    shape: tuple[int, ...]
    beside: Mapping[str, NDArray[Any]]  # values of each row of the sample, passed by name
    n_jobs: int | None

    def __call__(self, block: Block) -> tuple[Span, Doubles]:
        total = np.zeros(self.shape)
        for start, X in self.reader(block):
            bins = self.bins.of_rows(self.sample, start, X.shape[0])
            slices = [slice(i, i + BLOCK_ROWS) for i in range(0, X.shape[0], BLOCK_ROWS)]
            stop = start + X.shape[0]
            rest = {name: values[start:stop] for name, values in self.beside.items()}
            with single_threaded():
                for part in Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
                    delayed(self.function)(
                        X[rows], bins[rows], **{n: values[rows] for n, values in rest.items()}
                    )
                    for rows in slices
                ):
                    total += part
        return block.span, total


def stacked_tables(parts: list[Any]) -> Any:
    """Stack arrays, CSR matrices or data frames vertically."""
    if len(parts) == 1:
        return parts[0]
    names = next((column_names(part) for part in parts if column_names(part) is not None), None)
    if names is not None and len({type(part) for part in parts}) > 1:
        parts = [as_frame(part, names) for part in parts]
    if any(map(sparse.issparse, parts)) or isinstance(parts[0], np.ndarray):
        return stacked(*parts)
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    if hasattr(parts[0], "vstack"):
        import polars as pl

        return pl.concat(parts)
    import pyarrow as pa

    return pa.concat_tables(parts, promote_options="permissive")


def take_rows(table: Any, places: Ints) -> Any:
    """Return rows of an array or a table by position."""
    if hasattr(table, "iloc"):
        return table.iloc[places]
    return table.take(places) if hasattr(table, "column_names") else table[places]  # pyarrow


def _between(rows: Ints, start: int, n_rows: int) -> Ints:
    low, high = np.searchsorted(rows, [start, start + n_rows])
    return rows[low:high]


def _part(weights: Doubles | None, start: int, n_rows: int) -> Doubles | None:
    """Return the weights of consecutive rows."""
    return None if weights is None else weights[start : start + n_rows]
