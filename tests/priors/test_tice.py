import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from classprior.priors import TIcEPrior
from classprior.priors._tice import _Tree, equal_parts, lower_bounds
from reference import tice


def tree(parts, is_labeled, in_tree, *, variance=0.0, k=5.0, min_rows=1):
    return _Tree(
        np.asarray(parts, dtype=np.uint8), np.asarray(is_labeled), in_tree, variance, k, min_rows
    )


def grown(found):
    while found.split():
        pass
    return found.best


def test_columns_are_cut_into_quarters():
    X = np.array([[0.0, -2.0, 7.0], [0.24, 0.0, 7.0], [0.25, 1.0, 7.0], [1.0, 2.0, 7.0]])
    expected = [[0, 0, 0], [0, 2, 0], [1, 3, 0], [3, 3, 0]]
    assert_array_equal(equal_parts(X, 4), expected)
    assert_array_equal(equal_parts(sparse.csr_array(X), 4), expected)
    assert_array_equal(equal_parts(3.0 * X - 8.0, 4), expected)  # any units


def test_bound_is_the_formula():
    c, delta = 0.5, 0.2
    (bound,) = lower_bounds(np.array([30]), np.array([40]), c * (1 - c) * (1 - delta) / delta)
    assert_allclose(bound, 30 / 40 - np.sqrt(0.25 * 0.8 / (0.2 * 40)))


def test_best_bound_in_a_table_made_by_hand():
    """One column; of ten rows in each part, 9, 3, 1 and 0 are labeled, in both halves."""
    parts = np.tile(np.repeat([0, 1, 2, 3], 10), 2)[:, None]
    labels = np.concatenate([np.arange(10) < n for n in (9, 3, 1, 0)])
    is_labeled, in_tree = np.tile(labels, 2), np.arange(80) < 40
    assert grown(tree(parts, is_labeled, in_tree)) == 0.9
    with_error = tree(parts, is_labeled, in_tree, variance=0.4)
    assert_allclose(grown(with_error), 0.9 - np.sqrt(0.4 / 10))
    # Where the bounds of all parts are below the share of all rows, the latter counts.
    assert grown(tree(parts, is_labeled, in_tree, variance=40.0)) == 13 / 40
    # Parts with fewer rows than this give no bound.
    assert grown(tree(parts, is_labeled, in_tree, min_rows=11)) == 13 / 40


def test_split_is_the_one_with_the_purest_part():
    """The first column has a part with 8 of 10, the second 4 of 4; smoothing prefers the first."""
    labels = np.repeat([True, False], [10, 14])
    first = np.r_[np.zeros(8), np.ones(2), np.zeros(2), np.ones(12)]
    second = np.r_[np.zeros(4), np.ones(20)]
    parts = np.tile(np.column_stack([first, second]), (2, 1))
    is_labeled, in_tree = np.tile(labels, 2), np.arange(48) < 24
    chosen = {}
    for k in (0.0, 5.0):
        found = tree(parts, is_labeled, in_tree, k=k)
        found.split()
        chosen[k] = found.best
    assert chosen == {0.0: 1.0, 5.0: 0.8}  # 4/4 against 8/10; 4/9 against 8/15


