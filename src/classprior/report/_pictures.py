"""The pictures of a report: what the method saw, and the scores of both samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from classprior._core.messages import percent
from classprior.estimate import PriorEstimate
from classprior.plotting import ObjectiveDisplay, RejectionDisplay, ScoreDisplay, TailDisplay
from classprior.plotting._axes import ESTIMATE_COLOR
from classprior.report._inline_svg import Key, inline_svg, page_style, take_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (4.2, 3.1)  # inches; a telephone's width, so that letters can be read there


@dataclass(frozen=True)
class Picture:
    """A picture for a page.

    Parameters
    ----------
    name : str
        One of "objective", "rejection", "tails" and "scores".
    svg : str
        The picture as an element of the page.
    keys : list of Key
        Its legend.
    """

    name: str
    svg: str
    keys: list[Key]


def draw_pictures(estimate: PriorEstimate) -> Iterator[Picture]:
    """Draw what the method saw, then the scores."""
    share = percent(estimate.prior)
    estimator, evidence = estimate.estimator, estimate.evidence
    if hasattr(estimator, "objective_"):
        yield _draw(
            "objective",
            f"The objective over candidate shares from 0 to 1, lowest at {share}",
            lambda ax: ObjectiveDisplay.from_estimator(
                estimate, ax=ax, name="objective", color=ESTIMATE_COLOR
            ),
        )
    elif hasattr(estimator, "rejected_"):
        yield _draw(
            "rejection",
            f"Unlabeled rows accepted against positives rejected, and a line of slope {share}",
            lambda ax: RejectionDisplay.from_estimator(estimate, ax=ax, color=ESTIMATE_COLOR),
        )
    elif evidence is not None:
        yield _tails(estimate)
    if evidence is not None:
        yield _draw(
            "scores",
            "Histogram of the scores of the unlabeled rows, with the positives among them, "
            f"{share}, and the rest",
            lambda ax: ScoreDisplay.from_estimator(estimate, ax=ax),
        )


def _tails(estimate: PriorEstimate) -> Picture:
    n_scores = len(estimate.evidence.scores_)

    def plot(ax: Axes) -> None:
        TailDisplay.from_estimator(estimate, ax=ax)
        ax.set_ylabel("unlabeled rows / positives")

    return _draw(
        "tails",
        f"Share of unlabeled rows over share of known positives in the tails of {n_scores} "
        f"scores, beside the estimate of {percent(estimate.prior)}",
        plot,
    )


def _draw(name: str, title: str, plot: Callable[[Axes], object]) -> Picture:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Reports need matplotlib: pip install 'classprior[cli]'") from error
    with page_style():
        figure = Figure(figsize=_SIZE, layout="constrained")
        ax = figure.add_subplot()
        plot(ax)
        keys = take_legend(ax)
        return Picture(name=name, svg=inline_svg(figure, title, name), keys=keys)
