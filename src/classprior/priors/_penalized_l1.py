"""Prior estimation by penalized L1 matching, the estimator proposed in the paper."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from classprior._base import Resampler
from classprior._core.basis import GaussianBasis
from classprior._core.cross_validation import held_out_gain, select
from classprior._core.moments import BinnedMoments, Moments, fastest_kernel, paired_means
from classprior._core.solvers import PenalizedL1Path, closed_form, hinge_products
from classprior._core.types import Doubles, Ints
from classprior._samples.samples import Samples
from classprior._samples.sums import default_bandwidths, draw_centers, moments_of
from classprior._tables.parameters import check_grid, check_n_centers, check_thetas
from classprior.priors._base import BasePriorEstimator

# The ends of the default grid, relative to the noise of the objective. From 0.001 to 0.01 the lower
# end makes little difference.
_LAMS_PER_NOISE = np.array([2e-3, 2e1])


class PenalizedL1Prior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows by penalized L1 matching (penL1).

    Finds the largest theta for which theta p(x|y=1) does not exceed p(x), by minimizing the
    penalized L1 distance between the two:

    .. math:: \hat\theta = \arg\min_\theta \frac{1}{\lambda} \sum_\ell
              \max(0, \beta_\ell) \beta_\ell - \theta + 1, \qquad
              \beta_\ell = \frac{\theta}{n} \sum_i \varphi_\ell(x_i)
              - \frac{1}{n'} \sum_j \varphi_\ell(x'_j)

    with Gaussian basis functions :math:`\varphi_\ell` (du Plessis, Niu and Sugiyama, 2017: the
    solution of equation (11) with :math:`c = \infty`). The bandwidth and the regularization are
    cross-validated separately for each theta.

    The Gaussian kernel depends on distances, so scale the columns first, for instance with
    ``StandardScaler`` in a ``Pipeline``; ``estimate_prior`` does this by default.

    Parameters
    ----------
    thetas : array-like of shape (n_thetas,), optional
        Candidate priors in increasing order. By default, 0 to 1 in steps of 0.001.
    sigmas : float, array-like or "literal", optional
        Candidate bandwidths. By default, 11 values from 0.1 to 3.2 times the median distance
        between unlabeled rows and centers, increasing by a factor of :math:`\sqrt 2`.
        ``"literal"`` means 10 values from 0.01 to 10 times the median distance, equally spaced on
        a logarithmic scale. Medians are from at most 300 unlabeled rows.
    lams : float or array-like, optional
        Candidate regularization parameters. By default, 0.002 and 20 times the standard deviation
        of the objective at each theta, so that the bias of the estimate vanishes with more rows.
        Only the ends of a grid matter: values in between are never selected.
    n_centers : int or None, default=2000
        Maximum number of basis centers, drawn at random, half from each sample if it has
        enough rows. None uses all rows.
    cv : int or array-like of int, default=5
        Number of folds, or the fold index of each row. For two samples, a pair of arrays.
    leave_one_out : bool, default=True
        Whether to leave each center out of its own mean. False gives the formula in the paper;
        ``PenalizedL1Prior.literal()`` also has the grids of the public program.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out.
    n_jobs : int, optional
        Number of threads over blocks of rows; -1 uses all cores.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of centers, folds and the rows that set the default bandwidths.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows. This estimates the share in the population if
        positives and unlabeled rows were sampled separately.
    prior_pooled_ : float
        Share of positives in the labeled and unlabeled rows together. This estimates the share
        in the population if one sample was drawn and some of its positives were labeled.
    label_frequency_ : float
        Share of all positives that are labeled, often called c.
    thetas_ : ndarray of shape (n_thetas,)
        Candidate priors.
    objective_ : ndarray of shape (n_thetas,)
        Penalized L1 distance at each candidate.
    sigma_, lam_ : ndarrays of shape (n_thetas,)
        Bandwidth and regularization parameter selected at each candidate.
    centers_ : ndarray or CSR matrix of shape (n_centers, n_features)
        Centers of the basis; positives come first.
    coef_ : ndarray of shape (n_centers,)
        Coefficients alpha at the estimate. A coefficient is positive where theta p(x|y=1) exceeds
        p(x). Often all are zero, since the estimate is the point where this begins.
    kernel_ : str
        What computed the sums: "numba" if it is installed (extra ``fast``) and the rows are dense,
        have no weights and at most 128 columns, else "numpy".
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
    estimate_prior : Estimate the prior with an interval, a bound and diagnostics.
    DivergencePrior : Partial matching with other divergences.

    Notes
    -----
    With a single value of ``sigmas`` and of ``lams``, nothing is cross-validated and ``prior_`` is
    the exact minimizer between the ends of ``thetas``, not the best candidate on the grid.

    If no region contains positives only, the estimate is an upper bound on the share: no method
    can tell negatives that look exactly like positives from positives.

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
    0.33
    """

    takes_checkpoint = True

    def __init__(
        self,
        *,
        thetas: ArrayLike | None = None,
        sigmas: ArrayLike | str | None = None,
        lams: ArrayLike | None = None,
        n_centers: int | None = 2000,
        cv: int | ArrayLike = 5,
        leave_one_out: bool = True,
        pos_label: Any = None,
        neg_label: Any = None,
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
        self.neg_label = neg_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def literal(cls, **parameters: Any) -> Self:
        """Return an estimator that does what the paper says, with the grids of the public program.

        The Gaussians are at all rows, and each row counts in the mean of its own Gaussian, as in
        the paper. The candidates are those of the public MATLAB program: theta from 0.05 to 0.95 in
        steps of 0.05, sigma from 0.01 to 10 times the median distance and lambda from 0.001 to 10,
        with 5 folds. (The program has Gaussians at 300 unlabeled rows at most.)

        Parameters
        ----------
        **parameters
            Parameters of the class, which replace those above.

        Returns
        -------
        estimator : PenalizedL1Prior
            The estimator, not fitted.

        Examples
        --------
        >>> from classprior import PenalizedL1Prior
        >>> from classprior.datasets import make_overlapping_uniforms
        >>> samples = make_overlapping_uniforms(overlap=0.25, prior=0.7, random_state=1)
        >>> PenalizedL1Prior.literal(random_state=0).fit_samples(*samples).prior_
        0.7
        """
        literal = {
            "thetas": np.arange(1, 20) / 20,
            "sigmas": "literal",
            "lams": (1e-3, 1e1),  # no value in between can be selected
            "n_centers": None,
            "cv": 5,
            "leave_one_out": False,
        }
        return cls(**{**literal, **parameters})

    def _solve(self, samples: Samples) -> Resampler:
        thetas = check_thetas(self.thetas)
        is_literal = isinstance(self.sigmas, str) and self.sigmas == "literal"
        sigmas = None if is_literal else check_grid(self.sigmas, "sigmas")
        lams = check_grid(self.lams, "lams")
        check_scalar(self.leave_one_out, "leave_one_out", (bool, np.bool_))
        centers = draw_centers(samples, check_n_centers(self.n_centers))
        if sigmas is None:
            sigmas = default_bandwidths(samples, centers, literal=is_literal)
        basis = GaussianBasis(centers.X, sigmas)
        nothing_to_choose = lams is not None and len(sigmas) == len(lams) == 1
        folds = samples.one_fold() if nothing_to_choose else samples.folds(self.cv)
        leave_out = centers if self.leave_one_out else None
        # The compiled kernel does not take weights.
        kernel = "numpy" if samples.units.weights is not None else fastest_kernel(basis)
        positive, unlabeled = (moments_of(samples, s, basis, leave_out, kernel) for s in (0, 1))
        of_folds = positive.of_folds(folds[0]), unlabeled.of_folds(folds[1])
        if lams is None:
            a, _ = paired_means(of_folds[0].total(), of_folds[1].total())
            lams = _LAMS_PER_NOISE[:, None] * _noise(positive, unlabeled, a, thetas)

        match = _match(*of_folds, thetas, lams)
        self._set_prior(match.prior, samples.masses)
        self.thetas_ = thetas
        self.objective_ = match.objective
        self.sigma_ = sigmas[match.sigma_index]
        self.lam_ = match.lam
        self.centers_ = centers.X
        self.coef_ = match.coef
        self.kernel_ = kernel

        def resampled(weights: tuple[Doubles, Doubles]) -> Doubles:
            return np.array(
                [
                    _match(
                        positive.of_folds(folds[0], w_positive),
                        unlabeled.of_folds(folds[1], w_unlabeled),
                        thetas,
                        lams,
                    ).prior
                    for w_positive, w_unlabeled in zip(*weights, strict=True)
                ]
            )

        return resampled


def _noise(
    positive: BinnedMoments, unlabeled: BinnedMoments, a: Doubles, thetas: Doubles
) -> Doubles:
    r"""Return the noise of the objective: the standard deviation of :math:`a^\top \beta(\theta)`.

    Near the true prior, the objective is :math:`(\theta - \pi)^2 \|a\|^2 / \lambda - \theta`, up to
    a constant, so its minimizer is too high by :math:`\lambda / (2 \|a\|^2)`. With lambda in
    proportion to the noise, this bias is in proportion to the standard error, and both vanish with
    more rows. One value, the geometric mean over bandwidths, serves all of them.
    """
    variance = (
        thetas**2 * positive.variance_along(a)[:, None] + unlabeled.variance_along(a)[:, None]
    )
    seen = variance[:, -1] > 0.0  # bandwidths at which centers see any row
    if not seen.any():
        return np.full(len(thetas), np.finfo(np.float64).tiny)
    return np.exp(np.log(np.maximum(variance[seen], 1e-300)).mean(axis=0) / 2.0)


class _Match(NamedTuple):
    """The minimum of penL1 over theta, with the parameters selected at each theta."""

    prior: float
    objective: Doubles
    sigma_index: Ints
    lam: Doubles
    coef: Doubles


def _match(positive: Moments, unlabeled: Moments, thetas: Doubles, lams: Doubles) -> _Match:
    """Minimize penL1 over theta, given the fold moments of the two samples."""
    a, b = paired_means(positive.total(), unlabeled.total())
    if len(a) == lams.size == 1:  # no cross-validation, so use the exact path
        path = PenalizedL1Path(a[0], b[0], lams[0])
        objective = path.value(thetas)
        prior = path.minimizer(thetas[0], thetas[-1])
        chosen, lam = np.zeros(len(thetas), dtype=np.int64), np.full(len(thetas), lams[0])
    else:
        chosen, lam = select(held_out_gain(positive, unlabeled, thetas), lams)
        fit = hinge_products(thetas, a, b, a, b)[chosen, np.arange(len(thetas))]
        objective = fit / lam - thetas + 1.0
        prior = float(thetas[np.argmin(objective)])
    best = int(np.argmin(objective))
    coef = closed_form(prior * a[chosen[best]] - b[chosen[best]], lam[best])
    return _Match(prior, objective, chosen, lam, coef)
