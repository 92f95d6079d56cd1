"""``classprior compare`` and ``classprior demo``."""

import json
import multiprocessing
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from classprior import PenalizedL1Prior, TableEncoder, estimate_prior
from classprior._data.samples import Samples
from classprior.cli import main
from classprior.cli._compare import Outcome, run_methods

TWO = ("positive.csv", "unlabeled.csv")


@pytest.fixture
def rows(frames):
    """Return both samples as numbers."""
    return TableEncoder().fit_tables(frames)


def test_methods_side_by_side(folder, run, rows):
    given = ("--methods", "penl1,sb", "--plot", "methods.svg", "--seed", 3)
    text = run("compare", *TWO, *given).stdout
    expected = PenalizedL1Prior(random_state=3).fit_samples(*rows).prior_
    assert f"  penl1        {expected:>7.1%}" in text
    assert "  sb  " in text
    assert "<svg" in Path("methods.svg").read_text()


def test_groups_are_kept_together(folder, run, rows, frames):
    rng = np.random.default_rng(0)
    groups = [rng.integers(0, 40, len(frame)) for frame in frames]
    for frame, group, name in zip(frames, groups, TWO, strict=True):
        frame.assign(customer=group).to_csv(name, index=False)
    given = ("--methods", "penl1", "--groups", "customer", "--json")
    (found,) = json.loads(run("compare", *TWO, *given).stdout)["methods"]
    estimator = PenalizedL1Prior(random_state=0).fit_samples(*rows, groups=groups)
    assert found["prior"] == pytest.approx(estimator.prior_, abs=1e-12)


def test_weights_are_used(folder, run, rows, frames):
    rng = np.random.default_rng(0)
    weights = [rng.choice([0.0, 1.0, 3.0], len(frame)) for frame in frames]
    for frame, w, name in zip(frames, weights, TWO, strict=True):
        frame.assign(w=w).to_csv(name, index=False)
    given = ("--methods", "pe", "--weights", "w", "--json")
    (found,) = json.loads(run("compare", *TWO, *given).stdout)["methods"]
    weighted = [frame.assign(w=w) for frame, w in zip(frames, weights, strict=True)]
    expected = estimate_prior(*weighted, method="pe", weights="w", n_resamples=2, random_state=0)
    assert found["prior"] == pytest.approx(expected.prior, abs=1e-12)


def test_a_method_that_fails_or_takes_too_long_does_not_stop_the_others(rows):
    samples = Samples.of_rows(*rows, seed=0)
    slow, quick = run_methods(["pen-kl", "penl1"], samples, seed=0, limit=2)
    assert slow.prior is None
    assert "2 seconds" in slow.failure
    assert quick.failure == ""
    few = Samples.of_rows(rows[0][:1], rows[1], seed=0)
    failed, after = run_methods(["auto", "sb"], few, seed=0, limit=60)
    assert failed.prior is None
    assert "two rows" in failed.failure
    assert after.failure


def test_a_process_that_is_killed_is_not_waited_for(rows):
    others = multiprocessing.active_children()
    steps = run_methods(["penl1"] * 3, Samples.of_rows(*rows, seed=0), seed=0, limit=1e6)
    before = next(steps)
    (worker,) = set(multiprocessing.active_children()) - set(others)
    worker.kill()
    worker.join()
    killed, after = steps
    assert killed.prior is None
    assert "process" in killed.failure
    assert after.prior == before.prior


def test_no_answer_at_all_is_an_error(folder, run):
    pd.read_csv("positive.csv")[:1].to_csv("tiny.csv", index=False)
    answer = run("compare", "tiny.csv", "unlabeled.csv", "--methods", "auto", "--json", code=1)
    assert json.loads(answer.stdout)["schema"] == "classprior.compare/1"
    assert answer.stderr.startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (("--methods", "auto,magic"), "'magic'"),
        (("--plot", "picture.doc"), ".png, .svg, .pdf"),
    ],
)
def test_bad_usage(folder, run, arguments, fact):
    assert fact in run("compare", *TWO, *arguments, code=2).stderr


def test_the_demo_makes_files_that_give_its_answer(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("classprior.cli._demo._PRIORS", (0.5,))
    (example,) = examples_of("demo")
    printed = run(*example).stdout
    assert "400 of these payments (8.0%)" in printed
    assert re.search(r"80 +180 +50\.0% +\d\d\.\d%", printed)
    assert Path("example/scores.png").read_bytes().startswith(b"\x89PNG")
    again = run("estimate", "example/frauds.csv", "example/transactions.csv").stdout
    assert again.strip() in printed
    assert again.splitlines()[0] in Path("example/report.html").read_text()
    assert "frauds.csv" in run(*example, code=1).stderr


def examples_of(command):
    """Return the command lines that --help shows."""
    text = main.commands[command].epilog
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("  classprior")]


def test_the_examples_of_help_run(folder, run, monkeypatch):
    """All but the demo's, which has a test of its own; of compare only what surrounds methods."""
    outcomes = [Outcome("auto", 0.3, 1.0), Outcome("en", None, 2.0, "no luck")]
    monkeypatch.setattr("classprior.cli._compare.run_methods", lambda *_: iter(outcomes))
    for name in ("frauds", "all/1", "all/2", "transactions", "tomorrow"):
        table = pd.read_csv("positive.csv" if name == "frauds" else "unlabeled.csv")
        Path(name).parent.mkdir(exist_ok=True)
        table.assign(customer=1, iban="AT", country="AT").to_csv(f"{name}.csv", index=False)
    marked = pd.read_parquet("marked.parquet").rename(columns={"known": "diagnosis"})
    marked.replace({"yes": "confirmed"}).to_parquet("patients.parquet")
    scored = marked.rename(columns={"diagnosis": "status"}).replace({"yes": "fraud"})
    scored["probability"] = np.where(
        scored["status"] == "fraud", 0.9, np.arange(len(scored)) % 10 / 10
    )
    scored.to_parquet("scored.parquet")
    n_run = 0
    for command in main.commands:
        for example in examples_of(command) if command != "demo" else ():
            assert "rows" in run(*example, *(("--force",) if n_run else ())).output
            n_run += 1
    assert n_run >= 9
    assert {"frauds.html", "scored.csv", "scored-tomorrow.csv", "frauds.model", "methods.png"} <= {
        path.name for path in folder.iterdir()
    }
