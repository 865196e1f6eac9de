"""The map of a view on a terminal: a character for each GPU by its job, or the density of large clusters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from placeopt.readable import gpus, number, percent, plain, plural, shorten
from placeopt.report.text.palette import BUSY, FREE, SHARED, GpuCell, JobPainter, SizePainter, is_job
from placeopt.report.text.text_table import TextTable, heading, more

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from placeopt.report.text.palette import Glyphs
    from placeopt.view import Chart, Table

MAX_ROWS = 24
"""Number of nodes up to which each has a row."""
MAX_LINES = 70
"""Number of lines up to which nodes are drawn: two screens."""
NAME_WIDTH = 20
MAX_GROUPS = 30
CELLS = 28
"""Cells of a line of density, as many as fit 100 columns."""


class Lane(NamedTuple):
    """A node and its GPUs."""

    name: str
    cells: list[GpuCell]

    @property
    def held_milli(self) -> int:
        """GPU-milli held, each GPU counted to 1000 at most."""
        return sum(min(cell.milli, 1000) for cell in self.cells)


def gpu_map(table: Table, chart: Chart, glyphs: Glyphs, *, width: int) -> list[RenderableType]:
    """
    Draw the map of a view on a page of ``width`` columns.

    ``table`` has a row for each GPU; ``chart`` names its columns: node, group of nodes, job, and share held.
    """
    groups = _groups(table, chart)
    lanes = [lane for lanes in groups.values() for lane in lanes]
    held, there = sum(lane.held_milli for lane in lanes), sum(len(lane.cells) for lane in lanes)
    note = f"{gpus(held)} of {there:,} held{f' {table.note}' if table.note else ''}"
    cells = [cell for lane in lanes for cell in lane.cells]
    jobs = Counter(cell.label for cell in cells if is_job(cell.label))
    painter = JobPainter(jobs, glyphs) if JobPainter.suits(jobs) else SizePainter(jobs, glyphs)
    lines = _rows(groups, painter, width) if len(lanes) <= MAX_ROWS else _grid(groups, painter, width)
    if len(lines) > MAX_LINES:
        return [heading(table.name, note), *_density(groups, chart.group, glyphs, width)]
    legend = Text("  ")
    for cell, meaning in painter.legend():
        legend.append(cell.glyph, style=cell.style).append(f" {meaning}   ", style="dim")
    legend.rstrip()
    return [heading(table.name, note), *lines, legend, *_key(painter, cells, lanes)]


def _groups(table: Table, chart: Chart) -> Mapping[str, list[Lane]]:
    """Return the lanes of each group, in the order of the table."""
    at = {column.name: i for i, column in enumerate(table.columns)}
    group, lane, label = at[chart.group], at[chart.lane], at[chart.label]
    groups: dict[str, dict[str, Lane]] = {}
    for row in table.rows:
        lanes = groups.setdefault(str(row[group] or "no domain"), {})
        name, job, milli = str(row[lane]), row[label], row[at[chart.y[0]]]
        cell = GpuCell(None if job is None else str(job), round(milli) if isinstance(milli, int | float) else 0)
        lanes.setdefault(name, Lane(name, [])).cells.append(cell)
    return {name: list(lanes.values()) for name, lanes in groups.items()}


def _title(name: str, lanes: Sequence[Lane]) -> Text:
    held, there = sum(lane.held_milli for lane in lanes), sum(len(lane.cells) for lane in lanes)
    title = Text(shorten(plain(name), 40), style="bold", no_wrap=True)
    return title.append(f"  {plural(len(lanes), 'node')}, {gpus(held)} of {there:,} GPUs held", style="not bold dim")


def _rows(groups: Mapping[str, Sequence[Lane]], painter: JobPainter | SizePainter, width: int) -> list[Text]:
    """Draw one node per row."""
    names = min(NAME_WIDTH, max((len(lane.name) for lanes in groups.values() for lane in lanes), default=0))
    room = max(8, width - names - 20)
    lines = []
    for name, lanes in groups.items():
        lines.append(_title(name, lanes))
        widest = min(room, max(len(lane.cells) for lane in lanes))
        for lane in lanes:
            for start in range(0, len(lane.cells), room):
                line = Text(f"  {_name(lane, names) if start == 0 else ' ' * names}  ", no_wrap=True)
                line.append_text(_strip(lane.cells[start : start + room], painter))
                if start == 0:
                    line.append(" " * (widest - len(lane.cells)))
                    line.append(f"  {gpus(lane.held_milli)} of {len(lane.cells)}", style="dim")
                lines.append(line)
    return lines


def _grid(groups: Mapping[str, Sequence[Lane]], painter: JobPainter | SizePainter, width: int) -> list[Text]:
    """Draw as many nodes per row as the width allows."""
    names = min(NAME_WIDTH, max(len(lane.name) for lanes in groups.values() for lane in lanes))
    lines = []
    for name, lanes in groups.items():
        lines.append(_title(name, lanes))
        widest = max(len(lane.cells) for lane in lanes)
        across = (width - 2) // (names + widest + 3)
        if not across:
            return [Text()] * (MAX_LINES + 1)  # nodes of hundreds of GPUs: folded
        for start in range(0, len(lanes), across):
            line = Text("  ", no_wrap=True)
            for lane in lanes[start : start + across]:
                line.append(f"{_name(lane, names)} ", style="none" if lane.held_milli else "dim")
                line.append_text(_strip(lane.cells, painter)).append(" " * (widest - len(lane.cells) + 2))
            line.rstrip()
            lines.append(line)
    return lines


def _name(lane: Lane, width: int) -> str:
    return shorten(plain(lane.name), width).ljust(width)


def _strip(cells: Sequence[GpuCell], painter: JobPainter | SizePainter) -> Text:
    strip = Text(no_wrap=True)
    for cell in cells:
        drawn = painter.draw(cell)
        strip.append(drawn.glyph, style=drawn.style)
    return strip


def _key(painter: JobPainter | SizePainter, cells: Sequence[GpuCell], lanes: Sequence[Lane]) -> list[RenderableType]:
    """Return the job of each letter, and what it holds on how many nodes, without what shares GPUs with others."""
    if isinstance(painter, SizePainter) or not painter.letters:
        return []
    held, nodes = Counter[str](), Counter[str]()
    for cell in cells:
        held[cell.label or ""] += cell.milli
    for lane in lanes:
        nodes.update({cell.label for cell in lane.cells if cell.label is not None})
    rows: list[list[str | Text]] = [
        [Text(letter, style=painter.style(job)), job, gpus(held[job]), number(nodes[job])]
        for job, letter in painter.letters.items()
    ]
    return [Text(""), TextTable(["", "job", ">GPUs of its own", ">nodes"], rows, wrap="job")]


def _density(groups: Mapping[str, Sequence[Lane]], group: str, glyphs: Glyphs, width: int) -> list[RenderableType]:
    """
    Return a line for each group, the largest first: its nodes in order, each cell the mean of some of them.

    The columns beside it are GPUs held, whole GPUs free, and empty nodes.
    """
    ordered = sorted(groups.items(), key=lambda item: (-sum(len(lane.cells) for lane in item[1]), item[0]))
    cells = max(8, min(CELLS, width - 62))
    rows: list[list[str | Text]] = []
    for name, lanes in ordered[:MAX_GROUPS]:
        held, there = sum(lane.held_milli for lane in lanes), sum(len(lane.cells) for lane in lanes)
        free = sum(cell.label is None for lane in lanes for cell in lane.cells)
        empty = sum(lane.held_milli == 0 for lane in lanes)
        numbers = (gpus(round(held, -2)), number(there), percent(held / (1000 * there)), number(free), number(empty))
        rows.append([shorten(plain(name), 24), number(len(lanes)), _density_strip(lanes, glyphs, cells), *numbers])
    columns = [group, ">nodes", "held, in order of nodes", ">held", ">of GPUs", ">", ">free", ">empty"]
    per_cell = max(-(-len(lanes) // cells) for lanes in groups.values())
    legend = Text("  ").append(glyphs.free, style=FREE).append(" free   ", style="dim")
    legend.append(glyphs.parts[3], style=SHARED).append(" half held   ", style="dim")
    legend.append(glyphs.busy, style=BUSY).append(f" full   a cell stands for up to {plural(per_cell, 'node')}", "dim")
    return [TextTable(columns, rows, drop=["empty", "free"]), *more(len(ordered) - MAX_GROUPS), legend]


def _density_strip(lanes: Sequence[Lane], glyphs: Glyphs, cells: int) -> Text:
    """Draw the nodes as at most ``cells`` characters, by the share of their GPUs that is held."""
    strip = Text(no_wrap=True)
    count = min(cells, len(lanes))
    for c in range(count):
        run = lanes[c * len(lanes) // count : (c + 1) * len(lanes) // count]
        share = sum(lane.held_milli for lane in run) / sum(len(lane.cells) for lane in run)
        level = 0 if share == 0 else 8 if share >= 1000 else min(7, max(1, round(share / 125)))
        glyph = glyphs.free if level == 0 else glyphs.busy if level == 8 else glyphs.parts[level - 1]
        strip.append(glyph, style=FREE if level == 0 else BUSY if level == 8 else SHARED)
    return strip
