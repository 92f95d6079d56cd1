"""Intervals of methods that have none of their own: resampled bins, or refits to halves."""

from __future__ import annotations

from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from classprior._base import Resampler
from classprior._samples.progress import progress
from classprior._samples.samples import Samples
from classprior._scores.intervals import binomial_limits, resampled_interval, sample_interval

_RESAMPLES, _REFITS = 200, 40


def resampled_intervals(
    estimator: Any,
    resampled: Resampler | None,
    samples: Samples,
    *,
    delta: float,
    n_resamples: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[tuple[float, float], tuple[float, float], str]:
    """Resample bins if the fit has returned how, else refit to random halves of the bins.

    Returns the intervals for the population and for the sample, and how they were computed.
    """
    if resampled is not None:
        n = n_resamples or _RESAMPLES
        priors = resampled(samples.bins.weights(n))
        source = f"{n} resamples of the bins of all rows"
    else:
        n = n_resamples or _REFITS
        samples = samples.loaded()
        parts = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_prior_of)(clone(estimator), samples.half(number)) for number in range(n)
        )
        priors = np.array(list(progress(parts, n, "Interval", verbose)))
        source = f"refits to {n} random halves of both samples"
    prior, n_unlabeled = estimator.prior_, samples.sizes[1]
    low, high = resampled_interval(prior, priors, delta)
    least = binomial_limits(prior, n_unlabeled, delta)
    low, high = min(low, least[0]), max(high, least[1])
    in_sample = sample_interval(prior, low, high, n_unlabeled, float(np.var(priors)))
    return (low, high), in_sample, source


def _prior_of(estimator: Any, samples: Samples) -> float:
    with catch_warnings():
        simplefilter("ignore")  # the fit to all rows has warned already
        estimator._fit_opened(samples)
    return float(estimator.prior_)
