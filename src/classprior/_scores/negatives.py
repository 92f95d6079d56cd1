r"""A check of the estimate by rows that are confirmed to be negative.

For any score and threshold t, :math:`S_u(t) = \pi S_p(t) + (1 - \pi) S_n(t)`. The estimate of
:math:`\pi` assumes that :math:`S_n(t) = 0` in some tail; confirmed negatives show :math:`S_n`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import stats

from classprior._core.messages import p_text, percent
from classprior._core.types import Doubles
from classprior._scores.limits import bound_ranks
from classprior.result import Caution

_LEVEL = 0.05  # of the test; it is conservative, see ``compare_with_negatives``


class KindScores(NamedTuple):
    """Scores of rows that the model has not seen, by kind."""

    positive: Doubles
    unlabeled: Doubles
    negative: Doubles  # of the confirmed negatives


class Comparison(NamedTuple):
    """What confirmed negatives say about an estimate."""

    p_value: float  # of confirmed negatives that score so high by chance
    share_beyond: float  # of the confirmed negatives that score above the threshold
    share_positive: float  # of the known positives that do
    prior: float  # implied, if the confirmed negatives are a random sample of the negatives


def compare_with_negatives(scores: KindScores, prior: float, error: float) -> Comparison:
    r"""Test an estimate of the prior, with its standard error, against confirmed negatives.

    At the true prior, :math:`D = S_u - \pi S_p - (1 - \pi) S_n` has mean 0. If too many negatives
    score high, D is negative. The variance of D is that of three binomial shares, plus that of the
    estimate, :math:`(S_p - S_n)^2 e^2`. The last two are not independent, but positively
    correlated, so the test is conservative. The threshold is the one, among the ends of the tails
    of the bound, at which a wrong prior would show best.
    """
    n, m, k = map(len, scores)
    thresholds = np.sort(scores.positive)[::-1][bound_ranks(n) - 1]
    beyond = [np.sum(part[:, None] >= thresholds, axis=0) for part in scores]
    # Half a row is added above and below, so that no share is known exactly.
    S_p, S_u, S_n = (
        (count + 0.5) / (size + 1) for count, size in zip(beyond, (n, m, k), strict=True)
    )
    mixture = prior * S_p + (1.0 - prior) * S_n
    variance = (
        mixture * (1.0 - mixture) / m
        + prior**2 * S_p * (1.0 - S_p) / n
        + (1.0 - prior) ** 2 * S_n * (1.0 - S_n) / k
        + (S_p - S_n) ** 2 * error**2
    )
    z = (S_u - mixture) / np.sqrt(variance)
    best = int(np.argmax((S_p - S_n) / np.sqrt(variance)))
    p, u, q = (count[best] / size for count, size in zip(beyond, (n, m, k), strict=True))
    implied = (u - q) / (p - q) if p > q else 0.0
    return Comparison(
        float(stats.norm.cdf(z[best])), float(q), float(p), float(np.clip(implied, 0.0, 1.0))
    )


def about_negatives(scores: KindScores, prior: float, error: float) -> Iterator[Caution]:
    """Yield a warning if confirmed negatives score like positives."""
    found = compare_with_negatives(scores, prior, error)
    if found.p_value >= _LEVEL or found.share_beyond == 0.0:
        return
    yield Caution(
        f"Confirmed negatives score like positives: {percent(found.share_beyond)} of the "
        f"{len(scores.negative):,} confirmed negatives score as high as the top "
        f"{found.share_positive:.0%} of the known positives ({p_text(found.p_value)}). If they are "
        f"a random sample of the negatives, the share is about {percent(found.prior)}, not "
        f"{percent(prior)}: rows that count as positive include negatives.",
        "If they were checked because they looked positive, they are no random sample, and that "
        "may explain it. Otherwise, treat the estimate as an upper bound.",
    )


def standard_error(high: float, prior: float, confidence: float) -> float:
    """Return the standard error of a prior, given the upper end of its interval."""
    return max(0.0, float(high - prior)) / float(stats.norm.isf((1.0 - confidence) / 2.0))
