"""The one-call front door: from two samples to an answer one can read."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.utils import check_random_state

from classprior._diagnostics import about_bound, about_method, diagnose
from classprior._frames import ColumnTreatment, EncodedSamples, as_numbers
from classprior._messages import percent
from classprior._parameters import check_confidence
from classprior._share_bar import share_bar
from classprior._uncertainty import half_sample_interval, realised_interval
from classprior._validation import check_samples
from classprior.priors import (
    AutoResult,
    PriorResult,
    auto_prior,
    divergence_prior,
    elkan_noto_prior,
    pearson_prior,
    penalized_l1,
    scott_blanchard_prior,
)

__all__ = ["METHODS", "PriorEstimate", "estimate_prior"]

#: Short names of the methods: here, on the command line, in tables and legends.
METHODS: dict[str, Callable[..., PriorResult]] = {
    "auto": auto_prior,
    "penl1": penalized_l1,
    "l1": partial(divergence_prior, penalized=False),
    "pen-kl": partial(divergence_prior, divergence="kl"),
    "pen-pearson": partial(divergence_prior, divergence="pearson"),
    "kl": partial(divergence_prior, divergence="kl", penalized=False),
    "pearson": partial(divergence_prior, divergence="pearson", penalized=False),
    "en": elkan_noto_prior,
    "pe": pearson_prior,
    "sb": scott_blanchard_prior,
}
_HALVES = 40


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PriorEstimate(PriorResult):
    """The share of positives among unlabeled rows, and how far it can be trusted.

    Attributes
    ----------
    prior : float
        Share of positives in the unlabeled rows.
    low, high : float
        Interval for the share in the population from which the unlabeled rows were drawn.
    low_count, high_count : float
        Interval for the number of positives among these very unlabeled rows.
    upper_bound : float
        Certified upper bound of the population's share: it assumes nothing about the classes and is
        exact with any number of rows.
    upper_bound_asymptotic : float
        The same where errors add up as they do with many rows: closer to the estimate.
    confidence : float
        Of interval and bound.
    method : str
        Short name of the method.
    n_positive, n_unlabeled : int
        Rows in the two samples.
    interval_from : str
        What the interval comes from.
    warnings : tuple of str
        What speaks against the estimate, and what to do.
    columns : tuple of ColumnTreatment
        Of data frames: the name of each column, what it holds and what was done with it.
    curve : PriorResult
        What the method itself returned.
    evidence : AutoResult
        The scores on which bound and warnings rest, whatever the method.
    """

    low: float
    high: float
    low_count: float
    high_count: float
    upper_bound: float
    upper_bound_asymptotic: float
    confidence: float
    method: str
    interval_from: str
    warnings: tuple[str, ...] = ()
    columns: tuple[ColumnTreatment, ...] = ()
    curve: PriorResult | None = None
    evidence: AutoResult | None = None

    @property
    def level(self) -> str:
        """The confidence in percent, with as many digits as it has."""
        return f"{100.0 * self.confidence:g}%"

    @property
    def count(self) -> float:
        """Expected number of positives among the unlabeled rows."""
        return self.prior * self.n_unlabeled

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        return (
            f"About {percent(self.prior)} of the {self.n_unlabeled:,} unlabeled rows are positive "
            f"({self.count:,.0f} rows)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all but curve and evidence, as plain numbers, text and lists."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        del values["curve"], values["evidence"]
        return {
            **values,
            "count": self.count,
            "prior_pooled": self.prior_pooled,
            "label_frequency": self.label_frequency,
            "warnings": [str(w) for w in self.warnings],
            "columns": [column._asdict() for column in self.columns],
        }

    def to_text(self) -> str:
        """Return the answer as lines of text."""
        lines = [
            self.answer,
            "",
            f"  {self.level} interval, population   {self._interval}",
            f"  {self.level} interval, these rows   {self._interval_of_rows} rows",
            f"  certified upper bound      {self._bounds}",
            f"  method                     {self.method}, from {self.n_positive:,} known positives",
        ]
        lines += [f"\n{remark}: {text}" for remark, text in self._remarks()]
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return the answer as a small fragment of HTML, for light and dark pages."""
        bar = share_bar(self.prior, self.low, self.high, self.upper_bound)
        details = (
            f"{self.level} interval: {self._interval} of the population, "
            f"{self._interval_of_rows} of these rows. Certified upper bound: "
            f"{self._bounds}. Method: {self.method}, from {self.n_positive:,} known positives."
        )
        parts = [f"<p><strong>{html.escape(self.answer)}</strong></p>", bar]
        parts.append(f"<p>{html.escape(details)}</p>")
        parts += [f"<p><strong>{r}:</strong> {html.escape(t)}</p>" for r, t in self._remarks()]
        style = "max-width: 42em; line-height: 1.5"
        return f'<div class="classprior-estimate" style="{style}">{"".join(parts)}</div>'

    def _remarks(self) -> Iterator[tuple[str, str]]:
        left_out = [c for c in self.columns if c.is_left_out]
        if left_out:
            reasons = (f"{c.name!r} ({c.treatment.removeprefix('left out: ')})" for c in left_out)
            yield "Columns left out", f"{', '.join(reasons)}."
        yield from (("Warning", warning) for warning in self.warnings)

    @property
    def _interval(self) -> str:
        return f"{percent(self.low)} to {percent(self.high)}"

    @property
    def _interval_of_rows(self) -> str:
        return f"{self.low_count:,.0f} to {self.high_count:,.0f}"

    @property
    def _bounds(self) -> str:
        asymptotic = percent(self.upper_bound_asymptotic)
        return f"{percent(self.upper_bound)} (with many rows {asymptotic})"

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        return (
            f"PriorEstimate(prior={self.prior:.3f}, low={self.low:.3f}, high={self.high:.3f}, "
            f"upper_bound={self.upper_bound:.3f}, method={self.method!r})"
        )

    def __str__(self) -> str:
        return self.to_text()


