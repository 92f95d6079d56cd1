"""The public benchmark: every method, and other packages, on data that anyone can get.

    python benchmarks/benchmark.py [--methods auto penl1 ...] [--seeds 3] [--every 1] [--all]
    python benchmarks/benchmark.py --tables FOLDER --openml phoneme spambase

Suites: scikit-learn's bundled data, and distributions from which rows are drawn afresh. With
``--tables`` (or the environment variable CLASSPRIOR_TABLES), each Parquet file in a folder is one
more suite: its column ``target`` has the labels, and the second most frequent label, which is the
rarer one of two, is positive. With ``--openml``, tables are downloaded by name and kept by
scikit-learn. Columns are standardized for all methods alike, and each method has its default
parameters.

The packages pulearn and pu-toolbox take part as they ship, where they are installed. Slow methods
take part if they are named or with ``--all``. The interval and the bound are those of the default
method; ``--intervals`` adds the others, which need refits for them.

Results are in build/benchmark: RESULTS.md with a table for each suite, CSV files and a picture.
With ``--write``, the table over all suites goes to docs/explanation/accuracy.md, a sentence to
README, the picture to docs/images and the figures of all suites to benchmarks/benchmark.csv. An
interrupted run resumes where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache, partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from practice import bundled, mixed
from sklearn.datasets import fetch_openml, load_breast_cancer, load_digits, load_wine

from classprior import TableEncoder, estimate_prior
from classprior.estimate import METHODS

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from harness import Row, Task, groups, mean_and_error, replace_between, run, seed, write_table

Doubles = NDArray[np.float64]
Classes = tuple[Doubles, Doubles]  # rows of the positive and of the negative class
DEFAULT = "auto"
ROOT = Path(__file__).parents[1]
SCRIPT = "benchmarks/benchmark.py"
SUMMARY = ROOT / "benchmarks/benchmark.csv"
PAGE, README = ROOT / "docs/explanation/accuracy.md", ROOT / "README.md"
PICTURE = ROOT / "docs/images/benchmark.png"


# Suites ------------------------------------------------------------------------------------------

FEWEST = 50  # positive rows of a table
POOL = 4000  # rows of each class from which a draw takes its own
SEEDS = 3  # draws for each share
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)


def uniforms(rng: np.random.Generator) -> Classes:
    """Return two intervals that share half of their length."""
    return rng.uniform(0.0, 1.0, (POOL, 1)), rng.uniform(0.5, 1.5, (POOL, 1))


def normals(n_features: int, distance: float, rng: np.random.Generator) -> Classes:
    """Return normal classes, some standard deviations apart."""
    positive, negative = rng.normal(size=(2, POOL, n_features))
    return positive, negative + distance / np.sqrt(n_features)


def betas(rng: np.random.Generator) -> Classes:
    """Return three columns in [0, 1], skewed to one side or the other."""
    return rng.beta(2.0, 5.0, (POOL, 3)), rng.beta(5.0, 2.0, (POOL, 3))


def ring(rng: np.random.Generator) -> Classes:
    """Return positives in the middle and negatives around them."""
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, POOL), rng.normal(3.0, 0.5, POOL)
    return rng.normal(size=(POOL, 2)), radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]


def t_mixtures(rng: np.random.Generator) -> Classes:
    """Return two clusters of positives with heavy tails, and normal negatives between them."""
    positive = rng.standard_t(3.0, (POOL, 2))
    positive[:, 0] += rng.choice([-3.0, 3.0], POOL)
    return positive, rng.normal(size=(POOL, 2))


@cache
def of_scikit_learn(name: str) -> Classes:
    """Return two classes of a bundled data set."""
    positive, negative, _ = {
        "digits": partial(bundled, load_digits, lambda y: y % 2 == 1),
        "breast cancer": partial(bundled, load_breast_cancer, lambda y: y == 0),
        "wine": partial(bundled, load_wine, lambda y: y == 1),
    }[name]()
    return positive, negative


@cache
def of_parquet(path: Path) -> Classes:
    """Return two classes of a table in a file."""
    import pandas as pd

    frame = pd.read_parquet(path)
    return of_table(frame.drop(columns="target"), frame["target"])


@cache
def of_openml(name: str) -> Classes:
    """Return two classes of a table on OpenML."""
    return of_table(*fetch_openml(name, version="active", as_frame=True, return_X_y=True))


def of_table(frame: Any, target: Any) -> Classes:
    """Split a table into the second most frequent label and the others."""
    labels = target.astype(str)
    counts = sorted(labels.value_counts().items(), key=lambda item: (-item[1], item[0]))
    if len(counts) < 2 or counts[1][1] < FEWEST:
        raise ValueError(f"fewer than {FEWEST} rows have the second most frequent label.")
    is_positive = (labels == counts[1][0]).to_numpy()
    X = np.asarray(TableEncoder().fit_transform(frame), dtype=float)
    return X[is_positive], X[~is_positive]


class Suite(NamedTuple):
    """Draws from two classes; with too few rows, both samples are smaller."""

    classes: Callable[..., Classes]
    is_random: bool = True  # whether rows are drawn afresh
    source: str = ""  # where a table comes from
    shares: tuple[float, ...] = SHARES
    sizes: tuple[int, int] = (200, 800)

    def draw(self, name: str, prior: float, number: int) -> tuple[Doubles, Doubles, float]:
        """Return the positive and the unlabeled sample, standardized together, and the truth."""
        rng = np.random.default_rng(seed(suite=name, prior=prior, draw=number))
        yes, no = self.classes(rng) if self.is_random else self.classes()
        positive, unlabeled, is_hidden = mixed(yes, no, prior, self.sizes, rng)
        both = np.vstack([positive, unlabeled])
        both = both[:, np.ptp(both, axis=0) > 0.0]
        both = (both - both.mean(axis=0)) / both.std(axis=0)
        return both[: len(positive)], both[len(positive) :], float(is_hidden.mean())


SUITES: dict[str, Suite] = {
    "uniforms": Suite(uniforms),
    "normals": Suite(partial(normals, 2, 2.0)),
    "normals, 20 columns": Suite(partial(normals, 20, 3.0)),
    "betas": Suite(betas),
    "ring": Suite(ring),
    "t mixtures": Suite(t_mixtures),
    "rare": Suite(partial(normals, 4, 3.0), shares=(0.01, 0.02, 0.05), sizes=(300, 3000)),
    "digits": Suite(partial(of_scikit_learn, "digits"), is_random=False),
    "breast cancer": Suite(partial(of_scikit_learn, "breast cancer"), is_random=False),
    "wine": Suite(partial(of_scikit_learn, "wine"), is_random=False, sizes=(200, 400)),
}


def suites_of(folder: Path | None, names: Sequence[str]) -> dict[str, Suite]:
    """Return the suites, with those of a folder and of OpenML; say which cannot be read."""
    paths = sorted(folder.glob("*.parquet")) if folder else []
    if folder and not paths:
        raise SystemExit(f"There are no Parquet files in {folder}.")
    found = {path.name: (partial(of_parquet, path), str(path.resolve())) for path in paths}
    found |= {f"openml {name}": (partial(of_openml, name), "OpenML") for name in names}
    tables = {}
    for name, (classes, source) in found.items():
        try:
            classes()
        except Exception as error:  # no network, no such table, no target
            print(f"Skipped {name}: {error}")
        else:
            tables[name] = Suite(classes, is_random=False, source=source)
    return SUITES | tables


# Methods -----------------------------------------------------------------------------------------

SLOW = ("l1", "kl", "pen-kl", "km1", "km2", "recpe")


class Peer(NamedTuple):
    """An estimator of another package, with that package's default parameters."""

    package: str
    module: str
    name: str
    is_slow: bool = False
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
    "pu-toolbox KM1": Peer(
        "pu-toolbox", "pu_toolbox.prior", "KernelMeanPriorEstimator", is_slow=True
    ),
    "pu-toolbox ReCPE": Peer("pu-toolbox", "pu_toolbox.prior", "ReCPEEstimator", is_slow=True),
}


