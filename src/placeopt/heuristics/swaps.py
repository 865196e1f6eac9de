"""
Swaps: bundles of two nodes change places, so that those of a gang lie closer together.

The same jobs run before and after, so the value stays; a swap is kept where the cost falls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.heuristics.candidates import closest, never
from placeopt.problem import Allocation, BoolArray, IntArray, Move, Placement, Problem, State
from placeopt.problem.growth import paths_inside, ways_out
from placeopt.terms.costs.communication import job_cost
from placeopt.terms.objective import Weighted, cost_delta
from placeopt.terms.rules import fits

MOST_BUNDLES = 8
"""Bundles of a node that are swapped, the largest ones: all subsets of them are looked at."""
MOST_PAIRS = 1000
"""Nodes of a gang x other nodes that are looked at for a step, those that save most path first."""
MOST_TRIES = 20
"""Swaps of a step that are made to see what they cost."""


class _Bundle(NamedTuple):
    """A bundle of a job: of ``worker``, or the whole job where that is None."""

    job: int
    worker: int | None


@dataclass(frozen=True, eq=False)
class _Subsets:
    """Subsets of the bundles on a node, and what they hold."""

    bundles: list[_Bundle]
    member: BoolArray  # (subsets, bundles)
    need: IntArray  # (subsets, R + 1): node resources, then thousandths of GPUs
    whole: IntArray  # (subsets,) GPUs held whole
    freed: IntArray  # (subsets,) GPUs that are idle without them
    free: IntArray  # (R + 1,) of the node
    idle: int  # GPUs of the node that are idle now
    gangs: IntArray  # (subsets,) bundles of gangs among them

    def chosen(self, subset: int) -> list[_Bundle]:
        """Return the bundles of a subset."""
        return [self.bundles[i] for i in np.flatnonzero(self.member[subset]).tolist()]


_MEMBERS = [((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(bool) for n in range(MOST_BUNDLES + 1)]


def gathered(
    problem: Problem, allocation: Allocation, weighted: tuple[Weighted, ...], over: Callable[[], bool] = never
) -> Allocation:
    """
    Return an allocation of the same jobs in the same options that costs no more; running jobs stay.

    Gangs whose GPUs all communicate alike are looked at, the costliest first, until ``over()`` is true.
    """
    found, options = [], problem.options
    for job, placement in enumerate(allocation):
        if placement is None or job in problem.running or len(placement.nodes) == 1:
            continue
        communication = problem.class_communication[problem.job_class[job]]
        alike = communication.weight and not communication.edges
        if alike and options.bundles[placement.option] == len(placement.nodes) and options.gpus[placement.option]:
            found.append((-job_cost(problem, job, placement), job))
    if not found or over():
        return allocation
    swaps = _Swaps(problem, allocation, weighted)
    for _, job in sorted(found):
        while not over() and swaps.nearer(job, over):
            pass
    return swaps.state.allocation()


class _Swaps:
    """``state`` holds the jobs where they are now."""

    def __init__(self, problem: Problem, allocation: Allocation, weighted: tuple[Weighted, ...]) -> None:
        self.state, self._problem, self._weighted = State(problem, allocation), problem, weighted
        self._known: dict[int, _Subsets] = {}
        self._paths = _Paths(problem)

    def _placed(self, job: int) -> Placement:
        placement = self.state.placements[job]
        assert placement is not None  # noqa: S101 - swaps only take jobs that are placed
        return placement

    def nearer(self, job: int, over: Callable[[], bool]) -> bool:
        """Move one bundle of a gang nearer to others, in exchange for bundles there; tell whether any could be."""
        options, placement = self._problem.options, self._placed(job)
        gpus, limit = int(options.gpus[placement.option]), int(options.workers_per_node[placement.option])
        nodes, worker, count = np.unique(placement.nodes, return_index=True, return_counts=True)
        saved = self._paths.saved(nodes, count * gpus, gpus)
        saved[:, nodes[count >= limit]] = 0
        order = np.argsort(-saved, axis=None, kind="stable")[:MOST_PAIRS]
        order = order[saved.reshape(-1)[order] > 0]
        tries = MOST_TRIES
        for i, other in zip(*(at.tolist() for at in np.divmod(order, saved.shape[1])), strict=True):
            if over() or tries <= 0:
                return False
            for swap in self._swaps(int(nodes[i]), other, _Bundle(job, int(worker[i])))[:tries]:
                tries -= 1
                if self._try(swap):
                    return True
        return False

    def _swaps(self, node: int, other: int, moved: _Bundle) -> list[dict[_Bundle, int]]:
        """Return the swaps that room allows in which ``moved`` goes from a node to another; simple ones first."""
        here, there = self._subsets(node), self._subsets(other)
        if moved not in here.bundles:
            return []
        with_it = np.flatnonzero(here.member[:, here.bundles.index(moved)])
        given = here.need[with_it][:, None, :] - there.need[None, :, :]
        able = ((given <= there.free) & (-given <= here.free)).all(axis=2)
        able &= there.whole[None, :] <= here.idle + here.freed[with_it][:, None]
        able &= here.whole[with_it][:, None] <= there.idle + there.freed[None, :]
        a, b = np.nonzero(able)
        a = with_it[a]
        gangs = here.gangs[a] + there.gangs[b]
        size = here.member[a].sum(axis=1) + there.member[b].sum(axis=1)
        return [
            dict.fromkeys(here.chosen(int(a[i])), other) | dict.fromkeys(there.chosen(int(b[i])), node)
            for i in np.lexsort((size, gangs))[:MOST_TRIES].tolist()
        ]

    def _try(self, swap: dict[_Bundle, int]) -> bool:
        """Make a swap, from bundles to nodes, if every rule allows it and it saves cost; else nothing changes."""
        state, options = self.state, self._problem.options
        before = {bundle.job: self._placed(bundle.job) for bundle in swap}
        undo: list[Move] = []
        delta = 0
        stay: set[int] = set()
        for job, placement in before.items():
            delta += cost_delta(state, Move(job, None), self._weighted)
            undo.append(state.apply(Move(job, None)))
            gpus = int(options.gpus[placement.option])
            for w in range(len(placement.nodes)):
                if _Bundle(job, w) not in swap and _Bundle(job, None) not in swap:
                    stay.update(placement.gpus[w * gpus : (w + 1) * gpus])
        large = [(-int(options.bundle_gpus[p.option] * options.milli[p.option]), job) for job, p in before.items()]
        for _, job in sorted(large):
            after = self._moved(job, before[job], swap, stay)
            if after is None or not fits(state, job, after):
                delta = 0
                break
            delta += cost_delta(state, Move(job, after), self._weighted)
            undo.append(state.apply(Move(job, after)))
        if delta < 0:
            for placement in before.values():
                for node in (*placement.nodes, *swap.values()):
                    self._known.pop(node, None)
            return True
        while undo:
            state.apply(undo.pop())
        return False

    def _moved(self, job: int, placement: Placement, swap: dict[_Bundle, int], stay: set[int]) -> Placement | None:
        """Return a job's placement after a swap, None where GPUs are missing; ``stay``: GPUs that are not free."""
        option, whole = placement.option, swap.get(_Bundle(job, None))
        if whole is not None:
            chosen = self._choose(option, whole, stay)
            return None if chosen is None else Placement(option, (whole,) * len(placement.nodes), chosen)
        each, nodes, gpus = int(self._problem.options.gpus[option]), list(placement.nodes), list(placement.gpus)
        mine: set[int] = set()
        for w in range(len(nodes)):
            target = swap.get(_Bundle(job, w))
            if target is None:
                continue
            chosen = self._choose(option, target, stay | mine)
            if chosen is None:
                return None
            nodes[w], gpus[w * each : (w + 1) * each] = target, chosen
            mine.update(chosen)
        return Placement(option, tuple(nodes), tuple(gpus))

    def _choose(self, option: int, node: int, taken: Collection[int]) -> tuple[int, ...] | None:
        """Return GPUs for a bundle of an option on a node, none of them ``taken``; None where there are too few."""
        problem, state = self._problem, self.state
        need, milli = int(problem.options.bundle_gpus[option]), int(problem.options.milli[option])
        first, end = problem.first_gpu[node], problem.first_gpu[node + 1]
        free = state.gpu_free_milli[first:end].tolist()
        gpus = [first + i for i, left in enumerate(free) if left >= milli and first + i not in taken]
        if len(gpus) < need:
            return None
        return tuple(gpus) if len(gpus) == need else closest(state, gpus, need)

    def _subsets(self, node: int) -> _Subsets:
        if node not in self._known:
            self._known[node] = self._make_subsets(node)
        return self._known[node]

    def _make_subsets(self, node: int) -> _Subsets:
        problem, state, options = self._problem, self.state, self._problem.options
        found: list[tuple[int, _Bundle, int, tuple[int, ...]]] = []
        for job in state.node_jobs[node]:
            placement = self._placed(job)
            o, each = placement.option, int(options.gpus[placement.option])
            size = -int(options.bundle_gpus[o] * options.milli[o])
            if job in problem.running:
                continue
            if options.bundles[o] == 1:
                found.append((size, _Bundle(job, None), o, placement.gpus))
                continue
            workers = [w for w, at in enumerate(placement.nodes) if at == node]
            found.extend((size, _Bundle(job, w), o, placement.gpus[w * each : (w + 1) * each]) for w in workers)
        found = sorted(found, key=lambda entry: entry[0])[:MOST_BUNDLES]
        option, member = np.array([o for _, _, o, _ in found], dtype=np.int64), _MEMBERS[len(found)]
        first, end = problem.first_gpu[node], problem.first_gpu[node + 1]
        free = state.gpu_free_milli[first:end]
        use = np.zeros((len(found), end - first), dtype=np.int64)
        for i, (_, _, o, gpus) in enumerate(found):
            use[i, [gpu - first for gpu in gpus]] = options.milli[o]
        need = np.column_stack([options.demand[option] * options.bundle_workers[option][:, None], use.sum(axis=1)])
        return _Subsets(
            bundles=[bundle for _, bundle, _, _ in found],
            member=member,
            need=member @ need,
            whole=member @ (use == 1000).sum(axis=1),
            freed=((member @ use == 1000 - free) & (free < 1000)).sum(axis=1),
            free=np.append(state.node_free[node], free.sum()),
            idle=int((free == 1000).sum()),
            gangs=member @ (options.bundles[option] > 1).astype(np.int64),
        )


