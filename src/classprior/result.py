"""What a user holds in hand: the estimate, its segments and its warnings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from unicodedata import east_asian_width

from classprior import _html
from classprior._core.messages import p_text, percent, rows_text
from classprior._headline import IN_DOUBT, PURE, TYPICAL, Meaning, bound_name, headline
from classprior._tables.columns import ColumnTreatment

if TYPE_CHECKING:
    from classprior.review import CheckedEstimate

_MOST_SHOWN = 40  # segments in a table
_LONGEST_NAME = 20
_RAW = "The attribute raw is the share without shrinkage."

#: How to follow the advice in Python. The command line has its own table with the same keys.
REMEDIES = {
    "drop": "To leave out a column, pass `drop=[{column}]`.",
    "group": "Set `groups=`, for example to the column that identifies the customer.",
    "group by": "Pass `groups={column}`.",
    "leave out known": "Pass `leave_out_known=True`.",
    "repeat": "More rounds of cross-fitting also help: pass `evidence=AutoPrior(n_repeats=20)`.",
    "auto": 'Use `method="auto"`.',
    "subtypes": (
        'Compare with `method="subtypes"`; '
        "`classprior.sensitivity.label_bias_curve` shows how far the estimate could move."
    ),
}


class Caution(str):
    """A warning as a string, with its finding and its advice as attributes.

    Parameters
    ----------
    finding : str
        What was found.
    advice : str
        What to do about it.
    remedy : str, optional
        Key in ``REMEDIES`` of the option that helps.
    column : str, optional
        Name of the column that the warning is about.
    how : str, optional
        How to apply the remedy. By default, the text in ``REMEDIES``.
    """

    finding: str
    advice: str
    remedy: str | None
    column: str | None
    _arguments: tuple[Any, ...]

    def __new__(
        cls,
        finding: str,
        advice: str,
        remedy: str | None = None,
        column: str | None = None,
        how: str | None = None,
    ) -> Self:
        """Join the finding, the advice and how to follow it."""
        if how is None and remedy is not None:
            how = REMEDIES[remedy].format(column="..." if column is None else repr(column))
        full_advice = f"{advice} {how}" if how else advice
        caution = super().__new__(cls, f"{finding} {full_advice}")
        caution.finding, caution.advice = finding, full_advice
        caution.remedy, caution.column = remedy, column
        caution._arguments = finding, advice, remedy, column, how
        return caution

    def with_finding(self, more: str) -> Self:
        """Return the same warning with one more sentence on what was found."""
        finding, *others = self._arguments
        return type(self)(f"{finding} {more}", *others)

    def worded(self, how: str) -> Self:
        """Return the same warning with another text on how to apply the remedy."""
        finding, advice, remedy, column, _ = self._arguments
        return type(self)(finding, advice, remedy, column, how)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments


@dataclass(frozen=True, kw_only=True)
class SegmentEstimate:
    """Estimated share of positives in the unlabeled rows of one segment.

    Attributes
    ----------
    prior : float
        Share of positives, shrunk toward those of the other segments. Over all segments, the
        numbers of positives add up to that in all rows, unless each segment is compared with its
        own positives.
    raw : float
        Share of positives from the rows of this segment alone.
    low, high : float
        Confidence interval for the share of positives in the segment's population.
    low_count, high_count : float
        Confidence interval for the number of positives among the segment's unlabeled rows.
    upper_bound : float
        Upper confidence bound on the share in the segment's population, certified if that of all
        rows is.
    n_positive : int or None
        Number of known positives in the segment; None if their segments are unknown.
    n_unlabeled : int
        Number of unlabeled rows in the segment.
    is_upper_bound : bool
        Whether only ``upper_bound`` says something, because known positives do not stand out or no
        purely positive region was found.
    """

    prior: float
    raw: float
    low: float
    high: float
    low_count: float
    high_count: float
    upper_bound: float
    n_positive: int | None
    n_unlabeled: int
    is_upper_bound: bool = False

    @property
    def count(self) -> float:
        """Expected number of positives among the segment's unlabeled rows."""
        return self.prior * self.n_unlabeled

    @property
    def cells(self) -> list[str]:
        """Rows, share, interval, number of positives and bound, as text."""
        return [
            f"{self.n_unlabeled:,}",
            f"at most {percent(self.upper_bound)}" if self.is_upper_bound else percent(self.prior),
            f"{percent(self.low)} to {percent(self.high)}",
            f"{self.count:,.0f}",
            percent(self.upper_bound),
        ]


