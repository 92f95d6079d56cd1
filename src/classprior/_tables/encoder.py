"""Encoding of tables as numbers: categories, dates, missing values and scaling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from classprior._core.bins import group_keys
from classprior._core.messages import listed, warn
from classprior._core.types import Bools, Rows
from classprior._tables.checks import (
    check_new_rows,
    check_rows,
    restored_on_error,
    rows_by_label,
)
from classprior._tables.columns import (
    CATEGORY,
    CONSTANT,
    DATE,
    EMPTY,
    IDENTIFIER,
    MISSING,
    NUMBER,
    RARE,
    TEXT,
    YES_NO,
    ColumnTreatment,
    first_raw,
    is_gap,
    is_of_raw,
    plain,
)
from classprior._tables.identifiers import why_identifier
from classprior._tables.tables import column_names
from classprior._tables.typed import (
    as_kind,
    check_all_sizes,
    check_bytes,
    columns_of,
    common_kinds,
    not_text,
    warn_of_far_dates,
)

_RARE_SHARE = 0.02  # levels in a smaller share of the rows are pooled
_NO_NUMBER = np.finfo(np.float64).smallest_subnormal  # stands for a missing value


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode tables with categories, dates and missing values as numbers.

    This is the encoding that ``estimate_prior`` uses. Numbers are standardized; missing values are
    replaced by the median and flagged in an indicator column. Categories are one-hot encoded, with
    one column for all rare levels (less than 2% of the rows). Columns that are constant or empty,
    number the rows, or look like identifiers or free text, are left out. Sparse matrices are only
    scaled. The columns of an array have the names "0", "1" and so on.

    Parameters
    ----------
    keep : sequence of str
        Columns to use even if they look like identifiers or free text.
    scale : bool, default=True
        Whether to standardize numbers.

    Attributes
    ----------
    kinds_ : dict of str to str
        Kind of each column that is used.
    sources_ : list of str or None
        Input column of each output column; None for sparse input.
    treatments_ : tuple of ColumnTreatment
        How each column was encoded, or why it was left out.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of str
        Names of the columns seen in fit, if they have names.

    Examples
    --------
    >>> import pandas as pd
    >>> from classprior import TableEncoder
    >>> table = pd.DataFrame({"amount": [1.0, None, 3.0], "country": ["NL", "DE", "NL"]})
    >>> encoder = TableEncoder().set_output(transform="pandas")
    >>> list(encoder.fit_transform(table))
    ['amount', 'amount (missing)', 'country=DE', 'country=NL']
    """

    __module__ = "classprior"  # saved models refer to the public name

    kinds_: Any
    sources_: list[str] | None
    treatments_: tuple[ColumnTreatment, ...]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(self, *, keep: Sequence[str] = (), scale: bool = True) -> None:
        self.keep = keep
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the kinds, medians, scales and levels of the columns.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_columns)
            The rows.
        y : array-like of shape (n_rows,) or None, default=None
            Labels. They only help to recognize row numbers that start again in each of two samples.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        with restored_on_error(self):
            self.fit_tables([X], y=y)
        return self

    def transform(self, X: Any) -> Rows:
        """Encode rows as numbers.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_columns)
            Rows with the columns seen in fit.

        Returns
        -------
        X : array or CSR matrix
            The encoded rows.
        """
        return self._transformed(X, warns=True)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the encoded columns.

        They are ``amount`` and ``amount (missing)`` for a number and the indicator of its missing
        values; ``country=NL``, ``country=(rare)`` and ``country=(missing)`` for a level, the rare
        levels and the missing values of a category.

        Parameters
        ----------
        input_features : sequence of str or None, default=None
            Names of the columns, if they had none in fit; otherwise, the names seen in fit.

        Returns
        -------
        names : ndarray of str
            The names, in the order of the encoded columns.
        """
        check_is_fitted(self)
        known = self._known_names
        given = known if input_features is None else [str(name) for name in input_features]
        if len(given) != len(known) or (hasattr(self, "feature_names_in_") and given != known):
            raise ValueError(
                "input_features is not equal to feature_names_in_, or should have length equal to "
                f"number of features: expected {listed(known)}, got {listed(given)}."
            )
        name_of = dict(zip(known, given, strict=True))
        outputs = [(name, "") for name in known] if self.kinds_ is None else self._outputs()
        return np.array([name_of[source] + mark for source, mark in outputs], dtype=object)

    def for_own_rows(self) -> _OwnRows:
        """Return a transformer for more rows of the fitted data, silent about unseen levels."""
        return _OwnRows(self)

    def for_matching(self) -> _AsValues:
        """Return a transformer to rows that are equal if all values are, even in rare levels."""
        return _AsValues(self)

    @property
    def gappy_numbers(self) -> set[str]:
        """Columns other than categories in which values were missing in fit, which is flagged."""
        return {name for name, mark in self._outputs() if mark == f" {MISSING}"}

    def _transformed(self, X: Any, *, warns: bool) -> Rows:
        check_is_fitted(self)
        if self.kinds_ is None:
            return self._scaled(check_new_rows(self, X))
        columns = self._typed(X)
        if warns:
            self._warn_of_new_gaps(columns)
            self._warn_of_new_levels(columns)
        return self._encoded(columns)

    def _typed(self, X: Any) -> dict[str, NDArray[Any]]:
        """Return the used columns of a table, each of its fitted kind."""
        table = columns_of(X, self._known_names)
        absent = [name for name in self.kinds_ if name not in table]
        if absent:
            raise ValueError(
                f"The table has no column {listed(absent)}, which the encoder was fitted with. It "
                f"has {listed(list(table))}."
            )
        for name in self._names_of(CATEGORY):
            raw = first_raw(table[name])
            if raw is not None and not any(map(is_of_raw, chain(*self._levels()[name]))):
                raise not_text(name, *raw)
        return {name: as_kind(table[name], kind, name) for name, kind in self.kinds_.items()}

    def fit_tables(
        self,
        tables: Sequence[Any],
        place_of: Callable[[int, int], str] | None = None,
        y: Any = None,
    ) -> list[Rows]:
        """Fit to tables with the same columns and encode each.

        ``place_of`` describes a row of a table, given the number of the table and of the row.
        ``y`` are the labels of the rows of a single table, if it has any.
        """
        if any(map(sparse.issparse, tables)):
            return self._fit_sparse([sparse.csr_array(table) for table in tables])
        names = next((column_names(table) for table in tables if column_names(table)), None)
        names = None if names is None else [str(name) for name in names]
        parts = [columns_of(table, names) for table in tables]
        self._remember(names, len(parts[0]))
        kinds = common_kinds(parts)
        check_bytes(parts, kinds, place_of)
        plains = [{name: plain(part[name], kind) for name, kind in kinds.items()} for part in parts]
        for number, part in enumerate(plains):
            check_all_sizes(part, kinds, place_of and partial(place_of, number))
        warn_of_far_dates(parts, plains, kinds)
        columns = {name: np.concatenate([part[name] for part in plains]) for name in kinds}
        sizes = [len(next(iter(part.values()))) for part in plains]
        by_label = rows_by_label(y, sizes[0]) if len(sizes) == 1 and y is not None else None
        ends = np.cumsum(sizes)
        samples = by_label or [slice(end - n, end) for end, n in zip(ends, sizes, strict=True)]
        left_out = {name: self._left_out(name, columns, kinds, samples) for name in kinds}
        self.kinds_ = {name: kind for name, kind in kinds.items() if left_out[name] is None}
        if not self.kinds_:
            raise ValueError(_why_nothing_is_left(columns, left_out))
        numbers, texts = self._split(columns)
        # The output has numbers first, then indicators of missing values, then categories.
        if self._names_of(CATEGORY, inverted=True):
            fill = SimpleImputer(strategy="median", add_indicator=True)
            self.numbers_ = make_pipeline(fill, *([StandardScaler()] if self.scale else []))
            self.numbers_.fit(numbers)
        if self._names_of(CATEGORY):
            self.levels_ = OneHotEncoder(
                min_frequency=_RARE_SHARE, handle_unknown="infrequent_if_exist", sparse_output=False
            ).fit(texts)
        self.sources_ = [source for source, _ in self._outputs()]
        levels = self._levels()
        self.treatments_ = tuple(
            left_out[name] or self._used(name, columns[name], levels.get(name)) for name in kinds
        )
        return [self._encoded(part) for part in plains]

    @property
    def _known_names(self) -> list[str]:
        """Names of the columns seen in fit; "0", "1" and so on if they had none."""
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return [str(name) for name in names]

    def _remember(self, names: list[str] | None, n_columns: int) -> None:
        """Set what scikit-learn wants to know of the columns seen in fit."""
        self.n_features_in_ = n_columns
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def _fit_sparse(self, tables: list[Any]) -> list[Rows]:
        checked = [check_rows(table, "X") for table in tables]
        self._remember(None, checked[0].shape[1])
        self.kinds_ = self.sources_ = None
        self.treatments_ = ()
        if self.scale:
            self.numbers_ = StandardScaler(with_mean=False).fit(sparse.vstack(checked))
        return [self._scaled(table) for table in checked]

    def _scaled(self, X: Rows) -> Rows:
        return sparse.csr_array(self.numbers_.transform(X)) if self.scale else X

    def _left_out(
        self,
        name: str,
        columns: dict[str, NDArray[Any]],
        kinds: dict[str, str],
        samples: Sequence[slice | Bools],
    ) -> ColumnTreatment | None:
        """Return why a column is left out, None if it is used."""
        kind, column = kinds[name], columns[name]
        if kind == EMPTY:
            return ColumnTreatment(name, EMPTY, "left out: all values are missing")
        is_constant = (
            len(set(column)) == 1
            if kind == CATEGORY
            else np.all(column == column[0]) or np.all(np.isnan(column.astype(float)))
        )
        if is_constant:
            return ColumnTreatment(name, CONSTANT, "left out: all values are the same")
        if name in map(str, self.keep):
            return None
        reason = why_identifier([column[rows] for rows in samples], kind, name, kinds)
        if reason:
            return ColumnTreatment(name, IDENTIFIER, f"left out: {reason}")
        if kind == CATEGORY:
            _, counts = np.unique(_without_gaps(column), return_counts=True)
            if counts.max() < _RARE_SHARE * len(column):
                reason = f"left out: no value occurs in {_RARE_SHARE:.0%} of the rows"
                return ColumnTreatment(name, TEXT, reason)
        return None

    def _names_of(self, kind: str, *, inverted: bool = False) -> list[str]:
        return [name for name, found in self.kinds_.items() if (found == kind) != inverted]

    def _split(self, columns: dict[str, NDArray[Any]]) -> tuple[Rows, NDArray[Any]]:
        """Return the used columns as a matrix of floats and one of text without gaps."""
        numbers = [columns[name].astype(float) for name in self._names_of(CATEGORY, inverted=True)]
        texts = [_without_gaps(columns[name]) for name in self._names_of(CATEGORY)]
        n_rows = len(next(iter(columns.values())))
        return (
            np.column_stack(numbers) if numbers else np.empty((n_rows, 0)),
            np.column_stack(texts) if texts else np.empty((n_rows, 0), dtype=object),
        )

    def _encoded(self, columns: dict[str, NDArray[Any]]) -> Rows:
        numbers, texts = self._split(columns)
        parts = []
        if numbers.shape[1]:
            parts.append(self.numbers_.transform(numbers))
        if texts.shape[1]:
            parts.append(self.levels_.transform(texts))
        return np.hstack(parts)

    def _outputs(self) -> list[tuple[str, str]]:
        """Return for each output column its input column, and what is added to its name."""
        numbers = self._names_of(CATEGORY, inverted=True)
        outputs = [(name, "") for name in numbers]
        if numbers:
            flagged = self.numbers_[0].indicator_.features_
            outputs += [(numbers[i], f" {MISSING}") for i in flagged]
        for name, (frequent, rare) in self._levels().items():
            outputs += [(name, f"={level}") for level in (*frequent, *([RARE] if rare else []))]
        return outputs

    def _levels(self) -> dict[str, tuple[list[str], list[str]]]:
        """Return the frequent levels of each category, and the rare ones, which are pooled."""
        names = self._names_of(CATEGORY)
        if not names:
            return {}
        rare = [[] if r is None else list(r) for r in self.levels_.infrequent_categories_]
        frequent = [
            [level for level in levels if level not in pooled]
            for levels, pooled in zip(self.levels_.categories_, map(set, rare), strict=True)
        ]
        return dict(zip(names, zip(frequent, rare, strict=True), strict=True))

    def _used(
        self, name: str, column: NDArray[Any], levels: tuple[list[str], list[str]] | None
    ) -> ColumnTreatment:
        kind = self.kinds_[name]
        if levels is not None:
            frequent, rare = levels
            gaps = int(is_gap(column).sum())
            n = len(frequent)
            text = "one column for 1 level" if n == 1 else f"one column for each of {n} levels"
            if rare:
                text += f", {len(rare)} rare ones pooled"
            if gaps:
                text += f", {gaps:,} missing values treated as a level"
            return ColumnTreatment(name, kind, text)
        text = {NUMBER: "", YES_NO: "as 0 and 1", DATE: "as seconds"}[kind]
        scaled = "scaled" if self.scale else "unchanged" if kind == NUMBER else ""
        text = ", ".join(part for part in (text, scaled) if part)
        gaps = int(np.isnan(column.astype(float)).sum())
        if gaps:
            text += f", {gaps:,} missing values replaced by the median and flagged"
        return ColumnTreatment(name, kind, text)

    def _warn_of_new_gaps(self, columns: dict[str, NDArray[Any]]) -> None:
        """Warn of numbers that are all missing, if none was missing in the fitted data."""
        numbers = set(self._names_of(CATEGORY, inverted=True)) - self.gappy_numbers
        for name in (name for name in columns if name in numbers):
            if np.isnan(columns[name].astype(float)).all():
                warn(
                    f"Column {name!r} has no values here, but no value was missing in the fitted "
                    "data. The median of these is used."
                )

    def _warn_of_new_levels(self, columns: dict[str, NDArray[Any]]) -> None:
        names = self._names_of(CATEGORY)
        for name, levels in zip(names, self.levels_.categories_ if names else [], strict=True):
            values, known = _without_gaps(columns[name]), set(levels)
            is_new = np.array([value not in known for value in values])
            if is_new.any():
                warn(
                    f"Column {name!r} has values that are not in the fitted data, such as "
                    f"{values[is_new][0]!r}, in {is_new.sum():,} of {len(values):,} rows. They are "
                    "encoded as rare levels."
                )


@dataclass(frozen=True, eq=False)
class _OwnRows:
    """An encoder that does not warn of levels missing from its sample of the rows."""

    encoder: TableEncoder

    def transform(self, X: Any) -> Rows:
        return self.encoder._transformed(X, warns=False)


@dataclass(frozen=True, eq=False)
class _AsValues:
    """Makes one number of each value of the used columns, text by its hash."""

    encoder: TableEncoder

    def transform(self, X: Any) -> Rows:
        numbers, texts = self.encoder._split(self.encoder._typed(X))
        hashes = [group_keys(column) >> np.uint64(12) for column in texts.T]  # exact as floats
        return np.column_stack([np.where(np.isnan(numbers), _NO_NUMBER, numbers), *hashes])


def _why_nothing_is_left(
    columns: dict[str, NDArray[Any]], left_out: dict[str, ColumnTreatment | None]
) -> str:
    if len(next(iter(columns.values()))) == 1:
        return "Expected at least two rows, got one (n_samples=1)."
    reasons = "; ".join(f"{t.name!r} is {t.treatment}" for t in left_out.values() if t)
    return f"No usable column: {reasons}. Add columns that describe the rows."


def _without_gaps(column: NDArray[Any]) -> NDArray[Any]:
    filled = column.copy()
    filled[is_gap(column)] = MISSING
    return filled
