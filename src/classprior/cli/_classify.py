"""The commands ``classprior classify`` and ``classprior predict``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from classprior._messages import listed
from classprior._writing import check_outputs, dialect_for, write_csv, write_table
from classprior.cli._estimate import PAGE, estimated, write_report
from classprior.cli._options import (
    estimation_options,
    force_option,
    new_file,
    output_options,
    reading_options,
    report_options,
    sample_options,
)
from classprior.cli._output import add, answer_text, say, show, working, wrapped
from classprior.cli._program import require

if TYPE_CHECKING:
    from classprior._basis import Doubles
    from classprior._files import TableFile

_STDOUT = Path("-")
_out_option = new_file(
    "--out", purpose="The rows with two more columns; - for standard output.", required=True
)


@click.command(
    short_help="Which unlabeled rows are positive.",
    epilog="""\b
Examples:
  classprior classify frauds.csv transactions.csv --out scored.csv
  classprior classify frauds.csv transactions.csv --out scored.csv --save-model frauds.skops
""",
)
@sample_options
@estimation_options
@_out_option
@new_file("--save-model", "model_path", purpose="Keep the model for classprior predict.")
@report_options
@output_options
def classify(
    out: Path,
    model_path: Path | None,
    report: Path | None,
    title: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Add to every unlabeled row its probability of being positive.

    The rows are written in their order and with all their columns, and two more: probability, and
    positive, which is true from a probability of one half. With --label, rows that are known
    positives are not among them.
    """
    _refuse_other_formats(out)
    check_outputs(None if out == _STDOUT else out, model_path, report, force=force)
    require(*(PAGE if report else ()), *(("skops",) if model_path else ()))
    samples, answer, encoded = estimated(keep_text=True, **options)
    _refuse_own_columns(samples.source)
    from classprior._models import fit_row_model, save_model

    with working("Classifying", options["quiet"]):
        model, probabilities = fit_row_model(encoded, answer, options["seed"])
    text = answer_text(answer, samples.notes, one_table=samples.one_table)
    if out == _STDOUT:
        say(text)
    else:
        show(text, "classprior")
    _write_rows(out, samples.source, probabilities)
    _tell_rows(out, probabilities)
    if model_path:
        save_model(model_path, model, answer)
    if report:
        write_report(report, answer, samples, options, title)


@click.command(
    short_help="The same for new rows, with a saved model.",
    epilog="""\b
Examples:
  classprior predict frauds.skops tomorrow.csv --out scored-tomorrow.csv
""",
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("data")
@_out_option
@reading_options
@force_option
@output_options
def predict(
    model: Path,
    data: str,
    out: Path,
    file_format: str | None,
    encoding: str | None,
    no_header: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Add to every row of DATA its probability of being positive, by a MODEL of classify.

    DATA needs the columns that the model uses, in any order. The share of positives is taken to be
    that of the rows to which the model was fitted.
    """
    _refuse_other_formats(out)
    check_outputs(None if out == _STDOUT else out, force=force)
    from classprior._files import find_files, read_files
    from classprior._models import load_model

    with working("Classifying", quiet):
        fitted = load_model(model)
        files = find_files(data, file_format)
        rows = read_files(files, encoding=encoding, header=not no_header, keep_text=True)
        _refuse_own_columns(rows)
        probabilities = fitted.predict_proba(rows.table)[:, 1]
        _write_rows(out, rows, probabilities)
    _tell_rows(out, probabilities)


def _refuse_other_formats(out: Path) -> None:
    from classprior._files import SUFFIXES, format_of

    if out.suffix and format_of(out) is None:
        raise click.UsageError(
            f"Expected --out to end in {', '.join(SUFFIXES)} or in nothing, got {out.name!r}."
        )


def _refuse_own_columns(rows: TableFile) -> None:
    present = [n for n in ("probability", "positive") if n in rows.table.column_names]
    if present:
        raise ValueError(
            f"Expected no column called {listed(present)} in {rows.files.label}, because that is "
            "what is added. Rename it in the file."
        )


def _write_rows(out: Path, rows: TableFile, probabilities: Doubles) -> None:
    import pyarrow as pa

    from classprior._files import CSV, format_of

    file_format = CSV if out == _STDOUT else format_of(out) or rows.files.format
    table = rows.as_written if file_format == CSV and rows.as_written else rows.table
    table = table.append_column("probability", pa.array(probabilities.round(6)))
    table = table.append_column("positive", pa.array(probabilities >= 0.5))
    dialect = dialect_for(out)
    if rows.dialect and dialect.delimiter != "\t":
        dialect = rows.dialect
    if out == _STDOUT:
        write_csv(sys.stdout.buffer, table, dialect)
    else:
        write_table(out, table, file_format, dialect)


def _tell_rows(out: Path, probabilities: Doubles) -> None:
    n_positive = int((probabilities >= 0.5).sum())
    where = "" if out == _STDOUT else f" All rows with their probabilities are in {out}"
    text = wrapped(
        f"{n_positive:,} of {len(probabilities):,} rows are more likely positive than not.{where}"
    )
    if out == _STDOUT:
        say(text)
    else:
        add(text)