def estimate_prior(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    method: str = "auto",
    confidence: float = 0.95,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    **options: Any,
) -> PriorEstimate:
    """Estimate which share of the unlabeled rows is positive, with an interval and warnings.

    Parameters
    ----------
    X_positive : array-like, data frame or CSR matrix of shape (n_positive, n_features)
        Known positives.
    X_unlabeled : array-like, data frame or CSR matrix of shape (n_unlabeled, n_features)
        Rows that may be positive or negative. In data frames, numbers are standardised, gaps
        filled and marked, categories become columns; arrays are taken as they are. Either
        sample may also be a dask collection, a pyarrow dataset or a memory map of more than 1
        GiB: then rows are gone through in blocks.
    method : str, default="auto"
        One of "auto", "penl1", "l1", "pen-kl", "pen-pearson", "kl", "pearson", "en", "pe", "sb".
    confidence : float, default=0.95
        Of the interval and of the upper bound.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.
    n_jobs : int, optional
        Threads or processes; -1 for all cores.
    verbose : int, default=0
        Whether to show progress bars.
    **options : any
        Passed to the method, such as ``n_centers`` or ``classifiers``.

    Returns
    -------
    estimate : PriorEstimate
        Print it.

    See Also
    --------
    AutoPrior : What "auto" runs, as a scikit-learn estimator, with notes on the interval.

    Notes
    -----
    The interval of "auto" comes from resampling its scores. Any other method is refitted to 40
    random halves of both samples, which takes that much longer. The upper bound does not depend on
    the method.

    Rows in blocks are for "auto", which is then fitted to a random sample of at most 20,000 rows of
    each kind, and for "penl1", which takes all of them; a warning says what came from a sample. The
    options ``columns`` and ``checkpoint`` of ``classprior.engines.fit_blocks`` are taken, too.

    Examples
    --------
    >>> from classprior import estimate_prior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> samples = make_overlapping_uniforms(
    ...     overlap=0.25, prior=0.7, n_positive=1000, n_unlabeled=1000, random_state=0
    ... )
    >>> estimate = estimate_prior(*samples, random_state=0)
    >>> round(estimate.prior, 1)
    0.7
    >>> print(estimate)
    About ...% of the 1,000 unlabeled rows are positive (... rows).
    ...
    """
    from classprior.engines._estimate import estimate_blocks, is_out_of_core

    if is_out_of_core(X_positive) or is_out_of_core(X_unlabeled):
        return estimate_blocks(
            X_positive,
            X_unlabeled,
            method=method,
            confidence=confidence,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            **options,
        )
    return estimate_encoded(
        as_numbers(X_positive, X_unlabeled),
        method=method,
        confidence=confidence,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        **options,
    )


