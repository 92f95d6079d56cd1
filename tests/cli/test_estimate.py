"""``classprior estimate`` and ``classprior report``, their results and errors."""

import ast
import gzip
import html
import json
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import click
import jsonschema
import numpy as np
import pandas as pd
import pytest

import classprior
from classprior._core.messages import OptionError
from classprior._samples.opening import open_samples
from classprior._samples.units import RowOptions
from classprior.cli import _program, main
from classprior.cli._output import printable
from classprior.cli._program import in_options
from classprior.cli._samples import open_two_tables
from classprior.result import REMEDIES, Caution
from cli.conftest import COMMAND, EVIDENCE, environment, make_frames

TWO = ("positive.csv", "unlabeled.csv")
ONE = ("marked.parquet", "--label", "known", "--positive", "yes")
QUICK = ("--method", "penl1", "--centers", 10)
estimate_prior = partial(classprior.estimate_prior, evidence=EVIDENCE)


def load(first, unlabeled=None, **options):
    given = {
        **dict.fromkeys(("label", "positive", "file_format", "encoding")),
        **dict.fromkeys(("columns", "drop", "ids"), ()),
        "no_header": False,
        **options,
    }
    return open_two_tables(first, unlabeled, **given)


def columns_used(two):
    rows, how = RowOptions(key=two.key), {"columns": two.columns, "drop": two.drop}
    return open_samples(two.positive, two.unlabeled, rows, seed=0, **how).columns


def rows_of(source):
    """Return the rows of a sample, with its columns in the order in which they are used."""
    tables = [table for block in source for table in block.tables()]
    return pd.concat([table.to_pandas()[list(source.columns)] for table in tables])


# --- answers -------------------------------------------------------------------------------------


def test_both_layouts_agree_with_the_library(folder, run, frames):
    two = json.loads(run("estimate", *TWO, "--json").stdout)
    one = json.loads(run("estimate", *ONE, "--json").stdout)
    expected = estimate_prior(*frames, random_state=0)
    assert two == one
    assert two["prior"] == pytest.approx(expected.prior, abs=1e-12)
    assert two["schema"] == "classprior.estimate/1"
    assert two["low"] <= two["prior"] <= two["high"] <= 1.0
    assert two["prior_pooled"] == pytest.approx((60 + two["count"]) / 210)
    kinds = {column["name"]: column["kind"] for column in two["columns"]}
    assert kinds == {
        "id": "identifier",
        "amount": "number",
        "hours": "number",
        "color": "category",
    }


def test_json_follows_its_schema(folder, run):
    path = Path(__file__).parents[2] / "docs" / "reference" / "estimate.schema.json"
    schema = json.loads(path.read_text())
    values = json.loads(run("estimate", *TWO, "--json").stdout)
    jsonschema.validate(values, schema)
    assert set(values) == set(schema["properties"]) == set(schema["required"])


def test_text_says_what_was_done(folder, run):
    text = run("estimate", *ONE).stdout
    answer = json.loads(run("estimate", *ONE, "--json").stdout)["answer"]
    assert " ".join(text.split("\n\n")[0].split()) == answer
    assert "95% interval, population" in text
    assert "Of all rows, known positives included," in text
    assert re.search(r"left out: 'id' \(.*\)", text)
    assert re.search(r"numbers +amount, hours", text)
    assert re.search(r"categories +color", text)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 80


def test_options_reach_the_method(folder, run, frames):
    given = ("--method", "penl1", "--centers", 20, "--confidence", 0.8, "--seed", 5, "--jobs", 1)
    found = json.loads(run("estimate", *TWO, *given, "--json").stdout)
    expected = estimate_prior(
        *frames, method="penl1", n_centers=20, confidence=0.8, random_state=5, n_jobs=1
    )
    assert found["prior"] == pytest.approx(expected.prior, abs=1e-9)
    assert found["high"] == pytest.approx(expected.high, abs=1e-9)
    assert (found["method"], found["confidence"]) == ("penl1", 0.8)


def test_groups_reach_the_method(folder, run, frames):
    """Rows of a group stay together, and the group is not a feature."""
    rng = np.random.default_rng(0)
    grouped = [frame.assign(customer=rng.integers(0, 40, len(frame))) for frame in frames]
    for frame, name in zip(grouped, TWO, strict=True):
        frame.to_csv(name, index=False)
    found = json.loads(run("estimate", *TWO, *QUICK, "--groups", "customer", "--json").stdout)
    groups = [frame.pop("customer").to_numpy() for frame in grouped]
    expected, without = (
        estimate_prior(*grouped, method="penl1", n_centers=10, random_state=0, groups=g)
        for g in (groups, None)
    )
    assert found["low"] == pytest.approx(expected.low, abs=1e-9)
    assert found["low"] != pytest.approx(without.low, abs=1e-9)
    assert "customer" not in [column["name"] for column in found["columns"]]


