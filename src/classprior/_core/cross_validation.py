"""Cross-validation of the bandwidth and the regularization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from classprior._core.gram import Grams, ratio_score, ridge_path
from classprior._core.moments import Moments, paired_means
from classprior._core.solvers import hinge_products
from classprior._core.types import Doubles, Ints


def held_out_gain(positive: Moments, unlabeled: Moments, thetas: Doubles) -> Doubles:
    r"""Return the held-out gain V, of shape (n_sigmas, n_thetas), from moments per fold.

    .. math:: V(\theta, \sigma) = \sum_k \sum_\ell
              \max(0, \beta_\ell^{\mathrm{train}\ k}) \beta_\ell^{\mathrm{test}\ k}

    The held-out value of the objective in equation (11) of du Plessis, Niu and Sugiyama (2017),
    without the regularizer, is :math:`-V / \lambda`.
    """
    gain = np.zeros((positive.sums.shape[1], len(thetas)))
    total_positive, total_unlabeled = positive.total(), unlabeled.total()
    for fold in range(len(positive)):
        test = positive[fold], unlabeled[fold]
        train = total_positive - test[0], total_unlabeled - test[1]
        gain += hinge_products(thetas, *paired_means(*train), *paired_means(*test))
    return gain


def select(gain: Doubles, lams: Doubles) -> tuple[Ints, Doubles]:
    r"""Return the index of sigma and the lambda that minimize :math:`-V/\lambda` at each theta.

    At one theta and one bandwidth the score is V times a negative number that shrinks as lambda
    grows, so the smallest lambda wins where V > 0 and the largest where V <= 0. No lambda between
    them can win. ``lams`` has shape (n_lams,), or (n_lams, n_thetas) if it depends on theta.
    """
    lam = np.where(gain > 0.0, lams.min(axis=0), lams.max(axis=0))
    sigma_index = np.argmin(-gain / lam, axis=0)
    return sigma_index, np.take_along_axis(lam, sigma_index[None], axis=0)[0]


def ratio_scores(
    numerators: Sequence[Moments], denominator: Grams, lams: Doubles, *, nonnegative: bool
) -> Doubles:
    r"""Return the held-out scores of density ratios, of shape (n_numerators, n_sigmas, n_lams).

    .. math:: J(\sigma, \lambda) = \sum_k \frac12 \alpha_k^\top H_k \alpha_k - h_k^\top \alpha_k,
              \qquad \alpha_k = (H_{-k} + \lambda I)^{-1} h_{-k}

    If ``nonnegative``, negative coefficients are set to zero before scoring. Smaller is better.
    """
    # One eigendecomposition per bandwidth and fold serves all lambdas and numerators.
    n_folds, n_sigmas = denominator.sums.shape[:2]
    totals = [numerator.total() for numerator in numerators]
    scores = np.zeros((len(numerators), n_sigmas, len(lams)))
    for fold in range(n_folds):
        held_out = np.arange(n_folds) == fold
        h_test = [numerator[fold].mean for numerator in numerators]
        h_train = [
            (total - numerator[fold]).mean
            for total, numerator in zip(totals, numerators, strict=True)
        ]
        for s in range(n_sigmas):
            targets = np.column_stack([h[s] for h in h_train])
            alphas = ridge_path(denominator.mean(s, ~held_out), targets, lams)
            if nonnegative:
                np.maximum(alphas, 0.0, out=alphas)
            H = denominator.mean(s, held_out)
            for i, h in enumerate(h_test):
                scores[i, s] += ratio_score(alphas[:, :, i], H, h[s])
    return scores
