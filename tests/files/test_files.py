"""Readers: every format, and what people's files are really like."""

import csv
import gzip
import io
import os
import pickle
import re
import sys
import threading
from datetime import date, datetime
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from classprior import estimate_prior
from classprior._files.csv import BLOCK_SIZE, with_decimals
from classprior._files.csv_survey import survey_csv
from classprior._files.dialect import CsvDialect
from classprior._files.finding import find_files, format_of
from classprior._files.reading import CsvTables, ReadOptions
from classprior._files.writing import dialect_for, table_writer
from classprior._samples.inputs import as_source

TABLE = pa.table({"amount": [1.5, None, -3.0], "town": ["Graz", "Wien, 1.", None], "n": [1, 2, 3]})
TABS = "amount\ttown\tn\n1.5\tGraz\t1\n\tWien, 1.\t2\n-3.0\t\t3\n"
TEXT = 'amount,town,n\n1.5,Graz,1\n,"Wien, 1.",2\n-3.0,,3\n'


def opened(path, file_format=None, block_rows=2**15, **options):
    options = {"file_format": file_format, **options}
    return as_source(path, "the rows", block_rows=block_rows, read_options=options)


def read(path, file_format=None, **options):
    return table_of(opened(path, file_format, **options))


def table_of(source):
    return pa.concat_tables(table for block in source for table in block.tables())


