"""The interval of any method: its own, from resampled bins, or from refits to halves."""

from __future__ import annotations

from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from classprior._base import Resampler
from classprior._core.types import Doubles
from classprior._samples.progress import progress
from classprior._samples.samples import Samples
from classprior._scores.intervals import Interval, resampled_interval, sample_interval
from classprior._scores.limits import binomial_limits

_RESAMPLES = 200
REFITS = 40


def interval_of(
    estimator: Any,
    resampler: Resampler | None,
    samples: Samples,
    *,
    delta: float,
    n_resamples: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[Interval, str]:
    """Return the interval of a fitted estimator, and how it was computed.

    Without an interval of its own, bins are resampled if the fit has returned how; otherwise, the
    estimator is refitted to random halves of the bins.
    """
    if hasattr(estimator, "low_"):
        limits = estimator.low_, estimator.high_, estimator.low_sample_, estimator.high_sample_
        return Interval(*limits), "resampled scores"
    if resampler is not None:
        n = n_resamples or _RESAMPLES
        priors = resampler(samples.bins.weights(n))
        how = f"{n} resamples of the bins of all rows"
    else:
        n = n_resamples or REFITS
        priors = _refitted(estimator, samples.subsample(None), n, n_jobs, verbose)
        how = f"refits to {n} random halves of both samples"
    prior, n_unlabeled = estimator.prior_, samples.n_effective[1]
    low, high = resampled_interval(prior, priors, delta)
    # These limits would hold even if every row could be classified.
    least, most = binomial_limits(prior * n_unlabeled, n_unlabeled, delta / 2.0)
    low, high = min(low, float(least)), max(high, float(most))
    in_sample = sample_interval(prior, low, high, n_unlabeled, float(np.var(priors)))
    return Interval(low, high, *in_sample).allowing_for(samples.heaviest), how


def _refitted(
    estimator: Any, samples: Samples, n: int, n_jobs: int | None, verbose: int
) -> Doubles:
    """Return the estimates from random halves of the bins."""
    parts = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_prior_of)(clone(estimator), samples.half(number)) for number in range(n)
    )
    return np.array(list(progress(parts, n, "Interval", verbose)))


def _prior_of(estimator: Any, samples: Samples) -> float:
    with catch_warnings():
        simplefilter("ignore")  # the fit to all rows has warned already
        estimator.fit_opened(samples)
    return float(estimator.prior_)
