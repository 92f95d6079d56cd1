"""
Why this payment?
=================

A list of likely frauds is easier to work through if each row says why it is on it. `reasons` names
the columns that speak most for a row, and `importances` shows which columns matter overall.
"""

from classprior import Estimation
from classprior.datasets import make_transactions
from classprior.plotting import ImportanceDisplay

# %%
# Payments of which some are known to be frauds, and 5,000 that nobody has checked.

frauds, payments = make_transactions(random_state=0)
estimation = Estimation.of(frauds, payments, random_state=0)
print(estimation.estimate.answer)

# %%
# Each column is shuffled in turn. The longer the bar, the worse known frauds can then be told from
# unchecked payments.

display = ImportanceDisplay.from_estimation(estimation)

# %%
# The reasons for three payments: the columns whose values raise the log-odds most, compared with
# the values of other payments. An effect of +0.7 doubles the odds.

first = estimation.probabilities().argsort()[::-1][[0, 50, 100]]
reasons = estimation.reasons(first)
for row, of_row in zip(first, reasons, strict=True):
    print(f"payment {row}: {', '.join(map(str, of_row))}")

# %%
# Takeaway: the time since the last payment matters most, but different payments are suspicious for
# different reasons. Before you trust the list, ask whether the column at the top could reveal which
# payments were labeled; here it cannot, because it is known before anyone checks a payment.
