"""A pass over the rows goes on after any interruption, or begins anew, and is never wrong."""

import itertools
import os
import signal
import subprocess
import sys
from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from classprior import AutoPrior, DensityRatio, PearsonPrior, PenalizedL1Prior, PUClassifier
from classprior._samples.checkpoint import Checkpoint
from classprior._samples.inputs import as_source
from classprior._samples.opening import _about
from classprior.engines import fit_blocks

ROWS = 150  # of a block


class Counted:
    """Blocks that count how often each was read, and break off where told."""

    def __init__(self, X, stop_after=None, how=None):
        self.X = X
        self.given = 0
        self.stop_after = stop_after
        self.how = how

    def __iter__(self):
        for start in range(0, self.X.shape[0], ROWS):
            if self.given == self.stop_after:
                self.how()
            self.given += 1
            yield self.X[start : start + ROWS]


class BrokenOffError(Exception):
    pass


def break_off():
    raise BrokenOffError


@pytest.fixture(autouse=True)
def written_at_once(monkeypatch):
    """Write after every block, where a user's file is written every few seconds."""
    monkeypatch.setattr("classprior.engines.Checkpoint", partial(Checkpoint, seconds=0.0))


def estimator(**options):
    return PenalizedL1Prior(**{"n_centers": 40, "random_state": 0, **options})


# One block to look at, ten to count, ten to draw from, ten to sum up.
LAST_PASS = 1 + 10 + 10


def interrupted(samples, path, *, fitted=None, stop_after=LAST_PASS + 8, **how):
    """Break off in the last pass, eight of whose ten blocks are given to one thread."""
    unlabeled = Counted(samples[1], stop_after, break_off)
    with pytest.raises(BrokenOffError):
        fit_blocks(fitted or estimator(), samples[0], unlabeled, checkpoint=path, n_jobs=1, **how)
    assert path.exists()


def in_one_go(samples, fitted=None, **how):
    """Fit in the same blocks without an interruption."""
    fitted = fitted or estimator()
    path = how.pop("folder") / "other"
    return fit_blocks(fitted, samples[0], Counted(samples[1]), checkpoint=path, **how)


# --- it goes on ------------------------------------------------------------------------------


def test_goes_on_where_it_was_stopped(samples, tmp_path):
    path = tmp_path / "sums"
    interrupted(samples, path)
    (before,) = (
        int(n) for key, n in np.load(path).items() if "sample 1" in key and "blocks" in key
    )
    assert 5 <= before < 10
    worked_on = []

    def noted(function, blocks):
        for block in blocks:
            if hasattr(function, "center_rows"):  # sums, not draws
                worked_on.append((function.sample, block.start))
            yield function(block)

    unlabeled = Counted(samples[1])
    fitted = fit_blocks(estimator(), samples[0], unlabeled, checkpoint=path, map=noted)
    assert worked_on == [(1, ROWS * number) for number in range(before, 10)]
    assert_array_equal(fitted.objective_, in_one_go(samples, folder=tmp_path).objective_)
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("killed_after", [12, LAST_PASS + 1, LAST_PASS + 8])
def test_survives_kill_9(samples, tmp_path, killed_after):
    """While rows are drawn, and at two places of the last pass."""
    np.savez(tmp_path / "samples.npz", *samples)
    code = f"""
import os, signal, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from functools import partial
import numpy as np
import classprior.engines
from test_checkpoint import Checkpoint, Counted, estimator
classprior.engines.Checkpoint = partial(Checkpoint, seconds=0.0)
X_positive, X_unlabeled = np.load("samples.npz").values()
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
unlabeled = Counted(X_unlabeled, stop_after={killed_after}, how=kill)
classprior.engines.fit_blocks(estimator(), X_positive, unlabeled, checkpoint="sums", n_jobs=1)
"""
    killed = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    path = tmp_path / "sums"
    assert path.exists() == (killed_after > LAST_PASS)
    fitted = fit_blocks(estimator(), samples[0], Counted(samples[1]), checkpoint=path)
    assert_array_equal(fitted.objective_, in_one_go(samples, folder=tmp_path).objective_)
    assert os.listdir(tmp_path) == ["samples.npz"]


