"""Words that plainly mean unlabeled, and so tell which label marks known positives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_CHECKS = ("labeled", "checked", "reviewed", "verified", "confirmed", "determined")
#: Compared without case, spaces and punctuation: "Not checked", "not_checked", "un-checked", "N/A".
_UNLABELED = frozenset(
    ["unknown", "open", "pending", "missing", "none", "null", "nan", "na", ""]
    + [f"{no}{check}" for check in _CHECKS for no in ("un", "not", "notyet")]
)
_NO = ("no", "false", "negative")


def means_unlabeled(label: Any) -> bool:
    """Return whether a label is a word for rows that nobody has judged."""
    if not isinstance(label, str):
        return False
    plain = "".join(filter(str.isalnum, label.casefold()))
    return plain.replace("elled", "eled") in _UNLABELED  # British spelling, too


def means_no(label: Any) -> bool:
    """Return whether a label says that a row is not positive: no, false, negative, 0 or -1."""
    try:
        return float(label) in (0.0, -1.0)
    except (TypeError, ValueError):
        return isinstance(label, str) and label.strip().casefold() in _NO


def positive_beside_unlabeled(labels: Iterable[Any]) -> Any:
    """Return the only label that is no word for unlabeled, None if others or none decide.

    A label that means no is not positive: beside "unknown", it leaves the question open.
    """
    labels = list(labels)
    others = [label for label in labels if not means_unlabeled(label)]
    is_decided = len(others) == 1 < len(labels) and not means_no(others[0])
    return others[0] if is_decided else None
