"""Answers for rows in blocks: those of memory, in order, whole or not at all."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classprior import DensityRatio, PenalizedL1Prior, PUClassifier
from classprior.engines import predict_blocks

RATIO = DensityRatio(sigmas=1.0, lams=0.1, n_centers=30, random_state=0)
READ = {
    ".parquet": pq.read_table,
    ".feather": pa.feather.read_table,
    ".csv": pa.csv.read_csv,
}


@pytest.fixture(scope="module")
def labeled(samples):
    X = pd.DataFrame(np.vstack(samples), columns=list("abc"))
    return X, np.repeat(["known", "open"], [600, 1500])


@pytest.fixture(scope="module")
def model(labeled):
    return PUClassifier(prior=0.3, ratio=RATIO, pos_label="known").fit(*labeled)


@pytest.fixture(scope="module")
def unnamed(samples):
    return PUClassifier(prior=0.3, ratio=RATIO).fit(np.vstack(samples), np.arange(2100) < 600)


@pytest.mark.parametrize("end", READ)
def test_answers_are_those_of_memory(end, model, labeled, tmp_path):
    X = labeled[0]
    pq.write_table(
        pa.Table.from_pandas(X.assign(other="text")), tmp_path / "rows.parquet", row_group_size=350
    )
    path = tmp_path / f"answers{end}"
    assert predict_blocks(model, tmp_path / "rows.parquet", path, block_rows=200) == 2100
    answers = READ[end](path).to_pandas()
    assert list(answers.columns) == ["row", "probability", "score", "label"]
    assert_allclose(answers["score"], -model.decision_function(X), rtol=1e-9, atol=1e-12)
    assert_array_equal(answers["row"], np.arange(2100))
    assert_allclose(answers["probability"], model.predict_proba(X)[:, 0], rtol=1e-12)
    assert_array_equal(answers["label"], model.predict(X))
    assert 0.2 < np.mean(answers["label"] == "known") < 0.8


@pytest.mark.parametrize("kind", ["named", "unnamed"])
def test_sparse_rows_and_empty_blocks(kind, model, unnamed, labeled, tmp_path):
    """Sparse rows have no names; they are taken by their places."""
    rows = labeled[0][:700].to_numpy()
    blocks = [
        sparse.coo_array(rows[:300]),
        rows[300:300],
        rows[300:500],
        sparse.csc_array(rows[500:]),
    ]
    expected = model.predict_proba(labeled[0][:700])[:, 0]
    path = tmp_path / "answers.parquet"
    for X in (sparse.csr_matrix(rows), blocks):
        predict_blocks(model if kind == "named" else unnamed, X, path, block_rows=200)
        assert_allclose(pq.read_table(path)["probability"], expected, rtol=1e-9)
    is_text = pq.read_table(path)["label"].type == pa.string()
    assert is_text == (kind == "named")


def test_dask(model, labeled, tmp_path):
    import dask.dataframe as dd

    path = tmp_path / "answers.parquet"
    rows = dd.from_pandas(labeled[0], npartitions=3)
    predict_blocks(model, rows[["c", "a", "b"]], path)
    expected = model.predict_proba(labeled[0])[:, 0]
    assert_allclose(pq.read_table(path)["probability"], expected, rtol=1e-12)


def test_a_pipeline(labeled, tmp_path):
    pipeline = make_pipeline(StandardScaler(), PUClassifier(prior=0.3, ratio=RATIO))
    X, y = labeled
    pipeline.fit(X, y == "known")
    path = tmp_path / "answers.csv"
    for rows in (pa.Table.from_pandas(X), X[["c", "b", "a"]], X.to_numpy()):
        predict_blocks(pipeline, rows, path, block_rows=200)
        answers = pa.csv.read_csv(path)
        assert_allclose(answers["probability"], pipeline.predict_proba(X)[:, 1], rtol=1e-12)
    X = X.copy()
    X.iloc[1000, 0] = np.inf
    with pytest.raises(ValueError, match=r"X, rows 1,000 to 1,199.*infinity"):
        predict_blocks(pipeline, X, path, block_rows=200)


def test_nothing_half_written(model, labeled, tmp_path):
    X = labeled[0].copy()
    X.iloc[1234, 1] = np.nan
    path = tmp_path / "answers.parquet"
    path.write_text("of yesterday")
    with pytest.raises(ValueError, match=r"column 'b' of X, rows 1,200 .*row 1234\)"):
        predict_blocks(model, X, path, block_rows=200)
    assert path.read_text() == "of yesterday"
    assert os.listdir(tmp_path) == ["answers.parquet"]


@pytest.mark.parametrize(
    ("classifier", "path", "error", "message"),
    [
        (PenalizedL1Prior(), "a.csv", TypeError, "PenalizedL1Prior"),
        (PUClassifier(), "a.csv", NotFittedError, "PUClassifier"),
        (None, "a.xlsx", ValueError, r"\.parquet.* 'a\.xlsx'"),
    ],
)
def test_refusals(model, labeled, tmp_path, classifier, path, error, message):
    with pytest.raises(error, match=message):
        predict_blocks(classifier or model, labeled[0], tmp_path / path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("as_source", [str, lambda path: [path], lambda path: path.parent])
def test_answers_do_not_replace_the_rows(as_source, model, labeled, tmp_path):
    path = tmp_path / "rows.parquet"
    labeled[0].to_parquet(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"rows\.parquet"):
        predict_blocks(model, as_source(path), path)
    assert path.read_bytes() == before


def test_no_rows_make_no_file(model, labeled, tmp_path):
    with pytest.raises(ValueError, match="X has no rows"):
        predict_blocks(model, labeled[0][:0], tmp_path / "answers.csv")
    assert os.listdir(tmp_path) == []


def test_columns_are_those_of_the_fit(model, unnamed, labeled, tmp_path):
    X = labeled[0]
    expected = model.predict_proba(X)[:, 0]
    path = tmp_path / "answers.parquet"
    for columns in (None, ["c", "a", "b"]):
        predict_blocks(model, X[["b", "c", "a"]].assign(d=0.0), path, columns=columns)
        assert_allclose(pq.read_table(path)["probability"], expected, rtol=1e-12)
    predict_blocks(model, [X.to_numpy()], path)  # without names, by their places
    assert_allclose(pq.read_table(path)["probability"], expected, rtol=1e-12)
    for columns in (["a", "b", "d"], ["a", "b"]):
        with pytest.raises(ValueError, match=r"'a', 'b', 'c', got 'a', 'b'"):
            predict_blocks(model, X.assign(d=0.0), path, columns=columns)
    with pytest.raises(ValueError, match=r"'b' in X\b"):
        predict_blocks(model, X[["a", "c"]], path)
    with pytest.raises(ValueError, match=r"X .*3 columns.*, got 2"):
        predict_blocks(model, X[["a", "c"]].to_numpy(), path)
    predict_blocks(unnamed, X.assign(d=0.0), path, columns=["a", "b", "c"])
    assert_allclose(pq.read_table(path)["probability"], expected, rtol=1e-12)
