"""Whether the probabilities of checked rows were right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from classprior.plotting._axes import ESTIMATE_COLOR, GRAY, checked_part, new_axes
from classprior.result import PriorEstimate
from classprior.review import CheckedEstimate, ReliabilityBin

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ReliabilityDisplay:
    """Plot of observed shares of positives against predicted probabilities.

    Create a display with ``from_estimate``.

    Parameters
    ----------
    bins : sequence of ReliabilityBin
        Rows that rank side by side, as in ``CheckedEstimate.bins``.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure that contains ``ax_``.
    points_ : matplotlib Line2D
        Observed shares against the mean probabilities.
    limits_ : matplotlib Line2D
        Their exact limits, separated by NaN.
    """

    def __init__(self, *, bins: Sequence[ReliabilityBin]) -> None:
        self.bins = bins

    @classmethod
    def from_estimate(
        cls, estimate: PriorEstimate | CheckedEstimate, *, ax: Axes | None = None
    ) -> Self:
        """Plot whether the probabilities were right, before any row was checked.

        Parameters
        ----------
        estimate : PriorEstimate or CheckedEstimate
            An estimate with checked rows.
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.

        Returns
        -------
        display : ReliabilityDisplay
            The display, with the plotted objects as attributes.
        """
        return cls(bins=checked_part(estimate).bins).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Plot observed against predicted shares.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.

        Returns
        -------
        display : ReliabilityDisplay
            The display itself, with the plotted objects as attributes.
        """
        ax = new_axes() if ax is None else ax
        predicted = np.array([part.predicted for part in self.bins])
        ends = np.array([(p.observed.low, p.observed.high, np.nan) for p in self.bins])
        ax.plot([0.0, 1.0], [0.0, 1.0], color=GRAY, linewidth=1.0, label="as predicted")
        self.limits_ = ax.plot(
            np.repeat(predicted, 3), ends.ravel(), color=ESTIMATE_COLOR, label="exact limits"
        )[0]
        self.points_ = ax.plot(
            predicted,
            [part.observed.value for part in self.bins],
            color=ESTIMATE_COLOR,
            marker="o",
            linestyle="none",
            label="checked rows",
        )[0]
        ax.set_xlabel("mean predicted probability")
        ax.set_ylabel("share of positives")
        ax.legend(loc="upper left", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
