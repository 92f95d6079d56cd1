"""Fits and predictions on data larger than memory, in threads, processes or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from classprior._core.messages import listed, warn
from classprior._core.threads import single_threaded
from classprior._core.types import Doubles, Ints
from classprior._files.writing import answer_writer, refuse_input
from classprior._samples.checkpoint import Checkpoint, digest
from classprior._samples.inputs import FileSource, as_source, read_together
from classprior._samples.opening import open_samples
from classprior._samples.progress import progress
from classprior._samples.sample import Reader, located
from classprior._samples.sources import Map, Source, of_all_rows
from classprior._samples.units import RowOptions
from classprior._tables.checks import last_step
from classprior._tables.parameters import seed_of
from classprior._tables.tables import (
    BLOCK_ROWS,
    Block,
    Span,
    as_frame,
    check_columns,
    rows_of,
    stacked_tables,
)
from classprior.classifier import PUClassifier

__all__ = ["Block", "fit_blocks", "predict_blocks"]

_ROWS_FOR_TRANSFORMERS = 100_000


def fit_blocks(
    estimator: Any,
    X_positive: Any,
    X_unlabeled: Any,
    *,
    columns: Sequence[str] | None = None,
    weights: Any = None,
    groups: Any = None,
    key: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    read_options: Mapping[str, Any] | None = None,
    block_rows: int = BLOCK_ROWS,
    n_jobs: int | None = -1,
    map: Map | None = None,
    verbose: int = 0,
) -> Any:
    """Fit an estimator to data that need not fit in memory.

    The result is the same as with ``fit`` and ``fit_samples``: each row's role (center, fold,
    weight) depends only on the seed and the row index or key, and sums over blocks do not depend on
    where they are computed.

    Parameters
    ----------
    estimator : estimator
        A classprior estimator, or a ``Pipeline`` that ends in one; the other steps of a
        ``Pipeline`` are fitted to a random sample of 100,000 rows. ``PenalizedL1Prior``,
        ``PearsonPrior`` and ``DensityRatio`` use all rows in one pass. ``AutoPrior`` fits its
        classifiers to a random sample of ``max_rows`` and scores all rows in one pass; so does
        the default ``PUClassifier``. Other estimators need all rows in memory.
    X_positive, X_unlabeled : array, data frame, path, dataset, query, dask collection or blocks
        Known positives, and rows that may be positive or negative. Each is one of:

        - an array, a memory map or a data frame;
        - a dask array or data frame;
        - a pyarrow dataset;
        - a DuckDB relation, a polars ``LazyFrame``, or any other object with
          ``__arrow_c_stream__``, which is run again in each pass. Its rows have no order: without
          ``key``, they are told apart by their contents;
        - a file, a folder, a glob pattern or a list of files (CSV, Parquet, Feather, JSON
          lines, ``.npy``, spreadsheets);
        - an iterable of arrays or data frames that can be iterated over repeatedly;
        - for another cluster, an object with ``n_rows``, ``columns`` and ``map_blocks(function)``.
          That method calls the function with ``Block`` objects that cover all rows, and returns
          the results in a fixed order.
    columns : sequence of str, optional
        Columns to read. By default, all.
    weights : str or pair of array-likes, optional
        Weight of each row, such as one over the probability with which it was sampled: a column
        name, or one array per sample. Only ratios of weights within a sample matter.
    groups : str or pair of array-likes, optional
        Group of each row: a column name, or one array per sample.
    key : str, sequence of str or pair of array-likes, optional
        What tells each row of a sample from the others, such as the number of a payment: one or
        more column names, or one array per sample. It then takes the place of the row index, so
        that the result does not depend on the order of the rows.
    checkpoint : path, optional
        File for the sums of finished blocks. After an interruption, the same call resumes from
        this file; it is deleted when the fit has finished. Requires an integer ``random_state``.
    read_options : mapping, optional
        Options for files: ``encoding``, ``header`` (False if CSV files have no header),
        ``decimal`` (the decimal mark of CSV files, "." or ","; by default inferred from all files),
        ``file_format`` ("csv", "parquet", "arrow", "json" or "sheet"; by default inferred from the
        file names) and ``sheet`` (the name of a sheet; by default the first). For queries and
        streams: ``spool``, whether to copy them to a temporary file first, for those that can be
        read only once, take long, or change.
    block_rows : int, default=32768
        Number of rows per block, if the source has no blocks of its own.
    n_jobs : int, default=-1
        Number of threads; -1 uses all cores.
    map : callable, optional
        Replaces the threads: ``map(function, blocks)`` returns the results in order, like the
        ``map`` method of a ``ProcessPoolExecutor``.
    verbose : int, default=0
        Whether to show a progress bar with rows per second and remaining time.

    Returns
    -------
    estimator : estimator
        The fitted estimator (the same object).

    See Also
    --------
    classprior.engines.predict_blocks : Predict with a classifier in blocks.

    Notes
    -----
    Two samples replace ``y``: ``classes_`` is [0, 1], with 1 for positives.

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
    if not hasattr(last, "fit_opened"):
        raise TypeError(f"Expected a classprior estimator, got a {type(last).__name__}.")
    saved = open_checkpoint(checkpoint, last)
    samples = open_samples(
        X_positive,
        X_unlabeled,
        RowOptions(weights=weights, groups=groups, key=key, folds=last.cv),
        seed=seed_of(last.random_state),
        columns=columns,
        read_options=read_options,
        checkpoint=saved,
        verbose=verbose,
        block_rows=block_rows,
        n_jobs=n_jobs,
        map=map,
    )
    names = samples.columns
    if estimator is not last and len(estimator) > 1:
        tables = samples.draw_tables(_ROWS_FOR_TRANSFORMERS)
        is_known = np.repeat([1, 0], [table.shape[0] for table in tables])
        steps = estimator[:-1]
        drawn = steps.fit_transform(as_frame(stacked_tables(tables), names), is_known)
        estimator.steps[:-1] = steps.steps  # a Pipeline with memory fits clones
        samples, names = samples.read_through(steps, drawn, as_frames=True), None
    last.fit_opened(samples.settled(), names)
    saved.end()
    return estimator


