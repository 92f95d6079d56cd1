"""Progress bars for passes over rows and other long work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeVar

from classprior._core.messages import warn

Item = TypeVar("Item")
#: Shows a step: its description, how much is done, and how much there is to do, if known.
Show = Callable[[str, int, int | None], None]
_SECONDS = 0.1  # between two updates in a notebook
_shown_by: list[Show] = []  # the last one counts


@contextmanager
def shown_by(show: Show) -> Iterator[None]:
    """Call a function instead of drawing a bar, for programs with a display of their own."""
    _shown_by.append(show)
    try:
        yield
    finally:
        _shown_by.remove(show)


def progress(
    items: Iterable[Item],
    total: int | None,
    description: str,
    verbose: int,
    *,
    rows_of: Callable[[Item], int] | None = None,
    done: int = 0,
) -> Iterator[Item]:
    """Return the items, with a progress bar if verbose; ``rows_of`` counts rows.

    The bar is on stderr, in a notebook below its cell, or wherever ``shown_by`` puts it.
    """
    if not verbose:
        return iter(items)
    show = _shown_by[-1] if _shown_by else _notebook_bar()
    if show is None:
        return _with_bar(items, total, description, rows_of, done)
    return _told(items, total, description, rows_of, done, show)


def _told(
    items: Iterable[Item],
    total: int | None,
    description: str,
    rows_of: Callable[[Item], int] | None,
    done: int,
    show: Show,
) -> Iterator[Item]:
    show(description, done, total)
    for item in items:
        yield item
        done += rows_of(item) if rows_of else 1
        show(description, done, total)


def _notebook_bar() -> Show | None:
    """Return a function that draws a bar below the cell of a notebook, None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)
    last = 0.0

    def show(description: str, done: int, total: int | None) -> None:
        nonlocal last
        if monotonic() - last >= _SECONDS or done == total:
            last = monotonic()
            value = f'value="{done}" max="{total}"' if total else ""
            share = f" {done / total:.0%}" if total else ""
            handle.update(
                HTML(f"<label>{description} <progress {value}></progress>{share}</label>")
            )

    return show


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
