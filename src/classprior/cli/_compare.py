"""The command ``classprior compare``."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from classprior._core.messages import percent
from classprior._data.writing import whole_file
from classprior.cli._options import (
    check_files,
    force_option,
    json_option,
    new_file,
    output_options,
    sample_options,
    seed_option,
)
from classprior.cli._output import as_json, progress_wanted, show, wrapped
from classprior.cli._program import require
from classprior.cli._samples import open_two_samples
from classprior.priors._methods import METHODS, RECOMMENDED

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from classprior._data.samples import Samples

SCHEMA = "classprior.compare/1"
_PICTURES = (".png", ".svg", ".pdf")
_ENDED = "its process ended unexpectedly, perhaps because it ran out of memory"
_CONFIDENCE = 0.95
_CHARACTERS = 54  # of a line of text in the plot
_MARK = " *"  # behind methods that overestimate if the classes overlap


class Outcome(NamedTuple):
    """The estimate of a method, or the reason why it failed."""

    method: str
    prior: float | None
    seconds: float
    failure: str = ""  # why there is no estimate, or no interval although one was asked for
    low: float | None = None
    high: float | None = None
    upper_bound: float | None = None  # certified; of the recommended method only
    warnings: tuple[str, ...] = ()  # of the recommended method only

    @property
    def name(self) -> str:
        """The method, marked if its estimate may be too high."""
        marked = self.prior is not None and METHODS[self.method].over_estimates
        return self.method + (_MARK if marked else "")

    @property
    def limits(self) -> tuple[float, ...]:
        """The ends of the interval, or nothing."""
        return () if self.low is None or self.high is None else (self.low, self.high)

    @property
    def interval(self) -> str:
        """The interval in percent, or nothing."""
        return _range(self.limits) if self.limits else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome with the documented keys of the JSON output."""
        values = self._asdict()
        del values["upper_bound"], values["warnings"]  # they stand beside the methods
        recommended = self.method == RECOMMENDED
        return {**values, "recommended": recommended, "summary": METHODS[self.method].summary}