def open_checkpoint(
    path: str | os.PathLike[str] | None, estimator: Any, more: str = ""
) -> Checkpoint:
    """Return the checkpoint of a fit; raise if the fit does not support one."""
    if path is None:
        return Checkpoint(None)
    name, seed = type(estimator).__name__, estimator.random_state
    if not getattr(estimator, "takes_checkpoint", False):
        raise ValueError(
            f"{name} does not support checkpoint, because it does not sum over all rows. Leave "
            "checkpoint out, or use PenalizedL1Prior."
        )
    if not isinstance(seed, Integral):
        got = "None" if seed is None else f"a {type(seed).__name__}"
        raise ValueError(
            f"checkpoint requires an integer random_state in {name}, got {got}: otherwise, "
            "another run would draw different centers and could not resume. Try random_state=0."
        )
    return Checkpoint(path, f"{_settings_of(estimator)}{more}")


def _settings_of(estimator: Any) -> str:
    """Return the parameters that the sums depend on, as text."""
    settings = [
        f"{name}={_as_text(value)}"
        for name, value in estimator.get_params().items()
        if name not in ("n_jobs", "thetas", "verbose")  # do not affect the sums
    ]
    return f"{type(estimator).__name__}({', '.join(settings)})"


def _as_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return digest(value)
    if isinstance(value, tuple | list) and any(isinstance(part, np.ndarray) for part in value):
        return digest(*value)
    return repr(value)


def predict_blocks(
    classifier: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    read_options: Mapping[str, Any] | None = None,
    block_rows: int = BLOCK_ROWS,
    n_jobs: int | None = -1,
    map: Map | None = None,
    verbose: int = 0,
) -> int:
    """Write predictions for data that need not fit in memory to a file.

    The file has one row for each row of ``X``, in the same order, with four columns: ``row``, the
    row index; ``probability``, the probability that the row is positive; ``score``, which orders
    the rows with fewer ties, 0 being a probability of one half; and ``label``, the predicted label
    in ``classes_``. It is written under a temporary name and renamed when complete.

    Parameters
    ----------
    classifier : PUClassifier
        A fitted classifier, or a fitted ``Pipeline`` that ends in one.
    X : array, data frame, path, dataset, query, dask collection or blocks
        The rows, as in ``fit_blocks``. The ``map_blocks`` method of an object must return the
        results in the order of the rows; a query must return its rows in the same order each time.
    path : path
        Output file; its name ends in ``.parquet``, ``.feather`` or ``.csv``.
    columns : sequence of str, optional
        Columns to read, for a classifier that was fitted without column names. By default, the
        columns that the classifier was fitted with.
    read_options : mapping, optional
        Options for files, as in ``fit_blocks``.
    block_rows : int, default=32768
        Number of rows per block, if the source has no blocks of its own.
    n_jobs : int, default=-1
        Number of threads; -1 uses all cores.
    map : callable, optional
        Replaces the threads: ``map(function, blocks)`` returns the results in order.
    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    n_rows : int
        Number of rows written.

    See Also
    --------
    fit_blocks : Fit the classifier in blocks.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import pyarrow.parquet as pq
    >>> from classprior import DensityRatio, PUClassifier
    >>> from classprior.engines import fit_blocks, predict_blocks
    >>> rng = np.random.default_rng(0)
    >>> unlabeled = [rng.normal(4 * (i > 2), 1, (300, 2)) for i in range(10)]
    >>> model = PUClassifier(prior=0.3, ratio=DensityRatio(), random_state=0)
    >>> model = fit_blocks(model, rng.normal(0, 1, (1000, 2)), unlabeled)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "answers.parquet"
    ...     n_rows = predict_blocks(model, unlabeled, file)
    ...     answers = pq.read_table(file)
    >>> n_rows, answers.column_names
    (3000, ['row', 'probability', 'score', 'label'])
    >>> round(float(np.mean(answers["label"].to_numpy() == 1)), 1)
    0.3
    """
    model = last_step(classifier)
    if not isinstance(model, PUClassifier):
        raise TypeError(f"Expected a PUClassifier, got a {type(model).__name__}.")
    check_is_fitted(model)
    source = as_source(
        X,
        "X",
        block_rows=block_rows,
        read_options=read_options,
        kinds=fitted_kinds(classifier),
        n_jobs=n_jobs,
        map=map,
    )
    source.keep_order()
    refuse_input(Path(path), X, (read_options or {}).get("file_format"))
    row = 0
    with answer_writer(Path(path)) as write:
        for scores in scores_of(classifier, source, columns, verbose):
            write(row, model.probability(scores), scores, _labels(model, scores))
            row += len(scores)
    return row


