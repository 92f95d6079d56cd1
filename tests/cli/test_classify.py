"""``classprior classify`` and ``predict``: which rows, in what file, by which model."""

import io
import json
import resource
import subprocess
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from skops import io as skops_io

from classprior import estimate_prior
from classprior._frames import as_numbers
from classprior._models import fit_row_model, load_model
from cli.conftest import COMMAND, environment, make_frames

TWO = ("positive.csv", "unlabeled.csv")
ONE = ("marked.parquet", "--label", "known", "--positive", "yes")
QUICK = ("--method", "penl1", "--centers", 10)


@pytest.fixture(autouse=True)
def few_halves(monkeypatch):
    """Save time: the interval is not what is tested here."""
    monkeypatch.setattr("classprior.estimate._HALVES", 2)


@pytest.fixture(scope="module")
def classified(tmp_path_factory):
    """Make a scored file, a model and the truth."""
    folder = tmp_path_factory.mktemp("classified")
    positive, unlabeled = make_frames(n=200, m=600)
    positive.to_csv(folder / "positive.csv", index=False)
    unlabeled.to_csv(folder / "unlabeled.csv", index=False)
    subprocess.run(
        [COMMAND, "classify", *TWO, "--out", "scored.csv", "--save-model", "model.skops"],
        cwd=folder,
        env=environment(),
        check=True,
        capture_output=True,
    )
    return folder, unlabeled.index < 200 + 180


def test_rows_are_told_apart_and_kept_as_they_were(classified):
    folder, truth = classified
    before = (folder / "unlabeled.csv").read_text().splitlines()
    after = (folder / "scored.csv").read_text().splitlines()
    assert [line.rsplit(",", 2)[0] for line in after] == before
    scored = pd.read_csv(folder / "scored.csv")
    assert np.mean(scored["positive"] != truth) < 0.1
    assert scored["probability"].between(0, 1).all()
    assert (scored["positive"] == (scored["probability"] >= 0.5)).all()


def test_a_model_scores_new_rows(classified, run, monkeypatch):
    folder, _ = classified
    monkeypatch.chdir(folder)
    _, unlabeled = make_frames(n=1, m=500, seed=1)
    new = unlabeled[["hours", "id", "colour", "amount"]].assign(note="x")
    new.to_csv("new.csv", index=False)
    answer = run("predict", "model.skops", "new.csv", "--out", "-")
    scored = pd.read_csv(io.StringIO(answer.stdout))
    pd.testing.assert_frame_equal(scored[list(new)], new.reset_index(drop=True))
    assert np.mean(scored["positive"] != (unlabeled.index < 1 + 150)) < 0.1
    assert f"{scored['positive'].sum()} of 500 rows are more likely positive" in answer.stderr


def test_new_rows_that_do_not_fit(classified, run, monkeypatch):
    folder, _ = classified
    monkeypatch.chdir(folder)
    Path("short.csv").write_text("amount,id\n1,2\n")
    Path("scored-twice.csv").write_text("amount,probability\n1,2\n")
    missing = run("predict", "model.skops", "short.csv", "--out", "x.csv", code=1).stderr
    assert "a table without 'hours', 'colour'; it has 'amount', 'id'" in missing
    twice = run("predict", "model.skops", "scored-twice.csv", "--out", "x.csv", code=1).stderr
    assert "no column called 'probability'" in twice
    assert not Path("x.csv").exists()


def test_every_format_comes_back_in_its_own(folder, run):
    run("classify", *ONE, *QUICK, "--out", "scored.parquet")
    scored = pd.read_parquet("scored.parquet")
    marked = pd.read_parquet("marked.parquet")
    unlabeled = marked[marked["known"].isna()].reset_index(drop=True)
    pd.testing.assert_frame_equal(scored[list(marked)], unlabeled)
    assert scored["positive"].dtype == bool
    run("classify", *ONE, *QUICK, "--out", "scored.csv.gz")
    assert np.allclose(pd.read_csv("scored.csv.gz")["probability"], scored["probability"])


