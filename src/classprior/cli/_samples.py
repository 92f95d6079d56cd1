"""From command-line arguments to two samples."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from classprior._samples.inputs import FileSource
    from classprior._samples.labeled import TwoTables
    from classprior._samples.sources import Source


def open_two_tables(
    positive_or_data: str,
    unlabeled: str | None,
    *,
    label: str | None,
    positive: str | None,
    negative: str | None = None,
    columns: Sequence[str],
    drop: Sequence[str],
    ids: Sequence[str],
    by: Sequence[str] = (),
    jobs: int = -1,
    check: Callable[[FileSource], None] | None = None,
    **reading: Any,
) -> TwoTables:
    """Open the files; ``check`` is called with the one that has the unlabeled rows."""
    from classprior._samples.labeled import TwoTables, UnclearLabelsError, split_files

    _check_usage(positive_or_data, unlabeled, label, positive, negative)
    if unlabeled is None:
        data = open_file(positive_or_data, "the data", jobs, **reading)
        try:
            two = split_files(data, str(label), positive, negative, jobs)
        except UnclearLabelsError as error:
            raise click.UsageError(f"{error} Use --positive and --negative.") from error
        if (no := two.perhaps_negative) is not None:
            hint = f" Use --negative {shlex.quote(no)}."
            two = replace(two, notes=tuple(note + hint for note in two.notes))
        settings = {"data": positive_or_data, "label": str(label)}
        values = {"positive": positive, "negative": negative}
        settings |= {name: value for name, value in values.items() if value is not None}
        drop = [*drop, str(label)]
    else:
        two = TwoTables(
            positive=open_file(positive_or_data, "the known positives", jobs, **reading),
            unlabeled=open_file(unlabeled, "the unlabeled rows", jobs, **reading),
        )
        settings = {"positive": positive_or_data, "unlabeled": unlabeled}
    known, others = two.positive, two.unlabeled
    if check is not None:
        check(others)
    either = list(dict.fromkeys([*(others.columns or ()), *(known.columns or ())]))
    return replace(
        two,
        columns=_names(columns, either, others.label) or None,
        drop=_names(drop, either, others.label),
        key=_key_columns(ids, known, others) or None,
        segments=_names(by, others.columns or (), others.label),
        settings=settings,
    )


def open_file(
    source: str,
    name: str,
    jobs: int = -1,
    *,
    file_format: str | None = None,
    encoding: str | None = None,
    no_header: bool = False,
    decimal: str | None = None,
    sheet: str | None = None,
    kinds: Mapping[str, str] | None = None,
) -> FileSource:
    """Open a file, a folder or a pattern given on the command line."""
    from classprior._files.finding import FORMATS, find_files
    from classprior._files.reading import ReadOptions, open_files
    from classprior._samples.inputs import FileSource

    files = find_files(source, file_format)
    if files.format not in FORMATS:
        raise ValueError(f"{files.label} has no column names. Save the data as CSV or Parquet.")
    options = ReadOptions(encoding, not no_header, decimal, sheet, file_format)
    opened = open_files(files, name, options=options, kinds=kinds)
    return FileSource(opened, name, n_jobs=jobs)


def _check_usage(
    positive_or_data: str,
    unlabeled: str | None,
    label: str | None,
    positive: str | None,
    negative: str | None,
) -> None:
    """Check that there are either two files, or one file with a label."""
    if unlabeled is None and label is None:
        raise click.UsageError(
            f"There is only one file, {positive_or_data!r}. Add the file with the unlabeled rows, "
            "or use --label to name the column that marks the known positives."
        )
    given = {"--label": label, "--positive": positive, "--negative": negative}
    for option, value in given.items():
        if unlabeled is not None and value is not None:
            raise click.UsageError(f"{option} applies to a single file, but there are two.")
    if positive_or_data == unlabeled == "-":
        raise click.UsageError("Only one of the two samples can be read from standard input.")
    if positive_or_data == unlabeled:
        raise click.UsageError(f"Both samples are the same file, {unlabeled!r}.")


def _key_columns(ids: Sequence[str], known: Source, others: Source) -> list[str]:
    """Return the columns of --id, which both samples must have."""
    names = _names(ids, [*(others.columns or ()), *(known.columns or ())], others.label)
    for source in (known, others):
        if missing := [name for name in names if name not in (source.columns or ())]:
            raise click.UsageError(
                f"There is no column {missing[0]!r} in {source.label}, but --id tells the rows of "
                "both samples apart. Use --drop to only leave a column out."
            )
    return names


def _names(texts: Sequence[str], known: Sequence[str], place: str) -> list[str]:
    """Split names at commas, except in the name of a column that contains one."""
    from classprior._tables.tables import check_columns

    names = []
    for text in texts:
        names += [text] if text in known else [part.strip() for part in text.split(",")]
    check_columns(names, known, place)
    return names
