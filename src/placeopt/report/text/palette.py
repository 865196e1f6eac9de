"""
Colours that colour-blind readers can tell apart, and glyphs that carry the meaning without colours.

The eight colours are those of Okabe and Ito, "Color Universal Design" (2008), black left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

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


class GpuCell(NamedTuple):
    """A GPU of a map: the job that holds it, in brackets what stands in place of one; and the share, in thousandths."""

    label: str | None
    milli: int


class MapCell(NamedTuple):
    """A character and its rich style."""

    glyph: str
    style: str


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Letters of jobs; for more jobs, sizes are drawn."""
SEVERAL = MapCell("*", f"bold {SHARED}")
OUT = MapCell("!", "dim")
SIZES = ((1, "1"), (2, "2"), (4, "4"), (8, "8"))
LARGER = "+"


def is_job(label: str | None) -> bool:
    """Return whether a label names a job."""
    return label is not None and not label.startswith("(")


def share_glyph(milli: int, glyphs: Glyphs) -> str:
    """Return the character for a GPU of which ``milli`` thousandths are held; neither free nor full is rounded away."""
    if milli <= 0:
        return glyphs.free
    if milli >= 1000:
        return glyphs.busy
    return glyphs.parts[min(6, max(0, round(milli / 125) - 1))]


class JobPainter:
    """Draws one letter per job: capital on whole GPUs, small on a part, ``*`` where several jobs share one."""

    def __init__(self, jobs: Mapping[str | None, int], glyphs: Glyphs) -> None:
        self._free = MapCell(glyphs.free, FREE)
        self.letters = dict(zip((str(job) for job in jobs), ALPHABET, strict=False))
        self._colors = {job: JOB_COLORS[i % len(JOB_COLORS)] for i, job in enumerate(self.letters)}

    @staticmethod
    def suits(jobs: Mapping[str | None, int]) -> bool:
        """Return whether there are letters for so many jobs."""
        return len(jobs) <= len(ALPHABET)

    def draw(self, cell: GpuCell) -> MapCell:
        """Draw one GPU."""
        if cell.label is None:
            return self._free
        if not is_job(cell.label):
            return SEVERAL if cell.milli else OUT
        letter = self.letters[cell.label]
        return MapCell(letter if cell.milli >= 1000 else letter.lower(), self.style(cell.label))

    def style(self, job: str) -> str:
        """Return the colours of a job."""
        return f"black on {self._colors[job]}"

    def legend(self) -> list[tuple[MapCell, str]]:
        """Return the meaning of capital and small letters, of ``*`` and ``!``."""
        sample = f"black on {JOB_COLORS[0]}"
        letters = [(MapCell("A", sample), "job A, whole GPU"), (MapCell("a", sample), "part of a GPU")]
        return [(self._free, "free"), *letters, (SEVERAL, "several jobs"), (OUT, "drained")]


class SizePainter:
    """Draws the size of the job that holds a GPU: its number of GPUs, rounded up to 1, 2, 4, 8 or more."""

    def __init__(self, jobs: Mapping[str | None, int], glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._size = jobs
        self._marks = [*(mark for _, mark in SIZES), LARGER]

    def draw(self, cell: GpuCell) -> MapCell:
        """Draw the size of the holder, or the share held if it is less than the GPU."""
        if not is_job(cell.label) or cell.milli < 1000:
            if cell.label is not None and not cell.milli:
                return OUT
            return MapCell(share_glyph(cell.milli, self._glyphs), SHARED if cell.milli else FREE)
        size = self._size[cell.label]
        return self._sample(next((mark for most, mark in SIZES if size <= most), LARGER))

    def legend(self) -> list[tuple[MapCell, str]]:
        """Return free, shared, drained and the sizes."""
        meanings = ["job of 1 GPU", "2", "3 to 4", "5 to 8", "more"]
        return [
            (MapCell(self._glyphs.free, FREE), "free"),
            (MapCell(self._glyphs.parts[3], SHARED), "shares"),
            *((self._sample(mark), meaning) for mark, meaning in zip(self._marks, meanings, strict=True)),
            (OUT, "drained"),
        ]

    def _sample(self, mark: str) -> MapCell:
        return MapCell(mark, f"black on {JOB_COLORS[self._marks.index(mark)]}")
