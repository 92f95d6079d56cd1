"""Partial matching with any divergence of the paper, ordinary or penalized."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from classprior._base import Resampler
from classprior._core.basis import GaussianBasis
from classprior._core.finite_slope import FiniteSlopeL1
from classprior._core.moments import Moments, paired_means
from classprior._core.smooth import Conjugate, concave_path, rotation
from classprior._core.threads import single_threaded
from classprior._core.types import Doubles, Ints
from classprior._samples.progress import progress
from classprior._samples.samples import Samples
from classprior._samples.sums import Centers, default_bandwidths, draw_centers
from classprior._tables.parameters import check_grid, check_n_dense_centers, check_thetas
from classprior.divergences import Divergence, KullbackLeibler, Pearson
from classprior.priors._base import BasePriorEstimator
from classprior.priors._penalized_l1 import PenalizedL1Prior

_SMOOTH: dict[str, type[Divergence]] = {"kl": KullbackLeibler, "pearson": Pearson}
_THETA_STEPS = 50
_N_CENTERS = 200
_LAMS = np.logspace(-3, 1, 3)

_Part = Any  # rows of one sample: a boolean mask or a slice
_Split = tuple[_Part, _Part]
_ALL = (slice(None), slice(None))


class DivergencePrior(BasePriorEstimator):
    r"""Share of positives in unlabeled rows by matching with an f-divergence.

    Minimizes the estimated divergence of theta p(x|y=1) from p(x). With f* the conjugate of the
    divergence, or of its penalized form,

    .. math:: \hat\theta = \arg\min_\theta \frac{\theta}{n} \sum_i r(x_i)
              - \frac{1}{n'} \sum_j f^*(r(x'_j)), \qquad r(x) = \hat\alpha^\top\varphi(x) - 1

    where :math:`\hat\alpha` maximizes the same expression minus
    :math:`\frac{\lambda}{2}\|\alpha\|^2` (du Plessis, Niu and Sugiyama, 2017, equations (2), (9)
    and (10)). The coefficients :math:`\alpha` are nonnegative for the L1 distance and
    unconstrained for the other divergences. The bandwidth and the regularization are
    cross-validated separately for each theta.

    Ordinary divergences overestimate the share if the classes overlap, because they allow theta
    p(x|y=1) to exceed p(x) at a finite cost. The penalized divergences do not allow it.

    The short names of these methods in ``estimate_prior`` are ``kl``, ``pearson`` and ``l1`` for
    the ordinary divergences and ``pen-kl``, ``pen-pearson`` and ``penl1`` for the penalized ones.

    Parameters
    ----------
    divergence : {"l1", "kl", "pearson"}, default="l1"
        The L1 distance, the Kullback-Leibler divergence or the Pearson divergence.
    penalized : bool, default=True
        Whether to use the penalized divergence, which is infinite if theta p(x|y=1) > p(x).
    slope : float, optional
        Slope c of the ordinary L1 distance above 1: f(t) = c (t - 1) for t > 1. The default, 1,
        is the L1 distance itself; infinity is the penalized L1 distance.
    thetas : array-like of shape (n_thetas,), optional
        Candidate priors in increasing order. By default, 0 to 1 in steps of 0.02, or of 0.001 for
        the penalized L1 distance, which has a closed form.
    sigmas : float or array-like, optional
        Candidate bandwidths. By default, 6 values from 0.1 to 3.2 times the median distance
        between unlabeled rows and centers, each twice the previous one; for the penalized
        L1 distance, those of ``PenalizedL1Prior``.
    lams : float or array-like, optional
        Candidate regularization parameters. By default, 0.001, 0.1 and 10, multiplied by
        n_centers / 300 for the L1 distance.
    n_centers : int, None or "auto", default="auto"
        Maximum number of basis centers, drawn at random, half from each sample if it has enough
        rows. Time grows with its square. None uses all rows, up to 1,000; "auto" means 200. For the
        penalized L1 distance, there is no such limit, and "auto" means 2,000.
    cv : int or array-like of int, default=5
        Number of folds, or the fold index of each row. For two samples, a pair of arrays.
    leave_one_out : bool, default=True
        Whether to leave each center out of its own mean, for the L1 distance only. The
        constraints of a finite slope include every center. False gives the formula in the paper,
        which is always used for the other divergences.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out.
    n_jobs : int, optional
        Number of threads over folds; -1 uses all cores.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of centers, folds and the rows that set the default bandwidths.
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
    thetas_, objective_ : ndarrays of shape (n_thetas,)
        Candidate priors and the estimated divergence at each of them.
    sigma_, lam_ : ndarrays of shape (n_thetas,)
        Bandwidth and regularization parameter selected at each candidate.
    centers_ : ndarray or CSR matrix of shape (n_centers, n_features)
        Centers of the basis; positives come first.
    coef_ : ndarray of shape (n_centers,)
        Coefficients alpha at the estimate.
    kernel_ : str
        As in ``PenalizedL1Prior``. Defined only for the penalized L1 distance.
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
    PenalizedL1Prior : Penalized L1 matching in closed form; much faster.
    PearsonPrior : Ordinary Pearson matching in closed form.

    Notes
    -----
    The inner problem is solved for every theta, bandwidth, regularization parameter and fold,
    starting from the solution for the previous theta. For the Kullback-Leibler and Pearson
    divergences, Newton's method runs until no entry of the gradient exceeds 1e-9. For the
    L1 distance with a finite slope, the quadratic program (11) is solved by a dual active-set
    method until all constraints hold, and the active ones are met with equality, to a relative
    tolerance of 1e-9. If the tolerance is not reached, an error is raised. The penalized
    L1 distance has a closed form and is delegated to ``PenalizedL1Prior``.

    As in the paper, the objective omits the regularizer. It need not be convex in theta, so the
    estimate is the best candidate on the grid. The held-out score of the L1 distance is extended
    linearly where a held-out row violates its constraint. The held-out score of the ordinary
    Kullback-Leibler divergence is infinite if r >= 0 at any held-out row.

    The ordinary Kullback-Leibler divergence equals -log theta plus a constant in the population,
    so it gives 1 whatever the true share is. It is included for comparison only.

    References
    ----------
    du Plessis, Niu and Sugiyama (2017), *Class-prior Estimation for Learning from Positive and
    Unlabeled Data*, Machine Learning 106, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import DivergencePrior
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (350, 2)), rng.normal(4, 1, (350, 2))])
    >>> y = np.arange(700) < 200  # 150 of the 500 unlabeled rows are positive
    >>> estimator = DivergencePrior(divergence="pearson", n_centers=50, random_state=0)
    >>> round(estimator.fit(X, y).prior_, 1)
    0.3
    """

    def __init__(
        self,
        *,
        divergence: str = "l1",
        penalized: bool = True,
        slope: float | None = None,
        thetas: ArrayLike | None = None,
        sigmas: ArrayLike | None = None,
        lams: ArrayLike | None = None,
        n_centers: int | str | None = "auto",
        cv: int | ArrayLike = 5,
        leave_one_out: bool = True,
        pos_label: Any = None,
        neg_label: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.divergence = divergence
        self.penalized = penalized
        self.slope = slope
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
        self.verbose = verbose

    def _solve(self, samples: Samples) -> Resampler | None:
        self.__dict__.pop("kernel_", None)  # only the closed form has it
        slope = self._check_slope()
        if slope == np.inf:
            return self._solve_closed_form(samples)
        check_scalar(self.leave_one_out, "leave_one_out", (bool, np.bool_))
        thetas = check_thetas(self.thetas, steps=_THETA_STEPS)
        sigmas, lams = check_grid(self.sigmas, "sigmas"), check_grid(self.lams, "lams")
        samples = samples.subsample(None)
        X_positive, X_unlabeled = samples.rows
        n_centers: Any = _N_CENTERS if self.n_centers == "auto" else self.n_centers
        centers = draw_centers(samples, check_n_dense_centers(n_centers, sum(samples.sizes)))
        n_centers = centers.X.shape[0]
        weights = samples.units.weights or (np.ones(samples.sizes[0]), np.ones(samples.sizes[1]))
        own = _own_centers(centers, samples) if self.leave_one_out else (None, None)
        if sigmas is None:
            sigmas = default_bandwidths(samples, centers)[::2]
        if lams is None:
            lams = _LAMS if slope is None else _LAMS * n_centers / 300
        lams = np.sort(lams)[::-1]  # largest first, so that it wins ties (all scores are zero)

        def matching(sigma: float) -> _Matching:
            basis = GaussianBasis(centers.X, np.array([sigma]))
            phi = basis.exact(X_positive), basis.exact(X_unlabeled)
            if slope is None:
                return _SmoothMatching(phi, weights, _SMOOTH[self.divergence](), self.penalized)
            return _SlopeMatching(phi, weights, own, slope)

        if len(sigmas) == len(lams) == 1:  # no cross-validation
            scores = np.zeros((1, 1, len(thetas)))
        else:
            folds = _splits(*samples.folds_of_rows(samples.folds(self.cv)))
            parts = (
                part
                for sigma in sigmas
                for part in _fold_scores(matching(sigma), thetas, lams, folds, self.n_jobs)
            )
            total = len(sigmas) * len(folds)
            scores = np.stack(list(progress(parts, total, "Cross-validation", self.verbose)))
            scores = scores.reshape(len(sigmas), len(folds), len(lams), -1).sum(axis=1)
        best = np.argmin(scores.reshape(-1, len(thetas)), axis=0)
        best_sigma, best_lam = np.unravel_index(best, scores.shape[:2])

        objective, coefs = np.empty(len(thetas)), np.empty((len(thetas), n_centers))
        for s in progress(list(np.unique(best_sigma)), None, "Objective", self.verbose):
            problem = matching(sigmas[s])
            for i in np.unique(best_lam[best_sigma == s]):
                here = (best_sigma == s) & (best_lam == i)
                path = problem.path(thetas[here], lams[i], _ALL)
                objective[here] = problem.gain(path, thetas[here], _ALL)
                coefs[here] = problem.coefficients(path)
        at = int(np.argmin(objective))
        self._set_prior(float(thetas[at]), samples.masses)
        self.thetas_ = thetas
        self.objective_ = objective
        self.sigma_, self.lam_ = sigmas[best_sigma], lams[best_lam]
        self.centers_ = centers.X
        self.coef_ = coefs[at]
        return None

    def _solve_closed_form(self, samples: Samples) -> Resampler:
        """Delegate the penalized L1 distance to ``PenalizedL1Prior``."""
        options: dict[str, Any] = {} if self.n_centers == "auto" else {"n_centers": self.n_centers}
        closed_form = PenalizedL1Prior(
            thetas=self.thetas,
            sigmas=self.sigmas,
            lams=self.lams,
            cv=self.cv,
            leave_one_out=self.leave_one_out,
            **options,
        )
        closed_form._set_negatives(samples, self._negative_mass)
        resampled = closed_form._solve(samples)
        self.__dict__.update({n: v for n, v in vars(closed_form).items() if n.endswith("_")})
        return resampled

    def _check_slope(self) -> float | None:
        """Return the slope of the L1 distance, or None for another divergence."""
        if self.divergence not in ("l1", *_SMOOTH):
            raise ValueError(
                f"Expected divergence 'l1', 'kl' or 'pearson', got {self.divergence!r}."
            )
        check_scalar(self.penalized, "penalized", (bool, np.bool_))
        if self.slope is None:
            if self.divergence != "l1":
                return None
            return np.inf if self.penalized else 1.0
        if self.divergence != "l1" or self.penalized:
            raise ValueError(
                f"slope={self.slope!r} requires divergence='l1' and penalized=False, got "
                f"divergence={self.divergence!r} and penalized={self.penalized!r}."
            )
        if not (isinstance(self.slope, Real) and self.slope > 0.0):
            raise ValueError(f"Expected a slope above 0, got {self.slope!r}.")
        return float(self.slope)


class _Matching(ABC):
    """The inner problem at one bandwidth, on any subset of rows."""

    @abstractmethod
    def path(self, thetas: Doubles, lam: float, rows: _Split) -> Doubles:
        """Return one solution per row, for an increasing grid of theta."""

    @abstractmethod
    def gain(self, path: Doubles, thetas: Doubles, rows: _Split) -> Doubles:
        """Return theta mean r(x) - mean f*(r(x')) for each solution."""

    @abstractmethod
    def coefficients(self, path: Doubles) -> Doubles:
        """Return the solutions as coefficients of the basis."""


class _SmoothMatching(_Matching):
    """Kullback-Leibler or Pearson matching, in a basis rotated to full rank."""

    def __init__(
        self,
        phi: tuple[Doubles, Doubles],
        weights: tuple[Doubles, Doubles],
        divergence: Divergence,
        penalized: bool,
    ) -> None:
        self._rotation = rotation(np.vstack(phi))
        self._phi_p, self._phi_u = phi[0] @ self._rotation, phi[1] @ self._rotation
        self._weights = weights
        self._conjugate = (
            Conjugate(
                divergence.penalized_conjugate,
                divergence.penalized_maximizer,
                divergence.penalized_curvature,
            )
            if penalized
            else Conjugate(divergence.conjugate, divergence.maximizer, divergence.curvature)
        )

    def path(self, thetas: Doubles, lam: float, rows: _Split) -> Doubles:
        phi_u, weights = self._phi_u[rows[1]], self._shares(1, rows)
        return concave_path(phi_u, self._mean(rows), thetas, lam, self._conjugate, weights)

    def gain(self, path: Doubles, thetas: Doubles, rows: _Split) -> Doubles:
        r = path @ self._mean(rows) - 1.0
        conjugate = self._conjugate.value(self._phi_u[rows[1]] @ path.T - 1.0)
        return thetas * r - self._shares(1, rows) @ conjugate

    def coefficients(self, path: Doubles) -> Doubles:
        return path @ self._rotation.T

    def _mean(self, rows: _Split) -> Doubles:
        return self._shares(0, rows) @ self._phi_p[rows[0]]

    def _shares(self, sample: int, rows: _Split) -> Doubles:
        weights = self._weights[sample][rows[sample]]
        return weights / weights.sum()


class _SlopeMatching(_Matching):
    """L1 matching with a finite slope; only its constraints need the unlabeled rows."""

    def __init__(
        self,
        phi: tuple[Doubles, Doubles],
        weights: tuple[Doubles, Doubles],
        own: tuple[Ints | None, Ints | None],  # the index of each row's own center, or -1
        slope: float,
    ) -> None:
        self._samples = list(zip(phi, weights, own, strict=True))
        self._slope = slope

    def path(self, thetas: Doubles, lam: float, rows: _Split) -> Doubles:
        # Leaving a center out of its own mean changes beta only; the constraints keep every phi.
        feasible = FiniteSlopeL1(self._samples[1][0][rows[1]], self._slope)
        return feasible.path(self._betas(thetas, rows) / lam)

    def gain(self, path: Doubles, thetas: Doubles, rows: _Split) -> Doubles:
        return np.einsum("tl,tl->t", path, self._betas(thetas, rows)) - thetas + 1.0

    def coefficients(self, path: Doubles) -> Doubles:
        return path

    def _betas(self, thetas: Doubles, rows: _Split) -> Doubles:
        moments = (
            _moments(*sample, part) for sample, part in zip(self._samples, rows, strict=True)
        )
        a, b = paired_means(*moments)
        return thetas[:, None] * a - b


def _own_centers(centers: Centers, samples: Samples) -> tuple[Ints, Ints]:
    """Return the index of the center at each row of both samples, or -1."""
    own = np.full(samples.sizes[0], -1), np.full(samples.sizes[1], -1)
    n_positive, n_unlabeled = map(len, centers.chosen)
    own[0][samples.numbers_of(0, centers.chosen[0])] = np.arange(n_positive)
    own[1][samples.numbers_of(1, centers.chosen[1])] = n_positive + np.arange(n_unlabeled)
    return own


def _moments(phi: Doubles, weights: Doubles, own_center: Ints | None, rows: _Part) -> Moments:
    """Sum phi over rows, without the value of each center at its own row."""
    phi, weights = phi[rows], weights[rows]
    sums, counts = weights @ phi, np.full(phi.shape[1], weights.sum())
    if own_center is not None:
        at = np.flatnonzero(own_center[rows] >= 0)
        centers = own_center[rows][at]  # each center is the own center of at most one row
        sums[centers] -= weights[at] * phi[at, centers]
        counts[centers] -= weights[at]
    return Moments(sums[None], counts[None])


def _splits(folds_positive: Ints, folds_unlabeled: Ints) -> list[_Split]:
    """Return the masks of the held-out rows of each fold."""
    n_folds = int(folds_positive.max()) + 1
    return [(folds_positive == k, folds_unlabeled == k) for k in range(n_folds)]


def _fold_scores(
    problem: _Matching, thetas: Doubles, lams: Doubles, folds: list[_Split], n_jobs: int | None
) -> Iterator[Doubles]:
    """Yield the held-out scores of each fold, of shape (n_lams, n_thetas)."""

    def scores(held_out: _Split) -> Doubles:
        training = np.logical_not(held_out[0]), np.logical_not(held_out[1])
        paths = (problem.path(thetas, lam, training) for lam in lams)
        return np.stack([-problem.gain(path, thetas, held_out) for path in paths])

    with single_threaded():
        parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        yield from parallel(delayed(scores)(held_out) for held_out in folds)
