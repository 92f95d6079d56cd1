"""What a family of the fuzzer is."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Family(NamedTuple):
    """A kind of files that once gave a wrong answer, made at random."""

    name: str
    #: Writes the files of one case, and what is expected of them, to an empty folder.
    write: Callable[[random.Random, Path], None]
    #: Reads them as the library does, in a process with limited memory and time. Returns what is
    #: wrong with the answer, "" if nothing. An error that names a file of the case is a refusal.
    read: Callable[[Path], str]
