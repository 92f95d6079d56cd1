"""Generated figures are of the present code, or their page says that they are not."""

import json
from pathlib import Path

import freshness
import pytest
from freshness import FIGURES, ROOT

SCRIPTS = list(FIGURES)


@pytest.mark.parametrize("script", SCRIPTS)
def test_figures_are_of_the_present_code_or_say_so(script):
    if not freshness.comparable(script):
        pytest.skip("the figures were recorded with another version of scikit-learn")
    if freshness.is_missing(script):
        pytest.skip(f"there are no figures yet; run {FIGURES[script].command}")
    changed = freshness.changed(script)
    assert not changed or freshness.is_remarked(script), (
        f"{changed} answer differently since the figures were written. Run "
        f"`{FIGURES[script].command}`, or `python experiments/freshness.py --remark`."
    )
    assert changed or not freshness.is_remarked(script), "remove the remark"


def test_all_comments_around_figures_are_listed():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = {
        (line.split("written by ")[1].split(" -->")[0], page.relative_to(ROOT).as_posix())
        for page in pages
        if "_build" not in page.parts
        for line in page.read_text(encoding="utf-8").splitlines()
        if "<!-- written by " in line
    }
    scripts = {name.split(",")[0] for name, _ in found}
    assert scripts <= set(FIGURES)
    for script, page in {(name.split(",")[0], page) for name, page in found}:
        assert page in FIGURES[script].pages


@pytest.fixture
def records(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- written by s.py -->\nold\n<!-- end -->\nb\n")
    figures = freshness.Figures("python s.py", ("tice", "sb"), (str(page),))
    monkeypatch.setattr(freshness, "FIGURES", {"s.py": figures})
    monkeypatch.setattr(freshness, "RECORDS", tmp_path / "records.json")
    monkeypatch.setattr(freshness, "answers", lambda kind: (0.25, "about"))
    return page


def test_a_changed_answer_is_noticed(records, monkeypatch):
    assert freshness.changed("s.py") == ["tice", "sb"]  # never recorded
    freshness.record("s.py")
    assert freshness.changed("s.py") == []
    nearly = {"tice": (0.2501, "about"), "sb": (0.251, "about")}
    monkeypatch.setattr(freshness, "answers", nearly.__getitem__)
    assert freshness.changed("s.py") == ["sb"]
    other = {"tice": (0.25, "at most"), "sb": (0.25,)}
    monkeypatch.setattr(freshness, "answers", other.__getitem__)
    assert freshness.changed("s.py") == ["tice", "sb"]


def test_another_version_of_scikit_learn_decides_nothing(records, monkeypatch):
    assert freshness.comparable("s.py")
    freshness.record("s.py")
    monkeypatch.setattr(freshness, "version", lambda: "0.1")
    assert not freshness.comparable("s.py")


def test_remarks_are_added_once_and_replaced_with_the_figures(records):
    assert not freshness.is_remarked("s.py")
    freshness.add_remarks("s.py", ["sb"])
    freshness.add_remarks("s.py", ["tice", "sb"])
    assert freshness.is_remarked("s.py")
    text = Path(records).read_text()
    assert text.count("earlier version") == 1
    assert "changed: tice, sb.*\n\nold\n<!-- end -->\nb\n" in text
    freshness.replace_between(records, "s.py", "\nnew\n")
    assert not freshness.is_remarked("s.py")


def test_records_can_be_read(records):
    freshness.record("s.py")
    written = json.loads(freshness.RECORDS.read_text())
    assert set(written["s.py"]) == {"date", "scikit-learn", "answers"}
