"""A figure: what it shows, how it is drawn, and the numbers behind it; as SVG with tips, PNG and PDF."""

from __future__ import annotations

import html
import importlib.util
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeopt.errors import Unsupported
from placeopt.formats.csv_text import csv_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "png", "pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which colour-blind people tell apart."""
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
"""Without a date, so that the same figure is the same file."""
Tips = Mapping[str, str]
"""What an element says when the pointer rests on it, by the element's gid."""


@dataclass(frozen=True)
class Figure:
    """
    A picture and its numbers.

    Attributes
    ----------
    name
        Of its files: letters, digits and dashes.
    title, caption
        For people.
    inches
        Width and height.
    draw
        Draws into axes and returns what its elements say. An element speaks that has been given a ``gid``, which has to
        begin with ``name``.
    header, rows
        The numbers.
    """

    name: str
    title: str
    caption: str
    inches: tuple[float, float]
    draw: Callable[[Axes], Tips]
    header: Sequence[str]
    rows: Sequence[Sequence[object]]

    def csv(self) -> str:
        """Return the numbers as CSV."""
        return csv_text(self.header, self.rows)


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def render(figure: Figure, form: str) -> bytes:
    """
    Draw a figure in one of ``FORMATS``; the same figure gives the same SVG, byte for byte.

    Raises
    ------
    Unsupported
        If matplotlib is not installed.
    """
    if not can_draw():
        raise Unsupported("figures need matplotlib; install placeopt[plot]")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    canvases = {"svg": FigureCanvasSVG, "png": FigureCanvasAgg, "pdf": FigureCanvasPdf}
    with mpl.rc_context({**STYLE, "svg.hashsalt": figure.name}):
        canvas = Canvas(figsize=figure.inches, layout="constrained")
        tips = figure.draw(canvas.add_subplot())
        canvases[form](canvas)
        out = io.BytesIO()
        canvas.savefig(out, format=form, dpi=150, metadata=METADATA[form])
    return _with_tips(out.getvalue().decode(), tips).encode() if form == "svg" else out.getvalue()


def _with_tips(svg: str, tips: Tips) -> str:
    """Put a title into every element that has something to say: browsers show it where the pointer rests."""
    parts, at = [], 0
    while (found := svg.find('<g id="', at)) >= 0:
        end = svg.index(">", found) + 1
        gid = svg[found + len('<g id="') : svg.index('"', found + len('<g id="'))]
        parts.append(svg[at:end])
        if gid in tips:
            parts.append(f"<title>{html.escape(tips[gid])}</title>")
        at = end
    return "".join([*parts, svg[at:]])