class _Paths:
    """Path lengths of gangs by the GPUs that they hold of nodes and domains: k of K below an edge cross k (K - k)."""

    def __init__(self, problem: Problem) -> None:
        topology = self._topology = problem.topology
        self._inside = paths_inside(topology)
        self._leave = ways_out(topology)
        self._above: list[IntArray] = []  # the domain of every node, by depth; -1 where there is none
        above = topology.node_domain
        while (above >= 0).any():
            self._above.append(above)
            above = np.where(above >= 0, topology.domain_parent[above], -1)

    def saved(self, nodes: IntArray, gpus: IntArray, moved: int) -> IntArray:
        """
        Shape (n, N): what the path shrinks by if ``moved`` GPUs go from each of ``nodes`` to each node.

        ``gpus``, (n,), are those that the gang holds of ``nodes``. Paths inside a node are as short as any there.
        """
        total, uplink = int(gpus.sum()), self._topology.domain_uplink
        on_node = np.zeros(len(self._leave), dtype=np.int64)
        on_node[nodes] = gpus
        everywhere = np.arange(len(on_node))
        more = self._of_nodes(everywhere, on_node + moved, total) - self._of_nodes(everywhere, on_node, total)
        less = self._of_nodes(nodes, gpus, total) - self._of_nodes(nodes, gpus - moved, total)
        saved: IntArray = less[:, None] - more[None, :]
        for above in self._above:
            inside = above >= 0
            held = np.bincount(above[inside], weights=on_node[inside], minlength=len(uplink)).astype(np.int64)
            crossing = held * (total - held)
            more = uplink * ((held + moved) * (total - held - moved) - crossing)
            less = uplink * (crossing - (held - moved) * (total - held + moved))
            gain = np.where(inside[nodes], less[above[nodes]], 0)[:, None] - np.where(inside, more[above], 0)[None, :]
            saved += np.where(above[nodes][:, None] == above[None, :], 0, gain)
        saved[np.arange(len(nodes)), nodes] = 0
        return saved

    def _of_nodes(self, nodes: IntArray, gpus: IntArray, total: int) -> IntArray:
        """Paths inside nodes and out of them, where a gang of ``total`` GPUs holds ``gpus`` of each."""
        inside = self._inside[self._topology.node_machine[nodes], np.minimum(gpus, self._inside.shape[1] - 1)]
        path: IntArray = self._leave[nodes] * gpus * (total - gpus) + inside
        return path
