"""Cross-fitting: each row is scored by a model fitted to the other folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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

from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Ints, Rows

# Probabilities are clipped to this distance from 0 and 1.
_SMALLEST_PROBABILITY = 1e-6
_NYSTROEM_COMPONENTS = 100
Score = Callable[[Any, Rows], Doubles]


def default_classifiers(X: Rows) -> dict[str, Any]:
    """Return a linear, a kernel and, for dense rows, a tree classifier."""
    is_sparse = sparse.issparse(X)
    scaler = StandardScaler(with_mean=not is_sparse)
    # The mean squared distance between standardized rows is twice the number of columns.
    components = max(1, min(_NYSTROEM_COMPONENTS, X.shape[0] // 2))
    kernel = Nystroem(gamma=0.5 / max(1, n_varying_columns(X)), n_components=components)
    classifiers = {
        "linear": make_pipeline(scaler, LogisticRegression(max_iter=300)),
        "kernel": make_pipeline(scaler, kernel, LogisticRegression(C=10.0, max_iter=300)),
    }
    if not is_sparse:
        classifiers["trees"] = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=8, early_stopping=False
        )
    return classifiers


def n_varying_columns(X: Rows) -> int:
    """Return the number of columns that are not constant, the only ones that distances see."""
    low, high = (f(axis=0) for f in (X.min, X.max))
    return int(np.sum(low != high)) if not sparse.issparse(X) else (low != high).nnz


def log_odds(model: Any, X: Rows) -> Doubles:
    """Return the log-odds of being labeled from a fitted binary classifier."""
    p = model.predict_proba(X)[:, 1]
    p = np.clip(p, _SMALLEST_PROBABILITY, 1.0 - _SMALLEST_PROBABILITY)
    return np.log(p / (1.0 - p))


def cross_fit(
    models: Mapping[str, Any],
    X: Rows,
    is_positive: Bools,
    folds: Ints,
    seed: int,
    *,
    score: Score = log_odds,
    n_jobs: int | None = None,
) -> Iterator[tuple[str, Doubles]]:
    """Yield the name and the out-of-fold scores of each model."""
    n_folds = int(folds.max()) + 1
    with single_threaded():
        parts = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(held_out_scores)(model, X, is_positive, folds == k, seed, score)
            for model in models.values()
            for k in range(n_folds)
        )
        for name in models:
            scores = np.empty(len(folds))
            for k in range(n_folds):
                scores[folds == k] = next(parts)
            yield name, scores


def held_out_scores(
    model: Any, X: Rows, is_positive: Bools, held_out: Bools, seed: int, score: Score = log_odds
) -> Doubles:
    """Fit a clone of the model to the other rows and score the held-out rows."""
    with single_threaded():
        fitted = seeded(clone(model), seed).fit(X[~held_out], is_positive[~held_out])
        return score(fitted, X[held_out])


def log_loss(scores: Doubles, is_positive: Bools) -> float:
    """Return the total log-loss, given the log-odds of being labeled."""
    return float(np.logaddexp(0.0, np.where(is_positive, -scores, scores)).sum())


def seeded(model: Any, seed: int) -> Any:
    """Set each ``random_state`` of a model that is None."""
    unset = {
        name: seed
        for name, value in model.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    }
    return model.set_params(**unset)
