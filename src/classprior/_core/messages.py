"""Warnings, progress bars and the formatting of values in messages."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")


def percent(share: float) -> str:
    """Format a share as a percentage with one decimal, or two digits below 1%."""
    digits = 1 if share >= 0.01 or share <= 0.0 else -math.floor(math.log10(share)) - 1
    return f"{share:.{digits}%}"


def rows_text(number: str) -> str:
    """Return a number of rows with its unit."""
    return f"{number} row" if number == "1" else f"{number} rows"


def warn(message: str) -> None:
    """Warn with the location of the user's call into the library."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("classprior."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def listed(values: Any, most: int = 6) -> str:
    """Format values as a comma-separated list, truncated to ``most`` items."""
    shown = [repr(v.item() if hasattr(v, "item") else v) for v in list(values)[:most]]
    return ", ".join(shown) + (", ..." if len(values) > most else "")


def progress(
    items: Iterable[Item],
    total: int | None,
    description: str,
    verbose: int,
    *,
    rows_of: Callable[[Item], int] | None = None,
    done: int = 0,
) -> Iterator[Item]:
    """Yield the items, with a progress bar on stderr if verbose; ``rows_of`` counts rows."""
    if not verbose:
        yield from items
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        warn("The progress bar requires rich. Install it with pip install 'classprior[cli]'.")
        yield from items
        return
    columns = [TextColumn("{task.description}"), BarColumn()]
    # The speed is known only after the second step.
    speed = "{task.fields[speed]}" if rows_of else ""
    columns += [TaskProgressColumn(), TextColumn(speed), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total, completed=done, speed="")
        for item in items:
            yield item
            bar.advance(task, rows_of(item) if rows_of else 1)
            per_second = bar.tasks[0].speed
            if rows_of and per_second:
                bar.update(task, speed=f"{per_second:,.0f} rows/s")
