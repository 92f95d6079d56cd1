"""Data frames as numbers: categories, dates and gaps by one stated recipe."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from classprior._basis import Doubles

# Levels of a category that fewer rows have are pooled.
_RARE = 0.02


def as_numbers(X_positive: Any, X_unlabeled: Any) -> tuple[Any, Any]:
    """Turn two data frames into numbers; anything else passes through.

    Numbers and booleans are standardised, gaps filled with the median and marked in a column of
    their own; dates become seconds; all else is a category, one column a level, levels of less
    than 2% of the rows pooled, a gap being a level too. What must be learned for that is learned
    from both samples together.

    Parameters
    ----------
    X_positive, X_unlabeled : data frames or anything else
        The two samples.

    Returns
    -------
    X_positive, X_unlabeled : arrays, or what was given
        With the same columns.
    """
    if not (_is_frame(X_positive) and _is_frame(X_unlabeled)):
        return X_positive, X_unlabeled
    import pandas as pd

    frames = [_as_pandas(X) for X in (X_positive, X_unlabeled)]
    if list(frames[0].columns) != list(frames[1].columns):
        return X_positive, X_unlabeled  # refused, with the names, where samples are checked
    both = pd.concat(frames, ignore_index=True)
    numbers, categories = [], []
    for name in both.columns:
        kind = both[name].dtype
        if pd.api.types.is_datetime64_any_dtype(kind):
            seconds = both[name].astype("int64").astype(float) / 1e9
            both[name] = seconds.where(both[name].notna())
            numbers.append(name)
        elif pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind):
            both[name] = both[name].astype(float)
            numbers.append(name)
        else:
            both[name] = (
                both[name].astype(object).where(both[name].notna(), "(missing)").astype(str)
            )
            categories.append(name)
    encoder = ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(
                    SimpleImputer(strategy="median", add_indicator=True), StandardScaler()
                ),
                numbers,
            ),
            (
                "categories",
                OneHotEncoder(
                    min_frequency=_RARE,
                    handle_unknown="infrequent_if_exist",
                    sparse_output=False,
                ),
                categories,
            ),
        ]
    )
    encoded: Doubles = np.asarray(encoder.fit_transform(both), dtype=float)
    return encoded[: len(frames[0])], encoded[len(frames[0]) :]


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and (hasattr(X, "dtypes") or hasattr(X, "to_pandas"))


def _as_pandas(X: Any) -> Any:
    return X.copy() if hasattr(X, "iloc") else X.to_pandas()
