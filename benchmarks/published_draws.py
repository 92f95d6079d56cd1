"""Draws of a published study: its tables, and which positives it hid.

The study is PULSNAR (Kumar and Lambert, PeerJ Computer Science, 2024). All rows of one label are
unlabeled negatives. Of the positives, so many are hidden that they have the given share among the
unlabeled rows, and all others are known. In suites "scar", positives are hidden at random; in
suites "snar", some kinds are hidden more often than others.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

Doubles = NDArray[np.float64]
Labels = NDArray[np.str_]
Numbers = dict[str, int]  # how many positives of each kind to hide


def alike(n_hidden: int, counts: Numbers) -> Numbers:
    """Hide positives regardless of their kind."""
    (kind,) = counts
    return {kind: n_hidden}


def doubling(n_hidden: int, counts: Numbers) -> Numbers:
    """Hide twice as many of each more frequent kind."""
    kinds = [kind for kind, _ in Counter(counts).most_common()][::-1]
    whole = 2 ** len(kinds) - 1
    return {kind: round(n_hidden * 2**power / whole) for power, kind in enumerate(kinds)}


def equal(n_hidden: int, counts: Numbers) -> Numbers:
    """Hide as many of each kind, whether frequent or rare."""
    kinds = [kind for kind, _ in Counter(counts).most_common()]
    return dict.fromkeys(kinds, (n_hidden + 1) // len(kinds) + 1)


class Suite(NamedTuple):
    """One table of the study, and how its positives are hidden."""

    path: str  # in the folder of tables
    openml: str  # its name there; empty if unknown
    labels: str  # digest of the labels in their order, on which the draws depend
    is_negative: Callable[[str], bool]
    numbers: Callable[[int, Numbers], Numbers]
    used: str = ""  # the first letters of labels that take part; all if empty

    def table(self, folder: Path | None) -> tuple[Doubles, Labels]:
        """Return the columns, with 0 for missing values, and the label of each row."""
        frame, target = _read(folder / self.path if folder else None, self.openml)
        labels = target.astype(str).to_numpy().astype("U")
        rows = np.isin(labels, list(self.used)) if self.used else np.ones(len(labels), bool)
        X = frame.astype("float64").fillna(0.0).to_numpy()
        return X[rows], labels[rows]

    def hidden(self, labels: Labels, share: float, iteration: int) -> tuple[Any, Any]:
        """Return which rows are known positives, and which are hidden ones."""
        is_negative = np.array([self.is_negative(label) for label in labels])
        kinds = np.full(len(labels), "positive") if self.numbers is alike else labels
        n_hidden = int(is_negative.sum() * share / (1.0 - share))
        numbers = self.numbers(n_hidden, Counter(kinds[~is_negative].tolist()))
        random = np.random.RandomState(iteration)  # the generator of the study
        is_hidden = np.zeros(len(labels), bool)
        for kind, number in numbers.items():
            rows = np.flatnonzero((kinds == kind) & ~is_negative)
            random.shuffle(rows)
            is_hidden[rows[:number]] = True
        return ~is_negative & ~is_hidden, is_hidden

    def draw(
        self, folder: Path | None, share: float, iteration: int
    ) -> tuple[Doubles, Doubles, float]:
        """Return known positives, unlabeled rows and the true share among these."""
        X, labels = self.table(folder)
        is_known, is_hidden = self.hidden(labels, share, iteration)
        return X[is_known], X[~is_known], float(is_hidden[~is_known].mean())


@cache
def _read(path: Path | None, openml: str) -> tuple[Any, Any]:
    """Return the columns and the labels of a table."""
    if path is None:
        return fetch_openml(openml, version="active", as_frame=True, return_X_y=True)
    import pandas as pd

    frame = pd.read_parquet(path)
    return frame.drop(columns="target"), frame["target"]


def digest_of(labels: Labels) -> str:
    """Return a digest of labels in their order."""
    return hashlib.sha256("\n".join(labels).encode()).hexdigest()[:16]


#: Suites by the names that the answers have.
SUITES = {
    "scar_magic_gamma": Suite(
        "tabular/magic.parquet",
        "MagicTelescope",
        "8cb0f3f470c8d6b6",
        lambda label: label == "h",
        alike,
    ),
    "scar_electric_grid": Suite(
        "published/electric_grid.parquet",
        "",
        "3f44cbaa99c6cab3",
        lambda label: label == "stable",
        alike,
    ),
    "scar_mouse_protein": Suite(
        "published/mouse_protein.parquet",
        "MiceProtein",
        "bbe5e43cb416e400",
        lambda label: "t-" in label,
        alike,
    ),
    "snar_letter_recognition": Suite(
        "tabular/letter.parquet",
        "letter",
        "77eed8094ec1bcaf",
        lambda label: label == "D",
        doubling,
        used="ABCDEF",
    ),
    "snar_occupancy": Suite(
        "published/occupancy.parquet", "", "000cc454577f852a", lambda label: label == "2", equal
    ),
}


def readable(folder: Path | None, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each suite and why it cannot be drawn as in the study; empty if it can."""
    for name in names:
        suite = SUITES[name]
        if folder is None and not suite.openml:
            yield name, "its table is not on OpenML by a name we know; pass --data FOLDER"
            continue
        try:
            _, labels = suite.table(folder)
        except Exception as error:  # no network, no such file, no numbers
            yield name, str(error)
            continue
        same = digest_of(labels) == suite.labels
        yield name, "" if same else "its rows have other labels, or another order, than the study's"