def estimate_encoded(
    encoded: EncodedSamples,
    *,
    method: str,
    confidence: float,
    random_state: int | np.random.RandomState | None,
    n_jobs: int | None,
    verbose: int,
    **options: Any,
) -> PriorEstimate:
    """Do what ``estimate_prior`` does, with data frames that are numbers already.

    Parameters
    ----------
    encoded : EncodedSamples
        The samples, and how their columns were treated.
    method, confidence, random_state, n_jobs, verbose, **options : any
        As in ``estimate_prior``.

    Returns
    -------
    estimate : PriorEstimate
        The answer.
    """
    if method not in METHODS:
        raise ValueError(f"Expected a method among {', '.join(METHODS)}, got {method!r}.")
    check_confidence(confidence)
    samples = check_samples(encoded.X_positive, encoded.X_unlabeled)
    encoder = encoded.encoder
    rng = check_random_state(random_state)
    # A number means to the method what it means here, so that both give the same estimate.
    seed = random_state if isinstance(random_state, Integral) else rng.randint(2**31)
    # Bound and warnings are about the data, whatever the method.
    auto = auto_prior(
        *samples,
        confidence=confidence,
        random_state=seed,
        n_jobs=n_jobs,
        verbose=verbose,
        **(options if method == "auto" else {}),
    )
    result: PriorResult = auto
    low, high = auto.low, auto.high
    interval_from = "resampled scores"
    warnings = diagnose(*samples, auto, encoder and encoder.sources_)
    delta = 1.0 - confidence
    if method != "auto":
        result = METHODS[method](*samples, random_state=seed, **options)
        low, high = half_sample_interval(
            partial(_prior_of_half, method, options),
            result.prior,
            *samples,
            delta=delta,
            n_resamples=_HALVES,
            n_jobs=n_jobs,
            rng=rng,
            verbose=verbose,
        )
        interval_from = f"refits to {_HALVES} random halves of both samples"
        warnings = (
            *about_bound(method, result.prior, auto.upper_bound),
            *about_method(method, samples[0].shape[1]),
            *warnings,
        )
    low_realised, high_realised = realised_interval(
        result.prior, low, high, result.n_unlabeled, delta
    )
    return PriorEstimate(
        prior=result.prior,
        low=low,
        high=high,
        low_count=low_realised * result.n_unlabeled,
        high_count=high_realised * result.n_unlabeled,
        upper_bound=auto.upper_bound,
        upper_bound_asymptotic=auto.upper_bound_asymptotic,
        confidence=float(confidence),
        method=method,
        n_positive=result.n_positive,
        n_unlabeled=result.n_unlabeled,
        interval_from=interval_from,
        warnings=warnings,
        columns=encoder.treatments_ if encoder else (),
        curve=result,
        evidence=auto,
    )


def _prior_of_half(
    method: str, options: dict[str, Any], X_positive: Any, X_unlabeled: Any, seed: int
) -> float:
    with catch_warnings():
        simplefilter("ignore")  # what was to be said was said of all rows
        return METHODS[method](X_positive, X_unlabeled, random_state=seed, **options).prior
