"""One column of a data frame: what it holds, and the same as plain numbers or text."""

from __future__ import annotations

import re
from datetime import time
from typing import Any

import numpy as np

from classprior._basis import Doubles

NUMBER, YES_NO, DATE, CATEGORY, EMPTY = "number", "yes/no", "date", "category", "empty"
MISSING = "(missing)"
#: Squares of numbers below it add up safely, whatever their number.
LARGEST = 1e140

_INFERRED = {
    **dict.fromkeys(("decimal", "floating", "integer", "mixed-integer-float", "time"), NUMBER),
    "boolean": YES_NO,
    **dict.fromkeys(("date", "datetime", "datetime64"), DATE),
}
_FEW_ROWS = 20  # among fewer, all values differ by chance
_NAMES_OF_IDENTIFIERS = re.compile(
    r"(?i:(^|[\W_])(id|uuid|guid|key|index|idx|rowid|nr|no|number)$)|[a-z]I[dD]$"
)


def kind_of(column: Any) -> str:
    """Return what a column holds.

    Parameters
    ----------
    column : pandas Series
        The column.

    Returns
    -------
    kind : str
        Number, yes/no, date, category, or empty where all values are missing.
    """
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


def common_kind(kinds: tuple[str, str]) -> str | None:
    """Return the kind of a column that has these kinds in two tables, None if they clash.

    Parameters
    ----------
    kinds : pair of str
        Its kind in either table.

    Returns
    -------
    kind : str or None
        An empty column goes with any other, yes/no with numbers.
    """
    distinct = set(kinds) - {EMPTY}
    if distinct == {NUMBER, YES_NO}:
        return NUMBER
    return None if len(distinct) > 1 else (distinct or {EMPTY}).pop()


def plain(column: Any, kind: str) -> Any:
    """Return the column in the one plain type of its kind.

    Parameters
    ----------
    column : pandas Series
        The column.
    kind : str
        What it should hold.

    Returns
    -------
    column : pandas Series
        Whole numbers, floats, booleans, dates in UTC or text.
    """
    import pandas as pd

    values: Any
    if kind == DATE:
        values = pd.to_datetime(column, utc=True)
    elif kind == YES_NO:
        values = column.astype("boolean")
    elif kind in (CATEGORY, EMPTY):
        values = _texts(column)
    elif isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
        values = column
    else:
        values = _floats(column)
    return pd.Series(values, index=column.index, name=column.name)


def text_of(value: Any) -> str:
    """Return a value as the text of a category: 1.0 is the same as 1.

    Parameters
    ----------
    value : object
        Not missing.

    Returns
    -------
    text : str
        How it is compared with other levels.
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value)


def _texts(column: Any) -> Any:
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


def as_numbers_of(column: Any, kind: str) -> Doubles:
    """Return a plain column as floats, dates as seconds since 1970.

    Parameters
    ----------
    column : pandas Series
        Plain.
    kind : str
        Number, yes/no or date.

    Returns
    -------
    values : array of float
        NaN where missing.
    """
    if kind == DATE:
        import pandas as pd

        epoch = pd.Timestamp(0, tz="UTC")
        return np.asarray((column - epoch) / pd.Timedelta(seconds=1), dtype=float)
    values: Doubles = column.to_numpy(dtype=float, na_value=np.nan)
    wrong = np.flatnonzero(np.abs(values) >= LARGEST)
    if len(wrong):
        raise ValueError(
            f"Expected numbers below {LARGEST:g} in column {column.name!r}, got "
            f"{values[wrong[0]]:g} (first in row {wrong[0]}). Leave the value empty, drop the "
            "row, or rescale the column."
        )
    return values


def why_identifier(column: Any, kind: str) -> str | None:
    """Return why a column looks like an identifier, None if it does not.

    Parameters
    ----------
    column : pandas Series
        Plain, of both samples.
    kind : str
        What it holds.

    Returns
    -------
    reason : str or None
        In words. Measured numbers that happen to differ in all rows are no identifier.
    """
    if len(column) < _FEW_ROWS or column.isna().any() or not column.is_unique:
        return None
    if kind == CATEGORY:
        return "no value occurs twice"
    values = np.asarray(column)
    if kind != NUMBER or not np.all(values == np.floor(values)):
        return None
    if _NAMES_OF_IDENTIFIERS.search(str(column.name)):
        return "its name says so and no value occurs twice"
    # One step back is where one sample ends and the other begins.
    if np.sum(np.diff(values) < 0) <= 1 or values.max() - values.min() < 2 * len(values):
        return "whole numbers that count the rows"
    return None
