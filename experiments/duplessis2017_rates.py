"""Convergence rates of du Plessis, Niu and Sugiyama (2017), section 3.

Bandwidth, regularization and centers (from an independent sample) are fixed in advance, as the
theorems require. The data are overlapping uniforms, whose population is known. The experiment
measures the errors of the objective, of its coefficients and of its minimizer as functions of the
number of rows, for an infinite slope and for slope 1 (with and without active limits at the
optimum), and compares the deviation of the objective with the paper's bound. It also measures the
bias and standard deviation of the cross-validated estimators as functions of the class overlap.

    python experiments/duplessis2017_rates.py [--repetitions 100] [--largest 25600] [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from figures import COLORS, MARKERS, NAMES, save
from harness import (
    Interval,
    Row,
    Task,
    Verdict,
    above,
    below,
    groups,
    mean_and_error,
    run,
    seed,
    t_interval,
    verdict,
    verdicts,
    within,
    write_report,
    write_table,
)
from numpy.typing import NDArray

from classprior import PearsonPrior, PenalizedL1Prior
from classprior.datasets import make_overlapping_uniforms
from classprior.theory import deviation_bound, feasible_bound, fixed_objective

NAME = "duplessis2017_rates"
PRIOR = 0.7
OVERLAP = 0.25
SMALLEST = 100
N_CENTERS = 20
SIGMA = 0.2
THETA = 0.9  # above the prior; below it, all coefficients are zero and there is no error
DELTA = 0.05
# Slope and lam. In the population with slope 1, no limit is active at lam = 0.7, neither at
# theta = 0.9 nor at the minimizer; at lam = 0.01 some are active at both.
CASES = (("inf", 0.7), ("1", 0.7), ("inf", 0.01), ("1", 0.01))
CASE_COLORS = dict(zip(CASES, ("#0072B2", "#E69F00", "#009E73", "#D55E00"), strict=True))
CASE_MARKERS = dict(zip(CASES, "osD^", strict=True))
QUANTITIES = {
    "objective": "objective at θ = 0.9",
    "coefficients": "coefficients at θ = 0.9",
    "theta": "minimizer θ",
}
OVERLAPS = tuple(round(0.1 * i, 1) for i in range(10))
ESTIMATORS: dict[str, Any] = {
    "penl1": PenalizedL1Prior,
    "pe": partial(PearsonPrior, n_centers=100),
}
Solution = tuple[float, NDArray[np.float64], float]


def population_rows(n: int = 20_000) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return quantiles of the two populations; means over them are accurate to O(1/n²)."""
    n_hidden = round(PRIOR * n)

    def uniform(rows: int) -> NDArray[np.float64]:
        return (np.arange(rows) + 0.5)[:, None] / rows

    return uniform(n), np.vstack([uniform(n_hidden), 1.0 - OVERLAP + uniform(n - n_hidden)])


def fixed(slope: str, lam: float) -> dict[str, Any]:
    """Return the parameters that are fixed in advance."""
    samples = make_overlapping_uniforms(
        overlap=OVERLAP,
        prior=PRIOR,
        n_positive=N_CENTERS // 2,
        n_unlabeled=N_CENTERS // 2,
        random_state=1,
    )
    return {"centers": np.vstack(samples), "sigma": SIGMA, "lam": lam, "slope": float(slope)}


def solve(
    X_positive: NDArray[np.float64], X_unlabeled: NDArray[np.float64], slope: str, lam: float
) -> Solution:
    """Return the objective and coefficients at theta = 0.9, and the minimizer to 0.0001."""
    low, high = 0.0, 1.0
    for _ in range(2):  # the second grid refines the first around its best value
        thetas = np.linspace(low, high, 101)
        values, _coef = fixed_objective(X_positive, X_unlabeled, thetas=thetas, **fixed(slope, lam))
        best = int(np.argmin(values))
        low, high = thetas[max(best - 1, 0)], thetas[min(best + 1, 100)]
    (value,), (coef,) = fixed_objective(
        X_positive, X_unlabeled, thetas=[THETA], **fixed(slope, lam)
    )
    return float(value), coef, float(thetas[best])