RATIO = DensityRatio(n_centers=20, random_state=0)
PEARSON = PearsonPrior(n_centers=20, random_state=0)
CLASSIFIER = PUClassifier(prior=estimator(), ratio=RATIO, random_state=0)
SCALED = make_pipeline(StandardScaler(), PEARSON)
AUTO = AutoPrior(
    classifiers={"linear": LogisticRegression()}, n_repeats=2, max_rows=400, random_state=0
)


@pytest.mark.parametrize(
    ("model", "stop_after"),
    [(RATIO, 25), (PEARSON, 28), (CLASSIFIER, 47), (SCALED, 38), (AUTO, 28)],
    ids=["ratio", "pearson", "ratio after prior", "pipeline", "auto"],
)
def test_any_fit_by_sums_goes_on(samples, tmp_path, model, stop_after):
    path = tmp_path / "sums"
    interrupted(samples, path, fitted=clone(model), stop_after=stop_after)
    fitted = fit_blocks(clone(model), samples[0], Counted(samples[1]), checkpoint=path)
    expected = in_one_go(samples, clone(model), folder=tmp_path)
    for one in (fitted, expected):
        assert (one[-1] if model is SCALED else one).n_features_in_ == 3
    assert_array_equal(coefficients(fitted), coefficients(expected))
    assert os.listdir(tmp_path) == []


def coefficients(model):
    model = model[-1] if hasattr(model, "steps") else model
    if isinstance(model, AutoPrior):
        return [model.prior_, model.low_, model.high_, model.upper_bound_, *model.round_priors_]
    return getattr(model, "ratio_", model).coef_


def test_settings_that_come_after_the_sums_may_change(samples, tmp_path):
    path = tmp_path / "sums"
    interrupted(samples, path)
    other = {"thetas": np.linspace(0.1, 0.5, 41), "n_jobs": 1}
    fitted = fit_blocks(estimator(**other), samples[0], Counted(samples[1]), checkpoint=path)
    expected = in_one_go(samples, estimator(**other), folder=tmp_path)
    assert_array_equal(fitted.objective_, expected.objective_)


# --- it is refused ---------------------------------------------------------------------------

FOLDS = [np.arange(600) % 3, np.arange(1500) % 3]


@pytest.mark.parametrize(
    "options",
    [
        {"n_centers": 50},
        {"random_state": 1},
        {"cv": 4},
        {"cv": FOLDS},
        {"lams": [0.1, 1.0]},
        {"sigmas": np.array([0.5, 1.0])},
        {"leave_one_out": False},
    ],
    ids=lambda options: next(iter(options)),
)
def test_other_settings_are_refused(samples, tmp_path, options):
    path = tmp_path / "sums"
    interrupted(samples, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"sums\b.* other settings"):
        fit_blocks(estimator(**options), samples[0], Counted(samples[1]), checkpoint=path)
    assert path.read_bytes() == before


def test_other_folds_of_the_users_are_refused(samples, tmp_path):
    """Which differ where printing would leave them out."""
    path = tmp_path / "sums"
    interrupted(samples, path, fitted=estimator(cv=FOLDS))
    other = [FOLDS[0], FOLDS[1].copy()]
    other[1][700:800] = 0
    with pytest.raises(ValueError, match="other settings"):
        fit_blocks(estimator(cv=other), samples[0], Counted(samples[1]), checkpoint=path)


@pytest.mark.parametrize("fewer", [False, True])
def test_other_data_are_refused(samples, tmp_path, fewer):
    path = tmp_path / "sums"
    interrupted(samples, path)
    other = samples[1][:1499] if fewer else np.vstack([samples[1], samples[1]])
    with pytest.raises(ValueError, match=rf"data in X_unlabeled.*\b{len(other)} rows"):
        fit_blocks(estimator(), samples[0], Counted(other), checkpoint=path)


