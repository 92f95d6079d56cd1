"""Sums kept in a file, so that a pass over the rows can go on after any interruption."""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from classprior._core.types import Doubles
from classprior._data.writing import whole_file

_KIND = "classprior checkpoint 1"
#: What NumPy and we say to a file that is something else: empty, an array, another archive.
_NOT_OURS = OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile


class Checkpoint:
    """The sums of finished passes, and of the blocks that a pass under way has merged.

    The file is written beside and renamed, so that at any moment there is a whole one or none.

    Parameters
    ----------
    path : path or None
        The file; None to keep nothing.
    settings : str
        What the sums depend on, apart from the data.
    seconds : float
        Time between writes.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, settings: str = "", seconds: float = 5.0
    ) -> None:
        self._path = None if path is None else Path(path)
        self._about = {"settings": settings}
        self._seconds = seconds
        self._arrays: dict[str, Any] = {}
        self._last_write = time.monotonic()

    @property
    def is_kept(self) -> bool:
        """Whether there is a file."""
        return self._path is not None

    def begin(self, about: dict[str, str]) -> None:
        """Read the file, if there is one, and refuse one that is about other settings or data."""
        self._about = {**self._about, **about}
        about = self._about
        if self._path is None:
            return
        if not self._path.parent.is_dir():
            raise FileNotFoundError(
                f"Expected a folder for the checkpoint, got {self._path.parent}: no such folder."
            )
        if not self._path.exists():
            return
        try:
            with self._path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files}
            before = json.loads(str(arrays.pop("about")))
            if before.pop("kind") != _KIND:
                raise ValueError("another kind of file")
        except PermissionError:
            raise
        except _NOT_OURS as error:
            raise ValueError(
                f"Expected a checkpoint of classprior in {self._path}, got something else. Give "
                "another file name, or delete that file."
            ) from error
        if different := [key for key in about if before.get(key) != about[key]]:
            raise ValueError(
                f"Expected a checkpoint of this very fit in {self._path}, got one with other "
                f"{' and '.join(different)}: {before.get(different[0])!r} there, "
                f"{about[different[0]]!r} here. Delete the file to begin anew."
            )
        self._arrays = arrays

    def load(self, key: str) -> tuple[int, Doubles] | None:
        """Return the blocks that a pass had merged, and its sums; None if it is new."""
        if f"{key} blocks" not in self._arrays:
            return None
        return int(self._arrays[f"{key} blocks"]), self._arrays[f"{key} sums"]

    def save(self, key: str, blocks: int, sums: Doubles, *, whole: bool = False) -> None:
        """Keep the sums of a pass, now if it is whole, else every few seconds."""
        if self._path is None:
            return
        if not whole and time.monotonic() - self._last_write < self._seconds:
            return
        self._arrays.update({f"{key} blocks": np.array(blocks), f"{key} sums": sums})
        self._write(self._path)
        self._last_write = time.monotonic()

    def _write(self, path: Path) -> None:
        about = json.dumps({"kind": _KIND, **self._about})
        with whole_file(path) as file:
            np.savez(file, about=np.array(about), **self._arrays)
        _sync_folder(path.parent)

    def end(self) -> None:
        """Delete the file: the fit is done, and the next one has other sums."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a renaming last, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest(*arrays: Any) -> str:
    """Return a short word that changes when numbers do."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]
