"""
An overlap that no method can resolve
=====================================

No method can tell positives from negatives that look exactly like them. Here are two stories
with different true shares whose samples have exactly the same distributions, so no estimate can be
right about both. The best that can be estimated is the largest share that fits the data.
"""

import matplotlib.pyplot as plt
import numpy as np

from classprior import estimate_prior

# %%
# Positives are uniform between 0 and 1. Of the unlabeled rows, 60% lie between 0 and 1 and 40%
# between 1 and 2, in both stories:
#
# - Story A: all rows between 0 and 1 are positive. The share of positives is 0.6.
# - Story B: a third of the rows between 0 and 1 are negatives that look the same. The share is 0.4.

rng = np.random.default_rng(0)
positive = rng.uniform(0, 1, size=(500, 1))
inside = rng.uniform(0, 1, size=(1200, 1))
outside = rng.uniform(1, 2, size=(800, 1))
unlabeled = np.vstack([inside, outside])

estimate = estimate_prior(positive, unlabeled, n_repeats=1, random_state=0)
print(estimate)

# %%
# The only difference between the stories is the class of some rows, and that is hidden.

bins = np.linspace(0, 2, 41)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
for ax, story, n_hidden in zip(axes, "AB", (1200, 800), strict=True):
    ax.hist(
        [inside[:n_hidden, 0], np.vstack([inside[n_hidden:], outside])[:, 0]],
        bins=bins.tolist(),
        stacked=True,
        label=["positive", "negative"],
    )
    ax.set(title=f"Story {story}: truth {n_hidden / 2000:.1f}, estimate {estimate.prior:.2f}")
    ax.set_xlabel("x")
axes[0].set_ylabel("unlabeled rows")
axes[1].legend()

# %%
# Nothing in these samples can reveal the negatives of story B, so there is no warning. A gradual
# overlap leaves a trace: the more similar unlabeled rows are to the known positives, the smaller
# the share of negatives among them. Here is a data set with negatives among all positives and a
# true share of 0.2.

rng = np.random.default_rng(0)
known = rng.normal(0, 1, size=(2000, 1))
mixed = np.vstack([rng.normal(0, 1, size=(1200, 1)), rng.normal(0.7, 1, size=(4800, 1))])
overlapping = estimate_prior(known, mixed, n_repeats=1, random_state=0)
print(f"truth 0.20: {overlapping.answer}")
for warning in overlapping.warnings:
    print(f"Warning: {warning}")

# %%
# Takeaway: read an estimate as "at most". It is the share itself only if some region contains
# positives and no negatives, which must be known from the meaning of the columns: the two samples
# cannot prove it. Where known positives do not stand out, the first sentence is the certified
# bound; the absence of a warning proves nothing. To be sure, look at rows.
