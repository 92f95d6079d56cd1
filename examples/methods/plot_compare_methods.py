"""
Five methods on the same draws
==============================

What share of the patients has a malignant tumor? Five methods answer this question on the same
draws of scikit-learn's breast cancer data: the default of classprior (auto), penalized L1 matching
(penL1), Pearson matching (PE), Elkan and Noto's classifier (EN), and the slope of Scott and
Blanchard's curve (SB).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from classprior import (
    AutoPrior,
    ElkanNotoPrior,
    PearsonPrior,
    PenalizedL1Prior,
    ScottBlanchardPrior,
)
from classprior.datasets import sample_positive_unlabeled

X, target = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
is_malignant = target == 0

# %%
# Each draw has 100 known malignant tumors and 250 unlabeled patients, 30% of whom have one.

methods = {
    "auto": AutoPrior(n_repeats=1, random_state=0),
    "penL1": PenalizedL1Prior(random_state=0),
    "PE": PearsonPrior(n_centers=100, random_state=0),
    "EN": ElkanNotoPrior(classifier=LogisticRegression(), random_state=0),
    "SB": ScottBlanchardPrior(random_state=0),
}
n_draws = 8
estimates = np.zeros((len(methods), n_draws))
for draw in range(n_draws):
    positive, unlabeled = sample_positive_unlabeled(
        X, is_malignant, prior=0.3, n_positive=100, n_unlabeled=250, random_state=draw
    )
    for row, estimator in enumerate(methods.values()):
        estimates[row, draw] = estimator.fit_samples(positive, unlabeled).prior_

for name, values in zip(methods, estimates, strict=True):
    print(f"{name:5} mean {values.mean():.2f}, from {values.min():.2f} to {values.max():.2f}")

# %%
# Dots are draws; black bars are their means.

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for row, values in enumerate(estimates):
    ax.plot(values, np.full(len(values), row), "o", color=f"C{row}", alpha=0.5)
    ax.plot(values.mean(), row, "|", color="black", markersize=24, markeredgewidth=2)
ax.axvline(0.3, color="black", linestyle="--", linewidth=1, label="truth")
ax.set_yticks(range(len(methods)), list(methods))
ax.set_ylim(len(methods) - 0.5, -0.5)
ax.set(xlabel="estimated share of malignant tumors", xlim=(0, None))
ax.legend()

# %%
# Takeaway: on these draws, auto has the smallest squared error. EN overestimates on every draw:
# it assumes that the classes do not overlap. penL1, PE and SB are nearly right on average but vary
# more than auto from draw to draw.
