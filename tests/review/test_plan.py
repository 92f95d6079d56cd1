"""Plans: which rows are drawn, and what may be done without voiding the limits."""

import json
from dataclasses import replace

import numpy as np
import pytest

from classprior._core.messages import percent
from classprior.review import evaluate_review, load_plan, plan_review
from classprior.review._design import Design, allocate, choose_design, choose_division
from classprior.review._plan import Look


def population(n_rows=600, share=0.3, seed=0, separation=3.0):
    """Labels, scores, and probabilities of a population."""
    rng = np.random.default_rng(seed)
    is_positive = rng.permutation(n_rows) < round(share * n_rows)
    scores = rng.normal(separation * is_positive)
    odds = share / (1 - share) * np.exp(separation * (scores - separation / 2))
    return is_positive, scores, odds / (1 + odds)


@pytest.fixture(scope="module")
def made():
    is_positive, scores, p = population()
    return is_positive, scores, p, plan_review(scores, p, budget=60, random_state=1)


def test_a_plan_draws_each_row_once_from_its_strata(made):
    _, scores, _, plan = made
    assert len(set(plan.rows)) == 60 == plan.design.budget
    assert sum(plan.design.sizes) == 600
    order = np.argsort(-scores)
    np.testing.assert_array_equal(order[np.array(plan.ranks) - 1], plan.rows)
    assert tuple(np.bincount(plan.strata)) == plan.design.drawn
    assert [look.n_rows for look in plan.looks] == [30, 60]
    half = plan.design.of_budget(30)
    assert tuple(np.bincount(plan.strata[:30])) == half.drawn
    assert sum(look.error for look in (*plan.looks, *plan.additions)) == pytest.approx(0.05)


def test_every_row_of_a_stratum_is_drawn_with_the_same_probability():
    scores = np.arange(40.0)[::-1]
    p = np.where(scores > 29, 0.9, 0.02)
    design = plan_review(scores, p, budget=20, random_state=0).design
    assert len(design.sizes) == 2
    expected = 400 * np.repeat(np.array(design.drawn) / design.sizes, design.sizes)
    counts = np.zeros(40)
    for seed in range(400):
        counts[list(plan_review(scores, p, design=design, random_state=seed).rows)] += 1
    z = (counts - expected) / np.sqrt(400 * 0.25)
    assert np.abs(z).max() < 4.5


def test_the_order_does_not_tell_the_strata(made):
    *_, plan = made
    in_first = plan.strata[:30] == 0
    assert 0 < np.flatnonzero(in_first)[0] < 25 or 0 < np.flatnonzero(~in_first)[0] < 25
    runs = np.count_nonzero(np.diff(in_first.astype(int)))
    assert runs >= 5


def test_good_scores_make_strata_and_useless_scores_do_not():
    _, _, p = population(separation=4.0)
    assert len(choose_design(np.sort(p)[::-1], 100, 0.0475).sizes) == 2
    useless = np.full(600, 0.3)
    plan = plan_review(np.arange(600.0), useless, budget=100, random_state=0)
    assert plan.forecast().is_plain_as_good
    assert "simple random sample" in plan.forecast().to_text()


def test_biased_labels_do_not_make_strata_worse_than_a_plain_sample():
    """The probabilities are far too low, as with known positives that are not typical."""
    is_positive, scores, p = population(n_rows=2000, share=0.3, separation=2.0)
    odds = p / (1 - p) / 60
    order = np.argsort(-scores)
    design = choose_design((odds / (1 + odds))[order], 100, 0.0475)
    ends = np.cumsum(design.sizes) - 1
    truth = tuple(np.diff(np.cumsum(is_positive[order])[ends], prepend=0).astype(float))
    plain = Design((2000,), (100,), (float(is_positive.sum()),))
    width = replace(design, expected=truth).expected_width(0.0475)
    assert width < 1.03 * plain.expected_width(0.0475)


