"""Faults of files and streams: one paragraph that names the cause, and no unexpected error."""

import gzip
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="not on this system")

TWO = "positive.csv", "unlabeled.csv"


def fault(installed, *arguments, **options):
    """Run the installed command; return its error message."""
    done = installed(*arguments, **options)
    message = (done.stderr or b"").decode()
    assert done.returncode == 1, message
    assert "Unexpected" not in message
    assert "Traceback" not in message
    return " ".join(message.split())


@pytest.mark.parametrize("command", ["estimate", "classify"])
def test_a_link_to_itself(folder, installed, command):
    Path("loop.csv").symlink_to("loop.csv")
    if command == "classify":
        assert "'" in fault(installed, "classify", *TWO, "--out", "loop.csv", "--force")
    else:
        assert "loop.csv" in fault(installed, "estimate", "positive.csv", "loop.csv")


def test_a_closed_standard_output(folder, installed):
    message = fault(installed, "estimate", *TWO, preexec_fn=lambda: os.close(1))
    assert "standard output" in message


def test_a_closed_standard_input(folder, installed):
    message = fault(installed, "estimate", "positive.csv", "-", preexec_fn=lambda: os.close(0))
    assert "tandard input" in message


def test_an_encoding_that_is_not_for_text(folder, installed):
    assert "base64" in fault(installed, "estimate", *TWO, "--encoding", "base64")


def test_a_packed_file_that_was_cut_off(folder, installed):
    content = gzip.compress(Path("unlabeled.csv").read_bytes())
    Path("cut.csv.gz").write_bytes(content[:-20])
    message = fault(installed, "estimate", "positive.csv", "cut.csv.gz")
    assert "cut.csv.gz" in message
    assert "truncated" in message


def test_a_file_name_that_is_not_utf8(folder, installed):
    name = os.fsdecode(b"caf\xe9.csv")
    os.rename("unlabeled.csv", name)
    assert "UTF-8" in fault(installed, "estimate", "positive.csv", name)


def test_a_full_disk(folder, installed):
    with open("/dev/full", "wb") as full:
        done = installed(
            "estimate", *TWO, stdout=full, stderr=subprocess.PIPE, capture_output=False
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr.decode()
    assert "Unexpected" not in done.stderr.decode()


def test_an_empty_argument(folder, installed):
    assert "empty" in fault(installed, "estimate", "positive.csv", "")


def test_a_device(folder, installed):
    message = fault(installed, "estimate", "positive.csv", "/dev/zero", "--format", "csv")
    assert "/dev/zero" in message


@pytest.mark.parametrize("value", ["1e300", "inf"])
def test_the_row_of_a_labeled_file_is_its_row_in_the_file(folder, run, value):
    """The known positives come from all over the file."""
    marked = pd.read_parquet("marked.parquet").sample(frac=1, random_state=0)
    wrong = int(np.flatnonzero(marked["known"].isna())[50])
    text = marked.to_csv(index=False).splitlines()
    text[wrong + 1] = ",".join(["row-x", value, *text[wrong + 1].split(",")[2:]])
    Path("marked.csv").write_text("\n".join([*text, ""]))
    answer = run("estimate", "marked.csv", "--label", "known", "--positive", "yes", code=1)
    assert "'amount'" in answer.stderr
    assert "marked.csv" in answer.stderr
    assert f"row {wrong + 2})" in " ".join(answer.stderr.split())


@pytest.mark.parametrize("command", ["estimate", "classify", "compare", "report", "predict"])
def test_a_value_that_the_decimal_option_cannot_mean(command, folder, run, frames):
    """1,234 could be grouped, but not 0,512: an error names it, and no file is written."""
    for name, frame in zip(("p.csv", "u.csv"), frames, strict=True):
        texts = frame.assign(amount="1,234", hours=frame["hours"].map("{:.2f}".format))
        texts.iloc[7, texts.columns.get_loc("amount")] = "0,512"
        texts.to_csv(name, index=False, sep=";")
    samples = ["p.csv", "u.csv"]
    if command == "predict":
        quick = ("--method", "penl1", "--centers", "10", "--out", "scored.csv")
        run("classify", "positive.csv", "unlabeled.csv", *quick, "--save-model", "a.model")
        samples = ["a.model", "u.csv"]
    out = () if command in ("estimate", "compare") else ("--out", "new.csv")
    answer = run(command, *samples, "--decimal", ".", *out, code=1)
    for fact in ("'amount'", "'0,512'", "row 9", ".csv"):
        assert fact in " ".join(answer.stderr.split())
    assert not (folder / "new.csv").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs descriptors of POSIX")
class TestClosedAndFull:
    """Standard streams that are closed or full, and names of outputs that are special or long."""

    @staticmethod
    def run(folder, *arguments, shell=""):
        rng = np.random.default_rng(0)
        for name, shift in (("p", 2.0), ("u", 0.0)):
            rows = rng.normal(shift, 1.0, (60, 2))
            np.savetxt(folder / f"{name}.csv", rows, delimiter=",", header="a,b", comments="")
        words = [sys.executable, "-m", "classprior", *arguments]
        command = f"{shlex.join(words)} {shell}"
        return subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)

    def test_closed_standard_error(self, tmp_path):
        ran = self.run(tmp_path, "estimate", "p.csv", "u.csv", "--method", "en", shell="2>&-")
        assert ran.returncode == 0
        assert "unlabeled rows" in ran.stdout

    def test_full_standard_output_is_named(self, tmp_path):
        if not Path("/dev/full").exists():
            pytest.skip("there is no /dev/full")
        ran = self.run(
            tmp_path, "estimate", "p.csv", "u.csv", "--method", "en", shell="> /dev/full"
        )
        assert ran.returncode == 1
        assert "standard output" in ran.stderr
        assert "space" in ran.stderr
