"""Which rows are centres, in which fold and how often resampled: functions of the row's number.

A row is known by its number in its sample, in the order of files and of rows in a file. What falls
to it depends on that number and on the seed, not on blocks, partitions or workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from classprior._basis import Ints, Singles

CENTERS, BANDWIDTHS, FOLDS, WEIGHTS, SUBSAMPLE = range(5)
_WORDS_PER_STEP = 4  # Philox makes four words of 64 bits from one value of its counter
_WEIGHTS_PER_STEP = 4 * _WORDS_PER_STEP  # a weight takes 16 bits


@dataclass(frozen=True)
class Roles:
    """What chance gives to every row of both samples.

    Parameters
    ----------
    seed : int
        Of everything.
    """

    seed: int

    def choose(self, purpose: int, sample: int, n_rows: int, n_chosen: int) -> Ints:
        """Return increasing numbers of rows drawn uniformly without replacement, all if fewer."""
        if n_chosen >= n_rows:
            return np.arange(n_rows)
        generator = np.random.Generator(self._stream(purpose, sample))
        return np.sort(generator.choice(n_rows, n_chosen, replace=False, shuffle=False))

    def folds(self, sample: int, start: int, n_rows: int, n_folds: int) -> Ints:
        """Return the folds of consecutive rows.

        Of every run of ``n_folds`` rows each goes to another fold, from a random one on, so the
        sizes of folds differ by one at most.
        """
        rows = np.arange(start, start + n_rows)
        runs = rows // n_folds
        if n_rows == 0:
            return rows
        words = self._words(FOLDS, sample, int(runs[0]), int(runs[-1] - runs[0]) + 1)
        first = (words % np.uint64(n_folds)).astype(np.int64)
        return (rows + first[runs - runs[0]]) % n_folds

    def weights(self, sample: int, start: int, n_rows: int, n_resamples: int) -> Singles:
        """Return Poisson weights of mean 1 of consecutive rows, of shape (n_resamples, n_rows)."""
        steps = -(-n_resamples // _WEIGHTS_PER_STEP)  # so that every row begins a step
        words = self._words(
            WEIGHTS, sample, start * steps * _WORDS_PER_STEP, n_rows * steps * _WORDS_PER_STEP
        )
        bits = words.view(np.uint16).reshape(n_rows, steps * _WEIGHTS_PER_STEP)
        return np.ascontiguousarray(_poisson_of_bits()[bits[:, :n_resamples]].T)

    def _words(self, purpose: int, sample: int, start: int, count: int) -> NDArray[np.uint64]:
        stream = self._stream(purpose, sample)
        stream.advance(start // _WORDS_PER_STEP)
        skipped = start % _WORDS_PER_STEP
        return stream.random_raw(skipped + count)[skipped:]

    def _stream(self, purpose: int, sample: int) -> np.random.Philox:
        return np.random.Philox(np.random.SeedSequence(self.seed, spawn_key=(purpose, sample)))


@cache
def _poisson_of_bits() -> Singles:
    """Return the Poisson variable for each of the 65,536 equally likely values of 16 bits."""
    return stats.poisson.ppf((np.arange(2**16) + 0.5) / 2**16, 1.0).astype(np.float32)
