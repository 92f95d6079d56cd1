"""One sample: passes over its blocks that gather rows or add up sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from classprior._core.types import Doubles, Ints, Rows
from classprior._samples.checkpoint import Checkpoint
from classprior._samples.progress import progress
from classprior._samples.reader import Reader
from classprior._samples.sources import LocalSource, NotAllRowsError, Source, of_all_rows
from classprior._samples.sums import rows_between
from classprior._tables.blocks import Block, Span
from classprior._tables.tables import stacked_tables, take_rows


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
        in_order = self.checkpoint.is_kept  # a checkpoint covers the first blocks
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
