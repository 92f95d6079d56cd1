"""MNIST experiment of du Plessis, Niu and Sugiyama (2017), section 5.3.

One digit against the rest, on four principal components, over a range of true priors: the squared
error of EN, PE, SB and penL1, and the misclassification rate of the classifier that each estimated
prior makes, beside that with the true prior. Then the paper's oddity at digit 3, where a wrong
prior classifies better than the true one, with its two explanations: the density ratio comes from
the same rows as the prior, and it is shrunk by its regularisation. Independent rows, and another
classifier, take each of them away.

    python experiments/duplessis2017_mnist.py [--data FOLDER] [--repetitions 5] [--quick]

FOLDER/mnist holds the four IDX files, gzipped. Without it the data come from OpenML, and without
a network the experiment runs on scikit-learn's own small digits, with fewer rows, and says so.
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

import matplotlib.pyplot as plt
import numpy as np
from figures import COLORS, MARKERS, NAMES, save
from harness import (
    Row,
    Task,
    groups,
    mean_and_error,
    run,
    seed,
    verdict,
    verdicts,
    write_report,
    write_table,
)
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.datasets import fetch_openml, load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from classprior import (
    PUClassifier,
    elkan_noto_prior,
    pearson_prior,
    penalized_l1,
    scott_blanchard_prior,
)

NAME = "duplessis2017_mnist"
BESIDE = Path(__file__).parents[2] / "shared" / "data"
DIMENSIONS = 4
PRIORS = tuple(round(0.1 * i, 1) for i in range(1, 10))
METHODS: dict[str, Any] = {
    "penl1": penalized_l1,
    "penl1-literal": partial(penalized_l1, leave_one_out=False),
    "en": elkan_noto_prior,
    "pe": pearson_prior,
    "sb": scott_blanchard_prior,
    "sb-kde": partial(scott_blanchard_prior, scores="kde"),
}
PAPERS = ("penl1", "penl1-literal", "en", "pe", "sb")  # in the paper's figures
RATIOS = {
    "same": "density ratio from the same rows",
    "fresh": "density ratio from independent rows",
    "logistic": "logistic regression, the same rows",
}
SIZES = {"MNIST": (200, 1000, 1000), "scikit-learn's digits": (20, 40, 40)}
FACTORS = (1, 2, 4)  # of the sample sizes
Array = NDArray[Any]


def load(source: str | None) -> tuple[str, Array, Array]:
    """Return the name of the data, their principal components and their labels."""
    if source is None and (BESIDE / "mnist").is_dir():
        source = str(BESIDE)
    if source not in (None, "openml", "digits"):
        return _project("MNIST", *_read_folder(Path(str(source)) / "mnist"))
    if source != "digits":
        try:
            X, labels = fetch_openml("mnist_784", version=1, return_X_y=True, as_frame=False)
            return _project("MNIST", X, labels.astype(int))
        except (OSError, ValueError) as error:
            if source == "openml":
                raise SystemExit(f"OpenML does not answer ({error}). Give --data FOLDER.") from None
            print("No MNIST here and OpenML does not answer: scikit-learn's digits instead.")
    return _project("scikit-learn's digits", *load_digits(return_X_y=True))


def _read_folder(folder: Path) -> tuple[Array, Array]:
    def read(name: str) -> Array:
        with gzip.open(folder / name) as file:
            n_axes = file.read(4)[3]
            shape = np.frombuffer(file.read(4 * n_axes), ">u4").astype(int)
            return np.frombuffer(file.read(), np.uint8).reshape(shape)

    try:  # in OpenML's order
        images, labels = (
            np.concatenate([read(f"{part}-{kind}.gz") for part in ("train", "t10k")])
            for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
        )
    except FileNotFoundError as error:
        raise SystemExit(f"Expected MNIST's four .gz files, found no {error.filename}.") from None
    return images.reshape(len(images), -1), labels


def _project(name: str, X: Array, labels: Array) -> tuple[str, Array, Array]:
    X = X / np.float32(X.max())
    Z = PCA(DIMENSIONS, svd_solver="covariance_eigh").fit_transform(X)
    return name, Z, labels.astype(int)


def measure(task: Task, Z: Array, labels: Array) -> Row:
    """Estimate the prior of one draw by every method, and classify fresh rows with each."""
    random_state = seed(**{name: value for name, value in task.items() if name != "methods"})
    samples = draw_samples(task, labels, np.random.default_rng(random_state))
    P, U, test, P_fresh, U_fresh = (Z[rows] for rows in samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # estimates beyond 1
        priors = {m: METHODS[m](P, U, random_state=random_state).prior for m in task["methods"]}
    priors["true"] = task["prior"]
    is_positive = labels[samples[2]] == task["digit"]
    ratios = {
        "same": density_ratio_at(test, P, U, None, random_state),
        "fresh": density_ratio_at(test, P_fresh, U_fresh, None, random_state),
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
    """Estimate the prior by penL1 from a draw of larger samples."""
    random_state = seed(**task)
    samples = draw_samples(task, labels, np.random.default_rng(random_state), fresh=False)
    P, U = (Z[rows] for rows in samples[:2])
    return {m: METHODS[m](P, U, random_state=random_state).prior for m in PAPERS[:2]}


def draw_samples(
    task: Task, labels: Array, rng: np.random.Generator, fresh: bool = True
) -> list[Array]:
    """Return the rows of P and U, and of test rows with U's prior, another P and another U.

    No row is in two of them, and each mixture holds exactly its share of positives.
    """
    is_positive = labels == task["digit"]
    positive, negative = (
        iter(rng.permutation(np.flatnonzero(part))) for part in (is_positive, ~is_positive)
    )

    def take(pool: Iterator[Any], n: int) -> list[Any]:
        rows = list(islice(pool, n))
        if len(rows) < n:
            raise SystemExit(f"Too few rows of digit {task['digit']} and others: ask for fewer.")
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
    """Return the classifier's ratio of densities: its decision at a prior of 1, plus 1/2.

    One fit serves every prior: the classifier says positive where prior times ratio reaches 1/2.
    """
    model = PUClassifier(prior=1.0, ratio=ratio, random_state=random_state)
    model.fit(np.vstack([P, U]), np.arange(len(P) + len(U)) < len(P))
    return np.asarray(model.decision_function(X) + 0.5)


def cubic_logistic() -> Any:
    """Return a classifier that is flexible, calibrated and shrunk in another way than uLSIF."""
    return make_pipeline(
        StandardScaler(), PolynomialFeatures(3), StandardScaler(), LogisticRegression(max_iter=2000)
    )


def error_rate(prior: float, ratio: Array, is_positive: Array) -> float:
    """Return the share of rows that are wrong where prior times ratio decides."""
    return float(np.mean((prior * ratio >= 0.5) != is_positive))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, draw and judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--data",
        default=os.environ.get("CLASSPRIOR_DATA"),
        help="folder with mnist/*.gz (also CLASSPRIOR_DATA), 'openml' or 'digits'",
    )
    parser.add_argument("--digits", type=int, nargs="+", default=list(range(1, 10)))
    parser.add_argument("--priors", type=float, nargs="+", default=list(PRIORS))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--positives", type=int, help="rows; 200, or 20 of the small digits")
    parser.add_argument("--unlabeled", type=int, help="rows; 1000, or 40 of the small digits")
    parser.add_argument("--test", type=int, help="rows; 1000, or 40 of the small digits")
    parser.add_argument(
        "--quick", action="store_true", help="two digits, three priors, within a minute"
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

    # The small digits have no rows to spare.
    larger = enlarged_tasks(tasks) if data == "MNIST" else []
    sizes_work = partial(enlarge, Z=Z, labels=labels)
    enlarged = run(larger, sizes_work, journal, title="Larger samples", jobs=options.jobs)

    rows = tidy(results)
    summary = summarise(rows)
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
        f"{', '.join(map(str, options.priors))}; {options.repetitions} draws of each. Every method "
        "sees the same draws. ± is a standard error.\n"
    )
    if data != "MNIST":
        head += "\n**This is not MNIST**, which was not to be had, but scikit-learn's digits.\n"
    write_report(options.out, NAME, f"{head}\n{report(rows, enlarged, figures)}")
    print(f"\n{(options.out / f'{NAME}.md').read_text()}\nWritten to {options.out}")


def enlarged_tasks(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks at the ends and in the middle of the priors, with larger samples."""
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
    """Return a row for every draw, kind of ratio and method."""
    return [
        {
            "digit": result["digit"],
            "prior": result["prior"],
            "repetition": result["repetition"],
            "ratio": kind,
            "method": method,
            "estimate": estimate,
            "squared_error": (estimate - result["prior"]) ** 2,
            "error_rate": result["error_rates"][kind][method],
            "ratio_mean": result["ratio_means"][kind],
        }
        for result in results
        for kind in RATIOS
        for method, estimate in result["priors"].items()
    ]


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Return mean and standard error of squared errors and error rates."""
    summary = []
    for key, part in groups(rows, "digit", "prior", "ratio", "method"):
        for quantity in ("squared_error", "error_rate"):
            # The estimate does not depend on the ratio, and the true prior has no error.
            if quantity == "squared_error" and (key[2] != "same" or key[3] == "true"):
                continue
            mean, error = mean_and_error([row[quantity] for row in part])
            summary.append(
                {
                    **dict(zip(("digit", "prior", "ratio", "method"), key, strict=True)),
                    "quantity": quantity,
                    "draws": len(part),
                    "mean": mean,
                    "standard_error": error,
                }
            )
    return summary


class Results:
    """Means over the draws, for the claims.

    Parameters
    ----------
    rows : sequence of dict
        Tidy rows.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.priors = sorted({row["prior"] for row in rows})
        self.digits = sorted({row["digit"] for row in rows})

    def values(self, method: str, quantity: str, ratio: str = "same", **where: Any) -> Array:
        """Return a quantity of a method in every draw, in the same order for every method."""
        return np.array(
            [
                row[quantity]
                for row in self._rows
                if row["method"] == method
                and row["ratio"] == ratio
                and all(row[name] == value for name, value in where.items())
            ]
        )

    def by_prior(self, method: str, quantity: str = "squared_error") -> list[float]:
        """Return the mean at each prior, over digits and repetitions."""
        return [float(self.values(method, quantity, prior=p).mean()) for p in self.priors]

    def gain(self, first: str, second: str, quantity: str, **where: Any) -> tuple[float, float]:
        """Return the mean of the difference, first minus second, draw by draw, and its error."""
        return mean_and_error(
            self.values(first, quantity, **where) - self.values(second, quantity, **where)
        )


