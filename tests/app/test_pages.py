"""From files to an answer, page by page."""

import io
import json
import re

import pandas as pd
import pytest
from click.testing import CliRunner

from app.conftest import commands_of, text_of
from classprior import estimate_prior
from classprior.cli import main
from cli.conftest import EVIDENCE


def files_of(browser, run):
    return {
        kind: browser.get(f"{run.url.path}/download/{kind}").content
        for kind in ("report", "scored", "model")
    }


def two(contents):
    return ("known.csv", contents["known"]), ("unlabeled.csv", contents["unlabeled"])


def test_two_files_give_the_answer_of_estimate_prior_and_of_the_command(browser, contents, folder):
    page = browser.ended(browser.upload(*two(contents)))
    assert "60 rows" in text_of(page)
    assert "150 rows" in text_of(page)
    run = browser.estimate(page)
    expected = estimate_prior("known.csv", "unlabeled.csv", evidence=EVIDENCE, random_state=0)
    assert expected.answer in text_of(run)
    assert run.text.count("<h1") == 1
    found = files_of(browser, run)
    assert expected.answer in found["report"].decode()
    estimate, classify = commands_of(run)
    assert estimate == "classprior estimate known.csv unlabeled.csv --report report.html"
    for command in (estimate, classify):
        assert CliRunner().invoke(main, command.split()[1:], obj=EVIDENCE).exit_code == 0
    assert (folder / "scored.csv").read_bytes() == found["scored"]
    assert (folder / "rows.model").read_bytes() == found["model"]
    assert expected.answer in (folder / "report.html").read_text()


def test_one_file_with_labels(browser, contents, folder):
    page = browser.ended(browser.upload(("marked.csv", contents["marked"])))
    text = text_of(page)
    assert "state is unknown (140 rows)" in text
    run = browser.estimate(page, positive="1:1", negative="1:2")
    told = {"label": "state", "positive": "fraud", "negative": "fine"}
    expected = estimate_prior("marked.csv", **told, evidence=EVIDENCE, random_state=0)
    assert expected.n_negative == 10
    assert expected.answer in text_of(run)
    assert f"{expected.label_frequency:.1%} of the positives are known" in text_of(run)
    scored = pd.read_csv(io.BytesIO(files_of(browser, run)["scored"]))
    assert list(scored["state"].unique()) == ["unknown"]
    assert commands_of(run)[0] == (
        "classprior estimate marked.csv --label state --positive fraud --negative fine "
        "--report report.html"
    )


def test_the_likeliest_label_is_chosen_already(browser):
    table = pd.DataFrame({"x": range(40), "b": [0, 1] * 20, "s": ["bad"] * 9 + ["unknown"] * 31})
    page = browser.ended(browser.upload(("a.csv", table.to_csv(index=False).encode())))
    assert re.search(r'value="\d:1" selected>s is bad \(9 rows\)', page.text)


CHOICES = [
    ({"role-1": "leave out"}, ["--drop", "amount"]),
    ({"role-0": "use"}, ["--columns", "id", "--columns", "amount"]),
    ({"role-3": "segment"}, ["--by", "color"]),
    ({"role-2": "score"}, ["--score", "hours"]),
    ({"role-0": "group", "max_weight": "2,3"}, ["--groups", "id", "--max-weight", "2,3"]),
    ({"confidence": "0.9", "seed": "7"}, ["--confidence", "0.9", "--seed", "7"]),
    ({"leave_out_known": "on", "method": "pe"}, ["--method", "pe", "--leave-out-known"]),
]


@pytest.mark.parametrize(("form", "options"), CHOICES, ids=lambda value: str(value)[:30])
def test_the_command_does_the_same(browser, contents, folder, form, options):
    page = browser.ended(browser.upload(*two(contents)))
    run = browser.estimate(page, **form)
    command = commands_of(run)[0].split()
    start = command.index(options[0])
    assert command[start : start + len(options)] == options
    command = command[1 : command.index("--report")]
    answer = CliRunner().invoke(main, [*command, "--json"], obj=EVIDENCE)
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert found["answer"] in text_of(run)
    assert f"{found['upper_bound']:.1%}" in browser.get(f"{run.url.path}/report").text


