"""What bundles of a kind cost on nodes at least, in communication."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.formulations.cost_relaxation.bundle_groups import BundleGroup
from placeopt.formulations.cost_relaxation.node_classes import NodeClasses
from placeopt.model import Split
from placeopt.problem import UNLIMITED, BoolArray, IntArray

FAR = 1 << 58
"""More than any fare; a few of them still fit."""


@dataclass(frozen=True)
class CostLowerBound:
    """Of one kind, by class of nodes: whether bundles may go there, and the least that one of them costs."""

    open: BoolArray  # (P,)
    cost: IntArray  # (P,) weighted path


@dataclass(frozen=True)
class OnNodes:
    """Of one kind, by node: bundles of a job that find room, and paths: of j of them together, and of each beyond."""

    room: IntArray  # (N,)
    path: IntArray  # (N, most room + 1) inside the node and on its way out; ``FAR`` beyond ``room``
    lowest: IntArray  # (N,) least of a bundle on the way out of the node's own domain, ``NodeClasses.own``
    higher: IntArray  # (N,) the same of all other domains above it


class CostLowerBounds:
    """
    Least costs of bundles. With k of a job's K GPUs below an edge of the tree, the edge costs its weight x k (K - k),
    so each of the k costs weight x (K - k), and at least weight x (K - m) where no more than m find room there. The
    pairs on one node are as close as any of its usable GPUs. A class of nodes costs what its best node costs.
    """

    def __init__(self, grounds: NodeClasses) -> None:
        self._grounds = grounds
        self._seen: dict[tuple[bytes, bytes, int], tuple[IntArray, IntArray]] = {}
        topology = grounds.problem.topology
        root = np.array([int(root.min(initial=UNLIMITED)) for root in topology.root], dtype=np.int64)
        self._leave = root[topology.node_machine] + topology.node_uplink  # (N,)

    def of(self, kind: BundleGroup) -> CostLowerBound:
        """Return what bundles of the kind cost, by class of nodes."""
        on, grounds = self.on_nodes(kind), self._grounds
        bundles = np.maximum(np.arange(on.path.shape[1]), 1)
        each = np.where(on.path < FAR, on.path // bundles, FAR)[:, 1:].min(axis=1, initial=FAR)
        best = grounds.least(np.minimum(each + on.lowest + on.higher, FAR), FAR)
        return CostLowerBound(best < FAR, np.where(best < FAR, best * kind.weight, 0))

    def on_nodes(self, kind: BundleGroup) -> OnNodes:
        """Return what bundles of the kind cost, by node."""
        grounds, total = self._grounds, kind.total
        usable, inner = self._usable(kind)
        room = np.minimum(kind.per_node, usable // kind.gpus)
        room[grounds.place < 0] = 0
        beyond = [np.zeros(len(room), dtype=np.int64), np.zeros(len(room), dtype=np.int64)]
        for depth, domain in enumerate(grounds.domains):
            most = self._most(kind, domain, room)
            inside = np.flatnonzero(domain >= 0)
            edge = grounds.problem.topology.domain_uplink[domain[inside]]
            least = kind.gpus * edge * (total - np.minimum(most[domain[inside]], total))
            own = (grounds.own[inside] >= 0) & (depth == 0)
            beyond[0][inside] += np.where(own, least, 0)
            beyond[1][inside] += np.where(own, 0, least)
        j = np.arange(int(room.max(initial=0)) + 1)
        k = j * kind.gpus
        path = self._leave[:, None] * (k * (total - k)) + inner[:, np.minimum(k, inner.shape[1] - 1)]
        return OnNodes(room, np.where(j <= room[:, None], path, FAR), *beyond)

    def _usable(self, kind: BundleGroup) -> tuple[IntArray, IntArray]:
        """Usable GPUs, shape (N,), and least paths between k of them, shape (N, most GPUs of a node + 1)."""
        problem = self._grounds.problem
        options = problem.options
        key = (options.node_class_ok[kind.option].tobytes(), options.gpu_type_ok[kind.option].tobytes(), kind.milli)
        if key not in self._seen:
            usable = self._grounds.usable(kind.option, kind.milli)
            self._seen[key] = (
                np.bincount(problem.gpu_node[usable], minlength=problem.num_nodes),
                self._least(usable),
            )
        return self._seen[key]

    def _least(self, usable: BoolArray) -> IntArray:
        problem, paths = self._grounds.problem, self._grounds.paths
        start, machine = problem.first_gpu, problem.topology.node_machine.tolist()
        widest = int(np.diff(problem.node_gpu_start).max(initial=0))
        out = np.full((problem.num_nodes, widest + 1), UNLIMITED, dtype=np.int64)
        for n in range(problem.num_nodes):
            here = usable[start[n] : start[n + 1]]
            out[n, : len(here) + 1] = paths[machine[n]].of(here)
        return out

    def _most(self, kind: BundleGroup, domain: IntArray, room: IntArray) -> IntArray:
        """
        Shape (D,): the most GPUs of a job that each domain can have, in whatever depth below it.

        ``domain``, (N,), are those of one depth, where what a split says of them is taken in.
        Takes nodes where a split forbids the job out of ``room``.
        """
        problem, inside = self._grounds.problem, domain >= 0
        size = len(problem.topology.domain_uplink)
        rooms = np.zeros(size, dtype=np.int64)
        for above in self._grounds.domains:
            np.add.at(rooms, above[above >= 0], room[above >= 0])
        for split in kind.splits:
            if split.level == "node":  # a node is no domain of the tree
                continue
            named = problem.split_domain[split.level]
            at = inside & (domain == named)  # the domains of this depth that the split counts
            fewest, most = per_domain(kind, split, int(problem.options.bundle_workers[kind.option]))
            room[at & (rooms[domain] < fewest)] = 0
            room[named < 0] = 0
            counted = np.unique(domain[at])
            rooms[counted] = np.minimum(rooms[counted], most)
        return rooms * kind.gpus


def per_domain(kind: BundleGroup, split: Split, bundle_workers: int) -> tuple[int, int]:
    """Fewest and most bundles of a job in a domain of the split that it uses."""
    if split.workers is not None:
        exact = -(-split.workers // bundle_workers)
        return exact, exact
    if split.domains == 1:
        return kind.bundles, kind.bundles
    return 1, max(1, kind.bundles - (split.domains - 1))
