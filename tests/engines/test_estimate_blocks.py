"""The front door takes rows in blocks, and says what came from a sample of them."""

from functools import partial
from unittest import mock

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

from classprior import auto_prior, estimate_prior
from classprior.engines import _estimate, _samples
from classprior.report import render_report

LINEAR = {"classifiers": {"linear": LogisticRegression()}, "n_repeats": 1}
PENL1 = {"method": "penl1", "n_centers": 60}


@pytest.fixture(autouse=True)
def quick_evidence(monkeypatch):
    """Bound and warnings from one classifier, where the default has three in eight rounds."""
    monkeypatch.setattr("classprior.estimate.auto_prior", partial(auto_prior, **LINEAR))


@pytest.fixture
def frames(samples):
    """Numbers, one column with gaps, and a category that tells the classes apart a little."""
    rng = np.random.default_rng(1)
    frames = []
    for X in samples:
        frame = pd.DataFrame(X, columns=list("abc"))
        frame["colour"] = np.where(rng.random(len(X)) < 0.7, "red", "blue")
        frame.loc[rng.random(len(X)) < 0.1, "b"] = np.nan
        frames.append(frame)
    return frames


@pytest.fixture
def dataset(frames, tmp_path):
    for number, part in enumerate(np.array_split(np.arange(1500), 3)):
        table = pa.Table.from_pandas(frames[1].iloc[part], preserve_index=False)
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=100)
    return ds.dataset(tmp_path, format="parquet")


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(_estimate, "SUBSAMPLE_ROWS", 400)


@pytest.mark.usefixtures("small_sample")
def test_penl1_takes_all_rows(frames, dataset):
    estimate = estimate_prior(frames[0], dataset, **PENL1, random_state=0)
    assert (estimate.n_positive, estimate.n_unlabeled) == (600, 1500)
    assert estimate.method == "penl1"
    assert abs(estimate.prior - 0.3) < 0.08
    assert estimate.low < estimate.prior < estimate.high
    assert estimate.low_count < 1500 * estimate.prior < estimate.high_count
    assert estimate.curve.prior == estimate.prior
    assert "From 48 resamples of all rows: it shows chance" in render_report(estimate)
    assert estimate.upper_bound > 0.25
    kinds = {column.name: column.kind for column in estimate.columns}
    assert kinds == {"a": "number", "b": "number", "c": "number", "colour": "category"}
    assert estimate.curve.centers.shape == (60, 6)  # b is marked where it has gaps
    (sampled,) = [warning for warning in estimate.warnings if warning.startswith("Sampled")]
    assert "400 of the 600 known positives and 400 of the 1,500 unlabeled rows" in sampled
    assert sampled.startswith("Sampled: the upper bound and the warnings come")
    assert sampled.advice


def test_a_checkpoint_that_will_not_do_is_refused_before_the_work(frames, dataset, tmp_path):
    other = tmp_path / "mine.txt"
    other.write_text("no checkpoint")
    for path, error in ((tmp_path / "no" / "sums", FileNotFoundError), (other, ValueError)):
        with (
            mock.patch.object(_estimate, "two_samples", side_effect=AssertionError),
            pytest.raises(error, match="Expected a"),
        ):
            estimate_prior(frames[0], dataset, **PENL1, checkpoint=path)


@pytest.mark.usefixtures("small_sample")
def test_auto_takes_a_sample(frames, dataset):
    estimate = estimate_prior(frames[0], dataset, random_state=0)
    assert estimate.method == "auto"
    assert (estimate.n_positive, estimate.n_unlabeled) == (600, 1500)
    assert 0.2 < estimate.prior < 0.45
    assert estimate.count == 1500 * estimate.prior
    assert any("Sampled: the estimate" in warning for warning in estimate.warnings)
    assert "Sampled: the estimate" in estimate.to_text()
    n_positives = 600 + 1500 * estimate.prior
    for result in (estimate, estimate.curve):
        assert result.prior_pooled == pytest.approx(n_positives / 2100)
        assert result.label_frequency == pytest.approx(600 / n_positives)


def test_few_rows_are_not_sampled(frames, dataset):
    in_blocks = estimate_prior(frames[0], dataset, random_state=0)
    assert not any("Sampled" in warning for warning in in_blocks.warnings)


def test_dask_and_the_dataset_agree(frames, dataset):
    lazy = dd.from_pandas(frames[1], npartitions=4)
    one, other = (estimate_prior(frames[0], X, **PENL1, random_state=0) for X in (lazy, dataset))
    assert abs(one.prior - other.prior) < 1.5e-3
    assert one.upper_bound == other.upper_bound


def test_a_large_memory_map(samples, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", samples[1])
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    passes = []
    work = _samples._Sums.__call__
    monkeypatch.setattr(
        _samples._Sums, "__call__", lambda s, block: passes.append(block) or work(s, block)
    )
    monkeypatch.setattr("classprior.estimate._HALVES", 2)
    estimate_prior(samples[0], mapped, **PENL1, random_state=0)
    assert not passes
    monkeypatch.setattr(_estimate, "LARGE_MAP", 1000)
    estimate_prior(samples[0], mapped, **PENL1, random_state=0)
    assert passes


def test_options_of_blocks(frames, dataset, tmp_path):
    file = tmp_path / "sums"
    options = {**PENL1, "columns": ["a", "c"], "checkpoint": file, "random_state": 0}
    estimate = estimate_prior(frames[0], dataset, **options)
    assert [column.name for column in estimate.columns] == ["a", "c"]
    assert not file.exists()


def test_other_methods_are_refused(frames, dataset):
    with pytest.raises(ValueError, match=r"'auto' or 'penl1', got 'en', which needs all rows"):
        estimate_prior(frames[0], dataset, method="en")


def test_an_estimate_above_the_bound_is_not_believed(samples):
    """Ten times the rows, and a regularisation that holds the estimate up."""
    many = [np.vstack([X + 0.01 * k for k in range(10)]) for X in samples]
    options = {**PENL1, "sigmas": 1.0, "random_state": 0}
    tight, loose = (
        estimate_prior(as_table(many[0]), ds.dataset(as_table(many[1])), lams=lam, **options)
        for lam in (100.0, 0.001)
    )
    assert tight.prior > tight.upper_bound
    (found,) = [warning for warning in tight.warnings if warning.startswith("Above the bound")]
    assert "lower it" in found
    assert loose.prior < loose.upper_bound
    assert not any(warning.startswith("Above the bound") for warning in loose.warnings)


def as_table(X):
    return pa.table({f"column_{i}": column for i, column in enumerate(X.T)})
