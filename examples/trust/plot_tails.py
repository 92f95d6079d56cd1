"""
Level and falling tails
=======================

The default method ranks all rows by a score and looks at the rows above a threshold, the tail of
the score. If a tail contains 60% of the known positives, it also contains 60% of the hidden ones.
If it contains only 24% of the unlabeled rows, at most 24/60 = 40% of them are positive. This
ratio can be drawn for every tail. Where it is level, an estimate can be trusted; where it keeps
falling, the estimate is only an upper bound.
"""

import matplotlib.pyplot as plt
import numpy as np

from classprior import AutoPrior
from classprior.plotting import TailDisplay

# %%
# Both data sets have a true share of 0.4. The negatives are 4 standard deviations away from the
# positives in the first and 1 in the second, where there are negatives among all positives.

prior = 0.4
estimates = []
fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for ax, shift in zip(axes, (4.0, 1.0), strict=True):
    rng = np.random.default_rng(0)
    unlabeled = rng.normal(size=(2000, 2))
    unlabeled[round(prior * 2000) :, 0] += shift
    positive = rng.normal(size=(500, 2))
    estimator = AutoPrior(random_state=0).fit_samples(positive, unlabeled)
    estimates.append(estimator)
    TailDisplay.from_estimator(estimator, ax=ax, truth=prior)
    ax.set_title(f"classes {shift:.0f} standard deviations apart")
    print(
        f"{shift:.0f} apart: estimate {estimator.prior_:.3f}, "
        f"interval {estimator.low_:.3f} to {estimator.high_:.3f}"
    )

# %%
# On the left, the curves are level over most tails, close to the truth: adding more rows to the
# tail adds positives and unlabeled rows at the same rate, because the tail contains positives
# only. On the right, the curves fall toward smaller tails until noise takes over: every tail
# still contains negatives, and the estimate is too high.
#
# Takeaway: before trusting an estimate, draw its tails. Level curves mean that a purely positive
# region was found; falling curves mean that the estimate is an upper bound. The lower end of the
# interval allows for this: it extrapolates the curve to the end of the tail.
