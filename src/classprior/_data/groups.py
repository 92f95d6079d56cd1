"""Keys of groups of rows, from arrays or from a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classprior._core.bins import group_keys
from classprior._core.types import Ints
from classprior._data.blocks import Block, Reader, Span
from classprior._data.checks import unmasked
from classprior._data.columns import is_gap, text_of, texts_of
from classprior._data.parameters import SAMPLES

_GAPS = "None", "nan", "NaT", "<NA>"  # missing values as text


def keys_of_groups(groups: Any, sizes: tuple[int, int]) -> tuple[Any, Any]:
    parts = [np.asarray(unmasked(part)) for part in groups] if len(groups) == 2 else []
    for part, size, called in zip(parts, sizes, SAMPLES, strict=False):
        if part.shape != (size,):
            raise ValueError(
                f"Expected one value in groups for each of the {size} {called}, got an array of "
                f"shape {part.shape}."
            )
    if not parts:
        raise TypeError(
            "Expected groups to be a column name, or a pair of arrays, one for each sample."
        )
    return _keys_of(parts[0], SAMPLES[0]), _keys_of(parts[1], SAMPLES[1])


def _keys_of(values: NDArray[Any], called: str) -> NDArray[np.uint64]:
    """Return group keys by the text of the values: 1, 1.0 and "1" are the same group."""
    if values.dtype.kind in "iuf":  # there are fewer groups than rows
        values, where = np.unique(values, return_inverse=True, equal_nan=False)
    else:
        where = np.arange(len(values))
    texts = [text_of(value) for value in values.tolist()]
    for place, (value, text) in enumerate(zip(values, texts, strict=True)):
        if text in _GAPS and not isinstance(value, str):
            row = int(np.flatnonzero(where == place)[0])
            raise ValueError(f"The group of row {row} of the {called} is missing ({text}).")
    return group_keys(texts)[where]


def check_groups_in_folds(groups: tuple[Any, Any], folds: tuple[Ints, Ints]) -> None:
    pairs = np.unique(np.column_stack([np.concatenate(groups), np.concatenate(folds)]), axis=0)
    if len(pairs) > len(np.unique(pairs[:, 0])):
        raise ValueError(
            "A group has rows in several folds of cv. Put each group in one fold, or leave out cv "
            "or groups."
        )


@dataclass(frozen=True, eq=False)
class GroupKeys:
    """Reads the group keys of a block from a column."""

    reader: Reader
    name: str

    def __call__(self, block: Block) -> tuple[Span, NDArray[np.uint64]]:
        parts = [np.empty(0, dtype=np.uint64)]
        for row, table in self.reader.tables(block):
            texts = texts_of(table[self.name])
            if len(gaps := np.flatnonzero(is_gap(texts))):
                raise ValueError(
                    f"The group column {self.name!r} of {self.reader.name}, {block.where}, has no "
                    f"value in row {block.number_of(row + gaps[0])}. Fill in missing groups, or "
                    "drop those rows."
                )
            parts.append(group_keys(texts.tolist()))
        return block.span, np.concatenate(parts)
