"""The PE baseline: partial matching with the Pearson divergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from classprior._base import Resampler
from classprior._core.types import Doubles, Ints, Rows
from classprior._samples.samples import Samples
from classprior._samples.sums import draw_centers
from classprior._tables.parameters import check_n_dense_centers, check_thetas
from classprior.density_ratio import RatioFit, fit_ratio, linear_model
from classprior.priors._base import BasePriorEstimator, inside_unit_interval


class PearsonPrior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows by Pearson divergence matching (PE).

    Minimizes the estimated Pearson divergence of theta p(x|y=1) from p(x), in closed form:

    .. math:: \mathrm{PE}(\theta) = \frac{\theta^2}{2}
              \left(2 h^\top G^{-1} h - h^\top G^{-1} H G^{-1} h\right) - \theta + \frac12,
              \qquad G = H + \lambda I

    where H is the mean of :math:`\varphi(x')\varphi(x')^\top` over unlabeled rows and h is the
    mean of :math:`\varphi(x)` over positives (du Plessis and Sugiyama, 2014, in the two-sample
    form of du Plessis, Niu and Sugiyama, 2017, section 4). The minimizer is the reciprocal of the
    expression in parentheses. The estimate is too high if the classes overlap. Included for
    comparison.

    Parameters
    ----------
    thetas : array-like of shape (n_thetas,), optional
        Candidate priors at which ``objective_`` is tabulated; the estimate does not depend on
        them. By default, 0 to 1 in steps of 0.001.
    sigmas : float or array-like, optional
        Candidate bandwidths. By default, 11 values from 0.1 to 3.2 times the median distance
        between unlabeled rows and centers.
    lams : float or array-like, optional
        Candidate regularization parameters. By default, 9 values from 0.001 to 10.
    n_centers : int or None, default=200
        Maximum number of basis centers, drawn at random, half from each sample if it has enough
        rows. Time grows with its cube. None uses all rows, up to 1,000.
    cv : int or array-like of int, default=5
        Number of folds, or the fold index of each row. For two samples, a pair of arrays.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of centers, folds and the rows that set the default bandwidths.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in all rows together, labeled and unlabeled.
    label_frequency_ : float
        Share of all positives that are labeled, often called c.
    thetas_, objective_ : ndarrays of shape (n_thetas,)
        Candidate priors and the objective at each of them.
    sigma_, lam_ : ndarrays of shape (n_thetas,)
        Selected bandwidth and regularization parameter, the same at each candidate.
    centers_ : ndarray or CSR matrix of shape (n_centers, n_features)
        Centers of the basis.
    coef_ : ndarray of shape (n_centers,)
        Coefficients alpha at the estimate.
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
    PenalizedL1Prior : Does not overestimate if the classes overlap.

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

    takes_checkpoint = True

    def __init__(
        self,
        *,
        thetas: ArrayLike | None = None,
        sigmas: ArrayLike | None = None,
        lams: ArrayLike | None = None,
        n_centers: int | None = 200,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        neg_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.thetas = thetas
        self.sigmas = sigmas
        self.lams = lams
        self.n_centers = n_centers
        self.cv = cv
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.random_state = random_state

    def _solve(self, samples: Samples) -> Resampler:
        thetas = check_thetas(self.thetas)
        n_centers = check_n_dense_centers(self.n_centers, sum(samples.bins.n_counted))
        fit = fit_ratio(
            samples,
            draw_centers(samples, n_centers),
            sigmas=self.sigmas,
            lams=self.lams,
            cv=self.cv,
            nonnegative=False,
        )
        H, h, ratio = fit.gram, fit.mean, fit.coef  # ratio = G^-1 h
        curvature = float(2.0 * h @ ratio - ratio @ H @ ratio)
        prior = inside_unit_interval(
            1.0 / curvature if curvature > 0.0 else np.inf,
            "Either the regularization is too strong, or nearly all unlabeled rows are positive.",
        )
        self._set_prior(prior, samples.masses)
        self.thetas_ = thetas
        self.objective_ = thetas**2 / 2.0 * curvature - thetas + 0.5
        self.sigma_ = np.full(len(thetas), fit.sigma)
        self.lam_ = np.full(len(thetas), fit.lam)
        self.centers_ = fit.centers
        self.coef_ = prior * ratio

        def resampled(weights: tuple[Doubles, Doubles]) -> Doubles:
            # Delta method: the bracket is stationary in alpha (up to lambda), so a resample changes
            # it only through the means of w over positives and of w^2 over unlabeled rows.
            n_bins = [len(counts) for counts in samples.bins.n_rows]
            means = [
                w
                @ samples.sums(
                    s,
                    _RatioPower(fit, 1 + s, n),
                    (n,),
                    f"ratio to the {1 + s}",
                    weights=samples.weights(s),
                )
                / (w @ samples.totals[s])
                for s, (w, n) in enumerate(zip(weights, n_bins, strict=True))
            ]
            brackets = 2.0 * means[0] - means[1]
            return np.clip(1.0 / np.maximum(brackets, 1.0), 0.0, 1.0)

        return resampled


@dataclass(frozen=True, eq=False)
class _RatioPower:
    """Sums a power of the fitted density ratio over the rows of each bin."""

    fit: RatioFit
    power: int
    n_bins: int

    def __call__(self, X: Rows, bins: Ints, weights: Doubles | None = None) -> Doubles:
        ratio = linear_model(X, self.fit.centers, self.fit.sigma, self.fit.coef)
        powers = ratio**self.power if weights is None else weights * ratio**self.power
        return np.bincount(bins, powers, self.n_bins).astype(np.float64)
