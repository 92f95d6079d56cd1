"""Estimates by segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from classprior._core.types import Doubles
from classprior._samples.segments import period_numbers
from classprior.plotting._axes import CURVE_COLORS, ESTIMATE_COLOR, new_axes
from classprior.result import PriorEstimate, SegmentEstimates, label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_INCHES = 0.28  # height of a segment
_MOST_LABELS = 8  # on the axis of time


class SegmentDisplay:
    """Plot of the share in each segment, with its interval and the share in all rows.

    Segments are listed from top to bottom or, if they are periods, drawn over time. Create a
    display with ``from_estimate``.

    Parameters
    ----------
    segments : SegmentEstimates
        The estimates by segment, ``PriorEstimate.segments``.
    prior, low, high : float
        The share in all rows and its interval.
    level : str, default="95%"
        Confidence level, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure that contains ``ax_``.
    names_ : list of segment
        The segments in the plot.
    shares_ : matplotlib Line2D
        The markers at the shares.
    intervals_ : matplotlib Line2D
        The intervals, separated by NaN.
    whole_ : matplotlib Line2D
        The line at the share in all rows.

    Examples
    --------
    >>> from classprior import estimate_prior
    >>> from classprior.datasets import make_transactions
    >>> from classprior.plotting import SegmentDisplay
    >>> frauds, transactions = make_transactions(random_state=0)
    >>> estimate = estimate_prior(frauds, transactions, segments="channel", random_state=0)
    >>> SegmentDisplay.from_estimate(estimate).names_
    ['chip', 'contactless', 'online']
    """

    def __init__(
        self,
        *,
        segments: SegmentEstimates,
        prior: float,
        low: float,
        high: float,
        level: str = "95%",
    ) -> None:
        self.segments = segments
        self.prior = prior
        self.low = low
        self.high = high
        self.level = level

    @classmethod
    def from_estimate(
        cls, estimate: PriorEstimate, *, ax: Axes | None = None, most: int = 40
    ) -> Self:
        """Plot the segments of an estimate.

        Parameters
        ----------
        estimate : PriorEstimate
            The result of ``estimate_prior`` with ``segments``.
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        most : int, default=40
            Maximum number of segments; those with the most rows are plotted. All periods are
            plotted.

        Returns
        -------
        display : SegmentDisplay
            The display, with the plotted objects as attributes.
        """
        if estimate.segments is None:
            raise ValueError(
                "SegmentDisplay needs an estimate with segments. Pass segments to estimate_prior."
            )
        display = cls(
            segments=estimate.segments,
            prior=estimate.prior,
            low=estimate.low,
            high=estimate.high,
            level=estimate.level,
        )
        return display.plot(ax=ax, most=most)

    def plot(self, *, ax: Axes | None = None, most: int = 40) -> Self:
        """Plot the shares and their intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        most : int, default=40
            Maximum number of segments; those with the most rows are plotted. All periods are
            plotted.

        Returns
        -------
        display : SegmentDisplay
            The display itself, with the plotted objects as attributes.
        """
        every, names = self.segments.every, list(self.segments)
        over_time = every is not None and not isinstance(names[0], tuple)
        if not over_time and len(names) > most:
            names = sorted(names, key=lambda name: -self.segments[name].n_unlabeled)[:most]
            names = [name for name in self.segments if name in names]
        if ax is None:
            ax = new_axes(None if over_time else (6.4, 1.2 + _INCHES * len(names)))
        places = period_numbers(names, every) if every and over_time else np.arange(len(names))
        self.names_ = names
        self._draw(ax, places.astype(float), over_time)
        labels = [label_of(name) for name in names]
        if over_time:
            step = -(-len(names) // _MOST_LABELS)
            ax.set_xticks(places[::step], labels[::step], parse_math=False, rotation=30, ha="right")
            ax.set_ylabel("share of the unlabeled rows")
            ax.set_ylim(bottom=0.0)
        else:
            ax.set_yticks(places, labels, parse_math=False)
            ax.set_ylim(len(names) - 0.5, -0.5)
            more = len(self.segments) - len(names)
            largest = f"\nthe {len(names)} segments with the most rows; {more} more are not shown"
            ax.set_xlabel("share of the unlabeled rows" + (largest if more else ""))
            ax.set_xlim(left=0.0)
        # Above the axes, since intervals may be anywhere.
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Axes, places: Doubles, over_time: bool) -> None:
        """Draw intervals, shares and the line of all rows; the places are on the other axis."""
        parts = [self.segments[name] for name in self.names_]
        shares = np.array([part.prior for part in parts])
        ends = np.array([[part.low, part.high, np.nan] for part in parts]).ravel()
        is_bound = np.array([part.is_upper_bound for part in parts])

        def drawn(places: Doubles, shares: Doubles, style: str, **how: Any) -> Line2D:
            x, y = (places, shares) if over_time else (shares, places)
            return ax.plot(x, y, style, **how)[0]

        (span, line) = (ax.axhspan, ax.axhline) if over_time else (ax.axvspan, ax.axvline)
        whole = CURVE_COLORS[0]
        span(self.low, self.high, color=whole, alpha=0.12)
        self.whole_ = line(self.prior, color=whole, label=f"all rows {self.prior:.3f}")
        blue = {"color": ESTIMATE_COLOR}
        self.intervals_ = drawn(
            np.repeat(places, 3), ends, "-", linewidth=1.8, label=f"{self.level} interval", **blue
        )
        self.shares_ = drawn(places, shares, "o", markersize=5, label="share", **blue)
        if is_bound.any():
            drawn(
                places[is_bound],
                shares[is_bound],
                "v" if over_time else "<",
                markersize=9,
                color=CURVE_COLORS[2],
                label="at most this share",
            )
