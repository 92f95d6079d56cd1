"""Least-squares density ratio estimation (uLSIF) and the classifier based on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from classprior._base import TwoSampleEstimator
from classprior._core.basis import GaussianBasis, bandwidth_ladder
from classprior._core.bins import BANDWIDTHS, CENTERS, FOLDS, choose, generator
from classprior._core.cross_validation import ratio_scores
from classprior._core.gram import fold_grams, ridge_path, row_blocks
from classprior._core.moments import fold_moments
from classprior._core.types import Doubles, Ints, Rows
from classprior._samples.samples import Samples
from classprior._samples.sums import Centers, default_bandwidths, draw_centers, grams_of, moments_of
from classprior._tables.checks import check_new_rows, check_rows_and_labels, restored_on_error
from classprior._tables.parameters import (
    check_grid,
    check_n_dense_centers,
    check_number_of_folds,
    check_sample_weight,
    seed_of,
)

__all__ = ["DensityRatio", "LeastSquaresClassifier"]

_LAMS = np.logspace(-3, 1, 9)
_ROWS_FOR_BANDWIDTHS = 300


class DensityRatio(TwoSampleEstimator):
    r"""Density ratio p(x|y=1) / p(x) of positives to unlabeled rows by least squares (uLSIF).

    .. math:: \hat w(x) = \sum_\ell \alpha_\ell \varphi_\ell(x), \qquad
              \alpha = \max\left(0, (H + \lambda I)^{-1} h\right)

    where :math:`\varphi_\ell` are Gaussians centered at positives, H is the mean of
    :math:`\varphi(x')\varphi(x')^\top` over unlabeled rows and h is the mean of
    :math:`\varphi(x)` over positives (Kanamori, Hido and Sugiyama, 2009). The bandwidth and the
    regularization minimize the cross-validated
    :math:`\frac12 \alpha^\top H \alpha - h^\top \alpha`.

    Parameters
    ----------
    sigmas : float or array-like, optional
        Candidate bandwidths. By default, 11 values from 0.1 to 3.2 times the median distance
        between unlabeled rows and centers.
    lams : float or array-like, optional
        Candidate regularization parameters. By default, 9 values from 0.001 to 10.
    n_centers : int or None, default=200
        Maximum number of basis centers, drawn at random from the positives. Time grows with its
        cube and memory with its square (176 MB at 600). None uses all positives, up to 1,000.
    cv : int or array-like of int of shape (n_rows,), default=5
        Number of folds, or the fold index of each row. For two samples, a pair of arrays.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of centers, folds and the rows that set the default bandwidths.

    Attributes
    ----------
    sigma_, lam_ : float
        Selected bandwidth and regularization parameter.
    centers_ : ndarray or CSR matrix of shape (n_centers, n_features)
        Centers of the basis.
    coef_ : ndarray of shape (n_centers,)
        Nonnegative coefficients alpha.
    classes_ : ndarray of shape (2,)
        The labels in y.
    pos_label_ : label
        The label that marks known positives.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names seen during ``fit``. Defined only if all column names of X are strings.

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

    __module__ = "classprior"  # saved models use the public path, so the module can move

    takes_checkpoint = True

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

    def predict(self, X: Any) -> Doubles:
        """Return the ratio p(x|y=1) / p(x) at each row.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            Rows with the columns seen during ``fit``.

        Returns
        -------
        ratio : ndarray of shape (n_rows,)
            Nonnegative. The true ratio is at most 1 / prior, where all rows are positive.
        """
        check_is_fitted(self)
        X = check_new_rows(self, X)
        return linear_model(X, self.centers_, self.sigma_, self.coef_)

    def _solve(self, samples: Samples) -> None:
        n_centers = check_n_dense_centers(self.n_centers, samples.bins.n_counted[0])
        fit = fit_ratio(
            samples,
            draw_centers(samples, n_centers, of_positives=True),
            sigmas=self.sigmas,
            lams=self.lams,
            cv=self.cv,
            nonnegative=True,
        )
        self.sigma_ = fit.sigma
        self.lam_ = fit.lam
        self.centers_ = fit.centers
        self.coef_ = fit.coef