def measure(task: Task, populations: dict[tuple[str, float], Solution]) -> Row:
    """Return the objective of one draw and the errors of objective, coefficients and minimizer."""
    X_positive, X_unlabeled = make_overlapping_uniforms(
        overlap=OVERLAP,
        prior=PRIOR,
        n_positive=task["rows"],
        n_unlabeled=task["rows"],
        random_state=seed(rows=task["rows"], repetition=task["repetition"]),
    )
    case = task["slope"], task["lam"]
    value, coef, theta = solve(X_positive, X_unlabeled, *case)
    true_value, true_coef, true_theta = populations[case]
    return {
        "value": value,
        "objective": abs(value - true_value),
        "coefficients": float(np.linalg.norm(coef - true_coef)),
        "theta": abs(theta - true_theta),
    }


def estimate(task: Task) -> Row:
    """Estimate the prior of one draw by one method."""
    random_state = seed(overlap=task["overlap"], repetition=task["repetition"])
    samples = make_overlapping_uniforms(
        overlap=task["overlap"], prior=PRIOR, random_state=random_state
    )
    estimator = ESTIMATORS[task["method"]](random_state=random_state)
    return {"estimate": estimator.fit_samples(*samples).prior_}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment, draw the figures and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=100, help="draws per size, at least 2")
    parser.add_argument("--largest", type=int, default=25_600, help="rows in the largest samples")
    parser.add_argument(
        "--quick", action="store_true", help="ten draws, up to 1,600 rows (less than a minute)"
    )
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=Path("build/reproduce"))
    options = parser.parse_args(arguments)
    repetitions = 10 if options.quick else options.repetitions
    largest = 1600 if options.quick else options.largest
    doublings = int(np.log2(largest / SMALLEST))
    tasks = [
        {"experiment": NAME, "slope": slope, "lam": lam, "rows": SMALLEST * 2**i, "repetition": r}
        for slope, lam in CASES
        for i in range(doublings + 1)
        for r in range(repetitions)
    ]
    overlap_tasks = [
        {"experiment": NAME, "method": method, "overlap": overlap, "repetition": r}
        for method in ESTIMATORS
        for overlap in OVERLAPS
        for r in range(repetitions)
    ]
    journal = options.out / f"{NAME}.jsonl"
    populations = {case: solve(*population_rows(), *case) for case in CASES}
    work = partial(measure, populations=populations)
    rows = run(tasks, work, journal, title="Rates", jobs=options.jobs)
    estimates = run(overlap_tasks, estimate, journal, title="Overlaps", jobs=options.jobs)

    write_table([*rows, *estimates], options.out / f"{NAME}.csv")
    errors, biases = summarize(rows), summarize_overlaps(estimates)
    write_table([*errors, *biases], options.out / f"{NAME}_summary.csv")
    draw_rates(errors, options.out)
    draw_overlaps(biases, options.out)
    write_report(options.out, NAME, report(errors, biases, repetitions))
    print(f"\n{(options.out / f'{NAME}.md').read_text(encoding='utf-8')}\nWritten to {options.out}")


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return the root mean square of each error and a quantile of the objective's deviation."""
    summary = []
    for (slope, lam, n), part in groups(rows, "slope", "lam", "rows"):
        for quantity in QUANTITIES:
            square, error = mean_and_error([row[quantity] ** 2 for row in part])
            root = float(np.sqrt(square))
            summary.append(
                {
                    "slope": slope,
                    "lam": lam,
                    "rows": n,
                    "quantity": quantity,
                    "draws": len(part),
                    "mean": root,
                    "standard_error": error / (2.0 * root),  # delta method
                }
            )
        values = np.array([row["value"] for row in part])
        deviations = np.abs(values - values.mean())
        summary.append(
            {
                "slope": slope,
                "lam": lam,
                "rows": n,
                "quantity": "deviation",
                "draws": len(part),
                "mean": float(np.quantile(deviations, 1.0 - DELTA)),
                # Standard error of the quantile for normally distributed values.
                "standard_error": float(1.86 * values.std(ddof=1) / np.sqrt(len(part))),
            }
        )
    return summary


def summarize_overlaps(rows: Sequence[Row]) -> list[Row]:
    """Return the mean and standard deviation of the estimates by method and overlap."""
    summary = []
    for (method, overlap), part in groups(rows, "method", "overlap"):
        values = [row["estimate"] for row in part]
        mean, error = mean_and_error(values)
        summary.append(
            {
                "method": method,
                "overlap": overlap,
                "quantity": "estimate",
                "draws": len(values),
                "mean": mean,
                "standard_error": error,
                "spread": float(np.std(values, ddof=1)),
            }
        )
    return summary


