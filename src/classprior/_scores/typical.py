r"""A test whether known positives are typical of all positives.

Known positives are divided into kinds. If they are typical, every kind has the same share
:math:`\theta` of hidden positives per known one; if labels favor some kinds, the others have more.
An unlabeled row among the positives of a kind may also be a negative. But from the top of the score
down to where most negatives are, negatives become more and more frequent, while hidden positives
are as frequent as known ones: they rise and fall with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy import stats

from classprior._core.messages import p_text
from classprior._core.types import Bools, Doubles
from classprior._samples.samples import Samples
from classprior._scores.crossfit import TOGETHER, Scores
from classprior._scores.subtypes import (
    important_columns,
    kinds_of_positives,
    sum_of_subtypes,
    tails_of_subtypes,
)
from classprior.result import Caution

BIASED = 0.01  # level of the test, from which ``subtypes`` divides the known positives
# Level of the warning. Where classes overlap, negatives come in kinds, too, so that p-values are a
# little too small.
_WARNED = 0.002
_THETAS = np.geomspace(0.0005, 1.0, 68)
_BANDS = 9  # with equally many positives, from the top of a kind down
_BANDS_BELOW = 8  # of equal length, below
_LENGTH_BELOW = 0.25  # of each, relative to that of the bands above
_FEWEST_BANDS = 3
_ITERATIONS = 60


class Typicality(NamedTuple):
    """A test whether known positives are typical, and the kinds of positives that it compares."""

    p_value: float
    labeled: Doubles  # share of each kind in the known positives
    found: Doubles  # positives among the unlabeled rows if each kind has a share of its own
    expected: Doubles  # the same if known positives are typical


class Bands(NamedTuple):
    """Numbers of rows in intervals of the score, the highest first, and their lengths."""

    unlabeled: Doubles
    positive: Doubles
    length: Doubles


def typicality_of(
    drawn: Samples,
    scores: Mapping[str, tuple[Doubles, Doubles]],
    prior: float,
    columns: Doubles | None = None,
) -> Typicality:
    """Run the test on some rows, given their scores, the estimate and perhaps weighted columns."""
    X, is_positive = drawn.stacked_rows()
    seed = drawn.bins.seed_of_round(0)
    if columns is None:
        columns = important_columns(X, is_positive, seed).values
    stacked = {name: np.concatenate(pair) for name, pair in scores.items()}
    return typicality(columns, is_positive, stacked, prior, seed)


def typicality(
    columns: Doubles, is_positive: Bools, scores: Scores, prior: float, seed: int
) -> Typicality:
    r"""Test whether the known positives among some rows are typical of all positives.

    Kinds j are clusters of the known positives, in ``columns`` without what the score explains.
    The score of each kind is divided into bands b of length :math:`\ell_b`, with U and P for the
    numbers of unlabeled rows and of known positives of the kind, n and m in all:

    .. math:: U_{jb} \sim \mathrm{Poisson}\left(\theta_j \frac mn P_{jb} + \nu_{jb} \ell_b\right),
              \qquad 0 \le \nu_{j1} \le \nu_{j2} \le \dots

    where :math:`\nu` is the density of the negatives. With :math:`L_j(\theta)` for the
    log-likelihood maximized over :math:`\nu`, the statistic is that of the likelihood ratio, less
    the noise of P,

    .. math:: D = \frac{2}{1 + \hat\theta m / n} \left(\sum_j \max_\theta L_j(\theta)
              - \max_\theta \sum_j L_j(\theta)\right),

    and its p-value that of the :math:`\chi^2` distribution, whose degrees of freedom are the number
    of kinds less one. If negatives come in the same kinds as positives, they need not become more
    frequent downward. Therefore the p-value is 1 unless the shares of all kinds, extrapolated to
    the purest positives of each, add up to more than ``prior``, which hidden positives do, and
    negatives do not.
    """
    together = scores.get(TOGETHER, next(iter(scores.values())))
    kinds = kinds_of_positives(columns, is_positive, together, seed, n_init=3)
    n_own = np.bincount(kinds[is_positive])
    labeled, m = n_own / n_own.sum(), float(np.sum(~is_positive))
    ratio = m / n_own.sum()
    # Half of the negatives score less than this, even if positives are all that scores more.
    bulk = float(np.quantile(together[~is_positive], 0.5 * (1.0 - min(prior, 0.9))))
    likelihoods = np.array(
        [
            log_likelihoods(bands_of_kind(together, is_positive, kinds == kind, bulk), ratio)
            for kind in range(len(n_own))
        ]
    )
    in_all = likelihoods.sum(axis=0)
    one = int(in_all.argmax())
    deviance = 2.0 * (likelihoods.max(axis=1).sum() - in_all[one]) / (1.0 + _THETAS[one] * ratio)
    pure = sum_of_subtypes(tails_of_subtypes(scores, is_positive, kinds)).widest
    is_in_doubt = len(n_own) > 1 and pure > prior
    return Typicality(
        float(stats.chi2.sf(deviance, len(n_own) - 1)) if is_in_doubt else 1.0,
        labeled,
        _THETAS[likelihoods.argmax(axis=1)] * labeled * m,
        _THETAS[one] * labeled * m,
    )


def bands_of_kind(scores: Doubles, is_positive: Bools, is_inside: Bools, bulk: float) -> Bands:
    """Count the rows of a kind in bands of the score, down to the bulk of the negatives.

    There are no bands if hardly any of the kind's positives are above the bulk.
    """
    positive, unlabeled = scores[is_positive & is_inside], scores[~is_positive & is_inside]
    quantiles = np.quantile(positive, 1.0 - np.arange(1, _BANDS) / _BANDS)
    below = quantiles[-1] - (quantiles[0] - quantiles[-1]) * _LENGTH_BELOW * np.arange(
        1, _BANDS_BELOW + 1
    )
    # The few rows above the first edge are counted in the first band: its end is arbitrary.
    edges = np.r_[np.quantile(positive, 0.99), quantiles, below]
    edges = edges[np.r_[True, np.diff(edges) < 0.0] & (edges >= bulk)]
    if len(edges) <= _FEWEST_BANDS:
        return Bands(*np.zeros((3, 0)))
    length, edges = -np.diff(edges), np.r_[np.inf, edges[1:]][::-1]

    def counted(rows: Doubles) -> Doubles:
        return np.histogram(rows, edges)[0][::-1].astype(np.float64)

    return Bands(counted(unlabeled), counted(positive), length)


def log_likelihoods(bands: Bands, ratio: float) -> Doubles:
    """Return the log-likelihood of each theta, maximized over increasing densities of negatives.

    Each step of the EM algorithm divides the unlabeled rows into positives and negatives, and fits
    an increasing density to the negatives.
    """
    U, P, length = bands
    if len(U) == 0:
        return np.zeros(len(_THETAS))
    positives = _THETAS[:, None] * ratio * P
    density = np.full(positives.shape, max(U.sum(), 1.0) / length.sum())
    for _ in range(_ITERATIONS):
        negatives = density * length
        density = increasing(U * negatives / (positives + negatives), length)
    mean = positives + density * length
    likelihoods: Doubles = np.sum(U * np.log(mean) - mean, axis=1)
    return likelihoods


def increasing(counts: Doubles, length: Doubles) -> Doubles:
    r"""Return the increasing densities nearest to some counts, along the last axis.

    They are :math:`\max_{i \le b} \min_{k \ge b}` of the mean density from i to k; tiny, not 0.
    """
    n = len(length)
    is_interval = np.triu(np.ones((n, n), dtype=bool))
    in_all = np.cumsum(np.pad(counts, [(0, 0), (1, 0)]), axis=1)
    lengths = np.cumsum(np.r_[0.0, length])
    means = (in_all[:, None, 1:] - in_all[:, :-1, None]) / np.where(
        is_interval, lengths[1:] - lengths[:-1, None], 1.0
    )
    smallest = np.minimum.accumulate(np.where(is_interval, means, np.inf)[..., ::-1], axis=2)
    smallest = np.where(is_interval, smallest[..., ::-1], -np.inf)
    largest = np.maximum.accumulate(smallest, axis=1)
    densities: Doubles = np.maximum(np.diagonal(largest, axis1=1, axis2=2), 1e-9)
    return densities


def about_typicality(p_value: float) -> list[Caution]:
    """Return a warning if known positives do not seem to be typical."""
    if p_value >= _WARNED:
        return []
    return [
        Caution(
            "Biased labels? Known positives do not seem to be typical of all positives: more "
            "unlabeled rows look like some kinds of them than the other kinds would suggest, and "
            f"negatives do not explain it ({p_text(p_value)}). Kinds that are seldom labeled are "
            "then undercounted, the share is higher than estimated, and the upper bound does not "
            "hold.",
            "Find out how the known positives were selected. The method 'subtypes' allows for "
            "biased labels if every kind of positives is among the known ones. To be sure, look at "
            "rows: 'classprior review' chooses which.",
            remedy="subtypes",
        )
    ]
