"""Counts of rows by bin and by score, on which the estimate, the interval and the bound rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._scores.crossfit import Scores
from classprior._scores.tails import count_scores


class Scoring(Protocol):
    """Scores rows of a sample, given their bins."""

    def scores(self, sample: int, X: Rows, bins: Ints) -> Scores:
        """Return the scores of rows by name."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Scorers of rows, and the thresholds at which each of their scores is counted."""

    scorers: Scoring
    thresholds: dict[str, Doubles]  # increasing, by name of the score
    is_for_bound: bool = False  # count independent units, or rows kept by their weight

    @property
    def width(self) -> int:
        """Number of counts in each cell."""
        return sum(len(values) + 1 for values in self.thresholds.values())

    def by_score(self, counts: Doubles) -> list[Doubles]:
        """Split counts into a table for each score, of shape (..., n_thresholds + 1)."""
        ends = np.cumsum([len(values) + 1 for values in self.thresholds.values()])
        return np.split(counts, ends[:-1], axis=-1)


class Round(NamedTuple):
    """One round of cross-fitting."""

    scores: Scores  # of the rows that the models were drawn from, positives first
    tally: Tally


@dataclass(frozen=True, eq=False)
class CountRows:
    """Counts rows of a sample for several tallies.

    The counts of a tally have shape (n_segments, n_bins, width) or, for the bound, (n_units, width)
    if there are independent units of several rows.
    """

    tallies: Sequence[Tally]
    sample: int
    n_bins: int
    n_segments: int = 1
    n_units: int | None = None

    @property
    def shape(self) -> tuple[int]:
        """Shape of the counts of all tallies, one after another."""
        return (sum(tally.width * self._n_cells(tally) for tally in self.tallies),)

    def __call__(self, X: Rows, bins: Ints, **beside: Any) -> Doubles:
        """Score rows and count them."""
        scores = [tally.scorers.scores(self.sample, X, bins) for tally in self.tallies]
        return self.of_scores(scores, bins, **beside)

    def of_scores(
        self,
        scores: Sequence[Scores],
        bins: Ints,
        *,
        segments: Ints | None = None,
        weights: Doubles | None = None,
        kept: Bools | None = None,
        units: Ints | None = None,
    ) -> Doubles:
        """Count rows with known scores, given the segment and the weight of each row.

        For the bound, only rows that are ``kept`` count if rows are independent; otherwise they
        count by unit, and rows with the unit -1 do not count.
        """
        cells = bins if segments is None else segments * self.n_bins + bins
        tables = []
        for tally, of_tally in zip(self.tallies, scores, strict=True):
            rows: Ints | slice = slice(None)
            w, where = weights, cells
            if tally.is_for_bound and units is not None:
                rows, where = np.flatnonzero(units >= 0), units
            elif tally.is_for_bound and kept is not None:
                rows, w = np.flatnonzero(kept), None
            n_cells = self._n_cells(tally)
            for name, thresholds in tally.thresholds.items():
                counted = None if w is None else w[rows]
                tables.append(
                    count_scores(thresholds, of_tally[name][rows], where[rows], n_cells, counted)
                )
        return np.concatenate([table.ravel() for table in tables])

    def by_tally(self, counts: Doubles) -> list[Doubles]:
        """Split the counts by tally."""
        found, start = [], 0
        for tally in self.tallies:
            n_cells = self._n_cells(tally)
            parts = []
            for values in tally.thresholds.values():
                end = start + n_cells * (len(values) + 1)
                parts.append(counts[start:end].reshape(n_cells, len(values) + 1))
                start = end
            table = np.concatenate(parts, axis=1)
            of_units = tally.is_for_bound and self.n_units is not None
            found.append(table if of_units else table.reshape(self.n_segments, self.n_bins, -1))
        return found

    def _n_cells(self, tally: Tally) -> int:
        if tally.is_for_bound and self.n_units is not None:
            return self.n_units
        return self.n_segments * self.n_bins
