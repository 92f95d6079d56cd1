"""Sums of the basis per bin, compiled by numba: phi stays in registers and is never stored.

Four rows at a time meet a block of centers. Their squared distances come from differences in
float64; then a run of bandwidths takes two exponentials, and a squaring for each other bandwidth,
in float32. The loops over centers are written so that compilers vectorize them: constant lengths,
flat buffers and one statement per row.
"""

from __future__ import annotations

from math import factorial, log
from typing import Any

import numpy as np
from numba import config, njit

from classprior._core.basis import GaussianBasis, ladders
from classprior._core.types import Doubles, Ints, Rows, Singles

if config.DISABLE_JIT:
    raise ImportError(
        "NUMBA_DISABLE_JIT is set, and uncompiled loops over rows would be far too slow"
    )

# Centers per block, so that all buffers of a block fit in the first-level cache.
_BLOCK = 128
# Bandwidths in a run, and the second one to be exponentiated. The relative error of phi doubles
# whenever it is squared: from at most 1.8e-7 to 6e-6 after five squarings.
_RUNGS, _SECOND = 11, 6
_STEEPER = np.float32(2**_SECOND)
# Groups of four rows summed in float32; these partial sums are added in float64.
_GROUPS = 16
# The kernel takes rows of whole groups of features.
_FEATURES = 4
_LOWEST = np.float32(-125.0)  # exponent from which phi is zero but for _NOTHING
_NOTHING = np.finfo(np.float32).tiny  # keeps phi from becoming a subnormal number, which is slow
# Adding this number to another rounds it to an integer and leaves that integer in the lowest bits.
_ROUND = np.float32(1.5 * 2**23)
_TAYLOR = tuple(np.float32(log(2.0) ** k / factorial(k)) for k in range(8))
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7 = _TAYLOR
# A multiplication and an addition may become one instruction.
_compiled = njit(cache=True, nogil=True, fastmath={"contract"})


