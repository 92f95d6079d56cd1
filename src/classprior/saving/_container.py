"""A checked container of numbers and strings, read from files that need not be trusted.

Its format is that of safetensors: the length of a JSON header in eight bytes, the header, and the
bytes of the arrays, whose types, shapes and places stand in the header. A JSON object of ours is a
string in the header's metadata, beside a digest. Nothing is compressed or executed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from classprior._core.types import Doubles, Ints
from classprior._tables.checks import LARGEST

_ABOUT, _DIGEST = "classprior", "sha256"  # in the metadata: our object, and what shows damage
_METADATA = "__metadata__"
_MB = 2**20
# Limits on a file, so that loading it takes little memory and time.
MOST_BYTES = 150 * _MB
_MOST_BYTES_HEADER = 8 * _MB
_CODES = {float: "F64", int: "I64"}
_DTYPES = {float: np.dtype("<f8"), int: np.dtype("<i8")}
#: Exceptions that a malformed file causes; RuntimeError includes RecursionError.
BROKEN = (ValueError, OSError, RuntimeError, OverflowError, MemoryError)


def packed(about: dict[str, Any]) -> bytes:
    """Return the contents of a file with nested dicts, lists and arrays, which are removed."""
    arrays = dict(_pop_arrays(about, ""))
    data, values = b"".join(array.tobytes() for array in arrays.values()), json.dumps(about)
    digest = hashlib.sha256(values.encode() + data).hexdigest()
    header: dict[str, Any] = {_METADATA: {_ABOUT: values, _DIGEST: digest}}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        code = _CODES[float if array.dtype.kind == "f" else int]
        header[name] = {"dtype": code, "shape": array.shape, "data_offsets": (start, end)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of their item size
    return len(text).to_bytes(8, "little") + text + data


def _pop_arrays(node: Any, where: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Remove the arrays from nested dicts and lists, and yield them with their paths."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for name, value in list(items):
        if isinstance(value, np.ndarray):
            dtype = _DTYPES[float if value.dtype.kind == "f" else int]
            yield f"{where}{name}", np.ascontiguousarray(node.pop(name), dtype=dtype)
        elif isinstance(value, dict | list):
            yield from _pop_arrays(value, f"{where}{name}.")


def unpacked(file: IO[bytes]) -> Part:
    """Check the header of a file and return its JSON object; arrays are read on demand."""
    size = file.seek(0, os.SEEK_END)
    if size > MOST_BYTES:
        raise ValueError(f"it has {size / _MB:,.0f} MB, and the limit is {MOST_BYTES // _MB} MB")
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= min(size - 8, _MOST_BYTES_HEADER):
        raise ValueError("its header is missing, truncated or too large")
    header = json.loads(file.read(length), parse_constant=_refuse_constant)
    stored = _Stored({}, file, 8 + length, size)
    metadata = Part("", header, stored).part(_METADATA)
    about, digest = metadata.text(_ABOUT), metadata.text(_DIGEST)
    found = hashlib.sha256(about.encode())
    for part in iter(lambda: file.read(_MB), b""):
        found.update(part)
    if found.hexdigest() != digest:
        raise ValueError("it is damaged")
    values = json.loads(about, parse_constant=_refuse_constant)
    return Part("", values, stored._replace(header=header))


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"its header contains {text}")


class _Stored(NamedTuple):
    """An open file with arrays, and the header that describes them."""

    header: dict[str, Any]
    file: IO[bytes]
    first_byte: int  # of the arrays
    size: int


@dataclass(frozen=True, eq=False)
class Part:
    """A JSON object of a file; its methods check the values and arrays that they return."""

    where: str  # path with a trailing dot
    values: Any
    stored: _Stored

    def __post_init__(self) -> None:
        if not isinstance(self.values, dict):
            raise ValueError(f"{self.where.rstrip('.') or 'the header'} is not an object")

    def value(self, name: str, *types: type) -> Any:
        if name not in self.values:
            raise ValueError(f"{self.where}{name} is missing")
        if type(value := self.values[name]) not in types:
            raise ValueError(f"{self.where}{name} has type {type(value).__name__}")
        return value

    def number(self, name: str, low: float, high: float = LARGEST) -> float:
        value = self.value(name, int, float)
        if not low <= value <= high:
            raise ValueError(f"{self.where}{name} is {value}, outside [{low:g}, {high:g}]")
        return float(value)

    def flag(self, name: str) -> bool:
        return self.value(name, bool)

    def text(self, name: str) -> str:
        return self.value(name, str)

    def texts(self, name: str, most: int | None = None) -> list[str]:
        return _texts(self.value(name, list), f"{self.where}{name}", most)

    def lists(self, name: str, most: int | None = None) -> list[list[str]]:
        parts = self.value(name, list)
        return [_texts(part, f"{self.where}{name}.{i}", most) for i, part in enumerate(parts)]

    def part(self, name: str) -> Part:
        return Part(f"{self.where}{name}.", self.value(name, dict), self.stored)

    def parts(self, name: str, most: int) -> list[Part]:
        values = self.value(name, list)
        if not 1 <= len(values) <= most:
            raise ValueError(f"{self.where}{name} has {len(values)} parts, outside [1, {most}]")
        where = f"{self.where}{name}"
        return [Part(f"{where}.{i}.", value, self.stored) for i, value in enumerate(values)]

    def array(self, name: str, shape: tuple[int | None, ...], dtype: type = float) -> Any:
        """Return a read-only array without NaN; None in a shape means any length but zero."""
        where, (header, file, first_byte, size) = f"{self.where}{name}", self.stored
        entry = Part(f"{where}.", header.get(where), self.stored)
        found = entry.value("shape", list)
        fits = len(found) == len(shape) and all(
            type(n) is int and (n == wanted or (wanted is None and n > 0))
            for n, wanted in zip(found, shape, strict=True)
        )
        if not fits:
            text = ", ".join("any" if n is None else str(n) for n in shape)
            raise ValueError(f"{where} has shape {str(found)[:100]}, expected ({text})")
        if (code := entry.text("dtype")) != _CODES[dtype]:
            raise ValueError(f"{where} has type {code[:20]!r}, not that of a {dtype.__name__}")
        n_bytes = 8 * math.prod(found)
        start = _first(entry.value("data_offsets", list), n_bytes, where)
        if first_byte + start + n_bytes > size:
            raise ValueError(f"{where} is truncated")
        file.seek(first_byte + start)
        array = np.frombuffer(file.read(n_bytes), _DTYPES[dtype]).reshape(found)
        if np.isnan(array).any():
            raise ValueError(f"{where} contains NaN")
        return array

    def numbers(self, name: str, shape: tuple[int | None, ...], low: float = -LARGEST) -> Doubles:
        """Return an array of numbers that are at least ``low``, and not too large."""
        array = self.array(name, shape)
        if ((array < low) | (array > LARGEST)).any():
            raise ValueError(f"{self.where}{name} has values outside [{low:g}, {LARGEST:g}]")
        return array

    def indices(self, name: str, shape: tuple[int | None, ...], n: Any) -> Ints:
        """Return an array of integers from 0 to n - 1."""
        array = self.array(name, shape, int)
        if ((array < 0) | (array >= n)).any():
            raise ValueError(f"{self.where}{name} contains indices that are out of range")
        return array


def _texts(values: Any, where: str, most: int | None) -> list[str]:
    if type(values) is not list or not all(type(value) is str for value in values):
        raise ValueError(f"{where} is not a list of strings")
    if most is not None and len(values) > most:
        raise ValueError(f"{where} has {len(values)} strings, and the limit is {most}")
    return values


def _first(offsets: list[Any], n_bytes: int, where: str) -> int:
    """Return the first of two offsets, which must be ``n_bytes`` apart."""
    if [type(offset) for offset in offsets] != [int, int] or offsets[0] < 0:
        raise ValueError(f"{where}.data_offsets is not a pair of offsets")
    if offsets[1] - offsets[0] != n_bytes:
        raise ValueError(f"{where}.data_offsets do not fit its shape")
    return offsets[0]
