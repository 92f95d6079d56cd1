"""Least-squares density-ratio estimation: uLSIF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from classprior._basis import Doubles, GaussianBasis, Rows
from classprior._cross_validation import ratio_scores
from classprior._gram import ridge_path, row_blocks
from classprior._parameters import check_grid, check_n_dense_centers, split_folds
from classprior._samples import MemorySamples, Samples
from classprior._validation import check_labelled, check_new_rows, check_samples, column_names

LAMS = np.logspace(-3, 1, 9)


@dataclass(frozen=True, eq=False, repr=False)
class RatioFit:
    r"""A fitted density ratio :math:`\hat w(x) = \sum_\ell \alpha_\ell \varphi_\ell(x)`.

    Parameters
    ----------
    sigma, lam : float
        Bandwidth and regularisation.
    centers : array or CSR matrix of shape (n_centers, n_features)
        Centres of the basis.
    coef : array of shape (n_centers,)
        Coefficients alpha.
    gram : array of shape (n_centers, n_centers)
        H, the mean of phi phi' over the denominator's rows.
    mean : array of shape (n_centers,)
        The mean h of phi over the numerator's rows.
    """

    sigma: float
    lam: float
    centers: Rows
    coef: Doubles
    gram: Doubles
    mean: Doubles


class DensityRatio(BaseEstimator):
    r"""Ratio p(x|y=1) / p(x) of the positives' density to that of the unlabeled rows (uLSIF).

    .. math:: \hat w(x) = \sum_\ell \alpha_\ell \varphi_\ell(x), \qquad
              \alpha = \max\left(0, (H + \lambda I)^{-1} h\right)

    with Gaussians :math:`\varphi_\ell` at positives, H the mean of
    :math:`\varphi(x')\varphi(x')^\top` over unlabeled rows and h the mean of
    :math:`\varphi(x)` over positives. Bandwidth and regularisation minimise the cross-validated
    :math:`\frac12 \alpha^\top H \alpha - h^\top \alpha`.

    Parameters
    ----------
    sigmas : float or array-like, optional
        Bandwidths. By default 11, from 0.1 to 3.2 times the median distance between unlabeled
        rows and centres.
    lams : float or array-like, optional
        Regularisations. By default 9, from 0.001 to 10.
    n_centers : int or None, default=200
        At most so many positives are centres, drawn at random; time grows with the cube, memory
        with the square (176 MB at 600). None for all of them, up to 1,000.
    cv : int or array-like of int of shape (n_rows,), default=5
        Number of folds, or the fold of every row.
    pos_label : label, optional
        The label in y that marks known positives. By default 1 in {0, 1}, {-1, 1} and booleans,
        else the greater label, with a warning.
    random_state : int, RandomState instance or None, default=None
        Draws centres, folds and the rows from which the default bandwidths are set.

    Attributes
    ----------
    sigma_, lam_ : float
        The chosen bandwidth and regularisation.
    centers_ : ndarray or CSR matrix of shape (n_centers, n_features)
        Centres of the basis.
    coef_ : ndarray of shape (n_centers,)
        Nonnegative coefficients alpha.
    classes_ : ndarray of shape (2,)
        The labels in y.
    pos_label_ : label
        The one that marks known positives.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has names that are all strings.

    References
    ----------
    Kanamori, Hido and Sugiyama (2009), *A Least-squares Approach to Direct Importance
    Estimation*, Journal of Machine Learning Research 10.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import DensityRatio
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.uniform(0, 2, 3000), rng.uniform(2, 3, 1000)][:, None]
    >>> y = np.arange(4000) < 2000  # half of the unlabeled rows are positive
    >>> ratio = DensityRatio(random_state=0).fit(X, y)
    >>> ratio.predict([[0.5], [1.0], [2.5]]).round()  # 1 / prior among positives, 0 elsewhere
    array([2., 2., 0.])
    """

    def __init__(
        self,
        *,
        sigmas: ArrayLike | None = None,
        lams: ArrayLike | None = None,
        n_centers: int | None = 200,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.sigmas = sigmas
        self.lams = lams
        self.n_centers = n_centers
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the ratio from known positives and unlabeled rows.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            Known positives and unlabeled rows together.
        y : array-like of shape (n_rows,)
            Two labels, one for known positives and one for unlabeled rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, is_positive = check_labelled(self, X, y, self.pos_label)
        return self._fit(X[is_positive], X[~is_positive], split_folds(self.cv, is_positive))

    def _fit(self, X_positive: Rows, X_unlabeled: Rows, cv: Any) -> Self:
        rng = check_random_state(self.random_state)
        return self._fit_samples(MemorySamples(X_positive, X_unlabeled, cv, rng))

    def _fit_samples(self, samples: Samples) -> Self:
        n_centers = check_n_dense_centers(self.n_centers, samples.sizes[0])
        fit = fit_ratio(
            samples,
            samples.draw_positives(n_centers),
            sigmas=self.sigmas,
            lams=self.lams,
            nonnegative=True,
        )
        self.sigma_ = fit.sigma
        self.lam_ = fit.lam
        self.centers_ = fit.centers
        self.coef_ = fit.coef
        return self

    def predict(self, X: Any) -> Doubles:
        """Return the ratio p(x|y=1) / p(x) at each row.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ratio : ndarray of shape (n_rows,)
            Nonnegative.
        """
        check_is_fitted(self)
        X = check_new_rows(self, X)
        return linear_model(X, self.centers_, self.sigma_, self.coef_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def density_ratio(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    sigmas: ArrayLike | None = None,
    lams: ArrayLike | None = None,
    n_centers: int | None = 200,
    cv: int | tuple[ArrayLike, ArrayLike] = 5,
    random_state: int | np.random.RandomState | None = None,
) -> DensityRatio:
    """Fit a ``DensityRatio`` to two samples.

    Parameters
    ----------
    X_positive, X_unlabeled : array-likes, data frames or CSR matrices
        The samples of the numerator and of the denominator.
    sigmas, lams : float or array-like, optional
        Bandwidths and regularisations, as in ``DensityRatio``.
    n_centers : int or None, default=200
        At most so many positives are centres. None for all of them, up to 1,000.
    cv : int or pair of array-likes of int, default=5
        Number of folds, or the folds of the positives and of the unlabeled rows.
    random_state : int, RandomState instance or None, default=None
        Draws centres, folds and the rows from which the default bandwidths are set.

    Returns
    -------
    ratio : DensityRatio
        Fitted.

    Examples
    --------
    >>> from classprior import density_ratio
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> samples = make_overlapping_uniforms(overlap=0.25, random_state=0)
    >>> ratio = density_ratio(*samples, random_state=0)
    >>> bool(ratio.predict([[0.5]])[0] > 1.0 > ratio.predict([[1.5]])[0])
    True
    """
    checked = check_samples(X_positive, X_unlabeled)
    estimator = DensityRatio(
        sigmas=sigmas, lams=lams, n_centers=n_centers, random_state=random_state
    )
    estimator.n_features_in_ = checked[0].shape[1]
    names = column_names(X_unlabeled)
    if names and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator._fit(*checked, cv)


def fit_ratio(
    samples: Samples,
    centers: Rows,
    *,
    sigmas: ArrayLike | None,
    lams: ArrayLike | None,
    nonnegative: bool,
) -> RatioFit:
    """Fit the ratio of sample 0 to sample 1, cross-validating what is left open.

    Parameters
    ----------
    samples : Samples
        The numerator's and the denominator's.
    centers : array or CSR matrix of shape (n_centers, n_features)
        Centres of the basis.
    sigmas, lams : array-likes or None
        Candidates; one of each switches cross-validation off.
    nonnegative : bool
        Whether negative coefficients are set to zero.

    Returns
    -------
    fit : RatioFit
        At the best bandwidth and regularisation.
    """
    sigma_grid, lam_grid = check_grid(sigmas, "sigmas"), check_grid(lams, "lams")
    if sigma_grid is None:
        sigma_grid = samples.bandwidths(centers)
    if lam_grid is None:
        lam_grid = LAMS
    best = 0, 0
    if len(sigma_grid) * len(lam_grid) > 1:
        folds = samples.deal_folds()
        basis = GaussianBasis(centers, sigma_grid)
        (scores,) = ratio_scores(
            [samples.moments(0, basis, folds)],
            samples.grams(1, basis, folds),
            lam_grid,
            nonnegative=nonnegative,
        )
        best = divmod(int(np.argmin(scores)), len(lam_grid))
    sigma, lam = float(sigma_grid[best[0]]), float(lam_grid[best[1]])
    return solve_ratio(samples, centers, sigma, lam, nonnegative=nonnegative)


def solve_ratio(
    samples: Samples, centers: Rows, sigma: float, lam: float, *, nonnegative: bool
) -> RatioFit:
    """Fit a density ratio at a given bandwidth and regularisation.

    Parameters
    ----------
    samples : Samples
        The numerator's and the denominator's.
    centers : array or CSR matrix of shape (n_centers, n_features)
        Centres of the basis.
    sigma, lam : float
        Bandwidth and regularisation.
    nonnegative : bool
        Whether negative coefficients are set to zero.

    Returns
    -------
    fit : RatioFit
        The coefficients, and the moments they come from.
    """
    basis = GaussianBasis(centers, np.array([sigma]))
    h = samples.moments(0, basis, None)[0].mean[0]
    H = samples.grams(1, basis, None).mean(np.array([True]), 0)
    alpha = ridge_path(H, h, np.array([lam]))[:, 0]
    if nonnegative:
        alpha = np.maximum(alpha, 0.0)
    return RatioFit(sigma, lam, centers, alpha, H, h)


def linear_model(X: Rows, centers: Rows, sigma: float, coef: Doubles) -> Doubles:
    """Return the sum of coefficients times Gaussians at each row, block by block.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The rows.
    centers : array or CSR matrix of shape (n_centers, n_features)
        Centres of the basis.
    sigma : float
        Bandwidth.
    coef : array of shape (n_centers,)
        Coefficients alpha.

    Returns
    -------
    values : array of shape (n_rows,)
        The sums.
    """
    basis = GaussianBasis(centers, np.array([sigma]))
    blocks = row_blocks(basis, X.shape[0])
    return np.concatenate([basis.exact(X[block]) @ coef for block in blocks])
