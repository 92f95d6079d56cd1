"""The Gaussian basis: its centers, its bandwidths and its values on rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from classprior._core.types import Doubles, Ints, Rows, Singles

# A matrix product gives a squared distance with an error of about eps * (|x|^2 + |c|^2). Pairs for
# which this may exceed _TOLERANCE * resolution**2 are computed from differences instead.
_TOLERANCE = 1e-8
# The relative error of phi doubles whenever it is squared: from the 1.4e-7 of an exponential to
# 7.3e-5 after the nine squarings of eleven rungs. A longer ladder is split.
_RUNGS_PER_EXP = 11
_LADDER_RUNGS = 11
_LOWEST_RUNG = 0.1
# Sparse matrices are made dense in blocks of at most this many columns.
_DENSE_FEATURES = 256
# Subnormal numbers are ten times slower. Added to phi, this keeps its square from becoming one and
# is too small to affect the sums.
_NOTHING = np.float32(1.1e-19)
_SMALLEST = np.finfo(np.float32).tiny  # the smallest normal number
_LOG_OF_SMALLEST = -87.0
_SMALLEST_SQUARE = 1e-280  # below this, the reciprocal of a squared bandwidth overflows


class SquaredDistances:
    """Squared distances to fixed centers, times ``scale``, in float64 and without cancellation.

    Errors are far below ``resolution`` squared, however far the data are from the origin.
    """

    def __init__(self, centers: Rows, resolution: float, scale: float = 1.0) -> None:
        # A sparse matrix with few columns is faster as a dense one.
        self._is_dense = centers.shape[1] <= _DENSE_FEATURES or not sparse.issparse(centers)
        centers = self._as_computed(centers)
        # A shift leaves distances unchanged but reduces rounding errors. The median is robust to
        # outliers. Sparse rows are not shifted, to keep their zeros.
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
        """Return shape (n_rows, n_centers); rounding may make a zero slightly negative."""
        X = self._as_computed(X)
        shifted = self._shifted(X)
        norms = _squared_norms(shifted)
        if sparse.issparse(X):
            squared = (shifted @ self._centers.T).toarray(out=out)
            squared += self._scale * norms[:, None]
            squared += self._norms
        else:  # |x|^2 - 2 x'c + |c|^2 as one matrix product, four times faster than three terms
            rows = np.column_stack([shifted, norms, np.ones(len(norms))])
            squared = np.matmul(rows, self._factor, out=out)
        # Cancellation needs both points far from the origin: if only one is, the distance is large
        # and accurate.
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
    r"""Gaussians with common centers and several bandwidths, in any order.

    .. math:: \varphi_\ell(x) = \exp\left(-\frac{\|x - c_\ell\|^2}{2 \sigma^2}\right)

    du Plessis, Niu and Sugiyama (2017), footnote to equation (10).
    """

    def __init__(self, centers: Rows, sigmas: Doubles) -> None:
        self.centers = centers
        self.sigmas = sigmas
        self._ladders = ladders(sigmas, _RUNGS_PER_EXP)
        self._base = sigmas[_exponentiated(self._ladders[0])]
        self._base_exponents = SquaredDistances(
            centers, resolution=sigmas.min(), scale=-0.5 / self._base**2
        )

    def evaluate(
        self, X: Rows, own_center: Ints | None = None, workspace: Workspace | None = None
    ) -> Iterator[tuple[int, Singles]]:
        """Yield each bandwidth's index and phi, in a float32 buffer that the next step overwrites.

        ``own_center`` is the index of the center at each row, or -1; phi is set to zero there.
        """
        # For bandwidths that decrease by sqrt(2), each phi is the square of the previous one, at a
        # tenth of the cost of an exponential.
        n_rows = X.shape[0]
        workspace = workspace or Workspace(n_rows, self.centers.shape[0])
        exact, exponents, phi, root = (buffer[:n_rows] for buffer in workspace.buffers)
        self._base_exponents(X, out=exact)
        np.copyto(exponents, exact, casting="same_kind")
        lowest = float(exponents.min())
        if own_center is not None:
            on_center = np.flatnonzero(own_center >= 0)
            exponents[on_center, own_center[on_center]] = -np.inf
        for ladder in self._ladders:
            first = _exponentiated(ladder)
            factor = np.float32((self._base / self.sigmas[first]) ** 2)
            # The exponents are those of the first ladder already.
            np.exp(exponents if factor == 1.0 else np.multiply(exponents, factor, out=phi), out=phi)
            if lowest * factor < _LOG_OF_SMALLEST:
                np.add(phi, _SMALLEST, out=phi)
            if first != ladder[0]:
                yield ladder[0], np.sqrt(phi, out=root)
            for index in ladder[1:] or ladder:
                if index != first:
                    if lowest * (self._base / self.sigmas[index]) ** 2 < _LOG_OF_SMALLEST:
                        np.add(phi, _NOTHING, out=phi)
                    np.multiply(phi, phi, out=phi)
                yield index, phi

    def exact(self, X: Rows, own_center: Ints | None = None) -> Doubles:
        """Return phi in float64 for one bandwidth; zero at each row's own center."""
        (_,) = self.sigmas
        phi = self._base_exponents(X)
        np.minimum(phi, 0.0, out=phi)  # rounding may make a squared distance negative
        with np.errstate(under="ignore"):
            np.exp(phi, out=phi)
        if own_center is not None:
            on_center = np.flatnonzero(own_center >= 0)
            phi[on_center, own_center[on_center]] = 0.0
        return phi


