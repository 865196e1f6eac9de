"""
The least that others would have to give up for a job to fit: an integer model of one job and of what can be given up.

Things to give up are *items*: a job that leaves, or a GPU that is freed. The model lays the job's workers on nodes as
`placeopt.feasibility.worker_distribution` does, with the items' amounts added to the room. The result is verified
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from placeopt.feasibility.free_capacity import FreeCapacity, queue_use
from placeopt.feasibility.requirement import Requirement
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import UNLIMITED, IntArray

Gain = tuple[int, int]
"""Item, and how much of the amount in question one of it gives back."""


@dataclass
class Items:
    """What may be given up; ``later`` holds pairs (i, j): i may only be given up if j is."""

    prices: list[int]
    most: list[int]
    node: dict[tuple[int, int], list[Gain]] = field(default_factory=dict)  # (node, resource)
    machine: dict[int, list[Gain]] = field(default_factory=dict)  # MB/s of the job's part of the uplink
    domain: dict[int, list[Gain]] = field(default_factory=dict)
    queue: dict[int, list[Gain]] = field(
        default_factory=dict
    )  # column of ``FreeCapacity.queue_room``, of the job's queue
    cells: list[Cell] = field(default_factory=list)
    later: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Cell:
    """
    Alike GPUs of a node that suit the job but cannot take it now.

    For every limit (need, room, gains): ``need`` x GPUs used <= room + what is given back of it.
    """

    node: int
    size: int
    limits: tuple[tuple[int, int, tuple[Gain, ...]], ...]


def making_room(
    now: FreeCapacity,
    free: FreeCapacity,
    requirement: Requirement,
    workers: int,
    items: Items,
    deadline: float = float("inf"),
) -> tuple[LinearModel, IntArray]:
    """
    Return the model of least total price; its columns, shape (items,), are how many of each item are given up.

    ``now`` and ``free`` are the room as it is, and with all items given up: in that one ``requirement`` fits with that
    many ``workers``.
    """
    builder, rows = ModelBuilder(deadline), _Rows()
    given = builder.add_variables(0, np.array(items.most, dtype=np.int64))
    rows.given = given.tolist()
    most = np.minimum(free.workers(requirement), workers)
    if requirement.single_node:
        most = np.where(most == workers, most, 0)
    for split in requirement.splits:
        most = np.where(now.domains(split.level) >= 0, most, 0)
    nodes = np.flatnonzero(most)
    laid = builder.add_variables(np.zeros(len(nodes), dtype=np.int64), most[nodes]).tolist()
    column = dict(zip(nodes.tolist(), laid, strict=True))
    rows.add(laid, [1] * len(laid), workers, workers)
    if requirement.single_node and workers > 1:
        for x, chosen in zip(laid, builder.add_variables(0, 1, count=len(laid)).tolist(), strict=True):
            rows.add([x, chosen], [1, -workers], 0, 0)
    for node, x in column.items():
        for r, need in enumerate(requirement.demand):
            if need:
                rows.at_most([x], [need], int(now.node_free[node, r]), items.node.get((node, r), ()))
    if requirement.gpus:
        _add_gpus(builder, rows, now, requirement, items.cells, column)
    _add_splits(builder, rows, now, requirement, workers, column)
    if requirement.network_mbps and workers > 1:
        _add_links(builder, rows, now, requirement, workers, items, column)
    if requirement.queue >= 0:
        left = now.queue_room[requirement.queue].tolist()
        for r, use in enumerate(queue_use(requirement)):
            rows.at_most([], [], int(left[r]) - workers * use, items.queue.get(r, ()))
    for item, other in items.later:
        rows.add([rows.given[item], rows.given[other]], [1, -1], NO_LOWER, 0)
    rows.add_to(builder)
    builder.set_objective(given, np.array(items.prices, dtype=np.int64), "min")
    return builder.build(), given


class _Rows:
    """Rows as lists, passed to the builder at once: one call for each of thousands takes seconds."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self._row: list[int] = []
        self._column: list[int] = []
        self._coefficient: list[int] = []
        self._lower: list[int] = []
        self._upper: list[int] = []

    def add(self, columns: Sequence[int], coefficients: Sequence[int], lower: int, upper: int) -> None:
        """``lower <= coefficients @ columns <= upper``."""
        self._row.extend([len(self._lower)] * len(columns))
        self._column.extend(columns)
        self._coefficient.extend(coefficients)
        self._lower.append(lower)
        self._upper.append(upper)

    def at_most(
        self, columns: Sequence[int], coefficients: Sequence[int], room: int, gains: Iterable[Gain] = ()
    ) -> None:
        """``coefficients @ columns <= room + what is given back``."""
        back = list(gains)
        given = [self.given[item] for item, _ in back]
        self.add([*columns, *given], [*coefficients, *(-gain for _, gain in back)], NO_LOWER, room)

    def add_to(self, builder: ModelBuilder) -> None:
        builder.add_rows(
            np.array(self._row, dtype=np.int64),
            np.array(self._column, dtype=np.int64),
            np.array(self._coefficient, dtype=np.int64),
            np.array(self._lower, dtype=np.int64),
            np.array(self._upper, dtype=np.int64),
        )


