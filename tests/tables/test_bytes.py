"""Text that is stored as bytes is text."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, Estimation, TableEncoder, estimate_prior
from classprior.cli import main

QUICK = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)
rng = np.random.default_rng(0)
KNOWN, ROWS = (
    pd.DataFrame({"town": rng.choice(["Graz", "Köln"], n, p=p), "x": rng.normal(p[0], 1, n)})
    for n, p in ((80, (0.8, 0.2)), (160, (0.3, 0.7)))
)


def as_bytes(frame):
    return frame.assign(town=[text.encode() for text in frame["town"]])


def as_arrow(frame, kind):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    town = table["town"].combine_chunks()
    town = town.cast(pa.binary()).dictionary_encode() if kind == "codes" else town.cast(kind)
    return table.set_column(0, "town", town)


FORMS = {
    "pandas": as_bytes,
    "categories": lambda frame: as_bytes(frame).astype({"town": "category"}),
    "binary": lambda frame: as_arrow(frame, pa.binary()),
    "large_binary": lambda frame: as_arrow(frame, pa.large_binary()),
    "codes": lambda frame: as_arrow(frame, "codes"),
    "pandas of arrow": lambda frame: as_arrow(frame, pa.binary()).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "polars": lambda frame: pl.from_pandas(as_bytes(frame)),
}


@pytest.mark.parametrize("form", FORMS)
def test_bytes_are_the_same_levels_as_text(form):
    expected = TableEncoder().fit_tables([KNOWN, ROWS])
    found = TableEncoder().fit_tables([FORMS[form](KNOWN), ROWS])
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other)
    new = TableEncoder().fit(ROWS).transform(FORMS[form](KNOWN))
    assert np.array_equal(new, TableEncoder().fit(ROWS).transform(KNOWN))


def test_an_estimate_does_not_depend_on_bytes(tmp_path):
    how = {"random_state": 0, "evidence": QUICK}
    expected = estimate_prior(KNOWN, ROWS, **how).prior
    paths = [tmp_path / "known.parquet", tmp_path / "rows.parquet"]
    pq.write_table(as_arrow(KNOWN, pa.binary()), paths[0])
    ROWS.to_parquet(paths[1])
    assert estimate_prior(*paths, **how).prior == expected
    parts = [ROWS[:60], as_bytes(ROWS[60:])]
    assert estimate_prior(as_bytes(KNOWN), parts, **how).prior == expected


def latin(frame):
    return frame.assign(town=[text.encode("latin-1") for text in frame["town"]])


@pytest.mark.parametrize("other", ["known", "unlabeled"])
def test_bytes_in_another_encoding_are_refused_beside_text(other):
    tables = [latin(KNOWN), ROWS] if other == "known" else [KNOWN, latin(ROWS)]
    row = next(n for n, text in enumerate(tables[other != "known"]["town"]) if b"\xf6" in text)
    with pytest.raises(ValueError, match=rf"b'K\\xf6ln'.*'town'.*row {row}\b"):
        estimate_prior(*tables, evidence=QUICK)


def test_bytes_in_both_samples_need_not_be_text():
    """They are levels like any other: the same bytes are the same level."""
    found = TableEncoder().fit_tables([latin(KNOWN), latin(ROWS)])
    expected = TableEncoder().fit_tables([KNOWN, ROWS])
    order = [0, 2, 1] if not np.array_equal(found[0], expected[0]) else [0, 1, 2]
    assert np.array_equal(found[0][:, order], expected[0])
    encoder = TableEncoder().fit(latin(ROWS))
    assert encoder.transform(latin(KNOWN)).shape == (len(KNOWN), 3)


def test_new_rows_in_another_encoding_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Estimation.of(KNOWN, ROWS, random_state=0, evidence=QUICK).save_model("towns.model")
    outputs = {}
    for name, frame in {"text": ROWS, "bytes": as_bytes(ROWS), "latin": latin(ROWS)}.items():
        frame.to_parquet(f"{name}.parquet")
        files = ["predict", "towns.model", f"{name}.parquet", "--out", f"{name}.csv", "--quiet"]
        outputs[name] = CliRunner().invoke(main, files)
    assert outputs["text"].exit_code == outputs["bytes"].exit_code == 0
    assert (tmp_path / "text.csv").read_text() == (tmp_path / "bytes.csv").read_text()
    assert outputs["latin"].exit_code == 1
    assert "'town'" in outputs["latin"].output
    assert "latin.parquet" in outputs["latin"].output


def test_labels_of_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = ROWS.assign(label=[b"yes" if n % 3 == 0 else b"open" for n in range(len(ROWS))])
    frame.to_parquet("rows.parquet")
    done = CliRunner().invoke(main, ["estimate", "rows.parquet", "--label", "label"], obj=QUICK)
    assert done.exit_code == 0, done.output
    frame["label"] = [b"\xff" if text == b"yes" else text for text in frame["label"]]
    frame.to_parquet("rows.parquet")
    done = CliRunner().invoke(main, ["estimate", "rows.parquet", "--label", "label"], obj=QUICK)
    assert done.exit_code == 1
    assert "'label'" in done.output
