"""The answer: a share with its uncertainty, as text, as HTML and as plain values."""

from __future__ import annotations

import html
from dataclasses import dataclass, fields
from typing import Any

from classprior._core.messages import percent, rows_text
from classprior._core.share_bar import share_bar
from classprior._data.encoder import ColumnTreatment
from classprior._scores.segments import SegmentEstimates


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PriorEstimate:
    """Estimated share of positives in the unlabeled rows, with its uncertainty and warnings.

    Returned by :func:`estimate_prior`; ``print`` shows a summary, and notebooks draw it as a bar.

    Attributes
    ----------
    prior : float
        Share of positives in the unlabeled rows.
    low, high : float
        Confidence interval for the share of positives in the population from which the unlabeled
        rows were drawn.
    low_count, high_count : float
        Confidence interval for the number of positives among these unlabeled rows.
    upper_bound : float
        Certified upper confidence bound on the population's share. It is valid for any sample size
        and any overlap of the classes, provided that known and hidden positives have the same
        distribution and rows, or the given groups, are independent.
    upper_bound_asymptotic : float
        Asymptotic version of ``upper_bound``; tighter, valid for large samples.
    confidence : float
        Confidence level of the interval and the bound.
    method : str
        Short name of the method.
    n_positive, n_unlabeled : int
        Number of rows in each sample.
    interval_from : str
        How the interval was computed.
    is_upper_bound : bool
        Whether ``prior`` is only an upper bound, because no purely positive region was found.
    is_too_low : bool
        Whether ``prior`` and the interval are too low, because many rows are near-copies of others.
    warnings : tuple of str
        Reasons not to trust the estimate, each with advice.
    notes : tuple of str
        Remarks on the computation, such as the use of a subsample.
    segments : dict of segment to SegmentEstimate, or None
        The estimate for each segment, with ``prior``, ``raw``, ``low``, ``high``, ``count``,
        ``upper_bound`` and ``n_unlabeled``; also ``to_frame()``, ``ratio(segment, other)`` and
        ``p_value``, that of the hypothesis that all segments have the same share. A segment is a
        value, or a tuple of values if there are several columns.
    total_weights : tuple of float, or None
        Total weights of the known positives and of the unlabeled rows; None if rows are not
        weighted. With weights, ``prior`` is a share of the total weight, and ``count`` is this
        share times the number of rows.
    columns : tuple of ColumnTreatment
        Name, kind and treatment of each column.
    estimator : estimator
        The fitted estimator.
    evidence : AutoPrior or ScorePrior
        The fitted :class:`AutoPrior` that the bound and the warnings are based on, whatever the
        method; for scores, the estimator itself.
    """

    prior: float
    n_positive: int
    n_unlabeled: int
    low: float
    high: float
    low_count: float
    high_count: float
    upper_bound: float
    upper_bound_asymptotic: float
    confidence: float
    method: str
    interval_from: str
    is_upper_bound: bool = False
    is_too_low: bool = False
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    segments: SegmentEstimates | None = None
    total_weights: tuple[float, float] | None = None
    columns: tuple[ColumnTreatment, ...] = ()
    estimator: Any = None
    evidence: Any = None

    @property
    def prior_pooled(self) -> float:
        """Share of positives in the labeled and unlabeled rows together."""
        labeled, unlabeled = self._totals
        return (labeled + self.prior * unlabeled) / (labeled + unlabeled)

    @property
    def label_frequency(self) -> float:
        """Share of all positives that are labeled, often called c."""
        labeled, unlabeled = self._totals
        return labeled / (labeled + self.prior * unlabeled)

    @property
    def _totals(self) -> tuple[float, float]:
        """Total weights, or numbers of rows, of both samples."""
        return self.total_weights or (self.n_positive, self.n_unlabeled)

    @property
    def level(self) -> str:
        """The confidence level in percent, for example '95%'."""
        return f"{100.0 * self.confidence:g}%"

    @property
    def count(self) -> float:
        """Expected number of positives among the unlabeled rows."""
        return self.prior * self.n_unlabeled

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        share = (
            f"bout {percent(self.prior)} of the {self.n_unlabeled:,} unlabeled rows are positive"
        )
        count = rows_text(f"{self.count:,.0f}")
        if self.is_too_low:
            return f"A{share} ({count}), but this is too low: many rows are near-copies of others."
        if self.is_upper_bound:
            return f"At most a{share} ({count}; {self.level} interval {self._interval})."
        return f"A{share} ({count})."

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the fitted estimators as plain numbers, strings and lists."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        del values["estimator"], values["evidence"]
        return {
            **values,
            "count": self.count,
            "prior_pooled": self.prior_pooled,
            "label_frequency": self.label_frequency,
            "warnings": [str(w) for w in self.warnings],
            "notes": list(self.notes),
            "total_weights": None if self.total_weights is None else list(self.total_weights),
            "segments": None if self.segments is None else self.segments.to_list(),
            "segments_p_value": None if self.segments is None else self.segments.p_value,
            "columns": [column._asdict() for column in self.columns],
        }

    @property
    def lines(self) -> list[str]:
        """Interval, bound and method, one line each."""
        return [
            f"  {self.level} interval, population   {self._interval}",
            f"  {self.level} interval, these rows   {self._interval_of_rows}",
            f"  certified upper bound      {percent(self.upper_bound)}",
            f"  method                     {self.method}, from {self.n_positive:,} known positives",
        ]

    def to_text(self) -> str:
        """Return a summary as plain text."""
        lines = [self.answer, "", *self.lines]
        if self.segments is not None:
            lines += ["", self.segments.to_text()]
        return "\n".join([*lines, *(f"\n{remark}: {text}" for remark, text in self.remarks)])

    def to_html(self) -> str:
        """Return a summary as an HTML fragment, for light and dark pages."""
        bar = share_bar(self.prior, self.low, self.high, self.upper_bound)
        details = (
            f"{self.level} interval: {self._interval} in the population, "
            f"{self._interval_of_rows} in this sample. Certified upper bound: "
            f"{percent(self.upper_bound)}. Method: {self.method}, from {self.n_positive:,} known "
            "positives."
        )
        parts = [f"<p><strong>{html.escape(self.answer)}</strong></p>", bar]
        parts.append(f"<p>{html.escape(details)}</p>")
        if self.segments is not None:
            parts.append(self.segments.to_html())
        parts += [f"<p><strong>{r}:</strong> {html.escape(t)}</p>" for r, t in self.remarks]
        style = "max-width: 42em; line-height: 1.5"
        return f'<div class="classprior-estimate" style="{style}">{"".join(parts)}</div>'

    @property
    def remarks(self) -> list[tuple[str, str]]:
        """All columns left out, warnings and notes, as pairs of kind and text."""
        reasons = [
            f"{column.name!r} ({column.treatment.removeprefix('left out: ')})"
            for column in self.columns
            if column.is_left_out
        ]
        return [
            *([("Columns left out", f"{', '.join(reasons)}.")] if reasons else []),
            *(("Warning", warning) for warning in self.warnings),
            *(("Note", note) for note in self.notes),
        ]

    @property
    def _interval(self) -> str:
        return f"{percent(self.low)} to {percent(self.high)}"

    @property
    def _interval_of_rows(self) -> str:
        return rows_text(f"{self.low_count:,.0f} to {self.high_count:,.0f}")

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        return (
            f"PriorEstimate(prior={self.prior:.3f}, low={self.low:.3f}, high={self.high:.3f}, "
            f"upper_bound={self.upper_bound:.3f}, method={self.method!r})"
        )

    def __str__(self) -> str:
        return self.to_text()
