"""Notes on how an estimate was computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from classprior._samples.samples import Samples
from classprior._samples.units import Units
from classprior._tables.parameters import SAMPLES

_KERNELS = {"numba": "numba", "numpy": "NumPy"}


def on_intervals(methods: Sequence[str]) -> Iterator[str]:
    """Yield what the intervals of methods without intervals of their own do not say."""
    if methods:
        one = len(methods) == 1
        yield (
            f"The interval{'' if one else 's'} of {', '.join(methods)} reflect{'s' * one} chance, "
            f"but no bias: where the classes overlap, {'it' if one else 'they'} often "
            f"lie{'s' * one} above the true share."
        )


def notes_on(samples: Samples, estimator: Any, judged: Any) -> Iterator[str]:
    """Yield notes on the rows that were used, on kernels, groups and weights.

    ``judged`` is the estimator whose scores the estimate or its bound is based on.
    """
    sizes = samples.bins.n_counted
    n_fitted = getattr(judged, "n_fitted_", sizes)
    if n_fitted != sizes:
        yield _on_drawn_rows(n_fitted, sizes, counts_all=judged.takes_checkpoint)
    if hasattr(estimator, "kernel_"):
        yield f"The sums over rows were computed with {_KERNELS[estimator.kernel_]}."
    if samples.units.groups is not None:
        yield from _on_shared_groups(samples.units)
    if samples.n_negative:
        is_grouped, has_scores = samples.units.groups is not None, hasattr(judged, "kind_scores_")
        yield (
            f"Confirmed negatives ({samples.n_negative:,}) are not among the unlabeled rows. The "
            f"estimate was {'checked' if has_scores and not is_grouped else 'not checked'} with "
            f"them{', because rows are grouped' if is_grouped else ''}."
        )
    if not samples.units.count_alike:
        yield (
            "The rows are weighted: the estimate is a share of the total weight, and numbers of "
            "positive rows are this share of the number of rows."
        )
    yield from _on_left_out(samples)


def _on_left_out(samples: Samples) -> Iterator[str]:
    n_known = samples.units.n_known_left_out
    sizes = samples.sizes[0], samples.sizes[1] - (n_known or 0)
    left_out = [
        f"{size - counted:,} of the {size:,} {kind}"
        for size, counted, kind in zip(sizes, samples.bins.n_counted, SAMPLES, strict=True)
        if counted < size
    ]
    if left_out:
        yield f"Rows of weight 0 were left out: {' and '.join(left_out)}."
    if n_known is not None:
        yield (
            f"{n_known:,} of the {samples.sizes[1]:,} unlabeled rows repeat known positives and "
            "were left out. The share is that of the others."
        )


def _on_drawn_rows(n_fitted: tuple[int, int], sizes: tuple[int, int], *, counts_all: bool) -> str:
    positive, unlabeled = (
        f"all {size:,} {kind}" if n == size else f"{n:,} of the {size:,} {kind}"
        for n, size, kind in zip(n_fitted, sizes, SAMPLES, strict=True)
    )
    if not counts_all:
        return f"The estimate is based on {positive} and {unlabeled}, drawn at random."
    return (
        f"The classifiers were fitted to {positive} and {unlabeled}, drawn at random. All rows "
        "were scored and counted."
    )


def _on_shared_groups(units: Units) -> Iterator[str]:
    assert units.groups is not None
    numbers = units.counted or tuple(np.arange(len(keys)) for keys in units.groups)
    groups = [keys[rows] for keys, rows in zip(units.groups, numbers, strict=True)]
    shared = np.intersect1d(*groups)
    if len(shared) == 0:
        return
    positive, unlabeled = (
        rows[np.isin(keys, shared)] for keys, rows in zip(groups, numbers, strict=True)
    )
    match = numbers[1][groups[1] == units.groups[0][positive[0]]]
    found = "1 group has" if len(shared) == 1 else f"{len(shared):,} groups have"
    yield (
        f"{found} rows in both samples: {len(positive):,} of the known positives and "
        f"{len(unlabeled):,} of the unlabeled rows, such as known positive {positive[0]} and "
        f"unlabeled row {match[0]}, counted from 0. They stay in one fold. If all rows of a group "
        "have the same class, these unlabeled rows are known positives: leave them out."
    )
