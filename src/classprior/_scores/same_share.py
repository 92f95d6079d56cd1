r"""A test of whether the share of positives is the same in all segments.

The hypothesis: *the share is the same in all segments; the negatives may differ between them.*

Let U of the m unlabeled rows of a segment, and a share S of its positives, score at least as high
as a threshold. If the tail contains positives only, U is binomial with probability :math:`\pi S`,
whatever the negatives of the segment are. So under the hypothesis, the counts U differ no more
than binomial counts do, and the statistic is Pearson's,

.. math:: X^2 = \sum_s \frac{(U_s - \hat\pi S_s m_s)^2}{V_s}, \qquad
          V_s = \varphi\,\hat\pi S_s (1 - \hat\pi S_s)\,m_s
                + (\hat\pi m_s)^2\,\frac{S_s (1 - S_s)}{n_s},

where :math:`\hat\pi` makes the statistic smallest. If segments are compared with all positives, S
is the same number in all of them: its noise cancels, and the second term is left out. The
variance is that under the hypothesis, so a segment without positives does not seem precise. For
large counts the statistic is chi-squared, with one degree of freedom less than there are segments;
for small counts, its distribution is simulated.

The dispersion :math:`\varphi` is 1 for independent rows of equal weight. For groups and weights it
is estimated from the counts of bins within segments, and the statistic is compared with an F
distribution instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from classprior._core.types import Doubles, Ints

#: For each round, score and segment, the counts of both samples by bin and threshold.
SegmentCounts = Sequence[Sequence[Sequence[tuple[Doubles, Doubles]]]]
# Tails, as shares of the positives. Larger tails than the first are hardly ever pure.
_TAILS = 0.5 ** np.arange(1.0, 6.25, 0.25)
_QUARTER = 4  # index of the tail with a quarter of the positives
_MANY = 50.0  # rows in the tail of a segment, on average, that allow for a smaller tail
_FEW = 5.0  # expected rows below which the distribution is simulated
_N_DRAWS = 4_999


class SegmentTail(NamedTuple):
    """Rows in a tail, for each segment."""

    unlabeled: Doubles  # in the tail
    m: Doubles  # in total
    positive: Doubles  # in the tail
    n: Doubles  # in total


class Dispersion(NamedTuple):
    """Variance of counts relative to that of binomial counts, and its degrees of freedom."""

    factor: float = 1.0
    freedom: float = np.inf


def sums_of_bins(pairs: Sequence[tuple[Doubles, Doubles]]) -> tuple[Doubles, Doubles]:
    """Return the counts of both samples, of shape (n_segments, n_thresholds + 1)."""
    positive, unlabeled = (np.stack([pair[i].sum(axis=0) for pair in pairs]) for i in (0, 1))
    return positive, unlabeled


def purest_tail(
    counts: SegmentCounts, *, own_positives: bool, rows_are_alike: bool
) -> tuple[SegmentTail, Dispersion]:
    """Return the mean counts over rounds in the tail that looks purest, and their dispersion."""
    rounds = [_purest_of_round(of_round, own_positives) for of_round in counts]
    unlabeled, positive = (np.mean(part, axis=0) for part in zip(*rounds, strict=True))
    m = np.stack([u.sum(axis=1) for _, u in counts[0][0]])
    n = np.array([p.sum() for p, _ in counts[0][0]])
    spread = Dispersion() if rows_are_alike else dispersion(unlabeled, m)
    return SegmentTail(unlabeled.sum(axis=1), m.sum(axis=1), positive, n), spread


def _purest_of_round(
    of_round: Sequence[Sequence[tuple[Doubles, Doubles]]], own_positives: bool
) -> tuple[Doubles, Doubles]:
    """Return the unlabeled rows by segment and bin, and the positives by segment, in the tail.

    The tail is chosen by the counts of all segments together: that with the smallest upper limit of
    the ratio, as in the estimate. So the choice cannot favor segments that differ.
    """
    found = []
    for pairs in of_round:
        sums = sums_of_bins(pairs)
        ends = tail_ends(sums[0])
        limit, tail = _smallest_upper_limit(*sums, ends, own_positives)
        found.append((limit, pairs, ends[:, tail] + 1))
    _, pairs, ends = min(found, key=lambda part: part[0])
    unlabeled = [u[:, :end].sum(axis=1) for (_, u), end in zip(pairs, ends, strict=True)]
    positive = [p[:, :end].sum() for (p, _), end in zip(pairs, ends, strict=True)]
    return np.stack(unlabeled), np.array(positive)


def tail_ends(positive: Doubles) -> Ints:
    """Return, by segment, the last threshold of each tail: the first with so many positives."""
    shares = np.cumsum(positive, axis=1) / positive.sum(axis=1, keepdims=True)
    reached = shares[:, :, None] >= _TAILS * (1.0 - 1e-9)
    return np.argmax(reached, axis=1)


def _smallest_upper_limit(
    p: Doubles, u: Doubles, ends: Ints, own_positives: bool
) -> tuple[float, int]:
    """Return the smallest upper limit of the log-ratio over tails of all segments, and its tail."""
    P, U = (np.take_along_axis(np.cumsum(part, axis=1), ends, axis=1) for part in (p, u))
    n, m = p.sum(axis=1), u.sum(axis=1)
    ratio = (U.sum(axis=0) + 0.5) / (m @ (P / n[:, None]) + 0.5)
    known, n_known = (P.sum(axis=0), n.sum()) if own_positives else (P[0], n[0])
    variance = 1.0 / (U.sum(axis=0) + 0.5) - 1.0 / (m.sum() + 0.5)
    variance += 2.0 / np.maximum(known, 0.5) - 2.0 / max(n_known, 0.5)
    upper = np.log(ratio) + np.sqrt(np.maximum(variance, 0.0))
    upper[min(0.25, ratio[_QUARTER]) > _TAILS * (1.0 + 1e-9)] = np.inf
    # Rows that suffice for a smaller tail could also show its few negatives in a larger one.
    first = _QUARTER if U[:, _QUARTER].mean() >= _MANY else 0
    best = first + int(np.argmin(upper[first:]))
    return float(upper[best]), best


def dispersion(unlabeled: Doubles, m: Doubles) -> Dispersion:
    """Return the dispersion of counts within segments; both have shape (n_segments, n_bins).

    It is the sum of squares of ``unlabeled - share * m`` relative to its mean for binomial counts.
    """
    total = m.sum(axis=1)
    share = unlabeled.sum(axis=1) / total
    squares = np.sum((unlabeled - share[:, None] * m) ** 2)
    pairs = total - np.sum(m**2, axis=1) / total
    expected = np.sum(share * (1.0 - share) * total / np.maximum(total - 1.0, 0.5) * pairs)
    freedom = float(np.count_nonzero(m) - len(m))
    return Dispersion(max(1.0, float(squares / expected)) if expected > 0.0 else 1.0, freedom)


def equality_p_value(
    tail: SegmentTail,
    rng: np.random.Generator,
    *,
    own_positives: bool = False,
    spread: Dispersion | None = None,
) -> float:
    """Return the p-value of the hypothesis that all segments have the same share."""
    factor, freedom = spread or Dispersion()
    n_segments = len(tail.m)
    if n_segments < 2 or freedom < 1.0 or not tail.unlabeled.any():
        return 1.0
    S = tail.positive / (tail.n + 1.0)
    n = tail.n + 2.0 if own_positives else None
    value, prior = _statistic(tail.unlabeled, tail.m, S, n, factor)
    expected = prior * S * tail.m
    fewest = np.min([expected, tail.m - expected]) / factor
    if own_positives:
        fewest = min(fewest, tail.positive.min())
    if fewest >= _FEW:
        if np.isfinite(freedom):
            return float(stats.f.sf(value / (n_segments - 1), n_segments - 1, freedom))
        return float(stats.chi2.sf(value, n_segments - 1))
    # Counts of as many independent rows as are as informative.
    size = np.maximum(1.0, np.round(tail.m / factor))
    shape = _N_DRAWS, n_segments
    truth = S
    if own_positives:
        truth = rng.beta(tail.positive, tail.n - tail.positive + 1.0, shape)
    drawn = rng.binomial(size.astype(np.int64), np.clip(prior * truth, 0.0, 1.0), shape)
    values, _ = _statistic(factor * drawn.astype(np.float64), factor * size, S, n, factor)
    if np.isfinite(freedom):
        values = values * freedom / rng.chisquare(freedom, _N_DRAWS)
    return float((1 + np.sum(values >= value * (1.0 - 1e-9))) / (_N_DRAWS + 1))


def _statistic(
    U: Doubles, m: Doubles, S: Doubles, n: Doubles | None, factor: float
) -> tuple[Doubles, Doubles]:
    """Return the statistic and the common share; leading axes are for draws."""
    prior = U.sum(axis=-1, keepdims=True) / np.sum(m * S)
    for _ in range(1 if n is None else 3):  # the variance depends on the share
        p = np.clip(prior * S, 0.0, 1.0)
        variance = factor * m * p * (1.0 - p)
        if n is not None:
            variance = variance + (prior * m) ** 2 * S * (1.0 - S) / n
        precision = np.divide(1.0, variance, out=np.zeros_like(variance), where=variance > 0.0)
        if n is not None:
            information = np.sum((m * S) ** 2 * precision, axis=-1, keepdims=True)
            efficient = np.sum(m * S * U * precision, axis=-1, keepdims=True)
            prior = np.where(information > 0.0, efficient / np.maximum(information, 1e-300), 0.0)
    return np.sum((U - prior * S * m) ** 2 * precision, axis=-1), prior
