"""An estimate as a self-contained HTML page."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from classprior._headline import Meaning
from classprior._html import share_bar, template_environment
from classprior._scores.by_column import Importance
from classprior.report._pictures import (
    draw_checked,
    draw_importances,
    draw_pictures,
    draw_segments,
)
from classprior.result import PriorEstimate, label_of

__all__ = ["render_report"]

_TITLE = "How many positives hide in the unlabeled rows?"
_PACKAGES = ("classprior", "numpy", "scipy", "scikit-learn")
#: What the first sentence is based on.
_VERDICTS = {
    Meaning.LEAK: "Something that separates the samples so well may be the result of how they were "
    "collected. Check these columns before you use any number on this page.",
    Meaning.TOO_LOW: "The estimate, its interval and the bound are too low, because many rows are "
    "near-copies of others and were not kept together.",
    Meaning.BIASED: "Known positives do not seem to be typical of all positives, which the "
    "estimate, its interval and the bound assume. Some kinds seem to be seldom labeled.",
    Meaning.DISAGREE: "The method that allows for biased labels and the one that does not disagree "
    "beyond their intervals. Only a look at rows can settle it.",
    Meaning.AT_MOST: "Negatives are found wherever positives are, so only the bound says "
    "something. To learn more, have some rows looked at: classprior review chooses which.",
    Meaning.RANGE: "The interval says more than the estimate: there are few rows, or the estimate "
    "rests on the assumption that the rows most similar to the known positives are all positive.",
}
_MOST_COLUMNS = 1000  # rows in the table of columns


def render_report(
    estimate: PriorEstimate,
    *,
    importances: Sequence[Importance] | None = None,
    settings: Mapping[str, str] | None = None,
    title: str | None = None,
    command: str | None = None,
    date: str | None = None,
) -> str:
    """Return an HTML page with the answer, the evidence for it, and how to repeat it.

    The page is self-contained: it has no scripts and loads nothing. It supports light and dark mode
    and printing. Text from the data is escaped. The same arguments give the same bytes.

    Parameters
    ----------
    estimate : PriorEstimate
        The result of ``estimate_prior``.
    importances : sequence of Importance, optional
        The result of ``Estimation.importances``, for a section on which columns matter.
    settings : mapping of str to str, optional
        Whatever is needed to repeat the run, such as files and seed. The versions of Python and of
        the main packages are added.
    title : str, optional
        Title of the page, shown above the answer.
    command : str, optional
        Command or code that repeats the run, to be copied.
    date : str, optional
        When the estimate was made, shown above the answer.

    Returns
    -------
    page : str
        The HTML source, to be saved as UTF-8.

    Examples
    --------
    >>> from classprior import estimate_prior
    >>> from classprior.datasets import make_overlapping_uniforms
    >>> from classprior.report import render_report
    >>> samples = make_overlapping_uniforms(random_state=0)
    >>> estimate = estimate_prior(*samples, random_state=0)
    >>> page = render_report(estimate, settings={"seed": "0"}, title="Overlapping uniforms")
    >>> page.startswith("<!doctype html>"), estimate.answer in page
    (True, True)
    """
    environment = template_environment("classprior.report")
    environment.filters["label"] = label_of
    return environment.get_template("report.html").render(
        title=title or _TITLE,
        date=date,
        command=command,
        estimate=estimate,
        verdicts=_VERDICTS,
        bar=share_bar(*estimate.shown, bound_name=estimate.bound_name),
        warnings=[(getattr(w, "finding", w), getattr(w, "advice", "")) for w in estimate.warnings],
        pictures=list(draw_pictures(estimate)),
        checked_pictures=draw_checked(estimate.checked),
        segments=None if estimate.segments is None else draw_segments(estimate),
        importances=draw_importances(importances) if importances else None,
        columns=estimate.columns[:_MOST_COLUMNS],
        n_columns=len(estimate.columns),
        columns_summary=_columns_summary(estimate),
        settings={"method": estimate.method, **(settings or {})},
        versions={
            "python": platform.python_version(),
            **{name: version(name) for name in _PACKAGES},
        },
    )


def _columns_summary(estimate: PriorEstimate) -> str:
    n_left_out = sum(column.is_left_out for column in estimate.columns)
    n_used = len(estimate.columns) - n_left_out
    used = f"{n_used:,} column{'' if n_used == 1 else 's'} used"
    return f"{used}, {n_left_out:,} left out" if n_left_out else used
