"""``classprior classify`` and ``classprior predict``."""

import csv
import io
import subprocess
import sys
import zipfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from python_calamine import CalamineWorkbook

from classprior import Estimation
from classprior._files.finding import find_files
from classprior._files.reading import ReadOptions, open_files
from classprior._headline import PROBABILITIES, Meaning
from classprior._scores.by_column import value_text
from classprior._tables.columns import MISSING
from classprior.cli._estimate import estimated
from classprior.saving import load_model, save_model
from cli.conftest import COMMAND, environment, make_frames

TWO = ("positive.csv", "unlabeled.csv")
ONE = ("marked.parquet", "--label", "known", "--positive", "yes")
QUICK = ("--method", "penl1", "--centers", 10)


@pytest.fixture(scope="module")
def classified(tmp_path_factory):
    """Return a folder with a scored file and a model, and the truth."""
    folder = tmp_path_factory.mktemp("classified")
    positive, unlabeled = make_frames(n=200, m=600)
    positive.to_csv(folder / "positive.csv", index=False)
    unlabeled.to_csv(folder / "unlabeled.csv", index=False)
    subprocess.run(
        [COMMAND, "classify", *TWO, "--out", "scored.csv", "--save-model", "fitted.model"],
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
    assert [line.rsplit(",", 4)[0] for line in after] == before
    scored = pd.read_csv(folder / "scored.csv")
    assert np.mean(scored["positive"] != truth) < 0.1
    assert scored["probability"].between(0, 1).all()
    assert (scored["positive"] == (scored["probability"] >= 0.5)).all()
    assert (scored["positive"] == (scored["score"] >= 0)).all()
    by_rank = scored.sort_values("rank")
    assert by_rank["rank"].tolist() == list(range(1, len(scored) + 1))
    assert by_rank["score"].is_monotonic_decreasing
    assert by_rank["probability"].is_monotonic_decreasing
    assert 0 < by_rank["probability"].iloc[-1] < by_rank["probability"].iloc[0] < 1


@pytest.mark.parametrize("end", ["csv", "parquet", "xlsx"])
def test_rows_in_order_of_rank(end, classified, run, tmp_path):
    if end == "xlsx":
        pytest.importorskip("xlsxwriter")
    folder, _ = classified
    given = ("predict", folder / "fitted.model", folder / "unlabeled.csv", "--out")
    run(*given, tmp_path / "plain.csv")
    run(*given, tmp_path / f"sorted.{end}", "--sort")
    plain = pd.read_csv(tmp_path / "plain.csv").sort_values("rank", ignore_index=True)
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "xlsx": read_sheet}[end]
    found = read(tmp_path / f"sorted.{end}")
    for name in plain:
        assert found[name].astype(str).tolist() == plain[name].astype(str).tolist(), name


def read_sheet(path):
    names, *rows = CalamineWorkbook.from_path(path).get_sheet_by_index(0).to_python()
    return pd.DataFrame(rows, columns=names).replace({"": None}).convert_dtypes()


@pytest.mark.parametrize("given", [TWO, ONE], ids=["two files", "one file"])
def test_reasons_of_the_rows_that_rank_first(given, folder, run):
    """Each names a column with the value that the row has there, as in Python."""
    printed = run("classify", *given, "--reasons", 2, "--out", "scored.parquet").stdout
    scored = pd.read_parquet("scored.parquet")
    n_first = max(scored["positive"].sum(), round(scored["probability"].sum()))
    assert f"The {n_first} rows that rank first have reasons" in " ".join(printed.split())
    first = scored[scored["rank"] <= n_first]
    assert first["reason_1"].notna().all()
    assert scored.drop(first.index)[["reason_1", "reason_2"]].isna().all(axis=None)
    for _, row in first[:20].iterrows():
        column, value = row["reason_1"].split(" = ")
        assert value == (MISSING if pd.isna(row[column]) else value_text(row[column]))
    if given is TWO:
        estimation = Estimation.of(*map(pd.read_csv, TWO), random_state=0)
        texts = [reasons[0].text for reasons in estimation.reasons(first.index[:5])]
        assert texts == first["reason_1"][:5].tolist()


