"""Calibration and log-loss of the probabilities of rows, beside those of supervised models.

    python benchmarks/probabilities.py [--tables FOLDER] [--openml NAME ...] [--shares 0.05 0.5]
        [--write]

For each suite of ``benchmark_suites.py`` and each share, 500 known positives and 3,000 unlabeled
rows are drawn (fewer if a table has fewer), and as many new rows. Probabilities are compared with
the true labels by log-loss and by expected calibration error (ECE: the mean difference between
probabilities and labels in ten bins of equal size):

supervised   the same classifiers, cross-fitted to the true labels of the unlabeled rows; the best
plain        prior times ratio, capped at 1, of the single classifier with the best log-loss
calibrated   what ``Estimation.probabilities`` returns: out-of-fold, for the unlabeled rows
by labels    the same scores, calibrated to the true labels: what no calibration can do better
new rows     what ``Estimation.model`` predicts for rows that were not used in the fit

"Plain", "calibrated" and "new rows" use the true share ("true") or the estimated one ("est."),
because an error of the share is not one of the calibration. The bar is a log-loss of at most 1.3
times that of the supervised classifier plus 0.02. With --write, the table of tables in
docs/guides/which_rows.md is replaced; it has the suites of --tables and --openml only.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from classprior import Estimation

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from benchmark_report import listed
from benchmark_suites import Suite, suites_of
from freshness import record
from harness import replace_between, seed
from practice import mixed

PAGE = Path(__file__).parents[1] / "docs/guides/which_rows.md"
SCRIPT = "benchmarks/probabilities.py"
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]
SHARES = (0.02, 0.05, 0.2, 0.5, 0.8)
SIZES = 500, 3000
FEWEST = 5  # positives and negatives among the unlabeled rows
SMALLEST = 1e-6  # probabilities closer to 0 or 1 than this would have an infinite log-loss


class Found(NamedTuple):
    """Log-loss and calibration error on one draw."""

    suite: str
    share: float
    estimate: float
    supervised: float
    losses: dict[str, float]
    errors: dict[str, float]

    def meets_bar(self, kind: str) -> bool:
        """Return whether the log-loss is close to that of the supervised classifier."""
        return self.losses[kind] <= 1.3 * self.supervised + 0.02


PRIORS = "true", "est."
CALIBRATED = [f"calibrated, {prior}" for prior in PRIORS]


def loss_of(is_positive: Bools, probabilities: Doubles) -> float:
    """Return the log-loss."""
    clipped = np.clip(probabilities, SMALLEST, 1.0 - SMALLEST)
    return float(log_loss(is_positive, clipped, labels=[False, True]))


def calibration_error(is_positive: Bools, probabilities: Doubles, n_bins: int = 10) -> float:
    """Return the expected calibration error, in bins with the same number of rows."""
    bins = np.array_split(np.argsort(probabilities, kind="stable"), n_bins)
    gaps = [abs(float(np.sum(probabilities[b] - is_positive[b]))) for b in bins]
    return sum(gaps) / len(probabilities)


def plain(estimation: Estimation, prior: float) -> Doubles:
    """Return prior times ratio, from the single classifier with the best held-out log-loss."""
    evidence, (n, m) = estimation.estimate.evidence, estimation.samples.sizes

    def held_out_loss(name: str) -> float:
        positive, unlabeled = evidence.scores_[name]
        return float(np.logaddexp(0, -positive).sum() + np.logaddexp(0, unlabeled).sum())

    best = min(evidence.classifiers_, key=held_out_loss)
    return np.minimum(1.0, prior * m / n * np.exp(evidence.scores_[best][1]))


def by_labels(decision: Doubles, y: Bools) -> Doubles:
    """Return probabilities by beta calibration of the scores to the true labels."""
    terms = np.column_stack([log_expit(decision), -log_expit(-decision)])
    return LogisticRegression(C=1e6, max_iter=1000).fit(terms, y).predict_proba(terms)[:, 1]


def supervised_loss(classifiers: dict[str, Any], X: Doubles, y: Bools) -> float:
    """Return the log-loss of the best classifier, cross-fitted to the true labels."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    losses = []
    for model in map(clone, classifiers.values()):
        model.set_params(**{name: 0 for name in model.get_params() if "random_state" in name})
        p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]
        losses.append(loss_of(y, p))
    return min(losses)


