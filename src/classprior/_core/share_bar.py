"""Estimate, interval and bound drawn on a bar from 0 to 1."""

from __future__ import annotations

from classprior._core.messages import percent

# Three to one and more against white and against black; a page may set its own.
_ACCENT = "var(--estimate, #2E86C8)"
_END = 0.12  # labels of marks closer to an end of the bar are written inwards


def share_bar(prior: float, low: float, high: float, upper_bound: float) -> str:
    """Return the bar as SVG that fills the width it is given, with letters that do not scale.

    Ink has the color of the text around it, so that the bar can be read on light and dark pages.
    """
    title = (
        f"A bar from 0% to 100%: the estimate at {percent(prior)}, its interval from "
        f"{percent(low)} to {percent(high)}, the certified upper bound at {percent(upper_bound)}"
    )
    ticks = "".join(
        f'<line x1="{_at(x)}" x2="{_at(x)}" y1="57" y2="61" stroke="currentColor"/>'
        f'<text x="{_at(x)}" y="74" text-anchor="{_anchor(x)}">{x:.0%}</text>'
        for x in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    bound_side = "end" if upper_bound > 0.5 else "start"
    return (
        '<svg role="img" width="100%" height="80" fill="currentColor" font-size="12" '
        'style="overflow: visible; display: block; font-variant-numeric: tabular-nums">'
        f"<title>{title}</title>"
        # What the bound rules out is a thin line, what it leaves a broad one.
        f'<line x1="{_at(upper_bound)}" x2="100%" y1="29" y2="29" stroke="currentColor" '
        'stroke-opacity="0.5"/>'
        f'<rect x="0" width="{_at(upper_bound)}" y="22" height="14" fill-opacity="0.16"/>'
        f'<rect x="{_at(low)}" width="{_at(max(high - low, 0.004))}" y="22" height="14" '
        f'style="fill: {_ACCENT}"/>'
        f'<line x1="{_at(upper_bound)}" x2="{_at(upper_bound)}" y1="18" y2="40" '
        'stroke="currentColor" stroke-width="2"/>'
        f'<text x="{_at(upper_bound)}" y="52" text-anchor="{bound_side}">'
        f"at most {percent(upper_bound)}, certified</text>"
        f'<circle cx="{_at(prior)}" cy="29" r="6"/>'
        f'<text x="{_at(prior)}" y="13" font-size="14" font-weight="700" '
        f'text-anchor="{_anchor(prior)}">{percent(prior)}</text>'
        f"{ticks}</svg>"
    )


def _at(share: float) -> str:
    return f"{100.0 * share:.2f}%"


def _anchor(share: float) -> str:
    if share < _END:
        return "start"
    return "end" if share > 1.0 - _END else "middle"
