r"""Exact confidence limits for the number of positives in a finite, stratified population.

Stratum k has :math:`N_k` rows, :math:`M_k` of them positive. Of :math:`n_k` rows drawn without
replacement, :math:`X_k` are positive, which has a hypergeometric distribution. Results are ordered
by a statistic U, and a number m of positives is too high if every way to distribute it over the
strata makes a U as low as the observed u improbable,

.. math:: \sup_{M_1 + \dots + M_K = m} P_{M_1, \dots, M_K}(U \le u) \le \alpha;

the upper limit is the largest m that is not (Buehler, 1957; Wendell and Schmee, 1996). It holds for
any order of the results, and is short if they are ordered by an approximate upper limit (Kabaila
and Lloyd, 2003), here by that of Agresti and Coull (1998): with z the normal quantile of
:math:`\alpha`,

.. math:: U = \sum_k N_k p_k + z \Bigl(\sum_k N_k^2 \Bigl(1 - \frac{n_k}{N_k}\Bigr)
    \frac{p_k (1 - p_k)}{n_k + 2c}\Bigr)^{1/2}, \quad
    p_k = \frac{X_k + c}{n_k + 2c}, \quad c = \frac{z^2}{4}.

This c is the smallest for which U grows with each :math:`X_k`. Ordered by the usual estimate
:math:`\sum_k N_k X_k / n_k`, limits are 5% to 35% wider.

The supremum is taken over :math:`M_k` within exact limits of each stratum alone, which cost a small
part of :math:`\alpha` (Berger and Boos, 1994): otherwise it is attained at distributions that the
rows themselves rule out. The limits do not depend on how good the approximation in U is, so they
also hold if a stratum shows no positive. With one stratum and equal error probabilities, both
limits are found together (Blaker, 2000), which makes them narrower than those of Clopper and
Pearson; then either limit alone may be wrong with the error probability of both.

The probability falls in each :math:`M_k`, so its value at the lower corner of a box of
distributions bounds the whole box. Boxes are halved until all are ruled out, or a distribution is
found that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import bdtr, betaincinv, ndtri

from classprior._core.types import Doubles, Ints

# Share of the error probability spent on limits of each stratum alone.
_BOX_SHARE = 0.01
# Boxes and bisection stop at this fraction of a standard error, on the safe side.
RESOLUTION = 1 / 50
_FIRST_BOXES = 64
_AT_ONCE = 65  # values of M in one step of a search
_MOST_STEPS = 2000  # of a lattice over all rows
_MOST_TERMS = 2_000_000  # probabilities in memory at once
_ROUNDING = 1e-9


def limits_of_count(
    sizes: ArrayLike,
    drawn: ArrayLike,
    found: ArrayLike,
    errors: tuple[float, float],
    *,
    unsure: ArrayLike = 0,
    resolution: float = RESOLUTION,
) -> tuple[int, int]:
    """Return the confidence limits of the number of positives.

    Parameters
    ----------
    sizes, drawn, found : array-like of int of shape (n_strata,)
        Rows of each stratum, rows that were drawn from it, and positives among these.
    errors : pair of float
        Error probabilities of the lower and of the upper limit. With one stratum and equal ones,
        only their sum holds: either limit alone may be wrong so often.
    unsure : array-like of int of shape (n_strata,), optional
        Drawn rows that may be positive or negative: the limits allow for both.
    resolution : float, optional
        How far, in standard errors, a limit may lie on the safe side to save time; 0 is exact.
    """
    sizes, drawn, found = (np.asarray(a, dtype=np.int64) for a in (sizes, drawn, found))
    unsure = np.broadcast_to(np.asarray(unsure, dtype=np.int64), found.shape)
    is_two_sided = errors[0] == errors[1] > 0.0 and not unsure.any()
    if len(sizes) == 1 and drawn[0] > 0 and is_two_sided:
        return _together(int(sizes[0]), int(drawn[0]), int(found[0]), sum(errors))
    # The upper limit of the negatives is the lower limit of the positives.
    negative = drawn - found - unsure
    low = sizes.sum() - upper_limit(sizes, drawn, negative, errors[0], unsure, resolution)
    return int(low), upper_limit(sizes, drawn, found, errors[1], unsure, resolution)


def approximate_widths(
    sizes: Ints, drawn: Ints, found: Ints, errors: tuple[float, float]
) -> Doubles:
    """Return about how far limits are apart, for each row of ``found``: cheap, but not exact."""
    most = float(sizes.sum())
    high = _Order(sizes, drawn, errors[1])(found).clip(max=most)
    negative = _Order(sizes, drawn, errors[0])(drawn - found).clip(max=most)
    return high + negative - most


def upper_limit(
    sizes: Ints,
    drawn: Ints,
    found: Ints,
    error: float,
    unsure: Ints | int = 0,
    resolution: float = RESOLUTION,
) -> int:
    """Return the upper confidence limit of the number of positives in all strata."""
    total, is_drawn = int(sizes.sum()), drawn > 0
    if not is_drawn.any() or error <= 0.0:
        return total - int((drawn - found - unsure).sum())
    if is_drawn.sum() == 1:
        N, n, x = (int(a[is_drawn][0]) for a in (sizes, drawn, found + unsure))
        return total - N + upper_limit_alone(N, n, x, error)
    search = _Search(sizes, drawn, found, error, unsure, resolution)
    low, high = int(search.fewest.sum()), int(search.most.sum())
    return int(search.unknown) + _largest(search.is_possible, low, high, int(search.slack))


def is_ruled_out(
    sizes: Ints,
    drawn: Ints,
    found: Ints,
    error: float,
    weights: Doubles,
    total: float,
    unsure: Ints | int = 0,
) -> bool:
    """Return whether a weighted total of the positives of all strata above a number is ruled out.

    All distributions of the positives with such a total are, with this probability of error.
    """
    search = _Search(sizes, drawn, found, error, unsure, RESOLUTION, weights)
    above = total * (1.0 + _ROUNDING) + _ROUNDING - float(search.unknown)
    return above >= 0.0 and not search.is_possible(above)


def limits_of_population(
    sizes: Ints, drawn: Ints, found: Ints, errors: tuple[float, float], unsure: Ints
) -> tuple[float, float]:
    """Return limits of the share of positives in the population of which all rows are a sample."""
    low = 1.0 - _upper_share(sizes, drawn, drawn - found, errors[0])
    return low, _upper_share(sizes, drawn, found + unsure, errors[1])


def _upper_share(sizes: Ints, drawn: Ints, found: Ints, error: float) -> float:
    r"""Return the upper confidence limit of the share of positives in the population.

    The total M is binomial, and given M, positives fall into the strata by some unknown law. So
    with results in the same order as above, a share :math:`\pi` is too high if

    .. math:: \sum_m P(M = m) \sup_{M_1 + \dots + M_K = m} P_{M_1, \dots, M_K}(U \le u) \le \alpha.

    With one stratum, rows that are drawn are a sample of the population themselves. With two, the
    supremum is bounded on a lattice of :math:`M_1` and :math:`M_2`.
    """
    if error <= 0.0 or not drawn.any():
        return 1.0
    if len(sizes) == 1:
        n, x = int(drawn[0]), int(found[0])
        return float(betaincinv(x + 1.0, n - x, 1.0 - error)) if x < n else 1.0
    order = np.argsort(drawn, kind="stable")
    sizes, drawn, found = sizes[order], drawn[order], found[order]
    total, tail = int(sizes.sum()), _Tail(sizes, drawn, found, error, np.ones(2))
    share = (found + 1.0) / (drawn + 2.0)
    spread = np.sqrt(np.sum(sizes**2 * share * (1.0 - share) / np.maximum(drawn, 1)))
    step = max(1, int(RESOLUTION * spread), total // _MOST_STEPS)
    first = np.arange(0, sizes[0] + 1, step)
    # If the first stratum has from i to i + 1 steps of a total of j, the second has at least this.
    second = np.maximum(0, np.arange(1 - step, sizes[1] + 1, step))
    one = hypergeometric(int(sizes[0]), int(drawn[0]), first)[:, tail.outcomes[:, 0]]
    other = np.cumsum(hypergeometric(int(sizes[1]), int(drawn[1]), second), axis=1)
    p = one @ other[:, tail.most].T
    i, j = np.indices(p.shape)
    highest = np.zeros(len(first) + len(second) - 1)
    np.maximum.at(highest, i + j, p)
    highest = np.maximum.accumulate(highest[::-1])[::-1]
    ends = np.minimum(step * np.arange(1, len(highest)) - 1, total)  # of steps, but the last

    def excess(prior: float) -> float:
        return float(highest[-1] - error - np.diff(highest) @ bdtr(ends, total, prior))

    return 1.0 if excess(1.0) > 0.0 else float(brentq(excess, 0.0, 1.0, xtol=1e-12))


def upper_limit_alone(size: int, drawn: int, found: int, error: float) -> int:
    """Return the largest M with P(X <= found) > error, for a single stratum."""
    low, high = found, size - (drawn - found)  # low is possible
    while low < high:
        M = np.unique(np.linspace(low, high, _AT_ONCE).astype(np.int64))
        is_possible = hypergeometric(size, drawn, M)[:, : found + 1].sum(axis=1) > error
        last = int(np.flatnonzero(is_possible)[-1])
        low, high = int(M[last]), high if last == len(M) - 1 else int(M[last + 1]) - 1
    return low


def _together(size: int, drawn: int, found: int, error: float) -> tuple[int, int]:
    """Return both limits for a single stratum, of which Blaker's p-value is above the error."""
    low = size - _blaker(size, drawn, drawn - found, error)
    return low, _blaker(size, drawn, found, error)