@pytest.fixture
def told(folder, frames):
    """Write both samples with weights, some zero, and the unlabeled rows with segments."""
    rng = np.random.default_rng(0)
    positive, unlabeled = (
        frame.assign(w=rng.choice([0.0, 1.0, 2.5], len(frame))) for frame in frames
    )
    days = np.arange("2024-02-20", "2024-03-10", dtype="datetime64[D]").astype(str)
    unlabeled = unlabeled.assign(
        day=rng.choice(days, len(unlabeled)), region=rng.choice(["north", "south"], len(unlabeled))
    )
    for frame, name in zip((positive, unlabeled), TWO, strict=True):
        frame.to_csv(name, index=False)
    return positive, unlabeled


def test_weights_reach_the_method(told, run):
    given = ("--weights", "w", "--max-weight", "8,9", "--drop", "day,region", "--json")
    found = json.loads(run("estimate", *TWO, *given).stdout)
    positive, unlabeled = told
    samples = positive, unlabeled.drop(columns=["day", "region"])
    expected = estimate_prior(*samples, weights="w", max_weight=(8, 9), random_state=0)
    assert found["bound_is_exact"]
    assert (found["n_positive"], found["n_unlabeled"]) == tuple((f["w"] > 0).sum() for f in told)
    for name in ("prior", "low", "high", "upper_bound", "prior_pooled", "label_frequency"):
        assert found[name] == pytest.approx(getattr(expected, name), abs=1e-9)
    assert found["prior_pooled"] == pytest.approx(expected.estimator.prior_pooled_)
    assert found["total_weights"] == pytest.approx([frame["w"].sum() for frame in told])
    assert any("weighted" in note for note in found["notes"])
    assert "w" not in [column["name"] for column in found["columns"]]


def test_segments_reach_the_method(told, run):
    """The positives need not have their columns."""
    samples = told[0].drop(columns="w"), told[1].drop(columns="w")
    given = ("estimate", *TWO, "--drop", "w", "--json")
    for options, told_to in [
        (("--by", "region", "--drop", "day"), {"segments": "region", "drop": ["day"]}),
        (("--by", "region,day", "--every", "year"), None),
        (("--by", "region", "--by", "day"), {"segments": ["region", "day"]}),
        (
            ("--by", "day", "--every", "week", "--drop", "region"),
            {"segments": "day", "every": "week", "drop": ["region"]},
        ),
    ]:
        if told_to is None:
            assert "by year" in run(*given, *options, code=1).stderr  # regions are no dates
            continue
        found = json.loads(run(*given, *options).stdout)
        expected = estimate_prior(*samples, random_state=0, **told_to)
        assert found["segments_p_value"] == pytest.approx(expected.segments.p_value, abs=1e-9)
        for part, other in zip(found["segments"], expected.segments.to_list(), strict=True):
            assert part.pop("segment") == other.pop("segment")
            assert part == pytest.approx(other, abs=1e-9)
        assert not {"region", "day", "w"} & {column["name"] for column in found["columns"]}


def test_json_of_segments_follows_the_schema(told, run):
    path = Path(__file__).parents[2] / "docs" / "reference" / "estimate.schema.json"
    schema = json.loads(path.read_text())
    given = ("--by", "region,day", "--weights", "w", "--json")
    values = json.loads(run("estimate", *TWO, *given).stdout)
    jsonschema.validate(values, schema)
    assert set(values) == set(schema["properties"])
    part = schema["properties"]["segments"]["items"]
    assert set(values["segments"][0]) == set(part["properties"]) == set(part["required"])


def test_text_and_report_show_the_segments(told, run):
    given = ("--by", "region", "--drop", "day,w")
    text = run("estimate", *TWO, *given, "--report", "page.html").stdout
    assert re.search(r"\n  region +rows +share +95% interval +positives +bound\n  north ", text)
    assert re.search(r"differ between segments \(p . \.\d+\)", text)
    assert "all known positives" in text
    assert "--json" in text
    assert max(map(len, text.splitlines())) < 80
    page = Path("page.html").read_text()
    assert ">north</th>" in page
    assert "segment-positives" in page
    answer = run("report", *TWO, *given, "--out", "other.html")
    assert "other.html" in answer.stdout
    assert ">south</th>" in Path("other.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "facts"),
    [
        (("--by", "regoin"), 1, ["'regoin'", "'region'"]),
        (("--weights", "ww"), 1, ["'ww'", "'w'"]),
        (("--weights", "w", "--max-weight", "0.5", "--drop", "region"), 1, ["0.5", "--max-weight"]),
        (("--weights", "w", "--max-weight", "1,2,3"), 2, ["1,2,3"]),
        (("--by", "region", "--method", "penl1"), 2, ["--by", "penl1"]),
        (("--every", "month"), 2, ["--every", "--by"]),
        (("--segment-positives", "own"), 2, ["--segment-positives", "--by"]),
        (("--by", "region", "--segment-positives", "own"), 1, ["'north'", "--segment-positives"]),
        (("--by", "region", "--every", "decade"), 2, ["'decade'"]),
        (("--weights", "color", "--drop", "region"), 1, ["'color'"]),
    ],
)
def test_segments_and_weights_that_cannot_be(told, run, arguments, code, facts):
    stderr = run("estimate", *TWO, "--drop", "day", *arguments, code=code).stderr
    assert all(fact in stderr for fact in facts), stderr


