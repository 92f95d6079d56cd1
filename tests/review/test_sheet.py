"""The sheet: what is written, what is read back, and what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from classprior import Estimation
from classprior.review import load_plan, plan_path, plan_review, read_sheets, write_sheet
from cli.conftest import EVIDENCE
from review.test_plan import population


@pytest.fixture(scope="module")
def made():
    is_positive, scores, p = population(n_rows=200)
    plan = plan_review(scores, p, budget=24, random_state=0)
    plan = replace(plan, keys=tuple(f"{row:04}" for row in plan.rows), key_column="id")
    table = pa.table({"amount": np.array(plan.rows) * 0.5, "id": list(plan.keys)})
    return is_positive, plan, table


@pytest.fixture
def sheet(made, tmp_path):
    """Return a sheet in CSV, its answers and its plan."""
    is_positive, plan, table = made
    path = tmp_path / "review.csv"
    write_sheet(path, plan, table)
    return path, is_positive[list(plan.rows)].astype(int), plan


def filled(path, answers):
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    frame["checked"] = answers
    return frame


def test_a_sheet_has_no_scores_and_its_plan_is_beside_it(sheet):
    path, _, plan = sheet
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert list(frame.columns) == ["id", "amount", "checked", "note"]
    assert tuple(frame["id"]) == plan.keys
    assert set(frame["checked"]) == set(frame["note"]) == {""}
    assert plan_path(path).name == "review.plan.json"
    assert load_plan(plan_path(path)) == plan


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".xlsx", ".tsv"])
def test_every_format_comes_back(made, tmp_path, suffix):
    _, plan, table = made
    path = tmp_path / f"review{suffix}"
    write_sheet(path, plan, table)
    _, answers, notes = read_sheets(path)
    assert set(answers) == {-1}
    assert notes == []
    read = {
        ".xlsx": lambda: pd.read_excel(path, dtype=str, engine="calamine"),
        ".parquet": lambda: pd.read_parquet(path),
        ".feather": lambda: pd.read_feather(path),
        ".csv": lambda: pd.read_csv(path, dtype=str),
        ".tsv": lambda: pd.read_csv(path, dtype=str, sep="\t"),
    }[suffix]
    frame = read()
    assert list(frame["id"]) == list(plan.keys)


@pytest.mark.parametrize(
    ("yes", "no"), [("yes", "no"), ("TRUE", "FALSE"), ("1", "0"), ("1.0", "0.0"), (" Yes ", "No")]
)
def test_answers_in_any_order_and_spelling(sheet, yes, no):
    path, answers, plan = sheet
    frame = filled(path, np.where(answers == 1, yes, no))
    frame.sample(frac=1, random_state=1).to_csv(path, index=False)
    found_plan, found, _ = read_sheets(path)
    assert found_plan == plan
    np.testing.assert_array_equal(found, answers)


def test_a_sheet_retyped_by_a_spreadsheet(sheet, tmp_path):
    """Identifiers lose leading zeros, answers become numbers or booleans, columns move."""
    path, answers, plan = sheet
    frame = filled(path, answers)
    frame["id"] = frame["id"].astype(int)
    frame["id"] = frame["id"].astype(float)  # 7.0
    frame["checked"] = answers.astype(bool)
    other = tmp_path / "filled in.xlsx"
    frame[["note", "checked", "amount", "id"]].to_excel(other, index=False)
    _, found, _ = read_sheets(other, plan)
    np.testing.assert_array_equal(found, answers)
    frame.to_csv(path, index=False, sep=";")
    np.testing.assert_array_equal(read_sheets(path)[1], answers)


def test_open_unsure_and_missing_rows_are_unknown(sheet):
    path, answers, _ = sheet
    texts = np.where(answers == 1, "yes", "no").astype(object)
    texts[3], texts[5] = "unsure", ""
    filled(path, texts).drop(index=8).to_csv(path, index=False)
    found = read_sheets(path)[1]
    assert list(np.flatnonzero(found == -1)) == [3, 5, 8]


def test_conflicting_answers_are_named_and_unsure(sheet):
    path, answers, plan = sheet
    frame = filled(path, np.where(answers == 1, "yes", "no"))
    twice = frame.iloc[[2, 4]].copy()
    twice["checked"] = ["no" if frame["checked"][2] == "yes" else "yes", frame["checked"][4]]
    pd.concat([frame, twice]).to_csv(path, index=False)
    _, found, (note,) = read_sheets(path)
    assert list(np.flatnonzero(found == -1)) == [2]
    assert plan.keys[2] in note
    assert plan.keys[4] not in note


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (lambda f: f.assign(checked=["maybe", *f["checked"][1:]]), ["maybe", "checked"]),
        (lambda f: f.assign(id=["9999", *f["id"][1:]]), ["9999", "another plan"]),
        (lambda f: f.rename(columns={"checked": "Checked?"}), ["checked", "Checked?"]),
        (lambda f: f.drop(columns="id"), ["id"]),
    ],
)
def test_what_cannot_be_understood_is_named(sheet, change, facts):
    path, answers, _ = sheet
    change(filled(path, np.where(answers == 1, "yes", "no"))).to_csv(path, index=False)
    with pytest.raises(ValueError, match=facts[0]) as caught:
        read_sheets(path)
    assert all(fact in str(caught.value) for fact in facts)


def test_rows_without_a_plan_are_refused(sheet, tmp_path):
    path, answers, _ = sheet
    other = tmp_path / "other.csv"
    filled(path, answers).to_csv(other, index=False)
    with pytest.raises(ValueError, match=r"other\.plan\.json.*picked by hand"):
        read_sheets(other)


def test_nothing_that_was_typed_is_overwritten(made, sheet):
    path, _, plan = sheet
    table = made[2]
    write_sheet(path, plan, table)  # it has no entries yet
    for column in ("checked", "note"):
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        frame.loc[3, column] = "no"
        frame.to_csv(path, index=False)
        before = path.read_bytes()
        with pytest.raises(ValueError, match="would be lost"):
            write_sheet(path, plan, table)
        assert path.read_bytes() == before
        frame.assign(checked="", note="").to_csv(path, index=False)


def test_the_sheets_of_a_longer_plan(made, sheet, tmp_path):
    is_positive, scores, p = population(n_rows=200)
    path, answers, plan = sheet
    more = plan.topped_up(scores, p, 24)
    new = tuple(f"{row:04}" for row in more.rows[24:])
    more = replace(more, keys=(*plan.keys, *new))
    second = tmp_path / "more.csv"
    write_sheet(second, more, pa.table({"id": list(new)}))
    filled(path, answers).to_csv(path, index=False)
    filled(second, is_positive[list(more.rows[24:])].astype(int)).to_csv(second, index=False)
    found_plan, found, _ = read_sheets([path, second])
    assert found_plan == more
    np.testing.assert_array_equal(found, is_positive[list(more.rows)])
    other = replace(more, seed=5)
    other.save(plan_path(second))
    with pytest.raises(ValueError, match="different plans"):
        read_sheets([path, second])


def test_columns_for_answers_must_be_free(made, tmp_path):
    _, plan, table = made
    with pytest.raises(ValueError, match="note"):
        write_sheet(tmp_path / "a.csv", plan, table.append_column("note", pa.array([""] * 24)))
    with pytest.raises(ValueError, match="pdf"):
        write_sheet(tmp_path / "a.pdf", plan, table)


@pytest.mark.parametrize("budget", [20, 60])
def test_only_rows_that_were_added_are_written(budget, tmp_path):
    """Plans of few rows have no halfway look, plans of many have one."""
    rng = np.random.default_rng(0)
    known = pd.DataFrame(rng.normal(3, 1, (80, 2)), columns=["a", "b"])
    hidden, negative = rng.normal(3, 1, (80, 2)), rng.normal(0, 1, (220, 2))
    pile = pd.DataFrame(np.vstack([hidden, negative]), columns=["a", "b"])
    estimation = Estimation.of(known, pile, evidence=EVIDENCE, random_state=0)
    plan = estimation.plan_review(budget, additions=[15])
    estimation.write_review(plan, tmp_path / "first.csv")
    plan = load_plan(tmp_path / "first.plan.json")
    estimation.write_review(estimation.plan_review(plan=plan), tmp_path / "more.csv")
    first, more = (pd.read_csv(tmp_path / name)["row"] for name in ("first.csv", "more.csv"))
    assert (len(first), len(more)) == (budget, 15)
    assert not set(first) & set(more)
    assert load_plan(tmp_path / "more.plan.json").n_before == budget
