"""Partial matching with a penalised divergence: the paper's own estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state, check_scalar

from classprior._basis import Doubles, GaussianBasis, Rows
from classprior._cross_validation import held_out_gain, select
from classprior._moments import Moments, paired_means
from classprior._parameters import check_grid, check_n_centers, check_thetas
from classprior._samples import MemorySamples, Samples
from classprior._solvers import PenalizedL1Path, closed_form, hinge_products
from classprior._validation import check_samples
from classprior.priors._base import BasePriorEstimator, PriorCurve

# The ends of the grid in the public MATLAB code, which has 300 centres. The objective sums over
# the centres, so an end means the same at any number of them if it grows with that number.
_LAMS_PER_CENTER = np.array([1e-3, 1e1]) / 300


def penalized_l1(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    thetas: ArrayLike | None = None,
    sigmas: ArrayLike | None = None,
    lams: ArrayLike | None = None,
    n_centers: int | None = 2000,
    cv: int | tuple[ArrayLike, ArrayLike] = 5,
    leave_one_out: bool = True,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> PriorCurve:
    r"""Estimate the share of positives in an unlabeled sample by penalised L1 matching (penL1).

    Finds the theta at which theta p(x|y=1) fills as much of p(x) as it can without exceeding it:

    .. math:: \hat\theta = \arg\min_\theta \frac{1}{\lambda} \sum_\ell
              \max(0, \beta_\ell) \beta_\ell - \theta + 1, \qquad
              \beta_\ell = \frac{\theta}{n} \sum_i \varphi_\ell(x_i)
              - \frac{1}{n'} \sum_j \varphi_\ell(x'_j)

    with Gaussian basis functions :math:`\varphi_\ell`. Bandwidth and regularisation are
    cross-validated for each theta.

    Parameters
    ----------
    X_positive : array-like, data frame or CSR matrix of shape (n_positive, n_features)
        Known positives.
    X_unlabeled : array-like, data frame or CSR matrix of shape (n_unlabeled, n_features)
        Rows that may be positive or negative.
    thetas : array-like of shape (n_thetas,), optional
        Candidate priors, increasing. By default 0 to 1 in steps of 0.001.
    sigmas : float or array-like, optional
        Bandwidths. By default 11, from 0.1 to 3.2 times the median distance between unlabeled
        rows and centres, each :math:`\sqrt 2` times the one before.
    lams : float or array-like, optional
        Regularisations. By default 0.001 and 10 per 300 centres; values between the ends of a
        grid never win.
    n_centers : int or None, default=2000
        At most so many rows are centres of the basis, drawn at random, half from each sample as
        far as it has them. None for all rows.
    cv : int or pair of array-likes of int, default=5
        Number of folds, or the folds of the positives and of the unlabeled rows.
    leave_one_out : bool, default=True
        Leave a centre out of its own mean. False for the paper's literal form.
    n_jobs : int, optional
        Threads over blocks of rows; -1 for all cores.
    random_state : int, RandomState instance or None, default=None
        Draws centres, folds and the rows from which the default bandwidths are set.

    Returns
    -------
    curve : PriorCurve
        The estimate, ``curve.prior``, and the objective over theta.

    See Also
    --------
    PenalizedL1Prior : The same as a scikit-learn estimator.

    Notes
    -----
    With one sigma and one lam nothing is cross-validated, and the estimate is the exact minimiser
    between the ends of ``thetas`` rather than the best theta of the grid.

    Where no region holds positives only, what is estimated is an upper bound of the share: no
    method can tell a negative that looks like a positive from a positive.

    References
    ----------
    du Plessis, Niu and Sugiyama (2017), *Class-prior Estimation for Learning from Positive and
    Unlabeled Data*, Machine Learning 106, section 2.4.

    Examples
    --------
    >>> from classprior import penalized_l1
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> X_positive, X_unlabeled = make_overlapping_uniforms(
    ...     overlap=0.25, prior=0.7, n_positive=1000, n_unlabeled=1000, random_state=0
    ... )
    >>> curve = penalized_l1(X_positive, X_unlabeled, random_state=0)
    >>> round(curve.prior, 2)
    0.69
    """
    estimator = PenalizedL1Prior(
        thetas=thetas,
        sigmas=sigmas,
        lams=lams,
        n_centers=n_centers,
        leave_one_out=leave_one_out,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    return estimator._estimate(*check_samples(X_positive, X_unlabeled), cv)


class PenalizedL1Prior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows by penalised L1 matching (penL1).

    Finds the theta at which theta p(x|y=1) fills as much of p(x) as it can without exceeding it;
    ``penalized_l1`` has the formula. Scale the columns first, for instance with StandardScaler in
    a Pipeline: the kernel sees distances.

    Parameters
    ----------
    thetas : array-like of shape (n_thetas,), optional
        Candidate priors, increasing. By default 0 to 1 in steps of 0.001.
    sigmas : float or array-like, optional
        Bandwidths. By default 11, from 0.1 to 3.2 times the median distance between unlabeled
        rows and centres, each :math:`\sqrt 2` times the one before.
    lams : float or array-like, optional
        Regularisations. By default 0.001 and 10 per 300 centres; values between the ends of a
        grid never win.
    n_centers : int or None, default=2000
        At most so many rows are centres of the basis, drawn at random, half from each sample as
        far as it has them. None for all rows.
    cv : int or array-like of int of shape (n_rows,), default=5
        Number of folds, or the fold of every row.
    leave_one_out : bool, default=True
        Leave a centre out of its own mean. False for the paper's literal form.
    pos_label : label, optional
        The label in y that marks known positives. By default 1 in {0, 1}, {-1, 1} and booleans,
        else the greater label, with a warning.
    n_jobs : int, optional
        Threads over blocks of rows; -1 for all cores.
    random_state : int, RandomState instance or None, default=None
        Draws centres, folds and the rows from which the default bandwidths are set.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows. The population's share, if positives and
        unlabeled rows were drawn apart.
    prior_pooled_ : float
        Share of positives in labelled and unlabeled rows together. The population's share, if one
        sample was drawn and some of its positives were labelled.
    label_frequency_ : float
        Labelled share of all positives, often called c.
    thetas_ : ndarray of shape (n_thetas,)
        Candidate priors.
    objective_ : ndarray of shape (n_thetas,)
        Penalised L1-distance at each candidate.
    sigma_, lam_ : ndarrays of shape (n_thetas,)
        Bandwidth and regularisation chosen at each candidate.
    centers_ : ndarray or CSR matrix of shape (n_centers, n_features)
        Centres of the basis, those from the positives first.
    coef_ : ndarray of shape (n_centers,)
        Coefficients alpha of the basis at the estimate, positive where the scaled positives exceed
        the unlabeled rows. Often all zero: the estimate is where that begins.
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
    penalized_l1 : The same for two samples.

    Notes
    -----
    With one sigma and one lam nothing is cross-validated, and ``prior_`` is the exact minimiser
    between the ends of ``thetas`` rather than the best theta of the grid.

    Where no region holds positives only, what is estimated is an upper bound of the share: no
    method can tell a negative that looks like a positive from a positive.

    References
    ----------
    du Plessis, Niu and Sugiyama (2017), *Class-prior Estimation for Learning from Positive and
    Unlabeled Data*, Machine Learning 106, section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import PenalizedL1Prior
    >>> rng = np.random.default_rng(0)
    >>> positive, negative = rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))
    >>> X = np.vstack([positive, negative])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> round(PenalizedL1Prior(random_state=0).fit(X, y).prior_, 2)
    0.32
    """

    def __init__(
        self,
        *,
        thetas: ArrayLike | None = None,
        sigmas: ArrayLike | None = None,
        lams: ArrayLike | None = None,
        n_centers: int | None = 2000,
        cv: int | ArrayLike = 5,
        leave_one_out: bool = True,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.thetas = thetas
        self.sigmas = sigmas
        self.lams = lams
        self.n_centers = n_centers
        self.cv = cv
        self.leave_one_out = leave_one_out
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _estimate(self, X_positive: Rows, X_unlabeled: Rows, cv: Any) -> PriorCurve:
        rng = check_random_state(self.random_state)
        return self._match(MemorySamples(X_positive, X_unlabeled, cv, rng, self.n_jobs))

    def _match(self, samples: Samples) -> PriorCurve:
        thetas = check_thetas(self.thetas)
        sigmas = check_grid(self.sigmas, "sigmas")
        lams = check_grid(self.lams, "lams")
        n_centers = check_n_centers(self.n_centers)
        check_scalar(self.leave_one_out, "leave_one_out", (bool, np.bool_))

        centers = samples.draw_centers(n_centers)
        if sigmas is None:
            sigmas = samples.bandwidths(centers)
        if lams is None:
            lams = _LAMS_PER_CENTER * centers.shape[0]
        basis = GaussianBasis(centers, sigmas)
        one_of_each = len(sigmas) == len(lams) == 1  # then there is nothing to choose
        folds = None if one_of_each else samples.deal_folds()
        positive, unlabeled = (
            samples.moments(sample, basis, folds, leave_one_out=self.leave_one_out)
            for sample in (0, 1)
        )
        return _curve(positive, unlabeled, basis, thetas, lams, samples.sizes)


def _curve(
    positive: Moments,
    unlabeled: Moments,
    basis: GaussianBasis,
    thetas: Doubles,
    lams: Doubles,
    sizes: tuple[int, int],
) -> PriorCurve:
    """Find the smallest penL1 over theta from the moments of the two samples."""
    a, b = paired_means(positive.total(), unlabeled.total())
    if len(basis.sigmas) == len(lams) == 1:
        path = PenalizedL1Path(a[0], b[0], lams[0])
        objective = path.value(thetas)
        prior = path.minimizer(thetas[0], thetas[-1])
        chosen, lam = np.zeros(len(thetas), dtype=int), np.full(len(thetas), lams[0])
    else:
        chosen, lam = select(held_out_gain(positive, unlabeled, thetas), lams)
        fit = hinge_products(thetas, a, b, a, b)[chosen, np.arange(len(thetas))]
        objective = fit / lam - thetas + 1.0
        prior = float(thetas[np.argmin(objective)])
    best = int(np.argmin(objective))
    return PriorCurve(
        prior=prior,
        thetas=thetas,
        objective=objective,
        sigma=basis.sigmas[chosen],
        lam=lam,
        centers=basis.centers,
        coef=closed_form(prior * a[chosen[best]] - b[chosen[best]], lam[best]),
        n_positive=sizes[0],
        n_unlabeled=sizes[1],
    )
