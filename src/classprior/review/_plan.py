"""Which rows to look at: a plan that is made before any of them is, and its file."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from classprior import _html
from classprior._core.types import Ints
from classprior._files.writing import write_text
from classprior.review._design import Design, Forecast
from classprior.review._ranks import Cutoff, Ranked

SCHEMA = "classprior.review/2"
_MOST_SHOWN = 4


@dataclass(frozen=True)
class Look:
    """A moment at which limits are computed, settled before any row is looked at.

    Attributes
    ----------
    error : float
        Error probability of its limits.
    drawn : tuple of int
        Rows of each stratum that were drawn until then.
    """

    error: float
    drawn: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows that were drawn until then."""
        return sum(self.drawn)


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
        After which rows limits are computed, and with which error probability.
    additions : tuple of Look
        The same for rows that may be added. If the size of an addition depended on results, its
        limits would not hold, so all are settled with the plan.
    rows : tuple of int
        Indices of the unlabeled rows to look at, in this order.
    ranks : tuple of int
        Their ranks by score; 1 is the highest score.
    probabilities : tuple of float
        Their probabilities.
    cutoffs : tuple of Cutoff
        Numbers of rows that rank first, for which recall is computed.
    recall : float
        Share of the positives for which the review tells how many rows must be read.
    reading : tuple of int
        Numbers of rows that rank first, from the most on, of which this recall is tested.
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
    additions: tuple[Look, ...]
    rows: tuple[int, ...]
    ranks: tuple[int, ...]
    probabilities: tuple[float, ...]
    cutoffs: tuple[Cutoff, ...] = ()
    recall: float = 0.95
    reading: tuple[int, ...] = ()
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

        If rows were added, the expected width before is told instead of that for half of the rows.

        Parameters
        ----------
        width : float, default=0.05
            Width for which to tell the number of rows.

        Returns
        -------
        forecast : Forecast
            The expected widths, if the probabilities are right, and however wrong they are.
        """
        *earlier, last = [(look.n_rows, look.error) for look in self.looks]
        earlier = [look for look in earlier if look[0] <= self.n_before]
        return Forecast.of(self.design, [*earlier, last], width)

    @property
    def may_add(self) -> tuple[int, ...]:
        """Numbers of rows that may be added: the next addition, the next two together, ..."""
        return tuple(look.n_rows - len(self.rows) for look in self.additions)

    @property
    def may_add_text(self) -> str:
        """The first of them."""
        first = ", ".join(f"{n:,}" for n in self.may_add[:_MOST_SHOWN]) or "none"
        return first + (", ..." if len(self.may_add) > _MOST_SHOWN else "")

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
        budget: int | None = None,
        rows: ArrayLike | None = None,
    ) -> ReviewPlan:
        """Return a plan with more rows, from the same strata.

        Rows may be added after looking at results, and as often as the plan allows: how many was
        settled with the plan.

        Parameters
        ----------
        scores, probabilities : array-like of shape (n_rows,)
            Those from which the plan was made.
        budget : int, optional
            Number of rows to add: that of the next addition, or of several together. By default,
            that of the next.
        rows : array-like of int of shape (n_rows,), optional
            Indices of the rows, if these are not all.

        Returns
        -------
        plan : ReviewPlan
            A plan that begins with the rows of this one. It has no keys yet.
        """
        ranked = Ranked.of(scores, probabilities, rows)
        if len(ranked.order) != self.n_rows or not np.array_equal(
            ranked.order[np.array(self.ranks) - 1], self.rows
        ):
            raise ValueError(
                "The scores are not those from which the plan was made. Use the same data, "
                "options and seed as for the plan."
            )
        n_steps, plan = self._n_steps(budget), self
        for _ in range(n_steps):
            plan = plan._with_next_addition(ranked)
        return replace(plan, keys=(), row_segments=(), digest="", n_before=len(self.rows))

    def _n_steps(self, budget: int | None) -> int:
        """Return how many additions have so many rows together."""
        sizes = self.may_add
        if budget is None and sizes:
            return 1
        if budget not in sizes:
            raise ValueError(
                f"Numbers of rows that may be added to the plan: {self.may_add_text}. They were "
                "settled with the plan, because limits do not hold if they depend on results."
            )
        return sizes.index(budget) + 1

    def _with_next_addition(self, ranked: Ranked) -> ReviewPlan:
        look, *additions = self.additions
        rng = np.random.default_rng([self.seed, len(self.looks)])
        ends, block = np.cumsum(self.design.sizes), []
        for end, size, n in zip(ends, self.design.sizes, look.drawn, strict=True):
            start = end - size + 1
            taken = np.sort([r for r in self.ranks if start <= r <= end]).astype(np.int64)
            free = rng.choice(size - len(taken), n - len(taken), replace=False)
            # Each place among the free ranks moves past the taken ones before it.
            before = np.searchsorted(taken - start - np.arange(len(taken)), free, side="right")
            block.append(start + free + before)
        ranks = rng.permutation(np.concatenate(block))
        return replace(
            self,
            design=replace(self.design, drawn=look.drawn),
            looks=(*self.looks, look),
            additions=tuple(additions),
            rows=(*self.rows, *map(int, ranked.order[ranks - 1])),
            ranks=(*self.ranks, *map(int, ranks)),
            probabilities=(*self.probabilities, *map(float, ranked.probabilities[ranks - 1])),
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
                "looks": _looks(values["looks"]),
                "additions": _looks(values["additions"]),
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


def _looks(values: list[dict[str, Any]]) -> tuple[Look, ...]:
    return tuple(Look(look["error"], tuple(look["drawn"])) for look in values)


def _check(plan: ReviewPlan) -> None:
    """Raise if the parts of a plan do not belong together."""
    n = len(plan.rows)
    parts = plan.ranks, plan.probabilities, plan.keys
    looks = *plan.looks, *plan.additions
    grown = np.diff([look.drawn for look in looks], axis=0, prepend=0)
    is_right = (
        all(len(part) == n for part in parts)
        and len(set(plan.rows)) == len(set(plan.keys)) == n == plan.design.budget
        and sum(plan.design.sizes) == plan.n_rows
        and plan.looks[-1].drawn == plan.design.drawn
        and bool((grown >= 0).all() and grown.sum(axis=1).all())
        and bool((np.array(looks[-1].drawn) <= plan.design.sizes).all())
        and 0 <= plan.n_before < n
        and 0.0 < plan.recall < 1.0
        and bool((np.diff([plan.n_rows, *plan.reading, 0]) < 0).all())
        and sum(look.error for look in looks) <= 1.0 - plan.confidence + 1e-9
        and list(np.bincount(plan.strata, minlength=len(plan.design.sizes)))
        == list(plan.design.drawn)
    )
    if not is_right:
        raise ValueError
