"""An estimate with the samples and fitted estimators behind it, and what follows from them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_scalar

from classprior._core.messages import listed
from classprior._core.types import Doubles, Ints
from classprior._judging import judge, judge_scores
from classprior._reviewing import (
    Ranking,
    digest_of,
    evaluated,
    own_scores,
    ranking_of,
    rows_as_given,
    with_segments,
)
from classprior._samples.labeled import split_by_label
from classprior._samples.matching import without_known
from classprior._samples.opening import open_samples
from classprior._samples.samples import Samples
from classprior._samples.units import RowOptions
from classprior._scores.by_column import ByColumn, Importance, Reason, cell_texts
from classprior._scores.own_scores import SCORE, AsScores, are_scores, as_column
from classprior._tables.encoder import TableEncoder
from classprior._tables.parameters import check_confidence, seed_of
from classprior._tables.tables import as_pandas
from classprior.classifier import PUClassifier
from classprior.engines import Scores, open_checkpoint
from classprior.priors._auto import AutoPrior
from classprior.priors._methods import METHODS, RECOMMENDED, SCORES
from classprior.priors._score import ScorePrior, check_single_column
from classprior.result import PriorEstimate
from classprior.review import ReviewPlan, plan_review, write_sheet
from classprior.saving import save_model

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


@dataclass(frozen=True, eq=False)
class Estimation:
    """An estimate, with the samples and the fitted estimators that it was made from.

    Use it instead of :func:`estimate_prior` to go on from the estimate, for example to the
    probability of each row, without fitting anything twice.

    Attributes
    ----------
    estimate : PriorEstimate
        The estimate, as ``estimate_prior`` returns it.
    samples : Samples
        The known positives and the unlabeled rows as numbers.
    encoder : TableEncoder or None
        The fitted encoder that made numbers of the columns; None for scores.
    raw : Samples
        The known positives and the unlabeled rows as they were given.

    See Also
    --------
    estimate_prior : Returns the estimate only.

    Examples
    --------
    >>> from classprior import Estimation
    >>> from classprior.datasets import make_transactions
    >>> frauds, transactions = make_transactions(prior=0.08, random_state=0)
    >>> estimation = Estimation.of(frauds, transactions, random_state=0)
    >>> round(estimation.estimate.prior, 2)
    0.08
    >>> probabilities = estimation.probabilities()  # of each transaction
    >>> first = transactions.iloc[estimation.scores().argsort()[::-1]]  # the likeliest frauds first
    >>> len(first)
    5000
    """

    estimate: PriorEstimate
    samples: Samples = field(repr=False)
    encoder: TableEncoder | None = field(repr=False)
    raw: Samples = field(repr=False)

    @classmethod
    def of(
        cls,
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
        **options: Any,
    ) -> Estimation:
        """Estimate the share of positives, with the parameters of :func:`estimate_prior`.

        For checked rows, see :meth:`with_checked`.
        """
        _check_tables(X_unlabeled, X_negative, label, positive, negative)
        notes: tuple[str, ...] = ()
        if label is not None:
            how: Any = {"read_options": read_options, "n_jobs": n_jobs}
            split = split_by_label(X_positive, label, positive, negative, **how)
            X_positive, X_unlabeled, X_negative = split.positive, split.unlabeled, split.negative
            drop, notes = [*(drop or ()), label], split.notes
        method = _method_for(method, X_positive, X_unlabeled)
        if method == SCORES:
            X_positive, X_unlabeled = as_column(X_positive), as_column(X_unlabeled)
            X_negative = None if X_negative is None else as_column(X_negative)
        check_confidence(confidence)
        if segments is not None and method not in (RECOMMENDED, SCORES):
            raise ValueError(f"segments need method 'auto' or 'scores', got {method!r}.")
        if weights is not None and method in METHODS:
            METHODS[method].estimator.check_weights_allowed()
        _check_resumable(checkpoint, random_state)
        seed = seed_of(random_state)
        n_folds, folds = (cv, None) if isinstance(cv, Integral) else (5, cv)
        common: dict[str, Any] = {"confidence": confidence, "n_jobs": n_jobs, "verbose": verbose}
        if max_weight is not None:
            common["max_weight"] = max_weight
        if n_resamples is not None:
            common["n_resamples"] = max(20, n_resamples)
        settings = {"cv": n_folds, "random_state": seed}
        evidence = _evidence_for(method, evidence, {**settings, **common})
        estimator = _estimator_for(method, evidence, settings, options)
        saved = open_checkpoint(
            checkpoint, estimator, f", scale={scale}, columns={columns}, drop={drop}"
        )
        raw = open_samples(
            X_positive,
            X_unlabeled,
            RowOptions(
                weights=weights,
                groups=groups,
                key=key,
                segments=segments,
                every=every,
                segment_positives=segment_positives,
                folds=folds,
            ),
            X_negative=X_negative,
            seed=seed,
            columns=columns,
            drop=drop,
            read_options=read_options,
            checkpoint=saved,
            n_jobs=-1 if n_jobs is None else n_jobs,
            verbose=verbose,
        )
        if method == SCORES:
            check_single_column(raw)
            if leave_out_known:
                raise ValueError(
                    "leave_out_known needs the columns of the rows, but only their scores are used."
                )
            encoder = None
            samples = raw.as_one_column(AsScores()).settled()
            estimator.fit_opened(samples, raw.columns)
            name = str(raw.columns[0]) if raw.columns else SCORE
            estimate = judge_scores(samples, estimator, name)
        else:
            encoder = TableEncoder(keep=tuple(columns or ()), scale=scale)
            if leave_out_known:
                raw = without_known(raw, encoder)
            samples = raw.encoded(encoder)
            evidence.fit_opened(samples)
            resampler = None if estimator is evidence else estimator.fit_opened(samples)
            estimate = judge(
                samples,
                raw.subsample_tables,
                encoder,
                method,
                estimator,
                evidence,
                resampler,
                n_resamples,
            )
        saved.end()
        estimate = replace(estimate, notes=(*notes, *estimate.notes))
        return cls(estimate, samples, encoder, raw)

    @cached_property
    def model(self) -> Pipeline:
        """The encoder and a ``PUClassifier`` with the estimated prior, fitted, for new rows.

        With checked rows of both classes, at least 10 of each, its probabilities are corrected.
        """
        if self.encoder is None:
            raise ValueError("There are no rows to classify: only their scores were given.")
        classifier = PUClassifier(random_state=self.samples.seed)
        evidence, checked = self.estimate.evidence, self.estimate.checked
        classifier.fit_estimated(self.samples, self.estimate.prior, evidence)
        if checked is not None and checked.can_recalibrate:
            decision = self._scores_by(classifier)[list(checked.rows)]
            is_positive = np.array(checked.answers) == 1
            classifier.correct(
                evidence, decision, is_positive, np.array(checked.weights), checked.prior
            )
        return Pipeline([("columns", self.encoder), ("classifier", classifier)])

    def probabilities(self) -> Doubles:
        """Return the probability of being positive of each unlabeled row.

        Their (weighted) mean is the estimated share, for the rows that the classifier was fitted
        to: all rows, or a random 20,000 of them.

        Returns
        -------
        probabilities : ndarray of shape (n_unlabeled,)
            The probabilities, in the order of the rows.
        """
        return self.model[-1].probability(self.scores())

    def scores(self) -> Doubles:
        """Return the score of each unlabeled row, by which to rank the rows.

        The probability grows with the score, but has more ties. Rows that the classifier was fitted
        to have out-of-fold scores, because a model trained on a row knows that it is unlabeled.

        Returns
        -------
        scores : ndarray of shape (n_unlabeled,)
            The scores, in the order of the rows; 0 means a probability of one half.
        """
        return self._scores_by(self.model[-1])

    def _scores_by(self, classifier: PUClassifier) -> Doubles:
        self.raw.each[1].source.keep_order()
        unlabeled = self.samples.each[1]
        if len(classifier.oof_rows_) == unlabeled.n_rows:
            return classifier.oof_decision_.copy()
        work = Scores(classifier, unlabeled.reader, self.samples.n_jobs_in_block)
        scores = np.concatenate(unlabeled.collect(work, "Classifying"))
        scores = self.samples.as_given(1, scores)
        scores[classifier.oof_rows_] = classifier.oof_decision_
        return scores

    def known_scores(self) -> Doubles:
        """Return the out-of-fold scores of the known positives, to compare with ``scores``.

        Returns
        -------
        scores : ndarray
            The scores of all known positives, or of 20,000 of them, in no particular order.
        """
        return self.model[-1].calibration_.decision(self.estimate.evidence.mean_scores_[0])

    @cached_property
    def _ranking(self) -> Ranking:
        """Scores and probabilities of the rows that a review is about."""
        if self.encoder is None:
            scores, probabilities, known = own_scores(self.samples, self.estimate.prior)
        else:
            scores, known = self.scores(), self.known_scores()
            probabilities = self.model[-1].probability(scores)
        return ranking_of(self.raw, scores, probabilities, known)

    def plan_review(
        self,
        budget: int | None = None,
        *,
        reserve: float = 0.05,
        additions: Sequence[int] | None = None,
        recall: float = 0.95,
        plan: ReviewPlan | None = None,
    ) -> ReviewPlan:
        """Draw the unlabeled rows that a person should look at.

        Parameters
        ----------
        budget : int, optional
            Number of rows to look at, by default 100; or to add to ``plan``, by default those of
            its next addition.
        reserve : float, default=0.05
            Share of the error probability that is kept for limits after half of the rows, and for
            rows that are added later; 0.5 if you intend to add rows.
        additions : sequence of int, optional
            Numbers of rows that may be added later, one after the other. By default, each addition
            doubles the number of rows.
        recall : float, default=0.95
            Share of the positives for which the review will tell how many rows must be read.
        plan : ReviewPlan, optional
            A plan to which rows are added, made from the same data with the same seed.

        Returns
        -------
        plan : ReviewPlan
            The rows, for :meth:`write_review`.

        Examples
        --------
        >>> from classprior import Estimation
        >>> from classprior.datasets import make_transactions
        >>> frauds, transactions, is_fraud = make_transactions(random_state=0, return_truth=True)
        >>> estimation = Estimation.of(frauds, transactions, random_state=0)
        >>> plan = estimation.plan_review(100)
        >>> answers = is_fraud[list(plan.rows)]  # by a person
        >>> found = estimation.with_checked((plan, answers)).estimate.checked
        >>> bool(found.low_count <= is_fraud.sum() <= found.high_count)
        True
        """
        ranking = self._ranking
        if plan is not None and additions is not None:
            raise ValueError(
                f"Numbers of rows that may be added were settled with the plan: "
                f"{plan.may_add_text}. Leave out others, or make a new plan."
            )
        if plan is None:
            made = plan_review(
                ranking.scores,
                ranking.probabilities,
                budget=100 if budget is None else budget,
                confidence=self.estimate.confidence,
                reserve=reserve,
                additions=additions,
                recall=recall,
                known_scores=ranking.known_scores,
                rows=ranking.rows,
                random_state=self.samples.seed,
            )
        else:
            made = plan.topped_up(ranking.scores, ranking.probabilities, budget, ranking.rows)
        made = with_segments(made, self.raw, ranking)
        rows = np.array(made.rows)
        digest = digest_of(self.raw.each[1], rows)
        return replace(made, keys=tuple(str(row + 1) for row in rows), digest=digest)

    def write_review(self, plan: ReviewPlan, path: str | os.PathLike[str]) -> None:
        """Write the sheet that a person fills in, and the plan beside it.

        Parameters
        ----------
        plan : ReviewPlan
            The plan.
        path : path
            Output file: .csv, .parquet, .feather or .xlsx. The plan of ``review.csv`` is
            ``review.plan.json``. If rows were added to the plan, only these are written.
        """
        import pyarrow as pa

        rows = as_pandas(rows_as_given(self.raw.each[1], np.array(plan.rows[plan.n_before :])))
        write_sheet(path, plan, pa.Table.from_pandas(rows, preserve_index=False))

    def with_checked(
        self,
        checked: Any,
        *,
        plan: Any = None,
        random_sample: bool = False,
        numbers: ArrayLike | None = None,
    ) -> Estimation:
        """Return the same with an estimate from rows that a person has looked at.

        Parameters
        ----------
        checked : path, sequence of paths, or pair of ReviewPlan and answers
            Sheets with the column ``checked`` filled in; or a plan and, for each of its rows, 1, 0
            or -1 for unknown.
        plan : ReviewPlan or path, optional
            The plan of the sheets. By default, that beside them.
        random_sample : bool, default=False
            Whether ``checked`` is a simple random sample that was drawn without a plan.
        numbers : array-like of int of shape (n_unlabeled,), optional
            For a random sample, the number of each unlabeled row in its file, from 0. By default,
            rows are numbered among the unlabeled rows.

        Returns
        -------
        estimation : Estimation
            With ``estimate.checked``, a :class:`classprior.review.CheckedEstimate`.
        """
        found = evaluated(
            checked,
            self.raw,
            self.raw.each[1],
            self._ranking,
            self.estimate.confidence,
            plan=plan,
            random_sample=random_sample,
            numbers=numbers,
        )
        return replace(self, estimate=replace(self.estimate, checked=found))

    @property
    def has_columns(self) -> bool:
        """Whether there are importances and reasons: not for scores or sparse rows."""
        return self.encoder is not None and self.encoder.sources_ is not None

    def importances(self) -> list[Importance]:
        """Return how much the scores depend on each column, the most important column first.

        The importance of a column is how much the log-loss of telling known positives from
        unlabeled rows increases if the values of the column are shuffled. (The area under the ROC
        curve would not do: hidden positives limit it, and one good column can reach this limit.)
        Both samples count alike, so that guessing has a log-loss of log 2 = 0.69. Each row is
        scored by classifiers that were fitted to the other half of the rows. At most 1,000 rows of
        each sample are shuffled, fewer if there are more than 20 columns.

        Columns that say the same share their importance: if one of them is shuffled, the others
        still tell. An importance near 0 therefore does not mean that a column tells nothing. A
        column far ahead of all others deserves a check: it may reveal which rows are labeled.

        Returns
        -------
        importances : list of Importance
            Tuples with ``column``, ``increase`` and ``standard_error``, which covers the choice of
            the rows, but not of the rows that the classifiers were fitted to.

        Examples
        --------
        >>> from classprior import Estimation
        >>> from classprior.datasets import make_transactions
        >>> estimation = Estimation.of(*make_transactions(random_state=0), random_state=0)
        >>> [importance.column for importance in estimation.importances()][:2]
        ['minutes_since_last', 'km_from_home']
        """
        return self._by_column.importances()

    def reasons(self, rows: ArrayLike | None = None, n: int = 3) -> list[tuple[Reason, ...]]:
        """Return the columns that speak most for unlabeled rows being positive.

        The effect of a column is how much the log-odds of the row fall on average if its value in
        this column is replaced by those of unlabeled rows, at 20 evenly spaced quantiles of the
        column (fewer if there are more than 20 columns), while the other columns stay as they are.
        Only positive effects are reasons. Columns that say the same share their effect. The
        log-odds are the mean over the classifiers of the estimate, fitted to the half of the rows
        that the row is not in.

        Parameters
        ----------
        rows : array-like of int, optional
            Numbers of unlabeled rows, from 0. By default, all, which takes about a millisecond
            per row.
        n : int, default=3
            Maximum number of reasons for each row.

        Returns
        -------
        reasons : list of tuple of Reason
            For each row, tuples with ``column``, ``value`` and ``effect``, the largest effect
            first.

        Examples
        --------
        >>> from classprior import Estimation
        >>> from classprior.datasets import make_transactions
        >>> estimation = Estimation.of(*make_transactions(random_state=0), random_state=0)
        >>> first = estimation.probabilities().argmax()
        >>> print(*estimation.reasons([first], n=2)[0], sep="; ")
        minutes_since_last = ... (+...); ... = ... (+...)
        """
        by_column, unlabeled = self._by_column, self.raw.each[1]
        assert self.encoder is not None
        check_scalar(n, "n", Integral, min_val=1)
        numbers, places = np.unique(_row_numbers(rows, unlabeled.n_rows), return_inverse=True)
        if not len(numbers):
            return []
        table = unlabeled.by_index.gather(numbers, raw=True)
        X = self.encoder.for_own_rows().transform(table)
        first, effects = by_column.reasons(X, self.samples.bins_of_given(1, numbers), n)
        names = list(by_column.columns)
        given = getattr(self.encoder, "feature_names_in_", None)
        texts = {j: cell_texts(table, names[j], given) for j in np.unique(first)}
        found = [
            tuple(
                Reason(names[j], texts[j][row], float(effect))
                for j, effect in zip(first[row], effects[row], strict=True)
                if effect > 0.0
            )
            for row in range(len(numbers))
        ]
        return [found[place] for place in places]

    @cached_property
    def _by_column(self) -> ByColumn:
        if self.encoder is None or self.encoder.sources_ is None:
            raise ValueError(
                "Importances and reasons need the columns of a table, but only scores were given."
                if self.encoder is None
                else "Importances and reasons are not available for sparse rows, which have too "
                "many columns. Pass a table with fewer columns."
            )
        evidence = self.estimate.evidence
        return ByColumn.cross_fitted(
            self.samples,
            self.encoder.sources_,
            evidence.classifiers_,
            evidence.max_rows,
            evidence.verbose,
        )

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Save the model for new rows, with the warnings of its estimate.

        Parameters
        ----------
        path : path
            Output file, for :func:`classprior.saving.load_model` and ``classprior predict``.
        """
        save_model(
            path,
            self.model,
            method=self.estimate.method,
            warnings=self.estimate.warnings,
            answer=self.estimate.answer,
            meaning=self.estimate.meaning,
        )

    def _repr_html_(self) -> str:
        return self.estimate.to_html()


