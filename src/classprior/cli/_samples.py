"""From command-line arguments to two samples."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from classprior._core.messages import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from classprior._core.types import Bools
    from classprior._samples.inputs import FileSource
    from classprior._samples.samples import Samples
    from classprior._samples.sources import Source
    from classprior._tables.blocks import Block
    from classprior._tables.encoder import TableEncoder

_YES = ("1", "true", "yes")
_NO = ("0", "-1", "false", "no")
_MOST_VALUES = 6
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Known positives and unlabeled rows, with notes for the user and settings for the report."""

    positive: Source
    unlabeled: Source
    written: FileSource  # the file with the unlabeled rows
    is_written: Bools | None  # which of its rows are unlabeled; None for all
    columns: list[str] | None  # used even if they look like identifiers; None to choose
    groups: str | None
    weights: str | None
    segments: tuple[str, ...] | None
    notes: tuple[str, ...]
    settings: dict[str, str]

    def encoded(self, seed: int) -> tuple[Samples, TableEncoder]:
        """Return the rows as ``estimate_prior`` encodes them, and the encoder."""
        from classprior._samples.opening import open_samples
        from classprior.estimate import encoded

        opened = open_samples(
            self.positive,
            self.unlabeled,
            seed=seed,
            columns=self.columns,
            groups=self.groups,
            weights=self.weights,
            n_jobs=-1,
        )
        return encoded(opened, self.columns)

    @property
    def is_one_table(self) -> bool:
        """Whether both samples come from one table."""
        return self.is_written is not None


def open_two_samples(
    positive_or_data: str,
    unlabeled: str | None,
    *,
    label: str | None,
    positive: str | None,
    columns: Sequence[str],
    drop: Sequence[str],
    ids: Sequence[str],
    groups: str | None = None,
    weights: str | None = None,
    by: Sequence[str] = (),
    check: Callable[[FileSource], None] | None = None,
    **reading: Any,
) -> TwoSamples:
    """Open the files; ``check`` is called with the one that has the unlabeled rows."""
    from classprior._samples.inputs import settle_decimals

    _check_usage(positive_or_data, unlabeled, label, positive)
    notes: tuple[str, ...] = ()
    if unlabeled is None:
        data = open_file(positive_or_data, "the data", **reading)
        is_positive, note = _known_positives(data, str(label), positive)
        sources: list[Source] = [
            _filtered(data, is_positive, "the known positives"),
            _filtered(data, ~is_positive, "the unlabeled rows"),
        ]
        written, is_written = data, ~is_positive
        notes = (note,) if note else ()
        settings = {"data": positive_or_data, "label": str(label)}
        settings |= {} if positive is None else {"positive": positive}
        drop = [*drop, str(label)]
    else:
        known = open_file(positive_or_data, "the known positives", **reading)
        written, is_written = open_file(unlabeled, "the unlabeled rows", **reading), None
        sources = [known, written]
        settings = {"positive": positive_or_data, "unlabeled": unlabeled}
    if check is not None:
        check(written)
    units = [name for name in (groups, weights) if name is not None]
    segments = _names(by, sources[1].columns or (), sources[1].name)
    names = _columns_to_use(sources, columns, [*drop, *ids], units, segments)
    settle_decimals([written] if unlabeled is None else sources, [*names, *units])
    used = [*names, *units, *segments]
    known_ones, others = (
        source.narrowed(name for name in dict.fromkeys(used) if name in (source.columns or ()))
        for source in sources
    )
    return TwoSamples(
        known_ones,
        others,
        written,
        is_written,
        names if columns else None,
        groups,
        weights,
        tuple(segments) or None,
        notes,
        settings,
    )


def open_file(
    source: str,
    name: str,
    *,
    file_format: str | None = None,
    encoding: str | None = None,
    no_header: bool = False,
    decimal: str | None = None,
    sheet: str | None = None,
) -> FileSource:
    """Open a file, a folder or a pattern given on the command line."""
    from classprior._files.finding import FORMATS, find_files
    from classprior._files.reading import ReadOptions, open_files
    from classprior._samples.inputs import FileSource

    files = find_files(source, file_format)
    if files.format not in FORMATS:
        raise ValueError(f"{files.label} has no column names. Save the data as CSV or Parquet.")
    options = ReadOptions(encoding, not no_header, decimal, sheet, file_format)
    name = f"{name} in {files.label}"
    return FileSource(open_files(files, name, options=options), name, n_jobs=-1)


def _filtered(data: FileSource, mask: Bools, name: str) -> Source:
    """Return the rows of a table selected by a mask."""
    from classprior._samples.sources import LocalSource
    from classprior._tables.blocks import Block
    from classprior._tables.tables import take_rows

    def contents() -> Iterator[Block]:
        for block in data:
            start = block.start
            for table in block.tables():
                places = mask[start : start + table.shape[0]].nonzero()[0]
                rows, numbers = take_rows(table, places), block.number_of(start) + places
                yield Block(block.where, rows, len(places), numbers=numbers)
                start += table.shape[0]

    names = data.columns or ()
    return LocalSource(name, names, len(names), contents, f"{name} in {data.identity}", n_jobs=-1)


