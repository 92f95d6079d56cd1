"""Which figures in README and the documentation are of the present code.

    python experiments/freshness.py            # list them; fails if one is not
    python experiments/freshness.py --remark   # say so on the pages of those that are not

A script that writes figures to a page also records what the methods it measures answer on a few
small, fixed draws (figures.json). The figures are stale if these answers are others now. A digest
of the source files would change with every renamed variable, and nobody would rerun an hour of
draws for that. A change that shows on no small draw is missed.

Answers depend on the version of scikit-learn, so they are compared only if it is the same.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable
from datetime import date
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import replace_between, written_between
from numpy.typing import NDArray

from classprior import DensityRatio, Estimation, PenalizedL1Prior, estimate_prior
from classprior.estimate import METHODS
from classprior.review import evaluate_review, plan_review

Doubles = NDArray[np.float64]
Samples = tuple[Doubles, Doubles]
Answers = list[float | str]

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "experiments/figures.json"
TOLERANCE = 5e-4  # half of the last digit that tables show
REMARK = "*Measured by an earlier version. "


class Figures(NamedTuple):
    """What a script writes, where, and which answers it depends on."""

    command: str
    measures: tuple[str, ...]
    pages: tuple[str, ...]
    blocks: tuple[str, ...] = ("",)  # after the script's name in the comments around its figures


POINTS = tuple(name for name in METHODS if name not in ("auto", "subtypes", "scores"))
PAPER = ("ratio", "penl1", "penl1-literal", "l1", "pen-pearson", "en", "pe", "sb")  # KL is too slow
FIGURES = {
    "benchmarks/benchmark.py": Figures(
        "python benchmarks/benchmark.py --write",
        ("auto", "subtypes", *(name for name in POINTS if name not in ("kl", "pen-kl"))),
        ("docs/explanation/accuracy.md", "README.md"),
    ),
    "benchmarks/published.py": Figures(
        "python benchmarks/published.py --write",
        ("auto", "subtypes"),
        ("docs/explanation/published.md", "README.md"),
    ),
    "benchmarks/interval_coverage.py": Figures(
        "python benchmarks/interval_coverage.py --write --mnist FOLDER",
        ("auto",),
        ("docs/explanation/intervals.md",),
        (", usual", ", edges", ", few", ", many"),
    ),
    "benchmarks/interval_coverage.py --parts hard": Figures(
        "python benchmarks/interval_coverage.py --write --parts hard --tables FOLDER",
        ("auto",),
        ("docs/explanation/intervals.md", "README.md"),
    ),
    "docs/pictures/readme.py": Figures(
        "python docs/pictures/readme.py",
        ("auto",),
        ("README.md", "docs/index.md", "docs/start/python.md"),
    ),
    "benchmarks/scale.py": Figures(
        "python benchmarks/scale.py --write",
        ("auto", "penl1"),
        ("docs/guides/scale.md", "README.md"),
    ),
    "benchmarks/headline.py": Figures(
        "python benchmarks/headline.py --write", ("scores",), ("docs/guides/warnings.md",)
    ),
    "benchmarks/negatives.py": Figures(
        "python benchmarks/negatives.py --write", ("scores",), ("docs/guides/warnings.md",)
    ),
    "benchmarks/segments.py": Figures(
        "python benchmarks/segments.py --write",
        ("segments",),
        ("docs/guides/weights_groups_segments.md",),
        (", test", ", ratio", ", shares"),
    ),
    "benchmarks/probabilities.py": Figures(
        "python benchmarks/probabilities.py --tables FOLDER --write",
        ("probabilities",),
        ("docs/guides/which_rows.md",),
    ),
    "benchmarks/typical.py": Figures(
        "python benchmarks/typical.py --write",
        ("auto", "subtypes"),
        ("docs/guides/biased_labels.md",),
    ),
    "benchmarks/typical_alarms.py": Figures(
        "python benchmarks/typical_alarms.py --tables FOLDER --write",
        ("auto",),
        ("docs/guides/biased_labels.md",),
    ),
    "benchmarks/review.py": Figures(
        "python benchmarks/review.py FOLDER --exact --write",
        ("review",),
        ("docs/guides/decision.md",),
    ),
    "experiments/sensitivity.py": Figures(
        "python experiments/sensitivity.py --write",
        ("penl1", "auto", "ratio"),
        ("docs/explanation/accuracy.md",),
    ),
    "experiments/reproduction.py": Figures("make reproduce", PAPER, ("docs/reproduction.md",)),
}


# Answers ------------------------------------------------------------------------------------------


@cache
def draws() -> tuple[Samples, Samples]:
    """Return two small draws: overlapping classes, and labels that favor one kind of positive."""
    rng = np.random.default_rng(0)
    near = (
        rng.normal(size=(60, 2)),
        np.vstack([rng.normal(size=(50, 2)), rng.normal(2, 1, (90, 2))]),
    )
    kinds = np.array([[-5.0, 0.0], [5.0, 0.0]])
    known = rng.normal(size=(180, 2)) + np.repeat(kinds, [150, 30], axis=0)
    hidden = rng.normal(size=(85, 2)) + np.repeat(kinds, [5, 80], axis=0)
    return near, (known, np.vstack([hidden, rng.normal(size=(300, 2))]))


def in_full(method: str) -> Answers:
    """Return estimates with intervals, bounds and what they mean."""
    found: Answers = []
    for samples in draws():
        answer = estimate_prior(*samples, method=method, random_state=0, n_jobs=1)
        found += [answer.prior, answer.low, answer.high, answer.upper_bound, str(answer.meaning)]
        found += [answer.low_count / len(samples[1]), answer.high_count / len(samples[1])]
    return found


def points(method: str) -> Answers:
    """Return the estimates of a method alone."""
    literal = method == "penl1-literal"
    estimator = PenalizedL1Prior.literal() if literal else METHODS[method]()
    estimator.set_params(random_state=0)
    samples = (rows[::2] for rows in draws()[0])
    return [float(estimator.fit_samples(*samples).prior_)]


def of_scores() -> Answers:
    """Return answers from the scores of a given model, with confirmed negatives."""
    found: Answers = []
    for positive, unlabeled in draws():
        scores = -positive.sum(axis=1), -unlabeled.sum(axis=1)
        negative = np.quantile(scores[1], np.linspace(0.0, 0.9, 40))
        answer = estimate_prior(*scores, X_negative=negative, random_state=0)
        found += [answer.prior, answer.low, answer.high, answer.upper_bound, str(answer.meaning)]
        found.append(str(len(answer.warnings)))
    return found


def of_segments() -> Answers:
    """Return the shares of three segments, and the p-value of their equality."""
    positive, unlabeled = (-rows.sum(axis=1) for rows in draws()[0])
    names = np.arange(len(positive)) % 3, np.arange(len(unlabeled)) * 3 // len(unlabeled)
    parts = estimate_prior(positive, unlabeled, segments=names, random_state=0).segments
    assert parts is not None
    found = [x for part in parts.values() for x in (part.prior, part.raw, part.low, part.high)]
    return [*found, parts.p_value, parts.ratio(2, 1).low, parts.ratio(2, 1).high]


def of_probabilities() -> Answers:
    """Return quantiles of the probabilities of rows."""
    probabilities = Estimation.of(*draws()[0], random_state=0, n_jobs=1).probabilities()
    return [float(x) for x in np.quantile(probabilities, (0.05, 0.25, 0.5, 0.75, 0.95))]


def of_ratio() -> Answers:
    """Return density ratios at a few rows."""
    positive, unlabeled = draws()[0]
    X, y = np.vstack([positive, unlabeled]), np.repeat([1, 0], [len(positive), len(unlabeled)])
    return [float(x) for x in DensityRatio(random_state=0).fit(X, y).predict(X[::40])]


def of_review() -> Answers:
    """Return the limits from a few checked rows of a plan."""
    probabilities = np.linspace(0.0, 1.0, 400) ** 6
    plan = plan_review(probabilities, probabilities, budget=40, random_state=0)
    checked = evaluate_review(plan, probabilities[list(plan.rows)] > 0.5)
    return [float(len(plan.design.sizes)), checked.prior, checked.low, checked.high]


KINDS: dict[str, Callable[[], Answers]] = {
    "review": of_review,
    "scores": of_scores,
    "segments": of_segments,
    "probabilities": of_probabilities,
    "ratio": of_ratio,
}


@cache
def answers(kind: str) -> tuple[float | str, ...]:
    """Return what a method, or a part of the package, answers now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind in KINDS:
            found = KINDS[kind]()
        else:
            found = in_full(kind) if kind in ("auto", "subtypes") else points(kind)
    return tuple(x if isinstance(x, str) else round(float(x), 6) for x in found)


