"""Tables with text of several lines, quoted as it should be, or with stray quotation marks.

Without strays, the text of every value must be that of the csv module. With strays, no row may be
lost: the file is refused, or has all rows with their values, but for the marks.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

from classprior._samples.inputs import as_source
from families.base import Family

WORDS = [
    "paid",
    "in full",
    "3 boxes",
    "Main St, 5",
    "a; b",
    'the "new" one',
    "no. 12",
    "x|y",
    "",
    "é",
]


def free_text(rng: random.Random) -> str:
    """Return one line, or a few with delimiters and quotation marks in them."""
    lines = [
        rng.choice([" ", ", ", ",", ";"]).join(rng.choices(WORDS, k=rng.randint(1, 4)))
        for _ in range(rng.choice([1, 1, 2, 3, 5]))
    ]
    return rng.choice(["\n", "\r\n"]).join(lines)


def table(rng: random.Random) -> tuple[list[str], list[list[str]]]:
    """Return names and values; in tables of more than one column, one of numbers at least."""
    share = rng.choice([0.005, 0.1, 1.0])  # of texts that may have several lines
    kinds: list[Callable[[], str]] = [
        lambda: free_text(rng) if rng.random() < share else f"word {rng.randrange(10**6)}",
        lambda: rng.choice(["red", "green", "blue"]),
        lambda: str(rng.randint(-99, 99_999)),
        lambda: f"{rng.gauss(0, 100):.2f}",
    ]
    columns = rng.choices(kinds, k=rng.randint(1, 4))
    if len(columns) > 1:
        columns[rng.randrange(len(columns))] = kinds[3]
    rows = [[kind() for kind in columns] for _ in range(rng.choice([20, 100, 300]))]
    return [f"c{place}" for place in range(len(columns))], rows


def write(rng: random.Random, folder: Path) -> None:
    """Write a table, with stray quotation marks in some of its values or without."""
    names, rows = table(rng)
    how = {
        "delimiter": rng.choice(",;\t") if len(names) > 1 else ",",
        "quoting": rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        "lineterminator": rng.choice(["\n", "\r\n"]),
    }
    cells = [[quoted(value, how) for value in row] for row in [names, *rows]]
    n_strays = rng.choice([0, 0, 1, 2, 3, 10]) if len(names) > 1 else rng.choice([0, 1, 2, 10])
    for row in rng.sample(range(1, len(cells)), min(n_strays, len(rows))):
        place = rng.randrange(len(names))
        if '"' not in (cell := cells[row][place]):
            # In a single column of text, marks at the right places enclose a right value.
            kinds = [f'"{cell}', f'{cell[:1]}"{cell[1:]}', f'{cell}"'][: 1 + 2 * (len(names) > 1)]
            cells[row][place] = rng.choice(kinds)
    text = "".join(how["delimiter"].join(row) + how["lineterminator"] for row in cells)
    (folder / "table.csv").write_bytes(text.encode())
    (folder / "truth.json").write_text(json.dumps({"rows": rows, "strays": n_strays}))


def quoted(value: str, how: dict) -> str:
    """Return a value as the csv module writes it."""
    out = io.StringIO(newline="")
    csv.writer(out, **how).writerow([value, ""])
    return out.getvalue().removesuffix(how["lineterminator"]).rpartition(how["delimiter"])[0]


def read(folder: Path) -> str:
    """Compare the text of all values with what was written."""
    truth = json.loads((folder / "truth.json").read_text())
    try:
        opened = as_source(folder / "table.csv", "X").opened
    except ValueError as error:
        if truth["strays"]:
            raise
        return f"refused: {error}"
    ours = [list(row.values()) for table in opened.as_written() for row in table.to_pylist()]
    rows = truth["rows"]
    if truth["strays"]:
        ours, rows = ([[v.replace('"', "") for v in row] for row in t] for t in (ours, rows))
    if len(opened.columns) == 1:  # lines without anything in them are no rows
        ours, rows = ([row for row in t if row != [""]] for t in (ours, rows))
    return "" if ours == rows else f"{len(ours)} rows instead of {len(rows)}, or other values"


QUOTES = Family("quotes", write, read)
