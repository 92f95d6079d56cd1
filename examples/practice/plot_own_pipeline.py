"""
Your own pipeline
=================

All estimators of classprior are scikit-learn estimators and work in a ``Pipeline``. Here a
:class:`classprior.TableEncoder` turns payments with categories and missing values into numbers,
and :class:`classprior.AutoPrior` uses classifiers of your choice to score them.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from classprior import AutoPrior, TableEncoder
from classprior.datasets import make_transactions

frauds, payments = make_transactions(prior=0.08, n_positive=400, n_unlabeled=4_000, random_state=0)
X = pd.concat([frauds, payments])
y = np.repeat([1, 0], [len(frauds), len(payments)])

# %%
# Any classifier with ``predict_proba`` will do. Each classifier's score gives an estimate of its
# own, and low estimates count more than high ones: a classifier that separates the classes poorly
# gives a high estimate and therefore does little harm.

classifiers = {
    "logistic": LogisticRegression(max_iter=1000),
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(n_estimators=50, min_samples_leaf=5, random_state=0),
}
model = make_pipeline(
    TableEncoder(), AutoPrior(classifiers=classifiers, n_repeats=2, random_state=0)
).fit(X, y)

for column in model[0].treatments_:
    print(f"{column.name:20} {column.kind:12} {column.treatment}")

# %%
# ``classifier_priors_`` has the estimate from each classifier and one from their mean score,
# called "together".

auto = model[-1]
print(f"estimate {auto.prior_:.3f}, interval {auto.low_:.3f} to {auto.high_:.3f}")

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.axvspan(auto.low_, auto.high_, alpha=0.15, label="95% interval")
ax.axvline(auto.prior_, label="estimate")
ax.plot(
    list(auto.classifier_priors_.values()),
    list(auto.classifier_priors_),
    "o",
    color="tab:orange",
    label="one score",
)
ax.axvline(0.08, color="black", linestyle="--", linewidth=1, label="truth")
ax.set(xlim=(0, 0.15), ylim=(-0.5, 3.5), xlabel="share of frauds among the payments")
ax.legend(loc="upper left", fontsize="small")

# %%
# Takeaway: use the classifiers that work best on your kind of data. Here three very different
# ones agree, which is reassuring.
