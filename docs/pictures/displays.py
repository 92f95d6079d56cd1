"""All displays side by side, for the API page, and the shares by segment."""

import matplotlib.pyplot as plt

from classprior import AutoPrior, PenalizedL1Prior, ScottBlanchardPrior, estimate_prior
from classprior.datasets import make_overlapping_uniforms, make_transactions
from classprior.plotting import (
    ObjectiveDisplay,
    RejectionDisplay,
    ScoreDisplay,
    SegmentDisplay,
    TailDisplay,
)


def displays():
    samples = make_overlapping_uniforms(n_positive=500, n_unlabeled=1000, random_state=0)
    auto, penl1, sb = (
        estimator(random_state=0).fit_samples(*samples)
        for estimator in (AutoPrior, PenalizedL1Prior, ScottBlanchardPrior)
    )
    _, axes = plt.subplots(2, 2, figsize=(9, 6.4))
    ScoreDisplay.from_estimator(auto, ax=axes[0, 0])
    TailDisplay.from_estimator(auto, ax=axes[0, 1])
    ObjectiveDisplay.from_estimator(penl1, ax=axes[1, 0])
    RejectionDisplay.from_estimator(sb, ax=axes[1, 1])
    names = ("ScoreDisplay", "TailDisplay", "ObjectiveDisplay", "RejectionDisplay")
    for ax, name in zip(axes.flat, names, strict=True):
        ax.set_title(name)


def segments():
    frauds, transactions = make_transactions(random_state=0)
    estimate = estimate_prior(frauds, transactions, segments="country", random_state=0)
    SegmentDisplay.from_estimate(estimate)
