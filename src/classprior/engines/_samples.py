"""Samples in blocks as an estimator sees them: the sums it asks for, pass by pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from classprior._basis import (
    ROWS_FOR_MEDIAN,
    Doubles,
    GaussianBasis,
    Ints,
    Rows,
    bandwidth_ladder,
    centers_of_samples,
    stacked,
)
from classprior._gram import Grams, fold_grams
from classprior._messages import progress
from classprior._moments import Moments, fold_moments
from classprior._parameters import check_number_of_folds
from classprior.engines._blocks import Block, Blocks, NotAllRowsError, Reader, of_all_rows
from classprior.engines._checkpoint import Checkpoint, digest
from classprior.engines._roles import BANDWIDTHS, CENTERS, Roles

Sums = TypeVar("Sums", Moments, Grams)
_CALLED = "known positives", "unlabeled rows"


class BlockSamples:
    """Two samples that come in blocks; every sum is a pass over one of them.

    Parameters
    ----------
    blocks : pair of Blocks
        The positives and the unlabeled rows.
    readers : pair of Reader
        What turns their tables into numbers.
    cv : int
        Number of folds.
    roles : Roles
        Which rows are centres, in which fold, and how often resampled.
    n_resamples : int
        Resamples of which first moments are kept beside those of the rows themselves.
    checkpoint : Checkpoint
        Keeps the sums.
    about : dict of str to str
        What the sums depend on, for the checkpoint.
    verbose : int
        Whether to show progress bars.
    """

    def __init__(
        self,
        blocks: tuple[Blocks, Blocks],
        readers: tuple[Reader, Reader],
        *,
        cv: Any,
        roles: Roles,
        n_resamples: int,
        checkpoint: Checkpoint,
        about: dict[str, str],
        verbose: int,
    ) -> None:
        self._blocks = blocks
        self._readers = readers
        self._cv = cv
        self._roles = roles
        self._n_resamples = n_resamples
        self._checkpoint = checkpoint
        self._about = about
        self._verbose = verbose
        self._n_passes = 0
        self.resampled: list[Moments] = []

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows in the two samples."""
        return self._blocks[0].n_rows, self._blocks[1].n_rows

    def draw_centers(self, n_centers: int | None) -> Rows:
        """Return at most so many rows as centres, half from each sample, positives first."""
        if n_centers is None:
            raise ValueError(
                "Expected n_centers to be a number, got None, which asks for a centre at every "
                "row. Try n_centers=2000."
            )
        return self._draw(centers_of_samples(*self.sizes, n_centers))

    def draw_positives(self, n_centers: int) -> Rows:
        """Return at most so many positives as centres."""
        return self._draw((n_centers, 0))

    def _draw(self, n_centers: tuple[int, int]) -> Rows:
        choose = self._roles.choose
        self._center_rows = tuple(choose(CENTERS, s, self.sizes[s], n_centers[s]) for s in (0, 1))
        around = choose(BANDWIDTHS, 1, self.sizes[1], ROWS_FOR_MEDIAN)
        wanted = np.union1d(self._center_rows[1], around)  # one pass for both
        positive, unlabeled = self.gather(0, self._center_rows[0]), self.gather(1, wanted)
        if sparse.issparse(positive) != sparse.issparse(unlabeled):  # both are sparse, as in memory
            self._readers = (
                replace(self._readers[0], as_sparse=True),
                replace(self._readers[1], as_sparse=True),
            )
            positive, unlabeled = sparse.csr_array(positive), sparse.csr_array(unlabeled)
        self._rows_for_bandwidths = unlabeled[np.searchsorted(wanted, around)]
        self.centers = stacked(positive, unlabeled[np.searchsorted(wanted, self._center_rows[1])])
        self._checkpoint.begin({**self._about, "rows": _digest_of_rows(positive, unlabeled)})
        return self.centers

    def gather(self, sample: int, rows: Ints, *, raw: bool = False) -> Any:
        """Return rows by their increasing numbers; raw, before anything is done to them."""
        work = _Gather(self._readers[sample], rows, raw)
        parts = [part for _, part in self._passed(sample, work, "Drawing from") if part is not None]
        return stacked_tables(parts)

    def bandwidths(self, centers: Rows) -> Doubles:
        """Return the default ladder of bandwidths."""
        rng = np.random.RandomState(self._roles.seed % 2**32)
        return bandwidth_ladder(self._rows_for_bandwidths, centers, rng)

    def deal_folds(self) -> int:
        """Return the number of folds."""
        if not isinstance(self._cv, Integral):
            raise TypeError(
                "Expected cv as a number of folds, as rows in blocks are dealt by their numbers, "
                f"got a {type(self._cv).__name__}. Try cv=5."
            )
        return check_number_of_folds(self._cv, self.sizes, "sample")

    def moments(
        self,
        sample: int,
        basis: GaussianBasis,
        folds: int | None,
        *,
        leave_one_out: bool = False,
    ) -> Moments:
        """Sum phi over the rows of every fold; without folds, over one of all rows."""
        first = len(self._center_rows[0]) if sample else 0
        work = _Sums(
            self._readers[sample],
            basis,
            self._roles,
            sample,
            folds or 1,
            self._center_rows[sample] if leave_one_out else np.empty(0, dtype=np.int64),
            first,
            self._n_resamples,
        )
        moments = self._summed(sample, work, Moments)
        self.resampled.append(moments)
        return moments.resample(0)

    def grams(self, sample: int, basis: GaussianBasis, folds: int | None) -> Grams:
        """Sum phi phi' over the rows of every fold; without folds, over one of all rows."""
        work = _Products(self._readers[sample], basis, self._roles, sample, folds or 1)
        return self._summed(sample, work, Grams)

    def _summed(self, sample: int, work: _Sums | _Products, kind: type[Sums]) -> Sums:
        """Merge the sums of all blocks, in their order, going on where a checkpoint left off."""
        self._n_passes += 1
        # The last pass of a ratio depends on what the one before it chose.
        key = f"pass {self._n_passes}, {digest(work.basis.sigmas)}, {work.n_folds} folds"
        total: Sums | None = None
        merged = 0
        if before := self._checkpoint.load(key):
            merged, sums, counts = before
            total = kind(sums, counts)
        try:
            for _, part in self._passed(sample, work, "Sums over", merged):
                total = part if total is None else total + part
                merged += 1
                self._checkpoint.save(key, merged, total.sums, total.counts)
        except NotAllRowsError:
            self._checkpoint.end()  # nobody knows which rows the sums kept so far are of
            raise
        if total is None:
            raise ValueError(f"Expected rows in {self._blocks[sample].name}, got none.")
        self._checkpoint.save(key, merged, total.sums, total.counts, whole=True)
        return total

    def _passed(self, sample: int, work: Callable[[Block], Any], doing: str, skip: int = 0) -> Any:
        blocks = self._blocks[sample]
        return progress(
            of_all_rows(blocks.map(work, skip), blocks, skip),
            blocks.n_rows,
            f"{doing} {_CALLED[sample]}",
            self._verbose,
            rows_of=_first,
            done=sum(blocks.sizes[:skip]),
        )


