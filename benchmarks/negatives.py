"""How often confirmed negatives speak against an estimate, rightly and wrongly.

    python benchmarks/negatives.py --draws 250

Scores of two classes are drawn, the share is estimated from them, and confirmed negatives are a
random sample of the negatives. Where some region contains positives only, the estimate is right,
and each warning is a false alarm. Where there is none, the estimate is too high.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from classprior import estimate_prior

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


def main() -> None:
    """Print a table of both kinds of settings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=250)
    n_draws = parser.parse_args().draws
    for title, settings in (("false alarms", PURE), ("rightly warned", OVERLAPPING)):
        print(f"\n{title:24} share  rows          estimate  negatives: {SIZES}")
        for setting in settings:
            mean, warned = run(setting, n_draws)
            rows = f"{setting.n_positive} + {setting.n_unlabeled:,}"
            shares = "  ".join(f"{share:5.1%}" for share in warned)
            print(
                f"{setting.name:24} {setting.prior:5}  {rows:12}  {mean:8.3f}  {shares}", flush=True
            )


if __name__ == "__main__":
    main()
