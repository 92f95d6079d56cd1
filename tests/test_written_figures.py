"""What scripts write to pages: numbers by hand, and all blocks that a script writes exist."""

import importlib
import re
import sys
from pathlib import Path

import freshness
import pytest
import reproduction
from harness import written_between

ROOT = Path(__file__).parents[1]


def imported(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        return importlib.import_module(name)


@pytest.fixture(scope="module")
def coverage():
    return imported("interval_coverage")


def rows_of(grid, **more):
    """Return two draws for each task: one is covered, one is not; the bound fails once."""
    found = []
    for task in grid._replace(draws=2).tasks(""):
        prior, misses = task["prior"], task["draw"] == 1
        low, high = (prior + 0.01, prior + 0.03) if misses else (prior - 0.1, prior + 0.1)
        bounds = {"upper_bound": 1.0, "upper_bound_asymptotic": prior - 0.01 if misses else 1.0}
        found.append({**task, "estimate": prior, "low": low, "high": high, **bounds})
    return found


def test_tables_of_coverage_by_hand(coverage):
    texts = {
        part: coverage.text_of(part, rows_of(grid), 2) for part, grid in coverage.DOCUMENTED.items()
    }
    cells = "0.500 | 0.500 | 0.000 | 0.11"
    assert f"| normals, 4 apart | {cells} | {cells} |" in texts["usual"]
    assert "same" not in texts["usual"]
    assert "| 0.004 |" + 4 * " 0.50, 0.50, 0.110 |" in texts["edges"]
    assert "| 8 + 2000 | normals, 6 apart | 0.02 | 0.50 | 0.110 | 0.50 | 0.110 |" in texts["few"]
    assert texts["many"].count("\n| 400 + 20000 |") == 9
    for text in texts.values():
        assert re.search(r"exact bound failed in 0 of \d", text)
        assert "50.0% to 50.0%" in text
        widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
        assert len(widths) == 1


def test_table_of_confirmed_negatives_by_hand(monkeypatch):
    negatives = imported("negatives")
    monkeypatch.setattr(negatives, "run", lambda setting, draws: (0.46, [0.06, 0.39, 0.73]))
    head, _, first, *others = negatives.table(1)
    assert "warned with 500" in head
    assert first == "| normals 4 apart | 30% | 500 + 2,000 | 46.0% | 6.0% | 39.0% | 73.0% |"
    assert len(others) == len(negatives.PURE) + len(negatives.OVERLAPPING) - 1


@pytest.mark.parametrize("script", freshness.FIGURES)
def test_pages_have_a_place_for_each_table(script):
    figures = freshness.FIGURES[script]
    for page in figures.pages:
        for name in figures.blocks:
            written_between(ROOT / page, script + name)
    option = "--write" if "--write" in figures.command else ""
    assert option in (ROOT / script.split(" --")[0]).read_text(encoding="utf-8")


def test_results_of_experiments_are_put_on_the_page(tmp_path, monkeypatch):
    out, images = tmp_path / "out", tmp_path / "images"
    out.mkdir()
    images.mkdir()
    page = tmp_path / "page.md"
    page.write_text(f"a <!-- written by {reproduction.SCRIPT} -->old<!-- end --> b")
    monkeypatch.setattr(reproduction, "PAGE", page)
    monkeypatch.setattr(reproduction, "IMAGES", images)
    monkeypatch.setattr(reproduction, "record", lambda script: None)
    monkeypatch.setattr(sys, "argv", ["reproduction.py", "--out", str(out)])
    (out / "duplessis2017_uniforms.md").write_text("U ![x](duplessis2017_uniforms_x.png)")
    with pytest.raises(SystemExit):  # two experiments are missing
        reproduction.main()
    (out / "duplessis2017_uniforms_x.png").write_bytes(b"picture")
    (out / "duplessis2017_rates.md").write_text("R")
    (out / "duplessis2017_mnist.md").write_text("This is not MNIST")
    with pytest.raises(SystemExit):
        reproduction.main()
    assert "old" in page.read_text()
    (out / "duplessis2017_mnist.md").write_text("M")
    reproduction.main()
    text = page.read_text()
    assert re.search(
        r"U !\[x\]\(images/duplessis2017_uniforms_x.png\)\s+M\s+R\s+<!-- end -->", text
    )
    assert (images / "duplessis2017_uniforms_x.png").read_bytes() == b"picture"
