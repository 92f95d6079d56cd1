"""One sample: its blocks as numbers, and passes over them that gather rows or add up sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from scipy import sparse

from classprior._core.messages import listed
from classprior._core.types import Doubles, Ints, Rows
from classprior._samples.checkpoint import Checkpoint
from classprior._samples.progress import progress
from classprior._samples.sources import LocalSource, NotAllRowsError, Source, of_all_rows
from classprior._tables.checks import RowError, check_rows, plain_error
from classprior._tables.tables import (
    Block,
    Span,
    as_frame,
    column_names,
    rows_between,
    select_columns,
    stacked_tables,
    take_rows,
)

NEGATIVES = "confirmed negatives"


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
        with located(self.name, block, row):
            return self.transform.transform(
                as_frame(table, self.columns) if self.as_frames else table
            )

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


@contextmanager
def located(name: str, block: Block, row: int) -> Iterator[None]:
    """Name the sample, the block and the row in errors about a table that begins in a row."""
    where = f"{name}, {block.where}"
    try:
        yield
    except RowError as error:
        number = block.number_of(row + error.row)
        raise ValueError(error.at(f"{where} (first in row {number})")) from error
    except (TypeError, ValueError) as error:
        raise plain_error(error, f"In {where}: {error}") from error


def _number_in_file(block: Block, row: int, place: int) -> int:
    return block.number_of(row + place)


@dataclass(frozen=True, eq=False)
class Sample:
    """A source of blocks, and the reader that converts them to numbers."""

    kind: str  # "known positives" or "unlabeled rows"
    source: Source
    reader: Reader
    checkpoint: Checkpoint = field(default_factory=partial(Checkpoint, None))
    verbose: int = 0
    rows: Rows | None = None  # all rows as validated numbers, if they are in memory

    @classmethod
    def of_rows(cls, kind: str, X: Rows, name: str) -> Sample:
        """Return a sample of validated rows in memory."""
        return cls(kind, LocalSource.of_rows(X, name), Reader("X", is_clean=True), rows=X)

    @classmethod
    def of_negatives(cls, X: Rows) -> Sample:
        """Return validated rows in memory that are confirmed to be negative."""
        return cls.of_rows(NEGATIVES, X, "X_negative")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    @property
    def n_bytes(self) -> float:
        """Approximate size of all rows in bytes, as numbers."""
        return self.n_rows * self.reader.row_bytes

    def collect(self, work: Callable[[Block], tuple[Span, Any]], doing: str) -> list[Any]:
        """Return the results of all blocks, in the order of the rows."""
        return [part for _, part in sorted(self._passed(work, doing), key=itemgetter(0))]

    def gather(self, rows: Ints, *, raw: bool = False) -> Any:
        """Return rows by increasing index; with ``raw``, not converted to numbers."""
        parts = self.collect(_Gather(self.reader, rows, raw), "Drawing from")
        return stacked_tables([part for part in parts if part is not None])

    def add_up(self, work: Callable[[Block], tuple[Span, Doubles]], key: str) -> Doubles:
        """Add the sums of all blocks in order, resuming from a checkpoint."""
        merged, total = self.checkpoint.load(key) or (0, None)
        try:
            for _, part in self._passed(work, "Sums over", merged):
                if total is None:  # arrays from other processes may be read-only
                    total = part if part.flags.writeable else part.copy()
                else:
                    np.add(total, part, out=total)
                merged += 1
                self.checkpoint.save(key, merged, total)
        except NotAllRowsError:
            self.checkpoint.end()  # it is unknown which rows the saved sums cover
            raise
        if total is None:
            raise ValueError(f"{self.source.name} has no rows.")
        self.checkpoint.save(key, merged, total, whole=True)
        return total

    def _passed(
        self, work: Callable[[Block], tuple[Span, Any]], doing: str, skip: int = 0
    ) -> Iterator[tuple[Span, Any]]:
        source = self.source
        in_order = self.checkpoint.is_active  # a checkpoint covers the first blocks
        return progress(
            of_all_rows(source.map(work, skip), source, skip, in_order=in_order),
            source.n_rows,
            f"{doing} {self.kind}",
            0 if self.reader.is_clean else self.verbose,
            rows_of=lambda result: result[0][1],
            done=sum(source.sizes[:skip]),
        )


@dataclass(frozen=True, eq=False)
class _Gather:
    """Gathers rows of a block by index; a block without any of them is not read."""

    reader: Reader
    rows: Ints
    raw: bool

    def __call__(self, block: Block) -> tuple[Span, Any]:
        inside = rows_between(self.rows, block.start, block.n_rows)
        if not len(inside):
            return block.span, None
        parts = []
        for start, table in (self.reader.tables if self.raw else self.reader)(block):
            places = rows_between(inside, start, table.shape[0]) - start
            if len(places) == table.shape[0]:
                parts.append(table)
            elif len(places):
                parts.append(take_rows(table, places))
        return block.span, stacked_tables(parts)
