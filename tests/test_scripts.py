"""The experiments and benchmarks run and write what they promise; their pictures are pictures."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness import written_between

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


def test_practice_benchmark_reads_a_file_of_draws(tmp_path):
    suites = tmp_path / "practice.py"  # the name of the script itself
    suites.write_text(
        "from types import SimpleNamespace\n"
        "import numpy as np\n"
        "def make(seed):\n"
        "    rng = np.random.default_rng(seed)\n"
        "    rows = rng.normal(size=(60, 2)), rng.normal(size=(200, 2)) + 9.0\n"
        "    return dict(X_positive=rows[0][:30], X_unlabeled=np.vstack([rows[0][30:], rows[1]]),\n"
        "      groups_positive=np.arange(30), groups_unlabeled=30 + np.arange(230), truth=3/23)\n"
        "def suite(kind):\n"
        "    for seed in range(2):\n"
        "        yield SimpleNamespace(suite=kind, setting='tiny', prior=0.13, seed=seed,\n"
        "            make=lambda s=seed: make(s))\n"
    )
    out = tmp_path / "out"
    for call in ("naive", "told"):
        given = ("--kinds", "clusters", "--calls", call, "--seeds", 1, "--jobs", 1, "--out", out)
        printed = run("benchmarks/practice.py", suites, *given)
        assert re.search(rf"\| clusters \| {call} \| 1 \| 0\.00\d\d \| 1\.00 \| 0\.00", printed)
    assert len((out / "practice.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("kind", ["rare", "biased", "clusters", "weights", "segments"])
def test_samples_of_the_practice_benchmark(kind, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    practice = importlib.import_module("practice")
    for draw in practice.suite(kind, 1):
        sample, again = draw.make(), draw.make()
        X_positive, X_unlabeled = sample["X_positive"], sample["X_unlabeled"]
        assert np.array_equal(X_unlabeled, again["X_unlabeled"])
        assert X_positive.shape[1] == X_unlabeled.shape[1]
        for name in ("groups", "weights", "segments"):
            if f"{name}_positive" in sample:
                assert len(sample[f"{name}_positive"]) == len(X_positive)
                assert len(sample[f"{name}_unlabeled"]) == len(X_unlabeled)
        truth = sample["truth"]
        if kind == "segments":
            assert truth == pytest.approx(practice.SHARES, abs=0.05)
        else:
            assert truth == pytest.approx(draw.prior, rel=0.3, abs=0.01)


@pytest.mark.slow
def test_segments_benchmark_prints_its_tables():
    printed = run("benchmarks/segments.py", "--draws", 1)
    assert len(re.findall(r"^\| 12 segments of .* \| (?:0|100)%", printed, re.MULTILINE)) == 6
    assert printed.count("---|\n") == 3


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
    options = (
        "--out",
        out,
        "--jobs",
        1,
        "--methods",
        "auto",
        "penl1",
        "subtypes",
        "--peers",
        peers,
    )
    printed = run("benchmarks/accuracy.py", suites, *options)
    assert "| auto |" in printed
    assert "| penl1 |" in printed
    assert "| rival | 0.0100 | 0.0100 |" in printed
    assert "| subtypes, 95% |" in printed
    assert printed.count("truth above the certified bound") == 2
    rows = (out / "accuracy.csv").read_text().splitlines()
    assert rows[0].startswith("suite,index,setting,prior,seed,method")
    assert len(rows) == 1 + 3 * 2
    assert (out / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    paired = run(
        *("benchmarks/accuracy.py", suites, "--peers", peers, "--pairs", "tice=rival"),
        *("--out", out, "--jobs", 1),
    )
    assert "| tice | rival | uniforms | 1 | 0.700 | 0.800 |" in paired  # answered one draw of two


def test_coverage_benchmark(tmp_path):
    options = ("--draws", 1, "--settings", "same", "--priors", 0.3, "--jobs", 1)
    printed = run("benchmarks/interval_coverage.py", *options, "--out", tmp_path)
    for method in ("auto", "penl1"):
        assert f"| {method} | same | 200+1000 | population | 1 |" in printed
        assert f"| {method} | same | 200+1000 | these rows | 1 |" in printed
        assert (tmp_path / f"coverage-{method}.png").read_bytes().startswith(b"\x89PNG")


def test_coverage_says_which_file_is_missing(tmp_path):
    options = ("--draws", 1, "--mnist", tmp_path / "nowhere", "--out", tmp_path)
    said = run("benchmarks/interval_coverage.py", *options, fails=True)
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


def test_the_table_in_the_guide_has_the_rows_that_the_benchmark_writes(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    scale = importlib.import_module("scale")
    _, table, _ = written_between(scale.GUIDE, scale.SCRIPT)
    _, _, *lines = (line for line in table.splitlines() if line.startswith("|"))
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[:2] for row in cells] == [
        [what, f"{10**7 // part:,}"] for what, _, part in scale.TABLE
    ]
    for *_, cpu, wall, memory in cells:
        assert re.fullmatch(r"\d+\.\d s", cpu)
        assert re.fullmatch(r"\d+\.\d s", wall)
        assert re.fullmatch(r"\d+ MiB", memory)
    assert {mode for _, mode, _ in scale.TABLE} <= set(scale.MODES)
    assert re.fullmatch(r"[^<]+ MiB", written_between(scale.README, scale.SCRIPT)[1])


@pytest.mark.slow
def test_benchmark_of_probabilities():
    given = ("--suites", "betas", "wine", "--shares", 0.3)
    printed = run("benchmarks/probabilities.py", *given)
    line = re.search(r"\| \*\*all\*\* \| 2 \| (0\.\d+) .*\| (\d) \| (\d) \|", printed)
    assert 0.0 < float(line[1]) < 0.3
    assert line[2] in ("1", "2")
    assert re.search(r"New rows: 0\.\d+ \(0\.\d+\) with the true share", printed)
