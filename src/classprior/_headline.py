"""The first sentence of an answer: what the estimate means, decided in one place."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from classprior._core.messages import listed, percent, rows_text


class Meaning(StrEnum):
    """What an estimate means. If several apply, the first in this order counts."""

    LEAK = "leak"  # something unrelated to the class may separate the samples
    TOO_LOW = "too low"  # rows are near-copies of others
    AT_MOST = "at most"  # the estimate counts negatives, or nothing separates the samples
    RANGE = "range"  # the interval says more than the estimate
    ABOUT = "about"


#: What follows for the probabilities of rows.
PROBABILITIES = {
    Meaning.LEAK: "Is there a leak? Then the probabilities are meaningless.",
    Meaning.TOO_LOW: "The share is too low, and so are the probabilities. Use them to rank rows.",
    Meaning.AT_MOST: "The share is only an upper bound, so the probabilities are too high. Use "
    "them to rank rows.",
}


def meaning_of(
    *, is_leak: bool, has_near_copies: bool, is_upper_bound: bool, is_vague: bool
) -> Meaning:
    """Return what an estimate means, given all that was found about it."""
    found = {
        Meaning.LEAK: is_leak,
        Meaning.TOO_LOW: has_near_copies,
        Meaning.AT_MOST: is_upper_bound,
        Meaning.RANGE: is_vague,
        Meaning.ABOUT: True,
    }
    return next(meaning for meaning in Meaning if found[meaning])


def headline(
    meaning: Meaning,
    shares: tuple[float, float, float],
    counts: tuple[float, float, float],
    n_unlabeled: int,
    leaks: Sequence[str] = (),
) -> str:
    """Return the answer in one sentence.

    ``shares`` and ``counts`` are the estimate and the ends of its interval.
    """
    prior, low, high = map(percent, shares)
    count, fewest, most = (f"{number:,.0f}" for number in counts)
    rows = f"of the {n_unlabeled:,} unlabeled rows are positive"
    match meaning:
        case Meaning.LEAK:
            columns = f"column{'' if len(leaks) == 1 else 's'} {listed(leaks)}"
            return (
                f"Is there a leak? The known positives differ from nearly all of the "
                f"{n_unlabeled:,} unlabeled rows in {columns}. If that has nothing to do with the "
                f"class, the estimate of {prior} ({rows_text(count)}) is far too low."
            )
        case Meaning.TOO_LOW:
            return (
                f"About {prior} {rows} ({rows_text(count)}), but this is too low: many rows are "
                "near-copies of others."
            )
        case Meaning.AT_MOST:
            return (
                f"At most about {high} {rows} ({rows_text(most)}); the estimate of {prior} seems "
                "to include negatives."
            )
        case Meaning.RANGE:
            return (
                f"Between {low} and {high} {rows} ({rows_text(f'{fewest} to {most}')}); the best "
                f"estimate is {prior}."
            )
        case Meaning.ABOUT:
            return f"About {prior} {rows} ({rows_text(count)})."


def bound_name(meaning: Meaning, is_exact: bool) -> str:
    """Return what an upper bound may be called, in lower case."""
    if meaning in (Meaning.LEAK, Meaning.TOO_LOW):
        return "upper bound (in doubt)"
    return "certified upper bound" if is_exact else "upper bound (asymptotic)"
