"""Near-copies: rows that are closer to a few other rows than chance allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from classprior._core.basis import stacked
from classprior._core.types import Doubles, Ints, Keys, Rows
from classprior._samples.matching import row_keys
from classprior._scores.limits import binomial_limits
from classprior._tables.tables import as_frame, stacked_tables
from classprior.result import Caution

_NEIGHBORS = 20  # larger groups of near-copies are not seen
_QUERIES = 1000  # rows of each sample whose neighbors are looked at
_MOST_GROUPED = 12_000  # rows of which all near-copies are looked for
_TIES = 0.02  # columns in which two rows are equal with a higher probability count as discrete
_SIGNIFICANT = 0.001
_NEARLY_ALL = 0.9  # share of pairs that have the same value in a column of groups
_MANY = 0.05


class NearCopies(NamedTuple):
    """Rows with near-copies."""

    shares: tuple[float, float]  # of the known positives and of the unlabeled rows
    pairs: Ints  # of shape (n, 2): rows and their nearest rows, numbered with the positives first


def find_near_copies(X_positive: Rows, X_unlabeled: Rows) -> NearCopies | None:
    """Look for near-copies; return None unless a sample has many.

    Discrete columns are ignored: rows that agree in them are close by chance.
    """
    found = _distinct(X_positive, X_unlabeled)
    if found is None:
        return None
    X, distinct = found
    n_positive = int(np.searchsorted(distinct, X_positive.shape[0]))
    asked = np.concatenate([_spread(0, n_positive), _spread(n_positive, len(distinct))])
    distances, nearest = _neighbors(X[distinct], asked)
    is_copy = gap_p_values(distances) < _SIGNIFICANT
    of_samples = is_copy[asked < n_positive], is_copy[asked >= n_positive]
    counts = [(int(np.sum(part)), len(part)) for part in of_samples]
    if not any(binomial_limits(k, n, _SIGNIFICANT)[0] > _MANY for k, n in counts):
        return None
    positive, unlabeled = (k / max(1, n) for k, n in counts)
    return NearCopies(
        (positive, unlabeled), distinct[np.column_stack([asked, nearest[:, 0]])[is_copy]]
    )


def groups_of_copies(
    X_positive: Rows, X_unlabeled: Rows, *, has_near_copies: bool = True
) -> tuple[Keys, Keys] | None:
    """Return groups of rows that are copies or near-copies; None if there are too many rows."""
    found = _distinct(X_positive, X_unlabeled) if has_near_copies else None
    n = X_positive.shape[0]
    keys = row_keys(stacked(X_positive, X_unlabeled))
    if found is not None:
        X, distinct = found
        if len(distinct) > _MOST_GROUPED:
            return None
        distances, nearest = _neighbors(X[distinct], np.arange(len(distinct)))
        is_copy = gap_p_values(distances) < _SIGNIFICANT
        before = np.argmax(_gaps(distances), axis=1)  # near-copies are those before the largest gap
        is_near = is_copy[:, None] & (np.arange(nearest.shape[1]) <= before[:, None])
        rows, places = np.nonzero(is_near)
        links = sparse.coo_array(
            (np.ones(len(rows)), (rows, nearest[rows, places])), shape=(len(distinct),) * 2
        ).tocsr()
        # Rows are near-copies if each is one of the other; chains of one-sided links would not end.
        _, groups = connected_components(links.multiply(links.T), directed=False)
        _, of_rows = np.unique(row_keys(X), return_inverse=True)
        of_distinct = np.empty(len(distinct), dtype=np.int64)
        of_distinct[of_rows[distinct]] = groups
        keys = of_distinct[of_rows].astype(np.uint64)
    return keys[:n], keys[n:]


def _distinct(X_positive: Rows, X_unlabeled: Rows) -> tuple[Doubles, Ints] | None:
    """Return the columns of all rows that are not discrete, and the rows that differ in them."""
    if sparse.issparse(X_positive):
        return None
    X = np.vstack([X_positive, X_unlabeled])
    X = X[:, [_tie_probability(column) <= _TIES for column in X.T]]
    if X.shape[1] == 0:
        return None
    _, first = np.unique(row_keys(X), return_index=True)
    distinct = np.sort(first)  # exact copies have a warning of their own
    return None if len(distinct) <= 2 * _NEIGHBORS else (X, distinct)


def _neighbors(X: Doubles, asked: Ints) -> tuple[Doubles, Ints]:
    """Return the distances and the numbers of the nearest rows, without the row itself."""
    distances, nearest = NearestNeighbors(n_neighbors=_NEIGHBORS + 2).fit(X).kneighbors(X[asked])
    return distances[:, 1:], nearest[:, 1:]


def gap_p_values(distances: Doubles) -> Doubles:
    """Return the p-value of the largest gap in the distances from each row to its neighbors.

    Where the density of n columns is smooth, j n log(d_{j+1} / d_j) for the distances d_1, d_2, ...
    to the neighbors are independent standard exponential variables, whatever n and the density.
    The largest of k has a share of at least x in their sum with probability at most
    k (1 - x)^(k - 1) (Fisher, 1929). A row with near-copies has a large gap behind them.
    """
    k, gaps = distances.shape[1] - 1, _gaps(distances)
    total = gaps.sum(axis=1)
    share = np.divide(gaps.max(axis=1), total, out=np.zeros(len(gaps)), where=total > 0.0)
    return np.minimum(1.0, k * (1.0 - share) ** (k - 1))


def _gaps(distances: Doubles) -> Doubles:
    """Return j log(d_{j+1} / d_j) for the distances to the neighbors."""
    logs = np.log(np.maximum(distances, np.finfo(float).tiny))
    return np.diff(logs, axis=1) * np.arange(1.0, distances.shape[1])


def column_of_groups(tables: Sequence[Any], pairs: Ints) -> str | None:
    """Return the column whose values may be groups: equal in nearly all pairs, each in a few rows.

    Pairs are row numbers in the tables together; columns of fractions are not considered.
    """
    import pandas as pd

    if not all(hasattr(table, "columns") for table in tables):
        return None
    frame = stacked_tables([as_frame(table, None) for table in tables])
    equal = {}
    for name, column in frame.items():
        if pd.api.types.is_float_dtype(column):
            continue
        codes, _ = pd.factorize(column.map(str))
        counts = np.bincount(codes)
        if np.sum(counts.astype(float) ** 2) <= _NEIGHBORS * len(codes):  # the mean over rows
            equal[str(name)] = float(np.mean(codes[pairs[:, 0]] == codes[pairs[:, 1]]))
    name = max(equal, key=equal.__getitem__, default=None)
    return name if name is not None and equal[name] >= _NEARLY_ALL else None


def about_near_copies(found: NearCopies | None, column: str | None) -> list[Caution]:
    """Return a warning that names the column of the groups, if there is one."""
    if found is None:
        return []
    positive, unlabeled = found.shares
    return [
        Caution(
            f"Near-copies: at least {positive:.0%} of the known positives and {unlabeled:.0%} of "
            "the unlabeled rows have a near-copy, a row much closer than chance allows, such as "
            "another visit of the same patient. Near-copies in different folds make the estimate "
            "too low and void the interval and the upper bound.",
            "Keep the rows of a patient, customer or place together."
            if column is None
            else f"Near-copies have the same value in column {column!r}.",
            remedy="group" if column is None else "group by",
            column=column,
        )
    ]


def _tie_probability(column: Doubles) -> float:
    """Return the probability that two random rows have the same value."""
    _, counts = np.unique(column, return_counts=True)
    return float(np.sum((counts / len(column)) ** 2)) if counts.max() > 1 else 0.0


def _spread(start: int, stop: int) -> Ints:
    """Return at most ``_QUERIES`` evenly spaced numbers."""
    return np.unique(np.linspace(start, stop - 1, min(_QUERIES, stop - start)).astype(np.int64))
