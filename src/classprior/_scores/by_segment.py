"""Estimates for the segments of the unlabeled rows, such as regions or months."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from classprior._core.types import Doubles
from classprior._samples.segments import Segments
from classprior._scores.diagnostics import falls, stands_out
from classprior._scores.intervals import (
    BinCounts,
    TailResult,
    resampled_estimate,
    resampled_limits,
    tail_result,
    tails_of,
)
from classprior._scores.limits import binomial_limits
from classprior._scores.same_share import (
    SegmentCounts,
    equality_p_value,
    purest_tail,
    sums_of_bins,
)
from classprior._scores.shrinkage import adding_up, shrunk
from classprior._scores.tails import sharpened, weighted_tails, weights_of_scores
from classprior.result import SegmentEstimate, SegmentEstimates

_MOST_THRESHOLDS = 60
_RESAMPLES_OF_VARIANCE = 100
_TYPICAL_POSITIVES = 30.0  # that help a segment to weight its tails
_FEWEST_TO_FALL = 10.0  # fewer positives cannot tell whether the share falls toward the end


def estimate_segments(
    segments: Segments,
    whole: TailResult,
    counts: Mapping[int, BinCounts],
    upper_bounds: Mapping[int, float],
    weights: tuple[Doubles, Doubles],
    delta: float,
    independent: tuple[float, float],
    rng: np.random.Generator,
    *,
    rows_are_alike: bool,
) -> SegmentEstimates:
    """Return the estimates of segments, given the counts of each.

    Whether ``rows_are_alike``, that is, independent and of equal weight, matters for the p-value.
    """
    counts = {s: _with_fewer_thresholds(of_segment) for s, of_segment in counts.items()}
    by_score = [[*zip(*of_round, strict=True)] for of_round in zip(*counts.values(), strict=True)]
    own = segments.own_positives
    results = {
        s: tail_result(of_segment, weights, delta, independent, whole.separation)
        for s, of_segment in counts.items()
    }
    share = min(1.0, float(whole.estimate.prior))
    raw = raw_shares(by_score, share, own_positives=own)
    priors = shrunk(raw.shares, _variances(by_score, share, weights, own_positives=own))
    priors = np.clip(priors, 0.0, 1.0)
    if not own:  # the known positives of all segments together may be mixed unlike the hidden ones
        priors = adding_up(priors, raw.m, share)
    tail, spread = purest_tail(by_score, own_positives=own, rows_are_alike=rows_are_alike)
    sizes = [np.bincount(codes, minlength=len(segments.names)) for codes in segments.of_samples]
    return SegmentEstimates(
        (
            (segments.names[s], _estimate(*both, result, upper_bounds[s], [n[s] for n in sizes]))
            for both, (s, result) in zip(
                zip(priors, raw.shares, strict=True), results.items(), strict=True
            )
        ),
        equality_p_value(tail, rng, own_positives=own, spread=spread),
        1.0 - delta,
        _Ratios.of(raw, results, delta, independent, own_positives=own),
        columns=segments.columns,
        every=segments.every,
        own_positives=own,
    )


class RawShares(NamedTuple):
    """The share of each segment by itself, and the mean numbers of rows in its tails."""

    shares: Doubles
    U: Doubles
    m: Doubles
    P: Doubles
    n: Doubles


def raw_shares(counts: SegmentCounts, whole: float, *, own_positives: bool = False) -> RawShares:
    r"""Return the share of each segment, from its rows alone: a mean of ratios over its tails.

    .. math:: f_s = \sum_i w_{is} \frac{U_{is}}{m_s S_i}

    for each sharpness of the soft minima over tails, from which the estimate is extrapolated. Tails
    are weighted as if the segment had a few more rows, with about 30 positives, that resemble those
    of all segments. So in small segments, weights hardly depend on the rows that are counted, and
    shares are right on average; in large segments, these rows do not matter.
    """
    found = []
    for of_round in counts:
        of_scores = [_ratios_of_score(pairs, whole, own_positives) for pairs in of_round]
        logs, errors, ratios, U, P = (np.stack(part, -1) for part in zip(*of_scores, strict=True))
        w = weights_of_scores(logs, errors)
        error, U, P = (np.sum(w[0] * part, axis=-1) for part in (errors[0], U[0], P[0]))
        found.append([sharpened(np.sum(w * ratios, axis=-1), error), U, P])
    shares, U, P = np.mean(found, axis=0)
    n, m = (part.sum(axis=1) for part in sums_of_bins(counts[0][0]))
    return RawShares(np.minimum(1.0, shares), U, m, P, n)


def _ratios_of_score(
    pairs: Sequence[tuple[Doubles, Doubles]], whole: float, own_positives: bool
) -> list[Doubles]:
    """Return log-ratio and error with more rows, then ratio, U and P without, by sharpness."""
    p, u = sums_of_bins(pairs)
    n, m, total = p.sum(axis=1), u.sum(axis=1), u.sum(axis=0)
    part = min(1.0, _TYPICAL_POSITIVES / max(whole * total.sum(), 1.0))
    # In the tails of a segment's own positives, the rows of others tell nothing.
    more = (0.0 if own_positives else part) * total
    logs, errors, _, w = weighted_tails(p[:, :-1], (u + more)[:, :-1], n, m + more.sum())
    P, U = np.cumsum(p[:, :-1], axis=1), np.cumsum(u[:, :-1], axis=1)
    with_more = (U + np.cumsum(more[:-1]) + 0.5) / (m[:, None] + more.sum() + 0.5)
    ratios = np.exp(logs) * (U / m[:, None]) / with_more
    return [np.sum(w * values, axis=-1) for values in (logs, errors, ratios, U, P)]


def _variances(
    counts: SegmentCounts,
    share: float,
    weights: tuple[Doubles, Doubles],
    *,
    own_positives: bool,
) -> Doubles:
    """Return the variance of the share of each segment if it were that in all rows.

    It is the variance of the estimate for all rows over resamples, in proportion to the number of
    rows. Noise of positives that are common to all segments does not count.
    """
    p, u = (part[:_RESAMPLES_OF_VARIANCE] for part in weights)
    n, m = (part.sum(axis=1) for part in sums_of_bins(counts[0][0]))
    together = [
        [
            (
                np.sum([p for p, _ in pairs] if own_positives else [pairs[0][0]], axis=0),
                np.sum([u for _, u in pairs], axis=0),
            )
            for pairs in of_round
        ]
        for of_round in counts
    ]
    tails = tails_of(together)
    of_row = np.var(resampled_estimate(tails, (np.ones_like(p), u)).prior) * m.sum()
    found = max(float(of_row), share * (1.0 - share), 1.0 / m.sum()) / m
    if own_positives:
        of_positive = np.var(resampled_estimate(tails, (p, np.ones_like(u))).prior) * n.sum()
        found = found + of_positive / n
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class _Ratios:
    """Ratios of the shares of two segments, with limits."""

    shares: Doubles
    centers: Doubles  # logarithms of shares that are never zero
    resampled: Doubles  # the same for resamples, of shape (n_resamples, n_segments)
    below: Doubles  # distances of exact limits from the centers
    above: Doubles
    delta: float

    @classmethod
    def of(
        cls,
        raw: RawShares,
        results: Mapping[int, TailResult],
        delta: float,
        independent: tuple[float, float],
        *,
        own_positives: bool,
    ) -> _Ratios:
        """Return the ratios, given the numbers of independent groups per row."""
        U, m = independent[1] * raw.U, independent[1] * raw.m
        below, above = _log_distances(U, m, delta)
        if own_positives:
            P, n = independent[0] * raw.P, independent[0] * raw.n
            of_positives = _log_distances(P, n, delta)
            below, above = np.hypot(below, of_positives[1]), np.hypot(above, of_positives[0])
        centers = np.log([float(result.estimate.prior) for result in results.values()])
        resampled = np.column_stack([result.resampled.prior for result in results.values()])
        return cls(raw.shares, centers, np.log(resampled), below, above, delta)

    def __call__(self, one: int, other: int) -> tuple[float, float, float]:
        """Return the ratio and its limits.

        The exact limits of both shares are combined (Zou and Donner, 2008). Limits from resamples,
        and the same reflected, because resamples of a minimum are biased, can only widen them.
        """
        if one == other:
            return 1.0, 1.0, 1.0
        a, b = self.shares[one], self.shares[other]
        ratio = a / b if b > 0.0 else np.nan if a == 0.0 else np.inf
        center = self.centers[one] - self.centers[other]
        low, high = resampled_limits(self.resampled[:, one] - self.resampled[:, other], self.delta)
        below = np.hypot(self.below[one], self.above[other])
        above = np.hypot(self.above[one], self.below[other])
        low, high = np.exp(
            [
                min(low, 2.0 * center - high, center - below),
                max(high, 2.0 * center - low, center + above),
            ]
        )
        return float(ratio), float(np.fmin(low, ratio)), float(np.fmax(high, ratio))


def _log_distances(U: Doubles, m: Doubles, delta: float) -> tuple[Doubles, Doubles]:
    """Return the distances of Clopper-Pearson limits from the share, on a logarithmic scale.

    U is a mean over tails; less than half a row counts as none, with an infinite distance.
    """
    share, level = (U + 0.5) / (m + 0.5), delta / 2.0
    low, high = binomial_limits(U, m, level)
    low = np.where(U >= 0.5, low, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(share / np.minimum(low, share)), np.log(np.maximum(high, share) / share)


def _with_fewer_thresholds(counts: BinCounts) -> BinCounts:
    """Merge neighboring thresholds, to save time."""
    return [[(_merged(p), _merged(u)) for p, u in of_round] for of_round in counts]


def _merged(table: Doubles) -> Doubles:
    step = -(-(table.shape[1] - 1) // _MOST_THRESHOLDS)
    starts = np.r_[0 : table.shape[1] - 1 : step, table.shape[1] - 1]
    return np.add.reduceat(table, starts, axis=1)


def _estimate(
    prior: float, raw: float, result: TailResult, upper_bound: float, sizes: Sequence[int]
) -> SegmentEstimate:
    interval, n_unlabeled = result.interval, int(sizes[0])
    end = float(result.estimate.purest)
    least, most = min(prior, raw), max(prior, raw)
    return SegmentEstimate(
        prior=float(prior),
        raw=float(raw),
        low=float(min(interval.low, least)),
        high=float(max(interval.high, most)),
        low_count=float(np.floor(min(interval.low_sample, least) * n_unlabeled)),
        high_count=float(np.ceil(max(interval.high_sample, most) * n_unlabeled)),
        upper_bound=upper_bound,
        is_upper_bound=not stands_out(result.separation)
        or bool(
            raw * n_unlabeled >= _FEWEST_TO_FALL
            and falls(result.purity_p_value, end, float(result.estimate.prior))
        ),
        n_positive=int(sizes[1]) if len(sizes) > 1 else None,
        n_unlabeled=n_unlabeled,
    )
