"""Copies and known positives among the unlabeled rows: found where they are, and nowhere else."""

from itertools import product
from math import factorial, prod

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, estimate_prior
from classprior._samples.matching import column_keys, find_known, row_keys
from classprior._samples.samples import Samples
from classprior._samples.units import RowOptions
from classprior._scores.copies import about_copies, about_known, repeat_p_value

QUICK = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, n_resamples=20)


# Rows by kind: categories (one-hot), integers, rounded numbers, numbers, and mixtures.


def categories(rng, n, shift, columns=5, levels=5):
    p = np.exp(-(0.3 + 0.3 * shift) * np.arange(levels))
    codes = rng.choice(levels, (n, columns), p=p / p.sum())
    return (codes[:, :, None] == np.arange(levels)).reshape(n, -1).astype(float)


KINDS = {
    "categories": categories,
    "many categories": lambda rng, n, shift: categories(rng, n, shift, 9, 6),
    "few categories": lambda rng, n, shift: categories(rng, n, shift, 3, 3),
    "integers": lambda rng, n, shift: rng.poisson(3 + 2 * shift, (n, 4)).astype(float),
    "rounded": lambda rng, n, shift: np.round(rng.normal(shift, 1, (n, 3)), 1),
    "two rounded": lambda rng, n, shift: np.round(rng.normal(shift, 1, (n, 2)), 2),
    "one rounded": lambda rng, n, shift: np.round(rng.normal(shift, 1, (n, 1)), 2),
    "numbers": lambda rng, n, shift: rng.normal(shift, 1, (n, 4)),
    "numbers or zeros": lambda rng, n, shift: (
        rng.normal(shift, 1, (n, 3)) * (rng.random((n, 1)) < 0.6)
    ),
    "mixed": lambda rng, n, shift: np.hstack(
        [rng.normal(shift, 1, (n, 2)), categories(rng, n, shift, 3)]
    ),
    "amounts": lambda rng, n, shift: np.hstack(
        [np.round(np.exp(rng.normal(3 + shift, 1, (n, 1))), 2), categories(rng, n, shift, 3)]
    ),
}


def draw(kind, seed, n, m):
    rng = np.random.default_rng(seed)
    hidden, negative = KINDS[kind](rng, m // 5, 1.0), KINDS[kind](rng, m - m // 5, 0.0)
    return KINDS[kind](rng, n, 1.0), np.vstack([hidden, negative])


def judged(P, U, **about):
    """Return the first words of the warnings."""
    samples = Samples.of_rows(P, U, 0)
    if about:
        samples = samples.with_units(RowOptions(**about))
    drawn = samples.subsample(20_000)
    return [
        str(caution).split(":")[0]
        for caution in (*about_copies(drawn), *about_known(find_known(samples), drawn))
    ]


KNOWN = "Known positives among the unlabeled rows"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_draws", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_independent_rows_are_no_copies(kind, n_draws):
    """Rows of categories and of rounded numbers repeat by chance."""
    for seed, (n, m) in product(range(n_draws), ((60, 300), (500, 3000))):
        assert judged(*draw(kind, seed, n, m)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("few categories", "one rounded")])
def test_copies_are_noticed(kind):
    """All known positives among the unlabeled rows, and 5.5% of the unlabeled rows copied."""
    known = copies = 0
    for seed, (n, m) in product(range(100), ((60, 300), (500, 3000))):
        P, U = draw(kind, seed, n, m)
        known += KNOWN in judged(P, np.vstack([U, P]))
        few = int(0.055 * m)
        copied = np.random.default_rng(seed).choice(m - few, few, replace=False)
        copies += "Copies" in judged(P, np.vstack([U[:-few], U[copied]]))
    assert known >= 190
    assert copies == 200 if kind in ("numbers", "mixed") else copies <= 10


@pytest.mark.parametrize("kind", ["numbers", "mixed"])
def test_copies_of_numbers_are_found(kind):
    P, U = draw(kind, 0, 60, 300)
    assert judged(P, np.vstack([U, U[::15]])) == ["Copies"]
    assert judged(P, np.vstack([U, U[::30]])) == []  # few
    assert judged(np.repeat(P, 3, axis=0), U) == ["Copies"]


