"""Checkpoint files: sums saved so that an interrupted pass over the rows can resume."""

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
from classprior._files.writing import whole_file

_KIND = "classprior checkpoint 1"
#: Raised on reading a file that is not a checkpoint: an empty file, an array, another archive.
_NOT_OURS = OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile


class Checkpoint:
    """Sums of finished passes, and partial sums of the current pass.

    The file is written under a temporary name and renamed, so that it is always complete.
    ``settings`` describes everything the sums depend on, apart from the data. With ``path=None``
    nothing is saved.
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
    def is_active(self) -> bool:
        """Whether there is a file."""
        return self._path is not None

    def begin(self, about: dict[str, str]) -> None:
        """Read the file if it exists; raise if its settings or data differ."""
        self._about = {**self._about, **about}
        about = self._about
        if self._path is None:
            return
        if not self._path.parent.is_dir():
            raise FileNotFoundError(
                f"The folder of the checkpoint does not exist: {self._path.parent}."
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
                f"{self._path} is not a classprior checkpoint. Delete the file, or choose another "
                "file name."
            ) from error
        if different := [key for key in about if before.get(key) != about[key]]:
            raise ValueError(
                f"The checkpoint {self._path} was written with other {' and '.join(different)}: "
                f"{before.get(different[0])!r} in the file, {about[different[0]]!r} now. Delete "
                "the file to start over."
            )
        self._arrays = arrays

    def load(self, key: str) -> tuple[int, Doubles] | None:
        """Return the number of blocks in the saved sums of a pass, and the sums; None if new."""
        if f"{key} blocks" not in self._arrays:
            return None
        return int(self._arrays[f"{key} blocks"]), self._arrays[f"{key} sums"]

    def save(self, key: str, blocks: int, sums: Doubles, *, whole: bool = False) -> None:
        """Save the sums of a pass, at once if it is complete, else every ``seconds``."""
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
        """Delete the file after a successful fit."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Flush a rename to disk, where the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest(*arrays: Any) -> str:
    """Return a short hash of arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]
