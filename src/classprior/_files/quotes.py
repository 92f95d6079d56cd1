"""Stray quotation marks in CSV files, which make one value of many rows.

A mark opens a value only at its start, and should close it only at its end. A value of several
lines that is not in the file between two marks goes on after the mark that closes it, or is never
closed: it has a stray. Strays that happen to be in the right places are found by the lines between
them, which look like rows of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from classprior._files.csv import MISSING_VALUES
from classprior._files.marks import are_numbers


class QuotedText:
    """The text of a file, in which values of several lines are looked for in their order."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = iter(parts)
        self._text, self._place = b"", 0

    def has(self, value: str) -> bool:
        """Return whether the next value of several lines is closed at its end."""
        wanted = b'"%b"' % value.replace('"', '""').encode()
        while (found := self._text.find(wanted, self._place)) < 0:
            part = next(self._parts, None)
            if part is None:
                return False
            rest = max(self._place, len(self._text) - len(wanted))
            self._text, self._place = self._text[rest:] + part, 0
        self._place = found + len(wanted)
        return True


def rows_in_value(columns: Sequence[Any], place: int, delimiter: str) -> tuple[int, str] | None:
    """Return the place and text of the first value of a column whose lines look like rows.

    They have as many delimiters as rows, and numbers where the other rows have numbers, or values
    that the other rows have, too.
    """
    import pyarrow.compute as pc

    texts, width = columns[place], len(columns)
    if width == 1 and not _is_number(texts):
        return None  # lines of text have no shape
    n_lines = pc.count_substring(texts, "\n")
    n_marks = pc.count_substring(texts, delimiter)
    may_be = pc.and_(pc.greater(n_lines, 0), pc.equal(n_marks, pc.multiply(n_lines, width - 1)))
    for row in pc.indices_nonzero(pc.fill_null(may_be, False)).to_pylist():
        value = texts[row].as_py()
        lines = [line.removesuffix("\r").split(delimiter) for line in value.split("\n")]
        expected = [width - place, *[width] * (len(lines) - 2), place + 1]
        if [len(line) for line in lines] == expected and _are_rows(lines, columns, place):
            return row, value
    return None


def _are_rows(lines: list[list[str]], columns: Sequence[Any], place: int) -> bool:
    """Return whether lines from a value in one row to a value in another have values like rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fields = [*enumerate(lines[0], place), *enumerate(lines[-1])]
    fields += [field for line in lines[1:-1] for field in enumerate(line)]
    alike = set()
    for number, texts in enumerate(columns):
        values = [value for column, value in fields if column == number]
        present = [value for value in values if value not in MISSING_VALUES]
        if pc.all(_alike(pa.array(present, pa.string()), texts), min_count=0).as_py():
            alike |= {number} if present else set()
        elif _is_number(texts):
            return False
    # Two lines may look like rows by chance.
    return len(alike) > 0 and (len(lines) > 2 or len(alike) > 1 or place in alike)


def _alike(values: Any, texts: Any) -> Any:
    """Return which values are among the texts of a column, or numbers as most of them are.

    Blanks before a number speak for a sentence.
    """
    import pyarrow.compute as pc

    known = pc.is_in(values, value_set=_single_lines(texts))
    if not _is_number(texts):
        return known
    is_number = pc.and_(are_numbers(values), pc.invert(pc.starts_with(values, " ")))
    return pc.or_(known, is_number)


def _is_number(texts: Any) -> bool:
    """Return whether most values are numbers; some may have stray marks of their own."""
    import pyarrow.compute as pc

    return (pc.mean(are_numbers(_single_lines(texts))).as_py() or 0.0) > 0.5


def _single_lines(texts: Any) -> Any:
    """Return the values of one line, which are not missing."""
    import pyarrow.compute as pc

    texts = texts.drop_null()
    return texts.filter(pc.invert(pc.match_substring(texts, "\n")))
