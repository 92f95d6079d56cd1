"""Data frames as numbers: categories, dates and gaps by one stated recipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from classprior._basis import Doubles
from classprior._columns import (
    CATEGORY,
    DATE,
    EMPTY,
    MISSING,
    NUMBER,
    YES_NO,
    as_numbers_of,
    common_kind,
    kind_of,
    plain,
    why_identifier,
)
from classprior._messages import listed, warn
from classprior._validation import lazy_loader

# Levels of a category that fewer rows have are pooled.
_RARE = 0.02
_IDENTIFIER, _CONSTANT, _TEXT = "identifier", "constant", "text"


class ColumnTreatment(NamedTuple):
    """What became of a column.

    Parameters
    ----------
    name : str
        The column.
    kind : str
        What it holds: number, yes/no, date or category; or why it is left out: identifier, empty,
        constant or text.
    treatment : str
        What was done with it, in words.
    """

    name: str
    kind: str
    treatment: str

    @property
    def is_left_out(self) -> bool:
        """Whether the estimate does not use the column."""
        return self.kind in (_IDENTIFIER, EMPTY, _CONSTANT, _TEXT)


class EncodedSamples(NamedTuple):
    """Two samples as numbers, and how they became so.

    Parameters
    ----------
    X_positive, X_unlabeled : arrays, or what was given
        The samples.
    encoder : FrameEncoder or None
        Fitted to both, where they are data frames.
    """

    X_positive: Any
    X_unlabeled: Any
    encoder: FrameEncoder | None = None


def as_numbers(X_positive: Any, X_unlabeled: Any, *, keep: Sequence[str] = ()) -> EncodedSamples:
    """Turn two data frames into numbers; anything else passes through.

    Parameters
    ----------
    X_positive, X_unlabeled : data frames or anything else
        The two samples.
    keep : sequence of str, default=()
        Columns that are no identifiers, whatever they look like.

    Returns
    -------
    encoded : EncodedSamples
        By a ``FrameEncoder`` that learned from both samples together.
    """
    if not (_is_frame(X_positive) and _is_frame(X_unlabeled)):
        return EncodedSamples(X_positive, X_unlabeled)
    frames = [as_pandas(X) for X in (X_positive, X_unlabeled)]
    names = [list(frame.columns) for frame in frames]
    if set(names[0]) != set(names[1]):
        only = [listed([n for n in a if n not in b]) or "none" for a, b in (names, names[::-1])]
        raise ValueError(
            f"Expected the same columns in X_positive and X_unlabeled, got some that only one has: "
            f"{only[0]} in X_positive, {only[1]} in X_unlabeled. Select the shared columns from "
            "both."
        )
    frames[1] = frames[1][names[0]]
    encoder = FrameEncoder(keep=keep)
    encoded = encoder.fit_transform(stack_frames(*frames))
    n = len(frames[0])
    return EncodedSamples(encoded[:n], encoded[n:], encoder)


def stack_frames(positive: Any, unlabeled: Any) -> Any:
    """Return the rows of two frames in one, if their columns hold the same kinds of values.

    Parameters
    ----------
    positive, unlabeled : pandas data frames
        With the same columns in the same order.

    Returns
    -------
    both : pandas data frame
        Positives first, every column in the plain type of its kind.
    """
    import pandas as pd

    clashes = []
    parts: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for name in positive.columns:
        kinds = kind_of(positive[name]), kind_of(unlabeled[name])
        kind = common_kind(kinds)
        if kind is None:
            clashes.append(f"{name!r} ({kinds[0]} and {kinds[1]})")
            continue
        for part, frame in zip(parts, (positive, unlabeled), strict=True):
            part[name] = plain(frame[name], kind)
    if clashes:
        raise ValueError(
            "Expected the same kind of values in both samples, got different ones in column "
            f"{', '.join(clashes)}. One value that is no number makes a column of text: look for "
            "it, or leave the column out."
        )
    return pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)


class FrameEncoder(TransformerMixin, BaseEstimator):
    """Data frames with categories, dates and gaps, as numbers.

    Numbers are standardised, gaps filled with the median and marked in a column of their own; dates
    become seconds; all else is a category, one column a level, levels of less than 2% of the rows
    pooled, a gap being a level too. Columns that are empty, constant or look like identifiers are
    left out.

    Parameters
    ----------
    keep : sequence of str, default=()
        Columns that are no identifiers, whatever they look like.

    Attributes
    ----------
    treatments_ : tuple of ColumnTreatment
        What becomes of each column.
    sources_ : list of str
        The column from which each encoded column comes.
    kinds_ : dict of str to str
        What the columns hold that are used.
    encoder_ : ColumnTransformer
        What turns them into numbers.
    """

    def __init__(self, *, keep: Sequence[str] = ()) -> None:
        self.keep = keep

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the columns hold, their medians, scales and levels.

        Parameters
        ----------
        X : data frame
            Rows of both samples.
        y : object
            Not used.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        frame = as_pandas(X)
        kinds = {name: kind_of(frame[name]) for name in frame.columns}
        frame = {name: plain(frame[name], kind) for name, kind in kinds.items()}
        found = {n: self._left_out(n, column, kinds[n]) for n, column in frame.items()}
        self.kinds_ = {name: kinds[name] for name in frame if found[name] is None}
        if not self.kinds_:
            raise ValueError(
                "Expected a column to learn from, got none: "
                + "; ".join(f"{t.name!r} is {t.treatment}" for t in found.values() if t)
                + ". Give the samples columns that describe the rows."
            )
        self.encoder_ = _column_transformer(self.kinds_)
        self.encoder_.fit(self._plain_frame(frame))
        self.sources_ = self._sources()
        self.treatments_ = tuple(
            found[name] or self._used(name, column) for name, column in frame.items()
        )
        return self

    def transform(self, X: Any) -> Doubles:
        """Return rows as numbers.

        Parameters
        ----------
        X : data frame
            With the columns that are used; others do not matter.

        Returns
        -------
        encoded : array of shape (n_rows, n_encoded_columns)
            Finite.
        """
        check_is_fitted(self)
        frame = as_pandas(X)
        absent = [name for name in self.kinds_ if name not in frame.columns]
        if absent:
            raise ValueError(
                f"Expected the columns of the fitted data, got a table without {listed(absent)}; "
                f"it has {listed(list(frame.columns))}."
            )
        columns = {name: _as_kind(frame[name], kind) for name, kind in self.kinds_.items()}
        table = self._plain_frame(columns)
        self._warn_of_new_levels(table)
        return np.asarray(self.encoder_.transform(table), dtype=float)

    def _left_out(self, name: str, column: Any, kind: str) -> ColumnTreatment | None:
        if kind == EMPTY:
            return ColumnTreatment(name, EMPTY, "left out: all values are missing")
        if column.nunique(dropna=False) == 1:
            return ColumnTreatment(name, _CONSTANT, "left out: all values are the same")
        if name in self.keep:
            return None
        reason = why_identifier(column, kind)
        if reason:
            return ColumnTreatment(name, _IDENTIFIER, f"left out: {reason}")
        if kind == CATEGORY and column.value_counts(dropna=False).iloc[0] < _RARE * len(column):
            reason = f"left out: no value is in {_RARE:.0%} of the rows"
            return ColumnTreatment(name, _TEXT, reason)
        return None

    def _plain_frame(self, columns: dict[str, Any]) -> Any:
        """Return the columns that are used, as floats and text without gaps."""
        import pandas as pd

        return pd.DataFrame(
            {
                name: columns[name].fillna(MISSING).astype(object)
                if kind == CATEGORY
                else as_numbers_of(columns[name], kind)
                for name, kind in self.kinds_.items()
            }
        )

    def _sources(self) -> list[str]:
        sources = []
        for part, fitted, names in self.encoder_.transformers_:
            if part == "numbers":
                marked = fitted[0].indicator_.features_
                sources += [*names, *(names[i] for i in marked)]
            elif part == "categories":
                for name, widths in zip(names, _widths(fitted), strict=True):
                    sources += [name] * sum(widths)
        return sources

    def _used(self, name: str, column: Any) -> ColumnTreatment:
        kind, gaps = self.kinds_[name], int(column.isna().sum())
        if kind == CATEGORY:
            part = self.encoder_.named_transformers_["categories"]
            place = list(part.feature_names_in_).index(name)
            levels, pooled = _widths(part)[place]
            text = f"one column for each of {levels} levels"
            if pooled:
                n_rare = len(part.infrequent_categories_[place])
                text += f", {n_rare} rare ones pooled"
            if gaps:
                text += f", {gaps:,} gaps being a level"
            return ColumnTreatment(name, kind, text)
        text = {NUMBER: "scaled", YES_NO: "as 0 and 1, scaled", DATE: "as seconds, scaled"}[kind]
        if gaps:
            text += f", {gaps:,} gaps filled with the median and marked"
        return ColumnTreatment(name, kind, text)

    def _warn_of_new_levels(self, table: Any) -> None:
        for part, fitted, names in self.encoder_.transformers_:
            if part != "categories":
                continue
            for name, levels in zip(names, fitted.categories_, strict=True):
                is_new = ~table[name].isin(levels)
                if is_new.any():
                    warn(
                        f"Column {name!r} has values that the fitted data did not have, such as "
                        f"{table[name][is_new].iloc[0]!r}, in {is_new.sum():,} of {len(table):,} "
                        "rows: they are treated as rare."
                    )


def _column_transformer(kinds: dict[str, str]) -> ColumnTransformer:
    categories = [name for name, kind in kinds.items() if kind == CATEGORY]
    numbers = [name for name, kind in kinds.items() if kind != CATEGORY]
    fill = SimpleImputer(strategy="median", add_indicator=True)
    levels = OneHotEncoder(
        min_frequency=_RARE, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    parts = [
        ("numbers", make_pipeline(fill, StandardScaler()), numbers),
        ("categories", levels, categories),
    ]
    return ColumnTransformer([part for part in parts if part[2]])


def _widths(levels: OneHotEncoder) -> list[tuple[int, int]]:
    """Return, for each category, its frequent levels and whether rare ones share a column."""
    rare = [0 if r is None else len(r) for r in levels.infrequent_categories_]
    return [(len(c) - r, int(r > 0)) for c, r in zip(levels.categories_, rare, strict=True)]


def _as_kind(column: Any, kind: str) -> Any:
    """Return a column of new rows in the plain type of the kind that was fitted."""
    if common_kind((kind_of(column), kind)) is None and kind != CATEGORY:
        found = kind_of(column)
        try:
            if found != CATEGORY:
                raise ValueError
            return plain(column, kind)
        except (TypeError, ValueError):
            raise ValueError(
                f"Expected column {column.name!r} to hold a {kind}, as in the fitted data, got a "
                f"{found} such as {column.dropna().iloc[0]!r}."
            ) from None
    return plain(column, kind)


def _is_frame(X: Any) -> bool:
    if lazy_loader(X):
        return False
    return hasattr(X, "columns") and (hasattr(X, "dtypes") or hasattr(X, "to_pandas"))


def as_pandas(X: Any) -> Any:
    """Return any data frame as a pandas one whose column names are distinct text.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The rows.

    Returns
    -------
    frame : pandas data frame
        Not the user's own.
    """
    frame = X.copy(deep=False) if hasattr(X, "iloc") else X.to_pandas()
    frame.columns = [str(name) for name in frame.columns]
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"Expected distinct column names, got {twice!r} twice.")
    return frame