class Resample:
    """One resample of samples in blocks, of which all moments have been summed.

    Parameters
    ----------
    samples : BlockSamples
        After their passes.
    number : int
        Which resample, counted from 1: 0 are the rows themselves.
    """

    def __init__(self, samples: BlockSamples, number: int) -> None:
        self._samples = samples
        self._number = number

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows in the two samples."""
        return self._samples.sizes

    def draw_centers(self, n_centers: int | None) -> Rows:
        """Return the centres that were drawn."""
        return self._samples.centers

    def draw_positives(self, n_centers: int) -> Rows:
        """Return the centres that were drawn."""
        return self._samples.centers

    def bandwidths(self, centers: Rows) -> Doubles:
        """Return the default ladder of bandwidths."""
        return self._samples.bandwidths(centers)

    def deal_folds(self) -> int:
        """Return the number of folds."""
        return self._samples.deal_folds()

    def moments(
        self, sample: int, basis: GaussianBasis, folds: Any, *, leave_one_out: bool = False
    ) -> Moments:
        """Return the moments of this resample."""
        return self._samples.resampled[sample].resample(self._number)

    def grams(self, sample: int, basis: GaussianBasis, folds: Any) -> Grams:
        """Refuse: products are not resampled."""
        raise NotImplementedError("Only first moments are resampled.")


@dataclass(frozen=True, eq=False)
class _Gather:
    """Takes rows by their numbers out of a block, which is not read if none are in it."""

    reader: Reader
    rows: Ints
    raw: bool

    def __call__(self, block: Block) -> tuple[int, Any]:
        inside = _between(self.rows, block.start, block.n_rows)
        if not len(inside):
            return block.n_rows, None
        parts = []
        for start, table in (self.reader.tables if self.raw else self.reader)(block):
            places = _between(inside, start, table.shape[0]) - start
            parts.append(table.iloc[places] if hasattr(table, "iloc") else table[places])
        return block.n_rows, stacked_tables(parts)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums phi over the rows of a block, for every fold and resample."""

    reader: Reader
    basis: GaussianBasis
    roles: Roles
    sample: int
    n_folds: int
    center_rows: Ints
    first_center: int
    n_resamples: int

    def __call__(self, block: Block) -> tuple[int, Moments]:
        shape = self.n_folds, 1 + self.n_resamples, len(self.basis.sigmas)
        n_centers = self.basis.centers.shape[0]
        total = Moments(
            np.zeros((*shape, n_centers)), np.zeros((*shape[:2], 1, n_centers), dtype=np.int64)
        )
        for start, X in self.reader(block):
            n_rows = X.shape[0]
            weights = np.ones((1, n_rows), dtype=np.float32)
            if self.n_resamples:
                drawn = self.roles.weights(self.sample, start, n_rows, self.n_resamples)
                weights = np.vstack([weights, drawn])
            total += fold_moments(
                self.basis,
                X,
                self.roles.folds(self.sample, start, n_rows, self.n_folds),
                n_folds=self.n_folds,
                own_center=self._own_center(start, n_rows),
                weights=weights,
            )
        return block.n_rows, total

    def _own_center(self, start: int, n_rows: int) -> Ints:
        own = np.full(n_rows, -1)
        inside = _between(self.center_rows, start, n_rows)
        before = int(np.searchsorted(self.center_rows, start))
        own[inside - start] = self.first_center + before + np.arange(len(inside))
        return own


