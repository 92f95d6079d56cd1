"""Files are written whole, where they may be, or not at all."""

import csv
import errno
import io
import os
import re
import stat
import sys
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from classprior._files import writing
from classprior._files.dialect import CsvDialect
from classprior._files.finding import find_files
from classprior._files.reading import ReadOptions, open_files
from classprior._files.writing import check_outputs, table_writer, whole_file, write_text


def write_half(path, error):
    with whole_file(path) as file:
        file.write(b"half")
        raise error


def refused(path, *paths, force=True):
    """Check that outputs are refused, with a reason that names one of them."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        check_outputs(path, *paths, force=force)
    assert "--" not in str(caught.value)  # options are the command line's


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    for error in (KeyboardInterrupt(), OSError(28, "No space left on device")):
        with pytest.raises(type(error)):
            write_half(path, error)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_a_file_is_replaced_only_on_purpose(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    refused(path, force=False)
    check_outputs(path, force=True)
    refused(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX modes")
def test_a_replaced_file_keeps_its_mode_and_its_links(tmp_path):
    path, link = tmp_path / "secret.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_has_the_usual_mode(tmp_path):
    write_text(tmp_path / "ours.csv", "new")
    (tmp_path / "theirs.csv").write_text("new")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_outputs_that_could_not_be_written(tmp_path):
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_text("no folder")
    refused(pipe)
    with pytest.raises(ValueError, match=re.escape(str(pipe))):
        write_text(pipe, "text")
    assert pipe.is_fifo()
    refused(file / "deeper" / "out.csv")
    refused(tmp_path / "out.csv", None, tmp_path / "x" / ".." / "out.csv")
    check_outputs(tmp_path / "new" / "out.csv", None, tmp_path / "other.csv", force=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pipe"]


def is_case_sensitive(folder):
    (folder / "case").touch()
    return not (folder / "CASE").exists()


@pytest.mark.parametrize("force", [False, True])
def test_an_input_is_never_an_output(tmp_path, monkeypatch, force):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data[1]" / "2026"
    folder.mkdir(parents=True)
    path = folder / "rows.csv"
    path.write_text("x,y\n1,2\n")
    Path("symbolic.csv").symlink_to(path)
    Path("hard.csv").hardlink_to(path)
    Path("away").symlink_to(folder)
    Path("no-suffix").write_text("x\n1\n")
    inside = {"data[1]", Path("data[1]/2026"), "away", "d*/*/*.csv", "**/*.csv", "d*/**", "away/r*"}
    inside |= {str(path), Path("data[1]/../data[1]/2026/rows.csv"), "symbolic.csv", "hard.csv"}
    others = {path, Path("symbolic.csv"), Path("hard.csv"), Path("away/rows.csv")}
    if not is_case_sensitive(tmp_path):
        others.add(folder / "ROWS.csv")
    for source in (*inside, ["other.csv", [path]]):
        for output in others:
            with pytest.raises(ValueError, match=re.escape(repr(str(output)))) as caught:
                check_outputs(output, force=force, inputs=["other.csv", source])
            assert isinstance(source, list) or str(source) in str(caught.value)
            with pytest.raises(ValueError, match=re.escape(repr(str(output)))):
                check_outputs(force=force, inputs=[source], resumed=output)
    with pytest.raises(ValueError, match="no-suffix"):
        check_outputs(Path("no-suffix"), force=True, inputs=[Path("no-suffix")])
    with path.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        with pytest.raises(ValueError, match=r"hard\.csv"):
            check_outputs(Path("hard.csv"), force=True, inputs=["-"])


def test_a_new_output_is_not_read_by_the_next_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("data")
    folder.mkdir()
    (folder / "rows.csv").write_text("x,y\n1,2\n")
    Path("away").symlink_to(folder)
    new = folder / "new" / "scored.csv"
    for source in ("data", "away", "data/**", "d*/*/s*.csv", "**/*.csv", f"{tmp_path}/data/*/*"):
        with pytest.raises(ValueError, match=r"scored\.csv") as caught:
            check_outputs(new, force=True, inputs=[source])
        assert source in str(caught.value)
    for source in ("data/*.csv", "data/rows.csv", "*/rows.csv", "elsewhere", "other/**", "-"):
        check_outputs(new, force=True, inputs=[source])
    check_outputs(folder / "page.html", folder / ".hidden.csv", force=True, inputs=[folder])
    with pytest.raises(ValueError, match=r"sums\.npz"):
        check_outputs(force=True, inputs=[folder], file_format="csv", resumed=folder / "sums.npz")


def test_a_checkpoint_may_exist(tmp_path):
    path = tmp_path / "sums.npz"
    path.touch()
    check_outputs(tmp_path / "new.csv", force=False, resumed=path)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        check_outputs(path, force=True, resumed=path)


@pytest.mark.skipif(sys.platform == "win32", reason="no locks")
def test_the_next_run_removes_what_a_killed_one_left(tmp_path):
    """But not what others are writing at the moment."""
    path = tmp_path / "out.csv"
    abandoned = tmp_path / f".out.csv.{os.getpid()}.abc.part"  # this number is in use again
    abandoned.write_text("half")
    unrelated = [tmp_path / ".out.csv.txt", tmp_path / ".other.csv.1.abc.part"]
    for other in unrelated:
        other.write_text("kept")
    with whole_file(path) as first:
        assert not abandoned.exists()
        assert len(list(tmp_path.glob(".out.csv.*.part"))) == 1
        first.write(b"first")
        write_text(path, "second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert sorted(tmp_path.iterdir()) == sorted([path, *unrelated])


@pytest.mark.skipif(sys.platform == "win32", reason="no locks")
def test_a_file_removed_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    locked = writing.lock

    def too_late(handle, **how):
        monkeypatch.setattr(writing, "lock", locked)
        (beside,) = tmp_path.glob(".out.csv.*.part")
        beside.unlink()
        return locked(handle, **how)

    monkeypatch.setattr(writing, "lock", too_late)
    write_text(tmp_path / "out.csv", "whole")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]


#: Characters that a CSV file could get wrong, and texts that look like something else.
SPECIAL = [chr(c) for c in (*range(33), 34, 39, 44, 59, 124, 127, 133, 160)]
NASTY = [
    *SPECIAL,
    "",
    " x ",
    '""',
    '"',
    "a\rb",
    "\r",
    "\n",
    "\r\n",
    "NA",
    "nan",
    ".",
    "1,50",
    "007",
    "é",
]
nasty_texts = st.sampled_from(NASTY) | st.text(
    st.sampled_from([*SPECIAL, *"a1é€\u2028\ufeff"]), max_size=6
)
DIALECTS = [
    CsvDialect(delimiter, decimal, encoding)
    for delimiter, decimal in (",.", ";,", "\t,", "|.")
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1")
]
any_dialect = st.sampled_from(DIALECTS)


def in_encoding(text, encoding):
    """Return a text without the characters that an encoding does not have."""
    return text.encode(encoding, "ignore").decode(encoding)


def written(tables, dialect):
    """Return the bytes of a CSV file."""
    out = io.BytesIO()
    with table_writer(None, "csv", dialect, SimpleNamespace(buffer=out)) as write:
        for table in tables:
            write(table)
    return out.getvalue()


def written_one_by_one(table, dialect):
    """Return the bytes of a CSV file, in the obvious way."""

    def field(value):
        text = "" if value is None else str(value)
        text = text.replace(".", dialect.decimal) if isinstance(value, float) else text
        is_special = any(c in text for c in f'"\r\n{dialect.delimiter}') or table.num_columns * [
            ""
        ] == [text]
        return '"' + text.replace('"', '""') + '"' if is_special else text

    rows = [
        table.column_names,
        *zip(*(column.to_pylist() for column in table.columns), strict=True),
    ]
    return "".join(dialect.delimiter.join(map(field, row)) + "\n" for row in rows).encode(
        dialect.encoding
    )


@st.composite
def tables(draw, texts=nasty_texts):
    n_rows = draw(st.integers(1, 8))
    values = {
        "texts": (texts, pa.string()),
        "more": (st.none() | texts, pa.string()),
        "category": (texts, pa.dictionary(pa.int32(), pa.string())),
        "number": (st.none() | st.floats(), pa.float64()),
        "amount": (st.floats(-1e6, 1e6).map(lambda x: round(x, 6)), pa.float64()),
        "short": (st.floats(width=32), pa.float32()),
        "count": (st.none() | st.integers(-(2**63), 2**63 - 1), pa.int64()),
        "is": (st.none() | st.booleans(), pa.bool_()),
        "day": (st.none() | st.dates(), pa.date32()),
        "nothing": (st.none(), pa.null()),
    }
    names = draw(st.lists(st.sampled_from(sorted(values)), min_size=1, unique=True))
    rows = {name: st.lists(values[name][0], min_size=n_rows, max_size=n_rows) for name in names}
    return pa.table({name: pa.array(draw(rows[name]), values[name][1]) for name in names})


@given(tables(), any_dialect, st.integers(0, 8))
def test_tables_are_written_as_value_by_value(table, dialect, place):
    parts = [table.slice(0, place), table.slice(place)]
    try:
        expected = written_one_by_one(table, dialect)
    except UnicodeEncodeError:
        with pytest.raises(ValueError, match=rf"Column '.* in row \d(.|\n)*{dialect.encoding}"):
            written(parts, dialect)
        return
    assert written(parts, dialect) == expected


@given(st.lists(st.floats() | st.integers(-(10**17), 10**17).map(float), min_size=1))
def test_numbers_are_written_as_python_writes_them(values):
    content = written([pa.table({"x": values})], DIALECTS[0]).decode()
    assert content.splitlines() == ["x", *map(repr, values)]


@given(st.lists(st.tuples(nasty_texts, nasty_texts), min_size=1, max_size=8), any_dialect)
def test_texts_are_read_back(rows, dialect):
    first, second = (
        [in_encoding(t, dialect.encoding) for t in texts] for texts in zip(*rows, strict=True)
    )
    rows = list(zip(first, second, strict=True))
    numbers = [0.5] * len(rows)
    table = pa.table({"first": first, "second": second, "probability": numbers})
    content = written([table], dialect)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        path.write_bytes(content)
        # A file with null characters is taken for binary data unless its encoding is known.
        opened = open_files(
            find_files(path), "rows", options=ReadOptions(encoding=dialect.encoding)
        )
        ours = pa.concat_tables(opened.as_written()).to_pylist()
        with path.open(encoding=dialect.encoding, newline="") as file:
            header, *pythons = csv.reader(file, delimiter=dialect.delimiter)
    assert header == table.column_names
    assert [tuple(row[:2]) for row in pythons] == rows
    assert [(row["first"], row["second"]) for row in ours] == rows


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "2"], pa.int64()),
        (["1", "02"], pa.string()),
        (["1", "+2"], pa.string()),
        (["1", "2.5"], pa.float64()),
        (["1.0", "2.5", "1e-07"], pa.float64()),
        (["1.50", "2.25"], pa.float64()),
        (["1.5", "1.50"], pa.float64()),
        (["1", "1.0"], pa.float64()),
        (["123456789012345678901", "1"], pa.string()),
        (["0.5", "00.5"], pa.string()),
        (["1e5"], pa.float64()),
        (["true", "false"], pa.bool_()),
        (["true", "TRUE"], pa.bool_()),
        (["2026-01-02", ""], pa.date32()),
        (["2026-01-02T10:00:00.5", "2026-01-02T10:00:01.0"], pa.timestamp("ns")),
        (["2026-01-02T10:00:00", "2026-01-02 10:00:00"], pa.timestamp("s")),
        (["10:00:00", "23:59:59"], pa.time32("s")),
        (["10:00", "23:59:59"], pa.time32("s")),
        (["NA", ""], pa.string()),
    ],
)
def test_codes_stay_text_beside_typed_columns(tmp_path, texts, expected):
    """Over all files, and in whichever of them a value stands."""
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.csv").write_text(f"x,y\n{text},a\n")
    try:
        opened = open_files(find_files(tmp_path), "rows")
    except ValueError:  # files whose types differ are refused
        opened = None
    if opened is not None:
        assert pa.concat_tables(opened.as_written(as_text=False))["x"].type == expected
    (tmp_path / "all.csv").write_text("x,y\n" + "".join(f"{text},a\n" for text in texts))
    opened = open_files(find_files(tmp_path / "all.csv"), "rows")
    assert pa.concat_tables(opened.as_written(as_text=False))["x"].type == expected


# --- names, full disks and formulas --------------------------------------------------------------


def test_long_names_can_be_written(tmp_path):
    path = tmp_path / ("x" * 250 + ".csv")
    write_text(path, "text")
    write_text(path, "other text")
    assert [found.read_text() for found in tmp_path.iterdir()] == ["other text"]


def test_a_full_disk_is_named(tmp_path):
    with pytest.raises(OSError, match=r"out\.csv"), whole_file(tmp_path / "out.csv"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes of POSIX")
def test_a_pipe_is_refused_before_the_work(tmp_path):
    _, end = os.pipe()
    with pytest.raises(ValueError, match="pipe"):
        check_outputs(Path(f"/dev/fd/{end}"), force=True)
    os.close(end)


def test_text_like_a_formula_stays_text(tmp_path):
    texts = ["=1+1", "+1", "-1", "@x", "http://example.org", "plain"]
    with table_writer(tmp_path / "t.xlsx", "sheet", CsvDialect(",", ".", "utf-8"), None) as write:
        write(pa.table({"=name": texts}))
    with zipfile.ZipFile(tmp_path / "t.xlsx") as file:
        names = file.namelist()
        sheet = file.read("xl/worksheets/sheet1.xml").decode()
        styles = file.read("xl/styles.xml").decode()
    assert "<f>" not in sheet
    assert "hyperlink" not in sheet
    assert not any("sheet1.xml.rels" in name for name in names)
    styled = [
        i for i, xf in enumerate(re.findall(r"<xf [^>]*xfId[^>]*>", styles)) if "quotePrefix" in xf
    ]
    found = dict(re.findall(r'<c r="(A\d)"(?: s="(\d)")? t="inlineStr"', sheet))
    assert {name for name, style in found.items() if style and int(style) in styled} == {
        f"A{row}" for row in range(1, 6)
    }
