"""Rows of two samples dealt to bins: their folds and weights, known before any row is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from classprior._core.bins import Bins
from classprior._core.types import Doubles, Ints
from classprior._data.parameters import check_number_of_folds
from classprior._data.units import Units, check_groups_in_folds


@dataclass(eq=False, kw_only=True)
class DealtSamples(ABC):
    """Base class of samples: what follows from their sizes, their units and the seed."""

    seed: int  # of all random choices
    units: Units = field(default_factory=Units)
    kept_bins: Bins | None = None  # of the rows in the samples that they were drawn from
    _n_folds: dict[Any, int] = field(init=False, default_factory=dict)

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Number of rows in each sample."""

    @cached_property
    def bins(self) -> Bins:
        """Assignment of rows to bins; rows of weight 0 are not counted in them."""
        if self.kept_bins is not None:
            return self.kept_bins
        folds, groups = self.units.folds, self.units.groups
        if folds is not None:
            if groups is not None:
                check_groups_in_folds(groups, folds)
            bins = Bins.within_folds(self.seed, folds, groups)
        elif groups is not None:
            bins = Bins.of_groups(self.seed, groups)
        else:
            bins = Bins.dealt(self.seed, self.sizes)
        return bins if self.units.weights is None else bins.of_weighted(self.units.weights)

    def folds(self, cv: Any, number: int = 0) -> tuple[Ints, Ints]:
        """Return the fold of each bin in both samples; each ``number`` gives other folds."""
        if self.units.folds is not None:
            return self.bins.folds(0, number)
        if not isinstance(cv, Integral) or cv not in self._n_folds:  # warn only once
            self._n_folds[cv] = check_number_of_folds(cv, self.bins.n_units, "sample")
        return self.bins.folds(self._n_folds[cv], number)

    def one_fold(self) -> tuple[Ints, Ints]:
        """Return a single fold for all bins, for fits without cross-validation."""
        counts = self.bins.n_rows
        return np.zeros(len(counts[0]), dtype=np.int64), np.zeros(len(counts[1]), dtype=np.int64)

    @property
    def bins_of_rows(self) -> tuple[Ints, Ints]:
        """Bin of each row in both samples."""
        return self.bins.of_rows(0, 0, self.sizes[0]), self.bins.of_rows(1, 0, self.sizes[1])

    def folds_of_rows(self, folds: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
        """Return the fold of each row in both samples, given the fold of each bin."""
        positive, unlabeled = self.bins_of_rows
        return folds[0][positive], folds[1][unlabeled]

    def weights(self, sample: int) -> Doubles | None:
        """Return the weights of the rows of a sample; None if there are none."""
        return None if self.units.weights is None else self.units.weights[sample]

    @property
    def stacked_weights(self) -> Doubles | None:
        """Weights of the rows of both samples in one array; None if all are equal."""
        if self.units.weights is None:
            return None
        weights = np.concatenate(self.units.weights)
        return None if np.ptp(weights) == 0.0 else weights

    @property
    def n_effective(self) -> tuple[float, float]:
        r"""Number of rows of equal weight that are as informative as the rows of each sample.

        It is :math:`(\sum_i w_i)^2 / \sum_i w_i^2` (Kish, 1965).
        """
        if self.units.weights is None:
            return float(self.sizes[0]), float(self.sizes[1])
        positive, unlabeled = (float(w.sum() ** 2 / (w @ w)) for w in self.units.weights)
        return positive, unlabeled

    @property
    def effective_weights(self) -> tuple[Doubles, Doubles] | None:
        """Weights that add up to the effective number of rows; None if there are none."""
        if self.units.weights is None:
            return None
        positive, unlabeled = (
            w * (n / w.sum()) for w, n in zip(self.units.weights, self.n_effective, strict=True)
        )
        return positive, unlabeled

    @property
    def group_effect(self) -> tuple[float, float]:
        r"""Number of independent groups per row, 1 without groups.

        As many groups of equal weight are as informative as :math:`(\sum_g w_g)^2 / \sum_g w_g^2`.
        """
        if self.units.groups is None:
            return 1.0, 1.0
        effects = []
        for sample, (groups, n) in enumerate(zip(self.units.groups, self.n_effective, strict=True)):
            _, codes = np.unique(groups, return_inverse=True)
            w = np.bincount(codes, self.weights(sample)).astype(np.float64)
            effects.append(min(1.0, float(w.sum() ** 2 / (w @ w) / n)))
        return effects[0], effects[1]

    @cached_property
    def totals(self) -> tuple[Doubles, Doubles]:
        """Total weight of the rows of each bin, in both samples."""
        if self.units.weights is None:
            counts = self.bins.n_rows
            return counts[0].astype(np.float64), counts[1].astype(np.float64)
        positive, unlabeled = (
            np.bincount(bins, weights, len(counts)).astype(np.float64)
            for bins, weights, counts in zip(
                self.bins_of_rows, self.units.weights, self.bins.n_rows, strict=True
            )
        )
        return positive, unlabeled

    @property
    def masses(self) -> tuple[float, float]:
        """Total weight of each sample, in the units of the user."""
        positive, unlabeled = (
            float(total.sum() * scale)
            for total, scale in zip(self.totals, self.units.scales, strict=True)
        )
        return positive, unlabeled
