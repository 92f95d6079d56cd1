"""Keys of rows: a hash of each value of a column, whatever table and type it is stored in.

Equal values have equal hashes in every table: the numbers 1 and 1.0, the texts "1" and "1.0" and
the decimal 1.00 are one key, and so are -0 and 0. Other text counts as it is, without blanks around
it, so that "007" is not 7. Dates and times count as text such as 2026-01-31 or 2026-01-31 09:30:00;
times in a zone are converted to UTC, and midnight is the date. Missing are None, NaN, NaT, null and
empty text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from classprior._core.keys import (
    combined,
    copies_before,
    hashed_numbers,
    hashed_texts,
    mixed,
    numbered_copies,
)
from classprior._core.messages import OptionError
from classprior._core.types import Bools, Ints, Keys
from classprior._tables.columns import text_of
from classprior._tables.tables import column_names, unmasked

__all__ = ["content_hashes", "hashed_column", "keys_of_contents", "numbered_copies"]

_FLOATS = ("float64", "float32", "double", "float")
_LARGEST = 10**18  # integers from here on are hashed as text
_EMPTY = hashed_texts(np.empty(0, np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64))[0]


def hashed_column(column: Any) -> tuple[Keys, Bools]:
    """Return a 64-bit hash of each value of a column of any table, and which are missing."""
    hashes, is_missing = _hashed(column)
    is_missing = is_missing | (hashes == _EMPTY)
    return np.where(is_missing, _EMPTY, hashes), is_missing


def _hashed(column: Any) -> tuple[Keys, Bools]:
    if hasattr(column, "to_arrow"):  # polars
        column = column.to_arrow()
    if hasattr(column, "combine_chunks") or hasattr(column, "buffers"):
        return _of_arrow(column)
    kind = getattr(column, "dtype", None)
    if hasattr(column, "iloc") and not (isinstance(kind, np.dtype) and kind.kind in "iufbM"):
        return _of_objects(column)
    values = np.asarray(unmasked(column))
    return _of_objects(values) if values.dtype.kind in "OUSV" else _of_array(values)


def content_hashes(table: Any, columns: list[str] | None = None) -> Keys:
    """Return a hash of the values of each row; it does not depend on the order of the columns.

    Rows of a table without column names are hashed by the places of the columns.
    """
    if columns is None:
        columns = column_names(table)
    if columns is None:
        named = [(str(place), np.asarray(table)[:, place]) for place in range(table.shape[1])]
    else:
        named = [(str(name), table[name]) for name in columns]
    total = np.zeros(table.shape[0], dtype=np.uint64)
    for name, column in named:
        hashes, is_missing = _hashed_values(column)
        of_name, _ = hashed_column(np.array([name], dtype=object))
        total += np.where(is_missing, np.uint64(0), mixed(hashes ^ mixed(of_name)))
    return mixed(total)


def _hashed_values(column: Any) -> tuple[Keys, Bools]:
    """Return the hashes of a column; those of fractions by their bits, which is faster."""
    if str(getattr(column, "dtype", getattr(column, "type", ""))).lower() not in _FLOATS:
        return hashed_column(column)
    values = np.asarray(column).astype(np.float64)
    is_whole = (values == np.floor(values)) & (np.abs(values) < _LARGEST)
    whole = np.where(is_whole, values, 0.0).astype(np.int64)
    bits = values.view(np.uint64)
    return np.where(is_whole, hashed_numbers(whole), mixed(bits)), np.isnan(values)


def keys_of_contents(table: Any, columns: list[str] | None = None) -> Keys:
    """Return keys for rows without any: hashes of their contents, other ones for each copy.

    Equal rows are numbered, so that they spread over bins. Engines that number equal rows
    themselves can use ``content_hashes`` and ``numbered_copies``.
    """
    hashes = content_hashes(table, columns)
    return numbered_copies(hashes, copies_before(hashes))


def repeated_key(where: str, rows: tuple[int, int], value: str) -> OptionError:
    """Return an error about two rows of a sample with the same key."""
    return OptionError(
        f"The key repeats in {where}: rows {rows[0]:,} and {rows[1]:,}, counted from 0, both have "
        f"{value}. A key must tell every row of a sample from the others. If several rows belong "
        "to one case, such as a customer, pass the column as groups instead; if it should only be "
        "left out, drop it.",
        "key",
    )


def hashed_columns(columns: list[Any]) -> tuple[Keys, Bools]:
    """Return one hash for the values of several columns, and where one of them is missing."""
    hashes, missing = zip(*map(hashed_column, columns), strict=True)
    return combined(list(hashes)), np.any(missing, axis=0)


def _of_array(values: NDArray[Any]) -> tuple[Keys, Bools]:
    """Return the hashes of numbers, booleans and times."""
    kind, none = values.dtype.kind, np.zeros(len(values), dtype=bool)
    if kind == "b":
        return _of_bytes(np.where(values, b"true", b"false")), none
    if kind in "iu":
        is_large = values >= _LARGEST
        if kind == "i" and values.dtype.itemsize == 8:
            is_large |= values <= -_LARGEST
        hashes = hashed_numbers(values)
        hashes[is_large] = _of_bytes(values[is_large].astype("S21"))
        return hashes, none
    if kind == "f":
        values = values.astype(np.float64)
        is_missing = np.isnan(values)
        is_whole = (values == np.floor(values)) & (np.abs(values) < _LARGEST)
        hashes = hashed_numbers(np.where(is_whole, values, 0.0).astype(np.int64))
        others = ~is_whole & ~is_missing
        if np.any(np.abs(values[others]) >= _LARGEST):  # huge numbers, by the texts of Python
            hashes[others] = _of_any(values[others].tolist())[0]
        else:
            hashes[others] = _of_bytes(values[others].astype("S32"))
        return hashes, is_missing
    if kind == "M":
        return _of_times(values)
    return _of_objects(values.astype(object))


def _of_times(values: NDArray[Any]) -> tuple[Keys, Bools]:
    """Return the hashes of times without a zone, or in UTC."""
    is_missing = np.isnat(values)
    days = values.astype("datetime64[D]")
    texts = np.datetime_as_string(days).astype("S40")
    rows = np.flatnonzero((days != values) & ~is_missing)
    if len(rows):
        exact = np.char.replace(np.datetime_as_string(values[rows]), "T", " ")
        has_fraction = np.char.find(exact, ".") >= 0
        short = np.char.rstrip(np.char.rstrip(exact, "0"), ".")
        texts[rows] = np.where(has_fraction, short, exact).astype("S40")
    return _of_bytes(texts), is_missing


def _of_bytes(texts: NDArray[np.bytes_]) -> Keys:
    """Return the hashes of an array of bytes of one width."""
    lengths = np.char.str_len(texts)
    data = np.ascontiguousarray(texts).view(np.uint8)
    return hashed_texts(data, np.arange(len(texts)) * texts.dtype.itemsize, lengths)


def _of_objects(values: Any) -> tuple[Keys, Bools]:
    """Return the hashes of text and other objects, in Arrow if they have one type of Arrow."""
    try:
        import pyarrow as pa
    except ImportError:
        return _of_any(list(values))
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _of_any(list(values))  # of several types
    if pa.types.is_date(column.type):  # where times among dates would lose their hours
        return _of_any(list(values))
    return _of_arrow(column)


def _of_any(values: list[Any]) -> tuple[Keys, Bools]:
    """Return the hashes of objects of several types, one by one."""
    texts = [b"" if _is_missing(value) else _text(value) for value in values]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    data = np.frombuffer(b"".join(texts), dtype=np.uint8)
    return hashed_texts(data, np.cumsum(lengths) - lengths, lengths), lengths == 0


def _is_missing(value: Any) -> bool:
    # NaN, NaT and pandas' NA differ from themselves, or do not compare.
    return value is None or str(value) in ("NaT", "<NA>") or bool(np.all(value != value))


def _text(value: Any) -> bytes:
    """Return the text of a value of any type."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower().encode()
    if hasattr(value, "utcoffset") and hasattr(value, "isoformat"):  # datetime, pandas.Timestamp
        value = np.datetime64(_in_utc(value))
        days = value.astype("datetime64[D]")
        text = str(days) if days == value else str(value).replace("T", " ")
        return (text.rstrip("0").rstrip(".") if "." in text else text).encode()
    return value.strip() if isinstance(value, bytes) else text_of(value).strip().encode()


