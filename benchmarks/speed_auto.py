"""Cost of an estimate with its interval, relative to one cross-fitted neural network.

    python benchmarks/speed_auto.py [--repeats 3]

Compares ``estimate_prior`` on two arrays (including interval, bound and warnings) with five-fold
cross-fitting of scikit-learn's ``MLPClassifier((32,), max_iter=60, batch_size=64)``, both on one
thread, for 200 + 1,000 rows of 4 columns and 1,000 + 20,000 rows of 50 columns.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import cross_val_predict
from sklearn.neural_network import MLPClassifier
from speed_penalized_l1 import compare, report
from threadpoolctl import threadpool_limits

from classprior import estimate_prior

SIZES = ((200, 1000, 4), (1000, 20_000, 50))


def make(n: int, m: int, n_features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw normal samples; 30% of the unlabeled rows are positive."""
    rng = np.random.default_rng(0)
    unlabeled = rng.normal(size=(m, n_features))
    unlabeled[round(0.3 * m) :, :4] += 1.2
    return rng.normal(size=(n, n_features)), unlabeled


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description="estimate_prior against a neural network.")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the network does not converge in 60 iterations
    with threadpool_limits(1):
        for size in SIZES:
            samples = make(*size)
            X, y = np.vstack(samples), np.repeat([1, 0], size[:2])
            network = MLPClassifier((32,), max_iter=60, batch_size=64, random_state=0)

            def answer(
                samples: tuple[NDArray[np.float64], NDArray[np.float64]] = samples,
            ) -> object:
                return estimate_prior(*samples, random_state=0)

            def cross_fit(
                X: NDArray[np.float64] = X, y: NDArray[np.int64] = y, network: object = network
            ) -> object:
                return cross_val_predict(network, X, y, cv=5, method="predict_proba")

            report(
                f"estimate_prior / cross-fitted network, {size[0]:,} + {size[1]:,} x {size[2]}",
                *compare(answer, cross_fit, options.repeats),
                "at most 4",
            )


if __name__ == "__main__":
    main()
