"""Coverage of the confidence intervals and of the certified upper bounds.

    python benchmarks/interval_coverage.py [--draws 60] [--methods auto penl1] [--mnist FOLDER]
        [--unscaled]
    python benchmarks/interval_coverage.py --edges [--draws 100]
    python benchmarks/interval_coverage.py --edges --sizes 400+20000 --max-rows 400 --methods auto

The prior is identifiable in all settings but one: overlapping uniforms, normals 4 and 2 standard
deviations apart in 2 columns, normals in 10 columns, betas and, with --mnist FOLDER (the IDX
files), one digit against the rest in 4 and 50 dimensions. In the setting "same", both classes have
the same distribution, and only the bound can be right. With --edges, the normals are 6 and 2
standard deviations apart, with few positives and shares from 0 to 0.95, and each share is reported.
With --max-rows, the classifiers are fitted to a few of the rows.
To cover the share in the population, the number of
hidden positives is drawn from a binomial distribution; to cover the share in these rows, it is
fixed. The bound does not depend on the method and is measured with "auto". The script reports both
tails and draws every interval. An interrupted run resumes where it stopped.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, estimate_prior
from classprior.estimate import METHODS

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from harness import Row, Task, groups, run, seed, write_table

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
        ax.set(title=setting, ylim=(0.0, 1.0), xticks=[])
    for ax in axes.flat[len(settings) :]:
        ax.set_axis_off()
    figure.supylabel("share of positives")
    figure.savefig(path, dpi=110)
    plt.close(figure)


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
    parser.add_argument("--out", type=Path, default=Path("build/coverage"))
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    settings = options.settings or (EDGE_SETTINGS if options.edges else SETTINGS)
    settings = [*settings, *(MNIST if options.mnist else [])]
    sizes = options.sizes or (EDGE_SIZES if options.edges else SIZES)
    priors = options.priors or (EDGE_PRIORS if options.edges else PRIORS)
    folder = project_mnist(options.mnist, options.out) if options.mnist else ""
    tasks = [
        {
            "method": method,
            "scale": not options.unscaled,
            "setting": setting,
            "sizes": size,
            "max_rows": options.max_rows,
            "prior": prior,
            "target": target,
            "draw": i,
            "folder": folder if setting.startswith("MNIST") else "",
        }
        for method in options.methods
        for i in range(options.draws)
        for setting in settings
        for size in sizes
        for prior in priors
        for target in TARGETS
    ]
    rows = run(tasks, estimate, options.out / "coverage.jsonl", title="Draws", jobs=options.jobs)
    write_table(rows, options.out / "coverage.csv")
    cell = ["method", "setting", "sizes", *(["prior"] if options.edges else []), "target"]
    columns = [*cell, "draws", "truth below", "truth above", "covered", "width"]
    columns += ["above bound", "above asymptotic bound"]
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    for names, part in groups(rows, *cell):
        below = np.mean([row["prior"] < row["low"] for row in part])
        above = np.mean([row["prior"] > row["high"] for row in part])
        width = np.mean([row["high"] - row["low"] for row in part])
        bounds = [
            f"{np.mean([row['prior'] > row[name] for row in part]):.3f}" if name in part[0] else ""
            for name in BOUNDS
        ]
        print(
            f"| {' | '.join(map(str, names))} | {len(part)} | {below:.3f} | {above:.3f} | "
            f"{1.0 - below - above:.3f} | {width:.3f} | {bounds[0]} | {bounds[1]} |"
        )
    for (method,), part in groups(rows, "method"):
        picture(part, options.out / f"coverage-{method}.png")
    print(f"Written to {options.out}")


if __name__ == "__main__":
    main()
