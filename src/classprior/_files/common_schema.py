"""The columns that files have in common, with types that can hold the values of all."""

from __future__ import annotations

from collections import Counter
from typing import Any

from classprior._core.messages import listed
from classprior._files.finding import CSV, FileSet


def common_schema(schemas: list[Any], labels: list[str], files: FileSet) -> Any:
    """Return the columns of the first file, with types that can hold the values of all files."""
    import pyarrow as pa

    check_names([schema.names for schema in schemas], labels, files)
    common = schemas[0]
    for schema, label in zip(schemas[1:], labels[1:], strict=True):
        try:
            common = pa.unify_schemas([common, schema], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise ValueError(
                f"The files of {files.label} have different column types: "
                f"{_clash(common, schema, label)}. A single non-numeric value turns a column into "
                "text."
            ) from error
    return common


def _clash(common: Any, schema: Any, label: str) -> str:
    """Describe the first column whose types are incompatible."""
    import pyarrow as pa

    for field in common:
        other = schema.field(field.name)
        try:
            pa.unify_schemas([pa.schema([field]), pa.schema([other])], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            return f"column {field.name!r} is {other.type} in {label} and {field.type} elsewhere"
    return f"{label} differs"


def check_names(names: list[list[str]], labels: list[str], files: FileSet) -> None:
    """Raise if column names of the first file repeat, or if other files have other names."""
    twice = sorted(name for name, count in Counter(names[0]).items() if count > 1)
    if twice:
        raise ValueError(
            f"Duplicate column names in {files.label}: {listed(twice)}. Rename the columns in the "
            "file" + (", or read it without a header." if files.format == CSV else ".")
        )
    for others, label in zip(names[1:], labels[1:], strict=True):
        _check_same_names(names[0], others, label, files)


def _check_same_names(expected: list[str], got: list[str], label: str, files: FileSet) -> None:
    if sorted(got) == sorted(expected):
        return
    more = [name for name in got if name not in expected]
    fewer = [name for name in expected if name not in got]
    parts = [f"has an extra {listed(more)}"] if more else []
    parts += [f"has no {listed(fewer)}"] if fewer else []
    raise ValueError(
        f"Expected the same columns in all files of {files.label}, but {label} "
        f"{' and '.join(parts) or 'has one of them twice'}."
    )
