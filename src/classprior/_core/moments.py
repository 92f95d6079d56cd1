"""Sums of the basis over the rows of each bin, the only data that penL1 needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from classprior._core.basis import GaussianBasis, Workspace
from classprior._core.threads import single_threaded
from classprior._core.types import Doubles, Ints, Rows

# Values of phi in a tile: 1 MiB in float32, which fits in the cache of a core.
_TILE_VALUES = 2**18
# Rows summed in float32; these partial sums are added in float64.
_TILE_ROWS = 512
# Sums below this come from values of phi that are zero but for _NOTHING in the basis.
_NEGLIGIBLE = 1e-28
# Weights below this are rounding errors of a difference; the mean weight of a row is 1.
_NO_WEIGHT = 1e-9
# Rows per parallel task.
_TASK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of phi over rows and the weight of the rows in each; a leading axis is for folds."""

    sums: Doubles  # shape (..., n_sigmas, n_centers)
    counts: Doubles  # shape (..., 1, n_centers), without rows left out as their own center

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
        """Mean of phi over the rows; zero for a center without rows."""
        return np.divide(
            self.sums, self.counts, out=np.zeros_like(self.sums), where=self.counts > _NO_WEIGHT
        )


@dataclass(frozen=True, eq=False)
class BinnedMoments:
    """Sums of phi over the rows of each bin."""

    sums: Doubles  # shape (n_bins, n_sigmas, n_centers)
    totals: Doubles  # total weight of the rows of each bin
    own_bins: Ints  # bin of each center's own row, if its sums leave that row out, or -1
    own_weights: Doubles | float = 1.0  # weight of each center's own row

    def of_folds(self, folds: Ints, weights: Doubles | None = None) -> Moments:
        """Return the moments of each fold, given the fold and the weight of each bin."""
        in_fold = (folds == np.arange(folds.max() + 1)[:, None]).astype(np.float64)
        if weights is not None:
            in_fold *= weights
        n_bins, *shape = self.sums.shape
        sums = _without_nothing(in_fold @ self.sums.reshape(n_bins, -1)).reshape(-1, *shape)
        left_out = np.where(self.own_bins >= 0, in_fold[:, self.own_bins] * self.own_weights, 0.0)
        counts = (in_fold @ self.totals)[:, None] - left_out
        return Moments(sums, counts[:, None, :])

    def total(self) -> Moments:
        """Return the moments of all bins together."""
        return self.of_folds(np.zeros(len(self.totals), dtype=np.int64)).total()

    def variance_along(self, direction: Doubles) -> Doubles:
        """Return the variance of the mean of phi . direction for each bandwidth, from the bins."""
        sums = np.einsum("bsc,sc->bs", self.sums, direction)
        residuals = sums - self.totals[:, None] * (sums.sum(axis=0) / self.totals.sum())
        n_bins = max(2, int(np.count_nonzero(self.totals)))
        return np.sum(residuals**2, axis=0) / self.totals.sum() ** 2 * n_bins / (n_bins - 1)


def paired_means(positive: Moments, unlabeled: Moments) -> tuple[Doubles, Doubles]:
    """Return the means a and b of phi over the samples; zero for centers without rows in both."""
    both = (positive.counts > _NO_WEIGHT) & (unlabeled.counts > _NO_WEIGHT)
    return both * positive.mean, both * unlabeled.mean


def binned_sums(
    basis: GaussianBasis,
    X: Rows,
    bins: Ints,
    sums: Doubles,
    *,
    weights: Doubles | None = None,
    own_center: Ints | None = None,
    n_jobs: int | None = None,
) -> None:
    """Add phi to ``sums``, of shape (n_bins, n_sigmas, n_centers), in one pass over the rows.

    ``own_center`` is the index of the center at each row, or -1; phi is not added there.
    """
    if not len(bins):
        return
    n_bins = len(sums)
    order = np.argsort(bins, kind="stable")
    ends = np.cumsum(np.bincount(bins, minlength=n_bins))
    # Each thread writes to whole bins: no locking is needed and sums are reproducible.
    tasks = np.unique(np.searchsorted(ends, np.arange(0, len(order), _TASK_ROWS)))
    # A single thread reuses its buffers; parallel tasks need separate ones.
    shared = _workspace(basis) if effective_n_jobs(n_jobs) == 1 else None
    with single_threaded():
        Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(_add_bins)(
                basis, X, weights, order, ends, range(first, last), own_center, shared, sums
            )
            for first, last in zip(tasks, [*tasks[1:], n_bins], strict=True)
        )


def _add_bins(
    basis: GaussianBasis,
    X: Rows,
    weights: Doubles | None,
    order: Ints,
    ends: Ints,
    bins: range,
    own_center: Ints | None,
    workspace: Workspace | None,
    sums: Doubles,
) -> None:
    """Add phi over the rows of consecutive bins, tile by tile."""
    start, stop = int(ends[bins.start - 1]) if bins.start else 0, int(ends[bins.stop - 1])
    step = _tile_rows(basis)
    workspace = workspace or _workspace(basis, stop - start)
    ones = np.ones(step, dtype=np.float32)
    # Outside the range of float32, phi is zero.
    with np.errstate(over="ignore", under="ignore"):
        for begin in range(start, stop, step):
            end = min(begin + step, stop)
            tile = order[begin:end]
            w = ones if weights is None else weights[tile].astype(np.float32)
            own = None if own_center is None else own_center[tile]
            first, last = np.searchsorted(ends, [begin, end - 1], side="right")
            edges = np.clip(ends[first : last + 1], begin, end) - begin
            parts = list(zip(range(first, last + 1), [0, *edges[:-1]], edges, strict=True))
            for index, phi in basis.evaluate(X[tile], own, workspace):
                for number, low, high in parts:
                    sums[number, index] += w[low:high] @ phi[low:high]


def _tile_rows(basis: GaussianBasis) -> int:
    return max(1, min(_TILE_ROWS, _TILE_VALUES // basis.centers.shape[0]))


def _workspace(basis: GaussianBasis, n_rows: int = _TILE_ROWS) -> Workspace:
    return Workspace(min(n_rows, _tile_rows(basis)), basis.centers.shape[0])


def fold_moments(
    basis: GaussianBasis, X: Rows, folds: Ints, n_folds: int, weights: Doubles | None = None
) -> Moments:
    """Return the moments of each fold of rows in memory."""
    sums = np.zeros((n_folds, len(basis.sigmas), basis.centers.shape[0]))
    binned_sums(basis, X, folds, sums, weights=weights)
    counts = np.bincount(folds, weights, n_folds).astype(np.float64)
    return Moments(_without_nothing(sums), counts[:, None, None])


def _without_nothing(sums: Doubles) -> Doubles:
    """Set sums to zero that are made only of what keeps phi from being subnormal."""
    sums[sums < _NEGLIGIBLE] = 0.0
    return sums
