"""Two samples as an estimator sees them that needs no rows, only sums over rows.

Where the rows are, in memory, in files or on a cluster, is the business of the object behind
``Samples``; what is estimated from the sums is not.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from classprior._basis import (
    Doubles,
    GaussianBasis,
    Ints,
    Rows,
    bandwidth_ladder,
    choose_rows,
    draw_centers,
    own_centers,
    stacked,
)
from classprior._cross_validation import deal_folds
from classprior._gram import Grams, fold_grams
from classprior._moments import Moments, fold_moments
from classprior._parameters import check_folds


class Samples(Protocol):
    """Positives, sample 0, and unlabeled rows, sample 1."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows in the two samples."""

    def draw_centers(self, n_centers: int | None) -> Rows:
        """Return at most so many rows as centres, half from each sample, positives first."""

    def draw_positives(self, n_centers: int) -> Rows:
        """Return at most so many positives as centres."""

    def bandwidths(self, centers: Rows) -> Doubles:
        """Return the default ladder of bandwidths."""

    def deal_folds(self) -> Any:
        """Deal the rows to folds; the result is for ``moments`` and ``grams``."""

    def moments(
        self, sample: int, basis: GaussianBasis, folds: Any, *, leave_one_out: bool = False
    ) -> Moments:
        """Sum phi over the rows of every fold; without folds (None), over one of all rows."""

    def grams(self, sample: int, basis: GaussianBasis, folds: Any) -> Grams:
        """Sum phi phi' over the rows of every fold; without folds, over one of all rows."""


class MemorySamples:
    """Two samples in memory.

    Parameters
    ----------
    X_positive, X_unlabeled : arrays or CSR matrices
        Validated rows.
    cv : int or pair of arrays of int
        Number of folds, or the folds of both samples.
    rng : RandomState, optional
        Draws centres, the rows from which bandwidths are set, and folds, in the order asked for.
    n_jobs : int, optional
        Threads over rows.
    """

    def __init__(
        self,
        X_positive: Rows,
        X_unlabeled: Rows,
        cv: Any = 5,
        rng: np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._rows = X_positive, X_unlabeled
        self._cv = cv
        self._rng = rng or np.random.RandomState()
        self._n_jobs = n_jobs
        self._center_rows: tuple[Ints, Ints] | None = None

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows in the two samples."""
        return self._rows[0].shape[0], self._rows[1].shape[0]

    def draw_centers(self, n_centers: int | None) -> Rows:
        """Return at most so many rows as centres, half from each sample, positives first."""
        self._center_rows = draw_centers(*self.sizes, n_centers, self._rng)
        return stacked(*(X[rows] for X, rows in zip(self._rows, self._center_rows, strict=True)))

    def draw_positives(self, n_centers: int) -> Rows:
        """Return at most so many positives as centres."""
        return self._rows[0][choose_rows(self.sizes[0], n_centers, self._rng)]

    def bandwidths(self, centers: Rows) -> Doubles:
        """Return the default ladder of bandwidths."""
        return bandwidth_ladder(self._rows[1], centers, self._rng)

    def deal_folds(self) -> tuple[Ints, Ints]:
        """Return the fold of every row of both samples."""
        return deal_folds(check_folds(self._cv, self.sizes), self.sizes, self._rng)

    def moments(
        self,
        sample: int,
        basis: GaussianBasis,
        folds: tuple[Ints, Ints] | None,
        *,
        leave_one_out: bool = False,
    ) -> Moments:
        """Sum phi over the rows of every fold; without folds, over one of all rows."""
        own = None
        if leave_one_out and self._center_rows is not None:
            own = own_centers(self._center_rows, self.sizes)[sample]
        return fold_moments(
            basis,
            self._rows[sample],
            self._fold_of(sample, folds),
            own_center=own,
            n_jobs=self._n_jobs,
        )

    def grams(self, sample: int, basis: GaussianBasis, folds: tuple[Ints, Ints] | None) -> Grams:
        """Sum phi phi' over the rows of every fold; without folds, over one of all rows."""
        return fold_grams(basis, self._rows[sample], self._fold_of(sample, folds))

    def _fold_of(self, sample: int, folds: tuple[Ints, Ints] | None) -> Ints:
        return np.zeros(self.sizes[sample], dtype=int) if folds is None else folds[sample]
