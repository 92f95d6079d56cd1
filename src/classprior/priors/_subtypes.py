"""An estimator for biased labels: the sum of the estimates of the positives' subtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._samples.samples import Samples
from classprior._scores.crossfit import (
    TOGETHER,
    Scores,
    check_classifiers,
    cross_fit_rounds,
    fit_models,
    rounded_log_odds,
)
from classprior._scores.intervals import (
    TailResult,
    mean_separation,
    purity_p_value,
    tail_interval,
)
from classprior._scores.limits import (
    Bounds,
    binomial_limits,
    bound_ranks,
    certified_bounds,
    exact_limits,
)
from classprior._scores.subtypes import (
    clusters_of_rows,
    important_columns,
    kinds_of_positives,
    sum_of_subtypes,
    tails_of_subtypes,
)
from classprior._scores.tails import ScoreTails, average, combine
from classprior._scores.typical import BIASED, typicality
from classprior.priors._tail import TailPrior

_CLUSTERS = (8, 16)  # if labels may be biased: a coarse division of the positives and a fine one
_FEWEST_TO_TEST = 1000  # with fewer known positives, the test often does not see a bias
_BOUND_CLUSTERS = 4  # fewer, since each adds to the bound


class SubtypePrior(TailPrior):
    r"""Share of positives in unlabeled rows if labels favor some kinds of positives.

    It assumes that every hidden subtype is among the labeled ones, in whatever proportion, and
    that each has a purely positive region. Other methods assume that known positives are typical
    of all positives, with the same mix of subtypes. If there are signs that they are not, the known
    positives are divided into clusters j, and all rows by the nearest cluster. With S(t) for the
    share of a sample that scores above t,

    .. math:: \hat\pi = \sum_j \min_t
              \frac{S_{\mathrm{unlabeled},\, j}(t)}{S_{\mathrm{positive}\, |\, j}(t)},

    where the numerator counts the unlabeled rows of part j among all unlabeled rows, and the
    denominator the positives of part j among its own. Each term is the estimate of
    :class:`AutoPrior` in one part.

    Parameters
    ----------
    n_clusters : int, optional
        Maximum number of clusters. Clusters with fewer than 30 positives are dissolved. By default,
        8 and 16 in turn if there are signs that known positives are not typical (see Notes);
        otherwise 1, which is the estimate of :class:`AutoPrior`.
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
    upper_bound_ : float
        Upper bound on the share in the population, certified for any number of rows if known
        positives of each kind are typical of their kind; 1 with weights or groups.
    upper_bound_asymptotic_ : float
        Asymptotic version of ``upper_bound_``; tighter, valid for large samples.
    bound_is_exact_ : bool
        Whether ``upper_bound_`` is certified: not with weights or groups.
    typicality_p_value_ : float or None
        P-value of the hypothesis that known positives are typical of all positives; None if it was
        not tested.
    extrapolated_, extrapolated_wide_, extrapolated_tail_ : float
        The share extrapolated to the end of the tail, as in :class:`AutoPrior`.
    purity_p_value_ : float
        P-value of the hypothesis that the tail of the estimate contains positives only.
    separation_ : float
        How far known positives stand out, from 0 to 1: the largest difference, over thresholds of a
        score, between the share of the known positives above it and that of the negatives that the
        estimate implies.
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
    classprior.sensitivity.label_bias_test : The test whether known positives are typical.
    classprior.sensitivity.label_bias_curve : How an estimate moves if they do.

    Notes
    -----
    **Number of clusters.** If negatives overlap with one cluster, its term is too high, while
    :class:`AutoPrior` needs only one purely positive region in all. So clusters are used only if

    - the test of :func:`classprior.sensitivity.label_bias_test` rejects at 1%,
    - or the shares of up to eight kinds, extrapolated to the purest positives of each, add up to
      more than the estimate without clusters,
    - or the sum over these kinds is above its interval, and there are fewer than 1,000 known
      positives, so that the test often does not see a bias.

    For this comparison, kinds are clusters beside the score: they do not differ in how far their
    positives are from the negatives, so that overlap hardly matters. If you know that labels are
    biased, set ``n_clusters``, for example to 8.

    **Clusters.** Columns are weighted by how much they tell known positives from unlabeled rows (in
    randomized trees), and k-means divides the known positives. (Kumar and Lambert, 2024, PeerJ
    Computer Science 10, cluster by the important columns of boosted trees.) There is one
    cross-fitting for all clusters: a score that separates known positives from unlabeled rows also
    does so within each part. Each round has clusters of its own, since no clustering matches the
    subtypes exactly.

    **Interval.** It is computed as that of :class:`AutoPrior`. If clusters are used although the
    test does not reject, it also contains the lower end of the interval without clusters.

    **Bound.** Classifiers and up to four clusters come from half of the folds. The other half is
    counted, with exact limits for each part, whose error probability is split over the parts; their
    upper bounds add up.

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
        n_clusters: int | None = None,
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
        classifiers = check_classifiers(self.classifiers, X)
        rounds = [
            scores
            for scores, _ in cross_fit_rounds(
                classifiers,
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
        columns = important_columns(X, is_positive, drawn.bins.seed_of_round(0)).values
        delta = 1.0 - self.confidence

        def estimated(*numbers: int) -> TailResult:
            divided = [
                _clusters(columns, is_positive, number, drawn.bins.seed_of_round(i))
                for i, number in zip(range(len(rounds)), cycle(numbers), strict=False)
            ]
            return _result(rounds, divided, drawn, self.n_resamples, delta)

        self.typicality_p_value_: float | None = None
        if self.n_clusters is not None:
            result = estimated(self.n_clusters)
        else:
            result = estimated(1)
            if self._may_be_biased(columns, is_positive, rounds, result, drawn):
                result = _allowing_for(result, estimated(*_CLUSTERS), self.typicality_p_value_)
        self._set_result(result, samples, drawn, rounds)
        self.n_fitted_ = drawn.sizes
        self.bound_is_exact_ = samples.units.are_alike
        self.upper_bound_ = self.upper_bound_asymptotic_ = 1.0
        if self.bound_is_exact_:
            bounds = self._bounds(X, is_positive, classifiers, samples, drawn, delta)
            self.upper_bound_, self.upper_bound_asymptotic_ = bounds

    def _may_be_biased(
        self,
        columns: Doubles,
        is_positive: Bools,
        rounds: list[Scores],
        result: TailResult,
        drawn: Samples,
    ) -> bool:
        """Whether a test rejects, or kinds of positives add up to more than the estimate."""
        scores = {k: np.mean([of_round[k] for of_round in rounds], axis=0) for k in rounds[0]}
        prior = float(result.estimate.prior)
        seeds = [drawn.bins.seed_of_round(i) for i in range(len(rounds))]
        if drawn.units.count_alike:
            test = typicality(columns, is_positive, scores, prior, seeds[0])
            self.typicality_p_value_ = test.p_value
            if test.p_value < BIASED:
                return True
        together = scores.get(TOGETHER, next(iter(scores.values())))
        divided = average(
            [
                sum_of_subtypes(
                    tails_of_subtypes(
                        of_round,
                        is_positive,
                        kinds_of_positives(columns, is_positive, together, seed),
                        weights=drawn.effective_weights,
                    )
                )
                for of_round, seed in zip(rounds, seeds, strict=True)
            ]
        )
        exceeds = drawn.sizes[0] < _FEWEST_TO_TEST and divided.prior > result.interval.high
        return bool(divided.extrapolated > prior or exceeds)

    def _bounds(
        self,
        X: Rows,
        is_positive: Bools,
        classifiers: dict[str, Any],
        samples: Samples,
        drawn: Samples,
        delta: float,
    ) -> Bounds:
        """Return the sum of the upper bounds of the subtypes.

        Classifiers and clusters come from one half of the rows, and the other half is counted. The
        error probability is split over the subtypes.
        """
        folds = np.concatenate(drawn.folds_of_rows(samples.folds(self.cv)))
        is_fitted = folds < -(-(int(folds.max()) + 1) // 2)
        seed = samples.bins.seed_of_round(0)
        models = fit_models(classifiers, X[is_fitted], is_positive[is_fitted], seed)
        counted = ~is_fitted
        scores = np.mean([rounded_log_odds(m, X[counted]) for m in models.values()], axis=0)
        columns = important_columns(X, is_positive, seed, is_fitted).values
        parts = _clusters(columns, is_positive, _BOUND_CLUSTERS, seed, is_fitted)[counted]
        n_parts = int(parts.max()) + 1
        is_positive = is_positive[counted]
        bounds = [
            _bounds_of_part(scores, is_positive, parts == part, delta / n_parts)
            for part in range(n_parts)
        ]
        return Bounds(*(min(1.0, float(total)) for total in np.sum(bounds, axis=0)))


def _clusters(
    columns: Doubles,
    is_positive: Bools,
    n_clusters: int,
    seed: int,
    fitted: Bools | slice = slice(None),
) -> Ints:
    """Return the subtype of each row, from clusters of the ``fitted`` positives."""
    if n_clusters == 1:
        return np.zeros(len(is_positive), dtype=np.int64)
    return clusters_of_rows(columns, is_positive, n_clusters, seed, fitted=fitted)


def _allowing_for(plain: TailResult, divided: TailResult, p_value: float | None) -> TailResult:
    """Return the estimate of several clusters, whose lower limits may also be those of one.

    Unless a test rejects it, negatives that overlap with some kinds may be all there is.
    """
    if p_value is not None and p_value < BIASED:
        return divided
    low, low_sample = plain.interval.low, plain.interval.low_sample
    interval = divided.interval
    return divided._replace(
        interval=interval._replace(
            low=min(interval.low, low), low_sample=min(interval.low_sample, low_sample)
        )
    )


def _bounds_of_part(scores: Doubles, is_positive: Bools, is_inside: Bools, delta: float) -> Bounds:
    """Return bounds on the share of unlabeled rows that are positive and inside the part."""
    positive = np.sort(scores[is_positive & is_inside])[::-1]
    unlabeled, m = scores[~is_positive & is_inside], int(np.sum(~is_positive))
    if len(positive) == 0:
        _, most = binomial_limits(len(unlabeled), m, delta)
        return Bounds(float(most), float(most))
    k = bound_ranks(len(positive))
    beyond = np.sum(unlabeled[:, None] >= positive[k - 1], axis=0)
    return certified_bounds(k, beyond, len(positive), m, delta)


def _result(
    rounds: Sequence[Scores],
    clusters: Sequence[Ints],
    drawn: Samples,
    n_resamples: int,
    delta: float,
) -> TailResult:
    """Return the mean estimate of several rounds, each with clusters of its own."""
    _, is_positive = drawn.stacked_rows()
    bins, (positive, unlabeled) = drawn.bins_of_rows, drawn.bins.n_rows
    tails = [
        tails_of_subtypes(
            scores,
            is_positive,
            of_rows,
            bins,
            (len(positive), len(unlabeled)),
            drawn.effective_weights,
        )
        for scores, of_rows in zip(rounds, clusters, strict=True)
    ]
    of_rounds = [sum_of_subtypes(of_round) for of_round in tails]
    weights = drawn.bins.weights(n_resamples)
    estimate = average(of_rounds)
    resampled = average([sum_of_subtypes(of_round, weights) for of_round in tails])
    exact = np.mean([_exact_limits(of_round, delta) for of_round in tails], axis=0)
    p_value = purity_p_value(estimate, *drawn.n_effective)
    # How far all known positives stand out: those of a part may look like its negatives.
    whole = [
        tails_of_subtypes(scores, is_positive, np.zeros(len(is_positive), dtype=np.int64))[0]
        for scores in rounds
    ]
    J = mean_separation(whole, min(1.0, float(estimate.prior)))
    interval = tail_interval(estimate, resampled, exact, drawn.n_effective, delta, p_value, J)
    if len(tails[0]) > 1:  # sums of minima are low, so upper ends are those of the exact limits
        interval = interval._replace(
            high=max(interval.high, min(1.0, exact[0][1])),
            high_sample=max(interval.high_sample, min(1.0, exact[1][1])),
        )
    return TailResult(estimate, resampled, of_rounds, interval, p_value, J)


def _exact_limits(tails: Sequence[Sequence[ScoreTails]], delta: float) -> Doubles:
    """Return the exact limits of the sum: those of the subtypes, added in quadrature.

    The first row is for the population, the second for the sample.
    """
    counts = [[tail.counts() for tail in of_subtype] for of_subtype in tails]
    deep = len(counts) == 1
    ratios = np.array([float(combine(of_subtype, deep=deep).ratio) for of_subtype in counts])
    limits = np.array([exact_limits(of_subtype, delta, deep=deep) for of_subtype in counts])
    distance = np.sqrt(np.sum((limits - ratios[:, None, None]) ** 2, axis=0))
    result: Doubles = ratios.sum() + distance * [-1.0, 1.0]
    return result
