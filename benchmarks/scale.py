"""Time, memory and accuracy of fits in blocks, from 1e5 to 1e7 rows of parquet files.

    python benchmarks/scale.py [--write | --queries]

The first run writes the data to build/scale: positives are standard normal in 10 columns, negatives
are shifted by 1.2 in each column, 30% of the unlabeled rows are positive, and there are ten times
as many unlabeled rows as known positives. The default method runs as users run it, penL1 with 500
centers, 10 bandwidths and 5 folds. Every fit runs in its own process. The script prints wall time
and processor time; on a shared machine, only processor times are comparable. With --write, it
only measures the table in docs/guides/scale.md, and writes it there and in README. With --queries,
it only measures the table of queries there. It needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, PenalizedL1Prior, PriorEstimate, estimate_prior
from classprior.engines import fit_blocks

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from freshness import record
from harness import replace_between

FOLDER = Path("build/scale")
PRIOR, N_FEATURES, SHIFT = 0.3, 10, 1.2
ROWS_PER_FILE, ROWS_PER_GROUP = 1_000_000, 100_000
SIGMAS = 0.5 * np.sqrt(2.0) ** np.arange(10)  # the median distance of such rows is about 5
N_CENTERS, N_FOLDS = 500, 5
Answer = dict[str, Any]

# The rows of the table in the documentation: what, mode, and part of the rows of the largest set.
TABLE = (
    ("default method", "default", 500),
    ("default method", "default", 10),
    ("default method", "default", 1),
    ("default method, two dask workers (memory: client)", "default_on_dask", 1),
    ("`classprior classify` (memory: all)", "classified", 10),
    ("penL1 with numba", "in_blocks", 10),
    ("penL1 with numba", "in_blocks", 1),
    ("penL1 with NumPy", "without_numba", 1),
    ("penL1 with numba, rows in memory", "in_memory", 10),
    ("penL1 with numba; interval, bound and warnings", "with_interval", 10),
)
QUERIES = (
    ("Parquet files in blocks", "by_key_in_blocks"),
    ("DuckDB relations", "by_key_in_duckdb"),
    ("lazy frames of polars", "by_key_in_polars"),
    ("Arrow streams", "by_key_in_streams"),
)
ROOT = Path(__file__).parents[1]
GUIDE, README = ROOT / "docs/guides/scale.md", ROOT / "README.md"
SCRIPT = "benchmarks/scale.py"


def make(n_rows: int) -> tuple[Path, Path]:
    """Write the two samples unless they exist; smaller sets are the first rows of larger ones."""
    paths = FOLDER / f"positive-{n_rows}", FOLDER / f"unlabeled-{n_rows}"
    for path, prior, rows in zip(paths, (1.0, PRIOR), (n_rows // 10, n_rows), strict=True):
        done = path / "_SUCCESS"
        if done.exists():
            continue
        path.mkdir(parents=True, exist_ok=True)
        for number, start in enumerate(range(0, rows, ROWS_PER_FILE)):
            X = draw(prior, number)[: min(ROWS_PER_FILE, rows - start)]
            table = pa.table({f"x{column}": X[:, column] for column in range(N_FEATURES)})
            pq.write_table(table, path / f"{number:04}.parquet", row_group_size=ROWS_PER_GROUP)
        done.touch()
    return paths


def draw(prior: float, number: int) -> np.ndarray:
    """Draw the rows of one file."""
    rng = np.random.default_rng([number, prior == 1.0])
    X = rng.normal(size=(ROWS_PER_FILE, N_FEATURES))
    X[rng.random(ROWS_PER_FILE) >= prior] += SHIFT
    return X


def estimator() -> PenalizedL1Prior:
    """Return the estimator that is measured."""
    return PenalizedL1Prior(
        sigmas=SIGMAS, n_centers=N_CENTERS, cv=N_FOLDS, n_jobs=2, random_state=0
    )


def measured(work: Callable[[], Any]) -> tuple[Any, Answer]:
    """Return the result, wall time, processor time with child processes, and memory needed."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, wall, cpu = peak(), time.perf_counter(), processor_seconds()
    result = work()
    seconds = {"wall": time.perf_counter() - wall, "cpu": processor_seconds() - cpu}
    return result, {**seconds, "memory": peak() - before}


def processor_seconds() -> float:
    """Return the processor time of this process and its finished children."""
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, who))


def in_blocks(n_rows: int) -> Answer:
    """Fit from files on two threads."""
    paths = make(n_rows)
    fitted, seconds = measured(lambda: fit_blocks(estimator(), *map(str, paths), n_jobs=2))
    return {**seconds, "prior": fitted.prior_, "kernel": fitted.kernel_}


