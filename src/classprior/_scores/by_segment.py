"""Estimates for the segments of the unlabeled rows, such as regions or months."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from classprior._core.types import Doubles
from classprior._samples.segments import Segments
from classprior._scores.diagnostics import falls
from classprior._scores.intervals import (
    BinCounts,
    TailResult,
    resampled_estimate,
    resampled_limits,
    tail_result,
    tails_of,
)
from classprior.result import SegmentEstimate, SegmentEstimates

_MOST_THRESHOLDS = 60
_RESAMPLES_OF_TEST = 100  # enough for a variance
_SMALLEST_SHARE = 1e-6  # lower limit of shares whose logarithm is taken


def estimate_segments(
    segments: Segments,
    whole: TailResult,
    counts: Mapping[int, BinCounts],
    upper_bounds: Mapping[int, float],
    weights: tuple[Doubles, Doubles],
    delta: float,
    independent: tuple[float, float],
) -> SegmentEstimates:
    """Return the estimates of segments, given the counts of each."""
    counts = {s: _with_fewer_thresholds(of_segment) for s, of_segment in counts.items()}
    results = {
        s: tail_result(of_segment, weights, delta, independent) for s, of_segment in counts.items()
    }
    raw = np.array([min(1.0, float(a.estimate.prior)) for a in results.values()])
    resampled = np.column_stack([a.resampled.prior for a in results.values()])
    of_test = weights[1][:_RESAMPLES_OF_TEST]
    all_rows = np.ones((len(of_test), weights[0].shape[1]))
    # Noise of the positives moves all segments alike, and does not make them differ.
    of_unlabeled = np.column_stack(
        [
            resampled_estimate(tails_of(of_segment), (all_rows, of_test)).prior
            for of_segment in counts.values()
        ]
    )
    share = min(1.0, float(whole.estimate.prior))
    priors = shrunk(raw, np.var(resampled, axis=0), share)
    sizes = [np.bincount(codes, minlength=len(segments.names)) for codes in segments.of_samples]
    return SegmentEstimates(
        (
            (segments.names[s], _estimate(prior, result, upper_bounds[s], [n[s] for n in sizes]))
            for prior, (s, result) in zip(priors, results.items(), strict=True)
        ),
        equality_p_value(raw, of_unlabeled),
        1.0 - delta,
        _Ratios(raw, resampled, delta),
        columns=segments.columns,
        every=segments.every,
        own_positives=segments.own_positives,
    )


@dataclass(frozen=True, eq=False)
class _Ratios:
    """Ratios of the shares of two segments, with limits."""

    shares: Doubles
    resampled: Doubles  # of shape (n_resamples, n_segments)
    delta: float

    def __call__(self, one: int, other: int) -> tuple[float, float, float]:
        differences = _log(self.resampled[:, one]) - _log(self.resampled[:, other])
        low, high = resampled_limits(differences, self.delta)
        center = float(_log(self.shares[one]) - _log(self.shares[other]))
        # Resamples of a minimum are biased, so the limits are reflected as well.
        low, high = min(low, 2.0 * center - high, center), max(high, 2.0 * center - low, center)
        return float(np.exp(center)), float(np.exp(low)), float(np.exp(high))


def _with_fewer_thresholds(counts: BinCounts) -> BinCounts:
    """Merge neighboring thresholds, to save time."""
    return [[(_merged(p), _merged(u)) for p, u in of_round] for of_round in counts]


def _merged(table: Doubles) -> Doubles:
    step = -(-(table.shape[1] - 1) // _MOST_THRESHOLDS)
    starts = np.r_[0 : table.shape[1] - 1 : step, table.shape[1] - 1]
    return np.add.reduceat(table, starts, axis=1)


def _estimate(
    prior: float, result: TailResult, upper_bound: float, sizes: Sequence[int]
) -> SegmentEstimate:
    interval, n_unlabeled = result.interval, int(sizes[0])
    high_end = float(np.quantile(result.resampled.extrapolated, 0.95))
    raw = min(1.0, float(result.estimate.prior))
    return SegmentEstimate(
        prior=float(prior),
        raw=raw,
        low=min(interval.low, float(prior)),
        high=max(interval.high, float(prior)),
        low_count=float(np.floor(min(interval.low_sample, prior) * n_unlabeled)),
        high_count=float(np.ceil(max(interval.high_sample, prior) * n_unlabeled)),
        upper_bound=upper_bound,
        is_upper_bound=bool(falls(high_end, raw)),
        n_positive=int(sizes[1]) if len(sizes) > 1 else None,
        n_unlabeled=n_unlabeled,
    )


def shrunk(shares: Doubles, variances: Doubles, whole: float) -> Doubles:
    r"""Return shares shrunk toward the share in the whole, by empirical Bayes.

    .. math:: \tilde\pi_s = \bar\pi + \frac{\tau^2}{\tau^2 + v_s} (\hat\pi_s - \bar\pi)

    where :math:`v_s` is the variance of :math:`\hat\pi_s` and :math:`\tau^2` is the variance of the
    true shares, estimated by the method of moments (DerSimonian and Laird, 1986): the larger of 0
    and the excess of :math:`\sum_s (\hat\pi_s - \bar\pi)^2 / v_s` over its mean if all shares were
    equal, divided by :math:`\sum_s 1/v_s - \sum_s v_s^{-2} / \sum_s v_s^{-1}`.
    """
    precision = 1.0 / np.maximum(variances, 1e-12)
    spread = precision.sum() - (precision**2).sum() / precision.sum()
    excess = precision @ (shares - whole) ** 2 - (len(shares) - 1)
    between = max(0.0, excess / spread) if spread > 0.0 else 0.0
    return whole + between / (between + 1.0 / precision) * (shares - whole)


def equality_p_value(shares: Doubles, resampled: Doubles) -> float:
    r"""Return the p-value of the hypothesis that all segments have the same share.

    The statistic is :math:`\sum_s (\ell_s - \bar\ell)^2 / v_s` with :math:`\ell_s` the logarithm of
    the share, :math:`v_s` its variance over resamples of the unlabeled rows (noise of the positives
    is common to all segments) and :math:`\bar\ell` the mean weighted by :math:`1/v_s`. It is about
    chi-squared, with one degree of freedom less than there are segments.
    """
    if len(shares) < 2:
        return 1.0
    logs = _log(shares)
    precision = 1.0 / np.maximum(np.var(_log(resampled), axis=0), 1e-12)
    center = precision @ logs / precision.sum()
    return float(stats.chi2.sf(precision @ (logs - center) ** 2, len(shares) - 1))


def _log(shares: Any) -> Any:
    return np.log(np.maximum(shares, _SMALLEST_SHARE))
