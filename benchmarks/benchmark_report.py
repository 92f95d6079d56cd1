"""The tables, the text and the picture of the public benchmark."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from harness import Row, groups, mean_and_error
from numpy.typing import NDArray

from classprior.estimate import METHODS

Doubles = NDArray[np.float64]
DEFAULT = "auto"

COLUMNS = {
    "error": "absolute error",
    "more": f"more than `{DEFAULT}`",
    "bias": "bias",
    "covered": "interval covers",
    "width": "its width",
    "seconds": "seconds",
}
SHORT_COLUMNS = ("error", "covered", "width", "seconds")  # of the table in README
N_SHORT = 5  # our methods in that table
ERRORS = {"error": "standard_error", "more": "more_error"}  # columns with a standard error


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each method and suite."""
    found = []
    for (suite,), of_suite in groups(rows, "suite"):
        by_method = {method: part for (method,), part in groups(of_suite, "method")}
        for method, part in by_method.items():
            more = {} if method == DEFAULT else difference(part, by_method.get(DEFAULT, []))
            found.append({"method": method, "suite": suite, **figures(part), **more})
    return found


def difference(rows: Sequence[Row], of_default: Sequence[Row]) -> Row:
    """Return how much larger the errors are than those of the default on the same draws."""
    errors, others = (
        {
            (row["prior"], row["seed"]): abs(row["estimate"] - row["truth"])
            for row in part
            if "estimate" in row
        }
        for part in (rows, of_default)
    )
    both = {draw: errors[draw] - others[draw] for draw in errors if draw in others}
    if not both:
        return {}
    more, shares = np.array([*both.values()]), [share for share, _ in both]
    return {"more": float(more.mean()), "more_error": standard_error(more, shares)}


def standard_error(values: Doubles, shares: Sequence[float]) -> float:
    """Return the standard error of the mean over draws, whose shares are given, not random."""
    of_share = [values[np.equal(shares, share)] for share in dict.fromkeys(shares)]
    errors = [len(part) / len(values) * mean_and_error(part)[1] for part in of_share]
    return float(np.sqrt(np.sum(np.square(errors))))


def figures(rows: Sequence[Row]) -> Row:
    """Return errors, coverage and seconds of one method on one suite."""
    answered = [row for row in rows if "estimate" in row]
    found: Row = {"draws": len(rows), "answers": len(answered)}
    found["seconds"] = float(np.mean([row["seconds"] for row in rows]))
    if answered:
        errors = np.array([row["estimate"] - row["truth"] for row in answered])
        found["error"] = float(np.abs(errors).mean())
        found["standard_error"] = standard_error(np.abs(errors), [row["prior"] for row in answered])
        found["root"] = float(np.sqrt(np.mean(errors**2)))
        found["bias"] = float(errors.mean())
    truth = np.array([row["truth"] for row in answered])
    tiny = 1e-9  # counts divided by rows
    if answered and all("low" in row for row in answered):
        low, high = (np.array([row[name] for row in answered]) for name in ("low", "high"))
        found["covered"] = float(np.mean((low <= truth + tiny) & (truth <= high + tiny)))
        found["width"] = float(np.mean(high - low))
    if answered and all("bound" in row for row in answered):
        bound = np.array([row["bound"] for row in answered])
        found["bound_failed"] = float(np.mean(bound < truth - tiny))
        found["slack"] = float(np.mean(bound - truth))
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
            for name in (*COLUMNS, "bound_failed", "slack")
            if all(name in row for row in part)
        }
        for name in ("standard_error", "more_error"):
            errors = [row.get(name, np.inf) for row in part]
            mean[name] = float(np.sqrt(np.sum(np.square(errors))) / n_suites)
        found.append({"method": method, **mean})
    return sorted(found, key=lambda row: row["error"])


def table(rows: Sequence[Row], columns: Sequence[str] = tuple(COLUMNS)) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        "| method | " + " | ".join(COLUMNS[name] for name in columns) + " |",
        "|---" + "|---:" * len(columns) + "|",
    ]
    for row in rows:
        cells = [cell(row, name) for name in columns]
        lines.append(f"| {label(row['method'])} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cell(row: Row, name: str) -> str:
    """Return one figure as text."""
    if name not in row:
        return ""
    formats = dict.fromkeys(("more", "bias"), "+.3f") | {"seconds": ".2f"}
    formats["covered"] = ".0%"
    text = format(row[name], formats.get(name, ".3f"))
    error = row[ERRORS[name]] if name in ERRORS else np.inf
    return f"{text}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{error:.3f}" if np.isfinite(error) else text


def label(method: str) -> str:
    """Return a method's name in Markdown."""
    if method == DEFAULT:
        return f"**`{method}`**"
    return f"`{method}`" if is_ours(method) else method


def is_ours(method: str) -> bool:
    """Return whether a method is not another package's; -lr is logistic regression alone."""
    return method.removesuffix("-lr") in METHODS


def listed(names: Sequence[str]) -> str:
    """Return names as in a sentence."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def is_better(row: Row) -> bool:
    """Return whether the errors are smaller than the default's by two standard errors."""
    return "more" in row and bool(row["more"] < -2.0 * row["more_error"])


def findings(summary: Sequence[Row]) -> str:
    """Say where the default method is the best, where it is not, and who gave no answer."""
    ahead: list[str] = []
    behind: dict[str, list[str]] = {}
    for (suite,), part in groups([row for row in summary if "error" in row], "suite"):
        errors = {row["method"]: row["error"] for row in part}
        if DEFAULT not in errors:
            continue
        best = min(part, key=lambda row: row["error"])
        if best["error"] < errors[DEFAULT]:
            against = f"{best['error']:.3f} against {errors[DEFAULT]:.3f}"
            against += "" if is_better(best) else ", which may be chance"
            behind.setdefault(best["method"], []).append(f"*{suite}* ({against})")
        else:
            ahead.append(f"*{suite}*")
    lines = [
        f"The certified bound of {label(row['method'])} failed on {row['bound_failed']:.0%} of the "
        f"draws; on average, it was {row['slack']:.3f} above the share."
        for row in over_suites(summary)
        if "slack" in row
    ]
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
    """Return the most accurate methods and other packages, and where the default is beaten."""
    overall = over_suites(summary)
    first = [row["method"] for row in overall if row["method"] in METHODS][:N_SHORT]
    rows = [row for row in overall if row["method"] in first or row["method"] not in METHODS]
    draws = sum(int(row["draws"]) for row in summary if row["method"] == DEFAULT)
    beaten = {
        suite: [label(row["method"]) for row in part if is_better(row)]
        for (suite,), part in groups(summary, "suite")
    }
    losses = [f"*{suite}* ({', '.join(names)})" for suite, names in beaten.items() if names]
    return (
        f"On {len(beaten)} suites with {draws} draws, the {N_SHORT} most accurate of "
        f"{sum(row['method'] in METHODS for row in overall)} methods, `bbe` and `dedpul` with "
        f"logistic regression alone (`-lr`), and other packages:\n\n{table(rows, SHORT_COLUMNS)}\n"
        f"The time of `{DEFAULT}` includes its interval. By two standard errors, it is beaten on "
        f"{listed(losses or ['no suite'])}."
    )


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
    size = 2.2 + max(3.0, 0.72 * len(suites)), 1.5 + 0.32 * len(methods)
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
    figure.suptitle("Mean absolute error; the smallest is bold", color=gray, fontsize=11)
    figure.savefig(path, dpi=120, transparent=True)
    plt.close(figure)
