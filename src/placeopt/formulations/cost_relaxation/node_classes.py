"""Classes of nodes: alike in how close their free GPUs are, in how full their domains are, and in what is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeopt.problem import UNLIMITED, BoolArray, FragmentationLevel, IntArray, Problem, State
from placeopt.problem.classes import group_by_key
from placeopt.problem.free_capacity import gpu_milli_left, gpus_with_room

MOST_CLASSES = 512
"""Most classes; where there would be more, domains no longer distinguish nodes, then sockets."""


@dataclass(frozen=True)
class NodeClasses:
    """N nodes of P classes, with what is free on them in ``state``."""

    state: State
    paths: list[LeastPaths]  # per machine type
    place: IntArray  # (N,) class of every node, -1 where nothing can start
    idle: IntArray  # (N,) GPUs that no job holds
    free_milli: IntArray  # (N,)
    domains: list[IntArray]  # per depth from the node up: (N,) network domain, -1 beyond the top

    @property
    def problem(self) -> Problem:
        """The round."""
        return self.state.problem

    @cached_property
    def own(self) -> IntArray:
        """Shape (N,): the domain of each node that has no domains below it; -1 where a node stands beside domains."""
        topology = self.problem.topology
        above = np.zeros(len(topology.domain_parent) + 1, dtype=bool)  # the last is of nodes without a domain
        above[topology.domain_parent[topology.domain_parent >= 0]] = True
        return np.where(above[topology.node_domain], -1, topology.node_domain)

    @cached_property
    def count(self) -> int:
        """P."""
        return int(self.place.max(initial=-1)) + 1

    @cached_property
    def most_idle(self) -> IntArray:
        """Shape (P,): GPUs that no job holds on a node of each class; on all of them as many."""
        return -self.least(-self.idle, 0)

    def summed(self, per_node: IntArray) -> IntArray:
        """Shape (P,): sums over the nodes of each class."""
        here = self.place >= 0
        out = np.zeros(self.count, dtype=np.int64)
        np.add.at(out, self.place[here], per_node[here])
        return out

    def least(self, per_node: IntArray, empty: int) -> IntArray:
        """Shape (P,): the least over the nodes of each class, ``empty`` at most."""
        here = self.place >= 0
        out = np.full(self.count, empty, dtype=np.int64)
        np.minimum.at(out, self.place[here], per_node[here])
        return out

    def usable(self, option: int, milli: int) -> BoolArray:
        """Shape (G,): GPUs that could take ``milli`` of a job in the option, by mask, share and number of jobs."""
        problem, state = self.problem, self.state
        return (
            problem.gpu_ok(option)
            & problem.node_ok(option)[problem.gpu_node]
            & gpus_with_room(
                problem,
                state.gpu_free_milli,
                None,
                state.gpu_jobs,
                milli=milli,
                memory_mib=0,
                jobs_per_gpu=problem.jobs_per_gpu,
            )
        )


def make_node_classes(state: State, check_time: Callable[[], None]) -> NodeClasses:
    """Fold the nodes of ``state``; ``check_time`` is called before the paths of a pattern of GPUs, and may raise."""
    problem, topology = state.problem, state.problem.topology
    tables = {id(distance): distance for distance in topology.distance}  # machine types share them
    of = {name: LeastPaths(distance) for name, distance in tables.items()}
    paths = [of[id(distance)] for distance in topology.distance]
    free_gpu = state.gpu_jobs == 0
    idle = np.bincount(problem.gpu_node[free_gpu], minlength=problem.num_nodes)
    free_milli = np.bincount(problem.gpu_node, gpu_milli_left(state), problem.num_nodes).astype(np.int64)
    able = (free_milli > 0) | ~np.array(problem.shares_bind)
    domains = _domains(problem)
    least, pattern = least_paths(problem, paths, free_gpu, check_time)
    shapes = np.array(group_by_key(row.tobytes() for row in least)[0], dtype=np.int64)[pattern]
    closeness = [_sums(d, idle) for d in domains]
    used = [used_idle(state, level, free) for level, free in zip(problem.levels, state.level_free, strict=True)]
    keys = [problem.node_class, topology.node_machine, idle, *used]
    for finer in ([shapes, *closeness], [shapes], []):
        place = np.unique(np.stack([*keys, *finer]), axis=1, return_inverse=True)[1].reshape(-1)
        place = np.where(able, place, -1)
        if len(np.unique(place)) <= MOST_CLASSES:
            break
    _, dense = np.unique(place, return_inverse=True)
    place = dense.reshape(-1) - int((place < 0).any())
    return NodeClasses(state, paths, np.where(able, place, -1), idle, free_milli, domains)


def _domains(problem: Problem) -> list[IntArray]:
    topology = problem.topology
    out: list[IntArray] = []
    at = topology.node_domain
    while (at >= 0).any():
        out.append(at)
        at = np.where(at >= 0, topology.domain_parent[at], -1)
    return out


def least_paths(
    problem: Problem, paths: list[LeastPaths], usable: BoolArray, check_time: Callable[[], None] = lambda: None
) -> tuple[IntArray, IntArray]:
    """
    Return least paths between k of the ``usable`` GPUs, (G,), of a node, and which of them are each node's.

    Shapes (patterns, most GPUs of a node + 1), a row for all nodes of a machine with the same GPUs usable, and (N,).
    """
    widths = np.diff(problem.node_gpu_start)
    widest = int(widths.max(initial=0))
    slot = np.arange(widest)
    exists = slot < widths[:, None]
    at = np.minimum(problem.node_gpu_start[:-1, None] + slot, max(problem.num_gpus - 1, 0))
    here = exists & usable[at] if problem.num_gpus else exists
    number = {id(of): i for i, of in enumerate(paths)}
    table = np.array([number[id(of)] for of in paths], dtype=np.int64)[problem.topology.node_machine]
    keys = np.concatenate((table[:, None].view(np.uint8), np.packbits(here, axis=1)), axis=1)
    group, first = group_by_key(key.tobytes() for key in keys)
    out = np.full((len(first), widest + 1), UNLIMITED, dtype=np.int64)
    for row, n in enumerate(first):
        check_time()
        out[row, : widths[n] + 1] = paths[table[n]].of(here[n, : widths[n]])
    return out, np.asarray(group, dtype=np.int64)


def _sums(domain: IntArray, idle: IntArray) -> IntArray:
    """Shape (N,): idle GPUs in the domain of each node; -1 without one."""
    inside = domain >= 0
    total = np.bincount(domain[inside], weights=idle[inside]).astype(np.int64)
    out = np.full(len(domain), -1, dtype=np.int64)
    out[inside] = total[domain[inside]]
    return out


def used_idle(state: State, level: FragmentationLevel, free: IntArray) -> IntArray:
    """Shape (N,): idle GPUs of each node in domains of the level that are used already; ``free`` of every domain."""
    domain = level.gpu_to_domain
    used = (domain >= 0) & (state.gpu_jobs == 0) & (free < level.total)[domain]
    return np.bincount(state.problem.gpu_node[used], minlength=state.problem.num_nodes)


MOST_SUBSETS = 1 << 12
"""Subsets of a machine's GPUs, up to which all are looked at; where there are more, pairs are bounded one by one."""