def test_other_sparse_rows_are_refused(tmp_path):
    """One-hot rows, whose values are all the same."""
    positives = sparse.csr_array(np.eye(8)[np.arange(300) % 3])
    rows = sparse.csr_array(np.eye(8)[np.arange(600) % 8])
    mirrored = rows[:, ::-1].tocsr()
    path = tmp_path / "sums"
    interrupted((positives, rows), path, stop_after=1 + 4 + 4 + 3)
    with pytest.raises(ValueError, match="other data in X_unlabeled"):
        fit_blocks(estimator(), positives, Counted(mirrored), checkpoint=path)


def polars_frame(X):
    return pl.DataFrame(X, schema=list("abc"))


CONTAINERS = {
    "array": np.asarray,
    "blocks": lambda X: [X[:400], X[400:]],
    "pandas": lambda X: pd.DataFrame(X, columns=list("abc")),
    "polars": polars_frame,
    "pyarrow": lambda X: polars_frame(X).to_arrow(),
    "dataset in memory": lambda X: pa.dataset.dataset(polars_frame(X).to_arrow()),
    "objects": lambda X: np.asarray(X, dtype=object),
    "dask": lambda X: da.from_array(X, chunks=(400, 3)),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_other_values_of_the_same_shape_are_refused(samples, tmp_path, kind):
    path = tmp_path / "sums"
    hold = CONTAINERS[kind]
    about = [_about((as_source(hold(X), "X", n_jobs=1),) * 2) for X in (samples[1],) * 2]
    assert about[0] == about[1]
    kept = Checkpoint(path, seconds=0.0)
    kept.begin(about[0])
    kept.save("sums", 1, np.zeros(1), whole=True)
    other = samples[1].copy()
    other[1234, 1] += 1e-9
    with pytest.raises(ValueError, match="other data in X"):
        Checkpoint(path).begin(_about((as_source(hold(other), "X", n_jobs=1),) * 2))
    Checkpoint(path).begin(about[1])


def test_rows_that_cannot_be_compared_have_no_checkpoint(samples, tmp_path):
    frame = pd.DataFrame({"a": [[1], [2]] * 10, "b": 1.0})
    with pytest.raises(ValueError, match=r"checkpoint does not support .* X_unlabeled"):
        fit_blocks(estimator(), frame[["b"]], frame, columns=["b"], checkpoint=tmp_path / "sums")


def test_blocks_cut_elsewhere_are_refused(samples, tmp_path):
    """As many rows in as many blocks, but the first few are others."""
    path = tmp_path / "sums"
    interrupted(samples, path)
    cuts = [0, 100, *range(300, 1501, ROWS)]
    elsewhere = [samples[1][a:b] for a, b in itertools.pairwise(cuts)]
    assert len(elsewhere) == 10
    with pytest.raises(ValueError, match="data in X_unlabeled"):
        fit_blocks(estimator(), samples[0], elsewhere, checkpoint=path)


def test_other_sizes_of_blocks_are_refused(samples, tmp_path):
    path = tmp_path / "sums"
    with pytest.raises(BrokenOffError):
        fit_blocks(estimator(), *samples, checkpoint=path, block_rows=100, map=until_sums)
    with pytest.raises(ValueError, match="data in X_positive and data in X_unlabeled"):
        fit_blocks(estimator(), *samples, checkpoint=path, block_rows=200)


def until_sums(function, blocks):
    """Map until the sums over unlabeled rows begin."""
    if getattr(function, "first_center", 0):
        raise BrokenOffError
    return map(function, blocks)


@pytest.mark.parametrize("kind", ["path", "memory map"])
def test_a_file_that_changed_is_refused(kind, samples, tmp_path):
    file, path = tmp_path / "rows.npy", tmp_path / "sums"
    np.save(file, samples[1])
    rows = file if kind == "path" else np.load(file, mmap_mode="r")
    with pytest.raises(BrokenOffError):
        fit_blocks(estimator(), samples[0], rows, checkpoint=path, map=until_sums)
    np.save(file, samples[1][::-1])
    with pytest.raises(ValueError, match="data in X_unlabeled"):
        fit_blocks(estimator(), samples[0], rows, checkpoint=path)


@pytest.mark.parametrize("kind", ["text", "nothing", "array", "archive", "half a checkpoint"])
def test_other_files_are_refused_and_kept(kind, samples, tmp_path):
    path = tmp_path / "mine"
    if kind == "half a checkpoint":
        interrupted(samples, path)
        path.write_bytes(path.read_bytes()[:-200])
    else:
        with path.open("wb") as file:
            if kind == "text":
                file.write(b"Dear diary")
            elif kind == "array":
                np.save(file, samples[0])
            elif kind == "archive":
                np.savez(file, about="a game", moves=samples[0])
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"mine\b"):
        fit_blocks(estimator(), *samples, checkpoint=path)
    assert path.read_bytes() == before


