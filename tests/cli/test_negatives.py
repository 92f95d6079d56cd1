"""Confirmed negatives on the command line: ``--negative``."""

import json

import numpy as np
import pandas as pd
import pytest

from classprior import estimate_prior
from cli.conftest import EVIDENCE, make_frames

LABELS = ["fraud", "unknown", "ok"]
ONE = ("three.csv", "--label", "status", "--negative", "ok")


@pytest.fixture
def three(tmp_path, monkeypatch):
    """Write a file with three labels, and return its three kinds of rows."""
    monkeypatch.chdir(tmp_path)
    positive, unlabeled = make_frames(n=120, m=400)
    negative = unlabeled[unlabeled["hours"] > 3.0][:100]
    unlabeled = unlabeled.drop(negative.index)
    kinds = positive, unlabeled, negative
    parts = [part.assign(status=label) for part, label in zip(kinds, LABELS, strict=True)]
    pd.concat(parts).sample(frac=1, random_state=0).to_csv("three.csv", index=False)
    whole = pd.read_csv("three.csv")
    return [whole[whole["status"] == label].drop(columns="status") for label in LABELS]


def test_command_line(three, run):
    found = json.loads(run("estimate", *ONE, "--json").stdout)
    positive, unlabeled, negative = three
    expected = estimate_prior(
        positive, unlabeled, X_negative=negative, evidence=EVIDENCE, random_state=0
    )
    for name in ("prior", "high", "prior_pooled", "n_positive", "n_unlabeled", "n_negative"):
        assert found[name] == getattr(expected, name)
    assert found["n_negative"] == 100
    compared = json.loads(run("compare", *ONE, "--methods", "auto", "--json").stdout)
    assert compared["n_negative"] == 100
    run("classify", *ONE, "--out", "scored.csv")
    written = pd.read_csv("scored.csv")
    assert (len(written), set(written["status"])) == (len(three[1]), {"unknown"})


@pytest.mark.parametrize(
    ("arguments", "facts", "code"),
    [
        ((*ONE[:3], "--negative", "fine"), ["'fine'", "'status'", "'ok' in 100 rows"], 1),
        (("three.csv", "other.csv", "--negative", "ok"), ["--negative"], 2),
        (ONE[:3], ["--positive", "'ok' in 100 rows", "--negative"], 2),
        ((*ONE, "--positive", "unknown"), ["'fraud' in 120 rows", "'ok' in 100 rows"], 0),
        ((*ONE, "--weights", "amount"), ["weights"], 1),
    ],
)
def test_command_line_with_other_labels(three, run, arguments, facts, code):
    answer = run("estimate", *arguments, code=code)
    said = " ".join((answer.stderr if code else answer.stdout).split())
    assert [fact for fact in facts if fact not in said] == []


def test_a_no_beside_unknown_may_be_a_confirmed_negative(tmp_path, run):
    positive, unlabeled = make_frames()
    status = np.where(np.arange(150) < 30, "no", "open")
    data = pd.concat([positive.assign(status="yes"), unlabeled.assign(status=status)])
    data.to_csv(tmp_path / "t.csv", index=False)
    assert "--negative no" in " ".join(
        run("estimate", tmp_path / "t.csv", "--label", "status").stdout.split()
    )
