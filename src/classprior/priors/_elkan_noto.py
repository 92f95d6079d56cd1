"""The EN baseline: prior estimation with a classifier of labeled and unlabeled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from classprior._samples.samples import Samples
from classprior._scores.crossfit import check_classifier, log_odds, out_of_fold_scores
from classprior.density_ratio import LeastSquaresClassifier
from classprior.priors._base import BasePriorEstimator, inside_unit_interval


class ElkanNotoPrior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows by the method of Elkan and Noto (EN).

    A classifier is trained to separate labeled from unlabeled rows,
    :math:`g(x) \approx p(s=1|x)`. Its mean over held-out positives estimates
    :math:`c = p(s=1|y=1)`, so that, with n positives and n' unlabeled rows,

    .. math:: \hat\pi = \frac{n (1 - c)}{c\, n'}

    (Elkan and Noto, 2008, adapted to two separate samples). The estimate is too high if the
    classes overlap, and the bias grows with the size of the labeled sample relative to the
    unlabeled one. Included for comparison.

    Parameters
    ----------
    classifier : object, optional
        A scikit-learn classifier with a calibrated ``predict_proba`` (no class weights). By
        default, the least-squares probabilistic classifier used in the paper.
    cv : int or array-like of int, default=5
        Number of folds, or the fold index of each row. For two samples, a pair of arrays.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds and for the classifier.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in all rows together, labeled and unlabeled.
    label_frequency_ : float
        Share of all positives that are labeled, c.
    classes_ : ndarray of shape (2,)
        The labels in y, without ``neg_label``.
    pos_label_ : label
        The label that marks known positives.
    n_negative_ : int
        Number of confirmed negatives, which were left out.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names seen during ``fit``. Defined only if all column names of X are strings.

    See Also
    --------
    PenalizedL1Prior : Does not overestimate if the classes overlap.

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
        neg_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.classifier = classifier
        self.cv = cv
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.random_state = random_state

    def _solve(self, samples: Samples) -> None:
        classifier = check_classifier(self.classifier)
        classifier = LeastSquaresClassifier() if classifier is None else classifier
        of_bins = samples.folds(self.cv)
        samples = samples.subsample(None)
        scores, _ = out_of_fold_scores(samples, classifier, self.cv, log_odds)
        # Correct the log-odds from the labeled odds in the training folds to those in all rows.
        n, m = (total.sum() for total in samples.totals)
        n_train, m_train = (
            total.sum() - np.bincount(ids, total)
            for ids, total in zip(of_bins, samples.totals, strict=True)
        )
        shift = np.log((n / m) / (n_train / m_train))
        labeled = expit(scores + shift[samples.folds_of_rows(of_bins)[0]])
        c = float(np.average(labeled, weights=samples.weights(0)))
        prior = inside_unit_interval(
            n * (1.0 - c) / (c * m) if c > 0.0 else np.inf,
            "The classifier predicts too low a probability of being labeled for the held-out "
            "positives.",
        )
        self._set_prior(prior, samples.masses)
