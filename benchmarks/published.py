"""Draws of a published study, beside the answers that its authors published.

    python benchmarks/published.py [--data FOLDER | --openml] [--iterations 2] [--shares 0.1 0.3]
        [--write]

The study and its draws are described in published_draws.py; published_answers.csv has what six
programs answered on them, from the tables of the same paper. PULSNAR's parameters were chosen for
each table by its authors. `auto` and `subtypes` run with their defaults, as a user calls them.

Tables are Parquet files in the folders tabular and published of --data (or $CLASSPRIOR_DATA), with
the labels in a column target, or come from OpenML (--openml), which has three of the five by a name
we know. A table whose rows have another order than the study's is left out: its draws would differ.

Results are in build/published. With --write, the tables go to docs/explanation/published.md with
the verdicts of docs/reproduction.md, a sentence to README, and the figures of all draws to
benchmarks/published.csv. An interrupted run resumes where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np

from classprior import estimate_prior

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from benchmark_report import cell, label, standard_error
from freshness import record
from harness import Row, Task, code_version, groups, replace_between, run, write_table
from published_draws import SUITES, readable

ROOT = Path(__file__).parents[1]
SCRIPT = "benchmarks/published.py"
ANSWERS, FIGURES = ROOT / "benchmarks/published_answers.csv", ROOT / "benchmarks/published.csv"
PAGE, README = ROOT / "docs/explanation/published.md", ROOT / "README.md"
REPRODUCTION = ROOT / "docs/reproduction.md"
OURS = ("auto", "subtypes")
ITERATIONS = 2
TEXTS = ("suite", "method", "meaning")  # columns that are not numbers


def answers() -> dict[tuple[str, float, int], dict[str, float]]:
    """Return the published answers by suite, share and iteration."""
    with ANSWERS.open(newline="", encoding="utf-8") as file:
        return {
            (row.pop("suite"), float(row.pop("share")), int(row.pop("iteration"))): {
                method: float(answer) for method, answer in row.items() if answer
            }
            for row in csv.DictReader(file)
        }


# Draws --------------------------------------------------------------------------------------------


def tasks_of(suites: Sequence[str], shares: Sequence[float] | None, iterations: int) -> list[Task]:
    """Return the settings of all fits, for draws that have published answers."""
    return [
        {
            "suite": suite,
            "share": share,
            "iteration": iteration,
            "method": method,
            "version": code_version(),
        }
        for suite, share, iteration in answers()
        if suite in suites and iteration < iterations and (not shares or share in shares)
        for method in OURS
    ]


def estimate(folder: Path | None, task: Task) -> Row:
    """Return the answer of one method on one draw."""
    suite = SUITES[task["suite"]]
    X_positive, X_unlabeled, truth = suite.draw(folder, task["share"], task["iteration"])
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # counted below
        found = estimate_prior(
            X_positive,
            X_unlabeled,
            method=task["method"],
            random_state=task["iteration"],
            n_jobs=1,
        )
    return {
        "seconds": time.process_time() - start,
        "truth": truth,
        "estimate": found.prior,
        "low": found.low_count / found.n_unlabeled,
        "high": found.high_count / found.n_unlabeled,
        "bound": found.upper_bound,
        "meaning": str(found.meaning),
        "warned": len(found.warnings),
    }


# Tables -------------------------------------------------------------------------------------------


def errors_of(rows: Sequence[Row]) -> list[Row]:
    """Return the absolute error of each answer, ours and published, on the draws that we ran."""
    known = answers()
    found = [{**row, "error": abs(row["estimate"] - row["truth"])} for row in rows]
    draws = {(row["suite"], row["share"], row["iteration"]): row["truth"] for row in rows}
    for (suite, share, iteration), truth in draws.items():
        for method, answer in known[suite, share, iteration].items():
            setting = {"suite": suite, "share": share, "iteration": iteration}
            found.append({**setting, "method": method, "error": abs(answer - truth)})
    return found


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each suite and method, with its difference to our better method."""
    found = []
    for (suite,), of_suite in groups(errors_of(rows), "suite"):
        by_method = {method: part for (method,), part in groups(of_suite, "method")}
        ours = [method for method in OURS if method in by_method]
        best = min(ours, key=lambda method: np.mean([r["error"] for r in by_method[method]]))
        reference = {(r["share"], r["iteration"]): r["error"] for r in by_method[best]}
        for method, part in by_method.items():
            shares = [r["share"] for r in part]
            errors = np.array([r["error"] for r in part])
            more = errors - [reference[r["share"], r["iteration"]] for r in part]
            row: Row = {"suite": suite, "method": method, "draws": len(part), "best": best}
            row |= {"error": float(errors.mean()), "standard_error": standard_error(errors, shares)}
            row |= {"more": float(more.mean()), "more_error": standard_error(more, shares)}
            if method in OURS:
                row |= reliability(part)
            found.append(row)
    return found


