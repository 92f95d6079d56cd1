"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from classprior.cli._program import DEBUG
from classprior.priors._methods import METHODS

Command = TypeVar("Command", bound=Callable[..., Any])


def _all(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def _remember_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[DEBUG] = value


#: How files are read.
reading_options = _all(
    click.option(
        "--format",
        "file_format",
        type=click.Choice(["csv", "parquet", "arrow"]),
        help="Format of the files, whatever their names say.",
    ),
    click.option("--encoding", help="Encoding of CSV files, if not UTF-8 or UTF-16."),
    click.option("--no-header", is_flag=True, help="CSV files begin with data, not with names."),
)

#: Which rows are known positives, and which columns count.
sample_options = _all(
    click.argument("positive_or_data", metavar="POSITIVE"),
    click.argument("unlabeled", required=False, metavar="[UNLABELED]"),
    click.option("--label", metavar="COLUMN", help="One table: the column that marks positives."),
    click.option("--positive", metavar="VALUE", help="Value that marks known positives."),
    click.option("--columns", multiple=True, metavar="NAMES", help="Use these columns only."),
    click.option("--drop", multiple=True, metavar="NAMES", help="Leave these columns out."),
    click.option(
        "--id",
        "ids",
        multiple=True,
        metavar="NAMES",
        help="Identifier columns, not used as features.",
    ),
    click.option(
        "--group",
        metavar="COLUMN",
        help="Column with the group of each row, such as a customer: folds keep groups whole.",
    ),
    reading_options,
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="The same seed gives the same answer.",
)

#: How the share is estimated.
estimation_options = _all(
    click.option("--method", type=click.Choice(list(METHODS)), default="auto", show_default=True),
    click.option(
        "--confidence",
        type=click.FloatRange(0.5, 1.0, max_open=True),
        default=0.95,
        show_default=True,
        help="Confidence level of the interval and the bound.",
    ),
    seed_option,
    click.option("--jobs", type=int, default=-1, help="Threads; all cores by default."),
    click.option(
        "--centers", type=click.IntRange(1), help="Centers of the kernel methods, not of auto."
    ),
)

#: What is printed.
output_options = _all(
    click.option("--quiet", is_flag=True, help="No progress, even on a terminal."),
    click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_remember_debug,
        help="Show the traceback of an error.",
    ),
)

json_option = click.option("--json", "wants_json", is_flag=True, help="Print JSON, for machines.")
force_option = click.option("--force", is_flag=True, help="Replace files that exist.")
title_option = click.option("--title", help="Of the report.")


def new_file(*names: str, purpose: str, required: bool = False) -> Callable[[Any], Any]:
    """Return an option that names a file to write."""
    return click.option(
        *names, type=click.Path(path_type=Path), metavar="FILE", help=purpose, required=required
    )


checkpoint_option = new_file(
    "--checkpoint",
    purpose="Keep sums here, to go on after an interruption; for penl1 and pe.",
)

#: A page of HTML beside what is printed.
report_options = _all(
    new_file("--report", purpose="Write a page of HTML, too."), title_option, force_option
)
