"""Scores that the user's own model gave to the rows: one number for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from classprior._core.types import Doubles
from classprior._data.blocks import as_frame
from classprior._data.checks import RowError, column_names, is_flat, unmasked
from classprior._data.columns import CATEGORY, DATE, kind_of, plain
from classprior._data.source import is_path

COLUMN = "score"  # name of a column without one


def are_scores(X: Any) -> bool:
    """Return whether an input has one dimension, and is not a list of files."""
    is_list_of_paths = isinstance(X, list | tuple) and len(X) > 0 and all(map(is_path, X))
    return is_flat(X) and not is_list_of_paths


def as_column(X: Any) -> Any:
    """Return a one-dimensional array or series as a table of one column; others unchanged."""
    if not are_scores(X):
        return X
    if hasattr(X, "to_frame"):  # pandas, polars, dask
        return X.to_frame(COLUMN)
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
            return np.asarray(plain(column, kind), dtype=np.float64)
        values = column.to_numpy(dtype=object)
    else:
        values = (table.toarray() if sparse.issparse(table) else np.asarray(unmasked(table)))[:, 0]
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            pass
    row = next(i for i, value in enumerate(values) if not _is_number(value))
    raise RowError(f"Score {values[row]!r}", row, "is not a number.")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str)