@dataclass(frozen=True, eq=False)
class _Products:
    """Sums phi phi' over the rows of a block, for every fold."""

    reader: Reader
    basis: GaussianBasis
    roles: Roles
    sample: int
    n_folds: int

    def __call__(self, block: Block) -> tuple[int, Grams]:
        n_centers = self.basis.centers.shape[0]
        shape = self.n_folds, len(self.basis.sigmas), n_centers, n_centers
        total = Grams(np.zeros(shape), np.zeros(self.n_folds, dtype=np.int64))
        for start, X in self.reader(block):
            folds = self.roles.folds(self.sample, start, X.shape[0], self.n_folds)
            total += fold_grams(self.basis, X, folds, n_folds=self.n_folds)
        return block.n_rows, total


def stacked_tables(parts: list[Any]) -> Any:
    """Return the rows of arrays, CSR matrices or pandas data frames, one below the other.

    Parameters
    ----------
    parts : list
        At least one.

    Returns
    -------
    rows : array, CSR matrix or data frame
        Of the same kind.
    """
    if len(parts) == 1:
        return parts[0]
    if any(map(sparse.issparse, parts)):
        return stacked(*map(sparse.csr_array, parts))
    if not hasattr(parts[0], "iloc"):
        return stacked(*parts)
    import pandas as pd

    return pd.concat(parts, ignore_index=True)


def _between(rows: Ints, start: int, n_rows: int) -> Ints:
    low, high = np.searchsorted(rows, [start, start + n_rows])
    return rows[low:high]


def _digest_of_rows(*parts: Rows) -> str:
    arrays: list[Any] = []
    for part in parts:
        # The values alone do not tell where they stand: one-hot rows have all the same.
        is_sparse = sparse.issparse(part)
        arrays += [part.shape, *((part.data, part.indices, part.indptr) if is_sparse else (part,))]
    return digest(*arrays)


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]
