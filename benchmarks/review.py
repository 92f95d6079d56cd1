"""Whether the limits from checked rows hold, and how wide they are.

    python benchmarks/review.py [FOLDER] [--plans 15] [--journal review.csv] [--write]

Known positives and unlabeled rows with known labels are drawn from scikit-learn's bundled tables
and from those in FOLDER (Parquet files with a column ``target``; by default
``$CLASSPRIOR_DATA/tabular``). In "biased" settings, the known positives are not a random sample of
the positives. For each setting and budget, rows are drawn by many plans, and their labels are the
answers. The script prints how often the limits contain the truth

all       after all rows of the plan,
stopped   at the worst of several moments, one of them random: the answer counts as wrong if the
          limits were wrong at any of them, so no rule for stopping can do worse,
added     after as many rows again were added,
recall    how often the lower limits of recall hold at all cutoffs together (every fourth plan),
read      how often the number of rows to read contains the planned share of the positives, 80% for
          up to 100 rows and 95% for more, and in how many plans there is a number (the same plans),

and the mean width relative to that of a simple random sample with the best exact limits of three
(Clopper-Pearson, Blaker and Sterne, for the hypergeometric distribution), and to both ends of the
forecast.
An interrupted run resumes from its journal; ``--write`` puts a summary into the documentation.
``--exact`` also computes the coverage of plans of 50 rows from all results that they may have: few
plans for each setting cannot tell 0.95 from 0.9.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from classprior import Estimation
from classprior.review import (
    CheckedEstimate,
    Design,
    ReviewPlan,
    evaluate_review,
    limits_of_count,
    plan_review,
)

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from benchmark_suites import Classes, of_parquet, of_scikit_learn
from freshness import record
from harness import replace_between
from scipy import stats

SCRIPT = "benchmarks/review.py"
GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "decision.md"
BUDGETS = (50, 100, 400, 1000)
N_KNOWN, N_UNLABELED = 300, 2000
TABLES = (
    *("optdigits", "landsat", "spambase", "letter", "mushroom", "magic", "adult", "bank"),
    *("waveform", "wine_quality", "pageblocks", "covertype", "pima", "twonorm"),
)
#: Shares, and how strongly a column decides which positives are known.
KINDS = ((0.03, 0.0), (0.1, 0.0), (0.3, 0.0), (0.5, 0.0), (0.1, 1.0), (0.3, 1.0))
ERROR = 0.05
EVERY = 4  # plans: recall is computed for one of so many
HELD = ("all", "stopped", "added", "recall", "read")
FIELDS = (
    *("table", "share", "bias", "budget", "seed", "auc", "prior", "strata", "width"),
    *("forecast", "largest", "best_plain", "all", "stopped", "added", "recall", "read"),
    *("to_read", "share_found"),
)


class Scored(NamedTuple):
    """Unlabeled rows with their labels, scores and probabilities."""

    is_positive: NDArray[np.bool_]
    scores: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    known: NDArray[np.float64]


def classes(table: str, folder: Path | None) -> Classes:
    """Return the rows of two classes."""
    if table in ("digits", "breast cancer"):
        return of_scikit_learn(table)
    assert folder is not None
    return of_parquet(folder / f"{table}.parquet")


@cache
def scored(table: str, share: float, bias: float, folder: Path | None) -> Scored:
    """Draw two samples and estimate the probabilities of the unlabeled rows."""
    yes, no = classes(table, folder)
    rng = np.random.default_rng(1)
    fit = min(
        1.0,
        len(yes) / (N_KNOWN + share * N_UNLABELED + 1),
        len(no) / ((1 - share) * N_UNLABELED + 1),
    )
    n_known, n = int(fit * N_KNOWN), int(fit * N_UNLABELED)
    column = np.argmax([len(np.unique(values)) for values in yes.T])
    z = (yes[:, column] - yes[:, column].mean()) / (yes[:, column].std() + 1e-9)
    weights = np.exp(bias * z.clip(-3, 3))
    known = rng.choice(len(yes), n_known, replace=False, p=weights / weights.sum())
    rest = np.setdiff1d(np.arange(len(yes)), known)
    hidden = rng.choice(rest, round(share * n), replace=False)
    negative = rng.choice(len(no), n - len(hidden), replace=False)
    order = rng.permutation(n)
    X = np.vstack([yes[hidden], no[negative]])[order]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Estimation.of(yes[known], X, random_state=0, n_resamples=20)
        return Scored(
            (np.arange(n) < len(hidden))[order],
            found.scores(),
            found.probabilities(),
            found.known_scores(),
        )


@cache
def best_plain_width(n_rows: int, n_positive: int, budget: int) -> float:
    """Return the mean width of the best exact limits from a simple random sample."""
    M, x = np.arange(n_rows + 1)[:, None], np.arange(budget + 1)
    p = stats.hypergeom(n_rows, M, budget).pmf(x)
    below, above = np.cumsum(p, axis=1), np.cumsum(p[:, ::-1], axis=1)[:, ::-1]
    accepted = [
        (below > ERROR / 2) & (above > ERROR / 2),
        p_values(p, np.minimum(below, above)) > ERROR,
        p_values(p, p) > ERROR,
    ]
    is_there = p > 0.0
    widths = []
    for accept in accepted:
        inside = accept & is_there
        first, last = inside.argmax(axis=0), n_rows - inside[::-1].argmax(axis=0)
        widths.append(float(p[n_positive] @ (last - first)) / n_rows)
    return min(widths)


def p_values(p: NDArray[np.float64], order: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each number of positives, the probability of results as extreme as each."""
    result = np.empty_like(p)
    for row, key in enumerate(order):
        places = np.argsort(key, kind="stable")
        ends = np.searchsorted(key[places], key * (1.0 + 1e-9), side="right") - 1
        result[row] = np.cumsum(p[row, places])[ends]
    return result