class _Given(NamedTuple):
    """What a worker process gets: rows as numbers, and what is known about rows and columns."""

    X_positive: Any
    X_unlabeled: Any
    units: Any
    sources: list[str] | None  # the column from which each column of numbers was made


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
    plot: Path | None,
    wants_json: bool,
    force: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Estimate the share of positives with several methods.

    The first method, auto, is recommended; the others show how much the answer depends on the
    method. Those that fail or exceed the time limit are listed with the reason and do not stop
    the others. Warnings and the certified bound are those of auto.
    """
    chosen = _chosen(methods, wants_all)
    if plot and plot.suffix.lower() not in _PICTURES:
        raise click.UsageError(
            f"Unknown format of --plot {plot.name!r}. Use one of {', '.join(_PICTURES)}."
        )
    check_files(plot, force=force, options=reading)
    if plot:
        require("matplotlib")
    two = open_two_samples(**reading)

    from classprior._core.messages import progress

    samples, encoder = two.encoded(seed)
    steps = run_methods(chosen, samples.loaded(), encoder.sources_, seed, limit, intervals)
    outcomes = list(progress(steps, len(chosen), "Comparing", progress_wanted(quiet)))
    if wants_json:
        as_json(_values(outcomes, samples.sizes, seed))
    else:
        left_out = [] if methods else [name for name in METHODS if name not in chosen]
        show(_text(outcomes, samples.sizes, left_out), "classprior")
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


def run_methods(
    methods: Sequence[str],
    samples: Samples,
    sources: list[str] | None,
    seed: int,
    limit: float,
    intervals: bool = False,
) -> Iterator[Outcome]:
    """Run methods one after another, in a process that can be killed at the time limit."""
    given = _Given(*samples.rows, samples.units, sources)
    remaining = list(methods)
    while remaining:
        with _worker(given) as worker:
            is_alive = True
            while remaining and is_alive:  # leaving the block kills the process
                method = remaining.pop(0)
                wants_interval = intervals or method == RECOMMENDED
                outcome, is_alive = _ask(worker, method, seed, wants_interval, limit)
                yield outcome


def _ask(
    worker: Connection, method: str, seed: int, wants_interval: bool, limit: float
) -> tuple[Outcome, bool]:
    """Return the last outcome that a worker sends in time, and whether it can go on."""
    start = perf_counter()
    outcome = Outcome(method, None, 0.0)
    try:
        worker.send((method, seed, wants_interval))
        while worker.poll(max(0.0, start + limit - perf_counter())):
            answer = worker.recv()
            if answer is None:
                return outcome, True
            outcome = answer
        failure = f"stopped after {limit:g} seconds (--limit)"
    except (EOFError, OSError):
        failure = _ENDED
    return outcome._replace(failure=failure, seconds=perf_counter() - start), False


@contextmanager
def _worker(given: _Given) -> Iterator[Connection]:
    """Start a process that runs methods, and kill it on exit."""
    from multiprocessing import get_context

    # A fork would copy locks held by our threads and could deadlock.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, given), daemon=True)
    process.start()
    theirs.close()
    try:
        try:
            ours.recv()  # wait for the start, which does not count as time of a method
        except EOFError as error:
            raise OSError(
                "The process that runs the methods ended while starting, perhaps because it ran "
                "out of memory. Try fewer rows."
            ) from error
        yield ours
    finally:
        process.kill()
        process.join()
        ours.close()


def _serve(requests: Connection, given: _Given) -> None:
    """Run the requested methods in a worker process."""
    import signal

    import_module("classprior.estimate")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent kills this process
    requests.send("ready")
    with suppress(EOFError):  # the parent has exited
        while True:
            method, seed, wants_interval = requests.recv()
            for outcome in _run(method, seed, wants_interval, given):
                requests.send(outcome)
            requests.send(None)


def _run(method: str, seed: int, wants_interval: bool, given: _Given) -> Iterator[Outcome]:
    """Yield the estimate as soon as it is known, then the estimate with its interval."""
    from classprior._data.samples import Samples
    from classprior.estimate import resampled_intervals

    start = perf_counter()
    outcome = Outcome(method, None, 0.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = Samples.of_rows(given.X_positive, given.X_unlabeled, seed, units=given.units)
            estimator = METHODS[method](random_state=seed)
            resampled = estimator._fit_opened(samples)
            outcome = outcome._replace(prior=float(estimator.prior_))
            if wants_interval:
                yield outcome._replace(seconds=perf_counter() - start)
                if hasattr(estimator, "low_"):
                    low, high = estimator.low_, estimator.high_
                else:
                    (low, high), *_ = resampled_intervals(
                        estimator, resampled, samples, delta=1.0 - _CONFIDENCE
                    )
                outcome = outcome._replace(low=float(low), high=float(high))
            if method == RECOMMENDED:
                outcome = outcome._replace(
                    upper_bound=float(estimator.upper_bound_),
                    warnings=tuple(map(str, _warnings(estimator, samples, given.sources))),
                )
    except Exception as error:
        outcome = outcome._replace(failure=" ".join(str(error).split()))
    yield outcome._replace(seconds=perf_counter() - start)


def _warnings(estimator: Any, samples: Samples, sources: list[str] | None) -> Iterator[str]:
    """Yield the warnings of the recommended method, as classprior estimate has them."""
    from classprior._scores.diagnostics import about_sizes, diagnose
    from classprior._scores.near_copies import about_near_copies, find_near_copies

    rows, units = samples.subsample(estimator.max_rows).rows, samples.units
    yield from about_sizes(*samples.sizes)
    if units.groups is None:
        yield from about_near_copies(find_near_copies(*rows), None)
    yield from diagnose(*rows, estimator, sources, allows_bias=units.weights is not None)


def _values(outcomes: Sequence[Outcome], sizes: tuple[int, int], seed: int) -> dict[str, Any]:
    """Return the values of the JSON output."""
    recommended = next((o for o in outcomes if o.method == RECOMMENDED), None)
    return {
        "schema": SCHEMA,
        "n_positive": sizes[0],
        "n_unlabeled": sizes[1],
        "seed": seed,
        "upper_bound": recommended.upper_bound if recommended else None,
        "warnings": list(recommended.warnings) if recommended else [],
        "methods": [outcome.to_dict() for outcome in outcomes],
    }


def _text(outcomes: Sequence[Outcome], sizes: tuple[int, int], left_out: Sequence[str]) -> str:
    """Return a table of the estimates, what they mean, and what the methods are."""
    title = f"Share of positives in {sizes[1]:,} unlabeled rows, from {sizes[0]:,} known positives"
    lines = [wrapped(title), ""]
    lines.append(
        f"  {'method':13} {'share':>7}   {f'{_CONFIDENCE:.0%} interval':16} {'seconds':>7}"
    )
    for outcome in outcomes:
        share = "-" if outcome.prior is None else percent(outcome.prior)
        remark = "   recommended" if outcome.method == RECOMMENDED else ""
        lines.append(
            f"  {outcome.name:13} {share:>7}   {outcome.interval:16} {outcome.seconds:7.1f}{remark}"
        )
    parts = ["\n".join(_failures(outcomes)), " ".join(_meaning(outcomes))]
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


def _meaning(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield sentences on what the spread of the estimates means."""
    found = {o.method: o.prior for o in outcomes if o.prior is not None}
    others = [prior for name, prior in found.items() if not METHODS[name].over_estimates]
    if len(found) > 1:
        yield f"The methods range from {_range(found.values())}."
    if len(others) < len(found):
        yield (
            f"Those marked{_MARK} count overlapping negatives as positives, so they are too high "
            "if the classes overlap."
        )
        if len(others) > 1:
            yield f"The others range from {_range(others)}."
    for bound in (o.upper_bound for o in outcomes if o.upper_bound is not None):
        above = [name for name, prior in found.items() if prior > bound]
        yield f"The certified upper bound is {percent(bound)}" + (
            f"; {', '.join(above)} {'is' if len(above) == 1 else 'are'} above it." if above else "."
        )
    yield f"Where methods differ, use {RECOMMENDED}."


