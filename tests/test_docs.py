"""Every code block of README and documentation runs, and prints what the page says.

Doctests (``>>>``) are collected by pytest; the rest is run here.
"""

import re
import shlex
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from classprior.cli import main
from classprior.datasets import make_transactions
from classprior.priors._methods import METHODS

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")]
    if "_build" not in path.parts
}
FENCE = re.compile(r"^(`{3,})([^`\n]*)\n(.*?)^\1 *$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Blocks that are not code: pictures of a tree or of output, and what Sphinx itself runs or checks.
PROSE = {"text", ""}


def blocks(page):
    """Return the language and the text of each code block."""
    return [(match[2].strip(), match[3]) for match in FENCE.finditer(PAGES[page])]


def commands(text):
    """Return the command lines of a block, without comments."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip()]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Make the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    frauds, transactions, is_fraud = make_transactions(random_state=0, return_truth=True)
    frauds.to_csv("frauds.csv", index=False)
    transactions.to_csv("transactions.csv", index=False)
    tables = [frauds.assign(status="fraud"), transactions.assign(status="unknown")]
    pd.concat(tables).to_csv("checked.csv", index=False)
    tables[1].loc[::25, "status"] = "ok"
    pd.concat(tables).to_csv("reviewed.csv", index=False)
    tables[1]["status"] = "unknown"
    stands_for_a_model = pd.concat(tables)["km_from_home"].fillna(0.0).rank(pct=True)
    with_scores = pd.concat(tables).assign(probability=stands_for_a_model)
    with_scores.to_csv("with_scores.csv", index=False)
    make_transactions(n_positive=1, n_unlabeled=50, random_state=1)[1].to_csv(
        "tomorrow.csv", index=False
    )
    truth = dict(zip(transactions["payment_id"], is_fraud, strict=True))
    return {"frauds": frauds, "transactions": transactions, "is_fraud": truth}


def run(arguments):
    """Run a command of classprior and return what it prints."""
    arguments = [*arguments, "--force"] if arguments == ["demo", "--out", "."] else arguments
    if arguments[0] == "app":  # which would not end by itself
        main.commands["app"].make_context("app", arguments[1:])
        return ""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def fill_in(sheet, is_fraud):
    """Fill in a sheet, as review-done.csv for review.csv."""
    frame = pd.read_csv(sheet, dtype=str, keep_default_na=False)
    frame["checked"] = ["yes" if is_fraud[key] else "no" for key in frame["payment_id"]]
    frame.to_csv(sheet.replace(".csv", "-done.csv"), index=False)


def assert_alike(printed, documented):
    """Numbers may differ a little between machines, words may not."""
    printed = printed[: len(documented) + 20]
    words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)).strip() for text in (printed, documented)]
    assert words[0].startswith(words[1])
    numbers = [
        [float(number.replace(",", "")) for number in NUMBER.findall(text)]
        for text in (printed, documented)
    ]
    assert numbers[0][: len(numbers[1])] == pytest.approx(numbers[1], rel=0.1)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if {"console", "text"} & {block[0] for block in blocks(page)}]
)
def test_commands_run_and_print_what_the_page_shows(page, files):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    printed = ""
    for language, text in blocks(page):
        if language == "text" and (printed or text.startswith("About")):
            assert_alike(printed or run(["estimate", "frauds.csv", "transactions.csv"]), text)
        printed = ""
        for program, *arguments in commands(text) if language == "console" else ():
            if program == "make":
                assert set(arguments) <= set(targets)
            elif program == "pip":
                (extra,) = re.fullmatch(r"install \.\[(\w+)\]", " ".join(arguments)).groups()
                assert extra in project["optional-dependencies"]
            else:
                assert program == "classprior"
                printed += run(arguments)
                if arguments[0] == "review":
                    fill_in(arguments[arguments.index("--out") + 1], files["is_fraud"])


@pytest.mark.parametrize("page", PAGES)
def test_no_block_of_code_is_left_out(page, files):
    for language, text in blocks(page):
        if language == "python" and ">>>" not in text:
            exec(text, dict(files))
        else:
            is_directive = re.match(r"\{[\w-]+\}", language)
            assert is_directive or language in {"console", "python", *PROSE}, language


def test_links_lead_somewhere():
    for page, text in PAGES.items():
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", text):
            target = (ROOT / page).parent / link
            made = "gallery" in target.parts  # by Sphinx
            assert link.startswith("http") or made or target.exists(), (page, link)


def test_scripts_and_their_options_exist():
    for page, text in PAGES.items():
        for script, arguments in re.findall(r"python (\w+/\w+\.py)([^`\n]*)", text):
            assert (ROOT / script).exists(), (page, script)
            known = (ROOT / script).read_text(encoding="utf-8") + "--help"
            for option in re.findall(r"--[\w-]+", arguments):
                assert option in known, (page, script, option)


def test_the_guide_lists_all_methods():
    """In the order of the table of methods, and in its words."""
    listed = re.findall(
        r"^\| `([\w-]+)` \| `[\w.]+` \| ([^|;]+)", PAGES["docs/guides/methods.md"], re.M
    )
    known = [(name, method.summary.split(";")[0]) for name, method in METHODS.items()]
    assert [(name, text.strip()) for name, text in listed] == known


def test_pictures_have_the_answer_of_the_text():
    """They are written by one run, which puts its answer into the picture."""
    from PIL import Image

    shown = re.search(r"```text\n(About.*?)\n```", PAGES["README.md"], re.DOTALL)[1]
    for name in ("scores.png", "scores-dark.png"):
        with Image.open(ROOT / "docs/images" / name) as picture:
            assert picture.text["Description"] == shown
        assert f"docs/images/{name}" in PAGES["README.md"]
    assert f"```text\n{shown}\n```" in PAGES["docs/index.md"]
    assert f"```text\n{shown}\n\nColumns left out" in PAGES["docs/start/python.md"]


def test_readme_is_short():
    assert PAGES["README.md"].count("\n") < 150