@cache
def design_of(setting: tuple[str, float, float], budget: int, folder: Path | None) -> Design:
    """Return the strata and numbers of rows of all plans of a setting: they depend on scores."""
    rows = scored(*setting, folder)
    return plan_review(rows.scores, rows.probabilities, budget=budget, random_state=0).design


def count_of(plan: ReviewPlan, answers: NDArray[np.int64]) -> CheckedEstimate:
    """Return the limits from the first answers, without recall, which takes time."""
    return evaluate_review(replace(plan, cutoffs=(), reading=()), answers, groups=True)


def recall_of(plan: ReviewPlan, rows: Scored) -> dict[str, Any]:
    """Return whether limits of recall hold at all cutoffs, and whether the rows to read are enough.

    ``read`` is empty if there is no such number; ``to_read`` is its share of all rows, or 1.
    """
    found = evaluate_review(plan, rows.is_positive[list(plan.rows)], groups=True)
    ranked = rows.is_positive[np.argsort(-rows.scores.round(9), kind="stable")]
    reached, n = np.cumsum(ranked) / ranked.sum(), found.rows_to_read
    return {
        "recall": int(all(c.recall.low <= reached[c.rank - 1] + 1e-12 for c in found.cutoffs)),
        "read": "" if n is None else int(reached[n - 1] >= found.recall),
        "to_read": 1.0 if n is None else n / len(ranked),
    }


def exact_coverage(setting: tuple[str, float, float], budget: int, folder: Path | None) -> float:
    """Return the probability that the limits hold, a sum over results; a thousandth is left out."""
    design, rows = design_of(setting, budget, folder), scored(*setting, folder)
    ranked = rows.is_positive[np.argsort(-rows.scores.round(9), kind="stable")]
    positives = np.diff(np.cumsum(ranked)[np.cumsum(design.sizes) - 1], prepend=0)
    each = zip(design.sizes, positives, design.drawn, strict=True)
    laws = [stats.hypergeom(N, M, n).pmf(np.arange(n + 1)) for N, M, n in each]
    p = reduce(np.multiply.outer, laws)
    error = plan_review(rows.scores, rows.probabilities, design=design).looks[-1].error
    errors = design.sides[0] * error, design.sides[1] * error
    seen = held = 0.0
    for place in np.argsort(-p, axis=None):
        found = np.unravel_index(place, p.shape)
        low, high = limits_of_count(design.sizes, design.drawn, found, errors)
        seen += p[found]
        held += p[found] * (low <= positives.sum() <= high)
        if seen > 0.999:
            break
    return float(held)


