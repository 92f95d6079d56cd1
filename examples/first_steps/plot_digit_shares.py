"""
What share of the images shows a 4?
===================================

Given known images of the digit 4 and unlabeled images of all digits, what share of the unlabeled
images shows a 4? The share is set to a known value, from 5% to 80%, and estimated each time with a
95% interval.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from classprior import estimate_prior
from classprior.datasets import sample_positive_unlabeled

images, digit = load_digits(return_X_y=True)

# %%
# Each draw has 80 known fours and 120 unlabeled images, because the data set has only 181 fours.

shares = np.array([0.05, 0.2, 0.4, 0.6, 0.8])
estimates = []
for share in shares:
    fours, unlabeled = sample_positive_unlabeled(
        images, digit == 4, prior=share, n_positive=80, n_unlabeled=120, random_state=0
    )
    estimates.append(estimate_prior(fours, unlabeled, n_repeats=2, random_state=0))

for share, estimate in zip(shares, estimates, strict=True):
    print(f"truth {share:.2f}: {estimate.prior:.2f} ({estimate.low:.2f} to {estimate.high:.2f})")

# %%
# Points on the dashed line are exact. The bars are the 95% intervals.

prior = np.array([estimate.prior for estimate in estimates])
low = np.array([estimate.low for estimate in estimates])
high = np.array([estimate.high for estimate in estimates])

fig, ax = plt.subplots(figsize=(5, 5), layout="constrained")
ax.plot([0, 1], [0, 1], "--", color="gray", label="exact")
ax.errorbar(shares, prior, [prior - low, high - prior], fmt="o", capsize=4, label="estimate")
ax.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
ax.set(xlabel="true share of fours", ylabel="estimated share of fours")
ax.legend()

# %%
# Takeaway: the estimates follow the truth, and every interval contains it. With 80 known fours
# and 120 images, the intervals are wide, and wider below the estimate than above it: a lower limit
# must allow for images of other digits that look exactly like a 4.
