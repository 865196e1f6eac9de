"""Jobs placed by class, in arrays: a plan within milliseconds where greedy, one job after the other, is cut short."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from placeopt.heuristics.scores.fit import RATED, STRANDING_WEIGHT, UNTOUCHED_WEIGHT, Stranding
from placeopt.problem import BoolArray, IntArray, Placement, Problem, State
from placeopt.problem.free_capacity import gpu_milli_left, room_decides, times_by_resources

FULL = 1 << 20
"""More than is free of any GPU."""


def reached_by_class(problem: Problem, order: IntArray) -> BoolArray:
    """Return, by position in ``order``, whether `fill_by_class` reaches most of the jobs from there on."""
    single = ~may_be_apart(problem)[problem.job_class[order]]
    left: BoolArray = 2 * np.cumsum(single[::-1])[::-1] >= np.arange(len(order), 0, -1)
    return left & room_decides(problem)


def may_be_apart(problem: Problem) -> BoolArray:
    """Shape (classes,): whether jobs of a class may lie on several nodes in one of their options."""
    options = problem.options
    several = np.fromiter((bool(ways) for ways in options.splits), dtype=bool) | (options.bundles > 1)
    apart: BoolArray = problem.most_of_class(several.astype(np.int64)).astype(bool)
    return apart


def fill_by_class(
    state: State, jobs: IntArray, over: Callable[[], bool], *, part: float = 1.0
) -> tuple[dict[int, Placement], list[int]]:
    """
    Return places for ``jobs`` beside what ``state``, which does not change, holds; and the jobs that were not reached.

    Classes follow one another as their first jobs do. A class takes the same time whatever it brings, so where there
    may be time for a ``part`` of them only, `_largest_first` tells which come first. The jobs of a class go to the
    nodes where one of them strands the fewest GPUs (`Stranding`, with a plain maximum), each node taking as many as it
    can, in the most valuable option that has room. Jobs that several nodes may take together are not reached. ``over``
    is polled before every class.
    """
    problem, placed, missed = state.problem, dict[int, Placement](), list[int]()
    if not room_decides(problem):
        return placed, jobs.tolist()
    room = _Room(state)
    apart = may_be_apart(problem)[problem.job_class[jobs]]
    missed += jobs[apart].tolist()
    classes = _by_class(problem, jobs[~apart])
    if part < 1 and classes:
        classes = _largest_first(problem, classes, max(1, int(part * len(classes))), room.gpu_milli)
    for members in classes:
        if over():
            missed += members
            continue
        for option in sorted(problem.options_of(members[0]), key=lambda o: (-int(problem.options.value[o]), o)):
            found = room.take(option, len(members))
            placed.update(zip(members, found, strict=False))
            members = members[len(found) :]
            if not members:
                break
    return placed, missed


def _largest_first(problem: Problem, classes: list[list[int]], most: int, gpu_milli: int) -> list[list[int]]:
    """
    Return the classes in another order: first ``most`` of them that fill the GPUs, in the order of the queue.

    Those are left out of the first that are worth least, as many as it takes for no more than ``most`` to ask for all
    ``gpu_milli`` that are free. The rest follows by what a class is worth.
    """
    sizes, number = np.array([(len(members), problem.job_class[members[0]]) for members in classes]).T
    options = problem.options
    worth, asked = (problem.most_of_class(amounts)[number] * sizes for amounts in (options.value, options.total_milli))

    def first(least: int) -> IntArray:
        kept = np.flatnonzero(worth >= least)
        chosen: IntArray = kept[np.cumsum(asked[kept]) - asked[kept] < gpu_milli]
        return chosen

    levels = np.unique(worth)
    level = bisect_left(levels[:-1], 1, key=lambda least: len(first(least)) <= most)
    chosen = first(levels[level])[:most].tolist()
    rest = np.setdiff1d(np.argsort(-worth, kind="stable"), chosen, assume_unique=True).tolist()
    return [classes[k] for k in (*chosen, *rest)]


def _by_class(problem: Problem, jobs: IntArray) -> list[list[int]]:
    """Return the jobs of each class, in the order of the first of each."""
    members: dict[int, list[int]] = {}
    for job, k in zip(jobs.tolist(), problem.job_class[jobs].tolist(), strict=True):
        members.setdefault(k, []).append(job)
    return list(members.values())


class _Room:
    """What is free of nodes and GPUs."""

    def __init__(self, state: State) -> None:
        self._problem = problem = state.problem
        self._free, self._left = state.node_free.copy(), gpu_milli_left(state).copy()
        self._idle = np.bincount(problem.gpu_node, self._left, problem.num_nodes).astype(np.int64)
        score = Stranding(problem)
        self._gpu_milli_per = 1000 / np.array([score.cpu_per_gpu, score.memory_per_gpu])
        self.gpu_milli = int(self._idle.sum())
        """Free at the beginning."""

    def take(self, option: int, most: int) -> list[Placement]:
        """Place up to ``most`` jobs in an option; return their places."""
        problem, options = self._problem, self._problem.options
        workers, gpus = int(options.bundle_workers[option]), int(options.bundle_gpus[option])
        milli = 1000 if problem.jobs_per_gpu == 1 else int(options.milli[option])
        demand = options.demand[option] * workers
        rooms = np.where(problem.node_ok(option), times_by_resources(self._free, demand, most), 0)
        if gpus:
            nodes, held = self._on_gpus(option, np.maximum(rooms, 0), milli, most)
            np.subtract.at(self._left, held, milli)
            self._idle -= np.bincount(nodes, minlength=problem.num_nodes) * gpus * milli
        else:
            order = self._ranked(option, np.flatnonzero(rooms > 0))
            nodes = np.repeat(order, rooms[order])[:most]
            held = np.zeros((len(nodes), 0), dtype=np.int64)
        self._free -= np.bincount(nodes, minlength=problem.num_nodes)[:, None] * demand
        pairs = zip(nodes.tolist(), held.tolist(), strict=True)
        return [Placement(option, (node,) * workers, tuple(on)) for node, on in pairs]

    def _on_gpus(self, option: int, rooms: IntArray, milli: int, most: int) -> tuple[IntArray, IntArray]:
        """Return nodes (n,) and GPUs (n, gpus) of up to ``most`` bundles, of which each node has room for ``rooms``."""
        gpus = int(self._problem.options.bundle_gpus[option])
        # what each GPU takes: a single one as many jobs as fit, one of a set a single job
        times = self._left // milli if gpus == 1 else (self._left >= milli).astype(np.int64)
        of_node = np.minimum(rooms, np.bincount(self._problem.gpu_node, times, len(rooms)).astype(np.int64) // gpus)
        nodes = self._ranked(option, np.flatnonzero(of_node > 0))
        nodes = nodes[: int(np.searchsorted(np.cumsum(of_node[nodes]), most)) + 1]
        start = self._problem.node_gpu_start
        width = start[nodes + 1] - start[nodes]
        able = np.repeat(start[nodes] - np.cumsum(width) + width, width) + np.arange(int(width.sum()))
        rank = np.repeat(np.arange(len(nodes)), width)
        order = np.lexsort((np.where(times[able], self._left[able], FULL), rank))  # the fullest GPU of a node first
        able, times = able[order], np.maximum(times[able[order]], 0)
        before = np.cumsum(times) - times
        before -= np.repeat(before[np.cumsum(width) - width], width)  # that GPUs of the same node take
        times = np.clip(np.repeat(of_node[nodes] * gpus, width) - before, 0, times)
        chosen = np.repeat(able, times)[: most * gpus].reshape(-1, gpus)
        return self._problem.gpu_node[chosen[:, 0]], np.sort(chosen, axis=1)

    def _ranked(self, option: int, nodes: IntArray) -> IntArray:
        """Return nodes, those first where a bundle strands the fewest GPUs, then those with the fewest GPUs left."""
        options, idle = self._problem.options, self._idle[nodes]
        gpus = int(options.bundle_gpus[option]) * int(options.milli[option])
        free = self._free[nodes, RATED]
        after = free - options.demand[option, RATED] * options.bundle_workers[option]
        stranded = np.maximum((idle - gpus)[:, None] - after * self._gpu_milli_per, 0)
        stranded -= np.maximum(idle[:, None] - free * self._gpu_milli_per, 0)
        rank = STRANDING_WEIGHT * (stranded[:, 0] + stranded[:, 1]) + UNTOUCHED_WEIGHT * idle
        order: IntArray = nodes[np.argsort(rank, kind="stable")]
        return order
