"""Accuracy of the estimates on a fixed set of draws.

    python benchmarks/accuracy.py SUITES.py [--peers PEERS.csv] [--methods auto penl1 ...]
    python benchmarks/accuracy.py SUITES.py --peers PEERS.csv --pairs bbe-lr=BBE tice=TIcE

SUITES.py is a Python file with a tuple ``SUITES`` of names and a function ``suite(name)`` that
yields draws: objects with the attributes ``suite``, ``setting``, ``prior`` and ``seed`` and a
method ``make()`` that returns the positive and the unlabeled sample. The script prints mean squared
errors, and the coverage of methods with intervals, and writes a CSV file and a figure. PEERS.csv
contains the estimates of other software in the columns
``suite,setting,prior,seed,method,estimate``. An interrupted run resumes where it stopped.

With ``--pairs OURS=THEIRS``, each of our methods runs on the draws that a method in PEERS.csv has
answered, and the script prints both means, and the mean of their differences with twice its
standard error. The names ``bbe-lr`` and ``dedpul-lr`` stand for logistic regression as the
classifier, ``km1-2000`` and ``km2-2000`` for up to 2,000 rows of each sample.

In a suite named "uniforms", with settings such as "overlap=0.25" and positives that are uniform on
(0, 1), the method "oracle" knows the region that contains only positives. It shows the best
accuracy that can be expected.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from classprior import PenalizedL1Prior
from classprior.estimate import METHODS
from classprior.priors import BestBinPrior, DEDPULPrior, KernelMeanPrior

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from harness import Row, Task, groups, load_module, mean_and_error, run, write_table

Doubles = NDArray[np.float64]
LINEAR = LogisticRegression(max_iter=1000)
ESTIMATORS: dict[str, Any] = {
    **METHODS,
    "penl1-literal": PenalizedL1Prior.literal,
    "bbe-lr": partial(BestBinPrior, classifier=LINEAR),
    "dedpul-lr": partial(DEDPULPrior, classifier=LINEAR),
    "dedpul-lr-all": partial(DEDPULPrior, classifier=LINEAR, monotone="all"),
    "km1-2000": partial(KernelMeanPrior, threshold="km1", max_rows=2000),
    "km2-2000": partial(KernelMeanPrior, threshold="km2", max_rows=2000),
}


def oracle_of_uniforms(setting: str, X_positive: Doubles, X_unlabeled: Doubles) -> float:
    """Estimate from the rows in the region that contains only positives."""
    end = 1.0 - float(setting.removeprefix("overlap="))
    return float(np.mean(X_unlabeled < end) / np.mean(X_positive < end))


ORACLES = {"uniforms": oracle_of_uniforms}


def main() -> None:
    """Run every method on every draw with every random state."""
    parser = argparse.ArgumentParser(description="Mean squared errors on a file of fixed draws.")
    parser.add_argument("suites", type=Path, help="Python file that defines the draws")
    parser.add_argument("--peers", type=Path, help="CSV file of estimates by other software")
    parser.add_argument("--out", type=Path, default=Path("build/accuracy"))
    parser.add_argument("--random-states", type=int, nargs="+", default=[0])
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=[*ESTIMATORS, "oracle"],
        default=[*METHODS, "penl1-literal", "oracle"],
    )
    parser.add_argument("--pairs", nargs="+", default=[], metavar="OURS=THEIRS")
    parser.add_argument("--every", type=int, default=1, help="use one in n draws of each suite")
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    pairs = [(ours, theirs) for ours, _, theirs in (pair.partition("=") for pair in options.pairs)]
    if unknown := {ours for ours, _ in pairs} - set(ESTIMATORS):
        parser.error(f"unknown methods in --pairs: {', '.join(sorted(unknown))}")

    path = options.suites.resolve()
    suites = load_module(str(path))
    peers = _read_peers(options.peers) if options.peers else []
    if pairs:
        _compare(pairs, peers, suites, path, options)
        return
    tasks = [
        _task(draw, index, method, random_state)
        for method in options.methods
        for name in (ORACLES if method == "oracle" else suites.SUITES)
        for index, draw in _part(list(enumerate(suites.suite(name))), options.every)
        for random_state in options.random_states
    ]
    rows = run(
        tasks,
        partial(_estimate, str(path)),
        options.out / "accuracy.jsonl",
        title="Draws",
        jobs=options.jobs,
    )
    write_table(rows, options.out / "accuracy.csv")
    print(_table([*rows, *peers], suites.SUITES))
    print(_coverage(rows, suites.SUITES))
    _draw([*rows, *peers], suites.SUITES, options.out / "accuracy.png")
    print(f"Written to {options.out}")


def _part(draws: Sequence[Any], every: int) -> list[Any]:
    """Return one in ``every`` draws, chosen at random, since their order may follow the prior."""
    chosen = np.random.default_rng(0).permutation(len(draws))[::every]
    return [draws[i] for i in np.sort(chosen)]


def _task(draw: Any, index: int, method: str, random_state: int) -> Task:
    return {
        "suite": draw.suite,
        "index": index,
        "setting": draw.setting,
        "prior": draw.prior,
        "seed": draw.seed,
        "method": method,
        "random_state": random_state,
    }


def _compare(
    pairs: Sequence[tuple[str, str]],
    peers: Sequence[Row],
    suites: Any,
    path: Path,
    options: argparse.Namespace,
) -> None:
    """Run our methods on the draws that their peers have answered, and print the differences."""
    answers = {(row["method"], *_draw_of(row)): row["estimate"] for row in peers}
    tasks = []
    for ours, theirs in pairs:
        for name in suites.SUITES:
            draws = [
                _task(draw, index, ours, options.random_states[0])
                for index, draw in enumerate(suites.suite(name))
            ]
            answered = [t for t in draws if (theirs, *_draw_of(t)) in answers]
            tasks += _part(answered, options.every)
    journal = options.out / "accuracy.jsonl"
    rows = run(tasks, partial(_estimate, str(path)), journal, title="Draws", jobs=options.jobs)
    print("| ours | theirs | suite | draws | truth | theirs | ours | ours - theirs | 2 s.e. | |")
    print("|---" * 10 + "|")
    for ours, theirs in pairs:
        for (suite,), part in groups([row for row in rows if row["method"] == ours], "suite"):
            estimates = [row["estimate"] for row in part]
            others = [answers[(theirs, *_draw_of(row))] for row in part]
            difference, error = mean_and_error(np.subtract(estimates, others))
            means = (np.mean(v) for v in ([row["prior"] for row in part], others, estimates))
            print(
                f"| {ours} | {theirs} | {suite} | {len(part)} | "
                + " | ".join(f"{mean:.3f}" for mean in means)
                + f" | {difference:+.3f} | {2.0 * error:.3f} "
                + f"| {'' if abs(difference) <= 2.0 * error else 'differs'} |"
            )


def _draw_of(row: Row) -> tuple[Any, ...]:
    return row["suite"], row["setting"], float(row["prior"]), int(row["seed"])


def _estimate(path: str, task: Task) -> Row:
    draws = load_module(path).suite(task["suite"])
    samples = next(draw for i, draw in enumerate(draws) if i == task["index"]).make()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # raw estimates outside [0, 1], few rows
        if task["method"] == "oracle":
            return {"estimate": min(1.0, ORACLES[task["suite"]](task["setting"], *samples))}
        estimator = ESTIMATORS[task["method"]](random_state=task["random_state"])
        estimator.fit_samples(*samples)
    seconds = time.perf_counter() - start
    limits = {
        name: float(getattr(estimator, f"{name}_"))
        for name in ("low", "high", "low_sample", "high_sample", "upper_bound")
        if hasattr(estimator, f"{name}_")
    }
    return {"estimate": float(estimator.prior_), **limits, "seconds": round(seconds, 3)}


def _read_peers(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [
            {
                **row,
                "prior": float(row["prior"]),
                "estimate": min(1.0, max(0.0, float(row["estimate"]))),
            }
            for row in csv.DictReader(file)
            if row["estimate"] not in ("", "nan")
        ]


def _errors(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return mean squared errors by method and suite."""
    errors: dict[str, dict[str, float]] = {}
    for (method, suite), part in groups(rows, "method", "suite"):
        squares = [(row["estimate"] - row["prior"]) ** 2 for row in part]
        errors.setdefault(method, {})[suite] = float(np.mean(squares))
    return errors


