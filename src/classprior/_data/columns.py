"""One column of a table: what it holds, and the same as an array of numbers or text."""

from __future__ import annotations

import re
from datetime import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classprior._core.types import Doubles

NUMBER, YES_NO, DATE, CATEGORY, EMPTY = "number", "yes/no", "date", "category", "empty"
MISSING = "(missing)"
#: Squares of numbers below it add up safely, whatever their number.
LARGEST = 1e140
_INFERRED = {
    **dict.fromkeys(("decimal", "floating", "integer", "mixed-integer-float", "time"), NUMBER),
    "boolean": YES_NO,
    **dict.fromkeys(("date", "datetime", "datetime64"), DATE),
}
_FEWEST_DISTINCT = 20  # among fewer rows, all values differ by chance
_NAMES_OF_IDENTIFIERS = re.compile(
    r"(?i:(^|[\W_])(id|uuid|guid|key|index|idx|rowid|nr|no|number)$)|[a-z]I[dD]$"
)


def kind_of(column: Any) -> str:
    """Return what a column of a pandas data frame, or an array, holds."""
    if isinstance(column, np.ndarray):
        return EMPTY if np.isnan(column).all() else NUMBER
    from pandas import CategoricalDtype
    from pandas.api import types

    if column.isna().all():
        return EMPTY
    if isinstance(column.dtype, CategoricalDtype):
        return CATEGORY
    if types.is_bool_dtype(column.dtype):
        return YES_NO
    if types.is_numeric_dtype(column.dtype) or types.is_timedelta64_dtype(column.dtype):
        return NUMBER
    if types.is_datetime64_any_dtype(column.dtype):
        return DATE
    return _INFERRED.get(types.infer_dtype(column, skipna=True), CATEGORY)


def common_kind(kinds: set[str]) -> str | None:
    """Return the kind of a column that has these kinds in several tables, None if they clash."""
    distinct = kinds - {EMPTY}
    if distinct == {NUMBER, YES_NO}:
        return NUMBER
    return None if len(distinct) > 1 else (distinct or {EMPTY}).pop()


def plain(column: Any, kind: str) -> NDArray[Any]:
    """Return a column as floats, dates as seconds since 1970, or as text with None for gaps.

    Whole numbers without gaps keep their type, in which long identifiers are exact.
    """
    if isinstance(column, np.ndarray) and kind != CATEGORY:
        return column
    if kind in (CATEGORY, EMPTY):
        return _texts(column)
    if kind == DATE:
        import pandas as pd

        dates = pd.to_datetime(column, utc=True)
        return np.asarray((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1), float)
    if kind == YES_NO:
        column = column.astype("boolean")
    elif isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
        return np.asarray(column)
    return _floats(column)


def text_of(value: Any) -> str:
    """Return a value as the text of a category: 1.0 is the same as 1."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value)


def texts_of(column: Any) -> NDArray[Any]:
    """Return the values of a column of any table as text, None for gaps."""
    import pandas as pd

    return _texts(column if isinstance(column, pd.Series) else pd.Series(np.asarray(column)))


def is_gap(texts: NDArray[Any]) -> Any:
    """Tell which values of a plain column of text are gaps."""
    return texts == np.array(None, dtype=object)


def check_sizes(values: Doubles, name: str, rows: NDArray[Any] | None = None) -> None:
    """Refuse numbers whose squares cannot be added up, naming column and row."""
    wrong = np.flatnonzero(np.abs(values) >= LARGEST)
    if len(wrong):
        row = wrong[0] if rows is None else rows[wrong[0]]
        raise ValueError(
            f"Value {values[wrong[0]]:g} in column {name!r} is too large (first in row {row}; the "
            f"limit is {LARGEST:g}). Leave the value empty, drop the row, or rescale the column."
        )


def why_identifier(column: NDArray[Any], kind: str, name: str) -> str | None:
    """Return why a plain column looks like an identifier, None if it does not."""
    n_rows = len(column)
    if n_rows < _FEWEST_DISTINCT or kind not in (CATEGORY, NUMBER):
        return None
    if kind == CATEGORY:
        return "no value occurs twice" if len(set(column)) == n_rows else None
    with np.errstate(invalid="ignore"):
        span = column.max() - column.min()
        # Gaps fail every comparison. Fewer whole numbers than rows cannot all be distinct.
        if not (span >= n_rows - 1 and np.all(column == np.floor(column))):
            return None
    if len(np.unique(column)) < n_rows:
        return None
    if _NAMES_OF_IDENTIFIERS.search(name):
        return "its name says so and no value occurs twice"
    # One step back is where one sample ends and the other begins.
    if np.sum(np.diff(column) < 0) <= 1 or span < 2 * n_rows:
        return "whole numbers that count the rows"
    return None


def _texts(column: Any) -> NDArray[Any]:
    import pandas as pd

    try:
        codes, levels = pd.factorize(column)
    except TypeError:  # lists and the like have no hash
        codes, levels = pd.factorize(column.map(str).where(column.notna()))
    return np.array([*map(text_of, levels), None], dtype=object)[codes]  # a gap has code -1


def _floats(column: Any) -> Doubles:
    import pandas as pd

    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return np.asarray(column.dt.total_seconds(), dtype=float)
    if column.dtype == object:
        column = pd.to_numeric(column.map(lambda v: v if isinstance(v, str) else _float(v)))
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))


def _float(value: Any) -> float:
    import pandas as pd

    if isinstance(value, time):
        return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6
    return np.nan if pd.isna(value) else float(value)
