"""From a mix of fillings to jobs on nodes: gangs together in racks, the most valuable jobs first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.formulations.node_patterns.bundle_groups import BundleGroups
from placeopt.formulations.node_patterns.job_groups import JobGroups
from placeopt.formulations.node_patterns.master import Key
from placeopt.formulations.node_patterns.node_states import NodeStates
from placeopt.formulations.node_patterns.pricing import NodePattern
from placeopt.problem import Allocation, IntArray, Problem


@dataclass(frozen=True)
class Wish:
    """A job in an option, one node a bundle. Nothing is promised: whether it may stand there is for others to say."""

    job: int
    option: int
    nodes: tuple[int, ...]


def patterns_of_plan(
    problem: Problem, allocation: Allocation, kinds: BundleGroups, states: NodeStates
) -> Iterator[tuple[int, NodePattern]]:
    """Yield (state, filling) of every node as ``allocation`` fills it; running jobs are part of the state."""
    state_of = np.full(problem.num_nodes, -1, dtype=np.int64)
    for s, nodes in enumerate(states.nodes):
        state_of[nodes] = s
    per_node: dict[int, NodePattern] = {}
    workers = problem.options.bundle_workers.tolist()
    for job, placement in enumerate(allocation):
        if placement is None or job in problem.running:
            continue
        kind = int(kinds.of_option[placement.option])
        for node in placement.nodes[:: workers[placement.option]]:
            filling = per_node.setdefault(node, {})
            filling[kind] = filling.get(kind, 0) + 1
    for node, filling in per_node.items():
        yield int(state_of[node]), filling


def wishes(
    problem: Problem, kinds: BundleGroups, states: NodeStates, crowds: JobGroups, used: Iterable[tuple[Key, int]]
) -> Iterator[Wish]:
    """
    Yield jobs for fillings that are used so many times, in the order in which they are best settled: large parts first.

    Nodes of a state take their fillings rack by rack, so equal fillings lie together, and with them the bundles of a
    kind. Of a kind the most valuable jobs go first. Where a job has several ways, the first that finds room is taken.
    """
    slots = _slots(problem, states, used)
    left = [jobs.tolist() for jobs in crowds.jobs]
    for members in left:
        members.reverse()  # taken from the end, so in the order of the file
    worth = crowds.value / crowds.bundles
    size = np.array([*kinds.sizes, 0])[kinds.level] * kinds.units
    for kind in sorted(slots, key=lambda k: (-int(size[k]), k)):
        racks = _Racks(problem, slots[kind])
        ways = np.flatnonzero(crowds.kind == kind)
        taken: list[tuple[int, int]] = []  # way, job
        free = len(slots[kind])
        for way in ways[np.lexsort((-crowds.bundles[ways], -worth[ways]))].tolist():
            members, bundles = left[int(crowds.crowd[way])], int(crowds.bundles[way])
            while members and bundles <= free:
                taken.append((way, members.pop()))
                free -= bundles
        for way, job in sorted(taken, key=lambda pair: -int(crowds.bundles[pair[0]])):
            option = problem.options_of(job)[int(crowds.place[way])]
            workers = int(problem.options.bundle_workers[option])
            nodes = racks.take(int(crowds.bundles[way]), int(problem.options.workers_per_node[option]) // workers)
            if nodes is not None:
                yield Wish(job, option, nodes)


def _slots(problem: Problem, states: NodeStates, used: Iterable[tuple[Key, int]]) -> dict[int, list[int]]:
    """Nodes by kind, one entry a bundle."""
    rack = problem.topology.node_domain
    nodes = [iter(of_state[np.argsort(rack[of_state], kind="stable")].tolist()) for of_state in states.nodes]
    out: dict[int, list[int]] = {}
    for (state, filling), times in used:
        for _ in range(times):
            node = next(nodes[state])
            for kind, number in filling:
                out.setdefault(kind, []).extend([node] * number)
    return out


class _Racks:
    """The slots of a kind by rack."""

    def __init__(self, problem: Problem, slots: list[int]) -> None:
        rack: IntArray = problem.topology.node_domain
        self._free: dict[int, list[int]] = {}
        for node in sorted(slots):
            self._free.setdefault(int(rack[node]), []).append(node)

    def take(self, bundles: int, per_node: int) -> tuple[int, ...] | None:
        """
        Return nodes for a job: of the rack with least slots that takes it whole, else of those with most.

        None if it may not lie so densely; the slots that were looked at are given up. None, too, where an earlier job
        gave up so many.
        """
        if bundles == 1:
            return (self._pop(next(iter(self._free))),) if self._free else None
        enough = [d for d, nodes in self._free.items() if len(nodes) >= bundles]
        if enough:
            racks = [min(enough, key=lambda d: (len(self._free[d]), d))]
        else:
            racks = sorted(self._free, key=lambda d: (-len(self._free[d]), d))
        chosen: list[int] = []
        on_node: dict[int, int] = {}
        for rack in racks:
            while rack in self._free and len(chosen) < bundles:
                node = self._pop(rack)
                on_node[node] = on_node.get(node, 0) + 1
                if on_node[node] <= per_node:
                    chosen.append(node)
        return tuple(chosen) if len(chosen) == bundles else None

    def _pop(self, rack: int) -> int:
        node = self._free[rack].pop()
        if not self._free[rack]:
            del self._free[rack]
        return node
