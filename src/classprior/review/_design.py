"""How many rows to draw from where: the design with the smallest expected exact width.

Neyman's allocation minimizes a normal variance, which is not what exact limits depend on: a stratum
in which few positives are expected needs many rows to prove it. So designs are compared by the
width of the very limits that will be computed, for results drawn from the probabilities of the
rows. Probabilities from positive and unlabeled rows may be too low, if the known positives are not
typical, so results are also drawn from probabilities with higher odds, and from a population in
which a tenth of the rows that seem negative are positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from classprior._core.messages import percent
from classprior._core.types import Doubles, Ints
from classprior.review._limits import limits_of_count

# Rows in the upper stratum, as multiples of the expected number of positives.
_CUTS = (0.6, 1.0, 1.25, 1.6, 2.5, 4.0)
_TOWARD_NEYMAN = (0.0, 0.5, 1.0)  # allocations: 0 is proportional to the strata
_SIDES = (0.5, 0.7)  # shares of the error probability for the side with more room for error
# Beliefs beside the probabilities: all odds are higher, or positives hide everywhere.
_HIGHER_ODDS = 4.0
_HIDDEN = 0.1
_N_COMPARED = 3  # designs compared by exact limits, besides one stratum
_N_RESULTS = 3  # results drawn for each design and belief
_MANY = 1000  # rows
_FEWEST = 5  # rows drawn from a stratum
_AS_GOOD = 0.95  # of the width of a simple random sample
_RESOLUTION = 1 / 20  # in standard errors: enough to compare designs


@dataclass(frozen=True)
class Design:
    """Strata, from the highest scores to the lowest, and how many rows to draw from each.

    Attributes
    ----------
    sizes, drawn : tuple of int
        Rows of each stratum, and rows to draw from it.
    expected : tuple of float
        Expected number of positives in each stratum, from the probabilities.
    sides : tuple of float
        Shares of the error probability for the lower and for the upper limit.
    """

    sizes: tuple[int, ...]
    drawn: tuple[int, ...]
    expected: tuple[float, ...]
    sides: tuple[float, float] = (0.5, 0.5)

    @property
    def budget(self) -> int:
        """Number of rows to draw."""
        return sum(self.drawn)

    def of_budget(self, budget: int) -> Design:
        """Return the design with another number of rows, divided in the same proportions."""
        shares = np.array(self.drawn) / self.budget
        return replace(self, drawn=allocate(self.sizes, shares, budget))

    def expected_width(self, error: float, n_results: int = _N_RESULTS) -> float:
        """Return the mean width of the limits of the share, over results as expected."""
        rng = np.random.default_rng(0)  # the same random numbers for all designs
        positives = np.clip(np.round(self.expected), 0, self.sizes).astype(np.int64)
        errors = self.sides[0] * error, self.sides[1] * error
        widths = []
        for _ in range(n_results):
            found = rng.hypergeometric(positives, np.array(self.sizes) - positives, self.drawn)
            low, high = limits_of_count(
                self.sizes, self.drawn, found, errors, resolution=_RESOLUTION
            )
            widths.append(high - low)
        return float(np.mean(widths)) / sum(self.sizes)

    def rough_width(self) -> float:
        """Return a rough width of the limits, without computing them."""
        sizes, drawn = np.array(self.sizes), np.array(self.drawn)
        # Two more rows, one of them positive: no stratum is sure to have none.
        share = (drawn * np.array(self.expected) / sizes + 1.0) / (drawn + 2.0)
        left = 1.0 - drawn / sizes
        variance = np.sum((sizes / sizes.sum()) ** 2 * share * (1.0 - share) * left / drawn)
        return float(4.0 * np.sqrt(variance)) + 1e-12


@dataclass(frozen=True)
class Forecast:
    """Expected width of the interval for the share, if the probabilities of the rows are right.

    Attributes
    ----------
    widths : dict of int to float
        Expected width by number of rows: the budget, half and twice of it.
    width : float
        A width to reach.
    n_rows : int
        Number of rows that it takes.
    gain : float
        Expected width relative to that of a simple random sample of the same size.
    """

    widths: dict[int, float]
    width: float
    n_rows: int
    gain: float

    @classmethod
    def of(cls, design: Design, error: float, width: float) -> Forecast:
        """Return the forecast for a design.

        Parameters
        ----------
        design : Design
            The design.
        error : float
            Error probability of the limits.
        width : float
            Width for which to tell the number of rows.

        Returns
        -------
        forecast : Forecast
            The forecast.
        """
        budget, n_rows = design.budget, sum(design.sizes)
        sizes = {n for n in (budget // 2, budget, 2 * budget) if 2 <= n <= n_rows} | {budget}
        widths = {n: design.of_budget(n).expected_width(error) for n in sorted(sizes)}
        plain = Design((n_rows,), (budget,), (float(sum(design.expected)),))
        # Between sizes, the rough width has the right shape; the exact one fixes its scale.
        scale = widths[budget] / design.rough_width()
        low, high = len(design.sizes), n_rows
        while low < high:
            middle = (low + high) // 2
            if scale * design.of_budget(middle).rough_width() > width:
                low = middle + 1
            else:
                high = middle
        return cls(widths, width, low, widths[budget] / max(plain.expected_width(error), 1e-12))

    @property
    def is_plain_as_good(self) -> bool:
        """Whether a simple random sample would do as well."""
        return self.gain > _AS_GOOD

    def to_text(self) -> str:
        """Return the forecast as plain text."""
        widths = ", ".join(f"{percent(w)} for {n:,} rows" for n, w in self.widths.items())
        text = (
            f"Expected width of the interval: {widths}. A width of {percent(self.width)} takes "
            f"about {self.n_rows:,} rows. This is a forecast from estimated probabilities; the "
            "limits themselves do not depend on them."
        )
        if self.is_plain_as_good:
            text += " A simple random sample would be about as good: the scores help little here."
        return text


def choose_design(probabilities: Doubles, budget: int, error: float) -> Design:
    """Return the design with the smallest expected width.

    ``probabilities`` are those of all rows, from the highest score to the lowest. One stratum, a
    simple random sample, is among the designs that are compared.
    """
    plain, compare = _plain(probabilities, budget), _Comparison(probabilities, budget, error)
    divided = sorted(set(_divided(compare.beliefs[0], budget)), key=compare.rough)
    best = min([plain, *divided[:_N_COMPARED]], key=compare.exact)
    if len(best.sizes) == 1:
        return best
    return min([_turned(best, side) for side in _SIDES], key=compare.exact)


def choose_division(probabilities: Doubles, ranks: Ints, error: float) -> Design:
    """Return how to divide a simple random sample, of rows with these ranks, by score."""
    budget, compare = len(ranks), _Comparison(probabilities, len(ranks), error)
    divided = []
    for cut in _cuts(compare.beliefs[0]):
        sizes = cut, len(probabilities) - cut
        above = int(np.sum(ranks <= cut))
        if min(above, budget - above) >= _FEWEST:
            expected = np.diff(compare.beliefs[0][[cut - 1, -1]], prepend=0.0)
            divided.append(Design(sizes, (above, budget - above), tuple(map(float, expected))))
    divided = sorted(divided, key=compare.rough)[:_N_COMPARED]
    return min([_plain(probabilities, budget), *divided], key=compare.exact)


def _plain(probabilities: Doubles, budget: int) -> Design:
    return Design((len(probabilities),), (budget,), (float(probabilities.sum()),))


class _Comparison:
    """Compares designs by their mean width, relative to one stratum, over several beliefs."""

    def __init__(self, probabilities: Doubles, budget: int, error: float) -> None:
        self.beliefs = [np.cumsum(p) for p in _believable(probabilities)]
        self.error = error
        self._exact: dict[Design, float] = {}
        plain = _believed(_plain(probabilities, budget), self.beliefs)
        self._units = [design.rough_width() for design in plain]

    def rough(self, design: Design) -> float:
        """Return the relative rough width."""
        parts = zip(_believed(design, self.beliefs), self._units, strict=True)
        return float(np.mean([part.rough_width() / unit for part, unit in parts]))

    def exact(self, design: Design) -> float:
        """Return the relative width of exact limits."""
        if design not in self._exact:
            self._exact[design] = self._exact_width(design)
        return self._exact[design]

    def _exact_width(self, design: Design) -> float:
        n_results = _N_RESULTS if design.budget <= _MANY else 1  # widths then hardly vary
        parts = zip(_believed(design, self.beliefs), self._units, strict=True)
        return float(
            np.mean([part.expected_width(self.error, n_results) / unit for part, unit in parts])
        )


def _believable(p: Doubles) -> list[Doubles]:
    """Return the probabilities, the same with higher odds, and with positives hidden everywhere."""
    return [p, _HIGHER_ODDS * p / (1.0 + (_HIGHER_ODDS - 1.0) * p), p + _HIDDEN * (1.0 - p)]


def _believed(design: Design, beliefs: Sequence[Doubles]) -> list[Design]:
    """Return the design with the positives expected under each belief, a sum over the rows."""
    ends = np.cumsum(design.sizes) - 1
    each = [np.diff(sums[ends], prepend=0.0) for sums in beliefs]
    return [replace(design, expected=tuple(map(float, positives))) for positives in each]


def _divided(sums: Doubles, budget: int) -> list[Design]:
    """Return designs of two strata, with allocations from proportional to Neyman's."""
    designs = []
    for cut in _cuts(sums) if budget >= 4 * _FEWEST else ():
        sizes = np.array([cut, len(sums) - cut])
        expected = np.diff(sums[[cut - 1, -1]], prepend=0.0)
        share = (expected + 0.02 * sizes) / (1.04 * sizes)
        proportional, neyman = sizes / sizes.sum(), sizes * np.sqrt(share * (1.0 - share))
        for toward in _TOWARD_NEYMAN:
            shares = (1.0 - toward) * proportional + toward * neyman / neyman.sum()
            drawn = allocate(sizes, shares, budget)
            designs.append(Design(tuple(map(int, sizes)), drawn, tuple(map(float, expected))))
    return designs


