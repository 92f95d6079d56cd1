"""The Gaussian basis: where its centers stand, how wide it is, and its value on rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from classprior._core.types import Doubles, Ints, Rows, Singles

# A product of matrices gives a squared distance to about eps * (|x|^2 + |c|^2). Pairs for which
# that may exceed this share of the resolution squared are computed from differences instead.
_TOLERANCE = 1e-8
# The relative error of phi doubles whenever it is squared: from the 1.4e-7 of an exponential to
# 7.3e-5 after the nine squarings of eleven rungs. A longer ladder starts again.
_RUNGS_PER_EXP = 11
_LADDER_RUNGS = 11
_LOWEST_RUNG = 0.1
ROWS_FOR_MEDIAN = 300
# Columns of a sparse matrix that are made dense at a time, a tile of rows deep.
_DENSE_FEATURES = 256
# Numbers below the smallest normal one slow a processor down tenfold, and sums do not see them:
# phi is lowered by this, to zero where it was less, before its square can get there.
_NOTHING = np.float32(1e-18)
_LOG_OF_NOTHING = -41.0
_SMALLEST_SQUARE = 1e-280  # below it, one over a squared bandwidth overflows


class SquaredDistances:
    """Squared distances from rows to fixed centers, in float64 and safe from cancellation.

    Parameters
    ----------
    centers : array or CSR matrix of shape (n_centers, n_features)
        The fixed points.
    resolution : float
        The length that matters: distances are right to well within it, however far from the
        origin the data lie.
    scale : float
        Factor on every squared distance.
    """

    def __init__(self, centers: Rows, resolution: float, scale: float = 1.0) -> None:
        # A narrow sparse matrix is faster dense, a tile at a time.
        self._is_dense = centers.shape[1] <= _DENSE_FEATURES or not sparse.issparse(centers)
        centers = self._as_computed(centers)
        # Distances ignore a shift, rounding does not. The median stays with the bulk of the data
        # where one wild row would drag the mean away. Sparse rows keep their zeros.
        self._shift = None if sparse.issparse(centers) else _column_medians(centers)
        self._scale = scale
        shifted = self._shifted(centers)
        norms = _squared_norms(shifted)
        self._far_beyond = _TOLERANCE / np.finfo(np.float64).eps * resolution**2
        self._far = np.flatnonzero(norms > self._far_beyond)
        self._far_centers = centers[self._far]
        if sparse.issparse(centers):
            self._centers, self._norms = -2.0 * scale * shifted, scale * norms
        else:
            self._factor = scale * np.column_stack([-2.0 * shifted, np.ones(len(norms)), norms]).T

    def __call__(self, X: Rows, out: Doubles | None = None) -> Doubles:
        """Return the array of shape (n_rows, n_centers); rounding may take a zero below zero."""
        X = self._as_computed(X)
        shifted = self._shifted(X)
        norms = _squared_norms(shifted)
        if sparse.issparse(X):
            squared = (shifted @ self._centers.T).toarray(out=out)
            squared += self._scale * norms[:, None]
            squared += self._norms
        else:  # |x|^2 - 2 x'c + |c|^2 as one product of matrices: four times faster than in parts
            rows = np.column_stack([shifted, norms, np.ones(len(norms))])
            squared = np.matmul(rows, self._factor, out=out)
        # Only pairs of which both are far from the origin can cancel: a near row and a far center
        # are far apart, and their large distance is right to a rounding.
        if self._far.size and (far := np.flatnonzero(norms > self._far_beyond)).size:
            exact = _from_differences(X[far], self._far_centers)
            squared[np.ix_(far, self._far)] = self._scale * exact
        return squared

    def _as_computed(self, X: Rows) -> Rows:
        return X.toarray() if self._is_dense and sparse.issparse(X) else X

    def _shifted(self, X: Rows) -> Rows:
        if self._shift is None:
            return X.astype(np.float64, copy=False)
        return np.subtract(X, self._shift, dtype=np.float64)


class GaussianBasis:
    r"""Gaussian bumps of several widths around the same centers.

    .. math:: \varphi_\ell(x) = \exp\left(-\frac{\|x - c_\ell\|^2}{2 \sigma^2}\right)

    Parameters
    ----------
    centers : array or CSR matrix of shape (n_centers, n_features)
        The centers :math:`c_\ell`.
    sigmas : array of shape (n_sigmas,)
        The bandwidths :math:`\sigma`, in any order.
    """

    def __init__(self, centers: Rows, sigmas: Doubles) -> None:
        self.centers = centers
        self.sigmas = sigmas
        self._ladders = _ladders(sigmas)
        self._base = sigmas[_exponentiated(self._ladders[0])]
        self._base_exponents = SquaredDistances(
            centers, resolution=sigmas.min(), scale=-0.5 / self._base**2
        )

    def evaluate(
        self, X: Rows, own_center: Ints | None = None, workspace: Workspace | None = None
    ) -> Iterator[tuple[int, Singles]]:
        """Yield each bandwidth's index and phi, in a float32 buffer that the next step overwrites.

        Where bandwidths fall in steps of sqrt(2), one exponential serves them all: phi is the
        square of the phi before it, which costs a tenth of an exponential. ``own_center`` names
        the center that stands on each row, or -1; phi is set to zero there.
        """
        n_rows = X.shape[0]
        workspace = workspace or Workspace(n_rows, self.centers.shape[0])
        exact, exponents, phi, root = (buffer[:n_rows] for buffer in workspace.buffers)
        self._base_exponents(X, out=exact)
        if own_center is not None:
            on_center = np.flatnonzero(own_center >= 0)
            exact[on_center, own_center[on_center]] = -np.inf
        np.copyto(exponents, exact, casting="same_kind")
        lowest = float(exponents.min())
        for ladder in self._ladders:
            first = _exponentiated(ladder)
            np.multiply(exponents, np.float32((self._base / self.sigmas[first]) ** 2), out=phi)
            np.exp(phi, out=phi)
            if first != ladder[0]:
                yield ladder[0], np.sqrt(phi, out=root)
            for index in ladder[1:] or ladder:
                if index != first:
                    np.multiply(phi, phi, out=phi)
                if lowest * (self._base / self.sigmas[index]) ** 2 < _LOG_OF_NOTHING:
                    np.maximum(phi, _NOTHING, out=phi)
                    np.subtract(phi, _NOTHING, out=phi)
                yield index, phi

    def exact(self, X: Rows, own_center: Ints | None = None) -> Doubles:
        """Return phi in float64 for a basis of one bandwidth, zero where a row meets its center."""
        (_,) = self.sigmas
        phi = self._base_exponents(X)
        np.minimum(phi, 0.0, out=phi)  # rounding may take a distance of zero below zero
        with np.errstate(under="ignore"):
            np.exp(phi, out=phi)
        if own_center is not None:
            on_center = np.flatnonzero(own_center >= 0)
            phi[on_center, own_center[on_center]] = 0.0
        return phi


class Workspace:
    """Memory for one tile of the basis, so that the next tile finds it warm in the cache.

    Parameters
    ----------
    n_rows, n_centers : int
        Shape of the largest tile.
    """

    def __init__(self, n_rows: int, n_centers: int) -> None:
        self.buffers = tuple(
            np.empty((n_rows, n_centers), dtype)
            for dtype in (np.float64, np.float32, np.float32, np.float32)
        )


def centers_of_samples(n_positive: int, n_unlabeled: int, n_centers: int | None) -> tuple[int, int]:
    """Return how many centers each sample gives: half, or all it has while the other fills up."""
    n_centers = min(n_centers or n_positive + n_unlabeled, n_positive + n_unlabeled)
    from_positive = min(n_positive, max((n_centers + 1) // 2, n_centers - n_unlabeled))
    return from_positive, n_centers - from_positive


def stacked(*parts: Rows) -> Rows:
    """Return the rows of matrices one below the other, sparse if any of them is."""
    if any(map(sparse.issparse, parts)):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.vstack(parts)


def bandwidth_ladder(X: Rows, centers: Rows) -> Doubles:
    r"""Return 11 bandwidths, each :math:`\sqrt 2` times the one before, around the data's scale.

    The scale is the median distance between a few hundred rows and centers.
    """
    # The first median, right or lost in rounding, is the resolution at which the second is right.
    rough = SquaredDistances(centers, resolution=np.inf)(X)
    resolution = np.sqrt(np.median(rough[rough > 0.0])) if np.any(rough > 0.0) else 0.0
    squared = SquaredDistances(centers, resolution)(X)
    if not np.any(squared > _SMALLEST_SQUARE):
        raise ValueError(
            "Expected rows that differ, got identical ones: no distance between rows is above "
            "zero, so the width of the kernel cannot be chosen. Check that the right columns "
            "were passed, or give sigmas."
        )
    # Copies of one row say nothing about scale, and a row may be its own center.
    median = np.median(squared[squared > _SMALLEST_SQUARE])
    scale = np.sqrt(np.median(squared[squared > 1e-6 * median]))
    return _LOWEST_RUNG * scale * np.sqrt(2.0) ** np.arange(_LADDER_RUNGS)


def _ladders(sigmas: Doubles) -> list[list[int]]:
    """Return the positions in sigmas, widest first, in runs of bandwidths sqrt(2) apart."""
    ladders: list[list[int]] = []
    previous = np.inf
    for index in np.argsort(-sigmas, kind="stable"):
        one_rung_down = np.isclose(previous**2, 2.0 * sigmas[index] ** 2, rtol=1e-12, atol=0.0)
        if one_rung_down and len(ladders[-1]) < _RUNGS_PER_EXP:
            ladders[-1].append(int(index))
        else:
            ladders.append([int(index)])
        previous = sigmas[index]
    return ladders


def _exponentiated(ladder: list[int]) -> int:
    """Return which rung is an exponential: the second, as a root is cheap and halves the error."""
    return ladder[min(1, len(ladder) - 1)]


def _column_medians(X: Rows) -> Doubles:
    return np.median(
        np.asarray(X, dtype=np.float64), axis=0
    )  # float32 overflows between two values


def _squared_norms(X: Rows) -> Doubles:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


def _from_differences(X: Rows, Y: Rows) -> Doubles:
    """Squared distances without cancellation, a slice of features at a time to bound memory."""
    squared = np.zeros((X.shape[0], Y.shape[0]))
    for start in range(0, X.shape[1], _DENSE_FEATURES):
        x, y = (M[:, start : start + _DENSE_FEATURES] for M in (X, Y))
        if sparse.issparse(x):
            x, y = x.toarray(), y.toarray()
        squared += cdist(x, y, "sqeuclidean")  # in float64, whatever the rows are
    return squared
