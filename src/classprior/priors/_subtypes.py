"""An estimator for biased labels: the sum of the estimates of the positives' subtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from classprior._core.messages import progress
from classprior._core.types import Doubles
from classprior._data.parameters import check_confidence
from classprior._data.samples import Samples
from classprior._scores.crossfit import TOGETHER, Scores, cross_fit, rounded_log_odds, with_mean
from classprior._scores.diagnostics import is_at_one, still_falls
from classprior._scores.intervals import tail_interval
from classprior._scores.subtypes import subtypes_of_rows, tails_of_subtypes
from classprior._scores.tails import ScoreTails, TailEstimate, average, combine, exact_limits
from classprior.priors._auto import check_classifiers
from classprior.priors._base import BasePriorEstimator

_FEW_ROWS = 5000  # up to this size, more rounds are averaged, as in AutoPrior


class SubtypePrior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows if labels favor some kinds of positives.

    It assumes that every hidden subtype is among the labeled ones, in whatever proportion, and
    that each has a purely positive region. Other methods assume that known and hidden positives
    have the same mix of subtypes. The known positives are divided into clusters j, and all rows by
    the nearest cluster. With S(t) for the share of a sample that scores above t,

    .. math:: \hat\pi = \sum_j \min_t
              \frac{S_{\mathrm{unlabeled},\, j}(t)}{S_{\mathrm{positive}\, |\, j}(t)},

    where the numerator counts the unlabeled rows of part j among all unlabeled rows, and the
    denominator the positives of part j among its own. Each term is the estimate of
    :class:`AutoPrior` in one part.

    Parameters
    ----------
    n_clusters : int, default=8
        Maximum number of clusters. Clusters with fewer than 30 positives are dissolved.
    classifiers : mapping of str to classifier, optional
        Classifiers that score the rows. By default, those of :class:`AutoPrior`.
    n_repeats : int, optional
        Number of rounds, each with different folds and clusters; their estimates are averaged. By
        default, 5 for up to 5,000 rows and 2 for more.
    max_rows : int or None, default=20000
        Maximum number of rows of each sample, drawn at random. None uses all rows.
    confidence : float, default=0.95
        Confidence level of the interval.
    n_resamples : int, default=200
        Number of resamples for the interval.
    cv : int or array-like of int, default=5
        Number of folds, or the fold index of each row. For two samples, a pair of arrays.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans; otherwise the greater label, with a warning.
    n_jobs : int, optional
        Number of threads over classifiers and folds; -1 uses all cores.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds, the clusters, the resamples and the classifiers.
    verbose : int, default=0
        If positive, show a progress bar.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in the labeled and unlabeled rows together.
    label_frequency_ : float
        Share of all positives that are labeled, often called c.
    low_, high_ : float
        Confidence interval for the share in the population of the unlabeled rows.
    low_sample_, high_sample_ : float
        Confidence interval for the share in the unlabeled sample itself.
    extrapolated_, extrapolated_high_ : float
        The share extrapolated to the ends of the tails, and its 95% upper limit.
    is_upper_bound_ : bool
        Whether ``prior_`` is only an upper bound, since subtypes without a purely positive region
        were found.
    round_priors_ : ndarray of shape (n_repeats,)
        The estimate of each round.
    scores_ : dict of str to pair of ndarrays
        Cross-fitted log-odds of the positives and of the unlabeled rows for each classifier,
        averaged over rounds. The key "together" holds their mean over classifiers.
    mean_scores_ : pair of ndarrays
        Mean log-odds over all classifiers, for positives and for unlabeled rows.
    n_fitted_ : pair of int
        Numbers of positives and unlabeled rows that were used, at most ``max_rows`` each.
    classes_ : ndarray of shape (2,)
        The labels in y.
    pos_label_ : label
        The label that marks known positives.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names seen during ``fit``. Defined only if all column names of X are strings.

    See Also
    --------
    AutoPrior : The recommended estimator if labels are not biased; more accurate then.
    classprior.sensitivity.label_bias_test : Test whether labels favor some subtypes.
    classprior.sensitivity.label_bias_curve : How an estimate moves if they do.

    Notes
    -----
    The clusters are found by k-means on standardized columns. There is one cross-fitting for all
    of them: a score that separates known positives from unlabeled rows also does so within each
    part. Each round has clusters of its own, since no clustering matches the subtypes exactly.

    The price of the weaker assumption is a higher error if labels are not biased: negatives that
    overlap with one cluster raise the estimate, while :class:`AutoPrior` needs only one purely
    positive region in all. With one cluster, the two are equal.

    The interval is computed as that of :class:`AutoPrior`. It does not include how the estimate
    depends on the number of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import AutoPrior
    >>> from classprior.priors import SubtypePrior
    >>> rng = np.random.default_rng(0)
    >>> easy, hard, negative = rng.normal(0, 1, (3, 1500, 2)) + [[[0, 0]], [[0, 9]], [[9, 0]]]
    >>> known = np.vstack([easy[:360], hard[:40]])  # nine to one
    >>> pile = np.vstack([easy[360:510], hard[40:490], negative[:900]])  # one to three
    >>> round(AutoPrior(random_state=0).fit_samples(known, pile).prior_, 1)
    0.1
    >>> round(SubtypePrior(random_state=0).fit_samples(known, pile).prior_, 1)
    0.4
    """

    def __init__(
        self,
        *,
        n_clusters: int = 8,
        classifiers: Mapping[str, Any] | None = None,
        n_repeats: int | None = None,
        max_rows: int | None = 20_000,
        confidence: float = 0.95,
        n_resamples: int = 200,
        cv: Any = 5,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.classifiers = classifiers
        self.n_repeats = n_repeats
        self.max_rows = max_rows
        self.confidence = confidence
        self.n_resamples = n_resamples
        self.cv = cv
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, samples: Samples) -> None:
        check_confidence(self.confidence)
        least = {"n_clusters": 1, "n_repeats": 1, "max_rows": 2, "n_resamples": 20}
        for name, least_value in least.items():
            if getattr(self, name) is not None:
                check_scalar(getattr(self, name), name, Integral, min_val=least_value)
        drawn = samples.subsample(self.max_rows)
        X, is_positive = drawn.stacked_rows()
        bins, n_bins = drawn.bins_of_rows, tuple(map(len, drawn.bins.n_rows))
        rounds = self._cross_fit(samples, drawn)
        tails = [
            tails_of_subtypes(
                scores,
                is_positive,
                subtypes_of_rows(X, is_positive, self.n_clusters, drawn.bins.seed_of_round(number)),
                bins,
                (n_bins[0], n_bins[1]),
                drawn.effective_weights,
            )
            for number, scores in enumerate(rounds)
        ]
        estimates = [_sum_of_subtypes(of_round) for of_round in tails]
        weights = drawn.bins.weights(self.n_resamples)
        resampled = average([_sum_of_subtypes(of_round, weights) for of_round in tails])
        n_unlabeled = drawn.n_effective[1]
        self._set_estimate(average(estimates), resampled, tails, samples.masses, n_unlabeled)
        self.round_priors_ = np.array([float(e.prior) for e in estimates])
        means = {name: np.mean([r[name] for r in rounds], axis=0) for name in rounds[0]}
        self.scores_ = {
            name: (mean[is_positive], mean[~is_positive]) for name, mean in means.items()
        }
        self.mean_scores_ = self.scores_.get(TOGETHER, next(iter(self.scores_.values())))
        self.n_fitted_ = drawn.sizes

    def _cross_fit(self, samples: Samples, drawn: Samples) -> list[Scores]:
        """Return the scores of the drawn rows in each round, as AutoPrior computes them."""
        X, is_positive = drawn.stacked_rows()
        classifiers = check_classifiers(self.classifiers, X)
        n_rounds = self.n_repeats or (5 if len(is_positive) <= _FEW_ROWS else 2)
        found = []
        for number in progress(range(n_rounds), n_rounds, "Cross-fitting", self.verbose):
            folds = np.concatenate(drawn.folds_of_rows(samples.folds(self.cv, number)))
            fitted = cross_fit(
                classifiers,
                X,
                is_positive,
                folds,
                samples.bins.seed_of_round(number),
                weights=drawn.stacked_weights,
                score=rounded_log_odds,
                n_jobs=self.n_jobs,
            )
            found.append(with_mean({one.name: one.scores for one in fitted}))
        return found

    def _set_estimate(
        self,
        estimate: TailEstimate,
        resampled: TailEstimate,
        tails: list[list[list[ScoreTails]]],
        masses: tuple[float, float],
        n_unlabeled: float,
    ) -> None:
        """Set the prior, its limits, and whether it is only an upper bound."""
        delta = 1.0 - self.confidence
        self._set_prior(min(1.0, float(estimate.prior)), masses)
        exact = np.mean([_exact_limits(of_round, delta) for of_round in tails], axis=0)
        self.low_, self.high_, self.low_sample_, self.high_sample_ = tail_interval(
            estimate, resampled, exact, n_unlabeled, delta
        )
        self.extrapolated_ = float(np.clip(estimate.extrapolated, 0.0, 1.0))
        high_end = np.quantile(resampled.extrapolated, 0.95)
        self.extrapolated_high_ = float(np.clip(high_end, 0.0, 1.0))
        self.is_upper_bound_ = still_falls(self) or is_at_one(self)


