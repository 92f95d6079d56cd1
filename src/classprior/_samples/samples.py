"""Data access for estimators: two samples, their rows, and sums over them.

Whether the rows are in memory, in files or on a cluster affects only where the sums are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from classprior._core.basis import stacked
from classprior._core.bins import SUBSAMPLE
from classprior._core.types import Bools, Doubles, Ids, Keys, Rows
from classprior._samples.checkpoint import digest
from classprior._samples.dealt import DealtSamples
from classprior._samples.drawing import Draws, keys_of
from classprior._samples.sample import Sample
from classprior._samples.sums import FunctionSums
from classprior._samples.units import RowOptions
from classprior._tables.parameters import SAMPLES
from classprior._tables.tables import Block, Span, bytes_of_row

#: Samples up to this size in bytes, as numbers, are read once and held in memory.
SETTLED_BYTES = 2**27
_ENCODED_ROWS = 20_000  # of each sample, to learn scales, medians and categories from
_MOST_BYTES = 2**32  # size limit for methods that need all rows in memory


@dataclass(eq=False, kw_only=True)
class Samples(DealtSamples):
    """Known positives (sample 0) and unlabeled rows (sample 1), dealt to bins by a seed."""

    n_jobs: int | None = None  # threads for samples in memory
    negative: Sample | None = None  # rows confirmed to be negative, which are in neither sample
    _drawn: dict[int, Samples] = field(init=False, default_factory=dict)  # by ``max_rows``
    _drawn_tables: dict[int, list[Any]] = field(init=False, default_factory=dict)

    @classmethod
    def of_rows(
        cls,
        X_positive: Rows,
        X_unlabeled: Rows,
        seed: int,
        keys: tuple[Keys | None, Keys | None] = (None, None),
        **how: Any,
    ) -> Samples:
        """Return samples of validated rows in memory, in the order of their keys if given."""
        if sparse.issparse(X_positive) != sparse.issparse(X_unlabeled):
            X_positive, X_unlabeled = sparse.csr_array(X_positive), sparse.csr_array(X_unlabeled)
        each = (
            Sample.of_rows(SAMPLES[0], X_positive, "X_positive", keys[0]),
            Sample.of_rows(SAMPLES[1], X_unlabeled, "X_unlabeled", keys[1]),
        )
        return cls(each=each, seed=seed, **how)

    def with_rows(self, X_positive: Rows, X_unlabeled: Rows) -> Samples:
        """Return samples of other numbers for the same rows in memory, without segments."""
        keys = (keys_of(self.each[0]), keys_of(self.each[1])) if self.has_key else (None, None)
        units = replace(self.units, segments=None)
        return Samples.of_rows(
            X_positive, X_unlabeled, self.seed, keys, units=units, drawn_bins=self.bins
        )

    @property
    def n_negative(self) -> int:
        """Number of confirmed negatives."""
        return 0 if self.negative is None else self.negative.n_rows

    def negative_rows(self, max_rows: int | None) -> Rows | None:
        """Return at most ``max_rows`` random confirmed negatives as numbers, None without any."""
        if self.negative is None:
            return None
        drawn = Draws(self.negative, 2, self.seed)
        return self.negative.gather(drawn.choose(SUBSAMPLE, max_rows or self.negative.n_rows))

    @property
    def columns(self) -> tuple[Any, ...] | None:
        """Names of the columns to read, if the columns have names."""
        return self.each[1].reader.columns

    @property
    def n_features(self) -> int:
        """Number of columns after conversion to numbers."""
        return self.each[1].reader.n_out or self.each[1].source.n_features

    @property
    def n_jobs_in_block(self) -> int | None:
        """Number of threads within a block; blocks that are not in memory share the threads."""
        return self.n_jobs if self.is_in_memory else None

    def with_seed(self, seed: int) -> Samples:
        """Return the samples with another seed."""
        return replace(self, seed=seed, drawn_bins=None)

    def with_units(self, rows: RowOptions) -> Samples:
        """Return the samples with what the user says about their rows."""
        units = rows.units_of(self.each)
        if rows.key is None or not self.is_in_memory:
            return replace(self, units=units, drawn_bins=None)
        keys = [np.asarray(part) for part in rows.keys_of(self.sizes)]
        order = np.argsort(keys[0]), np.argsort(keys[1])
        X_positive, X_unlabeled = self.rows
        return Samples.of_rows(
            X_positive[order[0]],
            X_unlabeled[order[1]],
            self.seed,
            (keys[0][order[0]], keys[1][order[1]]),
            units=units.take(order),
            given=order,
            n_jobs=self.n_jobs,
            negative=self.negative,
        )

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
        return self._gathered(self._all_rows)

    @property
    def _all_rows(self) -> tuple[Ids, Ids]:
        """What tells all rows apart: their numbers, or their keys in increasing order."""
        if not self.has_key:
            return np.arange(self.sizes[0]), np.arange(self.sizes[1])
        return np.sort(keys_of(self.each[0])), np.sort(keys_of(self.each[1]))

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
            self._drawn[max_rows] = self._gathered(self.drawn_rows(max_rows))
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
            self.keys_at((positive, unlabeled)),
            units=self.units.take((positive, unlabeled)),
            n_jobs=self.n_jobs,
        )

    def encoded(self, encoder: Any, max_rows: int = _ENCODED_ROWS) -> Samples:
        """Fit an encoder to at most ``max_rows`` rows of each sample; return encoded samples."""
        chosen, numbers = self.drawn_rows(max_rows), self.drawn_numbers(max_rows)

        def place_of(sample: int, row: int) -> str:
            return self.each[sample].source.place_of(numbers[sample][row])

        tables = self._drawn_tables[max_rows] = self._tables(chosen)
        positive, unlabeled = encoder.fit_tables(tables, place_of)
        samples = self.read_through(encoder.for_own_rows(), unlabeled)
        drawn = self._of_drawn(chosen, (positive, unlabeled))
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
            self._drawn_tables[max_rows] = self._tables(self.drawn_rows(max_rows))
        return self._drawn_tables[max_rows]

    def draw_tables(self, max_rows: int) -> list[Any]:
        """Return at most ``max_rows`` raw rows in total, drawn in proportion to sample sizes."""
        share = min(1.0, max_rows / sum(self.sizes))
        n, m = (max(1, round(share * size)) for size in self.sizes)
        return self._tables((self.choose(SUBSAMPLE, 0, n), self.choose(SUBSAMPLE, 1, m)))

    def _tables(self, chosen: tuple[Ids, Ids]) -> list[Any]:
        return [s.gather(rows, raw=True) for s, rows in zip(self.each, chosen, strict=True)]

    def _gathered(self, chosen: tuple[Ids, Ids]) -> Samples:
        positive, unlabeled = self.each
        rows = positive.gather(chosen[0]), unlabeled.gather(chosen[1])
        return self._of_drawn(chosen, rows)

    def _of_drawn(self, chosen: tuple[Ids, Ids], rows: tuple[Rows, Rows]) -> Samples:
        """Return samples of rows in memory, with their units and bins."""
        numbers = self.numbers_of(0, chosen[0]), self.numbers_of(1, chosen[1])
        units = self.units.take(numbers)
        how: Any = {"n_jobs": self.n_jobs, "negative": self.negative, "units": units}
        keys = None
        if self.has_key:
            keys = chosen[0].astype(np.uint64), chosen[1].astype(np.uint64)
            given = self.given_numbers(0, numbers[0]), self.given_numbers(1, numbers[1])
            how |= {"keys": keys, "given": given}
        how["drawn_bins"] = self.bins.of_drawn(numbers, units.weights, keys)
        return Samples.of_rows(*rows, self.seed, **how)

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
        keys = [sample.reader.key for sample in self.each if sample.has_key]
        bins = self.bins.assigned or self.bins.n_rows
        return digest([self.seed], *bins, *self.units.arrays, *keys)
