"""Exact limits of the prior and certified bounds on it, from counts of rows in tails of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from classprior._core.types import Doubles, Ints
from classprior._scores.tails import weighted_tails, weights_of_scores

# Tails used for the certified bound, as shares of the positives.
_BOUND_TAILS = (0.1, 0.2, 0.35, 0.5, 0.7, 0.9)


def binomial_limits(k: Any, n: Any, level: float) -> tuple[Doubles, Doubles]:
    """Return the lower and upper Clopper-Pearson limits of a share, given k of n rows.

    Each is wrong with a probability of at most ``level``. Numbers of rows need not be whole.
    """
    with np.errstate(invalid="ignore"):  # at the ends of the range, where the limits are 0 and 1
        low = np.where(k > 0, stats.beta.ppf(level, k, n - k + 1), 0.0)
        high = np.where(k < n, stats.beta.isf(level, k + 1, n - k), 1.0)
    return low, high


class Limits(NamedTuple):
    """Lower and upper confidence limits of a share."""

    low: float
    high: float


def exact_limits(
    tails: Sequence[tuple[Doubles, Doubles, Doubles, Doubles]], delta: float, *, deep: bool = True
) -> tuple[Limits, Limits]:
    """Return limits of the share in the population and in the sample, valid for small counts.

    In a tail with P of n positives and U of m unlabeled rows, U is binomial, the share s of the
    positive population in the tail is Beta(P, n - P + 1), and the number of positives outside the
    tail is negative binomial given U and s. The limits at level delta/2 for each of these are added
    in quadrature, and averaged over tails and scores with the weights of the estimate. They assume
    that the tails contain positives only. In upper limits, the variance of s counts twice, as in
    ``tail_ratio``: tails are chosen for their low ratios.
    """
    pairs, limits = [], []
    for positive, unlabeled, n, m in tails:
        log_ratio, error, _, (weights, *_) = weighted_tails(positive, unlabeled, n, m, deep=deep)
        pairs.append((weights @ log_ratio, weights @ error))
        used = weights > 1e-9
        # Rounding must not put more rows in a tail than there are.
        P = np.minimum(np.cumsum(positive)[used], n)
        U = np.minimum(np.cumsum(unlabeled)[used], m)
        low, high = _limits_of_tails(P, U, float(n), float(m), delta)
        # Upper limits are averaged like the estimate, by their logarithms; lower ones may be zero.
        limits.append([low @ weights[used], np.exp(np.log(high) @ weights[used])])
    logs, errors = np.array(pairs).T
    weights = weights_of_scores(logs[None], errors[None])[0]
    (low, low_sample), (high, high_sample) = np.tensordot(weights, limits, axes=1)
    return Limits(low, min(1.0, high)), Limits(low_sample, min(1.0, high_sample))


def _limits_of_tails(
    P: Doubles, U: Doubles, n: float, m: float, delta: float
) -> tuple[Doubles, Doubles]:
    """Return the lower and upper limits of tails: first row population, second row sample."""
    level = delta / 2.0
    share, s = (U + 0.5) / (m + 0.5), P / n
    low, high = binomial_limits(U, m, level)
    s_low, s_high = stats.beta.ppf(level, P, n - P + 1.0), stats.beta.isf(level, P, n - P + 1.0)
    # At low confidence, a limit may lie on the wrong side of the point estimate.
    low, high = np.minimum(low, share), np.maximum(high, share)
    s_low, s_high = np.minimum(s_low, s), np.maximum(s_high, s)
    ratio = share / s
    with np.errstate(divide="ignore"):
        below = np.hypot(np.log(share / low), np.log(s_high / s))
    log_excess = np.sqrt(2.0) * np.log(s / s_low)
    above = np.hypot(np.log(high / share), log_excess)

    count = U / s
    fewest = U + np.where(U > 0.0, stats.nbinom.ppf(level, np.maximum(U, 1.0), s), 0.0)
    most = U + stats.nbinom.isf(level, U + 1.0, s)
    fewest, most = np.minimum(fewest, count), np.maximum(most, count)
    short = np.hypot(count - fewest, count * (1.0 - s / s_high))
    beyond = np.hypot(most - count, (U + 1.0) / s * np.expm1(log_excess))
    low_sample, high_sample = (count - short) / m, (count + beyond) / m
    lows = np.stack([ratio * np.exp(-below), np.maximum(low_sample, 0.0)])
    return lows, np.stack([ratio * np.exp(above), high_sample])


class Bounds(NamedTuple):
    """Upper bounds on the prior, for any number of rows and for large samples."""

    exact: float
    asymptotic: float


def bound_ranks(n: int) -> Ints:
    """Return the ranks of the positive scores, from the highest, at the ends of six tails."""
    return np.unique([max(1, int(np.ceil(share * n))) for share in _BOUND_TAILS])


def certified_bounds(
    k: Ints | Doubles, beyond: Doubles, n: float, m: float, delta: float
) -> Bounds:
    """Return upper bounds on the prior that fail with probability at most delta.

    Of n positives and m unlabeled rows, k and ``beyond`` score at least as high as each of several
    thresholds. The scores must come from a model fitted to other rows. If a threshold was set by
    other rows, too, both counts are binomial. If it is the k-th largest of the n positive scores,
    the share of the positive population above it is stochastically at least Beta(k, n - k + 1), the
    distribution of the Clopper-Pearson limit, so that the same formula holds. For each threshold,
    an upper Clopper-Pearson limit divided by a lower one is an upper bound on the prior. The error
    probability is split evenly; the exact bound is the smallest of these. The asymptotic bound uses
    limits at twice that level and adds their distances from the log-ratio in quadrature (Zou and
    Donner, 2008, Statistics in Medicine 27). Nothing is assumed about the classes.
    """
    each = delta / len(k)

    def limits(level: float) -> tuple[Doubles, Doubles]:
        return binomial_limits(beyond, m, level)[1], binomial_limits(k, n, level)[0]

    most, least = limits(each / 2.0)
    with np.errstate(divide="ignore"):
        exact = float(np.min(most / least))
    most, least = limits(each)
    unlabeled_share, positive_share = (beyond + 0.5) / (m + 0.5), k / (n + 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # there may be no positives beyond
        margin = np.hypot(np.log(most / unlabeled_share), np.log(positive_share / least))
        bounds = unlabeled_share / positive_share * np.exp(margin)
    asymptotic = float(np.min(np.where(k == 0, 1.0, bounds)))
    return Bounds(min(1.0, exact), min(1.0, asymptotic))
