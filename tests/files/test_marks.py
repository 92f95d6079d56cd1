"""Decimal marks are decided from all files together, and never guessed."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classprior import PUClassifier, estimate_prior
from classprior._files.marks import MarkedFile, decided, marks_of
from classprior._samples.inputs import as_source, read_together
from classprior.engines import fit_blocks, predict_blocks
from classprior.priors._penalized_l1 import PenalizedL1Prior


def read(folder, *texts, names=None, **options):
    """Return the tables of files that are opened together."""
    paths = [folder / f"{number}.csv" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    sources = [as_source(path, f"X{i}", read_options=options) for i, path in enumerate(paths)]
    sources = read_together(sources, names)
    return [pd.concat([t.to_pandas() for b in s for t in b.tables()]) for s in sources]


def lines(header, *rows):
    return "\n".join([header, *rows, ""])


def plain(value):
    """Write a number as Python and pandas do."""
    return str(value)


def shortest(value):
    """Write a number as R and JavaScript do."""
    return str(value).removesuffix(".0")


def fixed(value):
    """Write a number with three decimals."""
    return f"{value:.3f}"


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
            assert read(tmp_path, *texts, names=["a"], decimal=mark)[0]["a"][0] == value


#: Columns "a" that are read in two ways by two files, or that nothing explains.
CONTRADICTIONS = {
    "grouped in one file": ["a,b\n1.234,1\n", "a,b\n4321,1\n"],
    "grouped by commas in a file with another delimiter": [
        'a,b\n"12,345",1\n',
        "a;b\n12,345;1,5\n",
    ],
    "both files show their mark": ['a,b\n"12,345",1.5\n', "a;b\n12,345;1,5\n"],
    "grouped in the other file": ['a,b\n"12,345",1.5\n', "a,b\n1.234,1.5\n"],
    "whole beside it": ["a,b\n1.234,1\n646,2\n"],
    "whole in the other file": ["a,b\n1.234,1\n", "a,b\n646,2\n"],
    "large beside it": ["a,b\n1.234,0.5\n4321,1\n"],
    "large in the other file": ["a;b\n1.234;0.5\n", "a;b\n4321;0.5\n"],
    "two groups in the other file": ["a,b\n1.234,0.5\n", 'a,b\n"1,234,567",0.5\n'],
    "a fraction in the other file": ['a,b\n"12,345",1.5\n', "a;b\n9,1;1,5\n"],
    "a fraction in the other file, no hint": ['a,b\n"12,345",1\n', "a;b\n9.1;1\n"],
    "whole beside it, explained by the other file only": [
        "a,b\n1.234,1\n646,2\n",
        "a,b\n0.5,1\n",
    ],
    "late in a long file": [
        lines("a,b", *["1.234,1"] * 3000),
        lines("a,b", *["12,1"] * 3000, "4321,1"),
    ],
}


@pytest.mark.parametrize("texts", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_files_that_contradict_each_other_are_refused(tmp_path, texts):
    with pytest.raises(ValueError, match=r"column 'a'.* row 2 of .*\.csv.*decimal mark"):
        read(tmp_path, *texts)
    with pytest.raises(ValueError, match=r"column 'a'"):
        read(tmp_path, *texts[::-1])
    tables = read(tmp_path, *texts, names=["b"])  # text of a column that is not used
    assert all(isinstance(value, str) for table in tables for value in table["a"])
    if '"' not in "".join(texts):
        assert read(tmp_path, *texts, names=["a"], decimal=".")[0]["a"].max() < 4322


#: Files that are read without a question, and their first value of column "a".
CLEAR = {
    "all have three decimals": (["a,b\n1.234,1\n", "a,b\n2.345,2\n"], 1.234),
    "the other file shows it": (["a,b\n1.234,1\n", "a,b\n0.5,2\n1234,3\n"], 1.234),
    "another column shows it": (["a,b\n1.234,0.5\n2,1\n"], 1.234),
    "another column, other file whole": (["a,b\n1.234,0.5\n", "a,b\n2,0.5\n"], 1.234),
    "fixed decimals": (["a,b\n1.234,1\n1234.000,2\n", "a,b\n2.345,2\n"], 1.234),
    "grouped and not": (['a,b\n"12,345",1\n', "a,b\n12345,1\n646,2\n"], 12345),
    "grouped and not, by the mark": (["a;b\n2.817;9,1\n", "a,b\n2817,9.1\n"], 2817),
    "grouped beside whole": (['a,b\n"12,345",1\n646,2\n'], 12345),
    "decimal in both dialects": (["a;b\n12,345;0,5\n", "a,b\n12.345,0.5\n"], 12.345),
}


@pytest.mark.parametrize(("texts", "first"), CLEAR.values(), ids=CLEAR)
def test_files_that_agree_are_read(tmp_path, texts, first):
    assert read(tmp_path, *texts)[0]["a"][0] == first
    assert read(tmp_path, *texts[::-1])[-1]["a"][0] == first


WRONG = {
    "a decimal comma": ("a;b\n1,234;1\n0,512;2\n", ".", "0,512", 3),
    "all decimal commas": ("a;b\n1,5;1\n0,512;2\n", ".", "1,5", 2),
    "a decimal point": ("a,b\n1.234,1\n0.512,2\n", ",", "0.512", 3),
    "quoted": ('a,b\n"1,234.5",1\n"0,5",2\n', ".", "0,5", 3),
    "groups": ('a,b\n"1,234,567",1\n5.5,2\n', ",", "5.5", 3),
    "groups only": ("a;b\n1.234.567;1\n", ".", "1.234.567", 2),
    "far down": (lines("a;b", *["1,234;1"] * 70_000, "0,5;1"), ".", "0,5", 70_002),
}


@pytest.mark.parametrize(("text", "mark", "value", "row"), WRONG.values(), ids=WRONG)
def test_values_that_are_impossible_with_the_given_mark_are_named(tmp_path, text, mark, value, row):
    with pytest.raises(ValueError, match=rf"'a' has '{re.escape(value)}' in row {row:,} .*0\.csv"):
        read(tmp_path, text, decimal=mark)
    (table,) = read(tmp_path, text, names=["b"], decimal=mark)
    assert value in set(table["a"])  # as text, if the column is not used


TABLE = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
DOORS = {
    "estimate_prior": lambda path, **how: estimate_prior(TABLE, path, method="en", **how),
    "fit_blocks": lambda path, **how: fit_blocks(PenalizedL1Prior(n_centers=5), TABLE, path, **how),
    "predict_blocks": lambda path, **how: predict_blocks(
        PUClassifier(prior=0.5).fit_samples(TABLE, TABLE), path, path.with_name("out.csv"), **how
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_wrong_mark_is_named_by_every_door(tmp_path, door):
    path = tmp_path / "t.csv"
    path.write_text(lines("a;b", *(f"1,23{i % 10};{i % 7}" for i in range(40)), "0,512;3"))
    with pytest.raises(ValueError, match=r"'a' has '0,512' in row 42 of .*t\.csv"):
        DOORS[door](path, read_options={"decimal": "."})
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("write", [plain, shortest, fixed])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_columns_of_three_decimals_are_not_questioned(tmp_path, write, n_columns):
    """Whoever writes them, and however few decimals other values have."""
    rng = np.random.default_rng(0)
    frames = [rng.uniform(1, 900, (n, n_columns)).round(3) for n in (60, 90)]
    texts = [
        lines("a,b,c"[: 2 * n_columns - 1], *(",".join(map(write, r)) for r in f)) for f in frames
    ]
    for table, frame in zip(read(tmp_path, *texts), frames, strict=True):
        np.testing.assert_array_equal(table.to_numpy(), frame)


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
        assert not marks.shown
    elif marks.shown:
        assert found["x"] == mark