def _cuts(sums: Doubles) -> list[int]:
    """Return possible numbers of rows in the upper stratum."""
    cuts = {round(factor * sums[-1]) for factor in _CUTS}
    return sorted(cut for cut in cuts if _FEWEST <= cut <= len(sums) - _FEWEST)


def allocate(sizes: Sequence[int] | Ints, shares: Doubles, budget: int) -> tuple[int, ...]:
    """Divide a budget over strata; each gets a few rows, and none more than it has."""
    sizes = np.asarray(sizes)
    fewest = np.minimum(_FEWEST if budget >= _FEWEST * len(sizes) else 0, sizes)
    drawn = np.clip(np.floor(shares * budget).astype(np.int64), fewest, sizes)
    while (missing := budget - int(drawn.sum())) != 0:
        wanted = shares * budget - drawn
        if missing > 0:
            drawn[np.argmax(np.where(drawn < sizes, wanted, -np.inf))] += 1
        else:
            drawn[np.argmin(np.where(drawn > fewest, wanted, np.inf))] -= 1
    return tuple(map(int, drawn))


def _turned(design: Design, side: float) -> Design:
    """Give one side that share of the error probability: the upper one, if positives are few."""
    is_few = sum(design.expected) <= sum(design.sizes) / 2
    return replace(design, sides=(1.0 - side, side) if is_few else (side, 1.0 - side))
