"""A test whether known positives are typical of all positives.

If they are, the unlabeled rows without their share of positives are the negatives. Along a score
that tells one kind of positives from the unlabeled rows, negatives become rarer from where most of
them are toward that kind. So if more rows are left in the middle of a kind than in an interval of
the same length on the way there, some of these rows are positives of a kind that is seldom labeled.
Negatives that overlap with a kind do not look like that: they are even more frequent on the way.
Only negatives that come in kinds of their own may do. They become rarer toward those of the kind's
positives that are the easiest to tell from unlabeled rows, which hidden positives do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from classprior._core.messages import p_text
from classprior._core.types import Bools, Doubles, Ints, Rows
from classprior._samples.samples import Samples
from classprior._scores.crossfit import TOGETHER, cross_fit, default_classifiers
from classprior._scores.subtypes import clusters_of_rows, standardized
from classprior._scores.tails import WINDOW, ScoreTails, extrapolated_share
from classprior.result import Caution

_KINDS = (4, 16)  # kinds at most: a coarse division of the positives and a fine one
_MIDDLE = 0.5  # share of the positives of a kind in its middle
_STEPS = 4  # intervals begin a quarter of their length apart
_MOST_STEPS = 400
_MOST_ROWS = 10_000  # of each sample; more would take longer than the estimate
_Z_AT_END = 1.645  # the 5% level
_POINTED = (TOGETHER, "trees")  # scores that come closest to the purest rows
BIASED = 0.01  # level of the test
_SCORED_BY = ("linear", "kernel")  # trees would lump the rows of an interval together


class Typicality(NamedTuple):
    """A test whether known positives are typical, and the kinds of positives that it compares."""

    p_value: float
    labeled: Doubles  # share of each kind in the known positives
    found: Doubles  # number of unlabeled rows in the middle of each kind
    expected: Doubles  # the most that there should be, up to noise, if known positives are typical


class _Excess(NamedTuple):
    """Rows in the middle of a kind, beyond what typical positives explain."""

    z: float
    found: float
    expected: float


_NO_EXCESS = _Excess(-np.inf, 0.0, 0.0)


def typicality(
    samples: Samples,
    scores: Mapping[str, tuple[Doubles, Doubles]],
    prior: float,
    error: float,
    *,
    cv: Any = 5,
    max_rows: int | None = None,
) -> Typicality:
    r"""Test whether the known positives of some samples are typical of all positives.

    For a kind of positives and a score, let C be the shortest interval with half of the kind's
    positives, and F an interval of the same length between C and the bulk of the unlabeled rows.
    With U and P for the numbers of unlabeled rows and known positives of any kind,

    .. math:: z = \max_F \frac{U_C - U_F - \Delta}{\sqrt{U_C + U_F + 1
              + (\pi m / n)^2 (P_C + P_F) + (\Delta\, e / \pi)^2}},
              \qquad \Delta = \pi \frac{m}{n} (P_C - P_F),

    where e is the standard error of the prior. If known positives are typical, and negatives are
    at most as frequent in C as in F, the numerator has a negative mean. Kinds are clusters of the
    known positives, first up to 4, then up to 16, but at most two for each column. Each is scored
    by a linear and a kernel classifier, cross-fitted, of which the larger z counts. The p-value is
    that of the largest z times the numbers of kinds and of clusterings.

    Kinds count only if there are still more unlabeled rows, at the 5% level, at the end of the
    tail of the ``scores`` that tell all known positives from the unlabeled rows. These are the
    scores of the rows that ``samples.subsample(max_rows)`` returns.
    """
    all_drawn = samples.subsample(max_rows)
    drawn, numbers = all_drawn.subsample(_MOST_ROWS), all_drawn.drawn_numbers(_MOST_ROWS)
    X, is_positive = drawn.stacked_rows()
    by_name = {
        name: np.concatenate([of_rows[i] for of_rows, i in zip(pair, numbers, strict=True)])
        for name, pair in scores.items()
    }
    pointed = [by_name[name] for name in _POINTED if name in by_name] or [*by_name.values()]
    folds = np.concatenate(drawn.folds_of_rows(samples.folds(cv)))
    seed = drawn.bins.seed_of_round(0)
    Z = standardized(X)

    def compared(n_kinds: int) -> Typicality:
        # In few columns, many clusters would be slices of a cloud rather than kinds.
        n_kinds = min(n_kinds, 2 * X.shape[1])
        kinds = clusters_of_rows(Z, is_positive, n_kinds, seed, n_init=10)
        sizes = np.bincount(kinds[is_positive])
        z, found, expected = np.empty((3, len(sizes)))
        for kind in range(len(sizes)):
            is_own, is_inside = is_positive & (kinds == kind), ~is_positive & (kinds == kind)
            at_end = [_z_at_end(s, is_positive, is_own, is_inside, prior, error) for s in pointed]
            excesses = [_NO_EXCESS]
            if np.mean(at_end) > _Z_AT_END:
                excesses += [
                    _excess(of_kind, is_positive, is_own, prior, error)
                    for of_kind in _scores_of_kind(X, is_positive, is_own, folds, seed)
                ]
            z[kind], found[kind], expected[kind] = max(excesses)
        p_value = len(_KINDS) * len(sizes) * stats.norm.sf(z.max())
        return Typicality(min(1.0, float(p_value)), sizes / sizes.sum(), found, expected)

    return min(map(compared, _KINDS), key=lambda test: test.p_value)


def about_typicality(p_value: float) -> list[Caution]:
    """Return a warning if known positives do not seem to be typical."""
    if p_value >= BIASED:
        return []
    return [
        Caution(
            "Biased labels? Known positives do not seem to be typical of all positives: more "
            "unlabeled rows look like one kind of them than the other kinds would suggest, and "
            f"negatives do not explain it ({p_text(p_value)}). Kinds that are seldom labeled are "
            "then undercounted, the share is higher than estimated, and the upper bound does not "
            "hold.",
            "Find out how the known positives were selected. The method 'subtypes' allows for "
            "biased labels if every kind of positives is among the known ones. To be sure, look at "
            "rows: 'classprior review' chooses which.",
            remedy="subtypes",
        )
    ]


def standard_error(high: float, prior: float, confidence: float) -> float:
    """Return the standard error of a prior, given the upper end of its interval."""
    return max(0.0, float(high - prior)) / float(stats.norm.isf((1.0 - confidence) / 2.0))


def _scores_of_kind(
    X: Rows, is_positive: Bools, is_own: Bools, folds: Ints, seed: int
) -> list[Doubles]:
    """Return scores of all rows that tell a kind of positives from the unlabeled rows."""
    if np.bincount(folds[is_own]).max() == is_own.sum():
        return []  # in one fold, so that nothing is left to learn from
    models = {name: default_classifiers(X)[name] for name in _SCORED_BY}
    # Other positives are scored, but not learned from.
    weights = (is_own | ~is_positive).astype(np.float64)
    return [
        fitted.scores
        for fitted in cross_fit(models, X, is_own, folds, seed, weights=weights, score=_decision)
    ]


def _decision(model: Any, X: Rows) -> Doubles:
    """Return log-odds that are not clipped, so that rows are spread out at both ends."""
    decision: Doubles = model.decision_function(X)
    return decision


def _excess(
    scores: Doubles, is_positive: Bools, is_own: Bools, prior: float, error: float
) -> _Excess:
    """Compare the middle of a kind with intervals of the same length on the way to the bulk."""
    positive, unlabeled = np.sort(scores[is_positive]), np.sort(scores[~is_positive])
    start, end = _middle(np.sort(scores[is_own]))
    length, m = end - start, len(unlabeled)
    n_below = int(np.searchsorted(unlabeled, start))
    # With fewer rows below, the bulk of the negatives may be in the middle of the kind itself.
    if length <= 0.0 or n_below < m / 2.0:
        return _NO_EXCESS
    n_steps = min(_MOST_STEPS, int(_STEPS * (start - unlabeled[0]) / length) + 1)
    starts = start - length * (1.0 + np.arange(n_steps) / _STEPS)
    U_F = _between(unlabeled, starts, starts + length)
    until_bulk = slice(None, int(np.argmax(U_F)) + 1)
    U_F, P_F = U_F[until_bulk], _between(positive, starts, starts + length)[until_bulk]
    U_C, P_C = (_between(rows, start, np.nextafter(end, np.inf)) for rows in (unlabeled, positive))
    per_positive = m / len(positive)
    net = per_positive * (P_C - P_F)
    variance = U_C + U_F + 1.0 + (prior * per_positive) ** 2 * (P_C + P_F) + (error * net) ** 2
    z = (U_C - U_F - prior * net) / np.sqrt(variance)
    best = int(np.argmax(z))
    return _Excess(float(z[best]), float(U_C), float(U_F[best] + prior * net[best]))


def _z_at_end(
    scores: Doubles,
    is_positive: Bools,
    is_own: Bools,
    is_inside: Bools,
    prior: float,
    error: float,
) -> float:
    r"""Return by how many standard errors a kind has too many unlabeled rows at its end.

    Their share h is extrapolated to the end of the tail, which removes negatives that thin out
    linearly: :math:`h = \frac1m \sum_u \psi(w_u)` over the unlabeled rows nearest to the kind,
    where w is the share of the kind's l n positives that score higher. For positives w is uniform,
    and :math:`E[\psi] = 1, E[\psi^2] = 4/W`. If known positives are typical, h is :math:`\pi l`.
    """
    tails = ScoreTails.from_scores(scores[is_own], scores[is_inside])
    positive, unlabeled, n_own, _ = tails.counts()
    m, labeled = float(np.sum(~is_positive)), float(n_own) / float(np.sum(is_positive))
    psi = extrapolated_share(positive, np.eye(len(positive)), n_own, 1.0, WINDOW, 1.0)
    share = float(psi @ unlabeled) / m
    square = 4.0 / WINDOW
    noise = max(float(psi**2 @ unlabeled) / m**2, square * max(share, 1.0 / m) / m)
    variance = noise + (square - 1.0) * share**2 / float(n_own) + (labeled * error) ** 2
    return (share - labeled * prior) / float(np.sqrt(variance))


def _middle(values: Doubles) -> tuple[float, float]:
    """Return the shortest interval that contains half of the sorted values."""
    size = int(np.ceil(_MIDDLE * len(values)))
    lengths = values[size - 1 :] - values[: len(values) - size + 1]
    first = int(np.argmin(lengths))
    return float(values[first]), float(values[first + size - 1])


def _between(ordered: Doubles, start: Any, end: Any) -> Any:
    """Count sorted values in the interval [start, end)."""
    return np.searchsorted(ordered, end) - np.searchsorted(ordered, start)
