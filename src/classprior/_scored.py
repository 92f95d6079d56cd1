"""Rows with their probabilities: what is added to them, and how they are written."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classprior._core.messages import listed
from classprior._files.workbook import check_size
from classprior._files.writing import check_texts, dialect_for, table_writer

if TYPE_CHECKING:
    import pyarrow as pa

    from classprior._core.types import Doubles, Ints
    from classprior._samples.inputs import FileSource
    from classprior.classifier import PUClassifier
    from classprior.estimation import Estimation

STDOUT = Path("-")
_ADDED = ("probability", "positive", "score", "rank")
_SLIGHT = 0.02  # a difference that needs no explanation
_MOST_EXPLAINED = 10_000  # rows with reasons; more would take minutes
_CSV, _SHEET = "csv", "sheet"


def added_columns(n_reasons: int = 0) -> list[str]:
    """Return the names of the new columns."""
    return [*_ADDED, *(f"reason_{number}" for number in range(1, n_reasons + 1))]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """The scores of all rows, and what follows from them."""

    scores: Doubles
    probabilities: Doubles
    ranks: Ints
    reasons: Mapping[str, Any] = field(default_factory=dict)  # texts of all rows by new column

    @classmethod
    def of(cls, classifier: PUClassifier, scores: Doubles) -> ScoredRows:
        """Return the probabilities and ranks of rows with these scores."""
        from classprior.engines import ranks_of

        return cls(scores, classifier.probability(scores), ranks_of(scores))

    def with_reasons(self, estimation: Estimation, n_reasons: int) -> ScoredRows:
        """Return the same with the reasons for the rows that rank first."""
        import numpy as np

        rows = np.flatnonzero(self.ranks <= self.n_explained)
        texts = np.full((n_reasons, len(self.ranks)), None, dtype=object)
        for row, reasons in zip(rows, estimation.reasons(rows, n_reasons), strict=True):
            texts[: len(reasons), row] = [reason.text for reason in reasons]
        names = added_columns(n_reasons)[len(_ADDED) :]
        return replace(self, reasons=dict(zip(names, texts, strict=True)))

    def columns(self, start: int, n_rows: int) -> dict[str, Any]:
        """Return the new columns of some rows."""
        import numpy as np

        rows = slice(start, start + n_rows)
        p, scores = self.probabilities[rows], self.scores[rows]
        # More digits for small probabilities, so that none is rounded to 0.
        probability = np.where(p < 0.001, p.round(9), p.round(6))
        values = (probability, scores >= 0.0, scores.round(6), self.ranks[rows])
        added = dict(zip(_ADDED, values, strict=True))
        return added | {name: texts[rows] for name, texts in self.reasons.items()}

    @property
    def n_likely(self) -> int:
        """Number of rows that are more likely positive than not."""
        return int((self.scores >= 0.0).sum())

    @property
    def n_expected(self) -> int:
        """Number of rows that are estimated to be positive."""
        return round(self.probabilities.sum())

    @property
    def n_explained(self) -> int:
        """Number of rows with reasons."""
        return min(max(self.n_likely, self.n_expected), _MOST_EXPLAINED)

    def summary(self, out: Path) -> str:
        """Return how many rows are likely positive, and why these are not as many as estimated."""
        n_likely, expected = self.n_likely, self.n_expected
        text = f"{n_likely:,} of {len(self.scores):,} rows are more likely positive than not"
        if n_likely < (1.0 - _SLIGHT) * expected:
            text += (
                f", and all probabilities add up to {expected:,} positives: the others are spread "
                "over rows with lower probabilities"
            )
        elif n_likely > (1.0 + _SLIGHT) * expected:
            text += (
                f", but all probabilities add up to only {expected:,} positives: some rows with "
                "high probabilities are negative"
            )
        if self.reasons:
            text += f". The {self.n_explained:,} rows that rank first have reasons"
        return f"{text}." + ("" if out == STDOUT else f" The scored rows are in {out}")


def check_rows(out: Path, rows: FileSource, *, n_reasons: int = 0) -> None:
    """Check, before the work, that the rows can be written with the new columns."""
    added = added_columns(n_reasons)
    if present := [name for name in added if name in (rows.columns or ())]:
        raise ValueError(
            f"{rows.opened.files.label} already has a column {listed(present)}, which would be "
            "added to the output. Rename it."
        )
    file_format = _format(out, rows)
    if file_format == _SHEET:
        check_size(rows.n_rows, len(rows.columns or ()) + len(added), out.name)
    if rows.opened.dialect is None and file_format == _CSV:  # what CSV files hold, they can hold
        for block in rows:
            n_rows = 0
            for table in block.tables():
                check_texts(table, block.where, n_before=n_rows)
                n_rows += table.num_rows


def _format(out: Path, rows: FileSource) -> str:
    from classprior._files.finding import OUTPUTS, WRITTEN, format_of

    if out == STDOUT:
        return _CSV
    return format_of(out, OUTPUTS) or (
        rows.opened.files.format if rows.opened.files.format in WRITTEN else _CSV
    )


def write_rows(out: Path, rows: FileSource, scored: ScoredRows, *, sort: bool = False) -> None:
    """Write the rows as they were read, with the new columns; by rank, or in their order."""
    import numpy as np
    import pyarrow as pa

    file_format = _format(out, rows)
    dialect = dialect_for(out, rows.opened.dialect)
    tables = _with_scores(rows, scored, as_text=file_format == _CSV)
    if sort:
        tables = iter([pa.concat_tables(tables).take(pa.array(np.argsort(scored.ranks)))])
    with table_writer(None if out == STDOUT else out, file_format, dialect, sys.stdout) as write:
        for table in tables:
            write(table)


def _with_scores(rows: FileSource, scored: ScoredRows, *, as_text: bool) -> Iterator[pa.Table]:
    """Yield the rows as they were read, with the new columns."""
    import pyarrow as pa

    read = start = 0
    for table in rows.opened.as_written(as_text=as_text):
        if rows.mask is not None:
            mask = rows.mask[read : read + table.num_rows]
            read += table.num_rows
            table = table.filter(pa.array(mask))
        for name, values in scored.columns(start, table.num_rows).items():
            kind = pa.string() if values.dtype == object else None  # all may be missing
            table = table.append_column(name, pa.array(values, kind))
        start += table.num_rows
        yield table
