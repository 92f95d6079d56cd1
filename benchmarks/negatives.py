"""How often confirmed negatives speak against an estimate, rightly and wrongly.

    python benchmarks/negatives.py [--draws 250] [--write]

Scores of two classes are drawn, the share is estimated from them, and confirmed negatives are a
random sample of the negatives. Where some region contains positives only, the estimate is right,
and each warning is a false alarm. Where there is none, the estimate is too high. With --write, the
table in docs/guides/warnings.md is replaced.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from classprior import estimate_prior

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from freshness import record
from harness import replace_between

PAGE = Path(__file__).parents[1] / "docs/guides/warnings.md"
SCRIPT = "benchmarks/negatives.py"
Draw = Callable[[int], np.ndarray]
SIZES = (20, 100, 500)  # numbers of confirmed negatives


class Setting(NamedTuple):
    """Two samples to draw."""

    name: str
    prior: float
    n_positive: int
    n_unlabeled: int


PURE = [
    Setting("normals 4 apart", 0.3, 500, 2000),
    Setting("normals 3 apart", 0.3, 500, 2000),
    Setting("normals 3.5 apart", 0.05, 500, 5000),
    Setting("normals 3 apart", 0.8, 500, 500),
    Setting("normals 4 apart", 0.02, 100, 5000),
    Setting("uniforms 0.4 apart", 0.3, 500, 2000),
    Setting("uniforms 0.4 apart", 0.1, 200, 2000),
    Setting("uniforms 0.4 apart", 0.3, 40, 300),
]
OVERLAPPING = [
    Setting("normals 1 apart", 0.3, 500, 2000),
    Setting("normals 2 apart", 0.05, 500, 5000),
    Setting("uniforms 0 apart", 0.3, 500, 2000),
]


def classes(name: str, rng: np.random.Generator) -> tuple[Draw, Draw]:
    """Return functions that draw scores of positives and of negatives."""
    family, distance = name.split()[0], float(name.split()[1])
    if family == "normals":
        return (lambda n: rng.normal(distance, 1.0, n)), (lambda n: rng.normal(0.0, 1.0, n))
    return (lambda n: rng.uniform(0.0, 1.0, n)), (lambda n: rng.uniform(-1.0, 1.0 - distance, n))


def run(setting: Setting, n_draws: int) -> tuple[float, list[float]]:
    """Return the mean estimate, and the share of draws with a warning for each size."""
    rng = np.random.default_rng(0)
    positive, negative = classes(setting.name, rng)
    estimates, warned = [], np.zeros(len(SIZES))
    for _ in range(n_draws):
        hidden = rng.binomial(setting.n_unlabeled, setting.prior)
        known = positive(setting.n_positive)
        unlabeled = np.r_[positive(hidden), negative(setting.n_unlabeled - hidden)]
        checked = negative(max(SIZES))
        for place, size in enumerate(SIZES):
            found = estimate_prior(
                known, unlabeled, X_negative=checked[:size], n_resamples=50, random_state=0
            )
            warned[place] += any("onfirmed negatives" in text for text in found.warnings)
        estimates.append(found.prior)
    return float(np.mean(estimates)), list(warned / n_draws)


def table(n_draws: int) -> Iterator[str]:
    """Yield the lines of a Markdown table of both kinds of settings."""
    sizes = " | ".join(f"warned with {size}" for size in SIZES)
    yield f"| scores | share | rows | mean estimate | {sizes} |"
    yield "|---|---:|---:|---:|" + "---:|" * len(SIZES)
    for setting in (*PURE, *OVERLAPPING):
        mean, warned = run(setting, n_draws)
        rows = f"{setting.n_positive} + {setting.n_unlabeled:,}"
        shares = " | ".join(f"{share:.1%}" for share in warned)
        yield f"| {setting.name} | {setting.prior:.0%} | {rows} | {mean:.1%} | {shares} |"


def main() -> None:
    """Print the table, and write it into the documentation if asked."""
    parser = argparse.ArgumentParser(description="Warnings by confirmed negatives.")
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = []
    for line in table(options.draws):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        text = "\n".join(lines)
        replace_between(PAGE, SCRIPT, f"\n{options.draws} draws each:\n\n{text}\n")
        record(SCRIPT)


if __name__ == "__main__":
    main()
