"""The only code that reads y, and the only code that checks what a user gave."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_scalar
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from classprior._basis import Doubles, Ints, Rows

_AS_NUMBERS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": False,  # check_magnitudes says which column
}
_NUMBERS_ADVICE = (
    "Encode text and categories as numbers first, for instance with scikit-learn's OneHotEncoder "
    "in a Pipeline."
)


def check_labelled(
    estimator: BaseEstimator, X: Any, y: Any, pos_label: Any
) -> tuple[Rows, NDArray[np.bool_]]:
    """Validate ``X, y`` and tell labelled positives from unlabeled rows.

    Sets ``classes_``, ``pos_label_``, ``n_features_in_`` and ``feature_names_in_``.

    Parameters
    ----------
    estimator : BaseEstimator
        The estimator being fitted.
    X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Two labels: one for known positives, one for unlabeled rows.
    pos_label : label or None
        The label of known positives.

    Returns
    -------
    X : array or CSR matrix
        The rows as finite floating-point numbers.
    is_positive : array of bool of shape (n_rows,)
        Whether the row is a labelled positive.
    """
    refuse_lazy(X, "X")
    try:
        X_checked, y = validate_data(estimator, X, y, **_AS_NUMBERS)
    except ValueError as error:
        raise _explained(error, X, "X") from error
    check_magnitudes(X_checked, "X", column_names(X))
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(
            f"Expected two labels in y, one for known positives and one for unlabeled rows, got "
            f"{_counted(len(classes), 'class', 'classes')}: {_listed(classes)}. "
            + (
                "Only binary classification is supported: merge the labels of all rows that are "
                "not known positives into one."
                if len(classes) > 2
                else "Put the known positives and the unlabeled rows into one X and mark them in y."
            )
        )
    estimator.classes_ = classes
    estimator.pos_label_ = _positive_label(classes, pos_label)
    return X_checked, y == estimator.pos_label_


def check_samples(X_positive: Any, X_unlabeled: Any) -> tuple[Rows, Rows]:
    """Validate two samples that must share their columns.

    Parameters
    ----------
    X_positive, X_unlabeled : array-likes, data frames or CSR matrices
        The rows of the two samples.

    Returns
    -------
    X_positive, X_unlabeled : arrays or CSR matrices
        The rows as finite floating-point numbers.
    """
    checked = []
    for X, name in ((X_positive, "X_positive"), (X_unlabeled, "X_unlabeled")):
        refuse_lazy(X, name)
        try:
            rows = check_array(X, input_name=name, **_AS_NUMBERS)
        except ValueError as error:
            raise _explained(error, X, name) from error
        check_magnitudes(rows, name, column_names(X))
        checked.append(rows)
    names = column_names(X_positive), column_names(X_unlabeled)
    widths = checked[0].shape[1], checked[1].shape[1]
    if widths[0] != widths[1] or (None not in names and names[0] != names[1]):
        raise ValueError(
            f"Expected the same columns in X_positive and X_unlabeled, in the same order, got "
            f"{_columns(names[0], widths[0])} and {_columns(names[1], widths[1])}. "
            "Select the shared columns from both."
        )
    if sparse.issparse(checked[0]) != sparse.issparse(checked[1]):
        checked = [sparse.csr_array(rows) for rows in checked]
    return checked[0], checked[1]


def refuse_lazy(X: Any, name: str) -> None:
    """Stop collections that live elsewhere before validation pulls them into memory unasked.

    Parameters
    ----------
    X : object
        What the user gave.
    name : str
        How the message calls it.
    """
    if hasattr(X, "__dask_graph__"):
        advice = "compute()"
    elif hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        advice = "collect()"
    else:
        return
    raise TypeError(
        f"Expected rows in memory as {name}, got a lazy {type(X).__module__}.{type(X).__name__}. "
        f"If it fits in memory, pass {name}.{advice}; otherwise a random sample of its rows."
    )


def check_magnitudes(X: Rows, name: str, names: Sequence[str] | None) -> None:
    """Refuse missing, infinite and overflowing values, naming column and row.

    Parameters
    ----------
    X : array or CSR matrix
        The rows.
    name : str
        How the message calls it.
    names : sequence of str or None
        Names of the columns, where there are any.
    """
    limit = np.sqrt(np.finfo(np.float64).max / max(1, X.shape[1])) / 4.0
    values = X.data if sparse.issparse(X) else X
    # NaN fails every comparison. Extremes need no array of the size of X.
    if values.size == 0 or (values.min() > -limit and values.max() < limit):
        return
    at = sparse.coo_array(X) if sparse.issparse(X) else None
    wrong = np.flatnonzero(~(np.abs(values) < limit))[0]
    row, column = (at.row[wrong], at.col[wrong]) if at else np.unravel_index(wrong, X.shape)
    value = values.ravel()[wrong]
    label = f"column {names[column]!r}" if names else f"column {column}"
    if np.isfinite(value):
        raise ValueError(
            f"Expected values whose squares can be added up in float64, got {value:g} in {label} "
            f"of {name} (first in row {row}). Rescale that column, for instance with "
            "scikit-learn's StandardScaler."
        )
    raise ValueError(
        f"Expected finite numbers, got {'NaN' if np.isnan(value) else 'infinity (inf)'} in "
        f"{label} of {name} (first in row {row}). Drop those rows or fill the gaps, for instance "
        "with scikit-learn's SimpleImputer."
    )


def check_grid(
    values: ArrayLike | None,
    name: str,
    *,
    low: float = 0.0,
    high: float = np.inf,
    closed: bool = False,
) -> Doubles | None:
    """Return a grid of numbers as an array, or None for the default.

    Parameters
    ----------
    values : array-like, float or None
        The grid; one number is a grid of one.
    name : str
        Name of the parameter.
    low, high : float
        Limits.
    closed : bool
        Whether the limits belong to the range.

    Returns
    -------
    grid : array of shape (n_values,) or None
        The grid as given.
    """
    if values is None:
        return None
    try:
        grid = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"Expected numbers as {name}, got {values!r}.") from error
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(
            f"Expected at least one number in {name}, as a flat list, got an array of shape "
            f"{grid.shape}. Leave it out for the default."
        )
    inside = (grid >= low) & (grid <= high) if closed else (grid > low) & (grid < high)
    if not inside.all():
        limits = f"from {low:g} to {high:g}" if closed else f"above {low:g} and finite"
        raise ValueError(f"Expected {name} {limits}, got {grid[~inside][0]:g}.")
    return grid


def check_thetas(thetas: ArrayLike | None) -> Doubles:
    """Return the grid of candidate priors; by default 0 to 1 in steps of 0.001.

    Parameters
    ----------
    thetas : array-like or None
        Candidates.

    Returns
    -------
    thetas : array of shape (n_thetas,)
        Strictly increasing.
    """
    grid = check_grid(thetas, "thetas", low=0.0, high=1.0, closed=True)
    if grid is None:
        return np.linspace(0.0, 1.0, 1001)
    if np.any(np.diff(grid) <= 0.0):
        raise ValueError(
            f"Expected strictly increasing thetas, got {_listed(grid)}. Try numpy.unique(thetas)."
        )
    return grid


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
    if n_centers is not None:
        check_scalar(n_centers, "n_centers", Integral, min_val=2)
    return n_centers


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
        The number, or ids renumbered from 0, every fold holding rows of both samples.
    """
    samples = ("positives", "unlabeled rows")
    if isinstance(cv, Integral):
        check_scalar(cv, "cv", Integral, min_val=2)
        for size, sample in zip(sizes, samples, strict=True):
            if size < cv:
                raise ValueError(
                    f"Expected at least as many {sample} as folds, got n_samples = {size} "
                    f"{sample} for cv = {cv}. Collect more rows"
                    + (f", try cv={size}" if size >= 2 else "")
                    + ", or give one sigma and one lam, which needs no cross-validation."
                )
        return int(cv)
    if not (isinstance(cv, Sequence) and len(cv) == 2 and all(map(_is_array_like, cv))):
        raise TypeError(
            f"Expected cv as an integer or as the fold of every row, got {cv!r}. Splitters are "
            "not supported: the folds must not overlap."
        )
    ids = [np.asarray(part) for part in cv]
    for part, size, sample in zip(ids, sizes, samples, strict=True):
        if part.shape != (size,) or part.dtype.kind not in "iub":
            raise ValueError(
                f"Expected cv to hold one integer fold for each of the {size} {sample}, got an "
                f"array of shape {part.shape} and type {part.dtype}."
            )
    folds, numbered = np.unique(np.concatenate(ids), return_inverse=True)
    if len(folds) < 2:
        raise ValueError(f"Expected at least two folds in cv, got only {_listed(folds)}.")
    for part, sample in zip(ids, samples, strict=True):
        if len(missing := np.setdiff1d(folds, part)):
            raise ValueError(
                f"Expected {sample} in every fold of cv, got none in {_listed(missing)}. "
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
    if not _is_array_like(cv):
        return cv
    ids = np.asarray(cv)
    if ids.shape != is_positive.shape:
        raise ValueError(
            f"Expected cv to hold one fold for each of the {len(is_positive)} rows of X, got an "
            f"array of shape {ids.shape}."
        )
    return ids[is_positive], ids[~is_positive]


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a pandas, polars or pyarrow table, else None.

    Parameters
    ----------
    X : object
        What the user gave.

    Returns
    -------
    names : list of str or None
        In order.
    """
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return None if names is None else [str(name) for name in names]


def _positive_label(classes: NDArray[Any], pos_label: Any) -> Any:
    if pos_label is not None:
        if pos_label not in classes:
            raise ValueError(
                f"Expected pos_label to be a label in y ({_listed(classes)}), got {pos_label!r}."
            )
        return pos_label
    positive = classes[1]
    if positive != 1 or classes[0] not in (0, -1):
        unlabeled, positive_text = _listed(classes[:1]), _listed(classes[1:])
        warnings.warn(
            f"Taking the greater label {positive_text} as known positive and {unlabeled} as "
            f"unlabeled. Set pos_label={positive_text} to confirm, or pos_label={unlabeled} if it "
            "is the other way round.",
            UserWarning,
            stacklevel=5,
        )
    return positive


def _explained(error: ValueError, X: Any, name: str) -> ValueError:
    """Return the error with the culprit named, where scikit-learn's message leaves it out."""
    message = str(error)
    if "could not convert string" in message or "Cannot cast object dtype" in message:
        where = next((f"column {c!r} of " for c in column_names(X) or () if _is_text(X[c])), "")
        return ValueError(f"Expected numbers in {where}{name}: {message}. {_NUMBERS_ADVICE}")
    if message.startswith(("Found array with 0", "Found empty")) and name != "X":
        return ValueError(f"{name}: {message}")
    return error


def _is_text(column: Any) -> bool:
    try:
        np.asarray(column).astype(np.float64)
    except (TypeError, ValueError):
        return True
    return False


def _is_array_like(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | dict)


def _columns(names: list[str] | None, width: int) -> str:
    return f"{width} columns" if names is None else f"{width} columns ({_listed(names)})"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _listed(values: Any, most: int = 6) -> str:
    """Return values as a user would type them, the long tail cut."""
    shown = [repr(v.item() if isinstance(v, np.generic) else v) for v in list(values)[:most]]
    return ", ".join(shown) + (", ..." if len(values) > most else "")
