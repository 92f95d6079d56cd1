"""The commands ``classprior classify`` and ``classprior predict``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from classprior._files.finding import SHEET
from classprior._files.writing import check_outputs
from classprior._headline import PROBABILITIES
from classprior._scored import STDOUT, ScoredRows, check_rows, write_rows
from classprior.cli._estimate import PAGE, estimated, write_report
from classprior.cli._options import (
    check_files,
    checked_options,
    checkpoint_option,
    estimation_options,
    force_option,
    new_file,
    output_options,
    reading_options,
    report_options,
    sample_options,
)
from classprior.cli._output import add, estimate_text, progress_wanted, say, show, working, wrapped
from classprior.cli._program import require
from classprior.cli._samples import open_file

if TYPE_CHECKING:
    from classprior.result import PriorEstimate
    from classprior.saving import SavedModel

_out_option = new_file(
    "--out",
    purpose="Output file for the scored rows (.csv, .parquet, .feather, .xlsx); - for standard "
    "output.",
    required=True,
)
_sort_option = click.option(
    "--sort", is_flag=True, help="Write the likeliest positives first; needs memory for all rows."
)


@click.command(
    short_help="Find out which unlabeled rows are positive.",
    epilog="""\b
Examples:
  classprior classify frauds.csv transactions.csv --out scored.csv
  classprior classify frauds.csv transactions.csv --out scored.xlsx --sort --reasons 3
  classprior classify frauds.csv transactions.csv --out scored.csv --save-model frauds.model
""",
)
@sample_options
@estimation_options
@checkpoint_option
@checked_options
@_out_option
@_sort_option
@click.option(
    "--reasons",
    "n_reasons",
    type=click.IntRange(0, 20),
    default=0,
    metavar="N",
    help="Add columns reason_1 to reason_N: what speaks most for a row being positive. Only for "
    "the rows that rank first, as many as are estimated to be positive, at most 10,000.",
)
@new_file("--save-model", "model_path", purpose="Save the model for use with classprior predict.")
@report_options
@output_options
def classify(
    out: Path,
    sort: bool,
    n_reasons: int,
    model_path: Path | None,
    report: Path | None,
    title: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Estimate, for each unlabeled row, the probability of being positive.

    The unlabeled rows are written to --out in their original order (or with --sort in that of
    their ranks), with all their columns and four new ones: probability; positive, which is true if
    the probability is at least one half; score, which grows with the probability and is 0 at one
    half; and rank, which is 1 for the likeliest positive. With --label, the known positives and the
    confirmed negatives (--negative) are not written. With --checked, the probabilities are
    corrected with the checked rows.
    """
    out = _as_stdout(out)
    _refuse_other_formats(out)
    outputs = (None if out == STDOUT else out, model_path, report)
    check_files(*outputs, force=force, options=options)
    require(*(PAGE if report else ()))
    check = partial(check_rows, out, n_reasons=n_reasons)
    two, estimation = estimated(check=check, **options)
    found, text = estimation.estimate, estimate_text(estimation.estimate, two)
    with working("Classifying", options["quiet"]):  # nothing is printed if it fails
        scored = ScoredRows.of(estimation.model[-1], estimation.scores())
    if n_reasons:
        scored = scored.with_reasons(estimation, n_reasons)
    if out == STDOUT:
        say(text)
    else:
        show(text, "classprior")
    write_rows(out, two.unlabeled, scored, sort=sort)
    _tell(out, scored.summary(out))
    if remark := _about_probabilities(found):
        _tell(out, remark)
    if model_path:
        estimation.save_model(model_path)
        _tell(out, f"The model is in {model_path}")
    if report:
        write_report(report, estimation, two, options, title)
        _tell(out, f"The report is in {report}")


@click.command(
    short_help="Score new rows with a saved model.",
    epilog="""\b
Examples:
  classprior predict frauds.model tomorrow.csv --out scored-tomorrow.csv
""",
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("data")
@_out_option
@_sort_option
@reading_options
@force_option
@output_options
def predict(
    model: Path,
    data: str,
    out: Path,
    sort: bool,
    force: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Score the rows of DATA with a MODEL saved by classprior classify.

    As with classify, the rows are written to --out with four new columns. DATA must have the
    columns that the model uses, in any order. The model assumes that the share of positives is the
    same as in the unlabeled rows to which it was fitted.
    """
    out = _as_stdout(out)
    _refuse_other_formats(out)
    check_outputs(
        None if out == STDOUT else out,
        force=force,
        inputs=[data, model],
        file_format=reading["file_format"],
    )

    import numpy as np

    from classprior.engines import fitted_kinds, scores_of
    from classprior.saving import load_model

    saved = load_model(model)
    rows = open_file(data, "the new rows", kinds=fitted_kinds(saved.model), **reading)
    check_rows(out, rows)
    parts = list(scores_of(saved.model, rows, verbose=progress_wanted(quiet)))
    scored = ScoredRows.of(saved.model[-1], np.concatenate(parts))
    write_rows(out, rows, scored, sort=sort)
    _tell(out, scored.summary(out))
    _tell_warnings(out, saved)


def _about_probabilities(found: PriorEstimate) -> str:
    """Return what is to be known about the probabilities."""
    if found.checked is not None and found.checked.can_recalibrate:
        return f"The probabilities are corrected with {found.checked.n_checked:,} checked rows."
    remark = PROBABILITIES.get(found.meaning, "")
    if found.checked is not None:
        remark = (
            "There are too few checked rows to correct the probabilities: at least 10 positives "
            f"and 10 negatives are needed. {remark}"
        )
    return f"Warning: {remark}".strip() if remark else ""


def _as_stdout(out: Path) -> Path:
    """Return "-" for other names of standard output, which has no folder for temporary files."""
    return STDOUT if str(out) in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1") else out


def _refuse_other_formats(out: Path) -> None:
    from classprior._files.finding import OUTPUTS, format_of

    if out.suffix and (file_format := format_of(out, OUTPUTS)) is None:
        raise click.UsageError(
            f"Unknown format of --out {out.name!r}. Use one of the suffixes {', '.join(OUTPUTS)}, "
            "or none to keep the format of the input."
        )
    if out.suffix and file_format == SHEET:
        require("xlsxwriter")


def _tell_warnings(out: Path, saved: SavedModel) -> None:
    """Repeat the warnings of the estimate that the model is based on."""
    if saved.answer:
        _tell(out, f"The rows that the model was fitted to: {saved.answer}")
    remark = PROBABILITIES.get(saved.meaning)
    for text in [*saved.warnings, *([remark] if remark else [])]:
        _tell(out, f"Warning about the model: {text}")


def _tell(out: Path, text: str) -> None:
    """Print a paragraph, on standard error if the rows go to standard output."""
    (say if out == STDOUT else add)(wrapped(text))
