"""What the scores rest on: the importance of columns, and the columns that speak for a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from classprior._core.bins import SHUFFLES, generator
from classprior._core.messages import printable
from classprior._core.threads import single_threaded
from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._samples.progress import progress
from classprior._samples.samples import Samples
from classprior._scores.crossfit import TOGETHER, Scorers, cross_fit_rounds
from classprior._tables.columns import MISSING, text_of
from classprior._tables.tables import as_pandas, column_names

#: Scores changed copies of rows, given the index of the row that each is a copy of.
Score = Callable[[Rows, Ints], Doubles]
_SCORINGS = 40_000  # rows times columns times repeats, about
_ROWS = (200, 1000)  # fewest and most rows of each sample that are shuffled
_MOST_REPEATS = 2
_REPLACEMENTS = 400  # of values of a row, in all columns
_VALUES = (4, 20)  # fewest and most values that replace the value of a row
_ROWS_AT_ONCE = 1000  # of which reasons are computed
_LONGEST = 60  # characters of a value


class Importance(NamedTuple):
    """How much the out-of-fold score depends on a column.

    Attributes
    ----------
    column : str
        Name of the column.
    increase : float
        Increase of the log-loss if the column is shuffled.
    standard_error : float
        Standard error of the increase.
    """

    column: str
    increase: float
    standard_error: float


class Reason(NamedTuple):
    """A column that speaks for a row being positive; ``str`` shows all of it.

    Attributes
    ----------
    column : str
        Name of the column.
    value : str
        The value of the row in this column, as text.
    effect : float
        Fall of the row's log-odds, on average, if the value is replaced by those of other rows.
    """

    column: str
    value: str
    effect: float

    @property
    def text(self) -> str:
        """The column and the value."""
        return f"{printable(self.column, '?')} = {self.value}"

    def __str__(self) -> str:
        return f"{self.text} ({self.effect:+.1f})"


Importance.__module__ = Reason.__module__ = "classprior"


class Background(NamedTuple):
    """Values of an input column that stand for its distribution."""

    places: Ints  # encoded columns that were made from the input column
    values: Rows  # of these columns, one row for each value
    shares: Doubles  # of the values; they add up to 1


def loss_increases(
    score: Score,
    X: Rows,
    is_positive: Bools,
    weights: Doubles,
    bins: Ints,
    columns: Sequence[Ints],
    shuffles: Sequence[Ints],
) -> tuple[Doubles, Doubles]:
    r"""Return the increase of the log-loss if columns are shuffled, with its standard error.

    With log-odds s, the loss of a known positive is :math:`\log(1 + e^{-s})`, and that of an
    unlabeled row is :math:`\log(1 + e^s)`. The weights w of each sample add up to 1/2. Bins are
    independent, but rows of a group are not, so if :math:`d_i` is the increase of the loss of row i
    and :math:`\bar d_i` its mean over the sample of the row,

    .. math:: \mathrm{se}^2 = \frac{B}{B - 1}
              \sum_b \Big(\sum_{i \in b} w_i (d_i - \bar d_i)\Big)^2.
    """
    rows, sign = np.arange(len(X)), np.where(is_positive, -1.0, 1.0)
    masses = np.bincount(is_positive, weights)
    w = weights / (2.0 * masses[is_positive.astype(int)])
    before = np.logaddexp(0.0, sign * score(X, rows))
    n_bins = len(np.unique(bins))
    increases, errors = np.empty(len(columns)), np.empty(len(columns))
    for number, places in enumerate(columns):
        d = -before
        for shuffled in shuffles:
            Z = X.copy()
            Z[:, places] = X[np.ix_(shuffled, places)]
            d += np.logaddexp(0.0, sign * score(Z, rows)) / len(shuffles)
        means = 2.0 * np.bincount(is_positive, w * d)
        of_bins = np.bincount(bins, w * (d - means[is_positive.astype(int)]))
        increases[number] = w @ d
        errors[number] = np.sqrt(of_bins @ of_bins * n_bins / (n_bins - 1.0))
    return increases, errors


def shuffled_within(folds: Ints, rng: np.random.Generator) -> Ints:
    """Return random rows for all rows, of the same fold: a model may know the rows of others."""
    shuffled = np.empty(len(folds), dtype=np.int64)
    shuffled[np.argsort(folds, kind="stable")] = np.lexsort((rng.random(len(folds)), folds))
    return shuffled


def background_of(X: Rows, weights: Doubles, places: Ints, n_values: int) -> Background:
    """Return values at evenly spaced quantiles of an input column."""
    Z = X[:, places]
    order = np.lexsort(Z.T)
    below = np.cumsum(weights[order])
    middles = (np.arange(n_values) + 0.5) / n_values * below[-1]
    values, counts = np.unique(
        Z[order[np.searchsorted(below, middles)]], axis=0, return_counts=True
    )
    return Background(places, values, counts / n_values)


def replacement_effects(score: Score, X: Rows, backgrounds: Sequence[Background]) -> Doubles:
    r"""Return how much the score of each row falls if a value is replaced by those of other rows.

    The effect of column j on row x is :math:`s(x) - \sum_k q_k s(x \text{ with } x_j = v_k)`, where
    the values :math:`v_k` have shares :math:`q_k`; for a linear score, it is
    :math:`w_j (x_j - \bar v)`. The result has shape (n_rows, n_columns).
    """
    rows = np.arange(len(X))
    before = score(X, rows)
    effects = np.empty((len(X), len(backgrounds)))
    for number, (places, values, shares) in enumerate(backgrounds):
        copied = np.repeat(rows, len(values))
        Z = X[copied]
        Z[:, places] = np.tile(values, (len(X), 1))
        after = score(Z, copied).reshape(len(X), -1)
        effects[:, number] = before - (after * shares).sum(axis=1)
    return effects


@dataclass(frozen=True, eq=False)
class ByColumn:
    """The dependence of out-of-fold scores on each input column."""

    drawn: Samples  # the rows that the classifiers are fitted to, all or some
    scorers: Scorers
    columns: Mapping[str, Ints]  # encoded columns that were made from each input column
    verbose: int = 0

    @classmethod
    def cross_fitted(
        cls,
        samples: Samples,
        sources: Sequence[str],
        classifiers: Mapping[str, Any],
        max_rows: int | None,
        verbose: int = 0,
    ) -> ByColumn:
        """Fit classifiers to each half of the bins, to score the other half."""
        drawn = samples.subsample(max_rows)
        ((_, scorers),) = cross_fit_rounds(
            classifiers,
            *drawn.stacked_rows(),
            samples,
            drawn,
            cv=2,
            n_repeats=1,
            keep=True,
            n_jobs=samples.n_jobs,
            verbose=verbose,
        )
        names = np.array(sources, dtype=object)
        columns = {name: np.flatnonzero(names == name) for name in dict.fromkeys(sources)}
        return cls(drawn, scorers, columns, verbose)

    def importances(self) -> list[Importance]:
        """Return the importance of each column, the largest first."""
        n_columns, (fewest, most) = len(self.columns), _ROWS
        drawn = self.drawn.subsample(min(max(fewest, _SCORINGS // (2 * n_columns)), most))
        X, is_positive = drawn.stacked_rows()
        weights = drawn.stacked_weights
        folds = np.concatenate(drawn.folds_of_rows(self.scorers.folds))
        n_repeats = min(max(1, _SCORINGS // (len(X) * n_columns)), _MOST_REPEATS)
        rng = generator(drawn.seed, SHUFFLES)
        increases, errors = loss_increases(
            self._balanced(folds),
            X,
            is_positive,
            np.ones(len(X)) if weights is None else weights,
            np.concatenate(drawn.bins_of_rows),
            list(self.columns.values()),
            [shuffled_within(folds, rng) for _ in range(n_repeats)],
        )
        found = map(Importance, self.columns, increases.tolist(), errors.tolist())
        return sorted(found, key=lambda importance: -importance.increase)

    def reasons(self, X: Rows, bins: Ints, n_reasons: int) -> tuple[Ints, Doubles]:
        """Return the columns that speak most for unlabeled rows, and their effects.

        Both have shape (n_rows, n_reasons); the columns are numbered in the order of ``columns``.
        """
        folds = self.scorers.folds[1][bins]
        effects = np.empty((len(X), len(self.columns)))
        blocks = [
            (fold, rows[start : start + _ROWS_AT_ONCE])
            for fold in np.unique(folds)
            for rows in [np.flatnonzero(folds == fold)]
            for start in range(0, len(rows), _ROWS_AT_ONCE)
        ]
        for fold, rows in progress(blocks, len(blocks), "Finding reasons", self.verbose):
            score, backgrounds = self._score_of(folds[rows]), self._backgrounds_of(fold)
            effects[rows] = replacement_effects(score, X[rows], backgrounds)
        first = np.argsort(-effects, axis=1, kind="stable")[:, :n_reasons]
        return first, np.take_along_axis(effects, first, axis=1)

    def _backgrounds_of(self, fold: int) -> list[Background]:
        """Return values of each column in the unlabeled rows of a fold, if some were drawn."""
        fewest, most = _VALUES
        n_values = min(max(fewest, _REPLACEMENTS // len(self.columns)), most)
        rows = np.flatnonzero(self.drawn.folds_of_rows(self.scorers.folds)[1] == fold)
        X, weights = self.drawn.rows[1], self.drawn.weights(1)
        if len(rows):
            X, weights = X[rows], None if weights is None else weights[rows]
        w = np.ones(len(X)) if weights is None else weights
        return [background_of(X, w, places, n_values) for places in self.columns.values()]

    def _balanced(self, folds: Ints) -> Score:
        """Return the log-odds as if the classifiers were fitted to samples of equal size."""
        positive, unlabeled = (total.sum() for total in self.drawn.totals)
        score = self._score_of(folds)
        return lambda X, rows: score(X, rows) - np.log(positive / unlabeled)

    def _score_of(self, folds: Ints) -> Score:
        """Return the mean log-odds by the classifiers that were not fitted to the folds of rows."""

        def score(X: Rows, rows: Ints) -> Doubles:
            with single_threaded():
                scores = self.scorers.scores_in_folds(X, folds[rows])
            return scores.get(TOGETHER, next(iter(scores.values())))

        return score


def cell_texts(table: Any, name: str, names: Sequence[str] | None) -> list[str]:
    """Return a column of a table as short, printable texts; an array may have ``names``."""
    if column_names(table) is None:
        values = np.asarray(table, dtype=float)[
            :, int(name) if names is None else list(names).index(name)
        ]
        is_missing = np.isnan(values)
    else:
        values = as_pandas(table)[name]
        is_missing = values.isna().to_numpy()
    pairs = zip(values, is_missing, strict=True)
    return [MISSING if missing else value_text(value) for value, missing in pairs]


def value_text(value: Any) -> str:
    """Return a value as short, printable text."""
    if isinstance(value, float | np.floating) and not float(value).is_integer():
        return f"{value:.8g}"
    # No character is added that the encoding of a file might lack.
    text = printable(text_of(value), "?").removesuffix(" 00:00:00")  # dates without a time
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
