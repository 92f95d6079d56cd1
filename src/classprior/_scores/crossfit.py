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
from sklearn.utils.validation import has_fit_parameter

from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._samples.progress import progress
from classprior._samples.samples import Samples
from classprior._tables.parameters import SAMPLES

# Probabilities are clipped to this distance from 0 and 1.
_SMALLEST_PROBABILITY = 1e-6
_NYSTROEM_COMPONENTS = 100
# Trees take a millisecond per column, most of it before they look at a single row.
_MOST_COLUMNS_OF_TREES = 5000
# Steps of a pipeline that do not look at the labels. One fit to all rows serves all folds.
_LABEL_BLIND = (StandardScaler, Nystroem)
_FEW_ROWS = 5000  # up to this size the choice of folds matters, so more rounds are averaged
_ROWS_FOR_THREADS = 10_000  # with fewer rows, threads cost more time than they save
TOGETHER = "together"  # name of the mean score of all classifiers
Score = Callable[[Any, Rows], Doubles]
Scores = dict[str, Doubles]


def default_classifiers(X: Rows) -> dict[str, Any]:
    """Return a linear, a kernel and, for dense rows that are not too wide, a tree classifier."""
    is_sparse = sparse.issparse(X)
    scaler = StandardScaler(with_mean=not is_sparse)
    # The mean squared distance between standardized rows is twice the number of columns.
    components = max(1, min(_NYSTROEM_COMPONENTS, X.shape[0] // 2))
    kernel = Nystroem(gamma=0.5 / max(1, n_varying_columns(X)), n_components=components)
    classifiers = {
        "linear": make_pipeline(scaler, LogisticRegression(max_iter=300)),
        "kernel": make_pipeline(scaler, kernel, LogisticRegression(C=10.0, max_iter=300)),
    }
    if not is_sparse and X.shape[1] <= _MOST_COLUMNS_OF_TREES:
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
    weights: Doubles | None = None,
    n_folds: int | None = None,
    score: Score = log_odds,
    keep: bool = False,
    n_jobs: int | None = None,
) -> Iterator[OutOfFold]:
    """Yield the out-of-fold scores of each model, and the fitted models if ``keep``."""
    n_folds = int(folds.max()) + 1 if n_folds is None else n_folds
    _check_both_outside(folds, n_folds, is_positive)
    n_jobs = n_jobs if len(folds) >= _ROWS_FOR_THREADS else None
    with single_threaded():
        split = [_split(model, X, seed, weights) for model in models.values()]
        parts = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(_fit_and_score)(
                classifier, Z, is_positive, weights, folds == k, seed, score, keep
            )
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


def cross_fit_rounds(
    classifiers: Mapping[str, Any],
    X: Rows,
    is_positive: Bools,
    samples: Samples,
    drawn: Samples,
    *,
    cv: Any,
    n_repeats: int | None,
    keep: bool = False,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[tuple[Scores, Scorers]]:
    """Cross-fit to the drawn rows X in rounds with different folds of the bins of all rows."""
    n_rounds = n_repeats or (5 if len(is_positive) <= _FEW_ROWS else 2)
    folds = [samples.folds(cv, number) for number in range(n_rounds)]
    n_folds = 1 + max(int(part.max()) for part in folds[0])  # one may have no drawn rows
    fitted = (
        (number, out_of_fold)
        for number in range(n_rounds)
        for out_of_fold in cross_fit(
            classifiers,
            X,
            is_positive,
            np.concatenate(drawn.folds_of_rows(folds[number])),
            samples.bins.seed_of_round(number),
            weights=drawn.stacked_weights,
            n_folds=n_folds,
            score=rounded_log_odds,
            keep=keep,
            n_jobs=n_jobs,
        )
    )
    scores: list[Scores] = [{} for _ in folds]
    scorers = [Scorers(of_round, {}) for of_round in folds]
    total = n_rounds * len(classifiers)
    for number, found in progress(fitted, total, "Cross-fitting", verbose):
        scores[number][found.name] = found.scores
        scorers[number].models[found.name] = found.models
    return list(zip(map(with_mean, scores), scorers, strict=True))


def out_of_fold_scores(
    samples: Samples, classifier: Any, cv: Any, score: Score = rounded_log_odds
) -> tuple[Doubles, Doubles]:
    """Return the cross-fitted scores of both samples; None averages the default classifiers."""
    X, is_positive = samples.stacked_rows()
    models = default_classifiers(X) if classifier is None else {"classifier": classifier}
    folds = np.concatenate(samples.folds_of_rows(samples.folds(cv)))
    seed = samples.bins.seed_of_round(0)
    parts = cross_fit(
        models,
        X,
        is_positive,
        folds,
        seed,
        weights=samples.stacked_weights,
        score=score,
        n_jobs=samples.n_jobs,
    )
    scores = np.mean([part.scores for part in parts], axis=0)
    return scores[is_positive], scores[~is_positive]


def check_classifier(classifier: Any) -> Any:
    """Raise unless the classifier is None or predicts probabilities."""
    if classifier is not None and not hasattr(classifier, "predict_proba"):
        raise TypeError(
            f"Classifier {type(classifier).__name__} has no predict_proba. Try wrapping it in "
            "scikit-learn's CalibratedClassifierCV."
        )
    return classifier


def check_classifiers(classifiers: Mapping[str, Any] | None, X: Rows) -> dict[str, Any]:
    """Validate several classifiers; return the default ones for None."""
    if classifiers is None:
        return default_classifiers(X)
    if not isinstance(classifiers, Mapping) or not classifiers:
        raise TypeError(
            "Expected classifiers to be a nonempty dict of names to classifiers, got "
            f"{classifiers!r}. Try classifiers={{'linear': LogisticRegression()}}."
        )
    for name, classifier in classifiers.items():
        if not hasattr(classifier, "predict_proba"):
            raise TypeError(
                f"Classifier {name!r} ({type(classifier).__name__}) has no predict_proba. Try "
                "wrapping it in scikit-learn's CalibratedClassifierCV."
            )
    return dict(classifiers)


def fit_models(
    models: Mapping[str, Any],
    X: Rows,
    is_positive: Bools,
    seed: int,
    weights: Doubles | None = None,
) -> dict[str, Any]:
    """Fit a clone of each model."""
    with single_threaded():
        return {
            name: fit_model(model, X, is_positive, seed, weights) for name, model in models.items()
        }


def fit_model(
    model: Any, X: Rows, is_positive: Bools, seed: int, weights: Doubles | None = None
) -> Any:
    """Fit a clone of a model; steps that do not take weights are fitted without them."""
    model = seeded(clone(model), seed)
    if weights is not None and isinstance(model, HistGradientBoostingClassifier):
        X = _rounded(X, model.max_bins)
    return model.fit(X, is_positive, **_weights_for(model, weights))


def _rounded(X: Doubles, n_values: int) -> Doubles:
    """Round each column to at most ``n_values`` quantiles."""
    # Trees do so themselves, but with weights their search for quantiles takes three times as long
    # as everything else.
    X = np.array(X)
    for column in X.T:
        ordered = np.sort(column)
        if np.count_nonzero(np.diff(ordered)) >= n_values:
            middles = (np.arange(n_values) + 0.5) / n_values
            levels = np.unique(ordered[(middles * len(ordered)).astype(int)])
            column[:] = levels[np.searchsorted((levels[1:] + levels[:-1]) / 2.0, column)]
    return X


def _weights_for(model: Any, weights: Doubles | None) -> dict[str, Doubles]:
    """Return the arguments of ``fit`` that pass weights to a model, or to steps of a pipeline."""
    if weights is None:
        return {}
    if not isinstance(model, Pipeline):
        return {"sample_weight": weights} if has_fit_parameter(model, "sample_weight") else {}
    return {
        f"{name}__sample_weight": weights
        for name, step in model.steps
        if has_fit_parameter(step, "sample_weight")
    }


@dataclass(frozen=True, eq=False)
class Scorers:
    """Models of several folds; each row is scored by those that have not seen its bin."""

    folds: tuple[Ints, Ints]  # fold of each bin in both samples
    models: dict[str, list[Any]]  # by name, one model for each fold; None if there is none

    def scores(self, sample: int, X: Rows, bins: Ints) -> Scores:
        """Return the scores of rows of a sample, given their bins; -inf without a model."""
        return self.scores_in_folds(X, self.folds[sample][bins])

    def scores_in_folds(self, X: Rows, folds: Ints) -> Scores:
        """Return the scores of rows, given their folds; -inf without a model."""
        scores = {name: np.full(len(folds), -np.inf) for name in self.models}
        for fold in np.unique(folds):
            rows = np.flatnonzero(folds == fold)
            for name, models in self.models.items():
                if models[fold] is not None:
                    scores[name][rows] = rounded_log_odds(models[fold], X[rows])
        return with_mean(scores)

    def of_others(self, X: Rows, fold: int) -> Scores:
        """Return the scores of rows that are in no sample, by the models of one fold."""
        return with_mean({name: rounded_log_odds(m[fold], X) for name, m in self.models.items()})


def with_mean(scores: Scores) -> Scores:
    """Add the mean of all scores, if there are several."""
    if len(scores) == 1:
        return scores
    return {**scores, TOGETHER: np.mean(list(scores.values()), axis=0)}


def _split(
    model: Any, X: Rows, seed: int, weights: Doubles | None
) -> tuple[list[tuple[str, Any]], Rows, Any]:
    """Return the leading steps that ignore the labels, fitted; their output; and the rest."""
    steps = _steps(model)
    n_blind = next(i for i, (_, step) in enumerate(steps) if not isinstance(step, _LABEL_BLIND))
    if n_blind == 0:
        return [], X, model
    head = seeded(clone(model[:n_blind]), seed)
    rest = model[n_blind:]
    Z = head.fit_transform(X, **_weights_for(head, weights))
    return head.steps, Z, rest if len(rest) > 1 else rest[0]


def _steps(model: Any) -> list[tuple[str, Any]]:
    return model.steps if isinstance(model, Pipeline) else [("classifier", model)]


def _check_both_outside(folds: Ints, n_folds: int, is_positive: Bools) -> None:
    """Raise if all rows of a sample are in one fold."""
    for kind, rows in zip(SAMPLES, (folds[is_positive], folds[~is_positive]), strict=True):
        if np.bincount(rows, minlength=n_folds).max() == len(rows):
            raise ValueError(
                f"All {len(rows)} {kind} that the classifiers would be fitted to are in one fold, "
                "so none are left to fit them to. Try smaller groups, other folds, or a larger "
                "max_rows."
            )


def _fit_and_score(
    model: Any,
    X: Rows,
    is_positive: Bools,
    weights: Doubles | None,
    held_out: Bools,
    seed: int,
    score: Score,
    keep: bool,
) -> tuple[Doubles, Any]:
    """Fit a clone of the model to the other rows and score the held-out rows."""
    w = None if weights is None else weights[~held_out]
    fitted = fit_model(model, X[~held_out], is_positive[~held_out], seed, w)
    scores = score(fitted, X[held_out]) if held_out.any() else np.empty(0)
    return scores, fitted if keep else None


def seeded(model: Any, seed: int) -> Any:
    """Set each ``random_state`` of a model that is None."""
    unset = {
        name: seed
        for name, value in model.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    }
    return model.set_params(**unset)
