"""From fitted scores to a plan of rows to look at, and from a filled-in sheet to its evaluation."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import logit
from scipy.stats import rankdata

from classprior._core.messages import OptionError, listed
from classprior._core.types import Doubles, Ints
from classprior._files.texts import as_texts
from classprior._samples.inputs import FileSource
from classprior._samples.sample import Sample
from classprior._samples.samples import Samples
from classprior._scores.by_column import value_text
from classprior._scores.calibration import calibrate
from classprior._tables.tables import as_pandas, column_names, take_rows
from classprior.review import (
    CheckedEstimate,
    ReviewPlan,
    evaluate_review,
    plan_of_random_sample,
    read_sheets,
)
from classprior.review._sheet import CHECKED, NOTE, ROW

if TYPE_CHECKING:
    import pyarrow as pa

Checked = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | tuple[ReviewPlan, Any]


class Ranking(NamedTuple):
    """Scores and probabilities of the unlabeled rows that count, and scores of known positives."""

    rows: Ints  # indices of the unlabeled rows
    scores: Doubles
    probabilities: Doubles
    known_scores: Doubles


def ranking_of(
    samples: Samples, scores: Doubles, probabilities: Doubles, known_scores: Doubles
) -> Ranking:
    """Select the rows that count; weights are refused."""
    if samples.units.are_weighted:
        raise ValueError(
            "A review counts rows, so weights do not apply: the share of the rows is not the share "
            "of their weight. Leave the weights out."
        )
    counted = samples.units.counted
    rows = np.arange(len(scores)) if counted is None else counted[1]
    return Ranking(rows, scores[rows], probabilities[rows], known_scores)


def own_scores(samples: Samples, prior: float) -> tuple[Doubles, Doubles, Doubles]:
    """Return scores and probabilities of the unlabeled rows, and scores of the known positives.

    For scores of a model that was given, of which only the order matters: their log-odds are those
    of their places among all of them.
    """
    drawn = samples.subsample(None)
    positive, unlabeled = (np.asarray(part).ravel() for part in drawn.rows)
    ranks = rankdata(np.concatenate([positive, unlabeled]))
    places = logit((ranks - 0.5) / len(ranks))
    both = places[: len(positive)], places[len(positive) :]
    calibration = calibrate(both, prior)
    known, scores = (calibration.decision(part) for part in both)
    scores = drawn.as_given(1, scores)
    return scores, calibration.probability(scores), known


def with_segments(plan: ReviewPlan, samples: Samples, ranking: Ranking) -> ReviewPlan:
    """Return the plan with the size of each segment in each stratum."""
    segments = samples.units.segments
    if segments is None:
        return plan
    order = np.argsort(-ranking.scores.round(9), kind="stable")
    strata = np.empty(len(order), dtype=np.int64)
    strata[order] = np.repeat(np.arange(len(plan.design.sizes)), plan.design.sizes)
    codes = segments.unlabeled[ranking.rows]
    present, places = np.unique(codes, return_inverse=True)
    sizes = np.zeros((len(present), len(plan.design.sizes)), dtype=np.int64)
    np.add.at(sizes, (places, strata), 1)
    of_rows = np.searchsorted(present, segments.unlabeled[list(plan.rows)])
    return replace(
        plan,
        segment_sizes=[
            (segments.names[code], tuple(map(int, part)))
            for code, part in zip(present, sizes, strict=True)
        ],
        row_segments=tuple(map(int, of_rows)),
    )


def rows_as_given(unlabeled: Sample, rows: Ints) -> Any:
    """Return unlabeled rows with all their columns, in the order of ``rows``."""
    source = unlabeled.source
    reader = replace(
        unlabeled.reader, columns=source.columns, n_features=source.n_features, key=None
    )
    numbers, places = np.unique(rows, return_inverse=True)
    table = replace(unlabeled, reader=reader).gather(numbers, raw=True)
    return take_rows(table, places)


def check_sheet_columns(columns: Sequence[str], label: str, key_column: str = ROW) -> None:
    """Raise if a file already has a column that a sheet adds to its rows."""
    added = [CHECKED, NOTE, *([ROW] if key_column == ROW else [])]
    if present := [name for name in added if name in columns]:
        message = f"{label} already has a column {listed(present)}, which would be added to the "
        raise OptionError(f"{message}sheet. Rename it.", "ids" if ROW in present else None)


def sheet_of(
    plan: ReviewPlan,
    unlabeled: FileSource,
    key_column: str = ROW,
    before: ReviewPlan | None = None,
) -> tuple[ReviewPlan, pa.Table]:
    """Return a plan with the keys of its rows, and the rows of its sheet as they are in the file.

    The keys are the values of a column, or the numbers of the rows in the file, from 1. If the plan
    adds rows to the one ``before``, its sheet has only these.
    """
    old = () if before is None else before.keys
    column = key_column if before is None else before.key_column
    numbers = np.array(plan.rows[len(old) :], dtype=np.int64)
    if unlabeled.mask is not None:
        numbers = np.flatnonzero(unlabeled.mask)[numbers]
    table = _rows_as_written(unlabeled, numbers)
    if column == ROW:
        keys = [str(number + 1) for number in numbers]
    else:
        keys = [text or "" for text in as_texts(table[column].combine_chunks()).to_pylist()]
    everything = (*old, *keys)
    if len(set(everything)) < len(everything) or "" in everything:
        raise OptionError(
            f"The column {column!r} does not identify the rows: a value is missing or occurs twice "
            "among those drawn. Choose another column, or number the rows.",
            "ids",
        )
    return replace(plan, keys=everything, key_column=column), table


def _rows_as_written(source: FileSource, wanted: Ints) -> pa.Table:
    """Return rows with all their columns as in the file, by their numbers in it, in this order."""
    import pyarrow as pa

    numbers, places = np.unique(wanted, return_inverse=True)
    tables, start = [], 0
    for table in source.opened.as_written():
        low, high = np.searchsorted(numbers, [start, start + table.num_rows])
        if low < high:
            tables.append(table.take(pa.array(numbers[low:high] - start)))
        start += table.num_rows
    return pa.concat_tables(tables).take(pa.array(places))


def digest_of(unlabeled: Sample, rows: Ints) -> str:
    """Return a digest of the texts of some rows, whatever kind of table they come from."""
    table = rows_as_given(unlabeled, rows)
    if column_names(table) is None:
        numbers = table.toarray() if hasattr(table, "toarray") else np.asarray(table, dtype=float)
        content = [[f"{value:.8g}" for value in row] for row in numbers]
    else:
        frame = as_pandas(table)
        content = [list(frame.columns), *(_texts(frame[name]) for name in frame.columns)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]


def _texts(column: Any) -> list[str]:
    """Return the values of a column of a data frame as text; missing values are empty."""
    pairs = zip(column, column.isna(), strict=True)
    return ["" if is_missing else value_text(value) for value, is_missing in pairs]


def evaluated(
    checked: Any,
    samples: Samples,
    unlabeled: Sample,
    ranking: Ranking,
    confidence: float,
    *,
    plan: Any = None,
    random_sample: bool = False,
    numbers: Any = None,
) -> CheckedEstimate:
    """Read the answers in sheets, check that they belong to these rows, and evaluate them."""
    notes: list[str] = []
    if isinstance(checked, tuple) and checked and isinstance(checked[0], ReviewPlan):
        found_plan, answers = checked
    elif random_sample:
        found_plan, answers = plan_of_random_sample(
            checked,
            ranking.scores,
            ranking.probabilities,
            rows=ranking.rows,
            numbers=numbers,
            known_scores=ranking.known_scores,
            confidence=confidence,
        )
        found_plan = with_segments(found_plan, samples, ranking)
    else:
        found_plan, answers, notes = read_sheets(checked, plan)
    _check_rows(found_plan, unlabeled, len(ranking.rows))
    if found_plan.confidence != confidence:
        notes.append(
            f"The plan was made for a confidence of {found_plan.confidence:g}, which its limits "
            "have."
        )
    return evaluate_review(
        found_plan, answers, groups=samples.units.groups is not None, notes=notes
    )


def _check_rows(plan: ReviewPlan, unlabeled: Sample, n_rows: int) -> None:
    """Raise if a plan was made for other rows."""
    if plan.n_rows != n_rows:
        raise ValueError(
            f"The plan was made for {plan.n_rows:,} unlabeled rows, but there are {n_rows:,}. Use "
            "the data of the plan."
        )
    if plan.digest and plan.digest != digest_of(unlabeled, np.array(plan.rows)):
        raise ValueError(
            "The rows of the plan have changed since it was made: other values, columns or another "
            "order of rows. Use the data of the plan."
        )
