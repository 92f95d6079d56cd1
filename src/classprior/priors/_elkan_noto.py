"""Baseline EN: the labelled share of all positives, from a classifier of labelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state

from classprior._basis import Rows, stacked
from classprior._cross_validation import deal_folds
from classprior._least_squares_classifier import LeastSquaresClassifier
from classprior._parameters import check_folds
from classprior._validation import check_samples
from classprior.priors._base import BasePriorEstimator, PriorResult, inside_unit_interval


def elkan_noto_prior(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    classifier: Any = None,
    cv: int | tuple[ArrayLike, ArrayLike] = 5,
    random_state: int | np.random.RandomState | None = None,
) -> PriorResult:
    r"""Estimate the share of positives in an unlabeled sample as Elkan and Noto do (EN).

    A classifier learns to tell labelled from unlabeled rows, :math:`g(x) \approx p(s=1|x)`. Its
    mean over held-out positives estimates :math:`c = p(s=1|y=1)`, and

    .. math:: \hat\pi = \frac{n (1 - c)}{c\, n'}.

    Over-estimates wherever the classes overlap, the more the larger the labelled sample is beside
    the unlabeled one; it is here to be compared with.

    Parameters
    ----------
    X_positive, X_unlabeled : array-likes, data frames or CSR matrices
        Known positives, and rows that may be positive or negative.
    classifier : object, optional
        A scikit-learn classifier whose ``predict_proba`` is calibrated (no class weights). By
        default the least-squares probabilistic classifier that the paper uses.
    cv : int or pair of array-likes of int, default=5
        Number of folds, or the folds of the positives and of the unlabeled rows.
    random_state : int, RandomState instance or None, default=None
        Draws folds, and centres of the default classifier.

    Returns
    -------
    result : PriorResult
        The estimate, ``result.prior``.

    See Also
    --------
    ElkanNotoPrior : The same as a scikit-learn estimator.

    References
    ----------
    Elkan and Noto (2008), *Learning Classifiers from Only Positive and Unlabeled Data*, KDD.

    Examples
    --------
    >>> from classprior import elkan_noto_prior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> X_positive, X_unlabeled = make_overlapping_uniforms(
    ...     overlap=0.75, prior=0.7, n_positive=1000, n_unlabeled=1000, random_state=0
    ... )
    >>> round(elkan_noto_prior(X_positive, X_unlabeled, random_state=0).prior, 1)
    0.9
    """
    estimator = ElkanNotoPrior(classifier=classifier, random_state=random_state)
    return estimator._estimate(*check_samples(X_positive, X_unlabeled), cv)


class ElkanNotoPrior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows as Elkan and Noto estimate it (EN).

    Over-estimates wherever the classes overlap; it is here to be compared with.
    ``elkan_noto_prior`` has the formula.

    Parameters
    ----------
    classifier : object, optional
        A scikit-learn classifier whose ``predict_proba`` is calibrated (no class weights). By
        default the least-squares probabilistic classifier that the paper uses.
    cv : int or array-like of int of shape (n_rows,), default=5
        Number of folds, or the fold of every row.
    pos_label : label, optional
        The label in y that marks known positives. By default 1 in {0, 1}, {-1, 1} and booleans,
        else the greater label, with a warning.
    random_state : int, RandomState instance or None, default=None
        Draws folds, and centres of the default classifier.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in labelled and unlabeled rows together.
    label_frequency_ : float
        Labelled share of all positives, c.
    classes_ : ndarray of shape (2,)
        The labels in y.
    pos_label_ : label
        The one that marks known positives.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has names that are all strings.

    See Also
    --------
    elkan_noto_prior : The same for two samples.
    PenalizedL1Prior : Does not over-estimate under overlap.

    References
    ----------
    Elkan and Noto (2008), *Learning Classifiers from Only Positive and Unlabeled Data*, KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from classprior import ElkanNotoPrior
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> round(ElkanNotoPrior(classifier=LogisticRegression(), random_state=0).fit(X, y).prior_, 1)
    0.3
    """

    def __init__(
        self,
        *,
        classifier: Any = None,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.classifier = classifier
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def _estimate(self, X_positive: Rows, X_unlabeled: Rows, cv: Any) -> PriorResult:
        rng = check_random_state(self.random_state)
        sizes = X_positive.shape[0], X_unlabeled.shape[0]
        folds = deal_folds(check_folds(cv, sizes), sizes, rng)
        classifier = self.classifier
        if classifier is None:
            classifier = LeastSquaresClassifier(random_state=rng.randint(2**31))
        if not hasattr(classifier, "predict_proba"):
            raise TypeError(
                f"Expected a classifier with predict_proba, got a {type(classifier).__name__}. Try "
                "scikit-learn's LogisticRegression, or CalibratedClassifierCV around yours."
            )
        g = np.empty(sizes[0])
        for fold in range(folds[0].max() + 1):
            train = [
                X[ids != fold] for X, ids in zip((X_positive, X_unlabeled), folds, strict=True)
            ]
            labels = np.repeat([1, 0], [part.shape[0] for part in train])
            fitted = clone(classifier).fit(stacked(*train), labels)
            held_out = folds[0] == fold
            # The classifier knows its training folds' odds of being labelled, not those of all.
            odds_of_all = sizes[0] / sizes[1] / (train[0].shape[0] / train[1].shape[0])
            p = fitted.predict_proba(X_positive[held_out])[:, 1]
            g[held_out] = odds_of_all * p / (odds_of_all * p + 1.0 - p)
        c = g.mean()
        prior = inside_unit_interval(
            float(sizes[0] * (1.0 - c) / (c * sizes[1])) if c > 0.0 else np.inf,
            "The classifier gives held-out positives too low a probability of being labelled.",
        )
        return PriorResult(prior=prior, n_positive=sizes[0], n_unlabeled=sizes[1])
