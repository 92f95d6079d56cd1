"""The command ``classprior demo``: data with a known answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from classprior._data.writing import check_outputs, whole_file
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

    Writes synthetic card payments to frauds.csv and transactions.csv, runs classprior estimate on
    them, and writes a report and a plot of the scores. Then does the same with real data, images of
    handwritten digits, for three true shares.
    """
    from classprior.datasets import make_transactions

    paths = [out / name for name in ("frauds.csv", "transactions.csv", "report.html", "scores.png")]
    check_outputs(*paths, force=force)
    frauds_csv, transactions_csv, page, picture = paths
    frauds, transactions, is_fraud = make_transactions(random_state=0, return_truth=True)
    _write_csv(frauds_csv, frauds)
    _write_csv(transactions_csv, transactions)
    click.echo(
        f"{len(frauds):,} known frauds are in {frauds_csv},\n"
        f"{len(transactions):,} unchecked payments are in {transactions_csv}.\n"
        f"In fact, {is_fraud.sum():,} of these payments ({is_fraud.mean():.1%}) are frauds.\n\n"
        f"$ classprior estimate {frauds_csv} {transactions_csv} --report {page}\n"
    )
    answer = context.invoke(
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
    ScoreDisplay.from_estimator(answer, ax=figure.subplots())
    with whole_file(picture) as file:
        figure.savefig(file, format="png", dpi=120)
    _count_digits()
    click.echo(f"\nThe report is in {page}, the plot in {picture}")


def _write_csv(path: Path, table: pd.DataFrame) -> None:
    with whole_file(path) as file:
        table.to_csv(file, index=False)


def _count_digits() -> None:
    """Estimate the share of a digit among images, at three true shares."""
    from classprior import PenalizedL1Prior, estimate_prior

    click.echo(f"\nReal data: what share of the unlabeled images shows the digit {_DIGIT}?\n")
    click.echo("positives  unlabeled   truth  estimate   95% interval   upper bound   penL1")
    for prior in _PRIORS:
        samples = _hide_digit(prior)
        answer = estimate_prior(*samples, random_state=0, n_jobs=-1)
        penl1 = PenalizedL1Prior(random_state=0).fit_samples(*samples)
        click.echo(
            f"{answer.n_positive:9}  {answer.n_unlabeled:9}   {prior:5.3f}  {answer.prior:8.3f}  "
            f"{answer.low:5.3f} to {answer.high:5.3f}  {answer.upper_bound:11.3f}  "
            f"{penl1.prior_:6.3f}"
        )


def _hide_digit(prior: float) -> tuple[Doubles, Doubles]:
    """Return images of the digit, and unlabeled images with the given share of it."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    from classprior.datasets import sample_positive_unlabeled

    images, digit = load_digits(return_X_y=True)
    X = PCA(16, random_state=0).fit_transform(images)  # penL1 works best in few dimensions
    return sample_positive_unlabeled(
        X,
        digit == _DIGIT,
        prior=prior,
        n_positive=_N_POSITIVE,
        n_unlabeled=round(_N_HIDDEN / prior),
        random_state=_DIGIT,
    )
