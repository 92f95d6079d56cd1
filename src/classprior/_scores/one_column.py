"""Columns that decide the estimate alone: flags of labeled rows, and columns that trees split by.

Such a column may be a real property of the class or a trace of how rows were labeled, which the
samples alone cannot tell. The estimate without the column may: it is an upper bound of the same
share, so an estimate with the column that is far below it needs an explanation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from classprior._core.messages import percent
from classprior._core.types import Doubles, Rows
from classprior._scores.diagnostics import SIGNIFICANT, Evidence, stands_out
from classprior._scores.limits import binomial_limits
from classprior.result import Caution

#: Share in the gain of all splits from which a column is named.
MOST_GAIN = 0.5
_FAR = 10.0  # times the upper end with a column; less may be due to overlap without it
_SOME_POSITIVES = 0.1  # of the known positives have the value of a flag
_FLAG_GAIN = 0.1  # least share in the gain of a flag that is tested
_MOST_RATIO = 0.5  # of its frequencies among unlabeled rows and among known positives


class Decisive(NamedTuple):
    """A column that decides the estimate: by its splits, or by a value if it has two."""

    name: str
    gain: float  # share in the gain of all splits
    # Of a value: how many of the known positives and of the unlabeled rows have it.
    known: int | None = None
    found: int = 0


def decisive_columns(
    X_positive: Rows, X_unlabeled: Rows, names: Sequence[str], gains: Doubles
) -> list[Decisive]:
    """Return the column with most of the gain, and the rarest flag of those that split much."""
    of_names: dict[str, float] = {}
    for name, gain in zip(names, gains, strict=True):
        of_names[name] = of_names.get(name, 0.0) + float(gain)
    if len(of_names) == 1:
        return []
    first = max(of_names, key=of_names.__getitem__)
    found = [Decisive(first, of_names[first])] if of_names[first] > MOST_GAIN else []
    flag = _flag(X_positive, X_unlabeled, names, of_names)
    return found if flag is None else [*found, flag]


def _flag(
    X_positive: Doubles,
    X_unlabeled: Doubles,
    names: Sequence[str],
    gains: Mapping[str, float],
) -> Decisive | None:
    """Return the value, of a column of two, that most known positives have for its frequency."""
    both, n, m = (X_positive, X_unlabeled), len(X_positive), len(X_unlabeled)
    low, high = (f([f(X, axis=0) for X in both], axis=0) for f in (np.min, np.max))
    splits = np.array([gains[name] > _FLAG_GAIN for name in names])
    is_flag = np.all([np.all((low == X) | (high == X), axis=0) for X in both], axis=0)
    best, least = None, _MOST_RATIO
    for value in (low, high):
        known, found = (np.sum(value == X, axis=0) for X in both)
        is_candidate = splits & is_flag & (low < high) & (known >= _SOME_POSITIVES * n)
        for column in map(int, np.flatnonzero(is_candidate)):
            ratio, name = float(found[column] / m / (known[column] / n)), names[column]
            if ratio < least:
                best, least = (
                    Decisive(name, gains[name], int(known[column]), int(found[column])),
                    ratio,
                )
    return best


def contradicts(
    column: Decisive, sizes: tuple[int, int], evidence: Evidence, without: Evidence
) -> bool:
    """Return whether the estimate without a column says that the column reveals labeled rows.

    If known positives are typical, at least as many unlabeled rows have the value of a flag as the
    hidden positives bring, given the low end of the share without it. A column of any kind is
    judged by the intervals with and without it, which must be far apart.
    """
    if not stands_out(without.separation_):
        return False
    if column.known is None:
        return without.low_ > _FAR * evidence.high_
    if without.low_ <= evidence.prior_:
        return False
    n, m = sizes
    share = float(binomial_limits(column.known, n, SIGNIFICANT)[0])
    return bool(stats.binom.cdf(column.found, m, share * without.low_) < SIGNIFICANT)


def about_decisive(
    column: Decisive, sizes: tuple[int, int], evidence: Evidence, without: Evidence
) -> Caution:
    """Return a warning about a column that seems to reveal labeled rows."""
    shares = f"{percent(without.prior_)} instead of {percent(evidence.prior_)}"
    if column.known is None:
        finding = (
            f"Column {column.name!r} alone makes the estimate low: without it, that of 'auto' "
            f"would be {shares}, and known positives would still stand out."
        )
    else:
        finding = (
            f"Column {column.name!r} seems to reveal labeled rows: "
            f"{percent(column.known / sizes[0])} of the known positives, but only "
            f"{percent(column.found / sizes[1])} of the unlabeled rows have a certain value, or "
            f"one at all. Without this column, the estimate of 'auto' would be {shares}."
        )
    return Caution(
        finding,
        "Leave it out if it has to do with how rows were labeled, such as a date of confirmation "
        "or a flag of an earlier check.",
        remedy="drop",
        column=column.name,
    )


def on_decisive(column: Decisive, without: Evidence) -> str:
    """Return a note on a column that decides the estimate."""
    share = (
        f"{percent(without.prior_)} ({percent(without.low_)} to {percent(without.high_)})"
        if stands_out(without.separation_)
        else f"unknown, but at most {percent(without.upper_bound_)}"
    )
    return (
        f"Column {column.name!r} decides most: it has {column.gain:.0%} of the gain of all splits "
        f"in trees. Without it, the share would be {share}."
    )
