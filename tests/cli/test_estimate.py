"""``classprior estimate``, from files to an answer or a reason why there is none."""

import ast
import gzip
import json
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

import classprior
from classprior import estimate_prior
from classprior.cli import _options, main
from classprior.cli._output import printable
from classprior.cli._samples import load_samples
from classprior.estimate import METHODS
from cli.conftest import COMMAND, environment

TWO = ("positive.csv", "unlabeled.csv")
ONE = ("marked.parquet", "--label", "known", "--positive", "yes")
QUICK = ("--method", "penl1", "--centers", 10)


def load(first, unlabeled=None, **options):
    given = {
        **dict.fromkeys(("label", "positive", "file_format", "encoding")),
        **dict.fromkeys(("columns", "drop", "ids"), ()),
        "no_header": False,
        **options,
    }
    return load_samples(first, unlabeled, **given)


def test_both_layouts_agree_with_the_library(folder, run, frames):
    two = json.loads(run("estimate", *TWO, "--json").stdout)
    one = json.loads(run("estimate", *ONE, "--json").stdout)
    expected = estimate_prior(*frames, random_state=0)
    assert two == one
    assert two["prior"] == pytest.approx(expected.prior, abs=1e-12)
    assert two["schema"] == "classprior.estimate/1"
    assert two["low"] <= two["prior"] <= two["high"] <= 1.0
    assert two["prior_pooled"] == pytest.approx((60 + two["count"]) / 210)
    assert two["columns"][0] == {
        "name": "id",
        "kind": "identifier",
        "treatment": "left out: no value occurs twice",
    }


def test_json_has_the_documented_keys(folder, run):
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()
    documented = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert set(json.loads(run("estimate", *TWO, "--json").stdout)) == set(documented)