def write(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read_text(tmp_path, content, name="table.csv", **options):
    return read(write(tmp_path, content, name), **options)


def fault(tmp_path, content, name="table.csv", **options):
    """Return why a file cannot be read; the reason names the file and no option of a command."""
    path = write(tmp_path, content, name)
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        opened(path, **options)
    assert "--" not in str(caught.value)
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


@pytest.mark.parametrize("block_rows", [1, 2, 1000])
@pytest.mark.parametrize("name", WRITERS)
def test_every_format_has_the_same_rows(tmp_path, name, block_rows):
    WRITERS[name](tmp_path / name)
    source = opened(tmp_path / name, block_rows=block_rows)
    for _ in range(2):
        assert table_of(source).to_pylist() == TABLE.to_pylist()
    assert source.columns == ("amount", "town", "n")
    assert source.n_rows == 3
    if name != "t.parquet":  # which has row groups of its own
        assert source.sizes == {1: [1, 1, 1], 2: [2, 1], 1000: [3]}[block_rows]


@pytest.mark.parametrize("name", WRITERS)
def test_standard_input(tmp_path, monkeypatch, name):
    WRITERS[name](tmp_path / name)
    stdin = SimpleNamespace(buffer=io.BytesIO((tmp_path / name).read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    kind = format_of(name)
    source = opened("-", None if kind == "csv" else kind)
    for _ in range(2):  # although standard input can be read once
        assert table_of(source).to_pylist() == TABLE.to_pylist()


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather"])
def test_a_named_pipe(tmp_path, name):
    WRITERS[name](tmp_path / name)
    content = (tmp_path / name).read_bytes()
    pipe = tmp_path / f"pipe-{name}"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    writer.start()
    source = opened([tmp_path / name, pipe])
    writer.join()
    for _ in range(2):
        assert table_of(source).to_pylist() == 2 * TABLE.to_pylist()


def test_a_folder_and_a_pattern_are_all_their_files(tmp_path):
    for folder in ("deep", "_temporary", ".ipynb_checkpoints"):
        (tmp_path / folder).mkdir()
    hidden = [(".a.csv", 9), ("_temporary/a.csv", 9), (".ipynb_checkpoints/a.csv", 9)]
    for name, value in [("b.csv", 2), ("a.csv", 1), ("deep/c.csv", 3), *hidden]:
        (tmp_path / name).write_text(f"x,y\n{value},{value}\n")
    (tmp_path / "notes.md").write_text("not a table")
    assert read(tmp_path)["x"].to_pylist() == [1, 2, 3]
    assert read(tmp_path / "*.csv")["x"].to_pylist() == [1, 2]
    assert read(tmp_path / "**" / "[bc].csv")["x"].to_pylist() == [2, 3]
    assert read([tmp_path / "b.csv", tmp_path / "deep"])["x"].to_pylist() == [2, 3]


def write_parts(folder, kind, *parts):
    """Write each part of a table to a file of its own."""
    for number, part in enumerate(parts):
        path = folder / f"{number}.{kind}"
        if kind == "csv":
            path.write_text(as_csv([part, *zip(*part.values(), strict=True)], ","))
        elif kind == "parquet":
            pa.parquet.write_table(pa.table(part), path)
        else:
            write_arrow_stream(pa.table(part), path)


KINDS = pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])


@KINDS
def test_files_of_one_set_may_differ_in_order_and_width_of_numbers(tmp_path, kind):
    write_parts(tmp_path, kind, {"x": [1], "y": [None]}, {"y": ["red"], "x": [2.5]})
    source = opened(tmp_path)
    tables = [table for block in source for table in block.tables()]
    assert {tuple(table.schema.types) for table in tables} == {(pa.float64(), pa.string())}
    assert table_of(source).to_pydict() == {"x": [1.0, 2.5], "y": [None, "red"]}
    assert pa.concat_tables(source.opened.as_written(as_text=False)).equals(table_of(source))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_text_stored_as_codes_is_text(tmp_path, kind, first):
    """As pandas stores categories."""
    texts, codes = pa.array(["a", "b"]), pa.array(["b", None]).dictionary_encode()
    write_parts(tmp_path, kind, *({"x": part} for part in ([texts, codes], [codes, texts])[first]))
    expected = ["a", "b", "b", None] if first == 0 else ["b", None, "a", "b"]
    assert read(tmp_path).column("x").to_pylist() == expected


@KINDS
def test_files_of_one_set_whose_columns_clash(tmp_path, kind):
    write_parts(tmp_path, kind, {"x": [1], "y": [2]}, {"x": [1], "y": ["red"]})
    with pytest.raises(ValueError, match=rf"'y'.*1\.{kind}"):
        read(tmp_path)
    write_parts(tmp_path, kind, {"x": [1], "y": [2]}, {"x": [1], "z": [2]})
    with pytest.raises(ValueError, match=rf"1\.{kind}.*'z'.*'y'"):
        opened(tmp_path)


def test_files_that_are_not_there_or_do_not_fit(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        opened(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match=re.escape(str(tmp_path))):
        opened(tmp_path)
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    pa.parquet.write_table(TABLE, tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"csv and parquet"):
        opened(tmp_path)
    (tmp_path / "data.bin").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match=r"data\.bin"):
        opened(tmp_path / "data.bin")
    assert read(tmp_path / "data.bin", "csv").num_rows == 1


def test_a_small_file_is_read_once(tmp_path):
    path = write(tmp_path, "x,y\n1,2\n3,4\n")
    kept, read_again = (
        CsvTables(find_files(path), "X", 2**15, ReadOptions(), kept_bytes) for kept_bytes in (99, 0)
    )
    path.unlink()
    for _ in range(2):
        assert [table.to_pydict() for block in kept.blocks() for table in block.tables()] == [
            {"x": [1, 3], "y": [2, 4]}
        ]
    assert [table.to_pydict() for table in kept.as_written()] == [
        {"x": ["1", "3"], "y": ["2", "4"]}
    ]
    with pytest.raises(FileNotFoundError, match=r"table\.csv"):
        list(read_again.blocks())


def test_a_file_that_changes_or_vanishes_is_noticed(tmp_path, monkeypatch):
    """If it is too large to be held in memory."""
    monkeypatch.setattr("classprior._files.reading._HELD_BYTES", 3)
    path = write(tmp_path, "x,y\n1,2\n3,4\n")
    source = opened(path)
    write(tmp_path, "x,y\n1,2\n3,4\n5,6\n")
    with pytest.raises(ValueError, match=r"table\.csv"):
        list(source)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"table\.csv"):
        list(source)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
