"""Readers: every format, and what people's files are really like."""

import csv
import gzip
import io
import sys
from datetime import date, datetime
from types import SimpleNamespace

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given

from classprior._csv_files import CsvDialect
from classprior._files import find_files, format_of, read_files
from classprior._writing import write_table

TABLE = pa.table({"amount": [1.5, None, -3.0], "town": ["Graz", "Wien, 1.", None], "n": [1, 2, 3]})
TABS = "amount\ttown\tn\n1.5\tGraz\t1\n\tWien, 1.\t2\n-3.0\t\t3\n"
TEXT = 'amount,town,n\n1.5,Graz,1\n,"Wien, 1.",2\n-3.0,,3\n'


def read(path, file_format=None, **options):
    return read_files(find_files(str(path), file_format), **options)


def read_text(tmp_path, content, name="table.csv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(path, **options)


def fault(tmp_path, content, name="table.csv", **options):
    with pytest.raises(ValueError, match="Expected") as caught:
        read_text(tmp_path, content, name, **options)
    return str(caught.value)


def write_arrow_stream(table, path):
    with pa.ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table)


WRITERS = {
    "t.csv": lambda path: path.write_text(TEXT),
    "t.txt": lambda path: path.write_text(TEXT),
    "t.csv.gz": lambda path: path.write_bytes(gzip.compress(TEXT.encode())),
    "t.tsv": lambda path: path.write_text(TABS),
    "t.parquet": lambda path: pa.parquet.write_table(TABLE, path),
    "t.feather": lambda path: pa.feather.write_feather(TABLE, str(path)),
    "t.arrow": lambda path: write_arrow_stream(TABLE, path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_has_the_same_rows(tmp_path, name):
    WRITERS[name](tmp_path / name)
    assert read(tmp_path / name).table.to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather"])
def test_standard_input(tmp_path, monkeypatch, name):
    WRITERS[name](tmp_path / name)
    stdin = SimpleNamespace(buffer=io.BytesIO((tmp_path / name).read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    file_format = None if name == "t.csv" else format_of(name)
    assert read("-", file_format).table.to_pylist() == TABLE.to_pylist()


def test_a_folder_and_a_pattern_are_all_their_files(tmp_path):
    (tmp_path / "deep").mkdir()
    for name, value in [("b.csv", 2), ("a.csv", 1), ("deep/c.csv", 3), (".hidden.csv", 9)]:
        (tmp_path / name).write_text(f"x,y\n{value},{value}\n")
    (tmp_path / "notes.md").write_text("not a table")
    assert read(tmp_path).table["x"].to_pylist() == [1, 2, 3]
    assert read(tmp_path / "*.csv").table["x"].to_pylist() == [1, 2]
    assert read(tmp_path / "**" / "?.csv").table["x"].to_pylist() == [1, 2, 3]


def test_files_of_one_set_may_differ_in_order_and_width_of_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,\n")
    (tmp_path / "b.csv").write_text("y,x\nred,2.5\n")
    table = read(tmp_path).table
    assert table.to_pydict() == {"x": [1.0, 2.5], "y": [None, "red"]}


def test_files_that_are_not_there_or_do_not_fit(tmp_path):
    with pytest.raises(ValueError, match=r"found no file called '.*nowhere\.csv'"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="found no file that ends in"):
        read(tmp_path)
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    pa.parquet.write_table(TABLE, tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="files of one format, found csv and parquet"):
        read(tmp_path)
    (tmp_path / "c.csv").write_text("x,z\n1,2\n")
    with pytest.raises(ValueError, match=r"got 'z' besides and no 'y' in 'c\.csv'"):
        read(tmp_path / "*.csv")
    (tmp_path / "c.csv").write_text("x,y\n1,red\n")
    with pytest.raises(ValueError, match="the same types in all files"):
        read(tmp_path / "*.csv")
    (tmp_path / "data.bin").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match=r"got 'data\.bin'\. Say what it is with --format"):
        read(tmp_path / "data.bin")
    assert read(tmp_path / "data.bin", "csv").table.num_rows == 1


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_a_broken_binary_file(tmp_path, name):
    message = fault(tmp_path, b"PAR1 but nothing else", name)
    assert "could not read it" in message


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_and_ends_of_lines(tmp_path, delimiter, end):
    text = end.join(["a,b,c", "1,x y,2.5", '2,"p; q",3.5', ""])
    if delimiter != ";":
        text = text.replace(",", delimiter)
    else:
        text = text.replace("; ", ", ").replace('"p, q"', "p q").replace(",", ";")
    table = read_text(tmp_path, text).table
    assert table["a"].to_pylist() == [1, 2]
    assert table["c"].to_pylist() == [2.5, 3.5]


def test_semicolons_and_decimal_commas(tmp_path):
    rows = read_text(tmp_path, "Größe;Ort\n1,5;Graz, Süd\n-0,25;Linz\n7;\n")
    assert rows.table.to_pydict() == {
        "Größe": [1.5, -0.25, 7.0],
        "Ort": ["Graz, Süd", "Linz", None],
    }
    assert rows.dialect == CsvDialect(";", ",", "utf-8")


@pytest.mark.parametrize(
    "text", ["a;b\n1.234,50;x\n-7,25;y\n1.000.000;\n", 'a,b\n"1,234.50",x\n-7.25,y\n"1,000,000",\n']
)
def test_thousands_are_grouped(tmp_path, text):
    assert read_text(tmp_path, text).table["a"].to_pylist() == [1234.5, -7.25, 1_000_000.0]


def test_codes_with_points_or_commas_stay_text(tmp_path):
    text = "a;b;c;d\n1.2.3;1.234,5;+43 1;31.12.2026\n4.5.6;x;+43 2;31.13.2026\n"
    assert set(read_text(tmp_path, text).table.schema.types) == {pa.string()}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks(tmp_path, encoding):
    table = read_text(tmp_path, "name,x\nÄnne,1\n".encode(encoding)).table
    assert table.to_pydict() == {"name": ["Änne"], "x": [1]}


def test_another_encoding_is_refused_with_the_byte_and_read_when_named(tmp_path):
    content = "name,x\nÄnne,1\n".encode("latin-1")
    message = fault(tmp_path, content)
    assert "at byte 7: b'\\xc4'" in message
    assert "--encoding latin-1" in message
    assert "found something else" in fault(tmp_path, "Ä,x\n1,2\n".encode("latin-1"))
    assert read_text(tmp_path, content, encoding="latin-1").table["name"].to_pylist() == ["Änne"]
    assert "name of an encoding, got 'klingon'" in fault(tmp_path, content, encoding="klingon")


def test_types(tmp_path):
    table = read_text(
        tmp_path,
        "yes,day,german,when,n,gap\n"
        "true,2026-01-31,31.12.2026,2026-01-31 12:00:00,1e3,?\n"
        "false,2026-02-01,01.02.2026,2026-01-31 12:00:01,-2,NA\n",
    ).table
    assert table["yes"].to_pylist() == [True, False]
    assert table["day"].to_pylist() == [date(2026, 1, 31), date(2026, 2, 1)]
    assert table["german"].to_pylist() == [datetime(2026, 12, 31), datetime(2026, 2, 1)]
    assert table["when"].to_pylist()[1] == datetime(2026, 1, 31, 12, 0, 1)
    assert table["n"].to_pylist() == [1000.0, -2.0]
    assert table["gap"].to_pylist() == [None, None]


def test_the_kind_of_a_column_is_judged_from_all_of_it(tmp_path):
    text = "a,b\n" + "1,2\n" * 5_000_000 + "x,2\n"  # more than one block
    table = read_text(tmp_path, text).table
    assert table["a"].type == pa.string()
    assert table["b"].type == pa.int64()


def test_headers(tmp_path):
    assert "first line of" in (message := fault(tmp_path, "1,2.5\n3,4\n"))
    assert "'1', '2.5'. Add a line with names, or say --no-header" in message
    assert read_text(tmp_path, "1,2.5\n3,4\n", header=False).table.to_pydict() == {
        "column_1": [1, 3],
        "column_2": [2.5, 4.0],
    }
    assert "got 'a' more than once. Rename the columns in the file, or say --no-header" in fault(
        tmp_path, "a,b,a\n1,2,3\n"
    )
    assert "got 'a' more than once" in fault(tmp_path, "a,b, a\n1,2,3\n")
    assert read_text(tmp_path, ",b\n1,2\n").table.column_names == ["column_1", "b"]


def test_ragged_rows_are_named(tmp_path):
    message = fault(tmp_path, "a,b\n1,2\n3,4,5\n6,7\n")
    assert "Expected 2 values in every row" in message
    assert "got 3 in row 3" in message
    assert "got 1 in row 2" in fault(tmp_path, "a\tb\n1\n", "t.tsv")


def test_a_quotation_mark_that_stays_open_is_seen(tmp_path):
    assert "opened and never closed" in fault(tmp_path, 'a,b\n1,"x\n2,y\n3,z\n')
    table = read_text(tmp_path, 'a,b\n1,"x\ny"\n2,"say ""hi"""\n').table
    assert table["b"].to_pylist() == ["x\ny", 'say "hi"']


def test_empty_files(tmp_path):
    assert "found an empty file" in fault(tmp_path, "")
    assert "found an empty file" in fault(tmp_path, "\n\n  \n")
    assert "the names of 2 columns and nothing below" in fault(tmp_path, "a,b\n")
    pa.parquet.write_table(TABLE.slice(0, 0), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="names of 3 columns and nothing below"):
        read(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (bytes(range(256)) * 40, "binary data (a zero at byte 0)"),
        (b"PAR1 and more", "a parquet file; try --format parquet"),
        (b"PK\x03\x04 and more", "a spreadsheet; save it as CSV first"),
        (b"\x1f\x8b broken", "a whole gzip file"),
    ],
)
def test_a_binary_file_with_the_name_of_a_table(tmp_path, content, what):
    assert what in fault(tmp_path, content)


@pytest.mark.parametrize("line", [",".join(map(str, range(10**6))), "x," * 10**6])
def test_a_line_of_a_million_columns(tmp_path, line):
    message = fault(tmp_path, f"a{line}\n1,2\n")
    assert "at most 10,000 columns" in message
    assert len(message) < 500


def test_one_huge_value(tmp_path):
    table = read_text(tmp_path, f"a,b\n{'y' * 3_000_000},1\n").table
    assert len(table["a"][0].as_py()) == 3_000_000
    assert "rows of at most 16 MiB" in fault(tmp_path, f"a,b\n{'y' * 40_000_000},1\n")


def as_csv(rows, delimiter):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return file.getvalue()


cells = st.one_of(
    st.integers(-1000, 1000).map(str),
    st.floats(-1e6, 1e6).map(repr),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8),
)


def table_or_reason(content):
    """Return what is read from standard input, or why it is not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        try:
            return read("-", keep_text=True), ""
        except ValueError as error:
            return None, str(error)


@given(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=8), st.sampled_from(",;\t|"))
def test_any_table_that_python_writes_is_read_value_by_value(rows, delimiter):
    """The text of every value comes back; the csv module is the judge."""
    content = as_csv([("first", "second", "third"), *rows], delimiter).encode()
    found, reason = table_or_reason(content)
    if found and found.dialect.delimiter == delimiter:
        columns = found.as_written.to_pydict().values()
        assert list(zip(*columns, strict=True)) == rows
    else:  # values may look like another delimiter's table
        assert found or reason.startswith("Expected")


@given(st.binary(max_size=200))
def test_any_bytes_give_a_table_or_a_reason(content):
    found, reason = table_or_reason(content)
    assert found.table.num_rows if found else reason.startswith("Expected")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.feather"])
def test_what_is_written_is_read_again(tmp_path, name):
    path = tmp_path / "new" / name
    write_table(path, TABLE, format_of(name), None)
    assert read(path).table.to_pylist() == TABLE.to_pylist()
    assert [p.name for p in path.parent.iterdir()] == [name]


def test_a_file_is_written_as_it_was_read(tmp_path):
    text = "id;x;day\n007;1,50;31.12.2026\n008;NA;\n"
    rows = read_text(tmp_path, text.encode("utf-16"), keep_text=True)
    write_table(tmp_path / "new.csv", rows.as_written, "csv", rows.dialect)
    assert (tmp_path / "new.csv").read_bytes().decode("utf-16") == text