def _check_tables(
    X_unlabeled: Any, X_negative: Any, label: str | None, positive: Any, negative: Any
) -> None:
    """Raise unless there are either two samples, or one table with a label."""
    values = {"positive": positive, "negative": negative}
    if label is None:
        if X_unlabeled is None:
            raise TypeError(
                "There is only one table. Pass the unlabeled rows, too, or the column that marks "
                "known positives as label."
            )
        if unused := [name for name, value in values.items() if value is not None]:
            raise TypeError(f"{listed(unused)} needs label, the name of a column.")
    elif X_unlabeled is not None or X_negative is not None:
        raise TypeError(
            f"label={label!r} applies to a single table, but there are two. Leave label out, or "
            "pass one table."
        )


def _check_resumable(checkpoint: Any, random_state: Any) -> None:
    """Raise if another run with the same arguments could not resume from the checkpoint."""
    if checkpoint is not None and not isinstance(random_state, Integral):
        raise ValueError(
            f"A checkpoint needs an integer random_state, got {random_state!r}: without it, "
            "another run draws different centers and cannot resume. Try random_state=0."
        )


def _row_numbers(rows: ArrayLike | None, n_rows: int) -> Ints:
    """Return the numbers of rows, by default of all; raise if one does not exist."""
    if rows is None:
        return np.arange(n_rows)
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or (numbers.size and not np.issubdtype(numbers.dtype, np.integer)):
        raise TypeError(f"Expected rows to be a list of row numbers, got {rows!r}.")
    wrong = numbers[(numbers < 0) | (numbers >= n_rows)]
    if len(wrong):
        raise IndexError(f"There is no unlabeled row {wrong[0]}; they are 0 to {n_rows - 1}.")
    return numbers.astype(np.int64)


