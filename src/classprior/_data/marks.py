"""Decimal marks: what the text of numbers says about them, in all files of both samples.

"9,1" shows a decimal comma and "9.1" a decimal point, but "2.817" may mean 2.817 or 2817. Such
values follow the rest of their column, or else all other columns. What stays unclear is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_END = r"([eE][-+]?\d+)?\s*$"
_POINT = rf"^\s*[-+]?(\d*\.\d+|\d+\.|\d{{1,3}}(,\d{{3}})+\.\d+){_END}"
_COMMA = rf"^\s*[-+]?(\d*,\d+|\d+,|\d{{1,3}}(\.\d{{3}})+,\d+){_END}"
_GROUPED = r"^\s*[-+]?\d{{1,3}}({}\d{{3}}){{2,}}\s*$"  # two groups of thousands or more
_UNCLEAR = r"^\s*[-+]?[1-9]\d{0,2}[.,]\d{3}\s*$"
_WHOLE = rf"^\s*[-+]?\d+{_END}"
_SHOWS_COMMA = rf"{_COMMA}|{_GROUPED.format('[.]')}"
_SHOWS_POINT = rf"{_POINT}|{_GROUPED.format(',')}"
_NUMBER = rf"{_WHOLE}|{_SHOWS_COMMA}|{_SHOWS_POINT}"


@dataclass(frozen=True)
class Marks:
    """What the values of a column show; each field but the first is an example."""

    is_number: bool = True  # whether every value is a number, with either mark
    comma: str | None = None  # shows a decimal comma
    point: str | None = None  # shows a decimal point
    unclear: str | None = None  # may have a decimal mark or grouped thousands

    def __or__(self, other: Marks) -> Marks:
        return Marks(
            self.is_number and other.is_number,
            self.comma or other.comma,
            self.point or other.point,
            self.unclear or other.unclear,
        )

    @property
    def mark(self) -> str | None:
        """The decimal mark, if the column shows it."""
        if bool(self.comma) == bool(self.point):
            return None
        return "," if self.comma else "."


def marks_of(column: Any) -> Marks:
    """Return what a pyarrow column of text shows."""
    import pyarrow.compute as pc

    column = column.drop_null()
    if not len(column):
        return Marks()
    if not re.match(_NUMBER, column[0].as_py()):  # most columns of text end here
        return Marks(is_number=False)
    if not pc.all(pc.match_substring_regex(column, _NUMBER)).as_py():
        return Marks(is_number=False)
    is_unclear = pc.match_substring_regex(column, _UNCLEAR)
    clear = column.filter(pc.invert(is_unclear))
    return Marks(
        True,
        _example(clear, _SHOWS_COMMA),
        _example(clear, _SHOWS_POINT),
        None if len(clear) == len(column) else column.filter(is_unclear)[0].as_py(),
    )


def _example(column: Any, pattern: str) -> str | None:
    import pyarrow.compute as pc

    found = column.filter(pc.match_substring_regex(column, pattern))
    return found[0].as_py() if len(found) else None


def decided(
    columns: Mapping[str, Iterable[tuple[str, Marks]]], given: str | None, usual: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the decimal mark of each column of numbers, and what is unclear about others.

    ``columns`` has the marks of each column in each file, with the label of the file. ``given`` is
    the user's mark, ``usual`` the mark to assume if no column shows one.
    """
    merged = {name: _merged(parts) for name, parts in columns.items()}
    numbers = {name: marks for name, marks in merged.items() if marks.is_number}
    if given is not None:
        return dict.fromkeys(numbers, given), {}
    shown = {marks.mark for marks in numbers.values()} - {None}
    if any(marks.comma and marks.point for marks in numbers.values()):
        shown = {",", "."}
    everywhere = shown.pop() if len(shown) == 1 else None if shown else usual
    found, unclear = {}, {}
    for name, marks in numbers.items():
        if marks.comma and marks.point:
            unclear[name] = f"{marks.comma} and {marks.point}"
        elif marks.mark is None and marks.unclear and everywhere is None:
            unclear[name] = f"{marks.unclear}, which may be a decimal number or a whole number"
        else:
            found[name] = marks.mark or everywhere or "."
    return found, unclear


def _merged(parts: Iterable[tuple[str, Marks]]) -> Marks:
    """Join the marks of a column in several files; the examples name their file."""
    total = Marks()
    for label, marks in parts:
        examples = (
            None if value is None else f"{value!r} in {label}"
            for value in (marks.comma, marks.point, marks.unclear)
        )
        total |= Marks(marks.is_number, *examples)
    return total
