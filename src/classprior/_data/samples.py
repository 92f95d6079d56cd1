"""Data access for estimators: two samples, and sums over their rows.

Estimators ask for centers, bandwidths and sums. Whether the rows are in memory, in files or on a
cluster affects only where the sums are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from classprior._core.basis import GaussianBasis, bandwidth_ladder, centers_of_samples, stacked
from classprior._core.bins import BANDWIDTHS, CENTERS, SUBSAMPLE, Bins, choose
from classprior._core.gram import Grams
from classprior._core.messages import progress
from classprior._core.moments import BinnedMoments
from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._data.blocks import (
    Block,
    LocalSource,
    NotAllRowsError,
    Reader,
    Source,
    Span,
    bytes_of_row,
    of_all_rows,
)
from classprior._data.checkpoint import Checkpoint, digest
from classprior._data.parameters import SAMPLES, check_fold_ids, check_number_of_folds
from classprior._data.units import (
    Columns,
    UnitColumns,
    Units,
    check_groups_in_folds,
    checked_weights,
    column_names_of,
    group_keys_of,
    joined_columns,
    kept_rows,
    matched_segments,
    segments_of,
)
from classprior._data.work import BinSums, FoldGrams, FunctionSums, Gather, stacked_tables

_ROWS_FOR_BANDWIDTHS = 300
#: Samples up to this size in bytes, as numbers, are read once and kept in memory.
KEPT_BYTES = 2**27
_MOST_BYTES = 2**32  # size limit for methods that need all rows in memory
_MOST_CENTERS = 10_000  # limit for rows in blocks: with 11 bandwidths, a block's sums take 90 MB


@dataclass(frozen=True, eq=False)
class Centers:
    """Basis centers, those from the positive sample first."""

    X: Rows  # of shape (n_centers, n_features)
    numbers: tuple[Ints, Ints]  # row indices of the centers in the two samples
    nearby: Rows  # a few hundred unlabeled rows; their distances give the default bandwidths


class Samples:
    """Known positives (sample 0) and unlabeled rows (sample 1).

    Parameters
    ----------
    sources : pair of Source
        The blocks of rows.
    readers : pair of Reader
        Convert the blocks to numbers.
    seed : int
        Seed of all random choices.
    units : Units, optional
        Folds, groups, weights and segments of the rows.
    n_jobs : int, optional
        Number of threads for samples in memory.
    checkpoint : Checkpoint, optional
        Saves the sums of finished blocks.
    verbose : int
        Whether to show progress.
    drawn : dict of int to Samples, optional
        Subsamples already drawn, by ``max_rows``.
    bins : Bins, optional
        Bins of the rows, if they were drawn from larger samples.
    """

    def __init__(
        self,
        sources: tuple[Source, Source],
        readers: tuple[Reader, Reader],
        *,
        seed: int,
        units: Units | None = None,
        n_jobs: int | None = None,
        checkpoint: Checkpoint | None = None,
        verbose: int = 0,
        drawn: dict[int, Samples] | None = None,
        bins: Bins | None = None,
    ) -> None:
        self._sources = sources
        self._readers = readers
        self.seed = seed
        self.units = units or Units()
        self.n_jobs = n_jobs
        self._checkpoint = checkpoint or Checkpoint(None)
        self.verbose = verbose
        self._drawn = drawn or {}
        self._n_folds: dict[Any, int] = {}
        if bins is not None:
            self.__dict__["bins"] = bins

    @classmethod
    def of_rows(cls, X_positive: Rows, X_unlabeled: Rows, seed: int, **how: Any) -> Samples:
        """Return samples of validated rows in memory."""
        if sparse.issparse(X_positive) != sparse.issparse(X_unlabeled):
            X_positive, X_unlabeled = sparse.csr_array(X_positive), sparse.csr_array(X_unlabeled)
        sources = (
            LocalSource.of_rows(X_positive, "X_positive"),
            LocalSource.of_rows(X_unlabeled, "X_unlabeled"),
        )
        clean = Reader("X", is_clean=True)
        return cls(sources, (clean, clean), seed=seed, **how)

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of rows in each sample."""
        return self._sources[0].n_rows, self._sources[1].n_rows

    @property
    def columns(self) -> tuple[Any, ...] | None:
        """Names of the columns to read, if the columns have names."""
        return self._readers[1].columns

    @property
    def n_features(self) -> int:
        """Number of columns after conversion to numbers."""
        return self._readers[1].n_out or self._sources[1].n_features

    @property
    def _n_bytes(self) -> float:
        """Approximate size of all rows in bytes, as numbers."""
        return sum(
            size * reader.row_bytes for size, reader in zip(self.sizes, self._readers, strict=True)
        )

    @property
    def is_in_memory(self) -> bool:
        """Whether the rows are validated numbers in memory."""
        return self._readers[0].is_clean

    @cached_property
    def bins(self) -> Bins:
        """Assignment of rows to bins; rows of weight 0 are not counted in them."""
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

    @property
    def effective_weights(self) -> tuple[Doubles, Doubles] | None:
        """Weights that add up to the effective number of rows; None if there are none."""
        if self.units.weights is None:
            return None
        positive, unlabeled = (
            w * (n / w.sum()) for w, n in zip(self.units.weights, self.n_effective, strict=True)
        )
        return positive, unlabeled

    def with_seed(self, seed: int) -> Samples:
        """Return the samples with another seed."""
        return self._replaced(seed=seed)

    def with_units(
        self,
        *,
        groups: Any = None,
        weights: Any = None,
        segments: Any = None,
        every: str | None = None,
        own_positives: bool = False,
        cv: Any = None,
    ) -> Samples:
        """Return the samples with the user's groups, weights, segments and folds, validated.

        Each is a pair of arrays or, but for the folds, the name of a column (or several).
        """
        named = {
            "group": groups if isinstance(groups, str) else None,
            "weight": weights if isinstance(weights, str) else None,
            "segments": column_names_of(segments),
        }
        if any(named.values()):
            positive, unlabeled = (
                self._unit_columns(0, named, every),
                self._unit_columns(1, named, every),
            )
            if named["group"]:
                groups = positive.groups, unlabeled.groups
            if named["weight"]:
                weights = positive.weights, unlabeled.weights
        if named["segments"]:
            found = matched_segments(
                positive.segments,
                unlabeled.segments,
                columns=named["segments"],
                every=every,
                own_positives=own_positives,
            )
        elif segments is not None:
            found = segments_of(segments, self.sizes, every=every, own_positives=own_positives)
        else:
            found = None
        if groups is not None and not named["group"]:
            groups = group_keys_of(groups, self.sizes)
        folds = None if cv is None else check_fold_ids(cv, self.sizes)
        units = Units(folds, groups, segments=found)
        if weights is not None:
            scaled, scales = checked_weights(weights, self.sizes)
            kept = None if groups is not None or scaled is None else kept_rows(self.seed, scaled)
            units = replace(units, weights=scaled, scales=scales, kept=kept)
        if found is not None:
            found.check_own_positives(units.weights)
        return self._replaced(units=units)

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

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """All rows of both samples as numbers in memory, for methods that need them."""
        positive, unlabeled = (next(source.map(_content)) for source in self.loaded()._sources)
        return positive, unlabeled

    def stacked_rows(self) -> tuple[Rows, Bools]:
        """Return all rows of both samples in one array, and a mask of the known positives."""
        return stacked(*self.rows), np.repeat([True, False], self.sizes)

    @property
    def stacked_weights(self) -> Doubles | None:
        """Weights of the rows of both samples in one array; None if all are equal."""
        if self.units.weights is None:
            return None
        weights = np.concatenate(self.units.weights)
        return None if np.ptp(weights) == 0.0 else weights

    def loaded(self) -> Samples:
        """Return the samples with all rows in memory."""
        if self.is_in_memory:
            return self
        if self._n_bytes > _MOST_BYTES:
            raise ValueError(
                f"This method needs all rows in memory, and {sum(self.sizes):,} rows take about "
                f"{self._n_bytes / 2**30:.0f} GiB. Use 'auto' or 'penl1', which read them in "
                "blocks, or pass a random sample of the rows."
            )
        numbers = np.arange(self.sizes[0]), np.arange(self.sizes[1])
        return self._of_drawn(numbers, (self._gather(0, numbers[0]), self._gather(1, numbers[1])))

    def settled(self) -> Samples:
        """Return the samples loaded into memory if they are small, else unchanged."""
        is_local = all(source.is_local for source in self._sources)
        small = is_local and self._n_bytes <= KEPT_BYTES and not self._checkpoint.is_kept
        return self.loaded() if small else self

    def subsample(self, max_rows: int | None) -> Samples:
        """Return at most ``max_rows`` random rows of each sample in memory, none of weight 0."""
        counted = self.bins.n_counted
        if counted == self.sizes and (max_rows is None or max(self.sizes) <= max_rows):
            return self.loaded()
        max_rows = max(counted) if max_rows is None else max_rows
        if max_rows not in self._drawn:
            numbers = self.drawn_numbers(max_rows)
            rows = self._gather(0, numbers[0]), self._gather(1, numbers[1])
            self._drawn[max_rows] = self._of_drawn(numbers, rows)
        return self._drawn[max_rows]

    def half(self, number: int) -> Samples:
        """Return the rows of a random half of the bins of each sample, in memory."""
        chosen = self.bins.half(number)
        numbers = tuple(
            np.flatnonzero(np.isin(bins, chosen[s])) for s, bins in enumerate(self.bins_of_rows)
        )
        rows = self.rows
        both = numbers[0], numbers[1]
        return self._of_drawn(both, (rows[0][both[0]], rows[1][both[1]]), keep_bins=False)

    def encoded(self, encoder: Any, max_rows: int) -> Samples:
        """Fit an encoder to at most ``max_rows`` rows of each sample; return encoded samples."""
        numbers = self.drawn_numbers(max_rows)
        tables = self.subsample_tables(max_rows)

        def place_of(sample: int, row: int) -> str:
            return self._sources[sample].place_of(numbers[sample][row])

        positive, unlabeled = encoder.fit_tables(tables, place_of)
        drawn = self._of_drawn(numbers, (positive, unlabeled))
        if drawn.sizes == self.sizes:
            return drawn
        samples = self.read_through(encoder.for_own_rows(), unlabeled, as_frames=False)
        samples._drawn[max_rows] = drawn
        return samples.settled()

    def subsample_tables(self, max_rows: int | None) -> list[Any]:
        """Return the raw rows that ``subsample`` draws."""
        numbers = self.drawn_numbers(max_rows or max(self.sizes))
        return [self._gather(sample, numbers[sample], raw=True) for sample in (0, 1)]

    def draw_tables(self, max_rows: int) -> list[Any]:
        """Return at most ``max_rows`` raw rows in total, drawn in proportion to sample sizes."""
        share = min(1.0, max_rows / sum(self.sizes))
        return [
            self._gather(
                s,
                self._choose(SUBSAMPLE, s, max(1, round(share * self.sizes[s]))),
                raw=True,
            )
            for s in (0, 1)
        ]

    def read_through(self, transform: Any, some_rows: Any, *, as_frames: bool) -> Samples:
        """Return samples transformed on reading; ``some_rows`` are examples of the output."""
        positive, unlabeled = (
            replace(
                reader,
                transform=transform,
                n_out=some_rows.shape[1],
                as_frames=as_frames,
                as_sparse=sparse.issparse(some_rows),
                row_bytes=bytes_of_row(some_rows),
            )
            for reader in self._readers
        )
        return self._replaced(readers=(positive, unlabeled))

    def draw_centers(self, n_centers: int | None, *, of_positives: bool = False) -> Centers:
        """Draw at most ``n_centers`` rows as centers, half from each sample or positives only."""
        if n_centers is None and not self.is_in_memory and sum(self.sizes) > _MOST_CENTERS:
            raise ValueError(
                f"n_centers=None would need a center at each of {sum(self.sizes):,} rows, which "
                "does not fit in memory. Try n_centers=2000."
            )
        sizes = self.bins.n_counted
        share = centers_of_samples(*sizes, n_centers)
        if of_positives:
            share = min(n_centers or sizes[0], sizes[0]), 0
        positive, unlabeled = (self._choose(CENTERS, s, share[s]) for s in (0, 1))
        around = self._choose(BANDWIDTHS, 1, _ROWS_FOR_BANDWIDTHS)
        wanted = np.union1d(unlabeled, around)  # one pass for both
        drawn = self._gather(1, wanted)
        return Centers(
            stacked(self._gather(0, positive), drawn[np.searchsorted(wanted, unlabeled)]),
            (positive, unlabeled),
            drawn[np.searchsorted(wanted, around)],
        )

    def bandwidths(self, centers: Centers) -> Doubles:
        """Return the default grid of bandwidths."""
        n_centers = centers.X.shape[0]
        some = choose(self.seed, BANDWIDTHS, 0, n_centers, _ROWS_FOR_BANDWIDTHS)
        return bandwidth_ladder(centers.nearby, centers.X[some])

    def moments(
        self,
        sample: int,
        basis: GaussianBasis,
        leave_out: Centers | None = None,
        kernel: str = "numpy",
    ) -> BinnedMoments:
        """Sum phi over the rows of each bin; centers in ``leave_out`` skip their own rows."""
        weights = self.weights(sample)
        own_bins, own_weights = np.full(basis.centers.shape[0], -1), np.ones(basis.centers.shape[0])
        own_rows, first = np.empty(0, dtype=np.int64), 0
        if leave_out is not None:
            own_rows, first = leave_out.numbers[sample], sample * len(leave_out.numbers[0])
            own = slice(first, first + len(own_rows))
            own_bins[own] = self.bins.of_numbers(sample, own_rows)
            own_weights[own] = 1.0 if weights is None else weights[own_rows]
        work = BinSums(
            self._readers[sample],
            self.bins,
            sample,
            weights,
            basis,
            own_rows,
            first,
            self.n_jobs if self.is_in_memory else None,
            kernel,
        )
        key = f"moments, {_digest_of_basis(basis)}, {len(own_rows)}, {kernel}"
        sums = self._summed(sample, work, key)
        return BinnedMoments(sums, self.totals[sample], own_bins, own_weights)

    def grams(self, sample: int, basis: GaussianBasis, folds: tuple[Ints, Ints]) -> Grams:
        """Sum phi phi' over the rows of each fold."""
        weights = self.weights(sample)
        work = FoldGrams(self._readers[sample], self.bins, sample, weights, basis, folds[sample])
        key = f"grams, {_digest_of_basis(basis)}, {digest(folds[sample])}"
        sums = self._summed(sample, work, key)
        return Grams(sums, np.bincount(folds[sample], self.totals[sample]).astype(np.float64))

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
        n_jobs = self.n_jobs if self.is_in_memory else None
        known = {name: values for name, values in beside.items() if values is not None}
        work = FunctionSums(
            self._readers[sample], self.bins, sample, function, shape, known, n_jobs
        )
        return self._summed(sample, work, key)

    def weights(self, sample: int) -> Doubles | None:
        """Return the weights of the rows of a sample; None if there are none."""
        return None if self.units.weights is None else self.units.weights[sample]

    def _summed(
        self,
        sample: int,
        work: Callable[[Block], tuple[Span, Doubles]],
        key: str,
    ) -> Doubles:
        """Add the sums of all blocks in order, resuming from a checkpoint."""
        checkpoint = self._checkpoint
        if checkpoint.is_kept:
            key = f"sample {sample}, {key}, {self._digest_of_bins}"
        merged, total = checkpoint.load(key) or (0, None)
        try:
            for _, part in self._passed(sample, work, "Sums over", merged):
                if total is None:  # arrays from other processes may be read-only
                    total = part if part.flags.writeable else part.copy()
                else:
                    np.add(total, part, out=total)
                merged += 1
                checkpoint.save(key, merged, total)
        except NotAllRowsError:
            checkpoint.end()  # it is unknown which rows the saved sums cover
            raise
        if total is None:
            raise ValueError(f"{self._sources[sample].name} has no rows.")
        checkpoint.save(key, merged, total, whole=True)
        return total

    @cached_property
    def _digest_of_bins(self) -> str:
        """Return a hash of the bins of all rows."""
        return digest([self.seed], *(self.bins.assigned or self.bins.n_rows), *self.units.arrays)

    def _passed(self, sample: int, work: Callable[[Block], Any], doing: str, skip: int = 0) -> Any:
        source = self._sources[sample]
        in_order = self._checkpoint.is_kept  # a checkpoint covers the first blocks
        return progress(
            of_all_rows(source.map(work, skip), source, skip, in_order=in_order),
            source.n_rows,
            f"{doing} {SAMPLES[sample]}",
            0 if self.is_in_memory else self.verbose,
            rows_of=_n_rows_of,
            done=sum(source.sizes[:skip]),
        )

    def _gather(self, sample: int, rows: Ints, *, raw: bool = False) -> Any:
        """Return rows by increasing index; with ``raw``, not converted to numbers."""
        work = Gather(self._readers[sample], rows, raw)
        parts = sorted(self._passed(sample, work, "Drawing from"), key=_start_of)
        return stacked_tables([part for _, part in parts if part is not None])

    def _unit_columns(self, sample: int, named: dict[str, Any], every: str | None) -> Columns:
        """Read groups, weights and segments in one pass over their columns."""
        has = self._sources[sample].columns or ()
        if sample == 0 and not set(named["segments"]) <= set(has):
            named = {**named, "segments": ()}  # the segments of the positives are unknown
        wanted = dict.fromkeys(
            name for name in (named["group"], named["weight"], *named["segments"]) if name
        )
        if not wanted:
            return Columns(None, None, None)
        reader = replace(
            self._readers[sample], columns=tuple(wanted), transform=None, n_features=None
        )
        work = UnitColumns(reader, **named, every=every)
        parts = sorted(self._passed(sample, work, "Units of"), key=_start_of)
        return joined_columns([columns for _, columns in parts])

    def drawn_numbers(self, max_rows: int) -> tuple[Ints, Ints]:
        """Return the indices of the rows that ``subsample`` draws."""
        return self._choose(SUBSAMPLE, 0, max_rows), self._choose(SUBSAMPLE, 1, max_rows)

    def _choose(self, purpose: int, sample: int, n_chosen: int) -> Ints:
        """Draw the indices of rows, none of weight 0."""
        if self.units.weights is None:
            return choose(self.seed, purpose, sample, self.sizes[sample], n_chosen)
        rows = np.flatnonzero(self.units.weights[sample])
        return rows[choose(self.seed, purpose, sample, len(rows), n_chosen)]

    def _of_drawn(
        self, numbers: tuple[Ints, Ints], rows: tuple[Rows, Rows], *, keep_bins: bool = True
    ) -> Samples:
        """Return samples of rows in memory, with their units and, by default, bins."""
        units = self.units.take(numbers)
        bins = self.bins.of_drawn(numbers) if keep_bins else None
        if bins is not None and units.weights is not None:
            bins = bins.of_weighted(units.weights)
        return Samples.of_rows(
            *rows,
            self.seed,
            units=units,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            bins=bins,
        )

    def _replaced(self, **changes: Any) -> Samples:
        same = {
            "sources": self._sources,
            "readers": self._readers,
            "seed": self.seed,
            "units": self.units,
            "n_jobs": self.n_jobs,
            "checkpoint": self._checkpoint,
            "verbose": self.verbose,
        }
        return Samples(**{**same, **changes})


def _digest_of_basis(basis: GaussianBasis) -> str:
    """Return a hash of centers and bandwidths, including the positions of sparse values."""
    C = basis.centers
    parts = (C.data, C.indices, C.indptr) if sparse.issparse(C) else (C,)
    return digest(C.shape, *parts, basis.sigmas)


def _content(block: Block) -> Any:
    return block.content


def _start_of(pair: tuple[Span, Any]) -> int:
    return pair[0][0]


def _n_rows_of(pair: tuple[Span, Any]) -> int:
    return pair[0][1]
