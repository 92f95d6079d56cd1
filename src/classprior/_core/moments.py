"""Sums of the basis over the rows of every bin: all that penL1 ever sees of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from classprior._core.basis import GaussianBasis, Workspace
from classprior._core.threads import single_threaded
from classprior._core.types import Doubles, Ints, Rows

# Values of phi in a tile: 1 MiB as float32, which stays in a core's cache.
_TILE_VALUES = 2**18
# Rows whose phi are added in float32 before the sum goes on in float64.
_TILE_ROWS = 512
# Rows of one parallel task.
_TASK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of phi over rows, and how many rows each center has met.

    Parameters
    ----------
    sums : array of shape (..., n_sigmas, n_centers)
        The sums; a leading axis is for folds.
    counts : array of shape (..., 1, n_centers)
        Rows behind each sum, less the center's own row where that is left out.
    """

    sums: Doubles
    counts: Doubles

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.sums - other.sums, self.counts - other.counts)

    def __len__(self) -> int:
        return len(self.sums)

    def __getitem__(self, fold: int) -> Moments:
        return Moments(self.sums[fold], self.counts[fold])

    def total(self) -> Moments:
        """Return the moments of all folds together."""
        return Moments(self.sums.sum(axis=0), self.counts.sum(axis=0))

    @property
    def mean(self) -> Doubles:
        """Mean of phi over the rows; zero for a center that has met none."""
        return self.sums / np.maximum(self.counts, 1)


@dataclass(frozen=True, eq=False)
class BinnedMoments:
    """Sums of phi over the rows of every bin.

    Parameters
    ----------
    sums : array of shape (n_bins, n_sigmas, n_centers)
        The sums.
    n_rows : array of shape (n_bins,)
        Rows in every bin.
    own_bins : array of shape (n_centers,)
        Bin of the row on which each center stands and which its sums leave out; -1 for none.
    """

    sums: Doubles
    n_rows: Ints
    own_bins: Ints

    def of_folds(self, folds: Ints, weights: Doubles | None = None) -> Moments:
        """Return the moments of every fold, given the fold of each bin, and weights on bins."""
        in_fold = (folds == np.arange(folds.max() + 1)[:, None]).astype(np.float64)
        if weights is not None:
            in_fold *= weights
        n_bins, *shape = self.sums.shape
        sums = (in_fold @ self.sums.reshape(n_bins, -1)).reshape(-1, *shape)
        left_out = np.where(self.own_bins >= 0, in_fold[:, self.own_bins], 0.0)
        counts = (in_fold @ self.n_rows)[:, None] - left_out
        return Moments(sums, counts[:, None, :])


def paired_means(positive: Moments, unlabeled: Moments) -> tuple[Doubles, Doubles]:
    """Return the means a and b of phi over both samples, zero for a center that lacks either."""
    both = (positive.counts > 0) & (unlabeled.counts > 0)
    return both * positive.mean, both * unlabeled.mean


def binned_sums(
    basis: GaussianBasis,
    X: Rows,
    bins: Ints,
    sums: Doubles,
    *,
    own_center: Ints | None = None,
    n_jobs: int | None = None,
) -> None:
    """Add phi over the rows of every bin, for every bandwidth, in one pass.

    Parameters
    ----------
    basis : GaussianBasis
        Centers and bandwidths.
    X : array or CSR matrix of shape (n_rows, n_features)
        The rows.
    bins : array of int of shape (n_rows,)
        Bin of each row.
    sums : array of shape (n_bins, n_sigmas, n_centers)
        To which the sums are added.
    own_center : array of int of shape (n_rows,), optional
        The center that stands on each row, or -1; it does not meet that row.
    n_jobs : int, optional
        Threads over bins; -1 for all cores.
    """
    if not len(bins):
        return
    n_bins = len(sums)
    order = np.argsort(bins, kind="stable")
    ends = np.cumsum(np.bincount(bins, minlength=n_bins))
    # Threads write to whole bins, so that none waits for another and sums repeat exactly.
    tasks = np.unique(np.searchsorted(ends, np.arange(0, len(order), _TASK_ROWS)))
    # One thread keeps its memory from task to task; where every task has its own, so must they.
    shared = _workspace(basis) if effective_n_jobs(n_jobs) == 1 else None
    with single_threaded():
        Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(_add_bins)(basis, X, order, ends, range(first, last), own_center, shared, sums)
            for first, last in zip(tasks, [*tasks[1:], n_bins], strict=True)
        )


def _add_bins(
    basis: GaussianBasis,
    X: Rows,
    order: Ints,
    ends: Ints,
    bins: range,
    own_center: Ints | None,
    workspace: Workspace | None,
    sums: Doubles,
) -> None:
    """Add phi of the rows of consecutive bins, tile by tile."""
    start, stop = int(ends[bins.start - 1]) if bins.start else 0, int(ends[bins.stop - 1])
    step = _tile_rows(basis)
    workspace = workspace or _workspace(basis, stop - start)
    ones = np.ones(step, dtype=np.float32)
    # Beyond the range of float32 phi becomes zero, which is what it should be.
    with np.errstate(over="ignore", under="ignore"):
        for begin in range(start, stop, step):
            end = min(begin + step, stop)
            tile = order[begin:end]
            own = None if own_center is None else own_center[tile]
            first, last = np.searchsorted(ends, [begin, end - 1], side="right")
            edges = np.clip(ends[first : last + 1], begin, end) - begin
            parts = list(zip(range(first, last + 1), [0, *edges[:-1]], edges, strict=True))
            for index, phi in basis.evaluate(X[tile], own, workspace):
                for number, low, high in parts:
                    sums[number, index] += ones[: high - low] @ phi[low:high]


def _tile_rows(basis: GaussianBasis) -> int:
    return max(1, min(_TILE_ROWS, _TILE_VALUES // basis.centers.shape[0]))


def _workspace(basis: GaussianBasis, n_rows: int = _TILE_ROWS) -> Workspace:
    return Workspace(min(n_rows, _tile_rows(basis)), basis.centers.shape[0])


def fold_moments(basis: GaussianBasis, X: Rows, folds: Ints, n_folds: int) -> Moments:
    """Return the moments of every fold of rows in memory."""
    sums = np.zeros((n_folds, len(basis.sigmas), basis.centers.shape[0]))
    binned_sums(basis, X, folds, sums)
    counts = np.bincount(folds, minlength=n_folds).astype(np.float64)
    return Moments(sums, counts[:, None, None])