def test_the_answer_is_printed_even_if_a_report_fails(folder, run, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("classprior._writing.whole_file", fail)
    for command in ("estimate", "report"):
        option = "--report" if command == "estimate" else "--out"
        answer = run(command, *TWO, *QUICK, option, "page.html", code=1)
        assert re.match(r"About \d.*% of the 150 unlabeled rows are positive", answer.stdout)
        assert "No space left on device" in answer.stderr
        assert "The report is in" not in answer.stdout


def test_a_report_tells_how_to_repeat_it(folder, run):
    pd.read_parquet("marked.parquet").to_csv("data.txt", index=False, header=False)
    reading = ("--format", "csv", "--encoding", "latin-1", "--no-header")
    run(
        "report", "data.txt", "--label", "column_5", "--positive", "yes", *reading, *QUICK,
        "--out", "page.html",
    )  # fmt: skip
    rows = re.findall(
        r'<tr><th scope="row">(.*?)</th><td><code>(.*?)</code>', Path("page.html").read_text()
    )
    expected = {"data": "data.txt", "label": "column_5", "positive": "yes", "format": "csv"}
    expected |= {"encoding": "latin-1", "no-header": "yes", "method": "penl1", "centers": "10"}
    assert expected.items() <= dict(rows).items()


def test_the_command_line_knows_all_methods():
    assert tuple(METHODS) == _options.METHODS


def test_what_is_missing_for_a_report_is_said_before_the_work(folder, run, monkeypatch):
    monkeypatch.setattr("classprior.cli._program.find_spec", lambda name: None)
    monkeypatch.setattr("classprior.cli._estimate.load_samples", None)  # would fail otherwise
    message = run("estimate", *TWO, "--report", "page.html", code=1).stderr
    assert "Expected the package 'jinja2', which is not installed." in message


def test_text_says_what_was_done(folder, run):
    text = run("estimate", *ONE).stdout
    assert re.match(r"About \d.*% of the 150 unlabeled rows are positive", text)
    assert "95% interval, population" in text
    assert "Of all rows, known positives included," in text
    assert "Columns left out: 'id' (no value occurs twice)." in text
    assert "numbers    amount, hours (scaled, gaps filled with the median and" in text
    assert "categories colour (one column a level" in text
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


def test_the_installed_command_with_standard_input(folder, installed):
    """In a pipe: plain text, no progress, and the answer that files give."""
    content = gzip.compress((folder / "unlabeled.csv").read_bytes())
    answer = installed("estimate", "positive.csv", "-", input=content)
    assert answer.returncode == 0
    assert answer.stdout.startswith(b"About ")
    assert answer.stderr == b""


def test_a_pipe_that_closes_early(folder):
    with start("estimate", *TWO) as process:
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait() == 141
    assert errors == b""


def test_control_c(folder):
    """Stop while it waits for more of standard input: 130, one line, no traceback."""
    with start("estimate", "positive.csv", "-") as process:
        process.stdin.write(b"x" * 1_000_000)  # more than a pipe holds: it is being read
        while process.poll() is None:  # Python loses one that comes just before it waits
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
        assert process.returncode == 130
        assert process.stderr.read() == b"Stopped. No file is left half-written.\n"


def start(*arguments):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(
        [COMMAND, *arguments],
        bufsize=0,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # jobs may ignore it
        **pipes,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'POSITIVE'"),
        (("positive.csv",), "or one file and --label"),
        ((*TWO, "--label", "id"), "Got two files with --label"),
        ((*TWO, "--positive", "yes"), "Got two files with --positive"),
        (("-", "-"), "Only one of the two samples can be standard input"),
        (("positive.csv", "positive.csv"), "got 'positive.csv' twice"),
        ((*TWO, "--method", "magic"), "'magic' is not one of 'auto'"),
        ((*TWO, "--confidence", "1"), "1.0 is not in the range"),
        ((*TWO, "--centers", "9"), "--centers is for kernel methods; auto has none"),
        ((*TWO, "--format", "xlsx"), "'xlsx' is not one of"),
        ((*TWO, "--bogus"), "No such option"),
        (("marked.parquet", "--label", "colour"), "'red' in"),
    ],
)
def test_bad_usage(folder, run, arguments, message):
    answer = run("estimate", *arguments, code=2)
    assert message in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.csv", "unlabeled.csv"), "found no file called 'nowhere.csv'"),
        ((*TWO, "--columns", "amuont"), "got 'amuont'. Did you mean 'amount'?"),
        ((*TWO, "--drop", "weather"), "got 'weather'. It has 'id', 'amount'"),
        ((*TWO, "--drop", "id,amount,hours,colour"), "but all are left out"),
        ((*TWO, "--columns", "id", "--id", "id"), "but all are left out"),
        (("marked.parquet", "--label", "nown"), "Did you mean 'known'?"),
        (
            ("marked.parquet", "--label", "known", "--positive", "no"),
            "Expected rows with 'no' in column 'known', found nothing in 150 rows, 'yes' in 60",
        ),
        (("positive.csv", "other.csv"), "got none called 'when' in 'positive.csv'"),
        (
            ("positive.csv", "other.csv", "--drop", "when"),
            "got none called 'colour' in 'other.csv'",
        ),
        (("positive.csv", "types.csv"), "got different ones in column 'amount' (number and cat"),
        (("tiny.csv", "unlabeled.csv"), "at least two rows in each sample"),
        (("infinite.csv", "unlabeled.csv"), "below 1e+140 in column 'amount', got inf"),
    ],
)
def test_data_that_give_no_answer(folder, run, arguments, message):
    tables = {name: pd.read_csv("positive.csv") for name in ("other", "types", "tiny", "infinite")}
    tables["other"] = tables["other"].drop(columns="colour").assign(when=1)
    tables["types"]["amount"] = "unknown"
    tables["tiny"] = tables["tiny"][:1]
    tables["infinite"].loc[3, "amount"] = float("inf")
    for name, table in tables.items():
        table.to_csv(f"{name}.csv", index=False)
    answer = run("estimate", *arguments, code=1)
    assert message in answer.stderr
    assert answer.stderr.startswith("Error: ")
    assert answer.stderr.count("\n") == 1
    assert answer.stdout == ""


def test_debug_shows_the_traceback(folder, run):
    assert "Traceback" in run("estimate", "nowhere.csv", "x.csv", "--debug", code=1).stderr


def test_an_unforeseen_error_asks_for_a_report(folder, run, monkeypatch):
    def fail(*_, **__):
        raise KeyError("oops")

    monkeypatch.setattr("classprior._files.read_files", fail)
    answer = run("estimate", *TWO, code=1)
    assert "Something unforeseen: KeyError: 'oops'. Run the command again with --debug" in (
        answer.stderr
    )


def test_columns_may_come_in_any_order_and_be_chosen(folder):
    pd.read_csv("unlabeled.csv")[["colour", "hours", "id", "amount"]].to_csv("u.csv", index=False)
    samples = load("positive.csv", "u.csv")
    assert samples.positive.column_names == samples.unlabeled.column_names
    assert samples.unlabeled.column_names == ["colour", "hours", "id", "amount"]
    chosen = load("positive.csv", "u.csv", columns=["amount, id", "hours"], drop=["hours"])
    assert chosen.positive.column_names == ["id", "amount"]
    assert load("positive.csv", "u.csv", ids=["id"]).positive.column_names == [
        "colour",
        "hours",
        "amount",
    ]


