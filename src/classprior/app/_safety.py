"""Who may talk to the server: the user's own browser, which was given a token, and nobody else.

Every request passes :class:`Gate`, which checks in this order

- the Host header: a name other than that of this machine is a sign of DNS rebinding, where another
  site's name points to our address;
- the token in the address, which is exchanged for a cookie that scripts cannot read and that
  browsers do not send along with requests of other sites;
- the cookie;
- where the request comes from. Other ports of this machine count as the same site, for which the
  cookie is sent, so that the cookie alone does not keep out a page of another local server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from secrets import compare_digest, token_urlsafe
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
TOKEN = "token"
#: Nothing from elsewhere, no inline scripts or styles, no frames around us.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
#: A report has inline styles, runs no script, and sends nothing; only our own page may show it.
REPORT_POLICY = (
    "sandbox allow-same-origin; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without a referrer, forms would have no origin, either
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_POLICY_VIOLATION = 1008  # the code with which a websocket is refused
_REFUSED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Refused</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"></head>
<body><h1>Refused</h1><p>{reason}</p>
<p>Open the address that <code>classprior app</code> printed in the terminal, with its token. In a
browser in which you did so already, <a href="/">open the page</a>.</p></body></html>
"""


@dataclass(frozen=True)
class Keys:
    """The secrets of one run of the server."""

    port: int
    token: str = field(default_factory=lambda: token_urlsafe(32))
    # Valid once. The address that a browser is started with is visible to other users of the
    # machine, in the list of processes.
    codes: set[str] = field(default_factory=lambda: {token_urlsafe(32)})
    session: str = field(default_factory=lambda: token_urlsafe(32))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Values of the Host header that mean this server."""
        return f"{HOST}:{self.port}", f"localhost:{self.port}"

    @property
    def cookie(self) -> str:
        """Name of the cookie. Cookies are shared by all ports of a machine."""
        return f"classprior-{self.port}"

    def address(self, token: str) -> str:
        """Return the address of the page with a token."""
        return f"http://{HOST}:{self.port}/?{TOKEN}={token}"

    def admits(self, token: str) -> bool:
        """Return whether a token from an address is right; a code is used up."""
        used = [code for code in self.codes if _equal(code, token)]
        self.codes.difference_update(used)
        return bool(used) or _equal(self.token, token)

    def knows(self, headers: Headers) -> bool:
        """Return whether a request has the cookie."""
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return False
        return self.cookie in cookies and _equal(self.session, cookies[self.cookie].value)


class Gate:
    """Lets only the user's own browser in, and adds the headers that protect its pages."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app = app
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            answer = self._refusal_or_welcome(scope) or self.app
            await answer(scope, receive, _with_headers(send))
        else:
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})

    def _refusal_or_welcome(self, scope: Scope) -> Response | None:
        """Return the answer to a request that must not be passed on, None for others."""
        headers, keys = Headers(scope=scope), self.keys
        is_read = scope["method"] in ("GET", "HEAD")
        if headers.get("host") not in keys.hosts:
            return _refused("The request was sent to another host.")
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get(TOKEN)
        if tokens and is_read:
            return self._welcome(tokens[0])
        if not keys.knows(headers):
            return _refused("The request has no valid cookie.")
        # Browsers that say nothing here are old, or were given the address by the user.
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _refused("The request comes from another site.")
        if not is_read and headers.get("origin") != f"http://{headers['host']}":
            return _refused("The request comes from another site.")
        return None

    def _welcome(self, token: str) -> Response:
        """Exchange a token for the cookie, and show the page without it in the address."""
        if not self.keys.admits(token):
            return _refused("The token in the address is wrong or was used already.")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            self.keys.cookie, self.keys.session, path="/", httponly=True, samesite="strict"
        )
        return answer


def _refused(reason: str) -> Response:
    return HTMLResponse(_REFUSED.format(reason=reason), status_code=403)


def _with_headers(send: Send) -> Send:
    """Return a function that adds the headers an answer does not have yet."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: Any = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def _equal(one: str, other: str) -> bool:
    return compare_digest(one.encode(), other.encode())