def run(setting: tuple[str, float, float], budget: int, seed: int, folder: Path | None) -> Any:
    """Return one line of the journal."""
    rows = scored(*setting, folder)
    n, count = len(rows.is_positive), int(rows.is_positive.sum())
    plan = plan_review(
        rows.scores,
        rows.probabilities,
        design=design_of(setting, budget, folder),
        known_scores=rows.known,
        recall=0.8 if budget <= 100 else 0.95,
        random_state=seed,
    )
    answers = rows.is_positive[list(plan.rows)].astype(int)

    def holds(plan: ReviewPlan, answers: NDArray[np.int64]) -> bool:
        limits = count_of(plan, answers)
        return limits.low_count <= count <= limits.high_count

    found = count_of(plan, answers)
    is_right = found.low_count <= count <= found.high_count
    moments = {budget // 2, 3 * budget // 4, int(np.random.default_rng(seed).integers(1, budget))}
    is_right_early = all(holds(plan, answers[:m]) for m in moments)
    more = plan.topped_up(rows.scores, rows.probabilities)
    forecast = plan.forecast() if seed == 0 else None
    is_right_added = holds(more, rows.is_positive[list(more.rows)].astype(int))
    return {
        "table": setting[0],
        "share": setting[1],
        "bias": setting[2],
        "budget": budget,
        "seed": seed,
        "auc": round(roc_auc_score(rows.is_positive, rows.scores), 4),
        "prior": round(float(rows.probabilities.mean()), 4),
        "strata": len(plan.design.sizes),
        "width": found.high - found.low,
        "forecast": "" if forecast is None else forecast.widths[budget],
        "largest": "" if forecast is None else forecast.largest_widths[budget],
        "best_plain": best_plain_width(n, count, budget),
        "all": int(is_right),
        "stopped": int(is_right and is_right_early),
        "added": int(is_right and is_right_early and is_right_added),
        **dict.fromkeys(("recall", "read", "to_read"), ""),
        **({} if seed % EVERY else recall_of(plan, rows)),
        "share_found": count / n,
    }


def tasks(folder: Path | None, n_plans: int) -> Iterator[tuple[tuple[str, float, float], int, int]]:
    """Yield settings, budgets and seeds; all settings get some plans before any gets more."""
    tables = ["digits", "breast cancer"]
    tables += [t for t in TABLES if folder is not None and (folder / f"{t}.parquet").is_file()]
    for first in range(0, n_plans, EVERY):
        for place, table in enumerate(tables):
            for number, (share, bias) in enumerate(KINDS):
                if len(tables) > 2 and (place + number) % 2:  # half of the combinations
                    continue
                for budget in BUDGETS:
                    for seed in range(first, min(first + EVERY, n_plans)):
                        yield (table, share, bias), budget, seed


class Setting(NamedTuple):
    """What the plans of a setting with one budget showed."""

    table: str
    share: float
    bias: float
    budget: int
    auc: float
    prior: float
    held: dict[str, list[int]]
    ratio: float
    forecast: float
    largest: float
    to_read: list[float]

    @classmethod
    def of(cls, lines: list[dict[str, Any]]) -> Setting:
        """Summarize some lines of the journal."""
        first, width = lines[0], float(np.mean([float(line["width"]) for line in lines]))
        return cls(
            first["table"],
            float(first["share"]),
            float(first["bias"]),
            int(first["budget"]),
            float(first["auc"]),
            float(first["prior"]),
            {name: [int(line[name]) for line in lines if line[name] != ""] for name in HELD},
            width / float(first["best_plain"]),
            float(max(line["forecast"] for line in lines) or "nan") / width - 1.0,
            float(max(line["largest"] for line in lines) or "nan") / width,
            [float(line["to_read"]) for line in lines if line["to_read"] != ""],
        )

    @property
    def kind(self) -> str:
        """The group of settings in the table of the documentation."""
        if self.bias:
            return "biased known positives"
        return "good scores" if self.auc >= 0.98 and self.share >= 0.1 else "other scores"

    @property
    def bar(self) -> float:
        """The relative width that should not be exceeded."""
        if self.auc < 0.98 or self.share < 0.1 or self.budget < 100 or self.bias:
            return 1.03
        return 0.75 if self.budget < 400 else 0.5


def settings_of(lines: list[dict[str, Any]]) -> list[Setting]:
    """Return a summary of each setting."""
    groups = defaultdict(list)
    for line in lines:
        groups[line["table"], line["share"], line["bias"], line["budget"]].append(line)
    return [Setting.of(group) for group in groups.values()]


def rate(settings: list[Setting], name: str) -> float:
    """Return how often limits held; nan if there are none."""
    held = np.concatenate([s.held[name] for s in settings])
    return float(held.mean()) if len(held) else float("nan")


def claim_text(settings: list[Setting]) -> str:
    """Return a sentence on the numbers of rows to read."""
    parts = []
    for budget in BUDGETS:
        shares = np.concatenate([[], *(s.to_read for s in settings if s.budget == budget)])
        if len(shares):
            recall = "80%" if budget <= 100 else "95%"
            parts.append(
                f"{np.mean(shares < 1.0):.0%} of the plans of {budget:,} rows for {recall}"
            )
    n = sum(len(s.held["read"]) for s in settings)
    wrong = n - sum(sum(s.held["read"]) for s in settings)
    claims = f"{wrong:,} of {n:,} numbers of rows to read were too small."
    return f"There was a number of rows to read in {', '.join(parts)}; {claims}"


def n_above(settings: list[Setting]) -> int:
    """Return in how many settings the mean width is above the forecast's larger end."""
    return sum(s.largest < 1.0 for s in settings)


def report(settings: list[Setting]) -> None:
    """Print a table with one line for each setting, and totals."""
    print("table          share bias rows    AUC  est.  all stopped added recall read  width/plain")
    for s in settings:
        held = " ".join(f"{rate([s], name):5.2f}" for name in HELD)
        print(
            f"{s.table:14} {s.share:5} {s.bias:4} {s.budget:4} {s.auc:6.3f} {s.prior:5.2f} {held} "
            f"{s.ratio:8.3f}{'' if s.ratio <= s.bar else f'  (more than {s.bar})'}"
        )
    for name in HELD:
        n_plans = sum(len(s.held[name]) for s in settings)
        worst = np.nanmin([rate([s], name) for s in settings])
        print(f"{name:8} {rate(settings, name):.4f} of {n_plans:,} plans; at worst {worst:.2f}")
    missed = [s for s in settings if s.ratio > s.bar]
    print(f"width    {len(missed)} of {len(settings)} settings are wider than they should be,")
    print(f"         {sum(s.bias > 0 for s in missed)} of them biased")
    print(f"forecast off by {np.nanmean(np.abs([s.forecast for s in settings])):.0%} on average;")
    print(f"         its larger end below the mean width in {n_above(settings)} settings")
    print(claim_text(settings))


def table_text(settings: list[Setting], coverages: list[float]) -> str:
    """Return the table of the documentation, in Markdown."""
    n_plans = sum(len(s.held["all"]) for s in settings)
    n_recall = sum(len(s.held["recall"]) for s in settings)
    off = np.nanmean(np.abs([s.forecast for s in settings]))
    lines = [
        f"{n_plans:,} plans in {len(settings)} settings; recall in {n_recall:,} of them. The "
        f"forecast was off by {off:.0%} on average, and the mean width was above its larger end in "
        f"{n_above(settings)} settings.",
        claim_text(settings),
        *exact_text(coverages),
        "",
        "| Settings | rows | number | held | stopped | added | recall | width | from | to |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kind in ("good scores", "other scores", "biased known positives"):
        for budget in BUDGETS:
            if part := [s for s in settings if (s.kind, s.budget) == (kind, budget)]:
                held = " | ".join(f"{rate(part, name):.3f}" for name in HELD[:-1])
                ratios = [s.ratio for s in part]
                widths = f"{np.mean(ratios):.2f} | {min(ratios):.2f} | {max(ratios):.2f}"
                lines.append(f"| {kind} | {budget} | {len(part)} | {held} | {widths} |")
    return "\n".join(lines) + "\n"


def exact_text(coverages: list[float]) -> list[str]:
    """Return a sentence on coverage that was computed from all results."""
    if not coverages:
        return []
    return [
        f"Summed over all results instead of drawn, plans of {BUDGETS[0]} rows in {len(coverages)} "
        f"settings hold with a probability of {np.mean(coverages):.3f} on average, and of at least "
        f"{min(coverages):.3f} in each."
    ]


def main() -> None:
    """Run all plans that are not in the journal, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(os.environ.get("CLASSPRIOR_DATA", "../shared/data")) / "tabular"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    parser.add_argument("--plans", type=int, default=15, help="plans for each setting and budget")
    parser.add_argument("--journal", type=Path, default=Path("review.csv"))
    parser.add_argument("--write", action="store_true", help="write the table of the guide")
    parser.add_argument("--exact", action="store_true", help="compute coverage from all results")
    options = parser.parse_args()
    folder = options.folder if options.folder.is_dir() else None
    if folder is None:
        print(f"There is no folder {options.folder}: only bundled tables are used.")
    lines: list[dict[str, Any]] = []
    if options.journal.is_file():
        with options.journal.open(newline="") as file:
            lines = list(csv.DictReader(file))
    done = {tuple(line[k] for k in FIELDS[:5]) for line in lines}
    with options.journal.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not lines:
            writer.writeheader()
        for setting, budget, seed in tasks(folder, options.plans):
            if tuple(map(str, (*setting, budget, seed))) in done:
                continue
            if 2 * budget > len(scored(*setting, folder).is_positive):
                continue
            line = run(setting, budget, seed, folder)
            writer.writerow(line)
            file.flush()
            lines.append({k: str(v) for k, v in line.items()})
    settings = settings_of(lines)
    report(settings)
    coverages = []
    if options.exact:
        some = dict.fromkeys(setting for setting, *_ in tasks(folder, 1))
        coverages = [exact_coverage(setting, BUDGETS[0], folder) for setting in some]
        print("".join(exact_text(coverages)))
    if options.write:
        replace_between(GUIDE, SCRIPT, "\n" + table_text(settings, coverages))
        record(SCRIPT)


if __name__ == "__main__":
    main()
