r"""Exact confidence limits for a share from groups of rows.

Rows of a group may depend on each other, but groups are independent. Let group g have :math:`s_g`
rows, :math:`t_g` of which are in a tail, and let :math:`r = E[t] / E[s]` be the share of rows in
the tail. Then each :math:`1 + \lambda (t_g - r s_g)` has mean 1, so by Markov's inequality

.. math:: P\left(\prod_g \left(1 + \lambda (t_g - r s_g)\right) \ge \frac1\alpha\right) \le \alpha

as long as no factor is negative. The product is the capital of a gambler who bets :math:`\lambda`
on each group; values of r that make the gambler rich are rejected (Waudby-Smith and Ramdas, 2024,
Journal of the Royal Statistical Society B 86). The mean of the capitals for several :math:`\lambda`
has the same property. If no group has more than L rows, the largest bets that keep all factors
nonnegative are :math:`1/(r L)` for a lower limit and, with the sign turned, :math:`1/((1 - r) L)`
for an upper limit. In fractions of these, the capital is monotone in r.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from classprior._core.types import Doubles, Ints

# Bets as fractions of the largest one that keeps every factor nonnegative.
_BETS = 0.5 ** np.arange(8)
_STEPS = 50  # of bisection, to the precision of a double


def group_limits(
    in_tail: Doubles, sizes: Doubles, largest: float, alpha: float, *, upper: bool
) -> Doubles:
    """Return a confidence limit of the share of rows in each tail, at level ``alpha``.

    ``in_tail`` has shape (n_groups, n_tails). The limit holds if ``largest`` was chosen without
    looking at these groups; if one of them is larger, the limit is trivial.
    """
    n_tails = in_tail.shape[1]
    trivial = np.full(n_tails, 1.0 if upper else 0.0)
    if not len(sizes) or sizes.max() > largest:
        return trivial
    limits = []
    for of_tail in in_tail.T:
        # Few pairs of counts are distinct, and each is evaluated once.
        pairs, counts = np.unique(np.column_stack([of_tail, sizes]), axis=0, return_counts=True)
        t, s = pairs.T / largest

        def is_rejected(r: float, t: Doubles = t, s: Doubles = s, n: Ints = counts) -> bool:
            gains = (r * s - t) / (1.0 - r) if upper else (t - r * s) / r
            # At the ends of the range a factor can be zero, and the gambler is ruined.
            with np.errstate(divide="ignore"):
                log_capital = np.log1p(_BETS[:, None] * gains) @ n
            return bool(np.logaddexp.reduce(log_capital) - np.log(len(_BETS)) >= -np.log(alpha))

        limits.append(_boundary(is_rejected, upper=upper))
    return np.array(limits)


def _boundary(is_rejected: Callable[[float], bool], *, upper: bool) -> float:
    """Return the share at which rejection begins, by bisection, on the safe side."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        rejected = is_rejected(middle)
        if upper == rejected:
            high = middle
        else:
            low = middle
    return high if upper else low
