"""The demo and the experiment run and write what they promise; their pictures are pictures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(script, *arguments):
    completed = subprocess.run(
        [sys.executable, ROOT / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


@pytest.mark.parametrize(
    ("script", "arguments", "says"),
    [
        ("examples/plot_digits.py", (), "Mean absolute error over all ten digits"),
        ("experiments/duplessis2017_uniforms.py", ("--draws", 4, "--rows", 60), "median"),
    ],
)
def test_script_prints_and_draws(tmp_path, script, arguments, says):
    picture = tmp_path / "folder" / "picture.png"
    assert says in run(script, *arguments, "--out", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_accuracy_benchmark_reads_a_file_of_draws(tmp_path):
    suites = tmp_path / "tiny_suites.py"
    suites.write_text(
        "from types import SimpleNamespace\n"
        "from classprior.datasets import make_overlapping_uniforms\n"
        "SUITES = ('uniforms',)\n"
        "def suite(name):\n"
        "    for seed in range(2):\n"
        "        yield SimpleNamespace(suite=name, setting='tiny', prior=0.7, seed=seed,\n"
        "            make=lambda s=seed: make_overlapping_uniforms(random_state=s))\n"
    )
    out = tmp_path / "estimates.csv"
    printed = run(
        "benchmarks/accuracy.py",
        suites,
        "--out",
        out,
        "--random-states",
        0,
        "--jobs",
        1,
        "--methods",
        "penl1-literal",
        "sb",
    )
    assert "| sb |" in printed
    assert "| penl1-literal |" in printed
    rows = out.read_text().splitlines()
    assert rows[0].startswith("suite,setting,prior,seed,method")
    assert len(rows) == 1 + 2 * 2