def _in_utc(time: Any) -> Any:
    """Return a datetime without a zone, converted to UTC if it has one."""
    from datetime import UTC

    if time.utcoffset() is not None:
        time = time.astimezone(UTC).replace(tzinfo=None)
    return time.to_datetime64() if hasattr(time, "to_datetime64") else time


def _of_arrow(column: Any) -> tuple[Keys, Bools]:
    """Return the hashes of an Arrow column."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(column, pa.ChunkedArray):
        parts = [(np.empty(0, dtype=np.uint64), np.empty(0, dtype=bool))]
        parts += map(_of_arrow, column.chunks)
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    if isinstance(column, pa.ExtensionArray):
        return _of_arrow(column.storage)
    kind = column.type
    is_missing = np.asarray(column.is_null())
    if types.is_null(kind):
        return np.zeros(len(column), dtype=np.uint64), is_missing
    if types.is_dictionary(kind):
        hashes, missing = _of_arrow(column.dictionary)
        codes = np.asarray(column.indices.fill_null(0)).astype(np.int64)
        return hashes[codes], is_missing | missing[codes]
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        zero = False if types.is_boolean(kind) else 0
        hashes, missing = _of_array(np.asarray(column.fill_null(zero)))
        return hashes, is_missing | missing
    if types.is_temporal(kind) and not types.is_duration(kind):
        return _of_arrow_times(column)
    if types.is_decimal(kind):
        return _of_decimals(column)
    return _of_arrow_texts(column)


def _of_arrow_times(column: Any) -> tuple[Keys, Bools]:
    import pyarrow as pa
    from pyarrow import types

    if types.is_time(column.type):
        return _of_any(column.to_pylist())
    unit = column.type.unit if types.is_timestamp(column.type) else "s"
    moments = column.cast(pa.timestamp(unit))  # without its zone, an instant is in UTC
    return _of_times(moments.to_numpy(zero_copy_only=False))


def _of_decimals(column: Any) -> tuple[Keys, Bools]:
    """Return the hashes of decimals, without zeros behind the last digit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.cast(pa.string())
    short = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    return _of_arrow_texts(pc.if_else(pc.match_substring(texts, "."), short, texts))


def _of_arrow_texts(column: Any) -> tuple[Keys, Bools]:
    """Return the hashes of text or bytes; values of other types as Python writes them."""
    import pyarrow as pa
    from pyarrow import types

    if not (types.is_binary(column.type) or types.is_large_binary(column.type)):
        try:
            column = column.cast(pa.large_string()).cast(pa.large_binary())
        except pa.ArrowException:
            try:
                column = column.cast(pa.large_binary())
            except pa.ArrowException:
                return _of_any(column.to_pylist())
    column = column.cast(pa.large_binary()).fill_null(b"")
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[column.offset :][: len(column) + 1]
    letters = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    lengths: Ints = np.diff(ends)
    return hashed_texts(letters, ends[:-1], lengths), lengths == 0
