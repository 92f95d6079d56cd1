"""The command ``classprior estimate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from classprior._data.writing import check_outputs
from classprior.cli._options import (
    checkpoint_option,
    estimation_options,
    force_option,
    json_option,
    new_file,
    output_options,
    report_options,
    sample_options,
    title_option,
)
from classprior.cli._output import add, answer_text, as_json, progress_wanted, show
from classprior.cli._program import in_options, require
from classprior.cli._samples import TwoSamples, open_two_samples
from classprior.priors._methods import METHODS

if TYPE_CHECKING:
    from classprior.estimate import PriorEstimate

SCHEMA = "classprior.estimate/1"
PAGE = ("jinja2", "matplotlib")  # what a page of HTML needs


@click.command(
    short_help="The share of positives among unlabeled rows.",
    epilog="""\b
Examples:
  classprior estimate frauds.csv transactions.csv
  classprior estimate patients.parquet --label diagnosis --positive confirmed
  classprior estimate frauds.csv 'all/*.csv' --drop customer,iban --report frauds.html
""",
)
@sample_options
@estimation_options
@checkpoint_option
@json_option
@report_options
@output_options
def estimate(
    wants_json: bool, report: Path | None, title: str | None, force: bool, **options: Any
) -> None:
    """Estimate what share of the unlabeled rows is positive.

    POSITIVE has known positives, UNLABELED all else: files (CSV, TSV, parquet, Feather or Arrow;
    also .csv.gz), folders of them, quoted patterns, or - for standard input. Or one file, with
    --label and --positive to say which of its rows are known positives.
    """
    check_outputs(report, force=force)
    if report:
        require(*PAGE)
    samples, answer = estimated(**options)
    if wants_json:
        as_json(json_values(answer))
    else:
        show(answer_text(answer, samples), "classprior")
    if report:
        write_report(report, answer, samples, options, title)


@click.command(
    short_help="The same as a page of HTML.",
    epilog="""\b
Examples:
  classprior report frauds.csv transactions.csv --out frauds.html
""",
)
@sample_options
@estimation_options
@checkpoint_option
@new_file("--out", purpose="The page.", required=True)
@title_option
@force_option
@output_options
def report(out: Path, title: str | None, force: bool, **options: Any) -> None:
    """Estimate like ``classprior estimate``, and write the answer and its grounds as one page.

    The page is one file of HTML that loads nothing from anywhere.
    """
    check_outputs(out, force=force)
    require(*PAGE)
    samples, answer = estimated(**options)
    show(answer.answer, "classprior")
    write_report(out, answer, samples, options, title)
    add(f"The report is in {out}")


def write_report(
    path: Path,
    answer: PriorEstimate,
    samples: TwoSamples,
    options: dict[str, Any],
    title: str | None,
) -> None:
    """Write an estimate as a page of HTML, with what is needed to repeat it."""
    from classprior._data.writing import write_text
    from classprior.report import render_report

    settings = {
        **samples.settings,
        **{name: str(options[name]) for name in ("confidence", "seed")},
        **{name: ", ".join(options[name]) for name in ("columns", "drop", "ids") if options[name]},
        **{name: str(options[name]) for name in ("group", "centers", "encoding") if options[name]},
        **({"format": options["file_format"]} if options["file_format"] else {}),
        **({"no-header": "yes"} if options["no_header"] else {}),
    }
    write_text(path, render_report(answer, settings=settings, title=title))


def estimated(
    *,
    method: str,
    confidence: float,
    seed: int,
    jobs: int,
    centers: int | None,
    quiet: bool,
    checkpoint: Path | None = None,
    **reading: Any,
) -> tuple[TwoSamples, PriorEstimate]:
    """Open the samples and estimate the share."""
    if centers is not None and not METHODS[method].has_centers:
        raise click.UsageError(f"--centers is for kernel methods; {method} has none.")
    if checkpoint is not None and (method == "auto" or not METHODS[method].takes_blocks):
        raise click.UsageError(f"--checkpoint is for penl1 and pe; {method} has no use for it.")
    two = open_two_samples(**reading)
    options: dict[str, Any] = {} if centers is None else {"n_centers": centers}

    from classprior.estimate import estimate_prior

    answer = estimate_prior(
        two.positive,
        two.unlabeled,
        method=method,
        confidence=confidence,
        groups=two.group,
        columns=two.columns,
        checkpoint=checkpoint,
        random_state=seed,
        n_jobs=jobs,
        verbose=progress_wanted(quiet),
        **options,
    )
    return two, replace(answer, warnings=tuple(map(in_options, answer.warnings)))


def json_values(answer: PriorEstimate) -> dict[str, Any]:
    """Return an estimate as documented for machines."""
    from classprior import __version__

    return {"schema": SCHEMA, "version": __version__, **answer.to_dict()}
