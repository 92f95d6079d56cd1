"""The page in the browser: files in, a report out, nothing leaves the machine."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from classprior.priors._auto import AutoPrior

__all__ = ["serve"]


def serve(
    *,
    port: int = 0,
    opens_browser: bool = True,
    max_bytes: int = 2_000_000_000,
    evidence: AutoPrior | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the page on this machine until interrupted.

    Parameters
    ----------
    port : int, default=0
        Port to listen on; 0 for any free one.
    opens_browser : bool, default=True
        Whether to open the page in the browser.
    max_bytes : int, default=2_000_000_000
        The most that the files of one upload can have together.
    evidence : AutoPrior, optional
        As in ``estimate_prior``.
    say : callable, default=print
        Called with the address of the page.
    """
    import uvicorn

    from classprior.app._pages import create_app
    from classprior.app._safety import HOST, Keys

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
        keys = Keys(listener.getsockname()[1])
        say(f"The page is at {keys.address(keys.token)}")
        if opens_browser:
            (code,) = keys.codes
            # It may take seconds, or for ever: some browsers run in the foreground.
            threading.Thread(
                target=webbrowser.open, args=(keys.address(code),), daemon=True
            ).start()
        config = uvicorn.Config(
            create_app(keys, max_bytes, evidence),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=1,
        )
        with suppress(KeyboardInterrupt):  # the usual way to stop it
            uvicorn.Server(config).run(sockets=[listener])
