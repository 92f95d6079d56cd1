"""The objective of estimators that match distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from classprior.plotting._axes import fitted_part, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ObjectiveDisplay:
    """Plot of the objective over the candidate priors, with the estimate at its minimum.

    Create a display with ``from_estimator``.

    Parameters
    ----------
    thetas : array-like of shape (n_thetas,)
        Candidate priors.
    objective : array-like of shape (n_thetas,)
        The objective at each candidate.
    prior : float
        The estimate.
    name : str, optional
        Name of the curve in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure that contains ``ax_``.
    line_ : matplotlib Line2D
        The curve.
    minimum_ : matplotlib Line2D
        The marker at the estimate.
    truth_ : matplotlib Line2D or None
        The line at the true prior, if ``truth`` was given.

    Examples
    --------
    >>> from classprior import PenalizedL1Prior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> from classprior.plotting import ObjectiveDisplay
    >>> samples = make_overlapping_uniforms(random_state=0)
    >>> estimator = PenalizedL1Prior(random_state=0).fit_samples(*samples)
    >>> display = ObjectiveDisplay.from_estimator(estimator, truth=0.7)
    >>> display.ax_.get_xlabel()
    'share of positives in the unlabeled rows, θ'
    """

    def __init__(
        self, *, thetas: ArrayLike, objective: ArrayLike, prior: float, name: str | None = None
    ) -> None:
        self.thetas = thetas
        self.objective = objective
        self.prior = prior
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        truth: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the objective of a fitted prior estimator.

        Parameters
        ----------
        estimator : estimator, Pipeline or PriorEstimate
            A fitted estimator, or the result of ``estimate_prior``.
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        name : str, optional
            Name of the curve in the legend. By default, the class of the estimator.
        truth : float, optional
            The true prior, if known, to be marked in the plot.
        **kwargs : dict
            Keyword arguments for matplotlib's ``plot``, for the curve.

        Returns
        -------
        display : ObjectiveDisplay
            The display, with the plotted objects as attributes.
        """
        last = fitted_part(cls.__name__, estimator, "objective_", "thetas_", "prior_")
        display = cls(
            thetas=last.thetas_,
            objective=last.objective_,
            prior=last.prior_,
            name=name or type(last).__name__,
        )
        return display.plot(ax=ax, truth=truth, **kwargs)

    def plot(self, *, ax: Axes | None = None, truth: float | None = None, **kwargs: Any) -> Self:
        """Plot the curve and its minimum.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        truth : float, optional
            The true prior, if known, to be marked in the plot.
        **kwargs : dict
            Keyword arguments for matplotlib's ``plot``, for the curve.

        Returns
        -------
        display : ObjectiveDisplay
            The display itself, with the plotted objects as attributes.
        """
        ax = new_axes() if ax is None else ax
        (self.line_,) = ax.plot(self.thetas, self.objective, **{"label": self.name, **kwargs})
        lowest = float(np.interp(self.prior, np.asarray(self.thetas), np.asarray(self.objective)))
        (self.minimum_,) = ax.plot(
            [self.prior],
            [lowest],
            "o",
            color=self.line_.get_color(),
            label=f"estimate {self.prior:.3f}",
        )
        self.truth_ = None
        if truth is not None:
            self.truth_ = ax.axvline(
                truth, color="black", linestyle="--", linewidth=1, label=f"truth {truth:.3f}"
            )
        # Beyond the estimate the objective may be a thousand times larger.
        ax.set_ylim(min(0.0, lowest) - 0.05, 1.1)
        ax.set_xlim(0.0, 1.0)
        ax.set_xlabel("share of positives in the unlabeled rows, θ")
        ax.set_ylabel("objective")
        ax.legend(loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self