def _table(rows: Sequence[Row], suites: Sequence[str]) -> str:
    errors = _errors(rows)
    lines = [
        "| mean squared error | " + " | ".join(suites) + " | mean |",
        "|---" * (len(suites) + 2) + "|",
    ]
    complete = {
        m: np.mean([e[s] for s in suites]) for m, e in errors.items() if len(e) == len(suites)
    }
    for method in sorted(errors, key=lambda m: complete.get(m, np.inf)):
        cells = [f"{errors[method][s]:.4f}" if s in errors[method] else "" for s in suites]
        mean = f"{complete[method]:.4f}" if method in complete else ""
        lines.append(f"| {method} | " + " | ".join([*cells, mean]) + " |")
    return "\n".join(lines) + "\n"


def _coverage(rows: Sequence[Row], suites: Sequence[str]) -> str:
    """Return how often the share of the rows lies outside the interval or above the bound."""
    lines = []
    for (method,), part in groups([row for row in rows if "low_sample" in row], "method"):
        lines += [
            f"| {method}, 95% | " + " | ".join(suites) + " |",
            "|---" * (len(suites) + 1) + "|",
        ]
        checks = {
            "truth below the interval": [r["prior"] < r["low_sample"] for r in part],
            "truth above the interval": [r["prior"] > r["high_sample"] for r in part],
            "mean width": [r["high_sample"] - r["low_sample"] for r in part],
        }
        if all("upper_bound" in row for row in part):
            checks["truth above the certified bound"] = [
                r["prior"] > r["upper_bound"] for r in part
            ]
        of_suite = np.array([r["suite"] for r in part])
        for name, values in checks.items():
            cells = [f"{np.mean(np.array(values)[of_suite == s]):.2f}" for s in suites]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _draw(rows: Sequence[Row], suites: Sequence[str], path: Path) -> None:
    errors = _errors(rows)
    ours = {row["method"] for row in rows if "random_state" in row}
    order = sorted(errors, key=lambda m: np.mean(list(errors[m].values())))
    figure, axes = plt.subplots(
        1,
        len(suites),
        figsize=(2.2 * len(suites), 1.0 + 0.28 * len(order)),
        sharey=True,
        layout="constrained",
    )
    for ax, suite in zip(np.atleast_1d(axes), suites, strict=True):
        for y, method in enumerate(reversed(order)):
            if suite in errors[method]:
                color = "#D55E00" if method in ours else "#666666"
                ax.plot(np.sqrt(errors[method][suite]), y, "o", color=color)
        ax.set(title=suite, xlabel="root mean squared error", xlim=(0, None))
        ax.set_yticks(range(len(order)), order[::-1])
        ax.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
