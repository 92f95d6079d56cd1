"""Colors, names and markers of the methods, the same in every figure."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

# Colors of Okabe and Ito, distinguishable with color blindness.
COLORS = {
    "penl1": "#0072B2",
    "penl1-literal": "#56B4E9",
    "en": "#D55E00",
    "pe": "#E69F00",
    "sb": "#009E73",
    "sb-kde": "#CC79A7",
    "l1": "#CC79A7",
    "kl": "#666666",
    "pen-kl": "#009E73",
    "pen-pearson": "#56B4E9",
    "true": "#000000",
}
NAMES = {
    "penl1": "penL1",
    "penl1-literal": "penL1, literal",
    "en": "EN",
    "pe": "PE",
    "sb": "SB",
    "sb-kde": "SB, kernel densities",
    "l1": "L1",
    "kl": "KL",
    "pen-kl": "penalized KL",
    "pen-pearson": "penalized Pearson",
    "true": "true prior",
}
MARKERS = {
    "penl1": "o",
    "penl1-literal": "s",
    "en": "^",
    "pe": "v",
    "sb": "D",
    "sb-kde": "P",
    "true": "x",
}

plt.rcParams.update(
    {
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "legend.frameon": False,
        "svg.hashsalt": "classprior",  # reproducible files
    }
)


def save(figure: Figure, out: Path, name: str) -> None:
    """Save a figure as SVG and PNG."""
    figure.savefig(out / f"{name}.svg", metadata={"Date": None})
    figure.savefig(out / f"{name}.png", dpi=120)
    plt.close(figure)