def reliability(rows: Sequence[Row]) -> Row:
    """Return how often interval and bound held, how often we warned, and the time."""
    tiny = 1e-9  # counts divided by rows
    truth, low, high, bound = (
        np.array([row[name] for row in rows]) for name in ("truth", "low", "high", "bound")
    )
    return {
        "covered": float(np.mean((low <= truth + tiny) & (truth <= high + tiny))),
        "width": float(np.mean(high - low)),
        "bound_failed": float(np.mean(bound < truth - tiny)),
        "warned": float(np.mean([row["meaning"] not in ("about", "range") for row in rows])),
        "seconds": float(np.mean([row["seconds"] for row in rows])),
    }


def error_table(summary: Sequence[Row]) -> str:
    """Return the mean absolute errors, suites down and methods across."""
    published = [row["method"] for row in summary if row["method"] not in OURS]
    methods = [*OURS, *dict.fromkeys(published)]
    lines = [f"| suite | draws | {' | '.join(map(name_of, methods))} |"]
    lines.append("|---" + "|---:" * (1 + len(methods)) + "|")
    for (suite,), part in groups(summary, "suite"):
        by_method = {row["method"]: row for row in part}
        smallest = min(row["error"] for row in part)
        cells = [f"*{title(suite)}*", str(max(row["draws"] for row in part))]
        for method in methods:
            row = by_method.get(method, {})
            text = f"{row['error']:.3f}" if row else ""
            cells.append(f"**{text}**" if row and row["error"] == smallest else text)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def reliability_table(summary: Sequence[Row]) -> str:
    """Return how often our intervals and bounds held, and how often we warned."""
    columns = "error", "interval covers", "its width", "bound failed", "warned", "seconds"
    lines = [
        f"| suite | method | {' | '.join(columns)} |",
        "|---|---" + "|---:" * len(columns) + "|",
    ]
    for row in summary:
        if row["method"] in OURS:
            lines.append(
                f"| *{title(row['suite'])}* | {name_of(row['method'])} | {cell(row, 'error')} | "
                f"{row['covered']:.0%} | {row['width']:.3f} | {row['bound_failed']:.0%} | "
                f"{row['warned']:.0%} | {row['seconds']:.1f} |"
            )
    return "\n".join(lines) + "\n"


def name_of(method: str) -> str:
    """Return a method in Markdown; those of others as they are written."""
    return label(method) if method in OURS else method


def title(suite: str) -> str:
    """Return a suite's name as text."""
    kind, name = suite.split("_", 1)
    return f"{name.replace('_', ' ')}, {'biased' if kind == 'snar' else 'unbiased'} labels"


def findings(summary: Sequence[Row]) -> Iterator[str]:
    """Say for each suite whether a published answer is better than ours."""
    for (suite,), part in groups(summary, "suite"):
        best = min(part, key=lambda row: row["error"])
        ours = next(row for row in part if row["method"] == best["best"])
        where = f"On *{title(suite)}*, "
        if best["method"] in OURS:
            others = [row for row in part if row["method"] not in OURS]
            second = min(others, key=lambda row: row["error"])
            gap = -second["more"], second["more_error"]
            yield (
                f"{where}{name_of(best['method'])} has the smallest error, {best['error']:.3f}; "
                f"the best published answers are those of {second['method']}, "
                f"{second['error']:.3f}{'' if is_sure(*gap) else ', which may be chance'}."
            )
        else:
            sure = is_sure(best["more"], best["more_error"])
            yield (
                f"{where}**we lose** to {best['method']}: {best['error']:.3f} against "
                f"{ours['error']:.3f} of {name_of(ours['method'])}"
                f"{'' if sure else ', which may be chance'}."
            )


def is_sure(difference: float, error: float) -> bool:
    """Return whether a difference is below zero by two standard errors."""
    return bool(difference < -2.0 * error)


def overall(summary: Sequence[Row]) -> dict[str, float]:
    """Return the mean error over suites of each method that answered in all of them."""
    n_suites = len({row["suite"] for row in summary})
    by_method = {method: part for (method,), part in groups(summary, "method")}
    return {
        method: float(np.mean([row["error"] for row in part]))
        for method, part in by_method.items()
        if len(part) == n_suites
    }


def sentence(summary: Sequence[Row]) -> str:
    """Return one line for README."""
    means, suites = overall(summary), {row["suite"] for row in summary}
    best = min((method for method in means if method not in OURS), key=means.__getitem__)
    draws = sum(row["draws"] for row in summary if row["method"] == OURS[0])
    lost = [line for line in findings(summary) if "**we lose**" in line]
    return (
        f"On {len(suites)} suites of a published study (Kumar and Lambert, 2024; {draws} draws), "
        f"the mean absolute error is {means['auto']:.3f} for `auto`, {means['subtypes']:.3f} for "
        f"`subtypes` and {means[best]:.3f} for the best published program that answered on all "
        f"({best}); on {len(lost)} of {len(suites)}, a published answer beats our better method."
    )


