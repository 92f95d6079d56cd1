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


def imported(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        return importlib.import_module(name)


@pytest.fixture(scope="module")
def benchmark():
    return imported("benchmark")


@pytest.fixture(scope="module")
def report():
    return imported("benchmark_report")


@pytest.fixture(scope="module")
def tables():
    return imported("benchmark_suites")


# Draws -------------------------------------------------------------------------------------------


def test_draws_are_standardized_repeatable_and_have_the_share(tables):
    for name, suite in tables.SUITES.items():
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
def test_the_truth_is_the_share_of_positive_rows(tables, prior):
    numbers = np.arange(2000.0)
    is_negative = np.zeros(2000), np.ones(2000)
    suite = tables.Suite(lambda rng, pool: tuple(np.c_[column, numbers] for column in is_negative))
    X_positive, X_unlabeled, truth = suite.draw("known", prior, 0)
    assert np.ptp(X_positive[:, 0]) == 0.0
    hidden = X_unlabeled[:, 0] == X_positive[0, 0]
    assert truth == hidden.mean()
    used = np.vstack([X_positive, X_unlabeled[hidden]])[:, 1]
    assert len(np.unique(used)) == len(used)  # no row is drawn twice


def test_the_second_most_frequent_label_of_a_table_is_positive(tables, tmp_path, capsys):
    rng = np.random.default_rng(0)
    labels = np.repeat(["c", "b", "a"], [90, 70, 60])
    frame = pd.DataFrame({"x": rng.normal(size=220) + 9.0 * (labels == "b"), "target": labels})
    frame.to_parquet(tmp_path / "good.parquet")
    frame.drop(columns="target").to_parquet(tmp_path / "nameless.parquet")
    frame[:100].to_parquet(tmp_path / "small.parquet")
    suites = tables.suites_of(tmp_path, [])
    assert set(suites) - set(tables.SUITES) == {"good"}
    said = capsys.readouterr().out
    assert re.search("nameless.*no column target", said)
    assert re.search("small.*50", said)
    positive, negative = suites["good"].classes()
    assert (len(positive), len(negative)) == (70, 150)
    assert positive.min() > negative.max()
    with pytest.raises(SystemExit, match="empty"):
        tables.suites_of(tmp_path / "empty", [])


def test_without_a_network_tables_of_openml_are_skipped(tables, monkeypatch, capsys):
    def no_network(*_, **__):
        raise URLError("no route to host")

    monkeypatch.setattr(tables, "fetch_openml", no_network)
    assert tables.suites_of(None, ["phoneme"]) == tables.SUITES
    assert re.search("phoneme.*no route to host", capsys.readouterr().out)


# Methods -----------------------------------------------------------------------------------------


def test_missing_packages_are_skipped_with_a_reason(benchmark, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pulearn.priors", None)
    monkeypatch.setitem(sys.modules, "pu_toolbox.prior", None)
    quick, everything = benchmark.methods_of(None, False), benchmark.methods_of(None, True)
    assert set(everything) == set(benchmark.OURS)
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


def test_a_method_that_fails_gives_its_reason(benchmark, monkeypatch, tables):
    def fail(*_):
        raise RuntimeError("no convergence")

    monkeypatch.setattr(benchmark, "answer", fail)
    task = {"suite": "uniforms", "prior": 0.3, "seed": 0, "method": "tice", "interval": False}
    row = benchmark.estimate(tables.SUITES, task)
    assert row["reason"] == "RuntimeError: no convergence"
    assert "estimate" not in row
    assert row["truth"] == pytest.approx(0.3, abs=0.002)


# Tables ------------------------------------------------------------------------------------------


def row(method, suite, estimate, truth=0.5, **more):
    return {"method": method, "suite": suite, "estimate": estimate, "truth": truth, **more}


def test_figures_by_hand(report):
    limits = [{"low": 0.4, "high": 0.5, "bound": 0.49}, {"low": 0.6, "high": 0.9, "bound": 0.95}]
    rows = [
        row("auto", "a", e, prior=0.5, seconds=1.0, **more)
        for e, more in zip([0.4, 0.8], limits, strict=True)
    ]
    found = report.figures(rows)
    expected = {"error": 0.2, "standard_error": 0.1, "root": 0.05**0.5, "bias": 0.1, "seconds": 1.0}
    expected |= {"draws": 2, "answers": 2, "covered": 0.5, "width": 0.2}
    expected |= {"bound_failed": 0.5, "slack": 0.22}
    assert found == pytest.approx(expected)


def test_suites_count_the_same_and_the_text_says_where_the_default_is_not_the_best(report):
    errors = {
        ("auto", "wine"): [0.2],
        ("auto", "ring"): [0.1] * 3,
        ("tice", "wine"): [0.1],
        ("tice", "ring"): [0.3] * 3,
        ("sb", "wine"): [0.4],
    }
    rows = [
        row(method, suite, 0.5 + error, prior=0.5, seed=number, seconds=0.1)
        for (method, suite), values in errors.items()
        for number, error in enumerate(values)
    ]
    rows.append({"method": "sb", "suite": "ring", "truth": 0.5, "seconds": 0.1, "reason": "none"})
    summary = report.summarize(rows)
    overall = {r["method"]: r["error"] for r in report.over_suites(summary)}
    assert overall == pytest.approx({"auto": 0.15, "tice": 0.2})  # sb did not answer everywhere
    assert list(overall) == ["auto", "tice"]
    text = report.findings(summary).splitlines()
    assert re.search(r"`auto`.* on \*ring\*\.", text[0])
    assert re.search(r"\*wine\* \(0\.100 against 0\.200, .*chance\).*`tice`", text[1])
    assert re.search("`sb`.* 1 of 2 draws", text[2])
    short = report.short(summary)
    assert re.search("2 suites with 4 draws.* of 2 methods", short)
    assert short.index("**`auto`**") < short.index("`tice`")
    assert short.endswith("beaten on no suite.")  # one draw of wine decides nothing


def test_errors_are_compared_on_the_draws_that_both_answered(report):
    values = {"auto": [0.1, 0.3, 0.2, 0.9], "tice": [0.2, 0.2, 0.4, None]}
    rows = [
        {"prior": 0.5, "seed": number, **row(method, "a", 0.5 + (error or 0.0), seconds=0.1)}
        for method, errors in values.items()
        for number, error in enumerate(errors)
    ]
    del rows[-1]["estimate"]
    of_auto, of_tice = report.summarize(rows)
    assert "more" not in of_auto
    assert of_tice["more"] == pytest.approx((0.1 - 0.1 + 0.2) / 3)
    assert of_tice["more_error"] == pytest.approx(np.std([0.1, -0.1, 0.2], ddof=1) / 3**0.5)
    assert report.cell(of_tice, "more") == "+0.067\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.088"


def test_the_spread_between_shares_is_not_an_error(report):
    values, shares = np.array([1.0, 1.2, 5.0, 5.4, 5.8]), [0.1, 0.1, 0.9, 0.9, 0.9]
    errors = np.std([1.0, 1.2], ddof=1) / 2**0.5, np.std([5.0, 5.4, 5.8], ddof=1) / 3**0.5
    expected = np.hypot(0.4 * errors[0], 0.6 * errors[1])
    assert report.standard_error(values, shares) == pytest.approx(expected)
    assert report.standard_error(values[:3], shares[:3]) == np.inf  # one draw of a share


@pytest.mark.parametrize(("seeds", "is_sure"), [(5, True), (2, False)])
def test_a_difference_that_may_be_chance_is_called_so(report, seeds, is_sure):
    noise = np.array([-0.02, 0.02, 0.01, -0.01, 0.0])[:seeds] * (1.0 if is_sure else 9.0)
    rows = [
        row(method, "a", 0.5 + error + noise[n] * (method == "bbe"), prior=0.5, seed=n, seconds=0.1)
        for method, error in (("auto", 0.3), ("bbe", 0.2))
        for n in range(seeds)
    ]
    summary = report.summarize(rows)
    assert ("may be chance" in report.findings(summary)) is not is_sure
    assert report.short(summary).endswith("*a* (`bbe`)." if is_sure else "no suite.")


def test_the_page_has_what_the_figures_in_the_repository_say(benchmark, tables):
    summary = benchmark.read_summary(benchmark.SUMMARY)
    assert {r["suite"] for r in summary} == set(tables.SUITES)
    assert {r["method"] for r in summary} >= set(benchmark.OURS) - set(benchmark.SLOW)
    _, page, _ = written_between(benchmark.PAGE, benchmark.SCRIPT)
    assert page.endswith(benchmark.results(summary))
    assert re.search(r"on \d{4}-\d\d-\d\d: `python benchmarks/benchmark\.py .*--write`\.", page)
    _, readme, _ = written_between(benchmark.README, benchmark.SCRIPT)
    assert readme.strip().endswith(benchmark.short(summary).strip())  # a remark may come first
    assert benchmark.PICTURE.read_bytes().startswith(b"\x89PNG")
    assert f"images/{benchmark.PICTURE.name})" in benchmark.PAGE.read_text(encoding="utf-8")


def test_the_script_runs_and_writes(benchmark, tmp_path, monkeypatch):
    command = [sys.executable, ROOT / "benchmarks/benchmark.py", "--methods", "tice", "bbe"]
    command += ["--suites", "uniforms", "wine", "--seeds", "1", "--jobs", "2"]
    command += ["--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "| `tice` | 0." in done.stdout
    out = tmp_path / "out"
    assert len((out / "benchmark.jsonl").read_text().splitlines()) == 2 * 2 * 5
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
    assert "10 draws" in text
    assert "`python it`" in text
    assert text.startswith("before")
    assert text.endswith("<!-- end --> after <!-- end -->")
    assert benchmark.results(benchmark.read_summary(out / "summary.csv")) in text
