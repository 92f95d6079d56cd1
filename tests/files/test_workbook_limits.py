"""Workbooks with a stray cell far away, which would take any amount of memory, are refused."""

import subprocess
import sys
import zipfile

import pytest
import xlsxwriter

from classprior._samples.inputs import as_source

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SHEET = "xl/worksheets/sheet1.xml"
FIRST = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'
READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
from classprior._samples.inputs import as_source
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        print(path, as_source(path, "X").n_rows)
    except ValueError as error:
        print("refused" if path in str(error) else error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def workbook(path, sheet):
    """Write a workbook with another text of its sheet."""
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet().write_row(0, 0, ["a", "b"])
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()} | {SHEET: sheet.encode()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)
    return path


def sheet_of(rows, dimension):
    head = f'<worksheet xmlns="{MAIN}"><dimension ref="{dimension}"/>'
    return f"{head}<sheetData>{FIRST}{rows}</sheetData></worksheet>"


def open_document(path, rows):
    names = {"office": "office", "table": "table", "text": "text"}
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in names
    )
    head = '<table:table-row><table:table-cell office:value-type="string"><text:p>a</text:p>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("META-INF/manifest.xml", "<manifest/>")
        file.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:spreadsheet>"
            f'<table:table table:name="S">{head}</table:table-cell></table:table-row>{rows}'
            "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    return path


def repeated(path, columns, rows):
    cell = (
        f'<table:table-cell office:value-type="float" office:value="1" '
        f'table:number-columns-repeated="{columns}"/>'
    )
    return open_document(
        path, f'<table:table-row table:number-rows-repeated="{rows}">{cell}</table:table-row>'
    )


BOMBS = {
    "far cell": lambda path: workbook(
        path,
        sheet=sheet_of('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>', "A1:XFD1048576"),
    ),
    "repeated cell": lambda path: repeated(path.with_suffix(".ods"), 16_000, 100_000),
    "long repetition": lambda path: repeated(path.with_suffix(".ods"), 10**12, 1),
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on memory")
def test_a_small_file_takes_little_memory(tmp_path):
    paths = [str(write(tmp_path / f"{name}.xlsx")) for name, write in BOMBS.items()]
    command = [sys.executable, "-c", READ, *paths]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    *outcomes, megabytes = ran.stdout.splitlines()
    assert outcomes == ["refused"] * len(paths)
    assert int(megabytes) < 200


@pytest.mark.parametrize("rows", [10, 40_000])
def test_usual_files_are_read(rows, tmp_path):
    """Also with a cell far below, or with the endless empty rows that LibreOffice writes."""
    far = f'<row r="{rows}"><c r="A{rows}"><v>7</v></c></row>'
    assert (
        as_source(workbook(tmp_path / "t.xlsx", sheet=sheet_of(far, f"A1:A{rows}")), "X").n_rows
        == 1
    )
    number = '<table:table-row><table:table-cell office:value-type="float" office:value="1"/>'
    empty = '<table:table-cell table:number-columns-repeated="16383"/></table:table-row>'
    tail = f'<table:table-row table:number-rows-repeated="1000000">{empty}'
    path = open_document(tmp_path / "t.ods", number + empty + tail)
    assert as_source(path, "X").n_rows == 1
