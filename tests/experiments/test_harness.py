"""What is done stays done, whatever happens to a run, and nothing else is in the file."""

import errno
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import harness
import numpy as np
import pytest
from harness import Verdict, above, below, mean_interval, median_interval, t_interval, within
from scipy import stats

ROOT = Path(__file__).parents[2]


TASKS = [{"method": method, "draw": draw} for method in ("a", "b") for draw in range(4)]


def work(task):
    """Draw from the task's own seed, so that a mixed-up result shows."""
    return {"value": harness.seed(**task) / 7.0, "third": 1 / 3}


CALLS = []  # of count, within this process


def count(task):
    CALLS.append(task)
    return {"n": len(CALLS)}


def lines(path):
    return path.read_bytes().splitlines(keepends=True)


def entries(path):
    return [json.loads(line) for line in lines(path)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "results.jsonl"


def test_a_second_run_does_nothing(path):
    first = harness.run(TASKS, count, path, jobs=1)
    written = path.read_bytes()
    assert harness.run(TASKS, count, path, jobs=1) == first
    assert path.read_bytes() == written
    assert [row["draw"] for row in first] == [task["draw"] for task in TASKS]


@pytest.mark.parametrize("kept", [0, 1, 20, 10_000])
def test_a_torn_line_is_done_again(path, kept):
    """Cut the file anywhere in its last line: before its first byte, within, before its end."""
    expected = harness.run(TASKS, work, path, jobs=1)
    *whole, last = lines(path)
    path.write_bytes(b"".join(whole) + last[: min(kept, len(last) - 1)])
    assert harness.run(TASKS, work, path, jobs=1) == expected
    assert [entry["task"] for entry in entries(path)] == TASKS


@pytest.mark.parametrize("line", ["{not JSON", "[]", "{}"])
def test_a_damaged_line_is_named(path, line):
    harness.run(TASKS, work, path, jobs=1)
    path.write_text(f"{line}\n{path.read_text()}")
    with pytest.raises(SystemExit, match=r"Line 1 of .* damaged"):
        harness.run(TASKS, work, path, jobs=1)


def test_an_interrupted_run_resumes(path):
    def interrupted(task):
        if task == TASKS[1]:
            raise KeyboardInterrupt
        return work(task)

    with pytest.raises(SystemExit, match="resumes"):
        harness.run(TASKS, interrupted, path, jobs=1)
    assert [entry["task"] for entry in entries(path)] == TASKS[:1]
    assert len(harness.run(TASKS, work, path, jobs=1)) == len(TASKS)


def test_a_changed_setting_does_not_mix(path):
    old = harness.run(TASKS, work, path, jobs=1)
    new_tasks = [{**task, "rows": 100} for task in TASKS]
    new = harness.run(new_tasks, work, path, jobs=1)
    assert not {row["value"] for row in old} & {row["value"] for row in new}
    assert harness.run(TASKS, work, path, jobs=1) == old
    assert len(lines(path)) == 2 * len(TASKS)


def test_the_order_of_settings_is_no_setting(path):
    harness.run(TASKS, count, path, jobs=1)
    turned = [dict(reversed(task.items())) for task in TASKS]
    harness.run(turned, count, path, jobs=1)
    assert len(lines(path)) == len(TASKS)


def test_a_task_that_is_asked_for_twice_is_done_once(path):
    rows = harness.run(TASKS + TASKS, count, path, jobs=1)
    assert len(rows) == 2 * len(TASKS)
    assert len(lines(path)) == len(TASKS)


def test_results_depend_neither_on_jobs_nor_on_order(tmp_path):
    tables = []
    for jobs, tasks in ((1, TASKS), (2, TASKS[::-1])):
        harness.run(tasks, work, tmp_path / f"{jobs}.jsonl", jobs=jobs)
        rows = harness.run(TASKS, work, tmp_path / f"{jobs}.jsonl", jobs=1)
        harness.write_table(rows, tmp_path / f"{jobs}.csv")
        tables.append((tmp_path / f"{jobs}.csv").read_bytes())
    assert tables[0] == tables[1]


class FullDisk:
    """A file that takes so many more bytes, a part at a time, and then none."""

    def __init__(self, file, room):
        self._file, self._room = file, room

    def write(self, data):
        if self._room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = data[: min(7, self._room)]
        self._room -= len(part)
        return self._file.write(part)

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.mark.parametrize("room", [0, 1, 30])
def test_a_full_disk_leaves_a_valid_file(path, room):
    expected = harness.run(TASKS, work, path, jobs=1)
    whole = lines(path)
    path.write_bytes(b"".join(whole[:3]))
    with harness.Journal(path) as journal:
        journal._file = FullDisk(journal._file, room)
        with pytest.raises(OSError, match="No space left"):
            journal.append(TASKS[3], work(TASKS[3]))
        assert len(journal.results) == 3
    assert lines(path) == whole[:3]
    assert harness.run(TASKS, work, path, jobs=1) == expected


def test_a_disk_that_is_nearly_full_takes_a_line_in_parts(path):
    path.parent.mkdir()
    with harness.Journal(path) as journal:
        journal._file = FullDisk(journal._file, 10_000)
        journal.append(TASKS[0], work(TASKS[0]))
    assert entries(path) == [{"task": TASKS[0], "result": work(TASKS[0])}]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX's")
def test_a_real_limit_on_the_size_of_files(path):
    """The operating system refuses; what was whole before is whole after, and goes on."""
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        f"sys.path[:0] = [{str(ROOT / 'experiments')!r}, {str(Path(__file__).parent)!r}]\n"
        "import harness, test_harness\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (250, 250))\n"
        "harness.run(test_harness.TASKS, test_harness.work, Path(sys.argv[1]), jobs=1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert "File too large" in done.stderr
    assert 0 < len(entries(path)) < len(TASKS)
    assert path.read_bytes().endswith(b"\n")
    expected = harness.run(TASKS, work, path.with_name("other.jsonl"), jobs=1)
    assert harness.run(TASKS, work, path, jobs=1) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="locks are POSIX's")
