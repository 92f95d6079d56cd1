"""Exact copies: rows that repeat more often than independent rows do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse, special

from classprior._core.basis import stacked
from classprior._core.types import Doubles, Ints, Keys, Rows
from classprior._samples.matching import KnownAgain, column_keys, row_keys
from classprior._samples.samples import Samples
from classprior._tables.parameters import SAMPLES
from classprior.result import Caution

_SIGNIFICANT = 0.001
_MANY = 0.05  # share of a sample that repeats another row
_MANY_KNOWN = 0.01  # share of the known positives that are also among the unlabeled rows
_MOST_OFTEN = 5  # numbers of occurrences that are tested
_FEWEST = 10  # repeated rows from which columns are judged
_SEVERAL = 3  # columns of more than two values from which near-agreement is judged
# A row that occurs more often than both is not a copy, but frequent, such as a row of zeros.
_FREQUENT, _FREQUENT_SHARE = 20, 0.01


def repeat_p_value(n_values: Ints, fewest: int) -> float:
    r"""Return the p-value of so many values that occur a certain number of times.

    ``n_values[j]`` is the number of values that occur j times, known from j = ``fewest`` on: 0 for
    a list of values that are looked for, otherwise 1. If rows are independent, value i occurs
    Poisson(:math:`\lambda_i`) times, so that the expected numbers
    :math:`E_j = \sum_i e^{-\lambda_i} \lambda_i^j / j!` satisfy

    .. math:: (j!\,E_j)^2 \le (j - 1)!\,E_{j-1}\;(j + 1)!\,E_{j+1}

    by the inequality of Cauchy and Schwarz, whatever the distribution of the rows. Copies violate
    it: too many values occur exactly twice, say. If all :math:`\lambda_i` are equal, the number k
    of values that occur j + 1 times, given how many values occur j - 1 to j + 1 times and how often
    in total, is distributed in proportion to

    .. math:: \frac{(j / (j + 1))^k}{(k - s)!\,(N - 2k + s)!\,k!},

    and the p-value is the probability of at most as many as there are; it is larger for other
    :math:`\lambda_i`. The smallest p-value is multiplied by the number of tests.
    """
    p_values = [_few_above(n_values, j) for j in range(fewest + 1, len(n_values) - 1)]
    return min(1.0, len(p_values) * min(p_values))


def _few_above(n_values: Ints, j: int) -> float:
    """Return the probability of at most so many values that occur j + 1 times."""
    below, exactly, above = map(int, n_values[j - 1 : j + 2])
    total, s = below + exactly + above, above - below
    k = np.arange(max(0, s), (total + s) // 2 + 1)
    factorials = special.gammaln(np.stack([k - s, total - 2 * k + s, k]) + 1.0).sum(axis=0)
    logs = k * np.log(j / (j + 1.0)) - factorials
    weights = np.exp(logs - logs.max())
    return float(weights[k <= above].sum() / weights.sum())


def are_copies(X: Rows, n_repeated: int) -> bool:
    """Return whether some of the distinct rows X (``n_repeated``) recur as copies, not by chance.

    The values of sparse rows are not judged.
    """
    if sparse.issparse(X) or n_repeated < _FEWEST:
        return False
    keys = row_keys(X)
    return _recur_alone(X, keys, n_repeated) or _agree_in_all(X, keys, n_repeated)


def _recur_alone(X: Doubles, keys: Keys, n_repeated: int) -> bool:
    """Return whether a value that recurs in some column hardly ever recurs without its whole row.

    If such a column were coarse, its values would recur in rows that differ elsewhere.
    """
    return X.shape[1] > 1 and any(
        len(X) - len(np.unique(X[:, column])) <= n_repeated / 10
        and _vary(keys - column_keys(X, column))
        for column in range(X.shape[1])
    )


def _agree_in_all(X: Doubles, keys: Keys, n_repeated: int) -> bool:
    """Return whether hardly any rows agree in all columns but one, beside those that agree in all.

    Independent rows that agree in all columns by chance are outnumbered by rows that agree in all
    but one. Columns of two values are not considered, since several of them may stand for one
    category.
    """
    several = [column for column in range(X.shape[1]) if _has_several_values(X[:, column])]
    return len(several) >= _SEVERAL and all(
        len(X) - len(np.unique(keys - column_keys(X, column))) <= n_repeated / 10
        for column in several
    )


def _has_several_values(column: Doubles) -> bool:
    return bool(np.any((column != column.min()) & (column != column.max())))


def _vary(keys: Keys) -> bool:
    """Return whether two keys differ with a probability of at least one half."""
    _, counts = np.unique(keys, return_counts=True)
    return bool(np.sum((counts / len(keys)) ** 2) <= 0.5)


def about_copies(drawn: Samples) -> Iterator[Caution]:
    """Yield a warning if many rows of a sample repeat others, more than chance explains."""
    for sample, X in enumerate(drawn.rows):
        groups = None if drawn.units.groups is None else drawn.units.groups[sample]
        share = _share_of_copies(X, groups)
        if share > _MANY:
            yield Caution(
                f"Copies: {share:.0%} of the {SAMPLES[sample]} repeat another row, more than "
                "chance explains. Copies in different folds bias the estimate and void the upper "
                "bound.",
                "If a case was recorded several times, keep one of its rows; if rows describe the "
                "same thing, such as a product, keep them together.",
                remedy="group",
            )


def _share_of_copies(X: Rows, groups: Keys | None) -> float:
    """Return the share of rows that repeat another in an inexplicable way; 0 if there are none."""
    keys = row_keys(X)
    if groups is not None:  # copies in one group do no harm
        keys = np.unique(np.column_stack([keys, groups]), axis=0)[:, 0]
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    is_rare = counts <= max(_FREQUENT, _FREQUENT_SHARE * len(keys))
    share = float(np.sum(counts[is_rare] - 1) / len(keys))
    if share <= _MANY:
        return 0.0
    if repeat_p_value(_numbers(counts), fewest=1) < _SIGNIFICANT:
        return share
    if groups is not None:
        return 0.0
    return share if are_copies(X[first], int(np.sum(counts[is_rare] > 1))) else 0.0


def _numbers(counts: Ints) -> Ints:
    """Return how many values occur 0, 1, 2, ... times."""
    return np.bincount(counts, minlength=_MOST_OFTEN + 2)[: _MOST_OFTEN + 2]


def n_found_again(again: KnownAgain, drawn: Samples) -> int:
    """Return how many known positives are among the unlabeled rows; 0 if chance explains it."""
    is_rare = again.found <= max(_FREQUENT, _FREQUENT_SHARE * again.n_unlabeled)
    n_again = int(np.sum(again.known[is_rare & (again.found > 0)]))
    if n_again <= _MANY_KNOWN * again.known.sum():
        return 0
    n_values = _numbers(again.found[is_rare])
    if repeat_p_value(n_values, fewest=0) < _SIGNIFICANT:
        return n_again
    if np.sum(again.found > 1) > n_values[1] / 10:  # they are not copied once, but frequent
        return 0
    positive, unlabeled = map(row_keys, drawn.rows)
    _, first = np.unique(np.concatenate([positive, unlabeled]), return_index=True)
    n_repeated = len(np.intersect1d(positive, unlabeled))
    return n_again if are_copies(stacked(*drawn.rows)[first], n_repeated) else 0


def about_known(again: KnownAgain, drawn: Samples) -> Iterator[Caution]:
    """Yield a warning if known positives are also among the unlabeled rows."""
    n_again = n_found_again(again, drawn)
    if n_again:
        known, unlabeled = again.pairs[0]
        yield Caution(
            f"Known positives among the unlabeled rows: {n_again:,} of the "
            f"{again.known.sum():,} known positives have the same values as an unlabeled row, such "
            f"as known positive {known:,} and unlabeled row {unlabeled:,}, counted from 0. Such "
            "copies bias the estimate and void the upper bound.",
            "Leave known positives out of the unlabeled rows.",
            remedy="leave out known",
        )