def test_a_random_sample_is_divided_without_looking_at_which_rows_it_has():
    """Otherwise, rows within a stratum would not be a simple random sample."""
    _, _, p = population(n_rows=900)
    p, rng = np.sort(p)[::-1], np.random.default_rng(0)
    designs = [choose_division(p, rng.choice(900, 80, replace=False) + 1, 0.05) for _ in range(9)]
    assert len({design.sizes for design in designs}) == 1
    assert len({design.drawn for design in designs}) > 1
    assert all(design.budget == 80 for design in designs)
    everything_below = choose_division(p, np.arange(821, 901), 0.05)
    assert everything_below.sizes == designs[0].sizes
    assert everything_below.drawn == (0, 80)


def test_allocations_add_up_and_fit():
    assert allocate([10, 500], np.array([0.5, 0.5]), 100) == (10, 90)
    assert allocate([300, 500], np.array([0.0, 1.0]), 100) == (5, 95)
    assert sum(allocate([3, 500], np.array([0.9, 0.1]), 7)) == 7
    assert allocate([10, 10**9], np.array([0.9, 0.1]), 10**8) == (10, 10**8 - 10)


def test_the_forecast_is_the_mean_width_of_the_limits():
    is_positive, scores, p = population()
    design = plan_review(scores, p, budget=80, random_state=0).design
    plans = [plan_review(scores, p, design=design, random_state=seed) for seed in range(12)]
    found = [evaluate_review(plan, is_positive[list(plan.rows)]) for plan in plans]
    forecast = plans[0].forecast()
    assert forecast.widths[80] == pytest.approx(np.mean([f.high - f.low for f in found]), rel=0.2)
    assert list(forecast.widths) == [40, 80, 160]
    assert forecast.widths[40] > forecast.widths[80] > forecast.widths[160] > forecast.width
    assert 160 < forecast.n_rows < 600


@pytest.mark.parametrize("factor", [1, 1 / 10, 1 / 60])
@pytest.mark.parametrize("separation", [0.5, 2.0, 4.0])
def test_the_forecast_includes_the_width_if_labels_are_biased(factor, separation):
    is_positive, scores, p = population(n_rows=2000, separation=separation)
    odds = factor * p / (1 - p)
    plan = plan_review(scores, odds / (1 + odds), budget=100, random_state=0)
    found = evaluate_review(replace(plan, cutoffs=(), reading=()), is_positive[list(plan.rows)])
    forecast = plan.forecast()
    assert (
        0.75 * forecast.widths[100] < found.high - found.low < 1.03 * forecast.largest_widths[100]
    )
    assert list(forecast.largest_widths) == [50, 100, 200]
    assert percent(forecast.largest_widths[100]) in forecast.to_text()


def test_the_forecast_tells_when_added_rows_are_too_few(made):
    _, scores, p, plan = made
    plan = plan_review(scores, p, design=plan.design, additions=(10, 190))
    few, many = (plan.topped_up(scores, p, n).forecast() for n in (10, 200))
    assert list(few.widths) == [60, 70, 140]
    assert few.widths[60] == few.widths[70] == pytest.approx(plan.forecast().widths[60])
    assert "hardly" in few.to_text()
    assert many.widths[260] < many.widths[60]
    assert "hardly" not in many.to_text()


def test_no_rule_for_stopping_or_adding_rows_voids_the_limits():
    """Stop whenever the limits are wrong: that must be rare, over all moments together."""
    is_positive, scores, p = population(n_rows=120, share=0.25, separation=1.5)
    total, wrong, wrong_at_full_error, n = int(is_positive.sum()), 0, 0, 40
    first = plan_review(scores, p, budget=40, random_state=0)
    options = {"design": first.design, "reserve": 0.4, "additions": (30, 30)}
    for seed in range(n):
        plan = plan_review(scores, p, **options, random_state=seed)
        plan = plan.topped_up(scores, p).topped_up(scores, p)
        assert len(set(plan.rows)) == 100
        answers = is_positive[list(plan.rows)].astype(int)
        # All at the full error: what stopping at will would do without a plan.
        naive = replace(plan, looks=tuple(Look(0.05, look.drawn) for look in plan.looks))
        moments = [20, 40, 70, 100]
        wrong += any(is_wrong(plan, answers[:m], total) for m in moments)
        wrong_at_full_error += any(is_wrong(naive, answers[:m], total) for m in moments)
    assert wrong <= 0.05 * n
    assert wrong_at_full_error > wrong


