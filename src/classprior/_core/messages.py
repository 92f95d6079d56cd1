"""How the library speaks to its users."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")


def percent(share: float) -> str:
    """Return a share in percent with one decimal, or with two digits where it is smaller."""
    digits = 1 if share >= 0.01 or share <= 0.0 else -math.floor(math.log10(share)) - 1
    return f"{share:.{digits}%}"


def warn(message: str) -> None:
    """Warn at the line of the caller's code that called the library, however deep we are."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("classprior."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def listed(values: Any, most: int = 6) -> str:
    """Return values as a user would type them, the long tail cut."""
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
    """Pass items on, with a progress bar on standard error if verbose; it may count their rows."""
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
        warn("A progress bar needs rich: pip install 'classprior[cli]'. Going on without one.")
        yield from items
        return
    columns = [TextColumn("{task.description}"), BarColumn()]
    # The speed of a task is known after its second step only.
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
