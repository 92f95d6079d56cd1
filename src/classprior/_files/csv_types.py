"""The types of text in CSV files: which fit, and how values are parsed."""

from __future__ import annotations

from functools import cache
from typing import Any

_BLANKS = " \t"  # may surround numbers, dates and times
_FIRST, _PART = 2**4, 2**14  # values tried at a time
_BOOLEANS = "true", "false", "True", "False", "TRUE", "FALSE", "1", "0"


@cache
def csv_types() -> tuple[Any, ...]:
    """Return the types that text may have; a column has the first that fits all its values."""
    import pyarrow as pa

    times = [pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in ("s", "ns")]
    return pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), *times, pa.float64()


def fits(texts: Any, kind: Any, decimal: str) -> bool:
    """Return whether all texts of a column can be parsed."""
    import pyarrow as pa

    # In parts, since pyarrow takes long to describe each value that it cannot cast.
    parts = [
        texts.slice(0, _FIRST),
        *(texts.slice(i, _PART) for i in range(_FIRST, len(texts), _PART)),
    ]
    try:
        for part in parts:
            parsed(part, kind, decimal)
    except pa.ArrowInvalid:
        return False
    return True


def parsed(texts: Any, kind: Any, decimal: str = ".") -> Any:
    """Parse text by the rules of pyarrow's CSV reader; raise ArrowInvalid if it does not fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(kind):
        _require(pc.is_in(texts, value_set=pa.array([*_BOOLEANS, None])), "booleans")
    if pa.types.is_time(kind):
        return _times(pc.utf8_trim(texts, _BLANKS)).cast(kind)
    if pa.types.is_floating(kind) and decimal == ",":
        _require(pc.invert(pc.match_substring(texts, ".")), "decimal commas")
        texts = pc.replace_substring(texts, ",", ".")
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        if pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
            raise
        return pc.utf8_trim(texts, _BLANKS).cast(kind)


def _require(is_right: Any, what: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.all(is_right).as_py() is False:
        raise pa.ArrowInvalid(f"Expected {what}.")


def _times(texts: Any) -> Any:
    """Parse times of day, such as 12:30 or 12:30:00, which pyarrow casts only after a date."""
    import pyarrow as pa
    import pyarrow.compute as pc

    _require(pc.match_substring_regex(texts, r"^\d\d:\d\d(:\d\d)?$"), "times")
    return pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp("s"))


def grouped_numbers(texts: Any, decimal: str) -> Any:
    """Parse numbers with the given decimal mark, whose thousands may be grouped by the other."""
    import pyarrow.compute as pc

    group = "." if decimal == "," else ","
    texts = pc.replace_substring(pc.replace_substring(texts, group, ""), decimal, ".")
    return pc.cast(pc.utf8_trim_whitespace(texts), "float64")


def local_dates(texts: Any) -> Any:
    """Parse dates such as 31.12.2026; an impossible date becomes null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    dates = pc.strptime(texts, format="%d.%m.%Y", unit="s", error_is_null=True)
    # The parser makes 3 March of 31 February, so the day must come back.
    day = pc.cast(pc.list_element(pc.split_pattern(texts, "."), 0), pa.int64())
    return pc.if_else(pc.equal(pc.day(dates), day), dates, None)
