"""PUClassifier: find the positive rows, given the prior."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from classprior._base import TwoSampleEstimator
from classprior._core.messages import warn
from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Rows
from classprior._samples.samples import Samples
from classprior._scores.calibration import calibrate, recalibrate
from classprior._scores.crossfit import fit_model, fit_models, log_odds
from classprior._tables.checks import check_new_rows, last_step
from classprior._tables.parameters import seed_of
from classprior.density_ratio import DensityRatio
from classprior.priors._auto import AutoPrior

__all__ = ["PUClassifier"]

_ROWS_CHECKED = 2000  # with a ratio, unlabeled rows checked for at least one positive prediction


class PUClassifier(ClassifierMixin, TwoSampleEstimator):
    r"""Binary classifier learned from positive and unlabeled rows.

    The score s of a row is the mean log-odds of being labeled, over the classifiers of
    ``AutoPrior``. It is calibrated to a probability of being positive,

    .. math:: \hat p(y=1|x) = (1 - \varepsilon)\, \sigma(z) + \varepsilon \hat\pi, \qquad
              z = a + b_1 \log \sigma(s - c) - b_2 \log \sigma(c - s),

    such that the mean probability of the unlabeled rows is the prior :math:`\hat\pi`, and the known
    positives are most likely.

    If ``ratio`` is given, the probability is instead the prior times a density ratio (du Plessis,
    Niu and Sugiyama, 2017, section 5.3):

    .. math:: \hat p(y=1|x) = \min(1, \hat\pi\, \hat w(x)), \qquad
              \hat w(x) \approx \frac{p(x|y=1)}{p(x)}

    A row is classified as positive if its probability is at least one half.

    Parameters
    ----------
    prior : float or estimator, optional
        Share of positives in the unlabeled rows, or an estimator that sets ``prior_`` in
        ``fit``. By default, ``AutoPrior``.
    ratio : estimator, optional
        Estimator of the density ratio: a ``DensityRatio``, or any scikit-learn classifier with
        a calibrated ``predict_proba``, whose probability g of being labeled gives the ratio
        :math:`\frac{n'}{n} \frac{g}{1 - g}`. By default, all classifiers of ``AutoPrior``
        together, with calibrated probabilities.
    max_rows : int or None, default=20000
        Maximum number of rows of each sample used to fit a classifier or the default prior,
        drawn at random. ``DensityRatio`` and ``PenalizedL1Prior`` use all rows. None uses all
        rows throughout.
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
        Seed. Also used for ``prior`` and ``ratio`` if they have no seed of their own.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    classifiers_ : dict of str to classifier or None
        The fitted classifiers, whose mean log-odds are calibrated. None if ``ratio`` was given.
    calibration_ : Calibration or None
        The map from mean log-odds to probabilities, with the attributes ``prior``, ``center`` (c),
        ``intercept`` (a), ``slope_below`` and ``slope_above`` (the two slopes) and ``pseudo_share``
        (epsilon). None if ``ratio`` was given.
    ratio_ : estimator or None
        The fitted estimator of the density ratio. None unless ``ratio`` was given.
    odds_ : float or None
        Number (or weight) of unlabeled rows per known positive among the rows used to fit
        ``ratio_``. None unless ``ratio`` was given.
    oof_proba_ : ndarray of shape (n_used,) or None
        Out-of-fold probability of the positive class for the unlabeled training rows, because a
        model trained on a row knows that it is unlabeled. Their (weighted) mean is ``prior_``. None
        if ``ratio`` was given.
    oof_decision_ : ndarray of shape (n_used,) or None
        Out-of-fold ``decision_function`` of the same rows, where positive values mean the positive
        class. It has fewer ties than the probabilities, so use it to rank rows.
    oof_rows_ : ndarray of shape (n_used,) or None
        Indices of these rows among the unlabeled rows: all, or ``max_rows`` of them.
    classes_ : ndarray of shape (2,)
        The labels in y. In predictions, the label of the unlabeled rows means negative.
    pos_label_ : label
        The label that marks positives.
    n_negative_ : int
        Number of confirmed negatives, which were left out.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names seen during ``fit``. Defined only if all column names of X are strings.

    See Also
    --------
    classprior.metrics : Error rate, precision and recall from positive and unlabeled rows.
    DensityRatio : Estimate the density ratio by least squares.

    Notes
    -----
    The classifier in the paper is
    ``PUClassifier(prior=PenalizedL1Prior(), ratio=DensityRatio())``.

    The map is beta calibration (Kull et al., 2017), fitted to out-of-fold scores like a logistic
    regression with a known share of positives (Ward et al., 2009). The slope may change at
    :math:`c = -\log(\hat\pi n' / n)`, the score of a region of positives only. The pseudo-share
    :math:`\varepsilon = 1 / (n + 1)` stands for one more known positive that is a random unlabeled
    row: it keeps the probabilities away from 0 and 1, as far as n known positives can tell.

    A prior and a ratio estimated from the same rows are dependent, so a wrong prior can classify
    better than the true one. To avoid this, estimate the prior from other data and pass it as a
    number.

    ``score`` compares predictions with y, which tells labeled from unlabeled rows rather than
    positives from negatives. Use ``classprior.metrics`` instead, and
    :func:`classprior.metrics.make_pu_scorer` in ``GridSearchCV`` and ``cross_val_score``.

    References
    ----------
    du Plessis, Niu and Sugiyama (2017), *Class-prior Estimation for Learning from Positive and
    Unlabeled Data*, Machine Learning 106, section 5.3.

    Kull, Silva Filho and Flach (2017), *Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers*, AISTATS.

    Ward, Hastie, Barry, Elith and Leathwick (2009), *Presence-Only Data and the EM Algorithm*,
    Biometrics 65.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import PUClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> model = PUClassifier(random_state=0).fit(X, y)
    >>> model.predict([[0.0, 0.0], [4.0, 4.0]])
    array([ True, False])
    >>> bool(np.isclose(np.mean(model.oof_proba_), model.prior_))  # of the training rows
    True
    """

    __module__ = "classprior"  # saved models use the public path, so the module can move
    classifiers_: Any
    calibration_: Any
    ratio_: Any
    odds_: Any
    oof_rows_: Any
    oof_proba_: Any
    oof_decision_: Any

    def __init__(
        self,
        *,
        prior: Any = None,
        ratio: Any = None,
        max_rows: int | None = 20_000,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        neg_label: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.prior = prior
        self.ratio = ratio
        self.max_rows = max_rows
        self.cv = cv
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def decision_function(self, X: Any) -> Doubles:
        """Return scores that order the rows by probability; 0 means a probability of 1/2.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        decision : ndarray of shape (n_rows,)
            The value of z, shifted to 0 at a probability of 1/2. If ``ratio`` was given, the prior
            times the ratio minus 1/2. The sign is such that positive values mean ``classes_[1]``.
        """
        decision = self._decision(X)
        return decision if self.pos_label_ == self.classes_[1] else -decision

    def predict_proba(self, X: Any) -> Doubles:
        """Return the class probabilities.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, 2)
            Probabilities in the order of ``classes_``.
        """
        p = self.probability(self._decision(X))
        columns = [1.0 - p, p]
        return np.column_stack(columns if self.pos_label_ == self.classes_[1] else columns[::-1])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted label of each row.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            ``pos_label_`` where its probability is at least 1/2, otherwise the other label.
        """
        is_positive = self._decision(X) >= 0.0
        return self.classes_[np.where(is_positive == (self.pos_label_ == self.classes_[1]), 1, 0)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on y, with a warning: y has labels, not classes.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Their labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        accuracy : float
            Share of rows whose predicted label is that in y, which counts hidden positives that
            are found as errors. Use ``classprior.metrics`` instead.
        """
        warn(
            "score compares predictions with y, in which hidden positives count as negatives, so a "
            "model that finds them scores lower. Use classprior.metrics, and in GridSearchCV or "
            'cross_val_score scoring=classprior.metrics.make_pu_scorer("pu_error_rate", prior=...).'
        )
        return float(super().score(X, y, sample_weight))

    def probability(self, decision: Doubles) -> Doubles:
        """Return the probability of being positive, given how far a row is on that side of 1/2."""
        if self.calibration_ is not None:
            return self.calibration_.probability(decision)
        return np.clip(decision + 0.5, 0.0, 1.0)

    def _decision(self, X: Any) -> Doubles:
        """Return the decisions of new rows; positive values mean the positive class."""
        check_is_fitted(self)
        return self._decision_of_rows(check_new_rows(self, X))

    def _decision_of_rows(self, X: Rows) -> Doubles:
        if self.calibration_ is not None:
            scores = [log_odds(model, X) for model in self.classifiers_.values()]
            return self.calibration_.decision(np.mean(scores, axis=0))
        if _is_ratio(self.ratio_):
            return self.prior_ * self.ratio_.predict(X) - 0.5
        # g = n p1 / (n p1 + n' p), so p1 / p = (n' / n) g / (1 - g); g = 1 is avoided
        g = np.minimum(self.ratio_.predict_proba(X)[:, 1], 1.0 - np.finfo(np.float64).eps)
        return self.prior_ * self.odds_ * g / (1.0 - g) - 0.5

    @property
    def takes_checkpoint(self) -> bool:  # type: ignore[override]
        """Whether a fit can resume from a checkpoint: if both prior and ratio can."""
        has_prior = isinstance(self.prior, Real) or getattr(self.prior, "takes_checkpoint", False)
        return has_prior and getattr(self.ratio, "takes_checkpoint", False)

    def _solve(self, samples: Samples) -> None:
        evidence = None
        prior = AutoPrior(cv=self.cv, max_rows=self.max_rows) if self.prior is None else self.prior
        if isinstance(prior, Real):
            if not 0.0 <= float(prior) <= 1.0:
                raise ValueError(f"Expected a prior between 0 and 1, got {self.prior}.")
            value = float(prior)
        elif hasattr(prior, "fit"):
            fitted = self._fitted_part(prior, samples)
            value = float(last_step(fitted).prior_)
            evidence = fitted if isinstance(fitted, AutoPrior) else None
        else:
            raise TypeError(
                f"Expected prior to be a number or a prior estimator, got a {type(prior).__name__}."
            )
        if self.ratio is None and evidence is None:
            auto = AutoPrior(cv=self.cv, max_rows=self.max_rows)
            evidence = self._fitted_part(auto, samples)
        self._solve_ratio(samples, value, evidence)

    def fit_estimated(self, samples: Samples, prior: float, evidence: AutoPrior) -> None:
        """Fit to samples whose prior has already been estimated."""
        self._set_shape(samples)
        self._solve_ratio(samples, prior, evidence)

    def correct(
        self,
        evidence: AutoPrior,
        decision: Doubles,
        is_positive: Bools,
        weights: Doubles,
        prior: float,
    ) -> None:
        """Correct the probabilities with rows whose class is known, given their decisions."""
        self.calibration_ = recalibrate(self.calibration_, decision, is_positive, weights, prior)
        self.prior_ = prior
        self._set_out_of_fold(evidence)

    def _solve_ratio(self, samples: Samples, prior: float, evidence: AutoPrior | None) -> None:
        """Fit the density ratio, or by default calibrate the scores of ``evidence``."""
        self.prior_ = prior
        self.classifiers_ = self.calibration_ = self.ratio_ = self.odds_ = None
        self.oof_rows_ = self.oof_proba_ = self.oof_decision_ = None
        if self.ratio is None:
            assert evidence is not None
            self._solve_calibration(samples, evidence)
        elif _is_ratio(self.ratio):
            self.ratio_, self.odds_ = self._fitted_part(self.ratio, samples), _odds(samples)
        elif hasattr(self.ratio, "predict_proba"):
            used = samples.subsample(self.max_rows)
            X, is_positive = used.stacked_rows()
            with single_threaded():
                self.ratio_ = fit_model(self.ratio, X, is_positive, used.seed, used.stacked_weights)
            self.odds_ = _odds(used)
        else:
            raise TypeError(
                "Expected ratio to be a DensityRatio or a classifier with predict_proba, got a "
                f"{type(self.ratio).__name__}."
            )
        self._warn_of_no_positives(samples)

    def _solve_calibration(self, samples: Samples, evidence: AutoPrior) -> None:
        """Fit the classifiers to all drawn rows, and calibrate their out-of-fold scores."""
        used = samples.subsample(evidence.max_rows)
        X, is_positive = used.stacked_rows()
        self.classifiers_ = fit_models(
            evidence.classifiers_, X, is_positive, used.seed, used.stacked_weights
        )
        self.calibration_ = calibrate(
            evidence.mean_scores_,
            self.prior_,
            weights=used.units.weights,
            n_positive=used.n_effective[0],
        )
        drawn = samples.drawn_numbers(evidence.max_rows or samples.sizes[1])[1]
        rows = samples.given_numbers(1, drawn)
        self._oof_order = np.argsort(rows)  # drawn rows are in the order of their keys, if any
        self.oof_rows_ = rows[self._oof_order]
        self._set_out_of_fold(evidence)

    def _set_out_of_fold(self, evidence: AutoPrior) -> None:
        self.oof_decision_ = self.calibration_.decision(evidence.mean_scores_[1])[self._oof_order]
        self.oof_proba_ = self.calibration_.probability(self.oof_decision_)

    def _fitted_part(self, estimator: Any, samples: Samples) -> Any:
        """Fit a clone to boolean labels, ignoring its own labels."""
        part = clone(estimator)
        last = last_step(part)
        labels = {"pos_label", "neg_label"} & last.get_params().keys()
        last.set_params(**dict.fromkeys(labels))
        if last is not part or not isinstance(part, TwoSampleEstimator):
            samples = samples.subsample(None)
            X, is_positive = samples.stacked_rows()
            return fit_model(part, X, is_positive, samples.seed, samples.stacked_weights)
        if "n_jobs" in part.get_params() and part.n_jobs is None:
            part.set_params(n_jobs=self.n_jobs)
        if part.random_state is not None:
            samples = samples.with_seed(seed_of(part.random_state))
        part.fit_opened(samples)
        return part

    def _warn_of_no_positives(self, samples: Samples) -> None:
        """Warn if no unlabeled row is classified as positive, although some should be."""
        if self.oof_decision_ is not None:
            decision = self.oof_decision_
        else:
            decision = self._decision_of_rows(samples.subsample(_ROWS_CHECKED).rows[1])
        highest = float(np.max(decision))
        if highest < 0.0 and self.prior_ * len(decision) > 0.5:
            highest_probability = float(self.probability(np.array(highest)))
            warn(
                "No unlabeled row is classified as positive (highest probability "
                f"{highest_probability:.2f}), although the prior is {self.prior_:.1%}. "
                f"{self._advice()}"
            )

    def _advice(self) -> str:
        """Return what to try if no row is classified as positive."""
        if self.ratio is None:
            return (
                "Positives look too much like negatives for any single row to be more likely "
                "positive than not. Use the probabilities to rank the rows."
            )
        why = "Either the classes overlap everywhere or the density ratio cannot separate them."
        if _is_ratio(self.ratio):
            return (
                f"{why} Try scaling the columns, passing a classifier as ratio, or leaving ratio "
                "out."
            )
        return f"{why} Try another classifier, or leave ratio out to use several together."

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # scikit-learn's checks use fully labeled data, in which no unlabeled row is positive.
        tags.classifier_tags.poor_score = True
        return tags


def _odds(samples: Samples) -> float:
    """Return the weight of the unlabeled rows per weight of known positives."""
    positive, unlabeled = (float(total.sum()) for total in samples.totals)
    return unlabeled / positive


def _is_ratio(estimator: Any) -> bool:
    return isinstance(last_step(estimator), DensityRatio)