def measure(name: str, suite: Suite, share: float) -> Found | None:
    """Draw rows and compare their probabilities with the truth; None if rows are too few."""
    rng = np.random.default_rng(seed(suite=name, prior=share, draw=0))
    yes, no = suite.classes(rng) if suite.is_random else suite.classes()
    positive, rows, y = mixed(yes, no, share, (SIZES[0], 2 * SIZES[1]), rng)
    m = len(rows) // 2
    unlabeled, new = rows[:m], rows[m:]
    if min(y[:m].sum(), m - y[:m].sum()) < FEWEST:
        return None
    estimation = Estimation.of(positive, unlabeled, random_state=0)
    truth = float(y[:m].mean())
    losses, errors = {}, {}
    for kind, prior in (("true", truth), ("est.", estimation.estimate.prior)):
        given = replace(estimation, estimate=replace(estimation.estimate, prior=prior))
        found = {
            "plain": (y[:m], plain(estimation, prior)),
            "calibrated": (y[:m], given.probabilities()),
            "by labels": (y[:m], by_labels(given.model[-1].oof_decision_, y[:m])),
            "new rows": (y[m:], given.model.predict_proba(new)[:, 1]),
        }
        for what, (labels, p) in found.items():
            losses[f"{what}, {kind}"] = loss_of(labels, p)
            errors[f"{what}, {kind}"] = calibration_error(labels, p)
    best = supervised_loss(estimation.estimate.evidence.classifiers_, unlabeled, y[:m])
    return Found(name, share, estimation.estimate.prior, best, losses, errors)


def table(results: Sequence[Found], key: str) -> Iterator[str]:
    """Yield the lines of a table of means, by suite or by share."""
    shown = [*(f"plain, {prior}" for prior in PRIORS), *CALIBRATED, "by labels, true"]
    head = [key, "draws", "supervised", *shown, *(f"bar met, {prior}" for prior in PRIORS)]
    yield f"| {' | '.join(head)} |"
    yield "|---|" + "---:|" * (len(head) - 1)
    for value in dict.fromkeys(getattr(found, key) for found in results):
        some = [found for found in results if getattr(found, key) == value]
        yield _line(str(value), some, shown)
    yield _line("**all**", list(results), shown)


def _line(label: str, some: Sequence[Found], shown: Sequence[str]) -> str:
    supervised = f"{np.mean([found.supervised for found in some]):.3f}"
    bars = [str(sum(found.meets_bar(kind) for found in some)) for kind in CALIBRATED]
    cells = [label, str(len(some)), supervised, *(_means(some, kind) for kind in shown), *bars]
    return f"| {' | '.join(cells)} |"


def _means(some: Sequence[Found], kind: str) -> str:
    loss = np.mean([found.losses[kind] for found in some])
    return f"{loss:.3f} ({np.mean([found.errors[kind] for found in some]):.3f})"


def report(results: Sequence[Found]) -> Iterator[str]:
    """Yield the lines of the report."""
    yield 'Log-loss (ECE); "bar met" is a number of draws.\n'
    for key in ("share", "suite"):
        yield from table(results, key)
        yield ""
    true, estimated = (_means(results, f"new rows, {prior}") for prior in PRIORS)
    yield f"New rows: {true} with the true share, {estimated} with the estimated one.\n"
    yield "Draws that miss the bar:\n"
    for found in results:
        if not all(map(found.meets_bar, CALIBRATED)):
            true, estimated = (f"{found.losses[kind]:.3f}" for kind in CALIBRATED)
            yield (
                f"- {found.suite}, share {found.share:g}, estimated {found.estimate:.3f}: "
                f"supervised {found.supervised:.3f}, calibrated {true} (true), {estimated} (est.)"
            )


def write(results: Sequence[Found]) -> None:
    """Put the table by share and the tables' names into the documentation."""
    names = listed(list(dict.fromkeys(found.suite.replace("_", " ") for found in results)))
    true, estimated = (_means(results, f"new rows, {prior}") for prior in PRIORS)
    text = "\n".join(table(results, "share"))
    replace_between(
        PAGE,
        SCRIPT,
        f"\nThe tables are {names}.\n\n{text}\n\nFor new rows, which the fit has not seen: {true} "
        f"with the true share, and {estimated} with the estimated one.\n",
    )
    record(SCRIPT)


def main() -> None:
    """Measure all draws and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=Path, help="folder of Parquet files with a column target")
    parser.add_argument("--openml", nargs="*", default=[], help="names of tables on OpenML")
    parser.add_argument("--suites", nargs="*", help="suites to measure; by default, all")
    parser.add_argument("--shares", nargs="*", type=float, default=SHARES)
    parser.add_argument("--write", action="store_true", help="write to the documentation")
    given = parser.parse_args()
    suites = suites_of(given.tables, given.openml)
    if given.write:
        suites = {name: suite for name, suite in suites.items() if suite.source}
        if not suites:
            parser.error("--write needs --tables or --openml")
    warnings.filterwarnings("ignore", module="classprior|sklearn")
    warnings.filterwarnings("ignore", "No unlabeled row|The least populated class")
    results = []
    for name in given.suites or suites:
        for share in given.shares:
            if (found := measure(name, suites[name], share)) is not None:
                results.append(found)
                loss, error = found.losses["calibrated, true"], found.errors["calibrated, true"]
                print(f"{name}, {share:g}: {loss:.3f} ({error:.3f})", file=sys.stderr)
    print("\n".join(report(results)))
    if given.write:
        write(results)


if __name__ == "__main__":
    main()