def test_more_rows_than_are_looked_at_at_once(folder, run):
    """Columns are encoded from 20,000 rows and sums use all rows, in files as in memory."""
    positive, unlabeled = make_frames(n=60, m=21_000)
    positive.to_parquet("positive.parquet", index=False)
    Path("many").mkdir()
    for number in range(3):
        part = unlabeled[7000 * number : 7000 * (number + 1)]
        part.to_parquet(f"many/{number}.parquet", index=False, row_group_size=3000)
    given = ("positive.parquet", "many", *QUICK, "--json")
    found = json.loads(run("estimate", *given).stdout)
    kept = json.loads(run("estimate", *given, "--checkpoint", "sums").stdout)
    expected = estimate_prior(positive, unlabeled, method="penl1", n_centers=10, random_state=0)
    assert (found["n_positive"], found["n_unlabeled"]) == (60, 21_000)
    for name in ("prior", "low", "high", "upper_bound"):
        assert found[name] == pytest.approx(getattr(expected, name), abs=1e-6)
        assert kept[name] == pytest.approx(found[name], abs=0.0011)  # a step of theta
    _, note, on_kernel = found["notes"]
    assert "20,000 of the 21,000 unlabeled rows" in note
    assert expected.estimator.kernel_ in on_kernel.lower()
    assert "sums" not in os.listdir()


def test_csv_as_people_write_it(folder, run, frames):
    local = {"index": False, "sep": ";", "decimal": ","}
    positive, unlabeled = (frame.replace({"color": {"red": "blaßrot"}}) for frame in frames)
    positive.to_csv("positive.csv", encoding="latin-1", **local)
    unlabeled.to_csv("unlabeled.csv", encoding="utf-16", **local)
    unlabeled.to_csv("unlabeled.csv.gz", encoding="latin-1", **local)
    named = ("--encoding", "latin-1", *QUICK, "--json")
    packed = json.loads(run("estimate", "positive.csv", "unlabeled.csv.gz", *named).stdout)
    assert [column["kind"] for column in packed["columns"][1:3]] == ["number", "number"]
    positive.to_csv("positive.csv", encoding="utf-8-sig", **local)
    marked = json.loads(run("estimate", *TWO, *QUICK, "--json").stdout)
    assert marked == packed


def test_a_report_tells_how_to_repeat_it(folder, run):
    pd.read_parquet("marked.parquet").to_csv("data.txt", index=False, header=False)
    reading = ("--format", "csv", "--encoding", "latin-1", "--no-header")
    run(
        "report", "data.txt", "--label", "column_5", "--positive", "yes", *reading, *QUICK,
        "--groups", "column_1", "--drop", "column_4", "--out", "page.html",
    )  # fmt: skip
    rows = re.findall(
        r'<tr><th scope="row">(.*?)</th><td><code>(.*?)</code>', Path("page.html").read_text()
    )
    expected = {"data": "data.txt", "label": "column_5", "positive": "yes", "format": "csv"}
    expected |= {"encoding": "latin-1", "no-header": "yes", "method": "penl1", "centers": "10"}
    expected |= {"groups": "column_1", "drop": "column_4"}
    assert expected.items() <= dict(rows).items()


@pytest.mark.parametrize(
    "given",
    [
        ("report", *TWO, "--seed", "3", "--drop", "hours", "--out", "the page's.html"),
        ("estimate", "marked.parquet", "--label=known", "--positive=yes", "--report", "p q.html"),
        ("report", "--title", "$HOME <b>", "--out", "a.html", "--quiet", "--", "-p.csv", TWO[1]),
        ("classify", *TWO, "--id", "id", "--report", "b.html", "--out", "rows.csv"),
    ],
)
def test_a_report_has_its_date_and_a_command_to_copy(folder, run, given):
    Path("-p.csv").write_bytes(Path(TWO[0]).read_bytes())
    page = next(text for text in given if text.endswith(".html"))
    run(*given)
    first = Path(page).read_text()
    (command,) = re.findall(r"<pre><code>(.*)</code></pre>", first)
    name, *arguments = shlex.split(html.unescape(command))
    assert name == "classprior"
    run(*arguments, code=1)  # it does not overwrite files, either
    for file in (page, "rows.csv"):
        Path(file).unlink(missing_ok=True)
    run(*arguments)
    date = re.compile(r'<p class="date">(.*?)</p>')
    assert date.sub("", Path(page).read_text()) == date.sub("", first)
    age = datetime.now(UTC) - datetime.fromisoformat(date.findall(first)[0])
    assert timedelta(0) <= age < timedelta(minutes=10)


