"""The public benchmark: every method, and other packages, on data that anyone can get.

    python benchmarks/benchmark.py [--methods auto penl1 ...] [--seeds 3] [--all]
    python benchmarks/benchmark.py --tables FOLDER --openml phoneme spambase

Suites: scikit-learn's bundled data, and distributions from which rows are drawn afresh. With
``--tables`` (or the environment variable CLASSPRIOR_TABLES), each Parquet file in a folder is one
more suite: its column ``target`` has the labels, and the second most frequent label, which is the
rarer one of two, is positive. With ``--openml``, tables are downloaded by name and kept by
scikit-learn. Columns are standardized for all methods alike, and each method has its default
parameters.

The packages pulearn and pu-toolbox take part as they ship, where they are installed. The scores of
``bbe`` and ``dedpul`` are those of the default method, the mean of several classifiers;
``bbe-lr`` and ``dedpul-lr`` use logistic regression alone. Slow methods take part if they are named
or with ``--all``. The default method has an interval and a bound, ``subtypes``, ``penl1`` and
``pe`` an interval; ``--intervals METHOD ...`` adds those of others, which need 40 refits. The time
is that of the estimate, for the default method that of the interval, too.

Results are in build/benchmark: RESULTS.md with a table for each suite, CSV files and a picture.
With ``--write``, the table over all suites goes to docs/explanation/accuracy.md, a shorter one to
README, the picture to docs/images and the figures of all suites to benchmarks/benchmark.csv. An
interrupted run resumes where it stopped; after a change of the library, its methods run again.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, estimate_prior
from classprior.estimate import METHODS
from classprior.priors import BestBinPrior, DEDPULPrior

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from benchmark_report import (
    DEFAULT,
    details,
    draw_picture,
    label,
    listed,
    read_summary,
    results,
    short,
    summarize,
)
from benchmark_suites import Suite, suites_of
from freshness import record
from harness import Row, Task, code_version, replace_between, run, write_table

Doubles = NDArray[np.float64]
SEEDS = 3  # draws for each share of each suite
ROOT = Path(__file__).parents[1]
SCRIPT = "benchmarks/benchmark.py"
SUMMARY = ROOT / "benchmarks/benchmark.csv"
PAGE, README = ROOT / "docs/explanation/accuracy.md", ROOT / "README.md"
PICTURE = ROOT / "docs/images/benchmark.png"
LINEAR = LogisticRegression(max_iter=1000)
#: Our methods, by their short names, and two of them with one classifier instead of several.
OURS: dict[str, Any] = {
    **METHODS,
    "bbe-lr": partial(BestBinPrior, classifier=LINEAR),
    "dedpul-lr": partial(DEDPULPrior, classifier=LINEAR),
}


# Methods ------------------------------------------------------------------------------------------

#: Methods whose intervals need no refits.
QUICK_INTERVALS = (DEFAULT, "subtypes", "penl1", "pe")
SLOW = ("kl", "pen-kl")


class Peer(NamedTuple):
    """An estimator of another package, with that package's default parameters."""

    package: str
    module: str
    name: str
    is_pooled: bool = False  # whether its share is that in both samples together

    def missing(self) -> str:
        """Return why it cannot be used; empty if it can."""
        try:
            getattr(import_module(self.module), self.name)
        except ImportError as error:
            return f"{self.package} is not installed ({error})."
        except AttributeError:
            return f"{self.package} {metadata.version(self.package)} has no {self.name}."
        return ""

    def estimate(self, X_positive: Doubles, X_unlabeled: Doubles) -> float:
        """Return its estimate of the share in the unlabeled sample."""
        n, m = len(X_positive), len(X_unlabeled)
        y = np.repeat([1, 0], [n, m])
        estimator = getattr(import_module(self.module), self.name)()
        found = estimator.fit(np.vstack([X_positive, X_unlabeled]), y).estimate()
        if self.is_pooled:
            found = (found.pi * (n + m) - n) / m
        return float(np.clip(found, 0.0, 1.0))


