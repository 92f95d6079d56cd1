"""The commands ``classprior estimate`` and ``classprior report``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from classprior.cli._options import (
    check_files,
    checked_options,
    checkpoint_option,
    command_line,
    estimation_options,
    force_option,
    json_option,
    new_file,
    output_options,
    report_options,
    sample_options,
    score_option,
    segment_options,
    title_option,
)
from classprior.cli._output import add, as_json, estimate_text, progress_wanted, show, wrapped
from classprior.cli._program import in_options, require
from classprior.cli._samples import open_two_tables
from classprior.priors._methods import METHODS, RECOMMENDED, SCORES

if TYPE_CHECKING:
    from classprior._samples.labeled import TwoTables
    from classprior.estimation import Estimation
    from classprior.result import PriorEstimate

SCHEMA = "classprior.estimate/1"
PAGE = ("jinja2", "matplotlib")  # packages needed to write a report
#: Options without which a run cannot be repeated, apart from the files.
_SETTINGS = (
    *("confidence", "seed", "columns", "drop", "ids", "by", "groups", "weights", "max-weight"),
    "leave-out-known",
    "checked",
    "random-sample",
    *(
        "every",
        "score",
        "centers",
        "encoding",
        "decimal",
        "sheet",
        "segment-positives",
        "file_format",
        "no-header",
    ),
)


@click.command(
    short_help="Estimate the share of positives in unlabeled rows.",
    epilog="""\b
Examples:
  classprior estimate frauds.csv transactions.csv
  classprior estimate patients.parquet --label diagnosis --positive confirmed
  classprior estimate frauds.csv 'all/*.csv' --drop customer,iban --report frauds.html
  classprior estimate frauds.csv transactions.csv --by country
  classprior estimate scored.parquet --label status --positive fraud --score probability
  classprior estimate frauds.csv transactions.csv --checked review.csv
""",
)
@sample_options
@score_option
@segment_options
@estimation_options
@checkpoint_option
@checked_options
@json_option
@report_options
@output_options
def estimate(
    wants_json: bool, report: Path | None, title: str | None, force: bool, **options: Any
) -> PriorEstimate:
    """Estimate what share of the unlabeled rows is positive.

    POSITIVE contains known positives; UNLABELED contains rows that may be positive or negative.
    Each is a file (CSV, TSV, Parquet, Feather, Arrow, JSON lines, or a spreadsheet: .xlsx or .ods;
    CSV and JSON lines may be gzipped), a folder of such files, a quoted pattern such as
    'data/*.csv', or - for standard input. Alternatively, pass a single file, with --label and
    --positive to say which of its rows are known positives.
    """
    check_files(report, force=force, options=options)
    if report:
        require(*PAGE)
    samples, estimation = estimated(**options)
    found = estimation.estimate
    if wants_json:
        as_json(json_values(found))
    else:
        show(estimate_text(found, samples), "classprior")
    if report:
        write_report(report, estimation, samples, options, title)
        if not wants_json:
            add(f"The report is in {report}")
    return found


@click.command(
    short_help="Estimate the share of positives and write an HTML report.",
    epilog="""\b
Examples:
  classprior report frauds.csv transactions.csv --out frauds.html