@dataclass(frozen=True, eq=False, repr=False)
class RatioFit:
    """A fitted density ratio; ``gram`` and ``mean`` are H and h over all rows."""

    sigma: float
    lam: float
    centers: Rows
    coef: Doubles
    gram: Doubles
    mean: Doubles


def fit_ratio(
    samples: Samples,
    centers: Centers,
    *,
    sigmas: ArrayLike | None,
    lams: ArrayLike | None,
    cv: Any,
    nonnegative: bool,
) -> RatioFit:
    """Fit the density ratio of sample 0 to sample 1, cross-validating sigma and lambda."""
    sigma_grid, lam_grid = check_grid(sigmas, "sigmas"), check_grid(lams, "lams")
    if sigma_grid is None:
        sigma_grid = default_bandwidths(samples, centers)
    if lam_grid is None:
        lam_grid = _LAMS
    nothing_to_choose = len(sigma_grid) * len(lam_grid) == 1
    basis = GaussianBasis(centers.X, sigma_grid)
    folds = samples.one_fold() if nothing_to_choose else samples.folds(cv)
    numerator = moments_of(samples, 0, basis).of_folds(folds[0])
    denominator = grams_of(samples, 1, basis, folds)
    best = 0, 0
    if not nothing_to_choose:
        (scores,) = ratio_scores([numerator], denominator, lam_grid, nonnegative=nonnegative)
        best = divmod(int(np.argmin(scores)), len(lam_grid))
    sigma, lam = float(sigma_grid[best[0]]), float(lam_grid[best[1]])
    H, h = denominator.mean(best[0]), numerator.total().mean[best[0]]
    alpha = ridge_path(H, h, np.array([lam]))[:, 0]
    if nonnegative:
        alpha = np.maximum(alpha, 0.0)
    return RatioFit(sigma, lam, centers.X, alpha, H, h)


def linear_model(X: Rows, centers: Rows, sigma: float, coef: Doubles) -> Doubles:
    """Evaluate the linear model in the Gaussian basis at each row, in blocks."""
    basis = GaussianBasis(centers, np.array([sigma]))
    blocks = row_blocks(basis, X.shape[0])
    return np.concatenate([basis.exact(X[block]) @ coef for block in blocks])


