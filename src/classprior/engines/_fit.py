"""Fits estimators to samples that come in blocks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from classprior._classifier import PUClassifier
from classprior._density_ratio import DensityRatio
from classprior._messages import listed, warn
from classprior._parameters import check_confidence
from classprior._uncertainty import realised_interval, resampled_interval
from classprior._validation import last_step
from classprior.engines._blocks import Blocks, Map, Reader
from classprior.engines._checkpoint import Checkpoint, digest
from classprior.engines._roles import SUBSAMPLE, Roles
from classprior.engines._samples import BlockSamples, Resample, stacked_tables
from classprior.engines._sources import as_blocks
from classprior.priors import AutoPrior, PearsonPrior, PenalizedL1Prior

N_RESAMPLES = 48
SUBSAMPLE_ROWS = 20_000
_ROWS_FOR_TRANSFORMERS = 100_000
_IN_BLOCKS = PenalizedL1Prior, PearsonPrior, DensityRatio, AutoPrior, PUClassifier


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
        was stopped. Needs a ``random_state``. It is deleted when the fit is done.
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
    _check_estimator(last, confidence)
    if checkpoint is not None and last.random_state is None:
        raise ValueError(
            "Expected a random_state with a checkpoint, got None: another run would draw other "
            "centres and could not go on. Try random_state=0."
        )
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


class FitInBlocks:
    """Two samples in blocks, and what is fitted to them.

    Parameters
    ----------
    blocks : pair of Blocks
        The positives and the unlabeled rows.
    checkpoint : path or None
        Keeps sums.
    confidence : float or None
        Of an interval.
    verbose : int
        Whether to show progress bars.
    """

    def __init__(
        self,
        blocks: tuple[Blocks, Blocks],
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        confidence: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.blocks = blocks
        self.readers = blocks[0].reader, blocks[1].reader
        self.checkpoint = checkpoint
        self.confidence = confidence
        self.verbose = verbose
        self.result: Any = None
        self._checkpoints: list[Checkpoint] = []

    def done(self) -> None:
        """Delete the checkpoints."""
        for checkpoint in self._checkpoints:
            checkpoint.end()

    def __call__(self, estimator: Any) -> None:
        """Fit the estimator, in place."""
        if isinstance(estimator, PUClassifier):
            self._fit_classifier(estimator)
        elif isinstance(estimator, AutoPrior):
            self._fit_subsample(estimator)
        else:
            self._fit_sums(estimator)
        estimator.classes_, estimator.pos_label_ = np.array([0, 1]), 1
        self._set_columns(estimator)

    def _fit_sums(self, estimator: Any) -> None:
        checkpoint = Checkpoint(self.checkpoint)
        self._checkpoints.append(checkpoint)
        n_resamples = N_RESAMPLES if self.confidence is not None else 0
        samples = self._samples(estimator, None, checkpoint, n_resamples)
        if isinstance(estimator, DensityRatio):
            estimator._fit_samples(samples)
        else:
            self.result = estimator._match(samples)
            estimator._keep(self.result)
            if self.confidence is not None:
                priors = [
                    estimator._match(Resample(samples, number)).prior
                    for number in range(1, 1 + n_resamples)
                ]
                delta = 1.0 - float(self.confidence)
                estimator.low_, estimator.high_ = resampled_interval(
                    self.result.prior, priors, delta
                )

    def _fit_subsample(self, estimator: AutoPrior) -> None:
        if self.checkpoint is not None:
            raise ValueError(
                "Expected no checkpoint for AutoPrior, got one: it is fitted to a random sample, "
                "which is drawn in one short pass. Leave checkpoint out."
            )
        sizes = self.blocks[0].n_rows, self.blocks[1].n_rows
        positive, unlabeled = self.draw(estimator, (SUBSAMPLE_ROWS, SUBSAMPLE_ROWS))
        taken = positive.shape[0], unlabeled.shape[0]
        if taken != sizes:
            warn(subsample_message(taken, sizes))
        result = estimator._estimate(positive, unlabeled, estimator.cv)
        delta = 1.0 - result.confidence
        low, high = realised_interval(result.prior, result.low, result.high, sizes[1], delta)
        of_all = replace(result, n_positive=sizes[0], n_unlabeled=sizes[1])
        estimator._keep(replace(of_all, low_realised=low, high_realised=high))

    def _fit_classifier(self, classifier: PUClassifier) -> None:
        """Fit prior and ratio apart, as the classifier itself does."""
        prior = classifier.prior
        if prior is None:
            prior = PenalizedL1Prior(random_state=classifier.random_state)
        if hasattr(prior, "fit"):
            prior = clone(prior)
            self._part("prior")(prior)
            classifier.prior_ = float(prior.prior_)
        else:
            classifier.prior_ = classifier._given_prior()
        ratio = classifier.ratio
        if ratio is None:
            ratio = DensityRatio(random_state=classifier.random_state)
        if not isinstance(ratio, DensityRatio):
            raise TypeError(
                "Expected a DensityRatio as ratio, the only one that can be fitted in blocks, got "
                f"a {type(ratio).__name__}."
            )
        classifier.ratio_ = clone(ratio)
        self._part("ratio")(classifier.ratio_)
        classifier._odds = np.divide(self.blocks[1].n_rows, self.blocks[0].n_rows)

    def _part(self, name: str) -> FitInBlocks:
        """Return the same samples with a checkpoint of their own."""
        part = FitInBlocks(self.blocks, verbose=self.verbose)
        part.readers, part._checkpoints = self.readers, self._checkpoints
        if self.checkpoint is not None:
            part.checkpoint = f"{os.fspath(self.checkpoint)}.{name}"
        return part

    def fit_steps_before(self, pipeline: Any, last: Any) -> None:
        """Fit the steps before the last to a random sample of all rows, and read through them."""
        n_rows = [blocks.n_rows for blocks in self.blocks]
        share = min(1.0, _ROWS_FOR_TRANSFORMERS / sum(n_rows))
        take = max(1, round(share * n_rows[0])), max(1, round(share * n_rows[1]))
        self.read_through(pipeline[:-1].fit(stacked_tables(self.draw(last, take, raw=True))))

    def read_through(self, transform: Any) -> None:
        """Let a fitted transformer turn tables into the rows that are fitted."""
        positive, unlabeled = self.readers
        self.readers = (
            replace(positive, transform=transform),
            replace(unlabeled, transform=transform),
        )

    def draw(self, estimator: Any, n_rows: tuple[int, int], *, raw: bool = False) -> list[Any]:
        """Return at most so many rows of each sample, drawn uniformly without replacement."""
        roles = Roles(seed_of(estimator.random_state))
        readers = [replace(reader, as_frames=raw) for reader in self.readers]
        samples = self._samples(estimator, (readers[0], readers[1]))
        return [
            samples.gather(s, roles.choose(SUBSAMPLE, s, size, n_rows[s]), raw=raw)
            for s, size in enumerate(samples.sizes)
        ]

    def _samples(
        self,
        estimator: Any,
        readers: tuple[Reader, Reader] | None = None,
        checkpoint: Checkpoint | None = None,
        n_resamples: int = 0,
    ) -> BlockSamples:
        return BlockSamples(
            self.blocks,
            readers or self.readers,
            cv=estimator.cv,
            roles=Roles(seed_of(estimator.random_state)),
            n_resamples=n_resamples,
            checkpoint=checkpoint or Checkpoint(None),
            about=self._about(estimator),
            verbose=self.verbose,
        )

    def _about(self, estimator: Any) -> dict[str, str]:
        """Return what the sums depend on; the rows drawn, as read, are added to it later."""
        settings = [
            f"{name}={digest(value) if isinstance(value, np.ndarray) else repr(value)}"
            for name, value in estimator.get_params().items()
            if name not in ("n_jobs", "thetas", "lams")
        ]
        about = {"settings": f"{type(estimator).__name__}({', '.join(settings)})"}
        if self.confidence is not None:
            about["settings"] += ", resampled"
        for blocks in self.blocks:
            about[f"data in {blocks.name}"] = (
                f"{blocks.n_rows} rows in {len(blocks.sizes)} blocks, {blocks.identity}"
            )
        return about

    def _set_columns(self, estimator: Any) -> None:
        estimator.n_features_in_ = self.blocks[1].n_features
        names = self.blocks[1].columns
        if self.readers[0].transform is not None:
            estimator.n_features_in_ = estimator.centers_.shape[1]
        elif names and all(isinstance(name, str) for name in names):
            estimator.feature_names_in_ = np.array(names, dtype=object)


def subsample_message(taken: tuple[int, int], sizes: tuple[int, int]) -> str:
    """Return what is said where a method was given a random sample of the rows.

    Parameters
    ----------
    taken, sizes : pairs of int
        Rows taken, and rows there are, of the positives and of the unlabeled rows.

    Returns
    -------
    message : str
        One paragraph.
    """
    return (
        f"Fitted to a random sample of {taken[0]:,} of the {sizes[0]:,} known positives and "
        f"{taken[1]:,} of the {sizes[1]:,} unlabeled rows: this method needs its rows in memory. "
        "PenalizedL1Prior takes all of them."
    )


def _check_estimator(estimator: Any, confidence: float | None) -> None:
    if not isinstance(estimator, _IN_BLOCKS):
        raise TypeError(
            f"Expected an estimator that sees the rows through sums ("
            f"{', '.join(kind.__name__ for kind in _IN_BLOCKS)}), got a "
            f"{type(estimator).__name__}, which needs all rows at once. Try PenalizedL1Prior, or "
            "fit it to a random sample of the rows."
        )
    if getattr(estimator, "pos_label", None) not in (None, 1):
        raise ValueError(
            f"Expected no pos_label, as the positives are a sample of their own, got "
            f"{estimator.pos_label!r}. Leave it out."
        )
    if confidence is not None:
        check_confidence(confidence)
        if not isinstance(estimator, PenalizedL1Prior):
            raise TypeError(
                f"Expected a PenalizedL1Prior for an interval, got a {type(estimator).__name__}. "
                "Leave confidence out; AutoPrior has its own."
            )


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


def seed_of(random_state: Any) -> int:
    """Return a number that stands for a random state.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        As the user gave it.

    Returns
    -------
    seed : int
        Nonnegative.
    """
    return int(check_random_state(random_state).randint(2**31))
