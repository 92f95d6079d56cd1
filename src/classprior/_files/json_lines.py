"""JSON lines: one object per line, read a few megabytes at a time."""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from classprior._files.common_schema import types_for
from classprior._files.csv import fits, local_type, parsed, time_types, without_offsets
from classprior._files.stored import StoredFile, unpacked, unpacking
from classprior._tables.columns import CATEGORY

if TYPE_CHECKING:
    import pyarrow as pa

#: Number of bytes parsed at a time; the length limit of a line.
BLOCK_SIZE = 1 << 24
_DEEPEST = 32  # brackets in brackets; thousands would overflow the stack of the parser


class JsonFile:
    """A file of JSON lines; the types of its columns are found in a pass over all lines."""

    first_row = 1

    def __init__(
        self,
        file: StoredFile,
        block_size: int = BLOCK_SIZE,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        import pyarrow as pa

        self.label = file.label
        self._file = file
        self._block_size = block_size
        self._as_stored = pa.schema([])  # in which times are text
        self._times: dict[str, tuple[Any, ...]] = {}  # types that fit all texts so far, by column
        self._local_times: set[str] = set()  # columns in which the offset from UTC is left out
        for line, text in self._parts():
            table = self._parsed(text, line)
            # Text instead of times, which pyarrow infers if all texts of a part are times.
            is_time = pa.types.is_timestamp
            kinds_here = [pa.string() if is_time(f.type) else f.type for f in table.schema]
            here = pa.schema(list(zip(table.schema.names, kinds_here, strict=True)))
            self._as_stored = self._widened(here, line)
            if not table.schema.equals(self._as_stored):
                table = self._parsed(text, line, self._as_stored)
            self._look_for_times(table)
        if not self._as_stored.names:
            raise ValueError(f"Expected a JSON object in each line of {self.label}, got none.")
        categories = [name for name, kind in (kinds or {}).items() if kind == CATEGORY]
        self._times = {
            name: types for name, types in self._times.items() if types and name not in categories
        }

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        import pyarrow as pa

        kinds = {name: types[0] for name, types in self._times.items()}
        kinds |= {name: local_type(kinds[name]) for name in self._local_times}
        return pa.schema([f.with_type(kinds.get(f.name, f.type)) for f in self._as_stored])

    def with_local_times(self, names: Collection[str]) -> JsonFile:
        """Return the file with times in some columns as they are written, without the offset."""
        other, times = copy(self), self._times
        other._local_times = {name for name in names if name in times and times[name][0].tz}
        return other

    def tables(self, columns: tuple[str, ...] | None = None) -> Iterator[pa.Table]:
        """Read the rows, with all columns."""
        with self._file.unchanged():
            for line, text in self._parts():
                yield self._with_times(self._parsed(text, line, self._as_stored))

    def _with_times(self, table: pa.Table) -> pa.Table:
        """Return a table with times instead of their texts."""
        schema = self.schema
        for name in self._times:
            place = schema.get_field_index(name)
            texts = table.column(place)
            texts = without_offsets(texts) if name in self._local_times else texts
            table = table.set_column(place, schema[place], parsed(texts, schema[place].type))
        return table

    def _look_for_times(self, table: pa.Table) -> None:
        """Find out whether all texts of a column are times, of which type."""
        import pyarrow as pa

        for field in table.schema:
            texts = table[field.name].drop_null() if field.type == pa.string() else ()
            if len(texts):
                types = self._times.get(field.name, time_types())
                self._times[field.name] = tuple(kind for kind in types if fits(texts, kind, "."))

    def _parts(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number of the first line of each part of the file, and its text."""
        line, rest = 1, b""
        with unpacking(self.label), unpacked(self._file) as stream:
            while read := bytes(stream.read(self._block_size)):
                text = rest + read
                if line == 1 and not rest:
                    text = text.removeprefix(codecs.BOM_UTF8)
                end = text.rfind(b"\n") + 1
                if not end and len(text) > self._block_size:
                    raise ValueError(
                        f"Line {line} of {self.label} is too long (limit "
                        f"{self._block_size / 2**20:g} MiB)."
                    )
                rest = text[end:]
                if text[:end].strip():
                    yield line, text[:end]
                line += text.count(b"\n", 0, end)
        if rest.strip():
            yield line, rest

    def _parsed(self, text: bytes, line: int, schema: Any = None) -> pa.Table:
        import pyarrow as pa
        from pyarrow import json

        try:
            text.decode()
        except UnicodeDecodeError as error:
            line += text.count(b"\n", 0, error.start)
            raise ValueError(f"{self.label} is not UTF-8 text in line {line}.") from error
        deep = _first_deep(text)
        if deep is not None:
            line += text.count(b"\n", 0, deep)
            raise ValueError(
                f"The brackets in line {line} of {self.label} are nested too deeply (limit "
                f"{_DEEPEST} levels)."
            )
        try:
            return json.read_json(
                pa.BufferReader(text),
                json.ReadOptions(block_size=len(text) + 1),
                json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
                if schema
                else None,
            )
        except pa.ArrowInvalid as error:
            reason = str(error).removeprefix("JSON parse error: ").removesuffix(".")
            if found := re.search(r" in row (\d+)$", reason):
                line, reason = line + int(found[1]), reason[: found.start()].removesuffix(".")
            raise ValueError(
                f"Could not read {self.label} as JSON lines: {reason} in line {line}. Each line "
                "must be a JSON object, with one type of value for each name."
            ) from error

    def _widened(self, schema: Any, line: int) -> Any:
        """Return a schema for the values of the lines so far and of the next ones."""
        import pyarrow as pa

        fields = {field.name: field for field in self._as_stored}
        for field in schema:
            known = fields.setdefault(field.name, field)
            wider = types_for({known.type, field.type})
            if not wider:
                raise ValueError(
                    f"Column {field.name!r} of {self.label} is {known.type} before line {line}, "
                    f"and {field.type} later. Each name must have one type of value."
                )
            fields[field.name] = field.with_type(wider[0])
        return pa.schema(list(fields.values()))


def _first_deep(text: bytes) -> int | None:
    """Return the place of the first bracket that is nested too deeply, None if there is none."""
    codes = np.frombuffer(text, dtype=np.uint8)
    opening, closing = ((codes == one) | (codes == two) for one, two in (b"[{", b"]}"))
    places = np.flatnonzero(opening | closing)
    places = places[np.searchsorted(_quotes(codes), places) % 2 == 0]  # not those in strings
    depth = np.cumsum(np.where(opening[places], 1, -1))
    depth -= np.minimum.accumulate(np.minimum(depth, 0))  # closing ones that close nothing
    deep = np.flatnonzero(depth > _DEEPEST)
    return int(places[deep[0]]) if len(deep) else None


def _quotes(codes: Any) -> Any:
    """Return the places of quotation marks that are not escaped."""
    quotes, slashes = (np.flatnonzero(codes == ord(mark)) for mark in '"\\')
    if not len(slashes):
        return quotes
    firsts = slashes[np.diff(slashes, prepend=-2) > 1]  # of runs of backslashes
    lasts = slashes[np.diff(slashes, append=len(codes) + 1) > 1]
    escaped = (lasts + 1)[(lasts - firsts) % 2 == 0]  # after an odd number of them
    return quotes[~np.isin(quotes, escaped)]
