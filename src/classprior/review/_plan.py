"""Which rows to look at: a plan that is made before any of them is."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from classprior import _html
from classprior._core.types import Doubles, Ints
from classprior._files.writing import write_text
from classprior._tables.parameters import check_confidence, seed_of
from classprior.review._design import Design, Forecast, choose_design, choose_division

SCHEMA = "classprior.review/1"
_FEWEST_FOR_HALF = 40  # rows; with fewer, half of them prove next to nothing
_HALFWAY = 0.4  # share of the reserve that is spent halfway
# Cutoffs are where this share of the positives is expected to rank higher.
_EXPECTED_RECALL = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)
_MOST_KNOWN = 1000  # known positives whose ranks are kept


@dataclass(frozen=True)
class Look:
    """A moment at which limits are computed: after so many rows, with an error probability."""

    n_rows: int
    error: float


@dataclass(frozen=True)
class Cutoff:
    """The rows that rank first, up to a rank."""

    rank: int
    probability: float  # of the last of these rows
    expected: float  # positives among them: the sum of their probabilities


@dataclass(frozen=True, kw_only=True)
class ReviewPlan:
    """Rows to look at, drawn at random from strata of scores, and how results will be judged.

    Made by :func:`plan_review` or :meth:`classprior.Estimation.plan_review`.

    Attributes
    ----------
    n_rows, n_known : int
        Numbers of unlabeled rows and of known positives.
    confidence : float
        Confidence level of the limits.
    seed : int
        Seed of the draw.
    design : Design
        Strata, from the highest scores to the lowest, and rows drawn from each.
    looks : tuple of Look
        After how many rows limits are computed, and with which error probability.
    left : float
        Error probability that is left for more rows.
    rows : tuple of int
        Indices of the unlabeled rows to look at, in this order.
    ranks : tuple of int
        Their ranks by score; 1 is the highest score.
    probabilities : tuple of float
        Their probabilities.
    cutoffs : tuple of Cutoff
        Numbers of rows that rank first, for which recall is computed.
    known_ranks : tuple of int
        Ranks that known positives would have among the unlabeled rows.
    segment_sizes : list of pair
        Each segment, and its number of rows in each stratum.
    row_segments : tuple of int
        Segment of each row to look at, as a place in ``segment_sizes``.
    key_column : str
        Column of the sheet that identifies the rows.
    keys : tuple of str
        Its values.
    digest : str
        Digest of the rows, by which changed data are noticed.
    n_before : int
        Number of rows that were in the plan before the last ones were added.
    """

    n_rows: int
    n_known: int
    confidence: float
    seed: int
    design: Design
    looks: tuple[Look, ...]
    left: float
    rows: tuple[int, ...]
    ranks: tuple[int, ...]
    probabilities: tuple[float, ...]
    cutoffs: tuple[Cutoff, ...] = ()
    known_ranks: tuple[int, ...] = ()
    segment_sizes: list[tuple[Any, tuple[int, ...]]] = field(default_factory=list)
    row_segments: tuple[int, ...] = ()
    key_column: str = "row"
    keys: tuple[str, ...] = ()
    digest: str = ""
    n_before: int = 0

    @property
    def strata(self) -> Ints:
        """Stratum of each row to look at."""
        return np.searchsorted(np.cumsum(self.design.sizes), self.ranks)

    def forecast(self, width: float = 0.05) -> Forecast:
        """Return the expected width for this number of rows, half and twice of it.

        Parameters
        ----------
        width : float, default=0.05
            Width for which to tell the number of rows.

        Returns
        -------
        forecast : Forecast
            The expected widths. They follow from the probabilities, which may be wrong.
        """
        return Forecast.of(self.design, self.looks[-1].error, width)

    def drawn_text(self, n_before: int = 0) -> str:
        """Return how many rows were drawn from where.

        Parameters
        ----------
        n_before : int, default=0
            Number of rows of the plan that were drawn before.

        Returns
        -------
        text : str
            A sentence.
        """
        n, more = len(self.rows) - n_before, "more " if n_before else ""
        drawn = f"Drew {n:,} {more}of the {self.n_rows:,} unlabeled rows at random"
        if len(self.design.sizes) == 1:
            return f"{drawn}, without strata."
        (high, low), (n_high, n_low) = self.design.sizes, self.design.drawn
        return (
            f"{drawn}: in all, {n_high:,} of the {high:,} rows that score highest, and {n_low:,} "
            f"of the {low:,} others."
        )

    def _repr_html_(self) -> str:
        names = ["all rows"] if len(self.design.sizes) == 1 else ["highest scores", "other rows"]
        parts = zip(names, self.design.sizes, self.design.drawn, self.design.expected, strict=True)
        strata = [
            [name, f"{size:,}", f"{n:,}", f"{positives:,.0f}"] for name, size, n, positives in parts
        ]
        return _html.fragment(
            _html.paragraph("", bold=self.drawn_text()),
            _html.table([["stratum", "rows", "to look at", "expected positives"], *strata]),
            _html.paragraph(self.forecast().to_text()),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a JSON file.

        Parameters
        ----------
        path : path
            Output file.
        """
        values = {"schema": SCHEMA, **asdict(self)}
        write_text(Path(path), json.dumps(values, indent=1, allow_nan=False, default=str) + "\n")

    def topped_up(
        self,
        scores: ArrayLike,
        probabilities: ArrayLike,
        budget: int,
        rows: ArrayLike | None = None,
    ) -> ReviewPlan:
        """Return a plan with more rows, from the same strata.

        Half of the error probability that is left is spent on the limits after these rows, so
        rows may be added after looking at results, any number of times.

        Parameters
        ----------
        scores, probabilities : array-like of shape (n_rows,)
            Those from which the plan was made.
        budget : int
            Number of rows to add.
        rows : array-like of int of shape (n_rows,), optional
            Indices of the rows, if these are not all.

        Returns
        -------
        plan : ReviewPlan
            A plan that begins with the rows of this one. It has no keys yet.
        """
        ranked = _Ranked.of(scores, probabilities, rows)
        order = ranked.order
        if len(order) != self.n_rows or not np.array_equal(
            order[np.array(self.ranks) - 1], self.rows
        ):
            raise ValueError(
                "The scores are not those from which the plan was made. Use the same data, "
                "options and seed as for the plan."
            )
        total = self.design.budget + _checked_budget(budget, self.n_rows - self.design.budget)
        wanted = np.maximum(self.design.of_budget(total).drawn, self.design.drawn)
        # If a stratum is used up, the rows of another are drawn in its place.
        rng = np.random.default_rng([self.seed, len(self.looks)])
        ends = np.cumsum(self.design.sizes)
        block = []
        for k, (end, size) in enumerate(zip(ends, self.design.sizes, strict=True)):
            taken = np.array([r for r in self.ranks if end - size < r <= end], dtype=np.int64)
            free = np.setdiff1d(np.arange(end - size + 1, end + 1), taken)
            block.append(rng.choice(free, int(wanted[k]) - len(taken), replace=False))
        ranks = rng.permutation(np.concatenate(block))
        design = replace(self.design, drawn=tuple(map(int, wanted)))
        look = Look(len(self.rows) + len(ranks), self.left / 2.0)
        return replace(
            self,
            design=design,
            looks=(*self.looks, look),
            left=self.left / 2.0,
            rows=(*self.rows, *map(int, order[ranks - 1])),
            ranks=(*self.ranks, *map(int, ranks)),
            probabilities=(*self.probabilities, *map(float, ranked.probabilities[ranks - 1])),
            keys=(),
            row_segments=(),
            digest="",
            n_before=len(self.rows),
        )