def methods_of(names: Sequence[str] | None, everything: bool) -> list[str]:
    """Return the methods to run; say which packages are missing."""
    slow = {*SLOW, *(name for name, peer in PEERS.items() if peer.is_slow)}
    wanted = names or [name for name in (*METHODS, *PEERS) if everything or name not in slow]
    reasons = {name: PEERS[name].missing() for name in wanted if name in PEERS}
    for name, reason in reasons.items():
        if reason:
            print(f"Skipped {name}: {reason}")
    return [name for name in wanted if not reasons.get(name)]


def tasks_of(
    suites: Mapping[str, Suite], methods: Sequence[str], n_seeds: int, every: int, intervals: bool
) -> list[Task]:
    """Return the settings of all fits."""
    return [
        {
            "suite": name,
            "prior": prior,
            "seed": number,
            "method": method,
            "interval": method in METHODS and (intervals or method == DEFAULT),
            **({"source": suite.source} if suite.source else {}),
            **({"version": metadata.version(PEERS[method].package)} if method in PEERS else {}),
        }
        for method in methods
        for name, suite in suites.items()
        for number, prior in [(n, p) for n in range(n_seeds) for p in suite.shares][::every]
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
    return {"truth": truth, **found, "seconds": round(time.process_time() - start, 3)}


def answer(
    method: str, X_positive: Doubles, X_unlabeled: Doubles, random_state: int, interval: bool
) -> Row:
    """Return the estimate, and the interval for the share of these rows and the bound if asked."""
    if method in PEERS:
        return {"estimate": PEERS[method].estimate(X_positive, X_unlabeled)}
    if not interval:
        fitted = METHODS[method](random_state=random_state).fit_samples(X_positive, X_unlabeled)
        return {"estimate": float(fitted.prior_)}
    found = estimate_prior(
        X_positive, X_unlabeled, method=method, random_state=random_state, n_jobs=1
    )
    return {
        "estimate": float(found.prior),
        "low": found.low_count / len(X_unlabeled),
        "high": found.high_count / len(X_unlabeled),
        "bound": float(found.upper_bound),
    }


# Tables ------------------------------------------------------------------------------------------

COLUMNS = {
    "error": "mean absolute error",
    "root": "root mean square error",
    "bias": "bias",
    "covered": "interval covers",
    "width": "width",
    "bound_failed": "bound fails",
    "seconds": "processor seconds",
}


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each method and suite."""
    return [
        {"method": method, "suite": suite, **figures(part)}
        for (method, suite), part in groups(rows, "method", "suite")
    ]


def figures(rows: Sequence[Row]) -> Row:
    """Return errors, coverage and seconds of one method on one suite."""
    answered = [row for row in rows if "estimate" in row]
    found: Row = {"draws": len(rows), "answers": len(answered)}
    found["seconds"] = float(np.mean([row["seconds"] for row in rows]))
    if answered:
        errors = np.array([row["estimate"] - row["truth"] for row in answered])
        found["error"], found["standard_error"] = mean_and_error(np.abs(errors))
        found["root"] = float(np.sqrt(np.mean(errors**2)))
        found["bias"] = float(errors.mean())
    if answered and all("bound" in row for row in answered):
        truth, low, high, bound = (
            np.array([row[name] for row in answered]) for name in ("truth", "low", "high", "bound")
        )
        tiny = 1e-9  # counts divided by rows
        found["covered"] = float(np.mean((low <= truth + tiny) & (truth <= high + tiny)))
        found["width"] = float(np.mean(high - low))
        found["bound_failed"] = float(np.mean(bound < truth - tiny))
    return found


def over_suites(summary: Sequence[Row]) -> list[Row]:
    """Return one row for each method that answered in every suite, most accurate first."""
    n_suites = len({row["suite"] for row in summary})
    found = []
    for (method,), part in groups(summary, "method"):
        if sum("error" in row for row in part) < n_suites:
            continue
        mean: Row = {
            name: float(np.mean([row[name] for row in part]))
            for name in COLUMNS
            if all(name in row for row in part)
        }
        mean["root"] = float(np.sqrt(np.mean([row["root"] ** 2 for row in part])))
        errors = [row["standard_error"] for row in part]
        mean["standard_error"] = float(np.sqrt(np.sum(np.square(errors))) / n_suites)
        found.append({"method": method, **mean})
    return sorted(found, key=lambda row: row["error"])


def table(rows: Sequence[Row]) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        "| method | " + " | ".join(COLUMNS.values()) + " |",
        "|---" + "|---:" * len(COLUMNS) + "|",
    ]
    for row in rows:
        cells = [cell(row, name) for name in COLUMNS]
        lines.append(f"| {label(row['method'])} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cell(row: Row, name: str) -> str:
    """Return one figure as text."""
    if name not in row:
        return ""
    if name == "error":
        known = np.isfinite(row["standard_error"])
        return f"{row['error']:.3f}" + (f" ± {row['standard_error']:.3f}" if known else "")
    if name in ("covered", "bound_failed"):
        return f"{row[name]:.0%}"
    return {"bias": f"{row[name]:+.3f}", "seconds": f"{row[name]:.2f}"}.get(
        name, f"{row[name]:.3f}"
    )


def label(method: str) -> str:
    """Return a method's name in Markdown."""
    return (
        f"**`{method}`**" if method == DEFAULT else f"`{method}`" if method in METHODS else method
    )


def listed(names: Sequence[str]) -> str:
    """Return names as in a sentence."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def findings(summary: Sequence[Row]) -> str:
    """Say where the default method is the best, where it is not, and who gave no answer."""
    ahead: list[str] = []
    behind: dict[str, list[str]] = {}
    for (suite,), part in groups([row for row in summary if "error" in row], "suite"):
        errors = {row["method"]: row["error"] for row in part}
        if DEFAULT not in errors:
            continue
        best = min(errors, key=lambda method: errors[method])
        if errors[best] < errors[DEFAULT]:
            against = f"*{suite}* ({errors[best]:.3f} against {errors[DEFAULT]:.3f})"
            behind.setdefault(best, []).append(against)
        else:
            ahead.append(f"*{suite}*")
    lines = []
    if ahead:
        lines.append(f"{label(DEFAULT)} has the smallest error on {listed(ahead)}.")
    for method, parts in behind.items():
        lines.append(
            f"On {listed(parts)}, {label(method)} has the smallest error, not `{DEFAULT}`."
        )
    for (method,), part in groups(summary, "method"):
        draws, answers = (sum(int(row[name]) for row in part) for name in ("draws", "answers"))
        if answers < draws:
            lines.append(f"{label(method)} gave no answer on {draws - answers} of {draws} draws.")
    return "\n".join(f"- {line}" for line in lines) + "\n"


def results(summary: Sequence[Row]) -> str:
    """Return the table over all suites and what it shows."""
    return f"{table(over_suites(summary))}\n{findings(summary)}"


def short(summary: Sequence[Row]) -> str:
    """Return the most accurate methods in a sentence, with the rank of the default."""
    overall = over_suites(summary)
    names = [row["method"] for row in overall]
    suites = {row["suite"] for row in summary}
    draws = sum(int(row["draws"]) for row in summary if row["method"] == names[0])
    first = ", ".join(f"{label(row['method'])} {row['error']:.3f}" for row in overall[:5])
    best = {
        suite: min((row for row in part if "error" in row), key=lambda row: row["error"])["method"]
        for (suite,), part in groups(summary, "suite")
    }
    lost = [f"*{suite}*" for suite, method in best.items() if method != DEFAULT]
    text = f"Mean absolute error over {len(suites)} suites, {draws} draws: {first}."
    if DEFAULT in names:
        text += f" The default is number {names.index(DEFAULT) + 1} of {len(names)} methods."
    return text + (f" Another method is better on {listed(lost)}." if lost else "")


def details(summary: Sequence[Row]) -> str:
    """Return the tables of all suites."""
    parts = [f"# All suites\n\n{results(summary)}"]
    for (suite,), part in groups(summary, "suite"):
        ordered = sorted(part, key=lambda row: row.get("error", np.inf))
        parts.append(f"## {suite[0].upper()}{suite[1:]}\n\n{table(ordered)}")
    return "\n".join(parts)


def read_summary(path: Path) -> list[Row]:
    """Read a summary that was written by write_table."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {k: v if k in ("method", "suite") else float(v) for k, v in row.items() if v}
            for row in csv.DictReader(file)
        ]


