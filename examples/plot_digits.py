"""Count a digit among unlabeled images.

Some images are known to show the digit; the unlabeled ones hold it in a share that we know and
the estimator does not. Prints truth and estimate at three shares, draws the three objectives, and
says how the estimator does on all ten digits.

    python examples/plot_digits.py [--digit 4] [--out build/digits.png]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from classprior import PriorCurve, penalized_l1
from classprior.datasets import sample_positive_unlabeled
from classprior.plotting import ObjectiveDisplay

PRIORS = (0.1, 0.3, 0.5)
N_POSITIVE = 80
N_HIDDEN = 90
N_COMPONENTS = 16


def estimate(digit: int, prior: float) -> tuple[PriorCurve, float]:
    """Hide the digit in that share of the unlabeled images, estimate it and take the time."""
    X, y = load_digits(return_X_y=True)
    X = PCA(N_COMPONENTS, random_state=0).fit_transform(X)  # a kernel likes few dimensions
    X_positive, X_unlabeled = sample_positive_unlabeled(
        X,
        y == digit,
        prior=prior,
        n_positive=N_POSITIVE,
        n_unlabeled=round(N_HIDDEN / prior),
        random_state=digit,
    )
    start = time.perf_counter()
    curve = penalized_l1(X_positive, X_unlabeled, random_state=0)
    return curve, time.perf_counter() - start


def main() -> None:
    """Estimate, print, draw."""
    parser = argparse.ArgumentParser(description="Digits at three known priors.")
    parser.add_argument("--digit", type=int, default=4, choices=range(10))
    parser.add_argument("--out", type=Path, default=Path("build/digits.png"))
    options = parser.parse_args()

    figure, axes = plt.subplots(
        1, len(PRIORS), figsize=(10, 3.2), sharey=True, layout="constrained"
    )
    print(f"Which share of the unlabeled images shows the digit {options.digit}?\n")
    print("positives  unlabeled   truth  estimate  seconds")
    for prior, ax in zip(PRIORS, axes, strict=True):
        curve, seconds = estimate(options.digit, prior)
        sizes = f"{curve.n_positive:9}  {curve.n_unlabeled:9}"
        print(f"{sizes}   {prior:5.3f}  {curve.prior:8.3f}  {seconds:7.2f}")
        ObjectiveDisplay.from_curve(curve, ax=ax, name="penL1", truth=prior)
        ax.set_title(f"{curve.n_unlabeled} unlabeled images")
        ax.label_outer()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=120)

    errors = {d: [estimate(d, prior)[0].prior - prior for prior in PRIORS] for d in range(10)}
    worst = max(errors, key=lambda d: np.abs(errors[d]).mean())
    print(f"\nMean absolute error over all ten digits: {np.abs(list(errors.values())).mean():.3f}")
    print(f"(worst: digit {worst}, {np.abs(errors[worst]).mean():.3f})")
    print(f"\nThe objectives are drawn in {options.out}")


if __name__ == "__main__":
    main()
