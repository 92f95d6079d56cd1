"""BBE: the best bin of a classifier's top scores."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from classprior._core.types import Doubles
from classprior._samples.samples import Samples
from classprior._scores.crossfit import check_classifier, out_of_fold_scores
from classprior._tables.parameters import check_share
from classprior.priors._base import UnweightedPriorEstimator


class BestBinPrior(UnweightedPriorEstimator):
    r"""Share of positives in unlabeled rows by best bin estimation (BBE).

    A classifier is trained to separate known positives from unlabeled rows. With
    :math:`q_p(c)` and :math:`q_u(c)` the shares of the n positives and of the n' unlabeled rows
    that score at least c, the share of positives is at most :math:`q_u(c) / q_p(c)` for every c.
    The threshold is the one with the smallest upper confidence limit of this ratio:

    .. math:: \hat c = \arg\min_c \left[ \frac{q_u(c)}{q_p(c)} + \frac{1 + \gamma}{q_p(c)} \left(
              \sqrt{\frac{\log(4 / \delta)}{2 n'}} + \sqrt{\frac{\log(4 / \delta)}{2 n}}
              \right) \right],
              \qquad \hat\pi = \frac{q_u(\hat c)}{q_p(\hat c)}

    (Garg et al., 2021, algorithm 1). Scores are cross-fitted: each row is scored by a model fitted
    to other folds.

    Parameters
    ----------
    delta : float, default=0.1
        Error probability of the confidence limit. Early versions of the authors' program have
        log(1 / delta) in place of log(4 / delta); ``delta=0.4`` gives their limits.
    gamma : float, default=0.01
        Slack that multiplies the confidence term, at least 0.
    classifier : object, optional
        A scikit-learn classifier with ``predict_proba``; only the order of its scores matters. By
        default, the mean log-odds of the classifiers of :class:`classprior.AutoPrior`.
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
        Share of all positives that are labeled, often called c.
    threshold_ : float
        The chosen threshold, as log-odds of being labeled.
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
    classprior.AutoPrior : Averages over thresholds, classifiers and folds, with an interval.

    Notes
    -----
    BBE assumes that the top scores belong to positives only. If they do not, it overestimates.
    With few rows the confidence term dominates, the chosen tail is wide and includes negatives,
    and the estimate is too high.

    References
    ----------
    Garg, Wu, Smola, Balakrishnan and Lipton (2021), *Mixture Proportion Estimation and PU
    Learning: A Modern Approach*, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior.priors import BestBinPrior
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> round(BestBinPrior(random_state=0).fit(X, y).prior_, 1)
    0.3
    """

    def __init__(
        self,
        *,
        delta: float = 0.1,
        gamma: float = 0.01,
        classifier: Any = None,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        neg_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.delta = delta
        self.gamma = gamma
        self.classifier = classifier
        self.cv = cv
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.random_state = random_state

    def _solve(self, samples: Samples) -> None:
        check_share(self.delta, "delta")
        check_scalar(self.gamma, "gamma", Real, min_val=0.0)
        classifier = check_classifier(self.classifier)
        scores = out_of_fold_scores(samples.loaded(), classifier, self.cv)
        prior, self.threshold_ = best_bin(*scores, self.delta, self.gamma)
        self._set_prior(prior, samples.sizes)


def best_bin(
    positive: Doubles, unlabeled: Doubles, delta: float, gamma: float
) -> tuple[float, float]:
    """Return the ratio of tails with the smallest upper limit, and its threshold."""
    # Between two scores of positives, the threshold at the upper one has the smallest ratio.
    thresholds = np.unique(positive)
    q_p, q_u = (
        (len(scores) - np.searchsorted(np.sort(scores), thresholds)) / len(scores)
        for scores in (positive, unlabeled)
    )
    term = sum(np.sqrt(np.log(4.0 / delta) / (2.0 * len(part))) for part in (positive, unlabeled))
    best = np.argmin(q_u / q_p + (1.0 + gamma) / q_p * term)
    return float(q_u[best] / q_p[best]), float(thresholds[best])
