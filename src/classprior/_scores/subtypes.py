"""Subtypes of the positives: clusters, their tails, and a test whether labels favor some of them.

The rows are divided by the nearest cluster of the positives. Each part is a problem of its own: its
known positives against its unlabeled rows. Labels may favor some subtypes over others, as long as
each hidden subtype is among the labeled ones.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse, stats
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import StandardScaler

from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._scores.crossfit import Scores
from classprior._scores.tails import WINDOW, ScoreTails, extrapolated_share

FEWEST_POSITIVES = 30  # in a cluster; a quarter of them is the smallest tail
_TESTED = 4  # fewer clusters than for the estimate: more rows in each give the test more power


def subtypes_of_rows(X: Rows, is_positive: Bools, n_clusters: int, seed: int) -> Ints:
    """Return the nearest cluster of the positives for each row; small clusters are dissolved."""
    n_clusters = min(n_clusters, int(is_positive.sum()) // FEWEST_POSITIVES)
    if n_clusters < 2:
        return np.zeros(len(is_positive), dtype=np.int64)
    Z = StandardScaler(with_mean=not sparse.issparse(X)).fit_transform(X)
    positive = Z[is_positive]
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        centers = KMeans(n_clusters, n_init=1, random_state=seed).fit(positive).cluster_centers_
        while True:
            nearest = pairwise_distances_argmin(positive, centers)
            sizes = np.bincount(nearest, minlength=len(centers))
            if sizes.min() >= FEWEST_POSITIVES:
                return pairwise_distances_argmin(Z, centers)
            centers = np.delete(centers, sizes.argmin(), axis=0)


def tails_of_subtypes(
    scores: Scores,
    is_positive: Bools,
    subtypes: Ints,
    bins: tuple[Ints, Ints] | None = None,
    n_bins: tuple[int, int] = (1, 1),
    weights: tuple[Doubles, Doubles] | None = None,
) -> list[list[ScoreTails]]:
    """Return, for each subtype, the tails of each score: its positives against unlabeled rows."""
    own, others = subtypes[is_positive], subtypes[~is_positive]
    found = []
    for subtype in range(own.max() + 1):
        chosen = own == subtype
        of_bins = None if bins is None else (bins[0][chosen], bins[1])
        counted = None if weights is None else (weights[0][chosen], weights[1])
        found.append(
            [
                ScoreTails.from_scores(
                    values[is_positive][chosen],
                    # Unlabeled rows of other subtypes are outside all tails.
                    np.where(others == subtype, values[~is_positive], -np.inf),
                    of_bins,
                    n_bins,
                    counted,
                )
                for values in scores.values()
            ]
        )
    return found


class SubtypeShares(NamedTuple):
    """Subtypes among known and hidden positives, and a test whether they have the same mix."""

    p_value: float
    labeled: Doubles  # share of each subtype in the known positives
    hidden: Doubles  # share of each hidden subtype in the unlabeled rows


def compare_subtypes(X: Rows, is_positive: Bools, scores: Doubles) -> SubtypeShares:
    r"""Test whether all subtypes have the same ratio of hidden to labeled share.

    The hidden share of a subtype is its share extrapolated to the end of the tail, which removes
    the negatives that overlap with it, to first order:
    :math:`h_j = \frac1m \sum_u \psi(w_u)` over the unlabeled rows of the part, where w is the share
    of its :math:`n_j` positives that score higher. For purely positive tails, w is uniform, and
    :math:`E[\psi] = 1, E[\psi^2] = 4/W`. So the ratio :math:`r_j = h_j / (n_j/n)` has variance
    :math:`\frac{n}{n_j} \left(\frac{4}{W} \frac{r}{m} + \left(\frac{4}{W} - 1\right)
    \frac{r^2}{n}\right)`. The larger of this and the variance observed is used, since negatives in
    the tail add to it, and the weighted sum of squares is compared with chi-square.
    """
    subtypes = subtypes_of_rows(X, is_positive, _TESTED, seed=0)
    n, m = int(is_positive.sum()), int((~is_positive).sum())
    tails = tails_of_subtypes({"score": scores}, is_positive, subtypes)
    hidden, noise, labeled = np.empty((3, len(tails)))
    for j, (of_score,) in enumerate(tails):
        positive, unlabeled, n_j, _ = of_score.counts()
        psi = extrapolated_share(positive, np.eye(len(positive)), n_j, 1.0, WINDOW, 1.0)
        hidden[j] = psi @ unlabeled / m
        noise[j] = psi**2 @ unlabeled / m**2 + (4.0 / WINDOW - 1.0) * hidden[j] ** 2 / n_j
        labeled[j] = n_j / n
    ratio, common = hidden / labeled, max(float(hidden.sum()), 1.0 / m)
    variance = (4.0 / WINDOW * common / m + (4.0 / WINDOW - 1.0) * common**2 / n) / labeled
    variance = np.maximum(variance, noise / labeled**2)
    squares = (ratio - np.average(ratio, weights=1.0 / variance)) ** 2 / variance
    p_value = stats.chi2.sf(squares.sum(), len(tails) - 1) if len(tails) > 1 else 1.0
    return SubtypeShares(float(p_value), labeled, hidden)