# --- it begins anew --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["arrays", "column"])
@pytest.mark.parametrize("before", [False, True], ids=["rows before", "other groups before"])
def test_other_groups_are_summed_anew(samples, tmp_path, kind, before):
    """They deal rows to other bins, as many as before."""
    rng = np.random.default_rng(0)
    groups = [[rng.integers(0, 200, len(X)) for X in samples] for _ in range(2)]
    frames = [
        pd.DataFrame(X, columns=list("abc")).assign(one=one, two=two)
        for X, one, two in zip(samples, *groups, strict=True)
    ]
    rows, columns = (samples, None) if kind == "arrays" else (frames, ["a", "b", "c"])
    one, two = groups if kind == "arrays" else ("one", "two")
    path = tmp_path / "sums"
    more = {"columns": columns, "groups": one if before else None}
    # Groups in a column are one more pass.
    stop_after = LAST_PASS + 8 + (10 if before and kind == "column" else 0)
    interrupted(rows, path, stop_after=stop_after, **more)
    how = {"columns": columns, "groups": two}
    fitted = fit_blocks(estimator(), rows[0], Counted(rows[1]), checkpoint=path, **how)
    expected = in_one_go(rows, folder=tmp_path, **how)
    assert_array_equal(fitted.objective_, expected.objective_)
    assert os.listdir(tmp_path) == []


def test_other_steps_of_a_pipeline_are_summed_anew(samples, tmp_path):
    path = tmp_path / "sums"
    scaled = make_pipeline(StandardScaler(), estimator())
    interrupted(samples, path, fitted=scaled, stop_after=LAST_PASS + 18)
    other = make_pipeline(MinMaxScaler(), estimator())
    fit_blocks(other, samples[0], Counted(samples[1]), checkpoint=path)
    expected = in_one_go(samples, make_pipeline(MinMaxScaler(), estimator()), folder=tmp_path)
    assert_array_equal(other[-1].objective_, expected[-1].objective_)


# --- the file --------------------------------------------------------------------------------


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


def test_files_with_similar_names_are_left_alone(samples, tmp_path):
    other = tmp_path / "sums.partial"
    other.write_text("mine")
    interrupted(samples, tmp_path / "sums")
    assert other.read_text() == "mine"


@pytest.mark.parametrize("order", [[0, 1, 1], [0, 2], [1, 0]], ids=["twice", "never", "swapped"])
def test_results_that_are_not_of_the_first_blocks_leave_no_checkpoint(samples, tmp_path, order):
    """Which would say how many blocks are done, but not that they are others."""

    def misled(function, blocks):
        if not getattr(function, "first_center", 0):
            yield from map(function, blocks)
            return
        blocks = list(blocks)
        for number in order:
            yield function(blocks[number])
        break_off()

    path = tmp_path / "sums"
    with pytest.raises(ValueError, match="1,500 rows of X_unlabeled"):
        fit_blocks(estimator(), samples[0], Counted(samples[1]), checkpoint=path, map=misled)
    assert not path.exists()


def test_a_checkpoint_does_not_change_the_answer(samples, tmp_path):
    with_one = in_one_go(samples, folder=tmp_path)
    without = fit_blocks(estimator(), *samples)
    assert_allclose(with_one.objective_, without.objective_, rtol=1e-5, atol=1e-5)
    assert with_one.prior_ == pytest.approx(without.prior_, abs=1.01e-3)