@pytest.mark.parametrize(
    ("form", "fact"),
    [
        ({f"role-{n}": "leave out" for n in range(4)}, "All columns are left out"),
        ({"role-1": "weight", "role-2": "weight"}, "Only one column"),
        ({"every": "month"}, "dates"),
        ({"role-3": "segment", "method": "en"}, "recommended method"),
        ({"role-2": "score", "method": "en"}, "recommended"),
        ({"seed": "-1"}, "seed"),
        ({"confidence": "2"}, "confidence"),
        ({"max_weight": "much", "role-1": "use"}, "largest weight"),
    ],
)
def test_choices_that_do_not_go_together_are_named_and_nothing_is_lost(
    browser, contents, form, fact
):
    page = browser.ended(browser.upload(*two(contents)))
    form = {"title": "my title", **form}
    answer = browser.post(f"{page.url.path}/runs", data=form)
    assert answer.status_code == 422
    assert fact in text_of(answer)
    assert 'value="my title"' in answer.text
    assert browser.get("/").text.count("/runs/") == 0


@pytest.mark.parametrize(
    ("form", "fact"),
    [
        ({}, "Choose which rows"),
        ({"positive": "1:1", "negative": "0:0"}, "same column"),
        ({"positive": "1:1", "negative": "1:1"}, "same value"),
        ({"positive": "9:9"}, "Choose which rows"),
        ({"label_column": "nowhere"}, "nowhere"),
    ],
)
def test_labels_must_be_chosen(browser, contents, form, fact):
    page = browser.ended(browser.upload(("marked.csv", contents["marked"])))
    answer = browser.post(f"{page.url.path}/runs", data=form)
    assert answer.status_code == 422
    assert fact in text_of(answer)


def test_a_label_that_is_not_in_the_list(browser, contents):
    page = browser.ended(browser.upload(("marked.csv", contents["marked"])))
    run = browser.estimate(page, label_column="state", label_positive="fraud")
    assert "--label state --positive fraud" in run.text
    failed = browser.estimate(page, label_column="state", label_positive="Fraud")
    assert "Did you mean" in text_of(failed)
    back = re.search(r'href="(/data/\d+\?run=\d+)"', failed.text)[1]
    assert 'value="Fraud"' in browser.get(back).text


def test_a_bad_file_is_explained_and_can_be_read_in_another_way(browser):
    content = "größe;x\n" + "".join(f"{n},5;a{n % 3}\n" for n in range(40))
    page = browser.ended(browser.upload(("a.csv", content.encode("cp1252"))))
    assert "The files were not read" in page.text
    assert "a.csv" in text_of(page)
    page = browser.ended(browser.post(f"{page.url.path}/read", data={"encoding": "cp1252"}))
    assert "größe" in page.text
    assert "Columns and options" in page.text


def test_a_file_with_an_odd_name_is_read_if_its_format_is_given(browser, contents):
    page = browser.ended(browser.upload(("marked.data", contents["marked"])))
    assert "marked.data" in text_of(page)
    page = browser.ended(browser.post(f"{page.url.path}/read", data={"file_format": "csv"}))
    assert "210 rows" in text_of(page)
    run = browser.estimate(page, label_column="state", label_positive="fraud")
    assert "--format csv" in commands_of(run)[0]


def test_files_can_be_swapped_and_removed(browser, contents):
    page = browser.ended(browser.upload(*reversed(two(contents))))
    assert text_of(page).index("150 rows") < text_of(page).index("60 rows")
    page = browser.ended(browser.post(f"{page.url.path}/swap"))
    assert text_of(page).index("60 rows") < text_of(page).index("150 rows")
    browser.estimate(page)
    home = browser.post(f"{page.url.path}/remove")
    assert "This session" not in home.text
    assert browser.get(page.url.path).status_code == 404


