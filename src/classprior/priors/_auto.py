"""The recommended estimator: tails of cross-fitted scores, combined downwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, check_scalar

from classprior._basis import Doubles, Ints, Rows
from classprior._cross_validation import deal_folds
from classprior._messages import progress
from classprior._parameters import check_confidence, check_folds
from classprior._tails import ScoreTails, TailEstimate, average, combine
from classprior._uncertainty import held_out_bounds, realised_interval
from classprior._validation import check_samples
from classprior._views import (
    cross_fitted_log_odds,
    default_classifiers,
)
from classprior.priors._base import BasePriorEstimator, PriorResult

_TOGETHER = "together"
_FEW_ROWS = 5000  # up to which folds matter enough for many rounds
_View = dict[str, tuple[Doubles, Doubles]]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AutoResult(PriorResult):
    """An estimated prior with its interval.

    Parameters
    ----------
    prior : float
        Share of positives in the unlabeled rows.
    n_positive, n_unlabeled : int
        Rows in the two samples.
    low, high : float
        Interval for the share in the population from which the unlabeled rows were drawn.
    low_realised, high_realised : float
        Interval for the share among these very unlabeled rows.
    upper_bound : float
        Certified upper bound of the population's share, exact with any number of rows.
    upper_bound_asymptotic : float
        The same where errors add up as they do with many rows: closer to the estimate.
    confidence : float
        Of interval and bound.
    extrapolated, extrapolated_high : float
        The share extrapolated to the very end of the tail, and its 95% upper limit: below the
        estimate where negatives reach into the purest tail.
    of_rounds : array of shape (n_repeats,)
        The estimate of each round of cross-fitting.
    views : dict of str to float
        What each classifier's score says alone.
    scores : dict of str to pair of arrays
        Cross-fitted log-odds of the positives and of the unlabeled rows, by classifier, the mean
        over rounds.
    """

    low: float
    high: float
    low_realised: float
    high_realised: float
    upper_bound: float
    upper_bound_asymptotic: float
    confidence: float
    extrapolated: float
    extrapolated_high: float
    of_rounds: Doubles
    views: dict[str, float]
    scores: dict[str, tuple[Doubles, Doubles]]


def auto_prior(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    classifiers: Mapping[str, Any] | None = None,
    n_repeats: int | None = None,
    confidence: float = 0.95,
    n_resamples: int = 200,
    cv: Any = 5,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> AutoResult:
    r"""Estimate the share of positives in an unlabeled sample from tails of classifiers' scores.

    Of the rows that a classifier finds most like the known positives, positives are the same share
    as everywhere: beyond any threshold, share of unlabeled rows / share of positives
    :math:`\ge \pi`, whatever the classifier. Several classifiers are cross-fitted, and the smallest
    ratios win.

    Parameters
    ----------
    X_positive, X_unlabeled : array-likes, data frames or CSR matrices
        Known positives, and rows that may be positive or negative.
    classifiers : mapping of str to classifier, optional
        What scores the rows. By default logistic regression, the same on a kernel approximation,
        and boosted trees.
    n_repeats : int, optional
        Rounds of cross-fitting with other folds, whose estimates are averaged. By default 8 up
        to 5,000 rows and 3 beyond, where folds matter less.
    confidence : float, default=0.95
        Of the interval and of the upper bound.
    n_resamples : int, default=200
        Resamples behind the interval.
    cv : int or pair of array-likes of int, default=5
        Number of folds, or the folds of the positives and of the unlabeled rows.
    n_jobs : int, optional
        Threads over classifiers and folds; -1 for all cores.
    random_state : int, RandomState instance or None, default=None
        Draws folds and resamples, and seeds the classifiers.
    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    result : AutoResult
        The estimate, ``result.prior``, with its interval and its certified upper bound.

    See Also
    --------
    AutoPrior : The same as a scikit-learn estimator, with notes.

    Examples
    --------
    >>> from classprior import auto_prior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> samples = make_overlapping_uniforms(
    ...     overlap=0.25, prior=0.7, n_positive=1000, n_unlabeled=1000, random_state=0
    ... )
    >>> result = auto_prior(*samples, random_state=0)
    >>> round(result.prior, 1), result.low < 0.7 < result.high
    (0.7, True)
    """
    estimator = AutoPrior(
        classifiers=classifiers,
        n_repeats=n_repeats,
        confidence=confidence,
        n_resamples=n_resamples,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )
    return estimator._estimate(*check_samples(X_positive, X_unlabeled), cv)


class AutoPrior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows, with an interval: the recommended estimator.

    Of the rows that a classifier finds most like the known positives, positives are the same share
    as everywhere: beyond any threshold, share of unlabeled rows / share of positives
    :math:`\ge \pi`, whatever the classifier. Several classifiers are cross-fitted, and the smallest
    ratios win.

    Parameters
    ----------
    classifiers : mapping of str to classifier, optional
        What scores the rows. By default logistic regression, the same on a kernel approximation,
        and boosted trees.
    n_repeats : int, optional
        Rounds of cross-fitting with other folds, whose estimates are averaged. By default 8 up
        to 5,000 rows and 3 beyond, where folds matter less.
    confidence : float, default=0.95
        Of the interval and of the upper bound.
    n_resamples : int, default=200
        Resamples behind the interval.
    cv : int or array-like of int of shape (n_rows,), default=5
        Number of folds, or the fold of every row.
    pos_label : label, optional
        The label in y that marks known positives. By default 1 in {0, 1}, {-1, 1} and booleans,
        else the greater label, with a warning.
    n_jobs : int, optional
        Threads over classifiers and folds; -1 for all cores.
    random_state : int, RandomState instance or None, default=None
        Draws folds and resamples, and seeds the classifiers.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in labelled and unlabeled rows together.
    label_frequency_ : float
        Labelled share of all positives, often called c.
    low_, high_ : float
        Interval for the share in the population from which the unlabeled rows were drawn.
    low_realised_, high_realised_ : float
        Interval for the share among these very unlabeled rows.
    upper_bound_ : float
        Certified upper bound of the population's share, exact with any number of rows.
    upper_bound_asymptotic_ : float
        The same where errors add up as they do with many rows: closer to the estimate.
    confidence_ : float
        Of interval and bound.
    extrapolated_, extrapolated_high_ : float
        The share extrapolated to the very end of the tail, and its 95% upper limit: below the
        estimate where negatives reach into the purest tail.
    of_rounds_ : ndarray of shape (n_repeats,)
        The estimate of each round of cross-fitting.
    views_ : dict of str to float
        What each classifier's score says alone.
    scores_ : dict of str to pair of ndarrays
        Cross-fitted log-odds of the positives and of the unlabeled rows, by classifier, the mean
        over rounds.
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
    auto_prior : The same for two samples.
    PenalizedL1Prior : The paper's estimator.

    Notes
    -----
    **Estimate.** Tails hold at least 25% of the positives. The smallest of many noisy ratios is too
    low, so a minimum is shared: ratios count by how far their upper limits, one standard error
    up, are above the smallest, measured in standard errors. That is done over the tails of a
    classifier and then over classifiers; one that does not see the classes could spoil an
    average and cannot spoil a minimum. The mean of the log-odds of all classifiers is one more
    score, and the estimates of all rounds of cross-fitting are averaged.

    **Interval.** Rows are resampled with their scores, tails and weights chosen anew each time.
    ``high`` is the larger of the percentile and of the reflected percentile, because the smallest
    of several ratios is too low in the sample and lower still in resamples. ``low`` is the
    percentile of the share extrapolated linearly to the very end of the tail: it assumes that
    negatives thin out there at least that fast. No method can do without an assumption for
    ``low``: negatives that look exactly like positives would be counted as positives by any.
    Classifiers are not fitted again, so their own randomness is in the interval only as far as it
    shows in the scores.

    **Bound.** ``upper_bound`` assumes nothing about the classes. Classifiers are fitted to some
    folds, and tails counted on the others, with exact (Clopper-Pearson and beta) limits at a
    confidence shared by six tails; ``upper_bound_asymptotic`` adds the errors of the two samples
    in squares, as is right with many rows, and is closer.

    Where no region holds positives only, all of these estimate an upper bound of the share.

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
    """

    def __init__(
        self,
        *,
        classifiers: Mapping[str, Any] | None = None,
        n_repeats: int | None = None,
        confidence: float = 0.95,
        n_resamples: int = 200,
        cv: Any = 5,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.classifiers = classifiers
        self.n_repeats = n_repeats
        self.confidence = confidence
        self.n_resamples = n_resamples
        self.cv = cv
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _estimate(self, X_positive: Rows, X_unlabeled: Rows, cv: Any) -> AutoResult:
        check_confidence(self.confidence)
        if self.n_repeats is not None:
            check_scalar(self.n_repeats, "n_repeats", Integral, min_val=1)
        check_scalar(self.n_resamples, "n_resamples", Integral, min_val=20)
        classifiers = _check_classifiers(self.classifiers, X_unlabeled, X_positive.shape[0])
        rng = check_random_state(self.random_state)
        n, m = sizes = X_positive.shape[0], X_unlabeled.shape[0]
        cv = check_folds(cv, sizes)
        delta = 1.0 - self.confidence

        n_repeats = self.n_repeats or (8 if n + m <= _FEW_ROWS else 3)
        rounds = [(deal_folds(cv, sizes, rng), rng.randint(2**31)) for _ in range(n_repeats)]
        views = self._views(classifiers, X_positive, X_unlabeled, rounds)
        tails = [[ScoreTails.from_scores(*score) for score in view.values()] for view in views]
        of_rounds = [combine([t.counts() for t in tail], n, m) for tail in tails]
        estimate = average(of_rounds)
        resampled = _resample(tails, sizes, self.n_resamples, rng)
        prior = min(1.0, float(estimate.prior))
        low, high = _interval(estimate, resampled, delta)
        low, high = min(low, prior), max(high, prior)
        low_realised, high_realised = realised_interval(prior, low, high, m, delta)
        bounds = held_out_bounds(classifiers, X_positive, X_unlabeled, *rounds[0], delta)
        return AutoResult(
            prior=prior,
            low=low,
            high=high,
            low_realised=low_realised,
            high_realised=high_realised,
            upper_bound=bounds.exact,
            upper_bound_asymptotic=bounds.asymptotic,
            confidence=float(self.confidence),
            extrapolated=float(np.clip(estimate.extrapolated, 0.0, 1.0)),
            extrapolated_high=float(np.quantile(resampled.extrapolated, 0.95)),
            of_rounds=np.array([e.prior for e in of_rounds]),
            views=dict(zip(views[0], map(float, np.minimum(1.0, estimate.of_views)), strict=True)),
            scores=_mean_scores(views),
            n_positive=n,
            n_unlabeled=m,
        )

    def _views(
        self,
        classifiers: dict[str, Any],
        X_positive: Rows,
        X_unlabeled: Rows,
        rounds: list[tuple[tuple[Ints, Ints], int]],
    ) -> list[_View]:
        """Return, for every round, the log-odds of each classifier and the mean of them all."""
        views: list[_View] = [{} for _ in rounds]
        steps = (
            (view, step)
            for view, (folds, seed) in zip(views, rounds, strict=True)
            for step in cross_fitted_log_odds(
                classifiers, X_positive, X_unlabeled, folds, seed, self.n_jobs
            )
        )
        total = len(rounds) * len(classifiers)
        for view, (name, *scores) in progress(steps, total, "Cross-fitting", self.verbose):
            view[name] = scores[0], scores[1]
        if len(classifiers) > 1:
            for view in views:
                positive, unlabeled = zip(*view.values(), strict=True)
                view[_TOGETHER] = np.mean(positive, axis=0), np.mean(unlabeled, axis=0)
        return views


def _check_classifiers(
    classifiers: Mapping[str, Any] | None, X_unlabeled: Rows, n_positive: int
) -> dict[str, Any]:
    if classifiers is None:
        return default_classifiers(X_unlabeled, n_positive + X_unlabeled.shape[0])
    if not isinstance(classifiers, Mapping) or not classifiers:
        raise TypeError(
            "Expected classifiers as a dictionary from names to classifiers, got "
            f"{classifiers!r}. Try classifiers={{'linear': LogisticRegression()}}."
        )
    for name, classifier in classifiers.items():
        if not hasattr(classifier, "predict_proba"):
            raise TypeError(
                f"Expected classifiers with predict_proba, got a {type(classifier).__name__} as "
                f"{name!r}. Try scikit-learn's CalibratedClassifierCV around it."
            )
    return dict(classifiers)


def _mean_scores(views: list[_View]) -> _View:
    return {
        name: (
            np.mean([v[name][0] for v in views], axis=0),
            np.mean([v[name][1] for v in views], axis=0),
        )
        for name in views[0]
    }


def _resample(
    tails: list[list[ScoreTails]],
    sizes: tuple[int, int],
    n_resamples: int,
    rng: np.random.RandomState,
) -> TailEstimate:
    """Estimate from rows drawn with replacement, the same rows for every round and score."""
    resamples = []
    for _ in range(n_resamples):
        weights = [np.bincount(rng.randint(0, size, size), minlength=size) for size in sizes]
        resamples.append([[tail.counts(*weights) for tail in of_round] for of_round in tails])

    def counts(number: int, view: int) -> tuple[Doubles, Doubles]:
        positive, unlabeled = zip(*(rounds[number][view] for rounds in resamples), strict=True)
        return np.stack(positive), np.stack(unlabeled)

    return average(
        [
            combine([counts(number, view) for view in range(len(of_round))], *sizes)
            for number, of_round in enumerate(tails)
        ]
    )


def _interval(estimate: TailEstimate, resampled: TailEstimate, delta: float) -> tuple[float, float]:
    low_prior, high_prior = np.quantile(resampled.prior, [delta / 2.0, 1.0 - delta / 2.0])
    low = np.quantile(resampled.extrapolated, delta / 2.0)
    high = max(high_prior, 2.0 * estimate.prior - low_prior)
    return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))
