import json
import pickle
import re
from dataclasses import replace
from datetime import datetime, timedelta
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, PenalizedL1Prior, PriorEstimate, estimate_prior
from classprior.datasets import make_transactions
from classprior.estimate import METHODS

QUICK = {"n_repeats": 1, "n_resamples": 50}
LINEAR = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)


def mixed_frames(seed=0):
    """Numbers, a flag, a category with a rare level, a date and gaps; 150 of 500 are positive."""
    rng = np.random.default_rng(seed)
    is_positive = np.arange(700) < 350
    frame = pd.DataFrame(
        {
            "amount": rng.normal(np.where(is_positive, 0.0, 3.0), 1.0) * 1e4,
            "flag": rng.uniform(size=700) < np.where(is_positive, 0.9, 0.2),
            "country": np.where(
                rng.uniform(size=700) < 0.5, "AT", np.where(is_positive, "FR", "PL")
            ),
            "day": [
                datetime(2026, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 90, 700)
            ],
        }
    )
    frame.loc[::9, "amount"] = np.nan
    frame.loc[::11, "country"] = None
    frame.loc[3, "country"] = "XX"
    frame.loc[::13, "day"] = pd.NaT
    return frame[:200], frame[200:]


def test_auto_is_the_default(separated):
    estimate = estimate_prior(*separated, random_state=0, **QUICK)
    assert isinstance(estimate, PriorEstimate)
    assert estimate.method == "auto"
    assert estimate.low <= estimate.prior <= estimate.high
    assert np.floor(estimate.low * 1000) <= estimate.low_count <= estimate.count
    assert estimate.count <= estimate.high_count
    assert (estimate.n_positive, estimate.n_unlabeled) == (400, 1000)
    unscaled = estimate_prior(*separated, scale=False, random_state=0, **QUICK)
    assert unscaled.prior == AutoPrior(random_state=0, **QUICK).fit_samples(*separated).prior_
    assert unscaled.estimator is unscaled.evidence


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_an_interval(method, separated):
    samples = separated[0][:60], separated[1][:120]
    options = {"n_centers": 20} if METHODS[method].has_centers else {}
    options |= {
        "evidence": LINEAR,
        "n_resamples": 20 if METHODS[method].estimator.takes_checkpoint else 2,
    }
    if "kl" in method or "pearson" in method or method == "l1":
        options["thetas"] = np.linspace(0.0, 1.0, 11)
    estimate = estimate_prior(*samples, method=method, random_state=0, **options)
    assert 0.0 <= estimate.low <= estimate.prior <= estimate.high <= 1.0
    assert estimate.method == method
    over = any("overestimates" in warning for warning in estimate.warnings)
    assert over == (method in ("l1", "kl", "pearson", "en", "pe"))


@pytest.mark.parametrize(("method", "has_kernel"), [("tice", False), ("km2", True)])
def test_only_methods_with_kernels_warn_of_many_columns(method, has_kernel):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(40, 40)), rng.normal(size=(60, 40)) + 2.0
    estimate = estimate_prior(
        *samples, method=method, evidence=LINEAR, n_resamples=2, random_state=0
    )
    assert any("with 40 columns" in warning for warning in estimate.warnings) == has_kernel


def test_resampled_bins_cover_the_truth(separated):
    """The interval of penL1 from bins: neither empty nor everything."""
    estimate = estimate_prior(*separated, method="penl1", scale=False, random_state=0)
    assert estimate.low < 0.3 < estimate.high
    assert 0.01 < estimate.high - estimate.low < 0.4
    assert estimate.estimator.prior_ == estimate.prior
    assert set(estimate.evidence.scores_) == {"linear", "kernel", "trees", "together"}
    assert estimate.evidence.upper_bound_ == estimate.upper_bound
    assert PenalizedL1Prior(random_state=0).fit_samples(*separated).prior_ == estimate.prior


def test_frames_with_categories_dates_and_gaps():
    for convert in (lambda frame: frame, pl.from_pandas):
        estimate = estimate_prior(*map(convert, mixed_frames()), random_state=0, **QUICK)
        assert estimate.low < 0.3 < estimate.high
        assert abs(estimate.prior - 0.3) < 0.1


def test_frames_are_left_alone():
    positive, unlabeled = mixed_frames()
    before = positive.copy(), unlabeled.copy()
    estimate_prior(positive, unlabeled, random_state=0, **QUICK)
    pd.testing.assert_frame_equal(positive, before[0])
    pd.testing.assert_frame_equal(unlabeled, before[1])


def test_frames_with_other_columns_are_refused_by_name():
    positive, unlabeled = mixed_frames()
    with pytest.raises(ValueError, match="amount"):
        estimate_prior(positive[["flag"]], unlabeled[["amount"]])


def test_text_says_what_the_number_is_the_share_of(separated):
    estimate = estimate_prior(*separated, random_state=0, **QUICK)
    text = str(estimate)
    assert text.startswith(f"About {estimate.prior:.1%} of the 1,000 unlabeled rows are positive")
    assert f"certified upper bound      {estimate.upper_bound:.1%}" in text
    assert "95% interval, population" in text


