"""Base class of estimators whose estimate rests on the tails of scores."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from classprior._core.bins import TEST, generator
from classprior._core.types import Doubles
from classprior._samples.checkpoint import digest
from classprior._samples.samples import Samples
from classprior._scores.by_segment import estimate_segments
from classprior._scores.counting import CountRows, Round
from classprior._scores.crossfit import TOGETHER, Scores
from classprior._scores.diagnostics import is_at_one, stands_out, still_falls
from classprior._scores.held_out import HeldOut
from classprior._scores.intervals import BinCounts, TailResult, tail_result
from classprior._scores.negatives import KindScores
from classprior._tables.parameters import check_confidence
from classprior.priors._base import BasePriorEstimator
from classprior.result import SegmentEstimates


class TailPrior(BasePriorEstimator):
    """Base class: it counts the rows that subclasses score, and sets the attributes."""

    max_rows: int | None
    confidence: float
    n_resamples: int
    max_weight: Any
    low_: float
    low_sample_: float
    high_sample_: float
    high_: float
    extrapolated_: float
    extrapolated_wide_: float
    extrapolation_window_: float
    extrapolated_tail_: float
    purity_p_value_: float
    separation_: float
    round_priors_: Doubles
    scores_: dict[str, tuple[Doubles, Doubles]]
    kind_scores_: KindScores | None
    segments_: SegmentEstimates
    takes_checkpoint = True

    def _check_parameters(self) -> None:
        check_confidence(self.confidence)
        least_values = {"n_clusters": 1, "n_repeats": 1, "max_rows": 2, "n_resamples": 20}
        for name, least in least_values.items():
            if getattr(self, name, None) is not None:
                check_scalar(getattr(self, name), name, Integral, min_val=least)

    def _count(
        self,
        samples: Samples,
        drawn: Samples,
        rounds: list[Round],
        of_bound: Round,
        held_out: HeldOut,
    ) -> TailResult:
        """Count all rows, set the fitted attributes and return the result."""
        *counts, for_bound = _counts(samples, drawn, [*rounds, of_bound], held_out)
        delta = 1.0 - self.confidence
        # Unequal weights make rows less informative: noise is that of fewer rows.
        scales = [n / t.sum() for n, t in zip(samples.n_effective, samples.totals, strict=True)]
        counts = [(scales[0] * positive, scales[1] * unlabeled) for positive, unlabeled in counts]
        weights = samples.bins.weights(self.n_resamples)
        independent = samples.group_effect
        result = tail_result(_by_round(rounds, counts), weights, delta, independent)
        self._set_result(result, samples, drawn, [of_round.scores for of_round in rounds])
        segments, present = samples.units.counted_segments, samples.units.segments_present
        if segments is not None:
            self.segments_ = estimate_segments(
                segments,
                result,
                {
                    s: _by_round(rounds, counts, s, own_positives=segments.own_positives)
                    for s in present
                },
                {s: held_out.bounds(*for_bound, delta, s).exact for s in present},
                weights,
                delta,
                independent,
                generator(samples.seed, TEST),
                rows_are_alike=samples.units.are_alike,
            )
        self.upper_bound_, self.upper_bound_asymptotic_ = held_out.bounds(*for_bound, delta)
        self.bound_is_exact_ = held_out.is_exact
        if self.bound_is_exact_:  # the interval has half of its error probability at either end
            highest = max(self.prior_, held_out.bounds(*for_bound, delta / 2.0).exact)
            self.high_, self.high_sample_ = (
                min(self.high_, highest),
                min(self.high_sample_, highest),
            )
        return result

    def _set_result(
        self, result: TailResult, samples: Samples, drawn: Samples, rounds: list[Scores]
    ) -> None:
        """Set the prior, its limits, whether it is only an upper bound, and the mean scores."""
        self._set_prior(min(1.0, float(result.estimate.prior)), samples.masses)
        interval = result.interval.allowing_for(samples.heaviest)
        self.low_, self.high_, self.low_sample_, self.high_sample_ = interval
        self.extrapolated_ = float(np.clip(result.estimate.extrapolated, 0.0, 1.0))
        self.extrapolated_wide_ = float(np.clip(result.estimate.widest, 0.0, 1.0))
        self.extrapolated_tail_ = float(np.clip(result.estimate.purest, 0.0, 1.0))
        self.extrapolation_window_ = float(result.estimate.window)
        self.purity_p_value_ = result.purity_p_value
        self.separation_ = result.separation
        self.is_upper_bound_ = (
            not stands_out(self.separation_) or still_falls(self) or is_at_one(self)
        )
        self.round_priors_ = np.array([e.prior for e in result.of_rounds])
        self.scores_ = mean_scores(rounds, drawn.sizes[0])
        self.mean_scores_ = self.scores_.get(TOGETHER, next(iter(self.scores_.values())))


def mean_scores(rounds: list[Scores], n_positive: int) -> dict[str, tuple[Doubles, Doubles]]:
    """Return the scores of positives and of unlabeled rows by name, averaged over rounds."""
    means = {k: np.mean([scores[k] for scores in rounds], axis=0) for k in rounds[0]}
    return {k: (mean[:n_positive], mean[n_positive:]) for k, mean in means.items()}


def _by_round(
    rounds: list[Round],
    counts: list[tuple[Doubles, Doubles]],
    segment: int | None = None,
    *,
    own_positives: bool = False,
) -> BinCounts:
    """Return the counts of all rows, or of a segment, by round and score."""
    return [
        list(
            zip(
                of_round.tally.by_score(p[segment] if own_positives else p.sum(axis=0)),
                of_round.tally.by_score(u.sum(axis=0) if segment is None else u[segment]),
                strict=True,
            )
        )
        for of_round, (p, u) in zip(rounds, counts, strict=True)
    ]


def _counts(
    samples: Samples, drawn: Samples, rounds: list[Round], held_out: HeldOut
) -> list[tuple[Doubles, Doubles]]:
    """Return the counts of all rows for each round, in both samples."""
    tallies = [of_round.tally for of_round in rounds]
    key = f"tails, {digest(*(t for tally in tallies for t in tally.thresholds.values()))}"
    found = []
    for sample in (0, 1):
        count = CountRows(tallies, sample, *held_out.n_cells(sample))
        beside = held_out.beside(sample)
        if drawn.sizes == samples.bins.n_counted:  # all rows, whose scores are known
            n = drawn.sizes[0]
            rows = slice(None, n) if sample == 0 else slice(n, None)
            scores = [{k: values[rows] for k, values in r.scores.items()} for r in rounds]
            numbers = held_out.numbers[sample]
            known = {k: values[numbers] for k, values in beside.items()}
            table = count.of_scores(scores, drawn.bins_of_rows[sample], **known)
        else:
            table = samples.sums(sample, count, count.shape, key, **beside)
        found.append(count.by_tally(table))
    return list(zip(*found, strict=True))
