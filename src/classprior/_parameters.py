"""Checks of what estimators and functions are told: grids, folds, numbers of centres."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from classprior._basis import Doubles, Ints
from classprior._messages import listed, warn

_MOST_DENSE_CENTERS = 1000
_SAMPLES = ("positives", "unlabeled rows")


def check_grid(
    values: ArrayLike | None, name: str, *, low: float = 1e-100, high: float = 1e100
) -> Doubles | None:
    """Return a grid of numbers as an array of its own, or None for the default.

    Parameters
    ----------
    values : array-like, float or None
        The grid; one number is a grid of one.
    name : str
        Name of the parameter.
    low, high : float
        Smallest and largest value allowed; by default positive numbers whose squares are safe.

    Returns
    -------
    grid : array of shape (n_values,) or None
        The grid as given.
    """
    if values is None:
        return None
    try:
        grid = np.atleast_1d(np.array(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"Expected numbers as {name}, got {_abbreviated(values)}.") from error
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(
            f"Expected at least one number in {name}, as a flat list, got an array of shape "
            f"{grid.shape}. Leave it out for the default."
        )
    if not np.all(inside := (grid >= low) & (grid <= high)):
        positive = "positive " if low > 0.0 else ""
        raise ValueError(
            f"Expected {positive}{name} from {low:g} to {high:g}, got {grid[~inside][0]:g}."
        )
    return grid


def check_thetas(thetas: ArrayLike | None, *, steps: int = 1000) -> Doubles:
    """Return the grid of candidate priors; by default 0 to 1 in equal steps.

    Parameters
    ----------
    thetas : array-like or None
        Candidates.
    steps : int
        Steps of the default grid.

    Returns
    -------
    thetas : array of shape (n_thetas,)
        Strictly increasing.
    """
    grid = check_grid(thetas, "thetas", low=0.0, high=1.0)
    if grid is None:
        return np.arange(steps + 1) / steps  # prints as 0.814, which a sum of steps would not
    if np.any(np.diff(grid) <= 0.0):
        raise ValueError(
            f"Expected strictly increasing thetas, got {listed(grid)}. Try numpy.unique(thetas)."
        )
    return grid


def check_share(value: float, name: str) -> None:
    """Refuse what is not a share above 0 and up to 1.

    Parameters
    ----------
    value : float
        As the user gave it.
    name : str
        Name of the parameter.
    """
    if not (isinstance(value, Real) and 0.0 < value <= 1.0):
        raise ValueError(f"Expected {name} above 0 and up to 1, got {value!r}.")


def check_confidence(confidence: float) -> None:
    """Refuse what is not a level of confidence.

    Parameters
    ----------
    confidence : float
        As the user gave it.
    """
    if not (isinstance(confidence, Real) and 0.5 <= confidence < 1.0):
        raise ValueError(f"Expected confidence from 0.5 to below 1, got {confidence!r}. Try 0.95.")


def check_n_centers(n_centers: int | None) -> int | None:
    """Return the largest number of centres, None for all rows.

    Parameters
    ----------
    n_centers : int or None
        As the user gave it.

    Returns
    -------
    n_centers : int or None
        At least 2, so that both samples can have one.
    """
    if n_centers is not None and not (isinstance(n_centers, Integral) and n_centers >= 2):
        raise ValueError(
            f"Expected n_centers to be an integer of at least 2, or None for all rows, got "
            f"{n_centers!r}."
        )
    return n_centers


def check_n_dense_centers(n_centers: int | None, n_rows: int) -> int:
    """Return the largest number of centres for a method that holds a matrix of them by them.

    Parameters
    ----------
    n_centers : int or None
        As the user gave it.
    n_rows : int
        Rows of both samples.

    Returns
    -------
    n_centers : int
        For None all rows, but no more than 1,000, and then a warning says so.
    """
    n_centers = check_n_centers(n_centers)
    if n_centers is not None:
        return n_centers
    if n_rows > _MOST_DENSE_CENTERS:
        warn(
            f"n_centers=None asks for a centre at each of {n_rows} rows, whose products do not "
            f"fit in memory: taking {_MOST_DENSE_CENTERS} rows at random. Give a number of "
            "centres to choose it yourself."
        )
    return min(n_rows, _MOST_DENSE_CENTERS)


def check_folds(cv: Any, sizes: tuple[int, int]) -> int | tuple[Ints, Ints]:
    """Validate ``cv`` for two samples: a number of folds, or the fold of every row.

    Parameters
    ----------
    cv : int or pair of arrays of int
        Number of folds, or fold ids of the positives and of the unlabeled rows.
    sizes : pair of int
        Rows in the two samples.

    Returns
    -------
    cv : int or pair of arrays of int
        The number, lowered to the rows of the smaller sample if need be; or ids renumbered from
        0, every fold holding rows of both samples.
    """
    if isinstance(cv, Integral):
        return check_number_of_folds(cv, sizes, "sample")
    if isinstance(cv, tuple | list) and len(cv) == 2 and all(map(_is_array_like, cv)):
        return _check_fold_ids([np.asarray(ids) for ids in cv], sizes)
    raise TypeError(
        "Expected cv as an integer or as the folds of the rows (for two samples, a pair of "
        f"arrays), got {_abbreviated(cv)}. Splitters are not taken: folds must not overlap."
    )


def check_number_of_folds(cv: Any, sizes: Sequence[int], part: str) -> int:
    """Return a number of folds that every part of the data can fill.

    Parameters
    ----------
    cv : int
        As the user gave it.
    sizes : sequence of int
        Rows in each part.
    part : str
        What the parts are: samples or classes.

    Returns
    -------
    n_folds : int
        Lowered, with a warning, to the rows of the smallest part if need be.
    """
    if not isinstance(cv, Integral) or int(cv) < 2:
        raise ValueError(f"Expected at least two folds, an integer, got cv={cv!r}. Try cv=5.")
    fewest = min(sizes)
    where = (
        f"the {_SAMPLES[list(sizes).index(fewest)]}" if part == "sample" else "the smallest class"
    )
    if fewest < 2:
        raise ValueError(
            f"Expected at least two rows in each {part} to cross-validate, got n_samples = 1 in "
            f"{where}. Collect more rows, or give one sigma and one lam, which needs no "
            "cross-validation."
        )
    if fewest < int(cv):
        warn(
            f"Expected at least as many rows as folds, got {fewest} in {where} for cv={cv}: using "
            f"{fewest} folds."
        )
    return min(int(cv), fewest)


def _check_fold_ids(ids: list[NDArray[Any]], sizes: tuple[int, int]) -> tuple[Ints, Ints]:
    for part, size, sample in zip(ids, sizes, _SAMPLES, strict=True):
        if part.shape != (size,) or part.dtype.kind not in "iubUS":
            raise ValueError(
                f"Expected cv to hold one fold, an integer or a name, for each of the {size} "
                f"{sample}, got an array of shape {part.shape} and type {part.dtype}."
            )
    folds, numbered = np.unique(np.concatenate(ids), return_inverse=True)
    if len(folds) < 2:
        raise ValueError(f"Expected at least two folds in cv, got only {listed(folds)}.")
    for part, sample in zip(ids, _SAMPLES, strict=True):
        if len(missing := np.setdiff1d(folds, part)):
            raise ValueError(
                f"Expected {sample} in every fold of cv, got none in {listed(missing)}. "
                "Merge folds."
            )
    return numbered[: sizes[0]], numbered[sizes[0] :]


def split_folds(cv: Any, is_positive: NDArray[np.bool_]) -> Any:
    """Split an estimator's ``cv`` as its rows were split; a number passes through.

    Parameters
    ----------
    cv : int or array-like of int of shape (n_rows,)
        The parameter of the estimator.
    is_positive : array of bool of shape (n_rows,)
        Which rows are labelled positives.

    Returns
    -------
    cv : int or pair of arrays
        What ``check_folds`` takes.
    """
    if not _is_array_like(cv) or any(map(_is_array_like, cv)):
        return cv  # a number, or something for check_folds to refuse
    ids = np.asarray(cv)
    if ids.shape != is_positive.shape:
        raise ValueError(
            f"Expected cv to hold one fold for each of the {len(is_positive)} rows of X, got an "
            f"array of shape {ids.shape}."
        )
    return ids[is_positive], ids[~is_positive]


def _abbreviated(value: Any) -> str:
    return (
        reprlib.repr(value)
        if isinstance(value, str)
        else f"an object of type {type(value).__name__}"
    )


def _is_array_like(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | dict)
