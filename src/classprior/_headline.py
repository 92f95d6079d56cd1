"""The first sentence of an answer: what the estimate means, decided in one place."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import floor

from classprior._core.messages import listed, percent, rows_text


class Meaning(StrEnum):
    """What an estimate means. If several apply, the first in this order counts."""

    LEAK = "leak"  # something unrelated to the class may separate the samples
    TOO_LOW = "too low"  # rows are copies or near-copies of others
    BIASED = "biased"  # known positives do not seem to be typical of all positives
    DISAGREE = "disagree"  # a method that allows for biased labels finds another share
    AT_MOST = "at most"  # negatives are found wherever positives are
    RANGE = "range"  # the interval says more than the estimate
    ABOUT = "about"


_ALL = 0.99  # of the unlabeled rows
_NEXT_TO_NONE = 0.05  # of the upper bound
_ANYTHING = 0.9  # the width of an interval that excludes next to nothing
#: The assumptions of the upper bound seem to fail.
IN_DOUBT = (Meaning.LEAK, Meaning.TOO_LOW, Meaning.BIASED)
#: What the upper bound needs, for all methods and for those that allow for biased labels.
TYPICAL = "known positives are typical of all positives"
TYPICAL_OF_KIND = "known positives of each kind are typical of their kind"
#: What the estimate and its interval need beside the condition of the bound.
PURE = "the rows most like them are positive, too"
#: What follows for the probabilities of rows.
PROBABILITIES = {
    Meaning.LEAK: "If a column has to do with how rows were labeled, the probabilities are "
    "meaningless.",
    Meaning.TOO_LOW: "The share is too low, and so are the probabilities. Use them to rank rows.",
    Meaning.BIASED: "Known positives do not seem to be typical of all positives. Kinds that are "
    "seldom labeled have probabilities that are too low.",
    Meaning.DISAGREE: "The share depends on whether labels are biased, and so do the "
    "probabilities. Use them to rank rows.",
    Meaning.AT_MOST: "Only an upper bound on the share is known, so the probabilities may be far "
    "too high. Use them to rank rows.",
}


def meaning_of(
    *,
    is_leak: bool,
    has_copies: bool,
    is_upper_bound: bool,
    is_vague: bool,
    is_biased: bool = False,
    disagrees: bool = False,
) -> Meaning:
    """Return what an estimate means, given all that was found about it."""
    found = {
        Meaning.LEAK: is_leak,
        Meaning.TOO_LOW: has_copies,
        Meaning.BIASED: is_biased,
        Meaning.DISAGREE: disagrees,
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
    *,
    upper_bound: float,
    bound_is_exact: bool = True,
    bound_holds_if: str = TYPICAL,
    leaks: Sequence[str] = (),
    is_weighted: bool = False,
    prior_if_typical: float | None = None,
) -> str:
    """Return the answer in one sentence, or two where the first alone would mislead.

    ``shares`` and ``counts`` are the estimate and the ends of its interval. With weights, shares
    are those of the total weight, and the numbers of positive rows are unknown.
    ``prior_if_typical`` is the estimate that does not allow for biased labels.
    """
    prior, low, high = map(percent, shares)
    count, fewest, most = (f"{number:,.0f}" for number in counts)
    whole = "" if not is_weighted else "total weight of the "
    these = f"of the {whole}{n_unlabeled:,} unlabeled rows"
    rows = f"{these} {'is' if is_weighted else 'are'} positive"

    def number(of_rows: str) -> str:
        return "" if is_weighted else f" ({rows_text(of_rows)})"

    match meaning:
        case Meaning.LEAK:
            one = len(leaks) == 1
            columns = f"column{'' if one else 's'} {listed(leaks)} first: {'it' if one else 'they'}"
            return (
                f"Check {columns} tell{'s' * one} known positives from the {n_unlabeled:,} "
                "unlabeled rows suspiciously well. If that has to do with how rows were labeled, "
                f"the estimate of {prior}{number(count)} is too low."
            )
        case Meaning.TOO_LOW:
            return (
                f"More than {prior} {rows}{number(count)}: many rows are copies or near-copies of "
                "others, which makes the estimate too low."
            )
        case Meaning.BIASED:
            return (
                f"Probably more than {prior} {rows}{number(count)}: some kinds of positives seem "
                "to be labeled less often than others, and these are undercounted."
            )
        case Meaning.DISAGREE:
            typical = percent(shares[0] if prior_if_typical is None else prior_if_typical)
            return (
                f"About {prior} {rows}{number(count)} if labels favor some kinds of positives, but "
                f"{typical} if known positives are typical of all positives."
            )
        case Meaning.AT_MOST if upper_bound > _ALL:
            return (
                f"No answer: these samples do not tell how many of the {n_unlabeled:,} unlabeled "
                "rows are positive. None, some or all of them may be."
            )
        case Meaning.AT_MOST:
            about = "" if bound_is_exact else "about "
            none = ", even none" if shares[1] < _NEXT_TO_NONE * upper_bound else ""
            of_rows = f"{floor(upper_bound * n_unlabeled):,.0f}"
            return (
                f"At most {about}{percent(upper_bound)} {rows}{number(of_rows)}, if "
                f"{bound_holds_if}. It may be far fewer{none}: too many negatives look like "
                "positives to say more."
            )
        case Meaning.RANGE:
            best = f"; the best estimate is {prior}"
            if shares[2] - shares[1] > _ANYTHING:
                best = ", so these rows tell next to nothing"
            return f"Between {low} and {high} {rows}{number(f'{fewest} to {most}')}{best}."
        case _:
            return f"About {prior} {rows}{number(count)}."


def bound_name(meaning: Meaning, is_exact: bool) -> str:
    """Return what an upper bound may be called, in lower case."""
    if meaning in IN_DOUBT:
        return "upper bound (in doubt)"
    return "certified upper bound" if is_exact else "upper bound (asymptotic)"
