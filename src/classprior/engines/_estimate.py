"""What ``estimate_prior`` does where the rows are not in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar
from warnings import catch_warnings, filterwarnings

import numpy as np

from classprior._diagnostics import about_bound, about_method
from classprior._frames import EncodedSamples, as_numbers
from classprior._messages import Caution
from classprior._uncertainty import realised_interval
from classprior.engines._blocks import Blocks, Map
from classprior.engines._checkpoint import Checkpoint
from classprior.engines._estimators import N_RESAMPLES, SUBSAMPLE_ROWS, FitInBlocks, seed_of
from classprior.engines._fit import two_samples
from classprior.estimate import PriorEstimate, estimate_encoded
from classprior.priors import PenalizedL1Prior, PriorResult

Result = TypeVar("Result", bound=PriorResult)
METHODS_IN_BLOCKS = ("auto", "penl1")
LARGE_MAP = 2**30  # bytes from which a memory map is not pulled into memory


def is_out_of_core(X: Any) -> bool:
    """Tell whether rows are of a kind that is gone through in blocks without being asked to.

    Parameters
    ----------
    X : object
        What the user gave.

    Returns
    -------
    answer : bool
        For dask collections, pyarrow datasets, memory maps of more than 1 GiB, and rows that
        another engine holds.
    """
    if isinstance(X, np.memmap):
        return X.nbytes > LARGE_MAP
    kinds = "__dask_graph__", "get_fragments", "map_blocks"
    return isinstance(X, Blocks) or any(hasattr(X, kind) for kind in kinds)


def estimate_blocks(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    method: str,
    confidence: float,
    random_state: int | np.random.RandomState | None,
    n_jobs: int | None,
    verbose: int,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    map: Map | None = None,
    **options: Any,
) -> PriorEstimate:
    """Estimate the share of positives from rows that come in blocks.

    A random sample of at most 20,000 rows of each kind is drawn in a pass of its own. From it come
    the treatment of named columns, the upper bound and the warnings; with "auto" the estimate,
    too. With "penl1" that comes from all rows, its interval from 48 resamples of them.

    Parameters
    ----------
    X_positive, X_unlabeled : any
        As in ``fit_blocks``.
    method : str
        "auto" or "penl1".
    confidence, random_state, n_jobs, verbose : any
        As in ``estimate_prior``.
    columns : sequence of str, optional
        The columns to read.
    keep : sequence of str, default=()
        Columns that are no identifiers, whatever they look like.
    checkpoint, map : any
        As in ``fit_blocks``.
    **options : any
        Passed to the method.

    Returns
    -------
    estimate : PriorEstimate
        Its warnings say what comes from a sample.
    """
    if method not in METHODS_IN_BLOCKS:
        raise ValueError(
            f"Expected a method that takes rows in blocks, 'auto' or 'penl1', got {method!r}, "
            "which needs all rows in memory. Try 'penl1', or give a random sample of the rows."
        )
    if checkpoint is not None and method == "auto":
        raise ValueError(
            "Expected the method 'penl1' with a checkpoint, got 'auto', which is fitted to a "
            "random sample, drawn in one short pass. Try 'penl1', or leave the checkpoint out."
        )
    Checkpoint(checkpoint).begin({})  # a file that will not do is refused before all else
    n_jobs = -1 if n_jobs is None else n_jobs
    blocks = two_samples(X_positive, X_unlabeled, columns=columns, n_jobs=n_jobs, map=map)
    seed = seed_of(random_state)
    fit = FitInBlocks(blocks, verbose=verbose, checkpoint=checkpoint)
    drawn = fit.draw(
        PenalizedL1Prior(random_state=seed), (SUBSAMPLE_ROWS, SUBSAMPLE_ROWS), raw=True
    )
    sizes = blocks[0].n_rows, blocks[1].n_rows
    taken = drawn[0].shape[0], drawn[1].shape[0]
    encoded = as_numbers(*drawn, keep=keep)
    of_sample = estimate_encoded(
        encoded,
        method="auto",
        confidence=confidence,
        random_state=seed,
        n_jobs=n_jobs,
        verbose=verbose,
        **(options if method == "auto" else {}),
    )
    if method == "auto":
        whole = _of_all_rows(of_sample, sizes)
        whole = replace(whole, curve=of_sample.curve and _of_all_rows(of_sample.curve, sizes))
        found = _sampled(
            "the estimate and all else here come",
            taken,
            sizes,
            "Use 'penl1' for an estimate from all rows.",
        )
        return _with_interval(whole, of_sample.low, of_sample.high, found)
    estimator = PenalizedL1Prior(random_state=seed, **options)
    fit.confidence = confidence
    _fit_encoded(fit, estimator, encoded)
    curve = fit.result
    whole = replace(
        _of_all_rows(of_sample, sizes),
        prior=curve.prior,
        method=method,
        interval_from=f"{N_RESAMPLES} resamples of all rows",
        curve=curve,
        warnings=(*about_method(method, curve.centers.shape[1]), *of_sample.warnings),
    )
    found = (
        *about_bound(method, whole.prior, whole.upper_bound),
        *_sampled(
            "the upper bound and the warnings come",
            taken,
            sizes,
            "The bound holds all the same; from more rows it could be closer.",
        ),
    )
    return _with_interval(whole, estimator.low_, estimator.high_, found)


def _of_all_rows(result: Result, sizes: tuple[int, int]) -> Result:
    return replace(result, n_positive=sizes[0], n_unlabeled=sizes[1])


def _fit_encoded(fit: FitInBlocks, estimator: PenalizedL1Prior, encoded: EncodedSamples) -> None:
    if encoded.encoder is not None:
        fit.read_through(encoded.encoder, encoded.X_positive.shape[1])
    with catch_warnings():
        # Said block by block of levels too rare for the sample, which rare levels are pooled with.
        filterwarnings("ignore", "Column .* has values that the fitted data did not have")
        fit(estimator)
    fit.done()


def _sampled(
    what: str, taken: tuple[int, int], sizes: tuple[int, int], advice: str
) -> tuple[Caution, ...]:
    if taken == sizes:
        return ()
    return (
        Caution(
            f"Sampled: {what} from a random sample of {taken[0]:,} of the {sizes[0]:,} known "
            f"positives and {taken[1]:,} of the {sizes[1]:,} unlabeled rows.",
            advice,
        ),
    )


def _with_interval(
    estimate: PriorEstimate, low: float, high: float, found: tuple[Caution, ...]
) -> PriorEstimate:
    """Return the estimate with an interval, for the population and for these very rows."""
    delta = 1.0 - estimate.confidence
    rows = realised_interval(estimate.prior, low, high, estimate.n_unlabeled, delta)
    return replace(
        estimate,
        low=low,
        high=high,
        low_count=rows[0] * estimate.n_unlabeled,
        high_count=rows[1] * estimate.n_unlabeled,
        warnings=(*estimate.warnings, *found),
    )
