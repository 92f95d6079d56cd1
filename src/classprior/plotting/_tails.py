"""The tails of the scores behind the method auto."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from classprior._core.types import Doubles
from classprior._scores.tails import WINDOW, ScoreTails, tail_ratio, weights_of_scores
from classprior.plotting._axes import (
    CURVE_COLORS,
    ESTIMATE_COLOR,
    fitted_part,
    new_axes,
    prior_and_interval,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TailDisplay:
    """Plot of the ratio of shares in the tails of the scores, with the estimate and its interval.

    The ratio is the share of the unlabeled rows above a threshold divided by the share of the known
    positives above it, an upper bound on the prior for every score and threshold. If the curves are
    level at the left, there is a purely positive region, and the estimate is the prior. If they
    still fall there, the estimate is only an upper bound. The dotted line extrapolates the curves
    linearly to the very end of the tails, as ``AutoPrior.extrapolated_`` does. Create a display
    with ``from_estimator``.

    Parameters
    ----------
    scores : dict of str to pair of arrays
        Scores of the known positives and of the unlabeled rows, by classifier.
    prior, low, high : float
        The estimate and its interval.
    extrapolated : float, optional
        The share extrapolated to the very end of the tails. By default, it is not plotted.
    window : float, default=0.7
        Share of the known positives from which it is extrapolated.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure that contains ``ax_``.
    lines_ : dict of str to matplotlib Line2D
        The curves, by classifier.
    extrapolation_ : matplotlib Line2D or None
        The line that extrapolates the curves, if ``extrapolated`` was given.
    end_ : matplotlib Line2D or None
        The marker at its end.
    truth_ : matplotlib Line2D or None
        The line at the true prior, if ``truth`` was given.

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

    def __init__(
        self,
        *,
        scores: dict[str, Any],
        prior: float,
        low: float,
        high: float,
        extrapolated: float | None = None,
        window: float = WINDOW,
    ) -> None:
        self.scores = scores
        self.prior = prior
        self.low = low
        self.high = high
        self.extrapolated = extrapolated
        self.window = window

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, truth: float | None = None
    ) -> Self:
        """Plot the tails of a fitted AutoPrior, or of the AutoPrior behind an estimate.

        Parameters
        ----------
        estimator : estimator, Pipeline or PriorEstimate
            A fitted estimator, or the result of ``estimate_prior``.
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        truth : float, optional
            The true prior, if known, to be marked in the plot.

        Returns
        -------
        display : TailDisplay
            The display, with the plotted objects as attributes.
        """
        evidence = fitted_part(cls.__name__, estimator, "scores_", "extrapolated_")
        prior, low, high = prior_and_interval(estimator, evidence)
        display = cls(
            scores=evidence.scores_,
            prior=prior,
            low=low,
            high=high,
            extrapolated=evidence.extrapolated_,
            window=evidence.extrapolation_window_,
        )
        return display.plot(ax=ax, truth=truth)

    def plot(self, *, ax: Axes | None = None, truth: float | None = None) -> Self:
        """Plot the curves, the estimate and its interval.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.
        truth : float, optional
            The true prior, if known, to be marked in the plot.

        Returns
        -------
        display : TailDisplay
            The display itself, with the plotted objects as attributes.
        """
        ax = new_axes() if ax is None else ax
        ax.axhspan(self.low, self.high, color=ESTIMATE_COLOR, alpha=0.12, label="interval")
        ax.axhline(self.prior, color=ESTIMATE_COLOR, label=f"estimate {self.prior:.3f}")
        self.lines_ = {}
        tails = {name: ScoreTails.from_scores(*both).counts() for name, both in self.scores.items()}
        for (name, (p, u, n, m)), color in zip(tails.items(), cycle(CURVE_COLORS), strict=False):
            P, U = np.cumsum(p) / n, np.cumsum(u) / m
            (self.lines_[name],) = ax.plot(P, U / P, color=color, linewidth=1.2, label=name)
        self.extrapolation_ = self.end_ = None
        if self.extrapolated is not None:
            (self.extrapolation_,) = ax.plot(
                [0.0, self.window],
                [self.extrapolated, self._ratio_at_window(tails.values())],
                ":",
                color=ESTIMATE_COLOR,
                linewidth=2.0,
                zorder=3,
                label=f"extrapolated to {self.extrapolated:.3f}",
            )
            (self.end_,) = ax.plot(  # on the edge of the axes
                [0.0], [self.extrapolated], "D", color=ESTIMATE_COLOR, clip_on=False, zorder=3
            )
        self.truth_ = None
        if truth is not None:
            self.truth_ = ax.axhline(
                truth, color="black", linestyle="--", linewidth=1, label=f"truth {truth:.3f}"
            )
        end = self.extrapolated or 0.0
        top = min(1.3, max(1.05 * self.high, 1.05 * end, 3.0 * self.prior, 0.05))
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, top))
        ax.set_xlabel("share of the known positives in the tail")
        ax.set_ylabel("share of unlabeled rows / share of positives")
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _ratio_at_window(self, tails: Iterable[tuple[Doubles, Doubles, Doubles, Doubles]]) -> float:
        """Return the height of the extrapolating line at its right end.

        A density that is linear in w below the window integrates to a ratio that is linear in the
        share of positives, too. The line fitted to each score has the score's own ratio at the
        window, and scores count by the weights of their estimates.
        """
        tails = list(tails)
        shares = [(np.cumsum(p) / n, np.cumsum(u) / m) for p, u, n, m in tails]
        ratios = np.array([np.interp(self.window, P, U / P) for P, U in shares])
        found = [tail_ratio(*tail) for tail in tails]
        logs, errors, _ = (np.stack(part, axis=-1) for part in zip(*found, strict=True))
        return float(weights_of_scores(logs, errors)[0] @ ratios)
