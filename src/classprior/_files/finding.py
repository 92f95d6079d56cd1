"""Finding files: paths, patterns and folders, and the format of what is found."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from classprior._core.messages import OptionError, listed

CSV, PARQUET, ARROW, NPY, JSON, SHEET = "csv", "parquet", "arrow", "npy", "json", "sheet"
#: File format by suffix, of tables whose format can be written, and of arrays.
SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), CSV),
    **dict.fromkeys((".csv.gz", ".tsv.gz", ".tab.gz", ".txt.gz"), CSV),
    **dict.fromkeys((".parquet", ".pq"), PARQUET),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), ARROW),
    ".npy": NPY,
}
_PACKED = "", ".gz", ".bz2", ".zst"
#: File format by suffix, for reading.
_INPUTS = {
    **SUFFIXES,
    **{end + packed: JSON for end in (".jsonl", ".ndjson") for packed in _PACKED},
    **dict.fromkeys((".xlsx", ".ods"), SHEET),
    **dict.fromkeys(_PACKED[1:], CSV),
}
#: Formats of tables with column names, and those in which the output is that of the input.
FORMATS = (CSV, PARQUET, ARROW, JSON, SHEET)
WRITTEN = (CSV, PARQUET, ARROW)
#: File format by suffix, for writing.
OUTPUTS = {end: kind for end, kind in SUFFIXES.items() if kind in WRITTEN} | {".xlsx": SHEET}
STDIN = "-"


@dataclass(frozen=True)
class FileSet:
    """One or more files of the same format."""

    source: str  # as the user wrote it
    format: str  # one of FORMATS, or "npy"
    paths: tuple[Path, ...] = ()  # empty for standard input

    @property
    def label(self) -> str:
        """Name in messages."""
        return "standard input" if self.source == STDIN else repr(self.source)


def format_of(path: Path | str, formats: dict[str, str] = SUFFIXES) -> str | None:
    """Return the format by the suffix of a file name, None if unknown."""
    name = Path(path).name.lower()
    return next((kind for end, kind in formats.items() if name.endswith(end)), None)


def find_files(source: Any, file_format: str | None = None) -> FileSet:
    """Return the files of a path, a glob pattern, a folder or a list of these."""
    if isinstance(source, list | tuple):
        sets = [find_files(part, file_format) for part in source]
        paths = [path for part in sets for path in part.paths]
        _refuse_repeated(paths)
        label = f"{sets[0].source} and {len(sets) - 1} more" if len(sets) > 1 else sets[0].source
        return FileSet(label, file_format or _one_format(label, paths), tuple(paths))
    source = str(source)
    if source == STDIN:
        return FileSet(source, file_format or CSV)
    if not source:
        raise ValueError(
            "Expected the path of a file or folder, got an empty text. In a shell, a variable that "
            "is not set is empty."
        )
    path = Path(source)
    if path.is_dir():
        paths = [p for p in _files_below(path) if file_format or format_of(p, _INPUTS)]
        if not paths:
            raise OptionError(
                f"No table found in the folder {source!r}: no file ends in {', '.join(_INPUTS)}. "
                "Name the files, or specify their format.",
                "file_format",
            )
    elif os.path.lexists(path):
        paths = [path]
    else:
        paths = [p for p in map(Path, _matches(source)) if not p.is_dir()]
        if not paths:
            raise FileNotFoundError(
                f"No file or folder matches {source!r}. Check the spelling of the path or pattern."
            )
    each_once: dict[str, Path] = {}  # by the shortest way that leads to it
    for path in sorted(paths, key=lambda p: (len(p.parts), p)):
        if path.is_symlink() and not path.exists():
            raise ValueError(
                f"{str(path)!r} is a symbolic link that leads nowhere, or back to itself. Remove "
                "it, or restore the file it stands for."
            )
        each_once.setdefault(os.path.realpath(path), path)
    paths = sorted(each_once.values())
    return FileSet(source, file_format or _one_format(source, paths), tuple(paths))


def would_find(source: Any, path: Path, file_format: str | None = None) -> bool:
    """Return whether ``find_files`` would find a file in a folder or by a pattern."""
    path, base = path.resolve(), Path(source)
    if base.is_dir():
        parts = path.parts[len(base.resolve().parts) :] if base.resolve() in path.parents else ()
        is_hidden = any(part.startswith((".", "_")) for part in parts)
        return bool(parts) and not is_hidden and bool(file_format or format_of(path, _INPUTS))
    if base.exists():
        return False
    fixed = base
    while glob.has_magic(str(fixed)):
        fixed = fixed.parent
    start, patterns = fixed.resolve().parts, base.parts[len(fixed.parts) :]
    n_fixed = len(start)
    return path.parts[:n_fixed] == start and _is_matched(path.parts[n_fixed:], patterns)


def _is_matched(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """Return whether the parts of a path match a pattern, in which ** is any number of folders."""
    if not patterns or not parts:
        return not parts and all(pattern == "**" for pattern in patterns)
    if patterns[0] == "**" and _is_matched(parts[1:], patterns):
        return True
    if patterns[0] == "**":
        return _is_matched(parts, patterns[1:])
    return fnmatch(parts[0], patterns[0]) and _is_matched(parts[1:], patterns[1:])


def _matches(pattern: str) -> Iterator[str]:
    """Yield the paths that match a pattern, in which ** is any number of folders."""
    parts = Path(pattern).parts
    if "**" not in parts:
        yield from glob.glob(pattern)
        return
    place = parts.index("**")
    rest = parts[place + 1 :] or ("*",)
    for start in glob.glob(os.path.join(*parts[:place])) if place else [""]:
        for folder in _folders_from(Path(start)):
            yield from _matches(os.path.join(glob.escape(str(folder)), *rest))


def _folders_from(folder: Path) -> Iterator[Path]:
    """Yield a folder and all visible folders below, each once: links may lead back up."""
    seen, ahead = set(), [folder]
    while ahead:
        folder = ahead.pop(0)
        if (place := os.path.realpath(folder)) in seen or not os.path.isdir(folder or "."):
            continue
        seen.add(place)
        yield folder
        ahead += sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def _files_below(folder: Path) -> list[Path]:
    """Return all files in a folder and its subfolders, except hidden ones."""
    return [
        path
        for below in _folders_from(folder)
        if not any(part.startswith("_") for part in below.relative_to(folder).parts)
        for path in below.iterdir()
        if not path.name.startswith((".", "_")) and not path.is_dir()
    ]


def _refuse_repeated(paths: list[Path]) -> None:
    places: dict[str, Path] = {}
    for path in paths:
        first = places.setdefault(os.path.realpath(path), path)
        if first is not path:
            raise ValueError(
                f"The file {str(path)!r} is given twice"
                + (f", also as {str(first)!r}" if first != path else "")
                + ". Its rows would be counted twice."
            )


def _one_format(source: str, paths: list[Path]) -> str:
    formats = {path: format_of(path, _INPUTS) for path in paths}
    unknown = [path.name for path, kind in formats.items() if kind is None]
    if unknown:
        raise OptionError(
            f"Expected a file that ends in {', '.join(_INPUTS)}, got {listed(unknown)}. Save other "
            f"spreadsheets as CSV; for other files, specify the format: {', '.join(FORMATS)}.",
            "file_format",
        )
    if len(set(formats.values())) > 1:
        kinds = sorted({str(kind) for kind in formats.values()})
        raise ValueError(
            f"Expected files of one format, got {' and '.join(kinds)} in {source!r}. Select some "
            f"with a pattern, such as '{Path(source) / '*.csv'}'."
        )
    return str(formats[paths[0]])