PEERS = {
    "pulearn histogram": Peer(
        "pulearn", "pulearn.priors", "HistogramMatchPriorEstimator", is_pooled=True
    ),
    "pulearn EM": Peer("pulearn", "pulearn.priors", "ScarEMPriorEstimator", is_pooled=True),
    "pu-toolbox penL1": Peer("pu-toolbox", "pu_toolbox.prior", "ClassPriorEstimator"),
    "pu-toolbox KM1": Peer("pu-toolbox", "pu_toolbox.prior", "KernelMeanPriorEstimator"),
    "pu-toolbox ReCPE": Peer("pu-toolbox", "pu_toolbox.prior", "ReCPEEstimator"),
}


def version_of(method: str) -> str:
    """Return the version of another package, or a digest of our own code."""
    if method in PEERS:
        return metadata.version(PEERS[method].package)
    return code_version()


def methods_of(names: Sequence[str] | None, everything: bool) -> list[str]:
    """Return the methods to run; say which packages are missing."""
    wanted = names or [name for name in (*OURS, *PEERS) if everything or name not in SLOW]
    reasons = {name: PEERS[name].missing() for name in wanted if name in PEERS}
    for name, reason in reasons.items():
        if reason:
            print(f"Skipped {name}: {reason}")
    return [name for name in wanted if not reasons.get(name)]


def tasks_of(
    suites: Mapping[str, Suite],
    methods: Sequence[str],
    n_seeds: int,
    intervals: Sequence[str],
) -> list[Task]:
    """Return the settings of all fits."""
    return [
        {
            "suite": name,
            "prior": prior,
            "seed": number,
            "method": method,
            "interval": method in (*QUICK_INTERVALS, *intervals),
            "version": version_of(method),
            **({"source": suite.source} if suite.source else {}),
        }
        for method in methods
        for name, suite in suites.items()
        for number in range(n_seeds)
        for prior in suite.shares
    ]


def estimate(suites: Mapping[str, Suite], task: Task) -> Row:
    """Run one method on one draw; a method that fails gives a reason instead of an estimate."""
    name, method = task["suite"], task["method"]
    X_positive, X_unlabeled, truth = suites[name].draw(name, task["prior"], task["seed"])
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few rows, raw estimates outside [0, 1]
            found = answer(method, X_positive, X_unlabeled, task["seed"], task["interval"])
    except Exception as error:  # other packages may raise anything
        found = {"reason": f"{type(error).__name__}: {error}"}
    return {"seconds": time.process_time() - start, "truth": truth, **found}


def answer(
    method: str, X_positive: Doubles, X_unlabeled: Doubles, random_state: int, interval: bool
) -> Row:
    """Return the estimate, its time and, if asked, the interval for the share of these rows."""
    start, n_unlabeled = time.process_time(), len(X_unlabeled)
    if method in PEERS:
        return {"estimate": PEERS[method].estimate(X_positive, X_unlabeled)}
    if method == DEFAULT:  # as a user calls it, with the interval and the bound
        found = estimate_prior(X_positive, X_unlabeled, random_state=random_state, n_jobs=1)
        low, high = found.low_count / n_unlabeled, found.high_count / n_unlabeled
        return {"estimate": found.prior, "low": low, "high": high, "bound": found.upper_bound}
    estimator = OURS[method](random_state=random_state).fit_samples(X_positive, X_unlabeled)
    row = {"estimate": float(estimator.prior_), "seconds": time.process_time() - start}
    if interval and hasattr(estimator, "low_sample_"):
        row |= {"low": estimator.low_sample_, "high": estimator.high_sample_}
    elif interval:
        found = estimate_prior(
            X_positive,
            X_unlabeled,
            method=method,
            scale=False,  # as in the fit above
            random_state=random_state,
            n_jobs=1,
            evidence=AutoPrior(classifiers={"linear": LINEAR}, n_repeats=1),  # quick, not used
        )
        row |= {"low": found.low_count / n_unlabeled, "high": found.high_count / n_unlabeled}
    return row


# Results ------------------------------------------------------------------------------------------


