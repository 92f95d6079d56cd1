"""Leaks: columns that separate known positives from unlabeled rows almost perfectly.

If hardly any unlabeled row seems to be positive, either this is so, or a column tells which rows
were labeled, such as a row number or a field that is filled in on confirmation. The samples alone
cannot tell these cases apart, so the columns are named.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.stats import rankdata
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior.result import Caution

_NEAR_ZERO = 0.05  # above this, the samples overlap too much for a leak to separate them
_LEAK = 0.99  # area under the ROC curve
_FEWEST_ROWS = 10  # of each sample; half of them must show the leak in the other half
_MOST_ROWS = 1000  # of each sample
_MOST_EXAMINED = 100  # columns that a tree and a quadratic rule are fitted to
_MOST_PAIRED = 12  # columns of which all pairs are tried
_MOST_NAMED = 5
_HARDLY_ANY = 0.01  # relative to the share of positives with the value
_SOME_POSITIVES = 0.1


class Leak(NamedTuple):
    """Columns that may reveal which rows are labeled."""

    columns: tuple[str, ...]
    area: float  # under the ROC curve
    share: float = 1.0  # of the known positives that they give away


def find_leaks(
    X_positive: Rows, X_unlabeled: Rows, prior: float, names: Sequence[str] | None
) -> list[Leak]:
    """Return columns, or a pair of them, that may explain an estimate near zero.

    ``names`` are the columns that each column of numbers was made from.
    """
    both = X_positive, X_unlabeled
    if prior >= _NEAR_ZERO or sparse.issparse(X_positive) or min(map(len, both)) < _FEWEST_ROWS:
        return []
    names = names or [str(column) for column in range(X_positive.shape[1])]
    X = np.vstack([part[_spread(len(part))] for part in both])
    is_positive = np.arange(len(X)) < min(_MOST_ROWS, len(X_positive))
    places = _examined(X, is_positive, names)
    areas = {name: _separation(X[:, columns], is_positive) for name, columns in places.items()}
    found = [Leak((name,), area) for name, area in areas.items() if area > _LEAK]
    if not found:
        given = _given_away(*both, names)
        found = [Leak((name,), areas.get(name, 0.0), share) for name, share in given.items()]
    if not found:
        most = sorted(areas, key=areas.__getitem__, reverse=True)[:_MOST_PAIRED]
        of_pairs = [
            Leak(pair, _separation(X[:, np.concatenate([places[n] for n in pair])], is_positive))
            for pair in combinations(sorted(most, key=list(places).index), 2)
        ]
        best = max(of_pairs, key=lambda leak: leak.area, default=None)
        found = [best] if best is not None and best.area > _LEAK else []
    return sorted(found, key=lambda leak: -leak.area)[:_MOST_NAMED]


def _examined(X: Doubles, is_positive: Bools, names: Sequence[str]) -> dict[str, list[int]]:
    """Return the columns of numbers by name; of many, those whose ranks differ most."""
    ranks = rankdata(X, axis=0)
    apart = np.abs(ranks[is_positive].mean(axis=0) - ranks[~is_positive].mean(axis=0))
    first = dict.fromkeys(names[column] for column in np.argsort(-apart, kind="stable"))
    chosen = set(list(first)[:_MOST_EXAMINED])
    places: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        if name in chosen:
            places.setdefault(name, []).append(column)
    return places


def about_leaks(found: Sequence[Leak]) -> list[Caution]:
    """Return a warning for each leak."""
    return [_about(leak) for leak in found]


def _about(leak: Leak) -> Caution:
    quoted = " and ".join(map(repr, leak.columns))
    if leak.share < 1.0:
        return Caution(
            f"Column {quoted} alone tells {leak.share:.0%} of the known positives from nearly all "
            "unlabeled rows, by a certain value, or by being filled in or empty.",
            "Leave it out if it was filled in because of the label, such as on confirmation.",
            remedy="drop",
            column=leak.columns[0],
        )
    which = (
        f"Column {quoted} alone separates"
        if len(leak.columns) == 1
        else (f"Columns {quoted} together separate")
    )
    return Caution(
        f"{which} known positives from unlabeled rows (area under the ROC curve {leak.area:.3f}).",
        "Leave out what was recorded because of the label, such as an ID or an entry date.",
        remedy="drop",
        column=leak.columns[0],
    )


def _separation(X: Doubles, is_positive: Bools) -> float:
    """Return the area under the ROC curve of a tree or a quadratic rule, fitted to other rows."""
    half = np.arange(len(X)) % 2 == 0
    areas = []
    for model in (
        DecisionTreeClassifier(max_depth=4, min_samples_leaf=5, random_state=0),
        QuadraticDiscriminantAnalysis(reg_param=1e-3),
    ):
        scores = np.zeros(len(X))
        # Columns may be collinear, and there may be fewer positives than levels of a category.
        with single_threaded(), warnings.catch_warnings(), suppress(ValueError):
            warnings.simplefilter("ignore")
            for fitted in (half, ~half):
                model.fit(X[fitted], is_positive[fitted])
                scores[~fitted] = model.predict_proba(X[~fitted])[:, 1]
        areas.append(float(roc_auc_score(is_positive, np.nan_to_num(scores))))
    return max(areas)


def _given_away(
    X_positive: Doubles, X_unlabeled: Doubles, names: Sequence[str]
) -> dict[str, float]:
    """Return columns with a value that many known positives and hardly any unlabeled rows have."""
    both = X_positive, X_unlabeled
    low, high = (f([f(X, axis=0) for X in both], axis=0) for f in (np.min, np.max))
    has_two_values = np.all([np.all((low == X) | (high == X), axis=0) for X in both], axis=0)
    found: dict[str, float] = {}
    for value in (low, high):
        positive, unlabeled = (np.mean(value == X, axis=0) for X in both)
        is_given = (positive >= _SOME_POSITIVES) & (unlabeled < _HARDLY_ANY * positive)
        for column in map(int, np.flatnonzero(is_given & has_two_values & (low < high))):
            found[names[column]] = max(found.get(names[column], 0.0), float(positive[column]))
    return found


def _spread(n_rows: int) -> Ints:
    return np.unique(np.linspace(0, n_rows - 1, min(_MOST_ROWS, n_rows)).astype(np.int64))