@pytest.mark.parametrize("content", [b"PAR1 but nothing else", b""])
def test_a_broken_binary_file(tmp_path, name, content):
    fault(tmp_path, content, name)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_and_ends_of_lines(tmp_path, delimiter, end):
    text = end.join(["a,b,c", "1,x y,2.5", '2,"p; q",3.5', ""])
    if delimiter != ";":
        text = text.replace(",", delimiter)
    else:
        text = text.replace("; ", ", ").replace('"p, q"', "p q").replace(",", ";")
    table = read_text(tmp_path, text)
    assert table["a"].to_pylist() == [1, 2]
    assert table["c"].to_pylist() == [2.5, 3.5]


def test_semicolons_and_decimal_commas(tmp_path):
    source = opened(write(tmp_path, "Größe;Ort\n1,5;Graz, Süd\n-0,25;Linz\n7;\n"))
    assert table_of(source).to_pydict() == {
        "Größe": [1.5, -0.25, 7.0],
        "Ort": ["Graz, Süd", "Linz", None],
    }
    assert source.opened.dialect == CsvDialect(";", ",", "utf-8")


@pytest.mark.parametrize(
    "text", ["a;b\n1.234,50;x\n-7,25;y\n1.000.000;\n", 'a,b\n"1,234.50",x\n-7.25,y\n"1,000,000",\n']
)
def test_thousands_are_grouped(tmp_path, text):
    assert read_text(tmp_path, text)["a"].to_pylist() == [1234.5, -7.25, 1_000_000.0]


def test_codes_with_points_or_commas_stay_text(tmp_path):
    text = "a;b;c;d\n1.2.3;1.234,5;+43 1;31.12.2026\n4.5.6;x;+43 2;31.13.2026\n"
    assert set(read_text(tmp_path, text).schema.types) == {pa.string()}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks(tmp_path, encoding):
    table = read_text(tmp_path, "name,x\nÄnne,1\n".encode(encoding))
    assert table.to_pydict() == {"name": ["Änne"], "x": [1]}


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16-le"])
def test_another_encoding_is_read_when_named(tmp_path, encoding):
    content = "name,x\nÄnne,1\n".encode(encoding)
    assert read_text(tmp_path, content, encoding=encoding)["name"].to_pylist() == ["Änne"]
    assert "encoding" in fault(tmp_path, content)


def test_another_encoding_is_refused_with_the_byte(tmp_path):
    content = "name,x\nÄnne,1\n".encode("latin-1")
    assert "byte 7: b'\\xc4'" in fault(tmp_path, content)
    assert "utf-8" in fault(tmp_path, "Ä,x\n1,2\n".encode("latin-1"))
    with pytest.raises(ValueError, match="'klingon'"):
        read_text(tmp_path, content, encoding="klingon")


def test_types(tmp_path):
    table = read_text(
        tmp_path,
        "yes,day,german,when,n,gap\n"
        "true,2026-01-31,31.12.2026,2026-01-31 12:00:00,1e3,?\n"
        "false,2026-02-01,01.02.2026,2026-01-31 12:00:01,-2,NA\n",
    )
    assert table["yes"].to_pylist() == [True, False]
    assert table["day"].to_pylist() == [date(2026, 1, 31), date(2026, 2, 1)]
    assert table["german"].to_pylist() == [datetime(2026, 12, 31), datetime(2026, 2, 1)]
    assert table["when"].to_pylist()[1] == datetime(2026, 1, 31, 12, 0, 1)
    assert table["n"].to_pylist() == [1000.0, -2.0]
    assert table["gap"].to_pylist() == [None, None]


def test_headers(tmp_path):
    assert "'1', '2.5'" in fault(tmp_path, "1,2.5\n3,4\n")
    assert read_text(tmp_path, "1,2.5\n3,4\n", header=False).to_pydict() == {
        "column_1": [1, 3],
        "column_2": [2.5, 4.0],
    }
    for header in ("a,b,a", "a,b, a"):
        for row in ("1,2,3", "x,y,z"):
            assert "'a'" in fault(tmp_path, f"{header}\n{row}\n")
    assert read_text(tmp_path, ",b\n1,2\n").column_names == ["column_1", "b"]
    assert read_text(tmp_path, "a,,\n1,x,2.5\n").to_pydict() == {
        "a": [1],
        "column_2": ["x"],
        "column_3": [2.5],
    }


