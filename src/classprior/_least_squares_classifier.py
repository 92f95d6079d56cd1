"""The least-squares probabilistic classifier, the paper's choice inside EN."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from classprior._basis import Doubles, GaussianBasis, Rows, bandwidth_ladder, choose_rows
from classprior._cross_validation import ratio_scores
from classprior._density_ratio import LAMS, linear_model
from classprior._gram import fold_grams, ridge_path
from classprior._moments import fold_moments
from classprior._parameters import check_grid, check_n_dense_centers, check_number_of_folds
from classprior._validation import check_new_rows, check_rows_and_labels


class LeastSquaresClassifier(ClassifierMixin, BaseEstimator):
    r"""Probabilities of classes by least squares in a Gaussian basis.

    .. math:: p(y|x) \propto \max(0, \alpha_y^\top \varphi(x)), \qquad
              \alpha_y = (H + \lambda I)^{-1} h_y

    with H the mean of :math:`\varphi(x)\varphi(x)^\top` over all rows and :math:`h_y` the sum of
    :math:`\varphi(x)` over the rows of class y, divided by the number of all rows. Bandwidth and
    regularisation minimise the cross-validated
    :math:`\sum_y \frac12 \alpha_y^\top H \alpha_y - h_y^\top \alpha_y`.

    Parameters
    ----------
    sigmas : float or array-like, optional
        Bandwidths. By default 11, from 0.1 to 3.2 times the median distance between rows and
        centres.
    lams : float or array-like, optional
        Regularisations. By default 9, from 0.001 to 10.
    n_centers : int or None, default=200
        At most so many rows are centres, drawn at random, as many from each class as far as it
        has them; time grows with the cube. None for all rows, up to 1,000.
    cv : int, default=5
        Number of folds.
    random_state : int, RandomState instance or None, default=None
        Draws centres, folds and the rows from which the default bandwidths are set.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    sigma_, lam_ : float
        The chosen bandwidth and regularisation.
    centers_ : ndarray or CSR matrix of shape (n_centers, n_features)
        Centres of the basis.
    coef_ : ndarray of shape (n_centers, n_classes)
        Coefficients alpha, a column a class.

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

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the coefficients of every class.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Their classes.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        X, y = check_rows_and_labels(self, X, y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        shares = np.bincount(labels) / len(labels)
        if len(shares) < 2:
            raise ValueError(
                f"Expected at least two classes in y, got 1 class: {self.classes_[0]!r}."
            )
        rng = check_random_state(self.random_state)
        rows_of_class = [np.flatnonzero(labels == c) for c in range(len(shares))]
        self.centers_ = self._draw_centers(X, rows_of_class, rng)
        sigmas, lams = check_grid(self.sigmas, "sigmas"), check_grid(self.lams, "lams")
        sigmas = bandwidth_ladder(X, self.centers_, rng) if sigmas is None else sigmas
        lams = LAMS if lams is None else lams

        # The ratio p(x|y)/p(x) times p(y) is p(y|x): a density ratio a class, over all rows.
        best = 0, 0
        if len(sigmas) * len(lams) > 1:
            n_folds = check_number_of_folds(self.cv, [len(rows) for rows in rows_of_class], "class")
            folds = np.empty(len(labels), dtype=int)
            for rows in rows_of_class:
                folds[rows] = rng.permutation(len(rows)) % n_folds
            basis = GaussianBasis(self.centers_, sigmas)
            scores = ratio_scores(
                [fold_moments(basis, X[rows], folds[rows]) for rows in rows_of_class],
                fold_grams(basis, X, folds),
                lams,
                nonnegative=False,
            )
            total = np.tensordot(shares**2, scores, axes=1)
            best = divmod(int(np.argmin(total)), len(lams))
        self.sigma_, self.lam_ = float(sigmas[best[0]]), float(lams[best[1]])
        basis = GaussianBasis(self.centers_, np.array([self.sigma_]))
        one_fold = np.zeros(len(labels), dtype=int)
        H = fold_grams(basis, X, one_fold).mean(np.array([True]), 0)
        h = [fold_moments(basis, X[rows], one_fold[rows])[0].mean[0] for rows in rows_of_class]
        ratios = ridge_path(H, np.column_stack(h), np.array([self.lam_]))[:, 0]
        self.coef_ = shares * ratios
        self._shares = shares
        return self

    def _draw_centers(
        self, X: Rows, rows_of_class: list[NDArray[np.int64]], rng: np.random.RandomState
    ) -> Rows:
        left = check_n_dense_centers(self.n_centers, X.shape[0])
        chosen = []
        smallest_first = sorted(rows_of_class, key=len)
        for done, rows in enumerate(smallest_first):  # what a small class lacks, larger ones fill
            take = min(len(rows), -(-left // (len(smallest_first) - done)))
            chosen.append(rows[choose_rows(len(rows), take, rng)])
            left -= take
        return X[np.sort(np.concatenate(chosen))]

    def predict_proba(self, X: Any) -> Doubles:
        """Return the probability of every class at each row.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            Rows sum to one.
        """
        check_is_fitted(self)
        X = check_new_rows(self, X)
        values = np.maximum(linear_model(X, self.centers_, self.sigma_, self.coef_), 0.0)
        # Far from all centres every value is zero: the shares of the classes are all we know.
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
            Classes.
        """
        most_probable = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[most_probable]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
