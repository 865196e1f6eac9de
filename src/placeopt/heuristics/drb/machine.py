"""Machines as hardware to halve: what some usable GPUs offer whatever runs there, and a node with what runs there."""

from __future__ import annotations

from itertools import accumulate
from typing import TypeVar

import numpy as np

from placeopt.heuristics.drb.hardware_tree import machine_tree
from placeopt.heuristics.drb.split import Half
from placeopt.problem import BoolArray, IntArray, Problem

Weights = tuple[float, float, float]
"""Of path, interference and fragmentation in eq. 2."""
Number = TypeVar("Number", float, np.ndarray)


def utility_weights(problem: Problem) -> Weights:
    """Return the policy's weights of the three terms, in proportion; thirds where it states none."""
    weights = problem.policy.weights
    stated = (weights.communication, weights.interference, weights.fragmentation)
    a, b, c = stated if any(stated) else (1, 1, 1)
    return a / (a + b + c), b / (a + b + c), c / (a + b + c)


class MachineKind:
    """
    The hardware of nodes that differ only in what runs on them; g GPUs each.

    Fragmentation is eq. 5, the mean over the node's sockets of the part that is free, also where a decision is between
    two halves of the node. On sockets of equal size it is then the same for both halves. A mean over the sockets of one
    half instead would draw jobs to the fuller half, where the paper's prototype separates them (5.2.2, job 1).
    """

    def __init__(self, problem: Problem, node: int) -> None:
        here = slice(problem.first_gpu[node], problem.first_gpu[node + 1])
        self.distances = problem.topology.distance[int(problem.topology.node_machine[node])]
        self.tree = machine_tree(self.distances)
        self.levels = np.full_like(self.distances, 3)
        """Shape (g, g): where two GPUs meet: 0 the same GPU, 1 a switch, 2 a socket, 3 the node."""
        for level, part in ((2, problem.gpu_socket[here]), (1, problem.gpu_switch[here])):
            self.levels[(part[:, None] == part) & (part >= 0)] = level
        np.fill_diagonal(self.levels, 0)
        socket, gpus = np.unique(problem.gpu_socket[here], return_inverse=True, return_counts=True)[1:]
        of_socket = int(np.lcm.reduce(gpus))
        self.counts: IntArray = of_socket // gpus[socket]
        """Shape (g,): what each GPU counts in eq. 5 in whole numbers, where all sockets count alike."""
        self.whole = of_socket * len(gpus)
        """The sum over all sockets."""
        self._usable: dict[bytes, UsableGpus] = {}

    def of_usable(self, usable: BoolArray) -> UsableGpus:
        """Return the halves of a machine of which some GPUs, (g,), are usable; they are kept."""
        key = usable.tobytes()
        if key not in self._usable:
            self._usable[key] = UsableGpus(self, usable)
        return self._usable[key]


class UsableGpus:
    """Halves of a machine of which only some GPUs, shape (g,), are usable: what they offer whatever runs there."""

    def __init__(self, kind: MachineKind, usable: BoolArray) -> None:
        self.kind, self.room = kind, kind.tree.sums(usable.astype(np.int64))
        self._usable, self._halves = usable, dict[int, tuple[list[list[int]], list[list[float]], float]]()

    def halves(self, parts: tuple[int, int]) -> tuple[list[list[int]], list[list[float]], float]:
        """
        Return the usable GPUs of two halves, distances inside each, and the mean distance across.

        Inside: the mean from the most central GPU to the nearest n of the half, itself included, by n.
        """
        if parts[0] not in self._halves:
            leaves = [self.kind.tree.leaves(part) for part in parts]
            gpus = [here[self._usable[here]] for here in leaves]
            across = float(self.kind.distances[gpus[0][:, None], gpus[1]].mean())
            self._halves[parts[0]] = [here.tolist() for here in gpus], [self._inside(here) for here in gpus], across
        return self._halves[parts[0]]

    def _inside(self, gpus: IntArray) -> list[float]:
        near = np.sort(self.kind.distances[gpus[:, None], gpus], axis=1).cumsum(axis=1).min(axis=0).tolist()
        return [0.0, 0.0, *(near[count] / count for count in range(1, len(near)))]


class Machine:
    """A node for an option, as `placeopt.heuristics.drb.split.Hardware`; a task is one GPU of a worker."""

    def __init__(self, usable: UsableGpus, share: list[int], excess: list[int], weights: Weights) -> None:
        """``share``: what each GPU counts in eq. 5, 0 where in use; ``excess``: slowdown suffered and caused there."""
        self.tree, self.room = usable.kind.tree, usable.room
        self._usable, self._share, self._excess, self._weights = usable, share, excess, weights
        self._free = sum(share)

    def halves(self, parts: tuple[int, int], leaf_of: dict[int, int]) -> tuple[Half, Half, float]:
        """See ``Hardware``: by the usable GPUs of each, beside those that the job has elsewhere."""
        gpus, inside, across = self._usable.halves(parts)
        free = self._free - sum([self._share[gpu] for gpu in leaf_of.values()])
        most = [[0, *accumulate(sorted([self._share[gpu] for gpu in here], reverse=True))] for here in gpus]

        def half(y: int) -> Half:
            excess, mine, others = sorted([self._excess[gpu] for gpu in gpus[y]]), most[y], most[1 - y]

            def worth(held: int, beside: int) -> float:
                left = (free - mine[held + 1] - others[beside]) / self._usable.kind.whole
                return worth_of(self._weights, excess[held], left)

            return Half(len(excess), inside[y].__getitem__, worth)

        return half(0), half(1), across


def worth_of(weights: Weights, excess: Number, free: Number) -> Number:
    """Return the terms of eq. 2 for slowdowns suffered and caused (thousandths), and for what stays free (eq. 5)."""
    return weights[1] * 1000 / (1000 + excess) + weights[2] / (1 + free)