def draw_picture(summary: Sequence[Row], path: Path) -> None:
    """Draw the mean absolute error of each method on each suite; readable on light and dark."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    ordered = [*over_suites(summary), *summary]  # those without all answers come last
    methods = list(dict.fromkeys(row["method"] for row in ordered))
    suites = list(dict.fromkeys(row["suite"] for row in summary))
    errors = {(row["method"], row["suite"]): row.get("error", np.nan) for row in summary}
    grid = np.array([[errors[method, suite] for suite in suites] for method in methods])
    gray = "#808080"  # as far from white as from black
    size = 2.2 + 0.72 * len(suites), 1.5 + 0.32 * len(methods)
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    ax.imshow(np.sqrt(grid), cmap="cividis", vmin=0.0, vmax=np.sqrt(0.5), aspect="auto")
    for (i, j), error in np.ndenumerate(grid):
        if np.isnan(error):
            continue
        color = "white" if error < 0.12 else "black"
        weight = "bold" if error == np.nanmin(grid[:, j]) else "normal"
        ax.text(j, i, f"{error:.3f}", ha="center", va="center", color=color, weight=weight)
    ax.set_xticks(range(len(suites)), suites, rotation=35, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(methods)), methods)
    ax.tick_params(length=0, labelcolor=gray)
    ax.spines[:].set_visible(False)
    ax.set_title("Mean absolute error; the smallest of each suite is bold", color=gray, fontsize=11)
    figure.savefig(path, dpi=120, transparent=True)
    plt.close(figure)


def write(rows: Sequence[Row], command: str) -> None:
    """Put the summary, the table and the picture into the repository."""
    write_table(summarize(rows), SUMMARY)
    summary = read_summary(SUMMARY)
    versions = {PEERS[row["method"]].package: row["version"] for row in rows if "version" in row}
    others = [f"{package} {version}" for package, version in sorted(versions.items())]
    draws = len({(row["suite"], row["prior"], row["seed"]) for row in rows})
    usual = len(tasks_of(SUITES, [DEFAULT], SEEDS, 1, False))
    facts = (
        f"{draws} draws"
        + (f", a part of the {usual} of a default run" if draws < usual else "")
        + f"; {sum(row['seconds'] for row in rows) / 60.0:.0f} minutes of processor time"
        + (f", with {listed(others)}" if others else "")
        + f", on {date.today():%Y-%m-%d}: `{command}`."
    )
    replace_between(PAGE, SCRIPT, f"\n{facts}\n\n{results(summary)}")
    replace_between(README, SCRIPT, f"\n{short(summary)}\n")
    draw_picture(summary, PICTURE)


def main() -> None:
    """Run the methods on all draws."""
    parser = argparse.ArgumentParser(description="All methods and other packages, on public data.")
    add = parser.add_argument
    add("--methods", nargs="+", choices=[*METHODS, *PEERS], help="default: all but slow ones")
    add("--all", action="store_true", help="slow methods as well")
    add("--suites", nargs="+", metavar="SUITE", help="default: all")
    add("--tables", type=Path, default=os.environ.get("CLASSPRIOR_TABLES"), metavar="FOLDER")
    add("--openml", nargs="+", default=[], metavar="NAME", help="tables to download")
    add("--seeds", type=int, default=SEEDS, help="draws for each share of each suite")
    add("--every", type=int, default=1, help="use every n-th draw of each suite")
    add("--intervals", action="store_true", help="intervals of all methods; slow")
    add("--out", type=Path, default=Path("build/benchmark"))
    add("--jobs", type=int, default=-1)
    add("--write", action="store_true", help="write the table to the documentation")
    options = parser.parse_args()

    suites = suites_of(options.tables and Path(options.tables), options.openml)
    if unknown := set(options.suites or ()) - set(suites):
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(suites)}")
    suites = {name: suites[name] for name in options.suites or suites}
    methods = methods_of(options.methods, options.all)
    if not methods:
        parser.error("none of the methods can be run")
    rows = run(
        tasks_of(suites, methods, options.seeds, options.every, options.intervals),
        partial(estimate, suites),
        options.out / "benchmark.jsonl",
        title="Fits",
        jobs=options.jobs,
    )
    summary = summarize(rows)
    write_table(rows, options.out / "rows.csv")
    write_table(summary, options.out / "summary.csv")
    (options.out / "RESULTS.md").write_text(details(summary), encoding="utf-8")
    draw_picture(summary, options.out / "benchmark.png")
    print(results(summary))
    print(f"Written to {options.out}")
    if options.write:
        write(rows, shlex.join(["python", SCRIPT, *sys.argv[1:]]))


if __name__ == "__main__":
    main()
