"""The public benchmark: its draws, its tables and what they say, and missing packages."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from harness import written_between

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("benchmark")


# Draws -------------------------------------------------------------------------------------------


def test_draws_are_standardized_repeatable_and_have_the_share(benchmark):
    for name, suite in benchmark.SUITES.items():
        for prior in (suite.shares[0], suite.shares[-1]):
            X_positive, X_unlabeled, truth = suite.draw(name, prior, 0)
            again, others = suite.draw(name, prior, 0), suite.draw(name, prior, 1)
            np.testing.assert_array_equal(again[1], X_unlabeled)
            assert not np.array_equal(others[1], X_unlabeled)
            assert truth == pytest.approx(prior, abs=1.0 / len(X_unlabeled) + 0.002)
            assert min(len(X_positive), len(X_unlabeled)) >= 20
            both = np.vstack([X_positive, X_unlabeled])
            np.testing.assert_allclose(both.mean(axis=0), 0.0, atol=1e-9)
            np.testing.assert_allclose(both.std(axis=0), 1.0, atol=1e-9)


@pytest.mark.parametrize("prior", [0.01, 0.3, 0.9])
def test_the_truth_is_the_share_of_positive_rows(benchmark, prior):
    numbers = np.arange(2000.0)
    is_negative = np.zeros(2000), np.ones(2000)
    suite = benchmark.Suite(lambda rng: tuple(np.c_[column, numbers] for column in is_negative))
    X_positive, X_unlabeled, truth = suite.draw("known", prior, 0)
    assert np.ptp(X_positive[:, 0]) == 0.0
    hidden = X_unlabeled[:, 0] == X_positive[0, 0]
    assert truth == hidden.mean()
    used = np.vstack([X_positive, X_unlabeled[hidden]])[:, 1]
    assert len(np.unique(used)) == len(used)  # no row is drawn twice


def test_the_second_most_frequent_label_of_a_table_is_positive(benchmark, tmp_path, capsys):
    rng = np.random.default_rng(0)
    labels = np.repeat(["c", "b", "a"], [90, 70, 60])
    frame = pd.DataFrame({"x": rng.normal(size=220) + 9.0 * (labels == "b"), "target": labels})
    frame.to_parquet(tmp_path / "good.parquet")
    frame.drop(columns="target").to_parquet(tmp_path / "nameless.parquet")
    frame[:100].to_parquet(tmp_path / "small.parquet")
    suites = benchmark.suites_of(tmp_path, [])
    assert set(suites) - set(benchmark.SUITES) == {"good.parquet"}
    said = capsys.readouterr().out
    assert re.search(r"nameless\.parquet.*target", said)
    assert re.search(r"small\.parquet.*50", said)
    positive, negative = suites["good.parquet"].classes()
    assert (len(positive), len(negative)) == (70, 150)
    assert positive.min() > negative.max()
    with pytest.raises(SystemExit, match="empty"):
        benchmark.suites_of(tmp_path / "empty", [])


def test_without_a_network_tables_of_openml_are_skipped(benchmark, monkeypatch, capsys):
    def no_network(*_, **__):
        raise URLError("no route to host")

    monkeypatch.setattr(benchmark, "fetch_openml", no_network)
    assert benchmark.suites_of(None, ["phoneme"]) == benchmark.SUITES
    assert re.search("phoneme.*no route to host", capsys.readouterr().out)


# Methods -----------------------------------------------------------------------------------------


def test_missing_packages_are_skipped_with_a_reason(benchmark, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pulearn.priors", None)
    monkeypatch.setitem(sys.modules, "pu_toolbox.prior", None)
    quick, everything = benchmark.methods_of(None, False), benchmark.methods_of(None, True)
    assert set(everything) == set(benchmark.METHODS)
    assert set(everything) - set(quick) == set(benchmark.SLOW)
    said = capsys.readouterr().out
    assert re.search("pulearn EM: pulearn is not installed", said)
    assert re.search("pu-toolbox KM1: pu-toolbox is not installed", said)
    assert benchmark.methods_of(["km2", "pulearn EM"], False) == ["km2"]


@pytest.mark.parametrize("is_pooled", [True, False])
def test_the_share_of_another_package_is_that_of_the_unlabeled_rows(
    benchmark, monkeypatch, is_pooled
):
    class Known:  # 30 labeled rows, 70 unlabeled rows of which 14 are positive
        def fit(self, X, y):
            assert X.shape == (100, 2)
            assert y.tolist() == [1] * 30 + [0] * 70
            return self

        def estimate(self):
            return SimpleNamespace(pi=0.44) if is_pooled else 0.2

    module = ModuleType("rival")
    module.Known = Known
    monkeypatch.setitem(sys.modules, "rival", module)
    peer = benchmark.Peer("rival", "rival", "Known", is_pooled=is_pooled)
    assert peer.missing() == ""
    assert peer.estimate(np.ones((30, 2)), np.ones((70, 2))) == pytest.approx(0.2, abs=1e-12)


def test_a_method_that_fails_gives_its_reason(benchmark, monkeypatch):
    def fail(*_):
        raise RuntimeError("no convergence")

    monkeypatch.setattr(benchmark, "answer", fail)
    task = {"suite": "uniforms", "prior": 0.3, "seed": 0, "method": "tice", "interval": False}
    row = benchmark.estimate(benchmark.SUITES, task)
    assert row["reason"] == "RuntimeError: no convergence"
    assert "estimate" not in row
    assert row["truth"] == pytest.approx(0.3, abs=0.002)


# Tables ------------------------------------------------------------------------------------------


def row(method, suite, estimate, truth=0.5, **more):
    return {"method": method, "suite": suite, "estimate": estimate, "truth": truth, **more}


def test_figures_by_hand(benchmark):
    limits = [{"low": 0.4, "high": 0.5, "bound": 0.49}, {"low": 0.6, "high": 0.9, "bound": 0.95}]
    rows = [
        row("auto", "a", e, seconds=1.0, **more) for e, more in zip([0.4, 0.8], limits, strict=True)
    ]
    found = benchmark.figures(rows)
    expected = {"error": 0.2, "standard_error": 0.1, "root": 0.05**0.5, "bias": 0.1, "seconds": 1.0}
    expected |= {"draws": 2, "answers": 2, "covered": 0.5, "width": 0.2, "bound_failed": 0.5}
    assert found == pytest.approx(expected)


def test_suites_count_the_same_and_the_text_says_where_the_default_is_not_the_best(benchmark):
    errors = {
        ("auto", "wine"): [0.2],
        ("auto", "ring"): [0.1] * 3,
        ("tice", "wine"): [0.1],
        ("tice", "ring"): [0.3] * 3,
        ("sb", "wine"): [0.4],
    }
    rows = [
        row(method, suite, 0.5 + error, seconds=0.1)
        for (method, suite), values in errors.items()
        for error in values
    ]
    rows.append({"method": "sb", "suite": "ring", "truth": 0.5, "seconds": 0.1, "reason": "none"})
    summary = benchmark.summarize(rows)
    overall = {r["method"]: r["error"] for r in benchmark.over_suites(summary)}
    assert overall == pytest.approx({"auto": 0.15, "tice": 0.2})  # sb did not answer everywhere
    assert list(overall) == ["auto", "tice"]
    text = benchmark.findings(summary).splitlines()
    assert re.search(r"`auto`.* on \*ring\*\.", text[0])
    assert re.search(r"\*wine\* \(0\.100 against 0\.200\).*`tice`", text[1])
    assert re.search("`sb`.* 1 of 2 draws", text[2])
    assert re.search("number 1 of 2 .*wine", benchmark.short(summary))


def test_the_page_has_what_the_figures_in_the_repository_say(benchmark):
    summary = benchmark.read_summary(benchmark.SUMMARY)
    assert {r["suite"] for r in summary} == set(benchmark.SUITES)
    assert {r["method"] for r in summary} >= set(benchmark.METHODS) - set(benchmark.SLOW)
    _, page, _ = written_between(benchmark.PAGE, benchmark.SCRIPT)
    assert page.endswith(benchmark.results(summary))
    assert re.search(r"on \d{4}-\d\d-\d\d: `python benchmarks/benchmark\.py .*--write`\.", page)
    _, readme, _ = written_between(benchmark.README, benchmark.SCRIPT)
    assert readme.strip() == benchmark.short(summary)
    assert benchmark.PICTURE.read_bytes().startswith(b"\x89PNG")
    assert f"images/{benchmark.PICTURE.name})" in benchmark.PAGE.read_text(encoding="utf-8")


def test_the_script_runs_and_writes(benchmark, tmp_path, monkeypatch):
    command = [sys.executable, ROOT / "benchmarks/benchmark.py", "--methods", "tice", "bbe"]
    command += ["--suites", "uniforms", "wine", "--seeds", "1", "--every", "3", "--jobs", "1"]
    command += ["--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "| `tice` | 0." in done.stdout
    out = tmp_path / "out"
    assert len((out / "benchmark.jsonl").read_text().splitlines()) == 2 * 2 * 2
    assert (out / "RESULTS.md").read_text().count("| `bbe` |") == 3  # all suites, and each
    assert (out / "benchmark.png").read_bytes().startswith(b"\x89PNG")

    for name in ("PAGE", "README", "SUMMARY", "PICTURE"):
        monkeypatch.setattr(benchmark, name, tmp_path / name)
    marks = f"before <!-- written by {benchmark.SCRIPT} -->old<!-- end --> after <!-- end -->"
    for name in ("PAGE", "README"):
        (tmp_path / name).write_text(marks)
    rows = pd.read_csv(out / "rows.csv").to_dict("records")
    benchmark.write(rows, "python it")
    text = (tmp_path / "PAGE").read_text()
    assert "old" not in text
    assert "4 draws" in text
    assert "`python it`" in text
    assert text.startswith("before")
    assert text.endswith("<!-- end --> after <!-- end -->")
    assert benchmark.results(benchmark.read_summary(out / "summary.csv")) in text
