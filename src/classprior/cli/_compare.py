"""The command ``classprior compare``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import click

from classprior._core.messages import percent
from classprior._files.writing import whole_file
from classprior.cli._options import (
    check_files,
    force_option,
    json_option,
    new_file,
    output_options,
    sample_options,
    seed_option,
)
from classprior.cli._outcomes import CONFIDENCE, MARK, Outcome, WorkerRows, range_text, run_methods
from classprior.cli._output import as_json, progress_wanted, show, wrapped
from classprior.cli._program import require
from classprior.cli._samples import open_two_tables
from classprior.priors._methods import METHODS, RECOMMENDED

SCHEMA = "classprior.compare/1"
_PICTURES = (".png", ".svg", ".pdf")
_REMARKED = ("at most", "biased", "too low")  # meanings that are said beside an estimate
_CHARACTERS = 54  # of a line of text in the plot


@click.command(
    short_help="Compare the estimates of several methods.",
    epilog="""\b
Examples:
  classprior compare frauds.csv transactions.csv
  classprior compare frauds.csv transactions.csv --methods auto,penl1,en --intervals
  classprior compare frauds.csv transactions.csv --plot methods.png
""",
)
@sample_options
@click.option(
    "--methods",
    metavar="NAMES",
    help="Methods to run, separated by commas. By default, all but the slow ones.",
)
@click.option("--all", "wants_all", is_flag=True, help="Run the slow methods, too.")
@click.option(
    "--intervals",
    is_flag=True,
    help="Compute an interval for every method, not only for auto. Most methods must be refitted "
    "40 times for it; raise --limit for the slower ones.",
)
@click.option(
    "--limit",
    type=click.FloatRange(0, min_open=True),
    default=60,
    show_default=True,
    help="Time limit for each method and its interval, in seconds.",
)
@seed_option
@new_file("--plot", purpose="Write a plot of the estimates (.png, .svg or .pdf).")
@json_option
@force_option
@output_options
def compare(
    methods: str | None,
    wants_all: bool,
    intervals: bool,
    limit: float,
    seed: int,
    groups: str | None,
    weights: str | None,
    max_weight: float | tuple[float, float] | None,
    leave_out_known: bool,
    plot: Path | None,
    wants_json: bool,
    force: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Estimate the share of positives with several methods.

    The first method, auto, is recommended; the others show how much the answer depends on the
    method. Those that fail or exceed the time limit are listed with the reason and do not stop
    the others. The answer, the warnings and the upper bound are those of auto. Methods that
    would take minutes are fitted to random rows, and the output says so.
    """
    chosen = _chosen(methods, wants_all)
    if plot and plot.suffix.lower() not in _PICTURES:
        raise click.UsageError(
            f"Unknown format of --plot {plot.name!r}. Use one of {', '.join(_PICTURES)}."
        )
    check_files(plot, force=force, options=reading)
    if plot:
        require("matplotlib")
    two = open_two_tables(**reading)

    from classprior._samples.matching import without_known
    from classprior._samples.opening import open_samples
    from classprior._samples.progress import progress
    from classprior._samples.units import RowOptions
    from classprior._tables.encoder import TableEncoder

    about_rows = RowOptions(weights=weights, groups=groups, key=two.key)
    names: Any = {"columns": two.columns, "drop": two.drop, "X_negative": two.negative}
    raw = open_samples(two.positive, two.unlabeled, about_rows, seed=seed, n_jobs=-1, **names)
    if leave_out_known:
        raw = without_known(raw, TableEncoder(keep=tuple(two.columns or ())))
    rows = WorkerRows.of(raw, two.columns, max_weight)
    steps = run_methods(chosen, rows, seed, limit, intervals)
    outcomes = list(progress(steps, len(chosen), "Comparing", progress_wanted(quiet)))
    if wants_json:
        as_json(_values(outcomes, raw.bins.n_counted, raw.n_negative, seed))
    else:
        left_out = [] if methods else [name for name in METHODS if name not in chosen]
        show(_text(outcomes, raw.bins.n_counted, left_out), "classprior")
    if plot:
        with whole_file(plot) as file:
            _figure(outcomes).savefig(file, format=plot.suffix[1:].lower(), dpi=150)
    if all(outcome.prior is None for outcome in outcomes):
        raise ValueError("All methods failed.")


