"""Rows behind an object of the user's, which may answer for them too often or not at all."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from classprior import DensityRatio, PenalizedL1Prior, PUClassifier
from classprior.engines import Block, fit_blocks, predict_blocks

ESTIMATOR = PenalizedL1Prior(n_centers=40, random_state=0)


class Partitions:
    """Ten partitions of 150 rows, answered as told by their numbers."""

    columns = 3

    def __init__(self, X, answered=range(10), work=None):
        self.X = X
        self.n_rows = len(X)
        self.answered = answered
        self.work = work

    def map_blocks(self, function):
        is_told = self.work is None or type(function).__name__ == self.work
        for number in self.answered if is_told else range(10):
            start = 150 * number
            yield function(Block(f"partition {number}", self.X[start : start + 150], 150, start))


def test_all_rows_once(samples):
    expected = fit_blocks(ESTIMATOR, samples[0], np.split(samples[1], 10)).objective_
    fitted = fit_blocks(ESTIMATOR, samples[0], Partitions(samples[1]))
    assert_array_equal(fitted.objective_, expected)


@pytest.mark.parametrize("work", ["_Gather", "_Sums"])
@pytest.mark.parametrize(
    ("answered", "got"),
    [
        ([*range(10), 4], "at least 1,650"),
        ([0, 1, 1, *range(2, 10)], "at least 1,650"),
        (range(9), "of 1,350"),
    ],
)
def test_a_partition_answered_twice_or_never_is_refused(samples, answered, got, work):
    with pytest.raises(ValueError, match=rf"results of 1,500 rows of X_unlabeled, .* {got}\."):
        fit_blocks(ESTIMATOR, samples[0], Partitions(samples[1], answered, work))


def test_answers_are_refused_as_well(samples, tmp_path):
    ratio = DensityRatio(sigmas=1.0, lams=0.1, n_centers=20, random_state=0)
    model = fit_blocks(PUClassifier(prior=0.3, ratio=ratio, random_state=0), *samples)
    path = tmp_path / "answers.csv"
    with pytest.raises(ValueError, match="rows of X, each once, got results of 1,350"):
        predict_blocks(model, Partitions(samples[1], range(9)), path)
    assert not path.exists()


def test_a_checkpoint_is_refused_before_any_work(samples, tmp_path):
    class Never(Partitions):
        def map_blocks(self, function):
            raise AssertionError("worked on")

    with pytest.raises(ValueError, match="Expected no checkpoint for X_unlabeled, a Never"):
        fit_blocks(ESTIMATOR, samples[0], Never(samples[1]), checkpoint=tmp_path / "sums")
