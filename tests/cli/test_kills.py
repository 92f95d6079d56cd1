"""Commands killed at random moments: whole files or none, and the next run is as if nothing was."""

import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cli.conftest import COMMAND, environment, make_frames

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="no kill -9"),
]
TWO = ("positive.csv", "unlabeled.csv")
QUICK = ("--method", "penl1", "--centers", "20", "--force")
COMMANDS = {
    "classify": ("classify", *TWO, *QUICK, "--out", "scored.csv"),
    "save-model": ("classify", *TWO, *QUICK, "--out", "scored.parquet", "--save-model", "a.model"),
    "report": ("report", *TWO, *QUICK, "--out", "page.html"),
    "checkpoint": ("estimate", *TWO, *QUICK, "--json", "--checkpoint", "sums.npz"),
}
OUTPUTS = ("scored.csv", "scored.parquet", "a.model", "page.html")
N_KILLS = 6


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for name, frame in zip(TWO, make_frames(n=1_000, m=60_000), strict=True):
        frame.to_csv(folder / name, index=False)
    return folder


def start(command, folder):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([COMMAND, *command], cwd=folder, env=environment(), **pipes)


def finished(command, folder):
    """Run a command; return what it prints and writes, and how long it takes."""
    began = time.monotonic()
    process = start(command, folder)
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    written = {name: undated(folder / name) for name in OUTPUTS if (folder / name).exists()}
    assert not temporary_files(folder)
    assert not (folder / "sums.npz").exists()
    return (printed, written), time.monotonic() - began


def undated(path):
    """Return the bytes of a file, without the date of a report."""
    return re.sub(rb'<p class="date">.*?</p>', b"", path.read_bytes())


def temporary_files(folder):
    return list(folder.glob(".*.part"))


def wait_for_writing(process, folder):
    """Wait for a temporary file, or for a checkpoint, which is written too fast to be seen."""
    checkpoint = folder / "sums.npz"
    while not (temporary_files(folder) or checkpoint.exists() or process.poll() is not None):
        time.sleep(0.001)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_killed_at_any_moment(name, rows, tmp_path):
    command = COMMANDS[name]
    for path in rows.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    inputs = {path: path.read_bytes() for path in tmp_path.iterdir()}
    expected, seconds = finished(command, tmp_path)
    rng = np.random.default_rng(list(map(ord, name)))
    n_killed = 0
    for number in range(N_KILLS):
        is_new = rng.uniform() < 0.5
        for output in expected[1]:
            (tmp_path / output).unlink() if is_new else (tmp_path / output).write_bytes(b"old")
        process = start(command, tmp_path)
        if number % 2:
            wait_for_writing(process, tmp_path)
            time.sleep(rng.uniform(0, 0.02))
        else:
            time.sleep(rng.uniform(0, seconds))
        process.kill()
        process.communicate()
        n_killed += process.returncode == -signal.SIGKILL
        for output, content in expected[1].items():
            path = tmp_path / output
            assert path.exists() or is_new, "lost"
            assert not path.exists() or undated(path) in (b"old", content), "half written"
        assert finished(command, tmp_path)[0] == expected
        assert {path: path.read_bytes() for path in inputs} == inputs
    assert n_killed > N_KILLS // 2
