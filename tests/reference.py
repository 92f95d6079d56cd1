"""A slow reference implementation of the estimator in the paper, with explicit loops."""

import numpy as np


def phi(X, centers, sigma):
    """Return the Gaussian basis, computed from differences in float64."""
    squared = ((X[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-squared / (2.0 * sigma**2))


def means(X, centers, sigma, rows=None, own_center=None):
    """Return the mean of phi over rows, leaving each center out of its own mean."""
    rows = np.arange(len(X)) if rows is None else rows
    values = phi(X[rows], centers, sigma)
    counted = np.ones_like(values)
    if own_center is not None:
        for position, row in enumerate(rows):
            if own_center[row] >= 0:
                counted[position, own_center[row]] = 0.0
    counts = counted.sum(axis=0)
    return (values * counted).sum(axis=0) / np.maximum(counts, 1.0), counts


def beta(theta, a, b):
    return theta * a - b


def objective(theta, a, b, lam):
    """Evaluate penL1 as in the paper, without the regularizer."""
    excess = beta(theta, a, b)
    return np.sum(np.maximum(0.0, excess) * excess) / lam - theta + 1.0


def held_out_score(theta, sigma, lam, samples, folds, centers, own_centers):
    """Return the total held-out score of alpha fitted on the training folds."""
    score = 0.0
    for fold in np.unique(folds[0]):
        training, held_out = [], []
        for X, ids, own in zip(samples, folds, own_centers, strict=True):
            training.append(means(X, centers, sigma, np.flatnonzero(ids != fold), own))
            held_out.append(means(X, centers, sigma, np.flatnonzero(ids == fold), own))
        (a, n_a), (b, n_b) = training
        (a_held, n_a_held), (b_held, n_b_held) = held_out
        known = (n_a > 0) & (n_b > 0) & (n_a_held > 0) & (n_b_held > 0)
        alpha = np.maximum(0.0, beta(theta, a, b)) / lam
        score -= np.sum((alpha * beta(theta, a_held, b_held))[known])
    return score
