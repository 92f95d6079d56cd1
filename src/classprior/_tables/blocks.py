"""Blocks: consecutive rows of a table, which files, memory and clusters hand on to the samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from classprior._core.types import Ints
from classprior._tables.tables import rows_of, unmasked

Span = tuple[int, int]  # first row and number of rows
#: Default block size: small compared with memory, large enough to amortize the cost of a task.
BLOCK_ROWS = 2**15


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a sample, in memory or read lazily."""

    where: str  # name in error messages, such as "part-3.parquet, row group 2"
    content: Any  # an array, a table, or an object whose tables(columns) reads them one by one
    n_rows: int
    start: int = 0  # index of the first row in the sample
    numbers: range | Ints | None = None  # of the rows in their file; by default, from 0 on

    @property
    def span(self) -> Span:
        """Index of the first row and number of rows."""
        return self.start, self.n_rows

    def number_of(self, row: int) -> int:
        """Return the number in its file of a row of the sample."""
        place = row - self.start
        return place if self.numbers is None else int(self.numbers[place])

    def numbers_of(self, places: Ints) -> Ints:
        """Return the numbers in their file of rows, given their places in the block."""
        if isinstance(self.numbers, np.ndarray):
            return self.numbers[places]
        return places + (0 if self.numbers is None else self.numbers.start)

    def tables(self, columns: tuple[Any, ...] | None = None) -> Iterator[Any]:
        """Read the rows as tables of bounded size, only some columns where the file allows it."""
        is_unread = hasattr(self.content, "tables")
        for table in self.content.tables(columns) if is_unread else [self.content]:
            table = table.tocsr() if sparse.issparse(table) else unmasked(table)
            for start in range(0, table.shape[0], BLOCK_ROWS):
                yield rows_of(table, start, min(start + BLOCK_ROWS, table.shape[0]))
