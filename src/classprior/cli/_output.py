"""Printed output: plain text in a pipe, a panel on a terminal, no control characters."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from classprior._files.writing import STDOUT, name_file

if TYPE_CHECKING:
    from classprior._samples.labeled import TwoTables
    from classprior._tables.columns import ColumnTreatment
    from classprior.result import PriorEstimate

_MOST_NAMES = 12
#: By kind of column: title, treatment, and treatment of missing values.
_GROUPS = {
    "score": ("score", "only the order of its values is used", ""),
    "number": ("numbers", "scaled", ", missing values replaced by the median and flagged"),
    "yes/no": ("yes/no", "0 and 1, scaled", ", missing values replaced and flagged"),
    "date": ("dates", "seconds, scaled", ", missing values replaced and flagged"),
    "category": ("categories", "one column per level, rare levels pooled", ", missing is a level"),
}


def printable(text: str) -> str:
    """Escape control characters, which could move the cursor, ring, color or reverse text."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def say(text: str) -> None:
    """Print a message on standard error."""
    click.echo(printable(text), err=True)


def show(text: str, title: str) -> None:
    """Print a result: in a panel on a terminal, as plain text in a pipe."""
    text = printable(text)
    if not sys.stdout.isatty():
        _print(text)
        return
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    first, *rest = text.split("\n", 1)
    body = Text.assemble((first, "bold"), "\n", *rest)
    Console(highlight=False).print(Panel(body, title=title, padding=(1, 2)))


def add(text: str) -> None:
    """Print another paragraph below the result."""
    _print(f"\n{printable(text)}")


def _print(text: str) -> None:
    """Print on standard output, and name it in errors of the system."""
    try:
        click.echo(text)
    except OSError as error:
        name_file(error, STDOUT)
        raise


def progress_wanted(quiet: bool) -> int:
    """Return 1 if progress should be shown, which requires a terminal; otherwise 0."""
    return int(sys.stderr.isatty() and not quiet)


@contextmanager
def working(description: str, quiet: bool) -> Iterator[None]:
    """Show a spinner, on a terminal only."""
    if not progress_wanted(quiet):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(description):
        yield


def estimate_text(estimate: PriorEstimate, samples: TwoTables) -> str:
    """Return the estimate, its warnings and notes, and the columns used."""
    parts = ["\n".join([estimate.answer, "", *estimate.lines])]
    if estimate.segments is not None:
        raw = "--json shows the shares without shrinkage, too (raw)."
        parts += ["\n".join(estimate.segments.lines), f"{estimate.segments.findings} {raw}"]
    if samples.is_one_table and not estimate.is_upper_bound:
        parts.append(
            f"Of all rows, known positives included, {estimate.prior_pooled:.1%} are positive; "
            f"{estimate.label_frequency:.1%} of the positives are known."
        )
    parts += [f"{remark}: {text}" for remark, text in estimate.remarks]
    parts += [f"Note: {note}" for note in samples.notes]
    parts.append(columns_text(estimate.columns))
    return "\n\n".join(wrapped(part) for part in parts if part)


def columns_text(columns: Sequence[ColumnTreatment]) -> str:
    """Return how the columns were encoded, one line for each kind."""
    lines = ["Columns"] if columns else []
    for kind, (title, treatment, of_missing) in _GROUPS.items():
        group = [column for column in columns if column.kind == kind]
        if any(column.has_missing for column in group):
            treatment += of_missing
        if group:
            lines.append(f"  {title:11}{_some([c.name for c in group])} ({treatment})")
    return "\n".join(lines)


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def wrapped(text: str) -> str:
    """Wrap long lines to the width of the terminal, or to 80 characters in a pipe."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    width = min(100, max(40, columns - 6))

    def fold(line: str) -> str:
        indent = " " * (13 if line.startswith("  ") else 0)
        return textwrap.fill(
            line, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
        )

    return "\n".join(fold(line) if len(line) > width else line for line in text.splitlines())


def as_json(values: dict[str, Any]) -> None:
    """Print values as JSON, in ASCII, which is safe with any terminal and encoding."""
    import json

    _print(json.dumps(values, indent=2, allow_nan=False))