def _check_usage(
    positive_or_data: str, unlabeled: str | None, label: str | None, positive: str | None
) -> None:
    """Check that there are either two files, or one file with a label."""
    if unlabeled is None and label is None:
        raise click.UsageError(
            f"There is only one file, {positive_or_data!r}. Add the file with the unlabeled rows, "
            "or use --label to name the column that marks the known positives."
        )
    if unlabeled is not None and (label is not None or positive is not None):
        raise click.UsageError(
            f"{'--label' if label is not None else '--positive'} applies to a single file, but "
            "there are two."
        )
    if positive_or_data == unlabeled == "-":
        raise click.UsageError("Only one of the two samples can be read from standard input.")
    if positive_or_data == unlabeled:
        raise click.UsageError(f"Both samples are the same file, {unlabeled!r}.")


def _known_positives(
    data: FileSource, label: str, positive: str | None
) -> tuple[Bools, str | None]:
    """Return a mask of the known positives, and a note about the other labels, if any."""
    from collections import Counter

    import numpy as np

    from classprior._files.csv import MISSING_VALUES

    _check_names([label], data.columns or (), data.opened.files.label)
    texts = np.concatenate([_as_texts(table[label]) for table in data.opened.as_written()])
    if data.opened.dialect is not None:  # in CSV files, gaps are text, too
        texts[np.isin(texts, [text for text in MISSING_VALUES if text != positive])] = None
    found: dict[str | None, int] = Counter(texts)
    if positive is None:
        positive = _obvious_positive(found, label)
    wanted = {text for text in found if text is not None and _same_label(text, positive)}
    if not wanted:
        raise ValueError(
            f"No row has {positive!r} in column {label!r}, which has {_counted(found)}. Use "
            "--positive to say which value marks known positives."
        )
    others = {text: count for text, count in found.items() if text not in wanted}
    if not others:
        raise ValueError(
            f"There are no unlabeled rows: all rows have {positive!r} in column {label!r}."
        )
    note = None
    if len(others) > 1 or wanted != {positive}:
        matched: dict[str | None, int] = {text: found[text] for text in wanted}
        note = (
            f"In column {label!r}, {_counted(matched)} marks known positives. All other rows count "
            f"as unlabeled: {_counted(others)}."
        )
    return np.isin(texts, list(wanted)), note


def _as_texts(column: Any) -> NDArray[Any]:
    """Return the values of an Arrow column as text, exactly as written in CSV; None if missing."""
    import numpy as np
    import pyarrow as pa

    return np.array(column.cast(pa.string()).to_pylist(), dtype=object)


def _obvious_positive(found: dict[str | None, int], label: str) -> str:
    texts = [text for text in found if text is not None]
    yes = [text for text in texts if any(_same_label(text.lower(), known) for known in _YES)]
    no = [text for text in texts if any(_same_label(text.lower(), known) for known in _NO)]
    if len(yes) != 1 or len(yes) + len(no) != len(texts):
        raise click.UsageError(
            f"Use --positive to say which value of column {label!r} marks known positives. It has "
            f"{_counted(found)}."
        )
    return yes[0]


def _same_label(text: str, wanted: str) -> bool:
    """Return whether two labels are equal; 1.0 equals 1 and True equals true, but 007 is not 7."""
    if {text.lower(), wanted.lower()} & {"true", "false"}:
        return text.lower() == wanted.lower()
    if _PLAIN_NUMBER.fullmatch(text) and _PLAIN_NUMBER.fullmatch(wanted):
        return Decimal(text) == Decimal(wanted)  # floats would round long numbers
    return text == wanted


def _counted(found: dict[str | None, int]) -> str:
    most = sorted(found.items(), key=lambda item: -item[1])
    shown = [
        f"{'nothing' if text is None else repr(text)} in {n:,} row{'' if n == 1 else 's'}"
        for text, n in most[:_MOST_VALUES]
    ]
    more = len(most) - _MOST_VALUES
    return ", ".join(shown) + (f" and {more:,} other values" if more > 0 else "")


def _columns_to_use(
    sources: Sequence[Source],
    columns: Sequence[str],
    drop: Sequence[str],
    units: Sequence[str],
    segments: Sequence[str],
) -> list[str]:
    """Return the feature columns, in the order of the unlabeled rows.

    Groups and weights are columns of both samples, segments of the unlabeled rows.
    """
    positive, unlabeled = (source.columns or () for source in sources)
    place = sources[1].name
    either = list(dict.fromkeys([*unlabeled, *positive]))
    _check_names(units, either, place)
    dropped = {*_names(drop, either, place), *units, *segments}
    chosen = _names(columns, either, place)
    wanted = [n for n in (chosen or either) if n not in dropped]
    for source in sources:
        if absent := [n for n in [*wanted, *units] if n not in (source.columns or ())]:
            raise ValueError(
                f"Both samples need the same columns, but there is no column {listed(absent)} in "
                f"{source.name}. Use --drop to leave columns out, or --columns to choose them."
            )
    if not wanted:
        raise ValueError(f"There is no column left to use: {listed(either)} are left out.")
    return [name for name in unlabeled if name in wanted]


def _names(texts: Sequence[str], known: Sequence[str], place: str) -> list[str]:
    """Split names at commas, except in the name of a column that contains one."""
    names = []
    for text in texts:
        names += [text] if text in known else [part.strip() for part in text.split(",")]
    _check_names(names, known, place)
    return names


def _check_names(names: Sequence[str], known: Sequence[str], place: str) -> None:
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            advice = f"Did you mean {close[0]!r}?" if close else f"It has {listed(known)}."
            raise ValueError(f"There is no column {name!r} in {place}. {advice}")
