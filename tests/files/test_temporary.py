"""Copies of what comes through pipes, and of text in other encodings, vanish with their process."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

from classprior import PenalizedL1Prior
from classprior._files import temporary
from classprior._samples.inputs import as_source
from classprior.engines import fit_blocks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signals and no named pipes")

X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0], [3]], [200, 100], axis=0)
FRAME = pd.DataFrame(X.round(4), columns=["x1", "x2"])
WRITE = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path, row_group_size=70),
    "feather": lambda frame, path: pa.feather.write_feather(pa.Table.from_pandas(frame), str(path)),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "npy": lambda frame, path: np.save(path, frame.to_numpy()),
    "xlsx": lambda frame, path: frame.to_excel(path, index=False, engine="xlsxwriter"),
}


def through_pipe(folder, kind):
    """Return a source that reads a table through a named pipe."""
    content, pipe = folder / f"rows.{kind}", folder / f"pipe.{kind}"
    WRITE[kind](FRAME, content)
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content.read_bytes(),), daemon=True)
    writer.start()
    source = as_source(pipe, "the rows", block_rows=50)
    writer.join()
    return source


@pytest.mark.parametrize("is_nameless", [True, False])
@pytest.mark.parametrize("kind", WRITE)
def test_copies_are_read_as_often_as_needed(tmp_path, monkeypatch, kind, is_nameless):
    if not is_nameless:
        monkeypatch.setattr(temporary, "_MOST_NAMELESS", 0)
    source = through_pipe(tmp_path, kind)
    for _ in range(2):
        tables = [table for block in source for table in block.tables()]
        found = np.vstack([t if kind == "npy" else t.to_pandas().to_numpy() for t in tables])
        np.testing.assert_array_equal(found, FRAME.to_numpy())


def test_copies_are_read_by_other_processes(tmp_path):
    fitted = PenalizedL1Prior(n_centers=5, random_state=0)
    expected = fit_blocks(fitted, FRAME[:100], FRAME, block_rows=50).prior_
    with ProcessPoolExecutor(2) as pool:
        source = through_pipe(tmp_path, "parquet")
        assert fit_blocks(fitted, FRAME[:100], source, map=pool.map).prior_ == expected


def test_many_copies_need_few_open_files(tmp_path):
    """More files in another encoding than a process may usually have open."""
    for number in range(temporary._MOST_NAMELESS + 20):
        (tmp_path / f"{number}.csv").write_bytes("größe,x\n1,2\n".encode("latin-1"))
    before = len(temporary._nameless)
    source = as_source(tmp_path, "X", read_options={"encoding": "latin-1"})
    assert len(temporary._nameless) <= temporary._MOST_NAMELESS
    assert sum(t.num_rows for block in source for t in block.tables()) == source.n_rows
    del source
    assert len(temporary._nameless) == before


#: Copies standard input, a named pipe and a file in another encoding, and waits.
COPIES = """
import sys, time
from pathlib import Path
from classprior._files import temporary
from classprior._files.stored import recoded, store, store_stdin
folder = Path(sys.argv[1])
if sys.argv[2] == "named":
    temporary._MOST_NAMELESS = 0
text = store(folder / "t.csv", "t.csv")
copies = [recoded(text, "latin-1"), store_stdin("stdin"), store(folder / "pipe.csv", "pipe")]
for copy in copies:
    copy.check_unchanged()
print("ready", flush=True)
time.sleep(60 if sys.argv[3] == "waits" else 0)
"""


@pytest.fixture
def start(tmp_path):
    """Start a process that has made its copies in a folder of its own."""
    copies = tmp_path / "copies"
    copies.mkdir()
    (tmp_path / "t.csv").write_bytes("größe,x\n1,2\n".encode("latin-1"))
    started = []

    def start_process(kind, then="waits"):
        pipe = tmp_path / "pipe.csv"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        threading.Thread(target=pipe.write_text, args=("a,b\n1,2\n",), daemon=True).start()
        process = subprocess.Popen(
            [sys.executable, "-c", COPIES, str(tmp_path), kind, then],
            env={**os.environ, "TMPDIR": str(copies)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        process.stdin.write(b"a,b\n1,2\n")
        process.stdin.close()
        assert process.stdout.readline() == b"ready\n"
        return process, copies

    yield start_process
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files have no paths")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_copy_survives_a_signal(start, number):
    process, copies = start("nameless")
    assert list(copies.iterdir()) == []
    process.send_signal(number)
    assert process.wait() == -number
    assert list(copies.iterdir()) == []


def test_named_copies_are_removed_by_the_next_process(start):
    """Not those of a process that is still running, nor what somebody else has put there."""
    killed, copies = start("named")
    (left,) = copies.iterdir()
    assert len(list(left.iterdir())) == 4  # with the locked file
    killed.kill()
    killed.wait()
    others = {"classprior-other", "classprior-notes.txt"}
    (copies / "classprior-other").mkdir()
    (copies / "classprior-notes.txt").write_text("precious")
    running, _ = start("named")
    folders = {path.name for path in copies.iterdir()} - others
    assert len(folders) == 1
    assert left.name not in folders
    finished, _ = start("named", "ends")
    assert finished.wait() == 0
    assert {path.name for path in copies.iterdir()} == folders | others
    assert running.poll() is None
