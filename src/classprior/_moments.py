"""Sums of the basis over rows: all that the penalised L1-distance ever sees of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from classprior._basis import Doubles, GaussianBasis, Ints, Rows, Singles, Workspace
from classprior._threads import single_threaded

# Values of phi in a tile: 1 MiB as float32, which stays in a core's cache.
_TILE_VALUES = 2**18
# Rows whose phi are added in float32 before the sum goes on in float64.
_TILE_ROWS = 512
# Rows of one parallel task.
_TASK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of phi over rows, and how many rows each centre has met.

    Moments of disjoint sets of rows add up to the moments of their union and can be taken away
    again, so folds, blocks and machines combine.

    Parameters
    ----------
    sums : array of shape (..., n_sigmas, n_centers)
        Sums of phi; a leading axis, if there is one, counts folds, a second one resamples.
    counts : array of shape (..., 1, n_centers)
        Numbers of rows in those sums.
    """

    sums: Doubles
    counts: Ints

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.sums + other.sums, self.counts + other.counts)

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.sums - other.sums, self.counts - other.counts)

    def __len__(self) -> int:
        return len(self.sums)

    def __getitem__(self, fold: int) -> Moments:
        return Moments(self.sums[fold], self.counts[fold])

    def resample(self, number: int) -> Moments:
        """Return the moments of one resample, with a leading axis of folds."""
        return Moments(self.sums[:, number], self.counts[:, number])

    def total(self) -> Moments:
        """Return the moments of all folds together."""
        return Moments(self.sums.sum(axis=0), self.counts.sum(axis=0))

    @property
    def mean(self) -> Doubles:
        """Mean of phi over the rows; zero for a centre that has met none."""
        return self.sums / np.maximum(self.counts, 1)


def fold_moments(
    basis: GaussianBasis,
    X: Rows,
    folds: Ints,
    *,
    n_folds: int | None = None,
    own_center: Ints | None = None,
    weights: Singles | None = None,
    n_jobs: int | None = None,
) -> Moments:
    """Sum phi over the rows of every fold, for every bandwidth, in one pass.

    Parameters
    ----------
    basis : GaussianBasis
        Centres and bandwidths.
    X : array or CSR matrix of shape (n_rows, n_features)
        The rows of one sample.
    folds : array of int of shape (n_rows,)
        Fold of each row, 0 to n_folds - 1.
    n_folds : int, optional
        Number of folds, where these rows may not be in all of them.
    own_center : array of int of shape (n_rows,), optional
        The centre that stands on each row, or -1. Given, a centre leaves its own row out: phi is
        1 there whatever the data say.
    weights : float32 array of shape (n_resamples, n_rows), optional
        How often each row counts in each resample, a whole number. By default once.
    n_jobs : int, optional
        Threads, as scikit-learn counts them.

    Returns
    -------
    moments : Moments
        With a leading axis of folds and, given weights, a second one of resamples.
    """
    sizes = np.bincount(folds, minlength=n_folds or 0)
    rows_of_fold = np.split(np.argsort(folds, kind="stable"), np.cumsum(sizes)[:-1])
    tasks = [
        (fold, rows[start : start + _TASK_ROWS])
        for fold, rows in enumerate(rows_of_fold)
        for start in range(0, len(rows), _TASK_ROWS)
    ]
    once = np.ones((1, X.shape[0]), dtype=np.float32) if weights is None else weights
    shape = len(sizes), len(once), len(basis.sigmas), basis.centers.shape[0]
    sums = np.zeros(shape)
    # One thread keeps its memory from task to task; where every task has its own, so must they.
    shared = _workspace(basis) if effective_n_jobs(n_jobs) == 1 else None
    with single_threaded():
        parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        parts = parallel(
            delayed(_sums)(basis, X, rows, own_center, once, shared) for _, rows in tasks
        )
        for (fold, _), part in zip(tasks, parts, strict=True):  # in order: sums repeat exactly
            sums[fold] += part

    counts = np.zeros((shape[0], shape[1], 1, shape[3]), dtype=np.int64)
    for fold, rows in enumerate(rows_of_fold):
        counts[fold] += once[:, rows].sum(axis=1, dtype=np.int64)[:, None, None]
    if own_center is not None:
        is_center = np.flatnonzero(own_center >= 0)
        own = folds[is_center], slice(None), 0, own_center[is_center]
        counts[own] -= once[:, is_center].T.astype(np.int64)
    moments = Moments(sums, counts)
    return moments if weights is not None else moments.resample(0)


def paired_means(positive: Moments, unlabeled: Moments) -> tuple[Doubles, Doubles]:
    """Return the means a and b of phi over both samples, zero for a centre that lacks either.

    Parameters
    ----------
    positive, unlabeled : Moments
        Of the same basis.

    Returns
    -------
    a, b : arrays of shape (n_sigmas, n_centers)
        Such a centre is out of play: theta a - b is zero at every theta.
    """
    both = (positive.counts > 0) & (unlabeled.counts > 0)
    return both * positive.mean, both * unlabeled.mean


def _sums(
    basis: GaussianBasis,
    X: Rows,
    rows: Ints,
    own_center: Ints | None,
    weights: Singles,
    workspace: Workspace | None,
) -> Doubles:
    n_centers = basis.centers.shape[0]
    step = _tile_rows(basis)
    workspace = workspace or _workspace(basis, len(rows))
    sums = np.zeros((len(weights), len(basis.sigmas), n_centers))
    tile_sums = np.empty((len(basis.sigmas), len(weights), n_centers), dtype=np.float32)
    # Beyond the range of float32 phi becomes zero, which is what it should be.
    with np.errstate(over="ignore", under="ignore"):
        for start in range(0, len(rows), step):
            tile = rows[start : start + step]
            own = None if own_center is None else own_center[tile]
            tile_weights = weights[:, tile]
            for index, phi in basis.evaluate(X[tile], own, workspace):
                np.matmul(tile_weights, phi, out=tile_sums[index])
            sums += tile_sums.swapaxes(0, 1)
    return sums


def _tile_rows(basis: GaussianBasis) -> int:
    return max(1, min(_TILE_ROWS, _TILE_VALUES // basis.centers.shape[0]))


def _workspace(basis: GaussianBasis, n_rows: int = _TILE_ROWS) -> Workspace:
    return Workspace(min(n_rows, _tile_rows(basis)), basis.centers.shape[0])
