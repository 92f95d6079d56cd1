"""Run a grid of tasks in parallel, safely: what is done stays done, whatever happens.

A task is a dictionary of settings. Its results are appended to a file as one line of JSON as soon
as it is finished, so that a run that was interrupted, killed or ran out of disk goes on where it
stopped. Results are found again by the settings of their task: a changed setting is another
task. The seed of a task is a function of its settings, so that results depend neither on the
number of processes nor on the order.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from threadpoolctl import threadpool_limits

Task = dict[str, Any]
Row = dict[str, Any]
PARTS = ("uniforms", "mnist", "rates")  # of RESULTS.md, in the paper's order


def run(
    tasks: Sequence[Task],
    work: Callable[[Task], Row],
    path: Path,
    *,
    title: str = "Tasks",
    jobs: int = -1,
) -> list[Row]:
    """Do the tasks that the file does not have yet, and return the results of all of them.

    Parameters
    ----------
    tasks : sequence of dict
        Settings, each a value that JSON can hold.
    work : callable
        Turns a task into its results. A function of a module, so that processes can call it.
    path : Path
        The file of finished tasks, made if need be.
    title : str
        What the progress bar says.
    jobs : int
        Processes; -1 for one a core.

    Returns
    -------
    rows : list of dict
        Settings and results together, in the order of the tasks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with Journal(path) as journal:
        wanted = {_key(task): task for task in tasks}
        missing = [task for key, task in wanted.items() if key not in journal.results]
        with _progress() as progress:
            bar = progress.add_task(title, total=len(wanted), completed=len(wanted) - len(missing))
            # Unordered: a finished task is on the disk at once, not when its elders are finished.
            parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
            for task, result in parallel(delayed(_do)(work, task) for task in missing):
                journal.append(task, result)
                progress.advance(bar)
        return [{**task, **journal.results[_key(task)]} for task in tasks]


def seed(**settings: Any) -> int:
    """Return a seed from 0 to 2^32 - 1 that is a function of the settings alone."""
    return int(hashlib.sha256(_key(settings).encode()).hexdigest()[:8], 16)


class Journal:
    """A file of finished tasks, one line each, that survives a kill at any moment.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.results: dict[str, Row] = {}

    def __enter__(self) -> Journal:
        # Unbuffered: nothing waits in memory to be written after an error.
        self._file = self._path.open("a+b", buffering=0)
        try:
            self._lock()
            self._read()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, task: Task, result: Row) -> None:
        """Write a finished task to the disk before anything else happens."""
        line = json.dumps({"task": task, "result": result})
        end = self._file.seek(0, os.SEEK_END)
        try:
            self._write(line.encode() + b"\n")
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(end)  # frees space rather than taking it
            raise
        # As a later run will read it, so that both runs return the same.
        self.results[_key(task)] = json.loads(line)["result"]

    def _read(self) -> None:
        self._file.seek(0)
        *lines, torn = self._file.readall().split(b"\n")
        for line in lines:
            entry = json.loads(line)
            self.results[_key(entry["task"])] = entry["result"]
        if torn:  # by a kill or a full disk: that task is done again
            self._file.truncate(self._file.tell() - len(torn))

    def _write(self, data: bytes) -> None:
        while data:  # a nearly full disk takes a part
            data = data[self._file.write(data) :]

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:
            return  # not on this system
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"Another run is writing to {self._path}. Wait for it.") from None


def groups(rows: Sequence[Row], *names: str) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Yield the rows that share the values of some columns, in order of first appearance."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    yield from found.items()


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """Return the mean and its standard error, which is infinite for a single value."""
    array = np.asarray(values, dtype=float)
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else np.inf
    return float(array.mean()), float(error)


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write rows as a CSV file, beside and then in place."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    beside = path.with_name(path.name + ".part")
    with beside.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(
            {name: f"{v:.6g}" if isinstance(v, float) else v for name, v in row.items()}
            for row in rows
        )
    beside.replace(path)


def write_report(out: Path, name: str, text: str) -> None:
    """Write one experiment's part of RESULTS.md, and RESULTS.md from all parts there are."""
    (out / f"{name}.md").write_text(text)
    files = [out / f"duplessis2017_{part}.md" for part in PARTS]
    parts = [file.read_text() for file in files if file.exists()]
    head = "# What the experiments show\n\nWritten by the scripts in `experiments/`.\n\n"
    (out / "RESULTS.md").write_text(head + "\n".join(parts))


def verdict(holds: bool, claim: str, figure: str, evidence: str) -> str:
    """Return a row of the table of claims."""
    return f"| {claim} | {'holds' if holds else '**does not hold**'} | {evidence} | {figure} |"


def verdicts(lines: Sequence[str]) -> str:
    """Return the table of claims."""
    return (
        "\n".join(["| claim | verdict | evidence | figure |", "|---|---|---|---|", *lines]) + "\n"
    )


def _do(work: Callable[[Task], Row], task: Task) -> tuple[Task, Row]:
    # One thread, as in a process of many: sums in another order would be other results.
    with threadpool_limits(1):
        return task, work(task)


def _key(task: Task) -> str:
    return json.dumps(task, sort_keys=True)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
