"""From plans to patterns and back: what a plan puts on each node, and the jobs on nodes that a mix stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.formulations.node_patterns.groups import BundleGroups, JobGroups, NodeStates
from placeopt.formulations.node_patterns.master import EXACT, Key
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
    number: np.ndarray,
) -> Iterator[PlacementRequest]:
    """
    Yield the jobs of patterns, each with how often it is used; those with large bundles first, which fit worst later.

    ``number``, shape (W,), is how many jobs the mix starts in each start. These go first: a job that could run in
    several starts takes the one that the mix gives it, not the one worth most by itself. Slots that are left then go to
    the most valuable jobs that are left, of which each takes the first start with room.

    Nodes of a state take their patterns rack by rack, so equal patterns lie together, and with them the bundles of a
    bundle group.
    """
    slots = _slots(problem, states, used)
    starts = _jobs_of_starts(bundle_groups, job_groups, {k: len(nodes) for k, nodes in slots.items()}, number)
    for bundle_group, taken in starts:
        rack_slots = _Racks(problem, slots[bundle_group])
        for start, job in sorted(taken, key=lambda pair: -int(job_groups.bundles[pair[0]])):
            option = problem.options_of(job)[int(job_groups.place[start])]
            together = int(job_groups.together[start])
            workers = int(problem.options.bundle_workers[option]) * together
            nodes = rack_slots.take(
                int(job_groups.bundles[start]), int(problem.options.workers_per_node[option]) // workers
            )
            if nodes is not None:
                yield PlacementRequest(job, option, tuple(node for node in nodes for _ in range(together)))


def _jobs_of_starts(
    bundle_groups: BundleGroups, job_groups: JobGroups, free: dict[int, int], number: np.ndarray
) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return (start, job) pairs by bundle group, those with the largest bundles first; ``free``: slots of each."""
    left = [jobs.tolist() for jobs in job_groups.jobs]
    for members in left:
        members.reverse()  # taken from the end, so in the order of the file
    worth = job_groups.value / job_groups.bundles
    size = np.array([*bundle_groups.sizes, 0])[bundle_groups.level] * bundle_groups.units
    out: list[tuple[int, list[tuple[int, int]]]] = [(k, []) for k in sorted(free, key=lambda k: (-int(size[k]), k))]
    mixed = np.floor(number + EXACT).astype(np.int64)
    for most in (mixed, job_groups.size[job_groups.job_group]):
        for bundle_group, taken in out:
            starts = np.flatnonzero(job_groups.bundle_group == bundle_group)
            keys = (-job_groups.bundles[starts], job_groups.charge[starts], -worth[starts])
            for start in starts[np.lexsort(keys)].tolist():
                members, bundles = left[int(job_groups.job_group[start])], int(job_groups.bundles[start])
                count = min(len(members), free[bundle_group] // bundles, int(most[start]))
                taken.extend((start, members.pop()) for _ in range(count))
                free[bundle_group] -= count * bundles
    return out


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