def test_reasons_are_bounded_and_their_columns_must_be_new(folder, run, monkeypatch):
    monkeypatch.setattr("classprior._scored._MOST_EXPLAINED", 5)
    run("classify", *TWO, *QUICK, "--reasons", 1, "--out", "scored.csv")
    scored = pd.read_csv("scored.csv")
    assert sorted(scored["rank"][scored["reason_1"].notna()]) == [1, 2, 3, 4, 5]
    assert "reason_2" not in scored
    again = ("classify", "positive.csv", "scored.csv", "--columns", "amount", "--out", "new.csv")
    rows = scored.drop(columns=["probability", "positive", "score", "rank"])
    rows.to_csv("scored.csv", index=False)
    assert "'reason_1'" in run(*again, "--reasons", 1, code=1).stderr


def test_the_count_is_explained(classified, run, tmp_path):
    """The probabilities add up to more rows than are likely positive, or to fewer."""
    folder, _ = classified
    given = ("predict", folder / "fitted.model", folder / "unlabeled.csv", "--out")
    text = " ".join(run(*given, tmp_path / "scored.csv").stdout.split())
    scored = pd.read_csv(tmp_path / "scored.csv")
    n_likely, expected = scored["positive"].sum(), round(scored["probability"].sum())
    assert f"{n_likely} of 600 rows" in text
    assert n_likely != expected
    assert f"{expected} positives" in text
    assert ("lower probabilities" in text) == (n_likely < expected)


def test_equal_rows_have_ranks_in_their_order(classified, run, tmp_path):
    folder, _ = classified
    rows = pd.read_csv(folder / "unlabeled.csv")[:5].loc[[0, 1, 0, 1, 0]]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    given = ("predict", folder / "fitted.model", tmp_path / "rows.csv", "--out")
    run(*given, tmp_path / "scored.csv")
    ranks = pd.read_csv(tmp_path / "scored.csv")["rank"].tolist()
    assert ranks in ([1, 4, 2, 5, 3], [3, 1, 4, 2, 5])


def test_a_workbook_holds_text_as_text(folder, run, frames):
    """Nothing becomes a formula, and no number is rounded."""
    pytest.importorskip("xlsxwriter")
    texts = ["=1+1", "+1", "-1", "@x", "007", "http://x", "{=A1}"]
    frames[1].assign(
        note=[texts[i % len(texts)] for i in range(len(frames[1]))],
        large=2**60 + np.arange(len(frames[1])),
        price=Decimal("12.50"),
        day=pd.Timestamp("2026-11-18"),
    ).to_parquet("unlabeled.parquet", index=False)
    given = ("positive.csv", "unlabeled.parquet", "--columns", "amount,hours", *QUICK)
    run("classify", *given, "--out", "scored.xlsx")
    with zipfile.ZipFile("scored.xlsx") as book:
        assert b"<f>" not in book.read("xl/worksheets/sheet1.xml")
    found, expected = read_sheet("scored.xlsx"), pd.read_parquet("unlabeled.parquet")
    assert found["note"].tolist() == expected["note"].tolist()
    assert found["large"].tolist() == expected["large"].astype(str).tolist()
    assert set(found["price"]) == {12.5}
    assert pd.to_datetime(found["day"]).tolist() == expected["day"].tolist()
    np.testing.assert_allclose(found["amount"].astype(float), expected["amount"])
    assert found["rank"].tolist() != sorted(found["rank"])


def test_a_workbook_that_is_too_small_is_refused_at_once(folder, run, monkeypatch):
    pytest.importorskip("xlsxwriter")
    monkeypatch.setattr("classprior._files.workbook.MOST_ROWS", 100)
    monkeypatch.setattr("classprior.estimation.Estimation.of", None)
    message = run("classify", *TWO, "--out", "scored.xlsx", code=1).stderr
    assert "at most 99 rows" in message
    assert "'scored.xlsx'" in message
    assert "150" in message
    assert not Path("scored.xlsx").exists()


