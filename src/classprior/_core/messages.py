"""Warnings, and the formatting of values in messages."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any


class OptionError(ValueError):
    """An error with the name of the parameter that helps; the command line names its option."""

    def __init__(self, message: str, option: str | None = None) -> None:
        super().__init__(message)
        self.option = option


class OptionWarning(UserWarning):
    """A warning with the name of the parameter that helps."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(message)
        self.option = option


def percent(share: float) -> str:
    """Format a share as a percentage with one decimal, or two digits from 1% to 1 in a billion."""
    digits = -math.floor(math.log10(share)) - 1 if 1e-9 < share < 0.01 else 1
    return f"{share:.{digits}%}"


def p_text(p: float) -> str:
    """Format a p-value, for example 'p = .03' or 'p < .001'."""
    if p < 0.001:
        return "p < .001"
    return f"p = {f'{p:.3f}'.lstrip('0').rstrip('0') if p < 0.9995 else '1'}"


def rows_text(number: str) -> str:
    """Return a number of rows with its unit."""
    return f"{number} row" if number == "1" else f"{number} rows"


def warn(message: str, option: str | None = None) -> None:
    """Warn with the location of the user's call into the library, naming an option that helps."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("classprior."):
        level, frame = level + 1, frame.f_back
    warning = UserWarning(message) if option is None else OptionWarning(message, option)
    warnings.warn(warning, stacklevel=level)


def listed(values: Any, most: int = 6) -> str:
    """Format values as a comma-separated list, truncated to ``most`` items."""
    shown = [repr(v.item() if hasattr(v, "item") else v) for v in list(values)[:most]]
    return ", ".join(shown) + (", ..." if len(values) > most else "")


def printable(text: str, substitute: str = "\N{REPLACEMENT CHARACTER}") -> str:
    """Replace characters that no text for readers should contain, such as control characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else substitute for c in text)
