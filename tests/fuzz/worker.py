"""A process that reads the files of a family, and what became of them."""

from __future__ import annotations

import multiprocessing
import random
import resource
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

from families import FAMILIES
from families.base import Family

ACCEPTED, REFUSED = "accepted", "refused"
MEMORY = 2**30  # that files of a few kilobytes may take
SECONDS_PER_CASE = 20.0
_ADDRESSES = 12 * 2**30  # beyond this, the system would be in danger
_CASES_PER_PROCESS = 2000  # pyarrow leaks some memory with each compressed file that it cannot read
_FORESEEN = (ValueError, TypeError, OSError)


class Worker:
    """A process that reads files, replaced when it dies or takes too long."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._pipe, other = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=_work, args=(other,), daemon=True
        )
        self._process.start()
        self._n_cases = 0
        other.close()

    def run(self, family: Family, rng: random.Random, folder: Path) -> str:
        """Write a case to an empty folder and read it; return what became of it."""
        family.write(rng, folder)
        self._n_cases += 1
        if self._n_cases > _CASES_PER_PROCESS:
            self.close()
            self._start()
        outcome = self._read(family, folder)
        if outcome not in (ACCEPTED, REFUSED):
            self.close()
            self._start()
        return outcome

    def _read(self, family: Family, folder: Path) -> str:
        self._pipe.send((family.name, str(folder)))
        try:
            return str(self._pipe.recv()) if self._pipe.poll(SECONDS_PER_CASE) else "hang"
        except EOFError:
            self._process.join()
            return f"crash ({self._process.exitcode})"

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def _work(pipe: Connection) -> None:
    """Read the files whose folders arrive, with limited memory."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    warnings.simplefilter("ignore")
    usual = _peak()
    while True:
        name, folder = pipe.recv()
        pipe.send(_outcome(FAMILIES[name], Path(folder), usual))


def _outcome(family: Family, folder: Path, usual: int) -> str:
    """Return "accepted", "refused", or what is wrong."""
    try:
        outcome = family.read(folder) or ACCEPTED
    except _FORESEEN as error:
        is_named = any(path.name in str(error) for path in folder.rglob("*"))
        if not is_named and not isinstance(error, OSError):
            return f"an error without a file name: {error}"
        outcome = REFUSED
    except BaseException as error:
        return f"unforeseen: {type(error).__name__}: {error}"
    return outcome if _peak() < usual + MEMORY else f"{_peak() / 2**30:.1f} GiB of memory"


def _peak() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
