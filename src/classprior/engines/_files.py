"""Files as blocks: row groups of parquet, batches of Feather and CSV, memory-mapped arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, stat
from pathlib import Path
from typing import Any

import numpy as np

from classprior._csv_files import has_grouped_numbers
from classprior._files import files_below
from classprior._messages import listed
from classprior.engines._blocks import BLOCK_ROWS, Block

_KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".csv": "csv",
    ".npy": "npy",
}
_ROWS_TO_GUESS_FROM = 1000


def is_path(source: Any) -> bool:
    """Tell whether a source is the name of a file or folder.

    Parameters
    ----------
    source : object
        What the user gave.

    Returns
    -------
    answer : bool
        For text and paths.
    """
    return isinstance(source, str | PathLike)


def identity_of_file(path: str) -> str:
    """Return words that change when a file does.

    Parameters
    ----------
    path : str
        Of an existing file.

    Returns
    -------
    identity : str
        Its name, size and time of change.
    """
    found = stat(path)
    return f"{path} of {found.st_size} bytes, changed at {found.st_mtime_ns}"


def open_files(sources: list[Any], name: str) -> Any:
    """Return files, or those in folders, as a pyarrow dataset; an .npy file as a mapped array.

    Parameters
    ----------
    sources : list of paths
        Files and folders. Files of a folder are taken in the order of their names.
    name : str
        What errors call the sample.

    Returns
    -------
    source : pyarrow.dataset.Dataset or numpy.memmap
        Nothing but metadata has been read.
    """
    files = [file for source in sources for file in _files_below(Path(source), name)]
    kinds = {_KINDS.get(file.suffix.lower(), file.suffix) for file in files}
    if len(kinds) != 1 or not kinds <= set(_KINDS.values()):
        raise ValueError(
            f"Expected files of one kind, parquet, Feather, CSV or .npy, as {name}, got "
            f"{listed(sorted(kinds)) or 'an empty folder'}."
        )
    (kind,) = kinds
    if kind == "npy":
        if len(files) > 1:
            raise ValueError(f"Expected a single .npy file as {name}, got {len(files)} files.")
        return np.load(files[0], mmap_mode="r")
    return open_dataset([str(file) for file in files], kind, name)


def _files_below(path: Path, name: str) -> list[Path]:
    if path.is_dir():
        return files_below(path)
    if not path.is_file():
        raise FileNotFoundError(f"Expected a file or folder as {name}, got {path}: no such file.")
    return [path]


def open_dataset(files: list[str], kind: str, name: str, csv_format: Any = None) -> Any:
    """Return files of one kind as a pyarrow dataset.

    Parameters
    ----------
    files : list of str
        At least one.
    kind : str
        One of parquet, feather (also called arrow) and csv.
    name : str
        What errors call the sample.
    csv_format : pyarrow.dataset.CsvFileFormat, optional
        How CSV files are written. By default with commas, points and names.

    Returns
    -------
    dataset : pyarrow.dataset.Dataset
        Nothing but metadata, and the first rows of CSV files, has been read.
    """
    try:
        import pyarrow as pa
        import pyarrow.dataset
    except ImportError as error:
        raise ImportError(
            "Reading files in blocks needs pyarrow: pip install 'classprior[cli]'."
        ) from error
    with _readable(files[0], name):
        dataset = pyarrow.dataset.dataset(files, format=csv_format or kind)
    if kind != "csv":
        return dataset
    with _readable(files[0], name):
        grouped = [] if csv_format is None else _columns_of_grouped_numbers(dataset)
    # Types are guessed from the first rows, where whole numbers may stand in for any number. Those
    # with grouped thousands must not pass for categories: as numbers, they are refused when read.
    fields = [
        field.with_type(pa.float64())
        if pa.types.is_integer(field.type) or pa.types.is_null(field.type) or field.name in grouped
        else field
        for field in dataset.schema
    ]
    return pyarrow.dataset.dataset(files, format=csv_format or kind, schema=pa.schema(fields))


def _columns_of_grouped_numbers(dataset: Any) -> list[str]:
    import pyarrow as pa

    head = dataset.head(_ROWS_TO_GUESS_FROM)
    texts = [field.name for field in head.schema if pa.types.is_string(field.type)]
    return [name for name in texts if has_grouped_numbers(head[name])]


class DatasetBlocks:
    """The blocks of a pyarrow dataset.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        Of any format.
    name : str
        What errors call the sample.
    columns : tuple of str
        The columns to read.
    only : bool
        Whether other columns in a file are an error.
    """

    def __init__(
        self, dataset: Any, name: str, columns: tuple[Any, ...] | None, *, only: bool
    ) -> None:
        self._fragments = list(dataset.get_fragments())
        self._schema = dataset.schema
        self._name = name
        self._columns = list(columns or ())
        self._only = only

    def __call__(self) -> Iterator[Block]:
        """Yield row groups of parquet unread, batches of other files read."""
        for fragment in self._fragments:
            path = getattr(fragment, "path", "table in memory")
            with _readable(path, self._name):
                schema = self._schema_of(fragment)
            names = schema.names
            if set(self._columns) - set(names) or (self._only and len(names) > len(self._columns)):
                raise ValueError(
                    f"Expected the columns {listed(self._columns)} in {path} of {self._name}, as "
                    f"in the first file, got {listed(names)}. Name the columns that all files have."
                )
            if hasattr(fragment, "split_by_row_group"):
                with _readable(path, self._name):
                    groups = fragment.split_by_row_group()
                for group in groups:
                    (info,) = group.row_groups
                    where = f"{path}, row group {info.id}"
                    content = _RowGroup(group, schema, tuple(self._columns), where, self._name)
                    yield Block(where, content, info.num_rows)
            else:
                yield from self._batches(fragment, path)

    def _schema_of(self, fragment: Any) -> Any:
        """Return the columns of a file, and those that the names of its folders tell."""
        from pyarrow.dataset import get_partition_keys

        schema = fragment.physical_schema
        for name in get_partition_keys(fragment.partition_expression):
            if name not in schema.names:
                schema = schema.append(self._schema.field(name))
        return schema

    def _batches(self, fragment: Any, path: str) -> Iterator[Block]:
        import pyarrow as pa

        start, held, n_held = 0, [], 0
        batches = fragment.to_batches(
            schema=self._schema, columns=self._columns, batch_size=BLOCK_ROWS
        )
        while True:
            with _readable(f"{path} after row {start + n_held:,}", self._name):
                batch = next(batches, None)
            if batch is not None:
                held.append(batch)
                n_held += batch.num_rows
            while n_held >= BLOCK_ROWS or (batch is None and n_held):
                table = pa.Table.from_batches(held)
                block, rest = table.slice(0, BLOCK_ROWS), table.slice(BLOCK_ROWS)
                where = f"{path}, rows {start:,} to {start + block.num_rows - 1:,}"
                yield Block(where, block, block.num_rows)
                start += block.num_rows
                held, n_held = rest.to_batches(), rest.num_rows
            if batch is None:
                return

    @property
    def identity(self) -> str:
        """Words that change when a file does."""
        paths = [getattr(fragment, "path", "") for fragment in self._fragments]
        files = [identity_of_file(path) if Path(path).is_file() else path for path in paths]
        digest = hashlib.sha256("\n".join(files).encode()).hexdigest()[:16]
        return f"{len(files)} files from {paths[0]} on ({digest})" if files else "no files"


@dataclass(frozen=True, eq=False)
class _RowGroup:
    """A row group of a parquet file, read when it is worked on."""

    fragment: Any
    schema: Any
    columns: tuple[Any, ...]
    where: str
    name: str

    def tables(self) -> Iterator[Any]:
        import pyarrow as pa

        with _readable(self.where, self.name):
            for batch in self.fragment.to_batches(
                schema=self.schema,
                columns=list(self.columns),
                batch_size=BLOCK_ROWS,
                use_threads=False,
            ):
                yield pa.Table.from_batches([batch])


@contextmanager
def _readable(where: str, name: str) -> Iterator[None]:
    """Say which file of which sample could not be read, and what to do."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"Expected to read {where} of {name}, but the file is no longer there. Files must "
            "stay where they are until the fit is done."
        ) from error
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].removesuffix(".")
        advice = "Write that file again, or leave it out."
        if "conversion error" in reason:
            advice = "Write numbers like 1234.5 and gaps as nothing, or leave that column out."
        raise ValueError(
            f"Expected to read {where} of {name}, got an error: {reason}. {advice}"
        ) from error
