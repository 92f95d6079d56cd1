"""Importances of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from classprior._scores.by_column import Importance
from classprior.plotting._axes import ESTIMATE_COLOR, new_axes
from classprior.result import label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from classprior.estimation import Estimation

_INCHES = 0.28  # height of a bar
_NORMAL = 1.96  # standard errors on each side of a 95% interval


class ImportanceDisplay:
    """Plot of how much the scores depend on each column, the most important column at the top.

    Create a display with ``from_estimation``.

    Parameters
    ----------
    importances : sequence of Importance
        The importances, the largest first, as ``Estimation.importances`` returns them.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure that contains ``ax_``.
    names_ : list of str
        The columns in the plot, from top to bottom.
    bars_ : matplotlib BarContainer
        The bars.
    intervals_ : matplotlib Line2D
        The intervals, separated by NaN.

    Examples
    --------
    >>> from classprior import Estimation
    >>> from classprior.datasets import make_transactions
    >>> from classprior.plotting import ImportanceDisplay
    >>> estimation = Estimation.of(*make_transactions(random_state=0), random_state=0)
    >>> ImportanceDisplay.from_estimation(estimation).names_[0]
    'minutes_since_last'
    """

    def __init__(self, *, importances: Sequence[Importance]) -> None:
        self.importances = importances

    @classmethod
    def from_estimation(
        cls, estimation: Estimation, *, ax: Axes | None = None, most: int = 15
    ) -> Self:
        """Plot the importances of the columns of an estimation.

        Parameters
        ----------
        estimation : Estimation
            The estimation, from a table.
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        most : int, default=15
            Maximum number of columns; the most important ones are plotted.

        Returns
        -------
        display : ImportanceDisplay
            The display, with the plotted objects as attributes.
        """
        return cls(importances=estimation.importances()).plot(ax=ax, most=most)

    def plot(self, *, ax: Axes | None = None, most: int = 15) -> Self:
        """Plot the importances as bars with intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        most : int, default=15
            Maximum number of columns; the most important ones are plotted.

        Returns
        -------
        display : ImportanceDisplay
            The display itself, with the plotted objects as attributes.
        """
        shown = self.importances[:most]
        if ax is None:
            ax = new_axes((6.4, 1.2 + _INCHES * len(shown)))
        places = np.arange(len(shown))
        increases = np.array([importance.increase for importance in shown])
        errors = _NORMAL * np.array([importance.standard_error for importance in shown])
        ends = np.column_stack(
            [increases - errors, increases + errors, np.full(len(shown), np.nan)]
        )
        self.names_ = [importance.column for importance in shown]
        self.bars_ = ax.barh(places, increases, height=0.6, color=ESTIMATE_COLOR, alpha=0.6)
        self.bars_[0].set_label("increase of the log-loss")
        self.intervals_ = ax.plot(
            ends.ravel(), np.repeat(places, 3), color=ESTIMATE_COLOR, label="95% interval"
        )[0]
        ax.set_yticks(places, [label_of(name) for name in self.names_], parse_math=False)
        ax.set_ylim(len(shown) - 0.5, -0.5)
        ax.set_xlabel("increase of the log-loss if shuffled")
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
