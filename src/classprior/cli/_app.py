"""The command ``classprior app``."""

from __future__ import annotations

from importlib.util import find_spec

import click

from classprior.cli._output import say

_PACKAGES = ("python_multipart", "starlette", "uvicorn")
_MEGABYTE = 1_000_000


@click.command(
    short_help="Open a page in the browser that does all this without a terminal.",
    epilog="""\b
Examples:
  classprior app
  classprior app --port 8000 --no-browser
""",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the page. By default, any free one.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, but do not open it.")
@click.option(
    "--max-upload",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    metavar="MB",
    help="Largest size of the files of one estimate, in megabytes.",
)
def app(port: int, no_browser: bool, max_upload: int) -> None:
    """Open a page in the browser: choose files, read the report, download the scored rows.

    The page is served on this machine only, for whoever has the address with its token. Files are
    kept in a private temporary folder until the command is stopped with Ctrl-C.
    """
    if any(find_spec(name) is None for name in _PACKAGES):
        raise ImportError("The page needs more packages. Try pip install 'classprior[app]'")

    from classprior.app import serve

    serve(
        port=port,
        opens_browser=not no_browser,
        max_bytes=max_upload * _MEGABYTE,
        evidence=click.get_current_context().obj,
        say=lambda address: say(f"{address}\nStop it with Ctrl-C."),
    )
