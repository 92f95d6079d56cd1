"""A server in this process whose work is done in a thread; files to upload."""

import html
import os
import re
import time
import warnings

import pandas as pd
import pytest

from cli.conftest import EVIDENCE, make_frames

with warnings.catch_warnings():  # about httpx, whose successor old releases do not know
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

from classprior.app import _jobs
from classprior.app._pages import create_app
from classprior.app._safety import Keys
from classprior.app._work import run_task

PORT = 8123
ORIGIN = f"http://127.0.0.1:{PORT}"
MAX_BYTES = 300_000


class InThread:
    """Does the work of a process in this one."""

    def work(self, task, hear):
        before = os.getcwd()
        os.chdir(task.folder)
        try:
            run_task(task, hear)
        finally:
            os.chdir(before)
        return True

    def kill(self):
        pass


@pytest.fixture
def in_thread(monkeypatch):
    monkeypatch.setattr(_jobs, "_Worker", InThread)


class Browser(TestClient):
    """A client that sends what a browser sends, and knows the page it is on."""

    def upload(self, known, unlabeled=None, **fields):
        files = {"known": known} | ({} if unlabeled is None else {"unlabeled": unlabeled})
        return self.post("/data", files=files, data=fields)

    def ended(self, answer):
        """Wait until the work behind a page has ended, and return the page."""
        place = answer.url.path
        for _ in range(600):
            if self.get(f"{place}/progress").json()["state"] not in ("waiting", "running"):
                return self.get(place)
            time.sleep(0.05)
        raise AssertionError("The work does not end.")

    def estimate(self, page, **form):
        return self.ended(self.post(f"{page.url.path}/runs", data=form))


@pytest.fixture
def keys():
    return Keys(PORT)


@pytest.fixture
def stranger(keys, in_thread):
    """Return a client that was not given the token."""
    app = create_app(keys, MAX_BYTES, EVIDENCE)
    with Browser(app, base_url=ORIGIN, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def browser(stranger, keys):
    """Return a client that has exchanged the token for the cookie."""
    assert stranger.get(f"/?token={keys.token}").status_code == 200
    stranger.headers["origin"] = ORIGIN
    return stranger


@pytest.fixture(scope="session")
def contents():
    """Return the samples as CSV: known positives, unlabeled rows, and both with a label."""
    positive, unlabeled = (frame.assign(hours=-frame["hours"]) for frame in make_frames())
    marked = pd.concat([positive.assign(state="fraud"), unlabeled.assign(state="unknown")])
    marked.iloc[-10:, -1] = "fine"
    return {
        name: frame.to_csv(index=False).encode()
        for name, frame in (("known", positive), ("unlabeled", unlabeled), ("marked", marked))
    }


def text_of(page):
    """Return the text of a page, without tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.text))


def commands_of(page):
    """Return the commands that a page shows."""
    found = re.findall(r"<pre><code>(.*?)</code></pre>", page.text)
    return [html.unescape(text) for text in found]


@pytest.fixture
def folder(tmp_path, monkeypatch, contents):
    """Return the present folder, with the samples as files."""
    monkeypatch.chdir(tmp_path)
    for name, content in contents.items():
        (tmp_path / f"{name}.csv").write_bytes(content)
    return tmp_path