def test_bound_of_one_column_is_the_greatest_share():
    """With no error, the greatest share of labeled rows in a part, among the bounding rows."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        parts = rng.integers(0, 3, (400, 1))
        is_labeled = rng.uniform(size=400) < np.array([0.2, 0.5, 0.7])[parts[:, 0]]
        in_tree = rng.uniform(size=400) < 0.5
        shares = [is_labeled[~in_tree & (parts[:, 0] == p)].mean() for p in range(3)]
        assert_allclose(grown(tree(parts, is_labeled, in_tree)), max(shares))


def samples_like_those_in_practice(seed):
    """Draw normal, uniform, binary or skewed columns; return rows, labels and folds."""
    rng = np.random.default_rng(seed)
    n, m, n_columns = 100 + 20 * seed, 300, 2 + seed % 5
    kind = seed % 4
    draw = [
        lambda shape: rng.normal(size=shape),
        lambda shape: rng.uniform(size=shape),
        lambda shape: (rng.uniform(size=shape) < 0.7).astype(float),
        lambda shape: rng.exponential(size=shape),
    ][kind]
    shift = [2.0, 0.5, -1.0, 2.0][kind]
    positive, negative = draw((n + 120, n_columns)), draw((m - 120, n_columns)) + shift
    if kind == 2:
        negative = -negative  # 0 and 1 again, but mostly 0
    X = np.vstack([positive, negative])
    return X, np.arange(n + m) < n, rng.permutation(n + m) % 5


@pytest.mark.parametrize("seed", range(16))
def test_bounds_are_those_of_the_authors_program(seed):
    X, is_labeled, folds = samples_like_those_in_practice(seed)
    options = {"min_rows": 4, "max_splits": 12} if seed % 3 == 0 else {}
    fitted = TIcEPrior(cv=folds, **options).fit(X, is_labeled)
    expected = tice(equal_parts(X, 4), is_labeled, folds, **options)
    assert_allclose(fitted.fold_label_frequencies_, expected, rtol=1e-12)


def test_nodes_end_where_the_best_column_splits_nothing():
    """The third column has the highest score, and all bounding rows in one part."""
    labels = np.repeat([True, False], [10, 14])
    useful = np.r_[np.zeros(8), np.ones(2), np.zeros(2), np.ones(12)]
    constant = np.zeros(24)
    is_labeled, in_tree = np.tile(labels, 2), np.arange(48) < 24
    for blocking, expected in ((constant, 0.8), (np.r_[np.zeros(9), np.ones(15)], 10 / 24)):
        columns = np.column_stack([useful, constant]), np.column_stack([useful, constant])
        columns[0][:, 1] = blocking  # of the rows that grow the tree
        assert grown(tree(np.vstack(columns), is_labeled, in_tree)) == pytest.approx(expected)


def test_pure_nodes_are_split_for_their_bounding_rows():
    """All growing rows of a part are labeled; of the bounding ones, only those in half of it."""
    first = np.repeat([0, 0, 1], [20, 20, 40])
    second = np.repeat([0, 1, 0], [20, 20, 40])
    labels = [np.repeat([True, False, True], [40, 30, 10]), np.repeat([True, False], [20, 60])]
    parts = np.tile(np.column_stack([first, second]), (2, 1))
    is_labeled, in_tree = np.concatenate(labels), np.arange(160) < 80
    assert grown(tree(parts, is_labeled, in_tree)) == 1.0


def test_two_rounds_by_hand():
    """One column in two parts: each fold's bound is the better of its parts', in both rounds."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, 600)
    is_labeled = rng.uniform(size=600) < np.array([0.1, 0.6])[x]
    folds = rng.integers(0, 3, 600)
    c = 0.5
    for _ in range(2):
        bounds = []
        for fold in range(3):
            other = folds != fold
            delta = max(0.025, 1.0 / (1.0 + 0.004 * other.sum()))
            found = [is_labeled[other].mean()]
            for part in (0, 1):
                T, L = np.sum(other & (x == part)), np.sum(other & (x == part) & is_labeled)
                found.append(L / T - np.sqrt(c * (1.0 - c) * (1.0 - delta) / (delta * T)))
            bounds.append(max(found))
        c = np.mean(bounds)
    fitted = TIcEPrior(cv=folds).fit(x[:, None].astype(float), is_labeled)
    assert_allclose(fitted.fold_label_frequencies_, bounds, rtol=1e-12)
    n, m = is_labeled.sum(), (~is_labeled).sum()
    assert_allclose(fitted.prior_, n * (1.0 - c) / (c * m), rtol=1e-12)
    given = TIcEPrior(cv=folds, delta=0.4).fit(x[:, None].astype(float), is_labeled)
    assert given.prior_ < fitted.prior_  # less certain bounds are higher


def test_finds_a_corner_of_two_columns():
    """Only where both columns are in their first quarter, all rows are positive; c = 1/2."""
    rng = np.random.default_rng(0)
    inside = rng.uniform(0.0, 0.25, (4000, 2))
    outside = rng.uniform(0.0, 1.0, (8000, 2))
    outside = outside[np.any(outside >= 0.25, axis=1)]
    X, labels = np.vstack([inside, outside]), np.zeros(4000 + len(outside), dtype=int)
    labels[:2000] = 1
    estimator = TIcEPrior(delta=0.5, random_state=0).fit(X, labels)
    assert 0.45 < estimator.label_frequency_ < 0.52
    assert_allclose(estimator.label_frequency_, estimator.fold_label_frequencies_.mean())
    one = TIcEPrior(delta=0.5, random_state=0).fit(X[:, :1], labels)
    assert one.label_frequency_ < 0.4


def test_bias_shrinks_with_more_rows():
    rng = np.random.default_rng(1)
    estimates = []
    for n in (200, 20_000):
        P = rng.uniform(0.0, 0.4, (n, 1))
        U = np.r_[rng.uniform(0.0, 0.4, (n // 2, 1)), rng.uniform(0.6, 1.0, (n // 2, 1))]
        estimates.append(TIcEPrior(random_state=0).fit_samples(P, U).prior_)
    assert 0.5 <= estimates[1] < estimates[0] - 0.01


def test_units_and_constant_columns_do_not_matter(separated):
    estimates = [
        TIcEPrior(random_state=0).fit_samples(*(f(X) for X in separated)).prior_
        for f in (lambda X: X, lambda X: 8.0 * X - 3.0, lambda X: np.hstack([X, np.ones_like(X)]))
    ]
    assert_allclose(estimates, estimates[0], rtol=1e-12)


def test_never_above_one():
    """A small fold without positives gives a small bound; no column tells anything."""
    is_labeled = np.repeat([True, False], 100)
    folds = np.concatenate([np.arange(100) < n for n in (1, 19)]).astype(int)
    fitted = TIcEPrior(cv=folds).fit(np.ones((200, 1)), is_labeled)
    assert_allclose(sorted(fitted.fold_label_frequencies_), [1 / 20, 99 / 180])
    assert fitted.prior_ == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"delta": 0.0},
        {"delta": 2},
        {"k": -1.0},
        {"n_parts": 1},
        {"n_parts": 257},
        {"max_splits": 0},
        {"min_rows": 0},
    ],
    ids=str,
)
def test_parameters_are_checked(options, separated):
    ((name, _),) = options.items()
    with pytest.raises(ValueError, match=name):
        TIcEPrior(**options).fit_samples(*separated)
