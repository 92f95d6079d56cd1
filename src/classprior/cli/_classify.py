"""The commands ``classprior classify`` and ``classprior predict``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from classprior._core.messages import listed
from classprior._files.writing import check_outputs, check_texts, dialect_for, table_writer
from classprior.cli._estimate import PAGE, estimated, write_report
from classprior.cli._options import (
    check_files,
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
    import pyarrow as pa

    from classprior._core.types import Bools, Doubles
    from classprior._samples.inputs import FileSource
    from classprior.saving import SavedModel

_TOO_HIGH = "is only an upper bound, so the probabilities are too high. Use them to rank the rows."
_ADDED = ("probability", "positive")
_POSITIVE = 0.5  # probability from which a row is more likely positive than not
_STDOUT = Path("-")
_CSV = "csv"
_out_option = new_file(
    "--out", purpose="Output file for the scored rows; - for standard output.", required=True
)


@click.command(
    short_help="Find out which unlabeled rows are positive.",
    epilog="""\b
Examples:
  classprior classify frauds.csv transactions.csv --out scored.csv
  classprior classify frauds.csv transactions.csv --out scored.csv --save-model frauds.model
""",
)
@sample_options
@estimation_options
@checkpoint_option
@_out_option
@new_file("--save-model", "model_path", purpose="Save the model for use with classprior predict.")
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
    """Estimate, for each unlabeled row, the probability of being positive.

    The unlabeled rows are written to --out in their original order, with all their columns and two
    new ones: probability, and positive, which is true if the probability is at least one half.
    With --label, the known positives and the confirmed negatives (--negative) are not written.
    """
    _refuse_other_formats(out)
    outputs = (None if out == _STDOUT else out, model_path, report)
    check_files(*outputs, force=force, options=options)
    require(*(PAGE if report else ()))
    two, estimation = estimated(check=partial(_check_rows, out), **options)
    found, text = estimation.estimate, estimate_text(estimation.estimate, two)
    with working("Classifying", options["quiet"]):
        estimation.model  # noqa: B018 - fitted here, so that nothing is printed if it fails
    if out == _STDOUT:
        say(text)
    else:
        show(text, "classprior")
    probabilities = iter([estimation.probabilities()])
    _tell_rows(out, *_write_rows(out, two.unlabeled, two.is_unlabeled, probabilities))
    if found.is_upper_bound:
        _tell(out, f"Warning: the estimate {_TOO_HIGH}")
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
@reading_options
@force_option
@output_options
def predict(
    model: Path,
    data: str,
    out: Path,
    force: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Score the rows of DATA with a MODEL saved by classprior classify.

    As with classify, the rows are written to --out with two new columns. DATA must have the columns
    that the model uses, in any order. The model assumes that the share of positives is the same as
    in the unlabeled rows to which it was fitted.
    """
    _refuse_other_formats(out)
    check_outputs(
        None if out == _STDOUT else out,
        force=force,
        inputs=[data, model],
        file_format=reading["file_format"],
    )
    rows = open_file(data, "the rows", **reading)
    _check_rows(out, rows)

    from classprior.engines import probabilities_of
    from classprior.saving import load_model

    saved = load_model(model)
    parts = probabilities_of(saved.model, rows, verbose=progress_wanted(quiet))
    _tell_rows(out, *_write_rows(out, rows, None, parts))
    _tell_warnings(out, saved)


def _refuse_other_formats(out: Path) -> None:
    from classprior._files.finding import SUFFIXES, WRITTEN, format_of

    if out.suffix and format_of(out) not in WRITTEN:
        known = [suffix for suffix, kind in SUFFIXES.items() if kind in WRITTEN]
        raise click.UsageError(
            f"Unknown format of --out {out.name!r}. Use one of the suffixes {', '.join(known)}, or "
            "none to keep the format of the input."
        )


def _check_rows(out: Path, rows: FileSource) -> None:
    """Check, before the work, that the rows can be written with the new columns."""
    if present := [name for name in _ADDED if name in (rows.columns or ())]:
        raise ValueError(
            f"{rows.opened.files.label} already has a column {listed(present)}, which would be "
            "added to the output. Rename it."
        )
    if (
        rows.opened.dialect is None and _format(out, rows) == _CSV
    ):  # what CSV files hold, they can hold
        for block in rows:
            n_rows = 0
            for table in block.tables():
                check_texts(table, block.where, n_before=n_rows)
                n_rows += table.num_rows


def _format(out: Path, rows: FileSource) -> str:
    from classprior._files.finding import WRITTEN, format_of

    if out == _STDOUT:
        return _CSV
    return format_of(out) or (
        rows.opened.files.format if rows.opened.files.format in WRITTEN else _CSV
    )


def _write_rows(
    out: Path, rows: FileSource, is_written: Bools | None, parts: Iterator[Doubles]
) -> tuple[int, int]:
    """Write the rows as they were read, with the new columns; return how many are positive."""
    file_format = _format(out, rows)
    dialect = dialect_for(out, rows.opened.dialect)
    n_rows = n_positive = 0
    with table_writer(None if out == _STDOUT else out, file_format, dialect, sys.stdout) as write:
        for table, probabilities in _paired(rows, is_written, parts, as_text=file_format == _CSV):
            write(_with_probabilities(table, probabilities))
            n_rows += len(probabilities)
            n_positive += int((probabilities >= _POSITIVE).sum())
    return n_positive, n_rows


def _paired(
    rows: FileSource, is_written: Bools | None, parts: Iterator[Doubles], *, as_text: bool
) -> Iterator[tuple[pa.Table, Doubles]]:
    """Yield the rows as they were read, with their probabilities, which come in other blocks."""
    import numpy as np
    import pyarrow as pa

    read, ahead = 0, np.empty(0)
    for table in rows.opened.as_written(as_text=as_text):
        if is_written is not None:
            mask = is_written[read : read + table.num_rows]
            read += table.num_rows
            table = table.filter(pa.array(mask))
        while len(ahead) < table.num_rows:
            ahead = np.concatenate([ahead, next(parts)])
        probabilities, ahead = np.split(ahead, [table.num_rows])
        yield table, probabilities


def _with_probabilities(table: pa.Table, probabilities: Doubles) -> pa.Table:
    import pyarrow as pa

    table = table.append_column("probability", pa.array(probabilities.round(6)))
    return table.append_column("positive", pa.array(probabilities >= _POSITIVE))


def _tell_rows(out: Path, n_positive: int, n_rows: int) -> None:
    where = "" if out == _STDOUT else f" The scored rows are in {out}"
    text = f"{n_positive:,} of {n_rows:,} rows are more likely positive than not.{where}"
    _tell(out, text)


def _tell_warnings(out: Path, saved: SavedModel) -> None:
    """Repeat the warnings of the estimate that the model is based on."""
    texts = [*saved.warnings]
    if saved.is_upper_bound:
        texts.append(f"its share of positives {_TOO_HIGH}")
    for text in texts:
        _tell(out, f"Warning about the model: {text}")


def _tell(out: Path, text: str) -> None:
    """Print a paragraph, on standard error if the rows go to standard output."""
    (say if out == _STDOUT else add)(wrapped(text))
