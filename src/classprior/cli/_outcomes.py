"""Methods side by side: each runs in a process that can be killed at a time limit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from classprior._core.messages import percent
from classprior._headline import TYPICAL
from classprior.cli._program import explained, in_options
from classprior.priors._methods import METHODS, RECOMMENDED

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from classprior._samples.samples import Samples

CONFIDENCE = 0.95  # of the intervals
MARK = " *"  # behind methods that overestimate if the classes overlap
#: How to follow the advice of warnings here, where it differs from that of other commands.
_REMEDIES = {"subtypes": "See what subtypes finds (--methods auto,subtypes)."}
_ENDED = "its process ended unexpectedly, perhaps because it ran out of memory"


class Outcome(NamedTuple):
    """The estimate of a method, or the reason why it failed."""

    method: str
    prior: float | None
    seconds: float
    failure: str = ""  # why there is no estimate, or no interval although one was asked for
    low: float | None = None
    high: float | None = None
    n_fitted: tuple[int, int] | None = None  # rows of each sample, if not all were used
    # Of the recommended method only:
    answer: str = ""
    meaning: str = ""  # as in PriorEstimate
    upper_bound: float | None = None
    bound_name: str = "upper bound"
    bound_holds_if: str = TYPICAL
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The method, marked if its estimate may be too high."""
        marked = self.prior is not None and METHODS[self.method].over_estimates
        return self.method + (MARK if marked else "")

    @property
    def limits(self) -> tuple[float, ...]:
        """The ends of the interval, or nothing."""
        return () if self.low is None or self.high is None else (self.low, self.high)

    @property
    def interval(self) -> str:
        """The interval in percent, or nothing."""
        return range_text(self.limits) if self.limits else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome with the documented keys of the JSON output."""
        # What stands beside the methods is left out.
        beside = ("answer", "meaning", "upper_bound", "bound_name", "bound_holds_if", "warnings")
        values = {key: value for key, value in self._asdict().items() if key not in beside}
        recommended = self.method == RECOMMENDED
        return {**values, "recommended": recommended, "summary": METHODS[self.method].summary}


class WorkerRows(NamedTuple):
    """What a worker process gets: rows as numbers, and what is known about rows and columns."""

    X_positive: Any
    X_unlabeled: Any
    units: Any
    encoder: Any  # that made the numbers
    tables: list[Any]  # the drawn rows of both samples before encoding
    max_weight: Any = None  # that a row or group can have
    X_negative: Any = None  # confirmed negatives
    keys: tuple[Any, Any] = (None, None)  # that tell the rows of each sample apart, if any

    @classmethod
    def of(cls, raw: Samples, columns: Sequence[str] | None, max_weight: Any = None) -> WorkerRows:
        """Return the rows of opened samples, as ``estimate_prior`` encodes them."""
        from classprior._tables.encoder import TableEncoder

        encoder = TableEncoder(keep=tuple(columns or ()))
        samples = raw.encoded(encoder).loaded()
        max_rows = METHODS[RECOMMENDED]().max_rows
        tables, negative = raw.subsample_tables(max_rows), samples.negative_rows(max_rows)
        keys = samples.each[0].reader.key, samples.each[1].reader.key
        return cls(*samples.rows, samples.units, encoder, tables, max_weight, negative, keys)


def run_methods(
    methods: Sequence[str], rows: WorkerRows, seed: int, limit: float, intervals: bool = False
) -> Iterator[Outcome]:
    """Run methods one after another, in a process that can be killed at the time limit."""
    remaining = list(methods)
    while remaining:
        with _worker(rows) as worker:
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
        worker.send((method, seed, wants_interval, limit))
        while worker.poll(max(0.0, start + limit - perf_counter())):
            sent = worker.recv()
            if sent is None:
                return outcome, True
            outcome = sent
        failure = f"stopped after {limit:g} seconds (--limit)"
    except (EOFError, OSError):
        failure = _ENDED
    return outcome._replace(failure=failure, seconds=perf_counter() - start), False


@contextmanager
def _worker(rows: WorkerRows) -> Iterator[Connection]:
    """Start a process that runs methods, and kill it on exit."""
    from multiprocessing import get_context

    # A fork would copy locks held by our threads and could deadlock.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, rows), daemon=True)
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


def _serve(requests: Connection, rows: WorkerRows) -> None:
    """Run the requested methods in a worker process."""
    import signal

    import_module("classprior.estimate")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent kills this process
    requests.send("ready")
    with suppress(EOFError):  # the parent has exited
        while True:
            for outcome in _run(rows, *requests.recv()):
                requests.send(outcome)
            requests.send(None)


def _run(
    rows: WorkerRows, method: str, seed: int, wants_interval: bool, limit: float
) -> Iterator[Outcome]:
    """Yield the estimate as soon as it is known, then the estimate with its interval."""
    from classprior._samples.sample import Sample
    from classprior._samples.samples import Samples
    from classprior._scores.resampling import interval_of
    from classprior.priors._base import UnweightedPriorEstimator as Unweighted

    start = perf_counter()
    outcome = Outcome(method, None, 0.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X_negative = rows.X_negative
            negative = None if X_negative is None else Sample.of_negatives(X_negative)
            samples = Samples.of_rows(
                *(rows.X_positive, rows.X_unlabeled, seed, rows.keys),
                units=rows.units,
                negative=negative,
            )
            if samples.units.are_weighted and issubclass(METHODS[method].estimator, Unweighted):
                raise ValueError("weights are not supported (--weights)")
            most = METHODS[method].compared_rows
            if most is not None and max(samples.bins.n_counted) > most:
                samples = samples.subsample(most)
                outcome = outcome._replace(n_fitted=samples.sizes)
            estimator = METHODS[method](random_state=seed)
            if method == RECOMMENDED:
                estimator.set_params(max_weight=rows.max_weight)
            resampler = estimator.fit_opened(samples)
            outcome = outcome._replace(prior=float(estimator.prior_))
            if wants_interval:
                seconds = perf_counter() - start
                yield outcome._replace(seconds=seconds)
                if resampler is None and not hasattr(estimator, "low_"):
                    _check_time(seconds, limit)
                interval, _ = interval_of(estimator, resampler, samples, delta=1.0 - CONFIDENCE)
                outcome = outcome._replace(low=float(interval.low), high=float(interval.high))
            if method == RECOMMENDED:
                outcome = _judged(outcome, estimator, samples, rows)
    except Exception as error:
        outcome = outcome._replace(failure=explained(error))
    yield outcome._replace(seconds=perf_counter() - start)


def _check_time(seconds: float, limit: float) -> None:
    """Raise an error if refits to halves of the rows would exceed the limit."""
    from classprior._scores.resampling import REFITS

    expected = 0.5 * REFITS * seconds
    if seconds + expected > limit:
        raise ValueError(f"{REFITS} refits would take about {expected:.0f} seconds (--limit)")


def _judged(outcome: Outcome, estimator: Any, samples: Samples, rows: WorkerRows) -> Outcome:
    """Add what the recommended method says in words: the answer and the warnings."""
    from classprior._judging import judge

    found = judge(
        samples, lambda _: rows.tables, rows.encoder, outcome.method, estimator, estimator
    )
    return outcome._replace(
        answer=found.answer,
        meaning=str(found.meaning),
        upper_bound=float(found.upper_bound),
        bound_name=found.bound_name,
        bound_holds_if=found.bound_holds_if,
        warnings=tuple(in_options(warning, _REMEDIES) for warning in found.warnings),
    )


def range_text(shares: Iterable[float]) -> str:
    """Return the smallest and the largest share in percent."""
    low, *_, high = sorted(shares)
    return f"{percent(low)} to {percent(high)}"
