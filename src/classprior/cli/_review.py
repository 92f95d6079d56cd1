"""The command ``classprior review``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from classprior._core.messages import listed
from classprior.cli._estimate import estimated
from classprior.cli._options import (
    check_files,
    estimation_options,
    force_option,
    json_option,
    new_file,
    output_options,
    sample_options,
    score_option,
    segment_options,
)
from classprior.cli._output import add, as_json, show, working, wrapped
from classprior.cli._program import require

if TYPE_CHECKING:
    import pyarrow as pa

    from classprior._core.types import Ints
    from classprior._samples.inputs import FileSource
    from classprior.cli._samples import TwoSamples
    from classprior.review import ReviewPlan

_ROW = "row"  # column of the sheet with the number of the row in its file


@click.command(
    short_help="Draw the rows that a person should look at.",
    epilog="""\b
Examples:
  classprior review frauds.csv transactions.csv --budget 100 --out review.csv
  classprior review frauds.csv transactions.csv --id payment_id --out review.xlsx
  classprior estimate frauds.csv transactions.csv --checked review.csv
  classprior review frauds.csv transactions.csv --plan review.plan.json --budget 300 --out more.csv
""",
)
@sample_options
@score_option
@segment_options
@estimation_options
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Number of rows to look at; with --plan, number of rows to add.",
)
@click.option(
    "--reserve",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Share of the error probability kept for stopping halfway and for rows that are added "
    "later. Use 0.5 if you intend to add rows.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Plan to which rows are added. Use the same data, options and seed as for the plan.",
)
@new_file(
    "--out",
    purpose="Output file for the sheet to fill in (.csv, .parquet, .feather, .xlsx). Its plan is "
    "written beside it: review.plan.json for review.csv.",
    required=True,
)
@json_option
@force_option
@output_options
def review(
    budget: int,
    reserve: float,
    plan_file: Path | None,
    out: Path,
    wants_json: bool,
    force: bool,
    **options: Any,
) -> None:
    """Draw the unlabeled rows that a person should look at.

    Write yes, no or unsure in the column checked of the sheet, from the first row on, and pass it
    to classprior estimate --checked. The limits are exact: they assume neither that the known
    positives are typical, nor that the estimate is right. You may stop at any row, in the order of
    the sheet, and add rows later, also after looking at the results.
    """
    from classprior.review import check_sheet_path, load_plan, plan_path, write_sheet

    check_sheet_path(out)
    if plan_file is not None and plan_file.resolve() == plan_path(out).resolve():
        raise click.UsageError(
            f"--plan {plan_file} belongs to {out}. Choose another --out for the rows to add."
        )
    check_files(out, plan_path(out), force=force, options=options)
    if out.suffix.lower() == ".xlsx":
        require("xlsxwriter")
    before = None if plan_file is None else load_plan(plan_file)
    two, estimation = estimated(check=partial(_check_columns, ids=options["ids"]), **options)
    with working("Planning", options["quiet"]):
        plan = estimation.plan_review(budget, reserve=reserve, plan=before)
        forecast = plan.forecast()
    n_before = 0 if before is None else len(before.rows)
    table = _rows_as_written(two, plan.rows[n_before:])
    plan = _with_keys(plan, before, two, table, options["ids"])
    write_sheet(out, plan, table)
    if wants_json:
        as_json(
            {
                "sheet": str(out),
                "plan": str(plan_path(out)),
                "n_rows": len(plan.rows) - n_before,
                "strata": [
                    {"size": size, "drawn": n}
                    for size, n in zip(plan.design.sizes, plan.design.drawn, strict=True)
                ],
                "expected_widths": {str(n): width for n, width in forecast.widths.items()},
                "rows_for_width_05": forecast.n_rows,
                "width_relative_to_plain": forecast.gain,
            }
        )
        return
    found = estimation.estimate
    show(wrapped(f"{_drawn_text(plan, n_before)}\n\n{forecast.to_text()}"), "classprior")
    add(wrapped(f"Without checked rows: {found.answer_unchecked}"))
    add(
        wrapped(
            f"The sheet is in {out}, its plan in {plan_path(out)}. Fill in the column checked with "
            "yes, no or unsure, in the order of the rows, and use classprior estimate --checked "
            f"{out}" + (", with another --checked for each earlier sheet" if before else "")
        )
    )


def _drawn_text(plan: ReviewPlan, n_before: int) -> str:
    """Return how many rows were drawn from where."""
    n = len(plan.rows) - n_before
    more = "more " if n_before else ""
    if len(plan.design.sizes) == 1:
        return f"Drew {n:,} {more}of the {plan.n_rows:,} unlabeled rows at random, without strata."
    (high, low), (n_high, n_low) = plan.design.sizes, plan.design.drawn
    return (
        f"Drew {n:,} {more}of the {plan.n_rows:,} unlabeled rows at random: in all, {n_high:,} of "
        f"the {high:,} rows that score highest, and {n_low:,} of the {low:,} others."
    )


def _check_columns(rows: FileSource, ids: Sequence[str]) -> None:
    """Check that no column of the sheet exists already."""
    added = ["checked", "note", *([] if ids else [_ROW])]
    if present := [name for name in added if name in (rows.columns or ())]:
        raise ValueError(
            f"{rows.opened.files.label} already has a column {listed(present)}, which would be "
            "added to the sheet. Rename it"
            + (", or use --id to name the column that identifies rows." if _ROW in present else ".")
        )


def _rows_as_written(two: TwoSamples, rows: Sequence[int]) -> pa.Table:
    """Return unlabeled rows with all their columns as in the file, in the given order."""
    import numpy as np
    import pyarrow as pa

    wanted = _numbers(two, np.array(rows, dtype=np.int64))
    numbers, places = np.unique(wanted, return_inverse=True)
    tables, start = [], 0
    for table in two.unlabeled.opened.as_written():
        low, high = np.searchsorted(numbers, [start, start + table.num_rows])
        if low < high:
            tables.append(table.take(pa.array(numbers[low:high] - start)))
        start += table.num_rows
    return pa.concat_tables(tables).take(pa.array(places))


def _numbers(two: TwoSamples, rows: Ints) -> Ints:
    """Return the numbers, from 0, that unlabeled rows have in their file."""
    import numpy as np

    return rows if two.is_unlabeled is None else np.flatnonzero(two.is_unlabeled)[rows]


def _with_keys(
    plan: ReviewPlan,
    before: ReviewPlan | None,
    two: TwoSamples,
    table: pa.Table,
    ids: Sequence[str],
) -> ReviewPlan:
    """Identify the rows by the first --id column, or by their number in the file, from 1."""
    import numpy as np

    from classprior._files.texts import as_texts

    first = ids[0].split(",")[0].strip() if ids else _ROW
    column = first if before is None else before.key_column
    old = () if before is None else before.keys
    if column == _ROW:
        rows = np.array(plan.rows[len(old) :], dtype=np.int64)
        keys = [str(number + 1) for number in _numbers(two, rows)]
    else:
        chunks = table[column].combine_chunks()
        keys = [text or "" for text in as_texts(chunks).to_pylist()]
    everything = (*old, *keys)
    if len(set(everything)) < len(everything) or "" in everything:
        raise ValueError(
            f"The column {column!r} does not identify the rows: a value is missing or occurs twice "
            "among those drawn. Leave out --id to number the rows."
        )
    return replace(plan, keys=everything, key_column=column)
