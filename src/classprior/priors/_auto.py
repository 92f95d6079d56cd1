"""The recommended estimator: the smallest tail ratios of cross-fitted scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from classprior._core.types import Bools, Rows
from classprior._samples.samples import Samples
from classprior._scores.counting import Round, Tally
from classprior._scores.crossfit import (
    TOGETHER,
    Scorers,
    check_classifiers,
    cross_fit_rounds,
    fit_models,
)
from classprior._scores.held_out import HeldOut
from classprior._scores.negatives import KindScores
from classprior._scores.tails import tail_thresholds
from classprior.priors._tail import TailPrior


class AutoPrior(TailPrior):
    r"""Share of positives in unlabeled rows, with a confidence interval (recommended).

    For any score and any threshold t, let S(t) be the share of a sample that scores above t. Then

    .. math:: S_{\mathrm{unlabeled}}(t) = \pi S_{\mathrm{positive}}(t)
              + (1 - \pi) S_{\mathrm{negative}}(t)
              \quad\Longrightarrow\quad
              \pi \le \frac{S_{\mathrm{unlabeled}}(t)}{S_{\mathrm{positive}}(t)}.

    The estimate is a smoothed minimum of this ratio over thresholds and over the cross-fitted
    scores of several classifiers.

    Parameters
    ----------
    classifiers : mapping of str to classifier, optional
        Classifiers that score the rows. By default, logistic regression, logistic regression on
        a kernel approximation, and boosted trees, unless the rows are sparse or have more than
        5,000 columns.
    n_repeats : int, optional
        Number of rounds of cross-fitting, each with different folds; their estimates are
        averaged. By default, 5 for up to 5,000 rows and 2 for more, where folds matter less.
    max_rows : int or None, default=20000
        Maximum number of rows of each sample that the classifiers are fitted to, drawn at random;
        all rows are scored and counted. None fits them to all rows.
    confidence : float, default=0.95
        Confidence level of the interval and the bound.
    n_resamples : int, default=200
        Number of resamples for the interval.
    max_weight : float or pair of float, optional
        The most that a row can weigh, in the population; with groups, the most that the rows of a
        group can weigh together, or without weights, their number. A pair is for known positives
        and unlabeled rows. With weights or groups, the bound is certified only if it is given.
    cv : int or array-like of int, default=5
        Number of folds, or the fold index of each row. For two samples, a pair of arrays.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out, and
        ``estimate_prior`` checks the estimate with them.
    n_jobs : int, optional
        Number of threads over classifiers and folds; -1 uses all cores.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds, the resamples and the classifiers.
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
        Certified upper bound on the share in the population, valid for any number of independent
        rows or groups.
    upper_bound_asymptotic_ : float
        Asymptotic version of ``upper_bound_``; tighter, valid for large samples.
    bound_is_exact_ : bool
        Whether ``upper_bound_`` is certified. With weights or groups, it is only if ``max_weight``
        is given; otherwise it is asymptotic, too.
    extrapolated_ : float
        The share extrapolated to the end of the tail.
    extrapolated_wide_ : float
        The same from 70% of the positives.
    extrapolated_tail_ : float
        The same within the tail on which the estimate is based. It falls below ``prior_`` if even
        this tail contains negatives.
    extrapolation_window_ : float
        Share of the positives from which ``extrapolated_`` is extrapolated.
    purity_p_value_ : float
        P-value of the hypothesis that this tail contains positives only.
    separation_ : float
        How far known positives stand out, from 0 to 1: the largest difference, over thresholds of a
        score, between the share of the known positives above it and that of the negatives that the
        estimate implies.
    is_upper_bound_ : bool
        Whether ``prior_`` is only an upper bound: no purely positive region was found, or known
        positives and unlabeled rows cannot be told apart.
    round_priors_ : ndarray of shape (n_repeats,)
        The estimate of each round of cross-fitting.
    classifiers_ : dict of str to classifier
        The classifiers that were cross-fitted, themselves not fitted.
    classifier_priors_ : dict of str to float
        The estimate of each classifier alone.
    scores_ : dict of str to pair of ndarrays
        Cross-fitted log-odds of the positives and of the unlabeled rows for each classifier,
        averaged over rounds. The key "together" holds their mean over classifiers.
    mean_scores_ : pair of ndarrays
        Mean log-odds over all classifiers, for positives and for unlabeled rows.
    n_fitted_ : pair of int
        Numbers of positives and unlabeled rows that the classifiers were fitted to, at most
        ``max_rows`` each.
    segments_ : dict of segment to SegmentEstimate
        The estimate for each segment. Defined only if there are segments.
    kind_scores_ : tuple of three ndarrays, or None
        Scores of known positives and of unlabeled rows that the classifiers of the bound have not
        seen, and of confirmed negatives; None without confirmed negatives.
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
    estimate_prior : Estimate the prior from two samples, with diagnostics.
    PenalizedL1Prior : Estimate the prior by penalized L1 matching, as in the paper.

    Notes
    -----
    **Estimate.** Tails with at least 25% of the positives are used, or, if the ratio of that tail
    is below 25%, with at least that share of the positives: the rarer positives are, the smaller
    are the tails in which they outnumber negatives. The minimum of many noisy ratios is biased low,
    so soft minima are taken: each ratio is weighted by how many standard errors its upper limit
    (the ratio plus one standard error) lies above the smallest upper limit, to the power of a
    sharpness of 2, 1 or 1/2. The variance due to the positives counts twice, because the
    classifiers learn the noise of the sample that is counted. This is done first over the tails of
    each classifier, then over classifiers: a classifier that cannot separate the classes would
    spoil an average, but not a minimum. The mean log-odds of all classifiers serve as one more
    score. The three soft minima, :math:`f_2 < f_1 < f_{1/2}`, yield the estimate

    .. math:: \hat\pi = f_2 + 3\,(f_1 - f_2) - 4\,(f_{1/2} - f_1).

    If only noise separates them, the corrections cancel. If negatives overlap with positives, flat
    minima include larger and less pure tails, the second difference is larger than the first, and
    the estimate is lower than all of them, by at most one standard error. The coefficients were
    fitted to simulated samples. The estimates of all rounds of cross-fitting are averaged.

    **Interval.** Bins of rows are resampled with their scores, and the tails are chosen again in
    each resample, with errors that include those of resampling. Let s be the standard deviation of
    the estimate over resamples, and z the quantile of the normal distribution (1.96 at 95%).
    ``high_`` is the smaller of :math:`\hat\pi \exp(1.2\,z\,s / \hat\pi)`, where the factor 1.2 is
    for the classifiers, which are not refitted, and an exact limit (Clopper-Pearson and beta) in
    the chosen tails, which matters if positives are few. ``low_`` is a percentile of the share
    extrapolated linearly to the end of the tail, from 70% of the positives, or fewer if the share
    is below 25%, or an exact limit if it is lower; it assumes that the negatives thin out there at
    least linearly. Every lower limit needs such an assumption, since negatives that look exactly
    like positives cannot be told from them. Where nothing suggests that there are negatives in the
    tail of the estimate (p-value above 0.3), ``low_`` is at least :math:`\hat\pi - 2 z s`.
    Percentiles with fewer than five resamples beyond them are extrapolated in proportion to normal
    quantiles, so that more confidence always gives a wider interval. For the sample, the variance
    of drawing it is removed.

    **Bound.** ``upper_bound_`` makes no assumption about the classes, but needs independent rows
    or groups.
    The classifiers are fitted to half of the folds, and tails are counted on the other half, with
    exact (Clopper-Pearson and beta) limits whose error probability is split over six tails. With
    more than ``max_rows`` positives, a quarter of them set the thresholds and are not counted.
    ``upper_bound_asymptotic_`` adds the errors of the two samples in quadrature, which is valid for
    large samples.

    **Weights.** Rows are counted with their weights, and the noise is that of
    :math:`(\sum_i w_i)^2 / \sum_i w_i^2` rows. Rows of weight 0 have no influence. For the bound,
    each row is kept with the probability :math:`w_i / w_{\max}`, so that the rows that are kept
    count alike and are independent. This needs the largest weight of the population,
    ``max_weight``. If the largest weight of the sample takes its place, rare rows that weigh much
    may be missed, so that the bound is not certified, but asymptotic.

    **Groups.** Rows of a group stay in one fold and are resampled together. The bound then needs
    independent groups instead of independent rows: its limits are found by betting on the groups
    (Waudby-Smith and Ramdas, 2024). They need the largest weight (or number of rows) of a group in
    the population, ``max_weight``. Without it, twice that of the largest group in the half of the
    rows that is not counted takes its place; a larger group makes the bound 1. A quarter
    of the counted half of the positives sets the thresholds instead, and at most 20,000 groups of
    each sample are counted.

    **Segments.** The scores are those of all rows; the tails of each segment are counted by
    themselves. The share of a segment is shrunk toward those of the others by empirical Bayes
    (Paule and Mandel, 1982), but by no more than its standard error (Efron and Morris, 1972). The
    odds of all segments are then multiplied by the same factor, so that the numbers of positives
    add up to that in all rows, unless each segment is compared with its own positives. Intervals
    and bounds are not shrunk. The p-value is that of the hypothesis that the share is the same in
    all segments, while the negatives may differ: a chi-squared test of the numbers of rows in the
    tail with a quarter to half of the positives (or less, if positives are rare) that looks purest
    in all segments together. It assumes that this tail contains positives only. Its distribution is
    simulated for small counts, and includes the dependence of rows in groups and unequal weights.

    **Many rows.** The classifiers are fitted to at most ``max_rows`` rows of each sample. Every row
    is scored by classifiers that were not fitted to any row of its bin, and only the numbers of
    rows per bin and threshold are kept, so any number of rows can be counted in bounded memory.
    More rows reduce the noise of the estimate, but do not make the classifiers better.

    If no region contains positives only, all of these estimate an upper bound on the share.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import AutoPrior
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> estimator = AutoPrior(random_state=0).fit(X, y)
    >>> round(estimator.prior_, 1), estimator.low_ < 0.3 < estimator.high_
    (0.3, True)

    A third label may mark confirmed negatives, which are left out:

    >>> y = np.repeat(["fraud", "unknown", "ok"], [400, 800, 200])
    >>> estimator = AutoPrior(neg_label="ok", random_state=0).fit(X, y)
    >>> estimator.n_negative_, round(800 * estimator.prior_, -2)
    (200, 300.0)
    """

    def __init__(
        self,
        *,
        classifiers: Mapping[str, Any] | None = None,
        n_repeats: int | None = None,
        max_rows: int | None = 20_000,
        confidence: float = 0.95,
        n_resamples: int = 200,
        max_weight: float | tuple[float, float] | None = None,
        cv: Any = 5,
        pos_label: Any = None,
        neg_label: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.classifiers = classifiers
        self.n_repeats = n_repeats
        self.max_rows = max_rows
        self.confidence = confidence
        self.n_resamples = n_resamples
        self.max_weight = max_weight
        self.cv = cv
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, samples: Samples) -> None:
        self._check_parameters()
        drawn = samples.subsample(self.max_rows)  # the rows that the classifiers are fitted to
        held_out = HeldOut(samples, drawn, samples.folds(self.cv), self.max_weight)
        X, is_positive = drawn.stacked_rows()
        self.classifiers_ = classifiers = check_classifiers(self.classifiers, X)
        fitted = cross_fit_rounds(
            classifiers,
            X,
            is_positive,
            samples,
            drawn,
            cv=self.cv,
            n_repeats=self.n_repeats,
            keep=drawn.sizes != samples.bins.n_counted,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        rounds = []
        for scores, scorers in fitted:
            thresholds = {k: tail_thresholds(s[is_positive]) for k, s in scores.items()}
            rounds.append(Round(scores, Tally(scorers, thresholds)))
        half = self._fit_half(samples, drawn, classifiers, X, is_positive, held_out)
        result = self._count(samples, drawn, rounds, half, held_out)
        of_scores = map(float, np.minimum(1.0, result.estimate.of_scores))
        self.classifier_priors_ = dict(zip(self.scores_, of_scores, strict=True))
        self.n_fitted_ = drawn.sizes

    def _fit_half(
        self,
        samples: Samples,
        drawn: Samples,
        classifiers: dict[str, Any],
        X: Rows,
        is_positive: Bools,
        held_out: HeldOut,
    ) -> Round:
        """Fit the classifiers to the first half of the folds, for the bound."""
        fitted = np.concatenate(drawn.folds_of_rows(held_out.halves)) == 0
        seed, w = samples.bins.seed_of_round(0), drawn.stacked_weights
        models = fit_models(
            classifiers, X[fitted], is_positive[fitted], seed, None if w is None else w[fitted]
        )
        scorers = Scorers(held_out.halves, {name: [None, model] for name, model in models.items()})
        parts = [
            scorers.scores(s, X[is_positive == (s == 0)], bins)
            for s, bins in enumerate(drawn.bins_of_rows)
        ]
        name = TOGETHER if len(models) > 1 else next(iter(models))
        self.kind_scores_ = None
        if (X_negative := samples.negative_rows(self.max_rows)) is not None:
            positive, unlabeled = (part[name][np.isfinite(part[name])] for part in parts)
            negative = scorers.of_others(X_negative, fold=1)[name]
            self.kind_scores_ = KindScores(positive, unlabeled, negative)
        thresholds = held_out.thresholds(parts[0][name])
        scores = {name: np.concatenate([part[name] for part in parts])}
        return Round(scores, Tally(scorers, {name: thresholds}, is_for_bound=True))