def fit_slope(part: Sequence[Row]) -> tuple[float, float]:
    """Return the slope of a weighted fit of log error to log rows, and its standard error."""
    x = np.log([row["rows"] for row in part])
    y = np.log([row["mean"] for row in part])
    deviation = np.array([row["standard_error"] / row["mean"] for row in part])
    design = np.column_stack([np.ones_like(x), x]) / deviation[:, None]
    covariance = np.linalg.inv(design.T @ design)
    return float((covariance @ design.T @ (y / deviation))[1]), float(np.sqrt(covariance[1, 1]))


def interval(row: Row) -> Interval:
    """Return the confidence interval of a row of the summary."""
    return t_interval(row["mean"], row["standard_error"], row["draws"])


def bound(slope: str, lam: float, n: int) -> float:
    """Return the paper's bound on the deviation at one theta."""
    feasible = None
    if slope != "inf":
        options = fixed(slope, lam)
        feasible = feasible_bound(
            population_rows()[1], options["centers"], options["sigma"], float(slope)
        )
    return deviation_bound(n, n, n_centers=N_CENTERS, lam=lam, delta=DELTA, feasible=feasible)


def label(slope: str, lam: float) -> str:
    """Return the label of a case."""
    if slope == "inf":
        return f"c = ∞, λ = {lam}"
    return f"c = {slope}, λ = {lam}, " + ("limits bind" if lam < 0.1 else "no limit binds")


def report(errors: Sequence[Row], biases: Sequence[Row], repetitions: int) -> str:
    """Return the claims with their verdicts, the bounds and the figures."""
    fits = {
        (slope, lam, quantity): fit_slope(part)
        for (slope, lam, quantity), part in groups(errors, "slope", "lam", "quantity")
        if quantity in QUANTITIES
    }
    exponents = {key: t_interval(*fit, repetitions) for key, fit in fits.items()}
    observed = {
        (r["slope"], r["lam"], r["rows"]): r for r in errors if r["quantity"] == "deviation"
    }
    deviations = {key: r["mean"] for key, r in observed.items()}
    factors = {key: bound(*key) / deviation for key, deviation in deviations.items()}
    sizes = sorted({n for *_, n in deviations})
    estimates = {(r["method"], r["overlap"]): r for r in biases}
    rates_figure, overlap_figure = f"[rates]({NAME}.png)", f"[overlaps]({NAME}_overlap.png)"

    def rates(cases: Sequence[tuple[str, float]]) -> str:
        return "; ".join(
            f"{label(*case)}: "
            + ", ".join(
                f"{q} {fits[(*case, q)][0]:.2f} ± {fits[(*case, q)][1]:.2f}" for q in QUANTITIES
            )
            for case in cases
        )

    def near_half(cases: Sequence[tuple[str, float]]) -> Verdict:
        return min(within(exponents[(*case, q)], -0.6, -0.4) for case in cases for q in QUANTITIES)

    infinite, free, bound_case = [CASES[0], CASES[2]], [CASES[1]], [CASES[3]]
    pen, pe = ([estimates[m, o] for o in OVERLAPS] for m in ("penl1", "pe"))
    lines = [
        verdict(
            near_half(infinite),
            "c = ∞: objective, coefficients and minimizer converge like 1/√n (exponent -1/2)",
            rates_figure,
            rates(infinite),
        ),
        verdict(
            near_half(free),
            "finite c, no active limits at the optimum: the same rate",
            rates_figure,
            rates(free),
        ),
        verdict(
            min(below(exponents[(*bound_case[0], q)], -0.25) for q in QUANTITIES),
            "finite c, active limits: at least n^(-1/4)",
            rates_figure,
            rates(bound_case),
        ),
        verdict(
            min(below(interval(r), bound(*key)) for key, r in observed.items()),
            f"the deviation bound holds (with probability {1 - DELTA:g})",
            rates_figure,
            f"the bound is {min(factors.values()):.0f} to {max(factors.values()):.0f} times the "
            f"observed {100 * (1 - DELTA):.0f}% quantile of the deviation",
        ),
        verdict(
            min(above(interval(p), PRIOR) for p in pe[1:]),
            "PE overestimates at every overlap above 0",
            overlap_figure,
            "means " + ", ".join(f"{p['mean']:.2f}" for p in pe),
        ),
        verdict(
            min(within(interval(p), PRIOR - 0.05, PRIOR + 0.05) for p in pen),
            "the mean of penL1 is within 0.05 of the truth at every overlap",
            overlap_figure,
            "means "
            + ", ".join(f"{p['mean']:.2f}" for p in pen)
            + "; standard deviations "
            + ", ".join(f"{p['spread']:.2f}" for p in pen),
        ),
    ]
    table = ["| rows | " + " | ".join(label(*case) for case in CASES) + " |", "|---" * 5 + "|"]
    table += [
        f"| {n} | "
        + " | ".join(
            f"{deviations[(*case, n)]:.2g}, {bound(*case, n):.2g}, {factors[(*case, n)]:.0f}"
            for case in CASES
        )
        + " |"
        for n in (sizes[0], sizes[-1])
    ]
    return (
        f"## Rates\n\nOverlapping uniforms, prior {PRIOR}, overlap {OVERLAP}; {N_CENTERS} centers "
        f"from an independent sample, bandwidth {SIGMA}, λ fixed; n = n' from {sizes[0]} to "
        f"{sizes[-1]}, {repetitions} draws each. Exponents are fitted to root mean square errors "
        f"relative to the population. All cases use the same draws. For c = ∞, the errors of "
        "objective and coefficients at the two values of λ differ only by a factor, so they are "
        f"not independent evidence.\n\n{verdicts(lines)}\nThe {100 * (1 - DELTA):.0f}% quantile "
        "of the objective's deviation from its mean, the bound, and the ratio of the bound to the "
        "quantile:\n\n"
        + "\n".join(table)
        + f"\n\n![Rates]({NAME}.png)\n\n![Overlaps]({NAME}_overlap.png)\n"
    )


