"""The command ``classprior compare``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
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
from classprior.priors._methods import METHODS

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from classprior._data.samples import Samples

SCHEMA = "classprior.compare/1"
_PICTURES = (".png", ".svg", ".pdf")
_ENDED = "its process ended unexpectedly, perhaps because it ran out of memory"


class Outcome(NamedTuple):
    """The estimate of a method, or the reason why it failed."""

    method: str
    prior: float | None
    seconds: float
    failure: str = ""  # empty if there is an estimate


@click.command(
    short_help="Compare the estimates of all methods.",
    epilog="""\b
Examples:
  classprior compare frauds.csv transactions.csv
  classprior compare frauds.csv transactions.csv --methods auto,penl1,en --plot methods.png
""",
)
@sample_options
@click.option(
    "--methods",
    default=",".join(METHODS),
    metavar="NAMES",
    show_default="all",
    help="Methods to run, separated by commas.",
)
@click.option(
    "--limit",
    type=click.FloatRange(0, min_open=True),
    default=60,
    show_default=True,
    help="Time limit for each method, in seconds.",
)
@seed_option
@new_file("--plot", purpose="Write a plot of the estimates (.png, .svg or .pdf).")
@json_option
@force_option
@output_options
def compare(
    methods: str,
    limit: float,
    seed: int,
    plot: Path | None,
    wants_json: bool,
    force: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Estimate the share of positives with every method.

    Methods that fail or exceed the time limit are listed with the reason and do not stop the
    others. For an interval and warnings, run classprior estimate with --method.
    """
    chosen = [name.strip() for name in methods.split(",")]
    unknown = [name for name in chosen if name not in METHODS]
    if unknown:
        raise click.UsageError(
            f"Unknown method {unknown[0]!r} in --methods. Choose from {', '.join(METHODS)}."
        )
    if plot and plot.suffix.lower() not in _PICTURES:
        raise click.UsageError(
            f"Unknown format of --plot {plot.name!r}. Use one of {', '.join(_PICTURES)}."
        )
    check_files(plot, force=force, options=reading)
    if plot:
        require("matplotlib")
    two = open_two_samples(**reading)

    from classprior._core.messages import progress

    samples, _ = two.encoded(seed)
    steps = run_methods(chosen, samples.loaded(), seed, limit)
    outcomes = list(progress(steps, len(chosen), "Comparing", progress_wanted(quiet)))
    if wants_json:
        as_json({"schema": SCHEMA, "methods": [outcome._asdict() for outcome in outcomes]})
    else:
        show(_table(outcomes, samples.sizes[1]), "classprior")
    if plot:
        with whole_file(plot) as file:
            _figure(outcomes).savefig(file, format=plot.suffix[1:].lower(), dpi=150)
    if all(outcome.failure for outcome in outcomes):
        raise ValueError("All methods failed.")


def run_methods(
    methods: Sequence[str], samples: Samples, seed: int, limit: float
) -> Iterator[Outcome]:
    """Run methods one after another, in a process that can be killed at the time limit."""
    remaining = list(methods)
    while remaining:
        with _worker(*samples.rows, samples.units) as worker:
            while remaining:
                method = remaining.pop(0)
                start = perf_counter()
                try:
                    worker.send((method, seed))
                    answered = worker.poll(limit)
                    outcome = worker.recv() if answered else None
                except (EOFError, OSError):
                    yield Outcome(method, None, perf_counter() - start, _ENDED)
                    break
                if outcome is None:
                    yield Outcome(method, None, limit, f"stopped after {limit:g} seconds")
                    break  # leaving the block kills the process
                yield outcome


@contextmanager
def _worker(*samples: Any) -> Iterator[Connection]:
    """Start a process that runs methods, and kill it on exit."""
    from multiprocessing import get_context

    # A fork would copy locks held by our threads and could deadlock.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, *samples), daemon=True)
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


def _serve(requests: Connection, *samples: Any) -> None:
    """Run the requested methods in a worker process."""
    import signal

    import_module("classprior.estimate")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent kills this process
    requests.send("ready")
    with suppress(EOFError):  # the parent has exited
        while True:
            method, seed = requests.recv()
            requests.send(_run(method, seed, samples))


def _run(method: str, seed: int, samples: Sequence[Any]) -> Outcome:
    from classprior._data.samples import Samples

    X_positive, X_unlabeled, units = samples
    start = perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator = METHODS[method](random_state=seed)
            estimator._fit_opened(Samples.of_rows(X_positive, X_unlabeled, seed, units=units))
    except Exception as error:
        return Outcome(method, None, perf_counter() - start, " ".join(str(error).split()))
    return Outcome(method, float(estimator.prior_), perf_counter() - start)


def _table(outcomes: Sequence[Outcome], n_unlabeled: int) -> str:
    lines = [f"Estimated share of positives in {n_unlabeled:,} unlabeled rows", ""]
    lines.append("  method         share   seconds")
    failures = []
    for method, prior, seconds, failure in outcomes:
        share = "-" if prior is None else percent(prior)
        remark = "  overestimates if the classes overlap" if METHODS[method].over_estimates else ""
        lines.append(f"  {method:12} {share:>7} {seconds:9.1f}{remark}")
        if failure:
            failures.append(f"\nNo estimate from {method}: {failure}")
    advice = "\nWhere they differ, use auto; classprior estimate gives its interval and warnings."
    return "\n".join([*lines, *map(wrapped, [*failures, advice])])


def _figure(outcomes: Sequence[Outcome]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 1 + 0.35 * len(outcomes)), layout="constrained")
    ax = figure.subplots()
    for place, (_, prior, seconds, failure) in enumerate(outcomes):
        if prior is None:
            ax.text(0.5, place, failure[:60], ha="center", va="center", alpha=0.6)
            continue
        ax.plot([prior], [place], "o", color="C0")
        text = f"   {percent(prior)} in {seconds:.1f} s   "
        ax.text(prior, place, text, ha="left" if prior < 0.6 else "right", va="center")
    ax.set_yticks(range(len(outcomes)), [outcome.method for outcome in outcomes])
    ax.set_ylim(len(outcomes) - 0.5, -0.5)
    ax.set(xlim=(0, 1), xlabel="estimated share of positives in the unlabeled rows")
    ax.grid(axis="x", alpha=0.3)
    return figure
