"""DEDPUL: the ratio of two densities of classifier scores."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter1d, median_filter
from scipy.special import expit

from classprior._core.types import Doubles
from classprior._samples.samples import Samples
from classprior._scores.crossfit import check_classifier, out_of_fold_scores
from classprior._tables.parameters import check_grid
from classprior.priors._base import UnweightedPriorEstimator

_POINTS_PER_BANDWIDTH = 32  # with these, a density is accurate to about 0.1%
_SMALLEST_BANDWIDTH = 1e-4  # relative to the range of the scores; limits the number of points
_HIGHEST_RATIO = 50.0
_FIRST_WINDOW = 11  # rows of the median that removes spikes
_STEP = 0.001  # of the search for a kink
_TOLERANCE = 0.05  # at the kink, prior and mean posterior differ by less
_NO_BEND = 1e-12  # second differences below this are rounding errors


class DEDPULPrior(UnweightedPriorEstimator):
    r"""Share of positives in unlabeled rows from densities of classifier scores (DEDPUL).

    A classifier is trained to separate known positives from unlabeled rows. With
    :math:`r = f_p / f_u` the ratio of the densities of its scores in the two samples, at the
    scores of the n' unlabeled rows, the posterior probability of being positive is
    :math:`\min(1, \pi r_i)`. The estimate is the prior that equals the mean posterior:

    .. math:: \hat\pi = \frac{1}{n'} \sum_{i=1}^{n'} \min(1, \hat\pi r_i),

    the fixed point of EM started at 1. It is computed exactly, from the sorted ratios. If there is
    none but 0, which is so if the mean of r is below 1, the estimate is the prior at which the
    difference of the two sides bends most, among priors with a difference below 0.05, or
    :math:`1 / \max r_i` if it does not bend (Ivanov, 2020).

    Parameters
    ----------
    bandwidths : pair of float, default=(0.1, 0.05)
        Bandwidths of the Gaussian kernel density estimates of the scores of positives and of
        unlabeled rows, relative to their standard deviations.
    monotone : {"top", "all"}, default="top"
        Whether the ratio is made monotone only above the midpoint of the mean probabilities of
        both samples, or in the end over all scores. The latter gives higher estimates, up to 1 if
        the ratio is high by chance at low scores.
    classifier : object, optional
        A scikit-learn classifier with ``predict_proba``. By default, the mean log-odds of the
        classifiers of :class:`classprior.AutoPrior`.
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
    posteriors_ : ndarray of shape (n_unlabeled,)
        Probability of being positive of each unlabeled row.
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
    BestBinPrior : Ratio of tails instead of densities.
    classprior.PUClassifier : Predicts which rows are positive.

    Notes
    -----
    Scores are cross-fitted log-odds: each row is scored by a model fitted to other folds. Along
    the sorted scores, the ratio is cut at 50, smoothed by a median over 11 rows, replaced by its
    running maximum above the midpoint, and smoothed by a median over a tenth of the unlabeled
    rows. The author's program makes the ratio nearly monotone over all scores in a further step;
    ``monotone="all"``, a running maximum, comes close to it on average.

    DEDPUL assumes that the highest ratios belong to positives only; otherwise it overestimates. The
    bandwidths are fixed, so with few positives (fewer than about a hundred) the ratio is noisy.

    References
    ----------
    Ivanov (2020), *DEDPUL: Difference-of-Estimated-Densities-based Positive-Unlabeled Learning*,
    ICMLA.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior.priors import DEDPULPrior
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> estimator = DEDPULPrior(random_state=0).fit(X, y)
    >>> round(estimator.prior_, 1), estimator.posteriors_.shape
    (0.3, (1000,))
    """

    def __init__(
        self,
        *,
        bandwidths: ArrayLike = (0.1, 0.05),
        monotone: Literal["top", "all"] = "top",
        classifier: Any = None,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        neg_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.bandwidths = bandwidths
        self.monotone = monotone
        self.classifier = classifier
        self.cv = cv
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.random_state = random_state

    def _solve(self, samples: Samples) -> None:
        bandwidths = check_grid(self.bandwidths, "bandwidths")
        if bandwidths is None or len(bandwidths) != 2:
            raise ValueError(
                f"Expected two bandwidths, one for each sample, got {self.bandwidths!r}."
            )
        if self.monotone not in ("top", "all"):
            raise ValueError(f"Expected monotone to be 'top' or 'all', got {self.monotone!r}.")
        classifier = check_classifier(self.classifier)
        scores = out_of_fold_scores(samples.loaded(), classifier, self.cv)
        ratio = smoothed_ratio(*scores, bandwidths, over_all=self.monotone == "all")
        prior = prior_of_ratio(ratio)
        self.posteriors_ = np.minimum(1.0, prior * ratio)
        self._set_prior(prior, samples.sizes)


def smoothed_ratio(
    positive: Doubles, unlabeled: Doubles, bandwidths: Doubles, *, over_all: bool
) -> Doubles:
    """Return the ratio of the densities at each unlabeled score."""
    order = np.argsort(unlabeled, kind="stable")
    at = unlabeled[order]
    f_p, f_u = densities((positive, unlabeled), bandwidths, at)
    ratio = median_filter(np.minimum(f_p / f_u, _HIGHEST_RATIO), _FIRST_WINDOW, mode="nearest")
    balance = np.log(len(unlabeled) / len(positive))
    middle = np.mean([expit(part + balance).mean() for part in (positive, unlabeled)])
    first = np.searchsorted(expit(at + balance), middle)
    ratio[first:] = np.maximum.accumulate(ratio[first:])
    ratio = median_filter(ratio, 2 * (len(at) // 20) + 1, mode="nearest")
    found = np.empty_like(ratio)
    found[order] = np.maximum.accumulate(ratio) if over_all else ratio
    return found


def densities(
    samples: tuple[Doubles, Doubles], bandwidths: Doubles, at: Doubles
) -> tuple[Doubles, Doubles]:
    """Return Gaussian kernel density estimates of both samples; only their ratio is scaled."""
    low, high = (f([f(part) for part in samples]) for f in (np.min, np.max))
    if low == high:
        return np.ones_like(at), np.ones_like(at)

    def density(scores: Doubles, bandwidth: float) -> Doubles:
        width = max(bandwidth * scores.std(ddof=1), _SMALLEST_BANDWIDTH * (high - low))
        step = width / _POINTS_PER_BANDWIDTH
        n_points = int((high - low) / step) + 2
        # Each score is shared between the two points around it.
        position = (scores - low) / step
        left = position.astype(np.int64)
        mass = np.bincount(left, left + 1.0 - position, n_points)
        mass += np.bincount(left + 1, position - left, n_points)
        smooth = gaussian_filter1d(mass, _POINTS_PER_BANDWIDTH, mode="constant", truncate=8.0)
        return np.interp((at - low) / step, np.arange(n_points), smooth / (len(scores) * step))

    return density(samples[0], bandwidths[0]), density(samples[1], bandwidths[1])


def prior_of_ratio(ratio: Doubles) -> float:
    """Return the prior that equals the mean posterior, or the one at the sharpest bend."""
    # h(t) = mean(min(t, r)) is linear between the ratios. The prior 1 / t has the mean posterior
    # h(t) / t, so that it is a fixed point if h(t) = 1.
    t = np.sort(ratio)
    n, below = len(t), np.cumsum(t) - t
    h = (below + np.arange(n, 0, -1) * t) / n
    if h[-1] >= 1.0:
        return float(1.0 / np.interp(1.0, np.r_[0.0, h], np.r_[0.0, t]))
    priors = np.arange(1, round(1.0 / _STEP) + 1)[::-1] * _STEP
    excess = priors * (1.0 - np.interp(1.0 / priors, np.r_[0.0, t], np.r_[0.0, h]))
    bend = np.where(excess[1:-1] < _TOLERANCE, np.diff(excess, 2), 0.0)
    if bend.max() > _NO_BEND:
        return float(priors[1:-1][np.argmax(bend)])
    return min(1.0, 1.0 / float(t[-1])) if t[-1] > 0.0 else 0.0
