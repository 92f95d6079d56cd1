"""The SB baseline: the slope at the right end of an ROC-like curve."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.neighbors import KernelDensity

from classprior._core.types import Bools, Doubles
from classprior._samples.samples import Samples
from classprior._samples.sums import draw_centers
from classprior._scores.crossfit import Score, out_of_fold_scores
from classprior._tables.parameters import check_n_dense_centers, check_share
from classprior.density_ratio import DensityRatio, fit_ratio
from classprior.priors._base import BasePriorEstimator, inside_unit_interval

Scores = Literal["ratio", "kde"]


class ScottBlanchardPrior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows from the right end of an ROC-like curve (SB).

    A row is accepted if its estimated ratio p(x|y=1) / p(x) is at least a threshold. With
    :math:`\alpha` the share of positives rejected and R the share of unlabeled rows accepted,

    .. math:: \pi = -\left.\frac{dR}{d\alpha}\right|_{\alpha \to 1^-}

    (Blanchard, Lee and Scott, 2010; equation (13) of du Plessis, Niu and Sugiyama, 2017). The
    derivative is estimated by a line through (1, 0), fitted by least squares to the right end of
    the curve. Scores are cross-fitted: each row is scored by a model fitted to other folds.

    Parameters
    ----------
    tail_fraction : float, default=0.35
        Share of the curve used: the line is fitted to the thresholds that accept at most this
        share of the positives. Small values increase the variance; large values include more
        of the class overlap and increase the bias.
    scores : {"ratio", "kde"}, default="ratio"
        Score of the rows: the least-squares density ratio, or the ratio of two Gaussian kernel
        density estimates, which the paper reports as worse. The latter uses Scott's bandwidth,
        with columns scaled by their standard deviation in the unlabeled rows, and requires dense
        rows.
    sigmas : float or array-like, optional
        Candidate bandwidths of the density ratio. By default, 11 values from 0.1 to 3.2 times the
        median distance between unlabeled rows and centers.
    lams : float or array-like, optional
        Candidate regularization parameters of the density ratio. By default, 9 values from 0.001
        to 10.
    n_centers : int or None, default=200
        Maximum number of centers of the density ratio, drawn at random from the positives. None
        uses all positives, up to 1,000.
    cv : int or array-like of int, default=5
        Number of folds, or the fold index of each row. For two samples, a pair of arrays.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of folds, centers and the rows that set the default bandwidths.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in all rows together, labeled and unlabeled.
    label_frequency_ : float
        Share of all positives that are labeled, often called c.
    rejected_, accepted_ : ndarrays of shape (n_positive + 1,)
        Share of positives rejected and share of unlabeled rows accepted, at decreasing
        thresholds.
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
    classprior.plotting.RejectionDisplay : Plot the curve and the line.
    DensityRatio : Estimate the density ratio by least squares.

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
        tail_fraction: float = 0.35,
        scores: Scores = "ratio",
        sigmas: ArrayLike | None = None,
        lams: ArrayLike | None = None,
        n_centers: int | None = 200,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        neg_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.tail_fraction = tail_fraction
        self.scores = scores
        self.sigmas = sigmas
        self.lams = lams
        self.n_centers = n_centers
        self.cv = cv
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.random_state = random_state

    def _solve(self, samples: Samples) -> None:
        check_share(self.tail_fraction, "tail_fraction")
        samples = samples.subsample(None)
        model, score = self._model(samples)
        positive, unlabeled = out_of_fold_scores(samples, model, self.cv, score)
        order = np.argsort(-positive, kind="stable")
        w_positive, w_unlabeled = samples.units.weights or map(np.ones, samples.sizes)
        w_positive = w_positive[order]
        rejected, accepted = _rejection_curve(positive[order], unlabeled, w_positive, w_unlabeled)
        x, R = 1.0 - rejected, accepted
        end = (x > 0.0) & (x <= max(self.tail_fraction + 1e-12, x[1]))  # at least one threshold
        w = np.r_[0.0, w_positive][end]
        slope = float(w * x[end] @ R[end] / (w * x[end] @ x[end]))
        because = "The scores do not separate positives from other rows."
        self._set_prior(inside_unit_interval(slope, because), samples.masses)
        self.rejected_, self.accepted_ = rejected, accepted

    def _model(self, samples: Samples) -> tuple[Any, Score]:
        """Return the model that scores the rows, and its scoring function."""
        if self.scores == "kde":
            if sparse.issparse(samples.rows[0]):
                raise TypeError(
                    "scores='kde' does not support sparse rows. Use scores='ratio' or dense rows."
                )
            return _KernelDensityRatio(), _KernelDensityRatio.predict
        if self.scores != "ratio":
            raise ValueError(f"Expected scores to be 'ratio' or 'kde', got {self.scores!r}.")
        n_centers = check_n_dense_centers(self.n_centers, samples.sizes[0])
        # Sigma and lambda are selected once, on all rows: two numbers reveal almost nothing about
        # any single row.
        whole = fit_ratio(
            samples,
            draw_centers(samples, n_centers, of_positives=True),
            sigmas=self.sigmas,
            lams=self.lams,
            cv=self.cv,
            nonnegative=True,
        )
        model = DensityRatio(sigmas=whole.sigma, lams=whole.lam, n_centers=n_centers)
        return model, DensityRatio.predict


def _rejection_curve(
    positive: Doubles, unlabeled: Doubles, w_positive: Doubles, w_unlabeled: Doubles
) -> tuple[Doubles, Doubles]:
    """Return the rejected and accepted shares at infinity and at each positive's score."""

    def share_above(scores: Doubles, weights: Doubles) -> Doubles:
        """Return the share that scores at least as high as each positive; ties count together."""
        order = np.argsort(-scores, kind="stable")
        above = np.searchsorted(-scores[order], -positive, side="right")
        total = np.r_[0.0, np.cumsum(weights[order])]
        return total[above] / total[-1]

    rejected = 1.0 - share_above(positive, w_positive)
    return np.r_[1.0, rejected], np.r_[0.0, share_above(unlabeled, w_unlabeled)]


class _KernelDensityRatio(BaseEstimator):
    """Log-ratio of two kernel density estimates."""

    def fit(self, X: Doubles, y: Bools, sample_weight: Doubles | None = None) -> Self:
        """Fit both densities to columns scaled by their standard deviation."""
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        mean = np.average(X[~y], axis=0, weights=w[~y])
        scale = np.sqrt(np.average((X[~y] - mean) ** 2, axis=0, weights=w[~y]))
        self.scale_ = np.where(scale == 0.0, 1.0, scale)
        self.densities_ = tuple(
            KernelDensity(bandwidth="scott").fit(
                X[rows] / self.scale_,
                sample_weight=None if sample_weight is None else sample_weight[rows],
            )
            for rows in (y, ~y)
        )
        return self

    def predict(self, X: Doubles) -> Doubles:
        """Return the log-ratio at each row."""
        positive, unlabeled = self.densities_
        return positive.score_samples(X / self.scale_) - unlabeled.score_samples(X / self.scale_)
