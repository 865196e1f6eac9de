"""A cluster too large to draw by GPU: one line per machine type shows how full its nodes are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.report.text.palette import BUSY, FREE, SHARED
from placeopt.report.text.text import gpus, number, percent, plain, shorten
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.report.text.node_use import NodeUse
    from placeopt.report.text.palette import Glyphs

MAX_TYPES = 30
CELLS = 28
"""Cells of a line, as many as fit 100 columns."""


def density_rows(uses: Sequence[NodeUse], glyphs: Glyphs, *, width: int) -> list[RenderableType]:
    """
    Return a line per machine type, the largest first: its nodes in file order, each cell the mean of some of them.

    The columns beside it are GPUs held, whole GPUs free, and empty nodes.
    """
    types: dict[str, list[NodeUse]] = {}
    for use in uses:
        types.setdefault(use.machine.id, []).append(use)
    ordered = sorted(types.items(), key=lambda item: (-sum(len(use.gpus) for use in item[1]), item[0]))
    rows: list[list[str | Text]] = []
    cells = max(8, min(CELLS, width - 62))
    for name, members in ordered[:MAX_TYPES]:
        held, there = sum(use.used_milli for use in members), sum(len(use.gpus) for use in members)
        rows.append(
            [
                shorten(plain(name), 24),
                number(len(members)),
                _strip(members, glyphs, cells),
                gpus(round(held, -2)),
                number(there),
                percent(held / (1000 * there)),
                number(sum(milli == 0 for use in members for milli in use.milli)),
                number(sum(use.is_idle for use in members)),
            ]
        )
    columns = [
        "machine",
        ">nodes",
        "held, in order of nodes",
        ">held",
        ">of GPUs",
        ">",
        ">free",
        ">empty",
    ]
    parts: list[RenderableType] = [heading("GPUs by machine type"), TextTable(columns, rows, drop=["empty", "free"])]
    if len(ordered) > MAX_TYPES:
        parts.append(Text(f"  and {len(ordered) - MAX_TYPES:,} smaller types", style="dim"))
    legend = Text("  ").append(glyphs.free, style=FREE).append(" free   ", style="dim")
    legend.append(glyphs.parts[3], style=SHARED).append(" half held   ", style="dim")
    legend.append(glyphs.busy, style=BUSY).append(f" full   a cell stands for up to {_per_cell(ordered, cells)}", "dim")
    return [*parts, legend]


def _strip(members: Sequence[NodeUse], glyphs: Glyphs, cells: int) -> Text:
    """Draw the nodes as at most ``cells`` characters, by the share of their GPUs that is held."""
    strip = Text(no_wrap=True)
    count = min(cells, len(members))
    for c in range(count):
        run = members[c * len(members) // count : (c + 1) * len(members) // count]
        share = sum(use.used_milli for use in run) / sum(len(use.gpus) for use in run)
        level = 0 if share == 0 else 8 if share >= 1000 else min(7, max(1, round(share / 125)))
        glyph = glyphs.free if level == 0 else glyphs.busy if level == 8 else glyphs.parts[level - 1]
        strip.append(glyph, style=FREE if level == 0 else BUSY if level == 8 else SHARED)
    return strip


def _per_cell(types: Sequence[tuple[str, list[NodeUse]]], cells: int) -> str:
    most = max(-(-len(members) // cells) for _, members in types)
    return "1 node" if most == 1 else f"{most:,} nodes"
