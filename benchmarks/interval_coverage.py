"""Coverage of the confidence intervals and of the certified upper bounds.

    python benchmarks/interval_coverage.py [--draws 60] [--methods auto penl1] [--mnist FOLDER]
        [--unscaled]
    python benchmarks/interval_coverage.py --edges [--draws 100]
    python benchmarks/interval_coverage.py --edges --sizes 400+20000 --max-rows 400 --methods auto
    python benchmarks/interval_coverage.py --write --mnist FOLDER [--parts usual edges few many]
    python benchmarks/interval_coverage.py --write --parts hard [--tables FOLDER]

The prior is identifiable in all settings but one: overlapping uniforms, normals 4 and 2 standard
deviations apart in 2 columns, normals in 10 columns, betas and, with --mnist FOLDER (the IDX
files), one digit against the rest in 4 and 50 dimensions. In the setting "same", both classes have
the same distribution, and only the bound can be right. With --edges, the normals are 6 and 2
standard deviations apart, with few positives and shares from 0 to 0.95, and each share is reported.
With --max-rows, the classifiers are fitted to a few of the rows.
To cover the share in the population, the number of
hidden positives is drawn from a binomial distribution; to cover the share in these rows, it is
fixed. The bound does not depend on the method and is measured with "auto". The script reports both
tails and draws every interval. An interrupted run resumes where it stopped. With --write, it
measures what docs/explanation/intervals.md shows, part by part, and replaces its tables and its
picture; results are kept by the version of the code. The part "hard" has classes that overlap:
normals 1 to 4 apart, scikit-learn's tables and, with --tables FOLDER, all Parquet files in it whose
last column is the class; each of up to two classes against the rest, with all columns and with
four of them.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from classprior import AutoPrior, estimate_prior
from classprior.estimate import METHODS

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from freshness import record
from harness import Row, Task, code_version, groups, replace_between, run, seed, write_table

PRIORS = (0.05, 0.3, 0.7, 0.95)
SIZES = ("200+1000",)  # known positives and unlabeled rows
EDGE_PRIORS = (0.0, 0.002, 0.004, 0.008, 0.02, 0.05, 0.3, 0.7, 0.95)
EDGE_SIZES = ("200+600", "50+2000")
EDGE_SETTINGS = ("normals apart", "normals near")
# What the interval should cover, with the name that seeds the draws.
TARGETS = {"population": "population", "these rows": "sample"}
SETTINGS = ("uniforms", "normals far", "normals near", "normals, 10 columns", "betas", "same")
MNIST = ("MNIST 4", "MNIST 50")
BOUNDS = "upper_bound", "upper_bound_asymptotic"
QUICK = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)
Doubles = NDArray[np.float64]
ROOT = Path(__file__).parents[1]
SCRIPT = "benchmarks/interval_coverage.py"
PAGE, PICTURE = ROOT / "docs/explanation/intervals.md", ROOT / "docs/images/coverage.png"


class Grid(NamedTuple):
    """Settings, sizes and shares of all draws."""

    settings: Sequence[str]
    sizes: Sequence[str]
    priors: Sequence[float]
    draws: int
    methods: Sequence[str] = ("auto",)
    max_rows: int | None = None
    scale: bool = True

    def tasks(self, folder: str, **more: str) -> list[Task]:
        """Return one task for each draw."""
        return [
            {
                "method": method,
                "scale": self.scale,
                "setting": setting,
                "sizes": size,
                "max_rows": self.max_rows,
                "prior": prior,
                "target": target,
                "draw": i,
                "folder": folder if setting.startswith("MNIST") else "",
                **more,
            }
            for method in self.methods
            for i in range(self.draws)
            for setting in self.settings
            for size in self.sizes
            for prior in self.priors
            for target in TARGETS
        ]


#: What the documentation shows.
DOCUMENTED = {
    "usual": Grid((*SETTINGS, *MNIST), SIZES, PRIORS, 30),
    "edges": Grid(EDGE_SETTINGS, EDGE_SIZES, EDGE_PRIORS, 30),
    "few": Grid(("normals apart",), ("2+2000", "8+2000", "50+2000"), (0.002, 0.02, 0.3), 12),
    "many": Grid(
        ("normals near", "normals far", "normals apart"),
        ("400+20000",),
        (0.05, 0.3, 0.7),
        20,
        max_rows=400,
    ),
}
PARTS, HARD = {*DOCUMENTED, "hard"}, f"{SCRIPT} --parts hard"
SKLEARN_TABLES = {"digits": load_digits, "breast cancer": load_breast_cancer}
#: Part "hard": shares, known positives + unlabeled rows, and the draws of each.
HARD_PRIORS, HARD_SIZES, HARD_DRAWS = (0.02, 0.1, 0.4), ((200, 2000), (1000, 8000)), 1
DISTANCES = (1.0, 2.0, 3.0, 4.0)
#: Area under the ROC curve of trees that know the classes, from which these are called so.
CLASSES = {"far apart": 0.97, "near": 0.9, "mixed": 0.0}
TITLES = {
    "normals apart": "normals, 6 apart",
    "normals far": "normals, 4 apart",
    "normals near": "normals, 2 apart",
    "MNIST 4": "MNIST in 4 dimensions",
    "MNIST 50": "MNIST in 50 dimensions",
}


def draw(
    setting: str, positive: bool, size: int, rng: np.random.Generator, folder: str, digit: int
) -> Doubles:
    """Draw rows of one class."""
    if setting == "uniforms":
        return rng.uniform(size=(size, 1)) + (0.0 if positive else 0.5)
    if setting == "betas":
        return rng.beta(*((4.0, 1.0) if positive else (1.0, 4.0)), size=(size, 1))
    if setting.startswith("MNIST"):
        labels = np.load(Path(folder) / "mnist-labels.npy")
        pool = np.flatnonzero((labels == digit) == positive)
        rows = np.load(Path(folder) / "mnist.npy", mmap_mode="r")
        return rows[rng.choice(pool, size, replace=False), : int(setting.split()[1])]
    columns = 10 if setting == "normals, 10 columns" else 2
    shifts = {"normals apart": 6.0, "normals far": 4.0, "normals near": 2.0, "same": 0.0}
    shift = shifts.get(setting, 2.5)
    rows = rng.normal(size=(size, columns))
    rows[:, 0] += 0.0 if positive else shift
    return rows


def estimate(task: Task) -> Row:
    """Return the estimate, interval and bounds of one draw."""
    prior, setting, folder = task["prior"], task["setting"], task["folder"]
    n_positive, n_unlabeled = map(int, task["sizes"].split("+"))
    # The draws depend neither on the method nor on the folder.
    random_state = seed(
        setting=setting,
        prior=prior,
        target=TARGETS[task["target"]],
        sizes=task["sizes"],
        draw=task["draw"],
    )
    rng = np.random.default_rng(random_state)
    binomial = task["target"] == "population"
    hidden = rng.binomial(n_unlabeled, prior) if binomial else round(prior * n_unlabeled)
    digit = int(rng.integers(1, 10))
    positive = draw(setting, True, n_positive + hidden, rng, folder, digit)
    negative = draw(setting, False, n_unlabeled - hidden, rng, folder, digit)
    is_auto = task["method"] == "auto"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # raw estimates outside [0, 1]
        result = estimate_prior(
            positive[:n_positive],
            np.vstack([positive[n_positive:], negative]),
            method=task["method"],
            scale=task["scale"],
            evidence=None if is_auto else QUICK,
            random_state=random_state,
            **({"max_rows": task["max_rows"]} if task["max_rows"] else {}),
        )
    counts = result.low_count, result.high_count
    low, high = (result.low, result.high) if binomial else (c / n_unlabeled for c in counts)
    bounds = {name: getattr(result, name) for name in BOUNDS} if is_auto else {}
    return {"estimate": result.prior, "low": low, "high": high, **bounds}


def classes_of(setting: str, folder: str) -> tuple[Doubles, Doubles]:
    """Return standardized positives and negatives: of a table, a class and a number of columns."""
    kind, rest = setting.split(", ", 1)
    label, n_columns = rest.rsplit(", ", 1)
    rng = np.random.default_rng(seed(setting=setting))
    if kind.startswith("normals"):
        rows = rng.normal(size=(2, 20_000, int(n_columns.split()[0])))
        rows[1, :, 0] += float(label.split()[0])
        return rows[0], rows[1]
    if kind in SKLEARN_TABLES:
        bunch = SKLEARN_TABLES[kind]()
        X, y = bunch.data, bunch.target.astype(str)
    else:
        frame = pd.read_parquet(Path(folder) / f"{kind}.parquet")
        X, y = pd.get_dummies(frame.iloc[:, :-1], dtype=float), frame.iloc[:, -1].astype(str)
        X, y = X.fillna(X.median()).to_numpy(float), y.to_numpy()
    X = X[:, X.std(axis=0) > 0.0]
    if n_columns != "all columns":
        X = X[:, rng.permutation(X.shape[1])[: int(n_columns.split()[0])]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[y == label], X[y != label]


def separation_of_classes(setting: str, folder: str) -> str:
    """Return how far apart classes are, by boosted trees that know them, cross-validated."""
    rng = np.random.default_rng(0)
    parts = [rows[rng.permutation(len(rows))[:3000]] for rows in classes_of(setting, folder)]
    y = np.repeat([1, 0], [len(part) for part in parts])
    trees = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    scores = cross_val_predict(trees, np.vstack(parts), y, cv=3, method="decision_function")
    area = roc_auc_score(y, scores)
    return next(name for name, least in CLASSES.items() if area >= least)


def hard_tasks(folder: str, **more: str) -> list[Task]:
    """Return the tasks of the part "hard"."""
    settings = [f"normals, {d:g} apart, {c} columns" for d in DISTANCES for c in (1, 4)]
    tables = {name: np.unique(load().target).astype(str) for name, load in SKLEARN_TABLES.items()}
    for path in sorted(Path(folder).glob("*.parquet")) if folder else []:
        labels = pd.read_parquet(path).iloc[:, -1].astype(str)
        tables[path.stem] = labels.value_counts().index[:2].to_numpy()
    for name, labels in tables.items():
        for label in labels[:2]:
            settings += [f"{name}, {label}, {columns}" for columns in ("all columns", "4 columns")]
    classes = {setting: separation_of_classes(setting, folder) for setting in settings}
    return [
        {
            "setting": s,
            "prior": p,
            "size": list(z),
            "draw": i,
            "classes": classes[s],
            "folder": folder,
            **more,
        }
        for s in settings
        for p in HARD_PRIORS
        for z in HARD_SIZES
        for i in range(HARD_DRAWS)
    ]


def hard_estimate(task: Task) -> Row:
    """Return the answer for one draw of classes that may overlap; nothing if rows are too few."""
    positive, negative = classes_of(task["setting"], task["folder"])
    rng = np.random.default_rng(seed(**{k: task[k] for k in ("setting", "prior", "size", "draw")}))
    (n, m), prior = task["size"], task["prior"]
    n = min(n, len(positive) // 2)
    m = int(min(m, (len(positive) - n) / prior, len(negative) / (1.0 - prior)))
    hidden = round(prior * m)
    if n < 50 or m < 200 or hidden < 5:
        return {"is_made": False}
    chosen = positive[rng.permutation(len(positive))[: n + hidden]]
    rows = [chosen[n:], negative[rng.permutation(len(negative))[: m - hidden]]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = estimate_prior(chosen[:n], np.vstack(rows), random_state=task["draw"])
    return {
        "is_made": True,
        "meaning": str(found.meaning),
        "truth": hidden / m,
        "estimate": found.prior,
        "low": found.low,
        "high": found.high,
        "bound": found.upper_bound,
        "separation": found.separation,
    }


def covered(rows: Sequence[Row]) -> float:
    """Return how often the interval covers the truth."""
    return float(np.mean([row["low"] <= row["truth"] <= row["high"] for row in rows]))


def hard_summary(rows: Sequence[Row]) -> str:
    """Return one sentence on how far apart the classes are, and how often intervals cover."""
    rows = [row for row in rows if row["is_made"]]
    each = [
        f"{covered(some):.0%} where classes are {name}"
        for name in CLASSES
        if (some := [row for row in rows if row["classes"] == name])
    ]
    bound = np.mean([row["truth"] <= row["bound"] for row in rows])
    return (
        f"On {len(rows)} draws of tables, 95% intervals cover {', '.join(each)}; the bound holds "
        f"in {bound:.1%}."
    )


def hard_text(rows: Sequence[Row]) -> str:
    """Return the table by how far apart the classes are, and the worst tables."""
    rows = [row for row in rows if row["is_made"]]
    lines = [
        "| classes | draws | interval covers | its width | bound holds | begins with *About* |"
    ]
    lines.append("|---|---:|---:|---:|---:|---|")
    for name in CLASSES:
        some = [row for row in rows if row["classes"] == name]
        if not some:
            continue
        about = [row for row in some if row["meaning"] == "about"]
        right = f", right in {covered(about):.0%}" if about else ""
        width = np.mean([row["high"] - row["low"] for row in some])
        bound = np.mean([row["truth"] <= row["bound"] for row in some])
        lines.append(
            f"| {name} | {len(some)} | {covered(some):.0%} | {width:.2f} | {bound:.1%} | "
            f"{len(about) / len(some):.0%}{right} |"
        )
    by_table: dict[str, list[Row]] = {}
    for row in rows:
        by_table.setdefault(row["setting"].split(", ")[0], []).append(row)
    worst = sorted(by_table, key=lambda name: covered(by_table[name]))[:3]
    named = ", ".join(f"{name} {covered(by_table[name]):.0%}" for name in worst)
    high = [row for row in rows if row["estimate"] > 1.5 * row["truth"]]
    said = sum(row["meaning"] == "about" for row in high)
    summary = (
        f"Over all {len(rows)} draws of {len(by_table)} tables and families, the interval covers "
        f"{covered(rows):.1%}; the worst are {named}. The estimate is above one and a half times "
        f"the truth in {len(high)} draws, of which {said} begin with *About*."
    )
    return "\n" + "\n".join([*lines, "", summary]) + "\n"


def project_mnist(folder: Path, out: Path) -> str:
    """Save the principal components of the images once, for all processes to map."""

    def read(name: str, offset: int) -> NDArray[np.uint8]:
        try:
            with gzip.open(folder / name) as file:
                return np.frombuffer(file.read(), np.uint8)[offset:]
        except FileNotFoundError as error:
            raise SystemExit(f"The MNIST file {error.filename} does not exist.") from None

    out.mkdir(parents=True, exist_ok=True)
    if not (out / "mnist-labels.npy").exists():
        images = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 784) / 255.0
        projection = PCA(50, svd_solver="covariance_eigh", random_state=0)
        np.save(out / "mnist.npy", projection.fit_transform(images))
        np.save(out / "mnist-labels.npy", read("train-labels-idx1-ubyte.gz", 8))
    return str(out)


def picture(rows: Sequence[Row], path: Path) -> None:
    """Draw every interval for the share in the population, by setting and true share."""
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    figure, axes = plt.subplots(
        2,
        -(-len(settings) // 2),
        figsize=(2.6 * -(-len(settings) // 2), 5.0),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for ax, setting in zip(axes.flat, settings, strict=False):
        part = [r for r in rows if r["setting"] == setting and r["target"] == "population"]
        part.sort(key=lambda row: (row["prior"], row["estimate"]))
        for x, row in enumerate(part):
            holds = row["low"] <= row["prior"] <= row["high"]
            ax.plot([x, x], [row["low"], row["high"]], color="#0072B2" if holds else "#D55E00")
        truth = [row["prior"] for row in part]
        ax.plot(truth, color="black", linewidth=1, drawstyle="steps-mid")
        ax.set(title=TITLES.get(setting, setting), ylim=(0.0, 1.0), xticks=[])
    for ax in axes.flat[len(settings) :]:
        ax.set_axis_off()
    figure.supylabel("share of positives")
    figure.savefig(path, dpi=110)
    plt.close(figure)


# Tables -------------------------------------------------------------------------------------------


class Coverage(NamedTuple):
    """How often intervals and bounds held on some draws."""

    n_draws: int
    below: float  # how often the truth was below the interval
    above: float
    width: float
    bounds: list[str]  # how often the truth was above each bound

    @property
    def covered(self) -> float:
        """How often the interval covered the truth."""
        return 1.0 - self.below - self.above

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Coverage:
        """Count."""
        return cls(
            len(rows),
            float(np.mean([row["prior"] < row["low"] for row in rows])),
            float(np.mean([row["prior"] > row["high"] for row in rows])),
            float(np.mean([row["high"] - row["low"] for row in rows])),
            [
                f"{np.mean([row['prior'] > row[name] for row in rows]):.3f}"
                if name in rows[0]
                else ""
                for name in BOUNDS
            ],
        )


def printed(rows: Sequence[Row], cell: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table of all that was counted."""
    columns = [*cell, "draws", "truth below", "truth above", "covered", "width"]
    columns += ["above bound", "above asymptotic bound"]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for names, part in groups(rows, *cell):
        found = Coverage.of(part)
        yield (
            f"| {' | '.join(map(str, names))} | {len(part)} | {found.below:.3f} | "
            f"{found.above:.3f} | {found.covered:.3f} | {found.width:.3f} | "
            f"{' | '.join(found.bounds)} |"
        )