def scores_of(
    classifier: Any, source: Source, columns: Sequence[str] | None = None, verbose: int = 0
) -> Iterator[Doubles]:
    """Yield the scores of each block, in order; positive values mean the positive class."""
    if source.n_rows == 0:
        raise ValueError(f"{source.name} has no rows.")
    fitted = _fitted_columns(classifier)
    names = _columns_to_read(fitted, source, columns)
    (source,) = read_together([source], names)
    _warn_of_empty_columns(classifier, source)
    width = source.n_features if names is None else len(names)
    expected = len(fitted) if fitted and names else getattr(classifier, "n_features_in_", width)
    if expected != width:
        raise ValueError(
            f"Expected {source.label} to have the {expected} columns that the classifier was "
            f"fitted with, got {width}."
        )
    is_pipeline = classifier is not last_step(classifier)
    reader = Reader(source.name, names, width, as_frames=is_pipeline, as_sparse=source.is_sparse)
    parts = source.map(Scores(classifier, reader))
    results = of_all_rows(parts, source, in_order=True)
    for _, scores in progress(
        results, source.n_rows, "Classifying", verbose, rows_of=lambda result: result[0][1]
    ):
        yield scores


def ranks_of(scores: Doubles) -> Ints:
    """Return the rank of each row: 1 for the highest score; equal scores keep their order."""
    # Last digits may depend on the blocks in which rows are scored.
    order = np.argsort(-scores.round(9), kind="stable")
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def _labels(model: PUClassifier, scores: Doubles) -> Any:
    positive = list(model.classes_).index(model.pos_label_)
    return model.classes_[np.where(scores >= 0.0, positive, 1 - positive)]


def _fitted_columns(classifier: Any) -> list[Any] | None:
    """Return the columns that a classifier needs, in order, if they had names in fit."""
    names = getattr(classifier, "feature_names_in_", None)
    if names is None:
        return None
    return list(fitted_kinds(classifier) or names)  # an encoder does not need all of them


def fitted_kinds(classifier: Any) -> dict[str, str] | None:
    """Return the kinds of the columns that a classifier needs, if its encoder knows them."""
    first = classifier[0] if classifier is not last_step(classifier) else classifier
    return getattr(first, "kinds_", None)


def _warn_of_empty_columns(classifier: Any, source: Source) -> None:
    """Warn of columns without values in files, if single values were missing in fit already.

    The encoder warns of the others.
    """
    if fitted_kinds(classifier) and isinstance(source, FileSource):
        for name in sorted(classifier[0].gappy_numbers & set(source.opened.empty_columns)):
            warn(f"Column {name!r} of {source.opened.files.label} has no values.")


def _columns_to_read(
    fitted: list[Any] | None, source: Source, columns: Sequence[str] | None
) -> tuple[Any, ...] | None:
    """Return the columns to read, in order, if the source has names."""
    if fitted is None:
        return source.columns if columns is None else tuple(columns)
    if source.columns is None:
        return None
    why = ", but the model was fitted with it"
    check_columns(fitted, source.columns, source.label, why)
    if columns is not None and set(columns) != set(fitted):
        raise ValueError(
            f"Expected the columns that the classifier was fitted with, {listed(fitted)}, "
            f"got {listed(columns)}. Leave columns out."
        )
    return tuple(fitted)


@dataclass(frozen=True, eq=False)
class Scores:
    """Computes the scores of a block; positive values mean the positive class."""

    classifier: Any
    reader: Reader
    n_jobs: int | None = None  # threads within a block

    def __call__(self, block: Block) -> tuple[Span, Doubles]:
        parts = [np.empty(0)]
        if self.reader.as_frames:  # the steps of a Pipeline may accept more than numbers
            for row, table, _ in self.reader.tables(block):
                with located(self.reader.name, block, row):
                    parts.append(self._of_rows(table))
        else:
            slices = (
                rows_of(part.rows, start, start + BLOCK_ROWS)
                for part in self.reader(block)
                for start in range(0, part.rows.shape[0], BLOCK_ROWS)
            )
            with single_threaded():
                parts += Parallel(n_jobs=self.n_jobs, prefer="threads")(
                    delayed(self._of_rows)(rows) for rows in slices
                )
        model = last_step(self.classifier)
        sign = 1.0 if model.pos_label_ == model.classes_[1] else -1.0
        return block.span, sign * np.concatenate(parts)

    def _of_rows(self, rows: Any) -> Doubles:
        names = getattr(self.classifier, "feature_names_in_", None)
        return self.classifier.decision_function(as_frame(rows, names))
