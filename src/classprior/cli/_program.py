"""How the program ends: exit codes, one-paragraph errors, closed pipes."""

from __future__ import annotations

import errno
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import click

from classprior._core.messages import OptionError, OptionWarning
from classprior.cli._output import say

NO_ANSWER, STOPPED, CLOSED_PIPE = 1, 130, 141
DEBUG = "classprior.debug"
_STDERR = 2  # the number of standard error
#: The options that stand for parameters of the library, which its errors and warnings carry.
_OPTIONS = {
    "file_format": "--format",
    "encoding": "--encoding",
    "header": "--no-header",
    "decimal": "--decimal",
    "sheet": "--sheet",
    "positive": "--positive",
    "negative": "--negative",
    "drop": "--drop, --columns",
    "every": "--every",
    "segment_positives": "--segment-positives all",
    "force": "--force",
    "max_weight": "--max-weight",
    "random_sample": "--plan, --random-sample",
    "ids": "--id",
    "key": "--id, --groups, --drop",
}
#: How to follow the advice of a warning; the same keys as ``result.REMEDIES``.
REMEDIES = {
    "drop": "To leave it out, use --drop {column}.",
    "group": "Use --groups COLUMN, for example with the column that identifies the customer.",
    "group by": "Use --groups {column}.",
    "leave out known": "Use --leave-out-known.",
    "repeat": "Averaging the estimates of several runs with different --seed values also helps.",
    "auto": "Use --method auto.",
    "subtypes": "Compare with --method subtypes.",
}


class Program(click.Group):
    """A group of commands that report errors as one paragraph on standard error."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the program; what would go to a closed standard error is dropped."""
        if sys.stderr is None:
            _drop_errors()
        return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and exit with the documented code."""
        if sys.stdout is None:
            say("Error: standard output is closed, so that no result can be printed.")
            ctx.exit(NO_ANSWER)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = _show_warning
                result = super().invoke(ctx)
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit, SystemExit):
            raise
        except KeyboardInterrupt:
            say("Interrupted. No incomplete file was left behind.")
            ctx.exit(STOPPED)
        except BrokenPipeError:
            _drop_output()
            ctx.exit(CLOSED_PIPE)
        except Exception as error:
            if ctx.meta.get(DEBUG):
                traceback.print_exc()
            say(f"Error: {explained(error)}")
            try:
                sys.stdout.flush()
            except OSError:  # such as a full disk
                _drop_output()
            ctx.exit(NO_ANSWER)
        return result


def _drop_errors() -> None:
    """Open standard error, before another file gets its number; child processes need it, too."""
    null = os.open(os.devnull, os.O_WRONLY)
    if null != _STDERR:
        os.dup2(null, _STDERR)
        os.close(null)
    os.set_inheritable(_STDERR, True)
    sys.stderr = open(_STDERR, "w", closefd=False)  # noqa: SIM115 - until the end


def _drop_output() -> None:
    """Drop the rest of the output, which Python would try to write at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def require(*packages: str) -> None:
    """Raise an error if a package is missing, before the work starts."""
    for name in packages:
        if find_spec(name) is None:
            raise ImportError(f"The package {name!r} is not installed")


def explained(error: Exception) -> str:
    """Return an error message of one paragraph."""
    if isinstance(error, ImportError):
        reason = str(error).removesuffix(".")
        if "pip install" in reason:
            return f"{reason}."
        return f"{reason}. Install the command line's dependencies: pip install 'classprior[cli]'."
    if isinstance(error, MemoryError):
        return "Out of memory. Use a random sample of the rows, or fewer columns (--columns)."
    if isinstance(error, RuntimeError) and "Symlink loop" in str(error):  # until Python 3.12
        error = OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(error).split("'")[1])
    if isinstance(error, OSError) and error.strerror:
        where = f" {error.filename!r}" if error.filename else ""
        return f"Could not read or write{where}: {error.strerror}."
    if isinstance(error, ValueError | TypeError | OSError):
        return _with_option(" ".join(str(error).split()), error)
    return (
        f"Unexpected error: {type(error).__name__}: {error}. Please run the command again with "
        "--debug and report its output."
    )


def _with_option(message: str, problem: BaseException | None) -> str:
    """Add the option that helps to the message of an error or a warning, if it or its cause has."""
    while problem is not None:
        if isinstance(problem, OptionError | OptionWarning) and problem.option is not None:
            return f"{message.removesuffix('.')} ({_OPTIONS[problem.option]})."
        problem = problem.__cause__
    return message


def in_options(warning: Any, own: Mapping[str, str] | None = None) -> Any:
    """Return a warning whose advice names options of the command line, not Python parameters.

    ``own`` has the words of a command whose options differ.
    """
    if getattr(warning, "remedy", None) is None:
        return warning
    column = "COLUMN" if warning.column is None else shlex.quote(warning.column)
    return warning.worded({**REMEDIES, **(own or {})}[warning.remedy].format(column=column))


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print warnings of this package; those of other packages are not for end users."""
    if category in (UserWarning, OptionWarning):
        say(f"Note: {_with_option(str(message), message)}")
