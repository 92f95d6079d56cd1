"""Two samples whose rows are dealt to bins: what tells rows apart, and the role of each.

The role of a row (bin, fold, center) depends only on the seed and on its number, key or group. Rows
with keys are told apart by them, and in memory they are in the order of the hashes of their keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classprior._core.bins import SUBSAMPLE, Bins
from classprior._core.types import Doubles, Ids, Ints, Keys
from classprior._samples.drawing import Draws, keys_of
from classprior._samples.sample import Sample
from classprior._samples.units import Units, check_groups_in_folds
from classprior._tables.parameters import check_number_of_folds


@dataclass(eq=False, kw_only=True)
class DealtSamples:
    """Known positives (sample 0) and unlabeled rows (sample 1), dealt to bins by a seed."""

    each: tuple[Sample, Sample]
    seed: int  # of all random choices
    units: Units = field(default_factory=Units)
    drawn_bins: Bins | None = None  # if drawn from other samples: the bins that rows have there
    # If rows in memory are in the order of their keys: their numbers in the order they were given.
    given: tuple[Ints, Ints] | None = None
    _n_folds: dict[Any, int] = field(init=False, default_factory=dict)

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of rows in each sample, including those of weight 0."""
        return self.each[0].n_rows, self.each[1].n_rows

    @property
    def is_in_memory(self) -> bool:
        """Whether the rows are validated numbers in memory."""
        return self.each[0].rows is not None

    def drawn_numbers(self, max_rows: int) -> tuple[Ints, Ints]:
        """Return the indices of the rows that ``subsample`` draws, in its order."""
        positive, unlabeled = self.drawn_rows(max_rows)
        return self.numbers_of(0, positive), self.numbers_of(1, unlabeled)

    def drawn_rows(self, max_rows: int) -> tuple[Ids, Ids]:
        """Return what tells the rows apart that ``subsample`` draws."""
        return self.choose(SUBSAMPLE, 0, max_rows), self.choose(SUBSAMPLE, 1, max_rows)

    def draws(self, sample: int) -> Draws:
        """Return the random choices among the rows of a sample."""
        counted = None if self.units.counted is None else self.units.counted[sample]
        return Draws(self.each[sample], sample, self.seed, counted)

    def choose(self, purpose: int, sample: int, n_chosen: int) -> Ids:
        """Draw rows, none of weight 0; return what tells them apart, their indices or keys."""
        return self.draws(sample).choose(purpose, n_chosen)

    def numbers_of(self, sample: int, chosen: Ids) -> Ints:
        """Return the indices of chosen rows."""
        return self.draws(sample).numbers_of(chosen)

    @property
    def has_key(self) -> bool:
        """Whether rows are told apart by keys instead of their indices."""
        return self.each[1].has_key

    def bins_of(self, sample: int, chosen: Ids) -> Ints:
        """Return the bins of chosen rows."""
        keys = chosen.astype(np.uint64, copy=False) if self.has_key else None
        return self.bins.of_numbers(sample, self.numbers_of(sample, chosen), keys)

    def given_numbers(self, sample: int, rows: Ints) -> Ints:
        """Return the indices that rows had when they were given."""
        return rows if self.given is None else self.given[sample][rows]

    def as_given(self, sample: int, values: NDArray[Any]) -> NDArray[Any]:
        """Return one value per row in the order in which the rows were given."""
        if self.given is None:
            return values
        ordered = np.empty_like(values)
        ordered[self.given[sample]] = values
        return ordered

    def bins_of_given(self, sample: int, numbers: Ints) -> Ints:
        """Return the bins of rows, given their indices when they were given."""
        if not self.has_key:
            return self.bins.of_numbers(sample, numbers)
        return self.as_given(sample, self.bins_of_rows[sample])[numbers]

    def keys_at(self, rows: tuple[Ints, Ints]) -> tuple[Keys | None, Keys | None]:
        """Return the keys of some rows, given their indices."""
        if not self.has_key:
            return None, None
        return keys_of(self.each[0])[rows[0]], keys_of(self.each[1])[rows[1]]

    @cached_property
    def bins(self) -> Bins:
        """Assignment of rows to bins, on which rows of weight 0 have no influence."""
        if self.drawn_bins is not None:
            return self.drawn_bins
        counted, units, sizes = self.units.counted, self.units, self.sizes
        if self.has_key and units.folds is None and units.groups is None:
            return Bins.dealt_by_key(self.seed, (self.draws(0).keyed(), self.draws(1).keyed()))
        if counted is not None:
            units, sizes = units.take(counted), (len(counted[0]), len(counted[1]))
        folds, groups = units.folds, units.groups
        if folds is not None:
            if groups is not None:
                check_groups_in_folds(groups, folds)
            rows = counted or (np.arange(sizes[0]), np.arange(sizes[1]))
            keys: Any = self.keys_at(rows) if self.has_key and groups is None else None
            bins = Bins.within_folds(self.seed, folds, groups, keys=keys)
        elif groups is not None:
            bins = Bins.of_groups(self.seed, groups)
        else:
            bins = Bins.dealt(self.seed, sizes)
        return bins if counted is None else bins.among(counted, self.sizes)

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
        positive, unlabeled = (
            self.bins.of_rows(
                sample,
                0,
                self.sizes[sample],
                keys_of(self.each[sample]) if self.bins.by_key is not None else None,
            )
            for sample in (0, 1)
        )
        return positive, unlabeled

    def folds_of_rows(self, folds: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
        """Return the fold of each row in both samples, given the fold of each bin."""
        positive, unlabeled = self.bins_of_rows
        return folds[0][positive], folds[1][unlabeled]

    def weights(self, sample: int) -> Doubles | None:
        """Return the weights of the rows of a sample; None if there are none."""
        return None if self.units.weights is None else self.units.weights[sample]
