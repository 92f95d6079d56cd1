"""What the page has done in another process: look at files, estimate, and draw rows."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from classprior._core.messages import OptionError, OptionWarning

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from classprior._samples.inputs import FileSource
    from classprior._samples.samples import Samples
    from classprior.estimation import Estimation

Tell = Callable[..., None]
EXAMPLE, LABELED_EXAMPLE = "two files", "one file"
_NAMES = ("the known positives", "the unlabeled rows")
_SEEN_ROWS = 20_000  # of each sample, as for an estimate
_MOST_LABELS = 20  # values of a column that may mark known positives
_SHOWN_VALUES, _SHOWN_LETTERS = 3, 24
_READING = "See “If a file is not read right”"
#: Where on the page the parameters are that errors and warnings carry.
_HINTS = {
    **dict.fromkeys(("file_format", "encoding", "header", "decimal", "sheet"), _READING),
    **dict.fromkeys(("positive", "negative"), "See “Which rows are known positives?”"),
    "drop": "Choose “leave out” for a column",
    "every": "See “Round dates to”",
    "segment_positives": "See “Compare each segment with”",
    "max_weight": "See “Largest weight”",
}
#: How to follow the advice of warnings; the same keys as ``result.REMEDIES``.
_REMEDIES = {
    "drop": "To leave it out, go back to the columns and choose “leave out” for {column}.",
    "group": "Go back to the columns and choose “group” for the one that identifies, for example, "
    "the customer.",
    "group by": "Go back to the columns and choose “group” for {column}.",
    "leave out known": "Go back and tick “Leave out unlabeled rows that repeat a known positive”.",
    "repeat": "Averaging the estimates of several runs with different random seeds also helps.",
    "auto": "Go back and choose the recommended method.",
    "subtypes": "Compare with the method “subtypes”.",
}


class Task(NamedTuple):
    """A function of this module, the folder of its files, and its arguments."""

    function: str
    folder: str
    arguments: Mapping[str, Any]


def serve(requests: Connection) -> None:
    """Do one task in this process, and send messages about it; ends with the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent kills this process
    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own, for all processes that the work starts
    import classprior.estimation
    import classprior.report

    try:
        task: Task = requests.recv()
    except EOFError:
        return
    threading.Thread(target=_end_with_parent, args=(requests,), daemon=True).start()
    lock = threading.Lock()

    def tell(*message: Any) -> None:
        with lock:
            requests.send(message)

    os.environ["JOBLIB_TEMP_FOLDER"] = task.folder  # which is removed, even if the work is killed
    os.chdir(task.folder)  # so that no message names a folder
    run_task(task, tell)
    requests.send(None)
    assert classprior.report


def _end_with_parent(requests: Connection) -> None:
    """End this process when the parent has ended, however that happened."""
    try:
        requests.poll(None)
    finally:
        end_group(os.getpid())
        os._exit(1)


def end_group(leader: int | None) -> None:
    """End a process and those that it has started, where the system has groups of processes."""
    if leader is not None and hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # it has ended, or just begins
            os.killpg(leader, signal.SIGKILL)


def run_task(task: Task, tell: Tell) -> None:
    """Do a task in its folder; errors and warnings are messages."""
    from classprior._samples.progress import shown_by

    def show(description: str, done: int, total: int | None) -> None:
        tell("step", description, done, total)

    def show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if category in (UserWarning, OptionWarning):  # those of other packages are not for users
            tell("note", _with_hint(str(message), message))

    try:
        with warnings.catch_warnings(), shown_by(show):
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show_warning
            _FUNCTIONS[task.function](tell, **task.arguments)
    except Exception as error:
        tell("failed", explained(error).replace(task.folder + os.sep, ""))


def explained(error: Exception) -> str:
    """Return an error message of one paragraph, without the names of folders."""
    if isinstance(error, MemoryError):
        return "Out of memory. Use a random sample of the rows, or leave out columns."
    if isinstance(error, OSError) and error.strerror:
        where = f" {Path(str(error.filename)).name!r}" if error.filename else ""
        return f"Could not read or write{where}: {error.strerror}."
    text = " ".join(str(error).split())
    if isinstance(error, ValueError | TypeError | OSError):
        return _with_hint(text, error)
    return f"Unexpected error: {type(error).__name__}: {text}."


def _with_hint(text: str, problem: BaseException | None) -> str:
    """Add where on the page the parameter is that helps, if a problem or its cause names one."""
    while problem is not None:
        if isinstance(problem, OptionError | OptionWarning) and problem.option in _HINTS:
            return f"{text} {_HINTS[problem.option]}."
        problem = problem.__cause__
    return text


