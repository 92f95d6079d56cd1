"""JSON lines: one object per line, read a few megabytes at a time."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from classprior._files.common_schema import common_field
from classprior._files.stored import StoredFile, unpacked, unpacking

if TYPE_CHECKING:
    import pyarrow as pa

#: Number of bytes parsed at a time; the length limit of a line.
BLOCK_SIZE = 1 << 24


class JsonFile:
    """A file of JSON lines; the types of its columns are found in a pass over all lines."""

    first_row = 1

    def __init__(self, file: StoredFile, block_size: int = BLOCK_SIZE) -> None:
        import pyarrow as pa

        self.label = file.label
        self._file = file
        self._block_size = block_size
        self.schema = pa.schema([])
        for line, text in self._parts():
            self.schema = self._widened(self._parsed(text, line).schema, line)
        if not self.schema.names:
            raise ValueError(f"Expected a JSON object in each line of {self.label}, got none.")

    def tables(self) -> Iterator[pa.Table]:
        """Read the rows."""
        with self._file.unchanged():
            for line, text in self._parts():
                yield self._parsed(text, line, self.schema)

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

        fields = {field.name: field for field in self.schema}
        for field in schema:
            known = fields.setdefault(field.name, field)
            types = {known.type, field.type}
            if pa.string() in types and any(map(pa.types.is_timestamp, types)):
                wider = pa.field(field.name, pa.string())  # not all texts are times
            else:
                wider = common_field(known, field)
            if wider is None:
                raise ValueError(
                    f"Column {field.name!r} of {self.label} is {known.type} before line {line}, "
                    f"and {field.type} later. Each name must have one type of value."
                )
            fields[field.name] = wider
        return pa.schema(list(fields.values()))
