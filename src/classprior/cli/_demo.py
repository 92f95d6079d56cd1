"""The command ``classprior demo``: digits, of which we know how many are hidden."""

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
    short_help="Digits with a known share: a table, a picture, a report.",
    epilog="""\b
Examples:
  classprior demo --digit 7 --out sevens
""",
)
@click.option("--digit", type=click.IntRange(0, 9), default=4, show_default=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("classprior-demo"),
    show_default=True,
    help="Folder for picture and report.",
)
@force_option
@output_options
def demo(digit: int, out: Path, force: bool, quiet: bool) -> None:
    """Count a digit among unlabeled images of scikit-learn's digits.

    Some images are known to show the digit; the unlabeled ones hold it in a share that we know and
    the estimator does not. Prints truth and estimate at three shares, draws the objectives of penL1
    there, writes a report of the second, and says how both methods do on all ten digits.
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

    title = f"How many unlabeled images show the digit {digit}? (In truth 30%.)"
    settings = {"command": f"classprior demo --digit {digit}", "seed": "0"}
    write_text(page, render_report(answers[1], settings=settings, title=title))
    click.echo(f"\nMean absolute error over all ten digits at 0.3: {_errors(quiet)}")
    click.echo(f"\nThe objectives are drawn in {picture}\nThe report is in {page}")


def _hide(digit: int, prior: float) -> tuple[Doubles, Doubles]:
    """Hide the digit in that share of the unlabeled images."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    from classprior.datasets import sample_positive_unlabeled

    X, y = load_digits(return_X_y=True)
    X = PCA(_N_COMPONENTS, random_state=0).fit_transform(X)  # a kernel likes few dimensions
    return sample_positive_unlabeled(
        X,
        y == digit,
        prior=prior,
        n_positive=_N_POSITIVE,
        n_unlabeled=round(_N_HIDDEN / prior),
        random_state=digit,
    )


def _both(digit: int, prior: float) -> tuple[Any, Any]:
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
