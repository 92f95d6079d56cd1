import itertools
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from classprior import DensityRatio, PenalizedL1Prior, PUClassifier
from classprior.engines import _checkpoint, _samples, fit_blocks


class Counted:
    """Blocks of 150 rows that count how often each was read, and break off where told."""

    def __init__(self, X, stop_after=None, how=None):
        self.X = X
        self.given = 0
        self.stop_after = stop_after
        self.how = how

    def __iter__(self):
        for start in range(0, len(self.X), 150):
            if self.given == self.stop_after:
                self.how()
            self.given += 1
            yield self.X[start : start + 150]


class BrokenOffError(Exception):
    pass


def break_off():
    raise BrokenOffError


@pytest.fixture(autouse=True)
def written_at_once(monkeypatch):
    monkeypatch.setattr(_checkpoint, "_SECONDS_BETWEEN_WRITES", 0.0)


def estimator(**options):
    return PenalizedL1Prior(**{"n_centers": 40, "random_state": 0, **options})


def interrupted(samples, path, **options):
    """Break off in the last pass, eight of whose ten blocks are given to one thread."""
    unlabeled = Counted(samples[1], stop_after=1 + 10 + 10 + 8, how=break_off)
    with pytest.raises(BrokenOffError):
        fit_blocks(estimator(**options), samples[0], unlabeled, checkpoint=path, n_jobs=1)
    assert path.exists()


def test_goes_on_where_it_was_stopped(samples, tmp_path, monkeypatch):
    expected = fit_blocks(estimator(), samples[0], Counted(samples[1]))
    path = tmp_path / "sums"
    interrupted(samples, path)
    (before,) = (
        n for key, n in np.load(path).items() if key.startswith("pass 2") and "blocks" in key
    )
    assert 5 <= before < 10
    worked_on = []
    work = _samples._Sums.__call__

    def noted(self, block):
        worked_on.append((self.sample, block.start))
        return work(self, block)

    monkeypatch.setattr(_samples._Sums, "__call__", noted)
    fitted = fit_blocks(estimator(), samples[0], Counted(samples[1]), checkpoint=path, n_jobs=1)
    assert worked_on == [(1, 150 * number) for number in range(before, 10)]
    assert_array_equal(fitted.objective_, expected.objective_)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("killed_after", [12, 22, 29])
def test_survives_kill_9(samples, tmp_path, killed_after):
    """While rows are drawn, and at two places of the last pass."""
    np.savez(tmp_path / "samples.npz", *samples)
    code = f"""
import os, signal, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import numpy as np
from test_checkpoint import Counted, estimator
from classprior.engines import _checkpoint, fit_blocks
_checkpoint._SECONDS_BETWEEN_WRITES = 0.0
X_positive, X_unlabeled = np.load("samples.npz").values()
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
unlabeled = Counted(X_unlabeled, stop_after={killed_after}, how=kill)
fit_blocks(estimator(), X_positive, unlabeled, checkpoint="sums", n_jobs=1)
"""
    killed = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    path = tmp_path / "sums"
    assert path.exists() == (killed_after > 21)
    fitted = fit_blocks(estimator(), samples[0], Counted(samples[1]), checkpoint=path)
    expected = fit_blocks(estimator(), samples[0], Counted(samples[1]))
    assert_array_equal(fitted.objective_, expected.objective_)
    assert os.listdir(tmp_path) == ["samples.npz"]


def test_a_write_that_fails_leaves_the_one_before(samples, tmp_path, monkeypatch):
    path = tmp_path / "sums"
    interrupted(samples, path)
    before = path.read_bytes()

    def full_disk(file, **arrays):
        file.write(b"half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="No space left"):
        fit_blocks(estimator(), samples[0], Counted(samples[1]), checkpoint=path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["sums"]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"n_centers": 50}, "settings and rows"),
        ({"random_state": 1}, "settings and rows"),
        ({"cv": 4}, "settings"),
        ({"lams": [0.1, 1.0]}, "settings"),
        ({"leave_one_out": False}, "settings"),
    ],
)
def test_other_settings_are_refused(samples, tmp_path, options, what):
    path = tmp_path / "sums"
    interrupted(samples, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"got one with other {what}: .* Delete the file"):
        fit_blocks(estimator(**options), samples[0], Counted(samples[1]), checkpoint=path)
    assert path.read_bytes() == before


def test_settings_that_come_after_the_sums_may_change(samples, tmp_path):
    path = tmp_path / "sums"
    interrupted(samples, path)
    other = {"thetas": np.linspace(0.1, 0.5, 41), "n_jobs": 1}
    fitted = fit_blocks(estimator(**other), samples[0], Counted(samples[1]), checkpoint=path)
    expected = fit_blocks(estimator(**other), samples[0], Counted(samples[1]))
    assert fitted.prior_ == expected.prior_