def test_a_model_scores_new_rows(classified, run, monkeypatch):
    folder, _ = classified
    monkeypatch.chdir(folder)
    _, unlabeled = make_frames(n=1, m=500, seed=1)
    new = unlabeled[["hours", "id", "color", "amount"]].assign(note="x")
    new.to_csv("new.csv", index=False)
    answer = run("predict", "fitted.model", "new.csv", "--out", "-")
    scored = pd.read_csv(io.StringIO(answer.stdout))
    pd.testing.assert_frame_equal(scored[list(new)], new.reset_index(drop=True))
    assert np.mean(scored["positive"] != (unlabeled.index < 1 + 150)) < 0.1
    assert f"{scored['positive'].sum()} of 500 rows are more likely positive" in answer.stderr


def test_new_rows_that_do_not_fit(classified, run, monkeypatch):
    folder, _ = classified
    monkeypatch.chdir(folder)
    Path("short.csv").write_text("amount,id\n1,2\n")
    Path("scored-twice.csv").write_text("amount,probability\n1,2\n")
    Path("types.csv").write_text("amount,hours,color\n1,2,red\nold,3,red\n")
    missing = run("predict", "fitted.model", "short.csv", "--out", "x.csv", code=1).stderr
    assert "'hours', 'color'" in missing
    assert "'amount', 'id'" in missing
    assert "short.csv" in missing
    twice = run("predict", "fitted.model", "scored-twice.csv", "--out", "x.csv", code=1).stderr
    assert "'probability'" in twice
    assert "'scored-twice.csv'" in twice
    types = run("predict", "fitted.model", "types.csv", "--out", "x.csv", code=1).stderr
    assert "'amount'" in types
    assert "'types.csv', rows 2 to 3 (first in row 3)" in types
    assert "'old'" in types  # not the number above it
    assert not Path("x.csv").exists()


def test_weights_are_used_in_the_fit(folder, run, frames):
    """Rows of weight zero are scored, but nothing is learned from them."""
    rng = np.random.default_rng(0)
    weights = [rng.choice([0.0, 1.0, 3.0], len(frame)) for frame in frames]
    scores = {}
    for name, factor in (("once", 1.0), ("scaled", 10.0)):
        for frame, w, file in zip(frames, weights, TWO, strict=True):
            frame.assign(w=factor * w).to_csv(file, index=False)
        run("classify", *TWO, "--weights", "w", "--out", f"{name}.csv")
        scores[name] = pd.read_csv(f"{name}.csv")["probability"]
    run("classify", *TWO, "--drop", "w", "--out", "without.csv")
    scores["without"] = pd.read_csv("without.csv")["probability"]
    assert len(scores["once"]) == len(frames[1])
    assert scores["once"].to_numpy() == pytest.approx(scores["scaled"].to_numpy(), abs=1e-5)
    assert np.max(np.abs(scores["once"] - scores["without"])) > 0.01


def test_every_format_comes_back_in_its_own(folder, run):
    run("classify", *ONE, *QUICK, "--out", "scored.parquet")
    scored = pd.read_parquet("scored.parquet")
    marked = pd.read_parquet("marked.parquet")
    unlabeled = marked[marked["known"].isna()].reset_index(drop=True)
    pd.testing.assert_frame_equal(scored[list(marked)], unlabeled)
    assert scored["positive"].dtype == bool
    run("classify", *ONE, *QUICK, "--out", "scored.csv.gz")
    assert np.allclose(pd.read_csv("scored.csv.gz")["probability"], scored["probability"])