def report(rows: Sequence[Row], enlarged: Sequence[Row], figures: Sequence[str]) -> str:
    """Return the claims with their verdicts, and the tables."""
    results = Results(rows)
    links = ", ".join(f"[{name.split('_')[-1]}]({name}.png)" for name in figures)
    average = f"[average]({NAME}_average.png)"
    lines = [
        *claims_about_priors(results, average),
        *claims_about_errors(results, links),
        *claims_about_oddity(results),
    ]
    tables = "\n".join(
        f"Mean {title} over the priors:\n\n{table(results, quantity)}"
        for title, quantity in (
            ("squared error", "squared_error"),
            ("misclassification rate", "error_rate"),
        )
    )
    tables += f"\nMean estimate minus true prior, over the digits:\n\n{bias_table(results)}"
    if enlarged:
        tables += f"\nMean squared error of penL1 from larger samples:\n\n{size_table(enlarged)}"
    images = [*figures, f"{NAME}_average"] + [f"{NAME}_oddity"] * (3 in results.digits)
    pictures = "\n\n".join(f"![{name.split('_')[-1]}]({name}.png)" for name in images)
    return f"{verdicts(lines)}\n{tables}\n{pictures}\n"


def claims_about_priors(results: Results, figure: str) -> list[str]:
    """Return the verdicts on the estimates of the prior."""
    errors = {method: results.by_prior(method) for method in METHODS}
    third = max(1, len(results.priors) // 3)
    ends = {m: (np.mean(e[:third]), np.mean(e[-third:])) for m, e in errors.items()}
    low, high = f"up to {results.priors[third - 1]:g}", f"from {results.priors[-third]:g}"
    lines = [
        verdict(
            max(errors[method]) < 0.02,
            f"{NAMES[method]} is accurate over the whole range (squared error below 0.02)",
            figure,
            f"{min(errors[method]):.4f} to {max(errors[method]):.4f}, worst at a prior of "
            f"{results.priors[int(np.argmax(errors[method]))]:g}; mean "
            + ", ".join(f"{NAMES[m]} {np.mean(errors[m]):.4f}" for m in (method, "en", "pe", "sb")),
        )
        for method in ("penl1", "penl1-literal")
    ]
    lines += [
        verdict(
            ends[m][0] > ends[m][1] and ends[m][0] > 2 * ends["penl1"][0],
            f"{NAMES[m]} is bad for small priors (twice penL1's squared error), better for large",
            figure,
            f"{NAMES[m]} {ends[m][0]:.4f} {low}, {ends[m][1]:.4f} {high}; penL1 "
            f"{ends['penl1'][0]:.4f} and {ends['penl1'][1]:.4f}",
        )
        for m in ("en", "pe")
    ]
    gain, error = results.gain("sb-kde", "sb", "squared_error")
    lines.append(
        verdict(
            gain > 2 * error,
            "SB with a density ratio beats SB with kernel densities",
            figure,
            f"squared error {np.mean(errors['sb']):.4f} against {np.mean(errors['sb-kde']):.4f}, "
            f"difference {gain:.4f} ± {error:.4f}",
        )
    )
    return lines


def claims_about_errors(results: Results, figure: str) -> list[str]:
    """Return the verdicts on misclassification."""
    excess = {m: results.gain(m, "true", "error_rate") for m in METHODS}
    cells, correlations = 0, []
    for digit in results.digits:
        for prior in results.priors:
            where = {"digit": digit, "prior": prior}
            squared, wrong = (
                [results.values(m, quantity, **where).mean() for m in PAPERS]
                for quantity in ("squared_error", "error_rate")
            )
            cells += wrong[int(np.argmin(squared))] <= wrong[int(np.argmax(squared))]
            if np.ptp(wrong) > 0.0:
                correlations.append(float(spearmanr(squared, wrong).statistic))
    correlation, error = mean_and_error(correlations)
    return [
        verdict(
            excess["penl1"][0] < 0.01,
            "the error rate with penL1 is close to that with the true prior (within 0.01)",
            figure,
            "above the true prior's by "
            + ", ".join(f"{NAMES[m]} {excess[m][0]:.4f} ± {excess[m][1]:.4f}" for m in PAPERS),
        ),
        verdict(
            correlation > 2 * error,
            "more accurate priors usually give lower error rates",
            figure,
            f"rank correlation of squared error and error rate over methods {correlation:.2f} ± "
            f"{error:.2f}; the best prior beats or equals the worst in {cells} of "
            f"{len(results.digits) * len(results.priors)} digits and priors",
        ),
    ]


def claims_about_oddity(results: Results) -> list[str]:
    """Return the verdicts on wrong priors that classify better, at digit 3 and at all digits."""
    lines = []
    if 3 in results.digits:
        lines += oddity(results, "digit 3", f"[digit 3]({NAME}_oddity.png)", digit=3)
    return lines + oddity(results, "all digits", f"[average]({NAME}_average.png)")


def oddity(results: Results, where: str, figure: str, **chosen: Any) -> list[str]:
    """Return whether the effect is there, and whether each explanation removes it."""

    def gains(kind: str) -> list[tuple[float, float]]:
        return [results.gain("true", m, "error_rate", ratio=kind, **chosen) for m in ("en", "pe")]

    def there(kind: str) -> bool:
        return any(gain > 2 * error for gain, error in gains(kind))

    def evidence(kind: str) -> str:
        means = results.values("true", "ratio_mean", ratio=kind, **chosen)
        found = ", ".join(
            f"{NAMES[m]} better by {gain:.4f} ± {error:.4f}"
            for m, (gain, error) in zip(("en", "pe"), gains(kind), strict=True)
        )
        rate = results.values("true", "error_rate", ratio=kind, **chosen).mean()
        return (
            f"{found} than the true prior's {rate:.4f}; mean ratio on test rows "
            f"{np.median(means):.2f} (median of the draws; population: 1)"
        )

    nothing = "" if there("same") else "; there is nothing to remove"
    return [
        verdict(
            there("same"),
            f"{where}: EN or PE classifies better than the true prior (by two standard errors)",
            figure,
            evidence("same"),
        ),
        *(
            verdict(
                there("same") and not there(kind),
                f"{where}: {title} removes that",
                figure,
                evidence(kind) + nothing,
            )
            for kind, title in (
                ("fresh", "a ratio from independent rows"),
                ("logistic", "another classifier for the ratio"),
            )
        ),
    ]


def table(results: Results, quantity: str) -> str:
    """Return means and standard errors of every method, a line for each digit and one for all."""
    methods = [*METHODS] + ["true"] * (quantity == "error_rate")
    lines = ["| digit | " + " | ".join(NAMES[m] for m in methods) + " |"]
    lines.append("|---" * (len(methods) + 1) + "|")
    for digit in [*results.digits, None]:
        where = {} if digit is None else {"digit": digit}
        cells = (mean_and_error(results.values(m, quantity, **where)) for m in methods)
        lines.append(
            f"| {'all' if digit is None else digit} | "
            + " | ".join(f"{mean:.4f} ± {error:.4f}" for mean, error in cells)
            + " |"
        )
    return "\n".join(lines) + "\n"


def bias_table(results: Results) -> str:
    """Return which way each method errs at each prior."""
    lines = ["| prior | " + " | ".join(NAMES[m] for m in METHODS) + " |"]
    lines.append("|---" * (len(METHODS) + 1) + "|")
    for prior in results.priors:
        cells = (results.values(m, "estimate", prior=prior).mean() - prior for m in METHODS)
        lines.append(f"| {prior:g} | " + " | ".join(f"{cell:+.3f}" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def size_table(rows: Sequence[Row]) -> str:
    """Return the squared error of both forms of penL1 for each size and prior."""
    lines = [
        "| rows | prior | " + " | ".join(NAMES[m] for m in PAPERS[:2]) + " |",
        "|---" * 4 + "|",
    ]
    for (positives, unlabeled, prior), part in groups(rows, "positives", "unlabeled", "prior"):
        cells = (mean_and_error([(row[m] - prior) ** 2 for row in part]) for m in PAPERS[:2])
        lines.append(
            f"| {positives} + {unlabeled} | {prior:g} | "
            + " | ".join(f"{mean:.4f} ± {error:.4f}" for mean, error in cells)
            + " |"
        )
    return "\n".join(lines) + "\n"


def draw_digits(summary: Sequence[Row], digits: Sequence[int], out: Path) -> list[str]:
    """Draw the paper's two figures: a line of panels for each digit."""
    names = []
    for part in ([d for d in digits if d <= 5], [d for d in digits if d > 5]):
        if not part:
            continue
        figure, axes = plt.subplots(
            len(part),
            2,
            figsize=(9, 2.4 * len(part) + 0.9),
            sharex=True,
            squeeze=False,
            layout="constrained",
        )
        for line, digit in zip(axes, part, strict=True):
            here = [row for row in summary if row["digit"] == digit and row["ratio"] == "same"]
            for ax, quantity in zip(line, ("squared_error", "error_rate"), strict=True):
                _draw_methods(ax, [row for row in here if row["quantity"] == quantity], PAPERS)
                ax.set_title(f"digit {digit}", fontsize="medium")
        _label(figure, axes)
        names.append(f"{NAME}_digits-{part[0]}-to-{part[-1]}")
        save(figure, out, names[-1])
    return names


def draw_average(rows: Sequence[Row], out: Path) -> None:
    """Draw the means over all digits, with every method."""
    summary = summarise([{**row, "digit": 0} for row in rows])
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 4.4), sharex=True, squeeze=False, layout="constrained"
    )
    for ax, quantity in zip(axes[0], ("squared_error", "error_rate"), strict=True):
        here = [row for row in summary if row["ratio"] == "same" and row["quantity"] == quantity]
        _draw_methods(ax, here, tuple(METHODS))
    _label(figure, axes)
    save(figure, out, f"{NAME}_average")


def draw_oddity(rows: Sequence[Row], out: Path) -> None:
    """Draw the error rates of digit 3 for the three kinds of ratio."""
    summary = summarise([row for row in rows if row["digit"] == 3])
    figure, axes = plt.subplots(
        1,
        len(RATIOS),
        figsize=(12, 4),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for ax, (kind, title) in zip(axes[0], RATIOS.items(), strict=True):
        here = [row for row in summary if row["ratio"] == kind and row["quantity"] == "error_rate"]
        _draw_methods(ax, here, ("penl1", "en", "pe"))
        ax.set_title(title, fontsize="medium")
        ax.set_xlabel("true prior")
    axes[0, 0].set_ylabel("misclassification rate, digit 3")
    _legend(figure, axes[0, 0])
    save(figure, out, f"{NAME}_oddity")


def _draw_methods(ax: Any, rows: Sequence[Row], methods: Sequence[str]) -> None:
    for (method,), part in groups(rows, "method"):
        if method not in (*methods, "true"):
            continue
        error = np.array([row["standard_error"] for row in part])
        ax.errorbar(
            [row["prior"] for row in part],
            [row["mean"] for row in part],
            np.where(np.isfinite(error), error, 0.0),
            fmt=MARKERS[method] + ("--" if method == "true" else "-"),
            color=COLORS[method],
            markersize=4,
            linewidth=1.2,
            label=NAMES[method],
        )


def _label(figure: Any, axes: Array) -> None:
    for squared, wrong in axes:
        squared.set(yscale="log", ylabel="squared error")
        wrong.set(ylabel="misclassification rate")
    for ax in axes[-1]:
        ax.set_xlabel("true prior")
    _legend(figure, axes[0, 1])


def _legend(figure: Any, ax: Any) -> None:
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))


if __name__ == "__main__":
    main()
