"""Cost of cross-validated least squares (PE, uLSIF, EN), relative to its linear algebra.

    python benchmarks/speed_least_squares.py

Compares the whole cross-validated fit with the operations that cannot be avoided: one Gram product
and one eigendecomposition per bandwidth and fold, on a precomputed basis.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy import linalg
from sklearn.metrics.pairwise import rbf_kernel
from speed_penalized_l1 import Samples, compare, make, report
from threadpoolctl import threadpool_limits

from classprior import DensityRatio, ElkanNotoPrior, PearsonPrior

N_ROWS, N_CENTERS, N_FOLDS, N_SIGMAS = 20_000, 200, 5, 11


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description="Speed of cross-validated least squares.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--centers", type=int, default=N_CENTERS, help="centers of PE and uLSIF")
    options = parser.parse_args()
    samples: Samples = make(N_ROWS)
    n_centers = options.centers

    def products(n_rows: int, n_fits: int) -> Callable[[], None]:
        phi = rbf_kernel(np.vstack(samples)[:n_rows], samples[0][:n_centers], gamma=0.1)
        blocks = np.array_split(phi, N_FOLDS)

        def run() -> None:
            for _ in range(N_SIGMAS * n_fits):
                for gram in [block.T @ block for block in blocks]:
                    linalg.eigh(gram, driver="evd", check_finite=False)

        return run

    n_unlabeled, n_rows = len(samples[1]), sum(map(len, samples))
    methods: dict[str, tuple[Callable[[], object], Callable[[], None]]] = {
        "PE": (
            lambda: PearsonPrior(n_centers=n_centers, random_state=0).fit_samples(*samples),
            products(n_unlabeled, 1),
        ),
        "uLSIF": (
            lambda: DensityRatio(n_centers=n_centers, random_state=0).fit_samples(*samples),
            products(n_unlabeled, 1),
        ),
        # One classifier per fold, cross-validated on the other four folds.
        "EN": (
            lambda: ElkanNotoPrior(random_state=0).fit_samples(*samples),
            products(n_rows * 4 // 5, N_FOLDS),
        ),
    }
    with threadpool_limits(1):
        for name, (fit, necessary) in methods.items():
            report(
                f"cross-validated {name} / linear algebra, {n_centers} centers",
                *compare(fit, necessary, options.repeats),
                "at most 1.5",
            )


if __name__ == "__main__":
    main()
