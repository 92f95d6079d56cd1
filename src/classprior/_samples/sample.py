"""One sample: its blocks as numbers, and passes over them that gather rows or add up sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from classprior._core.keys import places_in
from classprior._core.messages import OptionError, listed
from classprior._core.types import Doubles, Ids, Keys, Rows
from classprior._samples.checkpoint import Checkpoint
from classprior._samples.progress import progress
from classprior._samples.sources import LocalSource, NotAllRowsError, Source, of_all_rows
from classprior._tables.checks import RowError, check_rows, plain_error
from classprior._tables.keys import hashed_columns
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


class Part(NamedTuple):
    """Consecutive rows of a block."""

    start: int  # index of the first row in the sample
    rows: Any  # as numbers, or as a table
    keys: Keys | None  # hashes of the keys of the rows, if they have any


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
    key: tuple[Any, ...] | Keys | None = None  # columns of the key, or the hashes of all rows

    def __call__(self, block: Block) -> Iterator[Part]:
        """Yield the rows of each table as numbers."""
        if self.is_clean:
            keys = self._keys(None, block, block.start, block.n_rows)
            yield Part(block.start, block.content, keys)
            return
        where = f"{self.name}, {block.where}"
        for row, table, keys in self.tables(block):
            numbers = table if self.transform is None else self._transformed(table, block, row)
            place = partial(_number_in_file, block, row)
            rows = check_rows(numbers, where, place)
            if self.as_sparse:
                yield Part(row, sparse.csr_array(rows), keys)
            else:  # the sums access single rows, which are not contiguous in data frames
                rows = rows.toarray() if sparse.issparse(rows) else rows
                yield Part(row, np.ascontiguousarray(rows), keys)

    def keys(self, block: Block) -> Iterator[tuple[int, Keys]]:
        """Yield the index of the first row of each table, and the keys, reading nothing else."""
        if isinstance(self.key, np.ndarray):
            yield block.start, self.key[block.start : block.start + block.n_rows]
            return
        for start, _, keys in replace(self, columns=self.key, transform=None).tables(block):
            assert keys is not None
            yield start, keys

    def tables(self, block: Block) -> Iterator[Part]:
        """Yield the selected columns of each table."""
        row = block.start
        names = self.columns
        if names is not None and isinstance(self.key, tuple):
            names = tuple(dict.fromkeys([*names, *self.key]))
        for table in block.tables(names):
            keys = self._keys(table, block, row, table.shape[0])
            yield Part(row, self._selected(table, block.where), keys)
            row += table.shape[0]
        if row != block.start + block.n_rows:
            raise ValueError(
                f"Expected {block.n_rows:,} rows in {block.where} of {self.name}, got "
                f"{row - block.start:,}. The data must not change while they are being read."
            )

    def _keys(self, table: Any, block: Block, row: int, n_rows: int) -> Keys | None:
        """Return the keys of consecutive rows; raise if one is missing."""
        if self.key is None or isinstance(self.key, np.ndarray):
            return None if self.key is None else self.key[row : row + n_rows]
        self._check_names(self.key, column_names(table) or (), block.where)
        keys, is_missing = hashed_columns([table[name] for name in self.key])
        if is_missing.any():
            number = block.number_of(row + int(np.argmax(is_missing)))
            raise OptionError(
                f"The key {listed(self.key)} of {self.name}, {block.where}, has no value in row "
                f"{number}. A key must tell every row from the others: fill in the missing values, "
                "drop those rows, or choose another key.",
                "key",
            )
        return keys

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
        self._check_names(self.columns, names, where)
        return select_columns(table, self.columns)

    def _check_names(self, wanted: Sequence[Any], names: Sequence[Any], where: str) -> None:
        """Raise if a block does not have all wanted columns."""
        if missing := [name for name in wanted if name not in names]:
            raise ValueError(
                f"Expected the columns {listed(wanted)} in every block, but {where} of "
                f"{self.name} has no {listed(missing)}."
            )


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
    # What is known of the keys of the rows, shared by all copies with other readers.
    known_keys: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of_rows(cls, kind: str, X: Rows, name: str, keys: Keys | None = None) -> Sample:
        """Return a sample of validated rows in memory, in the order of their keys."""
        reader = Reader("X", is_clean=True, key=keys)
        return cls(kind, LocalSource.of_rows(X, name), reader, rows=X)

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

    @property
    def has_key(self) -> bool:
        """Whether rows are told apart by a key instead of their index."""
        return self.reader.key is not None

    @property
    def by_index(self) -> Sample:
        """The same sample, whose rows are told apart by their index."""
        return replace(self, reader=replace(self.reader, key=None))

    def gather(self, rows: Ids, *, raw: bool = False) -> Any:
        """Return rows by increasing index or key; with ``raw``, not converted to numbers."""
        wants_all = self.has_key and len(rows) == self.n_rows
        work = _Gather(self.reader, rows[:0] if wants_all else rows, raw, wants_all)
        parts = self.collect(work, "Drawing from")
        found = [part for part in parts if part is not None]
        table = stacked_tables([part.rows for part in found])
        if not self.has_key:
            return table
        return take_rows(table, np.argsort(np.concatenate([part.keys for part in found])))

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
    """Gathers rows of a block by index or key; a block without any of them is not read."""

    reader: Reader
    wanted: Ids
    raw: bool
    wants_all: bool = False  # then ``wanted`` is not needed

    def __call__(self, block: Block) -> tuple[Span, Part | None]:
        if self.reader.key is None:
            inside = rows_between(self.wanted, block.start, block.n_rows)
            if not len(inside):
                return block.span, None
        rows, keys = [], [np.empty(0, dtype=np.uint64)]
        for part in (self.reader.tables if self.raw else self.reader)(block):
            if part.keys is None:
                places = rows_between(inside, part.start, part.rows.shape[0]) - part.start
            else:
                is_wanted = self.wants_all | (places_in(self.wanted, part.keys) >= 0)
                places = np.flatnonzero(is_wanted)
                keys.append(part.keys[places])
            if len(places) == part.rows.shape[0]:
                rows.append(part.rows)
            elif len(places):
                rows.append(take_rows(part.rows, places))
        if not rows:
            return block.span, None
        return block.span, Part(block.start, stacked_tables(rows), np.concatenate(keys))