def test_ragged_rows_are_named(tmp_path):
    message = fault(tmp_path, "a,b\n1,2\n3,4,5\n6,7\n")
    assert "2 values" in message
    assert "got 3 in row 3" in message
    assert "got 1 in row 2" in fault(tmp_path, "a\tb\n1\n", "t.tsv")


def test_a_quotation_mark_that_stays_open_is_seen(tmp_path):
    assert "quotation mark" in fault(tmp_path, 'a,b\n1,"x\n2,y\n3,z\n')
    table = read_text(tmp_path, 'a,b\n1,"x\ny"\n2,"say ""hi"""\n')
    assert table["b"].to_pylist() == ["x\ny", 'say "hi"']


def test_empty_files(tmp_path):
    assert "empty" in fault(tmp_path, "")
    assert "empty" in fault(tmp_path, "\n\n  \n")
    assert "2 columns" in fault(tmp_path, "a,b\n")
    for name in ("t.parquet", "t.feather", "t.arrow"):
        empty = io.BytesIO()
        if name == "t.parquet":
            pa.parquet.write_table(TABLE.slice(0, 0), empty)
        elif name == "t.feather":
            pa.feather.write_feather(TABLE.slice(0, 0), empty)
        else:
            pa.ipc.new_stream(empty, TABLE.schema).close()
        assert "3 columns" in fault(tmp_path, empty.getvalue(), name)


def test_an_empty_file_beside_full_ones(tmp_path):
    for number, table in enumerate([TABLE.slice(0, 0), TABLE]):
        pa.feather.write_feather(table, str(tmp_path / f"{number}.feather"))
    assert read(tmp_path).to_pylist() == TABLE.to_pylist()
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "0.csv").write_text("amount,town,n\n")
    (tmp_path / "csv" / "1.csv").write_text(TEXT)
    assert read(tmp_path / "csv").to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (bytes(range(256)) * 40, "zero at byte 0"),
        (b"PAR1 and more", "parquet"),
        (b"PK\x03\x04 and more", "spreadsheet"),
        (b"\x1f\x8b broken", "gzip"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-12], "gzip"),
    ],
)
def test_a_binary_file_with_the_name_of_a_table(tmp_path, content, what):
    assert what in fault(tmp_path, content)


@pytest.mark.parametrize("line", [",".join(map(str, range(10**6))), "x," * 10**6])
def test_a_line_of_a_million_columns(tmp_path, line):
    message = fault(tmp_path, f"a{line}\n1,2\n")
    assert "10,000" in message
    assert len(message) < 500


def test_one_huge_value(tmp_path):
    table = read_text(tmp_path, f"a,b\n{'y' * 3_000_000},1\n")
    assert len(table["a"][0].as_py()) == 3_000_000
    table = read_text(tmp_path, f"a,b\n{'x' * 9},1\n{'y' * 12_000_000},1\n")
    assert len(table["a"][1].as_py()) == 12_000_000
    assert "16 MiB" in fault(tmp_path, f"a,b\n{'y' * 40_000_000},1\n")


# --- files of many blocks ------------------------------------------------------------------------


def in_blocks(content, block_size, **options):
    """Return the whole table, read in blocks of so many bytes."""
    content = content if isinstance(content, bytes) else content.encode()
    ((file,), _) = with_decimals([survey_csv(content, "'t.csv'", block_size=block_size, **options)])
    tables = list(file.tables())
    assert len(tables) > 1 or block_size == BLOCK_SIZE
    table = pa.concat_tables(tables)
    assert table.num_rows == file.n_rows
    assert table.schema == file.schema
    return table


VALUES = {
    "gap": "",
    "whole": "7",
    "one": "1",
    "hex": "0x1F",
    "huge": "99999999999999999999",
    "decimal": "1.5",
    "grouped": '"1,234.5"',
    "small": "1e-7",
    "yes": "true",
    "day": "2026-01-31",
    "german": "31.01.2026",
    "second": "2026-01-31 12:00:00",
    "fraction": "2026-01-31 12:00:00.25",
    "zone": "2026-01-31T12:00:00Z",
    "time": "12:30:00",
    "text": "x",
    "encoding": "UTF8",
    "quoted": '"say ""hi"", \'you\'\nthere"',
}


