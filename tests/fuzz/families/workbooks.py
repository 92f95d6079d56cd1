"""Workbooks with cells far away, repeated cells, and damage.

What is accepted has the numbers of the cells. Memory is limited for all.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path

import pyarrow as pa

from classprior._samples.inputs import as_source
from families.base import Family
from families.damaged import damaged

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "table", "text")
)


def excel(rng: random.Random, values: list[int]) -> dict[str, str]:
    """Return the members of an .xlsx file with one column, and perhaps a cell far away."""
    cells = [f'<row><c r="A{row}"><v>{value}</v></c></row>' for row, value in enumerate(values, 2)]
    last = f"A{len(values) + 1}"
    if rng.random() < 0.4:
        last = f"{rng.choice(['XFD', 'A', 'ZZ'])}{rng.choice([9999, 2**20])}"
        cells.append(f'<row><c r="{last}"><v>1</v></c></row>')
    first = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'
    parts = ("officeDocument", "xl/workbook.xml"), ("worksheet", "worksheets/sheet1.xml")
    relations = [
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_OFFICE}/{kind}" Target="{target}"/></Relationships>'
        for kind, target in parts
    ]
    return {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
        "_rels/.rels": relations[0],
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations[1],
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}">'
        f'<dimension ref="A1:{last}"/><sheetData>{first}'
        f"{''.join(cells)}</sheetData></worksheet>",
    }


def open_document(rng: random.Random, values: list[int]) -> dict[str, str]:
    """Return the members of an .ods file with one column, and perhaps repeated cells."""
    cell = '<table:table-cell office:value-type="float" office:value="{}"{}/>'
    rows = [f"<table:table-row>{cell.format(value, '')}</table:table-row>" for value in values]
    if rng.random() < 0.5:
        columns, times = (rng.choice([1, 2, 16384, 2**20, 10**10]) for _ in range(2))
        many = cell.format(1, f' table:number-columns-repeated="{columns}"')
        rows.append(
            f'<table:table-row table:number-rows-repeated="{times}">{many}</table:table-row>'
        )
    first = cell.replace("float", "string").format(1, "").replace("/>", "><text:p>a</text:p>")
    return {
        "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
        "META-INF/manifest.xml": "<manifest/>",
        "content.xml": f"<office:document-content {_SPACES}><office:body><office:spreadsheet>"
        f'<table:table table:name="S"><table:table-row>{first}</table:table-cell></table:table-row>'
        f"{''.join(rows)}</table:table></office:spreadsheet></office:body>"
        "</office:document-content>",
    }


def packed(members: dict[str, str]) -> bytes:
    """Return a zip file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return out.getvalue()


def write(rng: random.Random, folder: Path) -> None:
    """Write a workbook and the numbers in it; None if it may differ from them."""
    values = [rng.randint(0, 999) for _ in range(rng.randint(1, 60))]
    end, members = rng.choice([(".xlsx", excel), (".ods", open_document)])
    content, is_whole = packed(members(rng, values)), rng.random() < 0.7
    (folder / f"book{end}").write_bytes(content if is_whole else damaged(rng, content))
    (folder / "expected.json").write_text(json.dumps(values if is_whole else None))


def read(folder: Path) -> str:
    """Read the workbook; an undamaged one begins with the numbers that were written."""
    (path,) = folder.glob("book*")
    source = as_source(path, "X")
    table = pa.concat_tables(table for block in source for table in block.tables())
    expected = json.loads((folder / "expected.json").read_text())
    if expected is None or table.num_columns > 1:
        return ""
    found = [value for value in table.column(0).to_pylist() if value is not None]
    missing = [value for value in expected if value not in found]
    return f"without {missing[:3]}" if missing else ""


WORKBOOKS = Family("workbooks", write, read)