class FusedBasis:
    """A basis with dense centers, laid out for the compiled kernel."""

    def __init__(self, basis: GaussianBasis) -> None:
        n_blocks = -(-basis.centers.shape[0] // _BLOCK)
        padded = _padded(basis.centers, n_blocks * _BLOCK)
        self._centers = padded.reshape(n_blocks, _BLOCK, -1).swapaxes(1, 2).copy()
        runs = ladders(basis.sigmas, _RUNGS)
        self._rungs = np.array([run + [-1] * (_RUNGS - len(run)) for run in runs])
        # phi = 2^(rate |x - c|^2) at the first rung of a run
        self._rates = -0.5 / (log(2.0) * basis.sigmas[self._rungs[:, 0]] ** 2)

    def add(self, X: Rows, ends: Ints, own_center: Ints, sums: Doubles) -> None:
        """Add phi over rows sorted by bin to the sums of the bins, which end at ``ends``."""
        rows = _padded(X, X.shape[0] + 3)  # the last group of four may be incomplete
        _add(rows, ends, own_center, self._centers, self._rates, self._rungs, sums)


def _padded(X: Rows, n_rows: int) -> Doubles:
    """Return X in float64, with rows and columns of zeros added."""
    padded = np.zeros((n_rows, -(-X.shape[1] // _FEATURES) * _FEATURES))
    padded[: X.shape[0], : X.shape[1]] = X
    return padded


@_compiled
def _add(
    X: Doubles,
    ends: Ints,
    own_center: Ints,
    centers: Doubles,
    rates: Doubles,
    rungs: Ints,
    sums: Doubles,
) -> None:
    """Add phi to ``sums``, of shape (n_bins, n_sigmas, n_centers)."""
    squared = np.empty(4 * _BLOCK)
    exponents = np.empty(4 * _BLOCK, np.float32)
    partial = np.zeros((len(rates), _RUNGS * _BLOCK), np.float32)
    for number in range(len(centers)):
        block, first = centers[number], number * _BLOCK
        begin = 0
        for bin_, end in enumerate(ends):
            for group, i in enumerate(range(begin, end, 4)):
                _square_distances(X, i, block, squared)
                for run in range(len(rates)):
                    own = own_center[i : min(i + 4, end)]
                    _set_exponents(squared, rates[run], own, first, exponents)
                    _add_run(exponents, partial[run])
                if group % _GROUPS == _GROUPS - 1 or i + 4 >= end:
                    _add_partial(partial, rungs, first, sums[bin_])
            begin = end


@_compiled
def _square_distances(X: Doubles, i: int, centers: Doubles, squared: Doubles) -> None:
    """Set the squared distances of four rows, from row i on, to a block of centers."""
    squared[:] = 0.0
    for f in range(0, len(centers), _FEATURES):
        a0, b0, c0, d0 = X[i, f], X[i, f + 1], X[i, f + 2], X[i, f + 3]
        a1, b1, c1, d1 = X[i + 1, f], X[i + 1, f + 1], X[i + 1, f + 2], X[i + 1, f + 3]
        a2, b2, c2, d2 = X[i + 2, f], X[i + 2, f + 1], X[i + 2, f + 2], X[i + 2, f + 3]
        a3, b3, c3, d3 = X[i + 3, f], X[i + 3, f + 1], X[i + 3, f + 2], X[i + 3, f + 3]
        for j in range(_BLOCK):
            a, b, c, d = centers[f, j], centers[f + 1, j], centers[f + 2, j], centers[f + 3, j]
            squared[j] += (a0 - a) ** 2 + (b0 - b) ** 2 + (c0 - c) ** 2 + (d0 - d) ** 2
            squared[j + _BLOCK] += (a1 - a) ** 2 + (b1 - b) ** 2 + (c1 - c) ** 2 + (d1 - d) ** 2
            squared[j + 2 * _BLOCK] += (a2 - a) ** 2 + (b2 - b) ** 2 + (c2 - c) ** 2 + (d2 - d) ** 2
            squared[j + 3 * _BLOCK] += (a3 - a) ** 2 + (b3 - b) ** 2 + (c3 - c) ** 2 + (d3 - d) ** 2


@_compiled
def _set_exponents(
    squared: Doubles, rate: float, own_center: Ints, first: int, exponents: Singles
) -> None:
    """Set the exponents of phi; the lowest for rows that are missing or stand on the center."""
    for j in range(4 * _BLOCK):
        exponents[j] = squared[j] * rate
    for row in range(4):
        if row >= len(own_center):
            exponents[row * _BLOCK : (row + 1) * _BLOCK] = _LOWEST
        elif first <= own_center[row] < first + _BLOCK:
            exponents[row * _BLOCK + own_center[row] - first] = _LOWEST


@_compiled
def _add_run(exponents: Singles, partial: Singles) -> None:
    """Add phi of four rows for a run of bandwidths, each phi the square of the previous one."""
    for j in range(_BLOCK):
        t0, t1 = exponents[j], exponents[j + _BLOCK]
        t2, t3 = exponents[j + 2 * _BLOCK], exponents[j + 3 * _BLOCK]
        p0, p1, p2, p3 = _power_of_two(t0), _power_of_two(t1), _power_of_two(t2), _power_of_two(t3)
        partial[j] += (p0 + p1) + (p2 + p3)
        for k in range(1, _SECOND):
            p0, p1 = p0 * p0 + _NOTHING, p1 * p1 + _NOTHING
            p2, p3 = p2 * p2 + _NOTHING, p3 * p3 + _NOTHING
            partial[j + k * _BLOCK] += (p0 + p1) + (p2 + p3)
        p0, p1 = _power_of_two(_STEEPER * t0), _power_of_two(_STEEPER * t1)
        p2, p3 = _power_of_two(_STEEPER * t2), _power_of_two(_STEEPER * t3)
        partial[j + _SECOND * _BLOCK] += (p0 + p1) + (p2 + p3)
        for k in range(_SECOND + 1, _RUNGS):
            p0, p1 = p0 * p0 + _NOTHING, p1 * p1 + _NOTHING
            p2, p3 = p2 * p2 + _NOTHING, p3 * p3 + _NOTHING
            partial[j + k * _BLOCK] += (p0 + p1) + (p2 + p3)


@_compiled
def _add_partial(partial: Singles, rungs: Ints, first: int, sums: Doubles) -> None:
    """Move the partial sums for a block of centers to ``sums``, of shape (n_sigmas, n_centers)."""
    for run in range(len(rungs)):
        for k in range(_RUNGS):
            part = partial[run, k * _BLOCK : (k + 1) * _BLOCK]
            if rungs[run, k] >= 0:
                total = sums[rungs[run, k], first : first + _BLOCK]
                for j in range(len(total)):
                    total[j] += part[j]
            part[:] = 0.0


@_compiled
def _power_of_two(t: Any) -> Any:
    """Return 2^t = 2^n 2^f, with an integer n and the Taylor series of 2^f for |f| <= 1/2."""
    t = max(t, _LOWEST)
    rounded = np.float32(t + _ROUND)
    f = t - (rounded - _ROUND)
    series = f * (_C3 + f * (_C4 + f * (_C5 + f * (_C6 + f * _C7))))
    # The eight bits of a number's exponent, 127 + n, come after 23 bits of its fraction.
    bits = np.int32((rounded.view(np.int32) << 23) + (127 << 23))
    return (_C0 + f * (_C1 + f * (_C2 + series))) * bits.view(np.float32)
