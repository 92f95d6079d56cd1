"""The page in the system's Chromium, with a real server: what a user does, and what others try."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

WAIT = 60_000  # milliseconds
slow = pytest.mark.slow
SERVER = """
import sys
from sklearn.linear_model import LogisticRegression
from classprior import AutoPrior
from classprior.app import serve
if __name__ == "__main__":
    linear = {"linear": LogisticRegression()}
    evidence = AutoPrior(classifiers=linear, n_repeats=1, n_resamples=50)
    serve(
        port=int(sys.argv[1]), opens_browser=False, evidence=evidence,
        say=lambda text: print(text, flush=True),
    )
"""


@contextmanager
def served(folder, port=0):
    """Start a server; yield its process and the address with the token."""
    script = folder / "server.py"
    script.write_text(SERVER)
    (folder / "tmp").mkdir(exist_ok=True)
    command = [sys.executable, script, str(port)]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        with server.stdout:
            yield server, server.stdout.readline().split()[-1]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


@pytest.fixture(scope="module")
def server(chromium, tmp_path_factory):
    with served(tmp_path_factory.mktemp("server")) as (process, address):
        yield process, address


@pytest.fixture
def complaints():
    """Return what the browser complains about, which must be nothing unless a test expects it."""
    return []


@pytest.fixture
def context(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(WAIT)
    yield context
    context.close()


@pytest.fixture
def page(context, server, complaints):
    """Open the page with its token."""
    page = watched(context, complaints)
    page.goto(server[1])
    assert "token" not in page.url
    yield page
    assert complaints == []


def watched(context, complaints):
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page


@pytest.fixture
def files(tmp_path, contents):
    for name, content in contents.items():
        (tmp_path / f"{name}.csv").write_bytes(content)
    return tmp_path


def choose(page, *paths):
    for place, path in zip(("#known", "#unlabeled"), paths, strict=False):
        page.set_input_files(place, path)
    page.get_by_role("button", name="Read the files").click()


def see_columns(page):
    page.get_by_role("heading", name="Columns and options").wait_for()


def estimate(page):
    page.get_by_role("button", name="Estimate", exact=True).click()


def see_report(page):
    frame = page.frame_locator("iframe.report")
    frame.get_by_role("heading", level=1).wait_for()
    return frame


def see_end(page):
    page.get_by_role("link", name="Model").wait_for()


def test_two_files_from_the_first_page_to_the_scored_rows(page, files):
    choose(page, files / "known.csv", files / "unlabeled.csv")
    see_columns(page)
    estimate(page)
    frame = see_report(page)
    answer = frame.get_by_role("heading", level=1).text_content()
    assert "of the 150 unlabeled rows are positive" in answer
    see_end(page)
    height, inner = page.evaluate(
        "(f => [f.clientHeight, f.contentDocument.documentElement.scrollHeight])"
        "(document.querySelector('iframe.report'))"
    )
    assert abs(height - inner) < 20  # no scroll bar within the page
    assert frame.locator("svg.picture").count() == 3
    with page.expect_download() as download:
        page.get_by_role("link", name="Scored rows").click()
    text = Path(download.value.path()).read_text()
    assert text.startswith("id,amount,hours,color,probability,positive,score,rank\n")
    page.get_by_role("link", name="classprior").click()
    assert answer in page.locator(".history").text_content()


@slow
def test_from_the_answer_to_rows_to_look_at_and_to_the_checked_answer(page, files):
    choose(page, files / "known.csv", files / "unlabeled.csv")
    see_columns(page)
    estimate(page)
    see_report(page)
    assert page.input_value("#budget") == "100"
    page.fill("#budget", "30")
    page.select_option("#sheet_format", "csv")
    page.get_by_role("button", name="Draw the rows").click()
    page.get_by_role("heading", name="30 rows to look at").wait_for()
    assert "forecast" in page.text_content("main")
    for name in ("review.csv", "review.plan.json"):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        download.value.save_as(files / name)
        assert download.value.suggested_filename == name
    sheet = (files / "review.csv").read_text()
    (files / "review.csv").write_text(sheet.replace(",,\n", ",perhaps,\n"))
    page.set_input_files("#checked-sheet", files / "review.csv")
    page.get_by_role("button", name="Count the checked rows").click()
    page.get_by_role("alert").wait_for()
    assert "perhaps" in page.get_by_role("alert").text_content()
    page.get_by_role("link", name="Send the sheet again").click()
    (files / "review.csv").write_text(sheet.replace(",,\n", ",no,\n"))
    page.set_input_files("#checked-sheet", files / "review.csv")
    page.get_by_role("button", name="Count the checked rows").click()
    answer = see_report(page).get_by_role("heading", level=1).text_content()
    assert answer.startswith("Between 0.0% and")
    assert "--checked review.csv" in page.locator("pre").first.text_content()
    # As after a new start of the server: the sheet and its plan are sent together.
    page.get_by_role("link", name="Change choices").click()
    estimate(page)
    see_report(page)
    page.get_by_text("I have a filled-in sheet").click()
    page.set_input_files("#checked-sheet", files / "review.csv")
    page.set_input_files("#checked-plan", files / "review.plan.json")
    page.get_by_role("button", name="Count the checked rows").click()
    page.get_by_role("heading", name="Between 0.0% and").first.wait_for()


@slow
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_example_on_phone_and_desk(chromium, server, width, dark, complaints):
    scheme = "dark" if dark else "light"
    device = {"viewport": {"width": width, "height": 740}, "is_mobile": width < 600}
    context = chromium.new_context(color_scheme=scheme, **device)
    context.set_default_timeout(WAIT)
    page = watched(context, complaints)
    far = []
    page.on("request", lambda r: far.append(r.url) if "127.0.0.1" not in r.url else None)
    page.goto(server[1])

    def fits():
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    fits()
    page.get_by_role("button", name="Example with one file").click()
    see_columns(page)
    fits()
    assert page.locator("#positive option:checked").text_content() == "status is fraud (400 rows)"
    estimate(page)
    see_report(page)
    fits()
    see_end(page)
    back = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", back)[:3])) < 150) == dark
    assert complaints == []
    assert [url for url in far if not url.startswith("data:")] == []
    context.close()


@slow
def test_a_bad_file_is_explained_and_the_files_are_kept(page, files):
    (files / "bad.csv").write_bytes(b"id,amount\n1,2\n3,4,5,6\n")
    choose(page, files / "bad.csv", files / "unlabeled.csv")
    page.get_by_role("alert").wait_for()
    assert "bad.csv" in page.get_by_role("alert").text_content()
    page.get_by_role("button", name="Read the files again").click()
    page.get_by_role("alert").wait_for()
    page.get_by_role("link", name="choose other files").click()
    assert "bad.csv and unlabeled.csv" in page.locator(".history").text_content()


@slow
def test_cancel_reload_back_and_two_tabs(context, page, files, complaints):
    choose(page, files / "known.csv", files / "unlabeled.csv")
    see_columns(page)
    page.get_by_text("More options").click()
    page.select_option("#method", "km1")  # refitted 40 times
    page.fill("#title", "kept")
    estimate(page)
    page.get_by_role("heading", name="Estimating").wait_for()
    page.reload()  # in the middle; the work goes on, and no form is sent again
    page.get_by_role("heading", name="Estimating").wait_for()
    other = watched(context, complaints)
    other.goto(page.url.split("/runs")[0])
    other.get_by_role("button", name="Example with two files").click()
    other.get_by_text("Waiting for another run").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="Canceled").wait_for()
    see_columns(other)
    page.get_by_role("link", name="Change the choices and try again").click()
    assert page.input_value("#title") == "kept"
    assert page.input_value("#method") == "km1"
    page.select_option("#method", "auto")
    estimate(page)
    see_report(page)
    see_end(page)
    page.go_back()
    see_columns(page)
    page.go_forward()
    see_report(page)


@slow
def test_the_keyboard_is_enough(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").strip() == "Example with two files":
            break
    style = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(style) != "none"
    page.keyboard.press("Enter")
    see_columns(page)
    page.focus("#title")
    page.keyboard.press("Enter")
    see_report(page)


@slow
def test_without_scripts(chromium, server, files):
    context = chromium.new_context(java_script_enabled=False)
    context.set_default_timeout(WAIT)
    page = context.new_page()
    page.goto(server[1])
    choose(page, files / "known.csv", files / "unlabeled.csv")
    see_columns(page)  # the page loads itself again until then
    estimate(page)
    see_report(page)
    context.close()


@slow
def test_files_can_be_dropped(page, files):
    texts = [(files / f"{name}.csv").read_text() for name in ("known", "unlabeled")]
    dropped = page.evaluate_handle(
        """texts => {
          const files = new DataTransfer();
          texts.forEach((text, n) => files.items.add(new File([text], `${n}.csv`)));
          return files;
        }""",
        texts,
    )
    page.dispatch_event("main", "drop", {"dataTransfer": dropped})
    assert "0.csv" in page.locator("form.upload .status").text_content()
    page.get_by_role("button", name="Read the files").click()
    see_columns(page)
    assert "60 rows" in page.locator(".pair").text_content()


@slow
def test_a_name_with_markup_runs_nothing(page, files):
    name = "<img src=x onerror=alert(1)>.csv"
    shutil.copy(files / "known.csv", files / name)
    alerts = []
    page.on("dialog", lambda dialog: alerts.append(dialog.message))
    choose(page, files / name, files / "unlabeled.csv")
    see_columns(page)
    assert name in page.locator("nav").text_content()
    estimate(page)
    see_report(page)
    assert alerts == []


@slow
def test_a_wrong_token_and_no_token(context, server):
    page = context.new_page()
    base, _ = server[1].split("/?")
    for address in (base, f"{base}/?token=wrong"):
        answer = page.goto(address)
        assert answer.status == 403
        assert "classprior app" in page.text_content("body")
    assert context.cookies() == []


@slow
def test_scripts_cannot_read_the_cookie(page, context):
    (cookie,) = context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert page.evaluate("document.cookie") == ""


class _Attacker(BaseHTTPRequestHandler):
    """A page of another server that tries to use ours."""

    def do_GET(self):
        target = self.server.target
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(
            f"""<form id=f action="{target}/example" method=post>
            <input name=kind value="two files"></form><iframe id=i src="{target}/"></iframe>
            <img src="{target}/runs/1/report"><a id=a href="{target}/">link</a>""".encode()
        )

    def log_message(self, *_):
        pass


@pytest.fixture
def attacker(server):
    """Serve the attacker's page on another port, which counts as the same site."""
    with HTTPServer(("127.0.0.1", 0), _Attacker) as other:
        other.target = server[1].split("/?")[0]
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield other.server_port
        other.shutdown()