def load_plan(path: str | os.PathLike[str]) -> ReviewPlan:
    """Read a plan that was written by ``ReviewPlan.save``.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    plan : ReviewPlan
        The plan.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        if values.pop("schema") != SCHEMA:
            raise ValueError
        known = {f.name for f in fields(ReviewPlan)}
        lists = {k: tuple(v) for k, v in values.items() if isinstance(v, list) and k in known}
        design = {k: tuple(v) for k, v in values["design"].items()}
        plan = ReviewPlan(
            **{
                **values,
                **lists,
                "design": Design(**design),
                "looks": tuple(Look(**look) for look in values["looks"]),
                "cutoffs": tuple(Cutoff(**cutoff) for cutoff in values["cutoffs"]),
                "segment_sizes": [
                    (tuple(name) if isinstance(name, list) else name, tuple(sizes))
                    for name, sizes in values["segment_sizes"]
                ],
            }
        )
        _check(plan)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{str(path)!r} is not a plan of classprior review, or it was changed."
        ) from error
    return plan


def _check(plan: ReviewPlan) -> None:
    """Raise if the parts of a plan do not belong together."""
    n = len(plan.rows)
    parts = plan.ranks, plan.probabilities, plan.keys
    is_right = (
        all(len(part) == n for part in parts)
        and len(set(plan.rows)) == len(set(plan.keys)) == n == plan.design.budget
        and sum(plan.design.sizes) == plan.n_rows
        and plan.looks[-1].n_rows == n
        and 0 <= plan.n_before < n
        and sum(look.error for look in plan.looks) <= 1.0 - plan.confidence + 1e-9
        and list(np.bincount(plan.strata, minlength=len(plan.design.sizes)))
        == list(plan.design.drawn)
    )
    if not is_right:
        raise ValueError


def plan_review(
    scores: ArrayLike,
    probabilities: ArrayLike,
    *,
    budget: int = 100,
    confidence: float = 0.95,
    reserve: float = 0.05,
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
    ranked = _Ranked.of(scores, probabilities, rows)
    n_rows = len(ranked.order)
    budget = _checked_budget(budget if design is None else design.budget, n_rows)
    error, seed = 1.0 - confidence, seed_of(random_state)
    if design is None:
        design = choose_design(ranked.probabilities, budget, (1.0 - reserve) * error)
    blocks = [design.drawn]
    looks = [Look(budget, (1.0 - reserve) * error)]
    left = reserve * error
    if budget >= _FEWEST_FOR_HALF:
        half = design.of_budget(budget // 2)
        blocks = [half.drawn, tuple(np.subtract(design.drawn, half.drawn))]
        looks.insert(0, Look(half.budget, _HALFWAY * left))
        left *= 1.0 - _HALFWAY
    ranks = _draw(design, blocks, np.random.default_rng(seed))
    known = np.asarray([] if known_scores is None else known_scores, dtype=float)
    return ReviewPlan(
        n_rows=n_rows,
        n_known=len(known),
        confidence=float(confidence),
        seed=seed,
        design=design,
        looks=tuple(looks),
        left=left,
        rows=tuple(map(int, ranked.order[ranks - 1])),
        ranks=tuple(map(int, ranks)),
        probabilities=tuple(map(float, ranked.probabilities[ranks - 1])),
        cutoffs=_cutoffs(ranked.probabilities, design),
        known_ranks=ranked.places(known),
    )


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
    ranked = _Ranked.of(scores, probabilities, rows)
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
        looks=(Look(len(ranks), error),),
        left=0.0,
        rows=tuple(map(int, sample)),
        ranks=tuple(map(int, ranks)),
        probabilities=tuple(map(float, ranked.probabilities[ranks - 1])),
        cutoffs=_cutoffs(ranked.probabilities, design),
        known_ranks=ranked.places(known),
        keys=tuple(keys),
    )


@dataclass(frozen=True, eq=False)
class _Ranked:
    """The rows from the highest score to the lowest, by their indices."""

    order: Ints
    scores: Doubles
    probabilities: Doubles

    @classmethod
    def of(
        cls, scores: ArrayLike, probabilities: ArrayLike, rows: ArrayLike | None = None
    ) -> _Ranked:
        s, p = np.asarray(scores, dtype=float), np.asarray(probabilities, dtype=float)
        if s.ndim != 1 or s.shape != p.shape:
            raise ValueError(
                "Expected one score and one probability for each row, got arrays of shapes "
                f"{s.shape} and {p.shape}."
            )
        if not np.isfinite(s).all() or not ((p >= 0.0) & (p <= 1.0)).all():
            raise ValueError("Expected finite scores, and probabilities between 0 and 1.")
        # Last digits may depend on the blocks in which rows are scored.
        order = np.argsort(-s.round(9), kind="stable")
        numbers = order if rows is None else np.asarray(rows)[order]
        return cls(numbers, s[order], p[order])

    def places(self, scores: Doubles) -> tuple[int, ...]:
        """Return the ranks that other scores would have; of many, evenly spaced ones."""
        some = np.sort(scores)[:: max(1, -(-len(scores) // _MOST_KNOWN))]
        return tuple(map(int, 1 + np.searchsorted(-self.scores, -some)))


def _checked_budget(budget: int, n_rows: int) -> int:
    check_scalar(budget, "budget", (int, np.integer), min_val=1)
    if budget > n_rows:
        raise ValueError(f"The budget is {budget:,} rows, but there are only {n_rows:,}.")
    return int(budget)


def _draw(design: Design, blocks: Sequence[Sequence[int]], rng: np.random.Generator) -> Ints:
    """Draw ranks from each stratum, in blocks that mix the strata at random."""
    ends = np.cumsum(design.sizes)
    drawn = [
        end - rng.choice(size, n, replace=False)
        for end, size, n in zip(ends, design.sizes, design.drawn, strict=True)
    ]
    starts = np.cumsum([[0] * len(ends), *blocks], axis=0)
    parts = [
        np.concatenate([ranks[a:b] for ranks, a, b in zip(drawn, start, end, strict=True)])
        for start, end in pairwise(starts)
    ]
    return np.concatenate([rng.permutation(part) for part in parts]).astype(np.int64)


def _cutoffs(probabilities: Doubles, design: Design) -> tuple[Cutoff, ...]:
    """Return the cutoffs at which recall is computed, from the recall expected at each."""
    sums = np.cumsum(probabilities)
    ranks = 1 + np.searchsorted(sums, np.array(_EXPECTED_RECALL) * sums[-1])
    ranks = {min(int(rank), len(sums) - 1) for rank in ranks} | set(np.cumsum(design.sizes)[:-1])
    return tuple(
        Cutoff(int(rank), float(probabilities[rank - 1]), float(sums[rank - 1]))
        for rank in sorted(ranks)
        if rank > 0
    )
