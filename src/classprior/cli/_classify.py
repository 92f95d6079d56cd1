"""The commands ``classprior classify`` and ``classprior predict``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from classprior._core.messages import listed
from classprior._files.workbook import check_size
from classprior._files.writing import check_outputs, check_texts, dialect_for, table_writer
from classprior._headline import PROBABILITIES
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
    import pyarrow as pa

    from classprior._core.types import Bools, Doubles, Ints
    from classprior._samples.inputs import FileSource
    from classprior.classifier import PUClassifier
    from classprior.estimate import Estimation
    from classprior.result import PriorEstimate
    from classprior.saving import SavedModel

_ADDED = ("probability", "positive", "score", "rank")
_SLIGHT = 0.02  # a difference that needs no explanation
_MOST_EXPLAINED = 10_000  # rows with reasons; more would take minutes
_STDOUT = Path("-")
_CSV, _SHEET = "csv", "sheet"
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
    outputs = (None if out == _STDOUT else out, model_path, report)
    check_files(*outputs, force=force, options=options)
    require(*(PAGE if report else ()))
    added = (*_ADDED, *_reason_names(n_reasons))
    two, estimation = estimated(check=partial(_check_rows, out, added=added), **options)
    found, text = estimation.estimate, estimate_text(estimation.estimate, two)
    with working("Classifying", options["quiet"]):  # nothing is printed if it fails
        scored = _Scored.of(estimation.model[-1], estimation.scores())
    if n_reasons:
        scored = replace(scored, reasons=_reasons(estimation, scored, n_reasons))
    if out == _STDOUT:
        say(text)
    else:
        show(text, "classprior")
    _write_rows(out, two.unlabeled, two.is_unlabeled, scored, sort=sort)
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
        None if out == _STDOUT else out,
        force=force,
        inputs=[data, model],
        file_format=reading["file_format"],
    )

    import numpy as np

    from classprior.engines import fitted_kinds, scores_of
    from classprior.saving import load_model

    saved = load_model(model)
    rows = open_file(data, "the new rows", kinds=fitted_kinds(saved.model), **reading)
    _check_rows(out, rows)
    parts = list(scores_of(saved.model, rows, verbose=progress_wanted(quiet)))
    scored = _Scored.of(saved.model[-1], np.concatenate(parts))
    _write_rows(out, rows, None, scored, sort=sort)
    _tell(out, scored.summary(out))
    _tell_warnings(out, saved)


@dataclass(frozen=True, eq=False)
class _Scored:
    """The scores of all rows, and what follows from them."""

    scores: Doubles
    probabilities: Doubles
    ranks: Ints
    reasons: Mapping[str, Any] = field(default_factory=dict)  # texts of all rows by new column

    @classmethod
    def of(cls, classifier: PUClassifier, scores: Doubles) -> _Scored:
        from classprior.engines import ranks_of

        return cls(scores, classifier.probability(scores), ranks_of(scores))

    def columns(self, start: int, n_rows: int) -> dict[str, Any]:
        """Return the new columns of some rows."""
        import numpy as np

        rows = slice(start, start + n_rows)
        p, scores = self.probabilities[rows], self.scores[rows]
        # More digits for small probabilities, so that none is rounded to 0.
        probability = np.where(p < 0.001, p.round(9), p.round(6))
        values = (probability, scores >= 0.0, scores.round(6), self.ranks[rows])
        added = dict(zip(_ADDED, values, strict=True))
        return added | {name: texts[rows] for name, texts in self.reasons.items()}

    @property
    def n_likely(self) -> int:
        """Number of rows that are more likely positive than not."""
        return int((self.scores >= 0.0).sum())

    @property
    def n_expected(self) -> int:
        """Number of rows that are estimated to be positive."""
        return round(self.probabilities.sum())

    @property
    def n_explained(self) -> int:
        """Number of rows with reasons."""
        return min(max(self.n_likely, self.n_expected), _MOST_EXPLAINED)

    def summary(self, out: Path) -> str:
        """Return how many rows are likely positive, and why these are not as many as estimated."""
        n_likely, expected = self.n_likely, self.n_expected
        text = f"{n_likely:,} of {len(self.scores):,} rows are more likely positive than not"
        if n_likely < (1.0 - _SLIGHT) * expected:
            text += (
                f", and all probabilities add up to {expected:,} positives: the others are spread "
                "over rows with lower probabilities"
            )
        elif n_likely > (1.0 + _SLIGHT) * expected:
            text += (
                f", but all probabilities add up to only {expected:,} positives: some rows with "
                "high probabilities are negative"
            )
        if self.reasons:
            text += f". The {self.n_explained:,} rows that rank first have reasons"
        return f"{text}." + ("" if out == _STDOUT else f" The scored rows are in {out}")


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


def _reason_names(n_reasons: int) -> list[str]:
    return [f"reason_{number}" for number in range(1, n_reasons + 1)]


def _reasons(estimation: Estimation, scored: _Scored, n_reasons: int) -> dict[str, Any]:
    """Return the reasons for the rows that rank first, in columns for all rows."""
    import numpy as np

    rows = np.flatnonzero(scored.ranks <= scored.n_explained)
    texts = np.full((n_reasons, len(scored.ranks)), None, dtype=object)
    for row, reasons in zip(rows, estimation.reasons(rows, n_reasons), strict=True):
        texts[: len(reasons), row] = [reason.text for reason in reasons]
    return dict(zip(_reason_names(n_reasons), texts, strict=True))


def _as_stdout(out: Path) -> Path:
    """Return "-" for other names of standard output, which has no folder for temporary files."""
    return _STDOUT if str(out) in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1") else out


def _refuse_other_formats(out: Path) -> None:
    from classprior._files.finding import OUTPUTS, format_of

    if out.suffix and (file_format := format_of(out, OUTPUTS)) is None:
        raise click.UsageError(
            f"Unknown format of --out {out.name!r}. Use one of the suffixes {', '.join(OUTPUTS)}, "
            "or none to keep the format of the input."
        )
    if out.suffix and file_format == _SHEET:
        require("xlsxwriter")


def _check_rows(out: Path, rows: FileSource, added: Sequence[str] = _ADDED) -> None:
    """Check, before the work, that the rows can be written with the new columns."""
    if present := [name for name in added if name in (rows.columns or ())]:
        raise ValueError(
            f"{rows.opened.files.label} already has a column {listed(present)}, which would be "
            "added to the output. Rename it."
        )
    file_format = _format(out, rows)
    if file_format == _SHEET:
        check_size(rows.n_rows, len(rows.columns or ()) + len(added), out.name)
    if rows.opened.dialect is None and file_format == _CSV:  # what CSV files hold, they can hold
        for block in rows:
            n_rows = 0
            for table in block.tables():
                check_texts(table, block.where, n_before=n_rows)
                n_rows += table.num_rows


def _format(out: Path, rows: FileSource) -> str:
    from classprior._files.finding import OUTPUTS, WRITTEN, format_of

    if out == _STDOUT:
        return _CSV
    return format_of(out, OUTPUTS) or (
        rows.opened.files.format if rows.opened.files.format in WRITTEN else _CSV
    )


def _write_rows(
    out: Path, rows: FileSource, is_written: Bools | None, scored: _Scored, *, sort: bool
) -> None:
    """Write the rows as they were read, with the new columns; by rank, or in their order."""
    import numpy as np
    import pyarrow as pa

    file_format = _format(out, rows)
    dialect = dialect_for(out, rows.opened.dialect)
    tables = _with_scores(rows, is_written, scored, as_text=file_format == _CSV)
    if sort:
        tables = iter([pa.concat_tables(tables).take(pa.array(np.argsort(scored.ranks)))])
    with table_writer(None if out == _STDOUT else out, file_format, dialect, sys.stdout) as write:
        for table in tables:
            write(table)


def _with_scores(
    rows: FileSource, is_written: Bools | None, scored: _Scored, *, as_text: bool
) -> Iterator[pa.Table]:
    """Yield the rows as they were read, with the new columns."""
    import pyarrow as pa

    read = start = 0
    for table in rows.opened.as_written(as_text=as_text):
        if is_written is not None:
            mask = is_written[read : read + table.num_rows]
            read += table.num_rows
            table = table.filter(pa.array(mask))
        for name, values in scored.columns(start, table.num_rows).items():
            kind = pa.string() if values.dtype == object else None  # all may be missing
            table = table.append_column(name, pa.array(values, kind))
        start += table.num_rows
        yield table


def _tell_warnings(out: Path, saved: SavedModel) -> None:
    """Repeat the warnings of the estimate that the model is based on."""
    if saved.answer:
        _tell(out, f"The rows that the model was fitted to: {saved.answer}")
    remark = PROBABILITIES.get(saved.meaning)
    for text in [*saved.warnings, *([remark] if remark else [])]:
        _tell(out, f"Warning about the model: {text}")


def _tell(out: Path, text: str) -> None:
    """Print a paragraph, on standard error if the rows go to standard output."""
    (say if out == _STDOUT else add)(wrapped(text))
