"""Nobody but the user's own browser gets an answer, and nothing that is sent can do harm."""

import re
from pathlib import Path

import pytest

from app.conftest import ORIGIN, PORT
from classprior.app._safety import Keys

PAGES = ["/", "/static/app.js", "/nowhere", "/data/1", "/runs/1/report", "/runs/1/progress"]


@pytest.mark.parametrize("path", PAGES)
def test_without_the_cookie_every_request_is_refused(stranger, path):
    for method in ("GET", "POST", "HEAD", "OPTIONS"):
        answer = stranger.request(method, path, headers={"origin": ORIGIN})
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
        assert not answer.cookies


def test_the_token_is_exchanged_for_a_cookie_that_scripts_and_other_sites_cannot_use(
    stranger, keys
):
    answer = stranger.get(f"/?token={keys.token}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith(f"classprior-{PORT}=")
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.split("; "))
    assert keys.token.lower() not in cookie
    page = stranger.get("/")
    assert page.status_code == 200
    assert keys.token not in page.text
    assert keys.session not in page.text


def test_the_address_for_the_browser_works_once(stranger, keys):
    (code,) = keys.codes
    assert stranger.get(f"/?token={code}", follow_redirects=False).status_code == 303
    stranger.cookies.clear()
    assert stranger.get(f"/?token={code}", follow_redirects=False).status_code == 403
    assert stranger.get("/").status_code == 403


@pytest.mark.parametrize("token", ["", "x", "é", "a" * 43, "%00"])
def test_a_wrong_token_is_refused(stranger, token):
    answer = stranger.get("/", params={"token": token})
    assert answer.status_code == 403
    assert not answer.cookies


@pytest.mark.parametrize(
    "cookie", ["", "=", "classprior-8123", "classprior-8123=", "classprior-8123=x; ;;=\x7f"]
)
def test_a_wrong_cookie_is_refused(stranger, cookie):
    assert stranger.get("/", headers={"cookie": cookie}).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"0.0.0.0:{PORT}"]
)
def test_another_host_is_refused_even_with_token_and_cookie(browser, keys, host):
    """As after DNS rebinding, where another site's name points to this machine."""
    for path in ("/", f"/?token={keys.token}"):
        answer = browser.get(path, headers={"host": host}, follow_redirects=False)
        assert answer.status_code == 403
        assert not answer.cookies


def test_localhost_is_this_machine(browser, keys):
    cookie = {"cookie": f"{keys.cookie}={keys.session}"}
    host = {"host": f"localhost:{PORT}", "origin": f"http://localhost:{PORT}"}
    assert browser.get("/", headers=cookie | host).status_code == 200
    answer = browser.post("/example", headers=cookie | host, data={"kind": "none"})
    assert answer.status_code == 404  # no such example, but let in


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.example", "http://127.0.0.1:1", f"https://127.0.0.1:{PORT}"],
)
def test_forms_of_other_sites_are_refused(browser, origin):
    """Also those of other ports of this machine, for which browsers send the cookie."""
    del browser.headers["origin"]
    headers = {} if origin is None else {"origin": origin}
    answer = browser.post("/example", data={"kind": "two files"}, headers=headers)
    assert answer.status_code == 403
    assert "This session" not in browser.get("/").text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_cannot_read_or_embed(browser, site):
    for path in PAGES:
        assert browser.get(path, headers={"sec-fetch-site": site}).status_code == 403
    assert browser.get("/", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_every_answer_has_the_headers_that_protect_it(browser, monkeypatch):
    answers = [browser.get(path) for path in PAGES]
    monkeypatch.setattr("classprior.app._pages._session", lambda request: 1 / 0)
    answers.append(browser.get("/"))
    assert answers[-1].status_code == 500
    assert "ZeroDivisionError" not in answers[-1].text
    answers.append(browser.get("/", headers={"host": "evil.example"}))
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_pages_have_no_inline_code_and_load_nothing_from_elsewhere(browser, contents):
    page = browser.ended(browser.upload(("marked.csv", contents["marked"])))
    run = browser.estimate(page, positive="1:1")
    for answer in (browser.get("/"), page, run):
        assert "<style" not in answer.text
        assert not re.search(r"\s(style|on\w+)=", answer.text)
        assert not re.search(r"<script(?! src=\"/static/)", answer.text)
        links = re.findall(r"(?:src|href|action)=\"([^\"]*)\"", answer.text)
        assert links
        assert all(link.startswith(("/", "#", "data:,")) for link in links)


def test_a_websocket_is_not_answered(browser):
    with pytest.raises(Exception), browser.websocket_connect("/"):  # noqa: B017, PT011
        raise AssertionError("connected")


def test_keys_are_long_and_differ():
    one, other = Keys(1), Keys(1)
    secrets = [one.token, other.token, one.session, other.session, *one.codes, *other.codes]
    assert len(set(secrets)) == 6
    assert min(map(len, secrets)) >= 43  # 256 bits


def test_no_page_names_a_folder_of_this_machine(browser, contents):
    page = browser.ended(browser.upload(("a.csv", b"x,y\n1,2\n"), ("b.csv", b"\x00\xff\xfe")))
    answers = [page, browser.ended(browser.upload(("a.npy", b"?")))]
    good = browser.ended(browser.upload(("marked.csv", contents["marked"])))
    run = browser.estimate(good, positive="1:1")
    report = browser.get(f"{run.url.path}/report")
    assert report.status_code == 200
    for answer in (*answers, good, run, report):
        for folder in ("/tmp", str(Path.home()), str(Path.cwd()), "classprior-"):
            assert folder not in answer.text.replace("classprior-estimate", "")


def test_a_report_is_shown_without_scripts_and_downloads_are_not_shown(browser, contents):
    page = browser.ended(browser.upload(("marked.csv", contents["marked"])))
    run = browser.estimate(page, positive="1:1")
    report = browser.get(f"{run.url.path}/report")
    policy = report.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-same-origin; default-src 'none'")
    assert "script" not in policy
    assert "frame-ancestors 'self'" in policy
    assert report.headers["x-frame-options"] == "SAMEORIGIN"
    assert 'sandbox="allow-same-origin"' in run.text
    for kind in ("report", "scored", "model"):
        answer = browser.get(f"{run.url.path}/download/{kind}")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["x-content-type-options"] == "nosniff"
    for kind in ("nothing", "%2e%2e%2fmarked.csv", "run-3-report.html"):
        assert browser.get(f"{run.url.path}/download/{kind}").status_code == 404