class Workspace:
    """Buffers for one tile of the basis, reused so that they stay in the cache."""

    def __init__(self, n_rows: int, n_centers: int) -> None:
        self.buffers = tuple(
            np.empty((n_rows, n_centers), dtype)
            for dtype in (np.float64, np.float32, np.float32, np.float32)
        )


def centers_of_samples(n_positive: int, n_unlabeled: int, n_centers: int | None) -> tuple[int, int]:
    """Return the number of centers from each sample: half, as far as both have enough rows."""
    n_centers = min(n_centers or n_positive + n_unlabeled, n_positive + n_unlabeled)
    from_positive = min(n_positive, max((n_centers + 1) // 2, n_centers - n_unlabeled))
    return from_positive, n_centers - from_positive


def stacked(*parts: Rows) -> Rows:
    """Stack matrices vertically; the result is sparse if any of them is."""
    if any(map(sparse.issparse, parts)):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.vstack(parts)


def bandwidth_ladder(X: Rows, centers: Rows) -> Doubles:
    """Return 11 bandwidths, from 0.1 to 3.2 times the median distance of rows and centers."""
    squared = _accurate_squares(X, centers)
    if not np.any(squared > _SMALLEST_SQUARE):
        raise ValueError(
            "All rows are identical, or their distances are below 1e-140, so no kernel bandwidth "
            "can be chosen. Check that the right columns were passed, or set sigmas."
        )
    # Ignore the zero distances between copies of a row, or of a row to itself.
    median = np.median(squared[squared > _SMALLEST_SQUARE])
    scale = np.sqrt(np.median(squared[squared > 1e-6 * median]))
    return _LOWEST_RUNG * scale * np.sqrt(2.0) ** np.arange(_LADDER_RUNGS)


def literal_bandwidths(X: Rows, centers: Rows) -> Doubles:
    """Return the 10 bandwidths of the public program, from 0.01 to 10 times the median distance."""
    median = np.median(_accurate_squares(X, centers))  # including rows and their own centers
    if median <= _SMALLEST_SQUARE:
        raise ValueError(
            "Half of the distances between unlabeled rows and centers are zero, which gives no "
            "bandwidths for sigmas='literal'. Try sigmas=None, which ignores copies."
        )
    return np.sqrt(median) * np.logspace(-2, 1, 10)


def ladders(sigmas: Doubles, most_rungs: int) -> list[list[int]]:
    """Group the indices of sigmas, widest first, into runs that decrease by sqrt(2)."""
    found: list[list[int]] = []
    previous = np.inf
    for index in np.argsort(-sigmas, kind="stable"):
        one_rung_down = np.isclose(previous**2, 2.0 * sigmas[index] ** 2, rtol=1e-12, atol=0.0)
        if one_rung_down and len(found[-1]) < most_rungs:
            found[-1].append(int(index))
        else:
            found.append([int(index)])
        previous = sigmas[index]
    return found


def _accurate_squares(X: Rows, centers: Rows) -> Doubles:
    """Return squared distances that are accurate at the scale of their own median."""
    # The first median, even if it is only rounding error, is resolution enough for the second.
    rough = SquaredDistances(centers, resolution=np.inf)(X)
    resolution = np.sqrt(np.median(rough[rough > 0.0])) if np.any(rough > 0.0) else 0.0
    return SquaredDistances(centers, resolution)(X)


def _exponentiated(ladder: list[int]) -> int:
    """Return the rung to exponentiate: the second, as the first is then an accurate square root."""
    return ladder[min(1, len(ladder) - 1)]


def _column_medians(X: Rows) -> Doubles:
    # In float64, since the mean of two middle values may overflow in float32.
    return np.median(np.asarray(X, dtype=np.float64), axis=0)


def _squared_norms(X: Rows) -> Doubles:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


def _from_differences(X: Rows, Y: Rows) -> Doubles:
    """Return squared distances from differences, in slices of features to limit memory."""
    squared = np.zeros((X.shape[0], Y.shape[0]))
    for start in range(0, X.shape[1], _DENSE_FEATURES):
        x, y = (M[:, start : start + _DENSE_FEATURES] for M in (X, Y))
        if sparse.issparse(x):
            x, y = x.toarray(), y.toarray()
        squared += cdist(x, y, "sqeuclidean")  # in float64 for any dtype
    return squared