def without_numba(n_rows: int) -> Answer:
    """Fit from files on two threads, with sums by NumPy."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    return in_blocks(n_rows)


def with_interval(n_rows: int) -> Answer:
    """Estimate from files with an interval, without scaling and with one linear classifier."""
    paths = make(n_rows)
    settings = estimator().get_params()
    estimate, seconds = measured(
        lambda: estimate_prior(
            *map(str, paths),
            method="penl1",
            scale=False,
            evidence=AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1),
            random_state=0,
            n_jobs=2,
            **{name: settings[name] for name in ("sigmas", "n_centers", "cv")},
        )
    )
    return {**seconds, "prior": estimate.prior, "interval": [estimate.low, estimate.high]}


def default(n_rows: int) -> Answer:
    """Estimate from files with the default method, on two threads."""
    paths = make(n_rows)
    estimate, seconds = measured(lambda: estimate_prior(*map(str, paths), random_state=0, n_jobs=2))
    return {**seconds, **summary(estimate)}


def default_on_dask(n_rows: int) -> Answer:
    """Estimate with the default method on two dask workers with one thread each."""
    import dask.dataframe as dd

    positive, unlabeled = make(n_rows)
    with two_workers() as seconds_of_workers:
        frames = dd.read_parquet(positive), dd.read_parquet(unlabeled)
        estimate, seconds = measured(lambda: estimate_prior(*frames, random_state=0, n_jobs=2))
        seconds["cpu"] += seconds_of_workers()
    return {**seconds, **summary(estimate)}


def with_key(n_rows: int) -> tuple[Path, Path]:
    """Write both samples with a key unless they exist."""
    paths = FOLDER / f"positive-{n_rows}-key.parquet", FOLDER / f"unlabeled-{n_rows}-key.parquet"
    for path, folder in zip(paths, make(n_rows), strict=True):
        if not path.exists():
            table = pq.read_table(folder)
            ids = np.random.default_rng(0).permutation(len(table))
            pq.write_table(table.append_column("id", [ids]), path, row_group_size=ROWS_PER_GROUP)
    return paths


def fitted_by_key(*samples: Any) -> Answer:
    """Fit by a key on two threads."""
    fitted, seconds = measured(lambda: fit_blocks(estimator(), *samples, key="id", n_jobs=2))
    return {**seconds, "prior": fitted.prior_}


def by_key_in_blocks(n_rows: int) -> Answer:
    """Fit from files by a key."""
    return fitted_by_key(*with_key(n_rows))


def by_key_in_duckdb(n_rows: int) -> Answer:
    """Fit from the same files through DuckDB, on two threads."""
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    return fitted_by_key(*(connection.sql(f"from '{path}'") for path in with_key(n_rows)))


def by_key_in_polars(n_rows: int) -> Answer:
    """Fit from the same files through lazy frames."""
    import polars as pl

    return fitted_by_key(*map(pl.scan_parquet, with_key(n_rows)))


class Streamed:
    """A Parquet file as a stream of record batches."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        batches = pq.ParquetFile(self.path)
        reader = pa.RecordBatchReader.from_batches(batches.schema_arrow, batches.iter_batches())
        return reader.__arrow_c_stream__(requested_schema)


def by_key_in_streams(n_rows: int) -> Answer:
    """Fit from the same files as streams."""
    return fitted_by_key(*map(Streamed, with_key(n_rows)))


def summary(estimate: PriorEstimate) -> Answer:
    """Return the parts of an estimate that are reported."""
    return {
        "prior": estimate.prior,
        "interval": [estimate.low, estimate.high],
        "bound": estimate.upper_bound,
    }


def classified(n_rows: int) -> Answer:
    """Run ``classprior classify`` from parquet files to a parquet file."""
    positive, unlabeled = make(n_rows)
    out = FOLDER / "scored.parquet"
    files = [str(positive), str(unlabeled), "--out", str(out)]
    command = [sys.executable, "-m", "classprior", "classify", *files]
    _, seconds = measured(
        lambda: subprocess.run([*command, "--force", "--quiet"], check=True, capture_output=True)
    )
    share = float(np.mean(pq.read_table(out, columns=["positive"])["positive"].to_numpy()))
    of_child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {**seconds, "prior": share, "peak": of_child, "memory": of_child}


def in_memory(n_rows: int) -> Answer:
    """Read the files into memory, then fit on two threads."""
    tables, reading = measured(lambda: [read(path) for path in make(n_rows)])
    X = np.vstack(tables)
    y = np.repeat([1, 0], [len(table) for table in tables])
    del tables
    fitted, seconds = measured(lambda: estimator().fit(X, y))
    return {**seconds, "prior": fitted.prior_, "reading": reading}


