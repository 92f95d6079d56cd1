r"""Estimates of the prior from the tails of scores.

For any score and threshold t, let S(t) be the share of a sample that scores above t. Then

.. math:: S_{\mathrm{unlabeled}}(t)
          = \pi S_{\mathrm{positive}}(t) + (1 - \pi) S_{\mathrm{negative}}(t)
          \ge \pi S_{\mathrm{positive}}(t),

with equality if the tail contains positives only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from classprior._core.types import Doubles, Ints

# Smallest tail used, as a share of the positives, unless positives are rare.
_SMALLEST_TAIL = 0.25
# Maximum number of thresholds. More cost time and do not change the estimate.
MOST_THRESHOLDS = 400
_SMALLEST_ERROR = 0.01  # lower limit of the standard error used in the soft minimum
SHARPNESS = np.array([2.0, 1.0, 0.5])  # of soft minima; the first one is that of the tails shown
# Coefficients of the correction for overlap. A fit to simulated samples (benchmarks/sharpness.py)
# yields 2.2 and 2.7, with errors of 1.6; from (2, 2) to (3, 4), the error of the estimate hardly
# changes.
_NOISE, _OVERLAP = 3.0, 4.0
_FARTHEST_SCORE = 3.0  # errors from the best score; others cannot separate the classes as well
# Share of the positives, from the highest score down, over which the density of the unlabeled rows
# is assumed to be linear, unless positives are rare.
WINDOW = 0.7
#: Part of the tail on which the estimate is based that is examined for negatives: a purely positive
#: region with a fifth of the positives is enough.
EXAMINED = 0.8


_CLEARLY = 3.5  # standard errors by which known positives must differ from unlabeled rows


@dataclass(frozen=True, eq=False)
class ScoreTails:
    """Counts of rows by bin and by the threshold at which they enter the tail.

    ``positive`` and ``unlabeled`` have shape (n_bins, n_thresholds), the highest threshold first.
    Tied scores enter together, and unlabeled rows below all thresholds are not counted.
    ``n_positive`` and ``n_unlabeled`` are the numbers of rows per bin.
    """

    positive: Doubles
    unlabeled: Doubles
    n_positive: Doubles
    n_unlabeled: Doubles

    @classmethod
    def from_scores(
        cls,
        positive: Doubles,
        unlabeled: Doubles,
        bins: tuple[Ints, Ints] | None = None,
        n_bins: tuple[int, int] = (1, 1),
        weights: tuple[Doubles, Doubles] | None = None,
        *,
        n_thresholds: int = MOST_THRESHOLDS,
    ) -> ScoreTails:
        """Count rows at thresholds set at quantiles of the positive scores."""
        thresholds = tail_thresholds(positive, n_thresholds)
        bins = bins or (np.zeros(len(positive), int), np.zeros(len(unlabeled), int))
        w_positive, w_unlabeled = weights or (None, None)
        return cls.from_counts(
            count_scores(thresholds, positive, bins[0], n_bins[0], w_positive),
            count_scores(thresholds, unlabeled, bins[1], n_bins[1], w_unlabeled),
        )

    @classmethod
    def from_counts(cls, positive: Doubles, unlabeled: Doubles) -> ScoreTails:
        """Return the tails of counts by ``count_scores``."""
        return cls(positive[:, :-1], unlabeled[:, :-1], positive.sum(axis=1), unlabeled.sum(axis=1))

    def counts(
        self, weights: tuple[Doubles, Doubles] | None = None
    ) -> tuple[Doubles, Doubles, Doubles, Doubles]:
        """Return the counts at each threshold and in total, with optional weights of bins."""
        if weights is None:
            weights = np.ones(len(self.n_positive)), np.ones(len(self.n_unlabeled))
        p, u = weights
        return p @ self.positive, u @ self.unlabeled, p @ self.n_positive, u @ self.n_unlabeled


def tail_thresholds(positive: Doubles, most: int = MOST_THRESHOLDS) -> Doubles:
    """Return quantiles of the positive scores, in increasing order and without ties."""
    falling = np.sort(positive)[::-1]
    ranks = np.linspace(0, len(falling) - 1, min(len(falling), most)).astype(int)
    return np.unique(falling[ranks])


def count_scores(
    thresholds: Doubles, scores: Doubles, bins: Ints, n_bins: int, weights: Doubles | None = None
) -> Doubles:
    """Count scores, or add their weights, by bin and by the highest threshold that they reach.

    The result has shape (n_bins, n_thresholds + 1), with the highest threshold first. The last
    column counts the scores below all thresholds.
    """
    n = len(thresholds)
    cells = n - np.searchsorted(thresholds, scores, side="right") + bins * (n + 1)
    counts = np.bincount(cells, weights, n_bins * (n + 1)).astype(np.float64)
    return counts.reshape(-1, n + 1)


class TailRatio(NamedTuple):
    """Means over the tails of a score, weighted by soft minima of three sharpnesses.

    The first axis is that of the sharpness: 2, 1 and 1/2.
    """

    log_ratio: Doubles
    error: Doubles  # standard error of the log-ratio
    share: Doubles  # of the positives in the tail


def tail_ratio(
    positive: Doubles,
    unlabeled: Doubles,
    n: Doubles,
    m: Doubles,
    *,
    resampled: bool = False,
    deep: bool = True,
) -> TailRatio:
    r"""Return soft minima of the log-ratio over tails, and their standard errors.

    For a tail with P of n positives and U of m unlabeled rows, the log-ratio and its variance are

    .. math:: v = \log\frac{U + 1/2}{m + 1/2} - \log\frac{P - 1/2}{n + 1/2}, \qquad
              e^2 = \frac{1}{U + 1/2} - \frac{1}{m + 1/2}
                    + 2\left(\frac{1}{P - 1/2} - \frac{1}{n + 1/2}\right).

    The threshold is one of the n positive scores, so the share of the positive population above it
    is Beta(P, n - P + 1), and the mean of its logarithm is the second term. The factor 2 is due to
    cross-fitting: where all rows are positive, classifiers learn nothing but the noise of the known
    positives, and each pair of folds confirms it twice. Resampled counts have all noise twice.

    Tails with at least a quarter of the positives are used, or, if the ratio r of that quarter is
    smaller, with at least a share r of them, unless ``deep`` is false. The rarer positives are, the
    smaller are the tails in which they outnumber negatives. Where they are frequent, smaller tails
    would gain little purity, and would depend on a few unusual positives. Tails are weighted by the
    number of positives that enter at their threshold.
    """
    *of_tails, weights = weighted_tails(positive, unlabeled, n, m, resampled=resampled, deep=deep)
    return TailRatio(*(np.einsum("k...t,...t->k...", weights, part) for part in of_tails))


def weighted_tails(
    positive: Doubles,
    unlabeled: Doubles,
    n: Doubles,
    m: Doubles,
    *,
    resampled: bool = False,
    deep: bool = True,
) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Return the log-ratio of each tail, its error, its share of positives, and its weights."""
    n, m = np.expand_dims(n, -1), np.expand_dims(m, -1)
    P, U = np.cumsum(positive, axis=-1), np.cumsum(unlabeled, axis=-1)
    one = np.minimum(1.0, 0.5 * n)  # weighted rows may amount to less than one row
    half = 0.5 * one
    share, P = P / n, np.clip(P, one, n)
    log_ratio = np.log((U + 0.5) / (m + 0.5)) - np.log((P - half) / (n + half))
    variance = 1.0 / (U + 0.5) - 1.0 / (m + 0.5) + 2.0 / (P - half) - 2.0 / (n + half)
    error = np.sqrt(np.maximum((1.0 + resampled) * variance, 0.0))
    quarter = np.argmax(share >= _SMALLEST_TAIL, axis=-1)[..., None]
    ratio = np.exp(np.take_along_axis(log_ratio, quarter, axis=-1))
    smallest = np.minimum(_SMALLEST_TAIL, ratio) if deep else _SMALLEST_TAIL
    multiplicity = np.where(share >= smallest, positive, 0.0)
    weights = soft_minima(log_ratio[None], error[None], multiplicity)
    return log_ratio, error, share, weights


