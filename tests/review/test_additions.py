"""Rows are added by someone who wants the limits to fail: exact dynamic programs over results."""

from functools import cache
from itertools import product
from math import comb, prod

import numpy as np
import pytest

from classprior.review import Design, limits_of_count, plan_review


def plan_of(design, **options):
    """Plan over rows whose scores fall from the first to the last."""
    n = sum(design.sizes)
    return plan_review(np.arange(n)[::-1], np.full(n, 0.5), design=design, **options)


def error_of(plan, positives):
    """Probability that limits are wrong at any look that the plan has or may still get.

    Nobody who chooses when to stop and which additions to draw can do worse.
    """
    sizes, total = plan.design.sizes, sum(positives)
    wrong, drawn, going = 0.0, (0,) * len(sizes), {(0,) * len(sizes): 1.0}
    for look in (*plan.looks, *plan.additions):
        errors = tuple(side * look.error for side in plan.design.sides)
        after = {}
        for found, p in going.items():
            for more, q in steps(sizes, drawn, positives, found, look.drawn):
                after[more] = after.get(more, 0.0) + p * q
        going = {}
        for found, p in after.items():
            low, high = limits(sizes, look.drawn, found, errors)
            if low <= total <= high:
                going[found] = p
            else:
                wrong += p
        drawn = look.drawn
    return wrong


@cache
def limits(sizes, drawn, found, errors):
    return limits_of_count(sizes, drawn, found, errors)


def steps(sizes, drawn, positives, found, then):
    """Yield numbers of positives after more rows are drawn, and their probabilities."""
    each = []
    for N, n, M, x, m in zip(sizes, drawn, positives, found, then, strict=True):
        left, good, more = N - n, M - x, m - n
        ways = range(max(0, more - left + good), min(good, more) + 1)
        each.append(
            [(x + y, comb(good, y) * comb(left - good, more - y) / comb(left, more)) for y in ways]
        )
    for step in product(*each):
        yield tuple(x for x, _ in step), prod(p for _, p in step)


@pytest.mark.parametrize(
    ("design", "options"),
    [
        (Design((36,), (6,), (14.0,)), {}),
        (Design((36,), (6,), (14.0,)), {"additions": (1, 3, 2, 11)}),
        (Design((60,), (10,), (18.0,)), {"additions": (7, 7, 7)}),
        (Design((60,), (40,), (18.0,)), {}),
        (Design((7, 15), (3, 3), (5.0, 1.0), (0.3, 0.7)), {}),
        (Design((7, 15), (3, 2), (5.0, 1.0)), {"additions": (3, 4)}),
    ],
)
def test_no_choice_of_additions_and_moments_voids_the_limits(design, options):
    plan = plan_of(design, reserve=0.5, **options)
    each = (range(0, size + 1, 1 if len(design.sizes) == 1 else 2) for size in design.sizes)
    worst = max(error_of(plan, positives) for positives in product(*each))
    assert 0.0 < worst <= 0.05


def test_sizes_that_depend_on_results_would():
    """Half of the error probability that is left for each addition, whatever its size."""
    N, first, M, errors = 36, 6, 14, [0.025, 0.0125, 0.00625, 0.003125]
    end = first + 1
    wrong = [
        [
            np.array([not low <= M <= high for low, high in each])
            for each in (
                [limits_of_count([N], [n], [x], (error / 2, error / 2)) for x in range(n + 1)]
                for n in range(end - 1, N + 1)
            )
        ]
        for error in errors
    ]
    # The probability of a wrong limit from each state on, if the best size is added
    value = [np.zeros(n + 1) for n in range(first, N + 1)]
    for at_look in wrong[:0:-1]:
        target = [np.where(bad, 1.0, v) for bad, v in zip(at_look, value, strict=True)]
        value = [
            np.array([best_addition(N, M, n, x, target, first) for x in range(n + 1)])
            for n in range(first, N + 1)
        ]
    start = steps((N,), (0,), (M,), (0,), (first,))
    adversary = sum(p * (1.0 if wrong[0][0][x] else value[0][x]) for (x,), p in start)
    assert adversary > 0.054


def best_addition(N, M, n, x, target, first):
    if not max(0, M - N + n) <= x <= min(n, M):
        return 0.0
    return max(
        (
            sum(p * target[m - first][y] for (y,), p in steps((N,), (n,), (M,), (x,), (m,)))
            for m in range(n + 1, N + 1)
        ),
        default=0.0,
    )


def test_a_plan_allows_only_the_additions_that_were_settled_with_it():
    design = Design((20, 40), (4, 6), (15.0, 2.0))
    scores, p = np.arange(60)[::-1], np.full(60, 0.5)
    for options, totals in (
        ({}, [20, 40, 60]),
        ({"additions": (5, 20)}, [15, 35]),
        ({"additions": ()}, []),
    ):
        plan = plan_of(design, **options)
        reached = []
        for n in range(1, 51):
            try:
                reached.append(len(plan.topped_up(scores, p, n).rows))
            except ValueError:
                continue
        assert reached == totals
        assert sum(look.error for look in (*plan.looks, *plan.additions)) <= 0.05 + 1e-12
    with pytest.raises(ValueError, match="10, 30, 50"):
        plan_of(design).topped_up(scores, p, 11)
    with pytest.raises(ValueError, match="61"):
        plan_of(design, additions=(50, 1))
    with pytest.raises(ValueError, match="none"):
        plan_of(design, additions=()).topped_up(scores, p)


def test_two_additions_at_once_are_the_same_as_one_after_the_other():
    design = Design((20, 40), (4, 6), (15.0, 2.0))
    scores, p = np.arange(60)[::-1], np.full(60, 0.5)
    plan = plan_of(design, reserve=0.5, random_state=3)
    at_once, first = plan.topped_up(scores, p, 30), plan.topped_up(scores, p)
    second = first.topped_up(scores, p)
    assert at_once.rows == second.rows
    assert at_once.looks == second.looks
    assert (at_once.n_before, second.n_before) == (10, 20)
    assert [look.n_rows for look in second.looks] == [10, 20, 40]
