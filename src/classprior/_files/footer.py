"""The footer of a Parquet file: what it says twice must agree, since it has no checksum.

pyarrow does not compare, and ends the process when asked about the columns of some damaged ones. So
the footer is decoded here, from Thrift's compact protocol; the numbers of the fields are those in
``parquet.thrift``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_END = b"PAR1"
_INT96 = 3
_REPEATED = 2
#: Older names of logical types, by the newer and their bits, sign or unit.
_CONVERTED: dict[tuple[Any, ...], int] = {
    **{(1,): 0, (2,): 1, (3,): 3, (4,): 4, (5,): 5, (6,): 6, (12,): 19, (13,): 20},
    **{(7, 1): 7, (7, 2): 8, (8, 1): 9, (8, 2): 10},
    **{(10, bits, False): 11 + n for n, bits in enumerate((8, 16, 32, 64))},
    **{(10, bits, True): 15 + n for n, bits in enumerate((8, 16, 32, 64))},
}


class Leaf(NamedTuple):
    """A column of values, perhaps in a nested column."""

    path: tuple[bytes, ...]
    type: int
    is_repeated: bool  # whether a row may have any number of values

    @property
    def is_int96(self) -> bool:
        """Whether the values are dates as old writers stored them."""
        return self.type == _INT96


def leaves_of(file: Any) -> list[Leaf]:
    """Return the columns of an open Parquet file; raise ValueError if its footer is damaged."""
    footer = _decoded(file)
    if footer is None:
        return []
    try:
        return _checked(footer)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("its footer is damaged") from error


def _decoded(file: Any) -> dict[int, Any] | None:
    """Decode the footer; None if it is encrypted."""
    size = file.size()
    file.seek(size - 8)
    length, end = struct.unpack("<I4s", file.read(8))
    if end != _END:
        return None
    file.seek(max(0, size - 8 - length))
    try:
        return _Compact(file.read(length)).struct()
    except (IndexError, KeyError, struct.error, RecursionError) as error:
        raise ValueError("its footer is damaged") from error


def _checked(footer: dict[int, Any]) -> list[Leaf]:
    """Return the columns; raise if the numbers of rows and values, names or types do not agree."""
    elements = iter(footer[2])
    leaves = list(_leaves(next(elements, {}), elements, (), False))
    groups = footer[4]
    if footer[3] != sum(group[3] for group in groups):
        raise _contradiction("the number of rows")
    for group in groups:
        if len(group[1]) != len(leaves):
            raise _contradiction("the number of columns")
        for leaf, chunk in zip(leaves, group[1], strict=True):
            if 3 not in chunk:  # encrypted
                continue
            column, name = chunk[3], b".".join(leaf.path).decode(errors="replace")
            if tuple(column[3]) != leaf.path:
                raise _contradiction(f"the name of column {name!r}")
            if column[1] != leaf.type:
                raise _contradiction(f"the type of column {name!r}")
            if not leaf.is_repeated and column[5] != group[3]:
                raise _contradiction(f"the number of values in column {name!r}")
    return leaves


def _leaves(
    element: dict[int, Any],
    elements: Iterator[dict[int, Any]],
    path: Sequence[bytes],
    repeated: bool,
) -> Iterator[Leaf]:
    """Yield the columns below an element of the schema, whose children follow it."""
    if not element.get(5):
        if {6, 10} <= set(element) and element[6] != _CONVERTED.get(_logical(element[10])):
            name = b".".join(path).decode(errors="replace")
            raise _contradiction(f"the type of column {name!r}")
        yield Leaf(tuple(path), element[1], repeated)
    for _ in range(element.get(5, 0)):
        child = next(elements, {})
        is_repeated = repeated or child.get(3) == _REPEATED
        yield from _leaves(child, elements, (*path, child[4]), is_repeated)


def _logical(union: dict[int, Any]) -> tuple[Any, ...]:
    """Return a logical type as in _CONVERTED."""
    for kind, details in union.items():
        if kind in (7, 8):  # time or timestamp, with a unit
            return kind, *details[2]
        return (kind, details[1], details[2]) if kind == 10 else (kind,)
    return ()


def _contradiction(about: str) -> ValueError:
    return ValueError(f"its footer contradicts itself about {about}")


class _Compact:
    """Decodes Thrift's compact protocol to dictionaries by the numbers of fields."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def struct(self) -> dict[int, Any]:
        """Decode the fields of a struct up to the mark of its end."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        return {
            1: self._flag,
            2: self._flag,
            3: self._byte,
            4: self._integer,
            5: self._integer,
            6: self._integer,
            7: self._double,
            8: self._bytes,
            9: self._list,
            10: self._list,
            12: self.struct,
        }[kind]()

    def _byte(self) -> int:
        self._place += 1
        return self._data[self._place - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) > 127:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _flag(self) -> bool:
        return self._byte() == 1

    def _double(self) -> float:
        self._place += 8
        return float(struct.unpack("<d", self._data[self._place - 8 : self._place])[0])

    def _bytes(self) -> bytes:
        size = self._varint()
        self._place += size
        if self._place > len(self._data):
            raise IndexError
        return self._data[self._place - size : self._place]

    def _list(self) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        return [self._value(head & 15) for _ in range(size)]
