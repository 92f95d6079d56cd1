"""Rows behind an object of the user's, which may answer for them too often or not at all."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from classprior import AutoPrior, DensityRatio, PenalizedL1Prior, PUClassifier
from classprior.engines import Block, fit_blocks, predict_blocks

ESTIMATOR = PenalizedL1Prior(n_centers=40, random_state=0)
RATIO = DensityRatio(sigmas=1.0, lams=0.1, n_centers=20, random_state=0)
ROWS = 150  # of a partition


class Partitions:
    """Ten partitions, answered in the order told; once there may be another order."""

    columns = 3

    def __init__(self, X, answered=range(10), in_pass=None):
        self.X = X
        self.n_rows = X.shape[0]
        self.is_sparse = sparse.issparse(X)
        self.answered = answered
        self.in_pass = in_pass
        self.passes = 0

    def map_blocks(self, function):
        is_told = self.in_pass in (None, self.passes)
        self.passes += 1
        for number in self.answered if is_told else range(10):
            start = ROWS * number
            rows = self.X[start : start + ROWS]
            yield function(Block(f"partition {number}", rows, ROWS, start))


def in_blocks(samples, tmp_path, estimator=ESTIMATOR):
    """Fit to partitions here, whose sums are added in the same order."""
    blocks = np.split(samples[1], 10)
    path = tmp_path / "sums"
    return fit_blocks(clone(estimator), samples[0], blocks, checkpoint=path)


def test_all_rows_once(samples, tmp_path):
    fitted = fit_blocks(clone(ESTIMATOR), samples[0], Partitions(samples[1]))
    assert_array_equal(fitted.objective_, in_blocks(samples, tmp_path).objective_)


def test_any_order_will_do(samples, tmp_path):
    """A center leaves its own row out, so that it must be known which row it is."""
    for order in (range(9, -1, -1), [3, 7, 1, 0, 9, 8, 2, 6, 5, 4]):
        fitted = fit_blocks(clone(ESTIMATOR), samples[0], Partitions(samples[1], order))
        expected = in_blocks(samples, tmp_path)
        assert_array_equal(fitted.centers_, expected.centers_)
        assert_allclose(fitted.objective_, expected.objective_, rtol=1e-5, atol=1e-5)


def test_sparse_partitions(samples, tmp_path):
    rows = Partitions(sparse.csr_array(samples[1]))
    fitted = fit_blocks(clone(ESTIMATOR), samples[0], rows)
    assert sparse.issparse(fitted.centers_)
    expected = in_blocks(samples, tmp_path).objective_
    assert_allclose(fitted.objective_, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("in_pass", [0, 1], ids=["draw", "sums"])
@pytest.mark.parametrize(
    ("answered", "got"),
    [
        ([*range(10), 4], "1,650"),
        ([0, 1, 1, *range(2, 10)], "1,650"),
        (range(9), "1,350"),
        ([0, 1, 1, *range(3, 10)], "row 150"),
    ],
    ids=["again at the end", "twice", "never", "twice for another"],
)
def test_a_partition_answered_twice_or_never_is_refused(samples, answered, got, in_pass):
    rows = Partitions(samples[1], answered, in_pass)
    with pytest.raises(ValueError, match=rf"1,500 rows of X_unlabeled.* {got}\b"):
        fit_blocks(clone(ESTIMATOR), samples[0], rows)


@pytest.mark.parametrize("answered", [range(9), [1, 0, *range(2, 10)]], ids=["never", "order"])
def test_answers_are_refused_as_well(samples, tmp_path, answered):
    """Whose rows are numbered in the order of the results."""
    model = fit_blocks(PUClassifier(prior=0.3, ratio=RATIO, random_state=0), *samples)
    path = tmp_path / "answers.csv"
    with pytest.raises(ValueError, match="1,500 rows of X"):
        predict_blocks(model, Partitions(samples[1], answered), path)
    assert not path.exists()


def test_methods_that_sample_draw_rows_from_there(samples):
    from sklearn.linear_model import LogisticRegression

    auto = AutoPrior(
        classifiers={"linear": LogisticRegression()}, n_repeats=1, max_rows=300, random_state=0
    )
    expected = clone(auto).fit_samples(*samples)
    fitted = fit_blocks(auto, samples[0], Partitions(samples[1], range(9, -1, -1)))
    assert fitted.prior_ == pytest.approx(expected.prior_, abs=1e-9)


def test_errors_name_the_partition(samples):
    X = samples[1].copy()
    X[500] = np.nan
    with pytest.raises(ValueError, match=r"column 0 of X_unlabeled, partition 3 .*row 50\)"):
        fit_blocks(clone(ESTIMATOR), samples[0], Partitions(X))


def test_a_checkpoint_is_refused_before_any_work(samples, tmp_path):
    class Never(Partitions):
        def map_blocks(self, function):
            raise AssertionError("worked on")

    with pytest.raises(ValueError, match="X_unlabeled, a Never"):
        fit_blocks(ESTIMATOR, samples[0], Never(samples[1]), checkpoint=tmp_path / "sums")