# Records ------------------------------------------------------------------------------------------


def record(script: str) -> None:
    """Note that a script has written its figures by the present code."""
    records = read()
    records[script] = {
        "date": f"{date.today():%Y-%m-%d}",
        "scikit-learn": version(),
        "answers": {kind: list(answers(kind)) for kind in FIGURES[script].measures},
    }
    lines = (f"{json.dumps(name)}: {json.dumps(records[name])}" for name in sorted(records))
    RECORDS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read() -> dict[str, Any]:
    """Return what is known about each script's figures."""
    return dict(json.loads(RECORDS.read_text(encoding="utf-8"))) if RECORDS.exists() else {}


def version() -> str:
    """Return the version of scikit-learn, without its last part."""
    return ".".join(metadata.version("scikit-learn").split(".")[:2])


def comparable(script: str) -> bool:
    """Return whether a script's figures were recorded with this version of scikit-learn."""
    return script not in read() or read()[script]["scikit-learn"] == version()


def changed(script: str) -> list[str]:
    """Return what a script measures and what answers differently now; all if never recorded."""
    known = read().get(script, {}).get("answers", {})
    return [
        kind
        for kind in FIGURES[script].measures
        if kind not in known or not _alike(known[kind], answers(kind))
    ]


def _alike(old: Iterable[float | str], new: Iterable[float | str]) -> bool:
    old, new = list(old), list(new)
    return len(old) == len(new) and all(
        a == b
        if isinstance(a, str) or isinstance(b, str)
        else bool(np.isclose(a, b, rtol=0.0, atol=TOLERANCE, equal_nan=True))
        for a, b in zip(old, new, strict=True)
    )


