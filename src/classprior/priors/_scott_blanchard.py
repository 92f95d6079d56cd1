"""Baseline SB: the slope at the right end of the curve of rejected positives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.neighbors import KernelDensity
from sklearn.utils import check_random_state

from classprior._basis import Doubles, Ints, Rows, choose_rows
from classprior._cross_validation import deal_folds
from classprior._density_ratio import fit_ratio, linear_model, solve_ratio
from classprior._parameters import check_folds, check_n_dense_centers, check_share
from classprior._samples import MemorySamples
from classprior._validation import check_samples
from classprior.priors._base import BasePriorEstimator, PriorResult, inside_unit_interval

Scores = Literal["ratio", "kde"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RejectionCurve(PriorResult):
    """An estimated prior and the curve at whose right end it is the slope.

    Parameters
    ----------
    prior : float
        Share of positives in the unlabeled rows.
    n_positive, n_unlabeled : int
        Rows in the two samples.
    rejected : array of shape (n_positive + 1,)
        Share of positives rejected, falling from 1 as the threshold falls.
    accepted : array of shape (n_positive + 1,)
        Share of unlabeled rows accepted at the same threshold.
    """

    rejected: Doubles
    accepted: Doubles


def scott_blanchard_prior(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    share: float = 0.35,
    scores: Scores = "ratio",
    sigmas: ArrayLike | None = None,
    lams: ArrayLike | None = None,
    n_centers: int | None = 200,
    cv: int | tuple[ArrayLike, ArrayLike] = 5,
    random_state: int | np.random.RandomState | None = None,
) -> RejectionCurve:
    r"""Estimate the share of positives as the slope at the right end of an ROC-like curve (SB).

    Rows are accepted where an estimate of p(x|y=1)/p(x) exceeds a threshold. With
    :math:`\alpha` the share of positives rejected and R the share of unlabeled rows accepted,

    .. math:: \pi = -\frac{dR}{d\alpha}\Big|_{\alpha \to 1^-}.

    The slope is that of a line through (1, 0), fitted by least squares to the right end of the
    curve. Scores are cross-fitted: no row is scored by a ratio that has seen it.

    Parameters
    ----------
    X_positive, X_unlabeled : array-likes, data frames or CSR matrices
        Known positives, and rows that may be positive or negative.
    share : float, default=0.35
        The line is fitted to the thresholds that accept at most this share of the positives.
        Smaller is noisier, larger reaches into the overlap.
    scores : {"ratio", "kde"}, default="ratio"
        Least-squares density ratio, or the ratio of two kernel density estimates (Gaussian, with
        Scott's bandwidth in units of the unlabeled columns' standard deviations), which the paper
        reports as worse. The latter takes dense rows only.
    sigmas : float or array-like, optional
        Bandwidths of the density ratio. By default 11, from 0.1 to 3.2 times the median distance
        between unlabeled rows and centres.
    lams : float or array-like, optional
        Regularisations of the density ratio. By default 9, from 0.001 to 10.
    n_centers : int or None, default=200
        At most so many positives are centres of the density ratio. None for all, up to 1,000.
    cv : int or pair of array-likes of int, default=5
        Number of folds, or the folds of the positives and of the unlabeled rows.
    random_state : int, RandomState instance or None, default=None
        Draws folds, centres and the rows from which the default bandwidths are set.

    Returns
    -------
    curve : RejectionCurve
        The estimate, ``curve.prior``, and the curve.

    See Also
    --------
    ScottBlanchardPrior : The same as a scikit-learn estimator.

    References
    ----------
    Blanchard, Lee and Scott (2010), *Semi-Supervised Novelty Detection*, Journal of Machine
    Learning Research 11.

    Examples
    --------
    >>> from classprior import scott_blanchard_prior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> X_positive, X_unlabeled = make_overlapping_uniforms(
    ...     overlap=0.25, prior=0.7, n_positive=1000, n_unlabeled=1000, random_state=0
    ... )
    >>> round(scott_blanchard_prior(X_positive, X_unlabeled, random_state=0).prior, 1)
    0.7
    """
    estimator = ScottBlanchardPrior(
        share=share,
        scores=scores,
        sigmas=sigmas,
        lams=lams,
        n_centers=n_centers,
        random_state=random_state,
    )
    return estimator._estimate(*check_samples(X_positive, X_unlabeled), cv)


class ScottBlanchardPrior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows from the right end of an ROC-like curve (SB).

    ``scott_blanchard_prior`` has the formula, ``plotting.RejectionDisplay`` the picture.

    Parameters
    ----------
    share : float, default=0.35
        The line is fitted to the thresholds that accept at most this share of the positives.
        Smaller is noisier, larger reaches into the overlap.
    scores : {"ratio", "kde"}, default="ratio"
        Least-squares density ratio, or the ratio of two kernel density estimates (Gaussian, with
        Scott's bandwidth in units of the unlabeled columns' standard deviations), which the paper
        reports as worse. The latter takes dense rows only.
    sigmas : float or array-like, optional
        Bandwidths of the density ratio. By default 11, from 0.1 to 3.2 times the median distance
        between unlabeled rows and centres.
    lams : float or array-like, optional
        Regularisations of the density ratio. By default 9, from 0.001 to 10.
    n_centers : int or None, default=200
        At most so many positives are centres of the density ratio. None for all, up to 1,000.
    cv : int or array-like of int of shape (n_rows,), default=5
        Number of folds, or the fold of every row.
    pos_label : label, optional
        The label in y that marks known positives. By default 1 in {0, 1}, {-1, 1} and booleans,
        else the greater label, with a warning.
    random_state : int, RandomState instance or None, default=None
        Draws folds, centres and the rows from which the default bandwidths are set.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in labelled and unlabeled rows together.
    label_frequency_ : float
        Labelled share of all positives, often called c.
    rejected_, accepted_ : ndarrays of shape (n_positive + 1,)
        Share of positives rejected and of unlabeled rows accepted, as the threshold falls.
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
    scott_blanchard_prior : The same for two samples.

    References
    ----------
    Blanchard, Lee and Scott (2010), *Semi-Supervised Novelty Detection*, Journal of Machine
    Learning Research 11.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import ScottBlanchardPrior
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> round(ScottBlanchardPrior(random_state=0).fit(X, y).prior_, 1)
    0.3
    """

    def __init__(
        self,
        *,
        share: float = 0.35,
        scores: Scores = "ratio",
        sigmas: ArrayLike | None = None,
        lams: ArrayLike | None = None,
        n_centers: int | None = 200,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.share = share
        self.scores = scores
        self.sigmas = sigmas
        self.lams = lams
        self.n_centers = n_centers
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def _estimate(self, X_positive: Rows, X_unlabeled: Rows, cv: Any) -> RejectionCurve:
        check_share(self.share, "share")
        rng = check_random_state(self.random_state)
        sizes = X_positive.shape[0], X_unlabeled.shape[0]
        folds = deal_folds(check_folds(cv, sizes), sizes, rng)
        if self.scores == "ratio":
            held_out = _ratio_scores(
                X_positive,
                X_unlabeled,
                folds,
                self.sigmas,
                self.lams,
                check_n_dense_centers(self.n_centers, sum(sizes)),
                rng,
            )
        elif self.scores == "kde":
            held_out = _density_scores(X_positive, X_unlabeled, folds)
        else:
            raise ValueError(f"Expected scores to be 'ratio' or 'kde', got {self.scores!r}.")
        rejected, accepted = _rejection_curve(*held_out)
        x, R = 1.0 - rejected, accepted
        end = (x > 0.0) & (x <= max(self.share + 1e-12, x[1]))  # at least the first threshold
        slope = float(x[end] @ R[end] / (x[end] @ x[end]))
        return RejectionCurve(
            prior=inside_unit_interval(slope, "The scores do not tell positives from other rows."),
            n_positive=sizes[0],
            n_unlabeled=sizes[1],
            rejected=rejected,
            accepted=accepted,
        )


def _rejection_curve(positive: Doubles, unlabeled: Doubles) -> tuple[Doubles, Doubles]:
    """Return both shares with the threshold at infinity, then at every positive's score."""
    thresholds = np.sort(positive)[::-1]
    n_accepted = np.searchsorted(np.sort(-unlabeled), -thresholds, side="right")
    # Equal scores are accepted together.
    n_positive = np.searchsorted(-thresholds, -thresholds, side="right")
    rejected = 1.0 - n_positive / len(positive)
    return np.r_[1.0, rejected], np.r_[0.0, n_accepted / len(unlabeled)]


def _ratio_scores(
    X_positive: Rows,
    X_unlabeled: Rows,
    folds: tuple[Ints, Ints],
    sigmas: ArrayLike | None,
    lams: ArrayLike | None,
    n_centers: int | None,
    rng: np.random.RandomState,
) -> tuple[Doubles, Doubles]:
    """Score every row by a density ratio fitted to the other folds."""

    def centers(X: Rows) -> Rows:
        return X[choose_rows(X.shape[0], n_centers or X.shape[0], rng)]

    # Bandwidth and regularisation are chosen once, on all rows: two numbers tell next to nothing
    # about a single one.
    whole = fit_ratio(
        MemorySamples(X_positive, X_unlabeled, folds, rng),
        centers(X_positive),
        sigmas=sigmas,
        lams=lams,
        nonnegative=True,
    )
    positive, unlabeled = np.empty(len(folds[0])), np.empty(len(folds[1]))
    for fold in range(folds[0].max() + 1):
        train = X_positive[folds[0] != fold], X_unlabeled[folds[1] != fold]
        fit = solve_ratio(
            MemorySamples(*train), centers(train[0]), whole.sigma, whole.lam, nonnegative=True
        )
        for X, ids, scores in (
            (X_positive, folds[0], positive),
            (X_unlabeled, folds[1], unlabeled),
        ):
            held_out = ids == fold
            scores[held_out] = linear_model(X[held_out], fit.centers, fit.sigma, fit.coef)
    return positive, unlabeled


def _density_scores(
    X_positive: Rows, X_unlabeled: Rows, folds: tuple[Ints, Ints]
) -> tuple[Doubles, Doubles]:
    """Score every row by the log ratio of two kernel density estimates of the other folds."""
    if sparse.issparse(X_positive):
        raise TypeError(
            "Expected dense rows for scores='kde', got a sparse matrix. Take scores='ratio'."
        )
    scale = X_unlabeled.std(axis=0)
    scale[scale == 0.0] = 1.0
    X_positive, X_unlabeled = X_positive / scale, X_unlabeled / scale  # "scott" knows no units
    positive, unlabeled = np.empty(len(folds[0])), np.empty(len(folds[1]))
    for fold in range(folds[0].max() + 1):
        p1, p = (
            KernelDensity(bandwidth="scott").fit(X[ids != fold])
            for X, ids in zip((X_positive, X_unlabeled), folds, strict=True)
        )
        for X, ids, scores in (
            (X_positive, folds[0], positive),
            (X_unlabeled, folds[1], unlabeled),
        ):
            held_out = X[ids == fold]
            scores[ids == fold] = p1.score_samples(held_out) - p.score_samples(held_out)
    return positive, unlabeled