@pytest.mark.parametrize("later", VALUES)
@pytest.mark.parametrize("first", VALUES)
def test_the_kind_of_a_column_is_judged_from_all_of_it(first, later):
    """Whatever the first block holds and the last contradicts; one block sees it all."""
    lines = ["a,b", *[f"{VALUES[first]},2"] * 40, f"{VALUES[later]},3", f"{VALUES[first]},4"]
    text = "\n".join([*lines, ""])
    assert in_blocks(text, 100).equals(in_blocks(text, BLOCK_SIZE))


def test_a_column_may_be_contradicted_more_than_once():
    values = [""] * 60 + ["0"] * 60 + ["1.5"] * 60 + ['"1,234.5"'] * 60
    for more, expected in ([], pa.float64()), (["x"], pa.string()):
        text = "\n".join(["a,b", *(f"{value},1" for value in values + more), ""])
        table = in_blocks(text, 64)
        assert table.schema.types == [expected, pa.int64()]
        assert table.equals(in_blocks(text, BLOCK_SIZE))


@pytest.mark.parametrize("values", [["9.1"] * 60 + ["12.345"], ["1.5"] * 60 + ["inf"]])
@pytest.mark.parametrize("mark", [None, ","])
def test_blocks_make_no_difference_for_decimal_marks(values, mark):
    content = "\n".join(["a;b", *(f"{value};2.817" for value in values), ""]).encode()
    both = [
        with_decimals([survey_csv(content, "'t.csv'", block_size=size)], mark)
        for size in (100, BLOCK_SIZE)
    ]
    tables = [pa.concat_tables(file.tables()) for (file,), _ in both]
    assert tables[0].equals(tables[1])
    assert both[0][1] == both[1][1]


def test_columns_without_names_are_judged_one_by_one():
    text = "a,,\n" + "1,2,3\n" * 50 + "1,2.5,x\n"
    table = in_blocks(text, 64)
    assert table.column_names == ["a", "column_2", "column_3"]
    assert table["column_2"].to_pylist()[-1] == 2.5
    assert table["column_3"].to_pylist()[-2:] == ["3", "x"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_encodings_and_compression_in_blocks(encoding, pack):
    text = "größe;x\n" + "1,5;2\n" * 50 + "Änne;3\n"
    named = encoding if encoding == "latin-1" else None
    table = in_blocks(pack(text.encode(encoding)), 100, encoding=named)
    assert table.to_pydict() == {"größe": ["1,5"] * 50 + ["Änne"], "x": [2] * 50 + [3]}


@pytest.mark.parametrize(
    ("end", "facts"),
    [
        ("1,2,3\n", "got 3 in row 52"),
        ("1.5,2\nx,2\n3\n", "got 1 in row 54"),
        ('1,"x\n2,y\n', "quotation mark"),
        ('1,"x\n' + "2,y\n" * 50, "quotation mark"),
        (f"{'y' * 500},1\n", "limit .* MiB"),
        ("Ä,2\n".encode("latin-1"), "byte 204: b'\\xc4'"),
        ("Ä,2\nx,y,z\n".encode("latin-1"), "byte 204: b'\\xc4'|in row 53"),
    ],
)
def test_faults_far_down_are_named(end, facts):
    content = b"a,b\n" + b"1,2\n" * 50 + (end if isinstance(end, bytes) else end.encode())
    with pytest.raises(ValueError, match=facts.replace("\\", "\\\\")) as caught:
        survey_csv(content, "'t.csv'", block_size=100)
    assert "'t.csv'" in str(caught.value)


def test_a_packed_file_that_ends_too_early(tmp_path):
    rows = "\n".join(f"{line},1" for line in os.urandom(2 << 20).hex("\n", 8).split())
    assert "gzip" in fault(tmp_path, gzip.compress(f"a,b\n{rows}\n".encode(), mtime=0)[:-1000])


# --- any table, any bytes ------------------------------------------------------------------------


def as_csv(rows, delimiter):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return file.getvalue()


cells = st.one_of(
    st.integers(-1000, 1000).map(str),
    st.floats(-1e6, 1e6).map(repr),
    st.sampled_from([value for value in VALUES.values() if '"' not in value]),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8),
)
tables = st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=12)
delimiters = st.sampled_from(",;\t|")