def read(path: Path) -> np.ndarray:
    """Read all files in a folder on one thread."""
    files = sorted(path.glob("*.parquet"))
    tables = [pq.read_table(file, use_threads=False) for file in files]
    return np.vstack([np.column_stack([c.to_numpy() for c in table.columns]) for table in tables])


def on_dask(n_rows: int) -> Answer:
    """Fit on two dask workers with one thread each."""
    import dask.dataframe as dd

    positive, unlabeled = make(n_rows)
    with two_workers() as seconds_of_workers:
        frame = dd.read_parquet(unlabeled)
        fitted, seconds = measured(lambda: fit_blocks(estimator(), str(positive), frame, n_jobs=2))
        seconds["cpu"] += seconds_of_workers()
    return {**seconds, "prior": fitted.prior_}


@contextmanager
def two_workers() -> Iterator[Callable[[], float]]:
    """Start two dask workers; yield a function that returns their processor time so far."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "classprior.engines")
        before = sum(client.run(processor_seconds).values())
        yield lambda: sum(client.run(processor_seconds).values()) - before


MODES = {
    f.__name__: f
    for f in (
        in_blocks,
        without_numba,
        with_interval,
        in_memory,
        on_dask,
        default,
        default_on_dask,
        classified,
        by_key_in_blocks,
        by_key_in_duckdb,
        by_key_in_polars,
        by_key_in_streams,
    )
}


def run(mode: str, n_rows: int) -> Answer:
    """Measure one fit in a new process and print the result."""
    make(n_rows)
    command = [sys.executable, __file__, "--mode", mode, "--rows", str(n_rows)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    answer: Answer = json.loads(lines.splitlines()[-1])
    busy = answer["cpu"] / answer["wall"]
    print(
        f"{mode:16} {n_rows:12,} rows {answer['wall']:8.1f} s {answer['cpu']:8.1f} s CPU "
        f"({busy:.1f} busy) {answer['peak']:6.0f} MiB   prior {answer['prior']:.4f}"
        + (" [{:.4f}, {:.4f}]".format(*answer["interval"]) if "interval" in answer else ""),
        flush=True,
    )
    return answer


def peak() -> float:
    """Return the peak memory of this process in MiB (Linux only)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def write(largest: int) -> None:
    """Measure the rows of the table; replace the table in the guide and the figures in README."""
    lines = [
        "| What | Unlabeled rows | Processor time | Wall time | Memory beyond the input |",
        "|---|---:|---:|---:|---:|",
    ]
    for what, mode, part in TABLE:
        n_rows = largest // part
        answer = run(mode, n_rows)
        if mode == "in_blocks" and answer["kernel"] != "numba":
            raise SystemExit("The table needs the extra 'fast': pip install -e '.[dev]'.")
        times, memory = f"{answer['cpu']:.1f} s | {answer['wall']:.1f} s", f"{answer['memory']:.0f}"
        lines.append(f"| {what} | {n_rows:,} | {times} | {memory} MiB |")
        if (mode, part) == ("default", 1):
            short = f"{answer['cpu']:.0f} seconds of processor time and {memory} MiB"
    lines += ["", f"Measured on {date.today():%Y-%m-%d}, on {machine()}.", ""]
    replace_between(GUIDE, SCRIPT, "\n" + "\n".join(lines))
    replace_between(README, SCRIPT, short)


def write_queries(n_rows: int) -> None:
    """Measure penL1 on queries by a key; replace their table in the guide."""
    lines = [
        f"| {n_rows:,} unlabeled rows | Processor time | Wall time | Memory beyond the input |",
        "|---|---:|---:|---:|",
    ]
    for what, mode in QUERIES:
        answer = run(mode, n_rows)
        times = f"{answer['cpu']:.1f} s | {answer['wall']:.1f} s"
        lines.append(f"| {what} | {times} | {answer['memory']:.0f} MiB |")
    lines += ["", f"Measured on {date.today():%Y-%m-%d}, on {machine()}.", ""]
    replace_between(GUIDE, f"{SCRIPT}, queries", "\n" + "\n".join(lines))