""",
)
@sample_options
@score_option
@segment_options
@estimation_options
@checkpoint_option
@checked_options
@new_file("--out", purpose="Output file for the HTML report.", required=True)
@title_option
@force_option
@output_options
def report(out: Path, title: str | None, force: bool, **options: Any) -> None:
    """Estimate the share of positives and write an HTML report.

    The arguments are those of classprior estimate. The report is a single HTML file that loads
    nothing from elsewhere and can be sent by email.
    """
    check_files(out, force=force, options=options)
    require(*PAGE)
    samples, estimation = estimated(**options)
    found = estimation.estimate
    said = [
        f"{kind}: {text}" for kind, text in found.remarks if kind.startswith(("Checked", "Warning"))
    ]
    parts = [found.answer, *said]
    show("\n\n".join(map(wrapped, parts)), "classprior")
    write_report(out, estimation, samples, options, title)
    add(f"The report is in {out}")


def write_report(
    path: Path,
    estimation: Estimation,
    samples: TwoTables,
    options: dict[str, Any],
    title: str | None,
) -> None:
    """Write the HTML report, with the date, the command and the settings of the run."""
    from datetime import datetime

    from classprior._files.writing import write_text
    from classprior.report import render_report

    given = {**options, "no-header": "yes" if options["no_header"] else None}
    given["max-weight"] = options.get("max_weight")
    given["random-sample"] = "yes" if options.get("random_sample") else None
    given["leave-out-known"] = "yes" if options.get("leave_out_known") else None
    given["segment-positives"] = options.get("segment_positives") if options.get("by") else None
    used = [name for name in _SETTINGS if given.get(name) is not None and given[name] != ()]
    settings = {
        **samples.settings,
        **{name.removeprefix("file_"): _joined(given[name]) for name in used},
    }
    page = render_report(
        estimation.estimate,
        importances=estimation.importances() if estimation.has_columns else None,
        settings=settings,
        title=title,
        command=command_line(click.get_current_context()),
        date=datetime.now().astimezone().isoformat(sep=" ", timespec="minutes"),
    )
    write_text(path, page)


def _joined(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def estimated(
    *,
    method: str,
    confidence: float,
    seed: int,
    jobs: int,
    centers: int | None,
    quiet: bool,
    checkpoint: Path | None = None,
    score: str | None = None,
    groups: str | None = None,
    weights: str | None = None,
    max_weight: float | tuple[float, float] | None = None,
    leave_out_known: bool = False,
    every: str | None = None,
    segment_positives: str = "all",
    checked: Sequence[Path] = (),
    plan_file: Path | None = None,
    random_sample: bool = False,
    **reading: Any,
) -> tuple[TwoTables, Estimation]:
    """Open the samples and estimate the share."""
    if score is not None:
        if method != RECOMMENDED or reading["columns"]:
            raise click.UsageError(
                "--score uses that column alone. Leave out --method and --columns."
            )
        method, reading["columns"] = SCORES, [score]
    known = METHODS[RECOMMENDED if method == SCORES else method]
    if centers is not None and not known.has_centers:
        raise click.UsageError(f"--centers applies to kernel methods only, not to {method}.")
    if checkpoint is not None and not known.estimator.takes_checkpoint:
        raise click.UsageError(
            f"--checkpoint works with auto, penl1 and pe only, not with {method}."
        )
    _check_segments(reading.get("by", ()), method, every, segment_positives)
    _check_checked(checked, plan_file, random_sample)
    two = open_two_tables(jobs=jobs, **reading)
    options: dict[str, Any] = {} if centers is None else {"n_centers": centers}

    from classprior.estimation import Estimation

    found = Estimation.of(
        two.positive,
        two.unlabeled,
        X_negative=two.negative,
        method=method,
        confidence=confidence,
        weights=weights,
        groups=groups,
        key=two.key,
        max_weight=max_weight,
        leave_out_known=leave_out_known,
        segments=two.segments or None,
        segment_positives=segment_positives,
        every=every,
        columns=two.columns,
        drop=two.drop,
        checkpoint=checkpoint,
        random_state=seed,
        n_jobs=jobs,
        verbose=progress_wanted(quiet),
        evidence=None if method == SCORES else click.get_current_context().obj,
        **options,
    )
    if checked:
        numbers = None if two.is_unlabeled is None else two.is_unlabeled.nonzero()[0]
        sheets = checked[0] if random_sample else list(checked)
        found = found.with_checked(
            sheets, plan=plan_file, random_sample=random_sample, numbers=numbers
        )
    warnings = tuple(map(in_options, found.estimate.warnings))
    two = replace(two, unlabeled=found.raw.each[1].source)  # with the decimal marks of both files
    return two, replace(found, estimate=replace(found.estimate, warnings=warnings))


def _check_checked(checked: Sequence[Path], plan_file: Path | None, random_sample: bool) -> None:
    """Check that the options for checked rows belong together."""
    if not checked and (plan_file is not None or random_sample):
        option = "--random-sample" if random_sample else "--plan"
        raise click.UsageError(f"{option} applies to checked rows. Use --checked to name the file.")
    if random_sample and (plan_file is not None or len(checked) > 1):
        raise click.UsageError("--random-sample is for a single file of rows without a plan.")


def _check_segments(
    by: Sequence[str], method: str, every: str | None, segment_positives: str
) -> None:
    """Check that the options for segments belong together."""
    if by and method not in (RECOMMENDED, SCORES):
        raise click.UsageError(f"--by works with auto only, not with {method}.")
    if not by and (every is not None or segment_positives != "all"):
        option = "--segment-positives" if every is None else "--every"
        raise click.UsageError(f"{option} applies to segments. Use --by to name their column.")


def json_values(found: PriorEstimate) -> dict[str, Any]:
    """Return an estimate as a dictionary with the documented keys."""
    from classprior import __version__

    return {"schema": SCHEMA, "version": __version__, **found.to_dict()}