def test_two_runs_on_one_file_refuse(path):
    path.parent.mkdir()
    with harness.Journal(path), pytest.raises(SystemExit, match="Another run is writing"):
        harness.run(TASKS, work, path, jobs=1)
    harness.run(TASKS, work, path, jobs=1)  # and the lock goes with its holder


def test_seeds_are_a_function_of_the_settings():
    assert harness.seed(a=1, b="x") == harness.seed(b="x", a=1) == 3462161007
    seeds = {harness.seed(draw=draw, rows=rows) for draw in range(100) for rows in range(10)}
    assert len(seeds) == 1000
    assert max(seeds) < 2**32


def test_mean_and_error():
    mean, error = harness.mean_and_error([1.0, 2.0, 6.0])
    assert (mean, round(error, 6)) == (3.0, 1.527525)  # sqrt(((4 + 1 + 9) / 2) / 3)
    assert harness.mean_and_error([2.0]) == (2.0, float("inf"))


HOLDS, UNDECIDED, FAILS = Verdict.HOLDS, Verdict.UNDECIDED, Verdict.DOES_NOT_HOLD


@pytest.mark.parametrize(
    ("interval", "is_above", "is_within"),
    [
        ((0.1, 0.2), FAILS, FAILS),
        ((0.1, 0.5), FAILS, FAILS),  # at the limit is not above it
        ((0.1, 0.6), UNDECIDED, UNDECIDED),
        ((0.5, 0.6), UNDECIDED, UNDECIDED),
        ((0.6, 0.7), HOLDS, HOLDS),
        ((0.6, 0.9), HOLDS, UNDECIDED),
        ((0.8, 0.9), HOLDS, FAILS),
        ((0.1, 0.9), UNDECIDED, UNDECIDED),
        ((-np.inf, np.inf), UNDECIDED, UNDECIDED),
    ],
)
def test_three_verdicts(interval, is_above, is_within):
    low, high = interval
    assert above(interval, 0.5) is is_above
    assert below((-high, -low), -0.5) is is_above
    assert within(interval, 0.5, 0.8) is is_within


def test_verdicts_are_joined_as_in_three_valued_logic():
    for one in Verdict:
        for two in Verdict:
            assert min(one, two) is -max(-one, -two)
    assert min(HOLDS, UNDECIDED) is UNDECIDED
    assert min(FAILS, UNDECIDED) is FAILS
    assert max(HOLDS, UNDECIDED) is HOLDS
    assert max(FAILS, UNDECIDED) is UNDECIDED
    assert [str(v) for v in (HOLDS, FAILS)] == ["holds", "**does not hold**"]
    assert harness.verdict(UNDECIDED, "a claim", "a figure", "evidence").count("undecided") == 1


@pytest.mark.parametrize("n", [6, 7, 25, 50, 200])
def test_intervals_are_those_of_a_library(n):
    values = np.random.default_rng(n).exponential(size=n)
    low, high = mean_interval(values)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    quantile = stats.quantile_test(values, p=0.5).confidence_interval(0.95)
    assert median_interval(values) == (quantile.low, quantile.high)


@pytest.mark.parametrize("n", [6, 12, 25])
def test_intervals_miss_rarely(n):
    """At most 5% of the draws; by the normal distribution, whose mean and median are zero."""
    draws = np.random.default_rng(0).normal(size=(2000, n))
    for interval in (mean_interval, median_interval):
        missed = np.mean([not low <= 0.0 <= high for low, high in map(interval, draws)])
        assert missed < 0.065  # 0.05 and three standard errors


@pytest.mark.parametrize("n", range(1, 6))
def test_few_draws_decide_nothing(n):
    """Not even draws that agree."""
    for interval in (mean_interval(np.ones(n)), median_interval(np.ones(n)), t_interval(1, 0, n)):
        assert interval == (-np.inf, np.inf)
    assert mean_interval(np.ones(6)) == median_interval(np.ones(6)) == (1.0, 1.0)


def test_report_joins_the_parts_in_the_papers_order(tmp_path):
    for part in ("rates", "uniforms"):
        harness.write_report(tmp_path, f"duplessis2017_{part}", f"## {part}\n")
    text = (tmp_path / "RESULTS.md").read_text()
    assert text.index("## uniforms") < text.index("## rates")


def mnist(out):
    return [
        sys.executable,
        ROOT / "experiments" / "duplessis2017_mnist.py",
        *("--data", "digits", "--digits", "3", "--priors", "0.3", "0.7"),
        *("--repetitions", "3", "--jobs", "1", "--out", out),
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX's")
@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_results(tmp_path):
    """SIGKILL in the middle of the MNIST experiment, on scikit-learn's digits."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(mnist(whole), check=True, capture_output=True)
    journal = killed / "duplessis2017_mnist.jsonl"
    process = subprocess.Popen(mnist(killed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = journal.read_bytes()
    assert 2 <= before.count(b"\n") < 6
    assert not (killed / "duplessis2017_mnist.csv").exists()

    subprocess.run(mnist(killed), check=True, capture_output=True)
    for name in ("duplessis2017_mnist.csv", "duplessis2017_mnist_summary.csv", "RESULTS.md"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    after = journal.read_bytes()
    assert after.startswith(before[: before.rindex(b"\n") + 1])  # nothing was done again
    assert after.count(b"\n") == 6