def by_target(rows: Sequence[Row]) -> list[Coverage]:
    """Return the coverage of the population and that of these rows."""
    return [Coverage.of([row for row in rows if row["target"] == target]) for target in TARGETS]


def usual(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table by setting, with misses on either side."""
    each = "covered | truth below | above | width"
    yield f"| Setting | population: {each} | these rows: {each} |"
    yield "|---" + "|---:" * 8 + "|"
    for (setting,), part in groups(rows, "setting"):
        if setting != "same":
            cells = [
                f"{c.covered:.3f} | {c.below:.3f} | {c.above:.3f} | {c.width:.2f}"
                for c in by_target(part)
            ]
            yield f"| {TITLES.get(setting, setting)} | {' | '.join(cells)} |"


def edges(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table by share: coverage of the population and of these rows, and width."""
    kinds = [names for names, _ in groups(rows, "sizes", "setting")]
    heads = [f"{size.replace('+', ' + ')} rows, {TITLES[name]}" for size, name in kinds]
    yield f"| Share | {' | '.join(heads)} |"
    yield "|---:" + "|---" * len(kinds) + "|"
    for (prior,), part in groups(rows, "prior"):
        cells = []
        for size, name in kinds:
            some = [r for r in part if (r["sizes"], r["setting"]) == (size, name)]
            population, sample = by_target(some)
            cells.append(f"{population.covered:.2f}, {sample.covered:.2f}, {population.width:.3f}")
        yield f"| {prior:g} | {' | '.join(cells)} |"


def by_size(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table by number of rows, setting and share."""
    yield "| Rows | Setting | Share | population: covered | width | these rows: covered | width |"
    yield "|---|---" + "|---:" * 5 + "|"
    for (size, setting, prior), part in groups(rows, "sizes", "setting", "prior"):
        cells = " | ".join(f"{c.covered:.2f} | {c.width:.3f}" for c in by_target(part))
        yield f"| {size.replace('+', ' + ')} | {TITLES[setting]} | {prior:g} | {cells} |"


LAYOUTS = {"usual": usual, "edges": edges, "few": by_size, "many": by_size}


def text_of(part: str, rows: Sequence[Row], draws: int) -> str:
    """Return a part's table, and how often the bounds failed in it."""
    failed = [
        [np.mean([row["prior"] > row[name] for row in some]) for _, some in groups(rows, "setting")]
        for name in BOUNDS
    ]
    n_failed = sum(row["prior"] > row[BOUNDS[0]] for row in rows)
    table = "\n".join(LAYOUTS[part](rows))
    return (
        f"\n{draws} draws for each share, setting and interval:\n\n{table}\n\nThe exact bound "
        f"failed in {n_failed:,} of {len(rows):,} draws, the large-sample bound in "
        f"{min(failed[1]):.1%} to {max(failed[1]):.1%} of the draws of a setting.\n"
    )


def write(parts: Sequence[str], folder: str, tables: str, out: Path, jobs: int) -> None:
    """Measure what the documentation shows, and replace it."""
    if "hard" in parts:
        tasks = hard_tasks(tables, version=code_version())
        rows = run(tasks, hard_estimate, out / "hard.jsonl", title="hard", jobs=jobs)
        text = hard_text(rows)
        print(text)
        replace_between(PAGE, HARD, text)
        replace_between(ROOT / "README.md", HARD, hard_summary(rows))
        record(HARD)
    for part in [part for part in parts if part != "hard"]:
        grid = DOCUMENTED[part]
        tasks = grid.tasks(folder, version=code_version())
        rows = run(tasks, estimate, out / f"{part}.jsonl", title=part, jobs=jobs)
        replace_between(PAGE, f"{SCRIPT}, {part}", text_of(part, rows, grid.draws))
        if part == "usual":
            picture(rows, PICTURE)
    if set(parts) >= set(DOCUMENTED):
        record(SCRIPT)


def main() -> None:
    """Run the estimates, print the coverage and draw the intervals."""
    parser = argparse.ArgumentParser(description="Coverage of intervals and bounds.")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["auto", "penl1"])
    parser.add_argument("--draws", type=int, default=60, help="draws per setting, prior and target")
    parser.add_argument("--edges", action="store_true", help="few positives, shares from 0 to .95")
    parser.add_argument("--settings", nargs="+", choices={*SETTINGS, *EDGE_SETTINGS})
    parser.add_argument("--sizes", nargs="+", help="numbers of rows, such as 200+1000")
    parser.add_argument("--priors", type=float, nargs="+")
    parser.add_argument("--mnist", type=Path, help="folder with the MNIST files")
    parser.add_argument("--max-rows", type=int, help="rows of each sample to fit classifiers to")
    parser.add_argument("--unscaled", action="store_true", help="do not standardize columns")
    parser.add_argument("--write", action="store_true", help="write to the documentation")
    parser.add_argument("--tables", type=Path, help="folder with Parquet files, for part hard")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=sorted(PARTS))
    parser.add_argument("--out", type=Path, default=Path("build/coverage"))
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    folder = project_mnist(options.mnist, options.out) if options.mnist else ""
    if options.write:
        if "usual" in options.parts and not folder:
            parser.error("--write needs --mnist FOLDER")
        write(options.parts, folder, str(options.tables or ""), options.out, options.jobs)
        return
    settings = options.settings or (EDGE_SETTINGS if options.edges else SETTINGS)
    grid = Grid(
        [*settings, *(MNIST if options.mnist else [])],
        options.sizes or (EDGE_SIZES if options.edges else SIZES),
        options.priors or (EDGE_PRIORS if options.edges else PRIORS),
        options.draws,
        options.methods,
        options.max_rows,
        not options.unscaled,
    )
    journal = options.out / "coverage.jsonl"
    rows = run(grid.tasks(folder), estimate, journal, title="Draws", jobs=options.jobs)
    write_table(rows, options.out / "coverage.csv")
    cell = ["method", "setting", "sizes", *(["prior"] if options.edges else []), "target"]
    print("\n".join(printed(rows, cell)))
    for (method,), part in groups(rows, "method"):
        picture(part, options.out / f"coverage-{method}.png")
    print(f"Written to {options.out}")


if __name__ == "__main__":
    main()
