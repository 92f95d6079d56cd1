"""MNIST experiment of du Plessis, Niu and Sugiyama (2017), section 5.3.

One digit against the rest, on four principal components, over a range of true priors: the squared
error of EN, PE, SB and penL1, and the misclassification rate of the classifier built with each
estimated prior, compared with the true prior. Then the paper's observation at digit 3, where a
wrong prior classifies better than the true one. The paper offers two explanations: the density
ratio is fitted to the same rows as the prior, and it is shrunk by its regularization. Independent
rows test the first, another classifier the second.

    python experiments/duplessis2017_mnist.py [--data FOLDER] [--repetitions 5] [--quick]

FOLDER/mnist contains the four gzipped IDX files; FOLDER can also be set by the environment
variable CLASSPRIOR_DATA. Otherwise, the data are downloaded from OpenML. Without a network
connection, the experiment prints a notice and runs on scikit-learn's small digits with fewer rows.
"""

from __future__ import annotations

import argparse
import gzip
import os
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from duplessis2017_mnist_report import (
    NAME,
    PAPERS,
    RATIOS,
    Array,
    draw_average,
    draw_digits,
    draw_oddity,
    report,
    summarize,
)
from harness import (
    Row,
    Task,
    run,
    seed,
    write_report,
    write_table,
)
from sklearn.datasets import fetch_openml, load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from classprior import (
    DensityRatio,
    ElkanNotoPrior,
    PearsonPrior,
    PenalizedL1Prior,
    PUClassifier,
    ScottBlanchardPrior,
)

DIMENSIONS = 4
PRIORS = tuple(round(0.1 * i, 1) for i in range(1, 10))
METHODS: dict[str, Any] = {
    "penl1": PenalizedL1Prior,
    "penl1-literal": PenalizedL1Prior.literal,
    "en": ElkanNotoPrior,
    "pe": PearsonPrior,
    "sb": ScottBlanchardPrior,
    "sb-kde": partial(ScottBlanchardPrior, scores="kde"),
}
SIZES = {"MNIST": (200, 1000, 1000), "scikit-learn's digits": (20, 40, 40)}
FACTORS = (1, 2, 4)  # multiples of the sample sizes


def load(source: str | None) -> tuple[str, Array, Array]:
    """Return the name of the data set, its principal components and its labels."""
    if source not in (None, "openml", "digits"):
        return _project("MNIST", *_read_folder(Path(str(source)) / "mnist"))
    if source != "digits":
        try:
            X, labels = fetch_openml("mnist_784", version=1, return_X_y=True, as_frame=False)
            return _project("MNIST", X, labels.astype(int))
        except (OSError, ValueError) as error:
            if source == "openml":
                raise SystemExit(f"OpenML is unavailable ({error}). Use --data FOLDER.") from None
            print(
                "MNIST is not available: neither --data nor CLASSPRIOR_DATA is set, and OpenML "
                f"is unavailable ({error}). Using scikit-learn's digits instead."
            )
    return _project("scikit-learn's digits", *load_digits(return_X_y=True))


def _read_folder(folder: Path) -> tuple[Array, Array]:
    def read(name: str) -> Array:
        with gzip.open(folder / name) as file:
            n_axes = file.read(4)[3]
            shape = np.frombuffer(file.read(4 * n_axes), ">u4").astype(int)
            return np.frombuffer(file.read(), np.uint8).reshape(shape)

    try:  # training images first, as on OpenML
        images, labels = (
            np.concatenate([read(f"{part}-{kind}.gz") for part in ("train", "t10k")])
            for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
        )
    except FileNotFoundError as error:
        raise SystemExit(f"The MNIST file {error.filename} does not exist.") from None
    return images.reshape(len(images), -1), labels


def _project(name: str, X: Array, labels: Array) -> tuple[str, Array, Array]:
    X = X / np.float32(X.max())
    Z = PCA(DIMENSIONS, svd_solver="covariance_eigh").fit_transform(X)
    return name, Z, labels.astype(int)


