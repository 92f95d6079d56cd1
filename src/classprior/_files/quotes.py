"""Stray quotation marks in CSV files, which make one value of many rows.

A mark opens a value only at its start, and should close it only at its end. If a value of several
lines goes on after the mark that closes it, one of the two is a stray. Strays that happen to be in
the right places are found by the lines between them, which look like rows of the table.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from classprior._core.types import Bools, Ints
from classprior._files.csv import MISSING_VALUES
from classprior._files.marks import are_numbers

_QUOTE, _LINE_END = ord('"'), ord("\n")


class Quotes:
    """The quotation marks of a file, read in parts that end with a line."""

    def __init__(self, delimiter: str) -> None:
        self._ends_value = np.zeros(256, dtype=bool)
        self._ends_value[[ord(delimiter), ord("\n"), ord("\r")]] = True
        self._n_lines = 0
        self._opened_in = 0  # line of the mark that is open; 0 if none is

    def stray(self, parts: Iterable[bytes]) -> int | None:
        """Return the line of the first value of several lines that is not closed at its end."""
        for part in _whole_lines(parts):
            found = self._look(part if self._n_lines else part.removeprefix(codecs.BOM_UTF8))
            if found is not None:
                return found
        has_lines = 0 < self._opened_in <= self._n_lines
        return self._opened_in if has_lines else None

    def _look(self, part: bytes) -> int | None:
        """Look at the next lines of the file."""
        content = np.frombuffer(part, np.uint8)
        marks = np.flatnonzero(content == _QUOTE)
        line_end = b"\n" if b"\n" in part else b"\r"
        found = None
        if len(marks):
            # Marks next to each other; an even number of them opens and closes nothing.
            is_first = np.diff(marks, prepend=-2) > 1
            first, is_last = marks[is_first], np.append(is_first[1:], True)
            last = marks[is_last]
            is_inside, was_inside = self._states(content, first, last)
            opens, closes = is_inside & ~was_inside, was_inside & ~is_inside
            ends = np.flatnonzero(content == ord(line_end))
            lines = np.searchsorted(ends, first)  # that end before each mark
            n_open = np.cumsum(opens)
            opened_in = np.append(self._opened_in, self._n_lines + 1 + lines[opens])[n_open]
            after = np.where(last + 1 < len(content), content[(last + 1) % len(content)], _LINE_END)
            has_lines = self._n_lines + 1 + lines > opened_in
            is_stray = closes & has_lines & ~self._ends_value[after]
            if is_stray.any():
                found = int(opened_in[is_stray.argmax()])
            self._opened_in = int(opened_in[-1]) if is_inside[-1] else 0
        self._n_lines += part.count(line_end)
        return found

    def _states(self, content: Any, first: Ints, last: Ints) -> tuple[Bools, Bools]:
        """Return whether the text after each group of marks is inside quotes, and before it."""
        before = np.where(first > 0, content[first - 1], _LINE_END)
        is_odd = (last - first) % 2 == 0
        # At the start of a value, an odd group opens it; elsewhere it can only close one.
        resets = is_odd & ~self._ends_value[before]
        turns = np.cumsum(is_odd & ~resets)
        last_reset = np.maximum.accumulate(np.where(resets, np.arange(len(first)), -1))
        since = turns - np.where(last_reset < 0, -(self._opened_in > 0), turns[last_reset])
        is_inside = since % 2 == 1
        return is_inside, np.append(self._opened_in > 0, is_inside[:-1])


def _whole_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for part in parts:
        text = rest + part
        end = max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1
        rest = text[end:]
        if end:
            yield text[:end]
    if rest:
        yield rest


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