def _sum_of_subtypes(
    tails: Sequence[Sequence[ScoreTails]], weights: tuple[Doubles, Doubles] | None = None
) -> TailEstimate:
    """Return the sum of the estimates of the subtypes."""
    found = []
    # Each of several subtypes is a small part of the unlabeled rows, but not for being rare.
    deep = len(tails) == 1
    for of_subtype in tails:
        estimate = combine([tail.counts() for tail in of_subtype], deep=deep)
        if weights is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                counts = [tail.counts(weights) for tail in of_subtype]
                drawn = combine(counts, resampled=True, deep=deep)
            # A resample without any positives of the subtype says nothing about it.
            is_known = np.any(weights[0] @ of_subtype[0].positive > 0.0, axis=-1)
            estimate = TailEstimate(
                np.where(is_known, drawn.prior, estimate.prior),
                np.where(is_known, drawn.extrapolated, estimate.extrapolated),
                np.where(is_known[:, None], drawn.of_scores, estimate.of_scores),
            )
        found.append(estimate)
    return TailEstimate(
        np.sum([e.prior for e in found], axis=0),
        np.sum([e.extrapolated for e in found], axis=0),
        np.sum([e.of_scores for e in found], axis=0),
    )


def _exact_limits(tails: Sequence[Sequence[ScoreTails]], delta: float) -> Doubles:
    """Return the exact limits of the sum: those of the subtypes, added in quadrature.

    The first row is for the population, the second for the sample.
    """
    counts = [[tail.counts() for tail in of_subtype] for of_subtype in tails]
    deep = len(counts) == 1
    priors = np.array([float(combine(of_subtype, deep=deep).prior) for of_subtype in counts])
    limits = np.array([exact_limits(of_subtype, delta, deep=deep) for of_subtype in counts])
    distance = np.sqrt(np.sum((limits - priors[:, None, None]) ** 2, axis=0))
    result: Doubles = priors.sum() + distance * [-1.0, 1.0]
    return result
