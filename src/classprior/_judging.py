"""From fitted estimators to an estimate: its interval, what it means, warnings and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import clone

from classprior._base import Resampler
from classprior._core.messages import percent
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
    is_mixed,
    is_vague,
    still_falls,
)
from classprior._scores.intervals import Interval
from classprior._scores.leaks import Leak, about_leaks, find_leaks
from classprior._scores.near_copies import (
    about_near_copies,
    column_of_groups,
    find_near_copies,
    groups_of_copies,
)
from classprior._scores.negatives import about_negatives, standard_error
from classprior._scores.notes import notes_on, on_intervals
from classprior._scores.one_column import (
    MOST_GAIN,
    about_decisive,
    contradicts,
    decisive_columns,
    on_decisive,
)
from classprior._scores.own_scores import about_own_scores, seem_too_high
from classprior._scores.resampling import interval_of
from classprior._scores.subtypes import WeightedColumns, important_columns, is_projected
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
    copies, of_copies, has_copies = _check_copies(samples, tables, judged, evidence)
    found, leaks = _examine(samples, judged, encoder.sources_)
    columns = _weighted_columns(samples.subsample(evidence.max_rows))
    named = {name for leak in leaks for name in leak.columns}
    revealing, decisive = _check_columns(samples, evidence, columns, encoder.sources_, named)
    leaks = [*leaks, *(Leak((str(warning.column),), 0.0) for warning in revealing)]
    biased, untested = ([], []) if allows_bias else _check_typicality(samples, evidence, columns)
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
        warnings=[*warnings, *copies, *found, *revealing, *biased, *negatives],
        notes=(
            *of_copies,
            *decisive,
            *untested,
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
    samples: Samples, judged: Any, sources: Sequence[str] | None
) -> tuple[list[Caution], list[Leak]]:
    """Return warnings about scores and about leaks.

    ``sources`` are the columns that each column of numbers was made from.
    """
    drawn = samples.subsample(judged.max_rows)
    looks_for_known = samples.units.n_known_left_out is None
    leaks = find_leaks(*drawn.rows, judged.prior_, sources)
    found = [
        *(about_known(find_known(samples), drawn) if looks_for_known else ()),
        *diagnose(judged),
        *about_leaks(leaks),
    ]
    return found, leaks


def _check_copies(
    samples: Samples,
    tables: Callable[[int | None], Sequence[Any]],
    judged: Any,
    evidence: AutoPrior,
) -> tuple[list[Caution], list[str], bool]:
    """Return warnings and notes about copies and near-copies, and whether the estimate is too low.

    The evidence is fitted once more with copies kept together, which shows what they change.
    """
    drawn = samples.subsample(judged.max_rows)
    units, rows = drawn.units, drawn.rows
    near_copies = find_near_copies(*rows) if units.groups is None else None
    copies = list(about_copies(drawn))
    if near_copies is None and not copies:
        return [], [], False
    column = None
    if near_copies is not None:
        column = column_of_groups(tables(judged.max_rows), near_copies.pairs)
    warnings = [*about_near_copies(near_copies, column), *copies]
    groups = None
    if units.groups is None and units.folds is None:
        groups = groups_of_copies(*rows, has_near_copies=near_copies is not None)
    if groups is None:
        return warnings, [], True
    units = replace(units, groups=groups, segments=None)
    together = _fitted_again(evidence, replace(drawn, units=units, drawn_bins=None))
    shares = f"{percent(together.prior_)} instead of {percent(evidence.prior_)}"
    if together.prior_ > evidence.high_:
        kept = f"If copies are kept together, the estimate of 'auto' is {shares}."
        return [warning.with_finding(kept) for warning in warnings], [], True
    of_copies = "Many rows are copies or near-copies of others, more than chance explains"
    return [], [f"{of_copies}, but kept together, they change little ({shares})."], False


def _fitted_again(evidence: AutoPrior, samples: Samples) -> AutoPrior:
    """Fit the evidence to other samples, in a single round of cross-fitting."""
    quick = {"n_repeats": 1, "max_weight": None, "random_state": samples.seed, "verbose": 0}
    fitted = clone(evidence).set_params(**quick)
    with catch_warnings():
        simplefilter("ignore")  # the fit to all rows has warned already
        fitted.fit_opened(samples)
    return fitted


def _weighted_columns(drawn: Samples) -> WeightedColumns:
    """Return the columns of drawn rows, weighted by how much they tell the samples apart."""
    X, is_positive = drawn.stacked_rows()
    return important_columns(X, is_positive, drawn.bins.seed_of_round(0))


def _check_columns(
    samples: Samples,
    evidence: AutoPrior,
    columns: WeightedColumns,
    sources: Sequence[str] | None,
    known_leaks: set[str],
) -> tuple[list[Caution], list[str]]:
    """Return warnings and notes about columns that decide the estimate alone.

    For each, the evidence is fitted once more without it.
    """
    drawn = samples.subsample(evidence.max_rows)
    X_positive, X_unlabeled = rows = drawn.rows
    if is_projected(X_positive) or evidence.classifiers is not None:
        return [], []
    names = sources or [str(column) for column in range(X_positive.shape[1])]
    sizes = drawn.sizes
    warnings, notes = [], []
    fitted: dict[str, AutoPrior] = {}
    for column in decisive_columns(*rows, names, columns.gains):
        is_flag = column.known is not None
        if column.name in known_leaks or (is_flag and not samples.units.are_alike):
            continue
        if column.name not in fitted:
            others = np.array([name != column.name for name in names])
            fewer = drawn.with_rows(X_positive[:, others], X_unlabeled[:, others])
            fitted[column.name] = _fitted_again(evidence, fewer)
        without = fitted[column.name]
        if contradicts(column, sizes, evidence, without):
            warnings.append(about_decisive(column, sizes, evidence, without))
        elif not is_flag:
            notes.append(on_decisive(column, without))
    return warnings, notes


def _check_typicality(
    samples: Samples, evidence: AutoPrior, columns: WeightedColumns
) -> tuple[list[Caution], list[str]]:
    """Return a warning if known positives seem not to be typical, or why that was not tested."""
    drawn = samples.subsample(evidence.max_rows)
    reasons = {
        "rows have different weights": not samples.units.count_alike,
        "negatives are found wherever positives are": is_mixed(evidence) or still_falls(evidence),
        "categories tell more than numbers": _rests_on_categories(drawn, columns),
    }
    if any(reasons.values()):
        why = next(reason for reason, holds in reasons.items() if holds)
        return [], [f"Whether known positives are typical was not tested, because {why}."]
    test = typicality_of(drawn, evidence.scores_, evidence.prior_, columns.values)
    return about_typicality(test.p_value), []


def _rests_on_categories(drawn: Samples, columns: WeightedColumns) -> bool:
    """Whether columns of two values have most of the gain: their kinds are not clouds of points."""
    if is_projected(drawn.rows[0]):
        return False
    low, high = (f([f(X, axis=0) for X in drawn.rows], axis=0) for f in (np.min, np.max))
    has_two = np.all([np.all((low == X) | (high == X), axis=0) for X in drawn.rows], axis=0)
    return bool(columns.gains[has_two].sum() > MOST_GAIN)


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
        separation=bounded.separation_,
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