def soft_minima(
    values: Doubles, errors: Doubles, multiplicity: Any = 1.0, *, farthest: float = np.inf
) -> Doubles:
    r"""Return weights of soft minima of noisy values, one for each sharpness k.

    .. math:: w_i \propto n_i \exp(-k x_i), \qquad x_i = \frac{u_i - \min_j u_j}{e}, \qquad
              u_i = v_i + e_i

    where :math:`n_i` is the multiplicity and e is the error of the value with the smallest upper
    limit u. The minimum of many noisy values is biased low; an average over the values close to it
    is less so. Values with :math:`x_i` beyond ``farthest`` do not count. The first axis is that of
    the sharpness, and may have length 1 in the values.
    """
    upper = np.where(multiplicity > 0.0, values + errors, np.inf)
    best = np.argmin(upper, axis=-1)[..., None]
    noise = np.maximum(np.take_along_axis(errors, best, axis=-1), _SMALLEST_ERROR)
    x = (upper - np.take_along_axis(upper, best, axis=-1)) / noise
    k = SHARPNESS.reshape(-1, *(1,) * (values.ndim - 1))
    weights = np.where(x <= farthest, multiplicity, 0.0) * np.exp(-k * x)
    return weights / weights.sum(axis=-1, keepdims=True)


def weights_of_scores(logs: Doubles, errors: Doubles) -> Doubles:
    """Return weights of the soft minima over several scores."""
    # Flat minima would give a little weight to scores that cannot separate the classes.
    return soft_minima(logs, errors, farthest=_FARTHEST_SCORE)


