"""What the data say against the estimate, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from scipy import sparse, stats

from classprior._core.messages import Caution, percent
from classprior._core.types import Doubles, Rows

_KERNEL_COLUMNS = 20  # beyond, Gaussians around rows hardly touch each other
_FEW_ROWS = 50
_MANY_COPIES = 0.05
_LEAK = 0.99  # area under the curve of one column
# Scores have noise of their own, which bends a level tail a little; less than this is not said.
_STILL_FALLING = 0.85
_DEEP_TAIL = 0.1
_NEAR_ZERO = 0.05  # an estimate below it may be the work of a column that gives the label away
_SIGNIFICANT = 0.001
_MANY_POSITIVES = 0.1
_HARDLY_ANY = 0.01  # times as often


class Evidence(Protocol):
    """What a fitted AutoPrior says about the data."""

    prior_: float
    low_: float
    high_: float
    extrapolated_: float
    extrapolated_high_: float
    round_priors_: Doubles
    scores_: dict[str, tuple[Doubles, Doubles]]


def diagnose(
    X_positive: Rows,
    X_unlabeled: Rows,
    evidence: Evidence,
    names: Sequence[str] | None = None,
) -> tuple[Caution, ...]:
    """Return a sentence or two for everything that speaks against the estimate."""
    found = [*_from_scores(evidence)]
    if not sparse.issparse(X_positive):
        found += [*_from_rows(X_positive, X_unlabeled, names)]
        if evidence.high_ < _NEAR_ZERO:
            found += [*_giveaways(X_positive, X_unlabeled, names)]
    return tuple(found)


def _from_scores(evidence: Evidence) -> Iterator[Caution]:
    fewest = min(map(len, next(iter(evidence.scores_.values()))))
    if fewest < _FEW_ROWS:
        yield Caution(
            f"Few rows: the smaller sample has {fewest}. The interval is wide and may still be too "
            "narrow.",
            "Collect more rows, and believe the interval rather than the estimate.",
        )
    is_zero = evidence.high_ < 0.01
    if evidence.extrapolated_high_ < _STILL_FALLING * evidence.prior_ and not is_zero:
        yield Caution(
            f"No purely positive region was found: the share still falls, to about "
            f"{evidence.extrapolated_:.3f}, towards the rows most like the positives.",
            "Take the estimate as an upper bound; columns that separate the classes better would "
            "bring it down.",
        )
    p_value = foreign_positives_p_value(evidence)
    if p_value < _SIGNIFICANT:
        yield Caution(
            f"Known positives that look like no unlabeled row (p = {p_value:.1g}): too few "
            "unlabeled rows score as high as the top tenth of the known positives do. If those "
            "positives come from elsewhere or were chosen in a special way, the share of positives "
            "like them is smaller than that of all positives, and no estimate from these samples "
            "is right.",
            "Find out where they come from; leave them out if they are of another kind.",
        )
    if evidence.prior_ >= 1.0 or evidence.low_ >= 0.99:
        yield Caution(
            "The estimate is at 1: either nearly all unlabeled rows are positive, or the columns "
            "cannot tell the classes apart.",
            "Look whether the columns say anything about the class.",
        )
    if is_zero:
        yield Caution(
            "The estimate is at 0: either hardly any unlabeled row is positive, or something tells "
            "labeled from unlabeled rows that has nothing to do with the class, or many known "
            "positives come from elsewhere.",
            "Look for a column that gives the label away, for swapped samples, for positives from "
            "elsewhere.",
        )
    spread = float(np.std(evidence.round_priors_))
    if spread > (evidence.high_ - evidence.low_) / 4.0 and spread > 0.02:
        yield Caution(
            f"Unstable: estimates from different folds differ by {spread:.3f} (standard "
            "deviation).",
            "Raise n_repeats, or collect more rows.",
        )


def about_bound(method: str, prior: float, upper_bound: float) -> list[Caution]:
    """Return what is to be said of an estimate that the bound rules out."""
    if prior <= upper_bound:
        return []
    advice = "Believe the bound, or use 'auto'."
    if method == "penl1":
        advice += " With many rows the smaller end of lams holds the estimate up: lower it."
    return [
        Caution(
            f"Above the bound: the estimate, {percent(prior)}, is above the certified upper bound "
            f"of {percent(upper_bound)}, and its interval does not know that.",
            advice,
        )
    ]


def about_method(method: str, over_estimates: bool, n_features: int) -> list[Caution]:
    """Return what speaks against a kernel method on such data."""
    found = []
    if over_estimates:
        found.append(
            Caution(
                f"The method {method!r} over-estimates wherever the classes overlap.",
                "Use 'auto' or 'penl1', which do not.",
            )
        )
    if n_features > _KERNEL_COLUMNS:
        found.append(
            Caution(
                f"High dimension: with {n_features} columns Gaussians around rows see little.",
                "Use 'auto', which is made for that.",
            )
        )
    return found


def foreign_positives_p_value(evidence: Evidence) -> float:
    """Return how likely so few unlabeled rows among the top tenth of positives are by chance.

    If positives among the unlabeled rows are like the known ones, a tenth of them scores as high
    as the top tenth of the known ones, so that the unlabeled rows there are at least binomial with
    a tenth of the prior. The prior is taken at the low end of its interval, and the share of the
    tail at its lower 99.9% limit.
    """
    n, m = map(len, next(iter(evidence.scores_.values())))
    rank = max(1, int(np.ceil(_DEEP_TAIL * n)))
    share = stats.beta.ppf(_SIGNIFICANT, rank, n - rank + 1)
    values = []
    for positive, unlabeled in evidence.scores_.values():
        threshold = np.sort(positive)[::-1][rank - 1]
        beyond = int(np.sum(unlabeled >= threshold))
        values.append(float(stats.binom.cdf(beyond, m, share * evidence.low_)))
    return min(1.0, len(values) * min(values))


def _from_rows(
    X_positive: Rows, X_unlabeled: Rows, names: Sequence[str] | None
) -> Iterator[Caution]:
    copies, shared = _share_of_copies(X_positive, X_unlabeled)
    if copies > _MANY_COPIES:
        also = f", and {shared:.0%} of the known positives stand among the unlabeled rows, too"
        yield Caution(
            f"Copies: {copies:.0%} of the rows repeat another one{also if shared else ''}. Copies "
            "in different folds confirm each other and bias the estimate.",
            "Drop them, known positives from the unlabeled rows first, or keep them in one fold "
            "with cv.",
        )
    separation = _separation_by_column(X_positive, X_unlabeled)
    leaks: dict[str, float] = {}  # a column of a data frame may have become several
    for column in map(int, np.flatnonzero(separation > _LEAK)):
        name = repr(names[column]) if names else str(column)
        leaks[name] = max(leaks.get(name, 0.0), float(separation[column]))
    for name, area in list(leaks.items())[:5]:
        yield Caution(
            f"Column {name} alone tells labeled from unlabeled rows (area under the curve "
            f"{area:.3f}).",
            "If it was recorded because of the label, such as an id or a date of entry, leave it "
            "out.",
        )


def _giveaways(
    X_positive: Doubles, X_unlabeled: Doubles, names: Sequence[str] | None
) -> Iterator[Caution]:
    """Find values, among them gaps, that many positives have and hardly any unlabeled row."""
    both = X_positive, X_unlabeled
    low, high = (f([f(X, axis=0) for X in both], axis=0) for f in (np.min, np.max))
    has_two_values = np.all([np.all((low == X) | (high == X), axis=0) for X in both], axis=0)
    found: dict[str, float] = {}
    for value in (low, high):
        positive, unlabeled = (np.mean(value == X, axis=0) for X in both)
        given_away = (positive >= _MANY_POSITIVES) & (unlabeled < _HARDLY_ANY * positive)
        for column in map(int, np.flatnonzero(given_away & has_two_values & (low < high))):
            name = repr(names[column]) if names else str(column)
            found[name] = max(found.get(name, 0.0), float(positive[column]))
    for name, share in list(found.items())[:5]:
        yield Caution(
            f"Column {name} has a value, or a gap, that {share:.0%} of the known positives have "
            "and hardly any unlabeled row.",
            "If it was filled in because of the label, such as on confirmation, leave it out.",
        )


def _share_of_copies(X_positive: Doubles, X_unlabeled: Doubles) -> tuple[float, float]:
    """Share of all rows that repeat another one, and of positives that are unlabeled rows too."""
    X = np.ascontiguousarray(np.vstack([X_positive, X_unlabeled]))
    rows = X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1])))[:, 0]
    _, first = np.unique(rows, return_inverse=True)
    n = len(X_positive)
    return 1.0 - (first.max() + 1) / len(X), float(np.mean(np.isin(first[:n], first[n:])))


def _separation_by_column(X_positive: Doubles, X_unlabeled: Doubles) -> Doubles:
    """Area under the curve of each column, or of its negative where that is larger."""
    n, m = len(X_positive), len(X_unlabeled)
    ranks = stats.rankdata(np.vstack([X_positive, X_unlabeled]), axis=0)[:n].sum(axis=0)
    area = (ranks - n * (n + 1) / 2.0) / (n * m)
    return np.maximum(area, 1.0 - area)