def _add_gpus(
    builder: ModelBuilder,
    rows: _Rows,
    now: FreeCapacity,
    requirement: Requirement,
    cells: Sequence[Cell],
    column: dict[int, int],
) -> None:
    """GPUs of the workers on a node <= those that are usable now + those that become so."""
    usable = np.bincount(now.problem.gpu_node[now.usable(requirement)], minlength=now.problem.num_nodes)
    open_to = [cell for cell in cells if cell.node in column]
    used = builder.add_variables(0, np.array([cell.size for cell in open_to], dtype=np.int64)).tolist()
    taken: dict[int, list[int]] = {}
    for cell, t in zip(open_to, used, strict=True):
        taken.setdefault(cell.node, []).append(t)
        for need, room, gains in cell.limits:
            rows.at_most([t], [need], room, gains)
    for node, x in column.items():
        of_node = taken.get(node, [])
        rows.at_most([x, *of_node], [requirement.gpus, *([-1] * len(of_node))], int(usable[node]))


def _add_splits(
    builder: ModelBuilder,
    rows: _Rows,
    now: FreeCapacity,
    requirement: Requirement,
    workers: int,
    column: dict[int, int],
) -> None:
    """A binary a domain that is in use."""
    for split in requirement.splits:
        below = _below(now.domains(split.level), column)
        used = builder.add_variables(0, 1, count=len(below)).tolist()
        least, most = (1, workers) if split.workers is None else (workers // split.domains,) * 2
        for u, laid in zip(used, below.values(), strict=True):
            rows.add([*laid, u], [*([1] * len(laid)), -most], NO_LOWER, 0)
            rows.add([*laid, u], [*([1] * len(laid)), -least], 0, NO_UPPER)
        rows.add(used, [1] * len(used), split.domains, split.domains)


def _add_links(
    builder: ModelBuilder,
    rows: _Rows,
    now: FreeCapacity,
    requirement: Requirement,
    workers: int,
    items: Items,
    column: dict[int, int],
) -> None:
    """min(k_in, k - k_in) x bandwidth <= room: a binary says which of the two is meant."""
    mbps = requirement.network_mbps
    below: dict[tuple[str, int], list[int]] = {}
    for node, x in column.items():
        below["machine", node] = [x]
        for domain in now.problem.topology.node_ancestors(node):
            below.setdefault(("domain", domain), []).append(x)
    for (kind, at), laid in below.items():
        room = int((now.machine_room if kind == "machine" else now.domain_room)[at, requirement.link_part])
        if room >= UNLIMITED or mbps * (workers // 2) <= room:
            continue
        gains = (items.machine if kind == "machine" else items.domain).get(at, [])
        inside = int(builder.add_variables(0, 1)[0])  # 1: most workers are inside
        rows.at_most([*laid, inside], [*([mbps] * len(laid)), -mbps * workers], max(room, 0), gains)
        rows.at_most([*laid, inside], [*([-mbps] * len(laid)), mbps * workers], max(room, 0), gains)


def _below(domain_of_node: IntArray, column: dict[int, int]) -> dict[int, list[int]]:
    below: dict[int, list[int]] = {}
    for node, x in column.items():
        below.setdefault(int(domain_of_node[node]), []).append(x)
    return below
