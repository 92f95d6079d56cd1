"""The front door on rows that are too many for memory, and what it says of them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, estimate_prior
from classprior._samples.samples import Samples

EVIDENCE = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, max_rows=400)
QUICK = {"evidence": EVIDENCE, "n_resamples": 20, "random_state": 0}
PENL1 = {"method": "penl1", "n_centers": 60, **QUICK}
N_MANY = 21_000  # more than columns are learned from, so that all rows are read anew


@pytest.fixture(scope="module")
def frames():
    """Numbers, one column with gaps, and a category that tells nothing."""
    rng = np.random.default_rng(1)
    frames = []
    for n_rows, share in ((600, 1.0), (N_MANY, 0.3)):
        X = rng.normal(size=(n_rows, 3))
        X[rng.random(n_rows) > share] += 2.5
        frame = pd.DataFrame(X, columns=list("abc"))
        frame["color"] = np.where(rng.random(n_rows) < 0.7, "red", "blue")
        frame.loc[rng.random(n_rows) < 0.1, "b"] = np.nan
        frames.append(frame)
    return frames


@pytest.fixture(scope="module")
def dataset(frames, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for number, part in enumerate(np.array_split(np.arange(N_MANY), 3)):
        table = pa.Table.from_pandas(frames[1].iloc[part], preserve_index=False)
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=1000)
    return ds.dataset(folder, format="parquet")


class Stopped(Exception):  # noqa: N818 - nothing is wrong
    pass


def test_penl1_takes_all_rows_and_goes_on(frames, dataset, tmp_path, monkeypatch):
    """In blocks with a checkpoint, stopped half-way; in memory without one."""
    expected = estimate_prior(*frames, **PENL1)
    path = tmp_path / "sums"
    with monkeypatch.context() as patch:
        patch.setattr("classprior.priors._penalized_l1.held_out_gain", _stop)
        with pytest.raises(Stopped):
            estimate_prior(frames[0], dataset, **PENL1, checkpoint=path)
    assert path.exists()
    estimate = estimate_prior(frames[0], dataset, **PENL1, checkpoint=path)
    assert not path.exists()
    assert (estimate.n_positive, estimate.n_unlabeled) == (600, N_MANY)
    assert estimate.prior == pytest.approx(expected.prior, abs=1.01e-3)
    assert estimate.low == pytest.approx(expected.low, abs=1.01e-3)
    assert estimate.upper_bound == pytest.approx(expected.upper_bound, abs=1e-9)
    assert abs(estimate.prior - 0.3) < 0.08
    assert estimate.low < estimate.prior < estimate.high
    kinds = {column.name: column.kind for column in estimate.columns}
    assert kinds == {"a": "number", "b": "number", "c": "number", "color": "category"}
    assert estimate.estimator.centers_.shape == (60, 6)  # b is marked where it has gaps
    _, note, on_kernel = estimate.notes
    assert "400 of the 600" in note
    assert "400 of the 21,000" in note
    assert estimate.estimator.kernel_ in on_kernel.lower()


def _stop(*_):
    raise Stopped


def test_other_settings_are_refused(frames, dataset, tmp_path, monkeypatch):
    """Sums of rows that were scaled otherwise, or of other columns, are other sums."""
    path = tmp_path / "sums"
    with monkeypatch.context() as patch:
        patch.setattr("classprior.priors._penalized_l1.held_out_gain", _stop)
        with pytest.raises(Stopped):
            estimate_prior(frames[0], dataset, **PENL1, checkpoint=path)
    for other in ({"scale": False}, {"columns": ["a", "c"]}, {"n_centers": 50}):
        with pytest.raises(ValueError, match=r"sums.* settings"):
            estimate_prior(frames[0], dataset, **{**PENL1, **other}, checkpoint=path)


def test_other_folds_and_groups_do_not_spoil_sums(frames, dataset, tmp_path, monkeypatch):
    """They deal rows to other bins: what was summed is left alone, and summed anew."""
    rng = np.random.default_rng(0)
    units = [rng.integers(0, 150, len(frame)) for frame in frames]
    folds = [part % 5 for part in units]
    for more in ({"cv": folds}, {"groups": units, "cv": folds}):
        path = tmp_path / "sums"
        with monkeypatch.context() as patch:
            patch.setattr("classprior.priors._penalized_l1.held_out_gain", _stop)
            with pytest.raises(Stopped):
                estimate_prior(frames[0], dataset, **PENL1, checkpoint=path)
        resumed = estimate_prior(frames[0], dataset, **PENL1, **more, checkpoint=path)
        anew = estimate_prior(frames[0], dataset, **PENL1, **more, checkpoint=path)
        assert resumed.to_dict() == anew.to_dict()


def test_auto_takes_a_sample_and_says_so(frames, dataset):
    estimate = estimate_prior(frames[0], dataset, **QUICK)
    assert estimate.method == "auto"
    assert (estimate.n_positive, estimate.n_unlabeled) == (600, N_MANY)
    assert 0.2 < estimate.prior < 0.45
    assert estimate.count == N_MANY * estimate.prior
    (note,) = estimate.notes
    assert "400 of the 600" in note
    assert "400 of the 21,000" in note
    assert note in estimate.to_text()
    n_positives = 600 + N_MANY * estimate.prior
    assert estimate.prior_pooled == pytest.approx(n_positives / (600 + N_MANY))
    assert estimate.label_frequency == pytest.approx(600 / n_positives)
    assert estimate.estimator.label_frequency_ == pytest.approx(600 / n_positives)


def test_few_rows_are_not_sampled(frames):
    assert estimate_prior(frames[0][:400], frames[1][:400], **QUICK).notes == ()


@pytest.mark.parametrize(
    ("path", "error", "facts"),
    [("no/sums", FileNotFoundError, "no"), ("mine.txt", ValueError, "mine.txt")],
)
def test_a_checkpoint_that_will_not_do_is_refused_before_the_work(path, error, facts, tmp_path):
    (tmp_path / "mine.txt").write_text("no checkpoint")
    rows = np.full((100, 2), np.nan)  # would be refused if they were looked at
    with pytest.raises(error, match=facts):
        estimate_prior(rows, rows, **PENL1, checkpoint=tmp_path / path)
    assert (tmp_path / "mine.txt").read_text() == "no checkpoint"


@pytest.mark.parametrize("method", ["en", "sb", "kl"])
def test_methods_without_sums_take_no_checkpoint(method, frames, tmp_path):
    with pytest.raises(ValueError, match="checkpoint"):
        estimate_prior(*frames, method=method, random_state=0, checkpoint=tmp_path / "sums")


def test_a_checkpoint_needs_a_seed(frames, tmp_path):
    options = {**PENL1, "random_state": None}
    with pytest.raises(ValueError, match="random_state"):
        estimate_prior(*frames, **options, checkpoint=tmp_path / "sums")


# --- weights, groups and segments ------------------------------------------------------------

UNITS = {"weights": "w", "groups": "house", "segments": ["region", "month"]}


@pytest.fixture(scope="module")
def told(frames):
    """Add a weight, some of them zero, a group and two segments to both samples."""
    rng = np.random.default_rng(2)
    return [
        frame.assign(
            w=rng.choice([0.0, 1.0, 2.5], len(frame)),
            house=rng.integers(0, len(frame) // 4, len(frame)),
            region=rng.choice(["north", "south"], len(frame)),
            month=rng.integers(1, 3, len(frame)),
        )
        for frame in (frames[0], frames[1][:3000])
    ]


def places(frames, folder):
    """Yield the unlabeled rows in memory, in files, in blocks and on dask."""
    import dask.dataframe as dd

    positive, unlabeled = frames
    table = pa.Table.from_pandas(unlabeled, preserve_index=False)
    pq.write_table(table, folder / "rows.parquet", row_group_size=171)
    yield "files", positive, str(folder / "rows.parquet")
    yield "blocks", positive, [unlabeled[:171], unlabeled[171:2000], unlabeled[2000:]]
    parts = dd.from_pandas(unlabeled, npartitions=7)
    yield "dask", positive, parts
    yield "dask twice", dd.from_pandas(positive, npartitions=3), parts


@pytest.mark.parametrize("kept", [2**27, 0], ids=["in memory", "in blocks"])
@pytest.mark.parametrize(
    "names", [["weights"], ["groups"], ["segments"], ["weights", "groups", "segments"]], ids=str
)
def test_units_are_the_same_in_memory_in_blocks_and_on_dask(
    told, names, kept, tmp_path, monkeypatch
):
    columns = ["a", "b", "c", "color"]
    units = {name: UNITS[name] for name in names}
    monkeypatch.setattr(Samples.encoded, "__defaults__", (1000,))  # the others are read in blocks
    expected = estimate_prior(*told, columns=columns, **units, **QUICK)
    monkeypatch.setattr("classprior._samples.samples.SETTLED_BYTES", kept)
    for place, *samples in places(told, tmp_path):
        found = estimate_prior(*samples, columns=columns, **units, **QUICK)
        for number in ("prior", "low", "high", "upper_bound", "prior_pooled"):
            value = getattr(expected, number)
            assert getattr(found, number) == pytest.approx(value, abs=1e-9), (place, number)
        assert found.total_weights == pytest.approx(expected.total_weights)
        if expected.segments is not None:
            assert found.segments.p_value == pytest.approx(expected.segments.p_value, abs=1e-9)
            assert_same_segments(found.segments, expected.segments)


def assert_same_segments(found, expected):
    assert list(found) == list(expected) == [(r, m) for r in ("north", "south") for m in (1, 2)]
    for name, part in expected.items():
        values, others = vars(found[name]), vars(part)
        assert values == pytest.approx(others, abs=1e-9), name
