"""The share of positives from the scores of a model that the user has already."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import Tags

from classprior._core.messages import listed
from classprior._core.types import Ints
from classprior._samples.samples import Samples
from classprior._scores.counting import Round, Tally
from classprior._scores.held_out import HeldOut
from classprior._scores.negatives import KindScores
from classprior._scores.own_scores import SCORE, OwnScores, as_column, check_scores, column_of
from classprior._scores.tails import tail_thresholds
from classprior.priors._tail import TailPrior


class ScorePrior(TailPrior):
    r"""Share of positives in unlabeled rows, from the scores of a model that you have already.

    For any threshold t, let S(t) be the share of a sample that scores at least t. Then

    .. math:: \pi \le \frac{S_{\mathrm{unlabeled}}(t)}{S_{\mathrm{positive}}(t)},

    and the estimate is a smoothed minimum of this ratio over thresholds. Larger scores must mean
    more positive; only their order matters, so probabilities, log-odds and ranks give the same
    answer. **The model must not have been trained on these rows.**

    Parameters
    ----------
    max_rows : int or None, default=100000
        Maximum number of rows of each sample, drawn at random, that set the thresholds, and that
        the checks and pictures use; all rows are counted. None uses all rows.
    confidence : float, default=0.95
        Confidence level of the interval and the bound.
    n_resamples : int, default=200
        Number of resamples for the interval.
    max_weight : float or pair of float, optional
        The most that a row can weigh, in the population; with groups, the most that the rows of a
        group can weigh together, or without weights, their number. A pair is for known positives
        and unlabeled rows. With weights or groups, the bound is certified only if it is given.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out.
    random_state : int, RandomState instance or None, default=None
        Seed for the bins of rows and the resamples.

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
        rows.
    upper_bound_asymptotic_ : float
        Asymptotic version of ``upper_bound_``; tighter, valid for large samples.
    bound_is_exact_ : bool
        Whether ``upper_bound_`` is certified. With weights or groups, it is only if ``max_weight``
        is given; otherwise it is asymptotic, too.
    extrapolated_, extrapolated_wide_, extrapolated_tail_ : float
        The share extrapolated to the end of the tail, as in :class:`AutoPrior`.
    purity_p_value_ : float
        P-value of the hypothesis that the tail of the estimate contains positives only.
    separation_ : float
        How far known positives stand out, from 0 to 1: the largest difference, over thresholds of a
        score, between the share of the known positives above it and that of the negatives that the
        estimate implies.
    is_upper_bound_ : bool
        Whether ``prior_`` is only an upper bound: no purely positive region was found, or known
        positives and unlabeled rows cannot be told apart.
    round_priors_ : ndarray of shape (1,)
        The estimate, not clipped to 1.
    scores_ : dict of str to pair of ndarrays
        The scores of the drawn positives and unlabeled rows, with the key "score".
    mean_scores_ : pair of ndarrays
        The same scores without the key.
    segments_ : dict of segment to SegmentEstimate
        The estimate for each segment. Defined only if there are segments.
    kind_scores_ : tuple of three ndarrays, or None
        Scores of known positives, of unlabeled rows and of confirmed negatives; None without
        confirmed negatives.
    classes_ : ndarray of shape (2,)
        The labels in y, without ``neg_label``.
    pos_label_ : label
        The label that marks known positives.
    n_negative_ : int
        Number of confirmed negatives, which were left out.
    n_features_in_ : int
        Number of columns seen during ``fit``, which is 1.
    feature_names_in_ : ndarray of shape (1,)
        Name of the column seen during ``fit``. Defined only if it is a string.

    See Also
    --------
    estimate_prior : Estimate the prior from two arrays of scores, with diagnostics.
    AutoPrior : Estimate the prior from rows, with classifiers of its own.

    Notes
    -----
    Estimate and interval are those of :class:`AutoPrior` with a single score and without
    cross-fitting. The certified bound counts all rows, since the model has seen none of them; with
    groups it counts half of the groups, and the others show how large a group may be.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior.priors import ScorePrior
    >>> rng = np.random.default_rng(0)
    >>> scores_positive = rng.normal(2, 1, 500)
    >>> scores_unlabeled = np.r_[rng.normal(2, 1, 300), rng.normal(-2, 1, 700)]
    >>> estimator = ScorePrior(random_state=0).fit_samples(scores_positive, scores_unlabeled)
    >>> round(estimator.prior_, 1), estimator.low_ < 0.3 < estimator.high_
    (0.3, True)
    """

    cv = 2  # with groups, half of the folds are held out for the bound

    def __init__(
        self,
        *,
        max_rows: int | None = 100_000,
        confidence: float = 0.95,
        n_resamples: int = 200,
        max_weight: float | tuple[float, float] | None = None,
        pos_label: Any = None,
        neg_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.max_rows = max_rows
        self.confidence = confidence
        self.n_resamples = n_resamples
        self.max_weight = max_weight
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, key: Any = None
    ) -> Self:
        """Fit to the scores of known positives and unlabeled rows in one array.

        Parameters
        ----------
        X : array-like of shape (n_rows,) or (n_rows, 1)
            The scores; larger means more positive.
        y : array-like of shape (n_rows,)
            Two labels, one for known positives and one for unlabeled rows. In {0, 1}, {-1, 1} and
            booleans, 1 (or True) marks known positives. Words such as "unknown", "unlabeled",
            "not checked", "open", "pending" and "n/a" mark unlabeled rows. For other labels set
            ``pos_label``; by default the greater label is positive, with a warning.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row, such as one over the probability with which it was sampled.
        groups : array-like of shape (n_rows,), optional
            Group of each row, such as a customer or a patient, resampled together.
        key : array-like of shape (n_rows,), optional
            What tells each row from the others, instead of its index.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return super().fit(as_column(X), y, sample_weight, groups, key)

    def fit_samples(
        self,
        X_positive: Any,
        X_unlabeled: Any,
        *,
        weights: Any = None,
        groups: Any = None,
        key: Any = None,
    ) -> Self:
        """Fit to the scores of known positives and of unlabeled rows.

        Parameters
        ----------
        X_positive, X_unlabeled : array-like of shape (n_rows,), or source of one column
            Scores of known positives, and of rows that may be positive or negative; larger means
            more positive. Also any input that ``fit_blocks`` accepts, with one column.
        weights : str or pair of array-likes, optional
            Weight of each row: a column name, or one array per sample.
        groups : str or pair of array-likes, optional
            Group of each row: a column name, or one array per sample.
        key : str, sequence of str or pair of array-likes, optional
            What tells each row from the others, instead of its index: one or more column names, or
            one array per sample.

        Returns
        -------
        self : object
            The fitted estimator; ``classes_`` is [0, 1], with 1 for positives.
        """
        return super().fit_samples(
            as_column(X_positive), as_column(X_unlabeled), weights=weights, groups=groups, key=key
        )

    def _solve(self, samples: Samples) -> None:
        self._check_parameters()
        check_single_column(samples)
        drawn = samples.subsample(self.max_rows)
        check_scores(drawn)
        held_out = HeldOut(samples, drawn, self._folds(samples), self.max_weight)
        scores = {SCORE: np.concatenate([column_of(X) for X in drawn.rows])}
        positive = scores[SCORE][: drawn.sizes[0]]
        tally = Tally(OwnScores(), {SCORE: tail_thresholds(positive)})
        of_bound = Tally(OwnScores(), {SCORE: held_out.thresholds(positive)}, is_for_bound=True)
        self._count(samples, drawn, [Round(scores, tally)], Round(scores, of_bound), held_out)
        self.kind_scores_ = None
        if (X_negative := samples.negative_rows(self.max_rows)) is not None:
            self.kind_scores_ = KindScores(*map(column_of, (*drawn.rows, X_negative)))

    def _folds(self, samples: Samples) -> tuple[Ints, Ints]:
        """Return folds whose second half has all bins, unless there are groups."""
        if samples.units.groups is not None:
            return samples.folds(self.cv)
        positive, unlabeled = samples.one_fold()
        return positive + 1, unlabeled + 1

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.sparse = False
        return tags


def check_single_column(samples: Samples) -> None:
    """Raise unless the samples have one column, that of the scores."""
    if samples.n_features != 1:
        names = f": {listed(samples.columns)}" if samples.columns else ""
        raise ValueError(
            f"Expected one column of scores, got {samples.n_features} columns{names}. Select the "
            "column with the scores, for example with columns=['score'] in estimate_prior, or pass "
            "two one-dimensional arrays."
        )