def _blaker(size: int, drawn: int, found: int, error: float) -> int:
    r"""Return the largest M whose p-value is above the error.

    For M above the estimate, the p-value is :math:`P(X \le x) + P(X \ge x^*)`, where x* is the
    smallest number for which the second probability does not exceed the first. Between a and b, it
    is at most the first probability at a and the second at b, with x* of a.
    """
    first = upper_limit_alone(size, drawn, found, error)
    last = upper_limit_alone(size, drawn, found, error / 2.0)
    cuts = np.unique(np.linspace(first, last + 1, _AT_ONCE).astype(np.int64))
    a, b = cuts[:-1], cuts[1:] - 1
    p = hypergeometric(size, drawn, a)
    below = p[:, : found + 1].sum(axis=1)
    # P(X >= x) for x = 0, ..., drawn + 1, the last of which is 0
    above = np.hstack([np.cumsum(p[:, ::-1], axis=1)[:, ::-1], np.zeros((len(a), 1))])
    start = np.argmax(above <= below[:, None] * (1.0 + _ROUNDING), axis=1)
    q = hypergeometric(size, drawn, b)
    beyond = np.sum(q * (np.arange(drawn + 1) >= start[:, None]), axis=1)
    is_possible = below + beyond > error
    is_possible[0] = True  # at a, the first probability alone exceeds the error
    return int(b[np.flatnonzero(is_possible)[-1]])


