"""Decimal marks are decided from all files together, and never guessed."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classprior import estimate_prior
from classprior._files.marks import MarkedFile, Marks, decided, marks_of
from classprior._samples.inputs import as_source, settle_decimals
from classprior.engines import fit_blocks
from classprior.priors._penalized_l1 import PenalizedL1Prior


def read(folder, *texts, names=None, **options):
    """Return the tables of files that are opened together."""
    paths = [folder / f"{number}.csv" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    sources = [as_source(path, f"X{i}", read_options=options) for i, path in enumerate(paths)]
    settle_decimals(sources, names)
    return [pd.concat([t.to_pandas() for b in s for t in b.tables()]) for s in sources]


def lines(header, *rows):
    return "\n".join([header, *rows, ""])


def test_one_file_explains_the_other(tmp_path):
    """Whole prices in one file, decimal commas in the other: 2.817 is 2817 in both."""
    positive = lines("price;n", "2.817;1", "646;2", "1.004;3")
    unlabeled = lines("price;n", "3.410;1", "9,1;2", "1.234,50;3")
    first, second = read(tmp_path, positive, unlabeled)
    assert first["price"].tolist() == [2817.0, 646.0, 1004.0]
    assert second["price"].tolist() == [3410.0, 9.1, 1234.5]
    assert first["n"].tolist() == [1, 2, 3]


def test_one_file_makes_the_other_clear(tmp_path):
    """What is unclear in one file alone is a number in both, not text in one of them."""
    first, second = read(tmp_path, lines("a;b", "2.817;1"), lines("a;b", "9.1;1"))
    assert [first["a"].tolist(), second["a"].tolist()] == [[2.817], [9.1]]


def test_columns_are_not_outvoted(tmp_path):
    """Two columns of grouped thousands beside one with decimal commas."""
    (table,) = read(tmp_path, lines("a;b;c", "1.613;2.817;7,4", "646;12;8", "12;9;0,5"))
    assert table.to_dict("list") == {
        "a": [1613, 646, 12],
        "b": [2817, 12, 9],
        "c": [7.4, 8.0, 0.5],
    }


def test_a_column_shows_its_own_mark_in_a_comma_separated_file(tmp_path):
    (table,) = read(tmp_path, lines("a,c", '"0,123",2.817', '"1,234",1.5'))
    assert table.to_dict("list") == {"a": [0.123, 1.234], "c": [2.817, 1.5]}
    (table,) = read(tmp_path, lines("b,c", '"1,234",2.817', '"12,345",1.5'))
    assert table.to_dict("list") == {"b": [1234, 12345], "c": [2.817, 1.5]}


@pytest.mark.parametrize("text", ["a,b\n2.817,1\n3.104,2\n", "a;b\n2.817;0.5\n3.104;1\n"])
def test_points_are_not_questioned_where_they_are_usual(tmp_path, text):
    """In comma-separated files, or where another column has a decimal point."""
    (table,) = read(tmp_path, text)
    assert table["a"].tolist() == [2.817, 3.104]


UNCLEAR = {
    "no evidence": ["a;b\n2.817;1\n3.104;2\n"],
    "evidence for both": ["a;b;c\n2.817;0,5;0.5\n3.104;1;1\n"],
    "conflict": ["a;b\n9,1;1\n9.1;1\n"],
    "evidence of another delimiter": ["a;b\n2.817;1\n", "a,b\n2.817,1\n"],
}


@pytest.mark.parametrize("texts", UNCLEAR.values(), ids=UNCLEAR)
def test_what_is_unclear_is_refused_by_name(tmp_path, texts):
    with pytest.raises(ValueError, match=r"column 'a'.*(2\.817|9,1.*9\.1).*decimal mark"):
        read(tmp_path, *texts)
    tables = read(tmp_path, *texts, names=["b"])  # a column that is not used is not questioned
    assert tables[0]["b"].notna().all()
    for mark, value in ((".", 2.817), (",", 2817.0)):
        if "2.817" in texts[0]:
            assert read(tmp_path, *texts, decimal=mark)[0]["a"][0] == value


def test_each_file_may_have_its_own_mark(tmp_path):
    """If it shows it: 9,1 and 9.1 are the same number."""
    first, second = read(tmp_path, "a;b\n9,1;2.817\n", "a,b\n9.1,2817\n")
    assert first.to_dict("list") == second.to_dict("list") == {"a": [9.1], "b": [2817]}


def test_late_evidence_counts(tmp_path):
    """The mark shows only in the last of many rows, far beyond the first that are looked at."""
    values = ["2.817"] * 5000
    (table,) = read(tmp_path, lines("a;b", *(f"{v};1" for v in values), "9,5;1"))
    assert set(table["a"]) == {2817.0, 9.5}


def test_text_is_no_evidence(tmp_path):
    """Version numbers and dates are not decimal numbers."""
    rows = ("2.817;1.2.3;31.12.2026;9,5", "3.104;1,0;1.5.2026;1,5")
    (table,) = read(tmp_path, lines("a;version;day;x", *rows))
    assert table["a"].tolist() == [2817, 3104]
    assert table["version"].tolist() == ["1.2.3", "1,0"]


def test_the_answer_is_that_of_the_numbers(tmp_path):
    """Through every door: the same numbers with points give the same share."""
    rng = np.random.default_rng(0)
    samples = [rng.normal(5000, 900, 120).round(), rng.normal(5000, 900, 300).round(1)]
    samples[1][90:] += 6000
    frames = [pd.DataFrame({"price": x, "other": rng.normal(size=len(x))}) for x in samples]
    for name, frame in zip("pu", frames, strict=True):
        text = frame.copy()
        text["price"] = [
            f"{v:,.1f}".replace(",", " ").replace(".", ",").replace(" ", ".").removesuffix(",0")
            for v in frame["price"]
        ]
        text["other"] = [str(v).replace(".", ",") for v in frame["other"]]
        text.to_csv(tmp_path / f"{name}.csv", sep=";", index=False)
    paths = tmp_path / "p.csv", tmp_path / "u.csv"
    options = {"method": "penl1", "random_state": 0, "n_resamples": 20}
    assert estimate_prior(*paths, **options).prior == estimate_prior(*frames, **options).prior
    fitted = [
        fit_blocks(PenalizedL1Prior(n_centers=30, random_state=0), *samples, block_rows=70).prior_
        for samples in (paths, frames)
    ]
    assert fitted[0] == fitted[1]


numbers = st.one_of(st.integers(-(10**7), 10**7), st.floats(-1e6, 1e6).map(lambda x: round(x, 3)))


@given(st.lists(numbers, min_size=1, max_size=20), st.sampled_from(",."), st.booleans())
def test_a_number_is_never_misread(values, mark, grouped):
    """Either the column has its values, or it is unclear; the writer is Python's format."""
    texts = [f"{v:,}" if grouped else str(v) for v in values if "e" not in str(v)]
    if mark == ",":
        texts = [t.translate(str.maketrans(",.", ".,")) for t in texts]
    marks = marks_of(pa.array(texts, pa.string()))
    assert marks.is_number
    (found,), unclear = decided([MarkedFile("file", ";", {"x": marks})])
    if "x" in unclear:
        assert marks.unclear
        assert marks.mark is None
    elif marks.comma or marks.point:
        assert found["x"] == mark
    assert Marks(point="1.5") | Marks(comma="1,5") == Marks(True, "1,5", "1.5")
