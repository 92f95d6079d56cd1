"""ReCPE: regrouping, a wrapper around any prior estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from classprior._core.basis import stacked
from classprior._core.types import Ints
from classprior._samples.samples import Samples
from classprior._samples.units import Units
from classprior._scores.crossfit import check_classifier, out_of_fold_scores
from classprior._tables.parameters import check_share, seed_of
from classprior.priors._base import BasePriorEstimator, UnweightedPriorEstimator
from classprior.priors._kernel_mean import KernelMeanPrior


class ReCPEPrior(UnweightedPriorEstimator):
    r"""Share of positives in unlabeled rows by regrouping (ReCPE).

    If the classes overlap everywhere, prior estimators overestimate. Regrouping calls a small part
    of the negatives positive, those that look least like the known positives, so that the new
    positive class has a region of its own. The unlabeled rows A with the lowest scores of a
    classifier are copied to the positives, and any estimator is fitted to the result:

    .. math:: \hat\pi = \hat\pi_{\text{estimator}}(X_p \cup A,\; X_u)

    (Yao et al., 2022).

    Parameters
    ----------
    estimator : prior estimator, optional
        The estimator that is fitted to the regrouped samples. By default,
        :class:`KernelMeanPrior`, as KM2.
    fraction : float, default=0.1
        Share of the unlabeled rows that are copied, rounded down, but at least one row.
    classifier : object, optional
        A scikit-learn classifier with ``predict_proba``; only the order of its scores matters. By
        default, the mean log-odds of the classifiers of :class:`classprior.AutoPrior`.
    cv : int or array-like of int, default=5
        Number of folds for the scores, or the fold index of each row. For two samples, a pair of
        arrays. The estimator has a ``cv`` of its own.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds, for the classifier, and for the estimator, unless it has its own.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in all rows together, labeled and unlabeled.
    label_frequency_ : float
        Share of all positives that are labeled, often called c.
    estimator_ : prior estimator
        The estimator fitted to the regrouped samples.
    copied_ : ndarray of int
        Indices of the copied rows among the unlabeled rows.
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
    classprior.AutoPrior : Says when its estimate is only an upper bound.

    Notes
    -----
    A row and its copy are kept in the same fold.

    With n positives, n' unlabeled rows and k copies, regrouping dilutes the positives: where an
    estimator without bias finds :math:`\pi`, it now finds :math:`\pi (n + k) / n`, which is too
    high. The copies are a region in which the ratio of the two samples is :math:`(n + k) / n'`; an
    estimator that found the smallest ratio of all regions would not exceed it. So ReCPE lowers
    estimates that are far too high, and raises those that are right. Use it with about as many
    positives as unlabeled rows.

    References
    ----------
    Yao, Liu, Han, Gong, Niu, Sugiyama and Tao (2022), *Rethinking Class-Prior Estimation for
    Positive-Unlabeled Learning*, ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior.priors import BestBinPrior, ReCPEPrior
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (1300, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(2000) < 1000  # 300 of the 1000 unlabeled rows are positive
    >>> regrouped = ReCPEPrior(estimator=BestBinPrior(), random_state=0).fit(X, y)
    >>> round(regrouped.prior_, 1), len(regrouped.copied_)
    (0.3, 100)
    """

    def __init__(
        self,
        *,
        estimator: Any = None,
        fraction: float = 0.1,
        classifier: Any = None,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        neg_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.fraction = fraction
        self.classifier = classifier
        self.cv = cv
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.random_state = random_state

    def _solve(self, samples: Samples) -> None:
        check_share(self.fraction, "fraction")
        estimator = KernelMeanPrior() if self.estimator is None else clone(self.estimator)
        if not isinstance(estimator, BasePriorEstimator):
            raise TypeError(
                f"Expected estimator to be a prior estimator, got a {type(estimator).__name__}."
            )
        classifier = check_classifier(self.classifier)
        samples = samples.loaded()
        _, scores = out_of_fold_scores(samples, classifier, self.cv)
        n_copied = max(1, int(self.fraction * samples.sizes[1] + 1e-9))
        copied = np.sort(np.argsort(scores, kind="stable")[:n_copied])
        regrouped = _regrouped(samples, copied)
        if estimator.random_state is not None:
            regrouped = regrouped.with_seed(seed_of(estimator.random_state))
        labels = {"pos_label", "neg_label"} & estimator.get_params().keys()
        estimator.set_params(**dict.fromkeys(labels)).fit_opened(regrouped)
        self.estimator_, self.copied_ = estimator, copied
        self._set_prior(estimator.prior_, samples.sizes)


def _regrouped(samples: Samples, copied: Ints) -> Samples:
    """Return the samples with some unlabeled rows among the positives as well."""
    X_positive, X_unlabeled = samples.rows
    n, m = samples.sizes
    # A common group keeps a row and its copy in the same fold.
    positive, unlabeled = samples.units.groups or (
        np.arange(n, dtype=np.uint64),
        np.arange(n, n + m, dtype=np.uint64),
    )
    return Samples.of_rows(
        stacked(X_positive, X_unlabeled[copied]),
        X_unlabeled,
        samples.seed,
        units=Units(groups=(np.concatenate([positive, unlabeled[copied]]), unlabeled)),
        n_jobs=samples.n_jobs,
    )
