"""Faults of files and streams: one paragraph that names the cause, and no unexpected error."""

import gzip
import os
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
