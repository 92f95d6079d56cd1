"""Run a grid of tasks in parallel and resume after an interruption.

A task is a dictionary of settings. When it finishes, its results are appended to a file as one
line of JSON, so a run that was interrupted, killed or ran out of disk space resumes where it
stopped. Results are looked up by the settings of their task: a changed setting makes a new task.
The seed of a task is a function of its settings, so results depend neither on the number of
processes nor on the order of the tasks.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cache
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
from scipy.stats import binom, t
from threadpoolctl import threadpool_limits

Task = dict[str, Any]
Row = dict[str, Any]
Interval = tuple[float, float]
CONFIDENCE = 0.95  # of intervals: about two standard errors on either side
FEWEST_DRAWS = 6  # fewer decide nothing: their whole range covers the median with less confidence
PARTS = ("uniforms", "mnist", "rates")  # sections of RESULTS.md, in the paper's order


def run(
    tasks: Sequence[Task],
    work: Callable[[Task], Row],
    path: Path,
    *,
    title: str = "Tasks",
    jobs: int = -1,
) -> list[Row]:
    """Run the tasks that are not in the file yet and return the results of all tasks.

    Parameters
    ----------
    tasks : sequence of dict
        Settings of each task. Values must be JSON-serializable.
    work : callable
        Function that maps a task to its results. Must be picklable.
    path : Path
        File of finished tasks, created if it does not exist.
    title : str
        Label of the progress bar.
    jobs : int
        Number of processes; -1 uses all cores.

    Returns
    -------
    rows : list of dict
        Settings and results of each task, in the order of `tasks`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with Journal(path) as journal:
        wanted = {_key(task): task for task in tasks}
        missing = [task for key, task in wanted.items() if key not in journal.results]
        with _progress() as progress:
            bar = progress.add_task(title, total=len(wanted), completed=len(wanted) - len(missing))
            # Unordered, so that a finished task is saved without waiting for earlier ones.
            parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
            try:
                for task, result in parallel(delayed(_run_task)(work, task) for task in missing):
                    journal.append(task, result)
                    progress.advance(bar)
            except KeyboardInterrupt:
                raise SystemExit("Interrupted. The same command resumes.") from None
        return [{**task, **journal.results[_key(task)]} for task in tasks]


def seed(**settings: Any) -> int:
    """Return a seed between 0 and 2^32 - 1 that depends only on the settings."""
    return int(hashlib.sha256(_key(settings).encode()).hexdigest()[:8], 16)


