"""Progress bars for passes over rows and other long work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from classprior._core.messages import warn

Item = TypeVar("Item")


def progress(
    items: Iterable[Item],
    total: int | None,
    description: str,
    verbose: int,
    *,
    rows_of: Callable[[Item], int] | None = None,
    done: int = 0,
) -> Iterator[Item]:
    """Return the items, with a progress bar on stderr if verbose; ``rows_of`` counts rows."""
    if not verbose:
        return iter(items)
    return _with_bar(items, total, description, rows_of, done)


def _with_bar(
    items: Iterable[Item],
    total: int | None,
    description: str,
    rows_of: Callable[[Item], int] | None,
    done: int,
) -> Iterator[Item]:
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
