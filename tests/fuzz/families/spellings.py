"""Pairs of files with the same columns of numbers, which each file spells in its own way.

Thousands are grouped in one file and not in the other, by points or commas, the delimiters and
decimal marks differ, and a decimal mark may be given, rightly or wrongly. All numbers must be the
true ones, or the files refused. What no reader can tell is not asked: files with the same delimiter
have the same decimal mark, and a column may have another unit, if all of its values have.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from classprior._samples.inputs import as_source, read_together
from families.base import Family

OTHER = {".": ",", ",": "."}
NAMES = "positive.csv", "unlabeled.csv"


def spelled(value: float, mark: str, grouping: str, decimals: int | None) -> str:
    """Write a number, with a fixed number of decimals or as few as it takes."""
    text = f"{value:,.{decimals}f}" if decimals and value != int(value) else f"{value:,}"
    text = text.removesuffix(".0")
    return text.translate(str.maketrans({",": grouping, ".": mark}))


def column_kind(rng: random.Random, is_whole: bool) -> Callable[[], float]:
    """Return a function that draws a number."""
    largest = rng.choice([300, 4000, 900_000, 5_000_000])
    smallest = rng.choice([0, 0, 1000]) if largest > 1000 else 0
    sign = rng.choice([1, 1, 1, -1])
    decimals = 0 if is_whole else rng.choice([1, 2, 3, 3])
    return lambda: sign * round(rng.uniform(smallest, largest), decimals or None)


def write(rng: random.Random, folder: Path) -> None:
    """Write two files and their numbers."""
    is_whole = rng.random() < 0.4
    kinds = [column_kind(rng, is_whole or rng.random() < 0.5) for _ in range(rng.randint(2, 4))]
    names = [f"c{place}" for place in range(len(kinds))]
    marks = {delimiter: rng.choice(".,") for delimiter in ",;"}
    has_fixed = rng.random() < 0.3
    truth: dict[str, Any] = {"options": {}, "columns": {}}
    used = set()
    for name in NAMES:
        delimiter = rng.choice(",;")
        mark = rng.choice(".,") if is_whole else marks[delimiter]
        used.add(mark)
        grouping = rng.choice(["", OTHER[mark]])
        columns = [[kind() for _ in range(rng.choice([3, 10, 40]))] for kind in kinds]
        n_rows = min(map(len, columns))
        columns = [values[:n_rows] for values in columns]
        texts = [
            [spelled(v, mark, grouping, 3 if has_fixed else None) for v in values]
            for values in columns
        ]
        truth["columns"][name] = dict(zip(names, columns, strict=True))
        with (folder / name).open("w", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([names, *zip(*texts, strict=True)])
    if len(used) == 1 and rng.random() < 0.4:
        truth["options"] = {"decimal": next(iter(used))}
    elif not is_whole and rng.random() < 0.3:
        truth["options"] = {"decimal": rng.choice(".,")}
    (folder / "truth.json").write_text(json.dumps(truth))


def read(folder: Path) -> str:
    """Read both files together; return which column has other numbers."""
    truth = json.loads((folder / "truth.json").read_text())
    sources = [as_source(folder / name, name, read_options=truth["options"]) for name in NAMES]
    sources = read_together(sources)
    found = [
        [row for block in source for table in block.tables() for row in table.to_pylist()]
        for source in sources
    ]
    for column in truth["columns"][NAMES[0]]:
        ours = [row[column] for rows in found for row in rows]
        true = [value for name in NAMES for value in truth["columns"][name][column]]
        if any(isinstance(value, str) for value in ours):
            return f"text in column {column}"
        given = truth["options"].get("decimal")
        if not any(same(ours, true, unit) for unit in (1, 1000, 0.001)) and not (
            given and is_what_was_said(folder, column, given)
        ):
            return f"other numbers in column {column}"
    return ""


def same(ours: list[float], true: list[float], unit: float) -> bool:
    """Return whether all numbers are the true ones in another unit."""
    pairs = zip(ours, true, strict=True)
    return all(abs(one * unit - other) <= 1e-9 * abs(other) for one, other in pairs)


def is_what_was_said(folder: Path, column: str, given: str) -> bool:
    """Return whether all marks in a column are possible with the wrong decimal mark given."""
    for name in NAMES:
        with (folder / name).open(newline="") as file:
            head = file.readline()
            rows = csv.reader(file, delimiter=";" if ";" in head else ",")
            place = int(column[1:])
            for row in rows:
                whole, *rest = row[place].lstrip("-").split(given)
                first, *groups = whole.split(OTHER[given])
                is_grouped = len(first) < 4 and first[:1] != "0"
                if len(rest) > 1 or OTHER[given] in "".join(rest):
                    return False
                if groups and not (is_grouped and all(len(group) == 3 for group in groups)):
                    return False
    return True


SPELLINGS = Family("spellings", write, read)
