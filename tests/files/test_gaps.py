"""Words for missing values, by every door that reads text."""

import numpy as np
import pandas as pd
import pytest
import xlsxwriter

from classprior import estimate_prior
from classprior._files.csv import MISSING_VALUES
from classprior._files.finding import find_files
from classprior._files.reading import open_files
from classprior._samples.inputs import as_source

#: As pandas documents them.
PANDAS = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
]
EXCEL = ["#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"]
each_word = pytest.mark.parametrize("word", [*PANDAS, *EXCEL, r"\N", "?", "-", "."])


def write_csv(path, rows):
    path.write_text("".join(";".join(map(str, row)) + "\n" for row in rows))


def write_sheet(path, rows):
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(rows):
            for place, value in enumerate(row):
                is_text = isinstance(value, str)
                (sheet.write_string if is_text else sheet.write_number)(number, place, value)


WRITE = {"csv": write_csv, "xlsx": write_sheet}


@each_word
@pytest.mark.parametrize("kind", WRITE)
def test_numbers_stay_numbers(tmp_path, kind, word):
    """The word is missing among numbers and categories; "none" is a category."""
    path = tmp_path / f"t.{kind}"
    WRITE[kind](path, [["x", "c"], [1.5, "none"], [word, "missing"], [2.25, word]])
    (table,) = (table.to_pydict() for block in as_source(path, "X") for table in block.tables())
    assert table == {"x": [1.5, None, 2.25], "c": ["none", "missing", None]}


def test_one_word_does_not_cost_a_column(tmp_path):
    """The answer is that of the same table with an empty value, from files and from memory."""
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame({"x": rng.normal(size=n), "y": rng.normal(size=n)}) for n in (60, 90)]
    frames[1].loc[30:, "x"] += 3
    for name, frame in zip("pu", frames, strict=True):
        frame.loc[7, "x"] = np.nan
        frame.to_csv(tmp_path / f"{name}.csv", index=False, na_rep="#N/A")
    answer = estimate_prior(tmp_path / "p.csv", tmp_path / "u.csv", method="en", random_state=0)
    expected = estimate_prior(*frames, method="en", random_state=0)
    assert answer.prior == expected.prior
    assert answer.columns == expected.columns


def test_words_are_written_as_they_were(tmp_path):
    """Also in numbers with another decimal mark than the first file has."""
    (tmp_path / "0.csv").write_text("x;c\n1,5;1.#IND\n#N/A;a\n")
    (tmp_path / "1.csv").write_text("x,c\n1.#IND,b\n2.5,#N/A\n-1.#QNAN,.\n")
    tables = open_files(find_files(tmp_path), "X").as_written()
    rows = [tuple(row.values()) for table in tables for row in table.to_pylist()]
    assert rows[:2] == [("1,5", "1.#IND"), ("#N/A", "a")]
    assert rows[2:] == [("1.#IND", "b"), ("2,5", "#N/A"), ("-1.#QNAN", ".")]


def test_words_are_listed_once():
    assert len(set(MISSING_VALUES)) == len(MISSING_VALUES)
    assert set(PANDAS) <= set(MISSING_VALUES)