def survey_or_reason(content, **options):
    """Return the file, or why it cannot be read."""
    try:
        ((file,), _) = with_decimals([survey_csv(content, "standard input", **options)])
        return file, ""
    except ValueError as error:
        return None, str(error)


@given(tables, delimiters)
def test_any_table_that_python_writes_is_read_value_by_value(rows, delimiter):
    """The text of every value comes back; the csv module is the judge."""
    content = as_csv([("first", "second", "third"), *rows], delimiter).encode()
    file, reason = survey_or_reason(content)
    if file and file.text.dialect.delimiter == delimiter:
        columns = pa.concat_tables(file.tables(as_text=True)).to_pydict().values()
        assert list(zip(*columns, strict=True)) == rows
    else:  # values may look like another delimiter's table
        assert file or "standard input" in reason


@given(tables, delimiters, st.integers(300, 500))
def test_blocks_make_no_difference(rows, delimiter, block_size):
    content = as_csv([("first", "second", "third"), *rows * 3], delimiter).encode()
    whole, _ = survey_or_reason(content)
    if whole and whole.text.dialect.delimiter == delimiter:
        parts, reason = survey_or_reason(content, block_size=block_size)
        assert parts, reason
        assert pa.concat_tables(parts.tables()).equals(pa.concat_tables(whole.tables()))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_table_or_a_reason(content):
    file, reason = survey_or_reason(content)
    assert file or "standard input" in reason
    if file:
        assert sum(table.num_rows for table in file.tables()) == file.n_rows


# --- written again -------------------------------------------------------------------------------


def write_tables(path, parts, dialect=None):
    with table_writer(path, format_of(path), dialect or dialect_for(path), None) as write_part:
        for table in parts:
            write_part(table)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.feather"])
def test_what_is_written_is_read_again(tmp_path, name):
    path = tmp_path / "new" / name
    write_tables(path, [TABLE.slice(0, 0), TABLE.slice(0, 2), TABLE.slice(2)])
    assert read(path).to_pylist() == TABLE.to_pylist()
    assert [p.name for p in path.parent.iterdir()] == [name]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["new.csv", "new.csv.gz", None])
def test_a_file_is_written_as_it_was_read(tmp_path, name, encoding):
    """In parts, also to standard output, which is no place where one can look back."""
    text = "id;x;day\n007;1,50;31.12.2026\n008;NA;\n"
    source = opened(write(tmp_path, text.encode(encoding)))
    (table,) = source.opened.as_written()
    out = io.BytesIO()
    out.seekable = lambda: False
    path = tmp_path / name if name else None
    with table_writer(
        path, "csv", source.opened.dialect, SimpleNamespace(buffer=out)
    ) as write_part:
        write_part(table.slice(0, 1))
        write_part(table.slice(1))
    content = path.read_bytes() if path else out.getvalue()
    content = gzip.decompress(content) if name == "new.csv.gz" else content
    assert content == text.encode(encoding)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 1, 0]])
@pytest.mark.parametrize("columns", [None, ("town",), ("town", "n")])
def test_a_large_row_group_is_read_in_parts(tmp_path, monkeypatch, order, columns):
    """In any order, with any columns, and in another process."""
    monkeypatch.setattr("classprior._files.parquet._MOST_ROWS", 2**15)
    n = np.arange(80_000)
    table = pa.table({"n": n, "town": np.array(["Graz", "Linz", "Wien"])[n % 3]})
    pq.write_table(table, tmp_path / "rows.parquet")
    source = opened(tmp_path / "rows.parquet")
    assert source.sizes == [2**15, 2**15, 80_000 - 2**16]
    assert table_of(source).equals(table)
    blocks = list(source)
    for number in order:
        for block in (blocks[number], pickle.loads(pickle.dumps(blocks[number]))):
            found = pa.concat_tables(block.tables(columns))
            expected = table.slice(block.start, block.n_rows)
            assert found.equals(expected if columns is None else expected.select(columns))
            assert block.number_of(block.start) == block.start


