"""Temporary files that do not outlive their process, however it ends.

Where the system shows the open files of a process as paths, as Linux does, a temporary file has no
name, and vanishes with its process. Elsewhere, the files of a process are in a folder with a locked
file; the next process that needs such a folder removes those that nobody has locked.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_OPEN_FILES = "/proc/{process}/fd/{file}"  # also for other processes of the same user
_MOST_NAMELESS = 100  # which stay open
_PREFIX, _LOCK = "classprior-", "lock"
_nameless: set[IO[bytes]] = set()


def written(parts: Iterable[bytes]) -> tuple[Path, Callable[[], None]]:
    """Write a temporary file; return a path to read it by, and a function that removes it."""
    file, path, remove = _nameless_file() or _named_file()
    try:
        for part in parts:
            file.write(part)
        file.flush()
    except BaseException:
        remove()
        raise
    if file not in _nameless:
        file.close()
    return path, remove


def _nameless_file() -> tuple[IO[bytes], Path, Callable[[], None]] | None:
    """Open a file without a name; None if it has no path, or if there are too many of them."""
    if len(_nameless) >= _MOST_NAMELESS or not Path(_path_of(0)).parent.is_dir():
        return None
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is removed
    _nameless.add(file)
    return file, Path(_path_of(file.fileno())), partial(_close, file)


def _path_of(number: int) -> str:
    return _OPEN_FILES.format(process=os.getpid(), file=number)


def _close(file: IO[bytes]) -> None:
    _nameless.discard(file)
    with suppress(OSError):  # on a full disk
        file.close()


def _named_file() -> tuple[IO[bytes], Path, Callable[[], None]]:
    handle, name = tempfile.mkstemp(dir=own_folder())
    file = os.fdopen(handle, "wb")
    return file, Path(name), partial(_remove, file, Path(name))


def _remove(file: IO[bytes], path: Path) -> None:
    with suppress(OSError):  # on a full disk
        file.close()
    with suppress(OSError):  # on some systems, a file that is still open
        path.unlink()


def own_folder() -> Path:
    """Return the folder of this process, which only its user can read, and which ends with it."""
    return _folder_of(os.getpid())


@cache
def _folder_of(process: int) -> Path:
    """Make the folder of this process, and remove those of processes that have ended."""
    _remove_abandoned()
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        file = (folder / _LOCK).open("xb")
        lock(file.fileno())
        if folder.exists():
            atexit.register(_remove_folder, folder, file, process)
            return folder
        file.close()  # removed by another process before it was locked


def _remove_folder(folder: Path, file: IO[bytes], process: int) -> None:
    if os.getpid() == process:  # and not a fork of it
        file.close()
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    """Remove the folders of this user whose process has ended."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), path.open("rb") as file:
            is_own = not hasattr(os, "getuid") or os.fstat(file.fileno()).st_uid == os.getuid()
            if fcntl is None:
                file.close()
                path.unlink()  # fails if it is open
            elif not is_own or path.is_symlink() or not lock(file.fileno(), wait=False):
                continue
            shutil.rmtree(path.parent, ignore_errors=True)


def lock(handle: int, *, wait: bool = True) -> bool:
    """Lock an open file until it is closed or its process ends; return whether it worked."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # locked by another process, or not supported by the file system
        return False
    return True
