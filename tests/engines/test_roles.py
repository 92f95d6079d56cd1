from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from classprior.engines._roles import CENTERS, Roles

N = 500


@given(cuts=st.lists(st.integers(0, N), max_size=6), n_folds=st.integers(1, 7))
def test_a_row_keeps_its_fold_and_weights_however_rows_are_cut(cuts, n_folds):
    roles = Roles(3)
    edges = [0, *sorted(cuts), N]
    parts = [(a, b - a) for a, b in pairwise(edges)]
    folds = [roles.folds(1, *part, n_folds) for part in parts]
    weights = [roles.weights(1, *part, 20) for part in parts]
    assert_array_equal(np.concatenate(folds), roles.folds(1, 0, N, n_folds))
    assert_array_equal(np.hstack(weights), roles.weights(1, 0, N, 20))


@pytest.mark.parametrize("n_rows", [5, 17, 10_000])
def test_folds_are_even_and_shuffled(n_rows):
    folds = Roles(0).folds(0, 0, n_rows, 5)
    sizes = np.bincount(folds, minlength=5)
    assert sizes.max() - sizes.min() <= 1
    if n_rows > 1000:
        assert 0.15 < np.mean(folds[:-5] == folds[5:]) < 0.25  # not the same in every run


def test_weights_are_poisson_and_independent():
    weights = Roles(0).weights(1, 0, 20_000, 48).astype(float)
    for times, share in enumerate([0.3679, 0.3679, 0.1839, 0.0613, 0.0153]):
        assert abs(np.mean(weights == times) - share) < 0.002
    # a million values, and 48 means each of 20,000: four standard errors
    assert abs(weights.mean() - 1.0) < 0.004
    assert abs(weights.var() - 1.0) < 0.008
    off_diagonal = np.corrcoef(weights)[np.triu_indices(48, 1)]
    assert np.abs(off_diagonal).max() < 4.5 / np.sqrt(20_000)
    along_rows = [np.corrcoef(w[:-1], w[1:])[0, 1] for w in weights]
    assert np.abs(along_rows).max() < 4.5 / np.sqrt(20_000)


def test_samples_purposes_and_seeds_differ():
    assert not np.array_equal(Roles(0).folds(0, 0, N, 5), Roles(0).folds(1, 0, N, 5))
    assert not np.array_equal(Roles(0).weights(0, 0, N, 2), Roles(1).weights(0, 0, N, 2))
    rows = [Roles(seed).choose(purpose, 0, N, 50) for seed, purpose in ((0, 0), (1, 0), (0, 1))]
    assert len({tuple(r) for r in rows}) == 3


def test_chosen_rows_are_uniform_over_all_rows():
    rows = np.concatenate([Roles(s).choose(CENTERS, 1, 10_000_000, 500) for s in range(20)])
    assert len(np.unique(rows)) > 9_990
    shares = np.histogram(rows, bins=10, range=(0, 10_000_000))[0] / len(rows)
    assert np.abs(shares - 0.1).max() < 4 * np.sqrt(0.09 / 10_000)
    assert_array_equal(Roles(0).choose(CENTERS, 0, 7, 9), np.arange(7))
