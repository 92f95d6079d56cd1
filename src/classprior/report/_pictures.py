"""The plots of a report: the one that fits the method, and the scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from warnings import catch_warnings, filterwarnings

from classprior._core.messages import p_text, percent
from classprior._scores.by_column import Importance
from classprior._scores.diagnostics import SIGNIFICANT
from classprior.plotting import (
    ImportanceDisplay,
    ObjectiveDisplay,
    RecallDisplay,
    RejectionDisplay,
    ReliabilityDisplay,
    ScoreDisplay,
    SegmentDisplay,
    TailDisplay,
)
from classprior.plotting._axes import ESTIMATE_COLOR
from classprior.report._inline_svg import Key, inline_svg, page_style, take_legend
from classprior.result import PriorEstimate
from classprior.review import CheckedEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (4.2, 3.1)  # inches; small, so that text is legible on a phone


@dataclass(frozen=True)
class Picture:
    """A plot and its legend."""

    name: str  # "objective", "rejection", "tails", "scores", "segments", "recall", ...
    svg: str
    keys: list[Key]
    remark: str = ""  # on what this picture shows


def draw_pictures(estimate: PriorEstimate) -> Iterator[Picture]:
    """Yield the plot that fits the method, then that of the scores."""
    share = percent(estimate.prior)
    estimator, evidence = estimate.estimator, estimate.evidence
    if hasattr(estimator, "objective_"):
        yield _draw(
            "objective",
            f"The objective over candidate shares from 0 to 1, with its minimum at {share}",
            lambda ax: ObjectiveDisplay.from_estimator(
                estimate, ax=ax, name="objective", color=ESTIMATE_COLOR
            ),
        )
    elif hasattr(estimator, "rejected_"):
        yield _draw(
            "rejection",
            f"Unlabeled rows accepted against positives rejected, with a line of slope {share}",
            lambda ax: RejectionDisplay.from_estimator(estimate, ax=ax, color=ESTIMATE_COLOR),
        )
    elif evidence is not None:
        yield _tails(estimate)
    if evidence is not None:
        yield _scores(estimate)


def draw_segments(estimate: PriorEstimate) -> Picture:
    """Return the plot of the shares by segment."""
    assert estimate.segments is not None
    n = len(estimate.segments)
    rows = min(n, 40)
    height = _SIZE[1] if estimate.segments.every else 0.9 + 0.26 * rows
    return _draw(
        "segments",
        f"Shares of positives in {rows} of {n} segments with their intervals, and the share of "
        f"{percent(estimate.prior)} in all rows",
        lambda ax: SegmentDisplay.from_estimate(estimate, ax=ax),
        (_SIZE[0], height),
    )


def draw_checked(checked: CheckedEstimate | None) -> list[Picture]:
    """Return the plots of recall and of the reliability of probabilities, if rows were checked."""
    if checked is None or not checked.cutoffs:
        return []
    best = checked.cutoffs[-1]
    return [
        _draw(
            "recall",
            f"Share of the positives found against the number of rows read, with its lower limit: "
            f"at least {percent(best.recall.low)} in the first {best.rank:,} rows",
            lambda ax: RecallDisplay.from_estimate(checked, ax=ax),
        ),
        _draw(
            "reliability",
            f"Observed share of positives against the predicted probability in {len(checked.bins)} "
            "groups of rows, with exact limits",
            lambda ax: ReliabilityDisplay.from_estimate(checked, ax=ax),
        ),
    ]


def draw_importances(importances: Sequence[Importance], most: int = 15) -> Picture:
    """Return the plot of the importances of columns."""
    n = min(most, len(importances))
    return _draw(
        "importances",
        f"The {n} most important columns of {len(importances)}, by the increase of the log-loss if "
        "a column is shuffled",
        lambda ax: ImportanceDisplay(importances=importances).plot(ax=ax, most=most),
        (_SIZE[0], 0.9 + 0.26 * n),
    )


def _tails(estimate: PriorEstimate) -> Picture:
    n_scores = len(estimate.evidence.scores_)

    def plot(ax: Axes) -> None:
        TailDisplay.from_estimator(estimate, ax=ax)
        ax.set_ylabel("unlabeled rows / positives")

    return _draw(
        "tails",
        f"Share of unlabeled rows divided by share of known positives in the tails of {n_scores} "
        f"scores, with the estimate of {percent(estimate.prior)}",
        plot,
    )


def _scores(estimate: PriorEstimate) -> Picture:
    positive, unlabeled = estimate.evidence.mean_scores_
    display = ScoreDisplay(positive=positive, unlabeled=unlabeled, prior=estimate.prior)
    picture = _draw(
        "scores",
        "Histogram of the scores of the unlabeled rows, split into the estimated positives, "
        f"{percent(estimate.prior)}, and the negatives",
        lambda ax: display.plot(ax=ax),
    )
    if estimate.total_weights is not None:
        return picture
    p_value = display.excess_p_value
    if p_value >= SIGNIFICANT:
        return picture
    remark = (
        f"Some bars have more estimated positives than rows, by more than chance "
        f"({p_text(p_value)}): the estimate is too high, or the known positives are of a different "
        "kind."
    )
    return replace(picture, remark=remark)


def _draw(
    name: str,
    title: str,
    plot: Callable[[Axes], object],
    size: tuple[float, float] = _SIZE,
) -> Picture:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Reports require matplotlib: pip install 'classprior[cli]'") from error
    with page_style():
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.add_subplot()
        plot(ax)
        keys = take_legend(ax)
        with catch_warnings():
            filterwarnings("ignore", "Glyph .* missing")  # the browser has other fonts
            return Picture(name=name, svg=inline_svg(figure, title, name), keys=keys)
