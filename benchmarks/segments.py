"""Segments: how often the test rejects, how often ratios are covered, and errors of shares.

    python benchmarks/segments.py [--draws 200] [--parts test ratio shares] [--write]

Scores are normal with standard deviation 1; those of negatives lie 4 standard deviations below
those of positives, or as stated. There are 300 known positives, and 3,000 in the rows with own
positives, groups or weights. Where shares differ, they are 1.5 times as large in a third of the
segments, or 3 times where they are below 5%. In the rows with groups, four rows in a row have the
same class and nearly the same score; with weights, half of the rows have the weight 4. With
--write, the tables in docs/guides/weights_groups_segments.md are replaced.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classprior import estimate_prior
from classprior.result import SegmentEstimates

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from freshness import record
from harness import replace_between

PAGE = Path(__file__).parents[1] / "docs/guides/weights_groups_segments.md"
SCRIPT = "benchmarks/segments.py"
Doubles = NDArray[np.float64]
ROWS_OF_GROUP = 4


@dataclass(frozen=True)
class Setting:
    """Rows and share of each segment, and how far away its negatives are."""

    sizes: Doubles
    shares: Doubles
    distances: Doubles
    n_positive: int = 300
    told: str = ""  # "groups", "weights" or "own"


def alike(n_segments: int, size: int, share: float, told: str = "") -> Setting:
    """Return segments that do not differ."""
    sizes, shares, distances = (np.full(n_segments, value) for value in (size, share, 4.0))
    return Setting(sizes, shares, distances, 3000 if told else 300, told)


def with_negatives(setting: Setting, *distances: float) -> Setting:
    """Return the setting with these distances, in turn."""
    return replace(setting, distances=np.resize(distances, len(setting.sizes)))


def with_differences(setting: Setting) -> Setting:
    """Return the setting with larger shares in a third of the segments."""
    factor = 3.0 if setting.shares[0] < 0.05 else 1.5
    larger = np.arange(len(setting.sizes)) % 3 == 1
    return replace(setting, shares=np.where(larger, factor, 1.0) * setting.shares)


def estimate(setting: Setting, number: int, **options: Any) -> tuple[float, SegmentEstimates]:
    """Return the share in all rows of one draw, and the estimates of its segments."""
    rng = np.random.default_rng(number)
    rows = ROWS_OF_GROUP if setting.told == "groups" else 1
    segments = np.repeat(np.arange(len(setting.sizes)), setting.sizes.astype(int))[::rows]
    known = rng.integers(len(setting.sizes), size=setting.n_positive // rows)
    is_positive = rng.random(len(segments)) < setting.shares[segments]
    positive = rng.normal(size=len(known))
    unlabeled = rng.normal(np.where(is_positive, 0.0, -setting.distances[segments]))
    if setting.told == "groups":
        both = [np.repeat(part, rows) for part in (positive, unlabeled)]
        positive, unlabeled = (part + rng.normal(scale=0.01, size=len(part)) for part in both)
        known, segments = np.repeat(known, rows), np.repeat(segments, rows)
        numbers = np.arange(len(known) + len(segments)) // rows
        options["groups"] = numbers[: len(known)], numbers[len(known) :]
    if setting.told == "weights":
        options["weights"] = tuple(rng.choice([1.0, 4.0], len(part)) for part in (known, segments))
    if setting.told == "own":
        options["segment_positives"] = "own"
    found = estimate_prior(
        positive, unlabeled, segments=(known, segments), random_state=number, **options
    )
    assert found.segments is not None
    return found.prior, found.segments


def table(header: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield f"| {' | '.join(row)} |"


CELLS = {
    "12 segments of 100 rows, 2%": alike(12, 100, 0.02),
    "12 segments of 200 rows, 20%": alike(12, 200, 0.2),
    "50 segments of 24 rows, 30%": alike(50, 24, 0.3),
    "2 segments of 200 rows, 2%": alike(2, 200, 0.02),
    "3 segments of 2,000 rows, 20%": alike(3, 2000, 0.2),
    "12 segments of 2,000 rows, 2%": alike(12, 2000, 0.02),
    "12 segments of 200 rows, 20%, own positives": alike(12, 200, 0.2, "own"),
    "12 segments of 200 rows, 20%, groups": alike(12, 200, 0.2, "groups"),
    "12 segments of 200 rows, 20%, weights": alike(12, 200, 0.2, "weights"),
}


def rejections(draws: int) -> Iterator[list[str]]:
    """Yield how often the test rejects: four times with equal shares, then with different ones."""
    for name, same in CELLS.items():
        settings = [
            same,
            with_negatives(same, 3.0, 5.0),
            with_negatives(same, 2.0),
            with_negatives(same, 2.0, 4.0),
            with_differences(same),
            with_negatives(with_differences(same), 2.0),
        ]
        found = [
            np.mean([estimate(s, k, n_resamples=20)[1].p_value <= 0.05 for k in range(draws)])
            for s in settings
        ]
        yield [name, *(f"{100.0 * share:.0f}%" for share in found)]


def ratios(draws: int) -> Iterator[list[str]]:
    """Yield how often the interval of the ratio of two shares covers, and how wide it is."""
    for size in (200, 2000):
        for shares in ((0.02, 0.02), (0.02, 0.06), (0.2, 0.2), (0.2, 0.6)):
            setting = replace(alike(2, size, shares[0]), shares=np.array(shares))
            found = [estimate(setting, k)[1].ratio(1, 0) for k in range(draws)]
            truth = shares[1] / shares[0]
            covered = np.mean([part.low <= truth <= part.high for part in found])
            with np.errstate(divide="ignore"):
                widths = np.log([part.high for part in found]) - np.log([p.low for p in found])
            yield [
                f"{size:,}",
                f"{shares[0]:.0%} and {shares[1]:.0%}",
                f"{covered:.1%}",
                f"{np.exp(np.median(widths)):.1f}",
                f"{np.mean(~np.isfinite(widths)):.0%}",
            ]


SITUATIONS = {
    "30 rows at 60%, and 8 x 500 at 10%": ([30] + 8 * [500], [0.6] + 8 * [0.1]),
    "30 rows at 60%, and 8 x 500 at 5% to 40%": (
        [30] + 8 * [500],
        [0.6, *np.linspace(0.05, 0.4, 8)],
    ),
    "20 x 30 rows at 5% to 60%": (20 * [30], np.linspace(0.6, 0.05, 20)),
    "12 x 100 rows at 2%": (12 * [100], 12 * [0.02]),
    "50 x 24 rows at 30%": (50 * [24], 50 * [0.3]),
    "150 x 2 rows at 33%": (150 * [2], 150 * [0.33]),
}


def shares(draws: int) -> Iterator[list[str]]:
    """Yield bias and error of the first segment, the error of all, and the sum of counts."""
    for name, (sizes, truth) in SITUATIONS.items():
        n = np.array(sizes, dtype=float)
        setting = Setting(n, np.array(truth), np.full(len(n), 4.0))
        found = [estimate(setting, k, n_resamples=100) for k in range(draws)]
        wholes = np.array([whole for whole, _ in found])
        cells = []
        for kind in ("raw", "prior"):
            values = np.array([[getattr(s, kind) for s in parts.values()] for _, parts in found])
            errors = values - setting.shares
            cells += [
                f"{errors[:, 0].mean():+.3f}",
                f"{np.sqrt(np.mean(errors[:, 0] ** 2)):.3f}",
                f"{np.sqrt(np.mean(errors**2)):.3f}",
                f"{np.mean(values @ n / n.sum() / wholes):.2f}",
            ]
        yield [name, *cells]


PARTS = {
    "test": (
        rejections,
        ["segments", "equal: 4", "3 and 5", "2", "2 and 4", "different: 4", "2"],
    ),
    "ratio": (ratios, ["rows", "shares", "covered", "high / low, median", "infinite"]),
    "shares": (
        shares,
        ["segments"]
        + [
            f"{kind} {what}"
            for kind in ("raw", "shrunk")
            for what in ("bias", "error", "error of all", "sum / whole")
        ],
    ),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Tests, ratios and shares of segments.")
    parser.add_argument("--draws", type=int, default=200, help="number of draws of each setting")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--write", action="store_true", help="write them to the documentation")
    options = parser.parse_args()
    if options.write and set(options.parts) != set(PARTS):
        parser.error("--write needs all parts")
    warnings.simplefilter("ignore")  # few rows
    for part in options.parts:
        measure, header = PARTS[part]
        lines = []
        for line in table(header, measure(options.draws)):
            print(line, flush=True)
            lines.append(line)
        print()
        if options.write:
            text = "\n".join(lines)
            replace_between(PAGE, f"{SCRIPT}, {part}", f"\n{options.draws} draws:\n\n{text}\n")
    if options.write:
        record(SCRIPT)


if __name__ == "__main__":
    main()
