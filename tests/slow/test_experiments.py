"""The experiments, quick, show what they showed before, within their own standard errors."""

import csv
import math
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = ["duplessis2017_uniforms", "duplessis2017_mnist", "duplessis2017_rates"]
KEYS = {"digit", "prior", "ratio", "method", "quantity", "overlap", "slope", "lam", "rows"}
# The draws are the same ones, so that only rounding and other versions of libraries differ: one
# standard error is wide for that. The floor is for settings in which all draws agree.
WIDTH, FLOOR = 1.0, 0.01


def read(path):
    """Return mean and standard error of every setting."""
    with path.open(newline="") as file:
        return {
            tuple(sorted((name, value) for name, value in row.items() if name in KEYS)): (
                float(row["mean"]),
                float(row["standard_error"]),
            )
            for row in csv.DictReader(file)
        }


def verdicts(path):
    """Return the verdict on each claim in a report."""
    lines = [line.split(" | ") for line in path.read_text().splitlines()]
    return {
        parts[0].lstrip("| "): parts[1].strip("*")
        for parts in lines
        if len(parts) == 4 and parts[1].strip("*") in ("holds", "does not hold", "undecided")
    }


def differences(found, expected):
    """Yield settings whose means differ by more than their errors explain."""
    for key, (mean, error) in expected.items():
        tolerance = WIDTH * math.hypot(error, found[key][1]) + FLOOR * max(1.0, abs(mean))
        if abs(found[key][0] - mean) > tolerance:
            yield key, found[key], (mean, error)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_summary_is_as_expected(tmp_path, name):
    """MNIST on scikit-learn's digits, so that it needs no data."""
    data = ("--data", "digits") if name == "duplessis2017_mnist" else ()
    script = ROOT / "experiments" / f"{name}.py"
    subprocess.run([sys.executable, script, "--quick", *data, "--out", tmp_path], check=True)
    found = read(tmp_path / f"{name}_summary.csv")
    expected = read(ROOT / "experiments" / "expected" / f"{name}_quick.csv")
    assert found.keys() == expected.keys()
    assert not list(differences(found, expected))
    if name != "duplessis2017_mnist":  # other data than in the published run
        published = verdicts(ROOT / "docs" / "reproduction.md")
        for claim, verdict in verdicts(tmp_path / f"{name}.md").items():
            assert verdict in ("undecided", published[claim]), claim


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_summary_would_be_seen(name):
    """Exchange each mean with the next one: many settings must stand out."""
    expected = read(ROOT / "experiments" / "expected" / f"{name}_quick.csv")
    values = list(expected.values())
    shifted = dict(zip(expected, values[1:] + values[:1], strict=True))
    assert len(list(differences(shifted, expected))) > len(expected) / 3
