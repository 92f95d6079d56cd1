"""Importances by shuffling, and effects of replacing values, against closed forms."""

import numpy as np
import pytest
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from classprior._scores.by_column import background_of, loss_increases, replacement_effects

SINGLE = [np.array([0]), np.array([1]), np.array([2])]


def two_samples(rng, n_positive=150, n_unlabeled=450):
    """Return rows whose first column tells much, the second little and the third nothing."""
    is_positive = np.arange(n_positive + n_unlabeled) < n_positive
    return rng.normal(size=(len(is_positive), 3)) + np.outer(is_positive, [2, 1, 0]), is_positive


def linear(X, rows):
    """Return known log-odds; those of normals with these means, at equal sizes."""
    return X @ [2.0, 1.0, 0.0] - 2.5


def balanced(is_positive):
    return 0.5 / np.where(is_positive, is_positive.sum(), (~is_positive).sum())


def increases_of(X, is_positive, columns=SINGLE, n_shuffles=1, score=linear, **how):
    rng = np.random.default_rng(1)
    shuffles = [rng.permutation(len(X)) for _ in range(n_shuffles)]
    how = {"weights": np.ones(len(X)), "bins": np.arange(len(X)), **how}
    found = loss_increases(score, X, is_positive, how["weights"], how["bins"], columns, shuffles)
    return *found, shuffles


def test_the_increase_is_that_of_the_balanced_log_loss():
    X, is_positive = two_samples(np.random.default_rng(0))
    increases, _, (shuffled,) = increases_of(X, is_positive, [np.array([0, 2])])
    Z = X.copy()
    Z[:, [0, 2]] = X[shuffled][:, [0, 2]]
    before, after = (
        log_loss(
            is_positive, 1 / (1 + np.exp(-linear(V, None))), sample_weight=balanced(is_positive)
        )
        for V in (X, Z)
    )
    np.testing.assert_allclose(increases, after - before, rtol=1e-12)


def test_importances_are_those_of_scikit_learn():
    X, is_positive = two_samples(np.random.default_rng(0))
    train = np.arange(len(X)) % 2 == 0
    w = balanced(is_positive)
    model = LogisticRegression().fit(X[train], is_positive[train], w[train] * 1000)
    held_out, y = X[~train], is_positive[~train]
    expected = permutation_importance(
        model,
        held_out,
        y,
        scoring="neg_log_loss",
        n_repeats=50,
        random_state=0,
        sample_weight=balanced(y),
    )
    found, _, _ = increases_of(
        held_out, y, n_shuffles=50, score=lambda Z, rows: model.decision_function(Z)
    )
    # Both are means of 50 random shuffles, which differ.
    np.testing.assert_allclose(
        found, expected.importances_mean, atol=3 * np.sqrt(2 / 50) * expected.importances_std.max()
    )
    assert found[0] > 5 * found[1] > 20 * abs(found[2])


def test_a_weight_is_a_number_of_copies():
    X, is_positive = two_samples(np.random.default_rng(0))
    shuffled = np.random.default_rng(1).permutation(len(X))
    n_copies = np.random.default_rng(2).integers(1, 4, len(X))
    copied = np.repeat(np.arange(len(X)), n_copies)
    Z = X.copy()
    Z[:, 0] = X[shuffled, 0]
    losses = [np.logaddexp(0, np.where(is_positive, -1, 1) * linear(V, None)) for V in (X, Z)]
    rises = (losses[1] - losses[0])[copied]
    expected = (rises[is_positive[copied]].mean() + rises[~is_positive[copied]].mean()) / 2
    found = loss_increases(
        linear, X, is_positive, n_copies.astype(float), np.arange(len(X)), SINGLE[:1], [shuffled]
    )
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)


@pytest.mark.parametrize("n_copies", [1, 4])
def test_the_standard_error_is_that_of_other_rows(n_copies):
    """Rows that come in groups of copies, kept in one bin, say less.

    It is not exact, because the rows exchange values; without bins it would be half as large.
    """
    rng = np.random.default_rng(0)
    found, errors = [], []
    for _ in range(300):
        X, is_positive = two_samples(rng, 60, 120)
        copied = np.repeat(np.arange(len(X)), n_copies)
        increases, error, _ = increases_of(X[copied], is_positive[copied], bins=copied % 90)
        found.append(increases)
        errors.append(error)
    actual, claimed = np.std(found, axis=0), np.sqrt(np.mean(np.square(errors), axis=0))
    np.testing.assert_allclose(claimed[:2] / actual[:2], 1.0, atol=0.25)
    assert claimed[2] == actual[2] == 0.0  # the score does not depend on this column


def test_the_effect_on_a_linear_score_is_the_distance_from_the_mean():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), np.eye(3)[rng.integers(0, 3, 200)]])
    w = np.array([1.5, -1.0, 0.5, 2.0])
    backgrounds = [
        background_of(X, np.ones(len(X)), places, 20)
        for places in (np.array([0]), np.array([1, 2, 3]))
    ]
    effects = replacement_effects(lambda Z, rows: Z @ w, X[:7], backgrounds)
    means = [b.shares @ b.values for b in backgrounds]
    expected = [w[:1] * (X[:7, :1] - means[0]), w[1:] * (X[:7, 1:] - means[1])]
    np.testing.assert_allclose(
        effects, np.column_stack([e.sum(axis=1) for e in expected]), atol=1e-12
    )
    np.testing.assert_allclose(means[0], X[:, 0].mean(), atol=0.05)  # quantiles stand for all
    np.testing.assert_allclose(means[1], X[:, 1:].mean(axis=0), atol=0.05)
    assert len(backgrounds[1].values) == 3  # equal values are scored once


def test_background_values_have_the_weights_of_the_rows():
    X = np.arange(4.0)[:, np.newaxis]
    found = background_of(X, np.array([0.0, 1.0, 0.0, 3.0]), np.array([0]), 20)
    np.testing.assert_array_equal(found.values[:, 0], [1.0, 3.0])
    np.testing.assert_allclose(found.shares, [0.25, 0.75])


def test_rows_are_scored_as_copies_of_themselves():
    """The score may depend on the fold of a row, so it is told which row was changed."""
    X = np.zeros((3, 1))
    background = background_of(np.ones((5, 1)), np.ones(5), np.array([0]), 4)
    effects = replacement_effects(lambda Z, rows: Z[:, 0] * (rows + 1), X, [background])
    np.testing.assert_array_equal(effects[:, 0], [-1.0, -2.0, -3.0])
