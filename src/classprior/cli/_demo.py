"""The command ``classprior demo``: data with a known answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from classprior._files.writing import check_outputs, whole_file
from classprior.cli._estimate import estimate
from classprior.cli._options import force_option, output_options

if TYPE_CHECKING:
    import pandas as pd

    from classprior._core.types import Doubles

_DIGIT = 4
_PRIORS = (0.1, 0.3, 0.5)
_N_POSITIVE = 80
_N_HIDDEN = 90


@click.command(
    short_help="Make example files and estimate their known share of positives.",
    epilog="""\b
Examples:
  classprior demo --out example
""",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("classprior-demo"),
    show_default=True,
    help="Folder for the example files, the plot and the report.",
)
@force_option
@output_options
@click.pass_context
def demo(context: click.Context, out: Path, force: bool, quiet: bool) -> None:
    """Estimate the share of positives in data where the truth is known.

    Writes synthetic card payments to frauds.csv and transactions.csv, to one labeled file,
    checked.csv, and new payments to tomorrow.csv. Runs classprior estimate on the first two, and
    writes a report and a plot of the scores. Then does the same with real data, images of
    handwritten digits, for three true shares.
    """
    from classprior.datasets import make_transactions

    frauds, transactions, is_fraud = make_transactions(random_state=0, return_truth=True)
    _, tomorrow = make_transactions(n_positive=1, n_unlabeled=100, random_state=1)
    tables = {
        "frauds.csv": frauds,
        "transactions.csv": transactions,
        "checked.csv": _labeled(frauds, transactions),
        "tomorrow.csv": tomorrow,
    }
    page, picture = out / "report.html", out / "scores.png"
    check_outputs(*(out / name for name in tables), page, picture, force=force)
    for name, table in tables.items():
        with whole_file(out / name) as file:
            table.to_csv(file, index=False)
    frauds_csv, transactions_csv = out / "frauds.csv", out / "transactions.csv"
    click.echo(
        f"{len(frauds):,} known frauds are in {frauds_csv},\n"
        f"{len(transactions):,} unchecked payments are in {transactions_csv}.\n"
        f"In fact, {is_fraud.sum():,} of these payments ({is_fraud.mean():.1%}) are frauds.\n\n"
        f"$ classprior estimate {frauds_csv} {transactions_csv} --report {page}\n"
    )
    found = context.invoke(
        estimate,
        positive_or_data=str(frauds_csv),
        unlabeled=str(transactions_csv),
        report=page,
        title="How many payments are frauds? (In truth 8%.)",
        force=force,
        quiet=quiet,
    )

    from matplotlib.figure import Figure

    from classprior.plotting import ScoreDisplay

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    ScoreDisplay.from_estimator(found, ax=figure.subplots())
    with whole_file(picture) as file:
        figure.savefig(file, format="png", dpi=120)
    _count_digits()
    click.echo(f"\nThe plot of the scores is in {picture}")


def _labeled(frauds: pd.DataFrame, transactions: pd.DataFrame) -> pd.DataFrame:
    """Return both samples as one table with a column that marks the known frauds."""
    import pandas as pd

    return pd.concat([frauds.assign(status="fraud"), transactions.assign(status="unknown")])


def _count_digits() -> None:
    """Estimate the share of a digit among images, at three true shares."""
    from classprior import estimate_prior

    click.echo(f"\nReal data: what share of the unlabeled images shows the digit {_DIGIT}?\n")
    click.echo("known  unlabeled  truth  estimate   95% interval    upper bound")
    for prior in _PRIORS:
        samples = _hide_digit(prior)
        found = estimate_prior(*samples, random_state=0, n_jobs=-1)
        click.echo(
            f"{found.n_positive:5}  {found.n_unlabeled:9}  {prior:5.1%}  {found.prior:8.1%}  "
            f"{found.low:5.1%} to {found.high:5.1%}  {found.upper_bound:11.1%}"
        )


def _hide_digit(prior: float) -> tuple[Doubles, Doubles]:
    """Return images of the digit, and unlabeled images with the given share of it."""
    from sklearn.datasets import load_digits

    from classprior.datasets import sample_positive_unlabeled

    images, digit = load_digits(return_X_y=True)
    return sample_positive_unlabeled(
        images,
        digit == _DIGIT,
        prior=prior,
        n_positive=_N_POSITIVE,
        n_unlabeled=round(_N_HIDDEN / prior),
        random_state=_DIGIT,
    )
