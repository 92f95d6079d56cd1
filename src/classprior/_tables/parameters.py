"""Validation of parameters: grids, folds, numbers of centers."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from classprior._core.messages import listed, warn
from classprior._core.types import Bools, Doubles, Ints
from classprior._tables.tables import unmasked

_MOST_DENSE_CENTERS = 1000
_WIDEST = 1e15
#: Names of the two samples in messages.
SAMPLES = ("known positives", "unlabeled rows")


def check_is_pair(values: Any, name: str) -> None:
    """Raise unless there is one value for each sample."""
    if not (isinstance(values, tuple | list) and len(values) == 2):
        raise TypeError(
            f"Expected {name} to be a column name, or a pair of arrays, one for each sample."
        )


def check_grid(
    values: ArrayLike | None, name: str, *, low: float = 1e-100, high: float = 1e100
) -> Doubles | None:
    """Return a copy of a grid of numbers as an array, or None for the default."""
    if values is None:
        return None
    try:
        grid = np.atleast_1d(np.array(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"Expected numbers as {name}, got {_abbreviated(values)}.") from error
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(
            f"Expected {name} to be a flat, non-empty list of numbers, got an array of shape "
            f"{grid.shape}. Leave it out to use the default."
        )
    if not np.all(inside := (grid >= low) & (grid <= high)):
        positive = "positive " if low > 0.0 else ""
        raise ValueError(
            f"Expected {positive}{name} from {low:g} to {high:g}, got {grid[~inside][0]:g}."
        )
    # The kernels of all bandwidths are computed from one, in single precision.
    if name == "sigmas" and grid.max() > _WIDEST * grid.min():
        raise ValueError(
            f"Expected sigmas within a factor of {_WIDEST:g}, got {grid.min():g} and "
            f"{grid.max():g}."
        )
    return grid


def check_thetas(thetas: ArrayLike | None, *, steps: int = 1000) -> Doubles:
    """Return the grid of candidate priors; by default 0 to 1 in equal steps."""
    grid = check_grid(thetas, "thetas", low=0.0, high=1.0)
    if grid is None:
        return np.arange(steps + 1) / steps  # prints as 0.009; linspace rounds differently
    if np.any(np.diff(grid) <= 0.0):
        raise ValueError(
            f"Expected strictly increasing thetas, got {listed(grid)}. Try numpy.unique(thetas)."
        )
    return grid


def check_share(value: float, name: str) -> None:
    """Raise unless the value is a share in (0, 1]."""
    if not (isinstance(value, Real) and 0.0 < value <= 1.0):
        raise ValueError(f"Expected {name} above 0 and up to 1, got {value!r}.")


def check_confidence(confidence: float) -> None:
    """Raise unless the confidence level is in [0.5, 1)."""
    if not (isinstance(confidence, Real) and 0.5 <= confidence < 1.0):
        raise ValueError(f"Expected confidence from 0.5 to below 1, got {confidence!r}. Try 0.95.")


def check_n_centers(n_centers: int | None) -> int | None:
    """Return the maximum number of centers, None for all rows."""
    if n_centers is not None and not (isinstance(n_centers, Integral) and n_centers >= 2):
        raise ValueError(
            "Expected n_centers to be an integer of at least 2, or None for all rows, got "
            f"{n_centers!r}."
        )
    return n_centers


def check_n_dense_centers(n_centers: int | None, n_rows: int) -> int:
    """Return the maximum number of centers for a method with a dense n_centers² matrix."""
    n_centers = check_n_centers(n_centers)
    if n_centers is not None:
        return n_centers
    if n_rows > _MOST_DENSE_CENTERS:
        warn(
            f"n_centers=None would need a center at each of {n_rows} rows, which does not fit in "
            f"memory: taking {_MOST_DENSE_CENTERS} rows at random. Set n_centers to choose the "
            "number."
        )
    return min(n_rows, _MOST_DENSE_CENTERS)


def check_number_of_folds(cv: Any, sizes: Sequence[int], part: str) -> int:
    """Return the number of folds, reduced if a part of the data has fewer rows or groups."""
    if not isinstance(cv, Integral) or int(cv) < 2:
        raise ValueError(f"Expected an integer of at least 2, got cv={cv!r}. Try cv=5.")
    fewest = min(sizes)
    where = (
        f"the {SAMPLES[list(sizes).index(fewest)]}" if part == "sample" else "the smallest class"
    )
    if fewest < 2:
        raise ValueError(
            f"Cross-validation needs at least two rows or groups in each {part}, got one in "
            f"{where}. Collect more rows."
        )
    if fewest < int(cv):
        warn(
            f"There are fewer rows or groups than folds: {fewest} in {where}, but cv={cv}. Using "
            f"{fewest} folds."
        )
    return min(int(cv), fewest)


def check_fold_ids(cv: Any, sizes: tuple[int, int]) -> tuple[Ints, Ints] | None:
    """Return the fold of each row of both samples; None if ``cv`` is a number of folds."""
    if isinstance(cv, Integral):
        return None
    if not (isinstance(cv, tuple | list) and len(cv) == 2 and all(map(_is_array_like, cv))):
        raise TypeError(
            "Expected cv to be an integer or the folds of the rows (for two samples, a pair of "
            f"arrays), got {_abbreviated(cv)}. Splitters are not supported, because folds must "
            "not overlap."
        )
    ids = [np.asarray(unmasked(part)) for part in cv]
    for part, size, sample in zip(ids, sizes, SAMPLES, strict=True):
        if part.shape != (size,) or part.dtype.kind not in "iubUS":
            raise ValueError(
                f"Expected one fold in cv, an integer or a name, for each of the {size} {sample}, "
                f"got an array of shape {part.shape} and type {part.dtype}."
            )
    folds, numbered = np.unique(np.concatenate(ids), return_inverse=True)
    if len(folds) < 2:
        raise ValueError(f"Expected at least two folds in cv, got only {listed(folds)}.")
    for part, sample in zip(ids, SAMPLES, strict=True):
        if len(missing := np.setdiff1d(folds, part)):
            raise ValueError(
                f"Expected {sample} in every fold of cv, got none in {listed(missing)}. "
                "Merge folds."
            )
    return numbered[: sizes[0]], numbered[sizes[0] :]


def check_sample_weight(sample_weight: Any, n_rows: int) -> Doubles:
    """Return one weight for each row; a number stands for equal weights."""
    weights = check_weights(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"Expected one value in sample_weight for each of the {n_rows} rows of X, got an array "
            f"of shape {weights.shape}. A 1D array is needed."
        )
    return weights


def check_max_weight(max_weight: Any) -> tuple[float, float] | None:
    """Return the largest possible weight in each sample, given as a number or a pair."""
    if max_weight is None:
        return None
    pair = max_weight if isinstance(max_weight, tuple | list) else (max_weight, max_weight)
    if not (len(pair) == 2 and all(isinstance(w, Real) and 0.0 < float(w) < np.inf for w in pair)):
        raise ValueError(
            "Expected max_weight to be a positive number, or a pair of them for known positives "
            f"and unlabeled rows, got {max_weight!r}."
        )
    return float(pair[0]), float(pair[1])


def check_weights(values: Any, name: str, number_of: Callable[[int], int] = int) -> Doubles:
    """Return weights as finite, nonnegative numbers; ``number_of`` gives the number of a row."""
    given = np.asarray(unmasked(values))
    if given.dtype.kind not in "biuf":
        wrong = [pair for pair in enumerate(given.flat) if not _is_number(pair[1])]
        if wrong:  # a word in a column of text tells more than the numbers around it
            row, value = next((pair for pair in wrong if not _is_digits(str(pair[1]))), wrong[0])
            raise TypeError(
                f"Expected numbers in {name}, got {str(value)!r} in row {number_of(row)}."
            )
    weights = given.astype(np.float64)
    if not np.all(is_valid := np.isfinite(weights) & (weights >= 0.0)):
        row = int(np.flatnonzero(~is_valid)[0])
        raise ValueError(
            f"Expected finite, nonnegative numbers in {name}, got {weights.flat[row]:g} in row "
            f"{number_of(row)}. Correct such weights, or drop the rows."
        )
    return weights


def _is_number(value: Any) -> bool:
    """Return whether a value is a number or missing; text, times and complex numbers are not."""
    if isinstance(value, np.timedelta64):  # an integer, according to NumPy
        return False
    return value is None or isinstance(value, Real | Decimal)


def _is_digits(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_fold_ids(cv: Any, n_rows: int) -> Any:
    """Return a list of (train, test) indices as the fold of each row; other values unchanged."""
    are_splits = isinstance(cv, tuple | list) and all(
        isinstance(split, tuple) and len(split) == 2 and all(map(_is_array_like, split))
        for split in cv
    )
    if not (are_splits and cv):
        return cv
    folds = np.full(n_rows, -1)
    tests = [np.asarray(test) for _, test in cv]
    for number, test in enumerate(tests):
        folds[test] = number
    if np.any(folds < 0) or sum(map(len, tests)) != n_rows:
        raise ValueError(
            f"Expected each of the {n_rows} rows in exactly one of the {len(cv)} test sets of cv, "
            f"because folds must not overlap; {np.count_nonzero(folds < 0)} rows are in none."
        )
    return folds


def split_rows(values: Any, each: tuple[Bools, Bools], name: str) -> Any:
    """Split an array over the rows of X by the masks of two samples; keep other values."""
    values = unmasked(values)
    if (
        values is None
        or not _is_array_like(values)
        or (name == "cv" and any(map(_is_array_like, values)))
    ):
        return values  # a number, or an invalid value, which is checked later
    array = np.asarray(values)
    if array.shape != each[0].shape:
        raise ValueError(
            f"Expected one value in {name} for each of the {len(each[0])} rows of X, got an array "
            f"of shape {array.shape}."
        )
    return array[each[0]], array[each[1]]


def seed_of(random_state: Any) -> int:
    """Return an integer seed; an integer ``random_state`` is returned unchanged."""
    if isinstance(random_state, Integral):
        if not 0 <= int(random_state) < 2**32:
            raise ValueError(f"Expected random_state from 0 to 2**32 - 1, got {random_state}.")
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def _abbreviated(value: Any) -> str:
    return (
        reprlib.repr(value)
        if isinstance(value, str)
        else f"an object of type {type(value).__name__}"
    )


def _is_array_like(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | dict)
