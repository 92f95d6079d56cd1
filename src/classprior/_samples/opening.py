"""Opening of two inputs of any type as samples with the same columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from classprior._core.messages import listed
from classprior._samples.checkpoint import Checkpoint, digest
from classprior._samples.inputs import (
    as_source,
    read_together,
    same_columns,
)
from classprior._samples.sample import NEGATIVES, Reader, Sample
from classprior._samples.samples import Samples
from classprior._samples.sources import Source
from classprior._samples.units import RowOptions
from classprior._samples.unordered import keys_without_names
from classprior._tables.parameters import SAMPLES
from classprior._tables.tables import check_columns

_SHARE_OF_VALUES = 0.05  # assumed density of sparse rows where it is unknown


def open_samples(
    X_positive: Any,
    X_unlabeled: Any,
    rows: RowOptions | None = None,
    *,
    X_negative: Any = None,
    seed: int,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    read_options: Mapping[str, Any] | None = None,
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
    n_jobs: int | None = None,
    **how: Any,
) -> Samples:
    """Open two samples, and confirmed negatives, of any type; ``how`` is for ``as_source``."""
    rows = rows or RowOptions()
    how |= {"read_options": read_options, "n_jobs": n_jobs}
    sources = (
        as_source(X_positive, "X_positive", **how),
        as_source(X_unlabeled, "X_unlabeled", **how),
    )
    others = [] if X_negative is None else [as_source(X_negative, "X_negative", **how)]
    if others and rows.weights is not None:
        raise ValueError("Confirmed negatives and weights do not go together. Leave one out.")
    unnamed = keys_without_names([*sources, *others]) if rows.key is None else None
    checkpoint = checkpoint or Checkpoint(None)
    about = _about(sources) if checkpoint.is_active else {}
    for source in sources:
        if source.n_rows == 0:
            raise ValueError(f"{source.name} has no rows (0 samples).")
    for name, given in (("columns", columns), ("drop", drop)):
        if isinstance(given, str):
            raise TypeError(
                f"Expected {name} to be a list of names, got {given!r}. Try [{given!r}]."
            )
    units = [*rows.unit_columns, *rows.key_columns]
    names = _chosen_columns(sources, columns, drop, units, rows.segment_columns)
    _check_order(sources, rows)
    keys = unnamed or (
        *rows.keys_of((sources[0].n_rows, sources[1].n_rows)),
        rows.key_columns or None,
    )
    weighed = [rows.weights] if isinstance(rows.weights, str) else []
    every = read_together(
        [*sources, *others],
        None if names is None else [*names, *weighed],
        text=rows.key_columns,
        local=rows.segment_columns,
    )
    sources, others = (every[0], every[1]), every[2:]
    width = sources[1].n_features if names is None else len(names)
    for source in others:
        if names is not None and source.columns is not None:
            check_columns([*names, *rows.key_columns], source.columns, source.label)
        elif source.n_features != width:
            raise ValueError(
                f"Expected {width} columns in {source.label}, as in the samples, got "
                f"{source.n_features}."
            )
    is_sparse = any(source.is_sparse for source in sources)
    usual_bytes = 8.0 * width * (_SHARE_OF_VALUES if is_sparse else 1.0)
    positive, unlabeled, *negative = (
        Sample(
            kind,
            source,
            Reader(
                source.name,
                names,
                width,
                n_out=width,
                as_sparse=is_sparse,
                row_bytes=usual_bytes
                if source.row_bytes is None or source.n_features != width
                else source.row_bytes,
                key=key,
            ),
            checkpoint if kind in SAMPLES else Checkpoint(None),
            verbose,
        )
        for kind, source, key in zip(
            (*SAMPLES, NEGATIVES),
            (*sources, *others),
            keys,
            strict=False,
        )
        if kind in SAMPLES or source.n_rows > 0
    )
    checkpoint.begin(about)
    each, only = (positive, unlabeled), negative[0] if negative else None
    return Samples(each=each, negative=only, seed=seed, n_jobs=n_jobs).with_units(rows)


def _check_order(sources: Sequence[Source], rows: RowOptions) -> None:
    """Raise if an array belongs to rows without an order; have the order of the others checked."""
    for source in (source for source in sources if not source.has_order):
        if (name := rows.given_as_values) is not None:
            raise TypeError(
                f"Expected the name of a column as {name}, got values: {source.name}, "
                f"{source.identity}, has no order by which they would belong to its rows."
            )
        if rows.unit_columns or rows.segment_columns:
            source.keep_order()


def _chosen_columns(
    sources: tuple[Source, Source],
    columns: Sequence[Any] | None,
    drop: Sequence[Any] | None,
    units: Sequence[str],
    segments: Sequence[str],
) -> tuple[Any, ...] | None:
    """Return the feature columns, in their order in the unlabeled sample."""
    for source in sources:
        # The positives need not have segments.
        wanted = [*(columns or ()), *units, *(segments if source is sources[1] else ())]
        known = source.columns or ()
        if (wanted or drop) and source.columns is None:
            raise ValueError(
                f"{source.label} has no column names to select {listed([*wanted, *(drop or ())])} "
                "by. Pass a data frame, or leave the names out."
            )
        check_columns(wanted, known, source.label)
    either = list(dict.fromkeys(name for s in reversed(sources) for name in s.columns or ()))
    check_columns(drop or (), either, "either sample")
    left_out = [*(drop or ()), *units, *segments]
    if columns is None:
        names = same_columns(sources, left_out)
    else:
        chosen = set(columns) - set(left_out)
        names = tuple(name for name in sources[1].columns or () if name in chosen)
    if names is not None and not names:
        raise ValueError(f"There is no column left to use. Left out: {listed(left_out)}.")
    return names


def _about(sources: tuple[Source, Source]) -> dict[str, str]:
    """Describe the data of a checkpoint."""
    for source in sources:
        if not source.can_resume:
            raise ValueError(
                f"checkpoint does not support {source.name}, {source.identity}, because its blocks "
                "may differ between runs. Leave checkpoint out."
            )
    about = {}
    for source in sources:
        contents = source.identity  # which may count the rows
        about[f"data in {source.name}"] = (
            f"{source.n_rows} rows in {len(source.sizes)} blocks (their sizes: "
            f"{digest(source.sizes)}), {contents}"
        )
    return about