def is_wrong(plan, answers, total):
    found = evaluate_review(replace(plan, cutoffs=()), answers)
    return not found.low_count <= total <= found.high_count


def test_rows_are_added_to_the_same_strata_from_the_same_scores(made):
    is_positive, scores, p, plan = made
    more = plan.topped_up(scores, p, 60)
    assert more.rows[:60] == plan.rows
    assert len(set(more.rows)) == 120
    assert more.design.sizes == plan.design.sizes
    assert more.looks == (*plan.looks, plan.additions[0])
    assert more.additions == plan.additions[1:]
    with pytest.raises(ValueError, match="not those from which the plan was made"):
        plan.topped_up(scores[::-1], p, 10)
    with pytest.raises(ValueError, match="60, 180, 420, 540"):
        plan.topped_up(scores, p, 541)
    everything = plan.topped_up(scores, p, 540)
    found = evaluate_review(everything, is_positive[list(everything.rows)])
    assert found.low_count == found.high_count == is_positive.sum()


def test_added_rows_are_drawn_from_all_that_are_left():
    scores = np.arange(30.0)[::-1]
    p = np.where(scores > 19, 0.9, 0.02)
    design = Design((10, 20), (4, 6), (9.0, 0.4))
    counts = np.zeros(30)
    for seed in range(300):
        plan = plan_review(scores, p, design=design, random_state=seed)
        more = plan.topped_up(scores, p, 10)
        assert len(set(more.rows)) == 20
        assert not set(more.rows[10:]) & set(plan.rows)
        counts[list(more.rows[10:])] += 1
    expected = 300 * np.repeat([4 / 10, 6 / 20], [10, 20])
    assert np.abs((counts - expected) / np.sqrt(300 * 0.25)).max() < 4.5


def test_a_saved_plan_is_the_same_plan(made, tmp_path):
    *_, plan = made
    assert plan.additions
    plan = replace(plan, keys=tuple(map(str, plan.rows)), digest="d")
    plan.save(tmp_path / "a.json")
    assert load_plan(tmp_path / "a.json") == plan
    values = json.loads((tmp_path / "a.json").read_text())
    for change in (
        {"schema": "other"},
        {"rows": [1, *plan.rows[2:]]},
        {"n_rows": 599},
        {"ranks": plan.ranks[::-1][:-1]},
        {"looks": [{"n_rows": 60, "error": 0.2}]},
    ):
        (tmp_path / "b.json").write_text(json.dumps(values | change))
        with pytest.raises(ValueError, match="not a plan"):
            load_plan(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": 601}, "601"),
        ({"confidence": 1.5}, "confidence"),
        ({"reserve": 0.0}, "reserve"),
    ],
)
def test_wrong_parameters(change, error):
    _, scores, p = population()
    with pytest.raises(ValueError, match=error):
        plan_review(scores, p, **change)


def test_wrong_scores():
    with pytest.raises(ValueError, match="one score"):
        plan_review([1.0, 2.0], [0.5], budget=1)
    with pytest.raises(ValueError, match="finite"):
        plan_review([1.0, np.nan], [0.5, 0.5], budget=1)


@pytest.mark.parametrize("budget", [1, 3, 19, 600])
def test_any_budget_works(budget):
    is_positive, scores, p = population()
    plan = plan_review(scores, p, budget=budget, random_state=0)
    found = evaluate_review(plan, is_positive[list(plan.rows)])
    assert len(plan.rows) == budget
    assert found.low_count <= found.count <= found.high_count


def test_designs_with_equal_rows_have_equal_widths():
    design = Design((400, 200), (30, 30), (40.0, 100.0))
    assert design.of_budget(60) == design
    assert design.expected_width(0.05) < design.expected_width(0.01)