def machine() -> str:
    """Return the processors of this machine, and how busy they were."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.split(":")[1].strip() for line in lines if "model name" in line), "unknown")
    return f"{os.cpu_count()} processors ({name}) with a load average of {os.getloadavg()[2]:.0f}"


def verdict(claim: str, value: float, limit: float, unit: str = "") -> None:
    """Print one claim with its measured value."""
    answer = "met" if value <= limit else "NOT MET"
    print(f"  {claim:74} {value:8.3f}{unit}   limit {limit:g}{unit}   {answer}")


def main() -> None:
    """Run all fits and compare them with the limits."""
    parser = argparse.ArgumentParser(description="Time and memory of fits in blocks.")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the largest set")
    parser.add_argument(
        "--repeats", type=int, default=3, help="repeats of the comparison with memory"
    )
    parser.add_argument("--mode", choices=MODES, help="measure one fit and print JSON")
    parser.add_argument("--write", action="store_true", help="write the table to the documentation")
    parser.add_argument("--queries", action="store_true", help="write the table of queries")
    options = parser.parse_args()
    if options.mode:
        answer = MODES[options.mode](options.rows)
        print(json.dumps({"peak": peak(), **answer}))
        return
    if options.queries:
        write_queries(options.rows // 10)
        return
    if options.write:
        write(options.rows)
        record(SCRIPT)
        return
    small, middle, large = options.rows // 100, options.rows // 10, options.rows
    defaults = {n: run("default", n) for n in (small // 5, small, middle, large)}
    default_dask = run("default_on_dask", large)
    classify = run("classified", middle)
    with_small = run("with_interval", small)
    blocks = {n: run("in_blocks", n) for n in (small, middle, large)}
    run("with_interval", middle)
    dask = run("on_dask", large)
    pairs = [(run("in_blocks", middle), run("in_memory", middle)) for _ in range(options.repeats)]
    print()
    verdict("default, largest set", defaults[large]["cpu"], 200, " s CPU")
    verdict("peak memory of the default, largest set", defaults[large]["peak"], 1000, " MiB")
    per_row = defaults[large]["cpu"] / large / (defaults[middle]["cpu"] / middle)
    verdict("default, time per row, largest / middle set (CPU)", per_row, 1.2)
    width = np.diff(defaults[large]["interval"])[0] / np.diff(defaults[small // 5]["interval"])[0]
    verdict("default, width of the interval, largest / smallest set", float(width), 0.2)
    ratio = default_dask["cpu"] / defaults[large]["cpu"]
    verdict("default, dask / blocks, largest set (CPU)", ratio, 1.3)
    apart = abs(default_dask["prior"] - defaults[large]["prior"])
    verdict("default, difference between dask and blocks", apart, 1e-9)
    verdict("classify, middle set", classify["cpu"], 60, " s CPU")
    verdict("peak memory of classify, middle set", classify["peak"], 1000, " MiB")
    verdict("peak memory of blocks, largest set", blocks[large]["peak"], 1000, " MiB")
    per_row = blocks[large]["cpu"] / large / (blocks[small]["cpu"] / small)
    verdict("time per row, largest / smallest set (CPU)", per_row, 1.2)
    verdict("error of the estimate, largest set", abs(blocks[large]["prior"] - PRIOR), 0.005)
    low, high = with_small["interval"]
    outside = max(low - blocks[large]["prior"], blocks[large]["prior"] - high, 0.0)
    verdict(
        f"distance of the largest set's estimate from the interval {low:.3f} to {high:.3f}",
        outside,
        0,
    )
    for clock in ("wall", "cpu"):
        ratio = np.median([(b[clock] - m["reading"][clock]) / m[clock] for b, m in pairs])
        name = "wall" if clock == "wall" else "CPU"
        verdict(f"(blocks - reading) / memory, middle set ({name})", float(ratio), 1.15)
        verdict(f"dask / blocks, largest set ({name})", dask[clock] / blocks[large][clock], 1.5)
    print(f"\n  processors busy in blocks, largest set: {busy_of(blocks[large]):.2f}")
    predict(blocks, middle)


def work_of(n_rows: int) -> float:
    """Return the cost of a fit: rows x centers x (features + bandwidths)."""
    return 1.1 * n_rows * N_CENTERS * (N_FEATURES + len(SIGMAS))


def predict(blocks: dict[int, Answer], rate_from: int) -> None:
    """Print the times that the cost model predicts, calibrated at one size."""
    rate = work_of(rate_from) / blocks[rate_from]["cpu"]
    print(f"\n  cost model: {rate:.2e} operations per CPU second, calibrated at {rate_from:,} rows")
    for n_rows, answer in blocks.items():
        print(
            f"  {n_rows:12,} rows: {work_of(n_rows) / rate:8.1f} s predicted, {answer['cpu']:.1f} s"
        )
    each = 10**9 // 100
    print(
        f"  1e9 rows on 100 workers: {work_of(each) / rate:.0f} s each, "
        f"{2 * 1.1 * each * N_FEATURES * 8 / 1e9:.1f} GB read in two passes, "
        f"{100 * len(SIGMAS) * N_CENTERS * 8 / 1e6:.0f} MB sent per partition (100 bins)"
    )


def busy_of(answer: Answer) -> float:
    """Return the mean number of busy processors."""
    return float(answer["cpu"] / answer["wall"])


if __name__ == "__main__":
    main()
