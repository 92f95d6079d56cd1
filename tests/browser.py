"""A headless Chromium, driven through a pipe: pages as people see them."""

import base64
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from itertools import count
from select import select
from tempfile import TemporaryDirectory

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
]
# Chromium reads commands from file 3 and answers in file 4.
_LAUNCHER = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_PATIENCE = 60  # seconds without a word from the browser


class Page:
    """One tab. What the browser complains about gathers in ``complaints``."""

    def __init__(self, write, read):
        self._write, self._read, self._ids = write, read, count(1)
        self._buffer, self._session = b"", None
        self.complaints = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Send a command and return its result."""
        number = next(self._ids)
        command = {"id": number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while (message := self._receive()).get("id") != number:
            self._note(message)
        assert "error" not in message, message
        return message["result"]

    def open(self, path, *, width, dark):
        """Open a file without a network, as wide as a device and in its colours."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        self.call("Page.navigate", url=path.as_uri())
        while (message := self._receive()).get("method") != "Page.loadEventFired":
            self._note(message)

    def evaluate(self, expression):
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"]["value"]

    def screenshot(self, height=None):
        """Return the page, or its top, as PNG."""
        height = height or self.evaluate("document.documentElement.scrollHeight")
        width = self.evaluate("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        picture = self.call(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
        )
        return base64.b64decode(picture["data"])

    def print(self):
        """Return the page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def _receive(self):
        while b"\0" not in self._buffer:
            assert select([self._read], [], [], _PATIENCE)[0], "Chromium does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, "Chromium ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, message):
        parameters = message.get("params", {})
        if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.complaints.append(parameters)
        elif message.get("method") == "Log.entryAdded":
            self.complaints.append(parameters["entry"])
        elif message.get("method") == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith(("file:", "data:")):
                self.complaints.append({"requested": url})


@contextmanager
def browser():
    """Start Chromium with a fresh profile and yield a page; end it afterwards."""
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        pipes = to_browser, from_browser
        chromium = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCHER, *map(str, pipes), *chromium],
            pass_fds=pipes,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(from_us, to_us)
        finally:
            process.terminate()
            process.wait()
            os.close(from_us)
            os.close(to_us)