def test_a_report_is_written_once(folder, run):
    answer = json.loads(run("estimate", *TWO, "--json", "--report", "new/page.html").stdout)
    page = Path("new/page.html").read_text()
    assert f"{answer['prior']:.1%}" in page
    assert "unlabeled.csv" in page
    assert "Which columns matter" in page
    refused = run("estimate", *TWO, "--report", "new/page.html", code=1)
    assert "'new/page.html'" in refused.stderr
    assert "--force" in refused.stderr
    run("report", *TWO, "--out", "new/page.html", "--force", "--title", "Frauds <2026>")
    assert "Frauds &lt;2026&gt;" in Path("new/page.html").read_text()
    assert [path.name for path in Path("new").iterdir()] == ["page.html"]


def test_the_answer_is_printed_even_if_a_report_fails(folder, run, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("classprior._files.writing.whole_file", fail)
    expected = json.loads(run("estimate", *TWO, *QUICK, "--json").stdout)["answer"]
    for command in ("estimate", "report"):
        option = "--report" if command == "estimate" else "--out"
        answer = run(command, *TWO, *QUICK, option, "page.html", code=1)
        assert " ".join(answer.stdout.split("\n\n")[0].split()) == expected
        assert "No space left on device" in answer.stderr
        assert "The report is in" not in answer.stdout


def test_what_is_missing_for_a_report_is_said_before_the_work(folder, run, monkeypatch):
    monkeypatch.setattr("classprior.cli._program.find_spec", lambda name: None)
    message = run("estimate", "nowhere.csv", "x.csv", "--report", "page.html", code=1).stderr
    assert "'jinja2'" in message
    assert "nowhere.csv" not in message


def test_warnings_name_options_of_the_command_line(folder, run, frames):
    """In the text, as JSON and in the report; in Python, the parameters of estimate_prior."""
    positive, unlabeled = (frame.assign(**{"entered on": n}) for n, frame in enumerate(frames))
    positive.to_csv("positive.csv", index=False)
    unlabeled.to_csv("unlabeled.csv", index=False)
    given = (*TWO, "--method", "pe", "--report", "page.html")
    text = " ".join(run("estimate", *given).stdout.split())
    short = " ".join(run("report", *given[:-2], "--out", "other.html").stdout.split())
    assert short.count("Warning: ") == text.count("Warning: ") > 0
    warnings = json.loads(run("estimate", *given, "--json", "--force").stdout)["warnings"]
    page = html.unescape(Path("page.html").read_text())
    for option in ("--drop 'entered on'", "--method auto"):
        assert option in text
        assert option in page
        assert any(option in warning for warning in warnings)
    assert "drop=" not in text + page + "".join(warnings)
    expected = estimate_prior(positive, unlabeled, method="pe", random_state=0).warnings
    assert len(expected) == len(warnings)
    assert any("`drop=['entered on']`" in w for w in expected)


@pytest.mark.parametrize("remedy", REMEDIES)
def test_every_remedy_has_an_option_that_exists(remedy):
    advice = in_options(Caution("Found.", "Do this.", remedy)).advice
    (option,) = re.findall(r"--[\w-]+", advice)
    assert option in [name for p in main.commands["estimate"].params for name in p.opts]
    assert "`" not in advice
    assert in_options("A plain one.") == "A plain one."


# --- the installed command -----------------------------------------------------------------------


def test_the_installed_command_with_standard_input(folder, installed):
    """In a pipe, the output is plain text without progress."""
    content = gzip.compress((folder / "unlabeled.csv").read_bytes())
    answer = installed("estimate", "positive.csv", "-", input=content)
    assert answer.returncode == 0
    assert re.match(
        rb"Between \d.*% and \d.*% of the 150 unlabeled rows are positive", answer.stdout
    )
    assert answer.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGPIPE")
def test_a_pipe_that_closes_early(folder):
    with start("estimate", *TWO) as process:
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait() == 141
    assert errors == b""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process")
def test_control_c(folder):
    """Interrupt while waiting for standard input: exit code 130, one line, no traceback."""
    with start("estimate", "positive.csv", "-") as process:
        process.stdin.write(b"x" * 1_000_000)  # more than a pipe holds: it is being read
        while process.poll() is None:  # Python loses one that comes just before it waits
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
        assert process.returncode == 130
        errors = process.stderr.read()
    assert errors.count(b"\n") == 1
    assert b"Traceback" not in errors


def start(*arguments):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(
        [COMMAND, *arguments],
        bufsize=0,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # jobs may ignore it
        **pipes,
    )


def test_a_terminal_gets_a_panel_and_progress(folder):
    """Run in a pseudo-terminal."""
    pty = pytest.importorskip("pty", reason="pseudo-terminals are Unix")
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "estimate", *TWO],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        env={**environment(), "COLUMNS": "100", "TERM": "xterm"},
    ) as process:
        os.close(follower)
        shown = b""
        try:
            while chunk := os.read(leader, 10_000):
                shown += chunk
        except OSError:  # how Linux says that the other side is closed
            pass
        os.close(leader)
        assert process.wait() == 0
    text = shown.decode()
    assert "╭" in text
    assert "Cross-fitting" in text
    assert "unlabeled rows are positive" in text