def sharpened(ratios: Doubles, error: Doubles) -> Doubles:
    r"""Correct soft minima of ratios for overlap, given three sharpnesses (the first axis).

    .. math:: \hat\pi = f_2 + a\,(f_1 - f_2) - b\,(f_{1/2} - f_1),

    but at least :math:`f_2\,e^{-s}` and at most :math:`f_1`, where :math:`f_k` is the soft minimum
    of sharpness k, and s the standard error of :math:`\log f_2`. Flat minima are higher than sharp
    ones for two reasons. The minimum of noisy values is low, the lower the sharper it is; then the
    first step, :math:`f_1 - f_2`, is about a third longer than the second, :math:`f_{1/2} - f_1`,
    and with a = 3 and b = 4 the corrections cancel. And if negatives overlap with positives, ratios
    rise with the tail, and flat minima include larger tails. If the rise is linear,
    :math:`f_k - f_\infty` is proportional to 1/k, the second step is twice as long as the first,
    and the estimate is lower than the sharpest minimum, in proportion to what the average over
    tails has added to it. Steps and corrections shrink with the standard error of the ratios, so
    the corrections vanish as rows become many, which an intercept would not.
    """
    sharp, middle, flat = ratios
    found = sharp + _NOISE * (middle - sharp) - _OVERLAP * (flat - middle)
    return np.clip(found, sharp * np.exp(-error), middle)


def extrapolated_share(
    positive: Doubles, unlabeled: Doubles, n: Any, m: Any, window: Any, power: float
) -> Doubles:
    r"""Return the share extrapolated to the end of the tail, from a window w < W.

    Let w be the share of positives that score higher than an unlabeled row. For positives w is
    uniform, so the density of w over the unlabeled rows is :math:`\pi` plus the contribution of the
    negatives, which is smallest at w = 0. If the density is :math:`\pi + c w^p` for w < W, then

    .. math:: E\left[\frac{A - B (w/W)^p}{W}\; 1(w < W)\right] = \pi, \qquad
              A = \left(\frac{p + 1}{p}\right)^2, \quad B = \frac{(p + 1)(2p + 1)}{p^2}.

    If negatives thin out faster toward the end, the result is below :math:`\pi`.
    """
    n, W, p = np.expand_dims(n, -1), np.expand_dims(window, -1), power
    A, B = ((p + 1.0) / p) ** 2, (p + 1.0) * (2.0 * p + 1.0) / p**2
    end, width = np.cumsum(positive, axis=-1) / n, positive / n

    def integral(w: Doubles) -> Doubles:
        v = np.clip(w / W, 0.0, 1.0)
        return A * v - B / (p + 1.0) * v ** (p + 1.0)

    # Rows that enter together share a range of w, over which psi is averaged: exact with ties, too.
    psi = np.where(end < W, (A - B * np.clip(end / W, 0.0, 1.0) ** p) / W, 0.0)
    np.divide(integral(end) - integral(end - width), width, out=psi, where=width > 0.0)
    return np.sum(psi * unlabeled, axis=-1) / m


