"""Sums over rows: what is added up in a block, on any worker, and what kernel methods ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse

from classprior._core.basis import (
    GaussianBasis,
    bandwidth_ladder,
    centers_of_samples,
    literal_bandwidths,
    stacked,
)
from classprior._core.bins import BANDWIDTHS, CENTERS, Bins, choose
from classprior._core.gram import Grams, fold_grams
from classprior._core.keys import places_in
from classprior._core.moments import BinnedMoments, binned_sums
from classprior._core.threads import single_threaded
from classprior._core.types import Doubles, Ids, Ints, Keys, Rows
from classprior._samples.checkpoint import digest
from classprior._samples.sample import Reader
from classprior._tables.tables import BLOCK_ROWS, Block, Span

if TYPE_CHECKING:
    from classprior._samples.samples import Samples

_ROWS_FOR_BANDWIDTHS = 300
_MOST_CENTERS = 10_000  # limit for rows in blocks: with 11 bandwidths, a block's sums take 90 MB


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums phi over the rows of a block, per bin."""

    reader: Reader
    bins: Bins
    sample: int
    weights: Doubles | None
    basis: GaussianBasis
    center_rows: Ids  # indices or keys, in increasing order
    first_center: int
    n_jobs: int | None
    kernel: str

    def __call__(self, block: Block) -> tuple[Span, Doubles]:
        n_bins = len(self.bins.n_rows[self.sample])
        sums = np.zeros((n_bins, len(self.basis.sigmas), self.basis.centers.shape[0]))
        for start, X, keys in self.reader(block):
            binned_sums(
                self.basis,
                X,
                self.bins.of_rows(self.sample, start, X.shape[0], keys),
                sums,
                weights=_part(self.weights, start, X.shape[0]),
                own_center=self._own_center(start, X.shape[0], keys),
                n_jobs=self.n_jobs,
                kernel=self.kernel,
            )
        return block.span, sums

    def _own_center(self, start: int, n_rows: int, keys: Keys | None) -> Ints:
        """Return the index of the center at each row, or -1."""
        rows = np.arange(start, start + n_rows) if keys is None else keys
        places = places_in(self.center_rows, rows)
        return np.where(places >= 0, self.first_center + places, -1)


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
        for start, X, keys in self.reader(block):
            folds = self.folds[self.bins.of_rows(self.sample, start, X.shape[0], keys)]
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
        for start, X, keys in self.reader(block):
            bins = self.bins.of_rows(self.sample, start, X.shape[0], keys)
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


def _part(weights: Doubles | None, start: int, n_rows: int) -> Doubles | None:
    """Return the weights of consecutive rows."""
    return None if weights is None else weights[start : start + n_rows]


@dataclass(frozen=True, eq=False)
class Centers:
    """Basis centers, those from the positive sample first."""

    X: Rows  # of shape (n_centers, n_features)
    chosen: tuple[Ids, Ids]  # indices or keys of the centers in the two samples
    nearby: Rows  # a few hundred unlabeled rows; their distances give the default bandwidths


def draw_centers(samples: Samples, n_centers: int | None, *, of_positives: bool = False) -> Centers:
    """Draw at most ``n_centers`` rows as centers, half from each sample or positives only."""
    sizes = samples.bins.n_counted
    if n_centers is None and not samples.is_in_memory and sum(sizes) > _MOST_CENTERS:
        raise ValueError(
            f"n_centers=None would need a center at each of {sum(sizes):,} rows, which does not "
            "fit in memory. Try n_centers=2000."
        )
    share = centers_of_samples(*sizes, n_centers)
    if of_positives:
        share = min(n_centers or sizes[0], sizes[0]), 0
    positive, unlabeled = (samples.choose(CENTERS, s, share[s]) for s in (0, 1))
    around = samples.choose(BANDWIDTHS, 1, _ROWS_FOR_BANDWIDTHS)
    wanted = np.union1d(unlabeled, around)  # one pass for both
    drawn = samples.each[1].gather(wanted)
    return Centers(
        stacked(samples.each[0].gather(positive), drawn[np.searchsorted(wanted, unlabeled)]),
        (positive, unlabeled),
        drawn[np.searchsorted(wanted, around)],
    )


def default_bandwidths(samples: Samples, centers: Centers, *, literal: bool = False) -> Doubles:
    """Return the default grid of bandwidths, or the one of the public program."""
    if literal:
        return literal_bandwidths(centers.nearby, centers.X)
    n_centers = centers.X.shape[0]
    some = choose(samples.seed, BANDWIDTHS, 0, n_centers, _ROWS_FOR_BANDWIDTHS)
    return bandwidth_ladder(centers.nearby, centers.X[some])


def moments_of(
    samples: Samples,
    sample: int,
    basis: GaussianBasis,
    leave_out: Centers | None = None,
    kernel: str = "numpy",
) -> BinnedMoments:
    """Sum phi over the rows of each bin; centers in ``leave_out`` skip their own rows."""
    weights = samples.weights(sample)
    own_bins, own_weights = np.full(basis.centers.shape[0], -1), np.ones(basis.centers.shape[0])
    own_rows: Ids = np.empty(0, dtype=np.int64)
    first = 0
    if leave_out is not None:
        own_rows, first = leave_out.chosen[sample], sample * len(leave_out.chosen[0])
        own = slice(first, first + len(own_rows))
        own_bins[own] = samples.bins_of(sample, own_rows)
        if weights is not None:
            own_weights[own] = weights[samples.numbers_of(sample, own_rows)]
    work = BinSums(
        samples.each[sample].reader,
        samples.bins,
        sample,
        weights,
        basis,
        own_rows,
        first,
        samples.n_jobs_in_block,
        kernel,
    )
    key = f"moments, {_digest_of_basis(basis)}, {len(own_rows)}, {kernel}"
    sums = samples.add_up(sample, work, key)
    return BinnedMoments(sums, samples.totals[sample], own_bins, own_weights)


def grams_of(
    samples: Samples, sample: int, basis: GaussianBasis, folds: tuple[Ints, Ints]
) -> Grams:
    """Sum phi phi' over the rows of each fold."""
    reader, weights = samples.each[sample].reader, samples.weights(sample)
    work = FoldGrams(reader, samples.bins, sample, weights, basis, folds[sample])
    key = f"grams, {_digest_of_basis(basis)}, {digest(folds[sample])}"
    sums = samples.add_up(sample, work, key)
    return Grams(sums, np.bincount(folds[sample], samples.totals[sample]).astype(np.float64))


def _digest_of_basis(basis: GaussianBasis) -> str:
    """Return a hash of centers and bandwidths, including the positions of sparse values."""
    C = basis.centers
    parts = (C.data, C.indices, C.indptr) if sparse.issparse(C) else (C,)
    return digest(C.shape, *parts, basis.sigmas)
