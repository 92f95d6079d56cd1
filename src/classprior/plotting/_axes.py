"""Where the displays are drawn, and in which colors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from classprior._data.checks import last_step
from classprior.estimate import PriorEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colors, which color-blind readers can tell apart.
ESTIMATE_COLOR = "#0072B2"
CURVE_COLORS = ("#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
GRAY = "#888888"


def new_axes() -> Axes:
    """Return the axes of a new figure, or say what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'classprior[plot]'") from error
    return plt.subplots(layout="constrained")[1]


def fitted_part(fitted: Any, *attributes: str) -> Any:
    """Return the estimator with these attributes: itself, a Pipeline's last step, an estimate's."""
    if isinstance(fitted, PriorEstimate):
        parts = [fitted.estimator, fitted.evidence]
    else:
        parts = [last_step(fitted)]
    for part in parts:
        if all(hasattr(part, name) for name in attributes):
            return part
    if hasattr(parts[0], "fit"):
        check_is_fitted(parts[0])
    raise TypeError(
        f"Expected a fitted estimator or an estimate with {', '.join(attributes)}, got a "
        f"{type(parts[0]).__name__}, which has none. AutoPrior has TailDisplay and ScoreDisplay, "
        "ScottBlanchardPrior RejectionDisplay, the matching estimators ObjectiveDisplay."
    )


def prior_and_interval(fitted: Any, part: Any) -> tuple[float, float, float]:
    """Return estimate, low and high: those of the method asked for, not of its evidence."""
    if isinstance(fitted, PriorEstimate):
        return fitted.prior, fitted.low, fitted.high
    return part.prior_, part.low_, part.high_
