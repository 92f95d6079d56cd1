"""The Gaussian basis: where its centres stand, how wide it is, and its value on rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

Floats: TypeAlias = NDArray[np.floating]
Doubles: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = Floats | sparse.csr_matrix | sparse.csr_array

# A product of matrices gives a squared distance to about eps * (|x|^2 + |c|^2). Pairs for which
# that may exceed this share of the resolution squared are computed from differences instead.
_TOLERANCE = 1e-8
# The relative error of phi doubles whenever it is squared; a fresh exponential starts again at
# one rounding. Five squarings keep it below 1e-5.
_SQUARINGS_PER_EXP = 5
_LADDER_RUNGS = 11
_LOWEST_RUNG = 0.1
_ROWS_FOR_MEDIAN = 500
_FEATURES_AT_ONCE = 256


class SquaredDistances:
    """Squared Euclidean distances from rows to fixed centres, in float64 and safe from cancellation.

    Parameters
    ----------
    centers : array or CSR matrix of shape (n_centers, n_features)
        The fixed points.
    resolution : float
        The length that matters: distances are right to well within it, however far from the
        origin the data lie.
    """

    def __init__(self, centers: Rows, resolution: float) -> None:
        # Distances ignore a shift, rounding does not. The median stays with the bulk of the data
        # where one wild row would drag the mean away. Sparse rows keep their zeros.
        self._shift = None if sparse.issparse(centers) else np.median(centers, axis=0)
        self._centers = self._shifted(centers)
        self._norms = _squared_norms(self._centers)
        self._far_beyond = _TOLERANCE / np.finfo(np.float64).eps * resolution**2
        self._far = np.flatnonzero(self._norms > self._far_beyond)
        if not sparse.issparse(centers):
            self._factor = np.column_stack([-2.0 * self._centers, np.ones(len(centers)), self._norms])

    def __call__(self, X: Rows) -> Doubles:
        """Return the array of shape (n_rows, n_centers); rounding may leave -0.0-like negatives."""
        X = self._shifted(X)
        norms = _squared_norms(X)
        if sparse.issparse(X):
            squared = (X @ self._centers.T).toarray()
            squared *= -2.0
            squared += norms[:, None]
            squared += self._norms
        else:  # |x|^2 - 2 x'c + |c|^2 as one product of matrices: four times faster than in parts
            squared = np.column_stack([X, norms, np.ones(len(X))]) @ self._factor.T
        # Only pairs of which both are far from the origin can cancel: a near row and a far centre
        # are far apart, and their large distance is right to a rounding.
        if self._far.size and (far := np.flatnonzero(norms > self._far_beyond)).size:
            squared[np.ix_(far, self._far)] = _from_differences(X[far], self._centers[self._far])
        return squared

    def _shifted(self, X: Rows) -> Rows:
        if self._shift is None:
            return X.astype(np.float64, copy=False)
        return np.subtract(X, self._shift, dtype=np.float64)


class GaussianBasis:
    r"""Gaussian bumps of several widths around the same centres.

    .. math:: \varphi_\ell(x) = \exp\left(-\frac{\|x - c_\ell\|^2}{2 \sigma^2}\right)

    Parameters
    ----------
    centers : array or CSR matrix of shape (n_centers, n_features)
        The centres :math:`c_\ell`.
    sigmas : array of shape (n_sigmas,)
        The bandwidths :math:`\sigma`, in any order.
    """

    def __init__(self, centers: Rows, sigmas: Doubles) -> None:
        self.centers = centers
        self.sigmas = sigmas
        self.squared_distances = SquaredDistances(centers, resolution=float(sigmas.min()))
        self._steps = _ladder_steps(sigmas)

    def evaluate(self, squared: Doubles) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the index of each bandwidth, widest first, and phi there.

        Where a bandwidth is the one before it divided by sqrt(2), phi is the square of the phi
        before it, which costs a tenth of an exponential.

        Parameters
        ----------
        squared : array of shape (n_rows, n_centers)
            What ``squared_distances`` gave for the rows; infinity makes phi zero.

        Yields
        ------
        index : int
            Position in ``sigmas``.
        phi : float32 array of shape (n_rows, n_centers)
            A buffer that the next step overwrites.
        """
        phi = np.empty(squared.shape, dtype=np.float32)
        for index, is_square in self._steps:
            # Below the smallest float32, phi is zero, which is what it should be.
            with np.errstate(over="ignore", under="ignore"):
                if is_square:
                    np.multiply(phi, phi, out=phi)
                else:
                    scale = -0.5 / self.sigmas[index] ** 2
                    np.multiply(squared, scale, out=phi, casting="same_kind")
                    np.exp(phi, out=phi)
            yield index, phi


