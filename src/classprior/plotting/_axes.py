"""Where the displays are drawn, and in which colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers can tell apart.
ESTIMATE_COLOR = "#0072B2"
CURVE_COLORS = ("#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
GREY = "#888888"


def new_axes() -> Axes:
    """Return the axes of a new figure, or say what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'classprior[plot]'") from error
    return plt.subplots(layout="constrained")[1]
