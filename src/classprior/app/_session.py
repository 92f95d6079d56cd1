"""What the server knows: files, how they were understood, and estimates."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from classprior.app._choices import SCORE, Choices, Form, Reading
from classprior.app._jobs import Desk, Job
from classprior.app._uploads import Upload
from classprior.app._work import Task


@dataclass(eq=False)
class Data:
    """One or two files, how they are read, and what was found in them."""

    number: int
    folder: Path
    files: list[Upload]
    reading: Reading
    job: Job
    n_runs: int = 0

    @property
    def title(self) -> str:
        """The names of the files."""
        return " and ".join(file.name for file in self.files)

    @property
    def stored(self) -> list[str]:
        """The names of the files in the folder."""
        return [file.stored for file in self.files]


@dataclass(eq=False)
class Run:
    """An estimate: of which files, with which choices, and what was found."""

    number: int
    data: Data
    choices: Choices
    form: Form
    outputs: Mapping[str, str]
    downloads: Mapping[str, str]  # names for the user
    commands: list[str]
    job: Job
    started: datetime = field(default_factory=lambda: datetime.now().astimezone())

    @property
    def answer(self) -> dict[str, Any] | None:
        """What the page says, once it is known."""
        return self.job.found.get("answer")

    @property
    def files(self) -> list[str]:
        """What can be downloaded."""
        return self.job.found.get("files", [])


@dataclass(eq=False)
class Session:
    """The files and runs since the server was started."""

    folder: Path
    desk: Desk
    max_bytes: int
    evidence: Any = None  # an AutoPrior for all estimates; None is the default one
    data: dict[int, Data] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=partial(count, 1))

    def new_folder(self) -> Path:
        """Make a folder for files, which only the user can read."""
        return Path(mkdtemp(prefix="files-", dir=self.folder))

    def add(self, folder: Path, uploads: list[Upload], reading: Reading, kind: str = "") -> Data:
        """Add files, and look at them; ``kind`` is that of an example that is yet to be made."""
        number = next(self._numbers)
        job = self.desk.submit(_task_to_look(folder, uploads, reading, kind))
        self.data[number] = data = Data(number, folder, uploads, reading, job)
        return data

    def look_again(self, data: Data, uploads: list[Upload], reading: Reading) -> None:
        """Look at the same files, read or ordered in another way."""
        data.job.cancel()
        data.files, data.reading = uploads, reading
        data.job = self.desk.submit(_task_to_look(data.folder, uploads, reading))

    def start(self, data: Data, choices: Choices, form: Form) -> Run:
        """Start an estimate."""
        number = next(self._numbers)
        outputs = {
            "report": f"run-{number}-report.html",
            "scored": f"run-{number}-scored.{choices.scored}",
            "model": f"run-{number}-rows.model",
        }
        names = [file.name for file in data.files]
        commands = choices.commands(names, data.reading)
        parameters = choices.parameters(data.reading)
        if self.evidence is not None and not choices.columns(SCORE):
            parameters["evidence"] = self.evidence
        started = datetime.now().astimezone()
        report = {
            "title": choices.title or None,
            "command": commands[0],
            "settings": _settings(data, choices),
            "date": started.isoformat(sep=" ", timespec="minutes"),
        }
        task = Task(
            "estimate",
            str(data.folder),
            {
                "names": data.stored,
                "parameters": parameters,
                "report": report,
                "outputs": outputs,
                "n_reasons": choices.n_reasons,
            },
        )
        downloads = {key: name.split("-", 2)[2] for key, name in outputs.items()}
        job = self.desk.submit(task)
        run = Run(number, data, choices, form, outputs, downloads, commands, job, started)
        self.runs[number] = run
        data.n_runs += 1
        return run

    def remove(self, data: Data) -> None:
        """Remove files and all that was made of them."""
        for run in [run for run in self.runs.values() if run.data is data]:
            run.job.cancel()
            del self.runs[run.number]
        data.job.cancel()
        del self.data[data.number]
        shutil.rmtree(data.folder, ignore_errors=True)


def _task_to_look(folder: Path, uploads: list[Upload], reading: Reading, kind: str = "") -> Task:
    names = [upload.stored for upload in uploads]
    if kind:
        return Task("make_example", str(folder), {"kind": kind, "names": names})
    return Task("look", str(folder), {"names": names, "reading": reading.options})


def _settings(data: Data, choices: Choices) -> dict[str, str]:
    """Return what is needed to repeat a run, for the report."""
    kinds = ("data",) if len(data.files) == 1 else ("positive", "unlabeled")
    settings = {kind: file.name for kind, file in zip(kinds, data.files, strict=True)}
    for option, value in [*choices.options(), *data.reading.options.items()]:
        name = option.removeprefix("--")
        settings[name] = f"{settings[name]}, {value}" if name in settings else str(value)
    return {"confidence": f"{choices.confidence:g}", "seed": str(choices.seed), **settings}