def _chosen(methods: str | None, wants_all: bool) -> list[str]:
    """Return the methods to run."""
    if methods is None:
        return [name for name, method in METHODS.items() if wants_all or not method.is_slow]
    if wants_all:
        raise click.UsageError("Use either --methods or --all, not both.")
    chosen = list(dict.fromkeys(name.strip() for name in methods.split(",")))
    unknown = [name for name in chosen if name not in METHODS]
    if unknown:
        raise click.UsageError(
            f"Unknown method {unknown[0]!r} in --methods. Choose from {', '.join(METHODS)}."
        )
    return chosen


def _values(
    outcomes: Sequence[Outcome], sizes: tuple[int, int], n_negative: int, seed: int
) -> dict[str, Any]:
    """Return the values of the JSON output."""
    recommended = next((o for o in outcomes if o.method == RECOMMENDED), None)
    return {
        "schema": SCHEMA,
        "answer": recommended.answer or None if recommended else None,
        "meaning": recommended.meaning or None if recommended else None,
        "n_positive": sizes[0],
        "n_unlabeled": sizes[1],
        "n_negative": n_negative,
        "seed": seed,
        "upper_bound": recommended.upper_bound if recommended else None,
        "bound_name": recommended.bound_name if recommended else None,
        "bound_holds_if": recommended.bound_holds_if if recommended else None,
        "warnings": list(recommended.warnings) if recommended else [],
        "notes": list(_on_intervals(outcomes)),
        "methods": [outcome.to_dict() for outcome in outcomes],
    }


def _text(outcomes: Sequence[Outcome], sizes: tuple[int, int], left_out: Sequence[str]) -> str:
    """Return the answer, a table of the estimates, what they mean, and what the methods are."""
    title = f"Share of positives in {sizes[1]:,} unlabeled rows, from {sizes[0]:,} known positives"
    answers = [outcome.answer for outcome in outcomes if outcome.answer]
    lines = [wrapped("\n\n".join([*answers, title])), ""]
    lines.append(f"  {'method':13} {'share':>7}   {f'{CONFIDENCE:.0%} interval':16} {'seconds':>7}")
    for outcome in outcomes:
        share = "-" if outcome.prior is None else percent(outcome.prior)
        remark = "   recommended" if outcome.method == RECOMMENDED else ""
        remark += f", {outcome.meaning}" if outcome.meaning in _REMARKED else ""
        lines.append(
            f"  {outcome.name:13} {share:>7}   {outcome.interval:16} {outcome.seconds:7.1f}{remark}"
        )
    parts = ["\n".join([*_failures(outcomes), *_on_drawn_rows(outcomes)])]
    parts.append(" ".join(_meaning(outcomes)))
    parts += [f"Warning: {warning}" for outcome in outcomes for warning in outcome.warnings]
    if left_out:
        parts.append(f"Left out because they are slow: {', '.join(left_out)}. Use --all.")
    parts.append("\n".join(f"  {o.method:12} {METHODS[o.method].summary}" for o in outcomes))
    return "\n\n".join(["\n".join(lines), *(wrapped(part) for part in parts if part)])