def test_no_space_left(folder):
    """A device that is always full."""
    assert Path("/dev/full").exists() or pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [COMMAND, "estimate", *TWO, "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    assert answer.returncode == 1
    assert answer.stderr.count(b"\n") == 1
    assert b"No space left on device" in answer.stderr


# --- no answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ((), ["'POSITIVE'"]),
        (("positive.csv",), ["--label", "'positive.csv'"]),
        ((*TWO, "--label", "id"), ["--label"]),
        ((*TWO, "--positive", "yes"), ["--positive"]),
        (("-", "-"), ["standard input"]),
        (("positive.csv", "positive.csv"), ["'positive.csv'"]),
        ((*TWO, "--method", "magic"), ["'magic'", "'auto'"]),
        ((*TWO, "--confidence", "1"), ["1.0"]),
        ((*TWO, "--centers", "9"), ["--centers", "auto"]),
        ((*TWO, "--method", "en", "--centers", "9"), ["--centers", "en"]),
        ((*TWO, "--method", "en", "--checkpoint", "sums"), ["--checkpoint", "en", "penl1"]),
        ((*TWO, "--format", "xlsx"), ["'xlsx'"]),
        ((*TWO, "--bogus"), ["--bogus"]),
        (("marked.parquet", "--label", "color"), ["'color'", "'red' in", "nothing in 24 rows"]),
    ],
)
def test_bad_usage(folder, run, arguments, facts):
    answer = run("estimate", *arguments, code=2)
    assert all(fact in answer.stderr for fact in facts)
    assert answer.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("nowhere.csv", "unlabeled.csv"), ["'nowhere.csv'"]),
        ((*TWO, "--columns", "amuont"), ["'amuont'", "'amount'?"]),
        ((*TWO, "--drop", "weather"), ["'weather'", "'id', 'amount'"]),
        ((*TWO, "--groups", "weather"), ["'weather'", "'id', 'amount'"]),
        ((*TWO, "--groups", "color"), ["'color'", "'positive.csv'", "row 2"]),
        ((*TWO, "--drop", "id,amount,hours,color"), ["no column"]),
        ((*TWO, "--columns", "id", "--id", "id"), ["no column"]),
        (("marked.parquet", "--label", "nown"), ["'known'?"]),
        (
            ("marked.parquet", "--label", "known", "--positive", "no"),
            ["'no'", "'known'", "nothing in 150 rows, 'yes' in 60 rows", "--positive"],
        ),
        (("positive.csv", "other.csv"), ["'when'", "'positive.csv'", "--drop"]),
        (("positive.csv", "other.csv", "--drop", "when"), ["'color'", "'other.csv'"]),
        (("positive.csv", "types.csv"), ["'amount' (number and category)"]),
        (("positive.csv", "late.csv"), ["'hours' (number and category)"]),
        (("tiny.csv", "unlabeled.csv"), ["two rows"]),
        (("infinite.csv", "unlabeled.csv"), ["inf", "'amount'", "'infinite.csv'", "row 5"]),
        (("rows.npy", "unlabeled.csv"), ["'rows.npy'"]),
        # The library knows no options; the command line adds them.
        (("numbers.csv", "unlabeled.csv"), ["'numbers.csv'", "--no-header"]),
        (("twice.csv", "unlabeled.csv"), ["'twice.csv'", "'a'", "--no-header"]),
        (("headless.csv", "unlabeled.csv"), ["'headless.csv'", "'5'", "--no-header"]),
        (("positive.csv", "decimals.csv"), ["'decimals.csv'", "'3.1'", "--no-header"]),
        (("headless.csv", "decimals.csv"), ["'headless.csv'", "'5'", "'3.1'", "--no-header"]),
        (("decimals.csv", "--label", "y"), ["'y'", "'decimals.csv'", "'3.1'", "--no-header"]),
        (("*less.csv", "unlabeled.csv"), ["'nameless.csv'", "'7'", "--no-header"]),
        (("latin.csv", "unlabeled.csv"), ["'latin.csv'", "byte 7", "--encoding"]),
        (("packed.csv", "unlabeled.csv"), ["'packed.csv'", "--format"]),
        (("data.bin", "unlabeled.csv"), ["'data.bin'", "--format"]),
        (("broken.parquet", "unlabeled.csv"), ["'broken.parquet'", "--format"]),
        (("folder", "unlabeled.csv"), ["'folder'", "--format"]),
    ],
)
def test_data_that_give_no_answer(folder, run, arguments, facts):
    tables = {name: pd.read_csv("positive.csv") for name in ("other", "types", "tiny", "infinite")}
    tables["other"] = tables["other"].drop(columns="color").assign(when=1)
    tables["types"]["amount"] = "unknown"
    tables["tiny"] = tables["tiny"][:1]
    tables["infinite"].loc[3, "amount"] = float("inf")
    tables["late"] = pd.concat([pd.read_csv("unlabeled.csv").astype({"hours": object})] * 200)
    tables["late"].iloc[-1, 2] = "three"  # beyond what types could be guessed from
    for name, table in tables.items():
        table.to_csv(f"{name}.csv", index=False)
    np.save("rows.npy", np.ones((3, 2)))
    Path("numbers.csv").write_text("1,2\n3,4\n")
    Path("twice.csv").write_text("a,a\n3,4\n")
    Path("headless.csv").write_text("5,red\n3,blue\n")
    Path("nameless.csv").write_text("7,red\n3,blue\n")
    Path("decimals.csv").write_text("3.1,red,8\n4.2,blue,2\n")
    Path("latin.csv").write_bytes("name,x\nÄnne,1\n".encode("latin-1"))
    Path("packed.csv").write_bytes(Path("marked.parquet").read_bytes())
    Path("data.bin").write_text("a,b\n3,4\n")
    Path("broken.parquet").write_bytes(Path("marked.parquet").read_bytes()[:-9])
    Path("folder").mkdir()
    answer = run("estimate", *arguments, code=1)
    assert [fact for fact in facts if fact not in answer.stderr] == []
    *notes, error = answer.stderr.splitlines()
    assert error.startswith("Error: ")
    assert all(note.startswith("Note: The first line of") for note in notes)
    assert answer.stdout == ""


