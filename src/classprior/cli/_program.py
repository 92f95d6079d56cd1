"""How the program ends: exit codes, errors in one paragraph, pipes that close early."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
import warnings
from importlib.util import find_spec
from typing import Any

import click

from classprior.cli._output import say

NO_ANSWER, STOPPED, CLOSED_PIPE = 1, 130, 141
DEBUG = "classprior.debug"
#: Words in the library's error messages, and the option to name after them.
_OPTIONS = {
    "its format": "--format",
    "their format": "--format",
    "its encoding": "--encoding",
    "without a header": "--no-header",
    "in columns": "--columns",
    "replace it": "--force",
}
#: How to follow the advice of a warning; the same keys as ``diagnostics.REMEDIES``.
REMEDIES = {
    "drop": "To leave out a column, use --drop {column}.",
    "group": "To keep rows in one fold, use --group COLUMN.",
    "repeat": "Averaging the estimates of several runs with different --seed also helps.",
    "auto": "Use --method auto.",
    "auto or lams": "Use --method auto.",
}


class Program(click.Group):
    """A group of commands whose errors are one paragraph on standard error."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and end with the exit code that tells how it went."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = _show_warning
                result = super().invoke(ctx)
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit, SystemExit):
            raise
        except KeyboardInterrupt:
            say("Stopped. No file is left half-written.")
            ctx.exit(STOPPED)
        except BrokenPipeError:
            # What is still in the buffer must not be tried again when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(CLOSED_PIPE)
        except Exception as error:
            if ctx.meta.get(DEBUG):
                traceback.print_exc()
            say(f"Error: {explained(error)}")
            ctx.exit(NO_ANSWER)
        return result


def require(*packages: str) -> None:
    """Refuse to begin without a package that is needed only at the end."""
    for name in packages:
        if find_spec(name) is None:
            raise ImportError(f"Expected the package {name!r}, which is not installed")


def explained(error: Exception) -> str:
    """Return what went wrong, in one paragraph."""
    if isinstance(error, ImportError):
        reason = str(error).removesuffix(".")
        return f"{reason}. Install what the command line needs: pip install 'classprior[cli]'."
    if isinstance(error, MemoryError):
        return "Out of memory. Take a random sample of the rows, or fewer columns with --columns."
    if isinstance(error, OSError) and error.strerror:
        where = f" {error.filename!r}" if error.filename else ""
        return f"Could not read or write{where}: {error.strerror}."
    if isinstance(error, ValueError | TypeError | OSError):
        return _with_options(" ".join(str(error).split()))
    return (
        f"Unexpected error: {type(error).__name__}: {error}. Run the command again with "
        "--debug and report what it prints."
    )


def _with_options(message: str) -> str:
    """Return what the library says with the options of the command line that it does not know."""
    for words, option in _OPTIONS.items():
        message = message.replace(words, f"{words} ({option})")
    return message


def in_options(warning: Any) -> Any:
    """Return a warning whose advice names options of the command line, not Python parameters."""
    if getattr(warning, "remedy", None) is None:
        return warning
    column = "COLUMN" if warning.column is None else shlex.quote(warning.column)
    return warning.worded(REMEDIES[warning.remedy].format(column=column))


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print the library's own warnings; those of other libraries are for programmers."""
    if category is UserWarning:
        say(f"Note: {message}")