def verdicts() -> str:
    """Return the claims of the paper and what our reproduction says about each."""
    text = REPRODUCTION.read_text(encoding="utf-8")
    lines = ["| experiment | claim | verdict |", "|---|---|---|"]
    for heading in ("Overlapping uniforms", "MNIST, one digit against the rest"):
        section = re.split(r"^## ", text.split(f"## {heading}\n")[1], flags=re.M)[0]
        claims = section.split("| claim | verdict | evidence | figure |")[1].split("\n\n")[0]
        for claim, verdict in re.findall(r"^\| ([^|]+) \| ([^|]+) \|", claims, re.M):
            lines.append(f"| {heading} | {claim} | {verdict} |")
    return "\n".join(lines) + "\n"


def results(rows: Sequence[Row]) -> str:
    """Return the tables and what they show."""
    summary = summarize(rows)
    lines = "\n".join(f"- {line}" for line in findings(summary))
    return f"{error_table(summary)}\n{lines}\n\n{reliability_table(summary)}"


def facts_of(rows: Sequence[Row], command: str) -> str:
    """Return what was run and when."""
    draws = len({(row["suite"], row["share"], row["iteration"]) for row in rows})
    minutes = sum(row["seconds"] for row in rows) / 60.0
    return (
        f"{draws} draws, {minutes:.0f} minutes of processor time, on {date.today():%Y-%m-%d}: "
        f"`{command}`."
    )


def write(rows: Sequence[Row], command: str) -> None:
    """Put the figures, the tables and the sentence into the repository."""
    write_table(rows, FIGURES)
    rows = read(FIGURES)
    replace_between(PAGE, SCRIPT, f"\n{facts_of(rows, command)}\n\n{results(rows)}")
    replace_between(PAGE, f"{SCRIPT}, verdicts", f"\n{verdicts()}")
    replace_between(README, SCRIPT, sentence(summarize(rows)))


def read(path: Path) -> list[Row]:
    """Read rows that were written by write_table."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {k: v if k in TEXTS else float(v) for k, v in row.items() if k != "version"}
            for row in csv.DictReader(file)
        ]


def main() -> None:
    """Run our methods on the draws of the study."""
    parser = argparse.ArgumentParser(description="Published draws, beside the published answers.")
    add = parser.add_argument
    add("--data", type=Path, metavar="FOLDER", help="tables; default: $CLASSPRIOR_DATA")
    add("--openml", action="store_true", help="download the tables that OpenML has")
    add("--suites", nargs="+", choices=SUITES, default=list(SUITES), metavar="SUITE")
    add("--shares", nargs="+", type=float, help="default: all published ones, 0.01 to 0.6")
    add("--iterations", type=int, default=ITERATIONS, help="draws for each share, at most 10")
    add("--out", type=Path, default=Path("build/published"), help="default: build/published")
    add("--jobs", type=int, default=-1, help="number of processes; default: one for each core")
    add("--write", action="store_true", help="write the tables to README and documentation")
    options = parser.parse_args()
    folder = None if options.openml else options.data or default_folder()
    if folder is None and not options.openml:
        parser.error("pass --data FOLDER, set CLASSPRIOR_DATA, or download tables with --openml")
    suites = []
    for name, reason in readable(folder, options.suites):
        if reason:
            print(f"Skipped {name}: {reason}.")
        else:
            suites.append(name)
    if not suites:
        parser.error("none of the tables can be read")
    rows = run(
        tasks_of(suites, options.shares, options.iterations),
        partial(estimate, folder),
        options.out / "published.jsonl",
        title="Fits",
        jobs=options.jobs,
    )
    command = shlex.join(["python", SCRIPT, *given(sys.argv[1:])])
    text = f"{facts_of(rows, command)}\n\n{results(rows)}"
    write_table(rows, options.out / "published.csv")
    (options.out / "RESULTS.md").write_text(text, encoding="utf-8")
    print(text)
    print(f"Written to {options.out}")
    if options.write:
        if set(suites) != set(SUITES):
            parser.error("--write needs all suites")
        write(rows, command)
        record(SCRIPT)


def default_folder() -> Path | None:
    """Return the folder of tables that the environment names, or the usual one if it exists."""
    folder = Path(os.environ.get("CLASSPRIOR_DATA", "../shared/data"))
    return folder if folder.is_dir() else None


def given(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of the command without a folder of this machine."""
    text = list(arguments)
    if "--data" in text:
        text[text.index("--data") + 1] = "FOLDER"
    return text


if __name__ == "__main__":
    main()