def test_files_of_different_types_are_written_as_one(folder, run, frames):
    """Whole numbers in one file, decimals in another."""
    Path("many").mkdir()
    unlabeled = frames[1].drop(columns="color")
    for number in range(2):
        part = unlabeled[75 * number : 75 * (number + 1)]
        whole = part.fillna(0).round().astype({"amount": int, "hours": int})
        (whole if number == 0 else part).to_parquet(f"many/{number}.parquet", index=False)
    for out in ("scored.parquet", "scored.csv", "scored.feather"):
        run("classify", "positive.csv", "many", "--drop", "color", *QUICK, "--out", out)
    scored = pq.read_table("scored.parquet")
    assert scored["id"].to_pylist() == unlabeled["id"].tolist()
    assert scored["hours"].type == pa.float64()
    assert pd.read_csv("scored.csv")["id"].tolist() == unlabeled["id"].tolist()
    assert pd.read_feather("scored.feather").equals(scored.to_pandas())


def test_more_rows_than_a_classifier_is_fitted_to(folder, run):
    """Fitted rows are scored out of fold, the others by the saved model."""
    positive, unlabeled = make_frames(n=200, m=21_000)
    positive.to_csv("positive.csv", index=False)
    unlabeled.to_csv("unlabeled.csv", index=False)
    run("classify", *TWO, "--out", "scored.csv", "--save-model", "fitted.model")
    run("predict", "fitted.model", "unlabeled.csv", "--out", "again.csv")
    scored, again = pd.read_csv("scored.csv"), pd.read_csv("again.csv")
    assert scored["id"].tolist() == again["id"].tolist() == unlabeled["id"].tolist()
    assert np.mean(scored["positive"] != (unlabeled.index < 200 + 6300)) < 0.1
    is_same = scored["probability"] == again["probability"]
    assert 1000 <= is_same.sum() < 11_000
    assert np.abs(scored["probability"] - again["probability"]).mean() < 0.01


def test_european_files_stay_european(folder, run):
    for name in TWO:
        table = pd.read_csv(name).assign(code="007")
        table.to_csv(name, index=False, sep=";", decimal=",", encoding="utf-16")
    run("classify", *TWO, *QUICK, "--out", "scored.csv")
    before = Path("unlabeled.csv").read_text(encoding="utf-16").splitlines()
    after = Path("scored.csv").read_text(encoding="utf-16").splitlines()
    assert [line.rsplit(";", 4)[0] for line in after] == before
    assert "," in after[1].split(";")[-2]  # the score


def test_nothing_is_overwritten_unless_told_to(folder, run):
    Path("scored.csv").write_text("precious")
    message = run("classify", *TWO, *QUICK, "--out", "scored.csv", code=1).stderr
    assert "'scored.csv'" in message
    assert "--force" in message
    assert Path("scored.csv").read_text() == "precious"
    run("classify", *TWO, *QUICK, "--out", "scored.csv", "--force")
    assert "probability" in Path("scored.csv").read_text()


@pytest.mark.parametrize(
    "command",
    [
        ("estimate", *TWO, "--report"),
        ("estimate", *TWO, "--checkpoint"),
        ("report", *TWO, "--out"),
        ("report", *TWO, "--out", "page.html", "--checkpoint"),
        ("classify", *TWO, "--out"),
        ("classify", *TWO, "--out", "new.csv", "--save-model"),
        ("classify", *TWO, "--out", "-", "--report"),
        ("classify", *TWO, "--out", "-", "--checkpoint"),
        ("classify", "unlabeled.csv", "--label", "color", "--positive", "red", "--out"),
        ("classify", "positive.csv", ".", "--format", "csv", "--out"),
        ("predict", "fitted.model", "unlabeled.csv", "--out"),
        ("predict", "unlabeled.csv", "positive.csv", "--out"),
    ],
)
def test_no_input_is_overwritten(command, folder, run):
    """Not even with --force, and by whatever name."""
    Path("fitted.model").touch()
    Path("link.csv").symlink_to("unlabeled.csv")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for name in ("unlabeled.csv", "link.csv", folder / "unlabeled.csv"):
        message = run(*command, name, "--force", code=1).stderr
        assert repr(str(name)) in message
        assert "input" in message
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_plot_does_not_overwrite_an_input(folder, run):
    Path("unlabeled.csv").rename("unlabeled.png")
    before = Path("unlabeled.png").read_bytes()
    given = ("positive.csv", "unlabeled.png", "--format", "csv", "--plot", "./unlabeled.png")
    assert "'unlabeled.png'" in run("compare", *given, "--force", code=1).stderr
    assert Path("unlabeled.png").read_bytes() == before


