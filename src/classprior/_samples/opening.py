"""Opening of two inputs of any type as samples with the same columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from classprior._core.messages import listed
from classprior._samples.checkpoint import Checkpoint, digest
from classprior._samples.inputs import as_source, same_columns, settle_decimals
from classprior._samples.reader import Reader
from classprior._samples.sample import Sample
from classprior._samples.samples import Samples
from classprior._samples.segments import column_names_of
from classprior._samples.sources import Source
from classprior._tables.parameters import SAMPLES

_SHARE_OF_VALUES = 0.05  # assumed density of sparse rows where it is unknown


def open_samples(
    X_positive: Any,
    X_unlabeled: Any,
    *,
    seed: int,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    cv: Any = None,
    groups: Any = None,
    weights: Any = None,
    segments: Any = None,
    every: str | None = None,
    own_positives: bool = False,
    read_options: Mapping[str, Any] | None = None,
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
    n_jobs: int | None = None,
    **how: Any,
) -> Samples:
    """Open two samples of any type; ``how`` is passed to ``as_source``."""
    how |= {"read_options": read_options, "n_jobs": n_jobs}
    sources = (
        as_source(X_positive, "X_positive", **how),
        as_source(X_unlabeled, "X_unlabeled", **how),
    )
    checkpoint = checkpoint or Checkpoint(None)
    about = _about(sources) if checkpoint.is_kept else {}
    for source in sources:
        if source.n_rows == 0:
            raise ValueError(f"{source.name} has no rows (0 samples).")
    for name, given in (("columns", columns), ("drop", drop)):
        if isinstance(given, str):
            raise TypeError(
                f"Expected {name} to be a list of names, got {given!r}. Try [{given!r}]."
            )
    units = [name for name in (groups, weights) if isinstance(name, str)]
    names = _chosen_columns(sources, columns, drop, units, column_names_of(segments))
    weighed = [weights] if isinstance(weights, str) else []
    settle_decimals(sources, None if names is None else [*names, *weighed])
    width = sources[1].n_features if names is None else len(names)
    is_sparse = any(source.is_sparse for source in sources)
    positive, unlabeled = (
        Sample(
            kind,
            source,
            Reader(
                source.name,
                names,
                width,
                n_out=width,
                as_sparse=is_sparse,
                row_bytes=_row_bytes(source, width, is_sparse),
            ),
            checkpoint,
            verbose,
        )
        for kind, source in zip(SAMPLES, sources, strict=True)
    )
    checkpoint.begin(about)
    return Samples(each=(positive, unlabeled), seed=seed, n_jobs=n_jobs).with_units(
        groups=groups,
        weights=weights,
        segments=segments,
        every=every,
        own_positives=own_positives,
        cv=cv,
    )


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
                f"{source.name} has no column names to select {listed([*wanted, *(drop or ())])} "
                "by. Pass a data frame, or leave the names out."
            )
        if missing := [name for name in wanted if name not in known]:
            raise ValueError(
                f"There is no column {listed(missing)} in {source.name}. It has {listed(known)}."
            )
    either = {name for source in sources for name in source.columns or ()}
    if missing := [name for name in drop or () if name not in either]:
        raise ValueError(f"There is no column {listed(missing)} to drop in either sample.")
    left_out = {*(drop or ()), *units, *segments}
    if columns is not None:
        chosen = set(columns) - set(drop or ())
        return tuple(name for name in sources[1].columns or () if name in chosen)
    if not left_out:
        return same_columns(sources)
    positive, unlabeled = (
        source.narrowed(name for name in source.columns or () if name not in left_out)
        for source in sources
    )
    return same_columns((positive, unlabeled))


def _row_bytes(source: Source, width: int, is_sparse: bool) -> float:
    if source.row_bytes is not None and source.n_features == width:
        return source.row_bytes
    return 8.0 * width * (_SHARE_OF_VALUES if is_sparse else 1.0)


def _about(sources: tuple[Source, Source]) -> dict[str, str]:
    """Describe the data of a checkpoint."""
    for source in sources:
        if not source.can_resume:
            raise ValueError(
                f"checkpoint does not support {source.name}, {source.identity}, because its blocks "
                "may differ between runs. Leave checkpoint out."
            )
    return {f"data in {source.name}": _identity(source) for source in sources}


def _identity(source: Source) -> str:
    contents = source.identity  # which may count the rows
    sizes = f"{source.n_rows} rows in {len(source.sizes)} blocks (their sizes: "
    return f"{sizes}{digest(source.sizes)}), {contents}"