def _largest(is_possible: Callable[[int], bool], low: int, high: int, slack: int) -> int:
    """Return the largest possible number, or at most ``slack`` more; ``low`` is possible."""
    while high - low > slack:
        middle = (low + high + 1) // 2
        if is_possible(middle):
            low = middle
        else:
            high = middle - 1
    return high


class _Search:
    """Looks for distributions of the positives over the strata that are not ruled out.

    Totals are weighted, and leave out ``unknown``, that of strata without drawn rows.
    """

    def __init__(
        self,
        sizes: Ints,
        drawn: Ints,
        found: Ints,
        error: float,
        unsure: Ints | int,
        resolution: float,
        weights: Doubles | None = None,
    ) -> None:
        weights = np.ones(len(sizes), dtype=np.int64) if weights is None else weights
        # Nothing is known of strata without drawn rows; the largest sample comes last, see _Tail.
        order = np.argsort(drawn, kind="stable")
        order = order[drawn[order] > 0]
        self.unknown = weights @ sizes - weights[order] @ sizes[order]
        sizes, drawn, weights = sizes[order], drawn[order], weights[order]
        found, most_found = found[order], (found + unsure)[order]
        own_error = _BOX_SHARE * error / (2 * max(1, len(order)))
        self.error, self.weights = error * (1.0 - _BOX_SHARE), weights
        # Whatever unsure rows are, each stratum's own limits lie between these.
        strata = list(zip(*(a.tolist() for a in (sizes, drawn, found, most_found)), strict=True))
        self.fewest = np.array(
            [N - upper_limit_alone(N, n, n - x, own_error) for N, n, x, _ in strata], dtype=np.int64
        )
        self.most = np.array(
            [upper_limit_alone(N, n, x, own_error) for N, n, _, x in strata], dtype=np.int64
        )
        share = (most_found + 1.0) / (drawn + 2.0)
        self.slack = resolution * np.sqrt(
            np.sum(((weights * sizes) ** 2 / drawn) * share * (1.0 - share))
        )
        if len(order):
            self._tail = _Tail(sizes, drawn, most_found, self.error, weights)
            self._boxes = _grid(self.fewest[:-1], self.most[:-1])

    def is_possible(self, total: float) -> bool:
        """Return whether a distribution with at least this total is not ruled out."""
        if total > self.weights @ self.most:
            return False
        low, high = self._boxes  # of all strata but the last
        *weights, last = self.weights
        while len(low):
            least = np.ceil((total - high @ weights) / last).astype(np.int64)
            corner = np.column_stack([low, np.maximum(self.fewest[-1], least)])
            is_there = corner[:, -1] <= self.most[-1]
            low, high, corner = low[is_there], high[is_there], corner[is_there]
            is_kept = self._tail(corner) > self.error
            if np.any(is_kept & (total - corner @ self.weights <= self.slack)):
                return True
            low, high = _halved(low[is_kept], high[is_kept])
        return False


