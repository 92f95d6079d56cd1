"""Files arrive whole or not at all, under names that do no harm."""

import errno
import re
from pathlib import Path

import pytest

from app.conftest import MAX_BYTES, text_of
from classprior._files.temporary import own_folder
from classprior.app._uploads import stored_name


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("frauds.csv", "frauds.csv"),
        ("my data (1).csv", "my data (1).csv"),
        ("données 日本.csv.gz", "données 日本.csv.gz"),
        ("<img src=x onerror=alert(1)>.csv", "_img src_x onerror_alert(1)_.csv"),
        ("--out.csv", "out.csv"),
        (".csv", "csv"),
        ("..", "file"),
        ("a*[b]?.csv", "a__b__.csv"),
        ("a\0\n.csv", "a__.csv"),
        ("", "file"),
    ],
)
def test_stored_names_are_safe(name, stored):
    assert stored_name(name) == stored


def test_stored_names_are_short_and_differ():
    assert len(stored_name("x" * 5000 + ".csv")) == 100
    assert stored_name("x" * 5000 + ".csv").endswith(".csv")
    assert stored_name("a.csv.gz", {"a.csv.gz"}) == "a (2).csv.gz"
    assert stored_name("a.csv", {"a.csv", "a (2).csv"}) == "a (3).csv"


def folders():
    return sorted(path.name for path in own_folder().glob("files-*"))


def test_names_with_markup_are_shown_as_text(browser, contents):
    name = '<img src=x onerror="alert(1)">.csv'
    page = browser.ended(browser.upload((name, contents["known"]), (name, contents["unlabeled"])))
    assert page.status_code == 200
    run = browser.estimate(page, title="<b>bold</b>")
    for answer in (browser.get("/"), page, run, browser.get(f"{run.url.path}/report")):
        assert "<img" not in answer.text
        assert "<b>" not in answer.text
        assert "&lt;img src=x onerror=" in answer.text or "_img src" in answer.text


def test_cells_with_markup_are_shown_as_text(browser):
    rows = "".join(f"<script>x</script>{n % 3},{n}\n" for n in range(40))
    bad = f"<b>c</b>,</title>\n{rows}".encode()
    page = browser.ended(browser.upload(("a.csv", bad)))
    assert "&lt;script&gt;" in page.text
    assert "&lt;b&gt;c" in page.text
    assert "<script>x" not in page.text
    assert "<b>" not in page.text


def test_files_beyond_the_limit_are_refused_and_not_kept(browser):
    before = folders()
    page = browser.upload(("a.csv", b"x\n" + b"1\n" * MAX_BYTES))
    assert page.status_code == 422
    assert re.search(r"0\.6|1 MB|limit of 0 MB", text_of(page))
    assert 'role="alert"' in page.text
    assert folders() == before


def test_both_files_count(browser):
    half = b"x\n" + b"1\n" * int(0.3 * MAX_BYTES)
    assert browser.upload(("a.csv", half)).status_code == 200
    assert browser.upload(("a.csv", half), ("b.csv", half)).status_code == 422


@pytest.mark.parametrize(
    ("kind", "body", "fact"),
    [
        ("text/plain", b"x", "form with files"),
        ("multipart/form-data", b"x", "form with files"),
        ("multipart/form-data; boundary=b", b"nonsense", "damaged"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="known"; filename=""\r\n\r\n\r\n--b--',
            "Choose a file",
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n' + b"y" * 20_000,
            "'x' is too long",
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n' * 30 + b"--b--",
            "parts",
        ),
    ],
)
def test_odd_forms_are_refused_and_leave_nothing(browser, kind, body, fact):
    before = folders()
    page = browser.post("/data", content=body, headers={"content-type": kind})
    assert page.status_code == 422
    assert fact in page.text.replace("&#39;", "'")
    assert folders() == before


def test_a_full_disk_is_named(browser, contents, monkeypatch):
    def full(path, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "open", full)
    page = browser.upload(("a.csv", contents["known"]))
    assert page.status_code == 422
    assert "No space left" in page.text
    assert str(own_folder()) not in page.text


def test_an_interrupted_upload_leaves_nothing(browser):
    before = folders()

    def parts():
        yield b'--b\r\nContent-Disposition: form-data; name="known"; filename="a.csv"\r\n\r\nx\n'

    kind = {"content-type": "multipart/form-data; boundary=b"}
    page = browser.post("/data", content=parts(), headers=kind)
    assert page.status_code == 422
    assert "interrupted" in page.text
    assert folders() == before


def test_a_header_cannot_be_endless(browser):
    body = b"--b\r\nX: " + b"y" * 20_000
    kind = {"content-type": "multipart/form-data; boundary=b"}
    assert browser.post("/data", content=body, headers=kind).status_code == 422


def test_forms_without_files_are_limited(browser, contents):
    page = browser.ended(browser.upload(("marked.csv", contents["marked"])))
    answer = browser.post(f"{page.url.path}/runs", content=b"a=" + b"x" * 6_000_000)
    assert answer.status_code == 413
    answer = browser.post(f"{page.url.path}/runs", content=b"a=\xff")
    assert answer.status_code == 400
