"""Dask collections: the work goes to the rows, and what is lost is done again.

The cluster is a scheduler and workers in processes of their own, over loopback.
"""

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
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classprior import AutoPrior, PenalizedL1Prior, PUClassifier
from classprior._samples.dask import DaskSource
from classprior.engines import fit_blocks

ESTIMATOR = PenalizedL1Prior(n_centers=60, random_state=0)
AUTO = AutoPrior(
    classifiers={"linear": LogisticRegression()}, n_repeats=2, max_rows=400, random_state=0
)
ROWS = 150  # of a partition


def load(X, notes, client, number, dies=False):
    """Read a partition, never in the client; the worker may die when it does so again."""
    assert os.getpid() != client
    times = notes / f"{number}.{os.getpid()}.{time.monotonic_ns()}"
    times.touch()
    if dies and number == 5 and len(list(notes.glob("5.*"))) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return X[ROWS * number : ROWS * (number + 1)]


def lazy(X, folder, client=None, **options):
    """Build a dask array of partitions, each noting who loads it in the folder."""
    folder.mkdir()
    client = os.getpid() if client is None else client
    read = dask.delayed(partial(load, X, folder, client, **options))
    parts = [da.from_delayed(read(i), (ROWS, 3), float) for i in range(len(X) // ROWS)]
    return da.concatenate(parts)


def fitted(*samples, estimator=ESTIMATOR, **how):
    return fit_blocks(clone(estimator), *samples, **how)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Start a scheduler and three workers as a user does at the prompt; two may die."""
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
        *(["worker", "--no-nanny", "--nthreads", "1", "--death-timeout", "60", *common],) * 3,
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
        client.wait_for_workers(3, timeout=60)
        yield client
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def expected(samples, tmp_path):
    """Fit in blocks that are the partitions; they are summed in the same order."""
    blocks = np.split(samples[1], 10)
    return fitted(samples[0], blocks, checkpoint=tmp_path / "other").objective_


# --- collections of all kinds ----------------------------------------------------------------


def sparse_parts(X, n_rows):
    """Build a dask array of CSR matrices that may not know how many rows they have."""
    meta = sparse.csr_array(np.zeros((0, 3)))
    read = dask.delayed(sparse.csr_array)
    shape = (ROWS if n_rows else np.nan, 3)
    parts = [da.from_delayed(read(part), shape, meta=meta) for part in np.split(X, 10)]
    return da.concatenate(parts)


def frame_of(X, **columns):
    return pd.DataFrame(X, columns=list("abc")).assign(**columns)


def with_empty_partitions(X):
    frame = dd.from_pandas(frame_of(X), npartitions=10)
    empty = dd.from_pandas(frame_of(X[:0]), npartitions=1)
    return dd.concat([empty, frame, empty], ignore_unknown_divisions=True)


COLLECTIONS = {
    "columns in chunks": lambda X: da.from_array(X, chunks=(ROWS, 2)),
    "rows not counted": lambda X: dd.from_pandas(frame_of(X), npartitions=10).to_dask_array(),
    "empty partitions": with_empty_partitions,
    "sparse": lambda X: sparse_parts(X, ROWS),
    "sparse and not counted": lambda X: sparse_parts(X, None),
}


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_collections_of_all_kinds(kind, samples, expected):
    X_positive = frame_of(samples[0]) if kind == "empty partitions" else samples[0]
    found = fitted(X_positive, COLLECTIONS[kind](samples[1]))
    assert_allclose(found.objective_, expected, rtol=1e-5, atol=1e-5)


def test_a_filtered_frame(samples):
    """Which does not know how many rows are left, and has partitions without any."""
    frame = frame_of(samples[1]).sort_values("a", ignore_index=True)
    lazy_frame = dd.from_pandas(frame, npartitions=10)
    found = fitted(frame_of(samples[0]), lazy_frame[lazy_frame["a"] < 1.0])
    memory = fitted(frame_of(samples[0]), frame[frame["a"] < 1.0])
    assert_allclose(found.objective_, memory.objective_, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("as_text", [False, True])
def test_groups_in_a_column(samples, as_text):
    rng = np.random.default_rng(0)
    groups = [rng.integers(0, 40, len(X)) for X in samples]
    memory = fitted(*samples, groups=groups)
    other = groups[1].astype(str) if as_text else groups[1]
    frame = dd.from_pandas(frame_of(samples[1], group=other), npartitions=7)
    found = fitted(frame_of(samples[0], group=groups[0]), frame, groups="group")
    assert_allclose(found.objective_, memory.objective_, rtol=1e-5, atol=1e-5)


def test_a_pipeline(samples):
    pipeline = make_pipeline(StandardScaler(), ESTIMATOR)
    scaled = [X * [1.0, 100.0, 0.01] for X in samples]
    frame = dd.from_pandas(frame_of(scaled[1]), npartitions=4)
    found = fitted(frame_of(scaled[0]), frame, estimator=pipeline)
    memory = clone(pipeline).fit(np.vstack(scaled), np.repeat([1, 0], [600, 1500]))
    assert_allclose(found[-1].objective_, memory[-1].objective_, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("container", ["array", "frame"])
def test_in_memory_estimators_refuse_before_anything_is_computed(container, samples, tmp_path):
    X = lazy(samples[1], tmp_path / "notes")
    if container == "frame":
        X = dd.from_dask_array(X, columns=list("abc"))
    y = np.arange(1500) < 500
    for estimator in (PenalizedL1Prior(), PUClassifier()):
        with pytest.raises(TypeError, match=r"compute\(\).*fit_blocks"):
            estimator.fit(X, y)
    assert not list((tmp_path / "notes").iterdir())


@pytest.mark.parametrize(
    ("collection", "error", "facts"),
    [
        (da.ones(100, chunks=10), TypeError, "X_unlabeled"),
        (dask.delayed(np.ones)((9, 3)), TypeError, "X_unlabeled.*Delayed"),
        (dd.from_pandas(frame_of(np.ones((9, 3))), npartitions=2)["a"], TypeError, "Series"),
        (da.ones((100, 3), chunks=(10, 3))[:, da.ones(3, chunks=3) > 0], ValueError, "columns"),
        (da.ones((0, 3), chunks=(10, 3)), ValueError, "X_unlabeled has no rows"),
    ],
    ids=["one dimension", "delayed", "series", "columns unknown", "no rows"],
)
def test_what_dask_may_be(samples, collection, error, facts):
    with pytest.raises(error, match=facts):
        fitted(samples[0], collection)


def test_columns_of_dask(samples):
    frame = dd.from_pandas(frame_of(samples[1]), npartitions=2)
    with pytest.raises(ValueError, match="'z' in X_positive"):
        fitted(frame, frame, columns=["a", "z"])
    array = da.from_array(samples[1], chunks=(500, 3))
    with pytest.raises(ValueError, match=r"X_positive .*'a'"):
        fitted(array, array, columns=["a"])


@pytest.mark.parametrize("where", ["threads", pytest.param("cluster", marks=pytest.mark.slow)])
def test_few_partitions_are_under_way_at_a_time(where, request, tmp_path, monkeypatch):
    """A result that is not taken keeps all but the next few partitions from being read."""
    client = request.getfixturevalue("cluster") if where == "cluster" else None
    monkeypatch.setattr("classprior._samples.dask._current_client", lambda: client)
    monkeypatch.setattr("classprior._samples.dask.effective_n_jobs", lambda n_jobs: 2)
    X = lazy(np.zeros((40 * ROWS, 3)), tmp_path / "notes", 0 if client is None else None)
    with dask.config.set(scheduler="threads") if client is None else nullcontext():
        results = DaskSource(X, "X").map(block_start)
        assert next(results) == 0
        time.sleep(0.3)  # for what should not happen
        assert 1 <= len(list((tmp_path / "notes").iterdir())) <= 6
        assert list(results) == [ROWS * number for number in range(1, 40)]


def block_start(block):
    return block.start


# --- a cluster -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_work_is_done_by_the_workers(cluster, samples, tmp_path, expected):
    found = fitted(samples[0], lazy(samples[1], tmp_path / "notes"))
    assert_array_equal(found.objective_, expected)
    assert len({note.name.split(".")[1] for note in (tmp_path / "notes").iterdir()}) == 3


@pytest.mark.slow
def test_an_error_in_a_worker_names_partition_and_row(cluster, samples):
    X = samples[1].copy()
    X[1234, 2] = np.nan  # row 34 of a partition of 150 rows
    frame = dd.from_pandas(frame_of(X), npartitions=10)
    with pytest.raises(ValueError, match=r"'c' of X_unlabeled, partition 8 .*row 34\b"):
        fitted(frame_of(samples[0]), frame)


@pytest.mark.slow
def test_checkpoints_know_dask(cluster, samples, tmp_path, expected, monkeypatch):
    X = lazy(samples[1], tmp_path / "notes")
    path = tmp_path / "sums"
    with monkeypatch.context() as patch:
        patch.setattr("classprior._samples.checkpoint.Checkpoint.end", lambda self: None)
        fitted(samples[0], X, checkpoint=path)
    before = len(list((tmp_path / "notes").iterdir()))
    found = fitted(samples[0], X, checkpoint=path)
    assert_array_equal(found.objective_, expected)
    assert len(list((tmp_path / "notes").iterdir())) == before + 20  # not summed again


def test_auto_counts_on_the_workers(cluster, samples, tmp_path):
    """Its models are fitted here and sent to the rows; the counts are those of memory."""
    found = fitted(samples[0], lazy(samples[1], tmp_path / "notes"), estimator=AUTO)
    expected = clone(AUTO).fit_samples(*samples)
    for name in ("prior_", "low_", "high_", "upper_bound_", "extrapolated_"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.n_fitted_ == (400, 400)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [ESTIMATOR, AUTO], ids=["penl1", "auto"])
def test_a_killed_worker_does_not_matter(estimator, cluster, samples, tmp_path):
    """It dies in the pass of the sums, and another does its work."""
    how = {"estimator": estimator, "checkpoint": tmp_path / "other"}
    expected = fitted(samples[0], np.split(samples[1], 10), **how)
    found = fitted(samples[0], lazy(samples[1], tmp_path / "notes", dies=True), estimator=estimator)
    assert found.prior_ == expected.prior_
    if estimator is ESTIMATOR:
        assert_array_equal(found.objective_, expected.objective_)
    assert len(list((tmp_path / "notes").glob("5.*"))) > 2
