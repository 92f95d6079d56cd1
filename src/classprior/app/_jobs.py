"""Work in a process of its own, one at a time, that can be watched and killed."""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from multiprocessing import get_context
from time import monotonic
from typing import Any

from classprior.app._work import Task, end_group, serve

_ENDED = (
    "The process that did the work ended unexpectedly, perhaps because it ran out of memory. Use a "
    "random sample of the rows, or leave out columns."
)


class State(StrEnum):
    """How far a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELED = "canceled"


@dataclass(eq=False)
class Job:
    """A task, how far it is, and what was found."""

    task: Task
    state: State = State.WAITING
    step: str = "Waiting for another run"
    done: int = 0
    total: int | None = None
    failure: str = ""
    found: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    started: float = 0.0
    seconds: float = 0.0
    _worker: _Worker | None = None

    @property
    def is_open(self) -> bool:
        """Whether the job has not ended."""
        return self.state in (State.WAITING, State.RUNNING)

    @property
    def progress(self) -> dict[str, Any]:
        """What a page shows of an open job."""
        return {
            "state": self.state,
            "step": self.step,
            "done": self.done,
            "total": self.total,
            "has_answer": bool(self.found),
            "seconds": round(monotonic() - self.started) if self.started else 0,
        }

    def cancel(self) -> None:
        """End the job, whatever it is doing; what it found so far is kept."""
        if self.is_open:
            self.state = State.CANCELED
            if self._worker is not None:
                self._worker.kill()

    def run(self, worker: _Worker) -> None:
        """Do the work; returns when it has ended."""
        if self.state is not State.WAITING:
            return
        self.state, self.step = State.RUNNING, "Starting"
        self._worker, self.started = worker, monotonic()
        is_whole = worker.work(self.task, self._hear)
        self.seconds = monotonic() - self.started
        if self.state is State.RUNNING:
            self.failure = self.failure or ("" if is_whole else _ENDED)
            self.state = State.FAILED if self.failure else State.DONE

    def _hear(self, kind: str, *content: Any) -> None:
        """Take a message from the worker."""
        match kind:
            case "step":
                self.step, self.done, self.total = content
            case "found":
                self.found |= content[0]
            case "note" if content[0] not in self.notes:
                self.notes.append(content[0])
            case "failed":
                self.failure = content[0]


class Desk:
    """Does jobs one after another, each in a new process that is started in advance."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._next: _Worker | None = None
        self._is_open = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._jobs: set[Job] = set()

    def open(self) -> None:
        """Start the process for the first job."""
        self._next, self._is_open = _Worker(), True
        atexit.register(self.close)  # Python would wait for the process

    def close(self) -> None:
        """End all work."""
        self._is_open = False
        for job in self._jobs:
            job.cancel()
        if self._next is not None:
            self._next.kill()
        atexit.unregister(self.close)

    def submit(self, task: Task) -> Job:
        """Return a job that is done when its turn comes."""
        job = Job(task)
        self._jobs.add(job)
        running = asyncio.create_task(self._run(job))
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)
        running.add_done_callback(lambda _: self._jobs.discard(job))
        return job

    async def _run(self, job: Job) -> None:
        async with self._lock:
            if job.state is not State.WAITING or self._next is None:
                return
            worker, self._next = self._next, None
            await asyncio.to_thread(job.run, worker)
            if self._is_open:
                self._next = _Worker()


class _Worker:
    """A process that does one task; it imports what it needs before the task is known."""

    def __init__(self) -> None:
        context = get_context("spawn")  # a fork would copy locks held by threads
        self._ours, theirs = context.Pipe()
        # Not a daemon, which may have no processes of its own; it ends when its pipe is closed.
        self._process = context.Process(target=serve, args=(theirs,))
        self._process.start()
        theirs.close()

    def work(self, task: Task, hear: Callable[..., None]) -> bool:
        """Do a task and pass on its messages; return whether it ended by itself."""
        try:
            self._ours.send(task)
            while (message := self._ours.recv()) is not None:
                hear(*message)
            return True
        except (EOFError, OSError):
            return False
        finally:
            self.kill()
            self._process.join()

    def kill(self) -> None:
        """End the process at once, and those that it has started."""
        end_group(self._process.pid)
        self._process.kill()