def separation_of(
    tails: Sequence[tuple[Doubles, Doubles, Doubles, Doubles]], prior: float
) -> float:
    r"""Return how far known positives stand out from the negatives that a share implies.

    With w for the share of the known positives above a threshold, and S(w) for that of the
    unlabeled rows, the share of the negatives above it is :math:`(S(w) - \pi w) / (1 - \pi)`, and

    .. math:: J = \max_w \left(w - \frac{S(w) - \pi w}{1 - \pi}\right)
              = \max_w \frac{w - S(w)}{1 - \pi}

    for the score with the largest J (Youden, 1950). It is 1 if a threshold separates the classes,
    and 0 if they look alike. Only thresholds count where :math:`w - S(w)` is beyond 3.5 standard
    errors: if nearly all rows seem to be positive, the others are too few to say much.
    """
    found = []
    for positive, unlabeled, n, m in tails:
        w, share = np.cumsum(positive) / n, np.cumsum(unlabeled) / m
        # Half a row more, since no share is known to be 0 or 1 from a few rows.
        error = np.sqrt((w * (1.0 - w) + 0.5 / n) / n + (share * (1.0 - share) + 0.5 / m) / m)
        J = np.clip((w - share) / max(1.0 - prior, 1e-9), 0.0, w)
        found.append(float(np.max(np.where(w - share > _CLEARLY * error, J, 0.0))))
    return max(found)


@dataclass(frozen=True, eq=False)
class TailEstimate:
    """The estimate of the prior from several scores; a leading axis is for resamples."""

    prior: Doubles  # not clipped to 1
    extrapolated: Doubles  # extrapolated to the end of the tail
    of_scores: Doubles  # shape (..., n_scores), the estimate from each score
    ratio: Doubles  # in the tail on which the estimate is based, before the correction
    window: Doubles  # share of the positives from which it is extrapolated
    share: Doubles  # of the positives in the tail on which the estimate is based
    purest: Doubles  # extrapolated within that tail; not for resamples
    widest: Doubles  # extrapolated from most of the positives


def combine(
    tails: Sequence[tuple[Doubles, Doubles, Doubles, Doubles]],
    *,
    resampled: bool = False,
    deep: bool = True,
    window: Any = None,
) -> TailEstimate:
    """Return the estimate from the ratios of several scores.

    The share is extrapolated linearly from 70% of the positives and from ``window``, which by
    default shrinks with the share, as the tails do in ``tail_ratio``. The smaller window is level
    if the end of the tail is pure, but also if negatives are as frequent there as a little below,
    which cannot be told apart. So if it yields a larger share, the mean of both counts.
    """
    # Up to noise, each ratio is an upper bound on the prior, so the smallest is the best. A score
    # that cannot separate the classes would spoil an average, but not a minimum.
    found = [tail_ratio(*tail, resampled=resampled, deep=deep) for tail in tails]
    logs, errors, shares = (np.stack(part, axis=-1) for part in zip(*found, strict=True))
    weights, ratios = weights_of_scores(logs, errors), np.exp(logs)
    error, share = (np.sum(weights[0] * part[0], axis=-1) for part in (errors, shares))
    minima = np.sum(weights * ratios, axis=-1)
    prior = sharpened(minima, error)
    of_scores = sharpened(ratios, errors[0])
    weights, ratios = weights[0], ratios[0]  # of the sharpest minimum, whose tails are the purest
    if window is None:
        window = WINDOW * (np.minimum(1.0, prior / _SMALLEST_TAIL) if deep else 1.0)

    def extrapolated(window: Any, power: float = 1.0) -> Doubles:
        ends = [extrapolated_share(*tail, window, power) for tail in tails]
        return np.sum(weights * np.minimum(np.stack(ends, axis=-1), ratios), axis=-1)

    widest = extrapolated(WINDOW)
    higher = np.maximum(widest, extrapolated(window))
    return TailEstimate(
        prior=prior,
        extrapolated=np.mean(np.maximum([widest, higher], 0.0), axis=0),
        of_scores=of_scores,
        ratio=minima[0],
        window=window,
        share=share,
        purest=minima[0] if resampled else extrapolated(EXAMINED * share, 0.5),
        widest=widest,
    )


def average(estimates: Sequence[TailEstimate]) -> TailEstimate:
    """Return the mean of the estimates of several rounds of cross-fitting."""
    # Estimates are averaged, not scores: leaving a row out shifts its out-of-fold score slightly
    # away from its own label, and averaging scores would make this bias visible above the noise.
    return TailEstimate(
        **{
            field.name: np.mean([getattr(e, field.name) for e in estimates], axis=0)
            for field in fields(TailEstimate)
        }
    )
