"""Plans are made: strata are chosen, and rows are drawn from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from classprior._tables.parameters import check_confidence, seed_of
from classprior.review._design import Design, choose_design, choose_division
from classprior.review._plan import Look, ReviewPlan
from classprior.review._ranks import Ranked, checked_budget, cutoffs_of, draw, reading_of

_FEWEST_FOR_HALF = 40  # rows; with fewer, half of them prove next to nothing
_HALFWAY = 0.4  # share of the reserve that is spent halfway


def plan_review(
    scores: ArrayLike,
    probabilities: ArrayLike,
    *,
    budget: int = 100,
    confidence: float = 0.95,
    reserve: float = 0.05,
    additions: Sequence[int] | None = None,
    recall: float = 0.95,
    known_scores: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    design: Design | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> ReviewPlan:
    """Draw the unlabeled rows that a person should look at.

    Rows are drawn at random from one or two strata of scores. The strata, the number of rows from
    each and the error probabilities of the limits are chosen before any row is looked at, such that
    the exact interval for the share of positives is expected to be short.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        Score of each unlabeled row, higher for positives.
    probabilities : array-like of shape (n_rows,)
        Probability of each row to be positive. If they are wrong, the interval is wider, but still
        valid.
    budget : int, default=100
        Number of rows to look at.
    confidence : float, default=0.95
        Confidence level of the limits.
    reserve : float, default=0.05
        Share of the error probability that is kept for limits after half of the rows, and for rows
        that are added later. A larger reserve makes these limits narrower, and those after all
        planned rows wider. Use 0.5 if you intend to add rows.
    additions : sequence of int, optional
        Numbers of rows that may be added later, one after the other. They are settled now, because
        limits do not hold if they depend on results. By default, each addition doubles the number
        of rows, until there are no more.
    recall : float, default=0.95
        Share of the positives for which the review will tell how many rows must be read, in the
        order of their ranks. It is tested with all of the error probability, and so is fixed now.
    known_scores : array-like, optional
        Scores of the known positives, with which the positives that are found will be compared.
    rows : array-like of int of shape (n_rows,), optional
        Indices of the rows, if these are not all. By default, 0, 1, 2, ...
    design : Design, optional
        Strata and numbers of rows, such as those of another plan for the same rows, instead of
        ``budget``. By default, they are chosen.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    plan : ReviewPlan
        The rows to look at, in random order.

    Examples
    --------
    >>> import numpy as np
    >>> from classprior.review import plan_review
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.2, 0.8, size=5000)
    >>> plan = plan_review(p, p, budget=100, random_state=0)
    >>> len(plan.rows), len(plan.design.sizes)
    (100, 2)
    """
    check_confidence(confidence)
    check_scalar(
        reserve, "reserve", (float, int), min_val=0.0, max_val=1.0, include_boundaries="neither"
    )
    check_scalar(
        recall, "recall", (float, int), min_val=0.0, max_val=1.0, include_boundaries="neither"
    )
    ranked = Ranked.of(scores, probabilities, rows)
    n_rows = len(ranked.order)
    budget = checked_budget(budget if design is None else design.budget, n_rows)
    error, seed = 1.0 - confidence, seed_of(random_state)
    if design is None:
        design = choose_design(ranked.probabilities, budget, (1.0 - reserve) * error)
    blocks = [design.drawn]
    looks = [Look((1.0 - reserve) * error, design.drawn)]
    left = reserve * error
    if budget >= _FEWEST_FOR_HALF:
        half = design.of_budget(budget // 2).drawn
        blocks = [half, tuple(np.subtract(design.drawn, half))]
        looks.insert(0, Look(_HALFWAY * left, half))
        left *= 1.0 - _HALFWAY
    totals = _totals(budget, n_rows, additions)
    shares = np.exp2(-np.arange(len(totals)))
    ranks = draw(design, blocks, np.random.default_rng(seed))
    known = np.asarray([] if known_scores is None else known_scores, dtype=float)
    return ReviewPlan(
        n_rows=n_rows,
        n_known=len(known),
        confidence=float(confidence),
        seed=seed,
        design=design,
        looks=tuple(looks),
        additions=tuple(
            Look(float(left * share), design.of_budget(total).drawn)
            for share, total in zip(shares / shares.sum(), totals, strict=True)
        ),
        rows=tuple(map(int, ranked.order[ranks - 1])),
        ranks=tuple(map(int, ranks)),
        probabilities=tuple(map(float, ranked.probabilities[ranks - 1])),
        cutoffs=cutoffs_of(ranked.probabilities, design),
        recall=float(recall),
        reading=reading_of(ranked.probabilities, design, recall),
        known_ranks=ranked.places(known),
    )


def _totals(budget: int, n_rows: int, additions: Sequence[int] | None) -> list[int]:
    """Return the numbers of rows after each addition."""
    if additions is None:
        doubled = [budget * 2**k for k in range(1, 64) if budget * 2 ** (k - 1) < n_rows]
        return [min(total, n_rows) for total in doubled]
    for n in additions:
        check_scalar(n, "additions", (int, np.integer), min_val=1)
    totals = [budget + int(total) for total in np.cumsum(additions)]
    if totals and totals[-1] > n_rows:
        raise ValueError(
            f"With its additions, the plan has {totals[-1]:,} rows, but there are only {n_rows:,}."
        )
    return totals


def plan_for_sample(
    scores: ArrayLike,
    probabilities: ArrayLike,
    sample: Sequence[int],
    *,
    keys: Sequence[str],
    rows: ArrayLike | None = None,
    known_scores: ArrayLike | None = None,
    confidence: float = 0.95,
) -> ReviewPlan:
    """Return a plan for rows that were drawn already, at random and all with equal chances."""
    check_confidence(confidence)
    ranked = Ranked.of(scores, probabilities, rows)
    rank_of = {int(row): rank for rank, row in enumerate(ranked.order, 1)}
    if missing := [row for row in sample if row not in rank_of]:
        raise ValueError(
            f"There is no unlabeled row {missing[0] + 1:,}; rows are numbered from 1, and there "
            f"are {len(rank_of):,}."
        )
    ranks = np.array([rank_of[row] for row in sample])
    error = 1.0 - confidence
    known = np.asarray([] if known_scores is None else known_scores, dtype=float)
    design = choose_division(ranked.probabilities, ranks, error)
    return ReviewPlan(
        n_rows=len(ranked.order),
        n_known=len(known),
        confidence=float(confidence),
        seed=0,
        design=design,
        looks=(Look(error, design.drawn),),
        additions=(),
        rows=tuple(map(int, sample)),
        ranks=tuple(map(int, ranks)),
        probabilities=tuple(map(float, ranked.probabilities[ranks - 1])),
        cutoffs=cutoffs_of(ranked.probabilities, design),
        reading=reading_of(ranked.probabilities, design, ReviewPlan.recall),
        known_ranks=ranked.places(known),
        keys=tuple(keys),
    )
