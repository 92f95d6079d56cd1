"""Single columns of a table: their kind, and conversion to arrays of numbers or text."""

from __future__ import annotations

from datetime import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from classprior._core.types import Doubles, Ints
from classprior._tables.checks import LARGEST, RowError

NUMBER, YES_NO, DATE, CATEGORY, EMPTY = "number", "yes/no", "date", "category", "empty"
IDENTIFIER, CONSTANT, TEXT = "identifier", "constant", "text"  # of columns that are left out
MISSING, RARE = "(missing)", "(rare)"  # levels of a category
#: Dates beyond these years, such as 9999-12-31 for "no end", are missing values.
YEARS = (1678, 2261)
_MOST_SECONDS = 2**63 / 1e9  # the range of dates in nanoseconds
_INFERRED = {
    **dict.fromkeys(("decimal", "floating", "integer", "mixed-integer-float", "time"), NUMBER),
    "boolean": YES_NO,
    **dict.fromkeys(("date", "datetime", "datetime64"), DATE),
}


class ColumnTreatment(NamedTuple):
    """How a column was encoded, or why it was left out.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : str
        "number", "yes/no", "date", "category" or "score" for a column that is used; "identifier",
        "constant", "text" or "empty" for a column that is left out.
    treatment : str
        Description of the encoding, or the reason for leaving the column out.
    """

    name: str
    kind: str
    treatment: str

    @property
    def is_left_out(self) -> bool:
        """Whether the column is not used."""
        return self.kind in (IDENTIFIER, EMPTY, CONSTANT, TEXT)

    @property
    def has_missing(self) -> bool:
        """Whether some values are missing, which the treatment says."""
        return "missing" in self.treatment


ColumnTreatment.__module__ = "classprior"  # saved models refer to the public name


def kind_of(column: Any) -> str:
    """Return the kind of a pandas column or a numeric array."""
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
    """Return the common kind of a column in several tables, None if the kinds conflict."""
    distinct = kinds - {EMPTY}
    if distinct == {NUMBER, YES_NO}:
        return NUMBER
    return None if len(distinct) > 1 else (distinct or {EMPTY}).pop()


def plain(column: Any, kind: str) -> NDArray[Any]:
    """Return a column as floats, dates as seconds since 1970, or text with None if missing."""
    if isinstance(column, np.ndarray) and kind != CATEGORY:
        return column
    if kind in (CATEGORY, EMPTY):
        return _texts(column)
    if kind == DATE:
        return _seconds(column)
    if kind == YES_NO:
        column = column.astype("boolean")
    elif isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
        return np.asarray(column)  # as floats, long identifiers would be rounded
    return _floats(column)


def text_of(value: Any) -> str:
    """Return a value as text; 1.0 and 1 are the same, and so are text and its bytes in UTF-8."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return value.decode() if isinstance(value, bytes) and not _is_raw(value) else str(value)


def first_raw(column: Any) -> tuple[int, bytes] | None:
    """Return the first bytes in a pandas column that are not UTF-8 text, with their row."""
    if not _may_have_bytes(column):
        return None
    found = enumerate(column.to_numpy(dtype=object))
    return next(((row, value) for row, value in found if _is_raw(value)), None)


def is_of_raw(text: str) -> bool:
    """Return whether ``text_of`` may have made a text of bytes that are not UTF-8."""
    return text.startswith(("b'", 'b"'))


def is_text(column: Any) -> bool:
    """Return whether a pandas column has values that are text."""
    return any(isinstance(value, str) for value in column)


def _may_have_bytes(column: Any) -> bool:
    from pandas.api import types

    if isinstance(column, np.ndarray) or types.is_numeric_dtype(column.dtype):
        return False
    levels = column.cat.categories if hasattr(column, "cat") else column
    return types.infer_dtype(levels, skipna=True) in ("bytes", "mixed")


def _is_raw(value: Any) -> bool:
    """Return whether a value is bytes that are not UTF-8 text."""
    if not isinstance(value, bytes):
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return True
    return False


def texts_of(column: Any) -> NDArray[Any]:
    """Return the values of a column of any table as text, None if missing."""
    return _texts(_as_series(column))


def coded_texts(column: Any) -> tuple[Ints, list[str]]:
    """Return the distinct texts of a column of any table, and the place of each row's, or -1."""
    codes, levels = _coded(_as_series(column))
    return codes, [text_of(level) for level in levels]


def _as_series(column: Any) -> Any:
    import pandas as pd

    return column if isinstance(column, pd.Series) else pd.Series(np.asarray(column))


def without_zone(column: Any) -> Any:
    """Return times in a zone as the local times there; other columns are unchanged."""
    kind = getattr(column, "dtype", getattr(column, "type", None))
    if not any(getattr(kind, name, None) for name in ("tz", "time_zone")):  # pandas, polars
        return column
    import pandas as pd

    times = column.to_pandas() if hasattr(column, "to_pandas") else column
    return pd.Series(times).dt.tz_localize(None)


def is_gap(texts: NDArray[Any]) -> Any:
    """Return a mask of the missing values in the result of ``texts_of`` or ``plain``."""
    return texts == np.array(None, dtype=object)


def check_sizes(values: Doubles, name: str) -> None:
    """Raise on values that are too large, naming column and row."""
    wrong = np.flatnonzero(np.abs(values) >= LARGEST)
    if len(wrong):
        raise RowError(
            f"Value {values[wrong[0]]:g} in column {name!r}",
            int(wrong[0]),
            f"is too large (limit {LARGEST:g}). Leave the value empty, drop the row, or rescale "
            "the column.",
        )


def _seconds(column: Any) -> Doubles:
    """Return dates as seconds since 1970; dates beyond YEARS are missing."""
    import pandas as pd

    # Text is parsed only if it is unmistakable: 06/08/2026 may be in June or in August.
    how: dict[str, Any] = {"errors": "coerce"}
    if kind_of(column) == CATEGORY:
        how = {"format": "ISO8601"}
    dates = pd.to_datetime(column, utc=True, **how).dt.tz_convert(None).to_numpy()
    per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[np.datetime_data(dates.dtype)[0]]
    seconds = np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / per_second)
    return np.where(np.abs(seconds) < _MOST_SECONDS, seconds, np.nan)


def _texts(column: Any) -> NDArray[Any]:
    codes, levels = _coded(column)
    return np.array([*map(text_of, levels), None], dtype=object)[codes]  # -1 means missing


def _coded(column: Any) -> tuple[Ints, Any]:
    """Return the distinct values of a pandas column, and the place of each row's, or -1."""
    import pandas as pd

    try:
        return pd.factorize(column)
    except TypeError:  # unhashable values, such as lists
        return pd.factorize(column.map(str).where(column.notna()))


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
