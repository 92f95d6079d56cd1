"""Blocks of pyarrow datasets: row groups of Parquet files, or record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from classprior._core.messages import listed
from classprior._files.arrow import blocks_of_batches, readable, unchanged, validated
from classprior._files.common_schema import common_schema
from classprior._files.parquet import ParquetFile
from classprior._files.stored import StoredFile, identity_of, store
from classprior._tables.tables import BLOCK_ROWS, Block


class DatasetBlocks:
    """Iterate over a pyarrow dataset in blocks, whose columns have the same types in all files.

    Parquet row groups are read lazily; other files are read in blocks of ``block_rows`` rows.
    """

    def __init__(self, dataset: Any, name: str, block_rows: int = BLOCK_ROWS) -> None:
        self.columns: tuple[str, ...] = tuple(dataset.schema.names)
        self._fragments = list(dataset.get_fragments())
        self._schema = dataset.schema
        self._name = name
        self._block_rows = block_rows
        self._files = [_local_file(fragment, name) for fragment in self._fragments]

    def __call__(self) -> Iterator[Block]:
        """Iterate over the blocks."""
        for fragment, file, parquet in zip(
            self._fragments, self._files, self._parquet, strict=True
        ):
            with unchanged(file):
                if parquet is not None:
                    yield from parquet.blocks(self._common_schema)
                    continue
                path = _label(fragment, file)
                with readable(path, self._name):
                    self._check_names(fragment.physical_schema.names, path)
                # pyarrow casts to the types of the dataset, safely.
                batches = fragment.to_batches(schema=self._schema, batch_size=self._block_rows)
                yield from blocks_of_batches(
                    map(validated, batches), path, self._name, self._block_rows
                )

    @cached_property
    def _parquet(self) -> list[ParquetFile | None]:
        """The Parquet files, None in place of others."""
        return [
            self._parquet_file(fragment, file) if hasattr(fragment, "split_by_row_group") else None
            for fragment, file in zip(self._fragments, self._files, strict=True)
        ]

    def _parquet_file(self, fragment: Any, file: StoredFile | None) -> ParquetFile:
        from pyarrow.dataset import get_partition_keys

        keys = get_partition_keys(fragment.partition_expression)
        partitions = [self._schema.field(name) for name in keys]
        path = _label(fragment, file)
        parquet = ParquetFile(fragment, path, self._name, file, partitions)
        self._check_names(parquet.schema.names, path)
        return parquet

    @cached_property
    def _common_schema(self) -> Any:
        return common_schema([file for file in self._parquet if file is not None], self._name)

    def _check_names(self, names: Sequence[str], path: str) -> None:
        if set(self.columns) != set(names):
            raise ValueError(
                f"The files of {self._name} have different columns: {listed(self.columns)} in the "
                f"first file, {listed(names)} in {path}."
            )

    @property
    def identity(self) -> str | None:
        """Text that changes when a file changes; None if the rows are not in files."""
        parts = []
        for fragment, file in zip(self._fragments, self._files, strict=True):
            if not hasattr(fragment, "path"):
                return None
            if file is not None:
                parts.append(file.identity)
            else:  # in a store of objects, such as S3
                found = fragment.filesystem.get_file_info(fragment.path)
                parts.append(f"{found.path} of {found.size} bytes, changed at {found.mtime_ns}")
        return identity_of(parts)


def _label(fragment: Any, file: StoredFile | None) -> str:
    return file.label if file else str(getattr(fragment, "path", "table in memory"))


def _local_file(fragment: Any, name: str) -> StoredFile | None:
    """Return the file of a fragment, None if it is in memory or in a store of objects."""
    from pyarrow.fs import LocalFileSystem

    if not isinstance(getattr(fragment, "filesystem", None), LocalFileSystem):
        return None
    with readable(fragment.path, name):
        return store(Path(fragment.path), fragment.path)
