"""Files too large for memory are gone through in blocks, with the same answer."""

import json
import os
from functools import partial

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from classprior import auto_prior
from classprior.cli import _large

TWO = ("positive.csv", "unlabeled.csv")


@pytest.fixture(autouse=True)
def quick_evidence(monkeypatch):
    """Bound and warnings from one classifier, where the default has three in eight rounds."""
    linear = {"linear": LogisticRegression()}
    quick = partial(auto_prior, classifiers=linear, n_repeats=1)
    monkeypatch.setattr("classprior.estimate.auto_prior", quick)
    monkeypatch.setattr("classprior.estimate._HALVES", 3)


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(_large, "memory_of_machine", lambda: 1000.0)


@pytest.mark.usefixtures("little_memory")
def test_the_answer_is_that_of_memory(folder, run, monkeypatch):
    """60 and 150 rows are all in the sample, so "auto" sees the same rows as ever."""
    in_blocks = json.loads(run("estimate", *TWO, "--json").stdout)
    monkeypatch.setattr(_large, "memory_of_machine", lambda: 1e9)
    in_memory = json.loads(run("estimate", *TWO, "--json").stdout)
    assert in_blocks["columns"] == in_memory["columns"]
    assert (in_blocks["n_positive"], in_blocks["n_unlabeled"]) == (60, 150)
    assert in_blocks["prior"] == pytest.approx(in_memory["prior"], abs=0.05)
    assert in_blocks["warnings"] == in_memory["warnings"]


@pytest.mark.usefixtures("little_memory")
def test_folders_of_parquet_and_a_note(folder, run, frames):
    for number in range(3):
        (folder / "many").mkdir(exist_ok=True)
        frames[1][50 * number : 50 * number + 50].to_parquet(
            folder / "many" / f"{number}.parquet", index=False
        )
    frames[0].to_parquet("positive.parquet", index=False)
    answer = run("estimate", "positive.parquet", "many", "--method", "penl1", "--drop", "id")
    assert "of the 150 unlabeled rows" in answer.stdout
    assert "4 files were gone through in blocks" in answer.stdout.replace("\n", " ")
    assert "penl1, from 60 known positives" in answer.stdout


def test_csv_as_people_write_it(folder, run, frames):
    for frame, name in zip(frames, TWO, strict=True):
        frame.to_csv(name, index=False, sep=";", decimal=",")
    frames[1].to_csv("unlabeled.csv.gz", index=False, sep=";", decimal=",")
    options = ("--method", "penl1", "--checkpoint", "sums", "--json")
    plain, packed = (
        json.loads(run("estimate", "positive.csv", name, *options).stdout)
        for name in ("unlabeled.csv", "unlabeled.csv.gz")
    )
    kinds = {column["name"]: column["kind"] for column in plain["columns"]}
    assert kinds == {
        "id": "identifier",
        "amount": "number",
        "hours": "number",
        "colour": "category",
    }
    assert plain["prior"] == packed["prior"]
    assert "sums" not in os.listdir()


def test_a_report_from_blocks(folder, run):
    options = ("--method", "penl1", "--checkpoint", "sums", "--out", "page.html")
    run("report", *TWO, *options)
    assert "unlabeled.csv" in (folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*TWO, "--checkpoint", "sums"), "Expected the method 'penl1' with a checkpoint"),
        ((*TWO, "--method", "en", "--checkpoint", "sums"), "'auto' or 'penl1', got 'en'"),
        (
            ("marked.parquet", "--label", "known", "--positive", "yes", "--checkpoint", "sums"),
            "Expected two sets of files",
        ),
    ],
)
def test_what_blocks_cannot_do(folder, run, arguments, message):
    assert message in run("estimate", *arguments, code=1).stderr.replace("\n", " ")


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("positive.csv", "positive.csv"), "two different files, got 'positive.csv' twice"),
        ((*TWO, "--label", "id"), "Got two files with --label"),
        ((*TWO, "--positive", "1"), "Got two files with --positive"),
    ],
)
def test_usage_is_checked_as_in_memory(folder, run, arguments, message):
    assert message in run("estimate", *arguments, code=2).stderr


@pytest.mark.usefixtures("little_memory")
def test_other_methods_are_read_into_memory(folder):
    assert _large.go_in_blocks(*TWO, "penl1", None, None)
    assert not _large.go_in_blocks(*TWO, "pe", None, None)
    assert not _large.go_in_blocks("positive.csv", "-", "penl1", None, None)


def test_text_among_numbers_far_down_is_named(folder, run, frames):
    frame = pd.concat([frames[1]] * 400, ignore_index=True)  # beyond what types are guessed from
    frame["hours"] = frame["hours"].astype(object)
    frame.loc[59_000, "hours"] = "three"
    frame.to_csv("unlabeled.csv", index=False)
    answer = run("estimate", *TWO, "--method", "penl1", "--checkpoint", "sums", code=1)
    assert "unlabeled.csv" in answer.stderr
    assert "three" in answer.stderr
