"""What checked rows prove: counts, population, recall, segments and comparisons."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from classprior.review import evaluate_review, limits_of_count, plan_review
from review.test_plan import population

N_KNOWN = 100


@pytest.fixture(scope="module")
def made():
    is_positive, scores, p = population(n_rows=900)
    known = np.random.default_rng(5).normal(3.0, 1.0, N_KNOWN)
    plan = plan_review(scores, p, budget=100, known_scores=known, random_state=3)
    return is_positive, scores, p, plan


def test_count_and_limits_are_those_of_the_strata(made):
    is_positive, _, _, plan = made
    answers = is_positive[list(plan.rows)].astype(int)
    found = evaluate_review(plan, answers)
    sizes, drawn = np.array(plan.design.sizes), np.array(plan.design.drawn)
    x = np.bincount(plan.strata, answers).astype(int)
    assert found.count == pytest.approx(sizes @ (x / drawn))  # the stratified estimate
    sides = np.array(plan.design.sides) * plan.looks[-1].error
    low, high = limits_of_count(sizes, drawn, x, tuple(sides))
    assert (found.low_count, found.high_count) == (low, high)
    assert (found.low, found.high, found.prior) == (low / 900, high / 900, found.count / 900)
    assert (found.n_checked, found.n_positive, found.n_unsure) == (100, x.sum(), 0)
    assert found.population_low < found.low < found.high < found.population_high


def test_the_estimate_is_that_of_a_package_for_surveys(made):
    reason = "svy, the reference for stratified estimates, is not installed"
    svy = pytest.importorskip("svy", reason=reason)
    polars = pytest.importorskip("polars", reason=reason)
    is_positive, _, _, plan = made
    answers = is_positive[list(plan.rows)].astype(int)
    for n in (len(answers), 50):
        found = evaluate_review(plan, answers[:n])
        rows = {"y": answers[:n].astype(float), "k": plan.strata[:n].astype(str)}
        frame = polars.DataFrame({**rows, "w": list(found.weights)})
        sample = svy.Sample(frame, svy.Design(stratum="k", wgt="w"))
        for name, value in (("total", found.count), ("mean", found.prior)):
            (row,) = getattr(sample.estimation, name)("y").to_dicts()
            assert value == pytest.approx(row["est"])


def test_the_population_has_binomial_limits_if_all_rows_were_checked(made):
    is_positive, scores, p, _ = made
    plan = plan_review(scores, p, budget=900, random_state=3)
    found = evaluate_review(plan, is_positive[list(plan.rows)])
    M = is_positive.sum()
    assert found.low_count == found.high_count == M
    errors = plan.looks[-1].error * np.array(plan.design.sides)
    assert found.population_low == pytest.approx(stats.beta.ppf(errors[0], M, 900 - M + 1))
    assert found.population_high == pytest.approx(stats.beta.isf(errors[1], M + 1, 900 - M))
    assert evaluate_review(plan, is_positive[list(plan.rows)], groups=True).population_low is None


def test_rows_after_the_last_answer_were_not_drawn(made):
    is_positive, _, _, plan = made
    answers = is_positive[list(plan.rows)].astype(int)
    half = evaluate_review(plan, answers[:50])
    padded = evaluate_review(plan, np.r_[answers[:50], np.full(50, -1)])
    assert half == padded
    assert half.n_unsure == 0
    between = evaluate_review(plan, answers[:70])
    assert (between.low_count, between.high_count) == (half.low_count, half.high_count)
    almost = evaluate_review(plan, answers[:98])
    whole = evaluate_review(plan, answers)
    assert half.low <= almost.low <= whole.low < whole.high <= almost.high <= half.high


def test_added_rows_never_widen_the_limits(made):
    """Limits before rows were added hold together with those after them."""
    is_positive, scores, p, plan = made
    plan = plan_review(scores, p, design=plan.design, additions=(20, 480), random_state=3)
    more = plan.topped_up(scores, p)
    answers = is_positive[list(more.rows)].astype(int)
    before, after = evaluate_review(plan, answers[:100]), evaluate_review(more, answers)
    assert before.low <= after.low < after.high <= before.high
    alone = replace(more, looks=more.looks[-1:])
    assert evaluate_review(alone, answers).high > after.high  # little error probability is left
    many = plan.topped_up(scores, p, 500)
    answers = is_positive[list(many.rows)].astype(int)
    found = evaluate_review(many, answers)
    assert before.low < found.low < found.high < before.high


def test_unsure_rows_get_worst_case_limits(made):
    is_positive, _, _, plan = made
    answers = is_positive[list(plan.rows)].astype(int)
    unsure = answers.copy()
    unsure[[4, 30]] = -1
    found = evaluate_review(plan, unsure)
    assert found.n_unsure == 2
    assert any("2 of the first 100" in note for note in found.notes)
    for filled in (0, 1):
        answers[[4, 30]] = filled
        other = evaluate_review(plan, answers)
        assert found.low <= other.low
        assert other.high <= found.high


def true_recall(is_positive, scores, rank):
    return is_positive[np.argsort(-scores)[:rank]].sum() / is_positive.sum()


def test_recall_holds_at_all_cutoffs_together(made):
    is_positive, scores, p, first = made
    wrong, n = 0, 25
    for seed in range(n):
        plan = plan_review(scores, p, design=first.design, random_state=seed)
        cutoffs = evaluate_review(plan, is_positive[list(plan.rows)]).cutoffs
        for c in cutoffs:
            truth = true_recall(is_positive, scores, c.rank)
            if not c.recall.low <= truth <= c.recall.high + 1e-12:
                wrong += 1
                break
    assert wrong <= 0.05 * n


def test_recall_precision_and_elusion_follow_from_the_counts(made):
    is_positive, _, _, plan = made
    found = evaluate_review(plan, is_positive[list(plan.rows)])
    assert [c.rank for c in found.cutoffs] == sorted(c.rank for c in plan.cutoffs)
    for c in found.cutoffs:
        assert c.precision.high == pytest.approx(c.above.high / c.rank)
        assert c.elusion.high == pytest.approx(c.below.high / (900 - c.rank))
        assert c.recall.low == c.above.low / (c.above.low + c.below.high)
        with_known = (c.above.low + N_KNOWN) / (c.above.low + N_KNOWN + c.below.high)
        assert c.recall_with_known.low == with_known
        assert c.recall_with_known.low >= c.recall.low
    for values in zip(*((c.recall.value, c.recall.low) for c in found.cutoffs), strict=True):
        assert list(values) == sorted(values)
    left = [(c.below.low, c.below.value, c.below.high) for c in found.cutoffs]
    for values in zip(*left, strict=True):
        assert list(values) == sorted(values, reverse=True)


def test_how_many_rows_have_a_recall_that_is_chosen_afterwards():
    is_positive, scores, p = population(n_rows=900, separation=6.0)
    plan = plan_review(scores, p, budget=700, random_state=0)
    found = evaluate_review(plan, is_positive[list(plan.rows)])
    rank = found.rows_for_recall(0.95)
    assert rank < 450
    assert true_recall(is_positive, scores, rank) >= 0.95
    assert found.rows_for_recall(1.0) is None or found.rows_for_recall(1.0) >= rank
    few = evaluate_review(plan, is_positive[list(plan.rows)][:20])
    assert few.rows_for_recall(0.95) is None


def test_segments_have_limits_of_their_own(made):
    is_positive, scores, _, plan = made
    ends = np.cumsum(plan.design.sizes)
    strata = np.searchsorted(ends, 1 + np.argsort(np.argsort(-scores)))
    region = np.arange(900) % 3
    sizes = [tuple(np.bincount(strata[region == r], minlength=len(ends))) for r in range(3)]
    plan = replace(
        plan,
        segment_sizes=list(zip("abc", sizes, strict=True)),
        row_segments=tuple(region[list(plan.rows)]),
    )
    found = evaluate_review(plan, is_positive[list(plan.rows)]).segments
    assert list(found) == ["a", "b", "c"]
    assert sum(part.n_checked for part in found.values()) == 100
    for r, part in enumerate(found.values()):
        assert part.n_unlabeled == 300
        assert part.low_count <= is_positive[region == r].sum() <= part.high_count


def test_positives_unlike_the_known_ones_are_noticed(made):
    is_positive, scores, p, plan = made
    answers = is_positive[list(plan.rows)]
    alike = evaluate_review(plan, answers)
    assert alike.unlike_p_value > 0.01
    assert "No evidence" in alike.findings(0.3, 0.2, 0.4)[1]
    biased = np.random.default_rng(5).normal(5.0, 0.5, N_KNOWN)
    other = plan_review(scores, p, budget=100, known_scores=biased, random_state=3)
    found = evaluate_review(other, answers)
    assert found.is_unlike
    assert any("biased" in text for text in found.findings(0.3, 0.2, 0.4))
    assert evaluate_review(plan, answers[:20]).unlike_p_value is None  # too few


def test_the_comparison_with_known_positives_is_seldom_a_false_alarm():
    is_positive, scores, p = population(n_rows=900)
    design = plan_review(scores, p, budget=60).design
    p_values = []
    for seed in range(150):
        known = np.random.default_rng(seed).normal(3.0, 1.0, N_KNOWN)
        plan = plan_review(scores, p, design=design, known_scores=known, random_state=seed)
        plan = replace(plan, cutoffs=(), reading=())
        p_values.append(evaluate_review(plan, is_positive[list(plan.rows)]).unlike_p_value)
    p_values = [p for p in p_values if p is not None]
    assert len(p_values) > 100
    for level in (0.05, 0.2):
        below = sum(p < level for p in p_values)
        assert 0 < below <= stats.binom.isf(0.01, len(p_values), level)


def test_agreement_with_an_estimate(made):
    is_positive, _, _, plan = made
    found = evaluate_review(plan, is_positive[list(plan.rows)])
    assert found.high < 0.4
    for prior, low, high in ((found.low, 0.0, 1.0), (found.prior, 0.1, 0.2)):
        assert found.agrees_with(prior)
        assert "agrees" in found.findings(prior, low, high)[0]
    for prior, low, high in ((0.8, 0.7, 0.9), (0.4, 0.2, 0.5)):  # also if intervals overlap
        assert not found.agrees_with(prior)
        assert "does not agree" in found.findings(prior, low, high)[0]


@pytest.mark.parametrize(
    ("answers", "error"), [([], "No row"), ([-1, -1], "No row"), ([2], "1, 0"), ([0] * 101, "100")]
)
def test_wrong_answers(made, answers, error):
    with pytest.raises(ValueError, match=error):
        evaluate_review(made[3], answers)
