"""
Colours that colour-blind readers can tell apart, and glyphs that carry the meaning without colours.

The eight colours are those of Okabe and Ito, "Color Universal Design" (2008), black left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from placeopt.model import Placement
    from placeopt.report.text.documents import GpuHolder, NodeUse


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


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Letters of jobs; for more jobs, sizes are drawn."""

SEVERAL = "*"

SIZES = ((1, "1"), (2, "2"), (4, "4"), (8, "8"))
LARGER = "+"


class MapCell(NamedTuple):
    """A character and its rich style."""

    glyph: str
    style: str


class Painter(Protocol):
    """Draws a GPU by its holders, and explains the drawing."""

    def cell(self, holders: Sequence[GpuHolder]) -> MapCell:
        """Draw one GPU."""
        ...

    def legend(self) -> list[tuple[MapCell, str]]:
        """Return sample cells with their meaning."""
        ...


class UsePainter:
    """Draws how much of a GPU is held."""

    def __init__(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs

    def cell(self, holders: Sequence[GpuHolder]) -> MapCell:
        """Draw the share that is held."""
        milli = sum(held.milli for held in holders)
        style = FREE if not holders else BUSY if milli >= 1000 else SHARED
        return MapCell(share_glyph(milli, self._glyphs), style)

    def legend(self) -> list[tuple[MapCell, str]]:
        """Return free, partly held and busy."""
        return [
            (MapCell(self._glyphs.free, FREE), "free"),
            (MapCell(self._glyphs.parts[3], SHARED), "partly held, as high as the share"),
            (MapCell(self._glyphs.busy, BUSY), "busy"),
        ]


class JobPainter:
    """Draws one letter per job: capital on whole GPUs, small on a part, ``*`` where several jobs share one."""

    def __init__(self, jobs: Sequence[str], glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self.letters = dict(zip(jobs, ALPHABET, strict=False))
        self._colors = {job: JOB_COLORS[i % len(JOB_COLORS)] for i, job in enumerate(self.letters)}

    def cell(self, holders: Sequence[GpuHolder]) -> MapCell:
        """Draw the holder."""
        if not holders:
            return MapCell(self._glyphs.free, FREE)
        if len(holders) > 1:
            return MapCell(SEVERAL, f"bold {SHARED}")
        letter, milli = self.letters[holders[0].job], holders[0].milli
        letter = letter if milli >= 1000 else letter.lower()
        return MapCell(letter, self.style(holders[0].job))

    def style(self, job: str) -> str:
        """Return the colours of a job."""
        return f"black on {self._colors[job]}"

    def legend(self) -> list[tuple[MapCell, str]]:
        """Return the meaning of capital and small letters and of ``*``."""
        return [
            (MapCell(self._glyphs.free, FREE), "free"),
            (MapCell("A", f"black on {JOB_COLORS[0]}"), "job A, whole GPU"),
            (MapCell("a", f"black on {JOB_COLORS[0]}"), "job A, part of a GPU"),
            (MapCell(SEVERAL, f"bold {SHARED}"), "several jobs"),
        ]


class SizePainter:
    """Draws the size of the job that holds a GPU: its number of GPUs, rounded up to 1, 2, 4, 8 or more."""

    def __init__(self, placements: Sequence[Placement], glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._size = {p.job: sum(len(assignment.gpus) for assignment in p.assignments) for p in placements}
        self._marks = [*(mark for _, mark in SIZES), LARGER]

    def cell(self, holders: Sequence[GpuHolder]) -> MapCell:
        """Draw the size of the holder, or the share held if it is less than the GPU."""
        milli = sum(held.milli for held in holders)
        if len(holders) != 1 or milli < 1000:
            return MapCell(share_glyph(milli, self._glyphs), SHARED if holders else FREE)
        size = self._size[holders[0].job]
        return self._sample(next((mark for most, mark in SIZES if size <= most), LARGER))

    def legend(self) -> list[tuple[MapCell, str]]:
        """Return free, shared and the sizes."""
        meanings = ["job of 1 GPU", "2", "3 to 4", "5 to 8", "more"]
        return [
            (MapCell(self._glyphs.free, FREE), "free"),
            (MapCell(self._glyphs.parts[3], SHARED), "shares"),
            *((self._sample(mark), meaning) for mark, meaning in zip(self._marks, meanings, strict=True)),
        ]

    def _sample(self, mark: str) -> MapCell:
        return MapCell(mark, f"black on {JOB_COLORS[self._marks.index(mark)]}")


def plan_painter(placements: Sequence[Placement], uses: Sequence[NodeUse], glyphs: Glyphs) -> JobPainter | SizePainter:
    """Return letters for few jobs, sizes for many."""
    jobs = list(dict.fromkeys(held.job for use in uses for gpu in use.gpus for held in gpu))
    return JobPainter(jobs, glyphs) if len(jobs) <= len(ALPHABET) else SizePainter(placements, glyphs)
