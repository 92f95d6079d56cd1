"""Pieces of HTML for estimates: paragraphs, tables, and a bar from 0 to 1 with its marks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from classprior._core.messages import percent, printable, rows_text

if TYPE_CHECKING:
    from jinja2 import Environment

# A contrast of at least 3:1 against white and against black; a page may set its own color.
_ACCENT = "var(--estimate, #2E86C8)"
# Each label has a line of its own, so labels cannot overlap. Within this distance of an end of the
# bar, labels are aligned with their mark instead of centered, to stay inside a narrow page.
_NARROW, _WIDE = 0.12, 0.25
_THINNEST = 0.004  # an interval is drawn at least this wide


def template_environment(package: str) -> Environment:
    """Return what renders the templates of a package: escaped, strict, without odd characters."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("Reports require jinja2: pip install 'classprior[cli]'") from error
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    environment.filters["rows"] = rows_text
    return environment


def _printable(value: Any) -> Any:
    """Replace characters that no page should contain; strings with __html__ are our own."""
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return printable(value) if is_text else value


def fragment(*parts: str) -> str:
    """Return parts as one element, for light and dark pages."""
    style = "max-width: 42em; line-height: 1.5"
    return f'<div class="classprior-estimate" style="{style}">{"".join(parts)}</div>'


def paragraph(text: str, bold: str = "") -> str:
    """Return a paragraph of text, which may begin in bold."""
    strong = f"<strong>{html.escape(bold)}</strong>" if bold else ""
    return f"<p>{strong}{html.escape(text)}</p>"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table, whose first row is its header and whose first column has names."""
    style = "text-align: right; padding: 0 0 0 1.2em"
    head, *body = (
        "<tr>"
        + f"<th style='text-align: left'>{html.escape(name)}</th>"
        + "".join(f"<td style='{style}'>{html.escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def share_bar(
    prior: float | None, low: float, high: float, upper_bound: float | None, *, bound_name: str
) -> str:
    """Return an SVG element that fills the available width, with text of a fixed size.

    Text and lines take the color of the surrounding text, for light and dark pages. There is no
    ``prior`` where only the bound says something.
    """
    estimate = "" if prior is None else f"the estimate at {percent(prior)}, "
    title = f"A bar from 0% to 100%: {estimate}the interval from {percent(low)} to {percent(high)}"
    marked = "" if prior is None else f'<circle cx="{_at(prior)}" cy="29" r="6"/>'
    start = min(low, 1.0 - _THINNEST)
    width = max(high - start, _THINNEST)
    faint, bold = 'fill-opacity="0.75"', 'font-size="16" font-weight="700"'
    shown = next(share for share in (prior, upper_bound, high) if share is not None)
    ticks = "".join(
        f'<line x1="{_at(x)}" x2="{_at(x)}" y1="79" y2="83" stroke="currentColor"/>'
        f"{_label(f'{x:.0%}', x, x, y=97, margin=_NARROW, attributes=faint)}"
        for x in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    # Labels repeat the marks on the bar; the one of the bound is below the bound itself.
    blue = f'<tspan style="fill: {_ACCENT}">\N{BLACK SQUARE}</tspan>'
    interval = f"{blue} interval {percent(low)} to {percent(high)}"
    broad, mark = f'<rect x="0" width="{_at(1.0)}" y="22" height="14" fill-opacity="0.16"/>', ""
    if upper_bound is not None:
        title += f", the {bound_name} at {percent(upper_bound)}"
        # Shares above the bound are a thin line, the others a broad one.
        broad = (
            f'<line x1="{_at(upper_bound)}" x2="100%" y1="29" y2="29" stroke="currentColor" '
            f'stroke-opacity="0.5"/><rect x="0" width="{_at(upper_bound)}" y="22" height="14" '
            'fill-opacity="0.16"/>'
        )
        parts = ['<tspan font-weight="700">|</tspan>', f"upper bound {percent(upper_bound)}"]
        bound = " ".join(parts if upper_bound < 0.5 else reversed(parts))
        mark = (
            f'<line x1="{_at(upper_bound)}" x2="{_at(upper_bound)}" y1="18" y2="40" '
            'stroke="currentColor" stroke-width="2"/>'
            f"{_label(bound, upper_bound, upper_bound, y=71, margin=0.5)}"
        )
    return (
        '<svg role="img" width="100%" height="102" fill="currentColor" font-size="12" '
        'style="overflow: visible; display: block; font-variant-numeric: tabular-nums">'
        f"<title>{title}</title>"
        f'{broad}<rect x="{_at(start)}" width="{_at(width)}" y="22" height="14" '
        f'style="fill: {_ACCENT}"/>{mark}{marked}'
        f"{_label(percent(shown), shown, shown, y=14, margin=_NARROW, attributes=bold)}"
        f"{_label(interval, low, high, y=54, margin=_WIDE)}"
        f'<line x1="0" x2="100%" y1="79" y2="79" stroke="currentColor" stroke-opacity="0.5"/>'
        f"{ticks}</svg>"
    )


def _label(
    text: str, low: float, high: float, *, y: int, margin: float, attributes: str = ""
) -> str:
    """Return text centered on [low, high], or aligned with its outer end near 0 and 1."""
    middle = (low + high) / 2.0
    x, anchor = middle, "middle"
    if middle < margin:
        x, anchor = low, "start"
    elif middle >= 1.0 - margin:
        x, anchor = high, "end"
    return f'<text x="{_at(x)}" y="{y}" text-anchor="{anchor}" {attributes}>{text}</text>'


def _at(share: float) -> str:
    return f"{100.0 * share:.2f}%"
