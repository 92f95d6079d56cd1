"""
Which payments are frauds?
==========================

Once it is known how many rows are positive, each row can be given a probability of being positive:
:class:`classprior.PUClassifier` turns the estimated share into these probabilities. An investigator
who checks the most probable payments first finds most frauds early.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from classprior import PUClassifier, TableEncoder
from classprior.datasets import make_transactions

frauds, payments, is_fraud = make_transactions(
    prior=0.08, n_positive=400, n_unlabeled=5_000, random_state=1, return_truth=True
)

# %%
# ``PUClassifier`` works on numbers, so a :class:`classprior.TableEncoder` comes first. The label
# is 1 for known frauds and 0 for payments that nobody has checked.

X = pd.concat([frauds, payments])
y = np.repeat([1, 0], [len(frauds), len(payments)])
model = make_pipeline(TableEncoder(), PUClassifier(random_state=0)).fit(X, y)
classifier = model[-1]
print(f"estimated share of frauds: {classifier.prior_:.3f}")

# %%
# A model that was trained on a payment has learned that it is unlabeled. ``oof_proba_`` therefore
# contains out-of-fold probabilities: each comes from a model that was trained without that
# payment.

probability = classifier.oof_proba_
ranking = np.argsort(-probability)
payments["probability"] = probability.round(3)
columns = ["payment_id", "amount", "hour", "km_from_home", "probability"]
print(payments.loc[ranking[:5], columns].to_string(index=False))

# %%
# The hidden truth shows how good the ranking is. Precision is the share of frauds among the
# payments checked so far. The mean probability of the same payments predicts it without knowing
# the truth.

checked = np.arange(1, len(payments) + 1)
precision = np.cumsum(is_fraud[ranking]) / checked
predicted = np.cumsum(probability[ranking]) / checked

fig, ax = plt.subplots(layout="constrained")
ax.plot(checked, precision, label="precision (hidden truth)")
ax.plot(checked, predicted, "--", label="mean probability (model)")
ax.axvline(is_fraud.sum(), color="gray", linestyle=":", label="number of hidden frauds")
ax.set(xlim=(0, 1500), ylim=(0, 1.05))
ax.set(xlabel="payments checked, most probable first", ylabel="share of frauds among them")
ax.legend()

# %%
# Takeaway: almost every payment among the first 400 is a fraud, and few frauds are left after
# them. The model predicts a somewhat lower precision, because its estimate of the share is a little
# low here. The order of the payments does not depend on the estimate.

top = ranking[:400]
print(f"precision of the first 400 payments: {is_fraud[top].mean():.2f}")
print(f"share of all frauds found by then:   {is_fraud[top].sum() / is_fraud.sum():.2f}")
