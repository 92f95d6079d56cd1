"""One function decides the first sentence, for every door."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from classprior import estimate_prior
from classprior._headline import PROBABILITIES, Meaning, bound_name, headline, meaning_of
from classprior.report import render_report

FACTS = ("is_leak", "has_copies", "is_biased", "disagrees", "is_upper_bound", "is_vague")
SHARES, COUNTS = (0.41, 0.26, 0.45), (410.0, 255.0, 460.0)
SENTENCES = {
    "about": ["About 41.0% of the 1,000 unlabeled rows are positive (410 rows)."],
    "range": ["Between 26.0% and 45.0% of the 1,000", "255 to 460 rows", "41.0%"],
    "at most": ["At most 52.0% of the 1,000", "520 rows", "typical", "far fewer"],
    "disagree": ["About 41.0% of the 1,000", "410 rows", "12.0% if known positives are typical"],
    "biased": ["Probably more than 41.0% of the 1,000", "410 rows", "less often", "undercounted"],
    "too low": ["More than 41.0% of the 1,000", "410 rows", "copies", "too low"],
    "leak": ["Check columns 'id', 'day'", "1,000", "41.0%", "too low"],
}
BOUND = {"upper_bound": 0.52}


@pytest.mark.parametrize("facts", [*product([False, True], repeat=6)])
def test_the_first_fact_in_the_order_decides(facts):
    expected = [*("leak", "too low", "biased", "disagree", "at most", "range")]
    wanted = next((m for m, fact in zip(expected, facts, strict=True) if fact), "about")
    assert meaning_of(**dict(zip(FACTS, facts, strict=True))) == wanted


@pytest.mark.parametrize("meaning", Meaning)
def test_sentences(meaning):
    text = headline(
        meaning, SHARES, COUNTS, 1000, leaks=("id", "day"), prior_if_typical=0.12, **BOUND
    )
    assert all(part in text for part in SENTENCES[meaning])
    assert text.startswith(SENTENCES[meaning][0])


@pytest.mark.parametrize("meaning", Meaning)
def test_with_weights_no_rows_are_counted(meaning):
    text = headline(meaning, SHARES, COUNTS, 1000, leaks=("id",), is_weighted=True, **BOUND)
    assert not any(count in text for count in ("410", "255", "460"))
    assert ("of the total weight of the 1,000 unlabeled rows" in text) == (meaning != "leak")


def test_intervals_that_exclude_nothing():
    text = headline(Meaning.RANGE, (0.22, 0.0, 1.0), (22.0, 0.0, 100.0), 100, **BOUND)
    assert "22" not in text
    assert "next to nothing" in text
    text = headline(Meaning.AT_MOST, (1.0, 0.0, 1.0), (100.0, 0.0, 100.0), 100, upper_bound=1.0)
    assert text.startswith("No answer")
    assert "%" not in text


def test_at_most_is_the_bound_with_its_condition():
    """Never the end of the interval, and called about if the bound is not certified."""
    text = headline(Meaning.AT_MOST, SHARES, COUNTS, 1000, **BOUND, bound_is_exact=False)
    assert text.startswith("At most about 52.0%")
    text = headline(Meaning.AT_MOST, SHARES, COUNTS, 1000, **BOUND, bound_holds_if="it rains")
    assert "if it rains" in text
    assert all(number not in text for number in ("41.0", "26.0", "45.0", "410", "255", "460"))


@pytest.mark.parametrize(
    ("distance", "columns", "share", "begins"),
    [(6.0, 2, 0.2, "About "), (1.0, 1, 0.2, "At most "), (0.0, 2, 0.3, "No answer")],
)
def test_the_first_sentence_claims_no_more_than_is_known(distance, columns, share, begins):
    rng = np.random.default_rng(0)
    unlabeled = rng.normal(size=(2000, columns))
    unlabeled[int(share * 2000) :, 0] += distance
    found = estimate_prior(rng.normal(size=(500, columns)), unlabeled, random_state=0)
    assert found.answer.startswith(begins)
    assert found.low <= share <= found.upper_bound
    holds_if = "rows most like them are positive" in found.to_text()
    assert holds_if == (begins == "About ")


@pytest.mark.parametrize("meaning", Meaning)
def test_only_a_bound_that_holds_is_called_certified(meaning):
    in_doubt = meaning in ("leak", "too low", "biased")
    assert ("certified" in bound_name(meaning, is_exact=True)) == (not in_doubt)
    assert "certified" not in bound_name(meaning, is_exact=False)


@pytest.fixture(scope="module")
def estimate():
    rng = np.random.default_rng(0)
    positive, unlabeled = (
        rng.normal(2, 1, 400),
        np.r_[rng.normal(2, 1, 300), rng.normal(-2, 1, 700)],
    )
    return estimate_prior(positive, unlabeled, random_state=0)


@pytest.mark.parametrize("meaning", Meaning)
def test_text_html_json_and_report_agree(estimate, meaning):
    changed = replace(estimate, meaning=meaning, leaks=("id",))
    answer, in_html = changed.answer, changed.answer.replace("'", "&#x27;")
    assert changed.to_text().startswith(f"{answer}\n")
    assert f"<strong>{in_html}</strong>" in changed.to_html()
    values = changed.to_dict()
    assert (values["answer"], values["meaning"]) == (answer, meaning)
    assert f"<h1>{answer.replace(chr(39), '&#39;')}</h1>" in render_report(changed)
    assert (PROBABILITIES.get(meaning) is None) == (meaning in ("about", "range"))


def test_few_positives_lead_with_the_range():
    rng = np.random.default_rng(1)
    positive, unlabeled = rng.normal(2, 1, 3), np.r_[rng.normal(2, 1, 60), rng.normal(-2, 1, 140)]
    found = estimate_prior(positive, unlabeled, random_state=0)
    assert found.meaning == "range"
    assert found.answer.startswith("Between ")
