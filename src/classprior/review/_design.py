"""How many rows to draw from where: the design with the smallest expected exact width.

Neyman's allocation minimizes a normal variance, which is not what exact limits depend on: a stratum
in which few positives are expected needs many rows to prove it. So designs are compared by the
width of the very limits that will be computed, for results drawn from the probabilities of the
rows. Probabilities from positive and unlabeled rows may be too low, if the known positives are not
typical, so results are also drawn from probabilities with much higher odds, and from a population
in which a tenth of the rows that seem negative are positive. A simple random sample, which cannot
go wrong, is preferred unless strata promise more than a little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from classprior._core.messages import percent
from classprior._core.types import Doubles, Ints
from classprior.review._limits import approximate_widths, limits_of_count

# Rows in the upper stratum, as multiples of the expected number of positives.
_CUTS = (0.6, 1.0, 1.25, 1.6, 2.5, 4.0)
_TOWARD_NEYMAN = (0.0, 0.5, 1.0)  # allocations: 0 is proportional to the strata
_SIDES = (0.5, 0.7)  # shares of the error probability for the side with more room for error
# Beliefs beside the probabilities: all odds are higher, or positives hide everywhere.
_HIGHER_ODDS = 16.0
_HIDDEN = 0.1
_N_COMPARED = 3  # designs compared by exact limits, besides one stratum
_N_APPROXIMATE = 200  # results for which limits are approximated
_MANY = 5000  # rows, for which exact limits take long
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

    def expected_width(self, error: float) -> float:
        """Return the mean width of the limits of the share, over results as expected.

        Exact limits are computed for one result, a few if that is quick, or none of very many rows;
        how much the width varies over results is taken from approximate ones.
        """
        if self.budget > _MANY:
            return self.approximate_width(error)
        found, errors = self._results(), self._errors(error)
        widths = self._approximate(found, error)
        n_exact = 1 if len(self.sizes) > 1 else 5
        limits = [
            limits_of_count(self.sizes, self.drawn, x, errors, resolution=_RESOLUTION)
            for x in found[:n_exact]
        ]
        exact = sum(high - low for low, high in limits)
        return float(widths.mean() * exact / widths[:n_exact].sum()) / sum(self.sizes)

    def approximate_width(self, error: float) -> float:
        """Return about the same, without exact limits."""
        return float(self._approximate(self._results(), error).mean()) / sum(self.sizes)

    def largest_width(self, error: float) -> float:
        """Return about the largest expected width: with positives as half of each stratum."""
        return replace(self, expected=tuple(n / 2.0 for n in self.sizes)).expected_width(error)

    def _errors(self, error: float) -> tuple[float, float]:
        return self.sides[0] * error, self.sides[1] * error

    def _results(self) -> Ints:
        """Draw numbers of positives among the rows of each stratum, as the design expects them."""
        rng = np.random.default_rng(0)  # the same random numbers for all designs
        positives = np.clip(np.round(self.expected), 0, self.sizes).astype(np.int64)
        shape = _N_APPROXIMATE, len(self.sizes)
        return rng.hypergeometric(positives, np.array(self.sizes) - positives, self.drawn, shape)

    def _approximate(self, found: Ints, error: float) -> Doubles:
        sizes, drawn = np.array(self.sizes), np.array(self.drawn)
        widths = approximate_widths(sizes, drawn, found, self._errors(error))
        return widths.clip(min=1e-9)  # 0 if all rows are drawn


@dataclass(frozen=True)
class Forecast:
    """Expected width of the interval for the share.

    Attributes
    ----------
    widths : dict of int to float
        Expected width by number of rows, if the probabilities of the rows are right: for the
        budget, half and twice of it; if rows were added, all rows, those before, and twice all.
    largest_widths : dict of int to float
        About the largest expected width by number of rows, however wrong the probabilities are.
    width : float
        A width to reach.
    n_rows : int
        Number of rows that it takes.
    gain : float
        Expected width relative to that of a simple random sample of the same size.
    """

    widths: dict[int, float]
    largest_widths: dict[int, float]
    width: float
    n_rows: int
    gain: float

    @classmethod
    def of(cls, design: Design, looks: Sequence[tuple[int, float]], width: float) -> Forecast:
        """Return the forecast for a design.

        Parameters
        ----------
        design : Design
            The design.
        looks : sequence of pair
            Numbers of rows after which limits are computed, and their error probabilities. The last
            is that of all rows. Earlier ones are those before rows were added.
        width : float
            Width for which to tell the number of rows.

        Returns
        -------
        forecast : Forecast
            The forecast.
        """
        *earlier, (budget, error) = looks
        n_rows = sum(design.sizes)
        before = [(n, design.of_budget(n).expected_width(e)) for n, e in earlier]
        first = max(n for n, _ in earlier) if earlier else budget // 2
        widths = {}
        for n in sorted({n for n in (first, 2 * budget) if 2 <= n <= n_rows} | {budget}):
            known = [w for size, w in before if size <= n]
            if not earlier or n >= budget:
                known.append(design.of_budget(n).expected_width(error))
            widths[n] = min(known)
        plain = Design((n_rows,), (budget,), (float(sum(design.expected)),))
        unit = max(plain.expected_width(max(e for _, e in looks)), 1e-12)
        largest = {n: max(w, design.of_budget(n).largest_width(error)) for n, w in widths.items()}
        return cls(widths, largest, width, _rows_for(design, error, width), widths[budget] / unit)

    @property
    def is_plain_as_good(self) -> bool:
        """Whether a simple random sample would do as well."""
        return self.gain > _AS_GOOD

    def to_text(self) -> str:
        """Return the forecast as plain text."""
        widths = ", ".join(
            f"{percent(width)} to {percent(self.largest_widths[n])} for {n:,} rows"
            for n, width in self.widths.items()
        )
        text = (
            f"Expected width of the interval: {widths}. A width of {percent(self.width)} takes "
            f"at least about {self.n_rows:,} rows. With biased labels, widths are up to about the "
            "larger numbers. The smaller ones are a forecast from estimated probabilities; the "
            "limits themselves do not depend on them."
        )
        first, *others = self.widths.values()
        if others and others[0] >= first:
            text += (
                " The rows that were added hardly make it narrower, because little error "
                "probability was left for them: add more, or keep a larger reserve next time."
            )
        if self.is_plain_as_good:
            text += " A simple random sample would be about as good: the scores help little here."
        return text


def _rows_for(design: Design, error: float, width: float) -> int:
    """Return how many rows it takes for a width."""
    # Between sizes, the approximate width has the right shape; the exact one fixes its scale.
    scale = design.expected_width(error) / design.approximate_width(error)
    low, high = len(design.sizes), sum(design.sizes)
    while low < high:
        middle = (low + high) // 2
        if scale * design.of_budget(middle).approximate_width(error) > width:
            low = middle + 1
        else:
            high = middle
    return low


def choose_design(probabilities: Doubles, budget: int, error: float) -> Design:
    """Return the design with the smallest expected width.

    ``probabilities`` are those of all rows, from the highest score to the lowest. One stratum, a
    simple random sample, is among the designs that are compared.
    """
    compare = _Comparison(probabilities, error)
    return compare.best(compare.divided(budget, _TOWARD_NEYMAN, _SIDES), budget)


def choose_division(probabilities: Doubles, ranks: Ints, error: float) -> Design:
    """Return how to divide a simple random sample, of rows with these ranks, by score.

    The strata do not depend on the ranks, since within strata that do, the rows would not be a
    simple random sample.
    """
    budget, compare = len(ranks), _Comparison(probabilities, error)
    divided = compare.divided(budget, (0.0,), (0.5,))
    design = compare.best([d for d in divided if min(d.drawn) >= 2 * _FEWEST], budget)
    strata = np.searchsorted(np.cumsum(design.sizes), ranks)
    drawn = np.bincount(strata, minlength=len(design.sizes))
    return replace(design, drawn=tuple(map(int, drawn)))


class _Comparison:
    """Compares designs by the geometric mean of their expected widths over several beliefs."""

    def __init__(self, probabilities: Doubles, error: float) -> None:
        self.error, n = error, len(probabilities)
        totals = [p.sum() for p in _believable(probabilities)]
        cuts = {round(factor * total) for factor in _CUTS for total in totals[:2]}
        self.cuts = sorted(cut for cut in cuts if _FEWEST <= cut <= n - _FEWEST)
        self.ends = np.array([*self.cuts, n])
        # Positives up to each end, under each belief
        self.sums = [
            np.cumsum(np.add.reduceat(p, [0, *self.cuts])) for p in _believable(probabilities)
        ]

    def best(self, divided: Sequence[Design], budget: int) -> Design:
        """Return one stratum, or the best of the divided designs if it is clearly better."""
        likely = sorted(divided, key=self._approximate)[:_N_COMPARED]
        plain = Design((int(self.ends[-1]),), (budget,), (float(self.sums[0][-1]),))
        widths = [self._exact(plain) * _AS_GOOD, *map(self._exact, likely)]
        return [plain, *likely][int(np.argmin(widths))]

    def divided(
        self, budget: int, toward_neyman: Sequence[float], sides: Sequence[float]
    ) -> list[Design]:
        """Return designs of two strata."""
        n, sums, designs = int(self.ends[-1]), self.sums[0], []
        for place, cut in enumerate(self.cuts if budget >= 4 * _FEWEST else ()):
            sizes, expected = np.array([cut, n - cut]), np.diff(sums[[place, -1]], prepend=0.0)
            drawn = {allocate(sizes, s, budget) for s in _shares(sizes, expected, toward_neyman)}
            designs += [
                _turned(Design((cut, n - cut), each, tuple(map(float, expected))), side)
                for each in sorted(drawn)
                for side in sides
            ]
        return designs

    def _approximate(self, design: Design) -> float:
        widths = [part.approximate_width(self.error) for part in self._believed(design)]
        return float(np.exp(np.mean(np.log(widths))))

    def _exact(self, design: Design) -> float:
        widths = [part.expected_width(self.error) + 1e-12 for part in self._believed(design)]
        return float(np.exp(np.mean(np.log(widths))))

    def _believed(self, design: Design) -> Iterator[Design]:
        """Yield the design with the positives expected under each belief."""
        places = np.searchsorted(self.ends, np.cumsum(design.sizes))
        for sums in self.sums:
            expected = np.diff(sums[places], prepend=0.0)
            yield replace(design, expected=tuple(map(float, expected)))


def _believable(p: Doubles) -> Iterator[Doubles]:
    """Yield the probabilities, the same with higher odds, and with positives hidden everywhere."""
    yield p
    yield _HIGHER_ODDS * p / (1.0 + (_HIGHER_ODDS - 1.0) * p)
    yield p + _HIDDEN * (1.0 - p)


def _shares(sizes: Ints, expected: Doubles, toward_neyman: Sequence[float]) -> Iterator[Doubles]:
    """Yield shares of the budget for each stratum, from proportional to Neyman's."""
    share = (expected + 0.02 * sizes) / (1.04 * sizes)
    proportional, neyman = sizes / sizes.sum(), sizes * np.sqrt(share * (1.0 - share))
    for toward in toward_neyman:
        yield (1.0 - toward) * proportional + toward * neyman / neyman.sum()


def allocate(sizes: Sequence[int] | Ints, shares: Doubles, budget: int) -> tuple[int, ...]:
    """Divide a budget over strata; each gets a few rows, and none more than it has."""
    sizes = np.asarray(sizes)
    fewest = np.minimum(_FEWEST if budget >= _FEWEST * len(sizes) else 0, sizes)
    drawn = np.clip(np.floor(shares * budget).astype(np.int64), fewest, sizes)
    while (missing := budget - int(drawn.sum())) != 0:
        wanted = shares * budget - drawn
        if missing > 0:
            has_room = drawn < sizes
            # The last one with room, which may be millions of rows, gets all that is missing.
            n = 1 if has_room.sum() > 1 else missing
            drawn[np.argmax(np.where(has_room, wanted, -np.inf))] += n
        else:
            drawn[np.argmin(np.where(drawn > fewest, wanted, np.inf))] -= 1
    return tuple(map(int, drawn))


def _turned(design: Design, side: float) -> Design:
    """Give one side that share of the error probability: the upper one, if positives are few."""
    is_few = sum(design.expected) <= sum(design.sizes) / 2
    return replace(design, sides=(1.0 - side, side) if is_few else (side, 1.0 - side))
