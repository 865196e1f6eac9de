"""From a mix of patterns to jobs on nodes: gangs together in racks, the most valuable jobs first."""

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
class PlacementRequest:
    """A job in an option, one node a bundle. Nothing is promised: whether it may stand there is for others to say."""

    job: int
    option: int
    nodes: tuple[int, ...]


def patterns_of_plan(
    problem: Problem, allocation: Allocation, bundle_groups: BundleGroups, states: NodeStates
) -> Iterator[tuple[int, NodePattern]]:
    """Yield (state, pattern) of every node as ``allocation`` fills it; running jobs are part of the state."""
    state_of = np.full(problem.num_nodes, -1, dtype=np.int64)
    for s, nodes in enumerate(states.nodes):
        state_of[nodes] = s
    per_node: dict[int, NodePattern] = {}
    workers = problem.options.bundle_workers.tolist()
    for job, placement in enumerate(allocation):
        if placement is None or job in problem.running:
            continue
        bundle_group = int(bundle_groups.of_option[placement.option])
        for node in placement.nodes[:: workers[placement.option]]:
            pattern = per_node.setdefault(node, {})
            pattern[bundle_group] = pattern.get(bundle_group, 0) + 1
    for node, pattern in per_node.items():
        yield int(state_of[node]), pattern


def placement_requests(
    problem: Problem,
    bundle_groups: BundleGroups,
    states: NodeStates,
    job_groups: JobGroups,
    used: Iterable[tuple[Key, int]],
) -> Iterator[PlacementRequest]:
    """
    Yield jobs for patterns that are used so many times, in the order in which they are best settled: large parts first.

    Nodes of a state take their patterns rack by rack, so equal patterns lie together, and with them the bundles of a
    bundle group. Of a bundle group the most valuable jobs go first. Where a job has several starts, the first that
    finds room is taken.
    """
    slots = _slots(problem, states, used)
    left = [jobs.tolist() for jobs in job_groups.jobs]
    for members in left:
        members.reverse()  # taken from the end, so in the order of the file
    worth = job_groups.value / job_groups.bundles
    size = np.array([*bundle_groups.sizes, 0])[bundle_groups.level] * bundle_groups.units
    for bundle_group in sorted(slots, key=lambda k: (-int(size[k]), k)):
        rack_slots = _Racks(problem, slots[bundle_group])
        starts = np.flatnonzero(job_groups.bundle_group == bundle_group)
        taken: list[tuple[int, int]] = []  # start, job
        free = len(slots[bundle_group])
        for start in starts[np.lexsort((-job_groups.bundles[starts], -worth[starts]))].tolist():
            members, bundles = left[int(job_groups.job_group[start])], int(job_groups.bundles[start])
            while members and bundles <= free:
                taken.append((start, members.pop()))
                free -= bundles
        for start, job in sorted(taken, key=lambda pair: -int(job_groups.bundles[pair[0]])):
            option = problem.options_of(job)[int(job_groups.place[start])]
            workers = int(problem.options.bundle_workers[option])
            nodes = rack_slots.take(
                int(job_groups.bundles[start]), int(problem.options.workers_per_node[option]) // workers
            )
            if nodes is not None:
                yield PlacementRequest(job, option, nodes)


def _slots(problem: Problem, states: NodeStates, used: Iterable[tuple[Key, int]]) -> dict[int, list[int]]:
    """Nodes by bundle group, one entry a bundle."""
    rack = problem.topology.node_domain
    nodes = [iter(of_state[np.argsort(rack[of_state], kind="stable")].tolist()) for of_state in states.nodes]
    out: dict[int, list[int]] = {}
    for (state, pattern), times in used:
        for _ in range(times):
            node = next(nodes[state])
            for bundle_group, number in pattern:
                out.setdefault(bundle_group, []).extend([node] * number)
    return out


class _Racks:
    """The slots of a bundle group by rack."""

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
            rack_slots = [min(enough, key=lambda d: (len(self._free[d]), d))]
        else:
            rack_slots = sorted(self._free, key=lambda d: (-len(self._free[d]), d))
        chosen: list[int] = []
        on_node: dict[int, int] = {}
        for rack in rack_slots:
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
