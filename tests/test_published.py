"""Published draws and answers: what is hidden, by hand, and what the tables say."""

import importlib
import re
from collections import Counter
from pathlib import Path

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
def published():
    return imported("published")


@pytest.fixture(scope="module")
def tables():
    return imported("published_draws")


LABELS = np.array(["no"] * 90 + ["a"] * 40 + ["b"] * 30 + ["c"] * 20)


def suite_of(tables, numbers):
    return tables.Suite("table.parquet", "", "", lambda label: label == "no", numbers)


def hidden_of(tables, numbers, share, iteration=0):
    is_known, is_hidden = suite_of(tables, numbers).hidden(LABELS, share, iteration)
    assert not np.any(is_known & is_hidden)
    assert not np.any((is_known | is_hidden)[LABELS == "no"])
    assert np.all((is_known | is_hidden)[LABELS != "no"])
    return is_hidden


def test_positives_are_hidden_alike(tables):
    # 90 negatives and a share of 10% ask for 10 positives: the first ones of a shuffle.
    rows = np.arange(90, 180)
    np.random.seed(3)  # as in the study
    np.random.shuffle(rows)
    assert np.array_equal(
        np.flatnonzero(hidden_of(tables, tables.alike, 0.1, 3)), sorted(rows[:10])
    )


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("doubling", {"a": 13, "b": 6, "c": 3}),  # 22 in parts of 4/7, 2/7 and 1/7
        ("equal", {"a": 8, "b": 8, "c": 8}),  # (22 + 1) // 3 + 1 of each
    ],
)
def test_positives_are_hidden_by_kind(tables, numbers, expected):
    is_hidden = hidden_of(tables, getattr(tables, numbers), 0.2)
    assert Counter(LABELS[is_hidden].tolist()) == expected
    assert not np.array_equal(is_hidden, hidden_of(tables, getattr(tables, numbers), 0.2, 1))


def test_a_draw_has_the_known_rows_the_others_and_their_share(tables, tmp_path):
    frame = pd.DataFrame({"x": np.arange(180.0), "y": [np.nan, 1.0] * 90, "target": LABELS})
    frame.to_parquet(tmp_path / "table.parquet")
    suite = suite_of(tables, tables.alike)
    X_positive, X_unlabeled, truth = suite.draw(tmp_path, 0.1, 0)
    assert (len(X_positive), len(X_unlabeled), truth) == (80, 100, 0.1)
    assert sorted(np.r_[X_positive[:, 0], X_unlabeled[:, 0]]) == list(range(180))
    assert np.all(X_unlabeled[X_unlabeled[:, 0] % 2 == 0, 1] == 0.0)  # gaps


def test_a_table_in_another_order_is_not_that_of_the_study(tables, tmp_path, monkeypatch):
    frame = pd.DataFrame({"x": np.arange(180.0), "target": LABELS})
    suite = suite_of(tables, tables.alike)._replace(labels=tables.digest_of(LABELS))
    monkeypatch.setattr(tables, "SUITES", {"mine": suite, "other": suite._replace(path="none")})
    frame.to_parquet(tmp_path / "table.parquet")
    reasons = dict(tables.readable(tmp_path, ["mine", "other"]))
    assert reasons["mine"] == ""
    assert "none" in reasons["other"]
    elsewhere = tmp_path / "sorted"
    elsewhere.mkdir()
    frame.sort_values("target").to_parquet(elsewhere / "table.parquet")
    assert "order" in dict(tables.readable(elsewhere, ["mine"]))["mine"]
    assert "OpenML" in dict(tables.readable(None, ["mine"]))["mine"]


def row(method, estimate, iteration=0, **more):
    limits = {"low": 0.05, "high": 0.2, "bound": 0.3, "meaning": "about", "warned": 0}
    setting = {"suite": "scar_magic_gamma", "share": 0.1, "iteration": iteration}
    return {**setting, "method": method, "estimate": estimate, "truth": 0.1, "seconds": 2.0} | (
        limits | more
    )


def test_errors_are_those_of_the_same_draws(published, monkeypatch):
    theirs = {("scar_magic_gamma", 0.1, i): {"Rival": 0.1 + e} for i, e in enumerate([0.01, 0.02])}
    monkeypatch.setattr(published, "answers", lambda: theirs)
    rows = [row("auto", 0.14, i) for i in range(2)]
    rows += [row("subtypes", 0.2, i, bound=0.09, low=0.11, meaning="biased") for i in range(2)]
    auto, subtypes, rival = published.summarize(rows)
    assert [r["error"] for r in (auto, subtypes, rival)] == pytest.approx([0.04, 0.1, 0.015])
    assert rival["more"] == pytest.approx(-0.025)
    assert (auto["covered"], auto["bound_failed"], auto["warned"]) == (1.0, 0.0, 0.0)
    assert (subtypes["covered"], subtypes["bound_failed"], subtypes["warned"]) == (0.0, 1.0, 1.0)
    (line,) = published.findings([auto, subtypes, rival])
    assert re.search(r"we lose\*\* to Rival: 0\.015 against 0\.040 of \*\*`auto`\*\*\.", line)
    assert "on 1 of 1, a published answer" in published.sentence([auto, subtypes, rival])
    table = published.error_table([auto, subtypes, rival])
    assert "| 0.040 | 0.100 | **0.015** |" in table


def test_we_say_who_is_second(published, monkeypatch):
    theirs = {("scar_magic_gamma", 0.1, i): {"Rival": 0.2} for i in range(2)}
    monkeypatch.setattr(published, "answers", lambda: theirs)
    rows = [row(m, 0.11 + 0.01 * i, i) for m in ("auto", "subtypes") for i in range(2)]
    (line,) = published.findings(published.summarize(rows))
    assert "smallest error" in line
    assert "Rival, 0.100." in line


def test_published_answers_cover_all_suites(published, tables):
    known = published.answers()
    assert {suite for suite, _, _ in known} == set(tables.SUITES)
    assert {iteration for _, _, iteration in known} == set(range(10))
    assert all(0.0 <= x <= 1.0 for found in known.values() for x in found.values())
    biased = [found for (suite, _, _), found in known.items() if suite.startswith("snar")]
    assert all("PULSNAR" in found for found in biased)


def test_pages_have_what_the_figures_say(published):
    if not published.FIGURES.exists():
        pytest.skip("there are no figures yet; run python benchmarks/published.py --write")
    rows = published.read(published.FIGURES)
    _, page, _ = written_between(published.PAGE, published.SCRIPT)
    assert page.endswith(published.results(rows))
    _, claims, _ = written_between(published.PAGE, f"{published.SCRIPT}, verdicts")
    assert claims.strip() == published.verdicts().strip()
    assert claims.count("\n| ") >= 15
    _, line, _ = written_between(published.README, published.SCRIPT)
    assert line == published.sentence(published.summarize(rows))


def test_a_folder_of_this_machine_is_not_named(published):
    assert published.given(["--data", "tables", "--write"]) == ["--data", "FOLDER", "--write"]
