"""Options shared by several commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from classprior._files.writing import check_outputs
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


def _check_jobs(_: click.Context, __: click.Parameter, value: int) -> int:
    if value == 0:
        raise click.BadParameter("expected a number of threads, or -1 for one per core, got 0.")
    return value


def _as_max_weight(
    _: click.Context, __: click.Parameter, value: str | None
) -> float | tuple[float, ...] | None:
    if value is None:
        return None
    from classprior._tables.parameters import check_max_weight

    try:
        numbers = tuple(float(part) for part in value.split(","))
        check_max_weight(numbers[0] if len(numbers) == 1 else numbers)
    except ValueError as error:
        raise click.BadParameter(
            f"expected a positive number, or two with a comma, got {value!r}."
        ) from error
    return numbers[0] if len(numbers) == 1 else numbers


#: How to read files.
reading_options = _all(
    click.option(
        "--format",
        "file_format",
        type=click.Choice(["csv", "parquet", "arrow", "json", "sheet"]),
        help="Format of the input files. By default, inferred from the file names.",
    ),
    click.option("--encoding", help="Encoding of CSV files. UTF-8 and UTF-16 are detected."),
    click.option("--no-header", is_flag=True, help="The files have no header line."),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal mark of CSV files. By default, inferred from all files.",
    ),
    click.option("--sheet", metavar="NAME", help="Sheet of a spreadsheet. By default, the first."),
)

#: Which rows are known positives, and which columns to use.
sample_options = _all(
    click.argument("positive_or_data", metavar="POSITIVE"),
    click.argument("unlabeled", required=False, metavar="[UNLABELED]"),
    click.option(
        "--label",
        metavar="COLUMN",
        help="Column that marks the known positives, if there is only one file.",
    ),
    click.option(
        "--positive",
        metavar="VALUE",
        help="Value in the --label column that marks the known positives. By default, the only "
        "value beside words such as unknown, unchecked or open, or the yes beside a no.",
    ),
    click.option(
        "--negative",
        metavar="VALUE",
        help="Value in the --label column that marks rows confirmed to be negative. They are not "
        "among the unlabeled rows, and the estimate is checked with them.",
    ),
    click.option(
        "--columns",
        multiple=True,
        metavar="NAMES",
        help="Columns to use, separated by commas. By default, all but identifiers, constants "
        "and free text.",
    ),
    click.option(
        "--drop",
        multiple=True,
        metavar="NAMES",
        help="Columns to leave out, separated by commas.",
    ),
    click.option(
        "--id",
        "ids",
        multiple=True,
        metavar="NAMES",
        help="Columns whose values together tell each row of a sample from the others, such as a "
        "payment number, separated by commas. Not used as features; the answer then does not "
        "depend on the order of the rows. Repeated or missing values are refused: use --groups if "
        "rows belong together, --drop to only leave a column out.",
    ),
    click.option(
        "--groups",
        metavar="COLUMN",
        help="Column with the group of each row, such as a customer. Rows of a group stay together "
        "in cross-validation and resampling.",
    ),
    click.option(
        "--weights",
        metavar="COLUMN",
        help="Column with the weight of each row, such as one over the probability with which it "
        "was sampled. Not used as a feature.",
    ),
    click.option(
        "--leave-out-known",
        is_flag=True,
        help="Leave out unlabeled rows that have the same values as a known positive, one for each "
        "known positive.",
    ),
    click.option(
        "--max-weight",
        metavar="NUMBER",
        callback=_as_max_weight,
        help="The most that a row, or with --groups a group, can weigh, not only in these files; "
        "or two numbers with a comma, for known positives and unlabeled rows. With weights or "
        "groups, the upper bound is certified only if it is given.",
    ),
    reading_options,
)

#: For which parts of the unlabeled rows to estimate the share as well.
segment_options = _all(
    click.option(
        "--by",
        multiple=True,
        metavar="NAMES",
        help="Also estimate the share in each segment, such as a region or a month: columns of the "
        "unlabeled rows, separated by commas. Not used as features. For auto only.",
    ),
    click.option(
        "--every",
        type=click.Choice(["day", "week", "month", "quarter", "year"]),
        help="Period to which the dates in the --by column are rounded.",
    ),
    click.option(
        "--segment-positives",
        type=click.Choice(["all", "own"]),
        default="all",
        show_default=True,
        help="Known positives that each segment is compared with: all if positives look alike in "
        "all segments, own if they look like those of the same segment only.",
    ),
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Random seed. The same seed gives the same result.",
)

#: How to estimate the share.
estimation_options = _all(
    click.option(
        "--method",
        type=click.Choice(list(METHODS)),
        default="auto",
        show_default=True,
        help="Estimation method. The default is recommended; classprior compare runs several.",
    ),
    click.option(
        "--confidence",
        type=click.FloatRange(0.5, 1.0, max_open=True),
        default=0.95,
        show_default=True,
        help="Confidence level of the interval and the bound.",
    ),
    seed_option,
    click.option(
        "--jobs",
        type=int,
        default=-1,
        callback=_check_jobs,
        help="Number of threads. By default, one per core.",
    ),
    click.option(
        "--centers",
        type=click.IntRange(1),
        help="Maximum number of basis centers of the kernel methods. Not used by auto.",
    ),
)

score_option = click.option(
    "--score",
    metavar="COLUMN",
    help="Column with the scores of a model of your own, larger for positives, that was not "
    "trained on these rows. No other column is used, and no classifier is fitted.",
)

#: Rows that a person has looked at.
checked_options = _all(
    click.option(
        "--checked",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Sheet of classprior review with the column checked filled in. Can be given several "
        "times if rows were added to the plan.",
    ),
    click.option(
        "--plan",
        "plan_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Plan of the --checked rows. By default, the one beside the sheet.",
    ),
    click.option(
        "--random-sample",
        is_flag=True,
        help="The --checked rows are a simple random sample of the unlabeled rows, drawn without a "
        "plan. The file has their numbers, from 1, in the column row.",
    ),
)

#: What to print.
output_options = _all(
    click.option("--quiet", is_flag=True, help="Do not show progress."),
    click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_remember_debug,
        help="Show the full traceback of an error.",
    ),
)

json_option = click.option("--json", "wants_json", is_flag=True, help="Print the result as JSON.")
force_option = click.option("--force", is_flag=True, help="Overwrite existing files.")
title_option = click.option("--title", help="Title of the report.")


def new_file(*names: str, purpose: str, required: bool = False) -> Callable[[Any], Any]:
    """Return an option for an output file."""
    return click.option(
        *names, type=click.Path(path_type=Path), metavar="FILE", help=purpose, required=required
    )


def check_files(*outputs: Path | None, force: bool, options: dict[str, Any]) -> None:
    """Check output files before starting, also that none of them is an input."""
    check_outputs(
        *outputs,
        force=force,
        inputs=[options["positive_or_data"], options["unlabeled"]],
        file_format=options["file_format"],
        resumed=options.get("checkpoint"),
    )


def command_line(context: click.Context) -> str:
    """Return a command to copy that repeats a run: its arguments and all that is not default."""
    arguments: list[str] = []
    options: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if value is None or value is False or value in ((), parameter.get_default(context)):
            continue
        values = [str(each) for each in value] if parameter.multiple else [str(value)]
        if isinstance(parameter, click.Argument):
            arguments += values
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            options.append(parameter.opts[0])
        else:
            options += [text for each in values for text in (parameter.opts[0], each)]
    is_like_option = any(text.startswith("-") and text != "-" for text in arguments)
    rest = [*options, "--", *arguments] if is_like_option else [*arguments, *options]
    return shlex.join(["classprior", str(context.command.name), *rest])


checkpoint_option = new_file(
    "--checkpoint",
    purpose="File that stores progress, so that the same command can resume after an interruption. "
    "For auto, penl1 and pe only.",
)

#: An HTML report in addition to the printed result.
report_options = _all(
    new_file("--report", purpose="Also write an HTML report to this file."),
    title_option,
    force_option,
)
