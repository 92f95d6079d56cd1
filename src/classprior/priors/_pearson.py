"""Baseline PE: partial matching in the Pearson divergence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from classprior._basis import Rows
from classprior._density_ratio import fit_ratio
from classprior._parameters import check_n_dense_centers, check_thetas
from classprior._samples import MemorySamples, Samples
from classprior._validation import check_samples
from classprior.priors._base import BasePriorEstimator, PriorCurve, inside_unit_interval


def pearson_prior(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    thetas: ArrayLike | None = None,
    sigmas: ArrayLike | None = None,
    lams: ArrayLike | None = None,
    n_centers: int | None = 200,
    cv: int | tuple[ArrayLike, ArrayLike] = 5,
    random_state: int | np.random.RandomState | None = None,
) -> PriorCurve:
    r"""Estimate the share of positives in an unlabeled sample by Pearson matching (PE).

    Over-estimates wherever the classes overlap; it is here to be compared with.

    .. math:: \mathrm{PE}(\theta) = \frac{\theta^2}{2}
              \left(2 h^\top G^{-1} h - h^\top G^{-1} H G^{-1} h\right) - \theta + \frac12,
              \qquad G = H + \lambda I

    with H the mean of :math:`\varphi(x')\varphi(x')^\top` over unlabeled rows and h the mean of
    :math:`\varphi(x)` over positives, so that the minimum is at one over the bracket.

    Parameters
    ----------
    X_positive, X_unlabeled : array-likes, data frames or CSR matrices
        Known positives, and rows that may be positive or negative.
    thetas : array-like of shape (n_thetas,), optional
        Where the objective is tabulated; the estimate does not depend on it. By default 0 to 1 in
        steps of 0.001.
    sigmas : float or array-like, optional
        Bandwidths. By default 11, from 0.1 to 3.2 times the median distance between unlabeled
        rows and centres.
    lams : float or array-like, optional
        Regularisations. By default 9, from 0.001 to 10.
    n_centers : int or None, default=200
        At most so many rows are centres of the basis, drawn at random, half from each sample as
        far as it has them; time grows with the cube. None for all rows, up to 1,000.
    cv : int or pair of array-likes of int, default=5
        Number of folds, or the folds of the positives and of the unlabeled rows.
    random_state : int, RandomState instance or None, default=None
        Draws centres, folds and the rows from which the default bandwidths are set.

    Returns
    -------
    curve : PriorCurve
        The estimate, ``curve.prior``, and the objective over theta.

    See Also
    --------
    PearsonPrior : The same as a scikit-learn estimator.
    penalized_l1 : The penalised L1-distance, which does not over-estimate under overlap.

    References
    ----------
    du Plessis and Sugiyama (2014), *Class Prior Estimation from Positive and Unlabeled Data*,
    IEICE Transactions on Information and Systems E97-D.

    Examples
    --------
    >>> from classprior import pearson_prior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> X_positive, X_unlabeled = make_overlapping_uniforms(
    ...     overlap=0.75, prior=0.7, n_positive=1000, n_unlabeled=1000, random_state=0
    ... )
    >>> round(pearson_prior(X_positive, X_unlabeled, random_state=0).prior, 1)
    0.9
    """
    estimator = PearsonPrior(
        thetas=thetas,
        sigmas=sigmas,
        lams=lams,
        n_centers=n_centers,
        random_state=random_state,
    )
    return estimator._estimate(*check_samples(X_positive, X_unlabeled), cv)


class PearsonPrior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows by Pearson matching (PE).

    Over-estimates wherever the classes overlap; it is here to be compared with.
    ``pearson_prior`` has the formula.

    Parameters
    ----------
    thetas : array-like of shape (n_thetas,), optional
        Where the objective is tabulated; the estimate does not depend on it. By default 0 to 1 in
        steps of 0.001.
    sigmas : float or array-like, optional
        Bandwidths. By default 11, from 0.1 to 3.2 times the median distance between unlabeled
        rows and centres.
    lams : float or array-like, optional
        Regularisations. By default 9, from 0.001 to 10.
    n_centers : int or None, default=200
        At most so many rows are centres of the basis, drawn at random, half from each sample as
        far as it has them; time grows with the cube. None for all rows, up to 1,000.
    cv : int or array-like of int of shape (n_rows,), default=5
        Number of folds, or the fold of every row.
    pos_label : label, optional
        The label in y that marks known positives. By default 1 in {0, 1}, {-1, 1} and booleans,
        else the greater label, with a warning.
    random_state : int, RandomState instance or None, default=None
        Draws centres, folds and the rows from which the default bandwidths are set.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in labelled and unlabeled rows together.
    label_frequency_ : float
        Labelled share of all positives, often called c.
    thetas_, objective_ : ndarrays of shape (n_thetas,)
        The objective over candidate priors.
    sigma_, lam_ : ndarrays of shape (n_thetas,)
        The chosen bandwidth and regularisation, the same at each candidate.
    centers_ : ndarray or CSR matrix of shape (n_centers, n_features)
        Centres of the basis.
    coef_ : ndarray of shape (n_centers,)
        Coefficients alpha of the basis at the estimate.
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
    pearson_prior : The same for two samples.
    PenalizedL1Prior : Does not over-estimate under overlap.

    References
    ----------
    du Plessis and Sugiyama (2014), *Class Prior Estimation from Positive and Unlabeled Data*,
    IEICE Transactions on Information and Systems E97-D.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import PearsonPrior
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> round(PearsonPrior(random_state=0).fit(X, y).prior_, 1)
    0.3
    """

    def __init__(
        self,
        *,
        thetas: ArrayLike | None = None,
        sigmas: ArrayLike | None = None,
        lams: ArrayLike | None = None,
        n_centers: int | None = 200,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.thetas = thetas
        self.sigmas = sigmas
        self.lams = lams
        self.n_centers = n_centers
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def _estimate(self, X_positive: Rows, X_unlabeled: Rows, cv: Any) -> PriorCurve:
        rng = check_random_state(self.random_state)
        return self._match(MemorySamples(X_positive, X_unlabeled, cv, rng))

    def _match(self, samples: Samples) -> PriorCurve:
        thetas = check_thetas(self.thetas)
        sizes = samples.sizes
        fit = fit_ratio(
            samples,
            samples.draw_centers(check_n_dense_centers(self.n_centers, sum(sizes))),
            sigmas=self.sigmas,
            lams=self.lams,
            nonnegative=False,
        )
        H, h, ratio = fit.gram, fit.mean, fit.coef  # ratio = G^-1 h
        curvature = 2.0 * h @ ratio - ratio @ H @ ratio
        prior = inside_unit_interval(
            float(1.0 / curvature) if curvature > 0.0 else np.inf,
            "The regularisation is strong for these data, or nearly all rows are positive.",
        )
        return PriorCurve(
            prior=prior,
            thetas=thetas,
            objective=thetas**2 / 2.0 * curvature - thetas + 0.5,
            sigma=np.full(len(thetas), fit.sigma),
            lam=np.full(len(thetas), fit.lam),
            centers=fit.centers,
            coef=prior * ratio,
            n_positive=sizes[0],
            n_unlabeled=sizes[1],
        )
