"""The five pictures of "How it works"."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np

from classprior import AutoPrior
from classprior.plotting import ScoreDisplay, TailDisplay

PRIOR = 0.4
POSITIVE, UNLABELED = "#0072B2", "#999999"


@cache
def samples():
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.normal(size=(400, 2)), rng.normal(size=(1500, 2))
    unlabeled[int(PRIOR * 1500) :] += [2.5, 1.0]
    return positive, unlabeled


@cache
def fitted():
    return AutoPrior(random_state=0).fit_samples(*samples())


def first_scores():
    return next(iter(fitted().scores_.items()))


def two_samples():
    _, ax = plt.subplots(figsize=(6, 3.4))
    for rows, color, label in zip(
        samples()[::-1], (UNLABELED, POSITIVE), ("unlabeled", "known positives"), strict=True
    ):
        ax.scatter(*rows.T, s=5, color=color, label=label)
    ax.set(xlabel="first column", ylabel="second column")
    ax.legend()


def scores():
    name, (positive, unlabeled) = first_scores()
    _, ax = plt.subplots(figsize=(6, 3))
    bins = np.histogram_bin_edges(np.concatenate([positive, unlabeled]), 40)
    ax.hist(unlabeled, bins, density=True, color=UNLABELED, alpha=0.6, label="unlabeled")
    style = {"histtype": "step", "linewidth": 1.5, "color": POSITIVE}
    ax.hist(positive, bins, density=True, label="known positives", **style)
    ax.set(xlabel=f"score ({name})", ylabel="density")
    ax.legend()


def threshold():
    _, (positive, unlabeled) = first_scores()
    t = np.quantile(positive, 0.6)
    above = [np.mean(part >= t) for part in (unlabeled, positive)]
    _, ax = plt.subplots(figsize=(6, 3))
    for part, color, name, share in zip(
        (unlabeled, positive),
        (UNLABELED, POSITIVE),
        ("unlabeled", "known positives"),
        above,
        strict=True,
    ):
        ordered = np.sort(part)[::-1]
        shares = np.arange(1, len(ordered) + 1) / len(ordered)
        ax.step(ordered, shares, color=color, label=f"{name}: {share:.0%} above t")
    ax.axvline(t, color="black", linestyle="--", linewidth=1)
    ax.set(xlabel="threshold t", ylabel="share of rows above t")
    ax.set_title(f"π ≤ {above[0]:.2f} / {above[1]:.2f} = {above[0] / above[1]:.2f}")
    ax.legend()


def tails():
    _, ax = plt.subplots(figsize=(6, 3.6))
    TailDisplay.from_estimator(fitted(), ax=ax, truth=PRIOR)


def mixture():
    _, ax = plt.subplots(figsize=(6, 3.2))
    ScoreDisplay.from_estimator(fitted(), ax=ax)