def make_example(tell: Tell, *, kind: str, names: Sequence[str]) -> None:
    """Write card payments, some of them frauds, as two files or as one, and look at them."""
    import pandas as pd

    from classprior.datasets import make_transactions

    tables = make_transactions(random_state=0)
    if kind == LABELED_EXAMPLE:
        marks = ("fraud", "unknown")
        parts = [table.assign(status=mark) for table, mark in zip(tables, marks, strict=True)]
        tables = (pd.concat(parts).sample(frac=1.0, random_state=0),)
    for name, table in zip(names, tables, strict=True):
        table.to_csv(name, index=False)
    look(tell, names=names, reading={})


def look(tell: Tell, *, names: Sequence[str], reading: Mapping[str, Any]) -> None:
    """Find out the rows, columns and possible labels of one or two files."""
    from classprior._samples.opening import open_samples
    from classprior._tables.encoder import TableEncoder

    tell("step", "Reading", 0, None)
    sources = [
        _opened(name, "the data" if len(names) == 1 else _NAMES[number], reading)
        for number, name in enumerate(names)
    ]
    known, others = sources[0], sources[-1]
    only = {
        **dict.fromkeys(set(known.columns or ()) - set(others.columns or ()), names[0]),
        **dict.fromkeys(set(others.columns or ()) - set(known.columns or ()), names[-1]),
    }
    raw = open_samples(known, others, seed=0, drop=list(only), n_jobs=-1, verbose=1)
    encoder = TableEncoder()
    raw.encoded(encoder, _SEEN_ROWS)
    examples, few = _seen_values(raw)
    columns = [
        {
            "name": column.name,
            "kind": column.kind,
            "treatment": column.treatment,
            "is_left_out": column.is_left_out,
            "examples": examples.get(column.name, []),
            "only_in": "",
        }
        for column in encoder.treatments_
    ]
    for name, where in only.items():
        treatment = "left out: not in both files"
        columns.append(
            {"name": name, "kind": "", "treatment": treatment, "is_left_out": True}
            | {"examples": [], "only_in": where}
        )
    found: dict[str, Any] = {"n_rows": [source.n_rows for source in sources], "columns": columns}
    if len(names) == 1:
        found |= _labels(known, few)
    tell("found", found)


def _opened(name: str, kind: str, reading: Mapping[str, Any]) -> FileSource:
    from classprior._samples.inputs import FileSource, as_source

    source = as_source(name, kind, read_options=reading, n_jobs=-1)
    if not isinstance(source, FileSource):
        raise ValueError(f"{name!r} has no column names. Save the data as CSV or Parquet.")
    return source


def _seen_values(raw: Samples) -> tuple[dict[str, list[str]], list[str]]:
    """Return some values of each column, and the columns with few of them."""
    from classprior._tables.columns import texts_of
    from classprior._tables.typed import columns_of

    table = raw.subsample_tables(_SEEN_ROWS)[1]
    # A dict is a set that keeps the order.
    texts = {name: dict.fromkeys(texts_of(c)) for name, c in columns_of(table, None).items()}
    shown = {
        name: [_shortened(text) for text in values if text is not None][:_SHOWN_VALUES]
        for name, values in texts.items()
    }
    return shown, [name for name, values in texts.items() if len(values) <= _MOST_LABELS]


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_LETTERS else f"{text[: _SHOWN_LETTERS - 1]}…"


