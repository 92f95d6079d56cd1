"""Sensitivity of the estimate and the classifier to settings and to mislabeled positives.

    python experiments/sensitivity.py [--quick] [--out build/sensitivity] [--write]

The data are two normal classes in two columns, 2.5 standard deviations apart, with a true share of
0.3. The script varies one setting at a time: bandwidth, regularization and number of centers, both
in the penalized L1 estimate and in the density ratio of the classifier, and the share of known
positives that are actually random unlabeled rows, for which the large-sample limit of any estimator
is known. An interrupted run resumes where it stopped. With --write, the picture in
docs/explanation/accuracy.md is replaced.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from figures import save
from freshness import record
from harness import Row, Task, groups, mean_and_error, replace_between, run, seed, write_table

from classprior import AutoPrior, DensityRatio, PenalizedL1Prior, PUClassifier
from classprior.sensitivity import sensitivity_curve

ROOT = Path(__file__).parents[1]
SCRIPT = "experiments/sensitivity.py"
CAPTION = """\
![Estimate and error rate against bandwidth, regularization, number of centers and share of wrong \
positives](../images/sensitivity.png)

*penL1 on two classes 2.5 standard deviations apart, 300 known positives, 1,000 unlabeled rows, \
true share 0.3. Means and standard errors of {} draws \
(`python experiments/sensitivity.py --write`).*"""
PRIOR = 0.3
N_POSITIVE, N_UNLABELED = 300, 1000
PARAMETERS: dict[str, tuple[float, ...]] = {
    "sigmas": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4),
    "lams": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
    "n_centers": (10, 30, 100, 300, 1000),
    "foreign_positives": (0.0, 0.05, 0.1, 0.2, 0.3, 0.4),
}
LABELS = {
    "sigmas": "bandwidth σ",
    "lams": "regularization λ",
    "n_centers": "centers",
    "foreign_positives": "share of foreign positives",
}
ESTIMATE, AUTO = "penL1 estimate", "auto estimate"
# Error rates when the setting is changed in the prior estimate or in the density ratio.
ERROR, ERROR_OF_RATIO = "error rate", "error rate, set in the ratio"
STYLES = {
    ESTIMATE: ("o-", "#0072B2"),
    AUTO: ("s-", "#D55E00"),
    ERROR: ("^-", "#009E73"),
    ERROR_OF_RATIO: ("v:", "#CC79A7"),
}


def curves(task: Task) -> Row:
    """Return the estimates and error rates of one draw at one value of one parameter."""
    random_state = seed(draw=task["draw"])
    rng = np.random.default_rng(random_state)
    hidden = round(PRIOR * N_UNLABELED)
    known = rng.normal(size=(N_POSITIVE, 2))
    pile = rng.normal(size=(N_UNLABELED, 2))
    pile[hidden:, 0] += 2.5
    name, value = task["parameter"], task["value"]
    model = PUClassifier(prior=PenalizedL1Prior(), ratio=DensityRatio())

    def at(estimator: object, param_name: str) -> tuple[float, float]:
        curve = sensitivity_curve(
            estimator,
            known,
            pile,
            param_name=param_name,
            param_range=[value],
            is_positive=np.arange(N_UNLABELED) < hidden,
            n_repeats=1,
            random_state=random_state,
        )
        errors = np.nan if curve.error_rates is None else curve.error_rates[0, 0]
        return float(curve.priors[0, 0]), float(errors)

    if name == "foreign_positives":
        prior, error = at(model, name)
        auto, _ = at(AutoPrior(n_repeats=1, n_resamples=20), name)
        return {ESTIMATE: prior, AUTO: auto, ERROR: error}
    prior, error = at(model, f"prior__{name}")
    _, error_of_ratio = at(model, f"ratio__{name}")
    return {ESTIMATE: prior, ERROR: error, ERROR_OF_RATIO: error_of_ratio}


def draw(rows: list[Row], out: Path) -> None:
    """Draw one panel per parameter."""
    names = list(dict.fromkeys(row["parameter"] for row in rows))
    figure, axes = plt.subplots(
        1, len(names), figsize=(3.25 * len(names), 3.4), layout="constrained", sharey=True
    )
    axes = np.atleast_1d(axes)
    for ax, name in zip(axes, names, strict=True):
        for label, (style, color) in STYLES.items():
            of_parameter = [r for r in rows if r["parameter"] == name and label in r]
            points = [
                (value, *mean_and_error([row[label] for row in part]))
                for (value,), part in groups(of_parameter, "value")
            ]
            if points:
                x, y, error = np.array(sorted(points)).T
                ax.errorbar(
                    x, y, error, fmt=style, color=color, markersize=4, linewidth=1.2, label=label
                )
        ax.axhline(PRIOR, color="black", linestyle="--", linewidth=1, label="true share")
        if name == "foreign_positives":
            shares = np.array(PARAMETERS[name])
            limit = PRIOR / (1.0 - shares * (1.0 - PRIOR))
            ax.plot(shares, limit, color="black", linewidth=1, label="limit of any method")
        else:
            ax.set_xscale("log")
        ax.set(xlabel=LABELS[name], ylim=(0.0, 0.65))
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("share of the unlabeled rows")
    axes[0].legend(fontsize="small")
    axes[-1].legend(fontsize="small")
    save(figure, out, "sensitivity")


def write(out: Path, n_draws: int) -> None:
    """Put the picture into the documentation."""
    shutil.copy(out / "sensitivity.png", ROOT / "docs/images/sensitivity.png")
    replace_between(ROOT / "docs/explanation/accuracy.md", SCRIPT, f"\n{CAPTION.format(n_draws)}\n")
    record(SCRIPT)


def main() -> None:
    """Run the fits, print a table and draw the figure."""
    parser = argparse.ArgumentParser(description="Sensitivity to settings and wrong labels.")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--parameters", nargs="+", choices=PARAMETERS, default=list(PARAMETERS))
    parser.add_argument("--quick", action="store_true", help="three draws")
    parser.add_argument("--out", type=Path, default=Path("build/sensitivity"))
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--write", action="store_true", help="write to the documentation")
    options = parser.parse_args()
    tasks: list[Task] = [
        {"parameter": name, "value": value, "draw": i}
        for i in range(3 if options.quick else options.draws)
        for name in options.parameters
        for value in PARAMETERS[name]
    ]
    rows = run(tasks, curves, options.out / "sensitivity.jsonl", title="Fits", jobs=options.jobs)
    write_table(rows, options.out / "sensitivity.csv")
    print("| parameter | value | penL1 | auto | error rate | error rate, set in the ratio |")
    print("|---" * 6 + "|")
    for (name, value), part in groups(rows, "parameter", "value"):
        cells = [
            f"{np.mean([row[label] for row in part]):.3f}" if label in part[0] else ""
            for label in STYLES
        ]
        print(f"| {LABELS[name]} | {value:g} | " + " | ".join(cells) + " |")
    draw(rows, options.out)
    print(f"Written to {options.out}")
    if options.write:
        write(options.out, len({row["draw"] for row in rows}))


if __name__ == "__main__":
    main()
