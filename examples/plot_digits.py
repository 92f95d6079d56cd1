"""Count a digit among unlabeled images.

Some images are known to show the digit; the unlabeled ones hold it in a share that we know and
the estimator does not. Prints truth and estimate with its interval at three shares, draws the
objectives of penL1 there, and says how both do on all ten digits.

    python examples/plot_digits.py [--digit 4] [--out build/digits.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from classprior import estimate_prior, penalized_l1
from classprior.datasets import sample_positive_unlabeled
from classprior.plotting import ObjectiveDisplay

PRIORS = (0.1, 0.3, 0.5)
N_POSITIVE = 80
N_HIDDEN = 90
N_COMPONENTS = 16


def hide(digit: int, prior: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Hide the digit in that share of the unlabeled images."""
    X, y = load_digits(return_X_y=True)
    X = PCA(N_COMPONENTS, random_state=0).fit_transform(X)  # a kernel likes few dimensions
    return sample_positive_unlabeled(
        X,
        y == digit,
        prior=prior,
        n_positive=N_POSITIVE,
        n_unlabeled=round(N_HIDDEN / prior),
        random_state=digit,
    )


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
    print("positives  unlabeled   truth  estimate   95% interval   upper bound   penL1")
    for prior, ax in zip(PRIORS, axes, strict=True):
        samples = hide(options.digit, prior)
        answer = estimate_prior(*samples, random_state=0)
        curve = penalized_l1(*samples, random_state=0)
        print(
            f"{answer.n_positive:9}  {answer.n_unlabeled:9}   {prior:5.3f}  {answer.prior:8.3f}  "
            f"{answer.low:5.3f} to {answer.high:5.3f}  {answer.upper_bound:11.3f}  "
            f"{curve.prior:6.3f}"
        )
        ObjectiveDisplay.from_curve(curve, ax=ax, name="penL1", truth=prior)
        ax.set_title(f"{curve.n_unlabeled} unlabeled images")
        ax.label_outer()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=120)

    draws = [hide(digit, 0.3) for digit in range(10)]
    errors = [
        [abs(method(*samples, random_state=0).prior - 0.3) for samples in draws]
        for method in (estimate_prior, penalized_l1)
    ]
    ours, penl1 = np.mean(errors, axis=1)
    print(f"\nMean absolute error over all ten digits at 0.3: {ours:.3f} (penL1: {penl1:.3f})")
    print(f"\nThe objectives are drawn in {options.out}")


if __name__ == "__main__":
    main()
