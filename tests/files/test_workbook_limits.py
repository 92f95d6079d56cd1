"""Workbooks that would take any amount of memory are refused by name, whatever they claim."""

import struct
import subprocess
import sys
import zipfile

import pytest
import xlsxwriter

from classprior._samples.inputs import as_source

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SHEET = "xl/worksheets/sheet1.xml"
SHARED = "xl/sharedStrings.xml"
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


def workbook(path, **replaced):
    """Write a workbook; members named like the keyword arguments are replaced."""
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for row, values in enumerate([["a", "b"], [1, "x"], [2, "y"]]):
            sheet.write_row(row, 0, values)
    names = {"sheet": SHEET, "shared": SHARED}
    parts = {names[key]: text.encode() for key, text in replaced.items()}
    with zipfile.ZipFile(path) as old:
        members = {name: parts.get(name, old.read(name)) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)
    return path


def sheet_of(rows):
    return f'<worksheet xmlns="{MAIN}"><sheetData>{FIRST}{rows}</sheetData></worksheet>'


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


def with_claim(path, name, place, value):
    """Change a field of a member in the directory of a zip file."""
    data = bytearray(path.read_bytes())
    start = -1
    while (start := data.find(b"PK\x01\x02", start + 1)) >= 0:
        length = struct.unpack_from("<H", data, start + 28)[0]
        if data[start + 46 : start + 46 + length] == name.encode():
            form = "<I" if place >= 16 else "<H"
            struct.pack_into(form, data, start + place, value)
    path.write_bytes(data)
    return path


def repeated(path, columns, rows):
    cell = (
        f'<table:table-cell office:value-type="float" office:value="1" '
        f'table:number-columns-repeated="{columns}"/>'
    )
    return open_document(
        path, f'<table:table-row table:number-rows-repeated="{rows}">{cell}</table:table-row>'
    )


def shared(path):
    """Write a long text in many cells."""
    rows = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(2, 90_000))
    text = f'<sst xmlns="{MAIN}"><si><t>{"x" * 30_000}</t></si></sst>'
    return workbook(path, sheet=sheet_of(rows), shared=text)


def without_places(path):
    """Write cells without references: one wide row and many short ones."""
    wide, narrow = "<row>" + "<c><v>1</v></c>" * 16_000 + "</row>", "<row><c><v>1</v></c></row>"
    return workbook(path, sheet=sheet_of(wide + 60_000 * narrow))


def lying(path):
    """Write a sheet of millions of bytes that claims to have a few."""
    rows = "<row><c><v>1</v></c></row>" * 200_000
    return with_claim(workbook(path, sheet=sheet_of(rows)), SHEET, 24, 5000)


BOMBS = {
    "far cell": lambda path: workbook(
        path, sheet=sheet_of('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')
    ),
    "far cell, other quotes": lambda path: workbook(
        path, sheet=sheet_of("<row r='9'><c t='n' r = 'xfd1048576'><v>1</v></c></row>")
    ),
    "cells without places": without_places,
    "false size": lying,
    "shared text": shared,
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
    assert as_source(workbook(tmp_path / "t.xlsx", sheet=sheet_of(far)), "X").n_rows == 1
    number = '<table:table-row><table:table-cell office:value-type="float" office:value="1"/>'
    empty = '<table:table-cell table:number-columns-repeated="16383"/></table:table-row>'
    tail = f'<table:table-row table:number-rows-repeated="1000000">{empty}'
    path = open_document(tmp_path / "t.ods", number + empty + tail)
    assert as_source(path, "X").n_rows == 1


@pytest.mark.parametrize(
    ("place", "value"), [(6, 99), (10, 77), (10, 14), (8, 1), (24, 5), (16, 1), (20, 3)]
)
def test_damaged_directories_are_named(place, value, tmp_path):
    """Version, method, encryption, size, checksum and packed size of a member."""
    path = with_claim(workbook(tmp_path / "t.xlsx"), SHEET, place, value)
    with pytest.raises(ValueError, match=r"t\.xlsx.*spreadsheet"):
        as_source(path, "X")


def test_texts_that_look_like_places_do_no_harm(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "t.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["a", "b"])
        for row in range(1, 50):
            sheet.write_row(row, 0, [row, f'<c r="AB{row}">' * 5])
    assert as_source(tmp_path / "t.xlsx", "X").n_rows == 49
