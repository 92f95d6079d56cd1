"""From an answer to rows to look at, and from a filled-in sheet to the checked answer."""

import html
import io
import json
import re

import pandas as pd
import pytest
from click.testing import CliRunner

from app.conftest import commands_of, text_of
from classprior.cli import main
from cli.conftest import EVIDENCE

SHEET = "review.csv"


def read(content):
    return pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)


def filled_in(content, n=None):
    """Return a sheet in which somebody has looked at the first rows."""
    frame = read(content)
    is_positive = pd.to_numeric(frame["hours"], errors="coerce").fillna(-9.0) > -2.0
    frame["checked"] = is_positive.map({True: "yes", False: "no"})
    frame.loc[len(frame) if n is None else n :, "checked"] = ""
    return frame.to_csv(index=False).encode()


def drawn(browser, run, budget=40, sheet_format="csv"):
    form = {"budget": budget, "sheet_format": sheet_format}
    return browser.ended(browser.post(f"{run.url.path}/reviews", data=form))


def saved(browser, page):
    return [browser.get(f"{page.url.path}/download/{kind}").content for kind in ("sheet", "plan")]


def send(browser, page, sheet, name=SHEET, **others):
    files = {"sheet": (name, sheet)} | others
    return browser.post(f"{page.url.path}/checked", files=files)


