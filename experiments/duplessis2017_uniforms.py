"""Numerical illustration of du Plessis, Niu and Sugiyama (2017), section 5.2, and Figure 1.

Positives are uniform on [0, 1], negatives on [1 - overlap, 2 - overlap], the prior is 0.7. The
paper says that PE overestimates at a small and at a large overlap, L1 only at the large one, and
penL1 at neither. penL1 runs with our defaults, and in the paper's literal form with the grids of
the public program ("penL1, literal"). In addition to the paper's six histograms, the experiment
compares the penalized Kullback-Leibler and Pearson divergences with their ordinary versions (a
claim for which the paper shows no results) and varies the slope of the L1-distance around its
critical value.

    python experiments/duplessis2017_uniforms.py [--draws 200] [--rows 300] [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from figures import COLORS, NAMES, save
from harness import (
    Row,
    Task,
    above,
    groups,
    mean_and_error,
    mean_interval,
    median_interval,
    run,
    seed,
    verdict,
    verdicts,
    within,
    write_report,
    write_table,
)
from numpy.typing import NDArray

from classprior import DivergencePrior, PearsonPrior, PenalizedL1Prior
from classprior.datasets import make_overlapping_uniforms

NAME = "duplessis2017_uniforms"
PRIOR = 0.7
OVERLAPS = (0.25, 0.75)
# Population values, by integration.
POPULATION = {
    ("pe", 0.25): 0.757,
    ("pe", 0.75): 0.903,
    ("l1", 0.25): 0.7,
    ("l1", 0.75): 1.0,
    ("penl1", 0.25): 0.7,
    ("penl1", 0.75): 0.7,
    ("penl1-literal", 0.25): 0.7,
    ("penl1-literal", 0.75): 0.7,
    ("kl", 0.25): 1.0,
    ("kl", 0.75): 1.0,
    ("pen-kl", 0.25): 0.7,
    ("pen-kl", 0.75): 0.7,
    ("pen-pearson", 0.25): 0.7,
    ("pen-pearson", 0.75): 0.7,
}
PENL1 = ("penl1", "penl1-literal")
PAPERS = ("pe", "l1", *PENL1)  # methods in the paper's figure
OTHERS = ("kl", "pen-kl", "pen-pearson")
PAIRS = (("pen-kl", "kl"), ("pen-pearson", "pe"), ("penl1", "l1"))  # penalized and ordinary
FACTORS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)  # multiples of the critical slope
SIZE_FACTORS = (4, 16)
GRID: dict[str, Any] = {"thetas": np.arange(1, 41) / 40, "n_centers": 100}
ESTIMATORS: dict[str, Any] = {
    "pe": partial(PearsonPrior, n_centers=100),
    "penl1": PenalizedL1Prior,
    "penl1-literal": PenalizedL1Prior.literal,
    "l1": partial(DivergencePrior, penalized=False, **GRID),
    "kl": partial(DivergencePrior, divergence="kl", penalized=False, **GRID),
    "pen-kl": partial(DivergencePrior, divergence="kl", **GRID),
    "pen-pearson": partial(DivergencePrior, divergence="pearson", **GRID),
}


def estimate(task: Task) -> Row:
    """Estimate the prior of one draw by one method."""
    random_state = seed(overlap=task["overlap"], rows=task["rows"], draw=task["draw"])
    samples = make_overlapping_uniforms(
        overlap=task["overlap"],
        prior=PRIOR,
        n_positive=task["rows"],
        n_unlabeled=task["rows"],
        random_state=random_state,
    )
    options = {"slope": task["slope"]} if "slope" in task else {}
    estimator = ESTIMATORS[task["method"]](random_state=random_state, **options)
    return {"estimate": estimator.fit_samples(*samples).prior_}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment, draw the figures and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--rows", type=int, default=300, help="rows in each sample")
    parser.add_argument("--quick", action="store_true", help="twelve draws (less than a minute)")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=Path("build/reproduce"))
    options = parser.parse_args(arguments)
    draws = 12 if options.quick else options.draws
    few = max(1, draws // 4)  # for the slower methods, which are not in the paper's figure
    common = {"experiment": NAME, "rows": options.rows}
    tasks = [
        {**common, "method": method, "overlap": overlap, "draw": draw}
        for overlap in OVERLAPS
        for methods, n in ((PAPERS, draws), (OTHERS, few))
        for method in methods
        for draw in range(n)
    ]
    sweep_tasks = [
        {**common, "method": "l1", "overlap": overlap, "slope": slope, "draw": draw}
        for overlap in OVERLAPS
        for slope in (factor * overlap / (1.0 - overlap) for factor in FACTORS)
        for draw in range(min(draws, max(2, few // 2)))
    ]
    size_tasks = [
        {
            **common,
            "rows": factor * options.rows,
            "method": method,
            "overlap": overlap,
            "draw": draw,
        }
        for method in PENL1
        for overlap in OVERLAPS
        for factor in SIZE_FACTORS
        for draw in range(few)
    ]
    journal = options.out / f"{NAME}.jsonl"
    rows = run(tasks, estimate, journal, title="Divergences", jobs=options.jobs)
    sweep = run(sweep_tasks, estimate, journal, title="Slopes", jobs=options.jobs)
    sizes = run(size_tasks, estimate, journal, title="More rows", jobs=options.jobs)

    write_table([*rows, *sweep, *sizes], options.out / f"{NAME}.csv")
    summary = summarize(rows) + summarize(sweep) + summarize(sizes)
    write_table(summary, options.out / f"{NAME}_summary.csv")
    draw_matching(options.out)
    draw_histograms(rows, PAPERS, options.out, f"{NAME}_histograms")
    draw_histograms(
        [row for row in rows if row["draw"] < few],
        ("kl", "pen-kl", "pe", "pen-pearson"),
        options.out,
        f"{NAME}_penalized",
    )
    draw_sweep(sweep, options.out)
    write_report(options.out, NAME, report([*rows, *sweep, *sizes], options.rows))
    print(f"\n{(options.out / f'{NAME}.md').read_text(encoding='utf-8')}\nWritten to {options.out}")


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return the mean, standard error and quartiles by method and setting."""
    summary = []
    for (method, overlap, slope, n), part in groups(
        [{"slope": "", **row} for row in rows], "method", "overlap", "slope", "rows"
    ):
        values = [row["estimate"] for row in part]
        mean, error = mean_and_error(values)
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
        summary.append(
            {
                "method": method,
                "overlap": overlap,
                "slope": slope,
                "rows": n,
                "draws": len(values),
                "mean": mean,
                "standard_error": error,
                "quarter": float(low),
                "median": float(median),
                "three_quarters": float(high),
            }
        )
    return summary


