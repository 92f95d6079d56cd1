"""Columns of numbers, dates and categories in which some values are words for missing values.

The words are those that pandas, R, databases and spreadsheets write. Numbers stay numbers, and the
words are missing values; categories with names such as "none" keep them.
"""

from __future__ import annotations

import csv
import json
import random
from datetime import date, timedelta
from pathlib import Path

import xlsxwriter

from classprior._samples.inputs import as_source, read_together
from families.base import Family

WORDS = [
    *("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "Null", "null", "None"),
    *("#N/A", "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "?", "-", ".", r"\N"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"),
]
LEVELS = ["none", "missing", "unknown", "na", "other", "N", "#1"]


def write(rng: random.Random, folder: Path) -> None:
    """Write a table and its values."""
    n_rows = rng.randint(3, 60)
    words = rng.sample(WORDS, rng.randint(1, 3))
    truth = {
        "number": [round(rng.gauss(0, 100), 2) for _ in range(n_rows)],
        "count": [rng.randint(0, 99_999) for _ in range(n_rows)],
        "day": [str(date(2026, 1, 1) + timedelta(rng.randrange(900))) for _ in range(n_rows)],
        "level": [rng.choice(LEVELS) for _ in range(n_rows)],
    }
    cells = {name: list(values) for name, values in truth.items()}
    for name in truth:
        for row in rng.sample(range(1, n_rows), rng.randint(0, min(3, n_rows - 1))):
            truth[name][row], cells[name][row] = None, rng.choice(words)
    (folder / "truth.json").write_text(json.dumps(truth))
    rows = list(zip(*cells.values(), strict=True))
    if rng.random() < 0.3:
        with xlsxwriter.Workbook(folder / "table.xlsx") as book:
            sheet = book.add_worksheet()
            for number, row in enumerate([list(cells), *rows]):
                for place, value in enumerate(row):
                    is_text = isinstance(value, str)
                    (sheet.write_string if is_text else sheet.write_number)(number, place, value)
        return
    mark = rng.choice(".,")
    rows = [
        [str(row[0]).replace(".", mark) if type(row[0]) is float else row[0], *row[1:]]
        for row in rows
    ]
    with (folder / "table.csv").open("w", newline="") as file:
        delimiter = ";" if mark == "," else rng.choice(",;\t")
        csv.writer(file, delimiter=delimiter).writerows([list(cells), *rows])


def read(folder: Path) -> str:
    """Read the table; return which column has other values."""
    truth = json.loads((folder / "truth.json").read_text())
    (path,) = folder.glob("table.*")
    source = as_source(path, "X")
    (source,) = read_together([source])
    rows = [row for block in source for table in block.tables() for row in table.to_pylist()]
    for name, expected in truth.items():
        found = [row[name] for row in rows]
        if name == "day":
            found = [None if value is None else str(value)[:10] for value in found]
        if found != expected:
            return f"other values in column {name}: {set(found) - set(expected)}"
    return ""


GAPS = Family("gaps", write, read)