def _grid(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Divide a box into smaller ones; return their lowest and highest corners."""
    n_cuts = 1 + round(_FIRST_BOXES ** (1 / max(1, len(low))))
    cuts = [
        np.unique(np.linspace(a, b + 1, n_cuts).astype(np.int64))
        for a, b in zip(low, high, strict=True)
    ]
    return _product([cut[:-1] for cut in cuts]), _product([cut[1:] - 1 for cut in cuts])


def _product(axes: Sequence[Ints]) -> Ints:
    """Return all combinations of the values of several axes, one per row."""
    rows = np.zeros((1, 0), dtype=np.int64)
    for axis in axes:
        more = np.tile(axis, len(rows))[:, None]
        rows = np.hstack([np.repeat(rows, len(axis), axis=0), more])
    return rows


def _halved(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Halve each box along its longest side."""
    if not len(low):
        return low, high
    rows = np.arange(len(low))
    side = np.argmax(high - low, axis=1)
    middle = (low[rows, side] + high[rows, side]) // 2
    end, start = high.copy(), low.copy()
    end[rows, side], start[rows, side] = middle, middle + 1
    return np.vstack([low, start]), np.vstack([end, high])


class _Tail:
    """The probability that U is at most what was observed, given the positives per stratum."""

    def __init__(
        self, sizes: Ints, drawn: Ints, found: Ints, error: float, weights: Doubles | Ints
    ) -> None:
        self.sizes, self.drawn = sizes, drawn
        order = _Order(sizes, drawn, error, weights)
        observed = order(found) * (1.0 + _ROUNDING)
        outcomes = _product([np.arange(n + 1) for n in drawn[:-1]])
        # What the last stratum may show at most, given what the others show.
        most, above = np.full(len(outcomes), -1), np.full(len(outcomes), drawn[-1] + 1)
        while np.any(above - most > 1):
            middle = np.maximum(0, (most + above) // 2)
            is_low = order(np.column_stack([outcomes, middle])) <= observed
            most, above = np.where(is_low, middle, most), np.where(is_low, above, middle)
        self.outcomes, self.most = outcomes[most >= 0], most[most >= 0]

    def __call__(self, positives: Ints) -> Doubles:
        """Return the probability for each row of ``positives``, of shape (n, n_strata)."""
        at_once = max(1, _MOST_TERMS // max(1, len(self.most)))
        parts = [positives[i : i + at_once] for i in range(0, len(positives), at_once)]
        return np.concatenate([self._of(part) for part in parts]) if parts else np.zeros(0)

    def _of(self, positives: Ints) -> Doubles:
        *first, last = (
            hypergeometric(size, n, M)
            for size, n, M in zip(self.sizes, self.drawn, positives.T, strict=True)
        )
        terms = np.cumsum(last, axis=1)[:, self.most]
        for probabilities, x in zip(first, self.outcomes.T, strict=True):
            terms = terms * probabilities[:, x]
        return terms.sum(axis=1)


class _Order:
    """The statistic U by which results are ordered, an approximate upper limit."""

    def __init__(
        self, sizes: Ints, drawn: Ints, error: float, weights: Doubles | Ints | int = 1
    ) -> None:
        self.z = max(0.0, -float(ndtri(error)))
        self.added = self.z**2 / 4.0
        self.totals, self.n = weights * sizes, drawn + 2.0 * self.added
        self.squares = self.totals**2 * (1.0 - drawn / sizes) / self.n

    def __call__(self, found: Ints) -> Doubles:
        """Return U for each row of ``found``, of shape (..., n_strata)."""
        share = (found + self.added) / self.n
        return share @ self.totals + self.z * np.sqrt((share * (1.0 - share)) @ self.squares)


def hypergeometric(size: int, drawn: int, positives: Ints) -> Doubles:
    """Return the probabilities of 0 to ``drawn`` positives, of shape (n, drawn + 1)."""
    x, M = np.arange(drawn + 1), np.asarray(positives)[:, None]
    # p(x + 1) / p(x) = (M - x) (n - x) / ((x + 1) (N - M - n + x + 1)), where both are possible
    more = (M - x[:-1]) * (drawn - x[:-1])
    less = (x[:-1] + 1) * (size - M - drawn + x[:-1] + 1)
    is_step = (more > 0) & (less > 0)
    steps = np.log(np.where(is_step, more, 1) / np.where(is_step, less, 1))
    logs = np.hstack([np.zeros((len(M), 1)), np.cumsum(steps, axis=1)])
    logs[(x > M) | (drawn - x > size - M)] = -np.inf
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
