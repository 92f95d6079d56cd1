"""Whether the limits from checked rows hold, and how wide they are.

    python benchmarks/review.py [FOLDER] [--plans 12] [--journal review.csv]

Known positives and unlabeled rows with known labels are drawn from scikit-learn's bundled tables
and from those in FOLDER (Parquet files with a column ``target``; by default
``$CLASSPRIOR_DATA/tabular``). In "biased" settings, the known positives are not a random sample of
the positives. For each setting and budget, rows are drawn by many plans, and their labels are the
answers. The script prints how often the limits contain the truth

all       after all rows of the plan,
stopped   at the worst of several moments, one of them random: the answer counts as wrong if the
          limits were wrong at any of them, so no rule for stopping can do worse,
added     after as many rows again were added,
recall    how often the lower limits of recall hold at all cutoffs together,

and the mean width relative to that of a simple random sample with the best exact limits of three
(Clopper-Pearson, Blaker and Sterne, for the hypergeometric distribution), and to the forecast.
An interrupted run resumes from its journal.
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
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from classprior import Estimation
from classprior.review import Design, ReviewPlan, evaluate_review, plan_review

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from benchmark_suites import Classes, of_parquet, of_scikit_learn
from scipy import stats

BUDGETS = (50, 100, 400)
N_KNOWN, N_UNLABELED = 300, 2000
TABLES = (
    *("optdigits", "landsat", "spambase", "letter", "mushroom", "magic", "adult", "bank"),
    *("waveform", "wine_quality", "pageblocks", "covertype", "pima", "twonorm"),
)
#: Shares, and how strongly a column decides which positives are known.
KINDS = ((0.03, 0.0), (0.1, 0.0), (0.3, 0.0), (0.5, 0.0), (0.1, 1.0), (0.3, 1.0))
ERROR = 0.05
FIELDS = (
    *("table", "share", "bias", "budget", "seed", "auc", "prior", "strata", "width"),
    *("forecast", "best_plain", "all", "stopped", "added", "recall", "share_found"),
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


def holds(plan: ReviewPlan, answers: NDArray[np.int64], count: int) -> bool:
    """Return whether the limits from the first answers contain the truth."""
    found = evaluate_review(without_cutoffs(plan), answers, groups=True)  # to save time
    return found.low_count <= count <= found.high_count


def without_cutoffs(plan: ReviewPlan) -> ReviewPlan:
    """Return the plan without recall, which takes time."""
    return replace(plan, cutoffs=())


def run(setting: tuple[str, float, float], budget: int, seed: int, folder: Path | None) -> Any:
    """Return one line of the journal."""
    rows = scored(*setting, folder)
    n, count = len(rows.is_positive), int(rows.is_positive.sum())
    plan = plan_review(
        rows.scores,
        rows.probabilities,
        design=design_of(setting, budget, folder),
        known_scores=rows.known,
        random_state=seed,
    )
    answers = rows.is_positive[list(plan.rows)].astype(int)
    found = evaluate_review(plan, answers)
    is_right = found.low_count <= count <= found.high_count
    moments = {budget // 4, budget // 2, 3 * budget // 4, budget - 2}
    moments.add(int(np.random.default_rng(seed).integers(1, budget)))
    is_right_early = all(holds(plan, answers[:m], count) for m in moments)
    is_right_added = True
    if 2 * budget <= n:
        more = plan.topped_up(rows.scores, rows.probabilities, budget)
        labels = rows.is_positive[list(more.rows)].astype(int)
        is_right_added = holds(more, labels, count)
    ranked = rows.is_positive[np.argsort(-rows.scores.round(9), kind="stable")]
    true_recall = [ranked[: c.rank].sum() / count for c in found.cutoffs]
    pairs = zip(found.cutoffs, true_recall, strict=True)
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
        "forecast": plan.forecast().widths[budget] if seed == 0 else "",
        "best_plain": best_plain_width(n, count, budget),
        "all": int(is_right),
        "stopped": int(is_right and is_right_early),
        "added": int(is_right and is_right_early and is_right_added),
        "recall": int(all(c.recall.low <= truth + 1e-12 for c, truth in pairs)),
        "share_found": count / n,
    }


def tasks(folder: Path | None, n_plans: int) -> Iterator[tuple[tuple[str, float, float], int, int]]:
    """Yield settings, budgets and seeds."""
    tables = ["digits", "breast cancer"]
    tables += [t for t in TABLES if folder is not None and (folder / f"{t}.parquet").is_file()]
    for place, table in enumerate(tables):
        for number, (share, bias) in enumerate(KINDS):
            if len(tables) > 2 and (place + number) % 2:  # half of the combinations
                continue
            for budget in BUDGETS:
                for seed in range(n_plans):
                    yield (table, share, bias), budget, seed


def report(lines: list[dict[str, Any]]) -> None:
    """Print a table with one line for each setting, and totals."""
    settings = defaultdict(list)
    for line in lines:
        settings[line["table"], line["share"], line["bias"], line["budget"]].append(line)
    print("table          share bias rows    AUC  est.  all stopped added recall  width/plain")
    forecasts, ratios = [], []
    for (table, share, bias, budget), group in settings.items():
        mean = {k: np.mean([float(g[k]) for g in group]) for k in FIELDS[-5:-1]}
        widths = [float(g["width"]) for g in group]
        ratio = float(np.mean(widths)) / float(group[0]["best_plain"])
        auc = float(group[0]["auc"])
        bar = 1.05
        if auc >= 0.98 and float(share) >= 0.1 and int(budget) >= 100:
            bar = 0.8 if int(budget) < 400 else 0.75
        forecast = [float(g["forecast"]) for g in group if g["forecast"] not in ("", None)]
        forecasts += [f / np.mean(widths) - 1.0 for f in forecast]
        ratios.append((ratio, bar, float(bias)))
        print(
            f"{table:14} {share:5} {bias:4} {budget:4} {auc:6.3f} {float(group[0]['prior']):5.2f} "
            f"{mean['all']:5.2f} {mean['stopped']:5.2f} {mean['added']:5.2f} {mean['recall']:5.2f} "
            f"{ratio:8.3f}{'' if ratio <= bar else f'  (more than {bar})'}"
        )
    for name in ("all", "stopped", "added", "recall"):
        print(
            f"{name:8} {np.mean([int(line[name]) for line in lines]):.4f} of {len(lines):,} plans"
        )
    missed = [(ratio, bar, bias) for ratio, bar, bias in ratios if ratio > bar]
    print(f"width    {len(missed)} of {len(ratios)} settings are wider than they should be,")
    print(f"         {sum(bias > 0 for *_, bias in missed)} of them biased")
    if forecasts:
        print(f"forecast off by {np.mean(np.abs(forecasts)):.0%} on average")


def main() -> None:
    """Run all plans that are not in the journal, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(os.environ.get("CLASSPRIOR_DATA", "../shared/data")) / "tabular"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    parser.add_argument("--plans", type=int, default=12, help="plans for each setting and budget")
    parser.add_argument("--journal", type=Path, default=Path("review.csv"))
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
    report(lines)


if __name__ == "__main__":
    main()
