"""Data access for estimators: two samples, their rows, and sums over them.

Whether the rows are in memory, in files or on a cluster affects only where the sums are computed.
Each row's role (bin, fold, center) depends only on the seed and its number or group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from classprior._core.basis import stacked
from classprior._core.bins import SUBSAMPLE, Bins, choose
from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._samples.checkpoint import digest
from classprior._samples.sample import Sample
from classprior._samples.sums import FunctionSums
from classprior._samples.units import RowOptions, Units, check_groups_in_folds
from classprior._tables.parameters import SAMPLES, check_number_of_folds
from classprior._tables.tables import Block, Span, bytes_of_row

#: Samples up to this size in bytes, as numbers, are read once and held in memory.
SETTLED_BYTES = 2**27
_ENCODED_ROWS = 20_000  # of each sample, to learn scales, medians and categories from
_MOST_BYTES = 2**32  # size limit for methods that need all rows in memory


@dataclass(eq=False, kw_only=True)
class Samples:
    """Known positives (sample 0) and unlabeled rows (sample 1), dealt to bins by a seed."""

    each: tuple[Sample, Sample]
    seed: int  # of all random choices
    units: Units = field(default_factory=Units)
    n_jobs: int | None = None  # threads for samples in memory
    negative: Sample | None = None  # rows confirmed to be negative, which are in neither sample
    drawn_bins: Bins | None = None  # if drawn from other samples: the bins that rows have there
    _n_folds: dict[Any, int] = field(init=False, default_factory=dict)
    _drawn: dict[int, Samples] = field(init=False, default_factory=dict)  # by ``max_rows``
    _drawn_tables: dict[int, list[Any]] = field(init=False, default_factory=dict)

    @classmethod
    def of_rows(cls, X_positive: Rows, X_unlabeled: Rows, seed: int, **how: Any) -> Samples:
        """Return samples of validated rows in memory."""
        if sparse.issparse(X_positive) != sparse.issparse(X_unlabeled):
            X_positive, X_unlabeled = sparse.csr_array(X_positive), sparse.csr_array(X_unlabeled)
        each = (
            Sample.of_rows(SAMPLES[0], X_positive, "X_positive"),
            Sample.of_rows(SAMPLES[1], X_unlabeled, "X_unlabeled"),
        )
        return cls(each=each, seed=seed, **how)

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of rows in each sample, including those of weight 0."""
        return self.each[0].n_rows, self.each[1].n_rows

    @property
    def n_negative(self) -> int:
        """Number of confirmed negatives."""
        return 0 if self.negative is None else self.negative.n_rows

    def negative_rows(self, max_rows: int | None) -> Rows | None:
        """Return at most ``max_rows`` random confirmed negatives as numbers, None without any."""
        if self.negative is None:
            return None
        n = self.negative.n_rows
        return self.negative.gather(choose(self.seed, SUBSAMPLE, 2, n, max_rows or n))

    @property
    def columns(self) -> tuple[Any, ...] | None:
        """Names of the columns to read, if the columns have names."""
        return self.each[1].reader.columns

    @property
    def n_features(self) -> int:
        """Number of columns after conversion to numbers."""
        return self.each[1].reader.n_out or self.each[1].source.n_features

    @property
    def is_in_memory(self) -> bool:
        """Whether the rows are validated numbers in memory."""
        return self.each[0].rows is not None

    @property
    def n_jobs_in_block(self) -> int | None:
        """Number of threads within a block; blocks that are not in memory share the threads."""
        return self.n_jobs if self.is_in_memory else None

    def with_seed(self, seed: int) -> Samples:
        """Return the samples with another seed."""
        return replace(self, seed=seed, drawn_bins=None)

    def with_units(self, rows: RowOptions) -> Samples:
        """Return the samples with what the user says about their rows."""
        return replace(self, units=rows.units_of(self.each), drawn_bins=None)

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """All rows of both samples as numbers in memory, for methods that need them."""
        positive, unlabeled = self.loaded().each
        return positive.rows, unlabeled.rows

    def stacked_rows(self) -> tuple[Rows, Bools]:
        """Return all rows of both samples in one array, and a mask of the known positives."""
        return stacked(*self.rows), np.repeat([True, False], self.sizes)

    def loaded(self) -> Samples:
        """Return the samples with all rows in memory."""
        if self.is_in_memory:
            return self
        n_bytes = sum(sample.n_bytes for sample in self.each)
        if n_bytes > _MOST_BYTES:
            raise ValueError(
                f"This method needs all rows in memory, and {sum(self.sizes):,} rows take about "
                f"{n_bytes / 2**30:.0f} GiB. Use 'auto' or 'penl1', which read them in blocks, or "
                "pass a random sample of the rows."
            )
        return self._gathered((np.arange(self.sizes[0]), np.arange(self.sizes[1])))

    def settled(self) -> Samples:
        """Return the samples loaded into memory if they are small, else unchanged."""
        n_bytes = sum(sample.n_bytes for sample in self.each)
        is_local = all(sample.source.is_local for sample in self.each)
        is_saved = self.each[0].checkpoint.is_active
        return self.loaded() if is_local and n_bytes <= SETTLED_BYTES and not is_saved else self

    def subsample(self, max_rows: int | None) -> Samples:
        """Return at most ``max_rows`` random rows of each sample in memory, none of weight 0."""
        counted = self.bins.n_counted
        if counted == self.sizes and (max_rows is None or max(self.sizes) <= max_rows):
            return self.loaded()
        max_rows = max(counted) if max_rows is None else max_rows
        if max_rows not in self._drawn:
            self._drawn[max_rows] = self._gathered(self.drawn_numbers(max_rows))
        return self._drawn[max_rows]

    def half(self, number: int) -> Samples:
        """Return the rows of a random half of the bins of each sample, in memory."""
        positive, unlabeled = (
            np.flatnonzero(np.isin(bins, chosen))
            for bins, chosen in zip(self.bins_of_rows, self.bins.half(number), strict=True)
        )
        X_positive, X_unlabeled = self.rows
        return Samples.of_rows(
            X_positive[positive],
            X_unlabeled[unlabeled],
            self.seed,
            units=self.units.take((positive, unlabeled)),
            n_jobs=self.n_jobs,
        )

    def encoded(self, encoder: Any, max_rows: int = _ENCODED_ROWS) -> Samples:
        """Fit an encoder to at most ``max_rows`` rows of each sample; return encoded samples."""
        numbers = self.drawn_numbers(max_rows)

        def place_of(sample: int, row: int) -> str:
            return self.each[sample].source.place_of(numbers[sample][row])

        tables = self._drawn_tables[max_rows] = self._tables(numbers)
        positive, unlabeled = encoder.fit_tables(tables, place_of)
        samples = self.read_through(encoder.for_own_rows(), unlabeled)
        drawn = self._of_drawn(numbers, (positive, unlabeled))
        drawn = replace(drawn, negative=samples.negative)
        if drawn.sizes == self.sizes:
            return drawn
        samples._drawn[max_rows] = drawn
        return samples.settled()

    def read_through(self, transform: Any, like: Rows, *, as_frames: bool = False) -> Samples:
        """Return samples transformed on reading; ``like`` are some rows of the output."""
        return self._with_readers(
            transform=transform,
            n_out=like.shape[1],
            as_frames=as_frames,
            as_sparse=sparse.issparse(like),
            row_bytes=bytes_of_row(like),
        )

    def as_one_column(self, transform: Any) -> Samples:
        """Return samples of which a transformer makes one column on reading."""
        return self._with_readers(transform=transform, n_out=1, as_sparse=False, row_bytes=8.0)

    def _with_readers(self, **changes: Any) -> Samples:
        positive, unlabeled, negative = (
            sample and replace(sample, reader=replace(sample.reader, **changes))
            for sample in (*self.each, self.negative)
        )
        assert positive is not None
        assert unlabeled is not None
        return replace(self, each=(positive, unlabeled), negative=negative, drawn_bins=None)

    def subsample_tables(self, max_rows: int | None) -> list[Any]:
        """Return the raw rows that ``subsample`` draws."""
        max_rows = max_rows or max(self.sizes)
        if max_rows not in self._drawn_tables:
            self._drawn_tables[max_rows] = self._tables(self.drawn_numbers(max_rows))
        return self._drawn_tables[max_rows]

    def draw_tables(self, max_rows: int) -> list[Any]:
        """Return at most ``max_rows`` raw rows in total, drawn in proportion to sample sizes."""
        share = min(1.0, max_rows / sum(self.sizes))
        n, m = (max(1, round(share * size)) for size in self.sizes)
        return self._tables((self.choose(SUBSAMPLE, 0, n), self.choose(SUBSAMPLE, 1, m)))

    def drawn_numbers(self, max_rows: int) -> tuple[Ints, Ints]:
        """Return the indices of the rows that ``subsample`` draws."""
        return self.choose(SUBSAMPLE, 0, max_rows), self.choose(SUBSAMPLE, 1, max_rows)

    def choose(self, purpose: int, sample: int, n_chosen: int) -> Ints:
        """Draw the indices of rows, none of weight 0."""
        if self.units.counted is None:
            return choose(self.seed, purpose, sample, self.sizes[sample], n_chosen)
        rows = self.units.counted[sample]
        return rows[choose(self.seed, purpose, sample, len(rows), n_chosen)]

    def _tables(self, numbers: tuple[Ints, Ints]) -> list[Any]:
        return [s.gather(rows, raw=True) for s, rows in zip(self.each, numbers, strict=True)]

    def _gathered(self, numbers: tuple[Ints, Ints]) -> Samples:
        positive, unlabeled = self.each
        rows = positive.gather(numbers[0]), unlabeled.gather(numbers[1])
        return self._of_drawn(numbers, rows)

    def _of_drawn(self, numbers: tuple[Ints, Ints], rows: tuple[Rows, Rows]) -> Samples:
        """Return samples of rows in memory, with their units and bins."""
        units = self.units.take(numbers)
        bins = self.bins.of_drawn(numbers, units.weights)
        how: Any = {"n_jobs": self.n_jobs, "negative": self.negative}
        return Samples.of_rows(*rows, self.seed, units=units, drawn_bins=bins, **how)

    @cached_property
    def bins(self) -> Bins:
        """Assignment of rows to bins, on which rows of weight 0 have no influence."""
        if self.drawn_bins is not None:
            return self.drawn_bins
        counted, units, sizes = self.units.counted, self.units, self.sizes
        if counted is not None:
            units, sizes = units.take(counted), (len(counted[0]), len(counted[1]))
        folds, groups = units.folds, units.groups
        if folds is not None:
            if groups is not None:
                check_groups_in_folds(groups, folds)
            bins = Bins.within_folds(self.seed, folds, groups)
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
    def heaviest(self) -> float:
        """Share of the unlabeled weight that the heaviest row has beyond that of a mean row."""
        if self.units.weights is None:
            return 0.0
        w = self.units.weights[1]
        return float(w.max() / w.sum() - 1.0 / np.count_nonzero(w))

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

    def sums(
        self,
        sample: int,
        function: Callable[..., Doubles],
        shape: tuple[int, ...],
        key: str,
        **beside: NDArray[Any] | None,
    ) -> Doubles:
        """Add up a function of rows and their bins; ``key`` tells it from others in a checkpoint.

        The function returns an array of this shape for any number of rows. ``beside`` are arrays
        with a value for each row, which are passed to the function by name unless they are None.
        """
        known = {name: values for name, values in beside.items() if values is not None}
        reader = self.each[sample].reader
        work = FunctionSums(reader, self.bins, sample, function, shape, known, self.n_jobs_in_block)
        return self.add_up(sample, work, key)

    def add_up(
        self, sample: int, work: Callable[[Block], tuple[Span, Doubles]], key: str
    ) -> Doubles:
        """Add the sums of all blocks of a sample, resuming from a checkpoint."""
        if self.each[sample].checkpoint.is_active:
            key = f"sample {sample}, {key}, {self._digest_of_bins}"
        return self.each[sample].add_up(work, key)

    @cached_property
    def _digest_of_bins(self) -> str:
        """Return a hash of the bins of all rows."""
        return digest([self.seed], *(self.bins.assigned or self.bins.n_rows), *self.units.arrays)
