"""An estimator for biased labels: the sum of the estimates of the positives' subtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from classprior._core.types import Doubles
from classprior._samples.samples import Samples
from classprior._scores.crossfit import check_classifiers, cross_fit_rounds
from classprior._scores.intervals import TailResult, purity_p_value, tail_interval
from classprior._scores.subtypes import subtypes_of_rows, tails_of_subtypes
from classprior._scores.tails import ScoreTails, TailEstimate, average, combine, exact_limits
from classprior.priors._tail import TailPrior


class SubtypePrior(TailPrior):
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
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out.
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
        Share of positives in all rows together, labeled and unlabeled.
    label_frequency_ : float
        Share of all positives that are labeled, often called c.
    low_, high_ : float
        Confidence interval for the share in the population of the unlabeled rows.
    low_sample_, high_sample_ : float
        Confidence interval for the share in the unlabeled sample itself.
    extrapolated_, extrapolated_wide_, extrapolated_tail_ : float
        The share extrapolated to the end of the tail, as in :class:`AutoPrior`.
    purity_p_value_ : float
        P-value of the hypothesis that the tail of the estimate contains positives only.
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

    takes_checkpoint = False  # only the drawn rows are counted

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
        neg_label: Any = None,
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
        self.neg_label = neg_label
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, samples: Samples) -> None:
        self._check_parameters()
        drawn = samples.subsample(self.max_rows)
        X, is_positive = drawn.stacked_rows()
        rounds = [
            scores
            for scores, _ in cross_fit_rounds(
                check_classifiers(self.classifiers, X),
                X,
                is_positive,
                samples,
                drawn,
                cv=self.cv,
                n_repeats=self.n_repeats,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
        ]
        bins, (positive, unlabeled) = drawn.bins_of_rows, drawn.bins.n_rows
        tails = [
            tails_of_subtypes(
                scores,
                is_positive,
                subtypes_of_rows(X, is_positive, self.n_clusters, drawn.bins.seed_of_round(number)),
                bins,
                (len(positive), len(unlabeled)),
                drawn.effective_weights,
            )
            for number, scores in enumerate(rounds)
        ]
        of_rounds = [_sum_of_subtypes(of_round) for of_round in tails]
        weights = drawn.bins.weights(self.n_resamples)
        estimate = average(of_rounds)
        resampled = average([_sum_of_subtypes(of_round, weights) for of_round in tails])
        delta = 1.0 - self.confidence
        exact = np.mean([_exact_limits(of_round, delta) for of_round in tails], axis=0)
        p_value = purity_p_value(estimate, *drawn.n_effective)
        interval = tail_interval(estimate, resampled, exact, drawn.n_effective, delta, p_value)
        result = TailResult(estimate, resampled, of_rounds, interval, p_value)
        self._set_result(result, samples, drawn, rounds)
        self.n_fitted_ = drawn.sizes


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
            estimate = replace(
                estimate,
                prior=np.where(is_known, drawn.prior, estimate.prior),
                extrapolated=np.where(is_known, drawn.extrapolated, estimate.extrapolated),
                of_scores=np.where(is_known[:, None], drawn.of_scores, estimate.of_scores),
            )
        found.append(estimate)

    def each(name: str) -> Doubles:
        return np.array([getattr(estimate, name) for estimate in found])

    summed = ("prior", "ratio", "extrapolated", "of_scores", "purest", "widest")
    return TailEstimate(
        **{name: each(name).sum(axis=0) for name in summed},
        **{name: each(name).mean(axis=0) for name in ("window", "share")},
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
