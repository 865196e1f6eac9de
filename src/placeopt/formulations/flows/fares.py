"""What one bundle of a kind costs on a class of nodes at least, in communication."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.formulations.flows.grounds import Grounds
from placeopt.formulations.flows.kinds import Kind
from placeopt.model import Split
from placeopt.problem import UNLIMITED, BoolArray, IntArray

FAR = UNLIMITED
"""More than any fare."""


@dataclass(frozen=True)
class Fare:
    """Of one kind, by class of nodes: whether bundles may go there, and the least that one of them costs."""

    open: BoolArray  # (P,)
    cost: IntArray  # (P,) weighted path


class Fares:
    """
    Least costs of bundles. With k of a job's K GPUs below an edge of the tree, the edge costs its weight x k (K - k),
    so each of the k costs weight x (K - k), and at least weight x (K - m) where no more than m find room there. The
    pairs on one node are as close as any of its usable GPUs. A class of nodes costs what its best node costs.
    """

    def __init__(self, grounds: Grounds) -> None:
        self._grounds = grounds
        self._seen: dict[tuple[bytes, bytes, int], tuple[IntArray, IntArray]] = {}
        topology = grounds.problem.topology
        root = np.array([int(root.min(initial=UNLIMITED)) for root in topology.root], dtype=np.int64)
        self._leave = root[topology.node_machine] + topology.node_uplink  # (N,)

    def of(self, kind: Kind) -> Fare:
        """Return what bundles of the kind cost, by class of nodes."""
        grounds, total = self._grounds, kind.total
        usable, least = self._on_nodes(kind)
        room = np.minimum(kind.per_node, usable // kind.gpus)  # (N,)
        room[grounds.place < 0] = 0
        path = np.full(len(room), FAR, dtype=np.int64)
        for j in range(1, int(room.max(initial=0)) + 1):
            k = j * kind.gpus
            here = room >= j
            each = (self._leave[here] * k * (total - k) + least[here, k]) // j
            path[here] = np.minimum(path[here], each)
        for uplink, domain, most, allowed in self._above(kind, room):
            room[~allowed] = 0
            inside = domain >= 0
            path[inside] += kind.gpus * uplink[domain[inside]] * (total - np.minimum(most[domain[inside]], total))
        path[room == 0] = FAR
        best = grounds.least(path, FAR)
        return Fare(best < FAR, np.where(best < FAR, best * kind.weight, 0))

    def _on_nodes(self, kind: Kind) -> tuple[IntArray, IntArray]:
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

    def _above(self, kind: Kind, room: IntArray) -> Iterator[tuple[IntArray, IntArray, IntArray, BoolArray]]:
        """
        Yield, by depth: path weights of domains, (D,); the domain of each node, (N,); the most GPUs of a job that each
        domain can have, (D,); and on which nodes the job may be, (N,).
        """
        problem = self._grounds.problem
        uplink = problem.topology.domain_uplink
        for domain in self._grounds.domains:
            inside = domain >= 0
            rooms = np.bincount(domain[inside], weights=room[inside], minlength=len(uplink)).astype(np.int64)
            allowed = np.ones(len(room), dtype=bool)
            for split in kind.splits:
                if split.level == "node":  # a node is no domain of the tree
                    continue
                named = problem.split_domain[split.level]
                at = inside & (domain == named)  # the domains of this depth that the split counts
                fewest, most = _per_domain(kind, split, int(problem.options.bundle_workers[kind.option]))
                counted = np.unique(domain[at])
                allowed[at] = rooms[domain[at]] >= fewest
                rooms[counted] = np.minimum(rooms[counted], most)
                allowed &= named >= 0
            yield uplink, domain, rooms * kind.gpus, allowed


def _per_domain(kind: Kind, split: Split, bundle_workers: int) -> tuple[int, int]:
    """Fewest and most bundles of a job in a domain of the split that it uses."""
    if split.workers is not None:
        exact = -(-split.workers // bundle_workers)
        return exact, exact
    if split.domains == 1:
        return kind.bundles, kind.bundles
    return 1, max(1, kind.bundles - (split.domains - 1))
