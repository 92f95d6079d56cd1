"""Decimal marks: what the text of numbers says about them, in all files of both samples.

"9,1" shows a decimal comma and "9.1" a decimal point, but "2.817" may mean 2.817 or 2817. Such
values follow the rest of their column, then the rest of their file, then other files with the same
delimiter; in a comma-separated file without any of these, the mark is a point. A reading that does
not agree with the same column elsewhere is refused, and so is what stays unclear.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_OTHER = {".": ",", ",": "."}
_START, _END = r"^\s*[-+]?", r"\s*$"
_POWER = r"([eE][-+]?\d+)?"


def _patterns(mark: str) -> dict[str, str]:
    """Return what numbers with this mark can look like, the first that fits counts."""
    own, other = re.escape(mark), re.escape(_OTHER[mark])
    whole = rf"\d+{own}|\d*{own}\d+|[1-9]\d{{0,2}}({other}\d{{3}})+{own}\d*"
    return {
        f"unclear {mark}": rf"{_START}[1-9]\d{{0,2}}{own}\d{{3}}{_END}",
        f"decimal {mark}": rf"{_START}({whole}){_POWER}{_END}",
        f"grouped {mark}": rf"{_START}[1-9]\d{{0,2}}({own}\d{{3}}){{2,}}{_END}",
    }


#: Kinds of numbers, by their text: 2.817, 9.1, 1.234.567, the same with commas, and without marks.
_KINDS = {
    **_patterns("."),
    **_patterns(","),
    "small": rf"{_START}0*\d{{1,3}}{_END}",
    "large": rf"{_START}\d+{_END}",
    "other": rf"{_START}(\d+{_POWER}|(?i:inf|infinity|nan)){_END}",
}
_NUMBER = "|".join(_KINDS.values())


@dataclass(frozen=True)
class Marks:
    """What the values of a column show."""

    is_number: bool = True  # whether every value is a number, with either mark
    examples: Mapping[str, str] = field(default_factory=dict)  # a value of each kind that there is

    def __or__(self, other: Marks) -> Marks:
        return Marks(self.is_number and other.is_number, {**other.examples, **self.examples})

    def showing(self, mark: str) -> str | None:
        """Return a value that shows this decimal mark."""
        groups = self.examples.get(f"grouped {_OTHER[mark]}")
        return self.examples.get(f"decimal {mark}", groups)

    @property
    def shown(self) -> set[str]:
        """The decimal marks that some values show."""
        return {mark for mark in _OTHER if self.showing(mark)}

    @property
    def unclear(self) -> str | None:
        """A value whose mark may be decimal or group thousands."""
        return self.examples.get("unclear .", self.examples.get("unclear ,"))


def marks_of(column: Any) -> Marks:
    """Return what a pyarrow column of text shows."""
    import pyarrow.compute as pc

    column = column.drop_null()
    if not len(column):
        return Marks()
    if not re.match(_NUMBER, column[0].as_py()):  # most columns of text end here
        return Marks(is_number=False)
    if not pc.all(are_numbers(column)).as_py():
        return Marks(is_number=False)
    examples = {}
    for kind, pattern in _KINDS.items():
        is_kind = pc.match_substring_regex(column, pattern)
        found = column.filter(is_kind)
        if len(found):
            examples[kind] = found[0].as_py()
            column = column.filter(pc.invert(is_kind))
        if not len(column):
            break
    return Marks(True, examples)


def are_numbers(column: Any) -> Any:
    """Return which values of a pyarrow column of text are numbers, with either mark."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(column, _NUMBER)


def marks_of_integers(column: Any) -> Marks:
    """Return what a pyarrow column of text shows whose values are integers: its longest."""
    import pyarrow.compute as pc

    column = column.drop_null()
    length = pc.binary_length(column)
    if pc.max(length).as_py() > 3:
        digits = pc.utf8_rtrim_whitespace(pc.utf8_ltrim(column, " \t+-0"))
        length = pc.binary_length(digits)
    return marks_of(column.slice(pc.index(length, pc.max(length)).as_py(), 1))


class MarkedFile(NamedTuple):
    """The marks of the columns of a file."""

    label: str  # in messages
    delimiter: str
    columns: dict[str, Marks]  # by name

    @property
    def numbers(self) -> dict[str, Marks]:
        """The columns of numbers."""
        return {name: marks for name, marks in self.columns.items() if marks.is_number}

    @property
    def shown(self) -> set[str]:
        """The decimal marks that some of its columns show."""
        return {mark for marks in self.numbers.values() for mark in marks.shown}


_Examples = dict[str, tuple[str, str]]  # a value of each kind, and its file


