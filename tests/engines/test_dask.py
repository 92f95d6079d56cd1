"""A scheduler and workers in processes of their own, over loopback; what is lost is done again."""

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from numpy.testing import assert_array_equal

from classprior import PenalizedL1Prior, PUClassifier, penalized_l1
from classprior.engines import fit_blocks
from classprior.engines._dask import DaskBlocks

ESTIMATOR = PenalizedL1Prior(n_centers=60, random_state=0)
ROWS = 150  # of a partition


def load(X, notes, client, number, dies=False):
    """Read a partition, never in the client; the worker may die when it does so again."""
    assert os.getpid() != client
    times = notes / f"{number}.{os.getpid()}.{time.monotonic_ns()}"
    times.touch()
    if dies and number == 5 and len(list(notes.glob("5.*"))) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return X[ROWS * number : ROWS * (number + 1)]


def lazy(X, folder, **options):
    """Build a dask array of ten partitions, each noting who loads it in the folder."""
    folder.mkdir()
    read = dask.delayed(partial(load, X, folder, os.getpid(), **options))
    parts = [da.from_delayed(read(i), (ROWS, 3), float) for i in range(len(X) // ROWS)]
    return da.concatenate(parts)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Start a scheduler and two workers as a user does at the prompt."""
    folder = tmp_path_factory.mktemp("cluster")
    file = str(folder / "scheduler.json")
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent),
        "DASK_TEMPORARY_DIRECTORY": str(folder),
    }
    common = ["--scheduler-file", file, "--no-dashboard", "--host", "127.0.0.1"]
    commands = [
        ["scheduler", "--port", "0", *common],
        *(["worker", "--no-nanny", "--nthreads", "1", "--death-timeout", "60", *common],) * 2,
    ]
    processes = []
    for command in commands:
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "dask", *command],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        while command[0] == "scheduler" and not Path(file).exists():
            assert processes[0].poll() is None
            time.sleep(0.1)
    with Client(scheduler_file=file) as client:
        client.wait_for_workers(2, timeout=60)
        yield client
    for process in processes:
        process.kill()
        process.wait()


def test_the_work_is_done_by_the_workers(cluster, samples, tmp_path):
    expected = fit_blocks(ESTIMATOR, samples[0], np.split(samples[1], 10)).objective_
    fitted = fit_blocks(ESTIMATOR, samples[0], lazy(samples[1], tmp_path / "notes"))
    assert_array_equal(fitted.objective_, expected)  # the same blocks in the same order
    assert len({note.name.split(".")[1] for note in (tmp_path / "notes").iterdir()}) == 2


def test_an_error_in_a_worker_names_partition_and_row(cluster, samples):
    X = samples[1].copy()
    X[1234, 2] = np.nan
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=10)
    positives = pd.DataFrame(samples[0], columns=list("abc"))
    with pytest.raises(ValueError, match=r"'c' of X_unlabeled, partition 8 \(first in row 1234\)"):
        fit_blocks(ESTIMATOR, positives, frame)


def test_checkpoints_know_dask(cluster, samples, tmp_path, monkeypatch):
    monkeypatch.setattr("classprior.engines._checkpoint._SECONDS_BETWEEN_WRITES", 0.0)
    expected = fit_blocks(ESTIMATOR, samples[0], np.split(samples[1], 10)).objective_
    X = lazy(samples[1], tmp_path / "notes")
    path = tmp_path / "sums"
    with monkeypatch.context() as patch:
        patch.setattr("classprior.engines._checkpoint.Checkpoint.end", lambda self: None)
        fit_blocks(ESTIMATOR, samples[0], X, checkpoint=path)
    before = len(list((tmp_path / "notes").iterdir()))
    fitted = fit_blocks(ESTIMATOR, samples[0], X, checkpoint=path)
    assert_array_equal(fitted.objective_, expected)
    assert len(list((tmp_path / "notes").iterdir())) == before + 10  # drawn anew, not summed


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_few_partitions_are_under_way_at_a_time(where, request, tmp_path, monkeypatch):
    """A result that is not taken keeps all but the next few partitions from being read."""
    client = request.getfixturevalue("cluster") if where == "cluster" else None
    monkeypatch.setattr("classprior.engines._dask._current_client", lambda: client)
    monkeypatch.setattr("classprior.engines._dask.effective_n_jobs", lambda n_jobs: 2)
    pid = os.getpid() if where == "cluster" else 0
    (tmp_path / "notes").mkdir()
    read = dask.delayed(partial(load, np.zeros((40 * ROWS, 3)), tmp_path / "notes", pid))
    X = da.concatenate([da.from_delayed(read(i), (ROWS, 3), float) for i in range(40)])
    with dask.config.set(scheduler="threads") if client is None else nullcontext():
        results = DaskBlocks(X, "X", None).map(block_start)
        assert next(results) == 0
        time.sleep(0.3)  # for what should not happen
        assert 1 <= len(list((tmp_path / "notes").iterdir())) <= 4
        assert list(results) == [ROWS * number for number in range(1, 40)]


def block_start(block):
    return block.start


def test_a_killed_worker_does_not_matter(cluster, samples, tmp_path):
    """Last, as one worker is gone then. It dies in the pass of the sums."""
    expected = fit_blocks(ESTIMATOR, samples[0], np.split(samples[1], 10)).objective_
    fitted = fit_blocks(ESTIMATOR, samples[0], lazy(samples[1], tmp_path / "notes", dies=True))
    assert_array_equal(fitted.objective_, expected)
    assert len(cluster.scheduler_info()["workers"]) == 1
    assert len(list((tmp_path / "notes").glob("5.*"))) > 2


@pytest.mark.parametrize("container", ["array", "frame"])
def test_in_memory_estimators_refuse_before_anything_is_computed(container, samples, tmp_path):
    X = lazy(samples[1], tmp_path / "notes")
    if container == "frame":
        X = dd.from_dask_array(X, columns=list("abc"))
    y = np.arange(1500) < 500
    for attempt in (
        lambda: PenalizedL1Prior().fit(X, y),
        lambda: PUClassifier().fit(X, y),
        lambda: penalized_l1(samples[0], X),
    ):
        with pytest.raises(TypeError, match=r"got a lazy .*\.compute\(\).*engines\.fit_blocks"):
            attempt()
    assert not list((tmp_path / "notes").iterdir())


def test_what_dask_may_be(samples):
    with pytest.raises(TypeError, match="a dask array of two dimensions"):
        fit_blocks(ESTIMATOR, samples[0], da.ones(100, chunks=10))
    frame = dd.from_pandas(pd.DataFrame(samples[1], columns=list("abc")), npartitions=2)
    with pytest.raises(ValueError, match="in X_positive, got none named 'z'"):
        fit_blocks(ESTIMATOR, frame, frame, columns=["a", "z"])
    array = da.from_array(samples[1], chunks=(500, 3))
    with pytest.raises(ValueError, match=r"columns in X_positive to choose 'a' from, got an array"):
        fit_blocks(ESTIMATOR, array, array, columns=["a"])
