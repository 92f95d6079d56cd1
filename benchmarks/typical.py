"""Known positives that are not typical of all positives: what is seen, and what it costs.

    python benchmarks/typical.py [DRAWS.py] [--suites NAME ...] [--seeds 2] [--write]

Each draw is estimated by ``auto`` and by ``subtypes``. The script prints a table with a row per
suite: mean absolute error, how often the interval contains the truth, its mean width, how often the
upper bound is below the truth, and how often a warning says that labels may be biased.

Suites are samples from scikit-learn's digits and from normal classes, "biased" with another mix of
subtypes among the known than among the hidden positives, and "typical" with the same mix. DRAWS.py
is a Python file of samples of your own: its function ``suite(name)`` yields draws whose method
``make()`` returns the known positives, the unlabeled rows and the true share. With ``--write``, the
table goes to docs/guides/biased_labels.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from practice import HAS_SUBTYPES, PRIORS, biased, classes, mixed

from classprior import estimate_prior

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from freshness import record
from harness import load_module, replace_between, seed

SCRIPT = "benchmarks/typical.py"
PAGE = Path(__file__).parents[1] / "docs/guides/biased_labels.md"
METHODS = ("auto", "subtypes")
HEADER = ("error", "covered", "width", "bound failed", "warned")


class Draw(NamedTuple):
    """Two samples and the true share, made when asked for."""

    make: Callable[[], tuple[Any, Any, float]]


def drawn(family: str, prior: float, number: int, *, is_biased: bool) -> tuple[Any, Any, float]:
    """Return known positives, unlabeled rows and the share of positives in them."""
    rng = np.random.default_rng(seed(family=family, prior=str(prior), draw=number))
    if is_biased:
        sample = biased(family, prior, rng)
        return sample["X_positive"], sample["X_unlabeled"], sample["truth"]
    yes, no, _ = classes(family)
    positive, unlabeled, is_hidden = mixed(yes, no, prior, (300, 1200), rng)
    return positive, unlabeled, float(is_hidden.mean())


def suites(n_seeds: int) -> dict[str, list[Draw]]:
    """Return the draws of each suite of ours."""
    return {
        f"{kind}: {family}": [
            Draw(partial(drawn, family, prior, number, is_biased=kind == "biased"))
            for prior in PRIORS
            for number in range(n_seeds)
        ]
        for kind in ("biased", "typical")
        for family in HAS_SUBTYPES
    }


def judged(draw: Any) -> Iterator[tuple[float, ...]]:
    """Yield, for each method, what the table averages."""
    positive, unlabeled, truth = draw.make()
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = estimate_prior(positive, unlabeled, method=method, random_state=0)
        yield (
            abs(found.prior - truth),
            float(found.low <= truth <= found.high),
            found.high - found.low,
            float(found.upper_bound < truth),
            float(any(w.startswith("Biased labels?") for w in found.warnings)),
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("draws", nargs="?", help="Python file of samples of your own")
    parser.add_argument("--suites", nargs="+", help="names of suites; by default, all of ours")
    parser.add_argument("--seeds", type=int, default=2, help="draws for each share")
    parser.add_argument("--write", action="store_true", help="write the table to the guide")
    options = parser.parse_args()
    ours = suites(options.seeds)
    load: Callable[[str], Any] = ours.__getitem__
    if options.draws is not None:
        load = load_module(options.draws).suite
    lines = [
        " ".join(["| suite | draws |", *(f"`{m}`: {h} |" for m in METHODS for h in HEADER)]),
        "|---|---:|" + "---:|" * len(METHODS) * len(HEADER),
    ]
    for name in options.suites or ours:
        values = np.array([[*judged(draw)] for draw in load(name)])
        cells = (f"{value:.3f} |" for value in values.mean(axis=0).ravel())
        lines.append(" ".join([f"| {name} | {len(values)} |", *cells]))
        print(lines[-1], flush=True)
    print("\n".join(lines))
    if options.write:
        replace_between(PAGE, SCRIPT, "\n" + "\n".join(lines) + "\n")
        record(SCRIPT)


if __name__ == "__main__":
    main()
