"""Estimates as a function of a parameter."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Self

import numpy as np

from classprior.plotting._axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from classprior.sensitivity import SensitivityCurve


class SensitivityDisplay:
    """Plot of estimates and error rates over one parameter: mean and range of the repeats.

    Create a display with ``from_curve``.

    Parameters
    ----------
    curve : SensitivityCurve
        The result of ``sensitivity_curve``.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure that contains ``ax_``.
    lines_ : dict of str to matplotlib Line2D
        The curves, by label: "estimate" and, if known, "error rate".

    Examples
    --------
    >>> import numpy as np
    >>> from classprior.plotting import SensitivityDisplay
    >>> from classprior.sensitivity import SensitivityCurve
    >>> curve = SensitivityCurve(
    ...     param_name="n_centers", param_range=(50, 500), error_rates=None,
    ...     priors=np.array([[0.31, 0.33], [0.30, 0.31]]),
    ... )
    >>> SensitivityDisplay.from_curve(curve, truth=0.3).ax_.get_xlabel()
    'n_centers'
    """

    def __init__(self, *, curve: SensitivityCurve) -> None:
        self.curve = curve

    @classmethod
    def from_curve(
        cls,
        curve: SensitivityCurve,
        *,
        ax: Axes | None = None,
        truth: float | None = None,
        name: str = "estimate",
    ) -> Self:
        """Plot the result of ``sensitivity_curve``.

        Parameters
        ----------
        curve : SensitivityCurve
            The result of ``sensitivity_curve``.
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        truth : float, optional
            The true prior, if known, to be marked in the plot.
        name : str, default="estimate"
            Name of the estimates in the legend.

        Returns
        -------
        display : SensitivityDisplay
            The display, with the plotted objects as attributes.
        """
        return cls(curve=curve).plot(ax=ax, truth=truth, name=name)

    def plot(
        self, *, ax: Axes | None = None, truth: float | None = None, name: str = "estimate"
    ) -> Self:
        """Plot the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        truth : float, optional
            The true prior, if known, to be marked in the plot.
        name : str, default="estimate"
            Name of the estimates in the legend.

        Returns
        -------
        display : SensitivityDisplay
            The display itself, with the plotted objects as attributes.
        """
        ax = new_axes() if ax is None else ax
        values = self.curve.param_range
        numbers = all(isinstance(value, Real) for value in values)
        x = np.asarray(values, dtype=float) if numbers else np.arange(len(values))
        self.lines_ = {}
        for label, y in ((name, self.curve.priors), ("error rate", self.curve.error_rates)):
            if y is not None:
                (line,) = ax.plot(x, y.mean(axis=1), "o-", markersize=4, label=label)
                ax.fill_between(x, y.min(axis=1), y.max(axis=1), color=line.get_color(), alpha=0.15)
                self.lines_[label] = line
        if truth is not None:
            ax.axhline(truth, color="black", linestyle="--", linewidth=1, label=f"truth {truth:g}")
        if not numbers:
            ax.set_xticks(x, [str(value) for value in values])
        elif x.min() > 0.0 and x.max() >= 10.0 * x.min():
            ax.set_xscale("log")
        ax.set(xlabel=self.curve.param_name, ylabel="share of the unlabeled rows", ylim=(0.0, 1.0))
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
