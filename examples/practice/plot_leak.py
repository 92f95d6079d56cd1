"""
A column that gives the label away
==================================

Known positives often carry traces of how they became known. Here, the trace is ``confirmed_on``,
the date on which a fraud was confirmed. Hidden frauds have no such date, so the column separates
known frauds from all other payments, hidden frauds included, and the estimate falls to zero. A
warning names the column.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from classprior import estimate_prior
from classprior.datasets import make_transactions

frauds, payments = make_transactions(prior=0.08, n_positive=400, n_unlabeled=5_000, random_state=0)
rng = np.random.default_rng(0)
frauds["confirmed_on"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(
    rng.integers(0, 60, size=len(frauds)), unit="D"
)
payments["confirmed_on"] = pd.NaT

# %%
# The true share of frauds among the unchecked payments is 8%.

with_leak = estimate_prior(frauds, payments, n_repeats=1, random_state=0)
print(f"estimate with the column: {with_leak.prior:.1%}\n")
for warning in with_leak.warnings:
    print(f"Warning: {warning}\n")

# %%
# Without the column:

frauds = frauds.drop(columns="confirmed_on")
payments = payments.drop(columns="confirmed_on")
without_leak = estimate_prior(frauds, payments, n_repeats=1, random_state=0)
print(f"estimate without the column: {without_leak.prior:.1%}")
print(f"warnings: {without_leak.warnings}")

# %%
# The scores of the classifiers show what went wrong. With the column, no unchecked payment scores
# like a known fraud. Without it, the unchecked payments have a second, smaller group that does.

fig, axes = plt.subplots(2, 1, figsize=(6.4, 5.6), layout="constrained")
for ax, estimate, title in (
    (axes[0], with_leak, "with confirmed_on"),
    (axes[1], without_leak, "without confirmed_on"),
):
    known, unchecked = estimate.evidence.mean_scores_
    bins = np.linspace(min(unchecked.min(), known.min()), max(unchecked.max(), known.max()), 40)
    ax.hist(unchecked, bins.tolist(), color="gray", alpha=0.6, label="unchecked payments")
    ax.hist(known, bins.tolist(), color="tab:orange", alpha=0.6, label="known frauds")
    ax.set_title(f"{title}: estimate {estimate.prior:.1%}, truth 8.0%")
    ax.set_ylabel("payments")
axes[0].legend()
axes[1].set_xlabel("score: more like the known frauds →")

# %%
# Takeaway: an estimate of zero, with such a warning, says something about the columns and
# nothing about the frauds. Leave out every column that was filled in because of the label, or
# that could not have been filled in for a hidden positive.
