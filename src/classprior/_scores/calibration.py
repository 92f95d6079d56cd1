"""Calibration: from the score of a row to its probability of being positive."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, logit

from classprior._core.types import Bools, Doubles


@dataclass(frozen=True)
class Calibration:
    r"""Map from scores to probabilities with two slopes, as :func:`calibrate` fits it.

    .. math:: p(s) = (1 - \varepsilon)\, \sigma(z) + \varepsilon \pi, \qquad
              z = a + b_1 \log \sigma(s - c) - b_2 \log \sigma(c - s)
    """

    prior: float  # pi
    center: float  # c, about which the slope changes
    intercept: float  # a
    slope_below: float  # b_1
    slope_above: float  # b_2
    pseudo_share: float  # epsilon

    @property
    def _at_one_half(self) -> float:
        """The value of z at which the probability is 1/2."""
        eps = self.pseudo_share
        return float(logit((0.5 - eps * self.prior) / (1.0 - eps)))

    def decision(self, scores: Doubles) -> Doubles:
        """Return z, shifted so that 0 means a probability of 1/2."""
        slopes = self.slope_below, self.slope_above
        return self.intercept + _terms(scores - self.center) @ slopes - self._at_one_half

    def probability(self, decision: Doubles) -> Doubles:
        """Return the probabilities of rows, given their decisions."""
        eps = self.pseudo_share
        return (1.0 - eps) * expit(decision + self._at_one_half) + eps * self.prior


def _terms(scores: Doubles) -> Doubles:
    """Return the two terms of z: straight lines far below and far above 0, where they bend."""
    return np.stack([log_expit(scores), -log_expit(-scores)], axis=-1)


def calibrate(
    scores: tuple[Doubles, Doubles],
    prior: float,
    *,
    weights: tuple[Doubles, Doubles] | None = None,
    n_positive: float | None = None,
) -> Calibration:
    r"""Fit the map to out-of-fold log-odds of n known positives and n' unlabeled rows.

    By Bayes' rule, positives are p(s) / pi times as dense at a score s as unlabeled rows. So the
    slopes are those that make the known positives most likely,

    .. math:: \max_{b_1, b_2} \sum_{i \in P} \log p(s_i) - \tfrac12 (\log^2 b_1 + \log^2 b_2)
              \quad\text{with a such that}\quad \frac1{n'} \sum_{j \in U} \sigma(z_j) = \pi.

    This is beta calibration (Kull et al., 2017), fitted like a logistic regression with a known
    share of positives (Ward et al., 2009). A single slope would not do: log-odds of being labeled
    grow like those of being positive if these are low, but are bounded where all rows are positive,
    at :math:`c = -\log(\pi n' / n)`. The second term draws the slopes toward 1, that of ideal
    log-odds, if the known positives are few.

    The mean probability of the unlabeled rows is the prior. The pseudo-share :math:`\varepsilon =
    1 / (n + 1)` stands for one more known positive that is a random unlabeled row: it leaves the
    mean as it is, and keeps the probabilities away from 0 and 1, as far as n known positives can
    tell.

    Parameters
    ----------
    scores : pair of ndarrays
        Out-of-fold log-odds of being labeled, of the known positives and of the unlabeled rows.
    prior : float
        Share of positives in the unlabeled rows. Shares of 0 and 1 are moved by half a row.
    weights : pair of ndarrays, optional
        Weights of the rows.
    n_positive : float, optional
        Effective number of known positives. By default, all count.
    """
    w_positive, w_unlabeled = weights or tuple(np.ones(len(part)) for part in scores)
    odds = w_unlabeled.sum() / w_positive.sum()
    n = len(scores[0]) if n_positive is None else n_positive
    w_positive, w_unlabeled = n * w_positive / w_positive.sum(), w_unlabeled / w_unlabeled.sum()
    half_a_row = 0.5 / len(scores[1])
    prior = float(np.clip(prior, half_a_row, 1.0 - half_a_row))
    eps, center = 1.0 / (n + 1.0), -float(np.log(prior * odds))
    positive, unlabeled = (_terms(part - center) for part in scores)

    def loss(log_slopes: Doubles) -> float:
        slopes = np.exp(log_slopes)
        a = _intercept(unlabeled @ slopes, prior, w_unlabeled)
        p = (1.0 - eps) * expit(a + positive @ slopes) + eps * prior
        return float(0.5 * log_slopes @ log_slopes - w_positive @ np.log(p))

    # Derivatives would mislead: beyond its minimum, the loss is flat and not convex.
    start = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    how = {"initial_simplex": start, "xatol": 1e-3, "fatol": 1e-3}
    slopes = np.exp(minimize(loss, start[0], method="Nelder-Mead", options=how).x)
    intercept = _intercept(unlabeled @ slopes, prior, w_unlabeled)
    return Calibration(prior, center, intercept, float(slopes[0]), float(slopes[1]), eps)


def recalibrate(
    calibration: Calibration,
    decision: Doubles,
    is_positive: Bools,
    weights: Doubles,
    prior: float,
) -> Calibration:
    r"""Correct the map with rows whose class is known.

    The log-odds z of a row become :math:`z' = \alpha + \beta z`, where

    .. math:: \max_{\alpha, \beta} \sum_i w_i \left(y_i \log p'_i + (1 - y_i) \log(1 - p'_i)\right)
              - \tfrac12 \log^2 \beta

    over the checked rows (Platt, 1999), with weights that add up to their effective number. A row's
    weight is one over the probability with which it was drawn, so that the mean of the corrected
    probabilities is about the share of positives, ``prior``.
    """
    z = decision + calibration._at_one_half
    w = weights * weights.sum() / np.sum(weights**2)
    half_a_row = 0.5 / (len(z) + 1.0)
    eps, prior = calibration.pseudo_share, float(np.clip(prior, half_a_row, 1.0 - half_a_row))

    def loss(values: Doubles) -> float:
        alpha, log_beta = values
        p = (1.0 - eps) * expit(alpha + np.exp(log_beta) * z) + eps * prior
        return float(0.5 * log_beta**2 - w @ np.log(np.where(is_positive, p, 1.0 - p)))

    alpha, log_beta = minimize(loss, [0.0, 0.0], method="Nelder-Mead").x
    beta = float(np.exp(log_beta))
    return replace(
        calibration,
        prior=prior,
        intercept=float(alpha) + beta * calibration.intercept,
        slope_below=beta * calibration.slope_below,
        slope_above=beta * calibration.slope_above,
    )


def _intercept(scores: Doubles, prior: float, weights: Doubles) -> float:
    """Return the intercept at which the mean probability of the unlabeled rows is the prior."""
    # At these limits, no probability is above the prior, and none is below it.
    low, high = logit(prior) - scores.max(), logit(prior) - scores.min()
    margin = 1e-9 * (1.0 + abs(low) + abs(high))  # rounding
    return float(brentq(lambda a: weights @ expit(a + scores) - prior, low - margin, high + margin))
