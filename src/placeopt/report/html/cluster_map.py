"""The GPU map: racks of nodes, a square for every GPU, or for every node of a large cluster."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from placeopt.formats.figure import Figure, Tips
from placeopt.model import Instance, Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_GPUS = 4000
"""Number of GPUs up to which each GPU is a square; beyond it each node is."""
WIDE = 2.2
"""Target ratio of width to height."""
RACK_HEIGHT = 32
"""Nodes in a column where there are no racks."""
STATES = {
    "idle": "#F0F0F0",
    "running before": "#56B4E9",
    "placed by the plan": "#0072B2",
    "several jobs": "#E69F00",
    "drained": "#000000",
}
HEADER = ("node", "domain", "gpu", "state", "milli_held", "jobs")


def gpu_map(instance: Instance, plan: Plan | None = None, *, name: str = "gpus") -> Figure:
    """
    Return the map of the GPUs held: by running jobs, or by the plan.

    With more than ``MOST_GPUS`` GPUs a square is a node, coloured by the share of its GPUs that is held.
    """
    rows = _rows(instance, plan)
    racks = _racks(instance)
    gpus = sum(row[2] != "" for row in rows)
    by_node = gpus > MOST_GPUS
    across = 1 if by_node else max((len(machine.gpus) for machine in instance.cluster.machines), default=1)
    columns = _columns(racks, across)
    depth = sum(max(len(nodes) for nodes in racks[i : i + columns]) + 2 for i in range(0, len(racks), columns))
    width = min(columns, len(racks)) * (max(across, 1) + 1)
    beside = 2.2 if by_node else 1.0  # width of the colour bar
    inches = (min(16.0, max(7.0, 0.16 * width + beside)), min(30.0, max(3.0, 0.16 * depth + 1.5)))
    held = sum(int(str(row[4])) for row in rows) / 1000
    unit = "a square is a node, white where it has none" if by_node else "a square is a GPU, a row a node"
    when = "as the plan leaves it" if plan is not None else "as it runs now"
    return Figure(
        name=name,
        title=f"GPUs of {instance.name}",
        caption=f"{held:,.1f} of {gpus:,} GPUs held, {when}; {unit}. Rest the pointer on one to see its jobs.",
        inches=inches,
        draw=lambda axes: _draw(axes, name, rows, racks, columns, across, by_node=by_node),
        header=HEADER,
        rows=rows,
    )


def _rows(instance: Instance, plan: Plan | None) -> list[tuple[str, str, int | str, str, int, str]]:
    """Return one row per GPU; a node without GPUs has one row with an empty number."""
    held: dict[tuple[str, int], list[tuple[str, int]]] = defaultdict(list)
    for entry in instance.running if plan is None else plan.placements:
        for assignment in entry.assignments:
            for index, milli in assignment.gpus.items():
                held[assignment.node, int(index)].append((entry.job, milli))
    before = {running.job for running in instance.running}
    count = {machine.id: len(machine.gpus) for machine in instance.cluster.machines}
    out: list[tuple[str, str, int | str, str, int, str]] = []
    for node in instance.cluster.nodes:
        for gpu in range(count[node.machine]):
            jobs = held.get((node.id, gpu), [])
            old = all(job in before for job, _ in jobs)
            state = "several jobs" if len(jobs) > 1 else "running before" if old else "placed by the plan"
            if not jobs:
                state = "drained" if node.drained else "idle"
            words = ", ".join(f"{job} {milli}/1000" for job, milli in jobs)
            out.append((node.id, node.domain or "", gpu, state, sum(milli for _, milli in jobs), words))
        if not count[node.machine]:
            out.append((node.id, node.domain or "", "", "drained" if node.drained else "idle", 0, ""))
    return out


def _racks(instance: Instance) -> list[tuple[str, ...]]:
    """Return the nodes by domain, in the order of the file; long columns are split."""
    racks: dict[str | None, list[str]] = {}
    for node in instance.cluster.nodes:
        racks.setdefault(node.domain, []).append(node.id)
    return [tuple(nodes[i : i + RACK_HEIGHT]) for nodes in racks.values() for i in range(0, len(nodes), RACK_HEIGHT)]


def _columns(racks: list[tuple[str, ...]], across: int) -> int:
    """Return the number of racks side by side that brings the map near ``WIDE``, with lines of similar length."""
    deep = max((len(nodes) for nodes in racks), default=1) + 2
    wanted = math.isqrt(int(WIDE * len(racks) * deep / (across + 1))) + 1
    lines = -(-len(racks) // wanted)
    return max(1, -(-len(racks) // max(1, lines)))


def _draw(
    axes: Axes,
    name: str,
    rows: list[tuple[str, str, int | str, str, int, str]],
    racks: list[tuple[str, ...]],
    columns: int,
    across: int,
    *,
    by_node: bool,
) -> Tips:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.patches import Patch, Rectangle

    of_node: dict[str, list[tuple[str, str, int | str, str, int, str]]] = defaultdict(list)
    for row in rows:
        of_node[row[0]].append(row)
    tips: dict[str, str] = {}
    shades = colormaps["viridis"]

    def square(x: float, y: float, colour: object, words: str) -> None:
        gid = f"{name}-{len(tips)}"
        axes.add_patch(Rectangle((x, y), 0.9, 0.9, facecolor=colour, edgecolor="#999999", linewidth=0.3, gid=gid))
        tips[gid] = words

    top = 0.0
    for first in range(0, len(racks), columns):
        line = racks[first : first + columns]
        for c, nodes in enumerate(line):
            left = c * (across + 1)
            domain = of_node[nodes[0]][0][1]
            if domain and len(domain) <= 2 * across + 2:
                axes.text(left, top + 0.6, domain, fontsize=6, clip_on=True)
            elif domain and len(racks) <= columns:  # nothing stands above: room for names on end
                axes.text(left + 0.1, top + 0.6, domain, fontsize=6, rotation=90, va="bottom")
            for y, node in enumerate(nodes, start=1):
                here = of_node[node]
                gpus = [row for row in here if row[2] != ""]
                if by_node or not gpus:
                    held = sum(row[4] for row in gpus) / max(1, 1000 * len(gpus))
                    colour = shades(held) if gpus and by_node else "#FFFFFF"
                    square(left, top + y, colour, f"{node}: {held:.0%} of {len(gpus)} GPUs held")
                    continue
                for row in gpus:
                    square(left + int(row[2]), top + y, STATES[row[3]], f"{node} GPU {row[2]}: {row[5] or row[3]}")
        top += max(len(nodes) for nodes in line) + 2
    axes.set_xlim(-0.5, min(columns, len(racks)) * (across + 1))
    axes.set_ylim(top, -1)
    axes.set_aspect("equal")
    axes.axis("off")
    if by_node:
        axes.figure.colorbar(ScalarMappable(cmap="viridis"), ax=axes, label="part of the node's GPUs held", shrink=0.5)
    else:
        seen = [state for state in STATES if any(row[3] == state for row in rows)]
        axes.legend(
            handles=[Patch(facecolor=STATES[state], edgecolor="#999999", label=state) for state in seen],
            loc="upper left",
            bbox_to_anchor=(0, 0),
            ncols=len(seen),
            frameon=False,
        )
    return tips
