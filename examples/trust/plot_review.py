"""
A hundred checked rows
======================

The known positives are often not typical: easy cases are labeled, hard ones are not. The estimate
is then too low, and nothing in the samples says by how much. A person who looks at a hundred rows
can tell, if the rows are drawn at random.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from classprior import Estimation
from classprior.plotting import RecallDisplay
from classprior.review import evaluate_review

X, digit = load_digits(return_X_y=True)
rng = np.random.default_rng(2)
known, hidden = [], []
for kind, n_labeled, n_hidden in [
    (0, 120, 20),
    (4, 120, 20),
    (6, 120, 20),
    (5, 40, 140),
    (9, 40, 140),
]:
    rows = rng.permutation(np.flatnonzero(digit == kind))
    known.append(X[rows[:n_labeled]])
    hidden.append(X[rows[n_labeled : n_labeled + n_hidden]])
pile = np.vstack([*hidden, X[np.isin(digit, [1, 2, 3, 7, 8])]])
is_positive = np.arange(len(pile)) < 340

# %%
# Fives and nines are seldom labeled, but most of the hidden positives are fives and nines.

estimation = Estimation.of(np.vstack(known), pile, random_state=0)
estimate = estimation.estimate
print(estimate.answer)

# %%
# The plan says which rows to look at. Here, their classes are known. The limits are exact: they
# assume nothing about the known positives.

found = []
for budget in (100, 200, 400):
    plan = estimation.plan_review(budget)
    checked = evaluate_review(plan, is_positive[list(plan.rows)])
    found.append((budget, checked))
    print(budget, "rows:", checked.answer)

# %%
# With more checked rows, the limits get narrower, and so does the lower limit of recall: the share
# of the positives that is found if the rows are read in the order of their ranks.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.axvline(is_positive.mean(), color="black", linestyle="--", linewidth=1, label="truth")
left.errorbar(
    estimate.prior,
    0,
    xerr=[[estimate.prior - estimate.low], [estimate.high - estimate.prior]],
    fmt="s",
    color="tab:red",
    label="without checked rows",
)
for place, (_, checked) in enumerate(found, 1):
    errors = [[checked.prior - checked.low], [checked.high - checked.prior]]
    label = "checked rows" if place == 1 else None
    left.errorbar(checked.prior, place, xerr=errors, fmt="o", color="tab:blue", label=label)
left.set_yticks(range(4), ["none", *(f"{budget} rows" for budget, _ in found)])
left.set(xlabel="share of positives", xlim=(0, 0.5))
left.legend(fontsize="small")
RecallDisplay.from_estimate(found[-1][1], ax=right)

# %%
# Takeaway: if a decision depends on the number, have a hundred rows looked at.
