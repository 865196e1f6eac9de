"""Figures as SVG inside a page: named for screen readers, in the page's colours, never smaller than legible."""

from __future__ import annotations

import html
import math
import re

from placeopt.benchmark.figure import Figure, render

LEAST_PX = 9.0
"""Text is never drawn smaller; a figure that would have to be scrolls in its box."""
PX = 4 / 3
"""CSS pixels of a point."""
FROM_THE_PAGE = {
    "#000000": "--ink",
    "#ffffff": "--paper",
    "#f0f0f0": "--idle",
    "#999999": "--faint",
    "#bbbbbb": "--faint",
}
"""Colours that follow the page's light or dark style; those of data are the same in both."""
HEAD = re.compile(r'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>')
METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
GROUP = re.compile(r'<g id="[^"]*"')
COLOUR = re.compile("|".join(FROM_THE_PAGE), re.IGNORECASE)
FONT_SIZE = re.compile(r"font(?:-size)?:[^;\"']*?([\d.]+)px")


def inline_svg(figure: Figure) -> str:
    """
    Return a figure of one panel as an SVG element.

    It is as wide as the page allows between the width at which its smallest text has ``LEAST_PX`` and its own.
    """
    drawn = render(figure, "svg").decode()
    head = HEAD.search(drawn)
    if head is None:
        raise AssertionError("matplotlib states the size of every SVG")
    width, height = (float(size) for size in head.groups())
    body = GROUP.sub("<g", METADATA.sub("", drawn[head.end() :]))  # ids of matplotlib repeat from figure to figure
    body = COLOUR.sub(lambda found: f"var({FROM_THE_PAGE[found[0].lower()]})", body)
    smallest = min([float(size) for size in FONT_SIZE.findall(body)], default=LEAST_PX)
    least = math.ceil(width * min(PX, LEAST_PX / smallest))
    return (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{html.escape(figure.title)}" style="width:100%;min-width:{least}px;max-width:{PX * width:.0f}px">'
        f"{body.strip()}"
    )
