"""The columns that files have in common, with types that can hold the values of all."""

from __future__ import annotations

from collections import Counter
from typing import Any

from classprior._core.messages import OptionError, listed
from classprior._files.dialect import NO_HEADER, is_number
from classprior._files.finding import CSV, SHEET, FileSet

_WITH_HEADER = (CSV, SHEET)  # formats whose files may lack column names


def common_schema(schemas: list[Any], labels: list[str], files: FileSet) -> Any:
    """Return the columns of the first file, with types that can hold the values of all files."""
    import pyarrow as pa

    check_names([schema.names for schema in schemas], labels, files)
    common = {field.name: field for field in schemas[0]}
    for schema, label in zip(schemas[1:], labels[1:], strict=True):
        for name, field in common.items():
            other = schema.field(name)
            wider = common_field(field, other)
            if wider is None:
                raise ValueError(
                    f"The files of {files.label} have different column types: column {name!r} is "
                    f"{other.type} in {label} and {field.type} elsewhere. A single non-numeric "
                    "value turns a column into text."
                )
            common[name] = wider
    return pa.schema(list(common.values()))


def common_field(one: Any, other: Any) -> Any:
    """Return a field that can hold the values of both; None if there is no such type."""
    import pyarrow as pa

    if one.equals(other):
        return one
    try:
        both = [pa.schema([_without_codes(field)]) for field in (one, other)]
        return pa.unify_schemas(both, promote_options="permissive").field(0)
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None


def _without_codes(field: Any) -> Any:
    """Return a field with the type of its values, also if they are stored as codes."""
    import pyarrow as pa

    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field


def check_names(names: list[list[str]], labels: list[str], files: FileSet) -> None:
    """Raise if column names of the first file repeat, or if other files have other names."""
    twice = sorted(name for name, count in Counter(names[0]).items() if count > 1)
    if twice:
        raise OptionError(
            f"Duplicate column names in {files.label}: {listed(twice)}. Rename the columns in the "
            "file" + (f", if they are names. {NO_HEADER}" if files.format in _WITH_HEADER else "."),
            "header" if files.format in _WITH_HEADER else None,
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
    is_headless = files.format in _WITH_HEADER and any(map(is_number, more))
    raise OptionError(
        f"Expected the same columns in all files of {files.label}, but {label} "
        f"{' and '.join(parts) or 'has one of them twice'}."
        + (f" Is its first line data? {NO_HEADER}" if is_headless else ""),
        "header" if is_headless else None,
    )
