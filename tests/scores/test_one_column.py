"""Columns that decide the estimate alone are named, with what the estimate is without them."""

import numpy as np
import pandas as pd
import pytest

from classprior import estimate_prior
from classprior._scores.one_column import Decisive, contradicts, decisive_columns


class Fitted:
    """The attributes of an estimate that matter here."""

    def __init__(self, low, high, separation=0.9):
        self.low_, self.high_, self.separation_ = low, high, separation
        self.prior_ = (low + high) / 2.0


def frames(seed=0, prior=0.3, n=500, m=3000, distance=3.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + m, 3))
    X[n + round(prior * m) :] += distance / np.sqrt(3.0)
    table = pd.DataFrame(X, columns=list("abc"))
    return table[:n].copy(), table[n:].copy(), rng


@pytest.mark.parametrize("rate", [0.01, 0.03, 0.05])
@pytest.mark.parametrize("seed", range(3))
def test_a_flag_of_labeled_rows_is_named(seed, rate):
    """Half of the known positives have it, and a few of the unlabeled rows of either class."""
    known, unlabeled, rng = frames(seed)
    known["flag"], unlabeled["flag"] = (
        rng.random(len(known)) < 0.5,
        rng.random(len(unlabeled)) < rate,
    )
    answer = estimate_prior(known, unlabeled, random_state=seed)
    assert answer.prior < 0.2
    assert answer.meaning == "leak"
    assert answer.leaks == ("flag",)
    assert "'flag'" in answer.answer
    assert any("'flag'" in warning and "instead of" in warning for warning in answer.warnings)


@pytest.mark.parametrize("seed", range(3))
def test_a_flag_of_positives_is_none_of_labeled_rows(seed):
    """Half of all positives have it, known or hidden, and hardly any negative."""
    known, unlabeled, rng = frames(seed)
    is_positive = np.arange(len(unlabeled)) < 900
    known["flag"] = rng.random(len(known)) < 0.5
    unlabeled["flag"] = rng.random(len(unlabeled)) < np.where(is_positive, 0.5, 0.005)
    answer = estimate_prior(known, unlabeled, random_state=seed)
    assert answer.leaks == ()
    assert answer.low < 0.3 < answer.high


def test_a_status_is_named_although_another_level_says_nothing():
    """Of its values, "confirmed" alone reveals labeled rows; "open" is frequent in both samples."""
    known, unlabeled, rng = frames()
    levels = ["open", "confirmed", "other"]
    known["status"] = rng.choice(levels, len(known), p=[0.0, 0.6, 0.4])
    unlabeled["status"] = rng.choice(levels, len(unlabeled), p=[0.6, 0.01, 0.39])
    answer = estimate_prior(known, unlabeled, random_state=0)
    assert answer.leaks == ("status",)


def test_with_unequal_weights_no_flag_is_judged():
    """Five percent of the rows are positive, but half of the weight: their flag is no leak."""
    known, unlabeled, rng = frames(prior=0.05)
    is_positive = np.arange(len(unlabeled)) < 150
    known["flag"] = rng.random(len(known)) < 0.8
    unlabeled["flag"] = rng.random(len(unlabeled)) < np.where(is_positive, 0.8, 0.002)
    known["w"], unlabeled["w"] = 1.0, np.where(is_positive, 19.0, 1.0)
    answer = estimate_prior(known, unlabeled, weights="w", random_state=0)
    assert answer.leaks == ()


def test_a_date_of_entry_is_named():
    known, unlabeled, rng = frames()
    known["day"] = rng.integers(0, 210, len(known))
    unlabeled["day"] = rng.integers(180, 210, len(unlabeled))
    answer = estimate_prior(known, unlabeled, random_state=0)
    assert answer.meaning == "leak"
    assert answer.leaks == ("day",)


def test_a_note_names_the_column_that_decides_most():
    known, unlabeled, rng = frames(distance=2.0)
    known["x"] = rng.normal(size=len(known))
    unlabeled["x"] = rng.normal(size=len(unlabeled)) + 5.0 * (np.arange(len(unlabeled)) >= 900)
    answer = estimate_prior(known, unlabeled, random_state=0)
    assert answer.leaks == ()
    assert any("'x' decides most" in note for note in answer.notes)


def test_all_columns_of_a_name_count_together():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 4)), rng.normal(size=(60, 4))
    names = ["a", "b", "b", "c"]
    (column,) = decisive_columns(*rows, names, np.array([0.3, 0.3, 0.3, 0.1]))
    assert column == Decisive("b", 0.6)
    assert decisive_columns(*rows, names, np.array([0.4, 0.1, 0.1, 0.4])) == []
    assert decisive_columns(*rows, ["a"] * 4, np.full(4, 0.25)) == []


def test_when_a_column_contradicts_the_others():
    """Without it, the share is higher beyond both intervals, and known positives stand out."""
    plain, flag = Decisive("x", 0.7), Decisive("x", 0.7, 250, 30)
    low, high = Fitted(0.001, 0.015), Fitted(0.2, 0.4)
    sizes = 500, 3000
    assert contradicts(plain, sizes, low, high)
    assert not contradicts(plain, sizes, high, low)
    assert not contradicts(plain, sizes, Fitted(0.01, 0.05), high)  # may be due to overlap
    assert not contradicts(plain, sizes, low, Fitted(0.2, 0.4, separation=0.5))
    # At a share of .2, half of 600 hidden positives should have the flag.
    assert contradicts(flag, sizes, low, high)
    assert not contradicts(Decisive("x", 0.7, 250, 290), sizes, low, high)
