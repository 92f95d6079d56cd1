"""Speed and memory of a cross-validated penL1 fit, as ratios measured side by side.

    python benchmarks/speed_penalized_l1.py

Compares the whole fit (2,000 centers, 11 bandwidths, 5 folds, 1,001 thetas) with one call of
``rbf_kernel`` on the same rows and centers, and with a plain NumPy version of the public MATLAB
code on the grids of that code. Then measures time per row and peak memory at ten times the rows.
Uses the kernel compiled by numba if it is installed and NUMBA_DISABLE_JIT is not set.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import plain_penalized_l1 as plain
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from classprior import PenalizedL1Prior

N_ROWS, N_CENTERS, N_FEATURES = 20_000, 2_000, 4
Samples = tuple[np.ndarray, np.ndarray]


def make(n_rows: int) -> Samples:
    """Draw two samples: 10% of the rows are known positives, 30% of the others are positive."""
    rng = np.random.default_rng(0)
    n_positive = n_rows // 10
    X = rng.normal(size=(n_rows, N_FEATURES))
    X[int(0.37 * n_rows) :] += 2.0
    return X[:n_positive], X[n_positive:]


def fit(samples: Samples, n_jobs: int = 1) -> PenalizedL1Prior:
    """Run the whole cross-validated fit."""
    estimator = PenalizedL1Prior(n_centers=N_CENTERS, n_jobs=n_jobs, random_state=0)
    return estimator.fit_samples(*samples)


def seconds(work: Callable[[], object]) -> float:
    """Return the run time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(
    first: Callable[[], object], second: Callable[[], object], repeats: int
) -> tuple[float, float, float]:
    """Return the median times and the median ratio of pairs measured back to back."""
    first()
    pairs = np.array([(seconds(first), seconds(second)) for _ in range(repeats)])
    first_time, second_time = np.median(pairs, axis=0)
    return first_time, second_time, float(np.median(pairs[:, 0] / pairs[:, 1]))


def report(name: str, first: float, second: float, ratio: float, limit: str) -> None:
    """Print one line of the table."""
    print(f"{name:52} {first:8.3f} s {second:8.3f} s   ratio {ratio:7.3f}   limit: {limit}")


def memory(n_rows: int) -> None:
    """Print the memory that a fit needs in addition to its input (Linux only)."""
    fit(make(500))  # allocates what imports and BLAS keep
    samples = make(n_rows)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = resident("VmRSS")
    fit(samples)
    peak = resident("VmHWM") - before
    tracemalloc.start()
    fit(samples)
    arrays = tracemalloc.get_traced_memory()[1] / 2**20
    print(f"{peak:6.1f} MiB resident, {arrays:6.1f} MiB in arrays   limit: under 200")


def resident(field: str) -> float:
    """Return a memory field of this process in MiB: VmRSS (current) or VmHWM (peak)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return int(status[field].split()[0]) / 2**10


def main() -> None:
    """Run all comparisons."""
    parser = argparse.ArgumentParser(description="Speed and memory of penL1, as ratios.")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--memory", type=int, help="only measure memory, at this number of rows")
    options = parser.parse_args()
    if options.memory:
        memory(options.memory)
        return

    small, large = make(N_ROWS), make(10 * N_ROWS)
    rows, centers = np.vstack(small), small[1][:N_CENTERS]
    print(f"{N_ROWS:,} rows, {N_CENTERS:,} centers, {N_FEATURES} features; medians of ", end="")
    kernel = fit(small).kernel_
    print(f"{options.repeats} pairs; kernel: {kernel}\n")
    for threads in (1, 2):
        with threadpool_limits(threads):
            report(
                f"whole fit / one rbf_kernel, {threads} thread(s)",
                *compare(
                    partial(fit, small, n_jobs=threads),
                    lambda: rbf_kernel(rows, centers),
                    options.repeats,
                ),
                "at most 0.35" if kernel == "numba" else "at most 0.8",
            )
    with threadpool_limits(1):
        rng = np.random.default_rng(0)
        grids: dict[str, Any] = {
            "sigmas": plain.bandwidths(small[1], plain.draw_centers(small[1], rng)),
            "lams": plain.LAMS,
            "thetas": plain.THETAS,
            "n_centers": 300,
        }
        report(
            "plain NumPy version / classprior, same grids",
            *compare(
                lambda: plain.estimate(*small, rng),
                lambda: PenalizedL1Prior(**grids, random_state=0).fit_samples(*small),
                1,
            ),
            "at least 10",
        )
        big, tenth, ratio = compare(lambda: fit(large), lambda: fit(small), 3)
        report("time per row, ten times the rows / the rows", big, tenth, ratio / 10, "at most 1.2")
    for n_rows in (N_ROWS, 10 * N_ROWS):
        print(f"peak memory in addition to the input, {n_rows:7,} rows: ", end="", flush=True)
        subprocess.run([sys.executable, __file__, "--memory", str(n_rows)], check=True)


if __name__ == "__main__":
    main()
