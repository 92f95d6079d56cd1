"""How often the answer begins with "At most", with a range, or with "About".

    python benchmarks/headline.py [--draws 200] [--write]

Scores are drawn from families whose purely positive region is known, with a share of 10% or 30%.
"At most" is right where there is no such region, and a range is right in either case. With
``--write``, the table in docs/guides/warnings.md is replaced.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from classprior import estimate_prior

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from freshness import record
from harness import replace_between

Doubles = NDArray[np.float64]
Draw = Callable[[Generator, int], Doubles]
SIZES = ((500, 2500), (4000, 20_000))
PRIORS = (0.1, 0.3)
PAGE = Path(__file__).parents[1] / "docs" / "guides" / "warnings.md"
SCRIPT = "benchmarks/headline.py"


def heavy(rng: Generator, n: int) -> Doubles:
    """Draw absolute values of Student's t, of which 35% exceed 4."""
    return 3.45 * np.abs(rng.standard_t(1.5, n))


def categories(*weights: float) -> Draw:
    """Return draws of a few ordered categories."""
    p = np.array(weights) / np.sum(weights)
    return lambda rng, n: rng.choice(len(p), n, p=p).astype(np.float64)


#: Positives, negatives, and the share of the positives that score above all negatives.
FAMILIES: dict[str, tuple[Draw, Draw, float]] = {
    "separated": (lambda r, n: r.normal(6, 1, n), lambda r, n: r.normal(0, 1, n), 1.0),
    "heavy tails": (heavy, lambda r, n: np.minimum(np.abs(r.normal(0, 1, n)), 4.0), 0.35),
    "categories": (categories(1, 2, 3, 4), categories(5, 3, 2, 0), 0.4),
    "many categories": (
        categories(*np.arange(1.0, 21.0) ** 1.5),
        categories(*np.r_[np.arange(20.0, 3.0, -1.0) ** 2, 0.0, 0.0, 0.0]),
        0.34,
    ),
    "a pure third": (lambda r, n: r.beta(2, 1, n), lambda r, n: 0.8 * r.beta(1, 2, n), 0.36),
    "a pure fifth": (
        lambda r, n: r.random(n),
        lambda r, n: 0.8 * (1.0 - np.sqrt(r.random(n))),
        0.2,
    ),
    "normals, 1 apart": (lambda r, n: r.normal(1, 1, n), lambda r, n: r.normal(0, 1, n), 0.0),
    "triangles": (lambda r, n: np.sqrt(r.random(n)), lambda r, n: 1.0 - np.sqrt(r.random(n)), 0.0),
    "uniform positives": (
        lambda r, n: r.random(n),
        lambda r, n: 1.0 - np.sqrt(r.random(n)),
        0.0,
    ),
}


def main() -> None:
    """Print the table, and write it into the documentation if asked."""
    parser = argparse.ArgumentParser(description="First sentences of answers, on known draws.")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    table = "\n".join(rows(arguments.draws))
    print(table)
    if arguments.write:
        replace_between(PAGE, SCRIPT, f"\n{table}\n")
        record(SCRIPT)


def rows(n_draws: int) -> list[str]:
    """Return the rows of a Markdown table."""
    columns = [f"{n:,} + {m:,} rows: at most, range | covered" for n, m in SIZES]
    found = [f"| scores | purely positive | share | {' | '.join(columns)} |"]
    found.append("|---|" + "---:|" * (2 + 2 * len(SIZES)))
    for name, (positive, negative, pure) in FAMILIES.items():
        for prior in PRIORS:
            cells = [f"{name} | {pure:.0%} | {prior:.0%}"]
            for n, m in SIZES:
                meanings, covered = measure(positive, negative, prior, n, m, n_draws)
                at_most, wide = (meanings[k] / n_draws for k in ("at most", "range"))
                cells.append(f"{at_most:.1%}, {wide:.0%} | {covered:.0%}")
            found.append(f"| {' | '.join(cells)} |")
    return found


def measure(
    positive: Draw, negative: Draw, prior: float, n: int, m: int, n_draws: int
) -> tuple[Counter[str], float]:
    """Return how often each first sentence came, and how often the interval covered the share."""
    meanings: Counter[str] = Counter()
    covered = 0
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        hidden = rng.binomial(m, prior)
        unlabeled = np.concatenate([positive(rng, hidden), negative(rng, m - hidden)])
        estimate = estimate_prior(positive(rng, n), unlabeled, random_state=seed)
        meanings[str(estimate.meaning)] += 1
        covered += estimate.low <= prior <= estimate.high
    return meanings, covered / n_draws


if __name__ == "__main__":
    main()
