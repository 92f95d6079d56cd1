r"""Second moments of the basis, and the least-squares problems based on them.

H is the mean of phi phi' over the rows of the denominator and h is the mean of phi over the rows of
the numerator. Then :math:`\alpha^\top\varphi(x)` with :math:`\alpha = (H + \lambda I)^{-1} h`
estimates their density ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from classprior._core.basis import GaussianBasis
from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Ints, Rows

# Values of phi in a block of rows: 2 MiB in float64.
_BLOCK_VALUES = 2**18


@dataclass(frozen=True, eq=False)
class Grams:
    """Sums of phi phi' over the rows of each fold, for each bandwidth."""

    sums: Doubles  # shape (n_folds, n_sigmas, n_centers, n_centers)
    counts: Doubles  # total weight of the rows of each fold

    def __add__(self, other: Grams) -> Grams:
        return Grams(self.sums + other.sums, self.counts + other.counts)

    def mean(self, sigma_index: int, folds: Bools | None = None) -> Doubles:
        """Return H over the folds in the mask, or over all folds."""
        marked = np.ones(len(self.counts), dtype=bool) if folds is None else folds
        return self.sums[marked, sigma_index].sum(axis=0) / self.counts[marked].sum()


def fold_grams(
    basis: GaussianBasis, X: Rows, folds: Ints, n_folds: int, weights: Doubles | None = None
) -> Grams:
    """Sum phi phi' over the rows of each fold, for each bandwidth, in one pass."""
    counts = np.bincount(folds, minlength=n_folds)
    n_centers = basis.centers.shape[0]
    sums = np.zeros((len(counts), len(basis.sigmas), n_centers, n_centers))
    rows_of_fold = np.split(np.argsort(folds, kind="stable"), np.cumsum(counts)[:-1])
    # Outside the range of float32, phi is zero.
    with single_threaded(), np.errstate(over="ignore", under="ignore"):
        for fold, rows in enumerate(rows_of_fold):
            for block in row_blocks(basis, len(rows)):
                for index, phi in basis.evaluate(X[rows[block]]):
                    exact = phi.astype(np.float64)  # the product must stay positive semidefinite
                    if weights is not None:
                        exact *= np.sqrt(weights[rows[block], None])
                    sums[fold, index] += exact.T @ exact
    return Grams(sums, np.bincount(folds, weights, n_folds).astype(np.float64))


def row_blocks(basis: GaussianBasis, n_rows: int) -> list[slice]:
    """Split the rows into slices for which phi is small enough."""
    step = max(1, _BLOCK_VALUES // basis.centers.shape[0])
    return [slice(start, start + step) for start in range(0, n_rows, step)]


def ridge_path(H: Doubles, h: Doubles, lams: Doubles) -> Doubles:
    r"""Return :math:`(H + \lambda I)^{-1} h` for each lambda, by one eigendecomposition.

    For h of shape (n_centers,) or (n_centers, n_targets), the solutions have shape
    (n_centers, n_lams) or (n_centers, n_lams, n_targets).
    """
    with single_threaded():
        eigenvalues, Q = linalg.eigh(H, driver="evd", check_finite=False)
    # H is positive semidefinite; negative eigenvalues are rounding errors.
    shrinkage = 1.0 / (np.maximum(eigenvalues, 0.0)[:, None] + lams)
    if h.ndim == 2:
        shrinkage = shrinkage[:, :, None]
    return np.tensordot(Q, (Q.T @ h)[:, None] * shrinkage, axes=1)


def ratio_score(alphas: Doubles, H: Doubles, h: Doubles) -> Doubles:
    r"""Return :math:`\frac12 \alpha^\top H \alpha - h^\top\alpha` for each column of alphas."""
    return 0.5 * np.einsum("il,il->l", alphas, H @ alphas) - h @ alphas
