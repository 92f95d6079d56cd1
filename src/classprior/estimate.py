"""The main entry point: from two samples to an estimate with an interval and warnings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from classprior._samples.opening import open_samples
from classprior._samples.samples import Samples
from classprior._scores.diagnostics import (
    about_bound,
    about_interval,
    about_method,
    about_sizes,
    diagnose,
)
from classprior._scores.near_copies import about_near_copies, column_of_groups, find_near_copies
from classprior._scores.own_scores import (
    SCORE,
    AsScores,
    about_given_scores,
    are_scores,
    as_column,
    seem_too_high,
)
from classprior._scores.resampling import resampled_intervals
from classprior._tables.columns import ColumnTreatment
from classprior._tables.encoder import TableEncoder
from classprior._tables.parameters import SAMPLES, check_confidence, seed_of
from classprior.engines import open_checkpoint
from classprior.priors._auto import AutoPrior
from classprior.priors._methods import METHODS, SCORES
from classprior.priors._score import ScorePrior, check_single_column
from classprior.priors._tail import TailPrior
from classprior.result import PriorEstimate

__all__ = ["METHODS", "PriorEstimate", "estimate_prior"]

_MAX_ROWS = 20_000  # rows of each sample used to learn scales, medians and categories
# Parameters that SubtypePrior takes over from the evidence.
_SHARED = (
    "classifiers",
    "n_repeats",
    "max_rows",
    "confidence",
    "n_resamples",
    "n_jobs",
    "verbose",
)
_WEIGHTED = (
    "The rows are weighted: the estimate is a share of the total weight, and numbers of positive "
    "rows are this share of the number of rows."
)


def estimate_prior(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    method: str = "auto",
    confidence: float = 0.95,
    weights: Any = None,
    groups: Any = None,
    segments: Any = None,
    segment_positives: str = "all",
    every: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    scale: bool = True,
    cv: Any = 5,
    n_resamples: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    read_options: Mapping[str, Any] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    evidence: AutoPrior | None = None,
    **options: Any,
) -> PriorEstimate:
    """Estimate what share of the unlabeled rows is positive, with an interval and warnings.

    Parameters
    ----------
    X_positive, X_unlabeled : array, data frame, path, dataset, dask collection or blocks
        Known positives, and rows that may be positive or negative. Paths such as ``"frauds.csv"``
        or ``"all/*.parquet"`` are read; :func:`classprior.engines.fit_blocks` lists everything that
        is accepted. Numbers are standardized, missing values filled in and flagged, and categories
        one-hot encoded. Named columns are matched by name. Two one-dimensional arrays are the
        scores of a model that you have already: larger means more positive, only their order
        matters, and the model must not have been trained on these rows.
    method : str, default="auto"
        One of "auto", "subtypes", "dedpul", "bbe", "sb", "tice", "penl1", "pen-pearson", "pen-kl",
        "km1", "km2", "recpe", "en", "pe", "pearson", "l1", "kl"; or "scores" for a column of
        scores, such as
        ``estimate_prior("frauds.parquet", "all.parquet", method="scores", columns=["score"])``.
        With one-dimensional arrays, "auto" means "scores".
    confidence : float, default=0.95
        Confidence level of the interval and the bound.
    weights : str or pair of array-likes, optional
        Weight of each row, such as one over the probability with which it was sampled: a column
        name, or one array per sample. Only ratios of weights within a sample matter.
    groups : str or pair of array-likes, optional
        Group of each row, such as a customer or a patient: a column name, or one array per sample.
        Rows of a group are kept in the same fold and resampled together, and the bound counts
        groups.
    segments : str, sequence of str or pair of array-likes, optional
        Segment of each row, such as its region or month: one or more column names, or one array
        per sample. The share is then also estimated for each segment, in ``estimate.segments``.
        The segments of the positives may be None. For methods "auto" and "scores" only.
    segment_positives : {"all", "own"}, default="all"
        Known positives that each segment is compared with: "all" if positives look alike in all
        segments, "own" if only those of the segment itself look like its hidden positives.
    every : {"day", "week", "month", "quarter", "year"}, optional
        Period to which ``segments`` are rounded, which are then dates.
    columns : sequence of str, optional
        Columns to use, even if they look like identifiers. By default, all columns that do not
        look like identifiers.
    drop : sequence of str, optional
        Columns to leave out.
    scale : bool, default=True
        Whether to standardize numbers.
    cv : int or pair of array-likes of int, default=5
        Number of folds, or the fold of each positive and of each unlabeled row.
    n_resamples : int, optional
        Number of resamples for the interval. By default, 200, or 40 for methods that must be
        refitted.
    checkpoint : path, optional
        File that stores the sums of finished blocks, so that the same call resumes after an
        interruption. For "auto", "scores", "penl1" and "pe" only; requires an integer
        ``random_state``.
    read_options : mapping, optional
        For files: ``encoding``, ``header``, ``decimal``, ``file_format`` and ``sheet``, as in
        :func:`classprior.engines.fit_blocks`.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.
    n_jobs : int, optional
        Number of threads or processes; -1 uses all cores.
    verbose : int, default=0
        Whether to show progress bars.
    evidence : AutoPrior, optional
        Estimator that the bound and the warnings are based on; with ``method="auto"``, also the
        estimator that is fitted. By default, ``AutoPrior()``.
    **options : any
        Parameters of the method's estimator, such as ``n_centers`` or ``classifiers``.

    Returns
    -------
    estimate : PriorEstimate
        The estimate; ``print`` shows a summary.

    See Also
    --------
    AutoPrior : The default method as a scikit-learn estimator, with notes on the interval.
    classprior.priors.ScorePrior : The method for scores of a model that you have already.
    PUClassifier : Predicts which rows are positive.

    Notes
    -----
    For methods that work on scores or sums over rows ("auto", "subtypes", "penl1", "pe"), the
    interval comes from resampling bins of rows; other methods are refitted to random halves of both
    samples. The upper bound and the warnings do not depend on the method: they are based on an
    :class:`AutoPrior`, whose classifiers are fitted to at most 20,000 rows of each sample and score
    all rows. (The warnings about "subtypes" are based on its own scores.)

    Examples
    --------
    >>> from classprior import estimate_prior
    >>> from classprior.datasets import make_transactions
    >>> frauds, transactions = make_transactions(prior=0.08, random_state=0)
    >>> estimate = estimate_prior(frauds, transactions, random_state=0)
    >>> round(estimate.prior, 2)
    0.08
    >>> print(estimate)
    About ...% of the 5,000 unlabeled rows are positive (... rows).
    ...
    """
    method = _method_for(method, X_positive, X_unlabeled)
    if method == SCORES:
        X_positive, X_unlabeled = as_column(X_positive), as_column(X_unlabeled)
    check_confidence(confidence)
    if segment_positives not in ("all", "own"):
        raise ValueError(
            f"Expected segment_positives to be 'all' or 'own', got {segment_positives!r}."
        )
    if segments is not None and method not in ("auto", SCORES):
        raise ValueError(f"segments need method 'auto' or 'scores', got {method!r}.")
    if checkpoint is not None and not isinstance(random_state, Integral):
        raise ValueError(
            f"A checkpoint needs an integer random_state, got {random_state!r}: without it, "
            "another run draws different centers and cannot resume. Try random_state=0."
        )
    seed = seed_of(random_state)
    folds, ids = (cv, None) if isinstance(cv, Integral) else (5, cv)
    evidence = _evidence_for(method, evidence)
    settings: dict[str, Any] = {"cv": folds, "random_state": seed}
    common = {**settings, "confidence": confidence, "n_jobs": n_jobs, "verbose": verbose}
    if n_resamples is not None:
        common["n_resamples"] = max(20, n_resamples)
    evidence.set_params(**{k: v for k, v in common.items() if k in evidence.get_params()})
    if method in ("auto", SCORES):
        estimator = evidence.set_params(**options)
    else:
        if METHODS[method].allows_bias:  # it is like the evidence, but for its clusters
            settings |= {name: getattr(evidence, name) for name in _SHARED}
        estimator = METHODS[method](**{**settings, **options})
    kept = open_checkpoint(
        checkpoint, estimator, f", scale={scale}, columns={columns}, drop={drop}"
    )
    raw = open_samples(
        X_positive,
        X_unlabeled,
        seed=seed,
        columns=columns,
        drop=drop,
        cv=ids,
        weights=weights,
        groups=groups,
        segments=segments,
        every=every,
        own_positives=segment_positives == "own",
        read_options=read_options,
        checkpoint=kept,
        n_jobs=-1 if n_jobs is None else n_jobs,
        verbose=verbose,
    )
    if method == SCORES:
        estimate = _estimate_from_scores(raw, estimator)
    else:
        samples, encoder = encoded(raw, columns, scale=scale)
        estimate = estimate_samples(samples, encoder, method, estimator, evidence, n_resamples, raw)
    kept.end()
    return estimate


def _method_for(method: str, X_positive: Any, X_unlabeled: Any) -> str:
    """Return the method by its short name; with two one-dimensional arrays, that for scores."""
    method = str(method).lower()
    if method not in (*METHODS, SCORES):
        known = ", ".join((*METHODS, SCORES))
        raise ValueError(f"Expected a method among {known}, got {method!r}.")
    if not (are_scores(X_positive) and are_scores(X_unlabeled)):
        return method
    if method not in ("auto", SCORES):
        raise ValueError(
            f"The method {method!r} needs tables, got two one-dimensional arrays, which are taken "
            "as the scores of a model. Leave method out, or pass a single feature as "
            "array.reshape(-1, 1)."
        )
    return SCORES


def _evidence_for(method: str, evidence: AutoPrior | None) -> AutoPrior | ScorePrior:
    """Return an unfitted estimator for the bound and the warnings."""
    if method != SCORES:
        return AutoPrior() if evidence is None else clone(evidence)
    if evidence is not None:
        raise ValueError("evidence does not apply to scores, for which no classifier is fitted.")
    return ScorePrior()


def encoded(
    samples: Samples, columns: Sequence[str] | None, *, scale: bool = True
) -> tuple[Samples, TableEncoder]:
    """Return the samples encoded as numbers, and the fitted encoder."""
    encoder = TableEncoder(keep=tuple(columns or ()), scale=scale)
    return samples.encoded(encoder, _MAX_ROWS), encoder


def estimate_samples(
    samples: Samples,
    encoder: TableEncoder,
    method: str,
    estimator: Any,
    evidence: AutoPrior,
    n_resamples: int | None,
    raw: Samples,
) -> PriorEstimate:
    """Fit the evidence, then the method, to encoded samples and assemble the answer.

    ``raw`` are the samples before encoding, in which a column of groups may be found.
    """
    evidence._fit_opened(samples)
    used = samples.subsample(evidence.max_rows)
    near_copies = find_near_copies(*used.rows) if samples.units.groups is None else None
    column = None
    if near_copies is not None:
        tables = raw.subsample_tables(evidence.max_rows)
        column = column_of_groups(tables, near_copies.pairs)
    resampled = None if estimator is evidence else estimator._fit_opened(samples)
    allows_bias = METHODS[method].allows_bias
    judged = estimator if allows_bias else evidence  # the warnings are about its scores
    if estimator is judged:
        population, sample = (judged.low_, judged.high_), (judged.low_sample_, judged.high_sample_)
        interval_from = "resampled scores"
    else:
        population, sample, interval_from = resampled_intervals(
            estimator,
            resampled,
            samples,
            delta=1.0 - evidence.confidence,
            n_resamples=n_resamples,
            n_jobs=evidence.n_jobs,
            verbose=evidence.verbose,
        )
    warnings: list[str] = []
    if estimator is not evidence:
        warnings += about_bound(estimator.prior_, evidence.upper_bound_, allows_bias=allows_bias)
    if estimator is not judged:
        warnings += about_interval(estimator.prior_, evidence)
        known = METHODS[method]
        n_columns = samples.n_features if known.has_kernel else 0
        warnings += about_method(method, known.over_estimates, n_columns)
    warnings += about_near_copies(near_copies, column)
    # The test of bias compares rows that are weighted alike.
    not_tested = allows_bias or samples.units.weights is not None
    warnings += diagnose(*used.rows, judged, encoder.sources_, allows_bias=not_tested)
    return _answer(
        samples,
        method,
        estimator,
        evidence,
        population,
        sample,
        interval_from=interval_from,
        is_upper_bound=judged.is_upper_bound_ and near_copies is None,
        is_too_low=near_copies is not None,
        warnings=warnings,
        notes=(
            *_notes(judged, samples.sizes, counts_all=not allows_bias),
            *_notes_on_kernel(estimator),
        ),
        columns=encoder.treatments_,
    )


def _estimate_from_scores(raw: Samples, estimator: ScorePrior) -> PriorEstimate:
    """Fit to samples of one column, the scores, and assemble the answer."""
    check_single_column(raw)
    samples = raw.as_one_column(AsScores()).settled()
    estimator._fit_opened(samples, raw.columns)
    units = samples.units
    rows_are_alike = units.weights is None and units.groups is None
    name = str(raw.columns[0]) if raw.columns else SCORE
    return _answer(
        samples,
        SCORES,
        estimator,
        estimator,
        (estimator.low_, estimator.high_),
        (estimator.low_sample_, estimator.high_sample_),
        interval_from="resampled scores",
        is_upper_bound=estimator.is_upper_bound_
        and not (rows_are_alike and seem_too_high(estimator)),
        warnings=tuple(about_given_scores(estimator, rows_are_alike=rows_are_alike)),
        columns=(ColumnTreatment(name, "score", "only the order of its values is used"),),
    )


def _answer(
    samples: Samples,
    method: str,
    estimator: Any,
    evidence: TailPrior,
    population: tuple[float, float],
    sample: tuple[float, float],
    *,
    warnings: Sequence[str],
    notes: tuple[str, ...] = (),
    **rest: Any,
) -> PriorEstimate:
    """Assemble the answer, given intervals of the share in the population and in the sample."""
    n_positive, n_unlabeled = samples.sizes
    return PriorEstimate(
        prior=estimator.prior_,
        low=population[0],
        high=population[1],
        low_count=float(np.floor(sample[0] * n_unlabeled)),
        high_count=float(np.ceil(sample[1] * n_unlabeled)),
        upper_bound=evidence.upper_bound_,
        upper_bound_asymptotic=evidence.upper_bound_asymptotic_,
        confidence=float(evidence.confidence),
        method=method,
        n_positive=n_positive,
        n_unlabeled=n_unlabeled,
        warnings=(*about_sizes(n_positive, n_unlabeled), *warnings),
        notes=(
            *notes,
            *_notes_on_groups(samples.units.groups),
            *((_WEIGHTED,) if samples.units.weights is not None else ()),
        ),
        total_weights=None if samples.units.weights is None else samples.masses,
        segments=getattr(evidence, "segments_", None),
        estimator=estimator,
        evidence=evidence,
        **rest,
    )


def _notes(fitted: Any, sizes: tuple[int, int], *, counts_all: bool) -> tuple[str, ...]:
    if fitted.n_fitted_ == sizes:
        return ()
    parts = [
        f"all {size:,} {kind}" if n == size else f"{n:,} of the {size:,} {kind}"
        for n, size, kind in zip(fitted.n_fitted_, sizes, SAMPLES, strict=True)
    ]
    if not counts_all:
        return (f"The estimate is based on {parts[0]} and {parts[1]}, drawn at random.",)
    return (
        f"The classifiers were fitted to {parts[0]} and {parts[1]}, drawn at random. All rows "
        "were scored and counted.",
    )


def _notes_on_groups(groups: tuple[Any, Any] | None) -> tuple[str, ...]:
    """Return a note if a group has rows in both samples."""
    shared = () if groups is None else np.intersect1d(*groups)
    if groups is None or len(shared) == 0:
        return ()
    positive, unlabeled = (np.flatnonzero(np.isin(keys, shared)) for keys in groups)
    match = np.flatnonzero(groups[1] == groups[0][positive[0]])
    found = "1 group has" if len(shared) == 1 else f"{len(shared):,} groups have"
    return (
        f"{found} rows in both samples: {len(positive):,} of the known positives and "
        f"{len(unlabeled):,} of the unlabeled rows, such as known positive {positive[0]} and "
        f"unlabeled row {match[0]}, counted from 0. They stay in one fold. If all rows of a group "
        "have the same class, these unlabeled rows are known positives: leave them out.",
    )


def _notes_on_kernel(estimator: Any) -> tuple[str, ...]:
    """Return a note on what computed the sums of penL1."""
    if not hasattr(estimator, "kernel_"):
        return ()
    name = {"numba": "numba", "numpy": "NumPy"}[estimator.kernel_]
    return (f"The sums over rows were computed with {name}.",)