def without_times(report):
    """Return a report without its date."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d\S*", "", report)


@pytest.fixture
def run(browser, contents):
    """Return the page with an answer."""
    files = {name: (f"{name}.csv", contents[name]) for name in ("known", "unlabeled")}
    return browser.estimate(browser.ended(browser.upload(*files.values())))


def command(text):
    answer = CliRunner().invoke(main, text.split()[1:], obj=EVIDENCE)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_the_page_does_what_the_commands_do(browser, run, folder):
    page = drawn(browser, run)
    assert page.text.count("<h1") == 1
    sheet, plan = saved(browser, page)
    draw, count = commands_of(page)
    assert draw == "classprior review known.csv unlabeled.csv --budget 40 --out review.csv"
    shown = " ".join(command(draw).split())
    assert (folder / SHEET).read_bytes() == sheet
    assert (folder / "review.plan.json").read_bytes() == plan
    drawn_text, forecast = re.findall(
        r"(Drew .*?others\.|Drew .*?strata\.|Expected .*?them\.)", shown
    )
    assert drawn_text in text_of(page)
    assert forecast in text_of(page)
    assert list(read(sheet).columns[-2:]) == ["checked", "note"]

    answer = browser.ended(send(browser, page, filled_in(sheet)))
    (folder / SHEET).write_bytes(filled_in(sheet))
    command(count)
    report = browser.get(f"{answer.url.path}/report").text
    assert without_times(report) == without_times((folder / "report.html").read_text())
    _, classify = commands_of(answer)
    command(classify)
    for kind, name in {"scored": "scored.csv", "model": "rows.model"}.items():
        found = browser.get(f"{answer.url.path}/download/{kind}").content
        assert (folder / name).read_bytes() == found
    assert "Of 40 checked rows" in text_of(answer)
    assert "checked rows in review.csv" in text_of(browser.get("/"))


def test_a_sheet_of_an_earlier_session_is_sent_with_its_plan(browser, contents):
    data = browser.ended(browser.upload(("marked.csv", contents["marked"])))
    first = browser.estimate(data, label_column="state", label_positive="fraud", seed="3")
    page = drawn(browser, first, budget=30, sheet_format="xlsx")
    sheet, plan = saved(browser, page)
    frame = pd.read_excel(io.BytesIO(sheet), dtype=object, engine="calamine")
    assert set(frame["state"]) == {"unknown", "fine"}
    rows = read(contents["marked"]).iloc[frame["row"].astype(int) - 1]
    assert list(rows["id"]) == list(frame["id"])
    frame["checked"] = frame["state"].map({"unknown": "yes", "fine": "no"})
    frame.to_excel(answered := io.BytesIO(), index=False)

    again = browser.estimate(data, label_column="state", label_positive="fraud", seed="3")
    alone = send(browser, again, answered.getvalue(), "mine.xlsx")
    assert alone.status_code == 422
    assert "its plan" in text_of(alone)
    both = {"plan": ("review.plan.json", plan)}
    answer = browser.ended(send(browser, again, answered.getvalue(), "mine.xlsx", **both))
    assert "Of 30 checked rows" in text_of(answer)
    assert "of the positives are known" in text_of(again)
    assert "of the positives are known" not in text_of(answer)  # by the estimate without them
    assert "--checked mine.xlsx --plan review.plan.json" in commands_of(answer)[0]


def test_half_a_sheet_counts_and_can_be_completed(browser, run):
    page = drawn(browser, run)
    sheet, _ = saved(browser, page)
    half = browser.ended(send(browser, page, filled_in(sheet, 20)))
    assert "Of 20 checked rows" in text_of(half)
    assert f'href="{page.url.path}#filled"' in half.text
    whole = browser.ended(send(browser, page, filled_in(sheet)))
    assert "Of 40 checked rows" in text_of(whole)


BAD = {
    "another word": (lambda sheet: sheet.replace(b"yes", b"perhaps", 1), "perhaps"),
    "another row": (lambda sheet: re.sub(rb"\n\d+,", b"\n9999,", sheet, count=1), "9999"),
    "no answers": (lambda sheet: sheet.replace(b"checked", b"seen"), "no column 'checked'"),
    "not a table": (lambda sheet: b"\x00\xff", SHEET),
    "empty": (lambda sheet: b"", SHEET),
}


def test_bad_sheets_are_explained_and_nothing_is_lost(browser, run):
    page = drawn(browser, run)
    sheet, plan = saved(browser, page)
    for name, (spoil, fact) in BAD.items():
        failed = browser.ended(send(browser, page, spoil(filled_in(sheet))))
        assert "No estimate" in failed.text, name
        assert fact in html.unescape(text_of(failed)), name
        assert "/tmp" not in failed.text
        assert "files-" not in failed.text
        assert "If a file is not read right" not in failed.text
        assert f'href="{page.url.path}#filled"' in failed.text
        assert saved(browser, browser.get(page.url.path)) == [sheet, plan]
    assert f'href="{page.url.path}"' in browser.get(run.url.path).text


def test_a_bad_plan_is_explained(browser, run):
    sheet, plan = saved(browser, drawn(browser, run))
    values = json.loads(plan)
    for bad in (b"{}", json.dumps(values | {"n_rows": 7}).encode(), b"[" * 100_000):
        answer = send(browser, run, filled_in(sheet), plan=("review.plan.json", bad))
        failed = browser.ended(answer)
        assert "is not a plan" in text_of(failed)
        assert f'href="{run.url.path}#filled"' in failed.text


def test_budgets_that_cannot_be(browser, run):
    for budget in ("", "0", "-1", "151", "many", "1.5", "9" * 5000):
        answer = browser.post(f"{run.url.path}/reviews", data={"budget": budget})
        assert answer.status_code == 422
        assert "number of rows from 1 to 150" in text_of(answer)
        assert "/reviews/" not in answer.text


def test_uploads_that_are_refused_leave_nothing(browser, run):
    page = drawn(browser, run)
    sheet, _ = saved(browser, page)
    large = send(browser, page, sheet + b"x" * 400_000)
    none = browser.post(f"{page.url.path}/checked", files={"other": ("a.csv", sheet)})
    for answer, fact in ((large, "more than the limit"), (none, "Choose the sheet")):
        assert answer.status_code == 422
        assert fact in text_of(answer)
        assert answer.text.count("/download/") == 2
    folder = next(iter(browser.app.app.state.session.data.values())).folder
    assert not list(folder.glob("files-*"))


def test_strangers_and_other_origins_get_nothing(browser, run):
    page = drawn(browser, run)
    sheet, _ = saved(browser, page)
    before = browser.get("/").text
    browser.headers["origin"] = "http://127.0.0.1:1"
    assert send(browser, page, filled_in(sheet)).status_code == 403
    assert browser.post(f"{run.url.path}/reviews", data={"budget": 9}).status_code == 403
    browser.headers["origin"] = "http://127.0.0.1:8123"
    assert browser.get("/").text == before
    browser.cookies.clear()
    for path in ("", "/download/sheet", "/download/plan", "/progress"):
        assert browser.get(f"{page.url.path}{path}").status_code == 403


def test_names_with_markup_are_escaped(browser, run):
    page = drawn(browser, run)
    sheet, _ = saved(browser, page)
    bad = filled_in(sheet).replace(b"yes", b"<b>maybe</b>", 1)
    for content in (filled_in(sheet), bad):
        answer = browser.ended(send(browser, page, content, "<i>x.csv"))
        assert "<i>" not in answer.text
        assert "<b>" not in answer.text
    assert "<i>" not in browser.get("/").text


def test_rows_with_weights_cannot_be_counted(browser, contents):
    frames = [read(contents[name]).assign(weight=1) for name in ("known", "unlabeled")]
    files = [(f"{n}.csv", frame.to_csv(index=False).encode()) for n, frame in enumerate(frames)]
    run = browser.estimate(browser.ended(browser.upload(*files)), **{"role-4": "weight"})
    assert "without weights" in text_of(run)
    assert 'name="budget"' not in run.text


def test_a_column_with_the_name_of_a_new_one_is_explained(browser, contents):
    files = [
        (f"{name}.csv", contents[name].replace(b"hours", b"row", 1))
        for name in ("known", "unlabeled")
    ]
    run = browser.estimate(browser.ended(browser.upload(*files)))
    failed = drawn(browser, run)
    assert "unlabeled.csv already has a column 'row'" in html.unescape(text_of(failed))
    assert "--id" not in failed.text
    assert f'href="{run.url.path}#review"' in failed.text


def test_a_review_is_removed_with_its_files(browser, run):
    page = drawn(browser, run)
    data = re.search(r'href="(/data/\d+)', run.text)[1]
    assert browser.get(f"{data}/download/sheet").status_code == 404
    assert browser.get(f"{run.url.path}/download/plan").status_code == 404
    assert browser.get(page.url.path.replace("reviews", "others")).status_code == 404
    browser.post(f"{data}/remove")
    for path in (page.url.path, f"{page.url.path}/download/plan", run.url.path):
        assert browser.get(path).status_code == 404
