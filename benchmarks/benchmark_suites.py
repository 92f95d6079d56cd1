"""The suites of the public benchmark: two classes, and draws from them with a known share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import seed
from numpy.typing import NDArray
from practice import bundled, mixed
from sklearn.datasets import fetch_openml, load_breast_cancer, load_digits, load_wine

from classprior import TableEncoder

Doubles = NDArray[np.float64]
Classes = tuple[Doubles, Doubles]  # rows of the positive and of the negative class

FEWEST = 50  # positive rows of a table
POOL = 4000  # rows of each class from which a draw takes its own
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)


def uniforms(rng: np.random.Generator, pool: int = POOL) -> Classes:
    """Return two intervals that share half of their length."""
    return rng.uniform(0.0, 1.0, (pool, 1)), rng.uniform(0.5, 1.5, (pool, 1))


def normals(
    n_features: int, distance: float, rng: np.random.Generator, pool: int = POOL
) -> Classes:
    """Return normal classes, some standard deviations apart."""
    positive, negative = rng.normal(size=(2, pool, n_features))
    return positive, negative + distance / np.sqrt(n_features)


def betas(rng: np.random.Generator, pool: int = POOL) -> Classes:
    """Return three columns in [0, 1], skewed to one side or the other."""
    return rng.beta(2.0, 5.0, (pool, 3)), rng.beta(5.0, 2.0, (pool, 3))


def ring(rng: np.random.Generator, pool: int = POOL) -> Classes:
    """Return positives in the middle and negatives around them."""
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, pool), rng.normal(3.0, 0.5, pool)
    return rng.normal(size=(pool, 2)), radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]


def t_mixtures(rng: np.random.Generator, pool: int = POOL) -> Classes:
    """Return two clusters of positives with heavy tails, and normal negatives between them."""
    positive = rng.standard_t(3.0, (pool, 2))
    positive[:, 0] += rng.choice([-3.0, 3.0], pool)
    return positive, rng.normal(size=(pool, 2))


@cache
def of_scikit_learn(name: str) -> Classes:
    """Return two classes of a bundled data set."""
    positive, negative, _ = {
        "digits": partial(bundled, load_digits, lambda y: y % 2 == 1),
        "breast cancer": partial(bundled, load_breast_cancer, lambda y: y == 0),
        "wine": partial(bundled, load_wine, lambda y: y == 1),
    }[name]()
    return positive, negative


@cache
def of_parquet(path: Path) -> Classes:
    """Return two classes of a table in a file."""
    import pandas as pd

    frame = pd.read_parquet(path)
    if "target" not in frame:
        raise ValueError("there is no column target.")
    return of_table(frame.drop(columns="target"), frame["target"])


@cache
def of_openml(name: str) -> Classes:
    """Return two classes of a table on OpenML."""
    return of_table(*fetch_openml(name, version="active", as_frame=True, return_X_y=True))


def of_table(frame: Any, target: Any) -> Classes:
    """Split a table into the second most frequent label and the others."""
    labels = target.astype(str)
    counts = sorted(labels.value_counts().items(), key=lambda item: (-item[1], item[0]))
    if len(counts) < 2 or counts[1][1] < FEWEST:
        raise ValueError(f"fewer than {FEWEST} rows have the second most frequent label.")
    is_positive = (labels == counts[1][0]).to_numpy()
    X = np.asarray(TableEncoder().fit_transform(frame), dtype=float)
    return X[is_positive], X[~is_positive]


class Suite(NamedTuple):
    """Draws from two classes; with too few rows, both samples are smaller."""

    classes: Callable[..., Classes]
    is_random: bool = True  # whether rows are drawn afresh
    source: str = ""  # where a table comes from
    shares: tuple[float, ...] = SHARES
    sizes: tuple[int, int] = (200, 800)

    def draw(
        self, name: str, prior: float, number: int, *, pool: int = POOL
    ) -> tuple[Doubles, Doubles, float]:
        """Return the positive and the unlabeled sample, standardized together, and the truth."""
        rng = np.random.default_rng(seed(suite=name, prior=prior, draw=number))
        yes, no = self.classes(rng, pool=pool) if self.is_random else self.classes()
        positive, unlabeled, is_hidden = mixed(yes, no, prior, self.sizes, rng)
        both = np.vstack([positive, unlabeled])
        both = both[:, np.ptp(both, axis=0) > 0.0]
        both = (both - both.mean(axis=0)) / both.std(axis=0)
        return both[: len(positive)], both[len(positive) :], float(is_hidden.mean())


SUITES: dict[str, Suite] = {
    "uniforms": Suite(uniforms),
    "normals": Suite(partial(normals, 2, 2.0)),
    "normals, 20 columns": Suite(partial(normals, 20, 3.0)),
    "betas": Suite(betas),
    "ring": Suite(ring),
    "t mixtures": Suite(t_mixtures),
    "rare": Suite(partial(normals, 4, 3.0), shares=(0.01, 0.02, 0.05), sizes=(300, 3000)),
    "digits": Suite(partial(of_scikit_learn, "digits"), is_random=False),
    "breast cancer": Suite(partial(of_scikit_learn, "breast cancer"), is_random=False),
    "wine": Suite(partial(of_scikit_learn, "wine"), is_random=False, sizes=(200, 400)),
}


def suites_of(folder: Path | None, names: Sequence[str]) -> dict[str, Suite]:
    """Return the suites, with those of a folder and of OpenML; say which cannot be read."""
    paths = sorted(folder.glob("*.parquet")) if folder else []
    if folder and not paths:
        raise SystemExit(f"There are no Parquet files in {folder}.")
    found = {path.stem: (partial(of_parquet, path), str(path.resolve())) for path in paths}
    found |= {f"openml {name}": (partial(of_openml, name), "OpenML") for name in names}
    tables = {}
    for name, (classes, source) in found.items():
        try:
            classes()
        except Exception as error:  # no network, no such table, no target
            print(f"Skipped {name}: {error}")
        else:
            tables[name] = Suite(classes, is_random=False, source=source)
    return SUITES | tables
