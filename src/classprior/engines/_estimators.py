"""Estimators fitted to two samples in blocks: by sums over all rows, or to a sample of them."""

from __future__ import annotations

import os
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from classprior._classifier import PUClassifier
from classprior._density_ratio import DensityRatio
from classprior._messages import warn
from classprior._parameters import check_confidence
from classprior._uncertainty import realised_interval, resampled_interval
from classprior.engines._blocks import Blocks, Reader
from classprior.engines._checkpoint import Checkpoint, digest
from classprior.engines._roles import SUBSAMPLE, Roles
from classprior.engines._samples import BlockSamples, Resample, stacked_tables
from classprior.priors import AutoPrior, PearsonPrior, PenalizedL1Prior

N_RESAMPLES = 48
SUBSAMPLE_ROWS = 20_000
_ROWS_FOR_TRANSFORMERS = 100_000
_IN_BLOCKS = PenalizedL1Prior, PearsonPrior, DensityRatio, AutoPrior, PUClassifier


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
        if checkpoint is not None:
            _check_can_go_on(blocks)
        self.blocks = blocks
        self.readers = blocks[0].reader, blocks[1].reader
        self.checkpoint = checkpoint
        self.confidence = confidence
        self.verbose = verbose
        self.result: Any = None
        self._n_columns: int | None = None  # that a transformer makes
        self._is_named = True
        self._checkpoints: list[Checkpoint] = []

    def done(self) -> None:
        """Delete the checkpoints."""
        for checkpoint in self._checkpoints:
            checkpoint.end()

    def __call__(self, estimator: Any) -> None:
        """Fit the estimator, in place."""
        self._check(estimator)
        if isinstance(estimator, PUClassifier):
            self._fit_classifier(estimator)
        elif isinstance(estimator, AutoPrior):
            self._fit_subsample(estimator)
        else:
            self._fit_sums(estimator)
        estimator.classes_, estimator.pos_label_ = np.array([0, 1]), 1
        self._set_columns(estimator)

    def _check(self, estimator: Any) -> None:
        check_estimator(estimator)
        seed = estimator.random_state
        if self.checkpoint is not None and not isinstance(seed, Integral):
            got = "None" if seed is None else f"a {type(seed).__name__}"
            raise ValueError(
                f"Expected a number as random_state of {type(estimator).__name__} with a "
                f"checkpoint, got {got}: another run would draw other centres and could not go "
                "on. Try random_state=0."
            )
        if self.confidence is not None:
            check_confidence(self.confidence)
            if not isinstance(estimator, PenalizedL1Prior):
                raise TypeError(
                    "Expected a PenalizedL1Prior for an interval, got a "
                    f"{type(estimator).__name__}. Leave confidence out; AutoPrior has its own."
                )

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
        if sparse.issparse(positive) != sparse.issparse(unlabeled):  # both are sparse, as in memory
            positive, unlabeled = sparse.csr_array(positive), sparse.csr_array(unlabeled)
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
        part.readers, part._n_columns = self.readers, self._n_columns
        part._checkpoints = self._checkpoints
        part._is_named = False  # the whole gives its parts arrays, as it does in memory
        if self.checkpoint is not None:
            part.checkpoint = f"{os.fspath(self.checkpoint)}.{name}"
        return part

    def fit_steps_before(self, pipeline: Any, last: Any) -> None:
        """Fit the steps before the last to a random sample of all rows, and read through them."""
        n_rows = [blocks.n_rows for blocks in self.blocks]
        share = min(1.0, _ROWS_FOR_TRANSFORMERS / sum(n_rows))
        take = max(1, round(share * n_rows[0])), max(1, round(share * n_rows[1]))
        drawn = stacked_tables(self.draw(last, take, raw=True))
        transform = pipeline[:-1]
        self.read_through(transform, n_columns=transform.fit_transform(drawn).shape[1])

    def read_through(self, transform: Any, n_columns: int) -> None:
        """Let a fitted transformer turn tables into the rows that are fitted."""
        self._n_columns = n_columns
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
            cv=getattr(estimator, "cv", None),
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
            if name not in ("n_jobs", "thetas")  # which come after the sums
        ]
        about = {"settings": f"{type(estimator).__name__}({', '.join(settings)})"}
        if self.confidence is not None:
            about["settings"] += ", resampled"
        for blocks in self.blocks:
            about[f"data in {blocks.name}"] = (
                f"{blocks.n_rows} rows in {len(blocks.sizes)} blocks (their sizes: "
                f"{digest(blocks.sizes)}), {blocks.identity}"
            )
        return about

    def _set_columns(self, estimator: Any) -> None:
        estimator.n_features_in_ = self._n_columns or self.blocks[1].n_features
        names = self.blocks[1].columns if self._n_columns is None else None
        if self._is_named and names and all(isinstance(name, str) for name in names):
            estimator.feature_names_in_ = np.array(names, dtype=object)


def _check_can_go_on(samples: tuple[Blocks, Blocks]) -> None:
    for blocks in samples:
        if not blocks.can_go_on:
            raise ValueError(
                f"Expected no checkpoint for {blocks.name}, {blocks.identity}, whose blocks may be "
                "others the next time. Leave checkpoint out."
            )


def check_estimator(estimator: Any) -> None:
    """Refuse an estimator that needs all rows at once.

    Parameters
    ----------
    estimator : estimator
        As the user gave it.
    """
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