class LeastSquaresClassifier(ClassifierMixin, BaseEstimator):
    r"""Least-squares probabilistic classifier with a Gaussian basis.

    .. math:: p(y|x) \propto \max(0, \alpha_y^\top \varphi(x)), \qquad
              \alpha_y = (H + \lambda I)^{-1} h_y

    where H is the mean of :math:`\varphi(x)\varphi(x)^\top` over all rows and :math:`h_y` is the
    sum of :math:`\varphi(x)` over the rows of class y, divided by the number of all rows
    (Sugiyama, 2010). The bandwidth and the regularization minimize the cross-validated
    :math:`\sum_y \frac12 \alpha_y^\top H \alpha_y - h_y^\top \alpha_y`.

    Parameters
    ----------
    sigmas : float or array-like, optional
        Candidate bandwidths. By default, 11 values from 0.1 to 3.2 times the median distance
        between rows and centers.
    lams : float or array-like, optional
        Candidate regularization parameters. By default, 9 values from 0.001 to 10.
    n_centers : int or None, default=200
        Maximum number of basis centers, drawn at random in equal numbers from each class if it
        has enough rows. Time grows with its cube. None uses all rows, up to 1,000.
    cv : int, default=5
        Number of folds.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of centers, folds and the rows that set the default bandwidths.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    sigma_, lam_ : float
        Selected bandwidth and regularization parameter.
    centers_ : ndarray or CSR matrix of shape (n_centers, n_features)
        Centers of the basis.
    coef_ : ndarray of shape (n_centers, n_classes)
        Coefficients alpha, one column per class.

    References
    ----------
    Sugiyama (2010), *Superfast-Trainable Multi-Class Probabilistic Classifier by Least-Squares
    Posterior Fitting*, IEICE Transactions on Information and Systems E93-D.
    """

    def __init__(
        self,
        *,
        sigmas: ArrayLike | None = None,
        lams: ArrayLike | None = None,
        n_centers: int | None = 200,
        cv: int = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.sigmas = sigmas
        self.lams = lams
        self.n_centers = n_centers
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Their classes.
        sample_weight : array-like of shape (n_rows,), optional
            Their weights. Rows of weight 0 are ignored.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        with restored_on_error(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, y = check_rows_and_labels(self, X, y)
        check_classification_targets(y)
        weights = None
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, X.shape[0])
            if not weights.any():
                raise ValueError("All weights in sample_weight are zero.")
            X, y, weights = X[weights > 0.0], y[weights > 0.0], weights[weights > 0.0]
            weights = weights / weights.mean()
        self.classes_, labels = np.unique(y, return_inverse=True)
        shares = np.bincount(labels, weights) / len(labels)
        if len(shares) < 2:
            raise ValueError(
                f"Expected at least two classes in y, got 1 class: {self.classes_[0]!r}."
            )
        seed = seed_of(self.random_state)
        rows_of_class = [np.flatnonzero(labels == c) for c in range(len(shares))]
        self.centers_ = X[self._draw_centers(rows_of_class, seed)]
        sigmas, lams = check_grid(self.sigmas, "sigmas"), check_grid(self.lams, "lams")
        if sigmas is None:
            nearby = choose(seed, BANDWIDTHS, 1, len(labels), _ROWS_FOR_BANDWIDTHS)
            some = choose(seed, BANDWIDTHS, 0, self.centers_.shape[0], _ROWS_FOR_BANDWIDTHS)
            sigmas = bandwidth_ladder(X[nearby], self.centers_[some])
        lams = _LAMS if lams is None else lams
        # p(y|x) = p(y) p(x|y) / p(x): one density ratio per class, with all rows as denominator.
        folds, best = np.zeros(len(labels), dtype=np.int64), (0, 0)
        n_folds = 1
        if len(sigmas) * len(lams) > 1:
            n_folds = check_number_of_folds(self.cv, [len(rows) for rows in rows_of_class], "class")
            for c, rows in enumerate(rows_of_class):
                folds[rows] = generator(seed, FOLDS, c).permutation(len(rows)) % n_folds
        basis = GaussianBasis(self.centers_, sigmas)
        numerators = [
            fold_moments(basis, X[r], folds[r], n_folds, None if weights is None else weights[r])
            for r in rows_of_class
        ]
        denominator = fold_grams(basis, X, folds, n_folds, weights)
        if n_folds > 1:
            scores = ratio_scores(numerators, denominator, lams, nonnegative=False)
            total = np.tensordot(shares**2, scores, axes=1)
            best = divmod(int(np.argmin(total)), len(lams))
        self.sigma_, self.lam_ = float(sigmas[best[0]]), float(lams[best[1]])
        h = np.column_stack([numerator.total().mean[best[0]] for numerator in numerators])
        ratios = ridge_path(denominator.mean(best[0]), h, np.array([self.lam_]))[:, 0]
        self.coef_ = shares * ratios
        self._shares = shares

    def _draw_centers(self, rows_of_class: list[NDArray[np.int64]], seed: int) -> Ints:
        left = check_n_dense_centers(self.n_centers, sum(map(len, rows_of_class)))
        chosen = []
        smallest_first = sorted(enumerate(rows_of_class), key=lambda pair: len(pair[1]))
        for done, (c, rows) in enumerate(smallest_first):  # larger classes make up for small ones
            take = min(len(rows), -(-left // (len(smallest_first) - done)))
            chosen.append(rows[choose(seed, CENTERS, c, len(rows), take)])
            left -= take
        return np.sort(np.concatenate(chosen))

    def predict_proba(self, X: Any) -> Doubles:
        """Return the class probabilities of each row.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            Probabilities in the order of ``classes_``; each row sums to one.
        """
        check_is_fitted(self)
        X = check_new_rows(self, X)
        values = np.maximum(linear_model(X, self.centers_, self.sigma_, self.coef_), 0.0)
        # Far from all centers every value is zero; fall back to the class shares.
        values[values.sum(axis=1) == 0.0] = self._shares
        return values / values.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            Predicted classes.
        """
        most_probable = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[most_probable]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
