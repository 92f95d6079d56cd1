"""From fitted estimators to an estimate: its interval, what it means, warnings and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from classprior._base import Resampler
from classprior._headline import IN_DOUBT, TYPICAL, TYPICAL_OF_KIND, Meaning, meaning_of
from classprior._samples.matching import find_known
from classprior._samples.samples import Samples
from classprior._scores.copies import about_copies, about_known
from classprior._scores.diagnostics import (
    about_bound,
    about_disagreement,
    about_interval,
    about_method,
    about_sizes,
    about_weights,
    diagnose,
    disagree,
    is_vague,
)
from classprior._scores.intervals import Interval
from classprior._scores.leaks import Leak, about_leaks, find_leaks
from classprior._scores.near_copies import about_near_copies, column_of_groups, find_near_copies
from classprior._scores.negatives import about_negatives, standard_error
from classprior._scores.notes import notes_on, on_intervals
from classprior._scores.own_scores import about_own_scores, seem_too_high
from classprior._scores.resampling import interval_of
from classprior._scores.typical import about_typicality, typicality_of
from classprior._tables.columns import ColumnTreatment
from classprior._tables.encoder import TableEncoder
from classprior.priors._auto import AutoPrior
from classprior.priors._methods import METHODS, RECOMMENDED, SCORES
from classprior.priors._score import ScorePrior
from classprior.priors._tail import TailPrior
from classprior.result import Caution, PriorEstimate


def judge(
    samples: Samples,
    tables: Callable[[int | None], Sequence[Any]],
    encoder: TableEncoder,
    method: str,
    estimator: Any,
    evidence: AutoPrior,
    resampler: Resampler | None = None,
    n_resamples: int | None = None,
) -> PriorEstimate:
    """Return the estimate of a fitted method, with its interval and what speaks against it.

    ``tables`` returns the drawn rows before encoding, in which a column of groups may be found.
    """
    interval, interval_from = interval_of(
        estimator,
        resampler,
        samples,
        delta=1.0 - evidence.confidence,
        n_resamples=n_resamples,
        n_jobs=evidence.n_jobs,
        verbose=evidence.verbose,
    )
    allows_bias = METHODS[method].allows_bias
    judged = estimator if allows_bias else evidence  # the warnings and the bound are about it
    warnings = list(_about_other_method(method, estimator, evidence, samples.n_features))
    found, leaks, has_copies = _examine(samples, tables, judged, encoder.sources_)
    biased = [] if allows_bias else _check_typicality(samples, evidence)
    disagrees = allows_bias and disagree(estimator, evidence)
    negatives = []
    if not allows_bias:
        negatives = _check_with_negatives(samples, estimator.prior_, interval.high, evidence)
    wide = judged.extrapolated_wide_ if estimator is judged else estimator.prior_
    return _assembled(
        samples,
        method,
        estimator,
        evidence,
        interval,
        interval_from=interval_from,
        bound_of=judged,
        bound_holds_if=TYPICAL_OF_KIND if allows_bias else TYPICAL,
        prior_if_typical=evidence.prior_ if allows_bias else None,
        meaning=meaning_of(
            is_leak=bool(leaks),
            is_biased=bool(biased),
            disagrees=disagrees,
            has_copies=has_copies,
            is_upper_bound=judged.is_upper_bound_ or bool(negatives),
            is_vague=is_vague(estimator.prior_, interval.low, interval.high, wide),
        ),
        leaks=tuple(dict.fromkeys(name for leak in leaks for name in leak.columns)),
        warnings=[*warnings, *found, *biased, *negatives],
        notes=(
            *on_intervals([] if METHODS[method].has_interval else [method]),
            *notes_on(samples, estimator, judged),
        ),
        columns=encoder.treatments_,
    )


def _about_other_method(
    name: str, estimator: Any, evidence: AutoPrior, n_columns: int
) -> Iterator[Caution]:
    """Yield what the evidence says against a method that is not the recommended one."""
    method = METHODS[name]
    if name == RECOMMENDED:
        return
    if method.allows_bias:
        yield from about_disagreement(estimator, evidence)
    else:
        yield from about_bound(estimator.prior_, evidence.upper_bound_)
        yield from about_interval(estimator.prior_, evidence)
        yield from about_method(name, method.over_estimates, n_columns if method.has_kernel else 0)


def _examine(
    samples: Samples,
    tables: Callable[[int | None], Sequence[Any]],
    judged: Any,
    sources: Sequence[str] | None,
) -> tuple[list[Caution], list[Leak], bool]:
    """Return warnings about rows and scores, leaks, and whether there are copies or near-copies.

    ``sources`` are the columns that each column of numbers was made from.
    """
    drawn = samples.subsample(judged.max_rows)
    rows = drawn.rows
    near_copies = find_near_copies(*rows) if samples.units.groups is None else None
    column = None
    if near_copies is not None:
        column = column_of_groups(tables(judged.max_rows), near_copies.pairs)
    looks_for_known = samples.units.n_known_left_out is None
    copies = [*about_copies(drawn)]
    leaks = find_leaks(*rows, judged.prior_, sources)
    found = [
        *about_near_copies(near_copies, column),
        *copies,
        *(about_known(find_known(samples), drawn) if looks_for_known else ()),
        *diagnose(judged),
        *about_leaks(leaks),
    ]
    return found, leaks, bool(near_copies or copies)


def _check_typicality(samples: Samples, evidence: AutoPrior) -> list[Caution]:
    """Return a warning if known positives seem not to be typical; rows must count alike."""
    if not samples.units.count_alike:
        return []
    test = typicality_of(samples.subsample(evidence.max_rows), evidence.scores_, evidence.prior_)
    return about_typicality(test.p_value)


def _check_with_negatives(
    samples: Samples, prior: float, high: float, evidence: TailPrior
) -> list[Caution]:
    """Return a warning if confirmed negatives score like positives; it needs independent rows."""
    if evidence.kind_scores_ is None or samples.units.groups is not None:
        return []
    error = standard_error(high, prior, evidence.confidence)
    return [*about_negatives(evidence.kind_scores_, prior, error)]


def judge_scores(samples: Samples, estimator: ScorePrior, name: str) -> PriorEstimate:
    """Return the estimate from a column of scores, with its interval and what speaks against it."""
    interval, interval_from = interval_of(estimator, None, samples, delta=1 - estimator.confidence)
    rows_are_alike = samples.units.are_alike
    negatives = _check_with_negatives(samples, estimator.prior_, interval.high, estimator)
    is_upper_bound = estimator.is_upper_bound_ and not (rows_are_alike and seem_too_high(estimator))
    return _assembled(
        samples,
        SCORES,
        estimator,
        estimator,
        interval,
        interval_from=interval_from,
        meaning=meaning_of(
            is_leak=False,
            has_copies=False,
            is_upper_bound=is_upper_bound or bool(negatives),
            is_vague=is_vague(
                estimator.prior_, interval.low, interval.high, estimator.extrapolated_wide_
            ),
        ),
        warnings=(
            *about_own_scores(estimator, rows_are_alike=rows_are_alike),
            *negatives,
        ),
        notes=tuple(notes_on(samples, estimator, estimator)),
        columns=(ColumnTreatment(name, "score", "only the order of its values is used"),),
    )


def _assembled(
    samples: Samples,
    method: str,
    estimator: Any,
    evidence: TailPrior,
    interval: Interval,
    *,
    meaning: Meaning,
    warnings: Sequence[str],
    bound_of: Any = None,
    **rest: Any,
) -> PriorEstimate:
    """Put together an estimate from fitted estimators and an interval.

    The bound is that of the evidence or of another estimator.
    """
    bounded = bound_of or evidence
    n_positive, n_unlabeled = samples.bins.n_counted
    return PriorEstimate(
        prior=estimator.prior_,
        low=interval.low,
        high=interval.high,
        low_count=float(np.floor(interval.low_sample * n_unlabeled)),
        high_count=float(np.ceil(interval.high_sample * n_unlabeled)),
        upper_bound=bounded.upper_bound_,
        upper_bound_asymptotic=bounded.upper_bound_asymptotic_,
        bound_is_exact=bounded.bound_is_exact_ and meaning not in IN_DOUBT,
        meaning=meaning,
        confidence=float(evidence.confidence),
        method=method,
        n_positive=n_positive,
        n_unlabeled=n_unlabeled,
        n_negative=samples.n_negative,
        warnings=(*about_sizes(n_positive, n_unlabeled), *about_weights(samples), *warnings),
        total_weights=samples.masses if samples.units.are_weighted else None,
        segments=getattr(evidence, "segments_", None),
        estimator=estimator,
        evidence=evidence,
        **rest,
    )
