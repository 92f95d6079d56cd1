"""Spreadsheets and JSON lines: the same rows as from any other file."""

import builtins
import gzip
import json
import sys
import zipfile
from datetime import date, datetime
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, estimate_prior
from classprior._files.json_lines import JsonFile
from classprior._files.stored import store
from classprior._samples.inputs import as_source
from classprior.cli import main
from classprior.datasets import make_transactions

ROWS = [
    ["amount", "town", "day", "when", "ok", "n"],
    [1.5, "007", date(2025, 12, 9), datetime(2025, 12, 9, 12), True, 1],
    [None, "Wien, 1.", date(2025, 12, 10), None, False, 2],
    [-3.0, None, None, datetime(2025, 12, 10), None, 3],
]
COLUMNS = dict(zip(ROWS[0], map(list, zip(*ROWS[1:], strict=True)), strict=True))


def opened(path, block_rows=2**15, **options):
    return as_source(path, "the rows", block_rows=block_rows, read_options=options)


def read(path, **options):
    return pa.concat_tables(table for block in opened(path, **options) for table in block.tables())


# --- spreadsheets --------------------------------------------------------------------------------

EPOCH = datetime(1899, 12, 30)
STYLES = {date: 1, datetime: 2}


def column_letter(place):
    return chr(ord("A") + place)


def excel_cell(place, number, value):
    where = f'r="{column_letter(place)}{number}"'
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c {where} t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if isinstance(value, bool):
        return f'<c {where} t="b"><v>{int(value)}</v></c>'
    style = STYLES.get(type(value), 0)
    if isinstance(value, date):
        value = datetime(value.year, value.month, value.day, getattr(value, "hour", 0)) - EPOCH
        value = value.total_seconds() / 86_400
    return f'<c {where} s="{style}"><v>{value}</v></c>'


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def relations(*kinds_and_targets):
    entries = (
        f'<Relationship Id="r{i}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for i, (kind, target) in enumerate(kinds_and_targets, 1)
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(entries)}</Relationships>'


def write_xlsx(path, sheets, first_row=1):
    """Write the least that is a workbook."""
    places = [f"worksheets/sheet{i}.xml" for i in range(len(sheets))]
    named = "".join(
        f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in enumerate(sheets, 1)
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
        "_rels/.rels": relations(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{named}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            *(("worksheet", place) for place in places), ("styles", "styles.xml")
        ),
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs count="3"><xf numFmtId="0"/>'
        '<xf numFmtId="14"/><xf numFmtId="22"/></cellXfs></styleSheet>',
    }
    for place, rows in zip(places, sheets.values(), strict=True):
        lines = "".join(
            f'<row r="{number}">'
            + "".join(excel_cell(i, number, value) for i, value in enumerate(row))
            + "</row>"
            for number, row in enumerate(rows, first_row)
        )
        parts[f"xl/{place}"] = (
            f'<worksheet xmlns="{MAIN}"><sheetData>{lines}</sheetData></worksheet>'
        )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, text)


def ods_cell(value):
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, str):
        kind = f'office:value-type="string"><text:p>{escape(value)}</text:p'
        return f"<table:table-cell {kind}></table:table-cell>"
    if isinstance(value, bool):
        kind = f'"boolean" office:boolean-value="{str(value).lower()}"'
    elif isinstance(value, date):
        kind = f'"date" office:date-value="{value.isoformat()}"'
    else:
        kind = f'"float" office:value="{value}"'
    return f"<table:table-cell office:value-type={kind}/>"


def write_ods(path, sheets, first_row=1):
    space = "urn:oasis:names:tc:opendocument:xmlns:"
    tables = "".join(
        f'<table:table table:name="{name}">'
        + "<table:table-row><table:table-cell/></table:table-row>" * (first_row - 1)
        + "".join(
            f"<table:table-row>{''.join(map(ods_cell, row))}</table:table-row>" for row in rows
        )
        + "</table:table>"
        for name, rows in sheets.items()
    )
    content = (
        f'<office:document-content xmlns:office="{space}office:1.0" '
        f'xmlns:table="{space}table:1.0" xmlns:text="{space}text:1.0"><office:body>'
        f"<office:spreadsheet>{tables}</office:spreadsheet></office:body>"
        "</office:document-content>"
    )
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("META-INF/manifest.xml", "<manifest/>")
        file.writestr("content.xml", content)


WRITERS = {"xlsx": write_xlsx, "ods": write_ods}
each_kind = pytest.mark.parametrize("kind", WRITERS)


@each_kind
@pytest.mark.parametrize("first_row", [1, 4])
@pytest.mark.parametrize("block_rows", [1, 1000])
def test_a_sheet_has_the_values_of_its_cells(tmp_path, kind, first_row, block_rows):
    path = tmp_path / f"t.{kind}"
    gap = [None] * 6
    WRITERS[kind](path, {"Data": [*ROWS[:2], gap, *ROWS[2:], gap, gap]}, first_row)
    source = opened(path, block_rows=block_rows)
    for _ in range(2):
        table = pa.concat_tables(table for block in source for table in block.tables())
        assert table.to_pydict() == COLUMNS
    assert table["n"].type == pa.int64()
    assert table["town"].to_pylist()[0] == "007"
    numbers = [block.number_of(row) for block in source for row in range(*_span(block))]
    assert numbers == [first_row + 1, first_row + 3, first_row + 4]