def test_copies_of_coarse_rows_are_found_by_their_number():
    """Too many rows occur exactly twice, or agree in all of many columns."""
    P, U = draw("rounded", 0, 60, 300)
    assert judged(P, np.vstack([U, U])) == ["Copies"]
    rng = np.random.default_rng(1)
    coarse = rng.integers(0, 8, (2000, 12)).astype(float)
    assert judged(coarse[:200], coarse[200:]) == []
    assert judged(coarse[:200], np.vstack([coarse[200:], coarse[200:340]])) == ["Copies"]


def test_copies_in_one_group_do_no_harm():
    P, U = draw("numbers", 0, 60, 300)
    groups = np.arange(60), 60 + np.tile(np.arange(300), 2)
    twice = np.vstack([U, U])
    assert judged(P, twice) == ["Copies"]
    assert judged(P, twice, groups=groups) == []


@pytest.mark.parametrize("kind", ["many categories", "integers", "rounded", "numbers", "amounts"])
def test_known_positives_are_found_again(kind):
    for seed in range(5):
        P, U = draw(kind, seed, 60, 300)
        assert judged(P, np.vstack([U, P])) == [KNOWN]


def test_a_few_known_positives_are_found_again_in_coarse_rows():
    """Values of single columns recur, but hardly any rows agree in all columns but one."""
    coarse = np.random.default_rng(2).integers(0, 8, (2000, 12)).astype(float)
    P, U = coarse[:200], coarse[200:]
    assert judged(P, U) == []
    assert judged(P, np.vstack([U, P[:20]])) == [KNOWN]


def test_500_known_positives_are_found_in_100000_rows():
    rng = np.random.default_rng(0)
    P, U = rng.normal(1, 1, (500, 3)), rng.normal(0, 1, (100_000, 3))
    U[1017:81017:160] = P
    samples = Samples.of_rows(P, U, 0)
    (caution,) = about_known(find_known(samples), samples.subsample(20_000))
    for fact in ("500 of the 500", "known positive 0", "unlabeled row 1,017", "leave_out_known"):
        assert fact in caution


def test_p_value_against_all_outcomes():
    """Six equally likely values that occur six times in total, and none more than twice."""
    weights = {}
    for counts in product(range(3), repeat=6):
        if sum(counts) == 6:
            twice = counts.count(2)
            weight = prod(1 / factorial(k) for k in counts)
            weights[twice] = weights.get(twice, 0.0) + weight
    total = sum(weights.values())
    for twice in range(4):
        expected = sum(w for k, w in weights.items() if k <= twice) / total
        n_values = np.array([twice, 6 - 2 * twice, twice])
        assert repeat_p_value(n_values, fewest=0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("fewest", [0, 1])
def test_p_values_are_seldom_small(fewest):
    """Uneven frequencies make them larger."""
    rng = np.random.default_rng(0)
    for spread in (0.0, 1.0):
        rates = np.exp(rng.normal(-1, spread, 300))
        small = 0
        for _ in range(500):
            n_values = np.bincount(rng.poisson(rates), minlength=7)[:7]
            small += repeat_p_value(n_values, fewest) < 0.05
        assert small <= 40  # 25 are expected at most


# Keys --------------------------------------------------------------------------------------------


def test_keys_are_equal_where_rows_are():
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (500, 4)) * 0.5
    X[3, 0] = -0.0
    _, expected = np.unique(X + 0.0, axis=0, return_inverse=True)
    _, found = np.unique(row_keys(X), return_inverse=True)
    assert len(set(zip(expected, found, strict=True))) == len(set(expected)) == len(set(found))
    assert np.array_equal(row_keys(sparse.csr_array(X)), row_keys(X))
    assert np.array_equal(row_keys(X.astype(np.float32)), row_keys(X))
    assert np.array_equal(row_keys(X) - column_keys(X, 3), row_keys(X * [1, 1, 1, 0]))
    assert len(np.unique(row_keys(X[:, ::-1]))) == len(set(found))


def test_no_two_of_a_million_rows_have_the_same_key():
    grid = np.arange(1000.0)
    rows = np.column_stack([np.repeat(grid, 1000), np.tile(grid, 1000)])
    assert len(np.unique(row_keys(rows))) == 1_000_000


# Leaving out -------------------------------------------------------------------------------------


