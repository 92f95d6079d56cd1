"""Cost of an estimate with its interval, beside one cross-fitted neural network.

    python benchmarks/speed_auto.py [--repeats 3]

``estimate_prior`` on two arrays, interval, bound and warnings included, against five fits of
scikit-learn's ``MLPClassifier((32,), max_iter=60, batch_size=64)``, each to four fifths of the
rows, with its predictions on the fifth. At 200 + 1,000 rows of 4 columns and at 1,000 + 20,000 of
50, with one thread each.
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
    """Draw normals, of which 30% of the unlabeled ones are positive."""
    rng = np.random.default_rng(0)
    unlabeled = rng.normal(size=(m, n_features))
    unlabeled[round(0.3 * m) :, :4] += 1.2
    return rng.normal(size=(n, n_features)), unlabeled


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description="estimate_prior against a neural network.")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # 60 rounds are not enough for the network to converge
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
