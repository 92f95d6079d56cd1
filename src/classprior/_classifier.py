"""The classifier that the prior makes possible: prior times density ratio."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from classprior._basis import Doubles, Rows, choose_rows
from classprior._density_ratio import DensityRatio
from classprior._messages import warn
from classprior._validation import check_labelled, check_new_rows, last_step
from classprior.priors import PenalizedL1Prior

_ROWS_LOOKED_AT = 2000  # to see whether any of them is called positive


class PUClassifier(ClassifierMixin, BaseEstimator):
    r"""Tell positives from negatives, learned from positive and unlabeled rows.

    .. math:: \hat p(y=1|x) = \min(1, \hat\pi\, \hat w(x)), \qquad
              \hat w(x) \approx \frac{p(x|y=1)}{p(x)}

    A row is called positive where :math:`\hat\pi\,\hat w(x) \ge 1/2`.

    Parameters
    ----------
    prior : float or estimator, optional
        The share of positives in the unlabeled rows, or an estimator that finds it
        (``prior_`` after ``fit``). By default ``PenalizedL1Prior``.
    ratio : estimator, optional
        What finds the density ratio: a ``DensityRatio``, or any scikit-learn classifier with
        a calibrated ``predict_proba``, whose probability g of being labelled gives the ratio
        :math:`\frac{n'}{n} \frac{g}{1 - g}`. By default ``DensityRatio``.
    pos_label : label, optional
        The label in y that marks known positives. By default 1 in {0, 1}, {-1, 1} and booleans,
        else the greater label, with a warning.
    random_state : int, RandomState instance or None, default=None
        Passed to the default estimators of prior and ratio.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    ratio_ : estimator
        The fitted estimator of the density ratio.
    classes_ : ndarray of shape (2,)
        The labels in y; among predictions, the one that marks unlabeled rows means negative.
    pos_label_ : label
        The one that marks positives.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has names that are all strings.

    See Also
    --------
    classprior.metrics : Error rate, precision and recall from positive and unlabeled rows.

    Notes
    -----
    Prior and ratio that are estimated from the same rows depend on each other, which can make a
    wrong prior classify better than the true one. To keep them apart, estimate the prior elsewhere
    and give it as a number.

    ``score`` compares with y, which marks labels, not classes: use ``classprior.metrics``.

    References
    ----------
    du Plessis, Niu and Sugiyama (2017), *Class-prior Estimation for Learning from Positive and
    Unlabeled Data*, Machine Learning 106, section 5.3.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import PUClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> model = PUClassifier(random_state=0).fit(X, y)
    >>> model.predict([[0.0, 0.0], [4.0, 4.0]])
    array([ True, False])
    """

    def __init__(
        self,
        *,
        prior: Any = None,
        ratio: Any = None,
        pos_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.prior = prior
        self.ratio = ratio
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the prior, unless it is given, and the density ratio.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            Known positives and unlabeled rows together.
        y : array-like of shape (n_rows,)
            Two labels, one for known positives and one for unlabeled rows.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        X, is_positive = check_labelled(self, X, y, self.pos_label)
        self.prior_ = self._estimate_prior(X, is_positive)
        ratio = DensityRatio(random_state=self.random_state) if self.ratio is None else self.ratio
        if not (_is_ratio(ratio) or hasattr(ratio, "predict_proba")):
            raise TypeError(
                f"Expected a DensityRatio or a classifier with predict_proba as ratio, got a "
                f"{type(ratio).__name__}."
            )
        self.ratio_ = _unlabelled_clone(ratio).fit(X, is_positive)
        self._odds = np.sum(~is_positive) / np.sum(is_positive)
        self._warn_of_a_flat_ratio(X[~is_positive])
        return self

    def _warn_of_a_flat_ratio(self, X_unlabeled: Rows) -> None:
        rows = choose_rows(X_unlabeled.shape[0], _ROWS_LOOKED_AT, np.random.RandomState(0))
        highest = float(np.max(self._posterior_of_rows(X_unlabeled[rows])))
        if highest < 0.5 < self.prior_ * len(rows):
            warn(
                f"No unlabeled row is called positive (the highest probability is {highest:.2f}), "
                f"although {self.prior_:.1%} are: either the classes overlap everywhere, or the "
                "density ratio does not see them. Scale the columns, or take a classifier as "
                "ratio, such as HistGradientBoostingClassifier()."
            )

    def _estimate_prior(self, X: Any, is_positive: NDArray[np.bool_]) -> float:
        if isinstance(self.prior, Real):
            return self._given_prior()
        estimator = self.prior
        if estimator is None:
            estimator = PenalizedL1Prior(random_state=self.random_state)
        if not hasattr(estimator, "fit"):
            raise TypeError(
                f"Expected prior to be a number or a prior estimator, got a "
                f"{type(estimator).__name__}."
            )
        return float(last_step(_unlabelled_clone(estimator).fit(X, is_positive)).prior_)

    def _given_prior(self) -> float:
        if not (isinstance(self.prior, Real) and 0.0 <= float(self.prior) <= 1.0):
            raise ValueError(f"Expected prior between 0 and 1, got {self.prior}.")
        return float(self.prior)

    def decision_function(self, X: Any) -> Doubles:
        """Return prior times ratio minus 1/2, with the sign that favours ``classes_[1]``.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        decision : ndarray of shape (n_rows,)
            Positive for ``classes_[1]``.
        """
        decision = self._posterior(X) - 0.5
        return decision if self.pos_label_ == self.classes_[1] else -decision

    def predict_proba(self, X: Any) -> Doubles:
        """Return the probability of both classes, in the order of ``classes_``.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, 2)
            From 0 to 1; where prior times ratio exceeds 1, 1.
        """
        p = np.clip(self._posterior(X), 0.0, 1.0)
        columns = [1.0 - p, p]
        return np.column_stack(columns if self.pos_label_ == self.classes_[1] else columns[::-1])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return ``pos_label_`` where prior times ratio is at least 1/2, else the other label.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            Of ``classes_``.
        """
        is_positive = self._posterior(X) >= 0.5
        return self.classes_[np.where(is_positive == (self.pos_label_ == self.classes_[1]), 1, 0)]

    def _posterior(self, X: Any) -> Doubles:
        check_is_fitted(self)
        return self._posterior_of_rows(check_new_rows(self, X))

    def _posterior_of_rows(self, X: Rows) -> Doubles:
        if _is_ratio(self.ratio_):
            return self.prior_ * self.ratio_.predict(X)
        # g = n p1 / (n p1 + n' p); one that is certain is taken as nearly so
        g = np.minimum(self.ratio_.predict_proba(X)[:, 1], 1.0 - np.finfo(np.float64).eps)
        return self.prior_ * self._odds * g / (1.0 - g)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        # On fully labelled data, which scikit-learn's checks use, no unlabeled row is positive.
        tags.classifier_tags.poor_score = True
        return tags


def _is_ratio(estimator: Any) -> bool:
    return isinstance(last_step(estimator), DensityRatio)


def _unlabelled_clone(estimator: Any) -> Any:
    """Return a clone that takes True as the label of positives, whatever the user's labels are."""
    copy = clone(estimator)
    last = last_step(copy)
    if "pos_label" in last.get_params():
        last.set_params(pos_label=None)
    return copy