def test_help_lists_all_formats(run):
    told = run("estimate", "--help").stdout
    for name in ("CSV", "Parquet", "Feather", "JSON lines", ".xlsx", ".ods"):
        assert name in told


def test_debug_shows_the_traceback(folder, run):
    assert "Traceback" in run("estimate", "nowhere.csv", "x.csv", "--debug", code=1).stderr


def test_an_unforeseen_error_asks_for_a_report(folder, run, monkeypatch):
    def fail(*_, **__):
        raise KeyError("oops")

    monkeypatch.setattr("classprior._files.reading.open_files", fail)
    answer = run("estimate", *TWO, code=1)
    assert "KeyError: 'oops'" in answer.stderr
    assert "--debug" in answer.stderr


def test_a_folder_that_may_not_be_written(folder, run):
    (folder / "file").write_text("")
    message = run("estimate", *TWO, "--report", "file/page.html", code=1).stderr
    assert "'file/page.html'" in message


# --- rows and columns ----------------------------------------------------------------------------


def test_missing_values_are_mentioned_where_there_are_some(folder, run, frames):
    with_gaps = run("estimate", *TWO).stdout
    assert with_gaps.count("missing") == 2  # in numbers and categories
    for frame, name in zip(frames, TWO, strict=True):
        frame.assign(color=frame["color"].fillna("red")).to_csv(name, index=False)
    some = run("estimate", *TWO).stdout.split("Columns\n")[1]
    assert "missing" in some.split("categories")[0]
    assert "missing" not in some.split("categories")[1]


def test_the_row_labels_of_pandas_are_left_out(folder, run, frames):
    expected = json.loads(run("estimate", *TWO, "--json").stdout)
    for frame, name in zip(frames, TWO, strict=True):
        frame.reset_index(drop=True).to_csv(name)
    found = json.loads(run("estimate", *TWO, "--json").stdout)
    assert found["prior"] == expected["prior"]
    (labels,) = [c for c in found["columns"] if c["name"] == "column_1"]
    assert (labels["kind"], "left out" in labels["treatment"]) == ("identifier", True)
    printed = run("estimate", *TWO, "--report", "page.html").stdout
    assert "'column_1'" in printed
    assert "column_1" in Path("page.html").read_text()
    kept = run("estimate", *TWO, "--columns", "column_1,amount,hours", "--json").stdout
    assert json.loads(kept)["prior"] < found["prior"] / 2  # row numbers reveal the sample


