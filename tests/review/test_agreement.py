"""An answer with checked rows shows their limits, and whether the other estimate agrees."""

import numpy as np
import pandas as pd
import pytest

from classprior import Estimation
from classprior._core.messages import percent
from classprior.report import render_report
from review.test_sheet import EVIDENCE


@pytest.fixture(scope="module")
def answered():
    """Estimates with answers that the estimate without them agrees with, and with others."""
    rng = np.random.default_rng(0)
    known = pd.DataFrame(rng.normal(3, 1, (80, 2)), columns=["a", "b"])
    pile = np.vstack([rng.normal(3, 1, (80, 2)), rng.normal(0, 1, (220, 2))])
    pile = pd.DataFrame(pile, columns=["a", "b"])
    estimation = Estimation.of(known, pile, evidence=EVIDENCE, random_state=0)
    plan = estimation.plan_review(60)
    truth = np.array(plan.rows) < 80
    half = (np.arange(60) % 10 < 9).astype(int)
    return [estimation.with_checked((plan, given)).estimate for given in (truth, half)]


def test_both_cases_are_there(answered):
    right, other = answered
    assert right.checked.low <= right.prior <= right.checked.high
    assert other.prior < other.upper_bound < other.checked.low


def test_one_word_everywhere(answered):
    for estimate, verdict in zip(answered, ("agrees", "does not agree"), strict=True):
        agrees = estimate.checked.agrees_with(estimate.prior)
        assert agrees == (verdict == "agrees")
        assert estimate.to_dict()["checked"]["agrees"] == agrees
        page = render_report(estimate)
        for text in (str(estimate), estimate.to_html(), page, estimate.findings[0]):
            assert verdict in text
            assert agrees or "agrees" not in text


def test_the_picture_is_of_the_checked_limits_without_the_bound(answered):
    for estimate in answered:
        checked = estimate.checked
        assert estimate.shown == (checked.prior, checked.low, checked.high, None)
        for text in (estimate.to_html(), render_report(estimate)):
            picture = text[
                text.index("A bar from") : text.index("</svg>", text.index("A bar from"))
            ]
            assert f"{percent(checked.low)} to {percent(checked.high)}" in picture
            assert "bound" not in picture


def test_a_refuted_bound_is_not_certified(answered):
    right, other = answered
    assert right.bound_name == "certified upper bound"
    for text in (str(other), other.to_html(), render_report(other)):
        assert "certified" not in text
        assert "in doubt" in text
    assert other.to_dict()["bound_name"] == other.bound_name
    assert "its upper bound" in str(other)


def test_the_report_does_not_say_that_nothing_was_found(answered):
    for estimate in answered:
        page = render_report(estimate)
        assert "No check raised a warning" not in page
        assert page.index(estimate.findings[0]) < page.index("What the checked rows prove")
