"""Cross-fitting: each row is scored by a model fitted to the other folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Ints, Rows

# Probabilities are clipped to this distance from 0 and 1.
_SMALLEST_PROBABILITY = 1e-6
_NYSTROEM_COMPONENTS = 100
# Steps of a pipeline that do not look at the labels. One fit to all rows serves all folds.
_LABEL_BLIND = (StandardScaler, Nystroem)
_ROWS_FOR_THREADS = 10_000  # with fewer rows, threads cost more time than they save
TOGETHER = "together"  # name of the mean score of all classifiers
Score = Callable[[Any, Rows], Doubles]
Scores = dict[str, Doubles]


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
            max_iter=30, learning_rate=0.2, max_leaf_nodes=8, max_bins=64, early_stopping=False
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


def rounded_log_odds(model: Any, X: Rows) -> Doubles:
    """Return the log-odds in single precision, which do not depend on the rows scored with them."""
    # The last bits of a matrix product depend on its number of rows, and scores are compared.
    return log_odds(model, X).astype(np.float32).astype(np.float64)


class OutOfFold(NamedTuple):
    """What cross-fitting one model yields."""

    name: str
    scores: Doubles  # of each row, by the model that was not fitted to its fold
    models: list[Any]  # one for each fold; empty unless they are kept


def cross_fit(
    models: Mapping[str, Any],
    X: Rows,
    is_positive: Bools,
    folds: Ints,
    seed: int,
    *,
    n_folds: int | None = None,
    score: Score = log_odds,
    keep: bool = False,
    n_jobs: int | None = None,
) -> Iterator[OutOfFold]:
    """Yield the out-of-fold scores of each model, and the fitted models if ``keep``."""
    n_folds = int(folds.max()) + 1 if n_folds is None else n_folds
    n_jobs = n_jobs if len(folds) >= _ROWS_FOR_THREADS else None
    with single_threaded():
        split = [_split(model, X, seed) for model in models.values()]
        parts = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(_fit_and_score)(classifier, Z, is_positive, folds == k, seed, score, keep)
            for _, Z, classifier in split
            for k in range(n_folds)
        )
        for name, (head, _, _) in zip(models, split, strict=True):
            scores, fitted = np.empty(len(folds)), []
            for k in range(n_folds):
                scores[folds == k], model = next(parts)
                if keep:
                    fitted.append(Pipeline([*head, *_steps(model)]) if head else model)
            yield OutOfFold(name, scores, fitted)


def fit_models(models: Mapping[str, Any], X: Rows, is_positive: Bools, seed: int) -> dict[str, Any]:
    """Fit a clone of each model."""
    with single_threaded():
        return {
            name: seeded(clone(model), seed).fit(X, is_positive) for name, model in models.items()
        }


@dataclass(frozen=True, eq=False)
class Scorers:
    """Models of several folds; each row is scored by those that have not seen its bin."""

    folds: tuple[Ints, Ints]  # fold of each bin in both samples
    models: dict[str, list[Any]]  # by name, one model for each fold; None if there is none

    def scores(self, sample: int, X: Rows, bins: Ints) -> Scores:
        """Return the scores of rows of a sample, given their bins; -inf without a model."""
        fold_of_row = self.folds[sample][bins]
        scores = {name: np.full(len(bins), -np.inf) for name in self.models}
        for fold in np.unique(fold_of_row):
            rows = np.flatnonzero(fold_of_row == fold)
            for name, models in self.models.items():
                if models[fold] is not None:
                    scores[name][rows] = rounded_log_odds(models[fold], X[rows])
        return with_mean(scores)


def with_mean(scores: Scores) -> Scores:
    """Add the mean of all scores, if there are several."""
    if len(scores) == 1:
        return scores
    return {**scores, TOGETHER: np.mean(list(scores.values()), axis=0)}


def _split(model: Any, X: Rows, seed: int) -> tuple[list[tuple[str, Any]], Rows, Any]:
    """Return the leading steps that ignore the labels, fitted; their output; and the rest."""
    steps = _steps(model)
    n_blind = next(i for i, (_, step) in enumerate(steps) if not isinstance(step, _LABEL_BLIND))
    if n_blind == 0:
        return [], X, model
    head = seeded(clone(model[:n_blind]), seed)
    rest = model[n_blind:]
    return head.steps, head.fit_transform(X), rest if len(rest) > 1 else rest[0]


def _steps(model: Any) -> list[tuple[str, Any]]:
    return model.steps if isinstance(model, Pipeline) else [("classifier", model)]


def _fit_and_score(
    model: Any,
    X: Rows,
    is_positive: Bools,
    held_out: Bools,
    seed: int,
    score: Score,
    keep: bool,
) -> tuple[Doubles, Any]:
    """Fit a clone of the model to the other rows and score the held-out rows."""
    fitted = seeded(clone(model), seed).fit(X[~held_out], is_positive[~held_out])
    scores = score(fitted, X[held_out]) if held_out.any() else np.empty(0)
    return scores, fitted if keep else None


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
