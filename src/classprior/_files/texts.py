"""Values as text: how they are written to CSV, and which types give the text of a CSV file back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from classprior._files.csv import MISSING_VALUES, fits, parsed

if TYPE_CHECKING:
    import pyarrow as pa


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
    return pc.if_else(_are_gaps(texts), texts, swapped)


def faithful_types(tables: Iterable[pa.Table], schema: Any, decimal: str) -> Any:
    """Return a schema with the types from which all texts of a column come back, else text."""
    import pyarrow as pa

    is_open = [field for field in schema if field.type not in (pa.string(), pa.null())]
    ways: dict[str, set[Any] | None] = {field.name: None for field in is_open}
    for table in tables:
        for field in is_open:
            known = ways[field.name]
            if known is None or known:
                found = _ways_to_write(table[field.name], field.type, decimal)
                ways[field.name] = known if found is None else found & (known or found)
    types = [field.type if ways.get(field.name) else pa.string() for field in schema]
    return pa.schema(list(zip(schema.names, types, strict=True)))


def with_types(table: pa.Table, schema: Any, decimal: str) -> pa.Table:
    """Parse the texts of a table; missing values become null, in text columns the empty ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [
        pc.if_else(pc.equal(texts, ""), None, texts)
        if field.type == pa.string()
        else parsed(_with_gaps(texts), field.type, decimal)
        for texts, field in zip(table.columns, schema, strict=True)
    ]
    return pa.table(columns, schema=schema)


def _with_gaps(texts: Any) -> Any:
    """Return texts with null for missing values."""
    import pyarrow.compute as pc

    return pc.if_else(_are_gaps(texts), None, texts)


def _are_gaps(texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(texts, value_set=pa.array(MISSING_VALUES))


def _ways_to_write(texts: Any, kind: Any, decimal: str) -> set[Any] | None:
    """Return the ways to write values that give all their texts; None if all are missing.

    The same way must do for the whole column: 1.5 and 1.50 are different texts of one number.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _with_gaps(texts).drop_null()
    if not len(texts):
        return None
    if not fits(texts, kind, decimal):
        return set()
    values = parsed(texts, kind, decimal)
    lengths = pc.unique(pc.binary_length(texts)).to_pylist()
    if pa.types.is_floating(kind):
        texts = pc.replace_substring(texts, decimal, ".")
        shortest = pa.chunked_array([_float_texts(chunk) for chunk in values.chunks])
        written = {"1.0": shortest, "1": pc.replace_substring_regex(shortest, r"\.0$", "")}
        ways = {way for way, back in written.items() if _same(back, texts)}
        return ways | _fixed_decimals(texts)
    back = values.cast(pa.string())
    if pa.types.is_boolean(kind):
        cases = {"true": back, "True": pc.utf8_capitalize(back), "TRUE": pc.utf8_upper(back)}
        return {way for way, back in cases.items() if _same(back, texts)}
    if pa.types.is_timestamp(kind) and len(lengths) == 1:  # a fixed number of decimals
        spaced = pc.replace_substring(texts, "T", " ")
        if _same(pc.utf8_rtrim(back, ".0"), pc.utf8_rtrim(spaced, ".0")):
            marks = pc.unique(pc.match_substring(texts, "T")).to_pylist()
            return {(lengths[0], marks[0])} if len(marks) == 1 else set()
    return {"as cast"} if _same(back, texts) else set()


def _fixed_decimals(texts: Any) -> set[Any]:
    """Return the number of decimals if all numbers have as many, and few enough to be exact."""
    import pyarrow.compute as pc

    length = pc.binary_length(texts)
    decimals = pc.unique(pc.subtract(length, pc.find_substring(texts, "."))).to_pylist()
    is_plain = pc.match_substring_regex(texts, r"^-?(0|[1-9][0-9]*)\.[0-9]+$")
    is_exact = len(decimals) == 1 and pc.max(length).as_py() <= 16 and pc.all(is_plain).as_py()
    return {("decimals", decimals[0])} if is_exact else set()


def _same(one: Any, other: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return bool(
        pc.all(pc.equal(one.cast(pa.large_string()), other.cast(pa.large_string()))).as_py()
    )
