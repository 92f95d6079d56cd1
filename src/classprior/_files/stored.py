"""Files as bytes: what may be opened, how it is unpacked, and whether it changes."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from classprior._files.temporary import written

_PACKED = {
    rb"\x1f\x8b": "gzip",
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": "bz2",
    rb"\x28\xb5\x2f\xfd": "zstd",
}
_PART = 2**20  # bytes copied at a time
_SPECIAL = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


@dataclass(frozen=True, eq=False)
class StoredFile:
    """A file, or a copy of what came through a pipe, which must not change while it is in use."""

    path: Path
    label: str  # in messages
    identity: str  # changes when the contents change
    stamp: tuple[Any, ...]

    def check_unchanged(self) -> None:
        """Raise if the file was replaced, rewritten or deleted after it was opened."""
        try:
            is_same = _stamp(self.path) == self.stamp
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"Could not read {self.label}: the file no longer exists. Keep all input files in "
                "place until the fit has finished."
            ) from error
        if not is_same:
            raise ValueError(
                f"{self.label} changed after it was opened. Keep all input files unchanged until "
                "the fit has finished."
            )

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check before and after a pass, also if it fails: the change is the likely reason."""
        self.check_unchanged()
        try:
            yield
        except GeneratorExit:
            raise
        except Exception:
            self.check_unchanged()
            raise
        self.check_unchanged()


def store(path: Path, label: str) -> StoredFile:
    """Open a file by its path; what comes through a named pipe is copied to a temporary file."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"The name of the file {label} is not UTF-8. Rename the file.") from error
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode):
        with path.open("rb") as pipe:
            return copied(_parts_of(pipe), label)
    if not stat.S_ISREG(mode):
        raise _not_a_file(mode, label)
    with path.open("rb"):  # raises if there is no permission to read
        stamp = _stamp(path)
    size, changed_at, *_ = stamp
    return StoredFile(path, label, f"{path} of {size} bytes, changed at {changed_at}", stamp)


def store_stdin(label: str) -> StoredFile:
    """Copy standard input to a temporary file."""
    if sys.stdin is None:
        raise ValueError("Standard input is closed.")
    file = sys.stdin.buffer
    with suppress(AttributeError, OSError):  # not all that replace standard input have a descriptor
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_IFMT(mode) in _SPECIAL and not file.isatty():
            raise _not_a_file(mode, label)
    return copied(_parts_of(file), label)


def _parts_of(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(_PART), b"")


def _not_a_file(mode: int, label: str) -> ValueError:
    kind = _SPECIAL.get(stat.S_IFMT(mode), "not a file")
    return ValueError(
        f"Cannot read {label}: it is {kind}. Only files, named pipes and standard input can be "
        "read."
    )


def recoded(source: StoredFile | bytes, encoding: str) -> StoredFile | bytes:
    """Return a copy of a text in UTF-8.

    pyarrow would decode it by Python functions in threads of its own, which outlive the reader:
    the interpreter may then hang or abort on exit.
    """

    def parts() -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(encoding)()
        with unpacked(source) as stream:
            while part := bytes(stream.read(_PART)):
                yield decoder.decode(part).encode()
        yield decoder.decode(b"", final=True).encode()

    if isinstance(source, bytes):
        return b"".join(parts())
    with source.unchanged():
        return copied(parts(), source.label)


def copied(parts: Iterable[bytes], label: str) -> StoredFile:
    """Copy to a temporary file that is removed together with the returned object."""
    contents = hashlib.sha256()

    def counted() -> Iterator[bytes]:
        for part in parts:
            contents.update(part)
            yield part

    try:
        path, remove = written(counted())
    except OSError as error:
        if error.errno and error.filename is None:  # a full disk
            error.filename = tempfile.gettempdir()
        raise
    identity = f"{label}, {contents.hexdigest()}"
    copied = StoredFile(path, label, identity, _stamp(path))
    weakref.finalize(copied, remove)
    return copied


def _stamp(path: Path) -> tuple[Any, ...]:
    """Return what tells that a file was replaced or rewritten."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


def identity_of(parts: Sequence[str]) -> str:
    """Return the identity of several files, given that of each."""
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return f"{len(parts)} files, the first {parts[0]} ({digest})"


def unpacked(source: StoredFile | bytes) -> Any:
    """Open a file or bytes for reading, decompressed if the contents are compressed."""
    import pyarrow as pa

    if isinstance(source, bytes):
        stream = pa.BufferReader(source)
    else:
        source.check_unchanged()
        stream = pa.OSFile(str(source.path))
    head = stream.read(16)
    stream.seek(0)
    codec = next((name for mark, name in _PACKED.items() if re.match(mark, head)), None)
    return stream if codec is None else pa.CompressedInputStream(stream, codec)


def held(source: StoredFile | bytes, most: int) -> StoredFile | bytes:
    """Return the unpacked bytes of a file of at most so many, so that it is read only once."""
    if isinstance(source, bytes) or source.stamp[0] > most:
        return source
    with unpacked(source) as stream:
        content = bytes(stream.read(most + 1))
    return content if len(content) <= most else source


@contextmanager
def unpacking(label: str) -> Iterator[None]:
    """Name the file in decompression errors; errors of the system already have a message."""
    try:
        yield
    except OSError as error:
        if error.strerror:
            raise
        raise ValueError(
            f"Could not decompress {label}: {error}. The gzip, bz2 or zstd file may be truncated."
        ) from error