def _range(shares: Iterable[float]) -> str:
    low, *_, high = sorted(shares)
    return f"{percent(low)} to {percent(high)}"


def _figure(outcomes: Sequence[Outcome]) -> Any:
    """Draw the estimates and intervals; names on the left, numbers on the right."""
    from matplotlib.figure import Figure

    reasons = [textwrap.wrap(o.failure, _CHARACTERS) if o.prior is None else [] for o in outcomes]
    heights = [max(1.0, 0.6 * len(reason)) for reason in reasons]
    ends = list(accumulate(heights))
    places = [end - height / 2.0 for end, height in zip(ends, heights, strict=True)]
    figure = Figure(figsize=(8, 1.2 + 0.35 * ends[-1]), layout="constrained")
    ax = figure.subplots()
    for outcome, place, reason in zip(outcomes, places, reasons, strict=True):
        if outcome.prior is None:
            text = "\n".join(reason)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
            ax.text(0.5, place, text, ha="center", va="center", size=8, parse_math=False, bbox=box)
            continue
        color = "C1" if METHODS[outcome.method].over_estimates else "C0"
        if outcome.limits:
            ax.plot(outcome.limits, [place, place], color=color, lw=2, clip_on=False)
            if outcome.method == RECOMMENDED:
                ax.axvspan(*outcome.limits, color=color, alpha=0.12, lw=0)
        ax.plot([outcome.prior], [place], "o", color=color, clip_on=False)
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
    for bound in (o.upper_bound for o in outcomes if o.upper_bound is not None):
        ax.axvline(bound, color="0.4", ls="--", lw=1)
        label += (
            f"\nband: {_CONFIDENCE:.0%} interval of {RECOMMENDED}; dashed: certified upper bound"
        )
    if any(o.name.endswith(_MARK) for o in outcomes):
        label += f"\n{_MARK.strip()} too high if the classes overlap"
    ax.set(xlim=(-0.02, 1.02), xlabel=label)
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.grid(axis="x", alpha=0.3)
    return figure
