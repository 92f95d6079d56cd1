"""Tables of any kind (arrays, sparse matrices, pandas, polars, pyarrow), and blocks of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from scipy import sparse

from classprior._core.basis import stacked
from classprior._core.messages import listed
from classprior._core.types import Ints

Span = tuple[int, int]  # first row and number of rows
#: Default block size: small compared with memory, large enough to amortize the cost of a task.
BLOCK_ROWS = 2**15
_SHORTEST = 3  # letters that two names must have in common to be called similar
_MOST_NAMES = 3  # similar names in a message


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a sample, in memory or read lazily."""

    where: str  # name in error messages, such as "part-3.parquet, row group 2"
    content: Any  # an array, a table, or an object whose tables(columns) reads them one by one
    n_rows: int
    start: int = 0  # index of the first row in the sample
    numbers: range | Ints | None = None  # of the rows in their file; by default, from 0 on

    @property
    def span(self) -> Span:
        """Index of the first row and number of rows."""
        return self.start, self.n_rows

    def number_of(self, row: int) -> int:
        """Return the number in its file of a row of the sample."""
        place = row - self.start
        return place if self.numbers is None else int(self.numbers[place])

    def numbers_of(self, places: Ints) -> Ints:
        """Return the numbers in their file of rows, given their places in the block."""
        if isinstance(self.numbers, np.ndarray):
            return self.numbers[places]
        return places + (0 if self.numbers is None else self.numbers.start)

    def tables(self, columns: tuple[Any, ...] | None = None) -> Iterator[Any]:
        """Read the rows as tables of bounded size, only some columns where the file allows it."""
        # The columns of a data frame may have any name, and are attributes.
        is_unread = hasattr(self.content, "tables") and not hasattr(self.content, "iloc")
        for table in self.content.tables(columns) if is_unread else [self.content]:
            table = table.tocsr() if sparse.issparse(table) else unmasked(table)
            for start in range(0, table.shape[0], BLOCK_ROWS):
                yield rows_of(table, start, min(start + BLOCK_ROWS, table.shape[0]))


def column_names(X: Any) -> list[Any] | None:
    """Return the column names of a pandas, polars or pyarrow table, None for other objects."""
    is_pyarrow = hasattr(X, "column_names") and not hasattr(X, "iloc")
    names = X.column_names if is_pyarrow else getattr(X, "columns", None)
    return None if names is None else list(names)


