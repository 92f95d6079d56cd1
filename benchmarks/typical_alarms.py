"""How often the test of typical positives raises a false alarm.

    python benchmarks/typical_alarms.py [--tables FOLDER] [--draws 2] [--jobs 1] [--write]

Labels are drawn at random, so known positives are typical of all positives. The suites are those of
the public benchmark, with three sizes of the samples and three shares; tables with fewer than half
of the rows needed are left out of a size. The script prints the number of draws in which p < 0.01
for each suite and size. Draws of one table share most of their rows, so tables count, not draws.
An interrupted run resumes where it stopped. With ``--write``, the table goes to
docs/guides/biased_labels.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from classprior import AutoPrior
from classprior.sensitivity import label_bias_test

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from benchmark_suites import Suite, suites_of
from freshness import record
from harness import Row, Task, replace_between, run, seed

SIZES = ((200, 1000), (1000, 5000), (4000, 20000))
SHARES = (0.05, 0.2, 0.5)
POOL = 24_000
LEVEL = 0.01
OUT = Path("build/alarms")
SCRIPT = "benchmarks/typical_alarms.py"
PAGE = Path(__file__).parents[1] / "docs/guides/biased_labels.md"


def p_value(suite: Suite, name: str, size: tuple[int, int], share: float, number: int) -> Row:
    """Return the p-value of one draw, and the numbers of rows that it has."""
    of_size = suite._replace(sizes=size)
    positive, unlabeled, _ = of_size.draw(f"{name}, {size[0]}", share, number, pool=POOL)
    if len(positive) < size[0] / 2:
        return {"p_value": float("nan"), "n_positive": len(positive), "n_unlabeled": len(unlabeled)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quick = AutoPrior(n_resamples=20)  # the test does not depend on resamples
        found = label_bias_test(positive, unlabeled, evidence=quick, random_state=seed(n=number))
    sizes = {"n_positive": len(positive), "n_unlabeled": len(unlabeled)}
    return {"p_value": found.p_value, **sizes}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = os.environ.get("CLASSPRIOR_TABLES")
    parser.add_argument("--tables", type=Path, default=folder and Path(folder))
    parser.add_argument("--draws", type=int, default=2, help="draws for each size and share")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write the table to the guide")
    options = parser.parse_args()
    suites = suites_of(options.tables, [])
    tasks: list[Task] = [
        {"suite": name, "size": size, "share": share, "draw": number}
        for size in SIZES
        for name in suites
        for share in SHARES
        for number in range(options.draws)
    ]

    def work(task: Task) -> Row:
        name = task["suite"]
        return p_value(suites[name], name, task["size"], task["share"], task["draw"])

    rows = run(tasks, work, OUT / "alarms.jsonl", title="Draws", jobs=options.jobs)
    rows = [row for row in rows if np.isfinite(row["p_value"])]
    table = "\n".join(lines_of(rows, [*suites, "all"]))
    print(table)
    if options.write:
        replace_between(PAGE, SCRIPT, f"\n{table}\n")
        record(SCRIPT)


def lines_of(rows: list[Row], names: list[str]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield " ".join(["| suite |", *(f"{n:,} + {m:,} |" for n, m in SIZES), "in all |"])
    yield "|---|" + "---:|" * (len(SIZES) + 1)
    for name in names:
        of_suite = [row for row in rows if name in (row["suite"], "all")]
        cells = [[row for row in of_suite if tuple(row["size"]) == size] for size in SIZES]
        if of_suite:
            yield " ".join([f"| {name} |", *(f"{alarms(cell)} |" for cell in [*cells, of_suite])])


def alarms(rows: list[Row]) -> str:
    """Return the number of false alarms and of draws."""
    return f"{sum(row['p_value'] < LEVEL for row in rows)} of {len(rows)}" if rows else ""


if __name__ == "__main__":
    main()
