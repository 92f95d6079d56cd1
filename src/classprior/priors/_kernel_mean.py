"""KM1 and KM2: kernel embeddings of the two samples."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from sklearn.utils import check_scalar

from classprior._core.basis import GaussianBasis, bandwidth_ladder
from classprior._core.messages import warn
from classprior._core.simplex import minimize_over_simplex
from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Rows
from classprior._samples.samples import Samples
from classprior._tables.parameters import check_grid
from classprior.priors._base import UnweightedPriorEstimator

_FIRST_LAMBDA = 1.05  # the slope at the start is that from 1 to here
_WEIGHT_OF_END = 0.2  # of the final slope in the threshold of KM2
_HOPELESS = 0.9  # KM1 is KM2 if its threshold is above this share of the final slope
_DIGITS = 3  # of the prior; the root is found a little more precisely
_DUALITY_GAP = 1e-9  # relative to the squared distance of the two means
_ROUNDING = 1e-13  # of that distance; kernel values are at most 1
_STRAIGHT = 1.0 - 1e-6  # first slope, as a share of the final one, of a curve that never bends
_FAINT = 2.0  # squared distance of the two means, in units of its noise, that may be chance


class KernelMeanPrior(UnweightedPriorEstimator):
    r"""Share of positives in unlabeled rows from kernel mean embeddings (KM1, KM2).

    Let :math:`\phi_p` and :math:`\phi_u` be the means of the feature map of a Gaussian kernel over
    positives and unlabeled rows. If a share :math:`\kappa` of the unlabeled rows is positive, then
    :math:`\lambda\phi_u + (1 - \lambda)\phi_p` with :math:`\lambda = 1 / (1 - \kappa)` is the
    embedding of the negatives, and for greater :math:`\lambda` it is not that of a distribution.
    So the distance

    .. math:: d(\lambda) = \min_{v \ge 0,\, \mathbf{1}^\top v = 1}
              \left\| \lambda\phi_u + (1 - \lambda)\phi_p - \sum_i v_i \phi(x_i) \right\|

    from the distributions on all rows :math:`x_i` begins to grow there. The estimate is the
    :math:`\kappa` at which the slope :math:`d'(\lambda)`, which never falls and tends to the
    distance :math:`D` of the two means, reaches a threshold (Ramaswamy, Scott and Tewari, 2016).

    Parameters
    ----------
    threshold : {"km1", "km2"}, default="km2"
        Threshold of the slope. "km1" is :math:`1 / \sqrt{\min(n, n')}`, or that of "km2" if this is
        above 0.9 D; "km2" is 0.8 times the mean slope from 1 to 1.05, plus 0.2 D.
    sigmas : float or array-like, optional
        Candidate bandwidths; the one with the greatest D is used. By default, 5 values from 0.1 to
        10 times the median distance between rows.
    max_rows : int, default=500
        Maximum number of rows of each sample, drawn at random. Memory grows with the square, and
        time with the cube of the number of rows.
    cv : int or array-like of int, default=5
        Not used; all prior estimators have it.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of rows.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in all rows together, labeled and unlabeled.
    label_frequency_ : float
        Share of all positives that are labeled, often called c.
    sigma_ : float
        The chosen bandwidth.
    threshold_ : float
        The threshold of the slope.
    distance_ : float
        The distance D of the two means.
    n_fitted_ : pair of int
        Numbers of positives and of unlabeled rows used, at most ``max_rows`` each.
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
    PenalizedL1Prior : Matches densities with Gaussian kernels; takes any number of rows.

    Notes
    -----
    Each value of the slope takes a quadratic program over all rows used, solved by an
    interior-point method to a duality gap of 1e-9 D². The slope is exact where d > 0, by the
    envelope theorem, and d(1) = 0. The authors' program takes differences of d, solves for d(1)
    too, and searches priors up to 0.875. If most unlabeled rows are positive, the rounding error of
    its d(1) lowers the threshold enough to move the estimate.

    KM assumes that some region contains (almost) only positives. With few rows, the slope exceeds
    the threshold too early if most unlabeled rows are positive: the estimate may then be near 0,
    since both means are nearly the same. With many columns, distances carry little information.
    There is a warning if :math:`D^2` is less than twice :math:`1/n + 1/n'`, its value for rows that
    are all far apart; if the slope is then D from the start, KM2 is 1.

    References
    ----------
    Ramaswamy, Scott and Tewari (2016), *Mixture Proportion Estimation via Kernel Embedding of
    Distributions*, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior.priors import KernelMeanPrior
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> round(KernelMeanPrior(max_rows=200, random_state=0).fit(X, y).prior_, 1)
    0.3
    """

    def __init__(
        self,
        *,
        threshold: Literal["km1", "km2"] = "km2",
        sigmas: ArrayLike | None = None,
        max_rows: int = 500,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        neg_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.threshold = threshold
        self.sigmas = sigmas
        self.max_rows = max_rows
        self.cv = cv
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.random_state = random_state

    def _solve(self, samples: Samples) -> None:
        if self.threshold not in ("km1", "km2"):
            raise ValueError(f"Expected threshold to be 'km1' or 'km2', got {self.threshold!r}.")
        check_scalar(self.max_rows, "max_rows", Integral, min_val=2)
        drawn = samples.subsample(self.max_rows)
        X, is_positive = drawn.stacked_rows()
        sigmas = check_grid(self.sigmas, "sigmas")
        if sigmas is None:
            sigmas = np.logspace(-1.0, 1.0, 5) * 10.0 * bandwidth_ladder(X, X)[0]
        with single_threaded():
            curve, sigma = _best_curve(X, is_positive, sigmas)
            threshold = float(1.0 / np.sqrt(min(drawn.sizes)))
            start, end = curve.first_slope(), curve.D
            if self.threshold == "km2" or threshold > _HOPELESS * end:
                threshold = (1.0 - _WEIGHT_OF_END) * start + _WEIGHT_OF_END * end
            prior = curve.prior(threshold)
        noise = sum(1.0 / size for size in drawn.sizes)  # D² of rows that are all far apart
        is_faint = end**2 <= _FAINT * noise
        if self.threshold == "km2" and start >= _STRAIGHT * end:  # else the solver's error decides
            prior = 1.0 if is_faint else 0.0
        if is_faint:
            warn(
                "Gaussian kernels can hardly tell the two samples apart: the distance of their "
                f"means, {end:.2g}, may be noise, and so may the estimate, {prior:.1%}. Either "
                "most unlabeled rows are positive, or rows are few for so many columns. Use "
                "AutoPrior, the method 'auto'."
            )
        self._set_prior(prior, samples.sizes)
        self.sigma_, self.threshold_, self.distance_ = sigma, threshold, curve.D
        self.n_fitted_ = drawn.sizes


class DistanceCurve:
    """The distance d of an extrapolated distribution from all distributions on the rows."""

    def __init__(self, K: Doubles, is_positive: Bools) -> None:
        self._K = K
        self._p, self._u = is_positive / is_positive.sum(), ~is_positive / (~is_positive).sum()
        self._K_direction = K @ (self._u - self._p)
        squared = float((self._u - self._p) @ self._K_direction)
        self.D = np.sqrt(squared) if squared > _ROUNDING else 0.0

    def value_and_slope(self, lam: float) -> tuple[float, float]:
        """Return d and its derivative at lambda."""
        target = lam * self._u + (1.0 - lam) * self._p
        v = minimize_over_simplex(self._K, self._K @ target, 0.5 * _DUALITY_GAP * self.D**2)
        rest = target - v
        squared = float(rest @ self._K @ rest)
        if squared <= _DUALITY_GAP * self.D**2:  # zero, as far as the solver can tell
            return 0.0, 0.0
        return np.sqrt(squared), float(rest @ self._K_direction) / np.sqrt(squared)

    def first_slope(self) -> float:
        """Return the mean slope from 1, where d = 0, to 1.05."""
        if self.D == 0.0:
            return 0.0
        return self.value_and_slope(_FIRST_LAMBDA)[0] / (_FIRST_LAMBDA - 1.0)

    def prior(self, threshold: float) -> float:
        """Return the prior at which the slope reaches the threshold, to three digits."""
        if threshold >= self.D:  # the slope never does, or the two means are the same
            return 1.0

        def excess(prior: float) -> float:
            slope = 0.0 if prior == 0.0 else self.D
            if 0.0 < prior < 1.0:
                slope = self.value_and_slope(1.0 / (1.0 - prior))[1]
            return slope - threshold

        return round(float(brentq(excess, 0.0, 1.0, xtol=0.25 * 10.0**-_DIGITS)), _DIGITS)


def _best_curve(X: Rows, is_positive: Bools, sigmas: Doubles) -> tuple[DistanceCurve, float]:
    """Return the curve whose kernel tells the two samples apart best, and its bandwidth."""
    best, chosen = None, 0.0
    for sigma in sigmas:
        K = GaussianBasis(X, np.array([sigma])).exact(X)
        curve = DistanceCurve(0.5 * (K + K.T), is_positive)
        if best is None or curve.D > best.D:
            best, chosen = curve, float(sigma)
    assert best is not None
    return best, chosen
