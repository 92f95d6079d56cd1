"""
How many frauds hide among the payments?
========================================

A bank knows 400 fraudulent card payments. Nobody has checked the other 5,000 payments, and some of
them are fraudulent too. :func:`classprior.estimate_prior` takes the two tables as they are and
estimates how many.

The payments are synthetic, so the answer is known: 8% of the unchecked payments, 400 rows, are
frauds.
"""

from classprior import estimate_prior
from classprior.datasets import make_transactions
from classprior.plotting import ScoreDisplay

frauds, payments = make_transactions(prior=0.08, n_positive=400, n_unlabeled=5_000, random_state=0)
frauds.head()

# %%
# The tables contain numbers, categories, missing values and an identifier. ``estimate_prior``
# encodes them the same way in both tables and leaves the identifier out.

estimate = estimate_prior(frauds, payments, random_state=0)
print(estimate)

# %%
# The picture shows where the number comes from. Classifiers score every payment by how much it
# resembles the known frauds. The gray area shows the scores of all unchecked payments. The orange
# area shows the scores of the known frauds, scaled to the estimated number: it fills the gray
# area at the right end, where payments look most like frauds, and leaves the honest payments on
# the left.

display = ScoreDisplay.from_estimator(estimate)
display.ax_.set_title("Scores of the 5,000 unchecked payments")

# %%
# Takeaway: two tables are enough. The answer is one number, the estimate, and one range, its
# interval; ``estimate.to_dict()`` returns them for use in a program, and ``estimate.warnings``
# lists anything that casts doubt on them. Here it is empty.

print(estimate.warnings)
