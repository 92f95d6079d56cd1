"""Slow reference implementations of the estimator in the paper and of TIcE, with explicit loops."""

import re

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


def tice(parts, is_labeled, folds, *, delta=None, k=5.0, max_splits=500, min_rows=10):
    """Return the greatest bound on c of each fold, as the program of Bekker and Davis finds it.

    The bounds are counted in the rows that did not grow the tree, as in their paper.
    """
    c = 0.5
    for _ in range(2):
        bounds = [
            _tice_bound(parts, is_labeled, folds == fold, c, delta, k, max_splits, min_rows)
            for fold in range(folds.max() + 1)
        ]
        c = sum(bounds) / len(bounds)
    return bounds


def _tice_bound(parts, is_labeled, in_tree, c, delta, k, max_splits, min_rows):
    """Grow one tree on masks of rows, one node after the other."""
    delta = delta or max(0.025, 1.0 / (1.0 + 0.004 * np.sum(~in_tree)))
    variance = c * (1.0 - c) * (1.0 - delta) / delta

    def labeled(rows):
        return int(np.sum(rows & is_labeled))

    def bound(rows, fewest_rows=1):
        n_rows = np.sum(rows)
        enough = n_rows >= fewest_rows
        return labeled(rows) / n_rows - np.sqrt(variance / n_rows) if enough else 0.0

    def node(tree, others, columns):  # sorted by promise; the last entries settle ties
        return (-bound(tree), -labeled(tree), tuple(tree), tuple(others), columns)

    best = labeled(~in_tree) / np.sum(~in_tree)
    fewest = 1.0  # labeled rows that a part must have to be worth a split
    waiting = [node(in_tree, ~in_tree, set(range(parts.shape[1])))]
    for _ in range(max_splits):
        if not waiting:
            break
        waiting.sort(key=lambda one: one[:4])
        _, minus_labeled, tree, others, columns = waiting.pop(0)
        children = {
            column: [
                (np.array(tree) & (parts[:, column] == part), others & (parts[:, column] == part))
                for part in range(parts.max() + 1)
            ]
            for column in columns
        }
        useful = [j for j in columns if max(labeled(b) for _, b in children[j]) >= fewest]
        scores = [max(labeled(g) / (np.sum(g) + k) for g, _ in children[j]) for j in useful]
        if max(scores, default=0.0) == 0.0:
            continue
        column = useful[int(np.argmax(scores))]
        if sum(bounding.any() for _, bounding in children[column]) == 1:
            continue  # a fake split: the node ends, even if another column would do
        best = max([best] + [bound(bounding, min_rows) for _, bounding in children[column]])
        fewest = variance / (1.0 - best) ** 2
        waiting += [
            node(grown, bounding, set(useful) - {column})
            for grown, bounding in children[column]
            if labeled(bounding) > fewest
            and np.sum(grown) > min_rows
            # Meant as a test for purity, but about the labeled rows of the parent.
            and -minus_labeled not in (0, np.sum(grown))
        ]
    return best


def literal_penl1(samples, folds):
    """Return thetas and objective as in the public MATLAB program, with a Gaussian at every row."""
    thetas, lams, centers = np.arange(1, 20) / 20, np.logspace(-3, 1, 10), np.vstack(samples)
    squared = ((samples[1][:, None, :] - centers) ** 2).sum(axis=2)
    sigmas = np.sqrt(np.median(squared)) * np.logspace(-2, 1, 10)
    kernels = [[phi(X, centers, sigma) for X in samples] for sigma in sigmas]
    values = []
    for theta in thetas:
        scores = np.zeros((len(lams), len(sigmas)))  # the first of the smallest wins
        for s, kernel in enumerate(kernels):
            for fold in range(folds[0].max() + 1):
                train, test = (
                    [K[(folds[k] == fold) == held].mean(axis=0) for k, K in enumerate(kernel)]
                    for held in (False, True)
                )
                for i, lam in enumerate(lams):
                    alpha = np.maximum(0.0, beta(theta, *train)) / lam
                    scores[i, s] -= alpha @ beta(theta, *test)
        i, s = np.unravel_index(np.argmin(scores), scores.shape)
        values.append(objective(theta, *(K.mean(axis=0) for K in kernels[s]), lams[i]))
    return thetas, np.array(values)


def mixed(bits):
    """Mix 64 bits as SplitMix64 does."""
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
    return bits ^ (bits >> 31)


def key_hash(text):
    """Hash a key given as text, a byte at a time."""
    text = text.strip(" ")
    number = re.fullmatch(r"(-?)(0|[1-9]\d*)(\.0+)?", text)
    if number and len(number[2]) <= 19 - len(number[1]):
        return mixed(mixed((int(number[1] + number[2]) + 1) % 2**64))
    letters, total = text.encode(), 0
    for place in range(0, len(letters), 8):
        word = int.from_bytes(letters[place : place + 8], "little")
        total += mixed(word ^ mixed(place // 8 + 1)) if word else 0
    return mixed(total % 2**64 ^ mixed(2**64 - 1 - len(letters)))
