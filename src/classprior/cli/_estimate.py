"""The command ``classprior estimate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from classprior._writing import check_outputs
from classprior.cli._large import LargeSamples, estimated_in_blocks, go_in_blocks
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
from classprior.cli._program import require
from classprior.cli._samples import Samples, load_samples

if TYPE_CHECKING:
    from classprior._frames import EncodedSamples
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
    """Estimate which share of the unlabeled rows is positive.

    POSITIVE has known positives, UNLABELED all else: files (CSV, TSV, parquet, Feather or Arrow;
    also .csv.gz), folders of them, quoted patterns, or - for standard input. Or one file, with
    --label and --positive to say which of its rows are known positives.
    """
    check_outputs(report, force=force)
    if report:
        require(*PAGE)
    samples, answer = estimated_from_files(**options)
    if wants_json:
        as_json(json_values(answer))
    else:
        text = answer_text(answer, samples.notes, one_table=samples.one_table)
        show(text, "classprior")
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
    samples, answer = estimated_from_files(**options)
    show(answer.answer, "classprior")
    write_report(out, answer, samples, options, title)
    add(f"The report is in {out}")


def write_report(
    path: Path,
    answer: PriorEstimate,
    samples: Samples | LargeSamples,
    options: dict[str, Any],
    title: str | None,
) -> None:
    """Write an estimate as a page of HTML, with what is needed to repeat it.

    Parameters
    ----------
    path : Path
        Where to.
    answer : PriorEstimate
        The estimate.
    samples : Samples
        What it is from.
    options : dict
        Of the command line.
    title : str or None
        Of the page.
    """
    from classprior._writing import write_text
    from classprior.report import render_report

    settings = {
        **samples.settings,
        **{name: str(options[name]) for name in ("confidence", "seed")},
        **{name: ", ".join(options[name]) for name in ("columns", "drop", "ids") if options[name]},
        **{name: str(options[name]) for name in ("centers", "encoding") if options[name]},
        **({"format": options["file_format"]} if options["file_format"] else {}),
        **({"no-header": "yes"} if options["no_header"] else {}),
    }
    write_text(path, render_report(answer, settings=settings, title=title))


def estimated_from_files(
    *, checkpoint: Path | None, **options: Any
) -> tuple[Samples | LargeSamples, PriorEstimate]:
    """Estimate the share, in memory or, where files are too large for it, in blocks.

    Parameters
    ----------
    checkpoint : Path or None
        Where to keep sums.
    **options : any
        Of the command line.

    Returns
    -------
    samples : Samples or LargeSamples
        What was read.
    estimate : PriorEstimate
        The answer.
    """
    files = options["positive_or_data"], options["unlabeled"]
    method, file_format = options["method"], options["file_format"]
    if not go_in_blocks(*files, method, file_format, checkpoint):
        samples, answer, _ = estimated(**options)
        return samples, answer
    names = ("label", "positive", "columns", "drop", "ids", "encoding", "no_header")
    reading = {name: options[name] for name in names}
    return estimated_in_blocks(
        *files,
        reading,
        file_format=file_format,
        method=method,
        checkpoint=checkpoint,
        confidence=options["confidence"],
        random_state=options["seed"],
        n_jobs=options["jobs"],
        verbose=progress_wanted(options["quiet"]),
        **_options_of_method(method, options["centers"]),
    )


def _options_of_method(method: str, centers: int | None) -> dict[str, Any]:
    if centers is not None and method in ("auto", "en"):
        raise click.UsageError(f"--centers is for kernel methods; {method} has none.")
    return {} if centers is None else {"n_centers": centers}


def estimated(
    *,
    method: str,
    confidence: float,
    seed: int,
    jobs: int,
    centers: int | None,
    quiet: bool,
    **reading: Any,
) -> tuple[Samples, PriorEstimate, EncodedSamples]:
    """Read the samples and estimate the share.

    Parameters
    ----------
    method, confidence, seed, jobs, centers, quiet : any
        Options of the command line.
    **reading : any
        What ``load_samples`` takes.

    Returns
    -------
    samples : Samples
        The rows.
    estimate : PriorEstimate
        The answer.
    encoded : EncodedSamples
        The rows as numbers.
    """
    options = _options_of_method(method, centers)
    samples = load_samples(**reading)
    from classprior.estimate import estimate_encoded

    encoded = samples.encoded()
    answer = estimate_encoded(
        encoded,
        method=method,
        confidence=confidence,
        random_state=seed,
        n_jobs=jobs,
        verbose=progress_wanted(quiet),
        **options,
    )
    return samples, answer, encoded


def json_values(answer: PriorEstimate) -> dict[str, Any]:
    """Return an estimate as documented for machines.

    Parameters
    ----------
    answer : PriorEstimate
        The estimate.

    Returns
    -------
    values : dict
        Plain; its keys only ever become more while the schema keeps its number.
    """
    from classprior import __version__

    return {"schema": SCHEMA, "version": __version__, **answer.to_dict()}
