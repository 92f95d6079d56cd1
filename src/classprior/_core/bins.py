"""Random assignment of rows to bins, on which folds and resamples are based.

Each row belongs to one of about 100 bins, which depends only on the seed and on the row's unit: its
index in its sample, its key, or its group. Sums are kept per bin; folds are unions of bins, and a
resample is a vector of weights on bins. The result is therefore the same in memory, in blocks, on
several threads and on several machines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from classprior._core.keys import chances, hashed_numbers
from classprior._core.types import Doubles, Ints, Keys

N_BINS = 100
CENTERS, BANDWIDTHS, BINS, FOLDS, WEIGHTS, SUBSAMPLE, CLASSIFIERS, HALVES, KEPT, GROUPS = range(10)
SHUFFLES, TEST = 10, 11
#: Up to this many rows are dealt to bins in the order of a hash, so that bins have equal sizes.
#: More rows are assigned by the hash alone, so that nobody needs a list of all of them.
MOST_RANKED = 100_000
_ROWS_AT_ONCE = 2**20


def generator(seed: int, purpose: int, number: int = 0) -> np.random.Generator:
    """Return the generator for one purpose and one ``number`` (of a sample or a round)."""
    return np.random.Generator(_stream(seed, purpose, number))


def choose(seed: int, purpose: int, sample: int, n_rows: int, n_chosen: int) -> Ints:
    """Draw row indices without replacement, sorted; all rows if there are fewer."""
    if n_chosen >= n_rows:
        return np.arange(n_rows)
    drawn = generator(seed, purpose, sample).choice(n_rows, n_chosen, replace=False, shuffle=False)
    return np.sort(drawn)


def deal(seed: int, sample: int, start: int, n_rows: int, size: int, n_bins: int) -> Ints:
    """Return the bins of consecutive rows of a sample of some size.

    A row's bin depends on a hash of its index, never on its place in a run of rows, so that the
    order of the rows in a file does not stratify the bins.
    """
    if size <= MOST_RANKED:
        return _dealt_by_rank(seed, sample, size, n_bins)[start : start + n_rows]
    keys = hashed_numbers(np.arange(start, start + n_rows))
    return bins_by_hash(keys, seed, sample, n_bins)


@lru_cache(8)
def _dealt_by_rank(seed: int, sample: int, size: int, n_bins: int) -> Ints:
    """Return the bins of all rows of a sample by the ranks of the hashes of their indices."""
    bins = ranked_bins(hashed_numbers(np.arange(size)), seed, sample, n_bins)
    bins.flags.writeable = False
    return bins


def ranked_bins(keys: Keys, seed: int, sample: int, n_bins: int) -> Ints:
    """Return the bins of rows by the ranks of the hashes of their keys, all of equal size."""
    bins = np.empty(len(keys), dtype=np.int64)
    bins[np.argsort(chances(keys, seed, BINS, sample), kind="stable")] = (
        np.arange(len(keys)) % n_bins
    )
    return bins


class KeyedRows(NamedTuple):
    """What must be known of the rows of a sample to assign them to bins by their keys."""

    keys: Keys  # of some rows in increasing order, of all rows if these are at most MOST_RANKED
    numbers: Ints  # the indices of these rows in the sample
    n_rows: int
    n_by_hash: Ints  # number of rows in each bin, if they are assigned by the hash alone


def bins_by_hash(keys: Keys, seed: int, sample: int, n_bins: int = N_BINS) -> Ints:
    """Return the bins of rows by the hashes of their keys alone, of nearly equal size."""
    return (chances(keys, seed, BINS, sample) % np.uint64(n_bins)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of two samples, and the folds and resamples made of them."""

    seed: int
    n_rows: tuple[Ints, Ints]  # rows per bin of each sample
    assigned: tuple[Ints, Ints] | None = None  # bin of each row, if set by groups or given folds
    are_shared: bool = False  # whether the samples share bins, since groups may occur in both
    given_folds: tuple[Ints, Ints] | None = None  # fold of each bin, if given by the user
    # For rows with keys: the keys of all rows in increasing order and their bins, or None if the
    # bins of a sample depend on the hash alone.
    by_key: tuple[tuple[Keys, Ints] | None, tuple[Keys, Ints] | None] | None = None

    @classmethod
    def dealt(cls, seed: int, sizes: tuple[int, int], n_bins: int = N_BINS) -> Bins:
        """Assign the rows of each sample by index; with few rows, each row is a bin."""

        def rows_in_bins(sample: int) -> Ints:
            size = sizes[sample]
            n = min(n_bins, size)
            if size <= MOST_RANKED:
                return np.bincount(np.arange(size) % n, minlength=n)
            counts = np.zeros(n, dtype=np.int64)
            for start in range(0, size, _ROWS_AT_ONCE):
                rows = min(_ROWS_AT_ONCE, size - start)
                counts += np.bincount(deal(seed, sample, start, rows, size, n), minlength=n)
            return counts

        return cls(seed, (rows_in_bins(0), rows_in_bins(1)))

    @classmethod
    def dealt_by_key(cls, seed: int, each: tuple[KeyedRows, KeyedRows]) -> Bins:
        """Assign the rows of each sample by their keys; with few rows, each row is a bin."""
        counts: list[Ints] = []
        by_key: list[tuple[Keys, Ints] | None] = []
        for sample, rows in enumerate(each):
            if rows.n_rows > MOST_RANKED:
                counts.append(rows.n_by_hash)
                by_key.append(None)
                continue
            n = min(N_BINS, rows.n_rows)
            bins = ranked_bins(rows.keys, seed, sample, n)
            counts.append(np.bincount(bins, minlength=n))
            by_key.append((rows.keys, bins))
        return cls(seed, (counts[0], counts[1]), by_key=(by_key[0], by_key[1]))

    @classmethod
    def of_groups(cls, seed: int, groups: tuple[Any, Any], n_bins: int = N_BINS) -> Bins:
        """Assign whole groups in random order, jointly for both samples."""
        ranks = _ranked(seed, *groups)
        n = min(n_bins, 1 + max(int(part.max()) for part in ranks))
        assigned = ranks[0] % n, ranks[1] % n
        counts = np.bincount(assigned[0], minlength=n), np.bincount(assigned[1], minlength=n)
        return cls(seed, counts, assigned, are_shared=True)

    @classmethod
    def within_folds(
        cls,
        seed: int,
        folds: tuple[Ints, Ints],
        groups: tuple[Any, Any] | None = None,
        n_bins: int = N_BINS,
        keys: tuple[Keys, Keys] | None = None,
    ) -> Bins:
        """Assign the rows or groups of each given fold to separate bins; rows by key if given."""
        n_folds = 1 + max(int(part.max()) for part in folds)
        bins_per_fold = max(1, n_bins // n_folds)
        if groups is None:
            of_rows = keys or tuple(hashed_numbers(np.arange(len(part))) for part in folds)
            units = tuple(
                _numbers_within(part, chances(of_rows[sample], seed, BINS, sample)) % bins_per_fold
                for sample, part in enumerate(folds)
            )
        else:
            ranks = _ranked(seed, *groups)
            fold_of_group = np.empty(1 + max(int(part.max()) for part in ranks), dtype=np.int64)
            fold_of_group[ranks[0]], fold_of_group[ranks[1]] = folds
            numbers = _numbers_within(fold_of_group) % bins_per_fold
            units = numbers[ranks[0]], numbers[ranks[1]]
        assigned = tuple(
            fold * bins_per_fold + unit for fold, unit in zip(folds, units, strict=True)
        )
        n = n_folds * bins_per_fold
        counts = tuple(np.bincount(part, minlength=n) for part in assigned)
        fold_of_bin = np.arange(n) // bins_per_fold
        return cls(
            seed,
            (counts[0], counts[1]),
            (assigned[0], assigned[1]),
            groups is not None,
            (fold_of_bin, fold_of_bin),
        )

    @property
    def n_counted(self) -> tuple[int, int]:
        """Number of rows of each sample, without those of weight 0."""
        return int(self.n_rows[0].sum()), int(self.n_rows[1].sum())

    @property
    def n_units(self) -> tuple[int, int]:
        """Number of nonempty bins of each sample."""
        return int(np.count_nonzero(self.n_rows[0])), int(np.count_nonzero(self.n_rows[1]))

    def of_rows(self, sample: int, start: int, n_rows: int, keys: Keys | None = None) -> Ints:
        """Return the bins of consecutive rows of a sample, given their keys if they have any."""
        if self.assigned is not None:
            return self.assigned[sample][start : start + n_rows]
        if keys is not None:
            return self.of_keys(sample, keys)
        counts = self.n_rows[sample]
        return deal(self.seed, sample, start, n_rows, int(counts.sum()), len(counts))

    def of_keys(self, sample: int, keys: Keys) -> Ints:
        """Return the bins of rows, given their keys."""
        assert self.by_key is not None
        known = self.by_key[sample]
        if known is None:
            return bins_by_hash(keys, self.seed, sample)
        places = np.searchsorted(known[0], keys)  # the bins of rows that do not count do not matter
        return known[1][np.minimum(places, len(known[0]) - 1)]

    def of_numbers(self, sample: int, rows: Ints, keys: Keys | None = None) -> Ints:
        """Return the bins of rows, given their indices, and their keys if they have any."""
        if self.assigned is not None:
            return self.assigned[sample][rows]
        if keys is not None:
            return self.of_keys(sample, keys)
        size, n_bins = int(self.n_rows[sample].sum()), len(self.n_rows[sample])
        if size <= MOST_RANKED:
            return _dealt_by_rank(self.seed, sample, size, n_bins)[rows]
        return bins_by_hash(hashed_numbers(rows), self.seed, sample, n_bins)

    def among(self, counted: tuple[Ints, Ints], sizes: tuple[int, int]) -> Bins:
        """Return bins of more rows; those in the bins now are the ``counted`` ones.

        The other rows are assigned to the first bin, but are not counted in it.
        """
        first, second = (np.zeros(size, dtype=np.int64) for size in sizes)
        for sample, part in enumerate((first, second)):
            part[counted[sample]] = self.of_rows(sample, 0, len(counted[sample]))
        return replace(self, assigned=(first, second))

    def of_drawn(
        self,
        numbers: tuple[Ints, Ints],
        weights: tuple[Doubles, Doubles] | None = None,
        keys: tuple[Keys, Keys] | None = None,
    ) -> Bins:
        """Return the bins of some rows, given their indices and keys; the numbers of the bins stay.

        Rows of weight 0 are not counted in them.
        """
        first, second = (
            self.of_numbers(sample, rows, None if keys is None else keys[sample])
            for sample, rows in enumerate(numbers)
        )
        counts = [
            np.bincount(
                part if weights is None else part[weights[sample] > 0.0],
                minlength=len(self.n_rows[sample]),
            )
            for sample, part in enumerate((first, second))
        ]
        return replace(self, n_rows=(counts[0], counts[1]), assigned=(first, second))

    def folds(self, n_folds: int, number: int = 0) -> tuple[Ints, Ints]:
        """Return the fold of each bin of both samples; they differ for each ``number``."""
        if self.given_folds is not None:
            return self.given_folds
        if not self.are_shared:
            first, second = (
                _dealt_in_order(self._shuffled(2 * number + sample, counts), n_folds)
                for sample, counts in enumerate(self.n_rows)
            )
            return first, second
        # Bins with only positives come first, bins with only unlabeled rows last. Assigned in this
        # order, each fold gets rows of both samples if there are enough bins of each.
        kind = (self.n_rows[1] > 0).astype(int) - (self.n_rows[0] > 0)
        chance = generator(self.seed, FOLDS, 2 * number).random(len(kind))
        folds = _dealt_in_order(np.lexsort((chance, kind)), n_folds)
        return folds, folds

    def weights(self, n_resamples: int) -> tuple[Doubles, Doubles]:
        """Return bootstrap weights of the bins, two arrays of shape (n_resamples, n_bins)."""
        if not self.are_shared:
            first, second = (
                self._drawn(generator(self.seed, WEIGHTS, sample), counts, n_resamples)
                for sample, counts in enumerate(self.n_rows)
            )
            return first, second
        rng = generator(self.seed, WEIGHTS)
        kept = np.empty((0, len(self.n_rows[0])))
        while len(kept) < n_resamples:  # reject resamples without rows of both samples
            drawn = self._drawn(rng, self.n_rows[0] + self.n_rows[1], n_resamples)
            both = (drawn @ self.n_rows[0] > 0) & (drawn @ self.n_rows[1] > 0)
            kept = np.concatenate([kept, drawn[both]])
        return kept[:n_resamples], kept[:n_resamples]

    def half(self, number: int) -> tuple[Ints, Ints]:
        """Return a random half of the bins of each sample; the same half for shared bins.

        The half has rows of each sample in at least two bins, or two given folds, if possible.
        """
        if self.are_shared:
            both = self._half(2 * number, self.n_rows)
            return both, both
        first, second = (
            self._half(2 * number + sample, [counts]) for sample, counts in enumerate(self.n_rows)
        )
        return first, second

    def seed_of_round(self, number: int) -> int:
        """Return the seed of the classifiers in one round of cross-fitting."""
        return int(generator(self.seed, CLASSIFIERS, number).integers(2**31))

    def _half(self, number: int, counts: Sequence[Ints]) -> Ints:
        """Take every other bin in random order, stratified by fold and kind of bin."""
        chance = generator(self.seed, HALVES, number).random(len(counts[0]))
        kind = (counts[-1] > 0).astype(int) - (counts[0] > 0)
        strata = np.zeros(len(kind)) if self.given_folds is None else self.given_folds[0]
        order = np.lexsort((chance, kind, strata))
        order = order[np.sum(counts, axis=0)[order] > 0]
        chosen = order[::2]
        parts = np.arange(len(kind)) if self.given_folds is None else strata
        for of_sample in counts:
            having = order[of_sample[order] > 0]
            if len(np.unique(parts[np.intersect1d(chosen, having)])) < 2:
                _, first = np.unique(parts[having], return_index=True)
                chosen = np.union1d(chosen, having[np.sort(first)[:2]])
        return np.sort(chosen)

    def _shuffled(self, number: int, counts: Ints) -> Ints:
        """Return the bins in random order, the empty ones last."""
        order = generator(self.seed, FOLDS, number).permutation(len(counts))
        return order[np.argsort(counts[order] == 0, kind="stable")]

    @staticmethod
    def _drawn(rng: np.random.Generator, counts: Ints, n_resamples: int) -> Doubles:
        used = counts > 0
        n_used = int(used.sum())
        weights = np.zeros((n_resamples, len(counts)))
        weights[:, used] = rng.multinomial(n_used, np.full(n_used, 1.0 / n_used), n_resamples)
        return weights


def group_keys(texts: Sequence[str]) -> Keys:
    """Return a 64-bit hash of the group name of each row."""
    keys = {
        text: int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        for text in set(texts)
    }
    return np.fromiter(map(keys.__getitem__, texts), dtype=np.uint64, count=len(texts))


def _ranked(seed: int, positive: Any, unlabeled: Any) -> tuple[Ints, Ints]:
    """Return the random rank of each row's group; groups with positives come first."""
    keys, numbers = np.unique(np.concatenate([positive, unlabeled]), return_inverse=True)
    n = len(positive)
    has_positives = np.zeros(len(keys), dtype=bool)
    has_positives[numbers[:n]] = True
    rank = np.empty(len(keys), dtype=np.int64)
    chance = generator(seed, BINS).permutation(len(keys))
    rank[np.lexsort((chance, ~has_positives))] = np.arange(len(keys))
    return rank[numbers[:n]], rank[numbers[n:]]


def _numbers_within(folds: Ints, chance: Keys | None = None) -> Ints:
    """Return the index of each row within its fold, or its place in a random order."""
    order = np.argsort(folds, kind="stable") if chance is None else np.lexsort((chance, folds))
    counts = np.bincount(folds)
    numbers = np.empty(len(folds), dtype=np.int64)
    numbers[order] = np.arange(len(folds)) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers


def _dealt_in_order(order: Ints, n_folds: int) -> Ints:
    folds = np.empty(len(order), dtype=np.int64)
    folds[order] = np.arange(len(order)) % n_folds
    return folds


def _stream(seed: int, purpose: int, number: int) -> np.random.Philox:
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=(purpose, number)))
