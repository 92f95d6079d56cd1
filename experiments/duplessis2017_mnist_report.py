"""Report of the MNIST experiment: claims with verdicts, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from figures import COLORS, MARKERS, NAMES, save
from harness import (
    Interval,
    Row,
    Verdict,
    above,
    below,
    groups,
    mean_and_error,
    mean_interval,
    t_interval,
    verdict,
    verdicts,
)
from numpy.typing import NDArray
from scipy.stats import spearmanr

NAME = "duplessis2017_mnist"
PAPERS = ("penl1", "penl1-literal", "en", "pe", "sb")  # methods in the paper's figures
ALL = (*PAPERS, "sb-kde")
RATIOS = {
    "same": "density ratio from the same rows",
    "fresh": "density ratio from independent rows",
    "logistic": "logistic regression, the same rows",
}
Array = NDArray[Any]


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return the mean and standard error of squared errors and error rates."""
    summary = []
    for key, part in groups(rows, "digit", "prior", "ratio", "method"):
        for quantity in ("squared_error", "error_rate"):
            # Estimates do not depend on the density ratio, and the true prior has no error.
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
    """Access to results by method, quantity and setting.

    Parameters
    ----------
    rows : sequence of dict
        One row per draw, density ratio and method.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.priors = sorted({row["prior"] for row in rows})
        self.digits = sorted({row["digit"] for row in rows})

    def values(self, method: str, quantity: str, ratio: str = "same", **where: Any) -> Array:
        """Return a quantity of one method for all draws, in the same order for every method."""
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
        """Return the mean over digits and repetitions at each prior."""
        return [float(self.values(method, quantity, prior=p).mean()) for p in self.priors]

    def difference(self, first: str, second: str, quantity: str, **where: Any) -> Array:
        """Return the paired differences, first minus second."""
        return self.values(first, quantity, **where) - self.values(second, quantity, **where)

    def gain(self, first: str, second: str, quantity: str, **where: Any) -> tuple[float, float]:
        """Return the mean paired difference, first minus second, and its standard error."""
        return mean_and_error(self.difference(first, second, quantity, **where))

    def at_priors(self, method: str, quantity: str, priors: Sequence[float]) -> Array:
        """Return a quantity of one method for all draws at some of the priors."""
        return np.concatenate([self.values(method, quantity, prior=prior) for prior in priors])


def report(rows: Sequence[Row], enlarged: Sequence[Row], figures: Sequence[str]) -> str:
    """Return the claims with their verdicts, the tables and the figures."""
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
    errors = {method: results.by_prior(method) for method in ALL}
    third = max(1, len(results.priors) // 3)
    ends = {m: (np.mean(e[:third]), np.mean(e[-third:])) for m, e in errors.items()}
    small, large = (
        {m: results.at_priors(m, "squared_error", priors) for m in ALL}
        for priors in (results.priors[:third], results.priors[-third:])
    )
    low, high = f"up to {results.priors[third - 1]:g}", f"from {results.priors[-third]:g}"
    lines = [
        verdict(
            min(
                below(mean_interval(results.values(method, "squared_error", prior=prior)), 0.02)
                for prior in results.priors
            ),
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
            min(
                above(difference_interval(small[m], large[m]), 0.0),
                above(mean_interval(small[m] - 2.0 * small["penl1"]), 0.0),
            ),
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
            above(mean_interval(results.difference("sb-kde", "sb", "squared_error")), 0.0),
            "SB with a density ratio beats SB with kernel densities",
            figure,
            f"squared error {np.mean(errors['sb']):.4f} against {np.mean(errors['sb-kde']):.4f}, "
            f"difference {gain:.4f} ± {error:.4f}",
        )
    )
    return lines


def difference_interval(first: Array, second: Array) -> Interval:
    """Return the confidence interval of the difference of two independent means."""
    (one, error), (other, other_error) = mean_and_error(first), mean_and_error(second)
    draws = min(len(first), len(second))
    return t_interval(one - other, float(np.hypot(error, other_error)), draws)


def claims_about_errors(results: Results, figure: str) -> list[str]:
    """Return the verdicts on misclassification."""
    excess = {m: results.gain(m, "true", "error_rate") for m in ALL}
    # One method that is far off must not decide alone, and penL1 is there twice.
    fewer = [m for m in PAPERS if m != "penl1-literal"]
    (of_all, all_told), (of_fewer, fewer_told) = (
        rank_correlations(results, methods) for methods in (PAPERS, fewer)
    )
    return [
        verdict(
            below(mean_interval(results.difference("penl1", "true", "error_rate")), 0.01),
            "the error rate with penL1 is within 0.01 of the error rate with the true prior",
            figure,
            "excess over the true prior: "
            + ", ".join(f"{NAMES[m]} {excess[m][0]:.4f} ± {excess[m][1]:.4f}" for m in PAPERS),
        ),
        verdict(
            min(above(mean_interval(values), 0.0) for values in (of_all, of_fewer)),
            "more accurate priors usually give lower error rates",
            figure,
            f"rank correlation of squared error and error rate across methods {all_told}; "
            f"without {NAMES['penl1-literal']}: {fewer_told}",
        ),
    ]


def rank_correlations(results: Results, methods: Sequence[str]) -> tuple[list[float], str]:
    """Return the rank correlations of squared error and error rate, and their summary."""
    cells, correlations = 0, []
    for digit in results.digits:
        for prior in results.priors:
            where = {"digit": digit, "prior": prior}
            squared, wrong = (
                [results.values(m, quantity, **where).mean() for m in methods]
                for quantity in ("squared_error", "error_rate")
            )
            cells += wrong[int(np.argmin(squared))] <= wrong[int(np.argmax(squared))]
            if np.ptp(wrong) > 0.0:
                correlations.append(float(spearmanr(squared, wrong).statistic))
    correlation, error = mean_and_error(correlations)
    return correlations, (
        f"{correlation:.2f} ± {error:.2f} (the most accurate prior classifies at least as well as "
        f"the least accurate one in {cells} of {len(results.digits) * len(results.priors)} pairs "
        "of digit and prior)"
    )


def claims_about_oddity(results: Results) -> list[str]:
    """Return the verdicts on wrong priors that classify better, for digit 3 and all digits."""
    lines = []
    if 3 in results.digits:
        lines += oddity(results, "digit 3", f"[digit 3]({NAME}_oddity.png)", digit=3)
    return lines + oddity(results, "all digits", f"[average]({NAME}_average.png)")


def oddity(results: Results, where: str, figure: str, **chosen: Any) -> list[str]:
    """Return the verdicts on the effect and on its two explanations."""

    def gains(kind: str) -> list[tuple[float, float]]:
        return [results.gain("true", m, "error_rate", ratio=kind, **chosen) for m in ("en", "pe")]

    def there(kind: str) -> Verdict:
        return max(
            above(
                mean_interval(results.difference("true", m, "error_rate", ratio=kind, **chosen)),
                0.0,
            )
            for m in ("en", "pe")
        )

    def evidence(kind: str) -> str:
        means = results.values("true", "ratio_mean", ratio=kind, **chosen)
        found = ", ".join(
            f"{NAMES[m]} lower by {gain:.4f} ± {error:.4f}"
            for m, (gain, error) in zip(("en", "pe"), gains(kind), strict=True)
        )
        rate = results.values("true", "error_rate", ratio=kind, **chosen).mean()
        return (
            f"error rate of the true prior {rate:.4f}, {found}; mean ratio on test rows "
            f"{np.median(means):.2f} (median over draws; population value 1)"
        )

    nothing = {
        Verdict.HOLDS: "",
        Verdict.UNDECIDED: "; whether there is an effect to remove is undecided",
        Verdict.DOES_NOT_HOLD: "; there is no effect to remove",
    }[there("same")]
    return [
        verdict(
            there("same"),
            f"{where}: EN or PE classifies better than the true prior",
            figure,
            evidence("same"),
        ),
        *(
            verdict(
                min(there("same"), -there(kind)),
                f"{where}: {title} removes this effect",
                figure,
                evidence(kind) + nothing,
            )
            for kind, title in (
                ("fresh", "a density ratio from independent rows"),
                ("logistic", "another classifier"),
            )
        ),
    ]


def table(results: Results, quantity: str) -> str:
    """Return means and standard errors of every method, by digit and overall."""
    methods = [*ALL] + ["true"] * (quantity == "error_rate")
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
    """Return the bias of each method at each prior."""
    lines = ["| prior | " + " | ".join(NAMES[m] for m in ALL) + " |"]
    lines.append("|---" * (len(ALL) + 1) + "|")
    for prior in results.priors:
        cells = (results.values(m, "estimate", prior=prior).mean() - prior for m in ALL)
        lines.append(f"| {prior:g} | " + " | ".join(f"{cell:+.3f}" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def size_table(rows: Sequence[Row]) -> str:
    """Return the squared error of both versions of penL1 by sample size and prior."""
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
    """Draw the paper's two figures, one row of panels per digit."""
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
    """Draw the means over all digits for every method."""
    summary = summarize([{**row, "digit": 0} for row in rows])
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 4.4), sharex=True, squeeze=False, layout="constrained"
    )
    for ax, quantity in zip(axes[0], ("squared_error", "error_rate"), strict=True):
        here = [row for row in summary if row["ratio"] == "same" and row["quantity"] == quantity]
        _draw_methods(ax, here, tuple(ALL))
    _label(figure, axes)
    save(figure, out, f"{NAME}_average")


def draw_oddity(rows: Sequence[Row], out: Path) -> None:
    """Draw the error rates of digit 3 for the three density ratios."""
    summary = summarize([row for row in rows if row["digit"] == 3])
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
