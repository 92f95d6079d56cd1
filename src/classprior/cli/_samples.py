"""From what stands on the command line to two samples."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from classprior._core.messages import listed

if TYPE_CHECKING:
    from classprior._core.types import Bools
    from classprior._data.blocks import Block, Source
    from classprior._data.encoder import TableEncoder
    from classprior._data.files import FileSource
    from classprior._data.samples import Samples

_YES = ("1", "true", "yes")
_NO = ("0", "-1", "false", "no")
_MOST_VALUES = 6


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Known positives and unlabeled rows, with what the user should know of them."""

    positive: Source
    unlabeled: Source
    written: FileSource  # the file with the unlabeled rows
    is_written: Bools | None  # which of its rows they are; None for all
    columns: list[str] | None  # that are used even if they look like identifiers
    group: str | None
    notes: tuple[str, ...]
    settings: dict[str, str]

    def encoded(self, seed: int) -> tuple[Samples, TableEncoder]:
        """Return the rows as ``estimate_prior`` sees them, and the encoder that made them so."""
        from classprior._data.opening import open_samples
        from classprior.estimate import encoded

        opened = open_samples(
            self.positive,
            self.unlabeled,
            seed=seed,
            columns=self.columns,
            groups=self.group,
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
    group: str | None,
    refused: Sequence[str] = (),
    **reading: Any,
) -> TwoSamples:
    """Open the files; ``refused`` are names of columns that the unlabeled rows must not have."""
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
    _refuse_columns(written, refused)
    names = _columns_to_use(sources, columns, [*drop, *ids], group)
    used = [*names, *([group] if group else [])]
    return TwoSamples(
        sources[0].narrowed(used),
        sources[1].narrowed(used),
        written,
        is_written,
        names if columns else None,
        group,
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
    refused: Sequence[str] = (),
) -> FileSource:
    """Open the files that a name on the command line means."""
    from classprior._data.files import FORMATS, find_files, open_files

    files = find_files(source, file_format)
    if files.format not in FORMATS:
        raise ValueError(
            f"Expected a table with names of columns, got {files.label}. Save it as CSV or parquet."
        )
    opened: Any = open_files(
        files, f"{name} in {files.label}", encoding=encoding, header=not no_header, n_jobs=-1
    )
    _refuse_columns(opened, refused)
    return opened


def _refuse_columns(source: FileSource, refused: Sequence[str]) -> None:
    if present := [name for name in refused if name in (source.columns or ())]:
        raise ValueError(
            f"Column {listed(present)} of {source.files.label} has the name of a column that is "
            "added. Rename it in the file."
        )


def _filtered(data: FileSource, mask: Bools, name: str) -> Source:
    """Return the rows of a table that are marked."""
    from classprior._data.blocks import Block, LocalSource
    from classprior._data.work import take_rows

    def contents() -> Iterator[Block]:
        for block in data:
            start = block.start
            for table in block.tables():
                places = mask[start : start + table.shape[0]].nonzero()[0]
                yield Block(block.where, take_rows(table, places), len(places))
                start += table.shape[0]

    names = data.columns or ()
    return LocalSource(name, names, len(names), contents, f"{name} in {data.identity}", n_jobs=-1)


def _check_usage(
    positive_or_data: str, unlabeled: str | None, label: str | None, positive: str | None
) -> None:
    """Refuse what can be neither two samples nor one table with a label."""
    if unlabeled is None and label is None:
        raise click.UsageError(
            "Expected two files, known positives and unlabeled rows, or one file and --label, the "
            f"column that marks the known positives. Got {positive_or_data!r} only."
        )
    if unlabeled is not None and (label is not None or positive is not None):
        raise click.UsageError(
            "Expected two files, or one file with --label and --positive. Got two files with "
            f"{'--label' if label is not None else '--positive'}."
        )
    if positive_or_data == unlabeled == "-":
        raise click.UsageError("Only one of the two samples can be standard input.")
    if positive_or_data == unlabeled:
        raise click.UsageError(f"Expected two different files, got {unlabeled!r} twice.")


def _known_positives(
    data: FileSource, label: str, positive: str | None
) -> tuple[Bools, str | None]:
    """Return which rows are known positives, and what was decided about the others."""
    from collections import Counter

    import numpy as np
    import pandas as pd

    from classprior._data.columns import texts_of

    _check_names([label], data.columns or (), data.files.label)
    tables = (table for block in data for table in block.tables())
    texts = np.concatenate([texts_of(table[label].to_pandas()) for table in tables])
    found: dict[str | None, int] = Counter(texts)
    if positive is None:
        positive = _obvious_positive(found, label)
    wanted = {text for text in found if text is not None and _same_label(text, positive)}
    if not wanted:
        raise ValueError(
            f"Found no row with {positive!r} in column {label!r}, but {_counted(found)}. Say which "
            "of them marks known positives with --positive."
        )
    others = {text: count for text, count in found.items() if text not in wanted}
    if not others:
        raise ValueError(
            f"Found no unlabeled row beside those with {positive!r} in column {label!r}."
        )
    note = f"all other rows are taken as unlabeled; column {label!r} has {_counted(others)} there."
    return pd.Series(texts).isin(wanted).to_numpy(), note if len(others) > 1 else None


def _obvious_positive(found: dict[str | None, int], label: str) -> str:
    texts = [text for text in found if text is not None]
    yes = [text for text in texts if text.lower() in _YES]
    no = [text for text in texts if text.lower() in _NO]
    if len(yes) != 1 or len(yes) + len(no) != len(texts):
        raise click.UsageError(
            f"Say with --positive which value of column {label!r} marks known positives: it has "
            f"{_counted(found)}."
        )
    return yes[0]


def _same_label(text: str, wanted: str) -> bool:
    """Tell whether a value is the one wanted; 1.0 is 1 and True is true."""
    if text in ("True", "False"):
        return text.lower() == wanted.lower()
    try:
        return text == wanted or float(text) == float(wanted)
    except ValueError:
        return False


def _counted(found: dict[str | None, int]) -> str:
    most = sorted(found.items(), key=lambda item: -item[1])
    shown = [f"{'nothing' if t is None else repr(t)} in {n:,} rows" for t, n in most[:_MOST_VALUES]]
    more = len(most) - _MOST_VALUES
    return ", ".join(shown) + (f" and {more:,} other values" if more > 0 else "")


def _columns_to_use(
    sources: Sequence[Source], columns: Sequence[str], drop: Sequence[str], group: str | None
) -> list[str]:
    """Return the columns to learn from, in the order of the unlabeled rows."""
    positive, unlabeled = (source.columns or () for source in sources)
    place = sources[1].name
    either = list(dict.fromkeys([*unlabeled, *positive]))
    if group is not None:
        _check_names([group], either, place)
        drop = [*drop, group]
    dropped = set(_names(drop, either, place))
    chosen = _names(columns, either, place)
    wanted = [n for n in (chosen or either) if n not in dropped]
    for source in sources:
        needed = [*wanted, *([group] if group else [])]
        if absent := [name for name in needed if name not in (source.columns or ())]:
            raise ValueError(
                f"Expected the same columns in both samples, got none called {listed(absent)} in "
                f"{source.name}. Leave columns out with --drop, or name those to use with "
                "--columns."
            )
    if not wanted:
        raise ValueError(f"There is no column to learn from: {listed(either)} are left out.")
    return [name for name in unlabeled if name in wanted]


def _names(texts: Sequence[str], known: Sequence[str], place: str) -> list[str]:
    """Return the columns that options name; a comma may separate names or be part of one."""
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
            raise ValueError(f"Found no column {name!r} in {place}. {advice}")
