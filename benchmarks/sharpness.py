"""Fit the coefficients by which ``AutoPrior`` corrects soft minima for overlap.

    python benchmarks/sharpness.py [--draws 100] [--out build/sharpness]

Two samples are drawn from each of six simulated families, with sizes, numbers of columns, shares
and distances between the classes at random; none of them is used to judge the estimate. The
estimate is f2 + a (f1 - f2) - b (f1/2 - f1), where f2, f1 and f1/2 are soft minima of sharpness 2,
1 and 1/2. Prints the least-squares coefficients a and b, with errors from leaving out one family
at a time, and the mean squared error for other coefficients as a multiple of that of f2. An
interrupted run resumes. Takes about ten minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.datasets import make_classification

from classprior import AutoPrior

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from harness import run, seed

Doubles = NDArray[np.float64]
Draw = Callable[[Generator, int, int, int, float], tuple[Doubles, Doubles]]
SIZES = ((60, 150), (100, 400), (200, 1000), (300, 1200), (300, 3000), (400, 400), (500, 2000))
COLUMNS = (1, 2, 4, 8, 20, 40)
SHARES = (0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
ROUNDS = 3  # of cross-fitting
GRID = ((1.0, 0.0), (1.0, 1.0), (2.0, 2.0), (2.0, 3.0), (2.5, 3.5), (3.0, 4.0), (3.5, 3.5))


def normals(rng: Generator, n: int, m: int, d: int, distance: float) -> tuple[Doubles, Doubles]:
    """Draw two normal classes."""
    return rng.normal(size=(n, d)), rng.normal(size=(m, d)) + distance / np.sqrt(d)


def heavy_tails(rng: Generator, n: int, m: int, d: int, distance: float) -> tuple[Doubles, Doubles]:
    """Draw two classes with Student's t distributions."""
    return rng.standard_t(4, (n, d)), rng.standard_t(4, (m, d)) + distance / np.sqrt(d)


def mixtures(rng: Generator, n: int, m: int, d: int, spread: float) -> tuple[Doubles, Doubles]:
    """Draw two mixtures of three normal distributions around random centers."""
    d = max(d, 2)  # in one dimension, most of them overlap everywhere

    def draw(size: int) -> Doubles:
        centers, scales = spread * rng.normal(size=(3, d)), rng.uniform(0.5, 1.2, (3, 1))
        parts = rng.choice(3, size, p=rng.dirichlet((2.0, 2.0, 2.0)))
        return centers[parts] + scales[parts] * rng.normal(size=(size, d))

    return draw(n), draw(m)


def gammas(rng: Generator, n: int, m: int, d: int, shape: float) -> tuple[Doubles, Doubles]:
    """Draw logarithms of gamma distributions; the negatives are exponential."""
    d = min(d, 4)
    return np.log(rng.gamma(shape, 1.0, (n, d))), np.log(rng.gamma(1.0, 1.0, (m, d)))


def cubes(rng: Generator, n: int, m: int, d: int, gap: float) -> tuple[Doubles, Doubles]:
    """Draw two unit cubes, shifted along one axis."""
    return rng.random((n, d)), rng.random((m, d)) + gap * np.eye(1, d)


def clusters(rng: Generator, n: int, m: int, d: int, distance: float) -> tuple[Doubles, Doubles]:
    """Draw clusters on the corners of a hypercube, as ``make_classification`` does."""
    d = max(d, 4)
    X, y = make_classification(
        3 * max(n, m),
        n_features=d,
        n_informative=d // 2,
        n_redundant=0,
        class_sep=distance,
        flip_y=0.0,
        random_state=int(rng.integers(2**31)),
    )
    return X[y == 1][:n], X[y == 0][:m]


#: Draws of two classes, and distances at which a positive region is nearly pure.
FAMILIES: dict[str, tuple[Draw, tuple[float, ...]]] = {
    "normals": (normals, (2.0, 2.5, 3.0, 4.0, 5.0)),
    "heavy tails": (heavy_tails, (2.0, 3.5, 5.0)),
    "mixtures": (mixtures, (1.5, 2.0, 3.0)),
    "gammas": (gammas, (3.0, 5.0, 8.0)),
    "cubes": (cubes, (0.4, 0.7)),
    "clusters": (clusters, (1.0, 1.5, 2.5)),
}


