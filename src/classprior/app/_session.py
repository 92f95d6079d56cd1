"""What the server knows: files, how they were understood, and estimates."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar, NamedTuple

from classprior._core.messages import rows_text
from classprior.app._choices import SCORE, Choices, Draw, Form, Reading
from classprior.app._jobs import Desk, Job
from classprior.app._uploads import Upload, UploadError
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
        return " and ".join(self.names)

    @property
    def names(self) -> list[str]:
        """The names of the files for the user."""
        return [file.name for file in self.files]

    @property
    def stored(self) -> list[str]:
        """The names of the files in the folder."""
        return [file.stored for file in self.files]


@dataclass(eq=False, kw_only=True)
class Made:
    """What is made of files: files to download, and the commands that do the same."""

    number: int
    data: Data
    choices: Choices
    outputs: Mapping[str, str]  # names in the folder
    commands: list[str]
    job: Job
    started: datetime = field(default_factory=lambda: datetime.now().astimezone())

    @property
    def files(self) -> list[str]:
        """What can be downloaded."""
        return self.job.found.get("files", [])

    @property
    def downloads(self) -> dict[str, str]:
        """The names of these files for the user."""
        return {kind: name.split("-", 2)[2] for kind, name in self.outputs.items()}


class Retry(NamedTuple):
    """What to do after a failure: what is not lost, and a link."""

    kept: str
    text: str
    address: str


@dataclass(frozen=True)
class Checked:
    """A sheet that somebody has filled in, its plan, and the page with which it was sent."""

    sheet: Upload
    plan: Upload
    sent_from: str

    @property
    def arguments(self) -> list[str]:
        """The options of the command line; a plan beside its sheet is found."""
        is_beside = self.plan.name == f"{Path(self.sheet.name).stem}.plan.json"
        plan = [] if is_beside else ["--plan", self.plan.name]
        return ["--checked", self.sheet.name, *plan]


@dataclass(eq=False, kw_only=True)
class Run(Made):
    """An estimate: of which files, with which choices, and what was found."""

    template: ClassVar = "run.html"
    doing: ClassVar = "Estimating"
    failed: ClassVar = "No estimate"
    plan: ClassVar = None  # that of a sheet must be sent with it

    form: Form
    checked: Checked | None = None

    @property
    def here(self) -> str:
        """The address of its page."""
        return f"/runs/{self.number}"

    @property
    def title(self) -> str:
        """The title of its page, once there is an answer."""
        return self.job.found["answer"]["sentence"]

    @property
    def retry(self) -> Retry:
        """What to do if it fails."""
        if self.checked is not None:
            kept = "The answer without checked rows is still here. Correct the sheet, and send it."
            return Retry(kept, "Send the sheet again", f"{self.checked.sent_from}#filled")
        kept = "The files and your choices are still here."
        return Retry(kept, "Change the choices and try again", self.choices_page)

    @property
    def choices_page(self) -> str:
        """The address of the page with its choices."""
        return f"/data/{self.data.number}?run={self.number}"

    @property
    def run(self) -> Run:
        """The estimate to which checked rows belong."""
        return self

    @property
    def answer(self) -> dict[str, Any] | None:
        """What the page says, once it is known."""
        return self.job.found.get("answer")


@dataclass(eq=False, kw_only=True)
class Review(Made):
    """Rows that somebody should look at, drawn after a run."""

    template: ClassVar = "review.html"
    doing: ClassVar = "Drawing rows"
    failed: ClassVar = "No rows were drawn"

    run: Run
    draw: Draw

    @property
    def here(self) -> str:
        """The address of its page."""
        return f"/reviews/{self.number}"

    @property
    def title(self) -> str:
        """The title of its page."""
        return f"{rows_text(f'{self.draw.budget:,}')} to look at"

    @property
    def retry(self) -> Retry:
        """What to do if it fails."""
        return Retry("The answer is still here.", "Back to the answer", f"{self.run.here}#review")

    @property
    def plan(self) -> Upload | None:
        """The plan, once there is one."""
        is_there = "plan" in self.files
        return Upload("plan", self.downloads["plan"], self.outputs["plan"]) if is_there else None


@dataclass(eq=False)
class Session:
    """The files and runs since the server was started."""

    folder: Path
    desk: Desk
    max_bytes: int
    evidence: Any = None  # an AutoPrior for all estimates; None is the default one
    data: dict[int, Data] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    reviews: dict[int, Review] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=partial(count, 1))

    def new_folder(self, within: Path | None = None) -> Path:
        """Make a folder for files, which only the user can read."""
        return Path(mkdtemp(prefix="files-", dir=within or self.folder))

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

    def start(
        self, data: Data, choices: Choices, form: Form, checked: Checked | None = None
    ) -> Run:
        """Start an estimate, perhaps with rows that somebody has looked at."""
        number = next(self._numbers)
        outputs = {
            "report": f"run-{number}-report.html",
            "scored": f"run-{number}-scored.{choices.scored}",
            "model": f"run-{number}-rows.model",
        }
        commands = choices.commands(data.names, data.reading, checked.arguments if checked else [])
        started = datetime.now().astimezone()
        report = {
            "title": choices.title or None,
            "command": commands[0],
            "settings": _settings(data, choices, checked),
            "date": started.isoformat(sep=" ", timespec="minutes"),
        }
        task = Task(
            "estimate",
            str(data.folder),
            {
                "names": data.stored,
                "parameters": self._parameters(data, choices),
                "report": report,
                "outputs": outputs,
                "n_reasons": choices.n_reasons,
                "checked": checked and {"paths": checked.sheet.stored, "plan": checked.plan.stored},
            },
        )
        self.runs[number] = run = Run(
            number=number,
            data=data,
            choices=choices,
            outputs=outputs,
            commands=commands,
            job=self.desk.submit(task),
            started=started,
            form=form,
            checked=checked,
        )
        data.n_runs += 1
        return run

    def draw(self, run: Run, draw: Draw) -> Review:
        """Draw the rows of a run that somebody should look at."""
        number, data = next(self._numbers), run.data
        stem = f"review-{number}-review"
        outputs = {"sheet": f"{stem}.{draw.sheet_format}", "plan": f"{stem}.plan.json"}
        task = Task(
            "draw",
            str(data.folder),
            {
                "names": data.stored,
                "parameters": self._parameters(data, run.choices),
                "budget": draw.budget,
                "sheet": outputs["sheet"],
            },
        )
        self.reviews[number] = review = Review(
            number=number,
            data=data,
            choices=run.choices,
            outputs=outputs,
            commands=run.choices.review_commands(data.names, data.reading, draw),
            job=self.desk.submit(task),
            run=run,
            draw=draw,
        )
        return review

    def start_checked(self, made: Run | Review, folder: Path, uploads: list[Upload]) -> Run:
        """Start an estimate with a sheet, sent from the page of a run or review to a folder."""
        sent = {
            file.field: replace(file, stored=f"{folder.name}/{file.stored}") for file in uploads
        }
        sheet, plan = sent.get("sheet"), made.plan or sent.get("plan")
        if sheet is None or plan is None:
            shutil.rmtree(folder)
            raise UploadError(
                "Choose the sheet and its plan, the file that was saved with it."
                if made.plan is None
                else "Choose the sheet first."
            )
        checked = Checked(sheet, plan, made.here)
        return self.start(made.data, made.choices, made.run.form, checked)

    def _parameters(self, data: Data, choices: Choices) -> dict[str, Any]:
        """Return the parameters of an estimate."""
        parameters = choices.parameters(data.reading)
        if self.evidence is not None and not choices.columns(SCORE):
            parameters["evidence"] = self.evidence
        return parameters

    def remove(self, data: Data) -> None:
        """Remove files and all that was made of them."""
        made: tuple[dict[int, Any], ...] = self.runs, self.reviews
        for things in made:
            for thing in [thing for thing in things.values() if thing.data is data]:
                thing.job.cancel()
                del things[thing.number]
        data.job.cancel()
        del self.data[data.number]
        shutil.rmtree(data.folder, ignore_errors=True)


def _task_to_look(folder: Path, uploads: list[Upload], reading: Reading, kind: str = "") -> Task:
    names = [upload.stored for upload in uploads]
    if kind:
        return Task("make_example", str(folder), {"kind": kind, "names": names})
    return Task("look", str(folder), {"names": names, "reading": reading.options})


def _settings(data: Data, choices: Choices, checked: Checked | None) -> dict[str, str]:
    """Return what is needed to repeat a run, for the report."""
    kinds = ("data",) if len(data.files) == 1 else ("positive", "unlabeled")
    files = dict(zip(kinds, data.names, strict=True))
    given: dict[str, str] = {}
    for option, value in [*choices.options(), *data.reading.options.items()]:
        name = option.removeprefix("--")
        given[name] = f"{given[name]}, {value}" if name in given else str(value)
    if checked is not None:
        given["checked"] = checked.sheet.name
    return {**files, "confidence": f"{choices.confidence:g}", "seed": str(choices.seed), **given}
