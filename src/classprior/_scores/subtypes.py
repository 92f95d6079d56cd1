"""Subtypes of the positives: clusters and their tails.

The rows are divided by the nearest cluster of the positives. Each part is a problem of its own: its
known positives against its unlabeled rows. Labels may favor some subtypes over others, as long as
each hidden subtype is among the labeled ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import StandardScaler

from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._scores.crossfit import Scores, default_classifiers
from classprior._scores.tails import ScoreTails

#: Returns coordinates of rows to find clusters in, given the known positives, a seed and the rows
#: that may be used to fit them.
Coordinates = Callable[[Rows, Bools, int, Bools | slice], Rows]
FEWEST_POSITIVES = 30  # in a cluster; a quarter of them is the smallest tail


def standardized(X: Rows) -> Rows:
    """Return the columns with unit variance, to find clusters in."""
    return StandardScaler(with_mean=not sparse.issparse(X)).fit_transform(X)


def of_columns(X: Rows, is_positive: Bools, seed: int, fitted: Bools | slice = slice(None)) -> Rows:
    """Return the columns themselves, to find clusters in."""
    return standardized(X)


def contributions(
    X: Rows, is_positive: Bools, seed: int, fitted: Bools | slice = slice(None)
) -> Rows:
    """Return what each of 30 trees adds to the log-odds of being labeled, to find clusters in.

    In these coordinates, columns count by how much they tell known positives from unlabeled rows,
    so that kinds of positives that are labeled more or less often are apart. The trees are fitted
    to the ``fitted`` rows. Sparse and very wide rows, which trees do not take, are standardized.
    """
    classifiers = default_classifiers(X)
    if "trees" not in classifiers:
        return standardized(X)
    trees = classifiers["trees"].set_params(random_state=seed, class_weight="balanced")
    with single_threaded():
        stages = trees.fit(X[fitted], is_positive[fitted]).staged_decision_function(X)
        return np.diff(np.column_stack([*stages]), axis=1, prepend=0.0)


def clusters_of_rows(
    Z: Rows,
    is_positive: Bools,
    n_clusters: int,
    seed: int,
    *,
    n_init: int = 1,
    fitted: Bools | slice = slice(None),
) -> Ints:
    """Return the nearest cluster of the ``fitted`` positives for each row.

    Small clusters are dissolved.
    """
    positive = Z[fitted][is_positive[fitted]]
    n_clusters = min(n_clusters, positive.shape[0] // FEWEST_POSITIVES)
    if n_clusters < 2:
        return np.zeros(len(is_positive), dtype=np.int64)
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        k_means = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(positive)
        centers = k_means.cluster_centers_
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
