"""Choice of the bandwidth and the regularisation, theta by theta."""

from __future__ import annotations

import numpy as np

from classprior._basis import Doubles, GaussianBasis, Ints, Rows
from classprior._gram import fold_grams, ratio_score, ridge_path
from classprior._moments import Moments, fold_moments, paired_means
from classprior._solvers import hinge_products


def deal_folds(
    cv: int | tuple[Ints, Ints], sizes: tuple[int, int], rng: np.random.RandomState
) -> tuple[Ints, Ints]:
    """Deal the rows of each sample to folds: shuffled positions modulo the number of folds.

    Parameters
    ----------
    cv : int or pair of arrays of int
        Number of folds, at most the rows of either sample; or the folds themselves, which are
        returned as they are.
    sizes : pair of int
        Rows in the two samples.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    folds_positive, folds_unlabeled : arrays of int
        Sizes of dealt folds differ by one at most, so none is empty.
    """
    if isinstance(cv, tuple):
        return cv
    return rng.permutation(sizes[0]) % cv, rng.permutation(sizes[1]) % cv


def held_out_gain(positive: Moments, unlabeled: Moments, thetas: Doubles) -> Doubles:
    r"""Return how much of the violation found on training folds is there on the held-out ones.

    .. math:: V(\theta, \sigma) = \sum_k \sum_\ell
              \max(0, \beta_\ell^{\mathrm{train}\ k}) \beta_\ell^{\mathrm{test}\ k}

    The held-out score of du Plessis, Niu and Sugiyama (2017) is :math:`-V / \lambda`.

    Parameters
    ----------
    positive, unlabeled : Moments
        With a leading axis of folds.
    thetas : array of shape (n_thetas,)
        Increasing grid.

    Returns
    -------
    gain : array of shape (n_sigmas, n_thetas)
        V.
    """
    gain = np.zeros((positive.sums.shape[1], len(thetas)))
    total_positive, total_unlabeled = positive.total(), unlabeled.total()
    for fold in range(len(positive)):
        test = positive[fold], unlabeled[fold]
        train = total_positive - test[0], total_unlabeled - test[1]
        gain += hinge_products(thetas, *paired_means(*train), *paired_means(*test))
    return gain


def select(gain: Doubles, lams: Doubles) -> tuple[Ints, Doubles]:
    r"""Choose bandwidth and regularisation at each theta by the smallest score :math:`-V/\lambda`.

    At one theta and one bandwidth the score is V times a negative number that shrinks as lambda
    grows, so the smallest lambda wins where V > 0 and the largest where V <= 0. No lambda between
    can win.

    Parameters
    ----------
    gain : array of shape (n_sigmas, n_thetas)
        V.
    lams : array of shape (n_lams,)
        Candidates.

    Returns
    -------
    sigma_index : array of int of shape (n_thetas,)
        Position of the chosen bandwidth.
    lam : array of shape (n_thetas,)
        The chosen regularisation.
    """
    lam = np.where(gain > 0.0, lams.min(), lams.max())
    sigma_index = np.argmin(-gain / lam, axis=0)
    return sigma_index, np.take_along_axis(lam, sigma_index[None], axis=0)[0]


def ratio_scores(
    X_numerator: Rows,
    X_denominator: Rows,
    centers: Rows,
    sigmas: Doubles,
    lams: Doubles,
    folds: tuple[Ints, Ints],
    *,
    nonnegative: bool,
) -> Doubles:
    r"""Score every bandwidth and regularisation of a least-squares density ratio on held-out folds.

    .. math:: J(\sigma, \lambda) = \sum_k \frac12 \alpha_k^\top H_k \alpha_k - h_k^\top \alpha_k,
              \qquad \alpha_k = (H_{-k} + \lambda I)^{-1} h_{-k}

    One Gram matrix per bandwidth and fold, one eigendecomposition for all lambdas.

    Parameters
    ----------
    X_numerator, X_denominator : arrays or CSR matrices
        Samples of the two densities.
    centers : array or CSR matrix of shape (n_centers, n_features)
        Centres of the basis.
    sigmas, lams : arrays of shape (n_sigmas,) and (n_lams,)
        Candidates.
    folds : pair of arrays of int
        Folds of the two samples.
    nonnegative : bool
        Whether negative coefficients are set to zero before they are scored.

    Returns
    -------
    scores : array of shape (n_sigmas, n_lams)
        The smaller the better.
    """
    basis = GaussianBasis(centers, sigmas)
    numerator = fold_moments(basis, X_numerator, folds[0])
    denominator = fold_grams(basis, X_denominator, folds[1])
    total = numerator.total()
    scores = np.zeros((len(sigmas), len(lams)))
    for fold in range(len(numerator)):
        held_out = np.arange(len(numerator)) == fold
        h_train, h_test = (total - numerator[fold]).mean, numerator[fold].mean
        for s in range(len(sigmas)):
            alphas = ridge_path(denominator.mean(~held_out, s), h_train[s], lams)
            if nonnegative:
                np.maximum(alphas, 0.0, out=alphas)
            scores[s] += ratio_score(alphas, denominator.mean(held_out, s), h_test[s])
    return scores
