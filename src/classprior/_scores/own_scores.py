"""Scores that the user's own model gave to the rows: reading, checks and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse, stats

from classprior._core.messages import percent
from classprior._core.types import Doubles, Ints, Rows
from classprior._samples.inputs import is_path
from classprior._samples.samples import Samples
from classprior._scores.crossfit import Scores
from classprior._scores.diagnostics import (
    SIGNIFICANT,
    Evidence,
    about_separation,
    few_rows,
    foreign_positives_p_value,
    is_at_one,
    is_at_zero,
    stands_out,
    still_falls,
)
from classprior._tables.checks import RowError, has_fields, is_flat
from classprior._tables.columns import CATEGORY, DATE, kind_of, plain
from classprior._tables.tables import as_frame, column_names, unmasked
from classprior.result import Caution

SCORE = "score"  # name of the only score, and of a column without a name
# If the top known positives imply less than this part of the estimate, something is wrong.
_LEAST_PART = 0.5
_MOST_EXACT = 2**53  # float64 holds all integers up to this size
_OUT_OF_FOLD = (
    "use out-of-fold scores, such as those of scikit-learn's cross_val_predict, or a model trained "
    "on other rows."
)


def are_scores(X: Any) -> bool:
    """Return whether an input has one dimension, and is not a list of files."""
    is_list_of_paths = isinstance(X, list | tuple) and len(X) > 0 and all(map(is_path, X))
    return is_flat(X) and not is_list_of_paths and not has_fields(X)


def as_column(X: Any) -> Any:
    """Return a one-dimensional array or series as a table of one column; others unchanged."""
    if not are_scores(X):
        return X
    if hasattr(X, "to_frame"):  # pandas, polars, dask
        return X.to_frame(SCORE)
    return (X if hasattr(X, "shape") else np.asarray(unmasked(X)))[:, None]


class AsScores:
    """Converts a table of one column to finite scores; a transformer for a ``Reader``."""

    def transform(self, table: Any) -> Doubles:
        """Return the scores in one column; a fault names its row."""
        scores = _numbers(table)
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            raise RowError(
                f"Score {scores[wrong[0]]:g}",
                int(wrong[0]),
                "is not a finite number. Score such rows again, or drop them.",
            )
        return scores[:, None]


def _numbers(table: Any) -> Doubles:
    if column_names(table) is not None:
        column = as_frame(table, None).iloc[:, 0]
        kind = kind_of(column)
        if kind not in (CATEGORY, DATE):
            numbers = np.asarray(plain(column, kind), dtype=np.float64)
            _refuse_inexact(column.dtype.kind, numbers)
            return numbers
        values = column.to_numpy(dtype=object)
    else:
        values = (table.toarray() if sparse.issparse(table) else np.asarray(unmasked(table)))[:, 0]
        try:
            numbers = values.astype(np.float64)
        except (TypeError, ValueError):
            pass
        else:
            _refuse_inexact(values.dtype.kind, numbers)
            return numbers
    row = next(i for i, value in enumerate(values) if not _is_number(value))
    raise RowError(f"Score {values[row]!r}", row, "is not a number.")


def _refuse_inexact(kind: str, numbers: Doubles) -> None:
    """Raise on integers that float64 may have rounded, whose order would be lost."""
    if kind not in "iuO":
        return
    large = np.flatnonzero(np.abs(numbers) > _MOST_EXACT)
    if len(large):
        raise RowError(
            f"Score {numbers[large[0]]:.0f}",
            int(large[0]),
            "is an integer beyond 2**53, and such scores cannot all be told apart in double "
            "precision. Use their ranks among all rows of both samples.",
        )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str)


class OwnScores:
    """Takes the place of fitted models: the score of a row is its only column."""

    def scores(self, sample: int, X: Rows, bins: Ints) -> Scores:
        """Return the scores of rows."""
        return {SCORE: column_of(X)}


def column_of(X: Rows) -> Doubles:
    """Return the only column of rows."""
    return X.toarray()[:, 0] if sparse.issparse(X) else X[:, 0]


def check_scores(drawn: Samples) -> None:
    """Raise if all scores are equal, or if known positives score significantly lower."""
    scores = [column_of(X) for X in drawn.rows]
    levels, codes = np.unique(np.concatenate(scores), return_inverse=True)
    if len(levels) == 1:
        raise ValueError(
            f"All scores are equal ({levels[0]:g}), so they cannot tell positives from negatives. "
            "Check that this is the column with the scores."
        )
    p, u = (
        np.bincount(part, drawn.weights(sample), len(levels))
        for sample, part in enumerate(np.split(codes, [len(scores[0])]))
    )
    area = p @ (np.cumsum(u) - u / 2.0) / (p.sum() * u.sum())
    groups = drawn.units.groups
    n, m = drawn.n_effective if groups is None else [len(np.unique(part)) for part in groups]
    # The variance of the area if the scores have the same distribution; smaller with ties.
    z = (area - 0.5) / np.sqrt((n + m + 1.0) / (12.0 * n * m))
    if stats.norm.cdf(z) < SIGNIFICANT:
        raise ValueError(
            "Known positives score lower than unlabeled rows (area under the ROC curve "
            f"{area:.3f}), but larger scores must mean more positive. Negate the scores, or check "
            "that the samples are not swapped."
        )


def about_own_scores(evidence: Evidence, *, rows_are_alike: bool) -> Iterator[Caution]:
    """Yield warnings about an estimate from given scores.

    Only rows that are independent and weigh the same (``rows_are_alike``) can be tested for a model
    that was trained on them.
    """
    yield from few_rows(evidence)
    if rows_are_alike and seem_too_high(evidence):
        yield Caution(
            "The known positives score higher than hidden ones can: so few unlabeled rows score as "
            "high as the top tenth of the known positives that they imply less than half of the "
            "estimate, or than the low end of its interval. If the model was trained on these "
            "known positives, it recognizes them, and estimate and bound are too low. Otherwise, "
            "most of the estimated positives are negatives, or some known positives are of a "
            "different kind.",
            f"If the model was trained on them, {_OUT_OF_FOLD}",
        )
    elif not stands_out(evidence.separation_):
        yield about_separation(evidence.separation_)
    elif still_falls(evidence):
        yield Caution(
            "No purely positive region was found: even the highest scores seem to include "
            f"negatives, and the share may be as low as about {percent(evidence.extrapolated_)}. "
            "A model that was trained on these known positives has the same effect, because it "
            "recognizes them; estimate and bound are then too low.",
            "If the model was trained on other rows, treat the estimate as an upper bound; a "
            f"better model would lower it. If it was trained on these, {_OUT_OF_FOLD}",
        )
    if is_at_one(evidence):
        yield Caution(
            "The estimate is at 100%: either nearly all unlabeled rows are positive, or the "
            "scores cannot separate the classes.",
            "Check how well the model separates the classes.",
        )
    if is_at_zero(evidence):
        yield Caution(
            "The estimate is at 0%: either hardly any unlabeled row is positive, or the model was "
            "trained on these known positives and recognizes them, or they come from another "
            "source.",
            f"If the model was trained on them, {_OUT_OF_FOLD}",
        )


def seem_too_high(evidence: Evidence) -> bool:
    """Return whether too few unlabeled rows score as high as the top tenth of the positives.

    The hypothesis is that known and hidden positives score alike, and that the share of positives
    is at least half of the estimate and at least the low end of its interval. If it is true, it is
    rejected with a probability of at most 0.2%: 0.1% for each of the two samples.
    """
    least = max(evidence.low_, _LEAST_PART * evidence.prior_)
    return foreign_positives_p_value(evidence, least) < SIGNIFICANT