@slow
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["same site", "other site"])
def test_a_page_of_another_server_gets_nothing(context, page, server, attacker, host, complaints):
    base = server[1].split("/?")[0]
    before = page.locator(".history li").count()
    evil = context.new_page()
    evil.goto(f"http://{host}:{attacker}/")
    read = evil.evaluate(
        """async base => {
          const tries = [["/", {}], ["/example", {method: "POST", body: "kind=two+files"}]];
          const found = [];
          for (const [path, how] of tries) {
            for (const mode of ["cors", "no-cors"]) {
              const sent = fetch(base + path, {credentials: "include", mode, ...how});
              found.push(await sent.then(a => a.text(), () => "refused"));
            }
          }
          return found;
        }""",
        base,
    )
    assert set(read) <= {"refused", ""}
    assert evil.frame_locator("#i").locator("form").count() == 0
    evil.evaluate("document.querySelector('#f').submit()")
    evil.get_by_role("heading", name="Refused").wait_for()
    page.reload()
    assert page.locator(".history li").count() == before
    complaints.clear()


@slow
def test_a_foreign_host_is_refused(server):
    base = server[1].split("/?")[0]
    port = int(base.rsplit(":", 1)[1])
    for host in ("evil.example", f"evil.example:{port}", "", "127.0.0.1"):
        with socket.create_connection(("127.0.0.1", port)) as link:
            token = server[1].split("=")[1]
            link.sendall(f"GET /?token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            answer = link.recv(10_000).decode()
        assert re.match(r"HTTP/1.1 40[03]", answer), (host, answer[:50])
        assert "set-cookie" not in answer.lower()


def peak_memory(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1000


@slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process in /proc")
def test_an_upload_of_200_megabytes_needs_little_memory(context, server, tmp_path):
    page = context.new_page()
    page.goto(server[1])
    row = ",".join(f"{n}.123456789" for n in range(16)) + "\n"
    head = ",".join(f"c{n}" for n in range(16)) + "\n"
    with (tmp_path / "big.csv").open("w") as file:
        file.write(head)
        for _ in range(200):
            file.write(row * (1_000_000 // len(row)))
    before = peak_memory(server[0])
    page.set_input_files("#known", tmp_path / "big.csv")
    page.get_by_role("button", name="Read the files").click()
    page.get_by_role("heading", name="Reading the files").wait_for()
    assert peak_memory(server[0]) - before < 30  # megabytes
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="Canceled").wait_for()


@slow
def test_a_killed_server_can_be_started_again(chromium, context, tmp_path, files):
    page = context.new_page()
    with served(tmp_path) as (server, address):
        port = int(re.search(r":(\d+)/", address)[1])
        page.goto(address)
        choose(page, files / "known.csv", files / "unlabeled.csv")
        see_columns(page)
        estimate(page)
        page.get_by_role("heading", name="Estimating").wait_for()
        server.kill()
        server.wait()
    page.get_by_text("The server does not answer").wait_for()
    with served(tmp_path, port) as (server, address):
        page.get_by_role("heading", name="Refused").wait_for()  # another run has other keys
        page.goto(address)
        assert page.locator(".history").count() == 0
        assert len(list((tmp_path / "tmp").glob("classprior-*"))) == 1
        assert httpx.get(address).status_code == 303


@slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(chromium, server, files, scheme):
    """Needs axe-core, a script of another project: CLASSPRIOR_AXE is the path of axe.min.js."""
    if not os.environ.get("CLASSPRIOR_AXE"):
        pytest.skip("CLASSPRIOR_AXE does not name axe.min.js")
    axe = Path(os.environ["CLASSPRIOR_AXE"]).read_text()
    context = chromium.new_context(color_scheme=scheme)
    context.set_default_timeout(WAIT)
    page = context.new_page()

    def check():
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found["violations"]] == []

    page.goto(server[1])
    check()
    choose(page, files / "marked.csv")
    see_columns(page)
    page.get_by_text("More options").click()
    check()
    page.select_option("#positive", label="state is fraud (60 rows)")
    page.select_option("#method", "km1")
    estimate(page)
    page.get_by_role("heading", name="Estimating").wait_for()
    check()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="Canceled").wait_for()
    check()
    page.get_by_role("link", name="Change the choices and try again").click()
    page.select_option("#method", "auto")
    estimate(page)
    see_report(page)
    see_end(page)
    check()
    page.goto(page.url + "/nowhere")
    check()
    context.close()
