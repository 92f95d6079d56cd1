"""Recall against the number of rows read, from checked rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from classprior.plotting._axes import CURVE_COLORS, ESTIMATE_COLOR, checked_part, new_axes
from classprior.result import PriorEstimate
from classprior.review import CheckedEstimate, CutoffResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RecallDisplay:
    """Plot of the share of the positives that is found against the number of rows read.

    Create a display with ``from_estimate``.

    Parameters
    ----------
    cutoffs : sequence of CutoffResult
        Recall for the rows that rank first, as in ``CheckedEstimate.cutoffs``.
    n_rows : int
        Number of unlabeled rows.
    level : str, default="95%"
        Confidence level of the lower limit.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure that contains ``ax_``.
    recall_, lower_ : matplotlib Line2D
        The estimated recall, and its lower limit, which holds at all cutoffs together.

    Examples
    --------
    >>> from classprior import Estimation
    >>> from classprior.datasets import make_transactions
    >>> from classprior.plotting import RecallDisplay
    >>> frauds, transactions, is_fraud = make_transactions(random_state=0, return_truth=True)
    >>> estimation = Estimation.of(frauds, transactions, random_state=0)
    >>> plan = estimation.plan_review(200)
    >>> checked = estimation.with_checked((plan, is_fraud[list(plan.rows)]))
    >>> RecallDisplay.from_estimate(checked.estimate).lower_.get_label()
    'at least (95% confidence)'
    """

    def __init__(self, *, cutoffs: Sequence[CutoffResult], n_rows: int, level: str = "95%") -> None:
        self.cutoffs = cutoffs
        self.n_rows = n_rows
        self.level = level

    @classmethod
    def from_estimate(
        cls, estimate: PriorEstimate | CheckedEstimate, *, ax: Axes | None = None
    ) -> Self:
        """Plot the recall from checked rows.

        Parameters
        ----------
        estimate : PriorEstimate or CheckedEstimate
            An estimate with checked rows.
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.

        Returns
        -------
        display : RecallDisplay
            The display, with the plotted objects as attributes.
        """
        checked = checked_part(estimate)
        display = cls(cutoffs=checked.cutoffs, n_rows=checked.n_rows, level=checked.level)
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Plot recall and its lower limit.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.

        Returns
        -------
        display : RecallDisplay
            The display itself, with the plotted objects as attributes.
        """
        ax = new_axes() if ax is None else ax
        ranks = [0, *(c.rank for c in self.cutoffs), self.n_rows]
        values = [0.0, *(c.recall.value for c in self.cutoffs), 1.0]
        lows = [0.0, *(c.recall.low for c in self.cutoffs), 1.0]
        self.recall_ = ax.plot(ranks, values, color=ESTIMATE_COLOR, marker=".", label="estimate")[0]
        # Between two cutoffs, at least what the first one finds is found.
        self.lower_ = ax.plot(
            ranks,
            lows,
            color=CURVE_COLORS[0],
            drawstyle="steps-post",
            label=f"at least ({self.level} confidence)",
        )[0]
        ax.set_xlabel("rows read, in order of rank")
        ax.set_ylabel("share of the positives found")
        ax.set_ylim(0.0, 1.05)
        ax.set_xlim(left=0.0)
        ax.legend(loc="lower right", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
