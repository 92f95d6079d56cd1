"""Files sent by the browser, written to a folder while they arrive."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

_LONGEST_NAME = 100
_MOST_PARTS = 20
_LONGEST_TEXT = 10_000  # bytes of a field that is not a file
_INTERRUPTED = "The upload was interrupted. Please send the files again."
_UNSAFE = re.compile(r"[^\w .()+-]")


class UploadError(ValueError):
    """Files that cannot be accepted, with the reason."""


@dataclass(frozen=True)
class Upload:
    """A file as the user calls it, and as it is stored: without characters that may do harm."""

    field: str
    name: str
    stored: str


async def receive(
    request: Request, folder: Path, max_bytes: int
) -> tuple[dict[str, str], list[Upload]]:
    """Write the files of a form to a folder; return its other fields, and the files.

    What exceeds the limit is read to the end, because a browser shows no answer before, but not
    stored. If anything fails, the folder is removed.
    """
    parts = _Parts(folder, max_bytes)
    try:
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            raise UploadError("Expected a form with files.")
        parser = MultipartParser(options[b"boundary"], parts.callbacks)
        async for chunk in request.stream():
            parser.write(chunk)
        parser.finalize()
        parts.check()
    except BaseException as error:
        parts.close()
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, ClientDisconnect):
            raise UploadError(_INTERRUPTED) from error
        if isinstance(error, FormParserError):
            raise UploadError("The form is damaged. Please send it again.") from error
        if isinstance(error, OSError):
            raise UploadError(f"The file could not be stored: {error.strerror}.") from error
        raise
    return parts.fields, parts.files


@dataclass
class _Parts:
    """The parts of a form, as a parser finds them."""

    folder: Path
    max_bytes: int
    fields: dict[str, str] = field(default_factory=dict)
    files: list[Upload] = field(default_factory=list)
    is_whole: bool = False  # whether the end of the form was seen
    n_parts: int = 0
    n_bytes: int = 0
    _headers: dict[bytes, bytes] = field(default_factory=dict)
    _header: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    _name: str = ""
    _text: bytearray = field(default_factory=bytearray)
    _file: IO[bytes] | None = None

    @property
    def callbacks(self) -> Any:
        """What the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": partial(self._extend_header, 0),
            "on_header_value": partial(self._extend_header, 1),
            "on_header_end": self._end_header,
            "on_headers_finished": self._open,
            "on_part_data": self._write,
            "on_part_end": self._end,
            "on_end": partial(setattr, self, "is_whole", True),
        }

    @property
    def is_too_large(self) -> bool:
        """Whether the files have more bytes than are allowed."""
        return self.n_bytes > self.max_bytes

    def check(self) -> None:
        """Raise unless there are whole files within the limit."""
        if self.is_too_large:
            raise UploadError(
                f"The files have {self.n_bytes / 1e6:,.0f} MB, more than the limit of "
                f"{self.max_bytes / 1e6:,.0f} MB. Use a random sample of the rows, or start the "
                "page with a higher limit (--max-upload)."
            )
        if not self.files:
            raise UploadError("Choose a file first.")
        if not self.is_whole:
            raise UploadError(_INTERRUPTED)

    def close(self) -> None:
        """Close the file that is being written."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self) -> None:
        self.n_parts += 1
        if self.n_parts > _MOST_PARTS:
            raise UploadError(f"The form has more than {_MOST_PARTS} parts.")
        self._headers, self._text = {}, bytearray()

    def _extend_header(self, place: int, data: bytes, start: int, end: int) -> None:
        self._header[place].extend(data[start:end])
        if len(self._header[place]) > _LONGEST_TEXT:
            raise UploadError("The form has a header that is too long.")

    def _end_header(self) -> None:
        name, value = map(bytes, self._header)
        self._headers[name.lower()] = value
        self._header[0].clear()
        self._header[1].clear()

    def _open(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._name = options.get(b"name", b"").decode(errors="replace")
        given = options.get(b"filename", b"").decode(errors="replace")
        if given:
            name = re.split(r"[\\/]", given)[-1]
            stored = stored_name(name, {file.stored for file in self.files})
            self._file = (self.folder / stored).open("xb")
            self.files.append(Upload(self._name, name, stored))

    def _write(self, data: bytes, start: int, end: int) -> None:
        if self._file is None:
            self._text.extend(data[start:end])
            if len(self._text) > _LONGEST_TEXT:
                raise UploadError(f"The field {self._name!r} is too long.")
            return
        self.n_bytes += end - start
        if not self.is_too_large:
            self._file.write(data[start:end])

    def _end(self) -> None:
        if self._file is None and b"filename=" not in self._headers[b"content-disposition"]:
            self.fields[self._name] = self._text.decode(errors="replace")
        self.close()


def stored_name(name: str, taken: Collection[str] = ()) -> str:
    """Return a safe name for a file with the same suffix, unlike all others."""
    safe = _UNSAFE.sub("_", name).strip(" .-")[-_LONGEST_NAME:].lstrip(" .-") or "file"
    stem, dot, suffix = safe.partition(".")
    numbered = (f"{stem} ({n}){dot}{suffix}" for n in range(2, len(taken) + 2))
    return safe if safe not in taken else next(s for s in numbered if s not in taken)
