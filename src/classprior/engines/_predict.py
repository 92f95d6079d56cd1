"""The classifier's answers for rows in blocks, written to a file as they come."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from classprior._basis import Doubles
from classprior._classifier import PUClassifier
from classprior._messages import listed, progress
from classprior._validation import check_rows, last_step
from classprior._writing import whole_file
from classprior.engines._blocks import Block, Map, Reader, of_all_rows
from classprior.engines._sources import as_blocks

_Write = Callable[[int, Doubles, Any], None]


def predict_blocks(
    classifier: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    n_jobs: int | None = -1,
    map: Map | None = None,
    verbose: int = 0,
) -> int:
    """Write a classifier's answers for rows that need not fit in memory to a file.

    The file has one row for each row of X, in their order: ``row``, its number from 0;
    ``probability``, that it is positive; ``label``, of ``classes_``. It is written beside and
    renamed when it is whole, so that there is never half a file.

    Parameters
    ----------
    classifier : PUClassifier
        Fitted, or a fitted ``Pipeline`` that ends in one.
    X : array, data frame, path, dataset, dask collection or blocks
        The rows, as in ``fit_blocks``.
    path : path
        The file to write: ``.parquet``, ``.feather`` or ``.csv``.
    columns : sequence of str, optional
        The columns to read, for a classifier that was fitted to columns without names. One that
        knows the names of its columns reads those, in the order in which it was fitted to them.
    n_jobs : int, default=-1
        Threads over blocks; -1 for all cores.
    map : callable, optional
        Used in place of threads: ``map(function, blocks)`` returns the results in order.
    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    n_rows : int
        Rows written.

    See Also
    --------
    fit_blocks : Fits the classifier.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import pyarrow.parquet as pq
    >>> from classprior import PUClassifier
    >>> from classprior.engines import fit_blocks, predict_blocks
    >>> rng = np.random.default_rng(0)
    >>> unlabeled = [rng.normal(4 * (i > 2), 1, (300, 2)) for i in range(10)]
    >>> model = fit_blocks(PUClassifier(random_state=0), rng.normal(0, 1, (1000, 2)), unlabeled)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "answers.parquet"
    ...     n_rows = predict_blocks(model, unlabeled, file)
    ...     answers = pq.read_table(file)
    >>> n_rows, answers.column_names
    (3000, ['row', 'probability', 'label'])
    >>> round(float(np.mean(answers["label"].to_numpy() == 1)), 1)
    0.3
    """
    last = last_step(classifier)
    if not isinstance(last, PUClassifier):
        raise TypeError(f"Expected a PUClassifier, got a {type(last).__name__}.")
    check_is_fitted(last)
    columns = _columns_to_read(classifier, X, columns)
    blocks = as_blocks(X, "X", columns=columns, n_jobs=n_jobs, map=map)
    if blocks.n_rows == 0:
        raise ValueError("Expected rows in X, got none.")
    work = _Scores(classifier, replace(blocks.reader, as_frames=classifier is not last))
    row = 0
    with _writer(Path(path)) as write:
        results = of_all_rows(blocks.map(work), blocks)
        for n_rows, probabilities, labels in progress(
            results, blocks.n_rows, "Classifying", verbose, rows_of=_first
        ):
            write(row, probabilities, labels)
            row += n_rows
    return row


def _columns_to_read(classifier: Any, X: Any, columns: Sequence[str] | None) -> list[str] | None:
    """Return the columns that the classifier was fitted to, in that order, if it knows them."""
    if not hasattr(classifier, "feature_names_in_"):
        return None if columns is None else list(columns)
    fitted = list(classifier.feature_names_in_)
    if columns is None:
        return None if as_blocks(X, "X").columns is None else fitted
    if set(columns) != set(fitted):
        raise ValueError(
            f"Expected the columns that the classifier was fitted to, {listed(fitted)}, got "
            f"{listed(columns)}. Leave columns out."
        )
    return fitted


@dataclass(frozen=True, eq=False)
class _Scores:
    """Asks the classifier about the rows of a block."""

    classifier: Any
    reader: Reader

    def __call__(self, block: Block) -> tuple[int, Doubles, Any]:
        model = last_step(self.classifier)
        positive = list(model.classes_).index(model.pos_label_)
        negative = model.classes_[1 - positive]
        parts = [self._probabilities(t, row, block.where) for row, t in self.reader.tables(block)]
        probabilities = np.concatenate([np.empty((0, 2)), *parts])[:, positive]
        labels = np.where(probabilities >= 0.5, model.pos_label_, negative)
        return block.n_rows, probabilities, labels

    def _probabilities(self, table: Any, row: int, where: str) -> Doubles:
        if self.reader.as_frames:  # a Pipeline has its own idea of what a table may hold
            try:
                return self.classifier.predict_proba(table)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{where} of X: {error}") from error
        rows = check_rows(table, f"X, {where}", first_row=row)
        if hasattr(self.classifier, "feature_names_in_"):
            import pandas as pd

            rows = pd.DataFrame(rows, columns=self.classifier.feature_names_in_)
        return self.classifier.predict_proba(rows)


@contextmanager
def _writer(path: Path) -> Iterator[_Write]:
    """Open a file for answers; it gets its name when it is whole, and is gone if it never is."""
    import pyarrow as pa

    open_writer = _writer_class(path)
    with whole_file(path) as file, ExitStack() as stack:
        writers: list[Any] = []

        def write(row: int, probabilities: Doubles, labels: Any) -> None:
            numbers = np.arange(row, row + len(probabilities))
            table = pa.table({"row": numbers, "probability": probabilities, "label": labels})
            if not writers:  # only answers tell the type of labels
                writers.append(stack.enter_context(open_writer(file, table.schema)))
            writers[0].write_table(table)

        yield write


def _writer_class(path: Path) -> Callable[[Any, Any], Any]:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    kinds = {".parquet": pq.ParquetWriter, ".feather": pa.ipc.new_file, ".csv": pa.csv.CSVWriter}
    if path.suffix.lower() not in kinds:
        raise ValueError(
            f"Expected a file that ends in {', '.join(kinds)} to write, got {path.name!r}."
        )
    return kinds[path.suffix.lower()]


def _first(result: tuple[int, Any, Any]) -> int:
    return result[0]
