"""Where the GPU map has a square, of which colour and with which words; nothing is drawn here."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from placeopt.model import Instance, Plan
from placeopt.readable import plural

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
"""Colour of each state of a GPU."""
EMPTY = "#FFFFFF"
"""Colour of a node without GPUs."""


class GpuRow(NamedTuple):
    """A GPU and what holds it; of a node without GPUs there is one row, with an empty number."""

    node: str
    domain: str
    gpu: int | str
    state: str
    milli_held: int
    jobs: str


class Square(NamedTuple):
    """A square of side 1, at its upper left corner."""

    x: float
    y: float
    colour: str | float
    """A colour, or the share of the node's GPUs that is held."""
    words: str


class RackName(NamedTuple):
    """The name of a domain, at the left end of its base line; ``upright``: reads upwards."""

    x: float
    y: float
    text: str
    upright: bool


@dataclass(frozen=True)
class ClusterLayout:
    """The map, its first line at the top; ``width`` and ``height`` count squares."""

    rows: list[GpuRow]
    squares: list[Square]
    names: list[RackName]
    width: float
    height: float
    by_node: bool
    """Whether a square is a node."""

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return sum(row.gpu != "" for row in self.rows)

    @property
    def states(self) -> list[str]:
        """The states that appear, in the order of ``STATES``."""
        seen = {row.state for row in self.rows}
        return [state for state in STATES if state in seen]

    def caption(self, when: str) -> str:
        """Return what is held ``when``, and what a square is."""
        held = sum(row.milli_held for row in self.rows) / 1000
        unit = "a square is a node, white where it has none" if self.by_node else "a square is a GPU, a row a node"
        return (
            f"{held:,.1f} of {plural(self.gpus, 'GPU')} held, {when}; {unit}. Rest the pointer on one to see its jobs."
        )


def cluster_layout(instance: Instance, plan: Plan | None = None) -> ClusterLayout:
    """Return the map of the GPUs held: by running jobs, or by the plan."""
    rows = _rows(instance, plan)
    racks = _racks(instance)
    by_node = sum(row.gpu != "" for row in rows) > MOST_GPUS
    across = 1 if by_node else max((len(machine.gpus) for machine in instance.cluster.machines), default=1)
    columns = _columns(racks, across)
    of_node: dict[str, list[GpuRow]] = defaultdict(list)
    for row in rows:
        of_node[row.node].append(row)
    squares: list[Square] = []
    names: list[RackName] = []
    top = 0
    for first in range(0, len(racks), columns):
        line = racks[first : first + columns]
        for c, nodes in enumerate(line):
            left = c * (across + 1)
            domain = of_node[nodes[0]][0].domain
            if domain and len(domain) <= 2 * across + 2:
                names.append(RackName(left, top + 0.6, domain, upright=False))
            elif domain and len(racks) <= columns:  # nothing stands above: room for names on end
                names.append(RackName(left + 0.1, top + 0.6, domain, upright=True))
            for y, node in enumerate(nodes, start=top + 1):
                squares += _squares(left, y, of_node[node], by_node=by_node)
        top += max(len(nodes) for nodes in line) + 2
    width = min(columns, len(racks)) * (across + 1)
    return ClusterLayout(rows, squares, names, width, top, by_node)


def _squares(left: int, y: int, here: list[GpuRow], *, by_node: bool) -> list[Square]:
    """Return the squares of a node."""
    gpus = [row for row in here if row.gpu != ""]
    if by_node or not gpus:
        held = sum(row.milli_held for row in gpus) / max(1, 1000 * len(gpus))
        words = f"{here[0].node}: {held:.0%} of {plural(len(gpus), 'GPU')} held"
        return [Square(left, y, held if gpus and by_node else EMPTY, words)]
    return [
        Square(left + int(row.gpu), y, STATES[row.state], f"{row.node} GPU {row.gpu}: {row.jobs or row.state}")
        for row in gpus
    ]


def _rows(instance: Instance, plan: Plan | None) -> list[GpuRow]:
    """Return one row per GPU; a node without GPUs has one row with an empty number."""
    held: dict[tuple[str, int], list[tuple[str, int]]] = defaultdict(list)
    for entry in instance.running if plan is None else plan.placements:
        for assignment in entry.assignments:
            for index, milli in assignment.gpus.items():
                held[assignment.node, int(index)].append((entry.job, milli))
    before = {running.job for running in instance.running}
    gpus_of = instance.cluster.gpus_by_node
    out: list[GpuRow] = []
    for node in instance.cluster.nodes:
        for gpu in range(gpus_of[node.id]):
            jobs = held.get((node.id, gpu), [])
            old = all(job in before for job, _ in jobs)
            state = "several jobs" if len(jobs) > 1 else "running before" if old else "placed by the plan"
            if not jobs:
                state = "drained" if node.drained else "idle"
            words = ", ".join(f"{job} {milli}/1000" for job, milli in jobs)
            out.append(GpuRow(node.id, node.domain or "", gpu, state, sum(milli for _, milli in jobs), words))
        if not gpus_of[node.id]:
            out.append(GpuRow(node.id, node.domain or "", "", "drained" if node.drained else "idle", 0, ""))
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
