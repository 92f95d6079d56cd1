"""The command ``classprior demo``: images of digits with a known share of positives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from classprior._data.writing import check_outputs, whole_file, write_text
from classprior.cli._options import force_option, output_options
from classprior.cli._output import progress_wanted

if TYPE_CHECKING:
    from classprior._core.types import Doubles

_PRIORS = (0.1, 0.3, 0.5)
_N_POSITIVE = 80
_N_HIDDEN = 90
_N_COMPONENTS = 16
_DIGITS = range(10)


@click.command(
    short_help="Try the estimators on images of digits with a known answer.",
    epilog="""\b
Examples:
  classprior demo --digit 7 --out sevens
""",
)
@click.option(
    "--digit",
    type=click.IntRange(0, 9),
    default=4,
    show_default=True,
    help="Digit to count among the unlabeled images.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("classprior-demo"),
    show_default=True,
    help="Folder for the plot and the report.",
)
@force_option
@output_options
def demo(digit: int, out: Path, force: bool, quiet: bool) -> None:
    """Estimate what share of unlabeled images shows a digit, where the true share is known.

    The images are scikit-learn's digits. Prints the true and the estimated share for three true
    shares and the mean error over all ten digits, for the methods auto and penl1. Writes a plot of
    the objective of penl1 and a report on the second of the three estimates.
    """
    picture, page = out / "digits.png", out / "report.html"
    check_outputs(picture, page, force=force)
    click.echo(f"What share of the unlabeled images shows the digit {digit}?\n")
    click.echo("positives  unlabeled   truth  estimate   95% interval   upper bound   penL1")
    answers, curves = [], []
    for prior in _PRIORS:
        answer, curve = _both(digit, prior)
        answers.append(answer)
        curves.append(curve)
        click.echo(
            f"{answer.n_positive:9}  {answer.n_unlabeled:9}   {prior:5.3f}  {answer.prior:8.3f}  "
            f"{answer.low:5.3f} to {answer.high:5.3f}  {answer.upper_bound:11.3f}  "
            f"{curve.prior_:6.3f}"
        )
    with whole_file(picture) as file:
        _figure(curves).savefig(file, format="png", dpi=120)
    from classprior.report import render_report

    title = f"How many unlabeled images show the digit {digit}? (The true share is 30%.)"
    settings = {"command": f"classprior demo --digit {digit}", "seed": "0"}
    write_text(page, render_report(answers[1], settings=settings, title=title))
    click.echo(f"\nMean absolute error over all ten digits, true share 0.3: {_errors(quiet)}")
    click.echo(f"\nThe plot of the objectives is in {picture}\nThe report is in {page}")


def _hide(digit: int, prior: float) -> tuple[Doubles, Doubles]:
    """Draw known images of the digit, and unlabeled images with the given share of it."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    from classprior.datasets import sample_positive_unlabeled

    X, y = load_digits(return_X_y=True)
    X = PCA(_N_COMPONENTS, random_state=0).fit_transform(X)  # kernels work best in few dimensions
    return sample_positive_unlabeled(
        X,
        y == digit,
        prior=prior,
        n_positive=_N_POSITIVE,
        n_unlabeled=round(_N_HIDDEN / prior),
        random_state=digit,
    )


def _both(digit: int, prior: float) -> tuple[Any, Any]:
    """Return the estimate of auto, and a fitted PenalizedL1Prior."""
    from classprior import PenalizedL1Prior, estimate_prior

    samples = _hide(digit, prior)
    answer = estimate_prior(*samples, random_state=0, n_jobs=-1)
    return answer, PenalizedL1Prior(random_state=0).fit_samples(*samples)


def _errors(quiet: bool) -> str:
    from classprior._core.messages import progress

    digits = progress(_DIGITS, len(_DIGITS), "All digits", progress_wanted(quiet))
    pairs = [_both(digit, 0.3) for digit in digits]
    ours = sum(abs(answer.prior - 0.3) for answer, _ in pairs) / len(pairs)
    penl1 = sum(abs(curve.prior_ - 0.3) for _, curve in pairs) / len(pairs)
    return f"{ours:.3f} (penL1: {penl1:.3f})"


def _figure(curves: list[Any]) -> Any:
    from matplotlib.figure import Figure

    from classprior.plotting import ObjectiveDisplay

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots(1, len(curves), sharey=True)
    for prior, curve, ax in zip(_PRIORS, curves, axes, strict=True):
        ObjectiveDisplay.from_estimator(curve, ax=ax, name="penL1", truth=prior)
        ax.set_title(f"{round(_N_HIDDEN / prior)} unlabeled images")
        ax.label_outer()
    return figure
