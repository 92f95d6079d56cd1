"""Warnings about an estimate: what the data say against it, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from scipy import stats

from classprior._core.messages import p_text, percent
from classprior._core.types import Doubles
from classprior._samples.samples import Samples
from classprior._scores.intervals import MIXED
from classprior._tables.parameters import SAMPLES
from classprior.result import Caution

_KERNEL_COLUMNS = 20  # with more columns, Gaussian kernels around different rows hardly overlap
_SMALL_SAMPLE = 50
# Noise in the scores bends level tails slightly, so a smaller drop is not reported.
_STILL_FALLING = 0.85
_STANDS_OUT = 0.75  # least separation; of the lower end of the interval, more than half is left
_IMPURE = 0.05  # level of the test whether the tail of the estimate is purely positive
_DEEP_TAIL = 0.1
_ZERO = 0.005  # below this, hardly any row is positive, or something is wrong
SIGNIFICANT = 0.001  # level of tests
_SWAPPED = 5  # known positives per unlabeled row from which the samples look swapped


class Evidence(Protocol):
    """The attributes of a fitted AutoPrior or SubtypePrior that the diagnostics use."""

    prior_: float
    low_: float
    high_: float
    upper_bound_: float
    extrapolated_: float
    extrapolated_tail_: float
    extrapolated_wide_: float
    purity_p_value_: float
    separation_: float
    round_priors_: Doubles
    scores_: dict[str, tuple[Doubles, Doubles]]
    mean_scores_: tuple[Doubles, Doubles]


def diagnose(evidence: Evidence) -> Iterator[Caution]:
    """Yield a warning for everything in the scores that casts doubt on the estimate."""
    yield from few_rows(evidence)
    is_zero = is_at_zero(evidence)
    if not stands_out(evidence.separation_):
        yield about_separation(evidence.separation_)
    elif still_falls(evidence):
        yield Caution(
            "No purely positive region was found: even the rows most similar to the known "
            f"positives seem to include negatives ({p_text(evidence.purity_p_value_)}), and the "
            f"share may be as low as about {percent(evidence.extrapolated_)}.",
            "Treat the estimate as an upper bound, and look at rows: 'classprior review' chooses "
            "which. Columns that separate the classes better would lower it.",
        )
    p_value = foreign_positives_p_value(evidence)
    if p_value < SIGNIFICANT:
        yield Caution(
            f"Some known positives resemble no unlabeled row ({p_text(p_value)}): too few "
            "unlabeled rows score as high as the top tenth of the known positives. If these "
            "positives come from another source or were specially selected, the known positives "
            "do not represent the hidden ones, and no estimate from these samples is valid.",
            "Find out where they come from, and leave them out if they are of a different kind.",
        )
    if is_at_one(evidence):
        yield Caution(
            "The estimate is at 100%: either nearly all unlabeled rows are positive, or the "
            "columns cannot separate the classes.",
            "Check whether the columns carry any information about the class.",
        )
    if is_zero:
        yield Caution(
            "The estimate is at 0%: either hardly any unlabeled row is positive, or something "
            "unrelated to the class separates known positives from unlabeled rows, or many known "
            "positives come from another source.",
            "Check for swapped samples, for known positives from another source, and for a column "
            "that reveals the label.",
            remedy="drop",
        )
    spread = float(np.std(evidence.round_priors_))
    if spread > (evidence.high_ - evidence.low_) / 4.0 and spread > 0.02:
        yield Caution(
            "Unstable: the estimate depends on how the rows are split into folds (standard "
            f"deviation {100.0 * spread:.1f} percentage points).",
            "Collect more rows.",
            remedy="repeat",
        )


def stands_out(separation: float) -> bool:
    """Whether known positives stand out enough for an estimate, and not only for a bound."""
    return separation >= _STANDS_OUT


def is_mixed(evidence: Evidence) -> bool:
    """Whether negatives are found wherever positives are, so that kinds cannot be compared."""
    return evidence.separation_ < MIXED


def about_separation(separation: float) -> Caution:
    """Return a warning that known positives do not stand out."""
    if separation == 0.0:
        return Caution(
            "Known positives do not stand out: they look like the unlabeled rows, or nearly all of "
            "these look like them, so that too few others are left to compare with.",
            "Look at rows: 'classprior review' chooses which, and counts them exactly. Columns "
            "that separate the classes better also help.",
        )
    return Caution(
        "Known positives do not stand out: at the best threshold of the score, the share of them "
        f"above it is only {100.0 * separation:.0f} percentage points larger than that of the "
        "other unlabeled rows. Some of these may look like known positives without being "
        "positive, and nothing in the two samples tells how many.",
        "Look at rows: 'classprior review' chooses which, and counts them exactly. Columns that "
        "separate the classes better also help.",
    )


def few_rows(evidence: Evidence) -> Iterator[Caution]:
    """Yield a warning if a sample is small."""
    fewest = min(map(len, next(iter(evidence.scores_.values()))))
    if fewest < _SMALL_SAMPLE:
        yield Caution(
            f"Few rows: the smaller sample has only {fewest}. The interval is wide and may still "
            "be too narrow.",
            "Collect more rows, and rely on the interval rather than on the estimate.",
        )


def is_at_zero(evidence: Evidence) -> bool:
    """Whether hardly any unlabeled row seems to be positive."""
    return evidence.prior_ < _ZERO


def is_at_one(evidence: Evidence) -> bool:
    """Whether known positives and unlabeled rows cannot be told apart."""
    return evidence.prior_ >= 1.0 or evidence.low_ >= 0.99


def still_falls(evidence: Evidence) -> bool:
    """Whether the share falls toward the end of the tail, so that it is only an upper bound."""
    is_falling = falls(evidence.purity_p_value_, evidence.extrapolated_tail_, evidence.prior_)
    return is_falling and not is_at_zero(evidence)


def falls(purity_p_value: float, extrapolated: float, prior: float) -> bool:
    """Whether the share extrapolated within the tail is below the share, clearly and surely."""
    return purity_p_value < _IMPURE and extrapolated < _STILL_FALLING * prior


def is_vague(prior: float, low: float, high: float, extrapolated: float) -> bool:
    """Whether the interval says more than the estimate.

    It is wide, or the share falls so much over most of the positives, down to ``extrapolated``,
    that the estimate depends on the purity of the rest.
    """
    return low < prior / 2.0 or high > 2.0 * prior or extrapolated < _STILL_FALLING * prior


def about_sizes(n_positive: int, n_unlabeled: int) -> list[Caution]:
    """Return a question if the two samples look swapped."""
    if n_positive < _SWAPPED * n_unlabeled:
        return []
    return [
        Caution(
            f"Swapped? There are {n_positive:,} known positives, but only {n_unlabeled:,} "
            "unlabeled rows.",
            "Check that the first sample holds the known positives and the second the unlabeled "
            "rows.",
        )
    ]


def about_weights(samples: Samples) -> Iterator[Caution]:
    """Yield a warning if unequal weights leave little of a sample that is large enough."""
    for kind, size, n in zip(SAMPLES, samples.bins.n_counted, samples.n_effective, strict=True):
        if n < _SMALL_SAMPLE <= size:
            yield Caution(
                f"Unequal weights: the {size:,} {kind} are as informative as only {n:.0f} "
                f"{'row' if round(n) == 1 else 'rows'} of equal weight. The interval is wide and "
                "may still be too narrow.",
                "Check the largest weights, and limit them if a few rows outweigh all others.",
            )


def about_bound(prior: float, upper_bound: float) -> list[Caution]:
    """Return a warning if the estimate is above the upper bound."""
    if prior <= upper_bound:
        return []
    return [
        Caution(
            f"Above the bound: the estimate, {percent(prior)}, is above the upper bound of "
            f"{percent(upper_bound)}, and its interval ignores the bound.",
            "Trust the bound, not the estimate.",
            remedy="auto",
        )
    ]


def disagree(found: Evidence, evidence: Evidence) -> bool:
    """Whether the intervals of two estimators have no share in common."""
    return found.low_ > evidence.high_ or evidence.low_ > found.high_


def about_disagreement(found: Evidence, evidence: Evidence) -> list[Caution]:
    """Return a warning if a method that allows for biased labels disagrees with the evidence."""
    if not disagree(found, evidence):
        return []
    return [
        Caution(
            f"Biased labels? This estimate, {percent(found.prior_)}, allows for labels that favor "
            f"some kinds of positives. It disagrees with {percent(evidence.prior_)}, which 'auto' "
            "finds if known positives are typical of all positives.",
            "If labels are biased, 'auto' and its bound are too low; if not, negatives that "
            "overlap with some kind of positives make this estimate too high. Only a look at rows "
            "can settle it: 'classprior review' chooses which.",
        )
    ]


def about_interval(prior: float, evidence: Evidence) -> list[Caution]:
    """Return a warning if the estimate of another method is below the interval of ``auto``."""
    if prior >= evidence.low_:
        return []
    interval = f"{percent(evidence.low_)} to {percent(evidence.high_)}"
    return [
        Caution(
            f"Below the interval of 'auto': the estimate, {percent(prior)}, is far below "
            f"{percent(evidence.prior_)} ({interval}), which 'auto' finds on the same rows.",
            "If methods disagree so much, trust 'auto'.",
            remedy="auto",
        )
    ]


def about_method(method: str, over_estimates: bool, n_kernel_features: int) -> list[Caution]:
    """Return warnings about the weaknesses of a method; its kernels have so many columns."""
    found = []
    if over_estimates:
        found.append(
            Caution(
                f"The method {method!r} overestimates the share if the classes overlap.",
                "The methods 'auto' and 'penl1' do not.",
                remedy="auto",
            )
        )
    if n_kernel_features > _KERNEL_COLUMNS:
        found.append(
            Caution(
                f"High dimension: with {n_kernel_features} columns, Gaussian kernels capture "
                "little of the structure of the data.",
                "The method 'auto' is made for many columns.",
                remedy="auto",
            )
        )
    return found


def foreign_positives_p_value(evidence: Evidence, least: float | None = None) -> float:
    """Return the p-value of so few unlabeled rows among the top tenth of the known positives.

    If hidden positives resemble the known ones, a tenth of them score as high as the top tenth of
    the known ones, so the number of unlabeled rows there is at least binomial with a tenth of the
    prior. The test is conservative: it uses the ``least`` plausible prior, by default the low end
    of the interval, and the lower 99.9% limit of the share of positives in the tail.
    """
    least = evidence.low_ if least is None else least
    n, m = map(len, next(iter(evidence.scores_.values())))
    rank = max(1, int(np.ceil(_DEEP_TAIL * n)))
    share = stats.beta.ppf(SIGNIFICANT, rank, n - rank + 1)
    values = []
    for positive, unlabeled in evidence.scores_.values():
        threshold = np.sort(positive)[::-1][rank - 1]
        beyond = int(np.sum(unlabeled >= threshold))
        values.append(float(stats.binom.cdf(beyond, m, share * least)))
    return min(1.0, len(values) * min(values))
