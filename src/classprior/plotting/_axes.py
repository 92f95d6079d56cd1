"""Axes, colors and fitted estimators for the displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from classprior._tables.checks import last_step
from classprior.result import PriorEstimate
from classprior.review import CheckedEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, which color-blind readers can distinguish.
ESTIMATE_COLOR = "#0072B2"
CURVE_COLORS = ("#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
GRAY = "#888888"
#: The displays that can plot an estimator with an attribute.
_DISPLAYS = {
    "objective_": "ObjectiveDisplay",
    "rejected_": "RejectionDisplay",
    "scores_": "TailDisplay or ScoreDisplay",
}


def new_axes(size: tuple[float, float] | None = None) -> Axes:
    """Return the axes of a new figure, whose size is in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots require matplotlib: pip install 'classprior[plot]'") from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def fitted_part(display: str, fitted: Any, *attributes: str) -> Any:
    """Return the estimator, the last step of a Pipeline or the part of an estimate to plot."""
    if isinstance(fitted, PriorEstimate):
        parts = [fitted.estimator, fitted.evidence]
        name = f"the method {fitted.method!r} ({type(fitted.estimator).__name__})"
    else:
        parts = [last_step(fitted)]
        name = type(parts[0]).__name__
    for part in parts:
        if all(hasattr(part, attribute) for attribute in attributes):
            return part
    if hasattr(parts[0], "fit"):
        check_is_fitted(parts[0])
    fitting = [_DISPLAYS[a] for a in _DISPLAYS if any(hasattr(part, a) for part in parts)]
    advice = f"Use {' or '.join(fitting)}."
    if not fitting:
        advice = "TailDisplay and ScoreDisplay can plot the result of estimate_prior."
    raise TypeError(f"{display} cannot plot {name}, which has no {attributes[0]}. {advice}")


def prior_and_interval(fitted: Any, part: Any) -> tuple[float, float, float]:
    """Return the estimate and its interval; for a PriorEstimate, those of its method."""
    if isinstance(fitted, PriorEstimate):
        return fitted.prior, fitted.low, fitted.high
    return part.prior_, part.low_, part.high_


def checked_part(estimate: PriorEstimate | CheckedEstimate) -> CheckedEstimate:
    """Return what was found from checked rows; raise if there are none."""
    checked = estimate.checked if isinstance(estimate, PriorEstimate) else estimate
    if checked is None or not checked.cutoffs:
        raise ValueError("The estimate has no checked rows. Use estimate_prior(..., checked=...).")
    return checked
