"""The command ``classprior review``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
    from classprior._samples.inputs import FileSource


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
    help="Number of rows to look at (default: 100); with --plan, number of rows to add (default: "
    "the next addition of the plan).",
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
    "--recall",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Share of the positives for which the checked rows will tell how many rows must be read.",
)
@click.option(
    "--addition",
    "additions",
    type=click.IntRange(1),
    multiple=True,
    metavar="N",
    help="Number of rows that may be added later; can be given several times. It is settled now, "
    "because limits do not hold if it depends on results. By default, each addition doubles the "
    "number of rows.",
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
    budget: int | None,
    reserve: float,
    additions: tuple[int, ...],
    recall: float,
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
    the sheet, and add rows later, also after looking at the results; how many is settled with the
    plan.
    """
    from classprior._reviewing import check_sheet_columns, sheet_of
    from classprior.review import check_sheet_path, load_plan, plan_path, write_sheet
    from classprior.review._sheet import ROW

    check_sheet_path(out)
    if plan_file is not None and plan_file.resolve() == plan_path(out).resolve():
        raise click.UsageError(
            f"--plan {plan_file} belongs to {out}. Choose another --out for the rows to add."
        )
    check_files(out, plan_path(out), force=force, options=options)
    if out.suffix.lower() == ".xlsx":
        require("xlsxwriter")
    before = None if plan_file is None else load_plan(plan_file)
    key_column = options["ids"][0].split(",")[0].strip() if options["ids"] else ROW

    def check(rows: FileSource) -> None:
        check_sheet_columns(rows.columns or (), rows.opened.files.label, key_column)

    two, estimation = estimated(check=check, **options)
    with working("Planning", options["quiet"]):
        plan = estimation.plan_review(
            budget, reserve=reserve, additions=additions or None, recall=recall, plan=before
        )
        forecast = plan.forecast()
    n_before = 0 if before is None else len(before.rows)
    plan, table = sheet_of(plan, two.unlabeled, key_column, before)
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
                "may_add": list(plan.may_add),
                "expected_widths": {str(n): width for n, width in forecast.widths.items()},
                "largest_widths": {str(n): w for n, w in forecast.largest_widths.items()},
                "rows_for_width_05": forecast.n_rows,
                "width_relative_to_plain": forecast.gain,
            }
        )
        return
    found = estimation.estimate
    may_add = f"Numbers of rows that may be added later, with --plan: {plan.may_add_text}."
    show(wrapped(f"{plan.drawn_text(n_before)}\n\n{forecast.to_text()}\n\n{may_add}"), "classprior")
    add(wrapped(f"Without checked rows: {found.answer_unchecked}"))
    add(
        wrapped(
            f"The sheet is in {out}, its plan in {plan_path(out)}. Fill in the column checked with "
            "yes, no or unsure, in the order of the rows, and use classprior estimate --checked "
            f"{out}" + (", with another --checked for each earlier sheet" if before else "")
        )
    )
