"""The tails of scores behind the recommended estimate."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from classprior._scores.tails import SMALLEST_TAIL, ScoreTails
from classprior.plotting._axes import (
    CURVE_COLORS,
    ESTIMATE_COLOR,
    GRAY,
    fitted_part,
    new_axes,
    prior_and_interval,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TailDisplay:
    """The ratio of shares in the tail of every score, beside the estimate and its interval.

    A curve that is level at its left end has found a purely positive region; one that still falls
    there has not, and the estimate is an upper bound. Make one with ``from_estimator``.

    Parameters
    ----------
    scores : dict of str to pair of arrays
        Scores of the positives and of the unlabeled rows, by classifier.
    prior, low, high : float
        The estimate and its interval.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    lines_ : dict of str to matplotlib Line2D
        The curves, by classifier.
    truth_ : matplotlib Line2D or None
        The line at the true prior, where one was given.

    Examples
    --------
    >>> from classprior import AutoPrior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> from classprior.plotting import TailDisplay
    >>> samples = make_overlapping_uniforms(random_state=0)
    >>> estimator = AutoPrior(random_state=0).fit_samples(*samples)
    >>> display = TailDisplay.from_estimator(estimator, truth=0.7)
    >>> display.ax_.get_xlabel()
    'share of the known positives in the tail'
    """

    def __init__(self, *, scores: dict[str, Any], prior: float, low: float, high: float) -> None:
        self.scores = scores
        self.prior = prior
        self.low = low
        self.high = high

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, truth: float | None = None
    ) -> Self:
        """Draw the tails of a fitted AutoPrior, or of the evidence behind an estimate.

        Parameters
        ----------
        estimator : estimator, Pipeline or PriorEstimate
            Fitted, or what ``estimate_prior`` returned.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        truth : float, optional
            The true prior, where it is known.

        Returns
        -------
        display : TailDisplay
            With the drawn objects as attributes.
        """
        evidence = fitted_part(estimator, "scores_", "prior_", "low_", "high_")
        prior, low, high = prior_and_interval(estimator, evidence)
        display = cls(scores=evidence.scores_, prior=prior, low=low, high=high)
        return display.plot(ax=ax, truth=truth)

    def plot(self, *, ax: Axes | None = None, truth: float | None = None) -> Self:
        """Draw the curves, the estimate and its interval.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        truth : float, optional
            The true prior, where it is known.

        Returns
        -------
        display : TailDisplay
            This object, with the drawn objects as attributes.
        """
        ax = new_axes() if ax is None else ax
        ax.axhspan(self.low, self.high, color=ESTIMATE_COLOR, alpha=0.12, label="interval")
        ax.axhline(self.prior, color=ESTIMATE_COLOR, label=f"estimate {self.prior:.3f}")
        self.lines_ = {}
        for (name, (positive, unlabeled)), color in zip(
            self.scores.items(), cycle(CURVE_COLORS), strict=False
        ):
            p, u, n, m = ScoreTails.from_scores(positive, unlabeled).counts()
            P, U = np.cumsum(p) / n, np.cumsum(u) / m
            (self.lines_[name],) = ax.plot(P, U / P, color=color, linewidth=1.2, label=name)
        self.truth_ = None
        if truth is not None:
            self.truth_ = ax.axhline(
                truth, color="black", linestyle="--", linewidth=1, label=f"truth {truth:.3f}"
            )
        ax.axvspan(0.0, SMALLEST_TAIL, color=GRAY, alpha=0.15)  # too small to be used
        top = min(1.3, max(1.05 * self.high, 3.0 * self.prior, 0.05))
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, top))
        ax.set_xlabel("share of the known positives in the tail")
        ax.set_ylabel("share of unlabeled rows / share of positives")
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