def test_dictionary_is_plain_json(separated):
    values = estimate_prior(*separated, random_state=0, **QUICK).to_dict()
    assert json.loads(json.dumps(values)) == values
    assert {"prior", "low", "high", "upper_bound", "confidence", "method", "warnings"} <= set(
        values
    )


def test_small_shares_keep_two_digits(separated):
    estimate = estimate_prior(*separated, random_state=0, **QUICK)
    shares = {0.0: "0.0%", 0.00041: "0.041%", 0.0099: "0.99%", 0.0123: "1.2%", 1.0: "100.0%"}
    for share, text in shares.items():
        answer = replace(estimate, prior=share).answer
        assert answer.startswith(f"About {text} of the 1,000 unlabeled rows")


def test_the_bar_is_drawn_to_scale(separated):
    """Positions in the SVG are the numbers, and labels at the ends stay inside."""
    estimate = estimate_prior(*separated, random_state=0, **QUICK)
    for prior, low, high, bound, side in [
        (0.3, 0.25, 0.4, 0.45, "middle"),
        (0.02, 0.0, 0.05, 0.1, "start"),
        (0.99, 0.9, 1.0, 1.0, "end"),
    ]:
        page = replace(estimate, prior=prior, low=low, high=high, upper_bound=bound).to_html()
        svg = ElementTree.fromstring(re.search("<svg.*</svg>", page)[0])
        assert float(svg.find("circle").get("cx").rstrip("%")) == 100 * prior
        possible, interval = svg.findall("rect")
        assert float(possible.get("width").rstrip("%")) == 100 * bound
        assert float(interval.get("x").rstrip("%")) == 100 * low
        assert float(interval.get("width").rstrip("%")) == pytest.approx(100 * (high - low))
        (label,) = (text for text in svg.findall("text") if text.text == f"{prior:.1%}")
        assert label.get("text-anchor") == side
        assert f"the estimate at {prior:.1%}" in svg.find("title").text


def test_a_warning_is_text_that_knows_its_advice(separated):
    estimate = estimate_prior(separated[0][:30], separated[1], random_state=0, **QUICK)
    (few,) = (w for w in estimate.warnings if w.startswith("Few rows"))
    assert few == f"{few.finding} {few.advice}"
    assert few.advice.startswith("Collect more rows")
    copied = pickle.loads(pickle.dumps(few))
    assert (copied, copied.finding, copied.advice) == (few, few.finding, few.advice)
    assert all(type(w) is str for w in estimate.to_dict()["warnings"])


def test_html_is_well_formed_and_escaped(separated):
    estimate = estimate_prior(*separated, random_state=0, **QUICK)
    nasty = replace(estimate, warnings=("<script>alert(1)</script> & more",))
    html = nasty._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    opened = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            opened.append(tag)

        def handle_endtag(self, tag):
            assert opened.pop() == tag

    Tags().feed(html)
    assert not opened


def test_an_unknown_method_lists_the_known_ones(separated):
    with pytest.raises(ValueError, match=r"auto, .*penl1, .*'magic'"):
        estimate_prior(*separated, method="magic")


def test_confidence_is_checked_before_anything_runs(separated):
    with pytest.raises(ValueError, match=r"confidence.*1\.0"):
        estimate_prior(*separated, confidence=1.0)


def test_columns_may_come_in_any_order_but_must_be_the_same():
    positive, unlabeled = mixed_frames()
    one = estimate_prior(positive, unlabeled, random_state=0, **QUICK)
    other = estimate_prior(positive, unlabeled[unlabeled.columns[::-1]], random_state=0, **QUICK)
    assert one.prior == other.prior
    with pytest.raises(ValueError, match=r"'day' only in X_positive"):
        estimate_prior(positive, unlabeled.drop(columns="day"))


def test_a_high_confidence_keeps_its_digits(separated):
    estimate = estimate_prior(*separated, confidence=0.999, random_state=0, **QUICK)
    assert "99.9% interval, population" in estimate.to_text()
    assert replace(estimate, confidence=0.95).level == "95%"


def test_an_estimate_above_the_bound_is_not_believed(separated):
    options = {"method": "penl1", "sigmas": 1.0, "random_state": 0, "evidence": LINEAR}
    tight, loose = (estimate_prior(*separated, lams=lam, **options) for lam in (1e4, 1e-3))
    assert tight.prior > tight.upper_bound
    (found,) = [warning for warning in tight.warnings if warning.startswith("Above the bound")]
    assert '`method="auto"`' in found
    assert loose.prior < loose.upper_bound
    assert not any(warning.startswith("Above the bound") for warning in loose.warnings)


