import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
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


@pytest.fixture
def labelled(samples):
    X = pd.DataFrame(np.vstack(samples), columns=list("abc"))
    return X, np.repeat(["known", "open"], [600, 1500])


@pytest.fixture
def model(labelled):
    return PUClassifier(prior=0.3, ratio=RATIO, pos_label="known").fit(*labelled)


@pytest.mark.parametrize("end", READ)
def test_answers_are_those_of_memory(end, model, labelled, tmp_path, small_blocks):
    X = labelled[0]
    pq.write_table(
        pa.Table.from_pandas(X.assign(other="text")), tmp_path / "rows.parquet", row_group_size=350
    )
    path = tmp_path / f"answers{end}"
    assert predict_blocks(model, tmp_path / "rows.parquet", path) == 2100
    answers = READ[end](path).to_pandas()
    assert list(answers.columns) == ["row", "probability", "label"]
    assert_array_equal(answers["row"], np.arange(2100))
    assert_allclose(answers["probability"], model.predict_proba(X)[:, 0], rtol=1e-12)
    assert_array_equal(answers["label"], model.predict(X))
    assert 0.2 < np.mean(answers["label"] == "known") < 0.8


def test_rows_of_other_kinds(model, labelled, samples, tmp_path, small_blocks):
    import dask.dataframe as dd

    expected = model.predict_proba(labelled[0][:700])[:, 0]
    rows = labelled[0][:700]
    path = tmp_path / "answers.parquet"
    for X in (rows, [rows[:300], rows[300:]], dd.from_pandas(rows, npartitions=3)):
        predict_blocks(model, X, path)
        assert_allclose(pq.read_table(path)["probability"], expected, rtol=1e-12)
    unnamed = PUClassifier(prior=0.3, ratio=RATIO).fit(np.vstack(samples), np.arange(2100) < 600)
    predict_blocks(unnamed, rows.to_numpy(), path)
    assert_allclose(pq.read_table(path)["probability"], expected, rtol=1e-12)
    assert pq.read_table(path)["label"].type == pa.bool_()


def test_a_pipeline(labelled, tmp_path, small_blocks):
    pipeline = make_pipeline(StandardScaler(), PUClassifier(prior=0.3, ratio=RATIO))
    X, y = labelled
    pipeline.fit(X, y == "known")
    predict_blocks(pipeline, pa.Table.from_pandas(X), tmp_path / "answers.csv")
    answers = pa.csv.read_csv(tmp_path / "answers.csv")
    assert_allclose(answers["probability"], pipeline.predict_proba(X)[:, 1], rtol=1e-12)
    X = X.copy()
    X.iloc[1000, 0] = np.inf
    with pytest.raises(ValueError, match=r"rows 1,000 to 1,199 of X: .*infinity"):
        predict_blocks(pipeline, X, tmp_path / "answers.csv")


def test_nothing_half_written(model, labelled, tmp_path, small_blocks):
    X = labelled[0].copy()
    X.iloc[1234, 1] = np.nan
    path = tmp_path / "answers.parquet"
    path.write_text("of yesterday")
    with pytest.raises(ValueError, match=r"column 'b' of X, rows 1,200 .* \(first in row 1234\)"):
        predict_blocks(model, X, path)
    assert path.read_text() == "of yesterday"
    assert os.listdir(tmp_path) == ["answers.parquet"]


@pytest.mark.parametrize(
    ("classifier", "path", "error", "message"),
    [
        (PenalizedL1Prior(), "a.csv", TypeError, "Expected a PUClassifier, got a PenalizedL1Prior"),
        (PUClassifier(), "a.csv", ValueError, "not fitted yet"),
        (None, "a.xlsx", ValueError, r"ends in .parquet, .feather, .csv to write, got 'a.xlsx'"),
    ],
)
def test_refusals(model, labelled, tmp_path, classifier, path, error, message):
    with pytest.raises(error, match=message):
        predict_blocks(classifier or model, labelled[0], tmp_path / path)


def test_no_rows_make_no_file(model, labelled, tmp_path):
    with pytest.raises(ValueError, match="Expected rows in X, got none"):
        predict_blocks(model, labelled[0][:0], tmp_path / "answers.csv")
    assert os.listdir(tmp_path) == []


def test_columns_are_those_of_the_fit(model, labelled, samples, tmp_path):
    X = labelled[0]
    expected = model.predict_proba(X)[:, 0]
    path = tmp_path / "answers.parquet"
    for columns in (None, ["c", "a", "b"]):
        predict_blocks(model, X[["b", "c", "a"]].assign(d=0.0), path, columns=columns)
        assert_allclose(pq.read_table(path)["probability"], expected, rtol=1e-12)
    predict_blocks(model, [X.to_numpy()], path)  # without names, by their places
    assert_allclose(pq.read_table(path)["probability"], expected, rtol=1e-12)
    for columns in (["a", "b", "d"], ["a", "b"]):
        with pytest.raises(ValueError, match=r"fitted to, 'a', 'b', 'c', got 'a', 'b'.* Leave col"):
            predict_blocks(model, X.assign(d=0.0), path, columns=columns)
    unnamed = PUClassifier(prior=0.3, ratio=RATIO).fit(np.vstack(samples), np.arange(2100) < 600)
    predict_blocks(unnamed, X.assign(d=0.0), path, columns=["a", "b", "c"])
    assert_allclose(pq.read_table(path)["probability"], expected, rtol=1e-12)
