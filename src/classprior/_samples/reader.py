"""From a block to numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from classprior._core.messages import listed
from classprior._core.types import Rows
from classprior._tables.blocks import Block
from classprior._tables.checks import RowError, check_rows
from classprior._tables.tables import as_frame, column_names, select_columns


@dataclass(frozen=True, eq=False)
class Reader:
    """Converts the tables of a block to finite numbers; errors name the block and the row."""

    name: str  # of the sample, in error messages
    columns: tuple[Any, ...] | None = None  # to select, in this order, if columns have names
    n_features: int | None = None  # number of columns in the tables
    n_out: int | None = None  # number of columns after conversion
    transform: Any = None  # fitted transformer from tables to numbers
    as_frames: bool = False  # whether the transformer needs pandas data frames
    as_sparse: bool = False  # return CSR matrices, also for dense tables
    row_bytes: float = 0.0  # approximate, after conversion
    is_clean: bool = False  # rows are already checked and returned unchanged

    def __call__(self, block: Block) -> Iterator[tuple[int, Rows]]:
        """Yield the index of the first row of each table, and its rows as numbers."""
        if self.is_clean:
            yield block.start, block.content
            return
        where = f"{self.name}, {block.where}"
        for row, table in self.tables(block):
            numbers = table if self.transform is None else self._transformed(table, block, row)
            place = partial(_number_in_file, block, row)
            rows = check_rows(numbers, where, place)
            if self.as_sparse:
                yield row, sparse.csr_array(rows)
            else:  # the sums access single rows, which are not contiguous in data frames
                rows = rows.toarray() if sparse.issparse(rows) else rows
                yield row, np.ascontiguousarray(rows)

    def tables(self, block: Block) -> Iterator[tuple[int, Any]]:
        """Yield the index of the first row of each table, and the selected columns."""
        row = block.start
        for table in block.tables(self.columns):
            yield row, self._selected(table, block.where)
            row += table.shape[0]
        if row != block.start + block.n_rows:
            raise ValueError(
                f"Expected {block.n_rows:,} rows in {block.where} of {self.name}, got "
                f"{row - block.start:,}. The data must not change while they are being read."
            )

    def _transformed(self, table: Any, block: Block, row: int) -> Any:
        where = f"{self.name}, {block.where}"
        try:
            return self.transform.transform(
                as_frame(table, self.columns) if self.as_frames else table
            )
        except RowError as error:
            number = block.number_of(row + error.row)
            raise ValueError(error.at(f"{where} (first in row {number})")) from error
        except (TypeError, ValueError) as error:
            number = block.number_of(row)
            raise type(error)(f"{where}, starting at row {number:,}: {error}") from error

    def _selected(self, table: Any, where: str) -> Any:
        """Return the table with the selected columns, in order."""
        names = column_names(table)
        if self.columns is None or names is None:
            if table.shape[1] != self.n_features:
                raise ValueError(
                    f"Expected {self.n_features} columns in {where} of {self.name}, the number in "
                    f"the first block, got {table.shape[1]}."
                )
            return table
        if tuple(names) == self.columns:
            return table
        if missing := [name for name in self.columns if name not in names]:
            raise ValueError(
                f"Expected the columns {listed(self.columns)} in every block, but {where} of "
                f"{self.name} has no {listed(missing)}."
            )
        return select_columns(table, self.columns)


def _number_in_file(block: Block, row: int, place: int) -> int:
    return block.number_of(row + place)
