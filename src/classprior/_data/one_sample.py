"""One sample: its blocks, and passes over them that gather rows or add up sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from classprior._core.messages import progress
from classprior._core.types import Doubles, Ints, Rows
from classprior._data.blocks import (
    Block,
    LocalSource,
    NotAllRowsError,
    Reader,
    Source,
    Span,
    of_all_rows,
)
from classprior._data.checkpoint import Checkpoint
from classprior._data.work import Gather, stacked_tables


@dataclass(frozen=True, eq=False)
class Sample:
    """A source of blocks, and the reader that converts them to numbers."""

    kind: str  # "known positives" or "unlabeled rows"
    source: Source
    reader: Reader
    checkpoint: Checkpoint = field(default_factory=partial(Checkpoint, None))
    verbose: int = 0

    @classmethod
    def of_rows(cls, kind: str, X: Rows, name: str) -> Sample:
        """Return a sample of validated rows in memory."""
        return cls(kind, LocalSource.of_rows(X, name), Reader("X", is_clean=True))

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
        parts = self.collect(Gather(self.reader, rows, raw), "Drawing from")
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
