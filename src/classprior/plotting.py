"""Pictures of fitted estimators, in the style of scikit-learn's displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from classprior._tails import SMALLEST_TAIL, ScoreTails
from classprior._validation import last_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from classprior.priors import AutoResult, PriorCurve

__all__ = ["ObjectiveDisplay", "RejectionDisplay", "TailDisplay"]

# Okabe and Ito's colours, which colour-blind readers can tell apart.
_CURVE_COLORS = ("#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")


class ObjectiveDisplay:
    """The objective over the candidate priors, with the estimate at its minimum.

    Make one with ``from_estimator`` or ``from_curve``.

    Parameters
    ----------
    thetas : array-like of shape (n_thetas,)
        Candidate priors.
    objective : array-like of shape (n_thetas,)
        The objective at each of them.
    prior : float
        The estimate.
    name : str, optional
        What the legend calls the curve.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    line_ : matplotlib Line2D
        The curve.
    minimum_ : matplotlib Line2D
        The mark at the estimate.
    truth_ : matplotlib Line2D or None
        The line at the true prior, where one was given.

    Examples
    --------
    >>> from classprior import penalized_l1
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> from classprior.plotting import ObjectiveDisplay
    >>> curve = penalized_l1(*make_overlapping_uniforms(random_state=0), random_state=0)
    >>> display = ObjectiveDisplay.from_curve(curve, truth=0.7)
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
        """Draw the objective of a fitted prior estimator.

        Parameters
        ----------
        estimator : object
            A fitted estimator with ``thetas_``, ``objective_`` and ``prior_``, or a Pipeline that
            ends in one.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            What the legend calls the curve; by default the class of the estimator.
        truth : float, optional
            The true prior, where it is known.
        **kwargs : dict
            Passed to matplotlib's plot for the curve.

        Returns
        -------
        display : ObjectiveDisplay
            With the drawn objects as attributes.
        """
        last = last_step(estimator)
        if not hasattr(last, "fit"):
            raise TypeError(
                f"Expected a fitted prior estimator, got a {type(last).__name__}. For what a "
                "two-sample function returns, use ObjectiveDisplay.from_curve."
            )
        check_is_fitted(last, ["thetas_", "objective_", "prior_"])
        display = cls(
            thetas=last.thetas_,
            objective=last.objective_,
            prior=last.prior_,
            name=name or type(last).__name__,
        )
        return display.plot(ax=ax, truth=truth, **kwargs)

    @classmethod
    def from_curve(
        cls,
        curve: PriorCurve,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        truth: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what a two-sample function returned.

        Parameters
        ----------
        curve : PriorCurve
            The estimate and its objective.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            What the legend calls the curve.
        truth : float, optional
            The true prior, where it is known.
        **kwargs : dict
            Passed to matplotlib's plot for the curve.

        Returns
        -------
        display : ObjectiveDisplay
            With the drawn objects as attributes.
        """
        if not hasattr(curve, "objective"):
            raise TypeError(
                f"Expected what a two-sample function returns, got a {type(curve).__name__}. For a "
                "fitted estimator, use ObjectiveDisplay.from_estimator."
            )
        display = cls(thetas=curve.thetas, objective=curve.objective, prior=curve.prior, name=name)
        return display.plot(ax=ax, truth=truth, **kwargs)

    def plot(self, *, ax: Axes | None = None, truth: float | None = None, **kwargs: Any) -> Self:
        """Draw the curve and its minimum.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        truth : float, optional
            The true prior, where it is known.
        **kwargs : dict
            Passed to matplotlib's plot for the curve.

        Returns
        -------
        display : ObjectiveDisplay
            This object, with the drawn objects as attributes.
        """
        ax = _new_axes() if ax is None else ax
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
        # Past the estimate the objective can rise a thousandfold; show it where it matters.
        ax.set_ylim(min(0.0, lowest) - 0.05, 1.1)
        ax.set_xlim(0.0, 1.0)
        ax.set_xlabel("share of positives in the unlabeled rows, θ")
        ax.set_ylabel("objective")
        ax.legend(loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class RejectionDisplay:
    """Unlabeled rows accepted against positives rejected, and the line whose slope is the prior.

    Make one with ``from_estimator``.

    Parameters
    ----------
    rejected, accepted : array-likes of shape (n_thresholds,)
        Share of positives rejected and of unlabeled rows accepted.
    prior : float
        The slope of the line through (1, 0).

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    curve_, line_ : matplotlib Line2D
        The curve and the line.

    Examples
    --------
    >>> from classprior import scott_blanchard_prior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> from classprior.plotting import RejectionDisplay
    >>> curve = scott_blanchard_prior(*make_overlapping_uniforms(random_state=0), random_state=0)
    >>> display = RejectionDisplay(
    ...     rejected=curve.rejected, accepted=curve.accepted, prior=curve.prior
    ... ).plot()
    >>> display.ax_.get_xlabel()
    'positives rejected, α'
    """

    def __init__(self, *, rejected: ArrayLike, accepted: ArrayLike, prior: float) -> None:
        self.rejected = rejected
        self.accepted = accepted
        self.prior = prior

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the curve of a fitted ScottBlanchardPrior.

        Parameters
        ----------
        estimator : object
            A fitted estimator with ``rejected_``, ``accepted_`` and ``prior_``, or a Pipeline that
            ends in one.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **kwargs : dict
            Passed to matplotlib's plot for the curve.

        Returns
        -------
        display : RejectionDisplay
            With the drawn objects as attributes.
        """
        last = last_step(estimator)
        check_is_fitted(last, ["rejected_", "accepted_", "prior_"])
        display = cls(rejected=last.rejected_, accepted=last.accepted_, prior=last.prior_)
        return display.plot(ax=ax, **kwargs)

    def plot(self, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the curve and the line.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **kwargs : dict
            Passed to matplotlib's plot for the curve.

        Returns
        -------
        display : RejectionDisplay
            This object, with the drawn objects as attributes.
        """
        ax = _new_axes() if ax is None else ax
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


class TailDisplay:
    """The ratio of shares in the tail of every score, beside the estimate and its interval.

    A curve that is level at its left end has found a purely positive region; one that still falls
    there has not, and the estimate is an upper bound. Make one with ``from_estimator`` or
    ``from_result``.

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
    >>> from classprior import auto_prior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> from classprior.plotting import TailDisplay
    >>> result = auto_prior(*make_overlapping_uniforms(random_state=0), random_state=0)
    >>> display = TailDisplay.from_result(result, truth=0.7)
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
        """Draw the tails of a fitted AutoPrior.

        Parameters
        ----------
        estimator : object
            A fitted AutoPrior, or a Pipeline that ends in one.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        truth : float, optional
            The true prior, where it is known.

        Returns
        -------
        display : TailDisplay
            With the drawn objects as attributes.
        """
        last = last_step(estimator)
        check_is_fitted(last, ["scores_", "prior_", "low_", "high_"])
        display = cls(scores=last.scores_, prior=last.prior_, low=last.low_, high=last.high_)
        return display.plot(ax=ax, truth=truth)

    @classmethod
    def from_result(
        cls, result: AutoResult, *, ax: Axes | None = None, truth: float | None = None
    ) -> Self:
        """Draw what ``auto_prior`` returned.

        Parameters
        ----------
        result : AutoResult
            The estimate and its scores.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        truth : float, optional
            The true prior, where it is known.

        Returns
        -------
        display : TailDisplay
            With the drawn objects as attributes.
        """
        display = cls(scores=result.scores, prior=result.prior, low=result.low, high=result.high)
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
        ax = _new_axes() if ax is None else ax
        ax.axhspan(self.low, self.high, color="#0072B2", alpha=0.12, label="interval")
        ax.axhline(self.prior, color="#0072B2", label=f"estimate {self.prior:.3f}")
        self.lines_ = {}
        for (name, (positive, unlabeled)), color in zip(
            self.scores.items(), _CURVE_COLORS, strict=False
        ):
            counts = ScoreTails.from_scores(positive, unlabeled).counts()
            P, U = np.cumsum(counts, axis=1) / np.array([[len(positive)], [len(unlabeled)]])
            (self.lines_[name],) = ax.plot(P, U / P, color=color, linewidth=1.2, label=name)
        self.truth_ = None
        if truth is not None:
            self.truth_ = ax.axhline(
                truth, color="black", linestyle="--", linewidth=1, label=f"truth {truth:.3f}"
            )
        ax.axvspan(0.0, SMALLEST_TAIL, color="#888888", alpha=0.15)  # too small to be used
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, min(1.3, max(1.05 * self.high, 3.0 * self.prior))))
        ax.set_xlabel("share of the known positives in the tail")
        ax.set_ylabel("share of unlabeled rows / share of positives")
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _new_axes() -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'classprior[plot]'") from error
    return plt.subplots(layout="constrained")[1]
