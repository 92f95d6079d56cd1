"""Counts of rows by bin and by score, on which the estimate, the interval and the bound rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from classprior._core.types import Doubles, Ints, Rows
from classprior._scores.crossfit import Scorers, Scores
from classprior._scores.tails import count_scores


@dataclass(frozen=True, eq=False)
class Tally:
    """Scorers of rows, and the thresholds at which each of their scores is counted."""

    scorers: Scorers
    thresholds: dict[str, Doubles]  # increasing, by name of the score

    @property
    def width(self) -> int:
        """Number of counts in each bin."""
        return sum(len(values) + 1 for values in self.thresholds.values())

    def of_scores(self, scores: Scores, bins: Ints, n_bins: int) -> Doubles:
        """Count rows with known scores; shape (n_bins, width)."""
        tables = [
            count_scores(values, scores[name], bins, n_bins)
            for name, values in self.thresholds.items()
        ]
        return np.concatenate(tables, axis=1).astype(np.float64)

    def of_rows(self, sample: int, X: Rows, bins: Ints, n_bins: int) -> Doubles:
        """Score rows of a sample and count them; shape (n_bins, width)."""
        return self.of_scores(self.scorers.scores(sample, X, bins), bins, n_bins)

    def by_score(self, counts: Doubles) -> list[Doubles]:
        """Split counts into a table for each score, of shape (n_bins, n_thresholds + 1)."""
        ends = np.cumsum([len(values) + 1 for values in self.thresholds.values()])
        return np.split(counts, ends[:-1], axis=1)


class Round(NamedTuple):
    """One round of cross-fitting."""

    scores: Scores  # of the rows that the models were drawn from, positives first
    tally: Tally


@dataclass(frozen=True, eq=False)
class CountRows:
    """Counts rows of a sample for several tallies, side by side."""

    tallies: Sequence[Tally]
    sample: int
    n_bins: int

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the counts."""
        return self.n_bins, sum(tally.width for tally in self.tallies)

    def __call__(self, X: Rows, bins: Ints) -> Doubles:
        return np.concatenate(
            [tally.of_rows(self.sample, X, bins, self.n_bins) for tally in self.tallies], axis=1
        )

    def by_tally(self, counts: Doubles) -> list[Doubles]:
        """Split the counts by tally."""
        return np.split(counts, np.cumsum([tally.width for tally in self.tallies])[:-1], axis=1)
