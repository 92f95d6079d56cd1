"""A checked archive of numbers and strings, read from files that need not be trusted.

It is a ZIP archive: ``classprior.json`` holds a JSON object, and each array in it is a member in
NumPy's ``.npy`` format. Nothing in a file is executed.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from classprior._core.types import Doubles, Ints
from classprior._tables.checks import LARGEST

_ABOUT = "classprior.json"
_MB = 2**20
# Limits on a file, so that loading it takes little memory and time.
MOST_BYTES = 150 * _MB
_MOST_BYTES_ABOUT = 8 * _MB
_MOST_BYTES_DIRECTORY = _MB // 16
_MOST_MEMBERS = 100
#: Exceptions that zipfile and json raise on a malformed file.
BROKEN = (
    ValueError,
    KeyError,
    EOFError,
    OSError,
    RuntimeError,  # includes NotImplementedError and RecursionError
    OverflowError,
    MemoryError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def packed(about: dict[str, Any]) -> io.BytesIO:
    """Return the archive of nested dicts, lists and arrays; the arrays are removed from them."""
    arrays = dict(_pop_arrays(about, ""))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:

        def write(name: str, content: bytes) -> None:
            member = zipfile.ZipInfo(name)  # with a fixed date: equal models give equal files
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)

        write(_ABOUT, json.dumps(about).encode())
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, (1, 0), allow_pickle=False)
            write(f"{name}.npy", content.getvalue())
    return file


def _pop_arrays(node: Any, where: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Remove the arrays from nested dicts and lists, and yield them with their paths."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for name, value in list(items):
        if isinstance(value, np.ndarray):
            dtype = "<f8" if value.dtype.kind == "f" else "<i8"
            yield f"{where}{name}", np.ascontiguousarray(node.pop(name), dtype=dtype)
        elif isinstance(value, dict | list):
            yield from _pop_arrays(value, f"{where}{name}.")


@contextmanager
def open_archive(file: IO[bytes]) -> Iterator[Part]:
    """Check an archive and yield its JSON object."""
    _check_directory(file)
    with zipfile.ZipFile(file) as archive:
        _check_members(archive)
        about = json.loads(archive.read(_ABOUT), parse_constant=_refuse_constant)
        yield Part("", about, archive)


def _check_directory(file: IO[bytes]) -> None:
    """Check the sizes of the file and of the archive's directory, which zipfile reads at once."""
    size = file.seek(0, os.SEEK_END)
    if size > MOST_BYTES:
        raise ValueError(f"it has {size / _MB:,.0f} MB, and the limit is {MOST_BYTES // _MB} MB")
    file.seek(-min(size, 42), os.SEEK_END)
    locator, end = (tail := file.read())[:-22], tail[-22:]
    if len(tail) < 42 or not end.startswith(b"PK\5\6") or any(end[20:22]):
        raise ValueError("it is not an archive, or it is truncated")
    n_bytes = int.from_bytes(end[12:16], "little")
    if locator.startswith(b"PK\6\7") or n_bytes > _MOST_BYTES_DIRECTORY:
        raise ValueError("the directory of the archive is too large")


def _check_members(archive: zipfile.ZipFile) -> None:
    members = archive.infolist()
    if len({m.filename for m in members}) < len(members) or len(members) > _MOST_MEMBERS:
        raise ValueError("the archive has too many members")
    for member in members:
        plain = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if not plain or member.flag_bits & 1:
            raise ValueError(f"the member {member.filename!r} is encrypted or packed differently")
        most = _MOST_BYTES_ABOUT if member.filename == _ABOUT else MOST_BYTES
        if member.file_size > most:
            raise ValueError(
                f"the member {member.filename!r} has {member.file_size / _MB:,.0f} MB, and the "
                f"limit is {most // _MB} MB"
            )
    if (total := sum(member.file_size for member in members)) > MOST_BYTES:
        raise ValueError(
            f"the members have {total / _MB:,.0f} MB in total, and the limit is "
            f"{MOST_BYTES // _MB} MB"
        )
    if _ABOUT not in archive.namelist():
        raise ValueError(f"it has no member {_ABOUT!r}")


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{_ABOUT!r} contains {text}")


@dataclass(frozen=True, eq=False)
class Part:
    """A JSON object of an archive; its methods check the values and arrays that they return."""

    where: str  # path with a trailing dot
    values: Any
    archive: zipfile.ZipFile

    def __post_init__(self) -> None:
        if not isinstance(self.values, dict):
            raise ValueError(f"{self.where.rstrip('.') or _ABOUT!r} is not an object")

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
        return Part(f"{self.where}{name}.", self.value(name, dict), self.archive)

    def parts(self, name: str, most: int) -> list[Part]:
        values = self.value(name, list)
        if not 1 <= len(values) <= most:
            raise ValueError(f"{self.where}{name} has {len(values)} parts, outside [1, {most}]")
        where = f"{self.where}{name}"
        return [Part(f"{where}.{i}.", value, self.archive) for i, value in enumerate(values)]

    def array(self, name: str, shape: tuple[int | None, ...], dtype: type = float) -> Any:
        """Return a read-only array without NaN; None in a shape means any length but zero."""
        member = f"{self.where}{name}.npy"
        content = io.BytesIO(self.archive.read(member))
        if np.lib.format.read_magic(content) != (1, 0):
            raise ValueError(f"{member} has an unknown version")
        found, fortran, stored = np.lib.format.read_array_header_1_0(content)
        fits = len(found) == len(shape) and all(
            size == wanted or (wanted is None and size > 0)
            for size, wanted in zip(found, shape, strict=True)
        )
        if not fits or fortran:
            text = ", ".join("any" if size is None else str(size) for size in shape)
            raise ValueError(f"{member} has shape {found}, expected ({text})")
        if stored != np.dtype("<f8" if dtype is float else "<i8"):
            raise ValueError(f"{member} has dtype {stored}, not that of a {dtype.__name__}")
        start = content.tell()
        if math.prod(found) * stored.itemsize != len(content.getbuffer()) - start:
            raise ValueError(f"{member} is truncated")
        array = np.frombuffer(content.getvalue(), stored, offset=start).reshape(found)
        if np.isnan(array).any():
            raise ValueError(f"{member} contains NaN")
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