class Doubt(NamedTuple):
    """A value that may mean another number, or none with the given decimal mark."""

    file: int  # its place among the files
    value: str
    beside: str  # what speaks against the likely meaning; "" if nothing speaks for any


def decided(
    files: Sequence[MarkedFile], given: str | None = None
) -> tuple[list[dict[str, str]], dict[str, Doubt]]:
    """Return the decimal marks of the columns of each file, and doubts about columns."""
    if given is None:
        chosen = _likely_marks(files)
        doubts = _doubts(files, chosen)
    else:
        chosen = [dict.fromkeys(file.numbers, given) for file in files]
        doubts = {
            name: Doubt(place, wrong, "")
            for place, file in enumerate(files)
            for name, marks in file.numbers.items()
            if (wrong := marks.showing(_OTHER[given]))
        }
    sure = [
        {name: mark for name, mark in marks.items() if mark is not None and name not in doubts}
        for marks in chosen
    ]
    return sure, doubts


def _likely_marks(files: Sequence[MarkedFile]) -> list[dict[str, str | None]]:
    """Return the likely mark of each column; None if there is no evidence, or evidence for both."""
    in_files: dict[str, set[str]] = {file.delimiter: set() for file in files}
    in_columns: dict[tuple[str, str], set[str]] = defaultdict(set)
    for file in files:
        in_files[file.delimiter] |= file.shown
        for name, marks in file.numbers.items():
            in_columns[file.delimiter, name] |= marks.shown
    likely = []
    for file in files:
        in_file, found = file.shown, {}
        for name, marks in file.numbers.items():
            evidence = [marks.shown]
            if marks.unclear:
                alike = in_columns[file.delimiter, name], in_files[file.delimiter]
                evidence += [in_file, *alike]
            default = {"."} if file.delimiter == "," or not marks.unclear else set(_OTHER)
            first = next((marks for marks in evidence if marks), default)
            found[name] = next(iter(first)) if len(first) == 1 else None
        likely.append(found)
    return likely


def _doubts(
    files: Sequence[MarkedFile], chosen: Sequence[Mapping[str, str | None]]
) -> dict[str, Doubt]:
    """Return the columns that may mean other numbers than the likely marks say."""
    pools: dict[str, _Examples] = defaultdict(dict)  # of the same column in all files
    shows = {file.delimiter: False for file in files}
    for file, marks_of_file in zip(files, chosen, strict=True):
        shows[file.delimiter] |= bool(file.shown)
        for name, marks in file.numbers.items():
            mark = marks_of_file[name]
            examples = {kind: (value, file.label) for kind, value in marks.examples.items()}
            if mark and (grouped := examples.get(f"unclear {_OTHER[mark]}")):
                examples["read as grouped"] = grouped
            pools[name] = {**examples, **pools[name]}
    doubts: dict[str, Doubt] = {}
    for place, (file, marks_of_file) in enumerate(zip(files, chosen, strict=True)):
        is_shown = bool(file.shown)
        for name, marks in file.numbers.items():
            mark, value = marks_of_file[name], marks.unclear
            beside = None
            if len(marks.shown) > 1:
                value, beside = marks.showing(","), (str(marks.showing(".")), file.label)
            elif marks.shown or value is None:
                continue
            elif mark is not None:
                is_guess = not shows[file.delimiter]
                beside = _evidence_against(file, marks, mark, pools[name], is_shown, is_guess)
                if beside is None:
                    continue
            text = "" if beside is None else f"{beside[0]!r} in {beside[1]}"
            doubts.setdefault(name, Doubt(place, str(value), text))
    return doubts


def _evidence_against(
    file: MarkedFile, marks: Marks, mark: str, pool: _Examples, is_shown: bool, is_guess: bool
) -> tuple[str, str] | None:
    """Return a value that contradicts the way in which the unclear values of a column are read.

    The file shows the decimal mark if ``is_shown``; no file like it does if ``is_guess``.
    """
    other, fractions = _OTHER[mark], ("decimal .", "decimal ,")
    found: list[tuple[str, str] | None] = []
    if f"unclear {other}" in marks.examples:  # 2,817 is read as 2817, but elsewhere is 9,1
        found += map(pool.get, fractions if is_guess else [f"decimal {other}"])
    if f"unclear {mark}" in marks.examples:
        # 2.817 is read as a decimal number, but there are whole numbers, which are rare among
        # those. Small ones count only if nothing else in the file shows the mark.
        whole = ["large"] if is_shown else ["large", "small"]
        if not is_shown:
            own = [marks.examples.get(kind) for kind in whole]
            found += [(value, file.label) for value in own if value is not None]
        if not any(kind in pool for kind in fractions):
            found += map(pool.get, [*whole, "grouped .", "grouped ,", "read as grouped"])
    return next((value for value in found if value is not None), None)
