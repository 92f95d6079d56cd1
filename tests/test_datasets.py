import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse, stats

from classprior.datasets import (
    make_overlapping_uniforms,
    make_transactions,
    sample_positive_unlabeled,
)


@pytest.mark.parametrize(("overlap", "prior"), [(0.25, 0.7), (0.75, 0.2), (0.0, 0.5), (1.0, 0.5)])
def test_uniforms_have_the_moments_of_the_mixture(overlap, prior):
    X_positive, X_unlabeled = make_overlapping_uniforms(
        overlap=overlap, prior=prior, n_positive=100_000, n_unlabeled=100_000, random_state=0
    )
    for X, mean in ((X_positive, 0.5), (X_unlabeled, 0.5 + (1 - prior) * (1 - overlap))):
        assert abs(X.mean() - mean) < 4 * X.std() / np.sqrt(len(X))
    assert 0 <= X_positive.min() < X_positive.max() <= 1
    assert 0 <= X_unlabeled.min() < X_unlabeled.max() <= 2 - overlap
    share_of_the_pure_region = np.mean(X_unlabeled < 1 - overlap)  # only positives live there
    assert abs(share_of_the_pure_region - prior * (1 - overlap)) < 0.007


def test_the_hidden_truth_can_be_returned():
    """It marks the positives, and asking for it changes no row."""
    uniforms = {"overlap": 0.0, "random_state": 0}
    _, X, truth = make_overlapping_uniforms(**uniforms, return_truth=True)
    assert np.array_equal(truth, X[:, 0] < 1.0)
    assert np.array_equal(X, make_overlapping_uniforms(**uniforms)[1])

    rows = np.arange(100)[:, None]
    draw = {"prior": 0.3, "n_positive": 20, "n_unlabeled": 50, "random_state": 0}
    *samples, truth = sample_positive_unlabeled(rows, rows[:, 0] < 40, **draw, return_truth=True)
    assert np.array_equal(truth, samples[1][:, 0] < 40)
    for sample, again in zip(
        samples, sample_positive_unlabeled(rows, rows[:, 0] < 40, **draw), strict=True
    ):
        assert np.array_equal(sample, again)

    *tables, truth = make_transactions(prior=0.1, random_state=0, return_truth=True)
    assert truth.sum() == 500
    for table, again in zip(tables, make_transactions(prior=0.1, random_state=0), strict=True):
        pd.testing.assert_frame_equal(table, again)


def test_transactions_of_a_class_are_alike_whether_known_or_hidden():
    """Hidden frauds look like known frauds, and no single column gives them away."""
    frauds, transactions, is_fraud = make_transactions(
        prior=0.5, n_positive=4000, n_unlabeled=8000, random_state=0, return_truth=True
    )
    hidden, honest = transactions[is_fraud], transactions[~is_fraud]
    assert list(frauds.columns) == list(transactions.columns)
    assert frauds["payment_id"].is_unique
    assert transactions["payment_id"].is_unique
    assert not set(frauds["payment_id"]) & set(transactions["payment_id"])
    for name in ("amount", "hour", "minutes_since_last", "km_from_home"):
        same = stats.ks_2samp(frauds[name], hidden[name], nan_policy="omit")
        other = stats.ks_2samp(frauds[name], honest[name], nan_policy="omit")
        assert same.pvalue > 0.001
        assert 0.3 < other.statistic < 0.95
    for name in ("country", "merchant", "channel", "new_device"):
        assert set(honest[name]) == set(hidden[name]) == set(frauds[name])


def test_sampling_hides_exactly_the_share_and_repeats_no_row():
    X = np.arange(100)[:, None]
    X_positive, X_unlabeled = sample_positive_unlabeled(
        X, X[:, 0] < 40, prior=0.3, n_positive=20, n_unlabeled=50, random_state=0
    )
    drawn = np.concatenate([X_positive, X_unlabeled]).ravel()
    assert len(np.unique(drawn)) == 70
    assert X_positive.max() < 40
    assert np.sum(X_unlabeled < 40) == 15
    assert np.any(np.diff((X_unlabeled < 40).ravel().astype(int)) > 0)  # shuffled


@pytest.mark.parametrize(
    "container",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda X: sparse.csr_array(np.column_stack([*X.values()])),
    ],
    ids=["pandas", "polars", "pyarrow", "csr"],
)
def test_sampling_keeps_the_kind_of_table(container):
    X = container({"a": np.arange(100), "b": np.arange(100) % 7})
    X_positive, X_unlabeled = sample_positive_unlabeled(
        X, np.arange(100) < 40, prior=0.3, n_positive=20, n_unlabeled=50, random_state=0
    )
    assert type(X_positive) is type(X_unlabeled) is type(X)
    assert X_positive.shape == (20, 2)
    assert X_unlabeled.shape == (50, 2)


def test_sampling_wants_true_and_false():
    with pytest.raises(TypeError, match=r"bool, got int.*labels == 'yes'"):
        sample_positive_unlabeled(
            np.zeros((9, 1)), np.tile([-1, 1, 1], 3), prior=0.5, n_positive=2, n_unlabeled=2
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"is_positive": np.ones(5, bool)}, "inconsistent numbers of samples"),
        ({"n_positive": -5}, "n_positive == -5, must be >= 1"),
        ({"n_unlabeled": 0}, "n_unlabeled == 0, must be >= 1"),
        ({"prior": float("nan")}, "prior between 0 and 1, got nan"),
    ],
)
def test_sampling_refuses_nonsense(change, message):
    good = {"is_positive": np.arange(9) < 5, "prior": 0.5, "n_positive": 2, "n_unlabeled": 2}
    with pytest.raises(ValueError, match=message):
        sample_positive_unlabeled(np.zeros((9, 1)), **{**good, **change})


def test_sampling_says_when_rows_run_out():
    with pytest.raises(
        ValueError, match="at least 90 positive and 30 negative rows, got 40 and 60"
    ):
        sample_positive_unlabeled(
            np.zeros((100, 1)), np.arange(100) < 40, prior=0.7, n_positive=20, n_unlabeled=100
        )


def test_shares_are_shares():
    with pytest.raises(ValueError, match="prior"):
        make_overlapping_uniforms(prior=1.5)
    with pytest.raises(ValueError, match="overlap"):
        make_overlapping_uniforms(overlap=-0.1)