def _method_for(method: str, X_positive: Any, X_unlabeled: Any) -> str:
    """Return the method by its short name; with two one-dimensional arrays, that for scores."""
    method = str(method).lower()
    if method not in (*METHODS, SCORES):
        known = ", ".join((*METHODS, SCORES))
        raise ValueError(f"Expected a method among {known}, got {method!r}.")
    if not (are_scores(X_positive) and are_scores(X_unlabeled)):
        return method
    if method not in (RECOMMENDED, SCORES):
        raise ValueError(
            f"The method {method!r} needs tables, got two one-dimensional arrays, which are taken "
            "as the scores of a model. Leave method out, or pass a single feature as "
            "array.reshape(-1, 1)."
        )
    return SCORES


def _evidence_for(
    method: str, evidence: AutoPrior | None, parameters: Mapping[str, Any]
) -> AutoPrior | ScorePrior:
    """Return an unfitted estimator for the bound and the warnings."""
    if method == SCORES and evidence is not None:
        raise ValueError("evidence does not apply to scores, for which no classifier is fitted.")
    unfitted = ScorePrior() if method == SCORES else clone(evidence or AutoPrior())
    known = unfitted.get_params()
    return unfitted.set_params(**{k: v for k, v in parameters.items() if k in known})


def _estimator_for(
    method: str,
    evidence: AutoPrior | ScorePrior,
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Any:
    """Return the unfitted estimator of a method, which may be the evidence itself."""
    if method in (RECOMMENDED, SCORES):
        return evidence.set_params(**options)
    shared = {}
    if METHODS[method].allows_bias:  # it is like the evidence, but for its clusters
        shared = {name: getattr(evidence, name) for name in _SHARED}
    return METHODS[method](**{**shared, **settings, **options})
