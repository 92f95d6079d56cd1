"""Columns that may reveal which rows are labeled are named, and nothing else is."""

import numpy as np
import pandas as pd
import pytest

from classprior import estimate_prior
from classprior._scores.leaks import about_leaks, find_leaks

QUICK = {"n_repeats": 2, "n_resamples": 50, "random_state": 0}


def normals(n=300, m=900, prior=0.03, shift=3.0, seed=0):
    rng = np.random.default_rng(seed)
    unlabeled = rng.normal(size=(m, 3))
    unlabeled[round(prior * m) :, 0] += shift
    return rng.normal(size=(n, 3)), unlabeled


def with_column(samples, positive, unlabeled):
    return np.column_stack([samples[0], positive]), np.column_stack([samples[1], unlabeled])


@pytest.mark.parametrize("seed", range(5))
def test_rare_positives_are_no_leak(seed):
    """Three columns, one of which separates the classes as well as real columns do."""
    assert find_leaks(*normals(seed=seed), 0.03, None) == []


def test_nothing_is_looked_for_unless_the_estimate_is_near_zero():
    leaked = with_column(normals(), np.arange(300), np.arange(300, 1200))
    assert find_leaks(*leaked, 0.2, None) == []


def test_a_column_alone():
    leaked = with_column(normals(), np.arange(300), np.arange(300, 1200))
    (leak,) = find_leaks(*leaked, 0.001, ["a", "b", "c", "entered on"])
    assert leak.columns == ("entered on",)
    assert leak.area > 0.99
    (caution,) = about_leaks([leak])
    assert (caution.remedy, caution.column) == ("drop", "entered on")
    assert "`drop=['entered on']`" in caution.advice


def test_a_column_that_is_not_monotone():
    """Known positives lie in the middle of the column."""
    rng = np.random.default_rng(1)
    ends = np.r_[rng.uniform(0, 4, 450), rng.uniform(6, 10, 450)]
    leaked = with_column(normals(), rng.uniform(4.5, 5.5, 300), ends)
    (leak,) = find_leaks(*leaked, 0.001, None)
    assert leak.columns == ("3",)


def test_a_pair_of_columns():
    """Their difference is constant in the known positives, such as a date and its copy."""
    rng = np.random.default_rng(2)
    when, other = rng.normal(size=1200), rng.normal(size=1200)
    other[:300] = when[:300]
    pair = np.column_stack([when, other])
    leaked = with_column(normals(), pair[:300], pair[300:])
    (leak,) = find_leaks(*leaked, 0.001, ["a", "b", "c", "seen", "checked"])
    assert leak.columns == ("seen", "checked")
    assert "'seen' and 'checked' together" in about_leaks([leak])[0]


@pytest.mark.parametrize("share", [0.3, 0.15])
def test_a_field_filled_in_on_confirmation(share):
    """Filled in for some known positives and no unlabeled row: too few for the area to show."""
    leaked = with_column(normals(), np.arange(300) < 300 * share, np.zeros(900))
    (leak,) = find_leaks(*leaked, 0.001, None)
    assert (leak.columns, leak.share) == (("3",), share)
    assert f"{share:.0%}" in about_leaks([leak])[0]
    common = with_column(normals(), np.arange(300) < 300 * share, np.arange(900) % 9 == 0)
    assert find_leaks(*common, 0.001, None) == []


def test_levels_of_a_category_count_together():
    samples = with_column(normals(), np.eye(2)[np.zeros(300, int)], np.eye(2)[np.ones(900, int)])
    (leak,) = find_leaks(*samples, 0.001, ["a", "b", "c", "office", "office"])
    assert leak.columns == ("office",)


def test_one_of_many_columns():
    rng = np.random.default_rng(6)
    noise = rng.normal(size=(1200, 400))
    noise[:300, 250] += 9.0
    (leak,) = find_leaks(*with_column(normals(), noise[:300], noise[300:]), 0.001, None)
    assert leak.columns == ("253",)


@pytest.mark.parametrize("n", [1, 2, 9, 10, 13])
def test_fewer_positives_than_levels(n):
    rng = np.random.default_rng(4)
    levels = np.eye(12)[rng.integers(0, 12, n + 400)]
    names = ["a", "b", "c", *["kind"] * 12]
    samples = with_column(normals(n, 400), levels[:n], levels[n:])
    assert all(leak.columns != ("kind",) for leak in find_leaks(*samples, 0.001, names))


def test_a_leak_decides_the_headline_and_the_bound_is_in_doubt():
    """The entry number tells known positives from all others, though 30% are positive."""
    positive, unlabeled = normals(prior=0.3)
    frames = [pd.DataFrame(part, columns=list("abc")) for part in (positive, unlabeled)]
    rng = np.random.default_rng(3)
    frames[0]["entered"], frames[1]["entered"] = rng.uniform(0, 1, 300), rng.uniform(2, 3, 900)
    estimate = estimate_prior(*frames, **QUICK)
    assert estimate.meaning == "leak"
    assert estimate.leaks == ("entered",)
    assert estimate.answer.startswith("Check column 'entered' first")
    assert "'entered'" in estimate.answer
    for text in (str(estimate), estimate.to_html()):
        assert "ertified" not in text
    assert estimate.to_dict()["bound_name"] == "upper bound (in doubt)"
    assert estimate_prior(*frames, drop=["entered"], **QUICK).meaning != "leak"
