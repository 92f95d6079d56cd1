"""
Several rows of the same patient
================================

Rows of the same patient or customer resemble each other. If some of them are used to train a
classifier and the others to test it, the classifier recognizes the patient rather than the
disease, known positives seem to be unlike all unlabeled rows, and the estimate is far too low.
With ``groups``, all rows of a patient stay in the same fold.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from classprior import estimate_prior
from classprior.datasets import sample_positive_unlabeled

X, target = load_breast_cancer(return_X_y=True)
positive, unlabeled = sample_positive_unlabeled(
    X, target == 0, prior=0.4, n_positive=80, n_unlabeled=200, random_state=0
)

# %%
# There are 80 patients with a confirmed malignant tumor and 200 unlabeled patients, 40% of whom
# have one. Each patient is measured 1, 2, 4 or 8 times; measurements of the same patient differ by
# 5% of a standard deviation.

rng = np.random.default_rng(0)
noise = 0.05 * X.std(axis=0)
n_measurements = [1, 2, 4, 8]
ignored, used = [], []
for n in n_measurements:
    patients = np.repeat(np.arange(80), n), np.repeat(np.arange(80, 280), n)
    X_positive = np.repeat(positive, n, axis=0) + noise * rng.normal(size=(80 * n, 30))
    X_unlabeled = np.repeat(unlabeled, n, axis=0) + noise * rng.normal(size=(200 * n, 30))
    without = estimate_prior(X_positive, X_unlabeled, n_repeats=1, random_state=0)
    grouped = estimate_prior(X_positive, X_unlabeled, groups=patients, n_repeats=1, random_state=0)
    ignored.append(without.prior)
    used.append(grouped.prior)
    print(f"{n} measurements: without groups {without.prior:.2f}, with groups {grouped.prior:.2f}")

# %%
# With one measurement of each patient, groups make little difference. With two or more, the
# estimate collapses without groups and stays near the truth with them.

fig, ax = plt.subplots(layout="constrained")
ax.axhline(0.4, color="black", linestyle="--", linewidth=1, label="truth")
ax.plot(n_measurements, used, "o-", label="with groups")
ax.plot(n_measurements, ignored, "s-", label="without groups")
ax.set(xscale="log", ylim=(0, 0.6))
ax.set_xticks(n_measurements, [str(n) for n in n_measurements])
ax.minorticks_off()
ax.set(xlabel="measurements of each patient", ylabel="estimated share of malignant tumors")
ax.legend()

# %%
# Takeaway: if rows belong together, say so. ``groups`` is a pair of arrays, as here, or the name
# of a column that both tables have. More measurements of the same patients are not more patients,
# so they do not make the estimate better: here it even drifts down a little.
