"""How sure an estimate is: intervals for any method, and a bound that needs no assumption."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from classprior._basis import Ints, Rows, choose_rows
from classprior._messages import progress
from classprior._tails import Bounds, certified_bounds
from classprior._views import fitted_log_odds, with_labels


def held_out_bounds(
    classifiers: Mapping[str, Any],
    X_positive: Rows,
    X_unlabeled: Rows,
    folds: tuple[Ints, Ints],
    seed: int,
    delta: float,
) -> Bounds:
    """Return certified upper bounds of the prior from scores learned on other rows.

    Parameters
    ----------
    classifiers : mapping of str to classifier
        Fitted to the first half of the folds, and more; the mean of their log-odds is the score.
    X_positive, X_unlabeled : arrays or CSR matrices
        The samples.
    folds : pair of arrays of int
        Fold of each row.
    seed : int
        Random state of the classifiers that take one.
    delta : float
        Probability of failure.

    Returns
    -------
    bounds : Bounds
        At most 1.
    """
    samples = X_positive, X_unlabeled
    n_folds = int(folds[0].max()) + 1
    train = [ids < -(-n_folds // 2) for ids in folds]
    X, labels = with_labels(X_positive[train[0]], X_unlabeled[train[1]])
    positive, unlabeled = (
        np.mean(
            [fitted_log_odds(c, X, labels, sample[~rows], seed) for c in classifiers.values()],
            axis=0,
        )
        for sample, rows in zip(samples, train, strict=True)
    )
    return certified_bounds(positive, unlabeled, delta)


def half_sample_interval(
    estimate: Callable[[Rows, Rows, int], float],
    prior: float,
    X_positive: Rows,
    X_unlabeled: Rows,
    *,
    delta: float,
    n_resamples: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
    verbose: int,
) -> tuple[float, float]:
    r"""Return an interval for any method, by refitting it to random halves of both samples.

    A half holds no copies, which estimators with centres at the rows cannot bear, and an
    estimate whose error shrinks with the root of the rows deviates from the whole sample's as
    much as that deviates from the truth. The wider of the percentile and the reflected interval is
    taken on each side.

    Parameters
    ----------
    estimate : callable
        Turns two samples and a seed into a prior.
    prior : float
        Its estimate from all rows.
    X_positive, X_unlabeled : arrays or CSR matrices
        The samples.
    delta : float
        One minus the confidence.
    n_resamples : int
        Number of halves.
    n_jobs : int or None
        Processes.
    rng : RandomState
        Draws the halves.
    verbose : int
        Whether to show a progress bar.

    Returns
    -------
    low, high : float
        From 0 to 1, around the estimate.
    """
    sizes = X_positive.shape[0], X_unlabeled.shape[0]
    halves = [
        (*(choose_rows(size, max(2, size // 2), rng) for size in sizes), rng.randint(2**31))
        for _ in range(n_resamples)
    ]
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    parts = parallel(
        delayed(estimate)(X_positive[p], X_unlabeled[u], seed) for p, u, seed in halves
    )
    priors = list(progress(parts, n_resamples, "Interval", verbose))
    return resampled_interval(prior, priors, delta)


def resampled_interval(prior: float, priors: Sequence[float], delta: float) -> tuple[float, float]:
    """Return the wider of the percentile and the reflected interval, on each side.

    Parameters
    ----------
    prior : float
        The estimate from all rows.
    priors : sequence of float
        The estimates from resamples.
    delta : float
        One minus the confidence.

    Returns
    -------
    low, high : float
        From 0 to 1, around the estimate.
    """
    low, high = np.quantile(priors, [delta / 2.0, 1.0 - delta / 2.0])
    low, high = min(low, 2.0 * prior - high, prior), max(high, 2.0 * prior - low, prior)
    return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))


def realised_interval(
    prior: float, low: float, high: float, n_unlabeled: int, delta: float
) -> tuple[float, float]:
    """Return the interval for the share among these very rows, from that of the population.

    Drawing the unlabeled rows from the population is noise that these rows do not have: its
    variance is taken out of both sides.

    Parameters
    ----------
    prior, low, high : float
        The estimate and its interval for the population's share.
    n_unlabeled : int
        Unlabeled rows.
    delta : float
        One minus the confidence.

    Returns
    -------
    low, high : float
        Inside the interval that was given.
    """
    drawing = stats.norm.isf(delta / 2.0) ** 2 * prior * (1.0 - prior) / n_unlabeled
    return (
        prior - float(np.sqrt(max(0.0, (prior - low) ** 2 - drawing))),
        prior + float(np.sqrt(max(0.0, (high - prior) ** 2 - drawing))),
    )