def test_a_table_is_not_called_what_it_is_not(folder, run):
    arguments = ("classify", "positive.csv", "unlabeled.csv", "--out", "scored.ods")
    assert "'scored.ods'" in run(*arguments, code=2).stderr


def test_outputs_that_would_replace_each_other(folder, run):
    message = run("classify", *TWO, "--out", "x.csv", "--save-model", "./x.csv", code=1).stderr
    assert "x.csv" in message
    assert not Path("x.csv").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on file sizes")
def test_a_disk_that_is_full_leaves_nothing(folder):
    """A limit on the size of files stands for a full disk."""
    import resource

    before = sorted(folder.iterdir())
    answer = subprocess.run(
        [COMMAND, "classify", *TWO, "--out", "scored.csv"],
        capture_output=True,
        env=environment(),
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert answer.returncode == 1
    assert b"File too large" in answer.stderr
    assert answer.stderr.count(b"\n") == 1
    assert sorted(folder.iterdir()) == before


def test_predict_repeats_the_warnings_of_the_estimate(folder, run):
    run("classify", *TWO, *QUICK, "--out", "scored.csv", "--save-model", "fitted.model")
    arguments = ("predict", "fitted.model", "unlabeled.csv", "--force", "--out")
    model = load_model(Path("fitted.model")).model
    for warnings, meaning in (([], "about"), (["The sky is \x1b[31mred."], "at most")):
        about = {"method": "penl1", "warnings": warnings, "meaning": meaning, "answer": "Few."}
        save_model(Path("fitted.model"), model, **about)
        for text in (run(*arguments, "x.csv").stdout, run(*arguments, "-").stderr):
            assert ("too high" in text) == ("to rank" in text) == (meaning == "at most")
            assert "fitted to: Few." in text
            assert ("The sky is \\x1b[31mred." in text) == bool(warnings)


def test_the_warnings_of_the_estimate_are_saved(folder, run, frames):
    frames[0][:40].to_csv("few.csv", index=False)
    out = ("--out", "scored.csv", "--force")
    printed = run("classify", "few.csv", TWO[1], *out, "--save-model", "fitted.model").stdout
    warnings = load_model(Path("fitted.model")).warnings
    assert any("only 40" in warning for warning in warnings)
    again = run("predict", "fitted.model", TWO[1], *out).stdout
    for warning in warnings:
        assert warning in " ".join(printed.split())
        assert warning in " ".join(again.split())


@pytest.mark.parametrize("meaning", Meaning)
def test_a_model_knows_what_its_estimate_means(meaning, folder, run, monkeypatch):
    def bounded(**options):
        samples, found = estimated(**options)
        estimate = replace(found.estimate, meaning=meaning, leaks=("id",))
        return samples, replace(found, estimate=estimate)

    monkeypatch.setattr("classprior.cli._classify.estimated", bounded)
    given = ("--out", "scored.csv", "--save-model", "fitted.model")
    text = " ".join(run("classify", *TWO, *QUICK, *given).stdout.split())
    assert (PROBABILITIES.get(meaning, "Warning:") in text) == (meaning in PROBABILITIES)
    saved = load_model(Path("fitted.model"))
    assert saved.meaning == meaning
    assert text.startswith(saved.answer)


def test_a_damaged_model_is_refused(classified, run, tmp_path):
    whole = (classified[0] / "fitted.model").read_bytes()
    path = tmp_path / "fitted.model"
    path.write_bytes(whole[:-100])
    rows = classified[0] / "unlabeled.csv"
    message = run("predict", path, rows, "--out", tmp_path / "x.csv", code=1).stderr
    assert "fitted.model" in message
    assert "not loaded" in message
    assert message.count("\n") == 1
    assert not (tmp_path / "x.csv").exists()


NASTY = ["a\rb", "\r", "\n", "a\r\nb", '"', ",;\t|", " x ", "", "NA", "nan", "007", "\x1a\x7f", "é"]


def write_nasty(path, frame, delimiter, encoding, **how):
    """Write a CSV file that quotes every value; return its rows."""
    frame = (
        frame.assign(note=[NASTY[i % len(NASTY)] for i in range(len(frame))])
        .astype(object)
        .fillna("")
    )
    rows = [list(map(str, row)) for row in frame.itertuples(index=False)]
    if how.get("decimal") == ",":
        rows = [[v.replace(".", ",") for v in row] for row in rows]
    with Path(path).open("w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([[*frame], *rows])
    return rows


@pytest.mark.parametrize("command", ["classify", "predict"])
@pytest.mark.parametrize(
    ("delimiter", "decimal", "encoding"),
    [(",", ".", "utf-8"), (";", ",", "latin-1"), ("\t", ".", "utf-16"), ("|", ",", "utf-8-sig")],
)
def test_any_text_is_written_as_it_was_read(
    command, delimiter, decimal, encoding, classified, folder, run, frames
):
    how = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    write_nasty("positive.csv", frames[0], **how)
    rows = write_nasty("unlabeled.csv", frames[1], **how)
    given = (*TWO, *QUICK, "--drop", "note")
    if command == "predict":
        given = (classified[0] / "fitted.model", "unlabeled.csv")
    run(command, *given, "--out", "scored.csv", "--encoding", encoding)
    with Path("scored.csv").open(newline="", encoding=encoding) as file:
        _, *again = csv.reader(file, delimiter=delimiter)
    assert [row[:-4] for row in again] == rows
    ours = open_files(
        find_files("scored.csv"), "rows", options=ReadOptions(encoding=encoding)
    ).as_written()
    assert [list(row.values())[:-4] for table in ours for row in table.to_pylist()] == rows


@pytest.mark.parametrize("command", ["classify", "predict"])
@pytest.mark.parametrize("value", ["a\0b", b"\xff"])
def test_text_that_csv_cannot_hold_is_refused_at_once(
    command, value, classified, folder, run, frames, monkeypatch
):
    notes = [None, value, *[None] * (len(frames[1]) - 2)]
    frames[1].assign(note=notes).to_parquet("unlabeled.parquet", index=False)
    frames[0].assign(note=None).to_parquet("positive.parquet", index=False)
    given = ("positive.parquet", "unlabeled.parquet", *QUICK, "--drop", "note")
    if command == "predict":
        given = (classified[0] / "fitted.model", "unlabeled.parquet")
    with monkeypatch.context() as patched:
        patched.setattr("classprior.estimation.Estimation.of", None)
        patched.setattr("classprior.engines.scores_of", None)
        for out in ("scored.csv", "-"):
            refused = run(command, *given, "--out", out, code=1)
            assert "'note'" in refused.stderr
            assert "row 2 of 'unlabeled.parquet'" in refused.stderr
            assert not refused.stdout
    assert not Path("scored.csv").exists()
    run(command, *given, "--out", "scored.parquet")
    assert pq.read_table("scored.parquet")["note"][1].as_py() == value


def test_codes_stay_text_in_parquet(folder, run, frames):
    for name, frame in zip(TWO, frames, strict=True):
        n = range(1, len(frame) + 1)
        frame.assign(
            code=[f"{i:05}" for i in n],
            plus=[f"+{i}" for i in n],
            long=[str(10**19 + i) for i in n],
            version=[f"1.{i}" for i in n],
            price=[f"{i / 10:.2f}" for i in n],
            count=n,
            kept=["1e-07", "NA", "12.0", "0.1"] * (len(frame) // 4) + ["1.5"] * (len(frame) % 4),
            day="2026-12-31",
            local="31.12.2026",
            country=["NA", "at"] * (len(frame) // 2),
        ).to_csv(name, index=False)
    before = pd.read_csv("unlabeled.csv", dtype=str, keep_default_na=False)
    for out in ("scored.parquet", "scored.feather"):
        run("classify", *TWO, "--columns", "amount,hours", *QUICK, "--out", out)
    scored = pq.read_table("scored.parquet")
    days = ["local"]  # which Parquet stores in milliseconds
    feather = pa.feather.read_table("scored.feather").drop_columns(days)
    assert scored.drop_columns(days).equals(feather)
    for name in ("id", "code", "plus", "long", "country"):
        assert scored[name].to_pylist() == before[name].tolist(), name
    for name in ("amount", "hours", "version", "price", "kept"):
        assert scored[name].type == pa.float64(), name
        expected = pd.to_numeric(before[name], errors="coerce")
        np.testing.assert_array_equal(scored[name].to_numpy(), expected)
    assert scored["count"].type == pa.int64()
    assert scored["day"].type == pa.date32()
    assert pa.types.is_timestamp(scored["local"].type)


def test_one_dialect_is_written_for_files_of_several(folder, run, frames):
    Path("many").mkdir()
    amounts = frames[1].assign(text="1.5 or 1,5")
    parts = [amounts[50 * i : 50 * (i + 1)] for i in range(3)]
    parts[0].to_csv("many/0.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    parts[1].to_csv("many/1.csv", index=False)
    parts[2].to_csv("many/2.tsv", index=False, sep="\t", decimal=",")
    run("classify", "positive.csv", "many", "--columns", "amount,hours", *QUICK, "--out", "x.csv")
    scored = pd.read_csv("x.csv", sep=";", decimal=",", encoding="utf-16")
    pd.testing.assert_frame_equal(scored[list(amounts)], amounts.reset_index(drop=True))
    run("classify", "positive.csv", "many", "--columns", "amount,hours", *QUICK, "--out", "x.tsv")
    scored = pd.read_csv("x.tsv", sep="\t", decimal=",", encoding="utf-16")
    pd.testing.assert_frame_equal(scored[list(amounts)], amounts.reset_index(drop=True))
    assert scored["probability"].dtype == float


def test_faults_in_new_rows_name_the_row_and_the_column(classified, run, tmp_path):
    folder, model = classified[0], classified[0] / "fitted.model"
    rows = pd.read_csv(folder / "unlabeled.csv")
    rows.assign(amount=rows["amount"].where(rows.index != 4, 1e300)).to_csv(
        tmp_path / "huge.csv", index=False
    )
    message = run("predict", model, tmp_path / "huge.csv", "--out", tmp_path / "x", code=1).stderr
    assert all(fact in message for fact in ("1e+300", "'amount'", "row 6", "huge.csv"))
    rows.rename(columns={"amount": "amonut"}).to_csv(tmp_path / "other.csv", index=False)
    message = run("predict", model, tmp_path / "other.csv", "--out", tmp_path / "x", code=1).stderr
    assert all(fact in message for fact in ("'amount'", "Did you mean 'amonut'?", "other.csv"))


def test_labels_must_be_single_values(run, tmp_path):
    pd.DataFrame({"x": [1.0, 2.0], "y": [[1], [0]]}).to_parquet(tmp_path / "t.parquet")
    message = run("estimate", tmp_path / "t.parquet", "--label", "y", code=1).stderr
    assert "'y'" in message
    assert "list" in message
    assert "--jobs" in run("estimate", "a", "b", "--jobs", 0, code=2).stderr
