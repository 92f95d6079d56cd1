"""Tables by column: the columns of all samples have one kind each, and values that fit it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classprior._core.messages import listed, warn
from classprior._core.types import Ints
from classprior._tables.checks import RowError, check_gappy_rows
from classprior._tables.columns import (
    CATEGORY,
    DATE,
    EMPTY,
    NUMBER,
    YEARS,
    YES_NO,
    check_sizes,
    common_kind,
    first_raw,
    is_gap,
    is_text,
    kind_of,
    plain,
)
from classprior._tables.tables import as_pandas


def columns_of(table: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns of a table by name; those of an array are named in order, or "0", ..."""
    if hasattr(table, "columns"):
        frame = as_pandas(table)
        return {name: frame[name] for name in frame.columns}
    X = check_gappy_rows(table, "X")
    names = names or [str(number) for number in range(X.shape[1])]
    if len(names) != X.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features, but TableEncoder is expecting {len(names)} features as "
            f"input: {listed(names)}."
        )
    return dict(zip(names, np.ascontiguousarray(X.T), strict=True))


def common_kinds(parts: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the kind of each column, which must be the same in all tables."""
    kinds, clashes = {}, []
    for name in parts[0]:
        found = [kind_of(part[name]) for part in parts]
        kind = common_kind(set(found))
        if kind is None:
            clashes.append(f"{name!r} ({' and '.join(found)})")
        else:
            kinds[name] = kind
    if clashes:
        raise ValueError(
            "These columns have different kinds of values in the two samples: "
            f"{', '.join(clashes)}. A single non-numeric value turns a column into text: fix it, "
            "or leave the column out."
        )
    return kinds


def check_bytes(
    parts: Sequence[dict[str, Any]],
    kinds: dict[str, str],
    place_of: Callable[[int, int], str] | None,
) -> None:
    """Raise on bytes that are not UTF-8 beside text, which may be the same in another encoding."""
    for name in (name for name, kind in kinds.items() if kind == CATEGORY):
        for number, part in enumerate(parts):
            found = first_raw(part[name])
            if found is not None and any(is_text(other[name]) for other in parts):
                error = not_text(name, *found)
                if place_of is None:
                    raise error
                raise ValueError(error.at(place_of(number, error.row)))


def not_text(name: str, row: int, value: bytes) -> RowError:
    """Return an error about bytes in a column of text."""
    return RowError(
        f"Value {value[:40]!r} in column {name!r}",
        row,
        "is not UTF-8 text, but other values of the column are text. Store the column as text, or "
        "leave it out.",
    )


def check_all_sizes(
    columns: dict[str, NDArray[Any]], kinds: dict[str, str], place_of: Callable[[int], str] | None
) -> None:
    """Raise on values of a table that are too large, naming column and row."""
    for name in (name for name, kind in kinds.items() if kind not in (CATEGORY, EMPTY)):
        try:
            check_sizes(columns[name], name)
        except RowError as error:
            if place_of is None:
                raise
            raise ValueError(error.at(place_of(error.row))) from error


def warn_of_far_dates(
    parts: Sequence[dict[str, Any]], plains: Sequence[dict[str, Any]], kinds: dict[str, str]
) -> None:
    """Warn of dates that ``plain`` has turned into missing values."""
    for name in (name for name, kind in kinds.items() if kind == DATE):
        far = [
            value
            for part, numbers in zip(parts, plains, strict=True)
            for value in part[name][part[name].notna().to_numpy() & np.isnan(numbers[name])][:1]
        ]
        if far:
            warn(
                f"Column {name!r} has dates outside the years {YEARS[0]} to {YEARS[1]}, such as "
                f"{str(far[0])[:10]}. They count as missing values."
            )


def as_kind(column: Any, kind: str, name: str) -> NDArray[Any]:
    """Convert a column of new rows to an array of its fitted kind."""
    found = kind_of(column)
    if kind != CATEGORY and common_kind({found, kind}) is None:
        try:
            if found != CATEGORY:
                raise ValueError
            values = plain(column, kind)
        except (TypeError, ValueError):
            raise _misfit(column, kind, found, name) from None
    elif found == EMPTY and kind != CATEGORY:
        values = np.full(len(column), np.nan)
    else:  # a yes/no column may have other numbers than 0 and 1 in new rows
        values = plain(column, NUMBER if (kind, found) == (YES_NO, NUMBER) else kind)
    if kind != CATEGORY:
        check_sizes(values, name)
    return values


def _misfit(column: Any, kind: str, found: str, name: str) -> ValueError:
    """Return an error about a column of another kind, with the first text that does not fit."""
    if kind in (NUMBER, DATE) and found == CATEGORY:
        texts = plain(column, CATEGORY)
        if len(wrong := _misfits(texts, kind)):
            what = {NUMBER: "a number", DATE: "a date such as 2026-12-31"}[kind]
            advice = f"is not {what}, but the column had only {kind}s in the fitted data."
            return RowError(f"Value {texts[wrong[0]]!r} in column {name!r}", int(wrong[0]), advice)
    values = column[~np.isnan(column)] if isinstance(column, np.ndarray) else column.dropna()
    return ValueError(
        f"Column {name!r} was of kind {kind} in the fitted data, but is of kind {found} here (for "
        f"example, {listed(values[:1])})."
    )


def _misfits(texts: NDArray[Any], kind: str) -> Ints:
    """Return the places of texts that are no numbers, or no unmistakable dates."""
    import pandas as pd

    if kind == NUMBER:
        values = pd.to_numeric(pd.Series(texts), errors="coerce")
    else:
        values = pd.to_datetime(pd.Series(texts), errors="coerce", format="ISO8601", utc=True)
    return np.flatnonzero(values.isna() & ~is_gap(texts))
