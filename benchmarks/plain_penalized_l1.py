"""A straightforward NumPy version of the public MATLAB code, with the same grids.

It uses up to 300 unlabeled centers, ten bandwidths, ten lambdas, nineteen thetas and five folds,
and loops over bandwidths, folds and lambdas for every theta. For speed comparisons only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LAMS = np.logspace(-3, 1, 10)
THETAS = np.arange(0.05, 0.951, 0.05)
N_FOLDS = 5


def bandwidths(X_unlabeled: Array, centers: Array) -> Array:
    """Return ten multiples of the root of the median squared distance."""
    return np.sqrt(np.median(squared_distances(X_unlabeled, centers))) * np.logspace(-2, 1, 10)


def draw_centers(X_unlabeled: Array, rng: np.random.Generator) -> Array:
    """Return up to 300 of the unlabeled rows."""
    return X_unlabeled[rng.permutation(len(X_unlabeled))[:300]]


def squared_distances(X: Array, centers: Array) -> Array:
    """Return squared distances by the textbook formula."""
    return (X**2).sum(1)[:, None] + (centers**2).sum(1) - 2.0 * X @ centers.T


def estimate(X_positive: Array, X_unlabeled: Array, rng: np.random.Generator) -> float:
    """Return the theta that minimizes penL1; sigma and lambda are cross-validated at each."""
    centers = draw_centers(X_unlabeled, rng)
    sigmas = bandwidths(X_unlabeled, centers)
    squared = [squared_distances(X, centers) for X in (X_positive, X_unlabeled)]
    kernels = [[np.exp(-D / (2.0 * s**2)) for D in squared] for s in sigmas]
    folds = [rng.permutation(len(X)) % N_FOLDS for X in (X_positive, X_unlabeled)]
    objective = []
    for theta in THETAS:
        scores = np.zeros((len(sigmas), len(LAMS)))
        for s, (K_positive, K_unlabeled) in enumerate(kernels):
            for fold in range(N_FOLDS):
                held_out = [ids == fold for ids in folds]
                beta_train = theta * K_positive[~held_out[0]].mean(0)
                beta_train -= K_unlabeled[~held_out[1]].mean(0)
                beta_test = theta * K_positive[held_out[0]].mean(0)
                beta_test -= K_unlabeled[held_out[1]].mean(0)
                for i, lam in enumerate(LAMS):
                    alpha = np.maximum(0.0, beta_train) / lam
                    scores[s, i] -= alpha @ beta_test
        best_s, best_i = np.unravel_index(scores.argmin(), scores.shape)
        beta = theta * kernels[best_s][0].mean(0) - kernels[best_s][1].mean(0)
        objective.append(np.sum(np.maximum(0.0, beta) * beta) / LAMS[best_i] - theta + 1.0)
    return float(THETAS[np.argmin(objective)])
