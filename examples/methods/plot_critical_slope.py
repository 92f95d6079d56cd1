r"""
The critical slope of the L1 distance
=====================================

Matching looks for the :math:`\theta` at which the scaled positives :math:`\theta p(x|y=1)` fit
best into the unlabeled density :math:`p(x)`. The L1 distance lets them exceed :math:`p(x)` at a
price, the slope c. If the price is too low, the estimate jumps to 1. The slope at which this
happens depends on the overlap of the classes, which is unknown in practice; penL1 avoids the
question with an infinite slope.
"""

import matplotlib.pyplot as plt
import numpy as np

from classprior import DivergencePrior
from classprior.datasets import make_overlapping_uniforms
from classprior.divergences import L1

# %%
# Positives are uniform between 0 and 1, negatives between 0.5 and 1.5, and 70% of the unlabeled
# rows are positive. The objective can be computed exactly from three regions:
#
# - between 0 and 0.5, positives only: :math:`p(x) = 0.7`;
# - between 0.5 and 1, both classes: :math:`p(x) = 0.7 + 0.3 = 1`;
# - between 1 and 1.5, negatives only, where the positives contribute nothing.
#
# From 0.7 to 1 the objective changes by :math:`0.5 c` for each unit of :math:`\theta` in the first
# region and by -0.5 in the second. The critical slope is therefore 0.5 / 0.5 = 1, the ratio of
# positives inside the overlap to positives outside it.

prior, overlap = 0.7, 0.5
critical = overlap / (1 - overlap)
thetas = np.linspace(0.5, 1, 51)

fig, ax = plt.subplots(layout="constrained")
for slope in (0.5, 1.0, 2.0):
    f = L1(slope).f
    objective = (
        (1 - overlap) * prior * f(thetas / prior)
        + overlap * f(thetas)
        + (1 - overlap) * (1 - prior) * f(np.zeros_like(thetas))
    )
    ax.plot(thetas, objective, label=f"slope {slope}")
ax.axvline(prior, color="black", linestyle="--", linewidth=1, label="truth")
ax.set(xlabel="candidate share θ", ylabel="exact objective")
ax.legend()

# %%
# Now the estimates, on ten draws of 1,000 known positives and 1,000 unlabeled rows. A single
# bandwidth and a single regularization parameter are enough here and turn off cross-validation,
# which would be slow.

slopes = critical * 2.0 ** np.arange(-3, 4)
estimates = np.zeros((10, len(slopes)))
for seed in range(10):
    samples = make_overlapping_uniforms(
        overlap=overlap, prior=prior, n_positive=1000, n_unlabeled=1000, random_state=seed
    )
    for column, slope in enumerate(slopes):
        estimator = DivergencePrior(
            penalized=False,
            slope=slope,
            thetas=thetas,
            sigmas=0.1,
            lams=0.01,
            n_centers=60,
            random_state=0,
        )
        estimates[seed, column] = estimator.fit_samples(*samples).prior_

median = np.median(estimates, axis=0)
for slope, value in zip(slopes, median, strict=True):
    print(f"slope {slope:5.3f}: median estimate {value:.2f}")

# %%
# Gray dots are single draws.

fig, ax = plt.subplots(layout="constrained")
ax.plot(slopes, estimates.T, ".", color="gray", alpha=0.5)
ax.plot(slopes, median, "o-", label="median of ten draws")
ax.axvline(critical, color="tab:red", linestyle=":", label="critical slope")
ax.axhline(prior, color="black", linestyle="--", linewidth=1, label="truth")
ax.set(xscale="log", xlabel="slope c", ylabel="estimated share of positives")
ax.set_xticks(slopes, ["1/8", "1/4", "1/2", "1", "2", "4", "8"])
ax.minorticks_off()
ax.legend()

# %%
# Takeaway: below the critical slope, the exact objective keeps falling up to 1; above it, the
# minimum is at the truth. The estimates make the same transition, smoothed by chance. The ordinary
# L1 distance has slope 1, so it is right only if the overlap contains less than half of the
# positives. :class:`classprior.PenalizedL1Prior` has an infinite slope and needs no such
# condition.