def test_columns_of_one_file_only_are_left_out(browser, contents):
    positive = pd.read_csv(io.BytesIO(contents["known"])).assign(when=1, who="x")
    files = ("known.csv", positive.to_csv(index=False).encode()), two(contents)[1]
    page = browser.ended(browser.upload(*files))
    assert text_of(page).count("only in known.csv") == 2
    run = browser.estimate(page)
    assert "unlabeled rows are positive" in text_of(run)
    assert "--drop when" in run.text


@pytest.mark.parametrize(("kind", "form"), [("two files", {}), ("one file", {"positive": "4:1"})])
def test_the_example(browser, kind, form):
    page = browser.ended(browser.post("/example", data={"kind": kind}))
    if form:
        form = {"positive": re.search(r'value="([\d:]+)" selected', page.text)[1]}
    run = browser.estimate(page, **form)
    assert "of the 5,000 unlabeled rows are positive" in text_of(run)
    assert "of the 5,000 unlabeled rows are positive" in text_of(browser.get("/"))


def test_the_history_and_a_second_run_with_the_same_choices(browser, contents):
    page = browser.ended(browser.upload(*two(contents)))
    run = browser.estimate(page, title="first", **{"role-1": "leave out"})
    back = browser.get(re.search(r'href="(/data/\d+\?run=\d+)"', run.text)[1])
    assert 'value="first"' in back.text
    assert re.search(
        r'name="role-1">\s*<option value="use">[^<]*</option>\s*'
        r'<option value="leave out" selected>',
        back.text,
    )
    home = text_of(browser.get("/"))
    assert "first" in home
    assert "known.csv and unlabeled.csv" in home


def test_a_column_with_the_name_of_a_new_one_is_explained_and_the_answer_kept(browser, contents):
    clash = [
        pd.read_csv(io.BytesIO(contents[name])).rename(columns={"hours": "rank"})
        for name in ("known", "unlabeled")
    ]
    files = [(f"{n}.csv", frame.to_csv(index=False).encode()) for n, frame in enumerate(clash)]
    run = browser.estimate(browser.ended(browser.upload(*files)))
    assert "unlabeled rows are positive" in text_of(run)
    assert "could not be scored" in text_of(run)
    assert browser.get(f"{run.url.path}/download/scored").status_code == 404


def test_advice_names_what_is_on_the_page(browser, contents):
    """Here, known positives are also among the unlabeled rows."""
    known, unlabeled = (
        pd.read_csv(io.BytesIO(contents[name])).drop(columns="id")
        for name in ("known", "unlabeled")
    )
    frames = known, pd.concat([unlabeled, known])
    files = [(f"{n}.csv", frame.to_csv(index=False).encode()) for n, frame in enumerate(frames)]
    run = browser.estimate(browser.ended(browser.upload(*files)))
    report = browser.get(f"{run.url.path}/report").text
    assert "tick “Leave out unlabeled rows that repeat a known positive”" in report
    assert "leave_out_known" not in report
    assert "--leave-out-known" not in report


def test_pages_that_do_not_exist(browser):
    for path in ("/data/99", "/runs/99", "/runs/x", "/static/app.html", "/etc/passwd"):
        answer = browser.get(path)
        assert answer.status_code == 404
        assert "/etc" not in answer.text


def test_of_many_columns_the_first_are_shown(browser, monkeypatch, contents):
    monkeypatch.setattr("classprior.app._choices.MOST_COLUMNS", 2)
    page = browser.ended(browser.upload(*two(contents)))
    assert page.text.count('<select id="role-') == 2
    assert "And 2 more columns" in text_of(page)
    assert "unlabeled rows are positive" in text_of(browser.estimate(page))
