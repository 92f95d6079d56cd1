"""Rows that are equal: a hash of each row, and known positives found again in the other sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from classprior._core.keys import copies_before, mixed
from classprior._core.types import Bools, Doubles, Ids, Ints, Keys, Rows
from classprior._samples.sample import Reader
from classprior._samples.samples import Samples
from classprior._tables.tables import Block, Span

_VALUES_AT_ONCE = 2**20


class KnownAgain(NamedTuple):
    """The distinct rows of the known positives, and how often each occurs in both samples."""

    known: Ints
    found: Ints
    # Pairs of a known positive and an unlabeled row that equals it, of shape (n, 2). A row is in as
    # many pairs as known positives have its values, or as unlabeled rows if these are fewer. Rows
    # that occur seldom come first.
    pairs: Ints
    n_unlabeled: int


def find_known(samples: Samples) -> KnownAgain:
    """Look for the known positives in all unlabeled rows, without the rows of weight 0."""
    positive, unlabeled = samples.each
    counted = samples.units.counted
    of_positives = np.concatenate(positive.collect(_KeysOf(positive.reader), "Keys of"))
    numbers = np.arange(len(of_positives)) if counted is None else counted[0]
    keys, first, known = np.unique(of_positives[numbers], return_index=True, return_counts=True)
    is_counted = None
    if counted is not None:
        is_counted = np.zeros(samples.sizes[1], dtype=bool)
        is_counted[counted[1]] = True
    find = _FindKeys(unlabeled.reader, keys, known, is_counted)
    parts = unlabeled.collect(find, "Looking for known positives in")
    found = np.zeros(len(keys), dtype=np.int64)
    for part in parts:
        found += np.bincount(part.places, part.counts, len(keys)).astype(np.int64)
    of_rows, rows, ids = (np.concatenate([part[i] for part in parts]) for i in (2, 3, 4))
    few = _first_of_each(of_rows, ids, known)
    of_rows, rows = of_rows[few], rows[few]
    order = np.lexsort((ids[few], found[of_rows]))
    first_rows = samples.given_numbers(0, numbers[first][of_rows])
    pairs = np.column_stack([first_rows, samples.given_numbers(1, rows)])[order]
    return KnownAgain(known, found, pairs, samples.bins.n_counted[1])


def without_known(raw: Samples, encoder: Any) -> Samples:
    """Return samples without the unlabeled rows that repeat known positives in all used columns.

    Where several rows are equal, as many are left out as there are such known positives.
    """
    for sample in raw.each:
        sample.source.keep_order()
    samples = raw.encoded(encoder)
    if encoder.kinds_ is not None:  # encoded rows may be equal although rare levels differ
        samples = raw.read_through(encoder.for_matching(), np.empty((1, len(encoder.kinds_))))
    rows = find_known(samples).pairs[:, 1]
    return replace(raw, units=raw.units.without_known(rows, raw.sizes), drawn_bins=None)


class _Found(NamedTuple):
    """Which of the keys occur in a block and how often, and the first rows with each."""

    places: Ints
    counts: Ints
    of_rows: Ints  # place of the key of each of the rows
    rows: Ints
    ids: Ids  # what tells the rows apart, their indices or keys


@dataclass(frozen=True, eq=False)
class _KeysOf:
    """Returns the keys of the rows of a block."""

    reader: Reader

    def __call__(self, block: Block) -> tuple[Span, Keys]:
        return block.span, np.concatenate([row_keys(part.rows) for part in self.reader(block)])


@dataclass(frozen=True, eq=False)
class _FindKeys:
    """Looks for sorted keys in a block; returns at most ``most`` rows with each."""

    reader: Reader
    keys: Keys
    most: Ints
    is_counted: Bools | None

    def __call__(self, block: Block) -> tuple[Span, _Found]:
        of_rows, rows, ids = ([np.empty(0, dtype=np.int64)] for _ in range(3))
        if self.reader.key is not None:
            ids = [np.empty(0, dtype=np.uint64)]
        for start, X, ids_of_part in self.reader(block):
            keys = row_keys(X)
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            equal = self.keys[places] == keys
            if self.is_counted is not None:
                equal &= self.is_counted[start : start + len(keys)]
            of_rows.append(places[equal])
            rows.append(start + np.flatnonzero(equal))
            ids.append(rows[-1] if ids_of_part is None else ids_of_part[equal])
        all_places, all_rows, all_ids = map(np.concatenate, (of_rows, rows, ids))
        places, counts = np.unique(all_places, return_counts=True)
        few = _first_of_each(all_places, all_ids, self.most)
        return block.span, _Found(places, counts, all_places[few], all_rows[few], all_ids[few])


def _first_of_each(of_rows: Ints, ids: Ids, most: Ints) -> Bools:
    """Return which rows are the first with their values, as many as allowed, in order of ids."""
    order = np.argsort(ids, kind="stable")
    is_first = np.empty(len(ids), dtype=bool)
    is_first[order] = copies_before(of_rows[order]) < most[of_rows[order]]
    return is_first


def row_keys(X: Rows) -> Keys:
    """Return a 64-bit hash of each row: the sum of hashes of its nonzero values and columns.

    Sparse and dense rows have the same keys, and -0.0 is 0.
    """
    of_columns = mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64))
    if sparse.issparse(X):
        values = _mixed_values(X.data, of_columns[X.indices])
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])
        return total[X.indptr[1:]] - total[X.indptr[:-1]]  # modulo 2^64
    step = max(1, _VALUES_AT_ONCE // X.shape[1])
    parts = [
        _mixed_values(X[start : start + step], of_columns).sum(axis=1, dtype=np.uint64)
        for start in range(0, len(X), step)
    ]
    return np.concatenate([np.empty(0, dtype=np.uint64), *parts])


def column_keys(X: Doubles, column: int) -> Keys:
    """Return what a column adds to the key of each row."""
    return _mixed_values(X[:, column], mixed(np.array([column + 1], dtype=np.uint64)))


def _mixed_values(values: Rows, of_columns: Keys) -> Keys:
    values = np.ascontiguousarray(values, dtype=np.float64)
    return np.where(values == 0.0, np.uint64(0), mixed(values.view(np.uint64) ^ of_columns))