def facts_of(rows: Sequence[Row], command: str) -> str:
    """Return what was run, with what and when."""
    of_peers = [row for row in rows if row["method"] in PEERS]
    versions = {PEERS[row["method"]].package: row["version"] for row in of_peers}
    others = [f"{package} {version}" for package, version in sorted(versions.items())]
    draws = len({(row["suite"], row["prior"], row["seed"]) for row in rows})
    minutes = sum(row["seconds"] for row in rows) / 60.0
    left_out = sorted({*SLOW} - {row["method"] for row in rows})
    return (
        f"{draws} draws, {minutes:.0f} minutes of processor time without refits"
        + (f", with {listed(others)}" if others else "")
        + f", on {date.today():%Y-%m-%d}: `{command}`."
        + (f" Slow methods are left out: {listed([*map(label, left_out)])}." if left_out else "")
    )


def write(rows: Sequence[Row], command: str) -> None:
    """Put the summary, the table and the picture into the repository."""
    write_table(summarize(rows), SUMMARY)
    summary = read_summary(SUMMARY)
    replace_between(PAGE, SCRIPT, f"\n{facts_of(rows, command)}\n\n{results(summary)}")
    replace_between(README, SCRIPT, f"\n{short(summary)}\n")
    draw_picture(summary, PICTURE)


def at_least_one(text: str) -> int:
    """Return a positive integer of the command line."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {number}")
    return number


def main() -> None:
    """Run the methods on all draws."""
    parser = argparse.ArgumentParser(description="All methods and other packages, on public data.")
    add = parser.add_argument
    add("--methods", nargs="+", metavar="METHOD", help="default: all but slow ones")
    add("--all", action="store_true", help="slow methods as well")
    add("--suites", nargs="+", metavar="SUITE", help="default: all")
    add("--tables", type=Path, metavar="FOLDER", help="Parquet files; default: CLASSPRIOR_TABLES")
    add("--openml", nargs="+", default=[], metavar="NAME", help="tables to download")
    add("--seeds", type=at_least_one, default=SEEDS, help=f"draws for each share (default {SEEDS})")
    add("--intervals", nargs="+", default=[], metavar="METHOD", help="those that need refits; slow")
    add("--out", type=Path, default=Path("build/benchmark"), help="default: build/benchmark")
    add("--jobs", type=at_least_one, help="number of processes; default: one for each core")
    add("--write", action="store_true", help="write the tables to README and documentation")
    options = parser.parse_args()
    if options.methods and options.all:
        parser.error("use either --methods or --all")
    check_names(parser, "method", [*(options.methods or ()), *options.intervals], [*OURS, *PEERS])

    folder = options.tables or os.environ.get("CLASSPRIOR_TABLES")
    suites = suites_of(Path(folder) if folder else None, options.openml)
    check_names(parser, "suite", options.suites or (), list(suites))
    suites = {name: suites[name] for name in options.suites or suites}
    methods = methods_of(options.methods, options.all)
    if not methods:
        parser.error("none of the methods can be run")
    rows = run(
        tasks_of(suites, methods, options.seeds, options.intervals),
        partial(estimate, suites),
        options.out / "benchmark.jsonl",
        title="Fits",
        jobs=options.jobs or -1,
    )
    summary, command = summarize(rows), shlex.join(["python", SCRIPT, *sys.argv[1:]])
    write_table(rows, options.out / "rows.csv")
    write_table(summary, options.out / "summary.csv")
    text = f"{facts_of(rows, command)}\n\n{details(summary)}"
    (options.out / "RESULTS.md").write_text(text, encoding="utf-8")
    draw_picture(summary, options.out / "benchmark.png")
    print(results(summary))
    print(f"Written to {options.out}")
    if options.write:
        write(rows, command)
        record(SCRIPT)


def check_names(
    parser: argparse.ArgumentParser, kind: str, names: Sequence[str], known: Sequence[str]
) -> None:
    """Stop with an error if a name is unknown."""
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no {kind} {unknown[0]!r}; there are {', '.join(map(repr, known))}")


if __name__ == "__main__":
    main()