def test_other_data_are_refused(samples, tmp_path):
    path = tmp_path / "sums"
    interrupted(samples, path)
    more = np.vstack([samples[1], samples[1]])
    with pytest.raises(ValueError, match=r"other data in X_unlabeled.*3000 rows in 20 blocks"):
        fit_blocks(estimator(), samples[0], Counted(more), checkpoint=path)
    with pytest.raises(ValueError, match="got one with other rows"):
        fit_blocks(estimator(), samples[0], Counted(samples[1] + 1e-6), checkpoint=path)


def test_blocks_cut_elsewhere_are_refused(samples, tmp_path):
    """As many rows in as many blocks, but the first few are others."""
    path = tmp_path / "sums"
    interrupted(samples, path)
    cuts = [0, 100, *range(300, 1501, 150)]
    elsewhere = [samples[1][a:b] for a, b in itertools.pairwise(cuts)]
    assert len(elsewhere) == 10
    with pytest.raises(ValueError, match="other data in X_unlabeled"):
        fit_blocks(estimator(), samples[0], elsewhere, checkpoint=path)


def test_other_sparse_rows_are_refused(tmp_path):
    """One-hot rows, whose values are all the same."""
    path = tmp_path / "sums"
    one_hot = sparse.csr_matrix(np.eye(8)[np.arange(600) % 8])
    positives = sparse.csr_matrix(np.eye(8)[np.arange(300) % 3])
    with pytest.raises(BrokenOffError):
        fit_blocks(estimator(), positives, one_hot, checkpoint=path, map=_first_pass)
    with pytest.raises(ValueError, match="got one with other rows"):
        fit_blocks(estimator(), positives, one_hot[:, ::-1].tocsr(), checkpoint=path)


def test_a_file_that_changed_is_refused(samples, tmp_path):
    rows, path = tmp_path / "rows.npy", tmp_path / "sums"
    np.save(rows, samples[1])
    with pytest.raises(BrokenOffError):
        fit_blocks(estimator(), samples[0], rows, checkpoint=path, map=_first_pass)
    os.utime(rows, ns=(0, 0))
    with pytest.raises(ValueError, match="other data in X_unlabeled"):
        fit_blocks(estimator(), samples[0], rows, checkpoint=path)


def _first_pass(function, blocks):
    """Map until the sums over unlabeled rows begin."""
    if getattr(function, "first_center", 0):
        raise BrokenOffError
    return map(function, blocks)


def test_files_with_similar_names_are_left_alone(samples, tmp_path):
    other = tmp_path / "sums.partial"
    other.write_text("mine")
    interrupted(samples, tmp_path / "sums")
    assert other.read_text() == "mine"


def test_results_that_are_not_of_all_rows_leave_no_checkpoint(samples, tmp_path):
    """Ten results, one of them twice and one missing, would look like a pass that is done."""

    def twice(function, blocks):
        for block in blocks:
            yield function(block)
            if block.start == 300 and getattr(function, "first_center", 0):
                yield function(block)

    path = tmp_path / "sums"
    with pytest.raises(ValueError, match=r"Expected results of 1,500 rows .* at least 1,650"):
        fit_blocks(estimator(), samples[0], Counted(samples[1]), checkpoint=path, map=twice)
    assert not path.exists()


def test_other_files_are_refused_and_kept(samples, tmp_path):
    path = tmp_path / "diary.txt"
    path.write_text("Dear diary")
    with pytest.raises(ValueError, match=r"Expected a checkpoint of classprior in .*diary\.txt"):
        fit_blocks(estimator(), *samples, checkpoint=path)
    assert path.read_text() == "Dear diary"
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(ValueError, match="Expected a checkpoint of classprior"):
        fit_blocks(estimator(), *samples, checkpoint=tmp_path / "other.npz")


RATIO = DensityRatio(n_centers=20, random_state=0)


@pytest.mark.parametrize(
    ("model", "stop_after"),
    [(RATIO, 25), (RATIO, 35), (PUClassifier(prior=estimator(), ratio=RATIO, random_state=0), 47)],
    ids=["candidates", "final sums", "ratio after prior"],
)
def test_several_passes_go_on(samples, tmp_path, model, stop_after):
    path = tmp_path / "sums"
    unlabeled = Counted(samples[1], stop_after=stop_after, how=break_off)
    with pytest.raises(BrokenOffError):
        fit_blocks(model, samples[0], unlabeled, checkpoint=path)
    assert os.listdir(tmp_path)
    fit_blocks(model, samples[0], Counted(samples[1]), checkpoint=path)
    ratio = getattr(model, "ratio_", model).coef_
    fit_blocks(model, samples[0], Counted(samples[1]))
    assert_array_equal(getattr(model, "ratio_", model).coef_, ratio)
    assert os.listdir(tmp_path) == []