def work(task: dict[str, Any]) -> dict[str, Any]:
    """Return the soft minima and the true share of one draw."""
    rng = np.random.default_rng(seed(**task))
    family, distances = FAMILIES[task["family"]]
    n, m = SIZES[rng.integers(len(SIZES))]
    share, d = float(rng.choice(SHARES)), int(rng.choice(COLUMNS))
    n_hidden = rng.binomial(m, share)
    yes, no = family(rng, n + n_hidden, m - n_hidden, d, float(rng.choice(distances)))
    X_positive, X_unlabeled = yes[:n], rng.permutation(np.vstack([yes[n:], no]))
    rounds = [
        AutoPrior(n_repeats=1, n_resamples=20, random_state=number)
        .fit_samples(X_positive, X_unlabeled)
        .scores_.values()
        for number in range(ROUNDS)
    ]
    minima = np.mean([[minimum(scores, k) for k in (2.0, 1.0, 0.5)] for scores in rounds], axis=0)
    return {"minima": minima.tolist(), "truth": (len(yes) - n) / m}


def minimum(scores: Iterable[tuple[Doubles, Doubles]], k: float) -> float:
    """Return the soft minimum of sharpness k, first over the tails of each score."""
    of_scores = []
    for positive, unlabeled in scores:
        thresholds = np.sort(positive)[::-1]
        P, n, m = np.arange(1, len(positive) + 1), len(positive), len(unlabeled)
        U = np.sum(unlabeled >= thresholds[:, None], axis=1)
        log_ratio = np.log((U + 0.5) / (m + 0.5) / ((P - 0.5) / (n + 0.5)))
        error = np.sqrt(1 / (U + 0.5) - 1 / (m + 0.5) + 2 / (P - 0.5) - 2 / (n + 0.5))
        quarter = log_ratio[np.argmax(n / 4 <= P)]
        used = n * min(0.25, np.exp(quarter)) <= P
        weights = soft(log_ratio[used], error[used], k)
        of_scores.append((weights @ log_ratio[used], weights @ error[used]))
    logs, errors = np.array(of_scores).T
    return float(soft(logs, errors, k, farthest=3.0) @ np.exp(logs))


def soft(values: Doubles, errors: Doubles, k: float, farthest: float = np.inf) -> Doubles:
    """Return the weights of a soft minimum."""
    upper = values + errors
    x = (upper - np.min(upper)) / max(errors[np.argmin(upper)], 0.01)
    weights = np.where(x <= farthest, np.exp(-k * x), 0.0)
    return weights / weights.sum()


def main() -> None:
    """Fit the coefficients and print them."""
    parser = argparse.ArgumentParser(description="Fit the correction for overlap.")
    parser.add_argument("--draws", type=int, default=100, help="of each family")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=Path("build/sharpness"))
    options = parser.parse_args()
    tasks = [{"family": f, "draw": i} for f in FAMILIES for i in range(options.draws)]
    rows = run(tasks, work, options.out / "draws.jsonl", title="Draws", jobs=options.jobs)
    families = np.array([row["family"] for row in rows])
    minima, truth = (
        np.array([row["minima"] for row in rows]).T,
        np.array([r["truth"] for r in rows]),
    )
    steps = np.c_[minima[1] - minima[0], minima[1] - minima[2]]  # f1 - f2 and f1 - f1/2

    def fit(used: NDArray[np.bool_]) -> Doubles:
        return np.linalg.lstsq(steps[used], truth[used] - minima[0][used], rcond=None)[0]

    def error(estimates: Doubles) -> float:
        return float(np.mean((np.clip(estimates, 0.0, 1.0) - truth) ** 2))

    fitted = fit(np.ones(len(truth), dtype=bool))
    without = np.array([fit(families != family) for family in FAMILIES])
    k = len(FAMILIES)
    errors = np.sqrt((k - 1) / k * np.sum((without - without.mean(axis=0)) ** 2, axis=0))
    print(f"a = {fitted[0]:.2f} +- {errors[0]:.2f}, b = {fitted[1]:.2f} +- {errors[1]:.2f}")
    print(f"mean squared error of f2: {error(minima[0]):.5f}, of f1: {error(minima[1]):.5f}")
    for a, b in ((float(fitted[0]), float(fitted[1])), *GRID):
        found = error(minima[0] + steps @ [a, b])
        print(f"a = {a:4.1f}, b = {b:4.1f}: {found:.5f}, {found / error(minima[0]):.2f} times")


if __name__ == "__main__":
    main()