def _span(block):
    return block.start, block.start + block.n_rows


@each_kind
def test_one_of_several_sheets(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    WRITERS[kind](path, {"First": ROWS, "Second": [["x", "y"], [1, 2.5]], "Empty": []})
    with pytest.warns(UserWarning, match=r"'First'.*'Second'"):
        assert read(path).num_rows == 3
    assert read(path, sheet="Second").to_pydict() == {"x": [1], "y": [2.5]}
    with pytest.raises(ValueError, match=rf"'Third'.*t\.{kind}.*'First', 'Second'"):
        opened(path, sheet="Third")
    with pytest.raises(ValueError, match=rf"t\.{kind}', sheet 'Empty'"):
        opened(path, sheet="Empty")
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match=r"t\.csv.*'Second'"):
        opened(tmp_path / "t.csv", sheet="Second")


def test_columns_of_a_sheet(tmp_path):
    path = tmp_path / "t.xlsx"
    rows = [["a", None, "c"], [1, "x", "NA"], ["?", 2, 1.5], ["NA", "-", "?"], [3.5, True, 2]]
    rows = [[*row, None] for row in rows]
    write_xlsx(path, {"Data": rows})
    assert read(path).to_pydict() == {
        "a": [1.0, None, None, 3.5],
        "column_2": ["x", "2", None, "true"],
        "c": [None, 1.5, None, 2.0],
    }
    write_xlsx(path, {"Data": [[1, 2], [3, 4]]})
    with pytest.raises(ValueError, match=r"row 1 of .*t\.xlsx.*'1', '2'"):
        opened(path)
    assert read(path, header=False).to_pydict() == {"column_1": [1, 3], "column_2": [2, 4]}
    write_xlsx(path, {"Data": [["a", "a"], [3, 4]]})
    with pytest.raises(ValueError, match=r"t\.xlsx.*'a'"):
        opened(path)


def test_values_that_differ_far_down_a_sheet(tmp_path, monkeypatch):
    monkeypatch.setattr("classprior._files.sheets._PART", 2)
    values = [1, 2, 3, "x", date(2026, 1, 31)]
    rows = [["a", "b"], *([value, number] for number, value in enumerate(values))]
    write_xlsx(tmp_path / "t.xlsx", {"Data": rows})
    assert read(tmp_path / "t.xlsx").to_pydict() == {
        "a": ["1", "2", "3", "x", "2026-01-31"],
        "b": [0, 1, 2, 3, 4],
    }


@each_kind
@pytest.mark.parametrize("content", [b"", b"no archive", "archive"])
def test_files_that_are_no_spreadsheets(tmp_path, kind, content):
    path = tmp_path / f"t.{kind}"
    if content == "archive":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("notes.txt", "Dear diary")
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"t\.{kind}.*spreadsheet"):
        opened(path)


def test_a_sheet_that_unpacks_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr("classprior._files.workbook_limits._MOST_BYTES", 1000)
    write_xlsx(tmp_path / "t.xlsx", {"Data": ROWS})
    with pytest.raises(ValueError, match=r"t\.xlsx.*too large"):
        opened(tmp_path / "t.xlsx")


def test_the_package_that_reads_spreadsheets_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "python_calamine":
            raise ImportError(name)
        return real(name, *rest)

    write_xlsx(tmp_path / "t.xlsx", {"Data": ROWS})
    monkeypatch.delitem(sys.modules, "python_calamine", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"t\.xlsx.*classprior\[cli\]"):
        opened(tmp_path / "t.xlsx")


# --- JSON lines ----------------------------------------------------------------------------------


def json_lines(table):
    columns = table.to_pydict()
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return "".join(json.dumps(row, default=str) + "\n" for row in rows).encode()


TABLE = pa.table({"x": [1.5, None, -3.0], "town": ["Graz", "Wien\n1.", None], "n": [1, 2, 3]})


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.jsonl.gz"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda text: b"\xef\xbb\xbf" + text])
def test_json_lines(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(json_lines(TABLE)))
    source = opened(tmp_path / name, block_rows=2)
    assert source.sizes == [2, 1]
    for _ in range(2):
        tables = [table for block in source for table in block.tables()]
        assert pa.concat_tables(tables).to_pylist() == TABLE.to_pylist()
    assert [block.number_of(block.start) for block in source] == [1, 3]


def in_parts(tmp_path, lines, block_size=64):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines))
    file = JsonFile(store(path, "'t.jsonl'"), block_size)
    return pa.concat_tables(file.tables())


def test_types_are_judged_from_all_lines(tmp_path):
    early = ['{"a": 1, "t": "2026-01-31", "new": null}'] * 9
    table = in_parts(tmp_path, [*early, '{"a": 2.5, "t": "soon", "late": true}'])
    assert table.column_names == ["a", "t", "new", "late"]
    assert table["a"].to_pylist() == [1.0] * 9 + [2.5]
    assert table["t"].to_pylist() == ["2026-01-31"] * 9 + ["soon"]
    assert table["late"].to_pylist() == [None] * 9 + [True]


