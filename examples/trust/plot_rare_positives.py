"""
One in a hundred
================

When only 1% of the unlabeled rows are positive, what can be said about the share? The 95%
interval says how far off the estimate may be. The certified upper bound limits the share from
above if known positives are typical of all positives, whatever the classes look like. Both
improve with the number of known positives, but only up to a point.
"""

import matplotlib.pyplot as plt
import numpy as np

from classprior import estimate_prior
from classprior.datasets import make_transactions

# %%
# Of 10,000 unchecked payments, 100 are frauds. The number of known frauds grows from 20 to 1,280.

n_known = [20, 80, 320, 1280]
estimates = []
for n in n_known:
    frauds, payments = make_transactions(
        prior=0.01, n_positive=n, n_unlabeled=10_000, random_state=0
    )
    estimates.append(estimate_prior(frauds, payments, n_repeats=1, random_state=0))

for n, e in zip(n_known, estimates, strict=True):
    print(
        f"{n:5} known frauds: {e.prior:.2%} ({e.low:.2%} to {e.high:.2%}), "
        f"at most {e.upper_bound:.2%}"
    )

# %%
# The dots are estimates with their intervals; the triangles are certified upper bounds. The gray
# band is the 95% interval of someone who has checked all 10,000 payments and counted 100 frauds. It
# does not have zero width, because another 10,000 payments would contain a different number of
# frauds.

prior = np.array([e.prior for e in estimates])
low = np.array([e.low for e in estimates])
high = np.array([e.high for e in estimates])
bound = np.array([e.upper_bound for e in estimates])
error = 1.96 * np.sqrt(0.01 * 0.99 / 10_000)

fig, ax = plt.subplots(layout="constrained")
ax.axhspan(1 - 100 * error, 1 + 100 * error, color="gray", alpha=0.2, label="all payments checked")
ax.errorbar(
    n_known,
    100 * prior,
    100 * np.array([prior - low, high - prior]),
    fmt="o",
    capsize=4,
    label="estimate and interval",
)
ax.plot(n_known, 100 * bound, "v", color="tab:red", label="certified upper bound")
ax.axhline(1, color="black", linestyle="--", linewidth=1, label="truth")
ax.set(xscale="log", ylim=(0, None))
ax.set_xticks(n_known, [str(n) for n in n_known])
ax.minorticks_off()
ax.set(xlabel="known frauds", ylabel="share of frauds among the payments, %")
ax.legend()

# %%
# Takeaway: with 20 known frauds, the interval extends from nearly 0 to beyond the truth, and little
# can be said except the upper bound. With 80 or more, the order of magnitude is clear. From there
# on, more known frauds lower the certified bound but narrow the interval only a little. It cannot
# become narrower than the gray band, which depends on the number of payments.