def check_unique(names: Iterable[Any], where: str) -> None:
    """Raise if two columns have the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Duplicate column name {twice[0]!r} in {where}.")


def check_columns(names: Iterable[Any], known: Sequence[Any], where: str, why: str = "") -> None:
    """Raise if a column is not there; the message names the most similar ones."""
    there = set(known)
    if missing := [name for name in names if name not in there]:
        close = " or ".join(map(repr, _similar_names(str(missing[0]), map(str, known))))
        advice = f"Did you mean {close}?" if close else f"It has {listed(known)}."
        raise ValueError(f"There is no column {listed(missing)} in {where}{why}. {advice}")


def _similar_names(wanted: str, known: Iterable[str]) -> list[str]:
    """Return names equal but for case and punctuation, else with a part in common, else alike."""

    def plain(name: str) -> str:
        return "".join(filter(str.isalnum, name.casefold()))

    short, names = plain(wanted), {name: plain(name) for name in known}
    if equal := [name for name, text in names.items() if text == short]:
        return equal
    parts = {name: sorted((short, text), key=len) for name, text in names.items()}
    contained = [
        name for name, (part, whole) in parts.items() if len(part) >= _SHORTEST and part in whole
    ]
    close = get_close_matches(short, names.values(), n=1)
    return contained[:_MOST_NAMES] or [name for name, text in names.items() if text in close][:1]


def unmasked(values: Any) -> Any:
    """Return a masked array as a plain array in which masked values are missing (NaN or None)."""
    if isinstance(values, list) and any(isinstance(row, np.ma.MaskedArray) for row in values):
        values = np.ma.array(values)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return np.asarray(values)
    dtype: Any = values.dtype
    if dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    elif dtype.kind not in "fcmM":
        dtype = np.dtype(object)
    plain = np.array(values, dtype=dtype)
    plain[values.mask] = None if dtype.kind == "O" else "NaT" if dtype.kind in "mM" else np.nan
    return plain


def rows_of(table: Any, start: int, stop: int) -> Any:
    """Return consecutive rows of an array or a table, as a view where possible."""
    if hasattr(table, "iloc"):
        return table.iloc[start:stop]
    if hasattr(table, "slice"):  # polars, pyarrow
        return table.slice(start, stop - start)
    return table[start:stop]


def select_columns(table: Any, columns: Iterable[Any]) -> Any:
    """Return columns of a pandas, polars or pyarrow table, in the given order."""
    return table[list(columns)] if hasattr(table, "iloc") else table.select(list(columns))


def as_frame(table: Any, names: Iterable[Any] | None) -> Any:
    """Return a table or an array as a pandas data frame; an array without names is unchanged."""
    if hasattr(table, "iloc"):
        return table
    if hasattr(table, "replace_schema_metadata"):  # pyarrow: a stored index is a column
        table = table.replace_schema_metadata(None)
    if hasattr(table, "to_pandas"):
        return table.to_pandas()
    if names is None or column_names(table) is not None:
        return table
    import pandas as pd

    return pd.DataFrame(table.toarray() if sparse.issparse(table) else table, columns=list(names))


def digest_of_table(table: Any, where: str) -> bytes:
    """Return a hash of the types and values of an array, a CSR matrix or a data frame."""
    found = hashlib.sha256()
    names = column_names(table)
    if names is None and sparse.issparse(table):
        parts = [table.data, table.indices, table.indptr]
    elif names is None and table.dtype != object:
        parts = [np.ascontiguousarray(table)]
    else:
        import pandas as pd

        frame = as_frame(table, range(table.shape[1]) if names is None else names)
        try:
            parts = [pd.util.hash_pandas_object(frame, index=False).to_numpy()]
        except TypeError as error:
            raise ValueError(
                f"checkpoint does not support {where}, because its values cannot be compared with "
                f"those of another run: {error}. Leave checkpoint out."
            ) from error
        found.update(repr([*zip(names or (), frame.dtypes, strict=False)]).encode())
    for part in parts:
        found.update(repr((part.dtype, part.shape)).encode())
        found.update(part.tobytes())
    return found.digest()


def bytes_of_row(X: Any) -> float:
    """Return the approximate size of a row in bytes, as numbers."""
    if sparse.issparse(X) and X.shape[0]:
        return 12.0 * X.nnz / X.shape[0]
    return 8.0 * X.shape[1]


def stacked_tables(parts: list[Any]) -> Any:
    """Stack arrays, CSR matrices or data frames vertically."""
    if len(parts) == 1:
        return parts[0]
    names = next((column_names(part) for part in parts if column_names(part) is not None), None)
    if names is not None and len({type(part) for part in parts}) > 1:
        parts = [as_frame(part, names) for part in parts]
    if any(map(sparse.issparse, parts)) or isinstance(parts[0], np.ndarray):
        return stacked(*parts)
    if hasattr(parts[0], "iloc"):
        return _stacked_frames(parts)
    # If no type of theirs holds all values, such as dates in different units, pandas is used.
    if hasattr(parts[0], "vstack"):
        import polars as pl

        with suppress(pl.exceptions.PolarsError):
            return pl.concat(parts)
    else:
        import pyarrow as pa

        with suppress(pa.ArrowException):
            return pa.concat_tables(parts, promote_options="permissive")
    return _stacked_frames([as_frame(part, None) for part in parts])


def _stacked_frames(frames: list[Any]) -> Any:
    """Stack pandas data frames; dates that no unit can hold become objects."""
    import pandas as pd

    try:
        return pd.concat(frames, ignore_index=True)
    except pd.errors.OutOfBoundsDatetime:
        dates = {
            name: object
            for frame in frames
            for name, kind in frame.dtypes.items()
            if pd.api.types.is_datetime64_any_dtype(kind)
        }
        return pd.concat([frame.astype(dates) for frame in frames], ignore_index=True)


def take_rows(table: Any, places: Ints) -> Any:
    """Return rows of an array or a table by position."""
    if hasattr(table, "iloc"):
        return table.iloc[places]
    return table.take(places) if hasattr(table, "column_names") else table[places]  # pyarrow


def as_pandas(X: Any) -> Any:
    """Convert any data frame to pandas, with unique column names of type str."""
    frame = X.copy(deep=False) if hasattr(X, "iloc") else as_frame(X, None)
    frame.columns = [str(name) for name in frame.columns]
    check_unique(frame.columns, "the table")
    return frame


def rows_between(rows: Ints, start: int, n_rows: int) -> Ints:
    """Return the row numbers from ``start`` on, of increasing ``rows``."""
    low, high = np.searchsorted(rows, [start, start + n_rows])
    return rows[low:high]