def remark(kinds: Iterable[str]) -> str:
    """Return what a page says about stale figures."""
    return f"{REMARK}Since then, answers have changed: {', '.join(kinds)}.*"


def blocks(script: str) -> list[tuple[Path, str, str]]:
    """Return each page, comment and text of a script's figures; one-liners are left out."""
    found = []
    for page in FIGURES[script].pages:
        for name in FIGURES[script].blocks:
            text = written_between(ROOT / page, script + name)[1]
            if text.startswith("\n"):
                found.append((ROOT / page, script + name, text))
    return found


def is_missing(script: str) -> bool:
    """Return whether a script has not written anything yet."""
    return not all(text.strip() for _, _, text in blocks(script))


def is_remarked(script: str) -> bool:
    """Return whether each page says that its figures are of an earlier version."""
    return all(text.startswith(f"\n{REMARK}") for _, _, text in blocks(script))


def add_remarks(script: str, kinds: Iterable[str]) -> None:
    """Say on each page which answers have changed."""
    for page, name, text in blocks(script):
        if text.startswith(f"\n{REMARK}"):
            text = "\n" + text.split("\n\n", 1)[1]
        replace_between(page, name, f"\n{remark(kinds)}\n{text}")


def main() -> None:
    """List all figures."""
    parser = argparse.ArgumentParser(description="Figures that are not of the present code.")
    parser.add_argument("--remark", action="store_true", help="say so on their pages")
    options = parser.parse_args()
    n_stale = 0
    for script, figures in FIGURES.items():
        if not comparable(script):
            print(f"unknown  {script}: recorded with scikit-learn {read()[script]['scikit-learn']}")
            continue
        kinds = changed(script)
        n_stale += bool(kinds)
        if kinds and options.remark:
            add_remarks(script, kinds)
        when = read().get(script, {}).get("date", "unknown date")
        state = "missing" if is_missing(script) else "stale" if kinds else "current"
        print(f"{state:7}  {script} ({when}): {', '.join(figures.pages)}")
        if kinds:
            print(f"         changed: {', '.join(kinds)}\n         rerun:   {figures.command}")
    raise SystemExit(1 if n_stale else 0)


if __name__ == "__main__":
    main()
