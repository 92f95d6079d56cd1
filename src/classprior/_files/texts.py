"""Values as text: how they are written to CSV, and which numbers are codes."""

from __future__ import annotations

from typing import Any

from classprior._files.csv import MISSING_VALUES

#: Codes among decimal numbers: +43, 007, and whole numbers with more digits than floats have.
_CODE = r"^\s*(\+|-?0\d|-?\d{16})"


def as_texts(column: Any, decimal: str = ".") -> Any:
    """Return an Arrow array as text, as Python's ``str`` writes its values; null stays null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if (texts := raw_texts(column)) is not None:
        return texts.view(pa.large_string())
    if pa.types.is_boolean(kind):
        yes, no = (pa.scalar(text, pa.large_string()) for text in ("True", "False"))
        return pc.if_else(column, yes, no)
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        texts = _float_texts(column.cast(pa.float64()))
        return texts if decimal == "." else pc.replace_substring(texts, ".", decimal)
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        return column.cast(pa.large_string())
    texts = [None if value is None else str(value) for value in column.to_pylist()]
    return pa.array(texts, pa.large_string())


def raw_texts(column: Any) -> Any:
    """Return the texts of an Arrow array as type ``large_binary``; None if it has no texts."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kinds = "string", "large_string", "binary", "large_binary", "fixed_size_binary"
    return column.cast(pa.large_binary()) if str(column.type).startswith(kinds) else None


def _float_texts(values: Any) -> Any:
    """Return the shortest text of each number, as Python's ``repr`` writes it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = values.cast(pa.large_string())
    size = pc.abs(values)
    # pyarrow writes the same digits, but 1.0 as 1, and uses other exponents outside this range.
    same = pc.or_(pc.equal(size, 0), pc.and_(pc.greater_equal(size, 1e-4), pc.less(size, 1e10)))
    whole = pc.and_(same, pc.equal(values, pc.floor(values)))
    texts = pc.if_else(whole, joined(texts, ".0"), texts)
    others = [repr(value) for value in values.filter(pc.invert(same)).to_pylist()]
    if others:
        mask = pc.fill_null(pc.invert(same), False)
        texts = pc.replace_with_mask(texts, mask, pa.array(others, pa.large_string()))
    return texts


def joined(*parts: Any, by: str = "") -> Any:
    """Join arrays of type ``large_string`` and single texts, row by row; null is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [
        pa.scalar(part, pa.large_string()) if isinstance(part, str) else part
        for part in (*parts, by)
    ]
    return pc.binary_join_element_wise(*texts, null_handling="replace", null_replacement="")


def text_bytes(texts: Any) -> bytes:
    """Return the bytes of all values of an array of text."""
    import numpy as np

    _, places, content = texts.buffers()
    if content is None or not len(texts):
        return b""
    kind = np.dtype(np.int64 if str(texts.type).startswith("large") else np.int32)
    places = np.frombuffer(places, kind, len(texts) + 1, kind.itemsize * texts.offset)
    return bytes(memoryview(content)[places[0] : places[-1]])


def with_decimal(texts: Any, decimal: str, wanted: str) -> Any:
    """Return texts of numbers with another decimal mark, and the other mark for thousands."""
    import pyarrow.compute as pc

    if decimal == wanted:
        return texts
    swapped = pc.replace_substring(texts, decimal, "\0")
    swapped = pc.replace_substring(swapped, wanted, decimal)
    swapped = pc.replace_substring(swapped, "\0", wanted)
    return pc.if_else(pc.is_null(without_gaps(texts)), texts, swapped)


def without_gaps(texts: Any) -> Any:
    """Return texts with null for missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.is_in(texts, value_set=pa.array(MISSING_VALUES)), None, texts)


def has_codes(texts: Any, values: Any) -> bool:
    """Return whether some texts say more than their values: 007, a long number, 31.02.2026."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(values.type):
        is_code = pc.not_equal(values.cast(pa.string()), texts)
    elif pa.types.is_timestamp(values.type) and values.type.tz:
        return True  # the offset from UTC
    elif pa.types.is_floating(values.type):
        is_code = pc.match_substring_regex(texts, _CODE)
    else:
        is_code = pc.and_(pc.is_null(values), pc.is_valid(texts))
    return pc.any(is_code, min_count=0).as_py()
