"""
Colours that colour-blind readers can tell apart, and glyphs that carry the meaning without colours.

The eight colours are those of Okabe and Ito, "Color Universal Design" (2008), black left out.
"""

from __future__ import annotations

from dataclasses import dataclass

ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"

JOB_COLORS = (SKY, ORANGE, GREEN, YELLOW, PURPLE, VERMILION, BLUE)
"""Cycled over jobs; jobs of equal colour have different letters."""

GOOD, SO_SO, BAD = f"bold {GREEN}", f"bold {ORANGE}", f"bold {VERMILION}"
BUSY, SHARED = SKY, ORANGE
FREE = "dim"


@dataclass(frozen=True)
class Glyphs:
    """One character per state; ``parts`` are eighths of a GPU in use, least first."""

    free: str
    busy: str
    parts: str
    none: str = " "


BLOCKS = Glyphs(free="·", busy="█", parts="▁▂▃▄▅▆▇")
ASCII = Glyphs(free=".", busy="#", parts="1234567")


def share_glyph(milli: int, glyphs: Glyphs) -> str:
    """Return the character for a GPU of which ``milli`` thousandths are held; neither free nor full is rounded away."""
    if milli <= 0:
        return glyphs.free
    if milli >= 1000:
        return glyphs.busy
    return glyphs.parts[min(6, max(0, round(milli / 125) - 1))]