def draw_rates(errors: Sequence[Row], out: Path) -> None:
    """Draw each error against the number of rows, and the deviation with its bound."""
    figure, axes = plt.subplots(2, 2, figsize=(10, 8), sharex=True, layout="constrained")
    panels = dict(zip([*QUANTITIES, "deviation"], axes.flat, strict=True))
    for (slope, lam, quantity), part in groups(errors, "slope", "lam", "quantity"):
        ax, case = panels[quantity], (slope, lam)
        n, mean, error = (
            np.array([row[name] for row in part]) for name in ("rows", "mean", "standard_error")
        )
        ax.errorbar(
            n * 1.04 ** (CASES.index(case) - 1.5),  # offset, because some cases coincide
            mean,
            error,
            fmt=CASE_MARKERS[case] + "-",
            color=CASE_COLORS[case],
            markersize=4,
            linewidth=1.2,
            label=label(*case),
        )
        if quantity == "deviation":
            ax.plot(n, [bound(*case, rows) for rows in n], "--", color=CASE_COLORS[case])
        elif case == CASES[0]:
            ax.plot(n, mean[0] / 2.0 * np.sqrt(n[0] / n), ":", color="black", label="1/√n")
    for quantity, name in QUANTITIES.items():
        panels[quantity].set(title=f"error of the {name}", ylabel="root mean square")
    panels["deviation"].set(
        title="objective's deviation from its mean (bounds dashed)",
        ylabel=f"{1 - DELTA:.0%} quantile",
    )
    for ax in axes.flat:
        ax.set(xscale="log", yscale="log")
    for ax in axes[-1]:
        ax.set_xlabel("rows in each sample")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    save(figure, out, NAME)


def draw_overlaps(biases: Sequence[Row], out: Path) -> None:
    """Draw the mean and standard deviation of the estimates against the overlap."""
    figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
    for shift, (method, part) in zip((-0.006, 0.006), groups(biases, "method"), strict=True):
        name = method[0]
        ax.errorbar(
            [row["overlap"] + shift for row in part],
            [row["mean"] for row in part],
            [row["spread"] for row in part],
            fmt=MARKERS[name],
            color=COLORS[name],
            capsize=3,
            label=f"{NAMES[name]}, mean ± standard deviation",
        )
    gamma = np.linspace(0.0, 0.9, 91)
    ax.plot(
        gamma,
        1.0 / ((1.0 - gamma) / PRIOR + gamma),
        ":",
        color=COLORS["pe"],
        label="PE in the population",
    )
    ax.axhline(PRIOR, color="black", linestyle="--", linewidth=1, label="truth")
    ax.set(xlabel="overlap of the classes", ylabel="estimate of the prior")
    figure.legend(loc="outside lower center", ncols=2)
    save(figure, out, f"{NAME}_overlap")


if __name__ == "__main__":
    main()
