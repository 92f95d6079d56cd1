"""Decimal marks: what the text of numbers says about them, in all files of both samples.

"9,1" shows a decimal comma and "9.1" a decimal point, but "2.817" may mean 2.817 or 2817. Such
values follow the rest of their column, then the rest of their file, then other files with the same
delimiter. What stays unclear is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class MarkedFile(NamedTuple):
    """The marks of the columns of a file."""

    label: str  # in messages
    delimiter: str
    columns: dict[str, Marks]  # by name

    @property
    def shown(self) -> set[str]:
        """The decimal marks that some of its columns show."""
        numbers = [marks for marks in self.columns.values() if marks.is_number]
        return {m for marks in numbers for m in (marks.comma and ",", marks.point and ".") if m}


def decided(
    files: Sequence[MarkedFile], given: str | None = None
) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Return the decimal marks of the columns of each file, and why some are unclear."""
    unclear: dict[str, str] = {}
    found = []
    for file in files:
        alike = [other for other in files if other.delimiter == file.delimiter]
        in_file, in_files = file.shown, set().union(*(other.shown for other in alike))
        decimals = {}
        for name, marks in file.columns.items():
            if not marks.is_number:
                continue
            in_column = {m for f in alike if (m := f.columns.get(name, Marks()).mark)}
            own = {marks.mark} if marks.mark else set()
            mark = given or _first_sure(own, in_file, in_column, in_files, {"."})
            is_contradicted = bool(marks.comma and marks.point)
            has_no_hint = marks.unclear and not in_files and file.delimiter != ","
            if given is None and (is_contradicted or mark is None or has_no_hint):
                example = marks.unclear or f"{marks.comma}' and '{marks.point}"
                unclear[name] = f"'{example}' in {file.label}"
            else:
                decimals[name] = mark or "."
        found.append(decimals)
    return found, unclear


def _first_sure(*evidence: set[str]) -> str | None:
    """Return the mark of the first evidence that there is; None if it is contradictory."""
    first = next(marks for marks in evidence if marks)
    return next(iter(first)) if len(first) == 1 else None
