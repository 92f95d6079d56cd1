"""The picture of "What can be known at all"."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

PRIOR = 0.4


def largest_share():
    x = np.linspace(-4, 7, 400)
    positive, apart = norm.pdf(x), norm.pdf(x, 3.5)
    cases = {
        "Some region is purely positive: θ* = π": apart,
        "Negatives everywhere: θ* > π": 0.65 * apart + 0.35 * positive,
    }
    _, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
    for ax, (title, negative) in zip(axes, cases.items(), strict=True):
        unlabeled = PRIOR * positive + (1 - PRIOR) * negative
        largest = np.min(unlabeled / positive)
        ax.plot(x, unlabeled, color="black", label="unlabeled, p(x)")
        label = f"largest share that fits, θ* = {largest:.2f}"
        ax.fill_between(x, largest * positive, color="#0072B2", alpha=0.25, label=label)
        ax.plot(x, PRIOR * positive, "--", color="#D55E00", label=f"truth, π = {PRIOR:.2f}")
        ax.set(title=title, xlabel="x", yticks=[], ylim=(0, 0.42))
        ax.legend(fontsize="small", loc="upper right")