@pytest.mark.parametrize(
    ("last", "facts"),
    [
        ('{"a": "x"}', r"'a'.*line 10\b"),
        ('{"a": 1', r"in line 10\b"),
        ("[1, 2]", r"in line 10\b"),
        ('{"a": "' + "x" * 200 + '"}', r"Line 10 .*too long"),
    ],
)
def test_faults_in_json_lines_are_named(tmp_path, last, facts):
    with pytest.raises(ValueError, match=facts) as caught:
        in_parts(tmp_path, ['{"a": 123}'] * 9 + [last])
    assert "'t.jsonl'" in str(caught.value)


@pytest.mark.parametrize("opening", ["[", '{"a":', '["]",', "[\n", '["\\\\","]",'], ids=range(5))
def test_brackets_that_are_nested_too_deeply(tmp_path, opening):
    """They would overflow the stack of the parser, and end the process."""
    path = tmp_path / "t.jsonl"
    lines = ['{"a": "]["}', '{"a": "\\"]"}']
    path.write_text("\n".join([*lines, '{"b": ' + opening * 20_000]))
    with pytest.raises(ValueError, match=r"line \d+ of .*t\.jsonl.*nested"):
        opened(path)


def test_brackets_in_strings_are_not_nested(tmp_path):
    texts = ["[" * 500, "]" * 500 + "[", '"[' * 100, "\\" + "{" * 100]
    path = tmp_path / "t.jsonl"
    path.write_text(
        "".join(json.dumps({"a": text, "b": [[n]]}) + "\n" for n, text in enumerate(texts))
    )
    assert read(path)["a"].to_pylist() == texts


@pytest.mark.parametrize("content", [b"", b"\n \n", b"x,y\n1,2\n", b"[\n{}\n]\n", b"\xff\xfe{}\n"])
def test_files_that_are_no_json_lines(tmp_path, content):
    (tmp_path / "t.jsonl").write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.jsonl"):
        opened(tmp_path / "t.jsonl")


# --- Feather -------------------------------------------------------------------------------------


def test_feather_of_version_1_is_refused_with_advice(tmp_path):
    """Damaged ones would end the process."""
    path = tmp_path / "old.feather"
    path.write_bytes(b"FEA1" + bytes(100) + b"FEA1")
    with pytest.raises(ValueError, match=r"old\.feather.*version 1.*pandas"):
        opened(path)


# --- the same answer -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples():
    frauds, transactions = make_transactions(random_state=0)
    columns = ["amount", "hour", "km_from_home"]
    return frauds[columns][:150], transactions[columns][:400]


def test_the_answer_does_not_depend_on_the_format(tmp_path, samples, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)
    for name, frame in zip(("positive", "unlabeled"), samples, strict=True):
        frame.to_csv(f"{name}.csv", index=False)
        text = frame.to_csv(index=False).encode()
        (tmp_path / f"{name}.csv.zst").write_bytes(pa.compress(text, "zstd", asbytes=True))
        (tmp_path / f"{name}.jsonl").write_bytes(json_lines(pa.Table.from_pandas(frame)))
        rows = [list(frame.columns), *frame.to_numpy().tolist()]
        write_xlsx(f"{name}.xlsx", {"Sheet": [["other"], [1]], "Data": rows})
        write_ods(f"{name}.ods", {"Data": rows})

    def answer(kind, **options):
        paths = [f"positive.{kind}", f"unlabeled.{kind}"]
        found = estimate_prior(*paths, method="penl1", random_state=0, evidence=quick, **options)
        terminal = [*paths, "--method", "penl1", "--json"]
        terminal += ["--sheet", "Data"] if options else []
        done = CliRunner().invoke(main, ["estimate", *terminal], obj=quick)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["prior"] == pytest.approx(found.prior, abs=1e-6)
        return found.prior

    expected = answer("csv")
    for kind in ("csv.zst", "jsonl", "ods"):
        assert answer(kind) == expected
    assert answer("xlsx", read_options={"sheet": "Data"}) == expected


def test_rows_of_other_formats_are_written_as_csv(tmp_path, monkeypatch):
    """Unless the name of the output says otherwise; .npy and .ods are not written."""
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)}) for n in (60, 90)]
    monkeypatch.chdir(tmp_path)
    for name, frame in zip(("p", "u"), frames, strict=True):
        frame.to_json(f"{name}.jsonl", orient="records", lines=True)
    files = ["classify", "p.jsonl", "u.jsonl", "--quiet", "--out"]
    found = CliRunner().invoke(main, [*files, "scored"])
    assert found.exit_code == 0, found.output
    assert pd.read_csv("scored").shape == (90, 6)
    for name in ("scored.npy", "scored.ods"):
        refused = CliRunner().invoke(main, [*files, name])
        assert refused.exit_code == 2
        assert name in refused.output
