"""Near-copies are found where rows come in groups, and nowhere else."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from classprior import AutoPrior, estimate_prior
from classprior._samples.opening import open_samples
from classprior._scores.near_copies import find_near_copies, gap_p_values, groups_of_copies
from classprior.cli._outcomes import WorkerRows, _run


def grouped(X, rng, noise, largest=6):
    """Return groups of one to six rows around each row, and the group of each row."""
    groups = np.repeat(np.arange(len(X)), rng.integers(1, largest + 1, len(X)))
    return X[groups] + noise * rng.normal(size=(len(groups), X.shape[1])), groups


def normals(seed, n_features=6):
    rng = np.random.default_rng(seed)
    unlabeled = rng.normal(size=(300, n_features))
    unlabeled[120:, 0] += 3.0
    return rng.normal(size=(60, n_features)), unlabeled, rng


# The test of a single row ------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 3, 8])
def test_p_values_of_uniform_rows(n_features):
    """Distances to neighbors in a ball of uniform rows: radii are powers of uniforms."""
    rng = np.random.default_rng(0)
    distances = np.sort(rng.uniform(size=(20_000, 400)), axis=1)[:, :21] ** (1.0 / n_features)
    p = gap_p_values(distances)
    for level in (0.001, 0.01, 0.05):
        low, high = stats.binom.interval(0.999, len(p), level)
        assert low <= np.sum(p < level) <= high


def test_p_values_do_not_depend_on_units():
    distances = np.sort(np.random.default_rng(0).uniform(size=(50, 21)), axis=1)
    np.testing.assert_allclose(gap_p_values(1e-3 * distances), gap_p_values(distances), rtol=1e-9)


def test_equal_distances_are_no_gap():
    assert np.all(gap_p_values(np.ones((3, 21))) == 1.0)
    assert np.all(gap_p_values(np.zeros((3, 21))) == 1.0)


# Samples -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.01, 0.02, 0.05, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_groups_of_rows(noise, seed):
    positive, unlabeled, rng = normals(seed)
    (P, of_p), (U, of_u) = grouped(positive, rng, noise), grouped(unlabeled, rng, noise)
    found = find_near_copies(P, U)
    groups = np.concatenate([of_p, len(positive) + of_u])
    same = groups[found.pairs[:, 0]] == groups[found.pairs[:, 1]]
    assert np.mean(same) > 0.95
    is_single = np.bincount(groups)[groups] == 1
    assert min(found.shares) > 0.3
    assert max(found.shares) < 1.1 * np.mean(~is_single)


def test_groups_of_few_positives_among_many_rows():
    rng = np.random.default_rng(0)
    positive, _ = grouped(rng.normal(size=(50, 6)), rng, 0.02)
    found = find_near_copies(positive, rng.normal(size=(5000, 6)))
    assert found.shares[0] > 0.5
    assert found.shares[1] < 0.01


def integers(rng, n):
    return rng.integers(0, 9, (n, 4)).astype(float)


def lattice(rng, n):
    return np.round(rng.normal(size=(n, 3)), 1)


def one_hot_and_a_number(rng, n):
    return np.column_stack([np.eye(5)[rng.integers(5, size=n)], rng.lognormal(size=n)])


def categories_and_numbers(rng, n):
    levels = [np.eye(6)[rng.integers(6, size=n)] for _ in range(5)]
    return np.column_stack([*levels, rng.normal(size=(n, 2))])


def many_zeros(rng, n):
    return rng.lognormal(size=(n, 8)) * (rng.uniform(size=(n, 8)) < 0.3)


def heavy_tails(rng, n):
    return rng.standard_t(1.5, size=(n, 4))


def clumps(rng, n):
    return rng.normal(size=(3, 5))[rng.integers(3, size=n)] + 0.05 * rng.normal(size=(n, 5))


def curve(rng, n):
    t = rng.uniform(0.0, 6.0, n)
    return np.column_stack([np.sin(t), np.cos(2.0 * t), t]) + 0.01 * rng.normal(size=(n, 3))


def filled_gaps(rng, n):
    X = rng.normal(size=(n, 4))
    return np.where(rng.uniform(size=X.shape) < 0.1, 0.0, X)


@pytest.mark.parametrize(
    "rows",
    [
        integers,
        lattice,
        one_hot_and_a_number,
        categories_and_numbers,
        many_zeros,
        heavy_tails,
        clumps,
        curve,
        filled_gaps,
    ],
)
@pytest.mark.parametrize("sizes", [(30, 100), (200, 1000), (400, 4000)])
def test_no_false_alarm(rows, sizes):
    for seed in range(5):
        X = rows(np.random.default_rng(seed), sum(sizes))
        assert find_near_copies(X[: sizes[0]], X[sizes[0] :]) is None


def test_exact_copies_are_no_near_copies():
    positive, unlabeled, _ = normals(0)
    assert find_near_copies(np.repeat(positive, 3, axis=0), np.repeat(unlabeled, 4, axis=0)) is None


# The answer --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def visits():
    """Visits of patients: 120 of 300 unlabeled patients are positive."""
    positive, unlabeled, rng = normals(0)
    (P, of_p), (U, of_u) = grouped(positive, rng, 0.02), grouped(unlabeled, rng, 0.02)
    names = [f"x{i}" for i in range(6)]
    frames = pd.DataFrame(P, columns=names), pd.DataFrame(U, columns=names)
    frames[0]["patient"] = [f"P{i}" for i in of_p]
    frames[1]["patient"] = [f"Q{i}" for i in of_u]
    for frame in frames:
        frame["ward"] = rng.integers(5, size=len(frame))
    return frames


def estimated(frames, **options):
    return estimate_prior(*frames, evidence=AutoPrior(n_repeats=1, n_resamples=20), **options)


def test_the_answer_says_that_it_is_too_low(visits):
    answer = estimated(visits, random_state=0)
    (caution,) = (w for w in answer.warnings if w.startswith("Near-copies"))
    assert (caution.remedy, caution.column) == ("group by", "patient")
    assert "`groups='patient'`" in caution.advice
    assert answer.meaning == "too low"
    assert "too low" in answer.answer
    assert answer.high < 0.4
    assert "certified" not in answer.to_text()


def test_the_comparison_of_methods_names_the_column_too(visits):
    rows = WorkerRows.of(open_samples(*visits, seed=0), None)
    *_, outcome = _run(rows, "auto", 0, False, 60.0)
    (caution,) = (w for w in outcome.warnings if w.startswith("Near-copies"))
    assert caution.column == "patient"
    assert "--groups patient" in caution


def test_without_a_column_of_groups(visits):
    arrays = [frame.filter(like="x").to_numpy() for frame in visits]
    for samples in (arrays, [frame.drop(columns="patient") for frame in visits]):
        (caution,) = (w for w in estimated(samples, random_state=0).warnings if "Near" in w)
        assert (caution.remedy, caution.column) == ("group", None)


def test_it_says_what_keeping_them_together_changes(visits):
    samples = [frame.drop(columns="patient") for frame in visits]
    answer = estimated(samples, random_state=0)
    (warning,) = (w for w in answer.warnings if "Near-copies" in w)
    together = re.search(
        r"kept together, the estimate of .auto. is ([\d.]+)% instead of ([\d.]+)%", warning
    )
    kept, split = (float(part) / 100 for part in together.groups())
    assert split == pytest.approx(answer.prior, abs=0.001)
    assert abs(kept - 0.4) < abs(split - 0.4)
    groups = groups_of_copies(*(frame.to_numpy(dtype=float) for frame in samples))
    patients = np.concatenate([frame["patient"] for frame in visits])
    _, codes = np.unique(patients, return_inverse=True)
    # Nearly all pairs of rows in a group are of one patient, and most pairs of a patient in one.
    same = np.equal.outer(codes, codes), np.equal.outer(*[np.concatenate(groups)] * 2)
    assert np.mean(same[0][same[1]]) > 0.9
    assert np.mean(same[1][same[0]]) > 0.6


def test_copies_of_both_classes_that_were_drawn_like_others_do_no_harm():
    """Each row stands in the population twice, and labels are a random sample of its rows."""
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(size=(2000, 4)), rng.normal(size=(2000, 4)) + 3.0
    positive, negative = (
        rng.permutation(np.repeat(rows, 2, axis=0)) for rows in (positive, negative)
    )
    known, unlabeled = positive[:1000], np.vstack([positive[1000:1600], negative[:2400]])
    answer = estimated((known, unlabeled), random_state=0)
    assert answer.meaning == "about"
    assert abs(answer.prior - 0.2) < 0.03
    (note,) = (note for note in answer.notes if "copies" in note)
    assert "change little" in note
    assert not any("opies" in warning for warning in answer.warnings if "Known" not in warning)


def test_copies_of_weighted_rows_with_a_largest_weight(visits):
    """Kept together, copies weigh more than a row can, which is no error of the user's."""
    samples = [frame.filter(like="x").assign(w=1.0 + frame["ward"]) for frame in visits]
    answer = estimated(samples, weights="w", max_weight=5.0, random_state=0)
    assert answer.bound_is_exact == (answer.meaning not in ("too low", "biased", "leak"))


def test_groups_silence_the_warning(visits):
    answer = estimated(visits, groups="patient", random_state=0)
    assert answer.meaning != "too low"
    assert not any("Near-copies" in warning for warning in answer.warnings)
    assert not any("copies" in note for note in answer.notes)
    assert answer.low <= 0.4 <= answer.high


def test_groups_in_both_samples_are_named(visits):
    positive, unlabeled = (frame.copy() for frame in visits)
    unlabeled.loc[unlabeled["patient"] == "Q7", "patient"] = "P2"
    notes = estimated((positive, unlabeled), groups="patient", random_state=0).notes
    (note,) = (note for note in notes if "groups have" in note or "group has" in note)
    own, others = (np.flatnonzero(frame["patient"] == "P2") for frame in (positive, unlabeled))
    assert note.startswith("1 group has")
    assert f"{len(own)} of the known positives" in note
    assert f"{len(others)} of the unlabeled rows" in note
    assert f"known positive {own[0]} and unlabeled row {others[0]}" in note