# --- values that are not what they seem ----------------------------------------------------------


def stray(place, *rows, end="\n"):
    """Write 30 rows of three columns, with an unbalanced quotation mark in some of them."""
    lines = [["t", str(i), str(i / 2)] for i in range(30)]
    for row in rows:
        lines[row][place] = f'"{lines[row][place]}'
    return "a,b,c\n" + "\n".join(map(",".join, lines)) + end


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("rows", [(10,), (10, 11), (10, 14), (10, 29)])
@pytest.mark.parametrize("end", ["\n", ""])
def test_stray_quotation_marks_swallow_no_rows(tmp_path, place, rows, end):
    """One that is never closed, or two with rows between them."""
    path = tmp_path / "t.csv"
    path.write_text(stray(place, *rows, end=end))
    with pytest.raises(ValueError, match=r"row 12\b.*t\.csv|t\.csv.*row 12\b"):
        as_source(path, "X", block_rows=7)


def test_rows_of_a_file_without_a_header_are_counted_from_one(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(stray(1, 10, 14).removeprefix("a,b,c\n"))
    with pytest.raises(ValueError, match=r"row 11\b.*t\.csv|t\.csv.*row 11\b"):
        as_source(path, "X", read_options={"header": False})


def test_values_of_several_lines_are_read(tmp_path):
    values = ["one, two\nthree", "a\n\nb", "plain"] * 20
    frame = pd.DataFrame({"text": values, "x": range(60)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert as_source(tmp_path / "t.csv", "X").n_rows == 60


def test_impossible_dates_are_gaps(tmp_path):
    days = [f"{1 + i % 28}.{1 + i % 12}.2026" for i in range(200)]
    days[7] = "31.02.2026"
    (tmp_path / "t.csv").write_text("\n".join(["day;x", *(f"{d};1,5" for d in days), ""]))
    with pytest.warns(UserWarning, match=r"'day'.*1 impossible.*31\.02\.2026"):
        source = as_source(tmp_path / "t.csv", "X")
    table = pd.concat([t.to_pandas() for block in source for t in block.tables()])
    assert table["day"].isna().tolist() == [i == 7 for i in range(200)]
    assert table["day"][5] == pd.Timestamp(2026, 6, 6)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_utf8_is_not_read_as_another_encoding(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes("name,x\nZo\u00eb,1\n".encode())
    (tmp_path / "u.csv").write_bytes("name,x\nZo\u00eb,1\n".encode(encoding))
    assert as_source(tmp_path / "u.csv", "X", read_options={"encoding": encoding}).n_rows == 1
    with pytest.raises(ValueError, match=rf"t\.csv.*UTF-8.*{encoding[:2]}"):
        as_source(tmp_path / "t.csv", "X", read_options={"encoding": encoding})


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_open_end_is_a_gap(tmp_path, suffix):
    """9999-12-31 would make all other dates alike."""
    rng = np.random.default_rng(0)
    frames = []
    for n in (60, 90):
        days = pd.Timestamp(2020, 1, 1) + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
        texts = days.strftime("%Y-%m-%d").to_numpy(dtype=object)
        texts[::9] = "9999-12-31"
        frames.append(pd.DataFrame({"end": texts, "x": rng.normal(size=n)}))
    paths = [tmp_path / f"{number}.{suffix}" for number in range(2)]
    for frame, path in zip(frames, paths, strict=True):
        if suffix == "csv":
            frame.to_csv(path, index=False)
        else:
            days = pa.array([np.datetime64(d).astype(object) for d in frame["end"]], pa.date32())
            pq.write_table(pa.table({"end": days, "x": frame["x"]}), path)
    with pytest.warns(UserWarning, match=r"'end'.*9999-12-31"):
        answer = estimate_prior(*paths, random_state=0, n_resamples=20, n_repeats=1)
    (end, _) = answer.columns
    assert (end.kind, "17 missing" in end.treatment) == ("date", True)


def test_unknown_read_options_are_named(tmp_path):
    with pytest.raises(TypeError, match="'sep'"):
        as_source(write(tmp_path, TEXT), "X", read_options={"sep": ";"})