def draw_centers(
    n_positive: int, n_unlabeled: int, n_centers: int | None, rng: np.random.RandomState
) -> tuple[Ints, Ints]:
    """Choose which rows of each sample are centres: all, or a random subset, half from each.

    A sample with too few rows gives all it has and the other fills up, so positives are among the
    centres however rare they are.

    Parameters
    ----------
    n_positive, n_unlabeled : int
        Rows in each sample.
    n_centers : int or None
        At most so many centres; None for all rows.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    rows_positive, rows_unlabeled : arrays of int
        Increasing positions in the two samples.
    """
    n_centers = min(n_centers or n_positive + n_unlabeled, n_positive + n_unlabeled)
    from_positive = min(n_positive, max((n_centers + 1) // 2, n_centers - n_unlabeled))
    return (
        _choose(n_positive, from_positive, rng),
        _choose(n_unlabeled, n_centers - from_positive, rng),
    )


def bandwidth_ladder(X_unlabeled: Rows, centers: Rows, rng: np.random.RandomState) -> Doubles:
    r"""Return 11 bandwidths, each :math:`\sqrt 2` times the one before, around the data's scale.

    They run from 0.1 to 3.2 times the median distance between unlabeled rows and centres.

    Parameters
    ----------
    X_unlabeled : array or CSR matrix of shape (n_unlabeled, n_features)
        The unlabeled rows.
    centers : array or CSR matrix of shape (n_centers, n_features)
        The centres of the basis.
    rng : RandomState
        Draws the 500 rows and 500 centres from which the median is taken.

    Returns
    -------
    sigmas : array of shape (11,)
        Increasing bandwidths.
    """
    X = X_unlabeled[_choose(X_unlabeled.shape[0], _ROWS_FOR_MEDIAN, rng)]
    C = centers[_choose(centers.shape[0], _ROWS_FOR_MEDIAN, rng)]
    # The first answer, right or lost in rounding, is the resolution at which the second is right.
    scale = _median_distance(X, C, resolution=np.inf)
    scale = _median_distance(X, C, resolution=scale)
    if scale == 0.0:
        raise ValueError(
            "Expected rows that differ, got identical ones: no distance between rows is above "
            "zero, so the width of the kernel cannot be chosen. Check that the right columns were "
            "passed, or give sigmas."
        )
    return _LOWEST_RUNG * scale * np.sqrt(2.0) ** np.arange(_LADDER_RUNGS)


def _ladder_steps(sigmas: Doubles) -> list[tuple[int, bool]]:
    """Return the order of evaluation, and whether phi is the square of the phi before it."""
    steps: list[tuple[int, bool]] = []
    previous, squarings = np.inf, 0
    for index in np.argsort(-sigmas, kind="stable"):
        one_rung_down = np.isclose(previous**2, 2.0 * sigmas[index] ** 2, rtol=1e-12, atol=0.0)
        is_square = bool(one_rung_down) and squarings < _SQUARINGS_PER_EXP
        squarings = squarings + 1 if is_square else 0
        previous = sigmas[index]
        steps.append((int(index), is_square))
    return steps


def _median_distance(X: Rows, centers: Rows, resolution: float) -> float:
    squared = SquaredDistances(centers, resolution)(X)
    # Copies of one row say nothing about scale, and a row may be its own centre.
    apart = squared[squared > 0.0]
    return float(np.sqrt(np.median(apart))) if apart.size else 0.0


def _choose(n_rows: int, n_chosen: int, rng: np.random.RandomState) -> Ints:
    if n_chosen >= n_rows:
        return np.arange(n_rows)
    return np.sort(rng.permutation(n_rows)[:n_chosen])


def _squared_norms(X: Rows) -> Doubles:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


def _from_differences(X: Rows, Y: Rows) -> Doubles:
    """Squared distances without cancellation, a slice of features at a time to bound memory."""
    squared = np.zeros((X.shape[0], Y.shape[0]))
    for start in range(0, X.shape[1], _FEATURES_AT_ONCE):
        x, y = (M[:, start : start + _FEATURES_AT_ONCE] for M in (X, Y))
        if sparse.issparse(x):
            x, y = x.toarray(), y.toarray()
        squared += cdist(x, y, "sqeuclidean")
    return squared
