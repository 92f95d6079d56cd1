"""How close the estimates come to the truth, on a file of fixed draws.

    python benchmarks/accuracy.py SUITES.py [--out estimates.csv] [--random-states 0 1 2]

SUITES.py is a Python file with a tuple ``SUITES`` of names and a function ``suite(name)`` that
yields draws: objects with ``suite``, ``setting``, ``prior``, ``seed`` and ``make()``, which gives
the positive and the unlabeled sample. Writes one row per draw, method and random state, and
prints the mean squared errors.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.progress import track

from classprior import (
    divergence_prior,
    elkan_noto_prior,
    pearson_prior,
    penalized_l1,
    scott_blanchard_prior,
)

METHODS: dict[str, Callable[..., Any]] = {
    "penl1": penalized_l1,
    "penl1-literal": partial(penalized_l1, leave_one_out=False),
    "l1": partial(divergence_prior, penalized=False),
    "kl": partial(divergence_prior, divergence="kl", penalized=False),
    "pen-kl": partial(divergence_prior, divergence="kl"),
    "pearson": partial(divergence_prior, divergence="pearson", penalized=False),
    "pen-pearson": partial(divergence_prior, divergence="pearson"),
    "en": elkan_noto_prior,
    "pe": pearson_prior,
    "sb": scott_blanchard_prior,
}


def main() -> None:
    """Run every method with every random state on every draw."""
    parser = argparse.ArgumentParser(description="Mean squared errors on a file of fixed draws.")
    parser.add_argument("suites", type=Path, help="Python file that defines the draws")
    parser.add_argument("--out", type=Path, default=Path("build/accuracy.csv"))
    parser.add_argument("--random-states", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=["penl1", "en", "pe", "sb"]
    )
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()

    path = options.suites.resolve()
    suites = _load(path)
    tasks = [(name, i) for name in suites.SUITES for i, _ in enumerate(suites.suite(name))]
    parallel = Parallel(n_jobs=options.jobs, return_as="generator")
    parts = parallel(
        delayed(_estimate)(path, *task, options.methods, options.random_states) for task in tasks
    )
    rows = [row for part in track(parts, "Draws", len(tasks)) for row in part]

    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} estimates written to {options.out}\n")
    _print_table(rows, suites.SUITES)


def _load(path: Path) -> Any:
    sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


def _estimate(
    path: Path, suite: str, index: int, methods: list[str], random_states: list[int]
) -> list[dict[str, Any]]:
    draw = next(d for i, d in enumerate(_load(path).suite(suite)) if i == index)
    samples = draw.make()
    rows = []
    for method in methods:
        estimate = METHODS[method]
        for random_state in random_states:
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # raw estimates outside [0, 1]
                prior = estimate(*samples, random_state=random_state).prior
            rows.append(
                {
                    "suite": draw.suite,
                    "setting": draw.setting,
                    "prior": draw.prior,
                    "seed": draw.seed,
                    "method": method,
                    "random_state": random_state,
                    "estimate": f"{prior:.6f}",
                    "seconds": f"{time.perf_counter() - start:.4f}",
                }
            )
    return rows


def _print_table(rows: list[dict[str, Any]], suites: tuple[str, ...]) -> None:
    print("| mean squared error | " + " | ".join(suites) + " | mean |")
    print("|---" * (len(suites) + 2) + "|")
    for method in dict.fromkeys(row["method"] for row in rows):
        errors = [
            np.mean(
                [
                    (float(row["estimate"]) - row["prior"]) ** 2
                    for row in rows
                    if (row["method"], row["suite"]) == (method, suite)
                ]
            )
            for suite in suites
        ]
        cells = [f"{error:.4f}" for error in (*errors, np.mean(errors))]
        print(f"| {method} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
