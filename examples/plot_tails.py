"""The tails behind an estimate, where it can be trusted and where it cannot.

Draws the ratio of shares in the tail of every score for classes far apart and for classes that
overlap everywhere.

    python examples/plot_tails.py [--out build/tails.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from classprior import AutoPrior
from classprior.plotting import TailDisplay

PRIOR = 0.4


def main() -> None:
    """Draw both."""
    parser = argparse.ArgumentParser(description="Tails of scores, level and falling.")
    parser.add_argument("--out", type=Path, default=Path("build/tails.png"))
    options = parser.parse_args()
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for ax, shift in zip(axes, (4.0, 1.0), strict=True):
        rng = np.random.default_rng(0)
        unlabeled = rng.normal(size=(2000, 2))
        unlabeled[round(PRIOR * 2000) :, 0] += shift
        estimator = AutoPrior(random_state=0).fit_samples(rng.normal(size=(500, 2)), unlabeled)
        TailDisplay.from_estimator(estimator, ax=ax, truth=PRIOR)
        ax.set_title(f"classes {shift:.0f} standard deviations apart")
        print(
            f"{shift:.0f} apart: estimate {estimator.prior_:.3f}, interval "
            f"{estimator.low_:.3f} to {estimator.high_:.3f}, truth {PRIOR}"
        )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=120)
    print(f"Drawn in {options.out}")


if __name__ == "__main__":
    main()