def test_folds_given_define_the_folds(separated):
    """Copies of rows in one fold, or in one group: neither confirms itself."""
    samples = [np.repeat(X[:n], 4, axis=0) for X, n in zip(separated, (80, 160), strict=True)]
    copies = [np.arange(len(X)) // 4 for X in samples]
    options = {"method": "penl1", "random_state": 0, "evidence": LINEAR, "n_resamples": 20}
    apart = estimate_prior(*samples, **options)
    folds = estimate_prior(*samples, cv=[numbers % 5 for numbers in copies], **options)
    groups = estimate_prior(*samples, groups=[copies[0], 1000 + copies[1]], **options)
    assert apart.prior < min(folds.prior, groups.prior) - 0.05
    # Eight rows that count as four are a wider interval than eight rows that count as eight.
    assert groups.high - groups.low > apart.high - apart.low


def test_gaps_in_arrays_are_treated_like_those_in_frames(separated):
    samples = [X.copy() for X in separated]
    samples[1][::9, 0] = np.nan
    frames = [pd.DataFrame(X, columns=["a", "b"]) for X in samples]
    array, frame = (estimate_prior(*s, random_state=0, **QUICK) for s in (samples, frames))
    assert array.prior == frame.prior
    assert [c.treatment for c in array.columns] == [c.treatment for c in frame.columns]
    assert "112 missing" in array.columns[0].treatment


def test_many_rows_are_said_to_be_a_sample(separated):
    estimate = estimate_prior(*separated, max_rows=300, random_state=0, **QUICK)
    (note,) = (note for note in estimate.notes if "300 of the 1,000 unlabeled rows" in note)
    assert note in estimate.to_text()
    assert estimate.to_dict()["notes"] == list(estimate.notes)
    assert (estimate.n_positive, estimate.n_unlabeled) == (400, 1000)


def test_columns_can_be_dropped_by_name():
    frauds, transactions = make_transactions(n_positive=60, n_unlabeled=200, random_state=0)
    options = {"random_state": 0, "evidence": LINEAR}
    dropped = estimate_prior(frauds, transactions.assign(extra=1.0), drop=["extra"], **options)
    assert dropped.prior == estimate_prior(frauds, transactions, **options).prior
    without = estimate_prior(frauds, transactions, drop=["amount", "payment_id"], **options)
    assert not {"amount", "payment_id"} & {column.name for column in without.columns}
    both = estimate_prior(
        frauds, transactions, columns=["amount", "hour"], drop=["hour"], **options
    )
    assert [column.name for column in both.columns] == ["amount"]
    with pytest.raises(ValueError, match="'wages'"):
        estimate_prior(frauds, transactions, drop=["wages"], **options)
    with pytest.raises(TypeError, match=r"\['amount'\]"):
        estimate_prior(frauds, transactions, columns="amount", **options)


def test_names_of_methods_ignore_case(separated):
    options = {"random_state": 0, "evidence": LINEAR, "n_resamples": 20, "n_centers": 50}
    assert (
        estimate_prior(*separated, method="penL1", **options).prior
        == estimate_prior(*separated, method="penl1", **options).prior
    )


def test_an_upper_bound_says_so_in_the_headline():
    """Negatives everywhere among the positives: the first sentence must not say 'About'."""
    rng = np.random.default_rng(0)
    unlabeled = rng.normal(size=(6000, 1))
    unlabeled[1200:] += 0.7  # 20% positive
    answer = estimate_prior(rng.normal(size=(2000, 1)), unlabeled, random_state=0, evidence=LINEAR)
    assert answer.is_upper_bound
    assert answer.evidence.is_upper_bound_
    assert answer.answer.startswith(f"At most {100 * answer.upper_bound:.1f}%")
    assert answer.answer in answer.to_html()
    assert answer.to_dict()["meaning"] == "at most"
    assert any("do not stand out" in warning for warning in answer.warnings)


def test_an_estimate_that_may_be_the_share_says_about(separated):
    answer = estimate_prior(*separated, random_state=0)
    assert not answer.is_upper_bound
    assert answer.answer.startswith("About")


def test_one_row_is_one_row(separated):
    answer = estimate_prior(*separated, random_state=0, evidence=LINEAR)
    one = replace(answer, prior=1.2 / 1000, low_count=0.0, high_count=1.0)
    assert "(1 row)" in one.answer
    assert "0 to 1 rows" in one.to_text()


def test_samples_that_look_swapped_are_questioned(separated):
    positive, unlabeled = separated
    swapped = estimate_prior(np.vstack([unlabeled] * 2), positive[:300], evidence=LINEAR)
    assert any("2,000" in w and "300" in w for w in swapped.warnings)
    usual = estimate_prior(positive, unlabeled[:100], random_state=0, evidence=LINEAR)
    assert not any(w.startswith("Swapped") for w in usual.warnings)


def test_intervals_of_other_methods_come_with_a_note():
    rng = np.random.default_rng(0)
    rows = rng.normal(3, 1, (80, 2)), rng.normal(0, 1, (150, 2))
    linear = LogisticRegression()
    evidence = AutoPrior(classifiers={"linear": linear}, n_repeats=1, n_resamples=20)
    how = {"evidence": evidence, "n_resamples": 5, "random_state": 0}
    other = estimate_prior(*rows, method="en", classifier=linear, **how)
    assert "interval of en reflects chance, but no bias" in other.notes[0]
    for shown in (str(other), other.to_html(), other.to_dict()["notes"][0]):
        assert other.notes[0] in shown
    assert not any("no bias" in note for note in estimate_prior(*rows, **how).notes)
