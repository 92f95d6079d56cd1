"""Subtypes of the positives: clusters and their tails.

The rows are divided by the nearest cluster of the positives. Each part is a problem of its own: its
known positives against its unlabeled rows. Labels may favor some subtypes over others, as long as
each hidden subtype is among the labeled ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import StandardScaler

from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._scores.crossfit import Scores
from classprior._scores.tails import MOST_THRESHOLDS, ScoreTails, TailEstimate, combine

N_KINDS = 8  # of positives, at most, if they are compared
FEWEST_POSITIVES = 30  # in a cluster; a quarter of them is the smallest tail
_NEAR = 0.15  # of the distance between two centers
_FEWEST_THRESHOLDS = 100  # of a subtype
_TREES = 40
_ROWS_OF_TREE = 2000
_MOST_COLUMNS, _COMPONENTS = 500, 50


def standardized(X: Rows, fitted: Bools | slice = slice(None)) -> Rows:
    """Return the columns with unit variance in the ``fitted`` rows, to find clusters in."""
    return StandardScaler(with_mean=not sparse.issparse(X)).fit(X[fitted]).transform(X)


class WeightedColumns(NamedTuple):
    """Columns weighted by how much they tell known positives from other rows."""

    values: Doubles
    gains: Doubles  # share of each column in the gain of all splits of randomized trees


def important_columns(
    X: Rows, is_positive: Bools, seed: int, fitted: Bools | slice = slice(None)
) -> WeightedColumns:
    """Return the columns, each weighted by how much it tells known positives from other rows.

    Kinds of positives that differ in how often they are labeled differ in such columns, while other
    columns only blur the clusters (Kumar and Lambert, 2024, PeerJ Computer Science 10, cluster by
    the important columns of boosted trees). Weights are square roots of the gains of splits in
    randomized trees, which are fitted to the ``fitted`` rows. Sparse and very wide rows are
    projected on their main components first.
    """
    Z = standardized(X, fitted)
    if is_projected(X):
        n_components = min(_COMPONENTS, min(Z.shape) - 1)
        Z = TruncatedSVD(n_components, random_state=seed).fit(Z[fitted]).transform(Z)
    trees = ExtraTreesClassifier(
        _TREES,
        min_samples_leaf=5,
        max_features=None,
        bootstrap=True,
        max_samples=min(_ROWS_OF_TREE, len(Z[fitted])),
        class_weight="balanced",
        random_state=seed,
    )
    with single_threaded():
        gains = trees.fit(Z[fitted], is_positive[fitted]).feature_importances_
    return WeightedColumns(Z * np.sqrt(gains / max(gains.max(), 1e-12)), gains)


def is_projected(X: Rows) -> bool:
    """Whether rows are projected on their main components before clusters are looked for."""
    return bool(sparse.issparse(X) or X.shape[1] > _MOST_COLUMNS)


def beside_scores(Z: Doubles, is_positive: Bools, scores: Doubles, seed: int) -> Doubles:
    r"""Return columns without the direction in which the scores of similar positives differ.

    Otherwise, clusters of a single cloud of positives would be slices from near the negatives to
    far from them, which contain more or fewer negatives whether or not labels are biased. With g
    for the coefficients of the regression of scores on columns, and c for those of the regression
    of columns on :math:`v = Z g`, the result is :math:`Z - v c^\top`. Both are regressions within
    clusters of positives, since kinds that are labeled more or less often have different scores,
    and must stay apart.
    """
    # More clusters than kinds, so that few of them contain two kinds.
    similar = clusters_of_rows(Z, is_positive, 2 * N_KINDS, seed, n_init=3)[is_positive]
    within = _centered(Z[is_positive], similar)
    g = np.linalg.lstsq(within, _centered(scores[is_positive, None], similar), rcond=1e-3)[0]
    c = np.linalg.lstsq(within @ g, within, rcond=None)[0]
    v = Z @ g
    clouds = clouds_of_rows(Z, is_positive, seed)
    for cloud in range(clouds.max() + 1):
        inside = clouds == cloud
        known = v[inside & is_positive]
        # Negatives are beyond the range of the positives: no extrapolation to them.
        v[inside] = np.clip(v[inside], known.min(), known.max()) - known.mean()
    return np.round(Z - v @ c, 6)  # nothing is left of a single column


def kinds_of_positives(
    columns: Doubles, is_positive: Bools, scores: Doubles, seed: int, *, n_init: int = 1
) -> Ints:
    """Return the kind of each row: clusters of positives beside the score."""
    Z = beside_scores(columns, is_positive, scores, seed)
    return clusters_of_rows(Z, is_positive, N_KINDS, seed, n_init=n_init)


def clouds_of_rows(Z: Doubles, is_positive: Bools, seed: int) -> Ints:
    """Return clusters of positives, joined unless there is a gap halfway between their centers."""
    parts = clusters_of_rows(Z, is_positive, N_KINDS, seed, n_init=3)
    positive, own = Z[is_positive], parts[is_positive]
    centers = np.array([positive[own == part].mean(axis=0) for part in range(own.max() + 1)])
    is_joined = np.eye(len(centers), dtype=bool)
    for i, j in combinations(range(len(centers)), 2):
        axis = centers[j] - centers[i]
        way = (positive[(own == i) | (own == j)] - centers[i]) @ axis / (axis @ axis)
        halfway = np.sum(np.abs(way - 0.5) < _NEAR)
        at_ends = min(np.sum(np.abs(way) < _NEAR), np.sum(np.abs(way - 1.0) < _NEAR))
        is_joined[i, j] = halfway > at_ends / 4.0
    _, clouds = connected_components(is_joined, directed=False)
    return clouds[parts].astype(np.int64)


def _centered(values: Doubles, parts: Ints) -> Doubles:
    """Subtract the mean of each part."""
    sums = np.zeros((parts.max() + 1, values.shape[1]))
    np.add.at(sums, parts, values)
    return values - (sums / np.bincount(parts)[:, None])[parts]


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
    n_subtypes, found = int(own.max()) + 1, []
    n_thresholds = max(MOST_THRESHOLDS // n_subtypes, _FEWEST_THRESHOLDS)
    for subtype in range(n_subtypes):
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
                    n_thresholds=n_thresholds,
                )
                for values in scores.values()
            ]
        )
    return found


def sum_of_subtypes(
    tails: Sequence[Sequence[ScoreTails]], weights: tuple[Doubles, Doubles] | None = None
) -> TailEstimate:
    """Return the sum of the estimates of the subtypes."""
    found = []
    # Each of several subtypes is a small part of the unlabeled rows, but not for being rare.
    deep = len(tails) == 1
    for of_subtype in tails:
        estimate = combine([tail.counts() for tail in of_subtype], deep=deep)
        if weights is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                counts = [tail.counts(weights) for tail in of_subtype]
                drawn = combine(counts, resampled=True, deep=deep)
            # A resample without any positives of the subtype says nothing about it.
            is_known = np.any(weights[0] @ of_subtype[0].positive > 0.0, axis=-1)
            estimate = replace(
                estimate,
                prior=np.where(is_known, drawn.prior, estimate.prior),
                extrapolated=np.where(is_known, drawn.extrapolated, estimate.extrapolated),
                of_scores=np.where(is_known[:, None], drawn.of_scores, estimate.of_scores),
            )
        found.append(estimate)

    def each(name: str) -> Doubles:
        return np.array([getattr(estimate, name) for estimate in found])

    summed = ("prior", "ratio", "extrapolated", "of_scores", "purest", "widest")
    return TailEstimate(
        **{name: each(name).sum(axis=0) for name in summed},
        **{name: each(name).mean(axis=0) for name in ("window", "share")},
    )
