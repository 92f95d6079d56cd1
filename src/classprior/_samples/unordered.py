"""Rows of queries, in no promised order: keys from their contents, and checks of every pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from classprior._core.keys import copies_before, hashed_numbers, mixed, places_in
from classprior._core.types import Ints, Keys
from classprior._files.streams import SPOOL, Stream
from classprior._samples.sources import LocalSource, Source
from classprior._tables.keys import content_hashes, numbered_copies
from classprior._tables.tables import Block

_KEY = "key of the contents"  # a column that is added to each block


@dataclass
class _Seen:
    """What a pass has seen: whether two passes saw the same rows, and in the same order."""

    total: int = 0
    in_order: int = 0
    n_rows: int = 0

    def add(self, hashes: Keys) -> None:
        """Add the hashes of the next rows."""
        places = np.arange(self.n_rows, self.n_rows + len(hashes), dtype=np.uint64)
        self.total = (self.total + int(hashes.sum(dtype=np.uint64))) % 2**64
        in_order = mixed(hashes + mixed(places)).sum(dtype=np.uint64)
        self.in_order = (self.in_order + int(in_order)) % 2**64
        self.n_rows += len(hashes)


class UnorderedSource(LocalSource):
    """Rows of a query, which may come in another order in each pass, but must stay the same."""

    has_order = False
    can_resume = False

    def __init__(self, stream: Stream, name: str, **how: Any) -> None:
        columns = stream.columns
        super().__init__(name, columns, len(columns), self._checked, stream.kind, **how)
        self._stream = stream
        self._first = _Seen()  # in the first pass, which counts the rows
        self._repeated = np.empty(0, dtype=np.uint64)  # hashes of contents that several rows have
        self._has_keys = False
        self._is_same_order = True  # in all passes so far
        self._keeps_order = False

    def key_of_contents(self) -> tuple[str]:
        """Add a column with the keys of the rows to each block; return its name."""
        self._has_keys = True
        return (_KEY,)

    def keep_order(self) -> None:
        """Raise if rows come in different orders, in the passes so far or in later ones."""
        self._keeps_order = True
        if not self._is_same_order:
            raise ValueError(
                f"The rows of {self.name}, {self.identity}, came in different orders in two "
                "passes, but weights, groups, segments and row numbers need the same order. Sort "
                "them in the query (ORDER BY, or sort), or have them copied to a temporary file "
                f"first, with {SPOOL}."
            )

    def _count_rows(self) -> list[int]:
        """Count the rows in a first pass, and remember what they are."""
        sizes, parts = [], [np.empty(0, dtype=np.uint64)]
        for block in self._stream():
            hashes = content_hashes(block.content)
            self._first.add(hashes)
            sizes.append(block.n_rows)
            if self._has_keys:
                parts.append(hashes)
        hashes = np.sort(np.concatenate(parts))
        self._repeated = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
        return sizes

    def _checked(self) -> Iterator[Block]:
        """Read all rows, and compare them with those of the first pass."""
        seen, copies = _Seen(), np.zeros(len(self._repeated), dtype=np.int64)
        for block in self._stream():
            hashes = content_hashes(block.content)
            seen.add(hashes)
            if self._has_keys:
                keys = self._numbered(hashes, copies)
                block = replace(block, content=block.content.append_column(_KEY, [keys]))
            yield block
        if seen.n_rows == 0 < self._first.n_rows:
            raise self._stream.read_only_once()
        if seen.total != self._first.total:
            raise self._changed("other values")
        self._is_same_order &= seen.in_order == self._first.in_order
        if self._keeps_order:
            self.keep_order()

    def _numbered(self, hashes: Keys, copies: Ints) -> Keys:
        """Return a key for each row, given how many copies of rows came before; count them."""
        places = places_in(self._repeated, hashes)
        again = np.flatnonzero(places >= 0)
        numbers = np.zeros(len(hashes), dtype=np.int64)
        numbers[again] = copies[places[again]] + copies_before(hashes[again])
        copies += np.bincount(places[again], minlength=len(copies))
        return numbered_copies(hashes, numbers)


def keys_without_names(sources: Sequence[Source]) -> tuple[tuple[str, ...] | Keys | None, ...]:
    """Return the keys of rows for which the user named none; None if all sources have an order.

    If one has none, its keys are made of the contents of its rows, and those of the others of their
    row numbers.
    """
    if all(source.has_order for source in sources):
        return (None,) * len(sources)
    return tuple(
        source.key_of_contents()
        if isinstance(source, UnorderedSource)
        else hashed_numbers(np.arange(source.n_rows))
        for source in sources
    )
