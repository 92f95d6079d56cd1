"""Estimates for the segments of the unlabeled rows, such as regions or months."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from unicodedata import east_asian_width

import numpy as np
from scipy import stats

from classprior._core.messages import percent
from classprior._core.types import Doubles
from classprior._data.segments import Segments
from classprior._scores.answer import Answer, Tables, answer_from, resampled_estimate, tails_of
from classprior._scores.diagnostics import falls
from classprior._scores.intervals import resampled_limits

_MOST_THRESHOLDS = 60
_RESAMPLES_OF_TEST = 100  # enough for a variance
_SMALLEST_SHARE = 1e-6  # lower limit of shares whose logarithm is taken
_MOST_SHOWN = 40  # segments in a table
_LONGEST_NAME = 20
_RAW = "The attribute raw is the share without shrinkage."
_SMALLEST_P = 0.001  # smaller p-values are shown as such


@dataclass(frozen=True, kw_only=True)
class SegmentEstimate:
    """Estimated share of positives in the unlabeled rows of one segment.

    Attributes
    ----------
    prior : float
        Share of positives, shrunk toward the share in all segments.
    raw : float
        Share of positives from the rows of this segment alone.
    low, high : float
        Confidence interval for the share of positives in the segment's population.
    low_count, high_count : float
        Confidence interval for the number of positives among the segment's unlabeled rows.
    upper_bound : float
        Certified upper confidence bound on the share in the segment's population.
    n_positive : int or None
        Number of known positives in the segment; None if their segments are unknown.
    n_unlabeled : int
        Number of unlabeled rows in the segment.
    is_upper_bound : bool
        Whether ``prior`` is only an upper bound, because no purely positive region was found.
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
            f"{'at most ' if self.is_upper_bound else ''}{percent(self.prior)}",
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
        P-value of the hypothesis that the share is the same in all segments.
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
        resampled: Doubles,
        confidence: float,
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
        self._resampled = resampled  # raw shares, of shape (n_resamples, n_segments)
        self._confidence = confidence

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
        p = f"{max(self.p_value, _SMALLEST_P):.3f}".lstrip("0")
        tested = f"{differ} (p {'<' if self.p_value < _SMALLEST_P else '='} {p}). "
        of = "its own known positives" if self.own_positives else "all known positives"
        return (
            f"{tested if len(self) > 1 else ''}Each segment is compared with {of}. Shares of small "
            "segments are shrunk toward the share in all rows."
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
        style = "text-align: right; padding: 0 0 0 1.2em"
        head, *rows = (
            [f"<th style='text-align: left'>{html.escape(name)}</th>"]
            + [f"<td style='{style}'>{cell}</td>" for cell in cells]
            for name, *cells in self._table()
        )
        body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
        table = f"<table><thead><tr>{''.join(head)}</tr></thead><tbody>{body}</tbody></table>"
        texts = [*self._left_out(), f"{html.escape(self.findings)} {_RAW}"]
        return table + "".join(f"<p>{text.strip()}</p>" for text in texts)

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
            The ratio of the raw shares, with ``low`` and ``high``, its confidence interval.
        """
        names = list(self)
        first, second = (self._resampled[:, names.index(name)] for name in (segment, other))
        low, high = resampled_limits(_log(first) - _log(second), 1.0 - self._confidence)
        center = float(_log(self[segment].raw) - _log(self[other].raw))
        # Resamples of a minimum are biased, so the limits are reflected as well.
        low, high = min(low, 2.0 * center - high, center), max(high, 2.0 * center - low, center)
        return Ratio(*(float(np.exp(value)) for value in (center, low, high)))

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
    ends = np.cumsum([1 + (east_asian_width(c) in "WF") for c in text])
    fits = int(np.searchsorted(ends, _LONGEST_NAME, side="right"))
    return text if fits == len(text) else f"{text[: fits - 1]}…"


def estimate_segments(
    segments: Segments,
    whole: Answer,
    tables: Mapping[int, Tables],
    upper_bounds: Mapping[int, float],
    weights: tuple[Doubles, Doubles],
    delta: float,
    independent: tuple[float, float],
) -> SegmentEstimates:
    """Return the estimates of segments, given the counts of each."""
    tables = {s: _with_fewer_thresholds(of_segment) for s, of_segment in tables.items()}
    answers = {
        s: answer_from(of_segment, weights, delta, independent) for s, of_segment in tables.items()
    }
    raw = np.array([min(1.0, float(a.estimate.prior)) for a in answers.values()])
    resampled = np.column_stack([a.resampled.prior for a in answers.values()])
    of_test = weights[1][:_RESAMPLES_OF_TEST]
    all_rows = np.ones((len(of_test), weights[0].shape[1]))
    # Noise of the positives moves all segments alike, and does not make them differ.
    of_unlabeled = np.column_stack(
        [
            resampled_estimate(tails_of(of_segment), (all_rows, of_test)).prior
            for of_segment in tables.values()
        ]
    )
    share = min(1.0, float(whole.estimate.prior))
    priors = shrunk(raw, np.var(resampled, axis=0), share)
    sizes = [np.bincount(codes, minlength=len(segments.names)) for codes in segments.of_samples]
    return SegmentEstimates(
        (
            (segments.names[s], _estimate(prior, answer, upper_bounds[s], [n[s] for n in sizes]))
            for prior, (s, answer) in zip(priors, answers.items(), strict=True)
        ),
        equality_p_value(raw, of_unlabeled),
        resampled,
        1.0 - delta,
        columns=segments.columns,
        every=segments.every,
        own_positives=segments.own_positives,
    )


def _with_fewer_thresholds(tables: Tables) -> Tables:
    """Merge neighboring thresholds, to save time."""
    return [[(_merged(p), _merged(u)) for p, u in of_round] for of_round in tables]


def _merged(table: Doubles) -> Doubles:
    step = -(-(table.shape[1] - 1) // _MOST_THRESHOLDS)
    starts = np.r_[0 : table.shape[1] - 1 : step, table.shape[1] - 1]
    return np.add.reduceat(table, starts, axis=1)


def _estimate(
    prior: float, answer: Answer, upper_bound: float, sizes: Sequence[int]
) -> SegmentEstimate:
    interval, n_unlabeled = answer.interval, int(sizes[0])
    high_end = float(np.quantile(answer.resampled.extrapolated, 0.95))
    raw = min(1.0, float(answer.estimate.prior))
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
