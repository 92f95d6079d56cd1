"""``classprior review``, and ``--checked`` of the other commands."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

from classprior import Estimation
from classprior.review import load_plan
from cli.conftest import EVIDENCE

TWO = ("positive.csv", "unlabeled.csv")
ONE = ("marked.parquet", "--label", "known", "--positive", "yes")


def truth(frame):
    """Positives have low values in both columns."""
    return frame["hours"].fillna(2.0) + frame["amount"].fillna(frame["hours"]) < 4.0


def fill_in(path, n=None):
    """Answer the first rows of a sheet; return it."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    numbers = frame[["amount", "hours"]].apply(pd.to_numeric, errors="coerce")
    answers = np.where(truth(numbers), "yes", "no").astype(object)
    answers[n:] = "" if n is not None else answers[n:]
    frame["checked"] = answers
    frame.to_csv(path, index=False)
    return frame


def test_from_a_plan_to_limits(folder, run, frames):
    shown = run("review", *TWO, "--budget", 50, "--out", "review.csv").stdout
    assert "Drew 50 of the 150" in shown
    assert "forecast" in shown
    sheet = fill_in("review.csv")
    assert list(sheet.columns) == ["row", *frames[1].columns, "checked", "note"]
    rows = frames[1].iloc[sheet["row"].astype(int) - 1]
    assert list(rows["id"]) == list(sheet["id"])
    values = json.loads(run("estimate", *TWO, "--checked", "review.csv", "--json").stdout)
    found, expected = values["checked"], truth(frames[1]).sum()
    assert found["low_count"] <= expected <= found["high_count"]
    assert found["n_checked"] == 50
    assert values["answer"] == found["answer"]
    path = Path(__file__).parents[2] / "docs" / "reference" / "estimate.schema.json"
    schema = json.loads(path.read_text())
    jsonschema.validate(values, schema)
    assert set(found) == set(schema["$defs"]["checked"]["properties"])
    text = run("estimate", *TWO, "--checked", "review.csv").stdout
    assert text.split(".")[0] == found["answer"].split(".")[0]
    assert "without checked rows" in text


def test_the_plan_as_json(folder, run):
    options = ("--budget", 40, "--recall", 0.8, "--out", "review.csv", "--json")
    found = json.loads(run("review", *TWO, *options).stdout)
    assert found["may_add"] == [40, 110]
    assert list(found["expected_widths"]) == list(found["largest_widths"]) == ["20", "40", "80"]
    assert all(found["largest_widths"][n] >= w for n, w in found["expected_widths"].items())
    assert load_plan("review.plan.json").recall == 0.8
    fill_in("review.csv")
    assert "rows to read for 80%" in run("estimate", *TWO, "--checked", "review.csv").stdout


def test_the_same_by_every_door(folder, run, frames):
    run("review", *TWO, "--budget", 50, "--out", "review.csv")
    plan = load_plan("review.plan.json")
    found = Estimation.of(*frames, evidence=EVIDENCE, random_state=0).plan_review(50)
    assert found.design == plan.design
    assert found.digest == plan.digest
    sheet = fill_in("review.csv")
    estimation = Estimation.of("positive.csv", frames[1], evidence=EVIDENCE, random_state=0)
    of_file = estimation.with_checked("review.csv").estimate.checked
    answers = (sheet["checked"] == "yes").to_numpy().astype(int)
    assert of_file == estimation.with_checked((plan, answers)).estimate.checked


def test_ids_spreadsheets_and_one_table(folder, run, frames):
    run("review", *ONE, "--budget", 30, "--id", "id", "--out", "review.xlsx")
    sheet = pd.read_excel("review.xlsx", dtype={"checked": object}, engine="calamine")
    known = frames[1].set_index("id")
    assert set(sheet["id"]) <= set(known.index)
    sheet["checked"] = np.where(truth(known.loc[sheet["id"]]), True, False)
    sheet.sample(frac=1, random_state=0).to_excel("review.xlsx", index=False)
    values = json.loads(run("estimate", *ONE, "--checked", "review.xlsx", "--json").stdout)
    assert values["checked"]["n_checked"] == 30
    run("review", *ONE, "--budget", 30, "--out", "numbered.csv")
    marked = pd.read_parquet("marked.parquet")
    numbered = pd.read_csv("numbered.csv")
    assert list(marked["id"].iloc[numbered["row"] - 1]) == list(numbered["id"])


def test_rows_are_added_and_all_sheets_count(folder, run, frames):
    plan = ("--budget", 20, "--reserve", 0.5, "--addition", 15, "--addition", 25)
    assert "15, 40" in run("review", *TWO, *plan, "--out", "review.csv").stdout
    fill_in("review.csv")
    given = ("review", *TWO, "--plan", "review.plan.json", "--out", "more.csv")
    assert "15, 40" in run(*given, "--budget", 39, code=1).stderr
    assert "15, 40" in run(*given, "--addition", 39, code=1).stderr
    assert "15 more" in run(*given).stdout
    assert "40 more" in run(*given, "--budget", 40, "--force").stdout
    first, second = fill_in("review.csv"), fill_in("more.csv")
    assert len(second) == 40
    assert not set(first["row"]) & set(second["row"])
    given = ("--checked", "review.csv", "--checked", "more.csv", "--json")
    found = json.loads(run("estimate", *TWO, *given).stdout)["checked"]
    assert found["n_checked"] == found["n_planned"] == 60
    assert found["low_count"] <= truth(frames[1]).sum() <= found["high_count"]