class LeastPaths:
    """
    Least sum of distances over all pairs of k usable GPUs of one machine, for every k and any usable set.

    Exact up to ``MOST_SUBSETS`` subsets. Beyond, a lower bound: each of the k has at least the distances to its k - 1
    closest, and the k GPUs with the least of these sums count, each pair half for either end.

    ``distance``: Shape (g, g), between the machine's GPUs.
    """

    def __init__(self, distance: IntArray) -> None:
        self._distance = distance
        self._cache: dict[bytes, IntArray] = {}
        size = len(distance)
        self._is_exact = 1 << size <= MOST_SUBSETS
        if self._is_exact:
            self._masks = np.arange(1 << size, dtype=np.int64)
            member = (self._masks[:, None] >> np.arange(size)) & 1  # (2^g, g)
            self._count: IntArray = member.sum(axis=1)
            self._path: IntArray = np.einsum("mi,ij,mj->m", member, distance, member) // 2

    def of(self, usable: BoolArray) -> IntArray:
        """Shape (g + 1,): by k, of the GPUs where ``usable``, (g,), is true; ``UNLIMITED`` where there are fewer."""
        key = usable.tobytes()
        if key not in self._cache:
            self._cache[key] = self._least(usable) if self._is_exact else self._bounded(usable)
        return self._cache[key]

    def _least(self, usable: BoolArray) -> IntArray:
        outside = int((~usable) @ (1 << np.arange(len(usable))))
        inside = (self._masks & outside) == 0
        out = np.full(len(usable) + 1, UNLIMITED, dtype=np.int64)
        np.minimum.at(out, self._count[inside], self._path[inside])
        return out

    def _bounded(self, usable: BoolArray) -> IntArray:
        out = np.full(len(usable) + 1, UNLIMITED, dtype=np.int64)
        here = np.flatnonzero(usable)
        near = np.sort(self._distance[np.ix_(here, here)], axis=1)  # the GPU itself comes first, at 0
        reach = np.cumsum(near, axis=1)  # (u, u): to the closest 0, 1, 2, ... others
        for k in range(len(here) + 1):
            ends = np.sort(reach[:, k - 1])[:k].sum() if k else 0
            out[k] = -(-int(ends) // 2)
        return out