def test_columns_may_come_in_any_order_and_be_chosen(folder):
    pd.read_csv("unlabeled.csv")[["color", "hours", "id", "amount"]].to_csv("u.csv", index=False)
    two = load("positive.csv", "u.csv")
    assert columns_used(two) == ("color", "hours", "id", "amount")
    assert two.columns is None
    chosen = load("positive.csv", "u.csv", columns=["amount, id", "hours"], drop=["hours"])
    assert columns_used(chosen) == ("id", "amount")
    without = load("positive.csv", "u.csv", ids=["id"])
    assert columns_used(without) == ("color", "hours", "amount")


def test_a_chosen_column_is_no_identifier(folder, run):
    given = ("estimate", *TWO, *QUICK, "--json")
    for more, used in ((), ["amount", "hours", "color"]), (("--columns", "amount,id"), ["id"]):
        columns = json.loads(run(*given, *more).stdout)["columns"]
        left_in = [c["name"] for c in columns if "left out" not in c["treatment"]]
        assert set(used) <= set(left_in)
        assert ("id" in left_in) == bool(more)


def test_a_name_may_hold_a_comma(folder):
    for name in TWO:
        pd.read_csv(name).rename(columns={"amount": "amount, EUR"}).to_csv(name, index=False)
    assert columns_used(load(*TWO, columns=["amount, EUR"])) == ("amount, EUR",)


@pytest.mark.parametrize(
    ("values", "positive", "is_positive"),
    [
        ([1, 0, 0], None, [1, 0, 0]),
        ([1, None, None], None, [1, 0, 0]),
        ([True, False, True], None, [1, 0, 1]),
        ([True, None, True], None, [1, 0, 1]),
        ([1, -1, -1], None, [1, 0, 0]),
        ([1.0, 0.0, 0.0], "1", [1, 0, 0]),
        ([True, False, False], "true", [1, 0, 0]),
        (["Yes", "no", "no"], None, [1, 0, 0]),
        ([None, "no", "Yes"], None, [0, 0, 1]),
        (["fraud", "ok", None], "fraud", [1, 0, 0]),
        (["None", "ok", None], "None", [1, 0, 0]),
        (["zombie", "unknown", "unknown"], None, [1, 0, 0]),
        (["fraud", None, None], None, [1, 0, 0]),
        (["Unchecked", "fraud", "n/a"], None, [0, 1, 0]),
        (["yes", "no", "open"], None, [1, 0, 0]),
        (["fraud", "unknown", "fraud"], "unknown", [0, 1, 0]),
    ],
)
def test_labels(tmp_path, values, positive, is_positive):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": values}).to_parquet(path)
    two = load(str(path), label="y", positive=positive)
    is_positive = np.array(is_positive, dtype=bool)
    x = np.array([1.0, 2.0, 3.0])
    assert rows_of(two.positive)["x"].tolist() == x[is_positive].tolist()
    assert rows_of(two.unlabeled)["x"].tolist() == x[~is_positive].tolist()
    assert columns_used(two) == ("x",)
    n_others = len({text for text, p in zip(values, is_positive, strict=True) if not p})
    assert len(two.notes) == (n_others > 1 or positive == "unknown")