def test_entries_are_never_overwritten(folder, run):
    run("review", *TWO, "--budget", 20, "--out", "review.csv")
    assert "exists" in run("review", *TWO, "--out", "review.csv", code=1).stderr
    run("review", *TWO, "--budget", 20, "--out", "review.csv", "--force")
    fill_in("review.csv", 3)
    before = Path("review.csv").read_bytes()
    assert "entries" in run("review", *TWO, "--out", "review.csv", "--force", code=1).stderr
    assert Path("review.csv").read_bytes() == before


def test_changed_data_are_noticed(folder, run, frames):
    run("review", *TWO, "--budget", 20, "--out", "review.csv")
    fill_in("review.csv")
    checked = ("--checked", "review.csv")
    frames[1].iloc[::-1].to_csv("unlabeled.csv", index=False)
    assert "have changed" in run("estimate", *TWO, *checked, code=1).stderr
    frames[1].iloc[:-1].to_csv("unlabeled.csv", index=False)
    assert "150" in run("estimate", *TWO, *checked, code=1).stderr


def test_a_random_sample_without_a_plan(folder, run, frames):
    rows = np.random.default_rng(0).choice(150, 40, replace=False)
    sample = pd.DataFrame({"row": rows + 1, "checked": truth(frames[1].iloc[rows]).astype(int)})
    sample.to_csv("sample.csv", index=False)
    error = run("estimate", *TWO, "--checked", "sample.csv", code=1).stderr
    assert "--random-sample" in error
    assert "by hand" in error
    given = ("--checked", "sample.csv", "--random-sample", "--json")
    found = json.loads(run("estimate", *TWO, *given).stdout)["checked"]
    assert found["low_count"] <= truth(frames[1]).sum() <= found["high_count"]
    sample.assign(row=sample["row"] + 150).to_csv("sample.csv", index=False)
    assert "no unlabeled row" in run("estimate", *TWO, *given, code=1).stderr


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (("--random-sample",), "--checked"),
        (("--plan", "positive.csv"), "--checked"),
    ],
)
def test_options_that_do_not_belong_together(folder, run, options, fact):
    assert fact in run("estimate", *TWO, *options, code=2).stderr


def test_weights_are_refused_with_the_reason(folder, run, frames):
    for name, frame in zip(TWO, frames, strict=True):
        frame.assign(w=1.0 + np.arange(len(frame)) % 2).to_csv(name, index=False)
    error = run("review", *TWO, "--weights", "w", "--out", "review.csv", code=1).stderr
    assert "weights do not apply" in error


def test_segments_of_the_plan(folder, run, frames):
    run("review", *TWO, "--budget", 60, "--by", "color", "--out", "review.csv")
    fill_in("review.csv")
    found = json.loads(run("estimate", *TWO, "--checked", "review.csv", "--json").stdout)
    parts = {part["segment"]: part for part in found["checked"]["segments"]}
    is_red = (frames[1]["color"] == "red").to_numpy()
    assert parts["red"]["n_unlabeled"] == is_red.sum()
    assert sum(part["n_checked"] for part in parts.values()) == 60
    expected = truth(frames[1])[is_red].sum()
    assert parts["red"]["low_count"] <= expected <= parts["red"]["high_count"]


def test_checked_rows_correct_probabilities(folder, run, frames):
    run("review", *TWO, "--budget", 80, "--out", "review.csv")
    fill_in("review.csv")
    out = run("classify", *TWO, "--checked", "review.csv", "--out", "scored.csv").stdout
    assert "corrected with 80 checked rows" in out
    scored = pd.read_csv("scored.csv")
    assert ((scored["probability"] >= 0.5) == scored["positive"]).all()
    assert abs(scored["probability"].mean() - truth(frames[1]).mean()) < 0.03
    run("review", *TWO, "--budget", 10, "--out", "few.csv")
    fill_in("few.csv")
    out = run("classify", *TWO, "--checked", "few.csv", "--out", "other.csv").stdout
    assert "too few checked rows" in out


def test_the_report_leads_with_the_checked_rows(folder, run):
    run("review", *TWO, "--budget", 60, "--out", "review.csv")
    fill_in("review.csv")
    run("report", *TWO, "--checked", "review.csv", "--out", "report.html")
    page = Path("report.html").read_text()
    assert page.index("What the checked rows prove") < page.index("Without the checked rows")
    assert "Of 60 checked rows" in page
    assert "rows read, in order of rank" in page
    assert "find 95% of the positives" in page
    assert "Elusion" in page
    assert "mean predicted probability" in page


def test_a_column_of_the_sheet_that_exists(folder, run, frames):
    for name, frame in zip(TWO, frames, strict=True):
        frame.assign(row=1.0).to_csv(name, index=False)
    assert "--id" in run("review", *TWO, "--out", "review.csv", code=1).stderr
    run("review", *TWO, "--id", "id", "--out", "review.csv")


def test_own_scores(folder, run, frames):
    for name, frame in zip(TWO, frames, strict=True):
        frame.assign(s=-frame["hours"]).to_csv(name, index=False)
    run("review", *TWO, "--score", "s", "--budget", 50, "--out", "review.csv")
    fill_in("review.csv")
    given = ("--score", "s", "--checked", "review.csv", "--json")
    found = json.loads(run("estimate", *TWO, *given).stdout)["checked"]
    assert found["low_count"] <= truth(frames[1]).sum() <= found["high_count"]