def _labels(data: FileSource, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns that may mark known positives, their values, and the likeliest one.

    Columns with few values come first.
    """
    from classprior._samples.labeled import count_labels, obvious_positive
    from classprior._tables.labels import means_unlabeled

    counts = count_labels(data, names, _MOST_LABELS)
    labels = {name: values for name, values in counts.items() if len(values) > 1}
    clear = {name: p for name, values in labels.items() if (p := obvious_positive(values))}
    beside_unknown = {
        name: p for name, p in clear.items() if any(v and means_unlabeled(v) for v in labels[name])
    }
    likely = beside_unknown or clear
    guess = next(iter(likely.items())) if len(likely) == 1 else None
    return {
        "labels": {
            name: sorted(values.items(), key=lambda item: -item[1])
            for name, values in sorted(labels.items(), key=lambda item: len(item[1]))
        },
        "guess": guess,
    }


def estimate(
    tell: Tell,
    *,
    names: Sequence[str],
    parameters: Mapping[str, Any],
    report: Mapping[str, Any],
    outputs: Mapping[str, str],
    n_reasons: int = 0,
    checked: Mapping[str, str] | None = None,
) -> None:
    """Estimate the share of positives, and write a report, the scored rows and a model.

    ``outputs`` are the names of the files to write, ``checked`` those of a filled-in sheet and of
    its plan. The answer is told before rows are scored.
    """
    from classprior.report import render_report

    if checked is not None:
        _check_sheet(**checked)
    found = _estimation(tell, names, parameters)
    if checked is not None:
        tell("step", "Counting the checked rows", 0, None)
        found = found.with_checked(checked["paths"], plan=checked["plan"])
    warned = tuple(map(_worded, found.estimate.warnings))
    found = replace(found, estimate=replace(found.estimate, warnings=warned))
    tell("step", "Which columns matter", 0, None)
    importances = found.importances() if found.has_columns else None
    tell("step", "Drawing the report", 0, None)
    page = render_report(found.estimate, importances=importances, **report)
    Path(outputs["report"]).write_text(page, encoding="utf-8")
    tell("found", {"answer": _answer(found, is_one_table=len(names) == 1)})
    tell("found", {"files": ["report"]})
    if found.encoder is None:
        return
    try:
        _write_scored(tell, found, Path(outputs["scored"]), n_reasons)
        tell("found", {"files": ["report", "scored"]})
        tell("step", "Saving the model", 0, None)
        found.save_model(outputs["model"])
        tell("found", {"files": ["report", "scored", "model"]})
    except (ValueError, OSError) as error:
        tell("note", f"The rows could not be scored: {explained(error)}")


def draw(
    tell: Tell, *, names: Sequence[str], parameters: Mapping[str, Any], budget: int, sheet: str
) -> None:
    """Draw the rows that somebody should look at, and write their sheet with its plan."""
    from classprior._reviewing import check_sheet_columns, sheet_of
    from classprior.review import write_sheet

    columns = _opened(names[-1], _NAMES[1], parameters["read_options"]).columns
    check_sheet_columns(columns or (), names[-1])
    found = _estimation(tell, names, parameters)
    tell("step", "Drawing rows", 0, None)
    plan, rows = sheet_of(found.plan_review(budget), _unlabeled(found))
    write_sheet(sheet, plan, rows)
    texts = [plan.drawn_text(), plan.forecast().to_text()]
    tell("found", {"texts": texts, "files": ["sheet", "plan"]})


def _check_sheet(paths: str, plan: str) -> None:
    """Raise if a sheet or its plan cannot be read, before the estimate.

    The message has no names of folders, and no hints, which are about the other files.
    """
    from classprior.review import read_sheets

    try:
        read_sheets(paths, plan)
    except ValueError as error:
        folders = {f"{Path(path).parent}/" for path in (paths, plan)} - {"./"}
        text = str(error)
        for folder in folders:
            text = text.replace(folder, "")
        raise ValueError(text) from None


def _estimation(tell: Tell, names: Sequence[str], parameters: Mapping[str, Any]) -> Estimation:
    from classprior.estimation import Estimation

    tell("step", "Reading", 0, None)
    return Estimation.of(*names, n_jobs=-1, verbose=1, **parameters)


def _unlabeled(found: Estimation) -> FileSource:
    from classprior._samples.inputs import FileSource

    source = found.raw.each[1].source
    assert isinstance(source, FileSource)
    return source


def _worded(warning: Any) -> Any:
    """Return a warning whose advice names what is on the page, not Python parameters."""
    if getattr(warning, "remedy", None) is None:
        return warning
    column = "a column" if warning.column is None else repr(warning.column)
    return warning.worded(_REMEDIES[warning.remedy].format(column=column))


def _answer(found: Estimation, *, is_one_table: bool) -> dict[str, Any]:
    """Return what the page says about an estimate."""
    estimate = found.estimate
    prior, low, high, _ = estimate.shown
    pooled = (
        f"Of all rows, known positives included, {estimate.prior_pooled:.1%} are positive; "
        f"{estimate.label_frequency:.1%} of the positives are known."
    )
    return {
        "sentence": estimate.answer,
        "prior": prior,
        "low": low,
        "high": high,
        "n_warnings": len(estimate.warnings),
        "n_unlabeled": estimate.n_unlabeled,
        "pooled": pooled if is_one_table and estimate.checked is None and prior is not None else "",
    }


def _write_scored(tell: Tell, found: Estimation, out: Path, n_reasons: int) -> None:
    """Write the unlabeled rows with their probabilities."""
    from classprior._scored import ScoredRows, check_rows, write_rows

    source = _unlabeled(found)
    check_rows(out, source, n_reasons=n_reasons)
    tell("step", "Scoring rows", 0, None)
    scored = ScoredRows.of(found.model[-1], found.scores())
    if n_reasons:
        scored = scored.with_reasons(found, n_reasons)
    tell("step", "Writing the scored rows", 0, None)
    write_rows(out, source, scored)


_FUNCTIONS: Mapping[str, Callable[..., None]] = {
    "make_example": make_example,
    "look": look,
    "estimate": estimate,
    "draw": draw,
}
