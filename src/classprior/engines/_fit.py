"""Fits estimators to samples that come in blocks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from classprior._messages import listed
from classprior._validation import last_step
from classprior.engines._blocks import Blocks, Map
from classprior.engines._estimators import FitInBlocks, check_estimator
from classprior.engines._sources import as_blocks


def fit_blocks(
    estimator: Any,
    X_positive: Any,
    X_unlabeled: Any,
    *,
    columns: Sequence[str] | None = None,
    confidence: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    n_jobs: int | None = -1,
    map: Map | None = None,
    verbose: int = 0,
) -> Any:
    """Fit an estimator to rows that need not fit in memory.

    The rows are gone through in blocks: once to draw centres and the scale of the data from all of
    them, and once for the sums that the estimator needs. What falls to a row, being a
    centre, a fold, a weight, depends on the seed and on its number in its sample alone, so
    the estimate depends on blocks, threads and machines by no more than rounding.

    Parameters
    ----------
    estimator : estimator
        A ``PenalizedL1Prior``, ``PearsonPrior``, ``DensityRatio`` or ``PUClassifier``; an
        ``AutoPrior``, which is fitted to a random sample of 20,000 rows of each kind and says
        so; or a ``Pipeline`` that ends in one, whose other steps are fitted to a random sample
        of 100,000 rows.
    X_positive, X_unlabeled : array, data frame, path, dataset, dask collection or blocks
        Known positives, and rows that may be positive or negative. Each is a NumPy array or
        memory map, a data frame, a dask array or data frame, a pyarrow dataset; a file or folder
        of parquet, Feather or CSV, an ``.npy`` file, or a list of files; or anything that yields
        arrays or data frames whenever it is gone through. For another cluster, an object
        with ``n_rows``, ``columns`` and ``map_blocks(function)``, which calls the function with
        ``Block`` objects that cover all rows and returns the results in a fixed order.
    columns : sequence of str, optional
        The columns to read. By default all.
    confidence : float, optional
        Given, a ``PenalizedL1Prior`` gets ``low_`` and ``high_``, an interval of that confidence
        from 48 resamples, which takes about three times as long.
    checkpoint : path, optional
        A file that keeps the sums of finished blocks, so that the same call goes on where it
        was stopped. Needs a number as ``random_state``. It is deleted when the fit is done.
    n_jobs : int, default=-1
        Threads over blocks; -1 for all cores.
    map : callable, optional
        Used in place of threads: ``map(function, blocks)`` returns the results in order, such as
        the ``map`` of an executor of processes.
    verbose : int, default=0
        Whether to show a progress bar, with rows per second and the time left.

    Returns
    -------
    estimator : estimator
        The same object, with the attributes that ``fit`` gives it.

    See Also
    --------
    classprior.engines.predict_blocks : The classifier's answers for rows in blocks.

    Notes
    -----
    In place of ``y`` there are two samples: ``classes_`` is [0, 1], with 1 for positives.
    Other estimators need all rows at once and are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior import PenalizedL1Prior
    >>> from classprior.engines import fit_blocks
    >>> rng = np.random.default_rng(0)
    >>> positives = [rng.normal(0, 1, (200, 2)) for _ in range(5)]  # blocks of rows
    >>> unlabeled = [rng.normal(4 * (i > 2), 1, (300, 2)) for i in range(10)]
    >>> fitted = fit_blocks(PenalizedL1Prior(random_state=0), positives, unlabeled)
    >>> round(fitted.prior_, 1)
    0.3
    """
    last = last_step(estimator)
    check_estimator(last)
    blocks = two_samples(X_positive, X_unlabeled, columns=columns, n_jobs=n_jobs, map=map)
    fit = FitInBlocks(blocks, checkpoint=checkpoint, confidence=confidence, verbose=verbose)
    if estimator is not last:
        fit.fit_steps_before(estimator, last)
    fit(last)
    fit.done()
    return estimator


def two_samples(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    columns: Sequence[str] | None,
    n_jobs: int | None,
    map: Map | None,
) -> tuple[Blocks, Blocks]:
    """Return two samples as blocks, if they have rows and the same columns.

    Parameters
    ----------
    X_positive, X_unlabeled, columns, n_jobs, map : any
        As in ``fit_blocks``.

    Returns
    -------
    positive, unlabeled : Blocks
        Nothing but their numbers of rows has been read.
    """
    names = None if columns is None else list(columns)
    how: dict[str, Any] = {"columns": names, "n_jobs": n_jobs, "map": map}
    positive = as_blocks(X_positive, "X_positive", **how)
    unlabeled = as_blocks(X_unlabeled, "X_unlabeled", **how)
    _check_same_columns(positive, unlabeled)
    return positive, unlabeled


def _check_same_columns(positive: Blocks, unlabeled: Blocks) -> None:
    for blocks in (positive, unlabeled):
        if blocks.n_rows == 0:
            raise ValueError(f"Expected rows in {blocks.name}, got none.")
    names = positive.columns, unlabeled.columns
    widths = positive.n_features, unlabeled.n_features
    if widths[0] != widths[1] or (None not in names and names[0] != names[1]):
        got = " and ".join(
            f"{width} columns" + (f" ({listed(columns)})" if columns else "")
            for width, columns in zip(widths, names, strict=True)
        )
        raise ValueError(
            "Expected the same columns in X_positive and X_unlabeled, in the same order, got "
            f"{got}. Name the shared ones in columns."
        )
