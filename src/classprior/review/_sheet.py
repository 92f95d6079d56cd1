"""The sheet that a person fills in: written with empty answers, and read back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from classprior._core.messages import OptionError, listed
from classprior._core.types import Ints
from classprior._files.finding import OUTPUTS, find_files, format_of
from classprior._files.reading import ReadOptions, open_files
from classprior._files.texts import as_texts
from classprior._files.writing import dialect_for, table_writer
from classprior.review._checked import UNKNOWN
from classprior.review._plan import ReviewPlan, load_plan
from classprior.review._planning import plan_for_sample

if TYPE_CHECKING:
    import pyarrow as pa

CHECKED, NOTE, ROW = "checked", "note", "row"
_ANSWERS = {
    **dict.fromkeys(("yes", "y", "true", "1"), 1),
    **dict.fromkeys(("no", "n", "false", "0"), 0),
    **dict.fromkeys(("unsure", "?"), UNKNOWN),
}
_WHOLE = re.compile(r"(-?\d+)[.,]0+")  # a number that a spreadsheet wrote as 7.0
_EMPTY = ("", "nan", "none", "null")


def plan_path(sheet: str | os.PathLike[str]) -> Path:
    """Return the file of the plan beside a sheet: ``review.plan.json`` for ``review.csv``.

    Parameters
    ----------
    sheet : path
        The sheet.

    Returns
    -------
    path : Path
        Where its plan is.
    """
    path = Path(sheet)
    stem = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return path.with_name(f"{stem.stem}.plan.json")


def write_sheet(path: str | os.PathLike[str], plan: ReviewPlan, rows: Any) -> None:
    """Write the sheet for the last rows of a plan, and the plan beside it.

    The sheet has the key of each row, its columns, and the empty columns ``checked`` and ``note``.
    Scores and strata are left out, because they would bias whoever checks the rows.

    Parameters
    ----------
    path : path
        Output file: .csv, .parquet, .feather or .xlsx.
    plan : ReviewPlan
        The plan, with keys.
    rows : pyarrow.Table
        The rows in the order of the plan: all, or those that were added last.
    """
    import pyarrow as pa

    path = Path(path)
    check_sheet_path(path)
    n = rows.num_rows
    if taken := [name for name in (CHECKED, NOTE) if name in rows.column_names]:
        raise ValueError(f"The rows already have a column {listed(taken)}. Rename it.")
    keys = pa.array(plan.keys[len(plan.keys) - n :], pa.string())
    if plan.key_column in rows.column_names:
        keys = rows[plan.key_column]
        rows = rows.drop_columns([plan.key_column])
    columns = [keys, *rows.columns, *[pa.array([""] * n, pa.string())] * 2]
    names = [plan.key_column, *rows.column_names, CHECKED, NOTE]
    table = pa.table(dict(zip(names, columns, strict=True)))
    kind = format_of(path, OUTPUTS)
    assert kind is not None
    with table_writer(path, kind, dialect_for(path), None) as write:
        write(table)
    plan.save(plan_path(path))


def check_sheet_path(path: Path) -> None:
    """Raise if a sheet cannot be written to a path: its format, or answers that it has already.

    Parameters
    ----------
    path : path
        The output file.
    """
    if format_of(path, OUTPUTS) is None:
        raise ValueError(
            f"Unknown format of {path.name!r}. Use one of the suffixes {', '.join(OUTPUTS)}."
        )
    if path.is_file() and _has_entries(path):
        raise ValueError(
            f"{str(path)!r} has entries in the column {CHECKED!r} or {NOTE!r}, or cannot be read, "
            "and they would be lost. Choose another file name."
        )


def _has_entries(path: Path) -> bool:
    """Return whether someone wrote something in the columns for answers and notes."""
    try:
        texts = _texts_of(path, optional=(CHECKED, NOTE))
        return any(_cleaned(text) for column in texts.values() for text in column)
    except ValueError:  # it cannot be read, so it might
        return path.stat().st_size > 0


def read_sheets(
    paths: Sequence[str | os.PathLike[str]] | str | os.PathLike[str],
    plan: ReviewPlan | str | os.PathLike[str] | None = None,
) -> tuple[ReviewPlan, Ints, list[str]]:
    """Read the answers in sheets.

    Parameters
    ----------
    paths : path or sequence of paths
        The sheets of a plan, in any order of rows. Only the key of each row and the column
        ``checked`` are read: yes, no, true, false, 1, 0, unsure, or nothing.
    plan : ReviewPlan or path, optional
        Their plan. By default, the longest of those beside the sheets.

    Returns
    -------
    plan : ReviewPlan
        The plan.
    answers : ndarray of int
        1, 0 or -1 for each row of the plan, in its order.
    notes : list of str
        Remarks, such as rows with conflicting answers.
    """
    sheets = [Path(p) for p in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if not isinstance(plan, ReviewPlan):
        plan = load_plan(plan) if plan is not None else _plan_of(sheets)
    given: dict[int, set[int]] = {}
    for path in sheets:
        for place, answer in _answers(path, plan):
            given.setdefault(place, set()).add(answer)
    answers = np.full(len(plan.rows), UNKNOWN)
    for place, said in given.items():
        answers[place] = min(said) if len(said) == 1 else UNKNOWN
    conflicts = [plan.keys[place] for place, said in sorted(given.items()) if len(said) > 1]
    if not conflicts:
        return plan, answers, []
    note = f"Conflicting answers count as unsure: {plan.key_column} {listed(conflicts)}."
    return plan, answers, [note]


def _plan_of(sheets: Sequence[Path]) -> ReviewPlan:
    """Return the longest plan beside some sheets, which must contain the others."""
    plans = []
    for sheet in sheets:
        if not plan_path(sheet).is_file():
            raise OptionError(
                f"There is no plan {plan_path(sheet).name!r} beside {str(sheet)!r}. Give its plan; "
                "or, if these rows are a simple random sample of the unlabeled rows, say so. Rows "
                "that were picked by hand prove nothing about the others.",
                "random_sample",
            )
        plans.append(load_plan(plan_path(sheet)))
    longest = max(plans, key=lambda plan: len(plan.rows))
    for plan in plans:
        if plan.keys != longest.keys[: len(plan.keys)] or plan.seed != longest.seed:
            raise ValueError("The sheets belong to different plans. Give the sheets of one plan.")
    return longest


def _answers(path: Path, plan: ReviewPlan) -> Iterator[tuple[int, int]]:
    """Yield the place in the plan and the answer of each row of a sheet that has one."""
    places = _Places(plan)
    texts = _texts_of(path, required=(plan.key_column, CHECKED))
    for key, answer in zip(texts[plan.key_column], texts[CHECKED], strict=True):
        key, answer = _cleaned(key), _cleaned(answer)
        if not key and not answer:
            continue  # an empty line
        place = places.of(key, path)
        if not answer:
            continue
        if answer.lower() not in _ANSWERS:
            raise ValueError(
                f"Expected yes, no or unsure in the column {CHECKED!r} of {str(path)!r}, got "
                f"{answer!r} for {plan.key_column} {key!r}."
            )
        yield place, _ANSWERS[answer.lower()]


class _Places:
    """Finds rows of a plan by their keys, also if a spreadsheet has changed how they look."""

    def __init__(self, plan: ReviewPlan) -> None:
        self._column = plan.key_column
        self._exact = {key: place for place, key in enumerate(plan.keys)}
        short = [_cleaned(key).lstrip("0") or "0" for key in plan.keys]
        is_clear = len(set(short)) == len(short)
        self._short = {key: place for place, key in enumerate(short) if is_clear}

    def of(self, key: str, path: Path) -> int:
        """Return the place of a key; raise if the plan does not have it."""
        place = self._exact.get(key, self._short.get(key.lstrip("0") or "0"))
        if place is None:
            raise ValueError(
                f"The plan has no row with {self._column} {key!r}, which is in {str(path)!r}. "
                "Was this sheet made by another plan?"
            )
        return place


def _cleaned(text: str | None) -> str:
    """Return a text without spaces around it and without the .0 of a whole number."""
    text = (text or "").strip()
    if whole := _WHOLE.fullmatch(text):
        return whole[1]
    return "" if text.lower() in _EMPTY else text


def _texts_of(
    path: Path, required: Iterable[str] = (), optional: Iterable[str] = ()
) -> dict[str, list[str | None]]:
    """Read some columns of a table as text."""
    opened = open_files(find_files(str(path)), "the checked rows", options=ReadOptions())
    if missing := [name for name in required if name not in opened.columns]:
        raise ValueError(
            f"{str(path)!r} has no column {listed(missing)}; it has {listed(opened.columns)}."
        )
    names = [name for name in (*required, *optional) if name in opened.columns]
    texts: dict[str, list[str | None]] = {name: [] for name in names}
    for table in opened.as_written():
        for name in names:
            texts[name] += _column_texts(table[name])
    return texts


def _column_texts(column: pa.ChunkedArray) -> list[str | None]:
    return [text for chunk in column.chunks for text in as_texts(chunk).to_pylist()]


def plan_of_random_sample(
    path: str | os.PathLike[str],
    scores: ArrayLike,
    probabilities: ArrayLike,
    *,
    rows: ArrayLike | None = None,
    numbers: ArrayLike | None = None,
    known_scores: ArrayLike | None = None,
    confidence: float = 0.95,
) -> tuple[ReviewPlan, Ints]:
    """Return the plan and the answers of a simple random sample that was drawn without a plan.

    The rows are divided by score after the fact, without looking at the answers: within each part,
    they are a simple random sample, too.

    Parameters
    ----------
    path : path
        A table with the number of each row, from 1, in the column ``row``, and with answers in the
        column ``checked``.
    scores, probabilities : array-like of shape (n_rows,)
        Scores and probabilities of the unlabeled rows.
    rows : array-like of int of shape (n_rows,), optional
        Indices of the rows, if these are not all.
    numbers : array-like of int, optional
        Number of each unlabeled row in its file, from 0. By default, its index.
    known_scores : array-like, optional
        Scores of the known positives.
    confidence : float, default=0.95
        Confidence level of the limits.

    Returns
    -------
    plan : ReviewPlan
        A plan with these rows. It cannot be topped up.
    answers : ndarray of int
        The answers, 1, 0 or -1.
    """
    path = Path(path)
    texts = _texts_of(path, required=(ROW, CHECKED))
    given = [key for key in map(_cleaned, texts[ROW]) if key]
    if len(set(given)) < len(given):
        raise ValueError(f"{str(path)!r} has a row more than once in the column {ROW!r}.")
    if wrong := [key for key in given if not key.isdigit() or key == "0"]:
        raise ValueError(
            f"Expected row numbers from 1 on in the column {ROW!r} of {str(path)!r}, got "
            f"{wrong[0]!r}."
        )
    sample = [int(key) - 1 for key in given]
    if numbers is not None:
        index_of = {int(number): index for index, number in enumerate(np.asarray(numbers))}
        if missing := [number for number in sample if number not in index_of]:
            raise ValueError(f"Row {missing[0] + 1:,} of the file is not an unlabeled row.")
        sample = [index_of[number] for number in sample]
    plan = plan_for_sample(
        scores,
        probabilities,
        sample,
        keys=given,
        rows=rows,
        known_scores=known_scores,
        confidence=confidence,
    )
    answers = np.full(len(given), UNKNOWN)
    for place, answer in _answers(path, plan):
        answers[place] = answer
    return plan, answers