def test_no_more_rows_are_left_out_than_there_are_known_positives():
    P = np.array([[1.0], [1.0], [2.0], [3.0]])
    U = np.array([[1.0], [4.0], [2.0], [1.0], [1.0], [2.0]])
    again = find_known(Samples.of_rows(P, U, 0))
    assert sorted(map(tuple, again.pairs)) == [(0, 0), (0, 3), (2, 2)]
    assert sorted(zip(again.known, again.found, strict=True)) == [(1, 0), (1, 2), (2, 3)]
    weights = np.ones(4), np.array([0.0, 1, 1, 1, 1, 1])
    weighted = Samples.of_rows(P, U, 0).with_units(RowOptions(weights=weights))
    assert sorted(map(tuple, find_known(weighted).pairs)) == [(0, 3), (0, 4), (2, 2)]


@pytest.fixture
def frames():
    rng = np.random.default_rng(0)
    positive, unlabeled = (
        pd.DataFrame({"a": rng.normal(s, 1, n), "b": rng.choice(list("xyz"), n), "w": 1.0 + s})
        for n, s in ((60, 2.0), (300, 0.0))
    )
    together = pd.concat([unlabeled[:100], positive[::2], unlabeled[100:]], ignore_index=True)
    return positive, unlabeled, together


@pytest.mark.parametrize(
    "options",
    [{}, {"weights": "w"}, {"method": "dedpul", "classifier": LogisticRegression()}],
    ids=["auto", "weights", "dedpul"],
)
def test_left_out_rows_change_no_number(frames, options, tmp_path, monkeypatch):
    positive, unlabeled, together = frames
    how = {"evidence": QUICK, "n_resamples": 3, "random_state": 0, **options}
    if "weights" not in options:
        how["drop"] = ["w"]
    expected = estimate_prior(positive, unlabeled, **how).to_dict()
    notes, expected["notes"] = expected["notes"], None
    paths = [str(tmp_path / name) for name in ("p.csv", "u.csv")]
    for frame, path in zip((positive, together), paths, strict=True):
        frame.to_csv(path, index=False)
    monkeypatch.setattr("classprior._samples.samples.SETTLED_BYTES", 0)
    for samples in ((positive, together), paths):
        found = estimate_prior(*samples, leave_out_known=True, **how).to_dict()
        assert found["notes"][:-1] == notes
        assert "30 of the 330 unlabeled rows" in found["notes"][-1]
        found["notes"] = None
        numbers = {k: v for k, v in expected.items() if isinstance(v, float)}
        assert {k: found[k] for k in numbers} == pytest.approx(numbers, abs=1e-6)
        others = expected.keys() - numbers - {"total_weights"}
        assert {k: found[k] for k in others} == {k: expected[k] for k in others}


def test_rows_that_differ_in_rare_levels_or_missing_values_are_kept():
    positive = pd.DataFrame({"city": [f"c{i % 60}" for i in range(120)], "a": np.arange(120) % 7})
    together = positive.copy()
    together["city"] = together["city"].replace({"c1": "elsewhere", "c2": None})
    together["a"] = together["a"].where(together["city"] != "c3", 3.5)
    together.loc[together["city"] == "c4", "a"] = np.nan
    together = pd.concat([together, positive[:20], pd.DataFrame({"city": "c0", "a": [6.25] * 200})])
    estimate = estimate_prior(positive, together, evidence=QUICK, leave_out_known=True)
    changed = positive["city"].isin(["c1", "c2", "c3", "c4"])
    n_equal = (~changed).sum() + changed[:20].sum()
    assert f"{n_equal} of the 340 unlabeled rows" in estimate.notes[-1]


def test_known_positives_are_named_in_the_answer(frames):
    positive, _, together = frames
    estimate = estimate_prior(positive, together, drop=["w"], evidence=QUICK, random_state=0)
    (caution,) = (w for w in estimate.warnings if w.startswith(KNOWN))
    assert "30 of the 60 known positives" in caution
    assert "known positive 0 and unlabeled row 100" in caution
    assert caution.remedy == "leave out known"


def test_sparse_rows_are_matched():
    rng = np.random.default_rng(0)
    P, U = (sparse.random_array((n, 30), density=0.2, rng=rng, format="csr") for n in (60, 300))
    assert judged(P, U) == []
    assert judged(P, sparse.vstack([U, P]).tocsr()) == [KNOWN]


def test_what_cannot_be_left_out(frames):
    positive, _, _ = frames
    with pytest.raises(ValueError, match="leave_out_known"):
        estimate_prior(positive["a"], positive["a"] - 1, leave_out_known=True)
    with pytest.raises(ValueError, match="All unlabeled rows"):
        estimate_prior(positive, positive[:50], drop=["w"], leave_out_known=True)