def _failures(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the reasons for missing estimates and intervals, each with all its methods."""
    methods: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        if outcome.failure:
            missing = "interval" if outcome.prior is not None else "estimate"
            missing = "warnings" if outcome.limits else missing
            methods.setdefault((missing, outcome.failure), []).append(outcome.method)
    for (missing, reason), names in methods.items():
        yield f"No {missing} from {', '.join(names)}: {reason}"


def _on_drawn_rows(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield which methods were fitted to random rows, to save time."""
    methods: dict[tuple[int, int], list[str]] = {}
    for outcome in outcomes:
        if outcome.n_fitted is not None and outcome.prior is not None:
            methods.setdefault(outcome.n_fitted, []).append(outcome.method)
    for (n_positive, n_unlabeled), names in methods.items():
        yield (
            f"To save time, {', '.join(names)} used only {n_positive:,} known positives and "
            f"{n_unlabeled:,} unlabeled rows, drawn at random. classprior estimate --method uses "
            "all rows."
        )


def _meaning(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield sentences on what the spread of the estimates means."""
    found = {o.method: o.prior for o in outcomes if o.prior is not None}
    others = [prior for name, prior in found.items() if not METHODS[name].over_estimates]
    if len(found) > 1:
        yield f"The methods range from {range_text(found.values())}."
    if len(others) < len(found):
        yield (
            f"Those marked{MARK} count overlapping negatives as positives, so they are too high "
            "if the classes overlap."
        )
        if len(others) > 1:
            yield f"The others range from {range_text(others)}."
    for bound, name, condition in _bounds(outcomes):
        above = [method for method, prior in found.items() if prior > bound]
        yield f"The {name} is {percent(bound)}, if {condition}" + (
            f"; {', '.join(above)} {'is' if len(above) == 1 else 'are'} above it." if above else "."
        )
    yield from _on_intervals(outcomes)
    yield f"Where methods differ, use {RECOMMENDED}."


def _on_intervals(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield what the intervals of some methods do not say."""
    from classprior._scores.notes import on_intervals

    yield from on_intervals(
        [o.method for o in outcomes if o.limits and not METHODS[o.method].has_interval]
    )


def _bounds(outcomes: Sequence[Outcome]) -> list[tuple[float, str, str]]:
    """Return the upper bound of the recommended method, if it was run, its name and condition."""
    return [
        (o.upper_bound, o.bound_name, o.bound_holds_if)
        for o in outcomes
        if o.upper_bound is not None
    ]


def _figure(outcomes: Sequence[Outcome]) -> Any:
    """Draw the estimates and intervals; names on the left, numbers on the right."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    reasons = [textwrap.wrap(o.failure, _CHARACTERS) if o.prior is None else [] for o in outcomes]
    heights = [max(1.0, 0.6 * len(reason)) for reason in reasons]
    ends = list(accumulate(heights))
    places = [end - height / 2.0 for end, height in zip(ends, heights, strict=True)]
    figure = Figure(figsize=(8, 1.2 + 0.35 * ends[-1]), layout="constrained")
    ax = figure.subplots()
    end = _end_of_axis(outcomes)
    for outcome, place, reason in zip(outcomes, places, reasons, strict=True):
        if outcome.prior is None:
            text = "\n".join(reason)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
            style: Any = {"ha": "center", "va": "center", "size": 8, "parse_math": False}
            middle = ax.get_yaxis_transform()  # x is a share of the width
            ax.text(0.5, place, text, transform=middle, bbox=box, **style)
            continue
        color = "C1" if METHODS[outcome.method].over_estimates else "C0"
        if outcome.limits:
            limits = [min(share, end) for share in outcome.limits]
            ax.plot(limits, [place, place], color=color, lw=2, clip_on=False)
            if outcome.method == RECOMMENDED:
                ax.axvspan(*limits, color=color, alpha=0.12, lw=0)
        marker = "o" if outcome.prior <= end else ">"
        ax.plot([min(outcome.prior, end)], [place], marker, color=color, clip_on=False)
    names = [o.name + " (recommended)" * (o.method == RECOMMENDED) for o in outcomes]
    ax.set_yticks(places, names)
    numbers = [
        "" if o.prior is None else percent(o.prior) + (f" ({o.interval})" if o.interval else "")
        for o in outcomes
    ]
    right = ax.secondary_yaxis("right")
    right.set_yticks(places, numbers)
    right.tick_params(length=0, pad=8)
    ax.set_ylim(ends[-1], 0.0)
    label = "estimated share of positives in the unlabeled rows"
    for bound, name, _ in _bounds(outcomes):
        ax.axvline(bound, color="0.4", ls="--", lw=1)
        label += f"\nband: {CONFIDENCE:.0%} interval of {RECOMMENDED}; dashed: {name}"
    if any(o.name.endswith(MARK) for o in outcomes):
        label += f"\n{MARK.strip()} too high if the classes overlap"
    if any(o.prior is not None and o.prior > end for o in outcomes):
        label += "; arrows are beyond the axis"
    ax.set(xlim=(-0.02 * end, end), xlabel=label)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    ax.grid(axis="x", alpha=0.3)
    return figure


def _end_of_axis(outcomes: Sequence[Outcome]) -> float:
    """Return the end of an axis for all estimates but those that are too high under overlap."""
    fitting = [o for o in outcomes if not o.name.endswith(MARK)] or outcomes
    shares = [share for o in fitting for share in (o.prior, *o.limits, o.upper_bound) if share]
    return min(1.02, 1.08 * max(shares, default=1.0))
