"""Cost of cross-validating a least-squares density ratio (PE, uLSIF), beside its two products.

    python benchmarks/speed_least_squares.py

The whole cross-validated fit against what cannot be saved: one Gram product and one
eigendecomposition per bandwidth and fold, on a basis that has been evaluated beforehand.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import linalg
from sklearn.metrics.pairwise import rbf_kernel
from speed_penalized_l1 import Samples, compare, make, report
from threadpoolctl import threadpool_limits

from classprior import pearson_prior

N_ROWS, N_CENTERS, N_FOLDS, N_SIGMAS = 20_000, 200, 5, 11


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description="Least-squares cross-validation, as a ratio.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--centers", type=int, default=N_CENTERS)
    options = parser.parse_args()
    samples: Samples = make(N_ROWS)
    phi = rbf_kernel(samples[1], samples[0][: options.centers], gamma=0.1)
    blocks = np.array_split(phi, N_FOLDS)

    def products() -> None:
        for _ in range(N_SIGMAS):
            grams = [block.T @ block for block in blocks]
            for gram in grams:
                linalg.eigh(gram, driver="evd", check_finite=False)

    with threadpool_limits(1):
        report(
            f"cross-validated PE / its products, {options.centers} centres",
            *compare(
                lambda: pearson_prior(*samples, n_centers=options.centers, random_state=0),
                products,
                options.repeats,
            ),
            "at most 1.5",
        )


if __name__ == "__main__":
    main()
