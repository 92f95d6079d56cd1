"""The scores of both samples, and the mixture implied by the estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

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
_OUTSIDE = 0.002  # share of each sample, at each end, that is counted in the outermost bins


class ScoreDisplay:
    """Histogram of the scores of the unlabeled rows, split into positives and negatives.

    The positives have the score distribution of the known positives, scaled to their estimated
    number; the negatives are the difference. Where the positives exceed all unlabeled rows by more
    than chance, the estimate is too high or the known positives are of a different kind;
    ``excess_p_value`` tests this. Create a display with ``from_estimator``.

    Parameters
    ----------
    positive, unlabeled : array-likes of shape (n_rows,)
        Scores of the known positives and of the unlabeled rows.
    prior : float
        The estimate.

    Attributes
    ----------
    excess_p_value : float
        P-value of the largest excess of estimated positives over unlabeled rows.
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure that contains ``ax_``.
    unlabeled_, positives_, rest_ : matplotlib StepPatch
        Histograms of all unlabeled rows, of the estimated positives and of the difference.

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
        """Plot the scores of a fitted AutoPrior, or of the AutoPrior behind an estimate.

        Parameters
        ----------
        estimator : estimator, Pipeline or PriorEstimate
            A fitted estimator, or the result of ``estimate_prior``.
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.

        Returns
        -------
        display : ScoreDisplay
            The display, with the plotted objects as attributes.
        """
        evidence = fitted_part(cls.__name__, estimator, "mean_scores_", "prior_")
        positive, unlabeled = evidence.mean_scores_
        prior, _, _ = prior_and_interval(estimator, evidence)
        return cls(positive=positive, unlabeled=unlabeled, prior=prior).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Plot the three histograms.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. By default, those of a new figure.

        Returns
        -------
        display : ScoreDisplay
            The display itself, with the plotted objects as attributes.
        """
        ax = new_axes() if ax is None else ax
        edges, positive, unlabeled = self._counts()
        positive *= self._rows_per_positive
        self.unlabeled_ = ax.stairs(
            unlabeled, edges, fill=True, color=GRAY, alpha=0.35, label="all unlabeled rows"
        )
        self.positives_ = ax.stairs(
            positive,
            edges,
            fill=True,
            color=CURVE_COLORS[0],
            alpha=0.55,
            label=f"estimated positives, {percent(self.prior)}",
        )
        self.rest_ = ax.stairs(
            np.maximum(unlabeled - positive, 0.0),
            edges,
            color="black",
            linewidth=1.2,
            label="remaining negatives",
        )
        ax.set_xlim(edges[0], edges[-1])
        ax.set_ylim(0.0, 1.05 * max(unlabeled.max(), positive.max()))
        ax.set_xlabel("score: more similar to the known positives →")
        ax.set_ylabel("unlabeled rows")
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @property
    def excess_p_value(self) -> float:
        """P-value of the largest excess of estimated positives over unlabeled rows.

        If the estimate is right, bins with P known positives contain r P hidden ones on average, r
        being their ratio in all rows. Given P + U, the number U of unlabeled rows in these bins is
        then at least binomial with probability r / (1 + r). The p-value is the smallest one of all
        bins and of all tails, from a bin to the right end, times their number (Bonferroni). Rows
        are assumed to be independent and weighted alike.
        """
        _, *counts = self._counts()
        P, U = (np.concatenate([each, each[::-1].cumsum()]) for each in counts)
        r = self._rows_per_positive
        p_values = stats.binom.cdf(U, P + U, r / (1.0 + r))[P > 0.0]
        return float(min(1.0, len(p_values) * p_values.min()))

    @property
    def _rows_per_positive(self) -> float:
        """Number of estimated positives among the unlabeled rows for each known positive."""
        return self.prior * np.size(self.unlabeled) / np.size(self.positive)

    def _counts(self) -> tuple[Doubles, Doubles, Doubles]:
        """Return the bin edges and the counts of both samples."""
        samples = [np.asarray(scores, dtype=float) for scores in (self.positive, self.unlabeled)]
        limits = np.array([np.quantile(scores, [_OUTSIDE, 1.0 - _OUTSIDE]) for scores in samples])
        low, high = float(limits[:, 0].min()), float(limits[:, 1].max())
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, _BINS + 1)
        counts = [np.histogram(np.clip(scores, low, high), edges)[0] for scores in samples]
        return edges, counts[0].astype(float), counts[1].astype(float)
