"""Work in processes: one at a time, killed with all that it started, gone with the server."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from classprior._files.temporary import own_folder
from classprior.app._jobs import Desk, State
from classprior.app._work import Task
from cli.conftest import EVIDENCE, make_frames

WAIT = 60.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
]


@pytest.fixture
def task(tmp_path):
    for name, frame in zip("ab", make_frames(), strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    outputs = {"report": "r.html", "scored": "s.csv", "model": "m"}
    parameters = {"random_state": 0, "evidence": EVIDENCE}
    about = {"names": ["a.csv", "b.csv"], "report": {}, "outputs": outputs}
    return Task("estimate", str(tmp_path), {**about, "parameters": parameters})


def endless(task):
    """Return a task whose work takes minutes, in processes of its own."""
    slow = {"method": "km1", "n_resamples": 100_000, "random_state": 0, "evidence": EVIDENCE}
    return task._replace(arguments={**task.arguments, "parameters": slow})


async def until(condition):
    for _ in range(int(WAIT / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("waited in vain")


def children(process):
    """Return the processes that a process has started, and theirs."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    parents = {int(pid): int(parent) for pid, parent in map(str.split, listed.splitlines())}
    found = {process}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process}


def are_gone(processes):
    """Return whether processes have ended, or only wait for their parent to notice."""
    states = [Path(f"/proc/{process}/stat") for process in processes]
    return all(not p.exists() or p.read_text().rsplit(")")[-1].split()[0] == "Z" for p in states)


def test_a_canceled_job_ends_with_its_processes_and_the_next_one_starts(task):
    async def scenario():
        desk = Desk()
        desk.open()
        try:
            first, second, third = (desk.submit(t) for t in (endless(task), task, task))
            await until(lambda: first.step == "Interval" and first.done > 0)
            assert (second.state, third.state) == (State.WAITING, State.WAITING)
            worker = first._worker._process.pid
            started = {worker, *children(worker)}
            assert len(started) > 2
            third.cancel()
            first.cancel()
            await until(lambda: are_gone(started))
            await until(lambda: not second.is_open)
            return first, second, third
        finally:
            desk.close()

    first, second, third = asyncio.run(scenario())
    assert (first.state, second.state, third.state) == ("canceled", "done", "canceled")
    assert "unlabeled rows are positive" in second.found["answer"]["sentence"]
    assert second.found["files"] == ["report", "scored", "model"]
    assert not first.found


def test_a_process_that_dies_is_named(task):
    async def scenario():
        desk = Desk()
        desk.open()
        try:
            job = desk.submit(endless(task))
            await until(lambda: job.step == "Interval")
            os.kill(job._worker._process.pid, signal.SIGKILL)
            await until(lambda: not job.is_open)
            return job
        finally:
            desk.close()

    job = asyncio.run(scenario())
    assert job.state is State.FAILED
    assert "out of memory" in job.failure


SERVER = """
import sys
from classprior.app import serve
if __name__ == "__main__":
    serve(opens_browser=False, say=lambda text: print(text, flush=True))
"""


def started_server(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir(exist_ok=True)
    server = subprocess.Popen(
        [sys.executable, script], env=environment, stdout=subprocess.PIPE, text=True
    )
    with server.stdout:
        assert "token=" in server.stdout.readline()
    deadline = time.monotonic() + WAIT
    while not (children(server.pid) and list((tmp_path / "tmp").glob("classprior-*"))):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return server


def test_nothing_is_left_after_the_server_ends_or_is_killed(tmp_path):
    server = started_server(tmp_path)
    first, workers = list((tmp_path / "tmp").iterdir()), children(server.pid)
    assert first[0].stat().st_mode & 0o077 == 0
    server.kill()
    server.wait()
    deadline = time.monotonic() + WAIT
    while not are_gone(workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert first[0].exists()  # nobody could remove it yet
    server = started_server(tmp_path)
    assert not first[0].exists()
    workers = children(server.pid)
    server.send_signal(signal.SIGINT)
    assert server.wait(WAIT) == 0
    assert are_gone(workers)
    assert not list((tmp_path / "tmp").glob("classprior-*"))


def test_the_own_folder_is_private():
    assert own_folder().stat().st_mode & 0o077 == 0
