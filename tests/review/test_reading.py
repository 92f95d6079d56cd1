"""How many rows to read for a recall that was chosen before: brute force and simulation."""

from dataclasses import replace
from functools import cache
from itertools import product
from math import comb, prod

import numpy as np
import pytest

from classprior.review import Design, evaluate_review, plan_review
from classprior.review._limits import is_ruled_out
from classprior.review._plan import Look
from review.test_limits import all_results, result_probability
from review.test_plan import population


@pytest.mark.parametrize(
    ("sizes", "drawn", "weights"),
    [((6, 8), (3, 4), (0.1, 0.9)), ((3, 4, 6), (2, 2, 3), (0.3, 0.7, 0.7)), ((9,), (4,), (0.2,))],
)
def test_weighted_totals_are_ruled_out_seldom_if_true(sizes, drawn, weights):
    arrays = np.array(sizes), np.array(drawn)
    for total in (0.5, 1.4, 3.0):
        ruled_out = [
            x
            for x in all_results(drawn)
            if is_ruled_out(*arrays, np.array(x), 0.2, np.array(weights), total)
        ]
        errors = [
            sum(result_probability(sizes, drawn, M, x) for x in ruled_out)
            for M in product(*(range(N + 1) for N in sizes))
            if np.dot(M, weights) > total + 1e-9
        ]
        assert max(errors, default=0.0) <= 0.2
        some_total = np.dot(sizes, weights)
        assert is_ruled_out(*arrays, np.array(drawn), 0.2, np.array(weights), some_total)
        assert not is_ruled_out(*arrays, np.array(drawn), 0.2, np.array(weights), 0.5)


def split_draws(parts, n):
    """Yield ways to draw n rows from parts of a stratum, and their probabilities."""
    for drawn in product(*(range(min(n, part) + 1) for part in parts)):
        if sum(drawn) == n:
            ways = prod(comb(part, k) for part, k in zip(parts, drawn, strict=True))
            yield drawn, ways / comb(sum(parts), n)


def test_claims_are_wrong_as_seldom_as_they_say_for_every_population():
    """Rows rank in groups between numbers to read; all populations, draws and answers count."""
    groups, design, reading, error = (
        ((2, 3), (3, 6)),
        Design((5, 9), (3, 5), (4.0, 1.0)),
        (8, 5, 2),
        0.3,
    )
    scores = np.arange(14.0)[::-1]
    plan = plan_review(scores, np.full(14, 0.5), design=design, recall=0.6)
    plan = replace(plan, looks=(Look(error, design.drawn),), reading=reading, cutoffs=())
    sizes = [size for stratum in groups for size in stratum]
    firsts = np.cumsum(sizes) - sizes + 1
    draws = [
        (a + b, p * q)
        for a, p in split_draws(groups[0], design.drawn[0])
        for b, q in split_draws(groups[1], design.drawn[1])
    ]

    @cache
    def claim(drawn, found):
        each = list(zip(firsts, drawn, found, strict=True))
        ranks = tuple(int(first + i) for first, n, _ in each for i in range(n))
        answers = [int(i < x) for _, n, x in each for i in range(n)]
        found = evaluate_review(replace(plan, ranks=ranks), answers, groups=True)
        return found.rows_to_read

    worst = 0.0
    for positives in product(*(range(size + 1) for size in sizes)):
        total, wrong = sum(positives), 0.0
        reached = {
            rank: sum(M for M, end in zip(positives, np.cumsum(sizes), strict=True) if end <= rank)
            for rank in reading
        }
        for drawn, p in draws:
            for found in product(
                *(range(min(n, M) + 1) for n, M in zip(drawn, positives, strict=True))
            ):
                rank = claim(drawn, found)
                if rank is not None and reached[rank] < 0.6 * total - 1e-9:
                    wrong += p * result_probability(sizes, drawn, positives, found)
        worst = max(worst, wrong)
    assert 0.0 < worst <= error


@pytest.mark.parametrize(("budget", "recall", "most"), [(100, 0.8, 900), (400, 0.95, 900)])
def test_recall_can_be_claimed(budget, recall, most):
    """Limits for all cutoffs together prove this seldom, or with many more rows."""
    is_positive, scores, p = population(n_rows=2000, separation=3.5)
    reached = np.cumsum(is_positive[np.argsort(-scores)]) / is_positive.sum()
    design, to_read = plan_review(scores, p, budget=budget).design, []
    for seed in range(8):
        plan = plan_review(scores, p, design=design, recall=recall, random_state=seed)
        found = evaluate_review(plan, is_positive[list(plan.rows)])
        to_read.append(found.rows_to_read or 2000)
        assert reached[to_read[-1] - 1] >= recall
        assert to_read[-1] <= (found.rows_for_recall(recall) or 2000)
        assert f"first {found.rows_to_read:,}" in found.to_text()
    assert np.median(to_read) <= most


def test_earlier_looks_and_unanswered_rows_are_allowed_for():
    is_positive, scores, p = population(n_rows=900, separation=6.0)
    plan = plan_review(scores, p, budget=300, reserve=0.4, recall=0.9, random_state=0)
    answers = is_positive[list(plan.rows)].astype(int)
    whole, half = evaluate_review(plan, answers), evaluate_review(plan, answers[:150])
    assert whole.rows_to_read < half.rows_to_read
    assert evaluate_review(plan, answers[:290]).rows_to_read <= half.rows_to_read
    unsure = answers.copy()
    unsure[:5] = -1
    assert whole.rows_to_read <= evaluate_review(plan, unsure).rows_to_read
    few = evaluate_review(plan, answers[:10])
    assert few.rows_to_read is None
    assert "all 900" in few.to_text()