def test_a_chosen_column_is_no_identifier(folder):
    assert load(*TWO).encoded().encoder.treatments_[0].is_left_out
    chosen = load(*TWO, columns=["amount,id"]).encoded().encoder.treatments_
    assert [column.name for column in chosen if not column.is_left_out] == ["id", "amount"]


def test_a_name_may_hold_a_comma(folder):
    for name in TWO:
        pd.read_csv(name).rename(columns={"amount": "amount, EUR"}).to_csv(name, index=False)
    assert load(*TWO, columns=["amount, EUR"]).positive.column_names == ["amount, EUR"]


@pytest.mark.parametrize(
    ("values", "positive", "n_positive"),
    [
        ([1, 0, 0], None, 1),
        ([1, None, None], None, 1),
        ([True, False, True], None, 2),
        ([1, -1, -1], None, 1),
        ([1.0, 0.0, 0.0], "1", 1),
        ([True, False, False], "true", 1),
        (["Yes", "no", "no"], None, 1),
        (["fraud", "ok", None], "fraud", 1),
    ],
)
def test_labels(tmp_path, values, positive, n_positive):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": values}).to_parquet(path)
    samples = load(str(path), label="y", positive=positive)
    assert (samples.positive.num_rows, samples.unlabeled.num_rows) == (n_positive, 3 - n_positive)
    assert samples.positive.column_names == ["x"]
    assert len(samples.notes) == (values[1] == "ok")


def test_names_and_values_cannot_steer_the_terminal(folder, run):
    nasty = "\x1b]0;owned\x07[bold red]\u202eamount"
    for name in TWO:
        table = pd.read_csv(name).rename(columns={"amount": nasty})
        table["colour"] = table["colour"].fillna("\x1b[2J")
        table.to_csv(name, index=False)
    answer = run("estimate", *TWO)
    assert printable(nasty) in answer.stdout.replace("\n             ", " ")
    assert "[bold red]" in answer.stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", answer.output)
    answer = run("estimate", *TWO, "--columns", "amount", code=1)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", answer.output)


def test_a_terminal_gets_a_panel_and_progress(folder):
    """A pseudo-terminal, as a person has."""
    pty = pytest.importorskip("pty", reason="pseudo-terminals are Unix")
    import os

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


def test_a_report_is_written_once(folder, run):
    answer = json.loads(run("estimate", *TWO, "--json", "--report", "new/page.html").stdout)
    page = Path("new/page.html").read_text()
    assert f"{answer['prior']:.1%}" in page
    assert "unlabeled.csv" in page
    refused = run("estimate", *TWO, "--report", "new/page.html", code=1)
    assert "exists. Choose another name, or say --force" in refused.stderr
    run("report", *TWO, "--out", "new/page.html", "--force", "--title", "Frauds <2026>")
    assert "Frauds &lt;2026&gt;" in Path("new/page.html").read_text()
    assert [path.name for path in Path("new").iterdir()] == ["page.html"]


def test_no_space_left(folder, run):
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
    assert answer.stderr == b"Error: Could not read or write: No space left on device.\n"


def test_a_folder_that_may_not_be_written(folder, run):
    (folder / "file").write_text("")
    message = run("estimate", *TWO, "--report", "file/page.html", code=1).stderr
    assert "Expected a folder that can be written to" in message
    assert "for the file 'file/page.html'" in message


def test_version_and_help_of_everything(run):
    assert run("--version").stdout.startswith("classprior, version ")
    for command in main.commands:
        assert f"\n  {command} " in run("--help").stdout
        assert "Examples:" in run(command, "--help").stdout


def test_type_checkers_see_the_public_names():
    """The imports that only they run are the public names, no more and no fewer."""
    tree = ast.parse(Path(classprior.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imported = [alias.name for node in guarded.body for alias in node.names]
    assert sorted(imported) == sorted(classprior.__all__)


def test_public_names_are_found_when_asked_for():
    """Importing the package imports nothing heavy, and every public name is there."""
    code = (
        "import sys, classprior, classprior.cli; "
        "assert not {'numpy', 'sklearn', 'rich', 'pyarrow'} & set(sys.modules); "
        "assert all(hasattr(classprior, name) for name in classprior.__all__); "
        "assert not hasattr(classprior, 'nonsense'); "
        "assert set(classprior.__all__) <= set(dir(classprior))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
