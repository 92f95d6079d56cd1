"""Accuracy on samples as they are in practice, called naively and as they should be.

    python benchmarks/practice.py [SUITES.py] [--kinds rare clusters ...] [--seeds 3]

Kinds of samples, on scikit-learn's bundled data and on normal classes:

rare      few unlabeled rows are positive, from 0.5% to 5%
biased    the known positives are another mix of subtypes than the hidden ones
clusters  rows come in groups of near-copies
weights   one kind of row was sampled more often than the others
segments  the share differs by segment

"naive" calls ``estimate_prior`` on the two samples alone. "told" passes what is known about them:
``groups``, ``weights``, ``segments``, or ``method="subtypes"`` for biased positives. The script
prints a table, with the mean squared error (for rare positives the root mean square of
log(estimate / truth)), and how often the interval contains the truth and the certified bound is
below it.

SUITES.py is a Python file of samples of your own: its function ``suite(kind)`` yields draws with
the attributes ``setting``, ``prior`` and ``seed`` and a method ``make()`` that returns a dictionary
with ``X_positive``, ``X_unlabeled``, ``truth`` (for segments a dictionary) and, as needed,
``groups_positive``, ``groups_unlabeled`` and the like. An interrupted run resumes where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import scale

from classprior import estimate_prior

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from harness import Row, Task, groups, load_module, run, seed, write_table

Doubles = NDArray[np.float64]
Sample = dict[str, Any]
PRIORS = (0.1, 0.3, 0.5)
RARE = (0.005, 0.01, 0.02, 0.05)
SHARES = {"north": 0.05, "east": 0.2, "south": 0.4, "west": 0.7}
LARGEST_GROUP, NOISE = 6, 0.05
FACTOR = 4.0  # how much more often one kind of row was sampled


class Draw(NamedTuple):
    """One pair of samples, made when asked for."""

    suite: str
    setting: str
    prior: float
    seed: int
    make: Callable[[], Sample]


# Two classes, from which rows are drawn without replacement --------------------------------------


class Classes(NamedTuple):
    """Rows of the two classes, and the subtype of each positive row."""

    positive: Doubles
    negative: Doubles
    subtypes: NDArray[np.int64]


def normals(n_features: int) -> Classes:
    """Return normal classes; positives have three subtypes along the second column."""
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(size=(6000, n_features)), rng.normal(size=(9000, n_features))
    subtypes = rng.integers(3, size=len(positive))
    positive[:, 1] += 2.0 * subtypes
    negative[:, 0] += 3.0
    return Classes(positive, negative, subtypes)


def bundled(load: Callable[..., Any], is_positive: Callable[[Any], Any]) -> Classes:
    """Return two classes of a data set; the classes of its positives are the subtypes."""
    X, y = load(return_X_y=True)
    X = scale(X[:, X.std(axis=0) > 0.0])
    positive = is_positive(y)
    return Classes(X[positive], X[~positive], y[positive].astype(np.int64))


FAMILIES: dict[str, Callable[[], Classes]] = {
    "normals, 2 columns": partial(normals, 2),
    "normals, 8 columns": partial(normals, 8),
    "digits": partial(bundled, load_digits, lambda y: y >= 6),
    "breast cancer": partial(bundled, load_breast_cancer, lambda y: y == 0),
    "wine": partial(bundled, load_wine, lambda y: y == 1),
}


@cache
def classes(family: str) -> Classes:
    """Return the rows of a family, made once."""
    return FAMILIES[family]()


def mixed(
    yes: Doubles, no: Doubles, prior: float, sizes: tuple[int, int], rng: np.random.Generator
) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
    """Draw both samples, smaller if there are too few rows; mark the hidden positives."""
    n, m = sizes
    fits = min(1.0, len(yes) / (n + prior * m), len(no) / ((1.0 - prior) * m))
    n, hidden = int(fits * n), max(1, int(fits * prior * m))
    yes = yes[rng.permutation(len(yes))[: n + hidden]]
    no = no[rng.permutation(len(no))[: int(hidden * (1.0 - prior) / prior)]]
    order = rng.permutation(hidden + len(no))
    return yes[:n], np.vstack([yes[n:], no])[order], order < hidden


# The kinds of samples ----------------------------------------------------------------------------


def rare(family: str, prior: float, rng: np.random.Generator) -> Sample:
    """Few positives among many unlabeled rows."""
    yes, no, _ = classes(family)
    positive, unlabeled, is_hidden = mixed(yes, no, prior, (300, 6000), rng)
    return {"X_positive": positive, "X_unlabeled": unlabeled, "truth": float(is_hidden.mean())}


def biased(family: str, prior: float, rng: np.random.Generator) -> Sample:
    """Known positives have equal shares of the subtypes; of the hidden ones, each halves."""
    yes, no, subtypes = classes(family)
    kinds = np.unique(subtypes)
    known = np.full(len(kinds), 300 // len(kinds))
    hidden = np.round(1200 * prior * 0.5 ** np.arange(len(kinds)) / (2 - 0.5 ** (len(kinds) - 1)))
    rows = [rng.permutation(np.flatnonzero(subtypes == kind)) for kind in kinds]
    fits = min(1.0, *(len(r) / (k + h) for r, k, h in zip(rows, known, hidden, strict=True)))
    known, hidden = ((fits * count).astype(int) for count in (known, hidden))
    n_negative = min(len(no), round(hidden.sum() * (1.0 - prior) / prior))
    of_hidden = [yes[r[k : k + h]] for r, k, h in zip(rows, known, hidden, strict=True)]
    unlabeled = np.vstack([*of_hidden, no[rng.permutation(len(no))[:n_negative]]])
    return {
        "X_positive": np.vstack([yes[r[:k]] for r, k in zip(rows, known, strict=True)]),
        "X_unlabeled": rng.permutation(unlabeled),
        "truth": float(hidden.sum() / len(unlabeled)),
    }


def clusters(family: str, prior: float, rng: np.random.Generator) -> Sample:
    """Each drawn row is a group: one to six noisy copies of it are observed."""
    yes, no, _ = classes(family)
    *both, is_hidden = mixed(yes, no, prior, (60, 300), rng)
    sample: Sample = {"truth": float(is_hidden.mean())}  # of the groups, in the population
    first = 0
    for name, X in zip(("positive", "unlabeled"), both, strict=True):
        group = np.repeat(np.arange(len(X)), rng.integers(1, LARGEST_GROUP + 1, len(X)))
        sample[f"X_{name}"] = X[group] + rng.normal(scale=NOISE, size=(len(group), X.shape[1]))
        sample[f"groups_{name}"] = first + group
        first += len(X)  # no group has rows in both samples
    return sample


def weights(family: str, prior: float, rng: np.random.Generator) -> Sample:
    """Rows above the median of the column that differs most were kept more often."""
    yes, no, _ = classes(family)
    *both, is_hidden = mixed(yes, no, prior, (1000, 4000), rng)
    column = int(np.argmax(np.abs(yes.mean(axis=0) - no.mean(axis=0))))
    cut = np.median(both[1][:, column])
    sample: Sample = {}
    for name, X in zip(("positive", "unlabeled"), both, strict=True):
        often = X[:, column] > cut
        kept = often | (rng.uniform(size=len(X)) < 1.0 / FACTOR)
        sample[f"X_{name}"] = X[kept]
        sample[f"weights_{name}"] = np.where(often, 1.0, FACTOR)[kept]
    truth = np.average(is_hidden[kept], weights=sample["weights_unlabeled"])
    return {**sample, "truth": float(truth)}


def segments(family: str, rng: np.random.Generator) -> Sample:
    """Half of the rows are in the first segment, and so on; the shares differ."""
    n_segments = len(SHARES)
    sizes = 2000 * 0.5 ** np.arange(1, n_segments + 1)
    yes, no, _ = classes(family)
    hidden = sizes * np.array([*SHARES.values()])
    fits = min(1.0, len(yes) / (300 + hidden.sum()), len(no) / (sizes - hidden).sum())
    n, hidden, others = (
        np.floor(fits * count).astype(int) for count in (300, hidden, sizes - hidden)
    )
    yes, no = rng.permutation(yes), rng.permutation(no)
    names = np.array([*SHARES])
    of_rows = np.concatenate([np.repeat(names, hidden), np.repeat(names, others)])
    order = rng.permutation(len(of_rows))
    truth = {k: h / max(1, h + o) for k, h, o in zip(SHARES, hidden, others, strict=True)}
    return {
        "X_positive": yes[:n],
        "X_unlabeled": np.vstack([yes[n : n + hidden.sum()], no[: others.sum()]])[order],
        "segments_positive": rng.choice(names, n),
        "segments_unlabeled": of_rows[order],
        "truth": {name: float(share) for name, share in truth.items()},
    }


BIG = ("normals, 2 columns", "normals, 8 columns")
HAS_SUBTYPES = (*BIG, "digits")
CALLS = ("naive", "told")


MAKERS: dict[str, Callable[..., Sample]] = {
    "rare": rare,
    "biased": biased,
    "clusters": clusters,
    "weights": weights,
    "segments": segments,
}


def suite(kind: str, n_seeds: int) -> Iterator[Draw]:
    """Yield the draws of one kind."""
    enough = {"rare": BIG, "biased": HAS_SUBTYPES, "segments": (*HAS_SUBTYPES, "breast cancer")}
    families = enough.get(kind, tuple(FAMILIES))
    for family in families:
        for prior in {"rare": RARE, "segments": (float("nan"),)}.get(kind, PRIORS):
            for number in range(n_seeds):
                make = partial(made, kind, family, prior, number)
                yield Draw(kind, family, prior, number, make)


def made(kind: str, family: str, prior: float, number: int) -> Sample:
    """Make the samples of one draw."""
    rng = np.random.default_rng(seed(kind=kind, family=family, prior=str(prior), draw=number))
    return MAKERS[kind](family, rng) if kind == "segments" else MAKERS[kind](family, prior, rng)


# Estimates ---------------------------------------------------------------------------------------

LIMITS = ("prior", "low", "high", "upper_bound")


def draws_of(path: str | None, kind: str, n_seeds: int) -> list[Any]:
    """Return the draws of one kind, from a file if there is one."""
    draws = load_module(path).suite(kind) if path else suite(kind, n_seeds)
    return [draw for draw in draws if draw.seed < n_seeds]


def settings_of(draw: Any) -> Task:
    """Return what tells a draw from the others of its kind."""
    return {"setting": draw.setting, "prior": str(draw.prior), "seed": draw.seed}


def told(kind: str, sample: Sample) -> dict[str, Any]:
    """Return the arguments that say what is known about a sample."""
    if kind == "biased":
        return {"method": "subtypes"}
    name = {"clusters": "groups"}.get(kind, kind)
    return {name: (sample[f"{name}_positive"], sample[f"{name}_unlabeled"])}


def estimate(path: str | None, task: Task) -> Row:
    """Return the estimates of one draw, a list of one or with an entry for each segment."""
    draws = draws_of(path, task["kind"], task["seed"] + 1)
    sample = next(d for d in draws if settings_of(d).items() <= task.items()).make()
    options = told(task["kind"], sample) if task["call"] == "told" else {}
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows, estimates outside [0, 1]
        found: Any = estimate_prior(
            sample["X_positive"],
            sample["X_unlabeled"],
            random_state=task["seed"],
            n_jobs=1,
            **options,
        )
    seconds = time.process_time() - start
    truth = sample["truth"] if isinstance(sample["truth"], dict) else {"all": sample["truth"]}
    parts = found.segments if "segments" in options else dict.fromkeys(truth, found)
    return {
        "truth": [float(share) for share in truth.values()],
        **{name: [float(getattr(parts[k], name)) for k in truth] for name in LIMITS},
        "seconds": round(seconds, 3),
    }


def table(rows: Sequence[Row]) -> str:
    """Return errors, coverage, widths and seconds as a Markdown table."""
    lines = [
        "| kind | call | draws | error | covered | bound failed | width | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (kind, call), part in groups(rows, "kind", "call"):
        truth, prior, low, high, bound = (
            np.concatenate([row[name] for row in part]) for name in ("truth", *LIMITS)
        )
        if kind == "rare":  # an estimate of zero counts as one row in ten thousand
            error = np.sqrt(np.mean(np.log(np.maximum(prior, 1e-4) / truth) ** 2))
        else:
            error = np.mean((prior - truth) ** 2)
        cells = [
            f"{error:.4f}",
            f"{np.mean((low <= truth) & (truth <= high)):.2f}",
            f"{np.mean(bound < truth):.2f}",
            f"{np.mean(high - low):.2f}",
            f"{np.mean([row['seconds'] for row in part]):.1f}",
        ]
        lines.append(f"| {kind} | {call} | {len(part)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run both calls on every draw."""
    parser = argparse.ArgumentParser(description="Accuracy on samples as they are in practice.")
    parser.add_argument("suites", type=Path, nargs="?", help="Python file that defines the draws")
    parser.add_argument("--kinds", nargs="+", choices=MAKERS, default=[*MAKERS])
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=[*CALLS])
    parser.add_argument("--seeds", type=int, default=3, help="number of draws of each setting")
    parser.add_argument("--out", type=Path, default=Path("build/practice"))
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()

    path = options.suites and str(options.suites.resolve())
    tasks: list[Task] = [
        {"file": path, "kind": kind, "call": call, **settings_of(draw)}
        for kind in options.kinds
        for call in options.calls
        if not (kind == "rare" and call == "told")  # there is nothing to tell
        for draw in draws_of(path, kind, options.seeds)
    ]
    rows = run(
        tasks,
        partial(estimate, path),
        options.out / "practice.jsonl",
        title="Draws",
        jobs=options.jobs,
    )
    write_table(rows, options.out / "practice.csv")
    print(table(rows))
    print(f"Written to {options.out}")


if __name__ == "__main__":
    main()
