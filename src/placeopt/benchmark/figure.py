"""Figures: what a figure shows, how it is drawn, and its numbers; written as SVG with tips, PNG, PDF and CSV."""

from __future__ import annotations

import html
import importlib.util
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from placeopt.benchmark.table import csv_text
from placeopt.errors import Unsupported

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = 3
"""Small multiples in a row of a file."""
FORMATS = ("svg", "png", "pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""
MARKS = ("o", "s", "^", "D", "v", "P", "X")
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "placeopt"},
    "png": {},
    "pdf": {"CreationDate": None, "Creator": "placeopt"},
}
"""No date, so that the same figure gives the same file."""
Tips = Mapping[str, str]
"""Text shown when the pointer rests on an element, by the element's gid."""


Draw = Callable[["Axes"], Tips]
"""Draws into the axes and returns the tips of its elements, by their gid."""
DARK, LIGHT = "#111111", "#FEFEFE"
"""Text on coloured areas."""


@dataclass(frozen=True)
class Figure:
    """
    A picture and its numbers.

    ``name``: Name of its files without the ending: letters, digits and dashes. ``title``, ``caption``: Heading and
    explanation. ``inches``: Width and height, of each panel. ``draw``: The drawing; a gid begins with ``name``. Several
    drawings by their label are small multiples. ``header``, ``rows``: The numbers, as columns and rows; the first
    ``keys`` columns identify a row.
    """

    name: str
    title: str
    caption: str
    inches: tuple[float, float]
    draw: Draw | Mapping[str, Draw]
    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    keys: int = 1

    def panels(self) -> list[Figure]:
        """Return the panels as figures of their own; a single drawing is its own panel."""
        if callable(self.draw):
            return [self]
        return [
            replace(self, name=f"{self.name}-{i}", title=f"{self.title}: {label}", draw=draw)
            for i, (label, draw) in enumerate(self.draw.items())
        ]

    def csv(self) -> str:
        """Return the numbers as CSV."""
        return csv_text(self.header, self.rows)

    def files(self, formats: Sequence[str]) -> dict[str, bytes]:
        """Return the figure's files by name: a picture in each of the formats, then the numbers as CSV."""
        pictures = {f"{self.name}.{form}": render(self, form) for form in formats}
        return {**pictures, f"{self.name}.csv": self.csv().encode()}


def ink_on(colour: str) -> str:
    """Return the colour of text, dark or light, that has the higher contrast on an area of this colour (#RRGGBB)."""
    lightness = luminance(colour)
    light, dark = (luminance(ink) for ink in (LIGHT, DARK))
    return DARK if (lightness + 0.05) / (dark + 0.05) > (light + 0.05) / (lightness + 0.05) else LIGHT


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (#RRGGBB), from 0 to 1, as WCAG 2.2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def render(figure: Figure, form: str) -> bytes:
    """Return a figure as a file in one of ``FORMATS``; the same figure gives the same SVG, byte for byte."""
    if not can_draw():
        raise Unsupported("figures need matplotlib; install placeopt[plot]")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    draws = [figure.draw] if callable(figure.draw) else list(figure.draw.values())
    across = max(1, min(len(draws), ACROSS))
    down = -(-len(draws) // across)
    canvases = {"svg": FigureCanvasSVG, "png": FigureCanvasAgg, "pdf": FigureCanvasPdf}
    with mpl.rc_context({**STYLE, "svg.hashsalt": figure.name}):
        canvas = Canvas(figsize=(across * figure.inches[0], down * figure.inches[1]), layout="constrained")
        tips: dict[str, str] = {}
        for i, draw in enumerate(draws, start=1):
            tips |= draw(canvas.add_subplot(down, across, i))
        canvases[form](canvas)
        out = io.BytesIO()
        canvas.savefig(out, format=form, dpi=150, metadata=METADATA[form])
    return _with_tips(out.getvalue().decode(), tips).encode() if form == "svg" else out.getvalue()


def _with_tips(svg: str, tips: Tips) -> str:
    """Return the SVG with a ``title`` in every element that has a tip: browsers show it where the pointer rests."""
    parts, at = [], 0
    while (begin := svg.find('<g id="', at)) >= 0:
        end = svg.index(">", begin) + 1
        gid = svg[begin + len('<g id="') : svg.index('"', begin + len('<g id="'))]
        parts.append(svg[at:end])
        if gid in tips:
            parts.append(f"<title>{html.escape(tips[gid])}</title>")
        at = end
    return "".join([*parts, svg[at:]])
