"""The experiments and benchmarks run and write what they promise; their pictures are pictures."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(script, *arguments, cwd=None, fails=False):
    completed = subprocess.run(
        [sys.executable, ROOT / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert (completed.returncode != 0) == fails, completed.stderr
    return completed.stderr if fails else completed.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "figures"),
    [
        (
            "duplessis2017_uniforms",
            ("--draws", 1, "--rows", 30),
            {"_histograms", "_penalized", "_slopes", "_matching"},
        ),
        (
            "duplessis2017_mnist",
            ("--data", "digits", "--digits", 3, 6, "--priors", 0.5, "--repetitions", 1),
            {"_digits-3-to-3", "_digits-6-to-6", "_average", "_oddity"},
        ),
        ("duplessis2017_rates", ("--repetitions", 2, "--largest", 200), {"", "_overlap"}),
    ],
)
def test_an_experiment_judges_every_claim_and_draws(tmp_path, name, arguments, figures):
    out = tmp_path / "folder"
    printed = run(f"experiments/{name}.py", *arguments, "--jobs", 1, "--out", out)
    report = (out / "RESULTS.md").read_text()
    assert "| claim | verdict | evidence | figure |" in printed
    assert ("This is not MNIST" in report) == ("mnist" in name)
    assert {p.stem.removeprefix(name) for p in out.glob("*.png")} == figures
    assert {p.stem.removeprefix(name) for p in out.glob("*.svg")} == figures
    linked = set(re.findall(r"\(([^()]*\.png)\)", report))
    assert linked == {f"{name}{figure}.png" for figure in figures}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in out.glob("*.png"))
    assert (out / f"{name}_summary.csv").read_text().count("\n") > 2


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
    peers = tmp_path / "peers.csv"
    peers.write_text("suite,setting,prior,seed,method,estimate\nuniforms,tiny,0.7,0,rival,0.8\n")
    out = tmp_path / "out"
    options = ("--out", out, "--jobs", 1, "--methods", "auto", "penl1", "--peers", peers)
    printed = run("benchmarks/accuracy.py", suites, *options)
    assert "| auto |" in printed
    assert "| penl1 |" in printed
    assert "| rival | 0.0100 | 0.0100 |" in printed
    assert "truth above the certified bound" in printed
    rows = (out / "accuracy.csv").read_text().splitlines()
    assert rows[0].startswith("suite,index,setting,prior,seed,method")
    assert len(rows) == 1 + 2 * 2
    assert (out / "accuracy.png").read_bytes().startswith(b"\x89PNG")


def test_coverage_benchmark(tmp_path):
    options = ("--draws", 1, "--settings", "same", "--priors", 0.3, "--jobs", 1)
    printed = run("benchmarks/coverage.py", *options, "--out", tmp_path)
    for method in ("auto", "penl1"):
        assert f"| {method} | same | 200+1000 | population | 1 |" in printed
        assert f"| {method} | same | 200+1000 | these rows | 1 |" in printed
        assert (tmp_path / f"coverage-{method}.png").read_bytes().startswith(b"\x89PNG")


def test_coverage_says_which_file_is_missing(tmp_path):
    options = ("--draws", 1, "--mnist", tmp_path / "nowhere", "--out", tmp_path)
    said = run("benchmarks/coverage.py", *options, fails=True)
    assert str(tmp_path / "nowhere" / "train-images-idx3-ubyte.gz") in said
    assert "Traceback" not in said


def test_sensitivity(tmp_path):
    options = ("--draws", 1, "--parameters", "n_centers", "--jobs", 1, "--out", tmp_path)
    printed = run("experiments/sensitivity.py", *options)
    assert "| centers | 1000 |" in printed
    assert (tmp_path / "sensitivity.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(sys.platform != "linux", reason="reads peak memory from /proc")
def test_scale_benchmark_measures_a_fit_and_an_interval(tmp_path):
    rows = ("--rows", 3000)
    answer = json.loads(run("benchmarks/scale.py", "--mode", "in_blocks", *rows, cwd=tmp_path))
    assert 0.1 < answer["prior"] < 0.6
    assert answer["cpu"] > 0.0
    other = json.loads(run("benchmarks/scale.py", "--mode", "with_interval", *rows, cwd=tmp_path))
    assert other["prior"] == answer["prior"]
    assert other["interval"][0] < other["prior"] < other["interval"][1]
    assert {path.name for path in (tmp_path / "build" / "scale").iterdir()} == {
        "positive-3000",
        "unlabeled-3000",
    }
