"""The main entry point: from two samples to an estimate with an interval and warnings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from classprior.estimation import Estimation
from classprior.priors._auto import AutoPrior
from classprior.priors._methods import METHODS
from classprior.result import PriorEstimate

__all__ = ["METHODS", "PriorEstimate", "estimate_prior"]


def estimate_prior(
    X_positive: Any,
    X_unlabeled: Any = None,
    *,
    X_negative: Any = None,
    label: str | None = None,
    positive: Any = None,
    negative: Any = None,
    method: str = "auto",
    confidence: float = 0.95,
    weights: Any = None,
    groups: Any = None,
    key: Any = None,
    max_weight: float | tuple[float, float] | None = None,
    segments: Any = None,
    segment_positives: str = "all",
    every: str | None = None,
    leave_out_known: bool = False,
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
    checked: Any = None,
    random_sample: bool = False,
    **options: Any,
) -> PriorEstimate:
    """Estimate what share of the unlabeled rows is positive, with an interval and warnings.

    Parameters
    ----------
    X_positive, X_unlabeled : array, data frame, path, dataset, query, dask collection or blocks
        Known positives, and rows that may be positive or negative. Paths such as ``"frauds.csv"``
        or ``"all/*.parquet"`` are read; :func:`classprior.engines.fit_blocks` lists everything that
        is accepted. Numbers are standardized, missing values filled in and flagged, and categories
        one-hot encoded. Named columns are matched by name. Two one-dimensional arrays are the
        scores of a model that you have already: larger means more positive, only their order
        matters, and the model must not have been trained on these rows. With ``label``, the first
        is one table, a data frame or a path, and there is no second.
    X_negative : array, data frame, path, dataset, query, dask collection or blocks, optional
        Confirmed negatives: rows that were checked and found to be negative, which must not be
        among the unlabeled rows. They are counted, and the estimate is checked with them: a warning
        says if they score like positives.
    label : str, optional
        Column of the table that marks the known positives, if all rows are in one table.
    positive, negative : str, number or bool, optional
        Values in the ``label`` column that mark known positives and confirmed negatives. All other
        rows are unlabeled. By default, the only value beside words such as "unknown", "unchecked"
        or "open", or the yes beside a no, marks known positives, and nothing confirmed negatives.
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
        name, or one array per sample. Only ratios of weights within a sample matter, and rows of
        weight 0 have no influence.
    groups : str or pair of array-likes, optional
        Group of each row, such as a customer or a patient: a column name, or one array per sample.
        Rows of a group are kept in the same fold and resampled together, and the bound counts
        groups.
    key : str, sequence of str or pair of array-likes, optional
        What tells each row of a sample from the others, such as the number of a payment: one or
        more column names, or one array per sample. Whatever depends on row numbers otherwise, such
        as folds and drawn rows, then depends on the hash of the key, so that the answer is the same
        in any order of rows, and from any source. Keys are compared as text: 1, 1.0 and "1" are
        the same, times in a zone are compared in UTC. A key that repeats within a sample, or is
        missing, is refused.
    max_weight : float or pair of float, optional
        The most that a row can weigh, not only in these samples; with groups, the most that the
        rows of a group can weigh together, or without weights, their number. A pair is for known
        positives and unlabeled rows. With weights or groups, the bound is certified only if it is
        given.
    segments : str, sequence of str or pair of array-likes, optional
        Segment of each row, such as its region or month: one or more column names, or one array
        per sample. The share is then also estimated for each segment, in ``estimate.segments``.
        The segments of the positives may be None. For methods "auto" and "scores" only.
    segment_positives : {"all", "own"}, default="all"
        Known positives that each segment is compared with: "all" if positives look alike in all
        segments, "own" if only those of the segment itself look like its hidden positives.
    every : {"day", "week", "month", "quarter", "year"}, optional
        Period to which ``segments`` are rounded, which are then dates. Times in a zone count by
        their local time.
    leave_out_known : bool, default=False
        Whether to leave out unlabeled rows that have the same values as a known positive in all
        columns that are used, for unlabeled rows that include the known positives. Of several such
        rows, as many are left out as there are known positives with these values.
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
        For files: ``encoding``, ``header``, ``decimal``, ``file_format`` and ``sheet``; for queries
        and streams: ``spool``; as in :func:`classprior.engines.fit_blocks`.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.
    n_jobs : int, optional
        Number of threads or processes; -1 uses all cores.
    verbose : int, default=0
        Whether to show progress bars.
    evidence : AutoPrior, optional
        Estimator that the bound and the warnings are based on; with ``method="auto"``, also the
        estimator that is fitted. By default, ``AutoPrior()``. Its ``cv``, ``confidence``,
        ``random_state``, ``n_jobs`` and ``verbose`` are those given here.
    checked : path, sequence of paths, or pair of ReviewPlan and answers, optional
        Unlabeled rows that a person has looked at: the sheets of a plan made by
        :meth:`Estimation.plan_review`, with the column ``checked`` filled in. The estimate then
        has an attribute ``checked``, with exact limits that need no assumption about the known
        positives.
    random_sample : bool, default=False
        Whether ``checked`` is a simple random sample of the unlabeled rows that was drawn without
        a plan: a file with the number of each row, from 1, in a column ``row``.
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

    Rows that were checked and found to be negative are left out of the unlabeled rows, and the
    estimate is checked with them:

    >>> _, transactions, is_fraud = make_transactions(random_state=0, return_truth=True)
    >>> checked = transactions[~is_fraud].sample(200, random_state=0)
    >>> unchecked = transactions.drop(checked.index)
    >>> estimate = estimate_prior(frauds, unchecked, X_negative=checked, random_state=0)
    >>> estimate.n_unlabeled, estimate.n_negative, estimate.warnings
    (4800, 200, ())

    The same in one table:

    >>> import pandas as pd
    >>> parts = {"fraud": frauds, "fine": checked, "unknown": unchecked}
    >>> table = pd.concat([part.assign(status=status) for status, part in parts.items()])
    >>> estimate = estimate_prior(
    ...     table, label="status", positive="fraud", negative="fine", random_state=0
    ... )
    >>> estimate.n_positive, estimate.n_unlabeled, estimate.n_negative
    (400, 4800, 200)
    """
    parameters = locals()
    options = parameters.pop("options")
    del parameters["checked"], parameters["random_sample"]
    found = Estimation.of(**parameters, **options)
    if checked is not None:
        found = found.with_checked(checked, random_sample=random_sample)
    return found.estimate
