"""One-dimensional views of the data: cross-fitted scores of classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classprior._basis import Doubles, Ints, Rows, stacked
from classprior._threads import single_threaded

# Probabilities closer to 0 or 1 than this are not told apart.
_SMALLEST_PROBABILITY = 1e-6
_NYSTROEM_COMPONENTS = 100


def default_classifiers(X: Rows, n_rows: int) -> dict[str, Any]:
    """Return a linear, a kernel and a tree classifier: three ways to see structure.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        Rows, for their kind and number of columns.
    n_rows : int
        Rows of both samples.

    Returns
    -------
    classifiers : dict of str to classifier
        Unfitted. Trees do not take sparse rows, which have the other two.
    """
    is_sparse = sparse.issparse(X)
    scaler = StandardScaler(with_mean=not is_sparse)
    # The mean squared distance between standardised rows is twice the number of columns.
    components = max(1, min(_NYSTROEM_COMPONENTS, n_rows // 2))
    kernel = Nystroem(gamma=0.5 / X.shape[1], n_components=components)
    classifiers = {
        "linear": make_pipeline(scaler, LogisticRegression(max_iter=300)),
        "kernel": make_pipeline(scaler, kernel, LogisticRegression(C=10.0, max_iter=300)),
    }
    if not is_sparse:
        classifiers["trees"] = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=8, early_stopping=False
        )
    return classifiers


def cross_fitted_log_odds(
    classifiers: Mapping[str, Any],
    X_positive: Rows,
    X_unlabeled: Rows,
    folds: tuple[Ints, Ints],
    seed: int,
    n_jobs: int | None,
) -> Iterator[tuple[str, Doubles, Doubles]]:
    """Score every row by classifiers that were fitted to the other folds.

    Parameters
    ----------
    classifiers : mapping of str to classifier
        Each with predict_proba.
    X_positive, X_unlabeled : arrays or CSR matrices
        The rows.
    folds : pair of arrays of int
        Fold of each row.
    seed : int
        Random state of the classifiers that take one.
    n_jobs : int or None
        Threads over classifiers and folds.

    Yields
    ------
    name : str
        The classifier.
    positive, unlabeled : arrays
        Log-odds of being labelled, of every row.
    """
    n_folds = int(folds[0].max()) + 1
    X, labels = with_labels(X_positive, X_unlabeled)
    ids = np.concatenate(folds)
    with single_threaded():
        parts = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(fitted_log_odds)(c, X[ids != k], labels[ids != k], X[ids == k], seed)
            for c in classifiers.values()
            for k in range(n_folds)
        )
        for name in classifiers:
            scores = np.empty(len(ids))
            for k in range(n_folds):
                scores[ids == k] = next(parts)
            yield name, scores[: len(folds[0])], scores[len(folds[0]) :]


def fitted_log_odds(classifier: Any, X: Rows, labels: Ints, X_new: Rows, seed: int) -> Doubles:
    """Fit a classifier and return the log-odds of being labelled, of new rows.

    Parameters
    ----------
    classifier : classifier
        With predict_proba.
    X, labels : rows and their labels
        1 for known positives, 0 for unlabeled rows.
    X_new : rows
        What to score.
    seed : int
        For every ``random_state`` that is not set.

    Returns
    -------
    log_odds : array of shape (n_new_rows,)
        Finite.
    """
    with single_threaded():
        p = seeded(clone(classifier), seed).fit(X, labels).predict_proba(X_new)[:, 1]
    p = np.clip(p, _SMALLEST_PROBABILITY, 1.0 - _SMALLEST_PROBABILITY)
    return np.log(p / (1.0 - p))


def with_labels(X_positive: Rows, X_unlabeled: Rows) -> tuple[Rows, Ints]:
    """Return both samples in one, and 1 for each known positive, 0 for each unlabeled row.

    Parameters
    ----------
    X_positive, X_unlabeled : arrays or CSR matrices
        The samples.

    Returns
    -------
    X, labels : rows and their labels
        Positives first.
    """
    labels = np.repeat([1, 0], [X_positive.shape[0], X_unlabeled.shape[0]])
    return stacked(X_positive, X_unlabeled), labels


def seeded(classifier: Any, seed: int) -> Any:
    """Set every ``random_state`` that is not set.

    Parameters
    ----------
    classifier : classifier
        Is changed.
    seed : int
        For all of them.

    Returns
    -------
    classifier : classifier
        The same.
    """
    unset = {
        name: seed
        for name, value in classifier.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    }
    return classifier.set_params(**unset)