def test_the_classifier_that_foresees_best_is_taken():
    """A line cannot tell a core from the ring around it."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 700)
    ring = 5.0 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(size=(700, 2))
    core = rng.normal(size=(500, 2))
    frame = pd.DataFrame(np.vstack([core, ring]), columns=["x", "y"])
    encoded = as_numbers(frame[:200], frame[200:])
    estimate = estimate_prior(frame[:200], frame[200:], random_state=0, n_repeats=1)
    model, probabilities = fit_row_model(encoded, estimate, 0)
    losses = {
        name: log_loss(np.repeat([1, 0], [200, 1000]), expit(np.concatenate(scores)))
        for name, scores in estimate.evidence.scores.items()
        if name != "together"
    }
    is_kernel = "nystroem" in dict(getattr(model[-1].ratio_, "steps", ()))
    assert min(losses, key=losses.get) == ("kernel" if is_kernel else "trees")
    truth = np.arange(1000) < 300
    assert np.mean((probabilities >= 0.5) != truth) < 0.1
    assert np.mean((model.predict_proba(frame[200:])[:, 1] >= 0.5) != truth) < 0.1


def test_european_files_stay_european(folder, run):
    for name in TWO:
        table = pd.read_csv(name).assign(code="007")
        table.to_csv(name, index=False, sep=";", decimal=",", encoding="utf-16")
    run("classify", *TWO, *QUICK, "--out", "scored.csv")
    before = Path("unlabeled.csv").read_text(encoding="utf-16").splitlines()
    after = Path("scored.csv").read_text(encoding="utf-16").splitlines()
    assert [line.rsplit(";", 2)[0] for line in after] == before
    assert "," in after[1].split(";")[-2]


def test_nothing_is_overwritten_unless_told_to(folder, run):
    Path("scored.csv").write_text("precious")
    message = run("classify", *TWO, *QUICK, "--out", "scored.csv", code=1).stderr
    assert "exists" in message
    assert Path("scored.csv").read_text() == "precious"
    run("classify", *TWO, *QUICK, "--out", "scored.csv", "--force")
    assert "probability" in Path("scored.csv").read_text()


def test_a_table_is_not_called_what_it_is_not(folder, run):
    arguments = ("classify", "positive.csv", "unlabeled.csv", "--out", "scored.xlsx")
    assert "got 'scored.xlsx'" in run(*arguments, code=2).stderr


def test_outputs_that_would_replace_each_other(folder, run):
    message = run("classify", *TWO, "--out", "x.csv", "--save-model", "./x.csv", code=1).stderr
    assert "Expected a file of its own for every output" in message


def test_a_disk_that_is_full_leaves_nothing(folder):
    """A limit on the size of files stands for a full disk."""
    before = sorted(folder.iterdir())
    answer = subprocess.run(
        [COMMAND, "classify", *TWO, "--out", "scored.csv"],
        capture_output=True,
        env=environment(),
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert answer.returncode == 1
    assert b"Could not read or write: File too large." in answer.stderr
    assert sorted(folder.iterdir()) == before


def rewritten(path, change):
    """Return the bytes of a model, with what its metadata say changed."""
    packed = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "classprior.json":
                content = json.dumps({**json.loads(content), **change}).encode()
            new.writestr(name, content)
    return packed.getvalue()


def with_metadata(model_bytes, about):
    packed = io.BytesIO(model_bytes)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("classprior.json", json.dumps(about))
    return packed.getvalue()


def empty_archive():
    packed = io.BytesIO()
    zipfile.ZipFile(packed, "w").close()
    return packed.getvalue()


ABOUT = {"format": 1, "classprior": "0", "scikit-learn": "0", "prior": 0.3}


class Foreign:
    """Something that no model of ours holds."""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a model", "something else or broken"),
        (skops_io.dumps(LogisticRegression()), "something else or broken"),
        (with_metadata(skops_io.dumps(Foreign()), ABOUT), "It was not opened: do not trust it."),
        (with_metadata(empty_archive(), ABOUT), "Expected a model of this version, could not open"),
        (with_metadata(skops_io.dumps(LogisticRegression()), ABOUT), "found a LogisticRegression"),
    ],
)
def test_models_that_are_refused(tmp_path, content, message):
    path = tmp_path / "model.skops"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_quietly(path)


def load_quietly(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_model(path)


def test_a_model_knows_its_versions(classified, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(rewritten(classified[0] / "model.skops", {"format": 2}))
    with pytest.raises(ValueError, match="a model in format 1, got format 2 of classprior 0"):
        load_model(path)
    path.write_bytes(rewritten(classified[0] / "model.skops", {"scikit-learn": "1.0"}))
    with pytest.warns(UserWarning, match=r"saved with scikit-learn 1\.0, this is"):
        load_model(path)
