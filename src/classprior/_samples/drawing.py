"""Which rows are drawn, by their indices or by the hashes of their keys.

What tells rows apart is either their index in the sample or their key, a 64-bit hash. Both are
listed in increasing order, which is the order of drawn rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from classprior._core.bins import (
    MOST_RANKED,
    N_BINS,
    SUBSAMPLE,
    KeyedRows,
    bins_by_hash,
    choose,
    generator,
)
from classprior._core.keys import as_uniform, chances, places_in, repeated
from classprior._core.types import Bools, Doubles, Ids, Ints, Keys
from classprior._samples.checkpoint import digest
from classprior._samples.sample import Reader, Sample
from classprior._tables.columns import text_of
from classprior._tables.keys import repeated_key
from classprior._tables.tables import Block, Span, as_frame

_SURPLUS = 6.0  # standard deviations by which more rows are asked for than needed


@dataclass(frozen=True, eq=False)
class Draws:
    """Random choices among the rows of a sample, which depend on the seed and on each row only."""

    sample: Sample
    number: int  # of the sample
    seed: int
    counted: Ints | None = None  # indices of the rows that count; None if all do

    def choose(self, purpose: int, n_chosen: int) -> Ids:
        """Draw rows that count; return what tells them apart, their indices or keys."""
        if self.sample.has_key:
            keys = self.keyed(n_chosen).keys
            order = np.argsort(chances(keys, self.seed, purpose, self.number))
            return np.sort(keys[order[:n_chosen]])
        n_rows = self.sample.n_rows if self.counted is None else len(self.counted)
        rows = choose(self.seed, purpose, self.number, n_rows, n_chosen)
        return rows if self.counted is None else self.counted[rows]

    def numbers_of(self, chosen: Ids) -> Ints:
        """Return the indices of chosen rows."""
        if not self.sample.has_key:
            return chosen.astype(np.int64, copy=False)
        if self.sample.rows is not None:  # in memory, in the order of their keys
            return places_in(keys_of(self.sample), chosen)
        if len(chosen) == self.sample.n_rows:
            return np.argsort(keys_of(self.sample))
        known = self.keyed(len(chosen))
        return known.numbers[places_in(known.keys, chosen)]

    def chances(self, purpose: int, rows: Ints) -> Doubles:
        """Return a random number between 0 and 1 for each of some rows."""
        if not self.sample.has_key:
            return generator(self.seed, purpose, self.number).random(len(rows))
        keys = keys_of(self.sample)[rows]
        return as_uniform(chances(keys, self.seed, purpose, self.number))

    def keyed(self, n_wanted: int = 0) -> KeyedRows:
        """Return the rows with the smallest hashes, ``n_wanted`` or more if there are as many."""
        n_rows = self.sample.n_rows if self.counted is None else len(self.counted)
        n_wanted = min(n_rows, max(n_wanted, MOST_RANKED))
        counted = None if self.counted is None else digest(self.counted)
        name = self.number, self.seed, n_wanted, counted
        if name not in self.sample.known_keys:
            self.sample.known_keys[name] = self._keyed(n_wanted, n_rows)
        return self.sample.known_keys[name]

    def _keyed(self, n_wanted: int, n_rows: int) -> KeyedRows:
        """Find them in one pass over the keys, in which few rows are returned."""
        is_counted = None
        if self.counted is not None:
            is_counted = np.zeros(self.sample.n_rows, dtype=bool)
            is_counted[self.counted] = True
        n_asked = n_wanted + _SURPLUS * np.sqrt(n_wanted)
        while True:
            share = min(1.0, n_asked / max(1, n_rows))
            limit = np.uint64(min(2**64 - 1, int(share * 2.0**64)))
            work = _SmallestHashes(self.sample.reader, self.number, self.seed, limit, is_counted)
            keys, numbers, counts = zip(*self.sample.collect(work, "Keys of"), strict=True)
            all_keys, all_numbers = np.concatenate(keys), np.concatenate(numbers)
            if len(all_keys) >= n_wanted:
                break
            n_asked *= 2.0
        _check_distinct(self.sample, all_keys, all_numbers)
        first = np.argsort(chances(all_keys, self.seed, SUBSAMPLE, self.number))[:n_wanted]
        first = first[np.argsort(all_keys[first])]
        return KeyedRows(all_keys[first], all_numbers[first], n_rows, np.sum(counts, axis=0))


def keys_of(sample: Sample) -> Keys:
    """Return the keys of all rows, in the order of the rows; raise if one repeats."""
    if "all" not in sample.known_keys:
        parts = sample.collect(_AllKeys(sample.reader), "Keys of")
        keys = np.concatenate([np.empty(0, dtype=np.uint64), *parts])
        _check_distinct(sample, keys, np.arange(len(keys)))
        sample.known_keys["all"] = keys
    return sample.known_keys["all"]


@dataclass(frozen=True, eq=False)
class _AllKeys:
    """Returns the keys of a block."""

    reader: Reader

    def __call__(self, block: Block) -> tuple[Span, Keys]:
        parts = [keys for _, keys in self.reader.keys(block)]
        return block.span, np.concatenate([np.empty(0, dtype=np.uint64), *parts])


@dataclass(frozen=True, eq=False)
class _SmallestHashes:
    """Returns the keys and numbers of rows whose hash is at most a limit, and counts all bins."""

    reader: Reader
    number: int
    seed: int
    limit: np.uint64
    is_counted: Bools | None

    def __call__(self, block: Block) -> tuple[Span, tuple[Keys, Ints, Ints]]:
        keys, numbers = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.int64)]
        counts = np.zeros(N_BINS, dtype=np.int64)
        for start, all_keys in self.reader.keys(block):
            places = np.arange(len(all_keys))
            if self.is_counted is not None:
                places = np.flatnonzero(self.is_counted[start : start + len(all_keys)])
            of_rows = all_keys[places]
            bins = bins_by_hash(of_rows, self.seed, self.number)
            counts += np.bincount(bins, minlength=N_BINS)
            is_small = chances(of_rows, self.seed, SUBSAMPLE, self.number) <= self.limit
            keys.append(of_rows[is_small])
            numbers.append(start + places[is_small])
        return block.span, (np.concatenate(keys), np.concatenate(numbers), counts)


def _check_distinct(sample: Sample, keys: Keys, numbers: Ints) -> None:
    """Raise if two rows have the same key."""
    order = np.argsort(numbers)
    if (twice := repeated(keys[order])) is not None:
        first, second = (int(numbers[order[place]]) for place in twice)
        raise repeated_key(sample.source.label, (first, second), _value_text(sample, first))


def _value_text(sample: Sample, row: int) -> str:
    """Return the key of a row as text, if it is in columns."""
    names = sample.reader.key
    if not isinstance(names, tuple):
        return "the same value"
    reader = replace(sample.reader, columns=names, key=None)
    found = replace(sample, reader=reader).gather(np.array([row]), raw=True)
    frame = as_frame(found, names)
    return " and ".join(f"{text_of(frame[name].iloc[0])!r} in column {name!r}" for name in names)
