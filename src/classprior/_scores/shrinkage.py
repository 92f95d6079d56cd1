"""Shares of small segments borrow strength from the others, and add up to the whole."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from classprior._core.types import Doubles

_SMALLEST_SHARE = 1e-9  # lower limit of shares whose odds are taken


def shrunk(shares: Doubles, variances: Doubles) -> Doubles:
    r"""Return shares shrunk toward their mean, by empirical Bayes.

    .. math:: \tilde\pi_s = \bar\pi + \frac{\tau^2}{\tau^2 + v_s} (\hat\pi_s - \bar\pi), \qquad
              \bar\pi = \frac{\sum_s \hat\pi_s / (\tau^2 + v_s)}{\sum_s 1 / (\tau^2 + v_s)}

    where :math:`v_s` is the variance of :math:`\hat\pi_s` and :math:`\tau^2` that of the true
    shares, the solution of
    :math:`\sum_s (\hat\pi_s - \bar\pi)^2 / (\tau^2 + v_s) = k - 1` for k segments, or 0 if there is
    none (Paule and Mandel, 1982). Variances must not depend on the estimates: a segment with a low
    estimate would seem precise, and would attract the others. No share is moved by more than its
    standard error :math:`\sqrt{v_s}` (Efron and Morris, 1972), so that a small segment may differ
    from all others.
    """
    variances = np.maximum(variances, 1e-12)

    def centered(between: float) -> tuple[Doubles, Doubles]:
        precision = 1.0 / (between + variances)
        return precision, shares - precision @ shares / precision.sum()

    def excess(between: float) -> float:
        precision, differences = centered(between)
        return float(precision @ differences**2) - (len(shares) - 1)

    between = 0.0
    if excess(0.0) > 0.0:
        between = optimize.brentq(excess, 0.0, np.sum((shares - shares.mean()) ** 2))
    _, differences = centered(between)
    most = np.sqrt(variances)
    return shares - np.clip(variances / (between + variances) * differences, -most, most)


def adding_up(shares: Doubles, sizes: Doubles, whole: float) -> Doubles:
    """Multiply the odds of all shares by the same factor, so that their mean is that of the whole.

    Small shares are multiplied by that factor, and no share leaves the range from 0 to 1.
    """
    if not 0.0 < whole < 1.0:
        return np.full(len(shares), whole)
    log_odds = special.logit(np.clip(shares, _SMALLEST_SHARE, 1.0 - _SMALLEST_SHARE))

    def excess(log_factor: float) -> float:
        return float(sizes @ special.expit(log_odds + log_factor) / sizes.sum() - whole)

    center = special.logit(whole)
    log_factor = optimize.brentq(
        excess, center - log_odds.max() - 1.0, center - log_odds.min() + 1.0, xtol=1e-13
    )
    return np.asarray(special.expit(log_odds + log_factor))
