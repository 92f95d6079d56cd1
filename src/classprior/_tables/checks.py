"""Validation of ``X`` and ``y``; no other module reads ``y``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from classprior._core.messages import listed, warn
from classprior._core.types import Bools, Rows
from classprior._tables.labels import means_unlabeled, positive_beside_unlabeled
from classprior._tables.tables import check_unique, column_names, unmasked

_AS_NUMBERS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": False,  # check_magnitudes says which column
}
#: Sums of squares of numbers below this limit do not overflow.
LARGEST = np.float64(1e140)  # a Python float would be cast to float32 with its columns
_LABEL_ADVICE = "Use one label for unlabeled rows, such as 0, and one for positives, such as 1."
_NUMBERS_ADVICE = (
    "Encode text and categories as numbers first, with classprior.TableEncoder in a Pipeline, or "
    "use estimate_prior, which does."
)


class RowError(ValueError):
    """A fault in a row of a table, whose place only the caller knows."""

    def __init__(self, fault: str, row: int, advice: str) -> None:
        super().__init__(fault, row, advice)  # all of them, so that it can be pickled
        self.row = row

    def at(self, place: str) -> str:
        """Return the message with the place of the row."""
        fault, _, advice = self.args
        return f"{fault} of {place} {advice}"

    def __str__(self) -> str:
        fault, row, advice = self.args
        return f"{fault} (first in row {row}) {advice}"


class Labeled(NamedTuple):
    """Validated rows, and masks of the known positives and of the confirmed negatives."""

    X: Rows
    is_positive: Bools
    is_negative: Bools


def check_labeled(
    estimator: BaseEstimator, X: Any, y: Any, pos_label: Any, neg_label: Any = None
) -> Labeled:
    """Validate ``X, y`` and tell the kinds of rows apart.

    Sets ``classes_`` (without ``neg_label``), ``pos_label_``, ``n_features_in_`` and
    ``feature_names_in_``.
    """
    X, y = check_rows_and_labels(estimator, X, y)
    is_negative = _are_negative(y, pos_label, neg_label)
    try:
        classes = np.unique(y[~is_negative])
    except TypeError as error:  # labels that cannot be ordered
        types = sorted({type(label).__name__ for label in y})
        raise ValueError(
            f"The labels in y have different types: {' and '.join(types)}. {_LABEL_ADVICE}"
        ) from error
    if len(classes) != 2:
        raise ValueError(
            f"Expected two labels in y, one for known positives and one for unlabeled rows, got "
            f"{_counted(classes)}: {listed(classes)}. "
            + (
                "Only binary classification is supported: use one label for all rows that are not "
                "known positives, or set neg_label to the label of confirmed negatives."
                if len(classes) > 2
                else "X must contain both known positives and unlabeled rows, with different "
                "labels in y."
            )
        )
    estimator.classes_ = classes
    estimator.pos_label_ = _positive_label(classes, pos_label)
    return Labeled(X, y == estimator.pos_label_, is_negative)


def _are_negative(y: NDArray[Any], pos_label: Any, neg_label: Any) -> Bools:
    """Return a mask of the confirmed negatives, of which there may be none."""
    if neg_label is None:
        return np.zeros(len(y), dtype=bool)
    if np.ndim(neg_label) or (pos_label is not None and neg_label == pos_label):
        raise ValueError(
            f"Expected neg_label to be a label other than pos_label ({pos_label!r}), got "
            f"{neg_label!r}."
        )
    return np.zeros(len(y), dtype=bool) | (y == neg_label)


def check_rows_and_labels(estimator: BaseEstimator, X: Any, y: Any) -> tuple[Rows, NDArray[Any]]:
    """Validate ``X, y`` without interpreting the labels."""
    X, y = unmasked(X), unmasked(y)
    refuse_non_rows(X, "X")
    try:
        X_checked, y = validate_data(estimator, X, y, **_AS_NUMBERS)
    except (TypeError, ValueError) as error:
        raise _explained(error, X, "X") from error
    check_magnitudes(X_checked, "X", column_names(X))
    return X_checked, y


def check_new_rows(estimator: BaseEstimator, X: Any) -> Rows:
    """Validate rows passed to a fitted estimator."""
    X = unmasked(X)
    refuse_non_rows(X, "X")
    try:
        X_checked = validate_data(estimator, X, reset=False, **_AS_NUMBERS)
    except (TypeError, ValueError) as error:
        raise _explained(error, X, "X") from error
    check_magnitudes(X_checked, "X", column_names(X))
    return X_checked


def check_rows(X: Any, name: str, number_of: Callable[[int], int] = int) -> Rows:
    """Validate the rows of one sample, or a block of them."""
    X = unmasked(X)
    refuse_non_rows(X, name)
    try:
        rows = check_array(X, input_name=name, **_AS_NUMBERS)
    except (TypeError, ValueError) as error:
        raise _explained(error, X, name, number_of) from error
    check_magnitudes(rows, name, column_names(X), number_of)
    return rows


def check_gappy_rows(X: Any, name: str) -> Rows:
    """Validate an array that may contain missing values."""
    X = unmasked(X)
    refuse_non_rows(X, name)
    try:
        return check_array(X, input_name=name, **_AS_NUMBERS)
    except (TypeError, ValueError) as error:
        raise _explained(error, X, name) from error


def rows_by_label(y: Any, n_rows: int) -> tuple[Bools, Bools] | None:
    """Return masks of the rows with each of two labels; None unless ``y`` has two."""
    try:
        labels, codes = np.unique(np.asarray(y), return_inverse=True)
    except TypeError:  # such as text and None
        return None
    return (codes == 0, codes == 1) if codes.shape == (n_rows,) and len(labels) == 2 else None


def refuse_non_rows(X: Any, name: str) -> None:
    """Raise if ``X`` is not a table in memory."""
    load = lazy_loader(X)
    if X is None or isinstance(X, str | PathLike):
        got, advice = repr(X), "Read the data first, for example with pandas.read_csv."
    elif isinstance(X, dict) and not sparse.issparse(X):  # a DOK matrix is a dict, too
        got, advice = "a dict", "Convert it to a table, for example with pandas.DataFrame."
    elif load:
        got = f"a lazy {type(X).__name__}"
        advice = (
            f"Pass {name}.{load}() if the data fit in memory, or use classprior.engines.fit_blocks."
        )
    else:
        _refuse_odd_tables(X, name)
        return
    raise TypeError(f"Expected rows in memory as {name}, got {got}. {advice}")


def lazy_loader(X: Any) -> str | None:
    """Return the method that loads a lazy collection into memory, None for other objects."""
    if is_relation(X):
        return "df"
    if hasattr(X, "__dask_graph__"):
        return "compute"
    return "collect" if hasattr(X, "collect_schema") and not hasattr(X, "shape") else None


def is_relation(X: Any) -> bool:
    """Return whether an object is a relation of DuckDB, which runs a query to know its shape."""
    return type(X).__name__ == "DuckDBPyRelation"


def has_fields(X: Any) -> bool:
    """Return whether an object is a structured or record array of NumPy."""
    return isinstance(X, np.ndarray) and X.dtype.names is not None


def refuse_fields(X: Any, name: str) -> None:
    """Raise if ``X`` is a structured or record array, whose rows are not rows of numbers."""
    if has_fields(X):
        raise TypeError(
            f"{name} is a structured array with the fields {listed(X.dtype.names)}. Convert it to "
            "a table with pandas.DataFrame."
        )


def _refuse_odd_tables(X: Any, name: str) -> None:
    refuse_fields(X, name)
    if is_flat(X):
        raise ValueError(
            f"Expected a two-dimensional table as {name}, got one dimension ({len(X)} values). "
            "Reshape your data: for a single column pass table[['column']] or "
            "array.reshape(-1, 1). To pass labels y, use an estimator's fit(X, y)."
        )
    names = column_names(X) or []
    check_unique(names, name)
    columns = {f"column {n!r} of {name}": X[n] for n in names} or {name: X}
    for where, column in columns.items():
        if any(word in _type_name(column) for word in ("date", "time", "duration")):
            raise TypeError(
                f"Expected numbers, got {_type_name(column)} in {where}. Convert dates and times "
                "to numbers, such as days since a reference date, or drop them."
            )


def is_flat(X: Any) -> bool:
    """Return whether an object has one dimension."""
    if isinstance(X, list | tuple):
        return not X or np.ndim(X[0]) == 0
    return not is_relation(X) and len(getattr(X, "shape", (0, 0))) == 1


def check_magnitudes(
    X: Rows, name: str, names: Sequence[Any] | None, number_of: Callable[[int], int] = int
) -> None:
    """Raise on missing, infinite and too large values, naming column and row."""
    values = X.data if sparse.issparse(X) else X
    # NaN fails every comparison. The extremes need no temporary array of the size of X.
    if values.size == 0 or (values.min() > -LARGEST and values.max() < LARGEST):
        return
    wrong = np.flatnonzero(~(np.abs(values) < LARGEST))[0]
    value = values.ravel()[wrong]
    if sparse.issparse(X):
        row, column = np.searchsorted(X.indptr, wrong, side="right") - 1, X.indices[wrong]
    else:
        row, column = np.unravel_index(wrong, X.shape)
    row = number_of(row)
    label = f"column {names[column]!r}" if names else f"column {column}"
    if np.isfinite(value):
        raise ValueError(
            f"Value {value:g} in {label} of {name} (first in row {row}) is too large (limit "
            f"{LARGEST:g}). Rescale the column, for example with scikit-learn's StandardScaler."
        )
    if np.isnan(value):
        raise ValueError(
            f"Expected finite numbers, got NaN in {label} of {name} (first in row {row}), which "
            "stands for a missing or masked value. Drop such rows, or fill in missing values, for "
            "example with scikit-learn's SimpleImputer"
            + ("." if sparse.issparse(X) else " or classprior.TableEncoder, or use estimate_prior.")
        )
    raise ValueError(
        f"Expected finite numbers, got infinity (inf) in {label} of {name} (first in row {row}). "
        "Drop such rows or replace the values."
    )


@contextmanager
def restored_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Restore all attributes of an estimator if its fit fails or is interrupted."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        for name in vars(estimator).keys() - before.keys():
            delattr(estimator, name)
        vars(estimator).update(before)
        raise


def last_step(estimator: Any) -> Any:
    """Return the last step of a Pipeline, or the estimator itself."""
    return estimator[-1] if hasattr(estimator, "named_steps") else estimator


def _positive_label(classes: NDArray[Any], pos_label: Any) -> Any:
    """Return the label of known positives: the given one, that beside "unknown", the greater."""
    if pos_label is not None:
        if np.ndim(pos_label) or pos_label not in classes:
            raise ValueError(
                f"Expected pos_label to be a label in y ({listed(classes)}), got {pos_label!r}."
            )
        other = classes[classes != pos_label]
        if means_unlabeled(pos_label) and not means_unlabeled(other[0]):
            warn(
                f"pos_label={pos_label!r} sounds like unlabeled rows, but marks known positives, "
                f"and {listed(other)} counts as unlabeled. If it is the other way round, set "
                f"pos_label={listed(other)}."
            )
        return pos_label
    if (positive := positive_beside_unlabeled(classes)) is not None:
        return positive
    positive = classes[1]
    if positive != 1 or classes[0] not in (0, -1):
        unlabeled, positive_text = listed(classes[:1]), listed(classes[1:])
        warn(
            f"Taking the greater label {positive_text} as known positive and {unlabeled} as "
            f"unlabeled. Set pos_label={positive_text} to silence this warning, or "
            f"pos_label={unlabeled} to swap the labels."
        )
    return positive


def _explained(
    error: Exception, X: Any, name: str, number_of: Callable[[int], int] = int
) -> Exception:
    """Add the name of the column and the row to an error of scikit-learn."""
    message = str(error)
    if "y contains NaN" in message or message == "Input contains NaN":
        return ValueError(f"{message} {_LABEL_ADVICE}")
    if message.startswith("y should be a 1d array"):
        return ValueError(f"{message} To pass two samples, use fit_samples.")
    if message.startswith(("Found array with 0", "Found empty")):
        return error if name == "X" else ValueError(f"{name}: {message}")
    culprit = next((c for c in column_names(X) or () if not _is_numeric(X[c])), None)
    if culprit is not None:
        row = next((i for i, value in enumerate(np.asarray(X[culprit])) if _is_text(value)), None)
        where = f"column {culprit!r} of {name}"
        where += "" if row is None else f" (first in row {number_of(row)})"
    elif "could not convert string" in message:
        where = name
    else:
        return error
    return plain_error(error, f"Expected numbers in {where}: {message}. {_NUMBERS_ADVICE}")


def plain_error(error: Exception, message: str) -> Exception:
    """Return a TypeError or a ValueError with another message; other types need more arguments."""
    return TypeError(message) if isinstance(error, TypeError) else ValueError(message)


def _type_name(column: Any) -> str:
    return str(getattr(column, "dtype", getattr(column, "type", ""))).lower()


def _is_text(value: Any) -> bool:
    return value is not None and not _is_numeric(value)


def _is_numeric(column: Any) -> bool:
    try:
        np.asarray(column).astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _counted(classes: NDArray[Any]) -> str:
    if type_of_target(classes) == "continuous":
        return f"a continuous target of {len(classes)} values"
    return "1 class" if len(classes) == 1 else f"{len(classes)} classes"
