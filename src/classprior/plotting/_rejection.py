"""The rejection curve of the method SB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from classprior.plotting._axes import fitted_part, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RejectionDisplay:
    """Plot of unlabeled rows accepted against positives rejected, with the fitted line.

    Create a display with ``from_estimator``.

    Parameters
    ----------
    rejected, accepted : array-likes of shape (n_thresholds,)
        Shares of positives rejected and of unlabeled rows accepted at each threshold.
    prior : float
        The estimate: minus the slope of the line through (1, 0).

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure that contains ``ax_``.
    curve_, line_ : matplotlib Line2D
        The curve, and the line whose slope is the estimate.

    Examples
    --------
    >>> from classprior import ScottBlanchardPrior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> from classprior.plotting import RejectionDisplay
    >>> samples = make_overlapping_uniforms(random_state=0)
    >>> estimator = ScottBlanchardPrior(random_state=0).fit_samples(*samples)
    >>> display = RejectionDisplay.from_estimator(estimator)
    >>> display.ax_.get_xlabel()
    'positives rejected, α'
    """

    def __init__(self, *, rejected: ArrayLike, accepted: ArrayLike, prior: float) -> None:
        self.rejected = rejected
        self.accepted = accepted
        self.prior = prior

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Plot the curve of a fitted ScottBlanchardPrior.

        Parameters
        ----------
        estimator : estimator, Pipeline or PriorEstimate
            A fitted estimator, or the result of ``estimate_prior``.
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        **kwargs : dict
            Keyword arguments for matplotlib's ``plot``, for the curve.

        Returns
        -------
        display : RejectionDisplay
            The display, with the plotted objects as attributes.
        """
        last = fitted_part(cls.__name__, estimator, "rejected_", "accepted_", "prior_")
        display = cls(rejected=last.rejected_, accepted=last.accepted_, prior=last.prior_)
        return display.plot(ax=ax, **kwargs)

    def plot(self, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Plot the curve and the line.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        **kwargs : dict
            Keyword arguments for matplotlib's ``plot``, for the curve.

        Returns
        -------
        display : RejectionDisplay
            The display itself, with the plotted objects as attributes.
        """
        ax = new_axes() if ax is None else ax
        options = {"label": "unlabeled rows accepted", "drawstyle": "steps-pre", **kwargs}
        (self.curve_,) = ax.plot(self.rejected, self.accepted, **options)
        (self.line_,) = ax.plot(
            [0.0, 1.0], [self.prior, 0.0], "--", color="black", label=f"slope {self.prior:.3f}"
        )
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02))
        ax.set_xlabel("positives rejected, α")
        ax.set_ylabel("unlabeled rows accepted, R")
        ax.legend(loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self
