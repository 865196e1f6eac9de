"""
The cluster drawn by GPU: one row per node while there is room, then several nodes per row, then densities.

Nodes are grouped by domain (rack) or, without domains, by machine type. A gap in a row is a change of socket.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.readable import gpus, number, percent, plain, plural, shorten
from placeopt.report.text.palette import BUSY, FREE, SHARED
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Machine
    from placeopt.report.text.documents import NodeUse
    from placeopt.report.text.palette import Glyphs, Painter


MAX_ROWS = 24
"""Number of nodes up to which each has a row with its CPU and memory."""

MAX_LINES = 70
"""Number of lines up to which nodes are drawn: two screens."""

NAME_WIDTH = 20
DRAINED = "!"


def gpu_map(uses: Sequence[NodeUse], painter: Painter, glyphs: Glyphs, *, width: int) -> list[RenderableType]:
    """Draw the GPUs of all nodes on a page of ``width`` columns; ``glyphs`` are the characters of the folded form."""
    with_gpus = [use for use in uses if use.gpus]
    parts: list[RenderableType] = []
    if with_gpus:
        lines = _rows(with_gpus, painter, width) if len(with_gpus) <= MAX_ROWS else _grid(with_gpus, painter, width)
        if len(lines) > MAX_LINES:
            parts += density_rows(with_gpus, glyphs, width=width)
        else:
            parts += [*lines, _legend(painter, drained=any(use.node.drained for use in with_gpus))]
    without = [use for use in uses if not use.gpus]
    if without:
        busy = sum(not use.is_idle for use in without)
        parts.append(Text(f"  and {plural(len(without), 'node')} without GPUs, {busy:,} in use", style="dim"))
    return parts


def _rows(uses: Sequence[NodeUse], painter: Painter, width: int) -> list[Text]:
    """Draw one node per row, with its free CPU and memory."""
    name_width = min(NAME_WIDTH, max(len(use.node.id) + use.node.drained for use in uses))
    room = max(8, width - name_width - 40)
    lines = []
    for title, members in _groups(uses):
        lines.append(title)
        strips = [_strip(use, painter, room) for use in members]
        widest = max(strip.cell_len for pieces in strips for strip in pieces)
        for use, pieces in zip(members, strips, strict=True):
            line = Text(f"  {_name(use, name_width)}  ", no_wrap=True)
            line.append_text(pieces[0])
            line.append(" " * (widest - pieces[0].cell_len + 2))
            line.append(f"{gpus(use.used_milli):>6} of {len(use.gpus)}", style="none" if use.used_milli else "dim")
            line.append(f"  CPU {_part(use.cpu_millicores, use.machine.cpu_millicores)}", style="dim")
            line.append(f"  memory {_part(use.memory_mib, use.machine.memory_mib)}", style="dim")
            lines.append(line)
            lines += [Text(" " * (name_width + 4)).append_text(piece) for piece in pieces[1:]]
    return lines


def _grid(uses: Sequence[NodeUse], painter: Painter, width: int) -> list[Text]:
    """Draw as many nodes per row as the width allows."""
    name_width = min(NAME_WIDTH, max(len(use.node.id) + use.node.drained for use in uses))
    lines = []
    for title, members in _groups(uses):
        lines.append(title)
        strips = [_strip(use, painter, 10_000)[0] for use in members]
        widest = max(strip.cell_len for strip in strips)
        across = max(1, (width - 2) // (name_width + widest + 3))
        if name_width + widest + 3 > width:
            return [Text()] * (MAX_LINES + 1)  # nodes of hundreds of GPUs: folded
        for start in range(0, len(members), across):
            line = Text("  ", no_wrap=True)
            for use, strip in zip(members[start : start + across], strips[start : start + across], strict=True):
                line.append(f"{_name(use, name_width)} ", style="dim" if use.is_idle else "none")
                line.append_text(strip)
                line.append(" " * (widest - strip.cell_len + 2))
            line.rstrip()
            lines.append(line)
    return lines


def _groups(uses: Sequence[NodeUse]) -> list[tuple[Text, list[NodeUse]]]:
    """Return the nodes by domain, or by machine type where there are no domains, each group with its title."""
    by_domain = any(use.node.domain for use in uses)
    groups: dict[str, list[NodeUse]] = {}
    for use in uses:
        place = use.node.domain or "no domain" if by_domain else use.machine.id
        groups.setdefault(place, []).append(use)
    titled = []
    for name, members in groups.items():
        title = Text(shorten(plain(name), 40), style="bold", no_wrap=True)
        held, there = sum(use.used_milli for use in members), sum(len(use.gpus) for use in members)
        title.append(f"  {plural(len(members), 'node')}, {gpus(held)} of {there:,} GPUs held", style="not bold dim")
        titled.append((title, members))
    return titled


def _strip(use: NodeUse, painter: Painter, room: int) -> list[Text]:
    """Draw a node's GPUs, in pieces of at most ``room`` columns."""
    pieces = [Text()]
    parts = top_parts(use.machine)
    for i, holders in enumerate(use.gpus):
        if pieces[-1].cell_len >= room - 1:
            pieces.append(Text())
        elif i and parts[i] != parts[i - 1]:
            pieces[-1].append(" ")
        cell = painter.cell(holders)
        pieces[-1].append(cell.glyph, style=cell.style)
    return pieces


def top_parts(machine: Machine) -> list[str | None]:
    """Return per GPU the top-level part of the machine that it belongs to; None if unknown."""
    parents = {part.id: part.parent for part in machine.parts}
    tops = []
    for gpu in machine.gpus:
        part = gpu.part
        while part is not None and parents[part] is not None:
            part = parents[part]
        tops.append(part)
    return tops


def _legend(painter: Painter, *, drained: bool) -> Text:
    line = Text("  ")
    for cell, meaning in painter.legend():
        line.append(cell.glyph, style=cell.style).append(f" {meaning}   ", style="dim")
    if drained:
        line.append(f"{DRAINED} drained", style="dim")
    line.rstrip()
    return line


def _name(use: NodeUse, width: int) -> str:
    mark = DRAINED if use.node.drained else ""
    return f"{shorten(plain(use.node.id), width - len(mark))}{mark}".ljust(width)


def _part(held: int, there: int) -> str:
    return f"{100 * held / there:3.0f} %" if there else "  - %"


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
                _density_strip(members, glyphs, cells),
                gpus(round(held, -2)),
                number(there),
                percent(held / (1000 * there)),
                number(sum(milli == 0 for use in members for milli in use.milli)),
                number(sum(use.is_idle for use in members)),
            ]
        )
    columns = ["machine", ">nodes", "held, in order of nodes", ">held", ">of GPUs", ">", ">free", ">empty"]
    parts: list[RenderableType] = [heading("GPUs by machine type"), TextTable(columns, rows, drop=["empty", "free"])]
    if len(ordered) > MAX_TYPES:
        parts.append(Text(f"  and {len(ordered) - MAX_TYPES:,} smaller types", style="dim"))
    per_cell = max(-(-len(members) // cells) for _, members in ordered)
    legend = Text("  ").append(glyphs.free, style=FREE).append(" free   ", style="dim")
    legend.append(glyphs.parts[3], style=SHARED).append(" half held   ", style="dim")
    legend.append(glyphs.busy, style=BUSY).append(f" full   a cell stands for up to {plural(per_cell, 'node')}", "dim")
    return [*parts, legend]


def _density_strip(members: Sequence[NodeUse], glyphs: Glyphs, cells: int) -> Text:
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