@pytest.mark.parametrize(
    ("values", "positive", "n_positive"),
    [
        (["007", "7", "7"], "007", 1),
        (["007", "7", "7"], "7", 2),
        (["100", "1e2", "5"], "1e2", 1),
        (["9007199254740993", "9007199254740992", "1"], "9007199254740993", 1),
        (["1.0", "0.0", "0"], "1", 1),
        (["-", "", "x"], "-", 1),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_labels_are_compared_exactly(tmp_path, values, positive, n_positive, suffix):
    """Text as text, and numbers without rounding."""
    path = tmp_path / f"t.{suffix}"
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": values})
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    two = load(str(path), label="y", positive=positive)
    expected = [x for x, text in zip([1.0, 2.0, 3.0], values, strict=True) if text == positive]
    assert rows_of(two.positive)["x"].tolist() == (expected or [1.0])  # 1.0 is 1
    assert two.positive.n_rows == n_positive
    if values[0] != positive and n_positive == 1:
        assert f"{values[0]!r} in 1 row" in two.notes[0]


@pytest.mark.parametrize(
    "values", [["no", None, None], ["0", "unknown", "0"], ["open", "unknown"], ["fraud", "ok", ""]]
)
def test_unclear_labels_need_an_option(tmp_path, values):
    pd.DataFrame({"x": range(len(values)), "y": values}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(click.UsageError, match=r"'y'.*--positive"):
        load(str(tmp_path / "t.parquet"), label="y")


def test_labels_in_many_blocks(tmp_path):
    """Rows keep their order, and a block may contain rows of one kind only."""
    known = np.arange(70_000) % 100 == 0
    known[:33_000] = False
    pd.DataFrame({"x": np.arange(70_000), "y": known}).to_csv(tmp_path / "t.csv", index=False)
    two = load(str(tmp_path / "t.csv"), label="y")
    assert_same = np.testing.assert_array_equal
    assert_same(rows_of(two.positive)["x"], np.flatnonzero(known))
    assert_same(rows_of(two.unlabeled)["x"], np.flatnonzero(~known))
    assert (two.positive.n_rows, two.unlabeled.n_rows) == (known.sum(), (~known).sum())


# --- what the terminal gets ----------------------------------------------------------------------


def test_names_and_values_cannot_steer_the_terminal(folder, run):
    nasty = "\x1b]0;owned\x07[bold red]\u202eamount"
    for name in TWO:
        table = pd.read_csv(name).rename(columns={"amount": nasty})
        table["color"] = table["color"].fillna("\x1b[2J")
        table.to_csv(name, index=False)
    answer = run("estimate", *TWO)
    assert printable(nasty) in answer.stdout.replace("\n             ", " ")
    assert "[bold red]" in answer.stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", answer.output)
    answer = run("estimate", *TWO, "--columns", "amount", code=1)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", answer.output)


def test_version_and_help_of_everything(run):
    assert run("--version").stdout.startswith("classprior, version ")
    for command in main.commands:
        assert f"\n  {command} " in run("--help").stdout
        assert "Examples:" in run(command, "--help").stdout


def test_every_line_of_help_is_a_sentence():
    """Commands and options are listed out of context, so none may refer to another line."""
    for command in main.commands.values():
        texts = [
            command.short_help,
            *(p.help for p in command.params if isinstance(p, click.Option)),
        ]
        for text in texts:
            assert re.match(r"[A-Z]\w+ .*\w.*\.$", text), text
            assert "The same" not in text.split(".")[0]


def test_type_checkers_see_the_public_names():
    """The imports under TYPE_CHECKING are exactly the public names."""
    tree = ast.parse(Path(classprior.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imported = [alias.name for node in guarded.body for alias in node.names]
    assert sorted(imported) == sorted(classprior.__all__)


def test_public_names_are_found_when_asked_for():
    """Importing the package imports nothing heavy, and all public names exist."""
    code = (
        "import sys, classprior, classprior.cli; "
        "assert not {'numpy', 'sklearn', 'rich', 'pyarrow'} & set(sys.modules); "
        "assert all(hasattr(classprior, name) for name in classprior.__all__); "
        "assert not hasattr(classprior, 'nonsense'); "
        "assert {*dir(classprior)} == {*classprior.__all__, '__version__'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_parameter_that_errors_carry_has_an_option():
    """Their wording does not matter: the command line adds the option to any sentence."""
    carried = set()
    for path in Path(classprior.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("OptionError", "warn"):
                carried |= {
                    part.value
                    for argument in node.args[1:]
                    for part in ast.walk(argument)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                }
    assert carried == set(_program._OPTIONS)
    error = pickle.loads(pickle.dumps(OptionError("No such sheet.", "sheet")))  # from a worker
    assert _program.explained(error) == "No such sheet (--sheet)."
    later = ValueError("In block 3: no.")
    later.__cause__ = error
    assert _program.explained(later) == "In block 3: no (--sheet)."


def test_known_positives_are_left_out_of_the_unlabeled_rows(folder, run):
    positive, unlabeled = map(pd.read_csv, TWO)
    pd.concat([unlabeled, positive]).to_csv("all.csv", index=False)
    found = json.loads(run("estimate", TWO[0], "all.csv", "--json").stdout)
    (warning,) = (w for w in found["warnings"] if "Known positives among" in w)
    assert f"{len(positive):,} of the {len(positive):,} known positives" in warning
    assert "--leave-out-known" in warning
    given = (TWO[0], "all.csv", "--leave-out-known", "--json")
    found = json.loads(run("estimate", *given).stdout)
    expected = json.loads(run("estimate", *TWO, "--json").stdout)
    assert (found["prior"], found["count"]) == (expected["prior"], expected["count"])
    assert f"{len(positive):,} of the" in found["notes"][-1]
    compared = json.loads(run("compare", *given, "--methods", "en").stdout)
    assert compared["n_unlabeled"] == len(unlabeled)
