"""Numerical illustration of du Plessis, Niu and Sugiyama (2017), section 5.2: penL1.

Positives are uniform on [0, 1], negatives on [1 - overlap, 2 - overlap], the prior is 0.7. The
paper says that penL1 is right at a small and at a large overlap. Draws the histograms of the
estimates and prints their medians.

    python experiments/duplessis2017_uniforms.py [--draws 200] [--rows 300]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed
from rich.progress import track

from classprior import penalized_l1
from classprior.datasets import make_overlapping_uniforms

PRIOR = 0.7
OVERLAPS = (0.25, 0.75)


def estimate(overlap: float, rows: int, seed: int) -> float:
    """Estimate the prior of one draw."""
    samples = make_overlapping_uniforms(
        overlap=overlap, prior=PRIOR, n_positive=rows, n_unlabeled=rows, random_state=seed
    )
    return penalized_l1(*samples, random_state=seed).prior


def main() -> None:
    """Repeat the draws, print and draw."""
    parser = argparse.ArgumentParser(description="penL1 on the paper's overlapping uniforms.")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--rows", type=int, default=300, help="rows in each sample")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=Path("build/duplessis2017_uniforms.png"))
    options = parser.parse_args()

    tasks = [(overlap, options.rows, seed) for overlap in OVERLAPS for seed in range(options.draws)]
    parallel = Parallel(n_jobs=options.jobs, return_as="generator")
    results = parallel(delayed(estimate)(*task) for task in tasks)
    estimates = np.array(list(track(results, "Draws", len(tasks)))).reshape(len(OVERLAPS), -1)

    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
    print(f"\npenL1, prior {PRIOR}, {options.rows} + {options.rows} rows, {options.draws} draws\n")
    print("overlap   median    mean  standard deviation")
    for overlap, values, ax in zip(OVERLAPS, estimates, axes, strict=True):
        print(f"{overlap:7}  {np.median(values):7.3f} {values.mean():7.3f}  {values.std():7.3f}")
        ax.hist(values, bins=np.linspace(0.0, 1.0, 41))
        ax.axvline(PRIOR, color="black", linestyle="--", label=f"truth {PRIOR}")
        ax.set(title=f"overlap {overlap}", xlabel="estimate of the prior")
        ax.legend()
    axes[0].set_ylabel("draws")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=120)
    print(f"\nThe histograms are drawn in {options.out}")


if __name__ == "__main__":
    main()
