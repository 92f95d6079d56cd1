"""Sums of the basis over the rows of each bin, the only data that penL1 needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse

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
# With more columns, distances by matrix products make NumPy's kernel as fast as numba's.
_MOST_FUSED_COLUMNS = 128


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


def fastest_kernel(basis: GaussianBasis) -> str:
    """Return "numba" if it is installed and pays for this basis, else "numpy"."""
    centers = basis.centers
    if sparse.issparse(centers) or centers.shape[1] > _MOST_FUSED_COLUMNS:
        return "numpy"
    try:
        _fused()
    except ImportError:
        return "numpy"
    return "numba"


def binned_sums(
    basis: GaussianBasis,
    X: Rows,
    bins: Ints,
    sums: Doubles,
    *,
    weights: Doubles | None = None,
    own_center: Ints | None = None,
    n_jobs: int | None = None,
    kernel: str = "numpy",
) -> None:
    """Add phi to ``sums``, of shape (n_bins, n_sigmas, n_centers), in one pass over the rows.

    ``own_center`` is the index of the center at each row, or -1; phi is not added there. The
    relative error of phi is at most 7.5e-5 with the kernel "numpy" and 1e-5 with "numba".
    """
    if not len(bins):
        return
    n_bins = len(sums)
    own_center = np.full(len(bins), -1) if own_center is None else own_center
    order = np.argsort(bins, kind="stable")
    ends = np.cumsum(np.bincount(bins, minlength=n_bins))
    # Each thread writes to whole bins: no locking is needed and sums are reproducible.
    tasks = np.unique(np.searchsorted(ends, np.arange(0, len(order), _TASK_ROWS)))
    add: Any
    if kernel == "numba":
        add = _fused().FusedBasis(basis).add
    else:  # a single thread reuses its buffers; parallel tasks need separate ones
        shared = _workspace(basis) if effective_n_jobs(n_jobs) == 1 else None
        add = partial(_add_tiles, basis, shared)
    with single_threaded():
        Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(_add_bins)(add, X, weights, order, ends, range(first, last), own_center, sums)
            for first, last in zip(tasks, [*tasks[1:], n_bins], strict=True)
        )


def _fused() -> Any:
    """Import the compiled kernel; raise ImportError if it cannot be used."""
    try:
        from classprior._core import fused
    except Exception as error:  # numba may also dislike NumPy's version, or have no place to cache
        raise ImportError(
            f"The kernel 'numba' cannot be used in this process: {error}. Run "
            "pip install 'classprior[fast]' wherever rows are summed, or nowhere."
        ) from error
    return fused


def _add_bins(
    add: Any,
    X: Rows,
    weights: Doubles | None,
    order: Ints,
    ends: Ints,
    bins: range,
    own_center: Ints,
    sums: Doubles,
) -> None:
    """Add phi over the rows of consecutive bins."""
    part = slice(bins.start, bins.stop)
    start = int(ends[bins.start - 1]) if bins.start else 0
    rows = order[start : ends[bins.stop - 1]]
    weighted = [] if weights is None else [weights[rows]]
    add(X[rows], ends[part] - start, own_center[rows], sums[part], *weighted)


def _add_tiles(
    basis: GaussianBasis,
    workspace: Workspace | None,
    X: Rows,
    ends: Ints,
    own_center: Ints,
    sums: Doubles,
    weights: Doubles | None = None,
) -> None:
    """Add phi over rows sorted by bin, tile by tile, to the sums of the bins."""
    n_rows, step = X.shape[0], _tile_rows(basis)
    workspace = workspace or _workspace(basis, n_rows)
    ones = np.ones(step, dtype=np.float32)
    # Outside the range of float32, phi is zero.
    with np.errstate(over="ignore", under="ignore"):
        for begin in range(0, n_rows, step):
            end = min(begin + step, n_rows)
            w = ones if weights is None else weights[begin:end].astype(np.float32)
            first, last = np.searchsorted(ends, [begin, end - 1], side="right")
            edges = np.clip(ends[first : last + 1], begin, end) - begin
            parts = list(zip(range(first, last + 1), [0, *edges[:-1]], edges, strict=True))
            for index, phi in basis.evaluate(X[begin:end], own_center[begin:end], workspace):
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
