"""The command line. Packages that are slow to import are imported inside functions."""

from __future__ import annotations

import click

from classprior import __version__
from classprior.cli._app import app
from classprior.cli._classify import classify, predict
from classprior.cli._compare import compare
from classprior.cli._demo import demo
from classprior.cli._estimate import estimate, report
from classprior.cli._program import Program
from classprior.cli._review import review

__all__ = ["main"]


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success, 1 no estimate (invalid data), 2 usage error, 130 interrupted "
    "with Ctrl-C.",
)
@click.version_option(__version__, prog_name="classprior")
def main() -> None:
    """Estimate how many positives hide in unlabeled data, and find out which rows they are."""
    # A caller may pass obj=AutoPrior(...), the evidence of all estimates; None is the default one.


for command in (estimate, report, review, classify, predict, compare, app, demo):
    main.add_command(command)