def measure(task: Task, Z: Array, labels: Array) -> Row:
    """Estimate the prior of one draw by every method and classify test rows with each."""
    random_state = seed(**{name: value for name, value in task.items() if name != "methods"})
    samples = draw_samples(task, labels, np.random.default_rng(random_state))
    P, U, test, P_fresh, U_fresh = (Z[rows] for rows in samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # estimates above 1
        priors = {m: estimate(m, P, U, random_state) for m in task["methods"]}
    priors["true"] = task["prior"]
    is_positive = labels[samples[2]] == task["digit"]
    ratios = {
        "same": density_ratio_at(test, P, U, DensityRatio(), random_state),
        "fresh": density_ratio_at(test, P_fresh, U_fresh, DensityRatio(), random_state),
        "logistic": density_ratio_at(test, P, U, cubic_logistic(), random_state),
    }
    return {
        "priors": priors,
        "error_rates": {
            kind: {m: error_rate(prior, ratio, is_positive) for m, prior in priors.items()}
            for kind, ratio in ratios.items()
        },
        "ratio_means": {kind: float(ratio.mean()) for kind, ratio in ratios.items()},
    }


def enlarge(task: Task, Z: Array, labels: Array) -> Row:
    """Estimate the prior by penL1 from one draw of larger samples."""
    random_state = seed(**task)
    samples = draw_samples(task, labels, np.random.default_rng(random_state), fresh=False)
    P, U = (Z[rows] for rows in samples[:2])
    return {m: estimate(m, P, U, random_state) for m in PAPERS[:2]}


def estimate(method: str, P: Array, U: Array, random_state: int) -> float:
    """Estimate the prior by one method."""
    return float(METHODS[method](random_state=random_state).fit_samples(P, U).prior_)


def draw_samples(
    task: Task, labels: Array, rng: np.random.Generator, fresh: bool = True
) -> list[Array]:
    """Return the row indices of P, U, a test sample with U's prior, another P and another U.

    The samples are disjoint, and each mixture contains exactly its share of positives.
    """
    is_positive = labels == task["digit"]
    positive, negative = (
        iter(rng.permutation(np.flatnonzero(part))) for part in (is_positive, ~is_positive)
    )

    def take(pool: Iterator[Any], n: int) -> list[Any]:
        rows = list(islice(pool, n))
        if len(rows) < n:
            raise SystemExit(f"Too few rows for digit {task['digit']}. Reduce the sample sizes.")
        return rows

    def mixture(n: int) -> list[Any]:
        n_hidden = round(task["prior"] * n)
        return take(positive, n_hidden) + take(negative, n - n_hidden)

    parts = [take(positive, task["positives"]), mixture(task["unlabeled"])]
    if fresh:
        parts += [
            mixture(task["test"]),
            take(positive, task["positives"]),
            mixture(task["unlabeled"]),
        ]
    return [np.array(part) for part in parts]


def density_ratio_at(X: Array, P: Array, U: Array, ratio: Any, random_state: int) -> Array:
    """Return the density ratio of the classifier: its decision function at prior 1, plus 1/2.

    One fit is enough for all priors: the classifier predicts positive where prior * ratio >= 1/2.
    """
    model = PUClassifier(prior=1.0, ratio=ratio, random_state=random_state)
    model.fit_samples(P, U)
    return np.asarray(model.decision_function(X) + 0.5)


def cubic_logistic() -> Any:
    """Return a flexible, calibrated classifier whose shrinkage differs from uLSIF's."""
    return make_pipeline(
        StandardScaler(), PolynomialFeatures(3), StandardScaler(), LogisticRegression(max_iter=2000)
    )


def error_rate(prior: float, ratio: Array, is_positive: Array) -> float:
    """Return the misclassification rate of the rule prior * ratio >= 1/2."""
    return float(np.mean((prior * ratio >= 0.5) != is_positive))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment, draw the figures and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--data",
        default=os.environ.get("CLASSPRIOR_DATA"),
        help="folder that contains mnist/*.gz (default: $CLASSPRIOR_DATA), 'openml' or 'digits'",
    )
    parser.add_argument("--digits", type=int, nargs="+", default=list(range(1, 10)))
    parser.add_argument("--priors", type=float, nargs="+", default=list(PRIORS))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--positives", type=int, help="rows (default: 200; digits: 20)")
    parser.add_argument("--unlabeled", type=int, help="rows (default: 1000; digits: 40)")
    parser.add_argument("--test", type=int, help="rows (default: 1000; digits: 40)")
    parser.add_argument(
        "--quick", action="store_true", help="two digits and three priors (less than a minute)"
    )
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=Path("build/reproduce"))
    options = parser.parse_args(arguments)
    if options.quick:
        options.digits, options.priors, options.repetitions = [1, 3], [0.1, 0.5, 0.9], 3
    data, Z, labels = load(options.data)
    sizes = dict(zip(("positives", "unlabeled", "test"), SIZES[data], strict=True))
    sizes |= {name: getattr(options, name) for name in sizes if getattr(options, name)}
    tasks = [
        {
            "experiment": NAME,
            "data": data,
            **sizes,
            "methods": list(METHODS),
            "digit": digit,
            "prior": prior,
            "repetition": repetition,
        }
        for repetition in range(options.repetitions)
        for digit in options.digits
        for prior in options.priors
    ]
    work = partial(measure, Z=Z, labels=labels)
    journal = options.out / f"{NAME}.jsonl"
    results = run(tasks, work, journal, title=data, jobs=options.jobs)

    # The small digits have too few rows for larger samples.
    larger = enlarged_tasks(tasks) if data == "MNIST" else []
    sizes_work = partial(enlarge, Z=Z, labels=labels)
    enlarged = run(larger, sizes_work, journal, title="Larger samples", jobs=options.jobs)

    rows = tidy(results)
    summary = summarize(rows)
    write_table(rows, options.out / f"{NAME}.csv")
    write_table(summary, options.out / f"{NAME}_summary.csv")
    figures = draw_digits(summary, options.digits, options.out)
    draw_average(rows, options.out)
    if 3 in options.digits:
        draw_oddity(rows, options.out)
    head = (
        f"## {data[:1].upper()}{data[1:]}, one digit against the rest\n\n{DIMENSIONS} principal "
        f"components; {sizes['positives']} positives, {sizes['unlabeled']} unlabeled and "
        f"{sizes['test']} test rows; digits {', '.join(map(str, options.digits))}; true priors "
        f"{', '.join(map(str, options.priors))}; {options.repetitions} draws each. All methods "
        "use the same draws. *penL1, literal* is `PenalizedL1Prior.literal()`. ± is one standard "
        "error.\n"
    )
    if data != "MNIST":
        head += "\n**This is not MNIST** but scikit-learn's digits: MNIST was not available.\n"
    write_report(options.out, NAME, f"{head}\n{report(rows, enlarged, figures)}")
    print(f"\n{(options.out / f'{NAME}.md').read_text(encoding='utf-8')}\nWritten to {options.out}")


def enlarged_tasks(tasks: Sequence[Task]) -> list[Task]:
    """Return tasks with larger samples at the smallest, middle and largest prior."""
    priors = sorted({task["prior"] for task in tasks})
    chosen = {priors[0], priors[len(priors) // 2], priors[-1]}
    return [
        {
            "experiment": f"{NAME}_sizes",
            "data": task["data"],
            "factor": factor,
            "positives": factor * task["positives"],
            "unlabeled": factor * task["unlabeled"],
            **{name: task[name] for name in ("digit", "prior", "repetition")},
        }
        for factor in FACTORS
        for task in tasks
        if task["prior"] in chosen
    ]


def tidy(results: Sequence[Row]) -> list[Row]:
    """Return one row per draw, density ratio and method."""
    return [
        {
            "digit": result["digit"],
            "prior": result["prior"],
            "repetition": result["repetition"],
            "ratio": kind,
            "method": method,
            "estimate": found,
            "squared_error": (found - result["prior"]) ** 2,
            "error_rate": result["error_rates"][kind][method],
            "ratio_mean": result["ratio_means"][kind],
        }
        for result in results
        for kind in RATIOS
        for method, found in result["priors"].items()
    ]


if __name__ == "__main__":
    main()
