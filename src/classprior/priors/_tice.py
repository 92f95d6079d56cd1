"""TIcE: lower bounds on the label frequency from the nodes of decision trees."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_scalar

from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._samples.samples import Samples
from classprior._tables.parameters import check_share
from classprior.priors._base import UnweightedPriorEstimator

_ROUNDS = 2  # the second round uses the label frequency found in the first
_FIRST_GUESS = 0.5  # of the label frequency
_BLOCK = 10_000  # rows that are made dense at a time
_MOST_PARTS = 256  # a part is stored in one byte
Parts = NDArray[np.uint8]


class TIcEPrior(UnweightedPriorEstimator):
    r"""Share of positives in unlabeled rows by tree induction for c estimation (TIcE).

    The label frequency c is the share of all positives that are labeled. In any part of the data
    with T rows, L of them labeled, L / T estimates at most c, with equality if the part contains
    only positives. With probability :math:`1 - \delta`,

    .. math:: c > \frac{L}{T} - \sqrt{\frac{c (1 - c) (1 - \delta)}{\delta T}}.

    A decision tree looks for parts with many labeled rows. The estimate of c is the greatest of
    these bounds, and at least the share of all rows that are labeled.
    With n positives and n' unlabeled rows, :math:`\hat\pi = n (1 - c) / (c\, n')` (Bekker and
    Davis, 2018).

    Parameters
    ----------
    delta : float, optional
        Error probability of each bound. By default, :math:`\max(0.025, 1 / (1 + 0.004 T))`, where T
        is the number of rows that the bounds are computed from.
    k : float, default=5
        Smoothing of the criterion for splits, max-bepp: the split is chosen whose best part has the
        largest L / (T + k).
    n_parts : int, default=4
        Number of parts that a split cuts the range of a column into, all of the same width. At
        most 256.
    max_splits : int, default=500
        Maximum number of nodes of a tree that are split, or found to have no split.
    min_rows : int, default=10
        Nodes with fewer rows give no bound; nodes with at most as many are not split.
    cv : int or array-like of int, default=5
        Number of folds, or the fold index of each row. For two samples, a pair of arrays. Each fold
        grows a tree, and the other folds give its bounds; the results are averaged.
    pos_label : label, optional
        Label in y that marks known positives. By default, 1 if the labels are {0, 1}, {-1, 1} or
        booleans, or the label beside a word such as "unknown"; otherwise the greater label, with a
        warning.
    neg_label : label, optional
        Label in y that marks confirmed negatives, if there are any. They are left out.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds.

    Attributes
    ----------
    prior_ : float
        Share of positives in the unlabeled rows.
    prior_pooled_ : float
        Share of positives in all rows together, labeled and unlabeled.
    label_frequency_ : float
        Share of all positives that are labeled, c.
    fold_label_frequencies_ : ndarray of shape (n_folds,)
        The greatest lower bound on c for each fold.
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
    classprior.AutoPrior : Finds regions of positives with classifiers, and gives an interval.

    Notes
    -----
    Nodes are split best first, each column at most once on a path. If the best column has all
    bounding rows of a node in one part, the node is not split by any column. With the same folds,
    the bounds are those of the authors' program, but for one line: its copy in their repository
    SAR-PU counts the bounds in the rows that grew the tree, which makes them too high. Here, as in
    the paper, they are counted in the other rows. The c on the right-hand side is
    0.5 in a first round, and the result of the first round in a second one. The parts of all
    columns take one byte per row and column, also if the rows are sparse.

    TIcE assumes that a box with edges parallel to the axes contains (almost) only positives. It is
    fast and needs no classifier. Since c is a lower bound, the estimate tends to be too high, most
    of all with few rows. A column with outliers is of no use, as nearly all of its values are in
    the same part.

    References
    ----------
    Bekker and Davis (2018), *Estimating the Class Prior in Positive and Unlabeled Data Through
    Decision Tree Induction*, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior.priors import TIcEPrior
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))])
    >>> y = np.arange(1400) < 400  # 300 of the 1000 unlabeled rows are positive
    >>> round(TIcEPrior(random_state=0).fit(X, y).prior_, 1)  # c is a lower bound
    0.4
    """

    def __init__(
        self,
        *,
        delta: float | None = None,
        k: float = 5.0,
        n_parts: int = 4,
        max_splits: int = 500,
        min_rows: int = 10,
        cv: int | ArrayLike = 5,
        pos_label: Any = None,
        neg_label: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.delta = delta
        self.k = k
        self.n_parts = n_parts
        self.max_splits = max_splits
        self.min_rows = min_rows
        self.cv = cv
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.random_state = random_state

    def _solve(self, samples: Samples) -> None:
        if self.delta is not None:
            check_share(self.delta, "delta")
        check_scalar(self.k, "k", Real, min_val=0.0)
        check_scalar(self.n_parts, "n_parts", Integral, min_val=2, max_val=_MOST_PARTS)
        check_scalar(self.max_splits, "max_splits", Integral, min_val=1)
        check_scalar(self.min_rows, "min_rows", Integral, min_val=1)
        samples = samples.loaded()
        X, is_labeled = samples.stacked_rows()
        parts = equal_parts(X, self.n_parts)
        folds = np.concatenate(samples.folds_of_rows(samples.folds(self.cv)))
        c = _FIRST_GUESS
        for _ in range(_ROUNDS):
            bounds = [
                self._greatest_bound(parts, is_labeled, folds == fold, c)
                for fold in range(folds.max() + 1)
            ]
            c = float(np.mean(bounds))
        n, m = samples.sizes
        c = max(c, n / (n + m))  # in a fold with few positives, even the whole may be below this
        self._set_prior(n * (1.0 - c) / (c * m), samples.sizes)
        self.fold_label_frequencies_ = np.array(bounds)

    def _greatest_bound(
        self, parts: Parts, is_labeled: Bools, in_tree: Bools, guess: float
    ) -> float:
        """Return the greatest lower bound on c over the nodes of a tree grown on some rows."""
        n_bounding = np.count_nonzero(~in_tree)
        delta = max(0.025, 1.0 / (1.0 + 0.004 * n_bounding)) if self.delta is None else self.delta
        variance = guess * (1.0 - guess) * (1.0 - delta) / delta
        tree = _Tree(parts, is_labeled, in_tree, variance, self.k, self.min_rows)
        for _ in range(self.max_splits):
            if not tree.split():
                break
        return tree.best


def lower_bounds(L: Ints, T: Ints, variance: float) -> Doubles:
    """Return L / T - sqrt(variance / T)."""
    return L / T - np.sqrt(variance / T)


def equal_parts(X: Rows, n_parts: int) -> Parts:
    """Cut the range of each column into parts of equal width; return the part of each value."""
    low, high = (
        end.toarray().ravel() if sparse.issparse(end) else end
        for end in (X.min(axis=0), X.max(axis=0))
    )
    width = np.where(high > low, high - low, 1.0)
    parts = np.empty(X.shape, dtype=np.uint8)
    for start in range(0, X.shape[0], _BLOCK):
        rows = X[start : start + _BLOCK]
        dense = rows.toarray() if sparse.issparse(rows) else rows
        position = n_parts * ((dense - low) / width)
        parts[start : start + _BLOCK] = np.minimum(position, n_parts - 1)
    return parts


class _Tree:
    """A tree that is split best first, on some rows; the other rows bound c in its nodes."""

    def __init__(
        self,
        parts: Parts,
        is_labeled: Bools,
        in_tree: Bools,
        variance: float,
        k: float,
        min_rows: int,
    ) -> None:
        self._parts, self._is_labeled = parts, is_labeled
        self._variance, self._k, self._min_rows = variance, k, min_rows
        self._n_parts = int(parts.max()) + 1
        self._queue: list[Any] = []
        self._number = count()  # settles ties
        self._fewest_labeled = 1.0
        self.best = float(np.mean(is_labeled[~in_tree]))  # the greatest bound so far
        columns = np.flatnonzero(parts.any(axis=0))  # constant columns would only end nodes
        self._push(np.flatnonzero(in_tree), np.flatnonzero(~in_tree), columns)

    def split(self) -> bool:
        """Take the most promising node, split it if that helps; return whether there was one."""
        if not self._queue:
            return False
        _, minus_labeled, _, grow, bound, columns = heappop(self._queue)
        L, T = self._counts(bound, columns)
        is_useful = L.max(axis=0) >= self._fewest_labeled
        L_grow, T_grow = self._counts(grow, columns)
        bepp = L_grow / np.maximum(T_grow + self._k, 1.0)
        score = np.where(is_useful, bepp.max(axis=0), 0.0)
        if not score.any():
            return True
        chosen = int(np.argmax(score))
        L, T = L[:, chosen], T[:, chosen]
        if np.count_nonzero(T) == 1:  # the node ends, even if another column could split it
            return True
        counted = self._min_rows <= T
        bounds = lower_bounds(L[counted], T[counted], self._variance)
        self.best = max(self.best, float(bounds.max(initial=0.0)))
        # A part with fewer labeled rows gives no better bound, even if all of its rows are labeled.
        slack = 1.0 - self.best
        self._fewest_labeled = self._variance / slack**2 if slack > 0.0 else np.inf
        is_useful[chosen] = False
        for part in np.flatnonzero(self._fewest_labeled < L):
            grown, bounding = (
                rows[self._parts[rows, columns[chosen]] == part] for rows in (grow, bound)
            )
            # Pure parts may be split, since their bounding rows may be mixed, but not a part with
            # as many rows as its parent has labeled ones, as after a perfect split.
            if self._min_rows < len(grown) != -minus_labeled:
                self._push(grown, bounding, columns[is_useful])
        return True

    def _push(self, grow: Ints, bound: Ints, columns: Ints) -> None:
        """Keep a node for splitting."""
        T, L = len(grow), int(np.count_nonzero(self._is_labeled[grow]))
        (promise,) = lower_bounds(np.array([L]), np.array([T]), self._variance)
        heappush(self._queue, (-promise, -L, next(self._number), grow, bound, columns))

    def _counts(self, rows: Ints, columns: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of labeled rows and of rows, of shape (n_parts, n_columns)."""
        parts = self._parts[np.ix_(rows, columns)]
        L, T = (
            np.array([np.count_nonzero(of_rows == p, axis=0) for p in range(self._n_parts)])
            for of_rows in (parts[self._is_labeled[rows]], parts)
        )
        return L, T
