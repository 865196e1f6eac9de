"""
The least that others would have to give up for a job to fit: an integer model of one job and of what can be given up.

Things to give up are *items*: a job that leaves, or a GPU that is freed. The model lays the job's workers on nodes as
`placeopt.problem.worker_distribution` does, with the items' amounts added to the room. The result is verified
there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from placeopt.deadline import FOREVER, Deadline
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
    queue: dict[tuple[int, int], list[Gain]] = field(default_factory=dict)
    """(queue, column of ``Problem.queue_tree``): what the queue's own jobs give back."""
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
    deadline: Deadline = FOREVER,
) -> tuple[LinearModel, IntArray]:
    """
    Return the model of least total price; its columns, shape (items,), are how many of each item are given up.

    ``now`` and ``free`` are the room as it is, and with all items given up: in that one ``requirement`` fits with that
    many ``workers``.
    """
    builder = ModelBuilder(deadline.at)
    given = builder.add_variables(0, np.array(items.most, dtype=np.int64))
    _RoomRows(builder, given.tolist(), now, requirement, workers, items).add(free)
    builder.set_objective(given, np.array(items.prices, dtype=np.int64), "min")
    return builder.build(), given


class _RoomRows:
    """The model's rows, as lists that the builder gets at once: one call for each of thousands takes seconds."""

    def __init__(
        self,
        builder: ModelBuilder,
        given: list[int],
        now: FreeCapacity,
        requirement: Requirement,
        workers: int,
        items: Items,
    ) -> None:
        self.builder, self.given, self.now = builder, given, now
        self.requirement, self.workers, self.items = requirement, workers, items
        self.column: dict[int, int] = {}  # node -> column of its workers
        self._terms: list[tuple[int, int, int]] = []  # row, column, coefficient
        self._bounds: list[tuple[int, int]] = []  # lower, upper

    def add(self, free: FreeCapacity) -> None:
        """Add all columns and rows; ``free`` is the room with all items given up."""
        now, requirement, workers, items = self.now, self.requirement, self.workers, self.items
        most = np.minimum(free.workers(requirement), workers)
        if requirement.on_one_node:
            most = np.where(most == workers, most, 0)
        for split in requirement.splits:
            most = np.where(now.domains(split.level) >= 0, most, 0)
        nodes = np.flatnonzero(most)
        laid = self._integers(most[nodes].tolist())
        self.column = dict(zip(nodes.tolist(), laid, strict=True))
        self._row(laid, [1] * len(laid), workers, workers)
        if requirement.on_one_node and workers > 1:
            for x, chosen in zip(laid, self._integers([1] * len(laid)), strict=True):
                self._row([x, chosen], [1, -workers], 0, 0)
        for node, x in self.column.items():
            for r, need in enumerate(requirement.demand):
                if need:
                    self._at_most([x], [need], int(now.of_resource(r)[node]), items.node.get((node, r), ()))
        if requirement.gpus:
            self._add_gpus()
        self._add_splits()
        if requirement.network_mbps and workers > 1:
            self._add_links()
        if requirement.queue >= 0:
            for r, use in queue_use(requirement):
                if use:
                    self._add_queues(r, workers * use)
        for item, other in items.later:
            self._row([self.given[item], self.given[other]], [1, -1], NO_LOWER, 0)
        terms = np.array(self._terms, dtype=np.int64).reshape(-1, 3)
        bounds = np.array(self._bounds, dtype=np.int64).reshape(-1, 2)
        self.builder.add_rows(*terms.T, *bounds.T)

    def _integers(self, most: list[int]) -> list[int]:
        """Return new columns from 0 to ``most``."""
        columns: list[int] = self.builder.add_variables(0, np.array(most, dtype=np.int64)).tolist()
        return columns

    def _row(self, columns: Sequence[int], coefficients: Sequence[int], lower: int, upper: int) -> None:
        """``lower <= coefficients @ columns <= upper``."""
        row = len(self._bounds)
        self._terms.extend((row, x, c) for x, c in zip(columns, coefficients, strict=True))
        self._bounds.append((lower, upper))

    def _at_most(
        self, columns: Sequence[int], coefficients: Sequence[int], room: int, gains: Iterable[Gain] = ()
    ) -> None:
        """``coefficients @ columns <= room + what is given back``."""
        back = list(gains)
        given = [self.given[item] for item, _ in back]
        self._row([*columns, *given], [*coefficients, *(-gain for _, gain in back)], NO_LOWER, room)

    def _add_gpus(self) -> None:
        """GPUs of the workers on a node <= those that are usable now + those that become so."""
        problem = self.now.problem
        usable = np.bincount(problem.gpu_node[self.now.usable(self.requirement)], minlength=problem.num_nodes)
        open_to = [cell for cell in self.items.cells if cell.node in self.column]
        taken: dict[int, list[int]] = {}
        for cell, t in zip(open_to, self._integers([cell.size for cell in open_to]), strict=True):
            taken.setdefault(cell.node, []).append(t)
            for need, room, gains in cell.limits:
                self._at_most([t], [need], room, gains)
        for node, x in self.column.items():
            of_node = taken.get(node, [])
            self._at_most([x, *of_node], [self.requirement.gpus, *([-1] * len(of_node))], int(usable[node]))

    def _add_queues(self, r: int, use: int) -> None:
        """
        Add limits of column ``r`` of the job's queue, in which it takes ``use``, and of those above.

        What each counts with more than now above it is a column, so that it is never less than what it keeps.
        """
        tree, used, mine = self.now.problem.queue_tree, self.now.queue_used[:, r], self.requirement.queue
        above, changes = tree.above, defaultdict[int, list[tuple[int, int]]](list)
        for queue in sorted(range(len(used)), key=lambda q: -len(above[q])):
            changes[queue] += [(self.given[item], -gain) for item, gain in self.items.queue.get((queue, r), ())]
            columns, each = [x for x, _ in changes[queue]], [c for _, c in changes[queue]]
            more = use if queue == mine else 0
            if queue in above[mine]:
                self._at_most(columns, each, int(tree.ceilings[queue, r] - used[queue]) - more)
            if (columns or more) and len(above[queue]) > 1:
                counted = max(int(used[queue]), int(tree.kept[queue, r]))
                change = int(self.builder.add_variables(int(tree.kept[queue, r]) - counted, use, count=1)[0])
                self._row([*columns, change], [*each, -1], NO_LOWER, counted - int(used[queue]) - more)
                changes[above[queue][1]].append((change, 1))

    def _add_splits(self) -> None:
        """Add a binary for each domain that is in use."""
        for split in self.requirement.splits:
            domain, below = self.now.domains(split.level), defaultdict[int, list[int]](list)
            for node, x in self.column.items():
                below[int(domain[node])].append(x)
            used = self._integers([1] * len(below))
            least, most = (1, self.workers) if split.workers is None else (self.workers // split.domains,) * 2
            for u, laid in zip(used, below.values(), strict=True):
                self._row([*laid, u], [*([1] * len(laid)), -most], NO_LOWER, 0)
                self._row([*laid, u], [*([1] * len(laid)), -least], 0, NO_UPPER)
            self._row(used, [1] * len(used), split.domains, split.domains)

    def _add_links(self) -> None:
        """min(k_in, k - k_in) x bandwidth <= room: a binary says which of the two is meant."""
        now, workers, mbps = self.now, self.workers, self.requirement.network_mbps
        below: dict[tuple[str, int], list[int]] = {}
        for node, x in self.column.items():
            below["machine", node] = [x]
            for domain in now.problem.topology.node_ancestors(node):
                below.setdefault(("domain", domain), []).append(x)
        for (kind, at), laid in below.items():
            room = int((now.machine_room if kind == "machine" else now.domain_room)[at, self.requirement.link_part])
            if room >= UNLIMITED or mbps * (workers // 2) <= room:
                continue
            gains = (self.items.machine if kind == "machine" else self.items.domain).get(at, [])
            inside = self._integers([1])[0]  # 1: most workers are inside
            self._at_most([*laid, inside], [*([mbps] * len(laid)), -mbps * workers], max(room, 0), gains)
            self._at_most([*laid, inside], [*([-mbps] * len(laid)), mbps * workers], max(room, 0), gains)
