r"""
From a density ratio to a probability
=====================================

If the share of positives :math:`\pi` is known, the probability that a row is positive is
:math:`p(y=1|x) = \pi\, p(x|y=1) / p(x)`. :class:`classprior.DensityRatio` estimates the ratio
:math:`p(x|y=1) / p(x)` of known positives to unlabeled rows directly, without estimating the two
densities, and :class:`classprior.PUClassifier` multiplies it by the prior. In one dimension, both
can be drawn beside the exact curves.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from classprior import DensityRatio, PenalizedL1Prior, PUClassifier

# %%
# Positives are normal around 0, negatives around 3; 40% of the unlabeled rows are positive.

prior = 0.4
rng = np.random.default_rng(0)
positive = rng.normal(0, 1, size=(500, 1))
unlabeled = np.vstack([rng.normal(0, 1, size=(800, 1)), rng.normal(3, 1, size=(1200, 1))])
X = np.vstack([positive, unlabeled])
y = np.repeat([1, 0], [len(positive), len(unlabeled)])

classifier = PUClassifier(prior=PenalizedL1Prior(), ratio=DensityRatio(), random_state=0).fit(X, y)
print(f"estimated share: {classifier.prior_:.3f}")

# %%
# The ratio is largest where there are only positives, and there it is one over the prior.

grid = np.linspace(-3, 6, 200)
density = prior * norm.pdf(grid) + (1 - prior) * norm.pdf(grid, loc=3)
ratio = norm.pdf(grid) / density

fig, (top, bottom) = plt.subplots(2, 1, figsize=(6, 5.6), sharex=True, layout="constrained")
top.plot(grid, classifier.ratio_.predict(grid[:, None]), label="estimate")
top.plot(grid, ratio, "--", color="black", linewidth=1, label="exact")
top.set_ylabel("p(x|y=1) / p(x)")
top.legend()
bottom.plot(grid, classifier.predict_proba(grid[:, None])[:, 1], label="estimate")
bottom.plot(grid, prior * ratio, "--", color="black", linewidth=1, label="exact")
bottom.axhline(0.5, color="gray", linestyle=":", label="decision threshold")
bottom.set(xlabel="x", ylabel="probability of being positive")
bottom.legend()

# %%
# Takeaway: near the decision threshold, where it matters, the estimated probability is close to
# the exact one. On the far left it is wrong: hardly any rows lie there, and the estimated ratio,
# a sum of Gaussians around known positives, fades out. The default ``ratio`` of ``PUClassifier``
# is a classifier, whose ratio does not fade out.
