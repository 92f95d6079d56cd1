"""Matplotlib figures as inline SVG in the style of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from classprior.plotting._axes import CURVE_COLORS, ESTIMATE_COLOR, GRAY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK = "#000000"
#: CSS variables for our colors, which the page sets for light and dark mode.
COLOR_VARIABLES = {
    **{color.lower(): f"--curve-{i}" for i, color in enumerate(CURVE_COLORS, start=1)},
    ESTIMATE_COLOR.lower(): "--estimate",
    GRAY.lower(): "--gray",
    _INK: "--ink",  # also the color of the sixth curve
}
_STYLE = {
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # text stays text, which can be searched and read aloud
    "svg.hashsalt": "classprior",  # reproducible ids
}


@dataclass(frozen=True)
class Key:
    """An entry of a legend, which the page shows as HTML."""

    label: str
    color: str  # a CSS color
    kind: str  # "line", "dashed", "dotted", "area" or "dot"


@contextmanager
def page_style() -> Iterator[None]:
    """Use the style of the page, regardless of the user's matplotlib settings."""
    from matplotlib import style

    with style.context(["default", _STYLE]):
        yield


def take_legend(ax: Axes) -> list[Key]:
    """Remove the legend from the axes and return its entries."""
    handles, labels = ax.get_legend_handles_labels()
    legend = ax.get_legend()
    if legend is not None:
        legend.remove()
    return [
        Key(str(label), *_appearance(handle)) for handle, label in zip(handles, labels, strict=True)
    ]


def inline_svg(figure: Figure, title: str, name: str) -> str:
    """Return a figure as an SVG element that takes its size, fonts and colors from the page."""
    figure.patch.set_visible(False)
    for ax in figure.axes:
        ax.patch.set_visible(False)
    file = BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    _keep_what_is_drawn(root)
    referenced = set(re.findall(r"#([\w-]+)", " ".join(_attributes(root))))
    for element in root.iter():
        _make_local(element, name, referenced)
    for key in ("width", "height", "version"):
        del root.attrib[key]
    root.attrib.update({"role": "img", "class": "picture"})
    heading = ElementTree.Element("title")
    heading.text = title
    root.insert(0, heading)
    return ElementTree.tostring(root, encoding="unicode")


def _appearance(handle: Any) -> tuple[str, str]:
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D

    if not isinstance(handle, Line2D):
        filled = handle.get_fill()
        color = handle.get_facecolor() if filled else handle.get_edgecolor()
        return _page_color(to_hex(color)), "area" if filled else "line"
    kind = {"--": "dashed", ":": "dotted", "None": "dot"}.get(str(handle.get_linestyle()), "line")
    return _page_color(to_hex(handle.get_color())), kind


def _page_color(color: str) -> str:
    name = COLOR_VARIABLES.get(color)
    return f"var({name})" if name else color


def _keep_what_is_drawn(root: ElementTree.Element) -> None:
    """Remove the metadata, and the style sheet, which would apply to the whole page."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)


def _attributes(root: ElementTree.Element) -> Iterator[str]:
    for element in root.iter():
        yield from (value for key, value in element.items() if key != "id")


def _make_local(element: ElementTree.Element, name: str, referenced: set[str]) -> None:
    """Make ids unique within the page, and take colors and fonts from the page."""
    element.tag = element.tag.rpartition("}")[2]  # inline SVG needs no namespace
    if element.tag != "text":
        element.text = None
    element.tail = None
    values = {key.rpartition("}")[2]: value for key, value in element.items()}
    element.attrib.clear()
    if values.get("id") not in referenced:
        values.pop("id", None)
    for key, value in values.items():
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif key == "style":
            element.set(key, _page_style_of(value, name))
        else:
            local = re.sub(r"#([\w-]+)", rf"#{name}-\1", value)
            element.set(key, re.sub(r"-?\d+\.\d+", _rounded, local) if "#" not in value else local)


def _page_style_of(style: str, name: str) -> str:
    style = re.sub(r"font: ([\d.]+px) [^;]*", r"font-size: \1", style)
    style = re.sub(r"#[0-9a-f]{6}\b", lambda color: _page_color(color[0]), style)
    return re.sub(r"url\(#", f"url(#{name}-", style)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