class Ratio(NamedTuple):
    """Ratio of the shares of two segments, with its confidence interval."""

    ratio: float
    low: float
    high: float


class SegmentEstimates(dict[Any, SegmentEstimate]):
    """The estimates by segment: a value, or a tuple of values if there are several columns.

    Attributes
    ----------
    p_value : float
        P-value of the hypothesis that the share is the same in all segments, while the negatives
        may differ between them.
    columns : tuple of str
        Columns that the segments were read from; empty if they were given as arrays.
    every : str or None
        The period, if the segments are dates.
    own_positives : bool
        Whether each segment was compared with its own known positives only.
    """

    def __init__(
        self,
        estimates: Iterable[tuple[Any, SegmentEstimate]],
        p_value: float,
        confidence: float,
        ratios: Callable[[int, int], tuple[float, float, float]],
        *,
        columns: tuple[str, ...] = (),
        every: str | None = None,
        own_positives: bool = False,
    ) -> None:
        super().__init__(estimates)
        self.p_value = p_value
        self.columns = columns
        self.every = every
        self.own_positives = own_positives
        self._confidence = confidence
        self._ratios = ratios  # of two segments, by their places, with limits

    def __eq__(self, other: object) -> bool:
        """Compare the estimates and the attributes."""
        if not isinstance(other, SegmentEstimates):
            return NotImplemented
        return super().__eq__(other) and all(
            value == getattr(other, name)
            for name, value in vars(self).items()
            if not name.startswith("_")
        )

    def __ne__(self, other: object) -> bool:
        return not self == other  # that of dict compares the items only

    @property
    def title(self) -> str:
        """What the segments are, such as the name of their column."""
        return ", ".join(self.columns) or self.every or "segment"

    @property
    def findings(self) -> str:
        """Whether the shares differ, and what they were computed from."""
        differ = "The shares differ between segments"
        if self.p_value >= 1.0 - self._confidence:
            differ = "No evidence that the shares differ between segments"
        tested = f"{differ} ({p_text(self.p_value)}). "
        of = "its own known positives" if self.own_positives else "all known positives"
        return (
            f"{tested if len(self) > 1 else ''}Each segment is compared with {of}. Shares of small "
            "segments are shrunk toward the others."
        )

    def to_text(self) -> str:
        """Return a table of the segments and what was found, as plain text.

        Returns
        -------
        text : str
            The table and, after an empty line, the findings.
        """
        return "\n".join([*self.lines, "", f"{self.findings} {_RAW}"])

    @property
    def lines(self) -> list[str]:
        """The table as lines of text of equal length."""
        rows = self._table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(["", row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        ]
        return [*lines, *self._left_out()]

    def to_html(self) -> str:
        """Return a table of the segments and what was found, as HTML.

        Returns
        -------
        fragment : str
            A table and paragraphs.
        """
        texts = [*map(str.strip, self._left_out()), f"{self.findings} {_RAW}"]
        return _html.table(self._table()) + "".join(map(_html.paragraph, texts))

    def _repr_html_(self) -> str:
        return _html.fragment(self.to_html())

    def _table(self) -> list[list[str]]:
        """Return the header and the cells of the first segments."""
        names = list(self)[:_MOST_SHOWN]
        interval = f"{100.0 * self._confidence:g}% interval"
        return [
            [label_of(self.title), "rows", "share", interval, "positives", "bound"],
            *([label_of(name), *self[name].cells] for name in names),
        ]

    def _left_out(self) -> list[str]:
        more = len(self) - _MOST_SHOWN
        return [f"  and {more:,} more"] if more > 0 else []

    def ratio(self, segment: Any, other: Any) -> Ratio:
        """Return how many times the share in one segment is that in another.

        Parameters
        ----------
        segment, other : segment
            Two keys of this dict.

        Returns
        -------
        ratio : Ratio
            The ratio of the raw shares, with ``low`` and ``high``, its confidence interval. The
            interval may be zero to infinity, and the ratio is NaN if both shares are zero.
        """
        names = list(self)
        return Ratio(*self._ratios(names.index(segment), names.index(other)))

    def to_frame(self) -> Any:
        """Return the estimates as a pandas data frame with one row per segment.

        Returns
        -------
        frame : DataFrame
            One column for each attribute, indexed by segment.
        """
        import pandas as pd

        names = list(self)
        if isinstance(names[0], tuple):
            index = pd.MultiIndex.from_tuples(names, names=self.columns or None)
        else:
            index = pd.Index(names, name=self.title)
        return pd.DataFrame(self._rows(), index=index)

    def to_list(self) -> list[dict[str, Any]]:
        """Return the estimates as plain dicts, with the key ``segment``."""
        names = [list(name) if isinstance(name, tuple) else name for name in self]
        return [{"segment": name, **row} for name, row in zip(names, self._rows(), strict=True)]

    def _rows(self) -> list[dict[str, Any]]:
        return [{**asdict(part), "count": part.count} for part in self.values()]


def label_of(segment: Any) -> str:
    """Return a segment as short text that can be printed."""
    text = ", ".join(map(str, segment)) if isinstance(segment, tuple) else str(segment)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    # Chinese, Japanese and Korean characters are twice as wide as others.
    ends = list(accumulate(1 + (east_asian_width(c) in "WF") for c in text))
    fits = bisect_right(ends, _LONGEST_NAME)
    return text if fits == len(text) else f"{text[: fits - 1]}…"


@dataclass(frozen=True, repr=False, kw_only=True)
class PriorEstimate:
    """Estimated share of positives in the unlabeled rows, with its uncertainty and warnings.

    Returned by :func:`estimate_prior`; ``print`` shows a summary, and notebooks draw it as a bar.
    Estimates are equal if all their attributes are, except the fitted estimators.

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
        Upper confidence bound on the population's share. If ``bound_is_exact``, it is certified:
        valid for any sample size and any overlap of the classes, provided that ``bound_holds_if``
        is true and rows, or the given groups, are independent.
    upper_bound_asymptotic : float
        Asymptotic version of ``upper_bound``; tighter, valid for large samples.
    bound_is_exact : bool
        Whether ``upper_bound`` is certified. With weights or groups, it is only if ``max_weight``
        was given; otherwise it also assumes that no row (or group) can weigh much more than the
        largest seen. Not if its assumptions seem to fail.
    bound_holds_if : str
        The condition of the bound, which no test can confirm: "known positives are typical of all
        positives", or for "subtypes", that they are within each kind.
    prior_if_typical : float or None
        For methods that allow for biased labels, the estimate of "auto", which does not.
    confidence : float
        Confidence level of the interval and the bound.
    method : str
        Short name of the method.
    n_positive, n_unlabeled : int
        Number of rows in each sample that count, without those of weight 0.
    n_negative : int
        Number of confirmed negatives, which are in neither sample.
    interval_from : str
        How the interval was computed.
    separation : float
        How far known positives stand out, from 0 to 1: at the best threshold of a score, the share
        of the known positives above it, less that of the negatives that the estimate implies. Below
        0.75, negatives are found wherever positives are, and only the bound says something.
    meaning : {"about", "range", "at most", "disagree", "biased", "too low", "leak"}
        What the estimate means, on which the first sentence of the answer depends: about the share;
        a guess within a wide range; unknown but for ``upper_bound``, because known positives do not
        stand out or no purely positive region was found; the share if labels are biased, which
        disagrees with that if they are not; probably too low, because known positives do not seem
        to be typical of all positives; too low, because many rows are copies or near-copies of
        others; or perhaps the result of a leak, a column that reveals which rows are labeled. If
        several apply, the last in this list counts.
    leaks : tuple of str
        Columns that tell known positives from unlabeled rows suspiciously well.
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
        Total weights of the known positives and of the unlabeled rows; None if no weights were
        given. With weights, ``prior`` is a share of the total weight, and ``count`` is this
        share times the number of rows.
    columns : tuple of ColumnTreatment
        Name, kind and treatment of each column.
    checked : CheckedEstimate or None
        The share and the number of positives from rows that a person has looked at, with exact
        limits and recall; None without such rows. The answer is then theirs.
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
    bound_is_exact: bool = True
    bound_holds_if: str = TYPICAL
    prior_if_typical: float | None = None
    separation: float = 1.0
    n_negative: int = 0
    meaning: Meaning = Meaning.ABOUT
    leaks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    segments: SegmentEstimates | None = field(default=None, hash=False)
    total_weights: tuple[float, float] | None = None
    columns: tuple[ColumnTreatment, ...] = ()
    checked: CheckedEstimate | None = field(default=None, hash=False)
    estimator: Any = field(default=None, compare=False)
    evidence: Any = field(default=None, compare=False)

    @property
    def prior_pooled(self) -> float:
        """Share of positives in all rows together, labeled and unlabeled."""
        labeled, unlabeled = self._totals
        return (labeled + self.prior * unlabeled) / (labeled + unlabeled + self.n_negative)

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
    def is_upper_bound(self) -> bool:
        """Whether the estimate is only an upper bound."""
        return self.meaning is Meaning.AT_MOST

    @property
    def bound_name(self) -> str:
        """What ``upper_bound`` may be called: in doubt if the checked rows do not agree."""
        is_refuted = self.checked is not None and self.checked.low > self.upper_bound
        return bound_name(Meaning.BIASED if is_refuted else self.meaning, self.bound_is_exact)

    @property
    def answer(self) -> str:
        """The answer in one sentence, or two if rows were checked."""
        return self.answer_unchecked if self.checked is None else self.checked.answer

    @property
    def answer_unchecked(self) -> str:
        """The answer in one sentence, without checked rows."""
        return headline(
            self.meaning,
            (self.prior, self.low, self.high),
            (self.count, self.low_count, self.high_count),
            self.n_unlabeled,
            upper_bound=self.upper_bound,
            bound_is_exact=self.bound_is_exact,
            bound_holds_if=self.bound_holds_if,
            leaks=self.leaks,
            is_weighted=self.total_weights is not None,
            prior_if_typical=self.prior_if_typical,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the fitted estimators as plain numbers, strings and lists."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        del values["estimator"], values["evidence"]
        return {
            "answer": self.answer,
            **values,
            "meaning": str(self.meaning),
            "leaks": list(self.leaks),
            "bound_name": self.bound_name,
            "count": self.count,
            "prior_pooled": self.prior_pooled,
            "label_frequency": self.label_frequency,
            "warnings": [str(w) for w in self.warnings],
            "notes": list(self.notes),
            "total_weights": None if self.total_weights is None else list(self.total_weights),
            "segments": None if self.segments is None else self.segments.to_list(),
            "segments_p_value": None if self.segments is None else self.segments.p_value,
            "columns": [column._asdict() for column in self.columns],
            "checked": None if self.checked is None else self._checked_values(self.checked),
        }

    def _checked_values(self, checked: CheckedEstimate) -> dict[str, Any]:
        agrees = checked.agrees_with(self.prior)
        return {**checked.to_dict(), "agrees": agrees, "findings": self.findings}

    @property
    def lines(self) -> list[str]:
        """Interval, bound and method, one line each."""
        assumes = [
            f"  this assumes               {self.bound_holds_if},",
            f"{'':29}and {PURE}",
        ]
        intervals = [
            *(assumes if self.meaning in (Meaning.ABOUT, Meaning.RANGE) else []),
            f"  {self.level} interval, population   {self._interval}",
            f"  {self.level} interval, these rows   {self._interval_of_rows}",
        ]
        name = self.bound_name
        if self.checked is not None:
            intervals = [*self.checked.lines, f"  without checked rows       {self._without}"]
            name = f"its {name}"
        return [
            *intervals,
            f"  {name:26} {percent(self.upper_bound)}, if {self.bound_holds_if}",
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
        details = (
            f"{self.level} interval: {self._interval} in the population, "
            f"{self._interval_of_rows} in this sample. {self.bound_name.capitalize()}: "
            f"{percent(self.upper_bound)}, if {self.bound_holds_if}. Method: {self.method}, from "
            f"{self.n_positive:,} known positives."
        )
        if self.checked is None and self.meaning in (Meaning.ABOUT, Meaning.RANGE):
            details = f"This assumes that {self.bound_holds_if}, and that {PURE}. {details}"
        if self.checked is not None:
            details = f"Without checked rows: {self._without}. {details}"
        return _html.fragment(
            _html.paragraph("", bold=self.answer),
            _html.share_bar(*self.shown, bound_name=self.bound_name),
            _html.paragraph(details),
            "" if self.segments is None else self.segments.to_html(),
            *(_html.paragraph(f" {text}", bold=f"{kind}:") for kind, text in self.remarks),
        )

    @property
    def remarks(self) -> list[tuple[str, str]]:
        """All columns left out, warnings and notes, as pairs of kind and text."""
        reasons = [
            f"{column.name!r} ({column.treatment.removeprefix('left out: ')})"
            for column in self.columns
            if column.is_left_out
        ]
        return [
            *(("Checked rows", finding) for finding in self.findings),
            *([("Columns left out", f"{', '.join(reasons)}.")] if reasons else []),
            *((self._of_warnings, warning) for warning in self.warnings),
            *(("Note", note) for note in (*self.notes, *self._on_segments)),
        ]

    @property
    def shown(self) -> tuple[float | None, float, float, float | None]:
        """Share, limits and bound that a bar shows: from checked rows, if any, without a bound.

        There is no share if only the bound says something.
        """
        if self.checked is not None:
            return self.checked.prior, self.checked.low, self.checked.high, None
        return None if self.is_upper_bound else self.prior, self.low, self.high, self.upper_bound

    @property
    def _of_warnings(self) -> str:
        return "Warning" if self.checked is None else "Warning about the estimate without them"

    @property
    def _without(self) -> str:
        """The estimate without checked rows, and whether it agrees with them."""
        agrees = self.checked is not None and self.checked.agrees_with(self.prior)
        verdict = "agrees" if agrees else "does not agree"
        return f"{percent(self.prior)} ({self._interval}), {verdict}"

    @property
    def findings(self) -> list[str]:
        """What the checked rows say about the estimate without them, and remarks on them."""
        if self.checked is None:
            return []
        return [*self.checked.findings(self.prior, self.low, self.high), *self.checked.notes]

    @property
    def _on_segments(self) -> list[str]:
        """That the upper bounds of segments are in doubt, if they are."""
        if self.segments is None or self.meaning not in IN_DOUBT:
            return []
        return ["The upper bounds of segments are in doubt, like that of all rows."]

    @property
    def _interval(self) -> str:
        return f"{percent(self.low)} to {percent(self.high)}"

    @property
    def _interval_of_rows(self) -> str:
        if self.total_weights is not None:
            low, high = (k / self.n_unlabeled for k in (self.low_count, self.high_count))
            return f"{percent(low)} to {percent(high)} of their weight"
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
