"""Quotation marks in CSV files: values of several lines are read, stray marks swallow no rows."""

import csv
import io
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from classprior._files.csv_survey import survey_csv


def slow_stray(text, delimiter):
    """Read character by character, as a CSV reader does; return the line of the first stray."""
    state, line, opened_in, has_lines = "start", 1, 0, False
    for place, character in enumerate(text):
        if state == "inside":
            if character == '"' and text[place + 1 : place + 2] == '"':
                state = "doubled"
            elif character == '"':
                state = "value"
                if has_lines and text[place + 1 : place + 2] not in ("", delimiter, "\n", "\r"):
                    return opened_in
            else:
                has_lines |= character == "\n"
        elif state == "doubled":
            state = "inside"
        elif character in (delimiter, "\n", "\r"):
            state = "start"
        elif state == "start" and character == '"':
            state, opened_in, has_lines = "inside", line, False
        else:
            state = "value"
        line += character == "\n"
    return opened_in if state == "inside" and has_lines else None


@given(st.text('"";,\n\nab', max_size=60), st.integers(1, 20))
@example('a,b\n1,"x\n2,"y\n', 3)
@example('"a""\n""b"\n"c\n\n"d\n', 5)
def test_strays_are_found_as_a_reader_finds_them(text, size):
    """A text that the reader accepts has no stray, and all of its rows; in blocks of any size."""
    content = f"a,b\n{text}\n".encode()
    try:
        file = survey_csv(content, "'t.csv'", block_size=size + 60)
    except ValueError:
        return
    if file.text.dialect.delimiter == ",":
        assert slow_stray(content.decode(), ",") is None


def surveyed(rows, end="\n"):
    """Survey rows of values that are written as they are."""
    return survey_csv("".join(",".join(row) + end for row in rows).encode(), "'t.csv'")


def plain_rows(width, n_rows, seed=0):
    rng = random.Random(seed)
    kinds = [
        lambda: f"word {rng.randrange(10**6)}",
        lambda: str(rng.randrange(100)),
        lambda: f"{rng.random():.2f}",
    ]
    rows = [[kind() for kind in kinds[:width]] for _ in range(n_rows)]
    return [["a", "b", "c"][:width], *rows]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("n_strays", [2, 10, 100])
def test_many_strays(width, n_strays, end):
    """However many there are, and in files of one column."""
    rows = plain_rows(width, 600)
    strays = sorted(random.Random(n_strays).sample(range(1, 601), n_strays))
    for number in strays:
        place = number % width
        rows[number][place] = f'"{rows[number][place]}'
    with pytest.raises(ValueError, match=r"row \d+ of 't\.csv'|'t\.csv', got \d in row"):
        surveyed(rows, end)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("n_between", [0, 1, 30])
def test_strays_that_are_in_the_right_places(place, n_between):
    """One before a value and one after another: only the lines between show that they are rows."""
    rows = plain_rows(3, 100)
    rows[20][place] = f'"{rows[20][place]}'
    rows[21 + n_between][place] += '"'
    with pytest.raises(ValueError, match=r"row 21 of 't\.csv'"):
        surveyed(rows)


def test_rows_of_categories_between_strays():
    rows = [["a", "b"], *([color, size] for color in ("red", "blue") for size in "SMLX")]
    rows[3][0], rows[6][0] = '"red', 'blue"'
    with pytest.raises(ValueError, match=r"row 4 of 't\.csv'"):
        surveyed(rows)


@pytest.mark.parametrize("name", ['"b', 'b"'])
def test_strays_in_the_first_line(name):
    rows = plain_rows(2, 50)
    rows[0][1] = name
    rows[30][1] = '"5'
    with pytest.raises(ValueError, match=r"'t\.csv'"):
        surveyed(rows)


def test_marks_within_values_are_no_strays():
    """Inches, and a quotation in the middle of a value, swallow nothing."""
    rows = plain_rows(3, 50)
    for row in rows[1:]:
        row[0] = '5" pipe'
    rows[7][0], rows[8][0] = 'a "quoted" word', '"a" word'
    assert surveyed(rows).n_rows == 50


def test_lines_without_numbers_where_rows_have_them_are_text():
    """As many delimiters as rows, and a word that other rows have, but no number beside it."""
    rows = [["color", "x"], *([color, str(n)] for n, color in enumerate(["red", "blue"] * 10))]
    rows[5][0] = '"red,as agreed\nred,as delivered\nred"'
    assert surveyed(rows).n_rows == 20


words = st.sampled_from(
    ["paid", "Main St, 5", "3 boxes", 'the "new" one', "a; b", "no. 7", "é", ""]
)
one_line = st.lists(words, min_size=1, max_size=4).map(" ".join) | st.lists(words).map(", ".join)
texts = st.lists(one_line, min_size=1, max_size=4).map("\n".join)
numbers = st.integers(-99, 9999).map(str)
tables = st.lists(st.tuples(texts, numbers, texts), min_size=1, max_size=15)


@given(tables, st.sampled_from([1, 2, 3]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_every_value_that_is_quoted_as_it_should_be_is_read(rows, width, quoting):
    """Addresses, lists and other text of several lines, as the csv module writes them."""
    rows = [row[:width] for row in rows if width > 1 or row[0]]
    out = io.StringIO(newline="")
    names = ("first", "second", "third")[:width]
    csv.writer(out, quoting=quoting).writerows([names, *rows])
    file = survey_csv(out.getvalue().encode(), "'t.csv'")
    if file.text.dialect.delimiter == ",":
        found = [tuple(row.values()) for t in file.tables(as_text=True) for row in t.to_pylist()]
        assert found == rows