def report(results: Sequence[Row], rows: int) -> str:
    """Return the claims with their verdicts."""
    found = {  # draws by method, overlap, slope and number of rows
        key: np.array([row["estimate"] for row in part])
        for key, part in groups(
            [{"slope": None, **row} for row in results], "method", "overlap", "slope", "rows"
        )
    }
    plain = {(m, o): x for (m, o, slope, n), x in found.items() if slope is None and n == rows}
    more = {(m, n, o): x for (m, o, slope, n), x in found.items() if slope is None and n > rows}
    swept = {(o, slope): x for (_, o, slope, _), x in found.items() if slope is not None}
    largest = max(n for _, n, _ in more)
    draws = [len(plain["pe", 0.25]), len(plain["kl", 0.25]), len(next(iter(swept.values())))]
    critical = {overlap: overlap / (1.0 - overlap) for overlap in OVERLAPS}
    low = {o: swept[o, critical[o] / 4.0] for o in OVERLAPS}
    high = {o: swept[o, critical[o] * 4.0] for o in OVERLAPS}
    interval = {key: median_interval(x) for key, x in plain.items()}

    def decrease(penalized: str, ordinary: str, overlap: float) -> NDArray[np.float64]:
        few = len(plain[penalized, overlap])  # the same draws, perhaps fewer of them
        return plain[ordinary, overlap][:few] - plain[penalized, overlap]

    def with_error(values: NDArray[np.float64]) -> str:
        return "{:.3f} ± {:.3f}".format(*mean_and_error(values))

    def with_interval(values: NDArray[np.float64]) -> str:
        low_end, high_end = median_interval(values)
        return f"{np.median(values):.3f} ({low_end:.3f} to {high_end:.3f})"

    def medians(method: str) -> str:
        return " and ".join(with_interval(plain[method, o]) for o in OVERLAPS)

    histograms, penalized = (
        f"[histograms]({NAME}_histograms.png)",
        f"[penalized]({NAME}_penalized.png)",
    )
    lines = [
        verdict(
            min(above(interval["pe", o], PRIOR + 0.03) for o in OVERLAPS),
            "PE overestimates at both overlaps",
            histograms,
            f"medians PE {medians('pe')}; population 0.757 and 0.903",
        ),
        verdict(
            min(
                within(interval["l1", 0.25], PRIOR - 0.06, PRIOR + 0.06),
                above(interval["l1", 0.75], 0.85),
            ),
            "L1 is right at overlap 0.25 and overestimates at 0.75",
            histograms,
            f"medians L1 {medians('l1')}; population 0.7 and 1",
        ),
        *(
            verdict(
                min(within(interval[method, o], PRIOR - 0.06, PRIOR + 0.06) for o in OVERLAPS),
                f"{NAMES[method]} is right at both overlaps",
                histograms,
                f"medians {NAMES[method]} {medians(method)}; means "
                + " and ".join(with_error(plain[method, o]) for o in OVERLAPS),
            )
            for method in PENL1
        ),
        *(
            verdict(
                min(
                    within(median_interval(more[method, largest, o]), PRIOR - 0.03, PRIOR + 0.03)
                    for o in OVERLAPS
                ),
                f"{NAMES[method]} is right at both overlaps with more rows "
                f"({largest} + {largest}, within 0.03)",
                histograms,
                "; ".join(
                    f"{n} + {n} rows, overlap {o}: median {with_interval(x)}, quartiles "
                    f"{np.quantile(x, 0.25):.3f} and {np.quantile(x, 0.75):.3f}"
                    for (m, n, o), x in more.items()
                    if m == method
                ),
            )
            for method in PENL1
        ),
        verdict(
            min(
                above(mean_interval(decrease(pen, ordinary, o)), 0.0)
                for o in OVERLAPS
                for pen, ordinary in PAIRS
            ),
            "the penalty lowers the overestimate of every divergence",
            penalized,
            "; ".join(
                f"{NAMES[pen]} against {NAMES[ordinary]}: "
                + " and ".join(
                    f"median {np.median(plain[pen, o]):.3f} against "
                    f"{np.median(plain[ordinary, o]):.3f}, mean decrease "
                    f"{with_error(decrease(pen, ordinary, o))}"
                    for o in OVERLAPS
                )
                for pen, ordinary in PAIRS
            ),
        ),
        verdict(
            min(above(mean_interval(low[o] - high[o]), 0.1) for o in OVERLAPS),
            "L1 overestimates below the critical slope P1(D2)/P1(D1)",
            f"[slopes]({NAME}_slopes.png)",
            "; ".join(
                f"overlap {o} (critical slope {critical[o]:.2f}): median "
                f"{np.median(low[o]):.2f} at 1/4 of the critical slope, "
                f"{np.median(high[o]):.2f} at 4 times the critical slope, mean difference "
                f"{with_error(low[o] - high[o])}"
                for o in OVERLAPS
            ),
        ),
    ]
    return (
        f"## Overlapping uniforms\n\nPrior {PRIOR}, {rows} + {rows} rows, overlaps 0.25 and 0.75; "
        f"{draws[0]} draws for PE, L1 and penL1, {draws[1]} for the others and for more rows, "
        f"{draws[2]} for each slope. *penL1, literal* is `PenalizedL1Prior.literal()`, whose "
        f"estimates are multiples of 0.05. Medians have their 95% confidence interval in "
        f"parentheses; ± is one standard error.\n\n{verdicts(lines)}\n"
        f"![Histograms]({NAME}_histograms.png)\n\n"
        f"![Penalized]({NAME}_penalized.png)\n\n![Slopes]({NAME}_slopes.png)\n\n"
        f"![Matching]({NAME}_matching.png)\n"
    )


