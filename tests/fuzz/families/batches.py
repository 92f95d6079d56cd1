"""Batches of new rows for a saved model: a row has the same probability in every batch.

Columns have levels that look like numbers, dates or booleans, and batches some of the levels.
"""

from __future__ import annotations

import csv
import json
import random
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xlsxwriter
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from classprior import PUClassifier, TableEncoder
from classprior.engines import fit_blocks, predict_blocks
from families.base import Family

_ROWS = 200
_LEVELS = [
    ["01", "02", "X9"],
    ["1", "2", "3", "n"],
    ["1.5", "2.50", "x"],
    ["1,5", "2,25", "x"],
    ["1.234", "2.345", "x"],
    ["2026-01-01", "2026-02-01", "open"],
    ["01.02.2026", "03.02.2026", "31.02.2026", "open"],
    ["2026-01-01T10:00:00", "2026-01-01T10:00:00+01:00", "x"],
    ["true", "false", "maybe"],
    ["12:30", "10:15:00", "later"],
    ["0", "1", "00"],
]
_TYPED: list[Callable[[random.Random], str]] = [
    lambda rng: str(rng.randint(0, 50)),
    lambda rng: f"{rng.gauss(0, 3):.1f}",
    lambda rng: f"2026-01-{rng.randint(10, 28)}",
    lambda rng: rng.choice(["true", "false"]),
]


def columns(seed: int) -> dict[str, list[str]]:
    """Return the texts of the columns of all rows."""
    rng = random.Random(seed)
    found = {}
    for number in range(rng.randint(1, 3)):
        levels = rng.choice(_LEVELS)
        found[f"c{number}"] = [rng.choice(levels) for _ in range(_ROWS)]
        found[f"c{number}"][: len(levels)] = levels
    for number in range(rng.randint(1, 2)):
        kind = rng.choice(_TYPED)
        found[f"x{number}"] = [kind(rng) for _ in range(_ROWS)]
    return found


@cache
def fitted(seed: int) -> tuple[Any, dict[str, list[str]], Any]:
    """Return a model, the rows that it was fitted to, and their probabilities."""
    rows = columns(seed)
    names = list(rows)
    model = make_pipeline(TableEncoder(), PUClassifier(prior=0.5, ratio=LogisticRegression()))
    with tempfile.TemporaryDirectory() as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(made)
        for name, step in (("known", 2), ("all", 1)):
            # The first rows have all levels, so that both samples have columns of the same kinds.
            kept = [*range(6), *range(6, _ROWS, step)]
            write_csv(folder / f"{name}.csv", names, [[rows[n][i] for n in names] for i in kept])
        fit_blocks(model, folder / "known.csv", folder / "all.csv", read_options={"decimal": "."})
        whole = answers(model, folder / "all.csv", folder)
    return model, rows, whole


def answers(model: Any, path: Path, folder: Path) -> Any:
    """Return the probabilities of the rows in a file."""
    out = folder / "answers.parquet"
    predict_blocks(model, path, out, read_options={"decimal": "."}, n_jobs=1)
    return pq.read_table(out)["probability"].to_numpy()


def write_csv(path: Path, names: list[str], rows: list[list[str]]) -> None:
    """Write texts to a CSV file."""
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([names, *rows])


def write_sheet(path: Path, names: list[str], rows: list[list[str]]) -> None:
    """Write texts to a workbook."""
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for place, row in enumerate([names, *rows]):
            for column, text in enumerate(row):
                sheet.write_string(place, column, text)


def write(rng: random.Random, folder: Path) -> None:
    """Write some rows to one or several files."""
    seed = rng.randrange(30)
    rows = columns(seed)
    names = [name for name in rows if name.startswith("c")]
    kept = {name: rng.sample(sorted(set(rows[name])), rng.randint(1, 2)) for name in names}
    places = [i for i in range(_ROWS) if all(rows[n][i] in kept[n] for n in names)][:40]
    places = places or [rng.randrange(_ROWS)]
    end = rng.choice([".csv", ".csv", ".jsonl", ".xlsx", ".parquet"])
    batch = folder / "batch"
    batch.mkdir()
    cuts = sorted({0, len(places), rng.randrange(len(places) + 1)})
    order = [*rows]
    rng.shuffle(order)
    for number, (start, stop) in enumerate(pairwise(cuts)):
        part = [[rows[name][i] for name in order] for i in places[start:stop]]
        path = batch / f"{number}{end}"
        if end == ".csv":
            write_csv(path, order, part)
        elif end == ".xlsx":
            write_sheet(path, order, part)
        elif end == ".jsonl":
            lines = [json.dumps(dict(zip(order, row, strict=True))) for row in part]
            path.write_text("\n".join(lines) + "\n")
        else:
            texts = [list(column) for column in zip(*part, strict=True)]
            pq.write_table(pa.table(texts, order), path)
    (folder / "expected.json").write_text(json.dumps({"seed": seed, "places": places}))


def read(folder: Path) -> str:
    """Compare the probabilities with those of the same rows among all."""
    about = json.loads((folder / "expected.json").read_text())
    model, _, whole = fitted(about["seed"])
    difference = np.abs(answers(model, folder / "batch", folder) - whole[about["places"]]).max()
    return f"probabilities differ by {difference:.2f}" if difference > 1e-9 else ""


BATCHES = Family("batches", write, read)
