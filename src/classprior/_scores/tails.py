r"""The share of positives from the tails of scores.

Of all rows beyond a threshold t of any score, the positives among the unlabeled ones are as many
as theta asks for, the negatives come on top: with S the share of a sample beyond t,

.. math:: \frac{S_{\mathrm{unlabeled}}(t)}{S_{\mathrm{positive}}(t)} \ge \pi

for every score and every threshold, with equality where the tail holds positives only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from classprior._core.types import Doubles, Ints

# A tail holds at least this share of the positives. In smaller ones the smallest ratio is chance.
SMALLEST_TAIL = 0.25
# Thresholds considered, at most: more cost time and change nothing.
_MOST_THRESHOLDS = 400
_SMALLEST_ERROR = 0.01  # ratios closer than that are not told apart
# The window, from the purest end, over which the share of unlabeled rows is taken to be linear.
_WINDOW = 0.7
# Tails of the certified bound, as shares of the positives.
_BOUND_TAILS = (0.1, 0.2, 0.35, 0.5, 0.7, 0.9)


@dataclass(frozen=True, eq=False)
class ScoreTails:
    """Rows of both samples by bin and by the threshold at which they enter the tail.

    Parameters
    ----------
    positive, unlabeled : arrays of shape (n_bins, n_thresholds)
        Rows of each bin that enter the tail at each threshold, the highest first. Rows with the
        same score enter together; unlabeled rows that no tail holds are not counted.
    n_positive, n_unlabeled : arrays of shape (n_bins,)
        All rows of each bin.
    """

    positive: Doubles
    unlabeled: Doubles
    n_positive: Ints
    n_unlabeled: Ints

    @classmethod
    def from_scores(
        cls,
        positive: Doubles,
        unlabeled: Doubles,
        bins: tuple[Ints, Ints] | None = None,
        n_bins: tuple[int, int] = (1, 1),
    ) -> ScoreTails:
        """Set thresholds at scores of positives, at equal shares of them; without bins, in one."""
        falling = np.sort(positive)[::-1]
        ranks = np.linspace(0, len(falling) - 1, min(len(falling), _MOST_THRESHOLDS)).astype(int)
        thresholds = np.unique(falling[ranks])  # rising

        def counted(sample: int, scores: Doubles) -> tuple[Doubles, Ints]:
            n = len(thresholds)
            cells = n - np.searchsorted(thresholds, scores, side="right")
            if bins is not None:
                cells += bins[sample] * (n + 1)
            table = np.bincount(cells, minlength=n_bins[sample] * (n + 1)).reshape(-1, n + 1)
            return table[:, :-1].astype(float), table.sum(axis=1)

        (p, n_p), (u, n_u) = counted(0, positive), counted(1, unlabeled)
        return cls(p, u, n_p, n_u)

    def counts(
        self, weights: tuple[Doubles, Doubles] | None = None
    ) -> tuple[Doubles, Doubles, Doubles, Doubles]:
        """Return the rows that enter at each threshold and all rows, weighted by bin if asked."""
        if weights is None:
            weights = np.ones(len(self.n_positive)), np.ones(len(self.n_unlabeled))
        p, u = weights
        return p @ self.positive, u @ self.unlabeled, p @ self.n_positive, u @ self.n_unlabeled


def tail_ratio(
    positive: Doubles, unlabeled: Doubles, n: Doubles, m: Doubles
) -> tuple[Doubles, Doubles]:
    r"""Return the smallest ratio of all tails, softly, and its standard error, of logarithms.

    The variance of the logarithm is :math:`1/(U + \frac12) - 1/m + 1/P - 1/n` for a tail of P of
    n positives and U of m unlabeled rows. A tail counts by the positives that enter at its
    threshold.
    """
    n, m = np.expand_dims(n, -1), np.expand_dims(m, -1)
    P, U = np.cumsum(positive, axis=-1), np.cumsum(unlabeled, axis=-1)
    multiplicity = np.where(SMALLEST_TAIL * n <= P, positive, 0.0)
    P = np.maximum(P, 1.0)
    log_ratio = np.log((U + 0.5) / (m + 0.5)) - np.log(P / n)
    variance = 1.0 / (U + 0.5) - 1.0 / (m + 0.5) + 1.0 / P - 1.0 / n
    error = np.sqrt(np.maximum(variance, 0.0))
    weights = soft_minimum(log_ratio, error, multiplicity)
    return np.sum(weights * log_ratio, axis=-1), np.sum(weights * error, axis=-1)


def soft_minimum(values: Doubles, errors: Doubles, multiplicity: Doubles) -> Doubles:
    r"""Return weights that share a minimum among the values that noise cannot tell from it.

    .. math:: w_i \propto k_i \exp\left(-\frac{u_i - \min_j u_j}{e}\right), \qquad
              u_i = v_i + e_i

    with e the error of the value whose upper limit u is smallest. The minimum of noisy values is
    too low, the more so the more there are; the mean over the ones near it is not.
    """
    upper = np.where(multiplicity > 0.0, values + errors, np.inf)
    best = np.argmin(upper, axis=-1)[..., None]
    noise = np.maximum(np.take_along_axis(errors, best, axis=-1), _SMALLEST_ERROR)
    weights = multiplicity * np.exp(-(upper - np.take_along_axis(upper, best, axis=-1)) / noise)
    return weights / weights.sum(axis=-1, keepdims=True)


def extrapolated_share(positive: Doubles, unlabeled: Doubles, n: Doubles, m: Doubles) -> Doubles:
    r"""Return the share at the very end of the tail, were it linear in the tail.

    Place every unlabeled row at the share w of positives that score higher. Positives are uniform
    there, so the density of the unlabeled rows is :math:`\pi` plus what the negatives add, which
    is least at w = 0. If it is :math:`\pi + cw` for w < W, then
    :math:`E[(4 - 6w/W)/W\; 1(w < W)] = \pi`.
    """
    w = (np.cumsum(positive, axis=-1) - positive / 2.0) / np.expand_dims(n, -1)
    psi = np.where(w < _WINDOW, (4.0 - 6.0 * w / _WINDOW) / _WINDOW, 0.0)
    return np.sum(psi * unlabeled, axis=-1) / m


@dataclass(frozen=True, eq=False)
class TailEstimate:
    """What several scores together say about the prior.

    Parameters
    ----------
    prior : array of shape (...)
        The estimate, not limited to 1.
    extrapolated : array of shape (...)
        The same by extrapolation to the end of the tail.
    of_scores : array of shape (..., n_scores)
        The ratio that each score gives.
    """

    prior: Doubles
    extrapolated: Doubles
    of_scores: Doubles


def combine(tails: Sequence[tuple[Doubles, Doubles, Doubles, Doubles]]) -> TailEstimate:
    """Combine the tails of several scores downward, softly.

    Every ratio is an upper bound of the prior, but for noise, so the smallest one is the best:
    a score that does not see the classes can spoil an average and cannot spoil a minimum.
    """
    pairs = [tail_ratio(*tail) for tail in tails]
    logs, errors = (np.stack(part, axis=-1) for part in zip(*pairs, strict=True))
    ends = np.stack([extrapolated_share(*tail) for tail in tails], axis=-1)
    weights = soft_minimum(logs, errors, np.ones_like(logs))
    ratios = np.exp(logs)
    return TailEstimate(
        prior=np.sum(weights * ratios, axis=-1),
        extrapolated=np.sum(weights * np.minimum(ends, ratios), axis=-1),
        of_scores=ratios,
    )


def average(estimates: Sequence[TailEstimate]) -> TailEstimate:
    """Return the mean of the estimates from several rounds of cross-fitting.

    The estimates, not the scores: a row pushes the classifiers that score it away from its own
    label, by a little, and in the mean of several scores that is no longer hidden by noise.
    """
    return TailEstimate(
        prior=np.mean([e.prior for e in estimates], axis=0),
        extrapolated=np.mean([e.extrapolated for e in estimates], axis=0),
        of_scores=np.mean([e.of_scores for e in estimates], axis=0),
    )


class Bounds(NamedTuple):
    """Upper bounds of the prior.

    Parameters
    ----------
    exact : float
        Holds at its confidence with any number of rows.
    asymptotic : float
        Holds at its confidence with many rows; closer to the prior.
    """

    exact: float
    asymptotic: float


def certified_bounds(positive: Doubles, unlabeled: Doubles, delta: float) -> Bounds:
    r"""Return upper bounds of the prior that fail with probability delta at most.

    For scores that were learned on other rows. At the k-th largest of n scores of positives, the
    share of all positives beyond it is at least a Beta(k, n - k + 1) variable (exactly one if
    scores have a density), and the unlabeled rows beyond it are binomial. So for each of six
    tails the ratio of an upper Clopper-Pearson limit and a lower quantile of that Beta law is an
    upper bound of the prior, each at a twelfth of delta; the smallest one is exact. The asymptotic
    one takes each limit at a sixth of delta and adds their distances from the ratio, in
    logarithms, as if they were standard errors: in squares. Nothing is assumed about the classes.

    References
    ----------
    Zou and Donner (2008), *Construction of confidence limits about effect measures: A general
    approach*, Statistics in Medicine 27.
    """
    n, m = len(positive), len(unlabeled)
    ranks = np.unique([max(1, int(np.ceil(share * n))) for share in _BOUND_TAILS])
    thresholds = np.sort(positive)[::-1][ranks - 1]
    beyond = m - np.searchsorted(np.sort(unlabeled), thresholds, side="left")
    each = delta / len(ranks)

    def limits(level: float) -> tuple[Doubles, Doubles]:
        with np.errstate(invalid="ignore"):  # all rows beyond: the limit is 1
            most = np.where(beyond == m, 1.0, stats.beta.isf(level, beyond + 1, m - beyond))
        return most, stats.beta.ppf(level, ranks, n - ranks + 1)

    most, least = limits(each / 2.0)
    exact = float(np.min(most / least))
    most, least = limits(each)
    unlabeled_share, positive_share = (beyond + 0.5) / (m + 0.5), ranks / (n + 1)
    margin = np.hypot(np.log(most / unlabeled_share), np.log(positive_share / least))
    asymptotic = float(np.min(unlabeled_share / positive_share * np.exp(margin)))
    return Bounds(min(1.0, exact), min(1.0, asymptotic))
