"""What is found from checked rows: shares, counts, recall and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from classprior._core.messages import p_text, percent

FEWEST_OF_CLASS = 10  # checked positives, and negatives, to correct probabilities
_DIFFERENT = 0.01  # p-value
_MOST_SEGMENTS = 40  # in text


@dataclass(frozen=True)
class Limits:
    """A number or a share, with its confidence limits."""

    value: float
    low: float
    high: float

    def over(self, total: float) -> Limits:
        """Divide by a number."""
        return Limits(*(x / total if total else 0.0 for x in (self.value, self.low, self.high)))

    @property
    def text(self) -> str:
        """The limits as percentages."""
        return f"{percent(self.low)} to {percent(self.high)}"


@dataclass(frozen=True)
class CutoffResult:
    """What the rows that rank first contain, and what is left below them.

    Attributes
    ----------
    rank : int
        Number of rows that rank first.
    probability : float
        Probability of the last of them.
    above, below : Limits
        Numbers of positives among these rows and among all others.
    recall : Limits
        Share of the positives among the unlabeled rows that rank first (sensitivity).
    recall_with_known : Limits
        The same if the known positives count as found.
    precision : Limits
        Share of positives among the rows that rank first (positive predictive value).
    elusion : Limits
        Share of positives among the others.
    """

    rank: int
    probability: float
    above: Limits
    below: Limits
    recall: Limits
    recall_with_known: Limits
    precision: Limits
    elusion: Limits


@dataclass(frozen=True)
class ReliabilityBin:
    """Rows that rank side by side: how many positives were predicted, and how many there are.

    Attributes
    ----------
    first_rank, last_rank : int
        The rows.
    predicted : float
        Their mean probability before any row was checked.
    observed : Limits
        Their share of positives, from the checked rows among them; the limits are for this bin
        alone.
    n_checked : int
        Number of checked rows among them.
    """

    first_rank: int
    last_rank: int
    predicted: float
    observed: Limits
    n_checked: int


@dataclass(frozen=True)
class SegmentCount:
    """Positives among the unlabeled rows of a segment, from the rows checked in it."""

    prior: float
    low: float
    high: float
    count: float
    low_count: int
    high_count: int
    n_unlabeled: int
    n_checked: int
    n_positive: int


@dataclass(frozen=True, kw_only=True)
class CheckedEstimate:
    """Share of positives in the unlabeled rows, from rows that a person looked at.

    Attributes
    ----------
    prior : float
        Share of positives in these unlabeled rows.
    low, high : float
        Exact confidence limits of it: those of the count, divided by the number of rows. They are
        an interval; one of them alone, as in "at most ...", may be wrong as often as both together
        if the sample was not divided into strata.
    count : float
        Estimated number of positives among these unlabeled rows.
    low_count, high_count : int
        Exact confidence limits of the number.
    population_low, population_high : float or None
        Exact confidence limits of the share in the population from which the unlabeled rows were
        drawn; None if they came in groups.
    confidence : float
        Confidence level of the limits.
    n_rows : int
        Number of unlabeled rows.
    n_planned, n_checked, n_positive, n_unsure : int
        Numbers of rows in the plan, of those with an answer, of positives among these, and of rows
        before the last answer that have none or are unsure.
    recall : float
        Share of the positives that the plan was to find, for example 0.95.
    rows_to_read : int or None
        The rows that rank first up to this number contain at least that share of the positives;
        None if no number but that of all rows is proven to. It has the confidence level by itself,
        not together with the limits of the share.
    cutoffs : tuple of CutoffResult
        Recall, precision and elusion for the rows that rank first; their limits hold for all
        cutoffs together.
    segments : dict of segment to SegmentCount
        The same for each segment of the plan.
    unlike_p_value : float or None
        P-value of the hypothesis that the positives found have scores like the known positives;
        None if too few were found.
    bins : tuple of ReliabilityBin
        Predicted and observed shares of rows that rank side by side.
    notes : tuple of str
        Remarks on the answers.
    rows, answers, weights : tuple
        The rows with an answer, the answers, and one over the probability with which each row was
        drawn.
    """

    prior: float
    low: float
    high: float
    count: float
    low_count: int
    high_count: int
    population_low: float | None
    population_high: float | None
    confidence: float
    n_rows: int
    n_planned: int
    n_checked: int
    n_positive: int
    n_unsure: int
    n_known: int = 0
    recall: float = 0.95
    rows_to_read: int | None = None
    cutoffs: tuple[CutoffResult, ...] = ()
    segments: Mapping[Any, SegmentCount] = field(default_factory=dict)
    unlike_p_value: float | None = None
    bins: tuple[ReliabilityBin, ...] = ()
    notes: tuple[str, ...] = ()
    rows: tuple[int, ...] = field(default=(), repr=False)
    answers: tuple[int, ...] = field(default=(), repr=False)
    weights: tuple[float, ...] = field(default=(), repr=False)

    @property
    def level(self) -> str:
        """The confidence level in percent."""
        return f"{100.0 * self.confidence:g}%"

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        return (
            f"Between {percent(self.low)} and {percent(self.high)} of the {self.n_rows:,} "
            f"unlabeled rows are positive ({self.low_count:,} to {self.high_count:,} rows); the "
            f"best estimate is {percent(self.prior)}. Of {self.n_checked:,} checked rows, "
            f"{self.n_positive:,} {'is' if self.n_positive == 1 else 'are'} positive."
        )

    def rows_for_recall(self, recall: float = 0.95) -> int | None:
        """Return how many rows that rank first contain any share of the positives.

        For the share that the plan was to find, ``rows_to_read`` is smaller. This number comes from
        limits that hold for all cutoffs together, so shares may be chosen after looking at them.

        Parameters
        ----------
        recall : float, default=0.95
            Share of the positives among the unlabeled rows.

        Returns
        -------
        n_rows : int or None
            The smallest number of a cutoff whose lower limit of recall is at least this; None if
            only all rows are sure to contain so many. The confidence level is that of the estimate.
        """
        reached = [c.rank for c in self.cutoffs if c.recall.low >= recall]
        return min(reached, default=None)

    @property
    def can_recalibrate(self) -> bool:
        """Whether there are enough checked rows of both classes to correct probabilities."""
        n_negative = self.n_checked - self.n_positive
        return min(self.n_positive, n_negative) >= FEWEST_OF_CLASS

    @property
    def is_unlike(self) -> bool:
        """Whether the positives found do not look like the known ones."""
        return self.unlike_p_value is not None and self.unlike_p_value < _DIFFERENT

    def agrees_with(self, prior: float) -> bool:
        """Return whether an estimate of the share lies within these limits.

        Parameters
        ----------
        prior : float
            The estimate.

        Returns
        -------
        agrees : bool
            Whether it does.
        """
        return self.low <= prior <= self.high

    @property
    def lines(self) -> list[str]:
        """Limits, recall and checks, one line each."""
        lines = [
            f"  {self.level} limits, these rows     {self.low_count:,} to {self.high_count:,} rows",
        ]
        if self.population_low is not None and self.population_high is not None:
            of_population = f"{percent(self.population_low)} to {percent(self.population_high)}"
            lines.append(f"  {self.level} limits, population     {of_population}")
        lines.append(
            f"  checked rows               {self.n_checked:,} of {self.n_planned:,} in the plan"
        )
        if self.cutoffs:
            label = f"rows to read for {100.0 * self.recall:g}%"
            lines.append(f"  {label:26} {self.reading}")
        for name, part in list(self.segments.items())[:_MOST_SEGMENTS]:
            label = ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)
            lines.append(
                f"  {f'in {label}'[:26]:26} {percent(part.low)} to {percent(part.high)} "
                f"({part.n_positive:,} of {part.n_checked:,} checked)"
            )
        return lines

    @property
    def reading(self) -> str:
        """How many rows one must read to find the planned share of the positives."""
        if self.rows_to_read is not None:
            return (
                f"the first {self.rows_to_read:,}, which contain at least "
                f"{100.0 * self.recall:g}% of the positives"
            )
        best = max(self.cutoffs, key=lambda c: c.recall.low)
        return (
            f"all {self.n_rows:,}: fewer are not sure to contain so many; the first "
            f"{best.rank:,} contain at least {percent(best.recall.low)} of the positives"
        )

    def findings(self, prior: float, low: float, high: float) -> list[str]:
        """Return how the checked rows compare with an estimate without them.

        Parameters
        ----------
        prior, low, high : float
            That estimate and its interval.

        Returns
        -------
        findings : list of str
            Sentences.
        """
        without = f"{percent(prior)} ({percent(low)} to {percent(high)})"
        found = [
            f"The estimate without checked rows, {without}, agrees with them."
            if self.agrees_with(prior)
            else f"The estimate without checked rows, {without}, does not agree with them: its "
            "assumptions do not hold here. Use the limits from the checked rows."
        ]
        if self.unlike_p_value is not None:
            found.append(
                "The positives found do not look like the known positives "
                f"({p_text(self.unlike_p_value)}): the known ones are a biased sample."
                if self.is_unlike
                else "No evidence that the positives found differ from the known positives "
                f"({p_text(self.unlike_p_value)})."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings and lists."""
        values = asdict(self)
        del values["rows"], values["answers"], values["weights"]
        values["segments"] = [
            {"segment": list(name) if isinstance(name, tuple) else name, **asdict(part)}
            for name, part in self.segments.items()
        ]
        return {
            **values,
            "cutoffs": list(values["cutoffs"]),
            "bins": list(values["bins"]),
            "notes": list(self.notes),
            "answer": self.answer,
        }

    def to_text(self) -> str:
        """Return a summary as plain text."""
        return "\n".join([self.answer, "", *self.lines, *(f"\nNote: {n}" for n in self.notes)])

    def __str__(self) -> str:
        return self.to_text()