def draw_histograms(rows: Sequence[Row], methods: Sequence[str], out: Path, name: str) -> None:
    """Draw one panel per method and overlap."""
    shape = len(OVERLAPS), len(methods)
    figure, axes = plt.subplots(
        *shape, figsize=(3.2 * shape[1], 4.8), sharex=True, sharey="col", layout="constrained"
    )
    for (method, overlap), part in groups(rows, "method", "overlap"):
        if method not in methods:
            continue
        ax = axes[OVERLAPS.index(overlap), methods.index(method)]
        values = [row["estimate"] for row in part]
        ax.hist(values, bins=np.arange(0.2875, 1.02, 0.025), color=COLORS[method])
        ax.axvline(PRIOR, color="black", linestyle="--", linewidth=1, label="truth")
        ax.axvline(
            POPULATION[method, overlap], color="black", linestyle=":", label="in the population"
        )
        ax.set_title(f"{NAMES[method]}, overlap {overlap}", fontsize="medium")
    for ax in axes[-1]:
        ax.set_xlabel("estimate of the prior")
    for ax in axes[:, 0]:
        ax.set_ylabel("draws")
    axes[0, 0].legend(loc="upper left", fontsize="small")
    save(figure, out, name)


def draw_sweep(rows: Sequence[Row], out: Path) -> None:
    """Draw the estimates against the slope of the L1-distance."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
    for overlap, ax in zip(OVERLAPS, axes, strict=True):
        here = [(s, part) for (o, s), part in groups(rows, "overlap", "slope") if o == overlap]
        slopes = [slope for slope, _ in here]
        low, median, high = np.quantile(
            [[row["estimate"] for row in part] for _, part in here], [0.25, 0.5, 0.75], axis=1
        )
        ax.fill_between(slopes, low, high, color=COLORS["l1"], alpha=0.25, label="middle half")
        ax.semilogx(slopes, median, "o-", color=COLORS["l1"], label="median of L1")
        ax.axhline(PRIOR, color="black", linestyle="--", linewidth=1, label="truth")
        critical = overlap / (1.0 - overlap)
        ax.axvline(critical, color="black", linestyle=":", label="critical slope")
        ax.set(title=f"overlap {overlap}, critical slope {critical:.2g}")
        ax.set_xlabel("slope c of the L1-distance")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    axes[0].set_ylabel("estimate of the prior")
    save(figure, out, f"{NAME}_slopes")


def draw_matching(out: Path) -> None:
    """Draw the paper's Figure 1: full matching and partial matching."""
    x = np.linspace(-4.0, 6.0, 400)

    def normal(mean: float) -> NDArray[np.float64]:
        return np.exp(-((x - mean) ** 2) / 2.0) / np.sqrt(2.0 * np.pi)

    positive, negative = normal(0.0), normal(2.0)
    p = PRIOR * positive + (1.0 - PRIOR) * negative
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
    models = (
        ("full matching: both classes known", negative),
        ("partial matching: positives only", np.zeros_like(x)),
    )
    for ax, (title, other) in zip(axes, models, strict=True):
        ax.fill_between(x, p, color="#BBBBBB", label="p(x), unlabeled")
        for theta, style in ((0.4, ":"), (PRIOR, "-"), (0.9, "--")):
            model = theta * positive + (1.0 - theta) * other
            ax.plot(x, model, style, color=COLORS["penl1"], label=f"model, θ = {theta}")
        ax.set(title=title, xlabel="x")
        ax.legend(fontsize="small")
    axes[0].set_ylabel("density")
    save(figure, out, f"{NAME}_matching")


if __name__ == "__main__":
    main()