@cache
def code_version() -> str:
    """Return a digest of the package that ignores comments and docstrings."""
    import classprior

    digest = hashlib.sha256()
    for path in sorted(Path(classprior.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and _is_text(body[0]):
                del body[0]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:12]


class Journal:
    """A file of finished tasks, one per line, that stays valid if the process is killed.

    Parameters
    ----------
    path : Path
        Path of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.results: dict[str, Row] = {}

    def __enter__(self) -> Journal:
        # Unbuffered, so that nothing is left to flush after an error.
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
        """Write a finished task and flush it to disk."""
        line = json.dumps({"task": task, "result": result})
        end = self._file.seek(0, os.SEEK_END)
        try:
            self._write(line.encode() + b"\n")
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(end)  # works even on a full disk
            raise
        # Parsed back, so that this run and a resumed one return the same values.
        self.results[_key(task)] = json.loads(line)["result"]

    def _read(self) -> None:
        self._file.seek(0)
        *lines, torn = self._file.readall().split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                self.results[_key(entry["task"])] = entry["result"]
            except (ValueError, KeyError, TypeError):
                raise SystemExit(
                    f"Line {number} of {self._path} is damaged. Remove it to run its task again."
                ) from None
        if torn:  # an incomplete last line: that task runs again
            self._file.truncate(self._file.tell() - len(torn))

    def _write(self, data: bytes) -> None:
        while data:  # a nearly full disk may accept only part of the data
            data = data[self._file.write(data) :]

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:
            return  # no file locks on Windows
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"Another run is writing to {self._path}.") from None


def load_module(path: str) -> Any:
    """Import a Python file, which may import its neighbors."""
    folder = str(Path(path).parent)
    if sys.path[0] != folder:  # before the script's own folder, which may have a file of that name
        sys.path.insert(0, folder)
    return importlib.import_module(Path(path).stem)


def groups(rows: Sequence[Row], *names: str) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Group rows by the values of some columns, in order of first appearance."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    yield from found.items()


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """Return the mean and its standard error (infinite for a single value)."""
    array = np.asarray(values, dtype=float)
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else np.inf
    return float(array.mean()), float(error)


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write rows as a CSV file, replacing any existing file only when complete."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    beside = path.with_name(path.name + ".part")
    with beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(
            {name: f"{v:.6g}" if isinstance(v, float) else v for name, v in row.items()}
            for row in rows
        )
    beside.replace(path)


def write_report(out: Path, name: str, text: str) -> None:
    """Write one section of RESULTS.md, and RESULTS.md from all sections written so far."""
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    files = [out / f"duplessis2017_{part}.md" for part in PARTS]
    parts = [file.read_text(encoding="utf-8") for file in files if file.exists()]
    head = "# Results of the experiments\n\nGenerated by the scripts in `experiments/`.\n\n"
    (out / "RESULTS.md").write_text(head + "\n".join(parts), encoding="utf-8")


def written_between(path: Path, script: str) -> tuple[str, str, str]:
    """Return a file before, between and after the comments for what a script writes."""
    begin, end = f"<!-- written by {script} -->", "<!-- end -->"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    between, after = rest.split(end, 1)
    return before + begin, between, end + after


def replace_between(path: Path, script: str, text: str) -> None:
    """Replace what is between the comments for what a script writes."""
    before, _, after = written_between(path, script)
    path.write_text(before + text + after, encoding="utf-8")


class Verdict(IntEnum):
    """What the draws say about a claim; `min` is *and*, `max` is *or*, minus is *not*."""

    DOES_NOT_HOLD = -1
    UNDECIDED = 0
    HOLDS = 1

    def __neg__(self) -> Verdict:
        return Verdict(-self.value)

    def __str__(self) -> str:
        return {-1: "**does not hold**", 0: "*undecided*", 1: "holds"}[self.value]


def above(interval: Interval, limit: float) -> Verdict:
    """Judge whether a quantity with this confidence interval is above a limit."""
    low, high = interval
    if low > limit:
        return Verdict.HOLDS
    return Verdict.DOES_NOT_HOLD if high <= limit else Verdict.UNDECIDED


def below(interval: Interval, limit: float) -> Verdict:
    """Judge whether a quantity with this confidence interval is below a limit."""
    low, high = interval
    return above((-high, -low), -limit)


def within(interval: Interval, low: float, high: float) -> Verdict:
    """Judge whether a quantity with this confidence interval is between two limits."""
    return min(above(interval, low), below(interval, high))


def t_interval(value: float, error: float, draws: int) -> Interval:
    """Return the confidence interval of a quantity with a standard error from some draws."""
    if draws < FEWEST_DRAWS:
        return -np.inf, np.inf
    margin = float(t.ppf(0.5 + CONFIDENCE / 2.0, draws - 1)) * error
    return value - margin, value + margin


def mean_interval(values: ArrayLike) -> Interval:
    """Return the confidence interval of the mean by Student's t distribution."""
    return t_interval(*mean_and_error(values), np.size(values))


def median_interval(values: ArrayLike) -> Interval:
    """Return the confidence interval of the median by order statistics, for any distribution."""
    ordered = np.sort(np.asarray(values, dtype=float))
    if len(ordered) < FEWEST_DRAWS:
        return -np.inf, np.inf
    # The median is below the k-th smallest of n values with probability P(Binomial(n, 1/2) < k).
    k = int(binom.ppf((1.0 - CONFIDENCE) / 2.0, len(ordered), 0.5))
    return float(ordered[k - 1]), float(ordered[-k])


def verdict(found: Verdict, claim: str, figure: str, evidence: str) -> str:
    """Return one row of the table of claims."""
    return f"| {claim} | {found} | {evidence} | {figure} |"


def verdicts(lines: Sequence[str]) -> str:
    """Return the table of claims."""
    return (
        "\n".join(["| claim | verdict | evidence | figure |", "|---|---|---|---|", *lines]) + "\n"
    )


def _is_text(node: ast.AST) -> bool:
    """Return whether a statement is nothing but a string."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return False
    return isinstance(node.value.value, str)


def _run_task(work: Callable[[Task], Row], task: Task) -> tuple[Task, Row]:
    # One thread for any number of processes: the order of summation changes the last digits.
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
