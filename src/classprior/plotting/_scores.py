"""Scores of both samples, and the mixture that the estimate makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from classprior._core.messages import percent
from classprior._core.types import Doubles
from classprior.plotting._axes import (
    CURVE_COLORS,
    GRAY,
    fitted_part,
    new_axes,
    prior_and_interval,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 36
_OUTSIDE = 0.002  # share of either sample on each side whose scores go to the outermost bins


class ScoreDisplay:
    """How a score is distributed among the unlabeled rows, and which part of it is positive.

    Positives hidden among the unlabeled rows are taken to score as the known ones do; as many
    as estimated fit under the distribution of all unlabeled rows, and the rest is negative. Where
    they do not fit, the estimate is too high or the known positives are of another kind. Make
    one with ``from_estimator``.

    Parameters
    ----------
    positive, unlabeled : array-likes
        Scores of the known positives and of the unlabeled rows.
    prior : float
        The estimate.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    unlabeled_, positives_, rest_ : matplotlib StepPatch
        Numbers of unlabeled rows, of positives among them, and the difference, by score.

    Examples
    --------
    >>> from classprior import AutoPrior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> from classprior.plotting import ScoreDisplay
    >>> samples = make_overlapping_uniforms(random_state=0)
    >>> estimator = AutoPrior(random_state=0).fit_samples(*samples)
    >>> display = ScoreDisplay.from_estimator(estimator)
    >>> display.ax_.get_ylabel()
    'unlabeled rows'
    """

    def __init__(self, *, positive: ArrayLike, unlabeled: ArrayLike, prior: float) -> None:
        self.positive = positive
        self.unlabeled = unlabeled
        self.prior = prior

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the scores of a fitted AutoPrior, or of the evidence behind an estimate.

        Parameters
        ----------
        estimator : estimator, Pipeline or PriorEstimate
            Fitted, or what ``estimate_prior`` returned.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        display : ScoreDisplay
            With the drawn objects as attributes.
        """
        evidence = fitted_part(estimator, "mean_scores_", "prior_")
        positive, unlabeled = evidence.mean_scores_
        prior, _, _ = prior_and_interval(estimator, evidence)
        return cls(positive=positive, unlabeled=unlabeled, prior=prior).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the three distributions.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        display : ScoreDisplay
            This object, with the drawn objects as attributes.
        """
        ax = new_axes() if ax is None else ax
        edges, positive, unlabeled = self._counts()
        positive *= self.prior * unlabeled.sum() / positive.sum()
        self.unlabeled_ = ax.stairs(
            unlabeled, edges, fill=True, color=GRAY, alpha=0.35, label="all unlabeled rows"
        )
        self.positives_ = ax.stairs(
            positive,
            edges,
            fill=True,
            color=CURVE_COLORS[0],
            alpha=0.55,
            label=f"positives among them, {percent(self.prior)}",
        )
        self.rest_ = ax.stairs(
            np.maximum(unlabeled - positive, 0.0),
            edges,
            color="black",
            linewidth=1.2,
            label="the rest: negatives",
        )
        ax.set_xlim(edges[0], edges[-1])
        ax.set_ylim(0.0, 1.05 * max(unlabeled.max(), positive.max()))
        ax.set_xlabel("score: more like the known positives →")
        ax.set_ylabel("unlabeled rows")
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _counts(self) -> tuple[Doubles, Doubles, Doubles]:
        samples = [np.asarray(scores, dtype=float) for scores in (self.positive, self.unlabeled)]
        limits = np.array([np.quantile(scores, [_OUTSIDE, 1.0 - _OUTSIDE]) for scores in samples])
        low, high = float(limits[:, 0].min()), float(limits[:, 1].max())
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, _BINS + 1)
        counts = [np.histogram(np.clip(scores, low, high), edges)[0] for scores in samples]
        return edges, counts[0].astype(float), counts[1].astype(float)
