"""A node as it is now, for a bundle of a job: GPUs by bi-partitioning, and every term of eq. 2 for a set of GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placeopt.heuristics.drb.hardware_tree import machine_tree
from placeopt.heuristics.drb.split import Hardware, assign
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.terms.costs.horus import excess_table

Weights = tuple[float, float, float]
"""Of path, interference and fragmentation in eq. 2."""


class MachineKind:
    """The hardware of nodes that differ only in what runs on them; g GPUs each."""

    def __init__(self, problem: Problem, node: int) -> None:
        here = slice(problem.first_gpu[node], problem.first_gpu[node + 1])
        self.distances = problem.topology.distance[int(problem.topology.node_machine[node])]
        self.tree = machine_tree(self.distances)
        levels = np.full_like(self.distances, 3)
        for level, part in ((2, problem.gpu_socket[here]), (1, problem.gpu_switch[here])):
            levels[(part[:, None] == part) & (part >= 0)] = level
        np.fill_diagonal(levels, 0)
        self.levels: list[list[int]] = levels.tolist()
        """Shape (g, g): where two GPUs meet: 0 the same GPU, 1 a switch, 2 a socket, 3 the node."""
        socket, gpus = np.unique(problem.gpu_socket[here], return_inverse=True, return_counts=True)[1:]
        of_socket = int(np.lcm.reduce(gpus, initial=1))
        self.share: list[int] = (of_socket // gpus[socket]).tolist()
        """Shape (g,): what each GPU counts in eq. 5 in whole numbers, where all sockets count alike."""
        self.whole = of_socket * len(gpus)
        """The sum over all sockets."""


class CoRunner(NamedTuple):
    """Who runs beside a bundle on a node of g GPUs."""

    meeting: list[int]  # (g,) level at which each GPU meets the nearest of its own
    suffered: Sequence[int]  # (4,) by level, thousandths by which it slows the bundle where they meet
    caused: Sequence[int]  # (4,) thousandths by which the bundle slows it


class NodeNow:
    """A node for a bundle of an option. GPUs are those of the node, by index."""

    def __init__(
        self, state: State, option: int, node: int, usable: BoolArray, kind: MachineKind, weights: Weights
    ) -> None:
        """``usable``, (at least g,): slots whose GPUs the bundle may have."""
        self.problem, self.option, self.kind, self._weights = state.problem, option, kind, weights
        size, first = len(kind.share), state.problem.first_gpu[node]
        self.usable: BoolArray = usable[:size]
        jobs = state.gpu_jobs[first : first + size].tolist()
        self.share = [0 if count else share for count, share in zip(jobs, kind.share, strict=True)]
        """Shape (g,): of idle GPUs, what each counts in eq. 5."""
        curve = self.problem.policy.interference.model == "curve"
        self.co_runners = list((_on_gpus if curve else _on_node)(state, option, node, kind.levels))

    def bipartitioned(self, count: int, traffic: IntArray | None = None) -> tuple[int, ...] | None:
        """Return GPUs for so many tasks, by what they send to each other (see ``split.assign``); None without room."""
        worth = np.zeros(len(self.usable))
        for gpu in self.usable.nonzero()[0].tolist():
            worth[gpu] = self.worth([gpu])
        hardware = Hardware(self.kind.tree, self.usable.astype(np.int64), worth)
        gpus = assign(count, traffic, hardware, self._weights[0])
        return None if gpus is None else tuple(gpus)

    def worth(self, gpus: Sequence[int]) -> float:
        """Return the terms of eq. 2 for co-runners and fragmentation; the latter by eq. 5 once the GPUs are held."""
        met = [(one, min([one.meeting[gpu] for gpu in gpus])) for one in self.co_runners]
        felt = [one.suffered[level] for one, level in met]
        by_pair = self.problem.policy.interference.model == "pairwise"
        excess = (sum(felt) if by_pair else max(felt, default=0)) + sum([one.caused[level] for one, level in met])
        return self._weights[1] * 1000 / (1000 + excess) + self._weights[2] / (1 + self.free_without(gpus))

    def free_without(self, gpus: Sequence[int]) -> float:
        """Return eq. 5, the mean over the node's sockets of the part that is free, once some GPUs are held."""
        return (sum(self.share) - sum([self.share[gpu] for gpu in gpus])) / self.kind.whole


def _on_node(state: State, option: int, node: int, levels: list[list[int]]) -> Iterator[CoRunner]:
    """Yield who holds GPUs of a node; a pair of profiles counts at the closest part that the two share."""
    problem, first, slowdown = state.problem, state.problem.first_gpu[node], state.problem.neighbours.slowdown
    profile = int(problem.class_profile[problem.options.job_class[option]])
    for (other, gpus), count in state.tenants[node].items() if state.tenants else ():
        suffered = caused = [0, 0, 0, 0]
        if profile >= 0 <= other:
            suffered, caused = slowdown[profile][other], slowdown[other][profile]
        meeting = [min(levels_of) for levels_of in zip(*[levels[gpu - first] for gpu in gpus], strict=True)]
        yield from [CoRunner(meeting, suffered, caused)] * count


def _on_gpus(state: State, option: int, node: int, levels: list[list[int]]) -> Iterator[CoRunner]:
    """Yield the jobs on each GPU of a node: under ``curve`` they count there, each by itself."""
    problem, first, more = state.problem, state.problem.first_gpu[node], int(state.problem.options.utilisation[option])
    for gpu in range(len(levels)):
        jobs, used = int(state.gpu_jobs[first + gpu]), int(state.gpu_utilisation[first + gpu])
        table = excess_table(problem.policy.interference.curve, used + more)
        after = int(table[used + more])
        before = int(table[used]) if jobs > 1 else 0
        yield from [CoRunner(levels[gpu], (after, 0, 0, 0), (after - before, 0, 0, 0))] * jobs
