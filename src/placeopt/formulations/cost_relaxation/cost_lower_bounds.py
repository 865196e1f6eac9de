"""Bundles that are alike to distances and GPUs, and what each costs on nodes at least, in communication."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.formulations.cost_relaxation.node_classes import NodeClasses, least_paths
from placeopt.model import Split
from placeopt.problem import UNLIMITED, BoolArray, IntArray, Problem, State
from placeopt.problem.classes import group_by_key
from placeopt.problem.free_capacity import startable_options


@dataclass(frozen=True)
class BundleGroup:
    """Bundles of ``gpus`` GPUs, ``milli`` of each; a job has ``bundles`` of them, at most ``per_node`` on a node."""

    option: int
    """One of the options, for masks."""
    bundles: int
    gpus: int
    milli: int
    per_node: int
    weight: int
    """Of the traffic between any two of the job's GPUs; 0 where it has none, or where a graph states it."""
    splits: tuple[Split, ...]

    @property
    def total(self) -> int:
        """GPUs of the whole job."""
        return self.bundles * self.gpus


@dataclass(frozen=True)
class BundleGroups:
    """Bundle groups and, for every option of a waiting job, its number of jobs and its bundle group."""

    bundle_groups: list[BundleGroup]
    option: IntArray  # (Y,) options of waiting jobs
    bundle_group: IntArray  # (Y,) -1 where they need no GPU
    jobs: IntArray  # (Y,) waiting jobs of the option's class


def make_bundle_groups(state: State) -> BundleGroups:
    """Fold the options of all jobs that are not placed in ``state``."""
    options = state.problem.options
    option, jobs = startable_options(state)
    with_gpus = np.flatnonzero((options.gpus * options.bundle_workers)[option] > 0)
    members = [_bundle_group(state.problem, o) for o in option[with_gpus].tolist()]
    group, first = group_by_key(
        (
            replace(member, option=-1),
            options.node_class_ok[member.option].tobytes(),
            options.gpu_type_ok[member.option].tobytes(),
        )
        for member in members
    )
    numbers = np.full(len(option), -1, dtype=np.int64)
    numbers[with_gpus] = group
    return BundleGroups([members[i] for i in first], option, numbers, jobs)


def _bundle_group(problem: Problem, o: int) -> BundleGroup:
    """Return what the bundles of option ``o`` are to distances and GPUs."""
    options, communication = problem.options, problem.class_communication[problem.options.job_class[o]]
    has_traffic = not communication.edges and int(options.workers[o] * options.gpus[o]) > 1
    return BundleGroup(
        option=o,
        bundles=int(options.bundles[o]),
        gpus=int(options.gpus[o] * options.bundle_workers[o]),
        milli=1000 if problem.jobs_per_gpu == 1 else int(options.milli[o]),
        per_node=min(int(options.workers_per_node[o] // options.bundle_workers[o]), int(options.bundles[o])),
        weight=int(communication.weight) if has_traffic else 0,
        splits=options.splits[o],
    )


FAR = 1 << 58
"""More than any lower bound; a few of them still fit."""


@dataclass(frozen=True)
class CostLowerBound:
    """Of one bundle group, by class of nodes: whether bundles may go there, and the least that one of them costs."""

    open: BoolArray  # (P,)
    cost: IntArray  # (P,) weighted path


@dataclass(frozen=True)
class OnNodes:
    """
    Of one bundle group, by node: bundles of a job that find room, and paths: of j of them together, and of each beyond.
    """

    room: IntArray  # (N,)
    path: IntArray  # (N, most room + 1) inside the node and on its way out; ``FAR`` beyond ``room``
    inside: IntArray  # (N, most room + 1) of that, inside the node
    lowest: IntArray  # (N,) least of a bundle on the way out of the node's own domain, ``NodeClasses.own``
    higher: IntArray  # (N,) the same of all other domains above it


class CostLowerBounds:
    """
    Least costs of bundles.

    With k of a job's K GPUs below an edge of the tree, the edge costs its weight x k (K - k),
    so each of the k costs weight x (K - k), and at least weight x (K - m) where no more than m find room there. The
    pairs on one node are as close as any of its usable GPUs. A class of nodes costs what its best node costs.
    """

    def __init__(self, node_classes: NodeClasses) -> None:
        self._node_classes = node_classes
        self._usable_cache: dict[tuple[bytes, bytes, int], tuple[IntArray, IntArray]] = {}
        topology = node_classes.problem.topology
        root = np.array([int(root.min(initial=UNLIMITED)) for root in topology.root], dtype=np.int64)
        self._leave = root[topology.node_machine] + topology.node_uplink  # (N,)

    def of(self, bundle_group: BundleGroup) -> CostLowerBound:
        """Return what bundles of the bundle group cost, by class of nodes."""
        on, node_classes = self.on_nodes(bundle_group), self._node_classes
        bundles = np.maximum(np.arange(on.path.shape[1]), 1)
        each = np.where(on.path < FAR, on.path // bundles, FAR)[:, 1:].min(axis=1, initial=FAR)
        best = node_classes.least(np.minimum(each + on.lowest + on.higher, FAR), FAR)
        return CostLowerBound(best < FAR, np.where(best < FAR, best * bundle_group.weight, 0))

    def on_nodes(self, bundle_group: BundleGroup) -> OnNodes:
        """Return what bundles of the bundle group cost, by node."""
        node_classes, total = self._node_classes, bundle_group.total
        usable, inner = self._usable(bundle_group)
        room = np.minimum(bundle_group.per_node, usable // bundle_group.gpus)
        room[node_classes.place < 0] = 0
        beyond = [np.zeros(len(room), dtype=np.int64), np.zeros(len(room), dtype=np.int64)]
        for depth, domain in enumerate(node_classes.domains):
            most = self._most(bundle_group, domain, room)
            inside = np.flatnonzero(domain >= 0)
            edge = node_classes.problem.topology.domain_uplink[domain[inside]]
            least = bundle_group.gpus * edge * (total - np.minimum(most[domain[inside]], total))
            own = (node_classes.own[inside] >= 0) & (depth == 0)
            beyond[0][inside] += np.where(own, least, 0)
            beyond[1][inside] += np.where(own, 0, least)
        j = np.arange(int(room.max(initial=0)) + 1)
        k = j * bundle_group.gpus
        inside = inner[:, np.minimum(k, inner.shape[1] - 1)]
        path = self._leave[:, None] * (k * (total - k)) + inside
        return OnNodes(room, np.where(j <= room[:, None], path, FAR), inside, *beyond)

    def _usable(self, bundle_group: BundleGroup) -> tuple[IntArray, IntArray]:
        """Usable GPUs, shape (N,), and least paths between k of them, shape (N, most GPUs of a node + 1)."""
        problem = self._node_classes.problem
        options = problem.options
        key = (
            options.node_class_ok[bundle_group.option].tobytes(),
            options.gpu_type_ok[bundle_group.option].tobytes(),
            bundle_group.milli,
        )
        if key not in self._usable_cache:
            usable = self._node_classes.usable(bundle_group.option, bundle_group.milli)
            least, pattern = least_paths(problem, self._node_classes.paths, usable)
            self._usable_cache[key] = (
                np.bincount(problem.gpu_node[usable], minlength=problem.num_nodes),
                least[pattern],
            )
        return self._usable_cache[key]

    def _most(self, bundle_group: BundleGroup, domain: IntArray, room: IntArray) -> IntArray:
        """
        Shape (D,): the most GPUs of a job that each domain can have, in whatever depth below it.

        ``domain``, (N,), are those of one depth, where what a split says of them is taken in.
        Takes nodes where a split forbids the job out of ``room``.
        """
        problem, inside = self._node_classes.problem, domain >= 0
        size = len(problem.topology.domain_uplink)
        capacity_rows = np.zeros(size, dtype=np.int64)
        for above in self._node_classes.domains:
            np.add.at(capacity_rows, above[above >= 0], room[above >= 0])
        for split in bundle_group.splits:
            if split.level == "node":  # a node is no domain of the tree
                continue
            named = problem.split_domain[split.level]
            at = inside & (domain == named)  # the domains of this depth that the split counts
            fewest, most = per_domain(bundle_group, split, int(problem.options.bundle_workers[bundle_group.option]))
            room[at & (capacity_rows[domain] < fewest)] = 0
            room[named < 0] = 0
            counted = np.unique(domain[at])
            capacity_rows[counted] = np.minimum(capacity_rows[counted], most)
        return capacity_rows * bundle_group.gpus


def per_domain(bundle_group: BundleGroup, split: Split, bundle_workers: int) -> tuple[int, int]:
    """Fewest and most bundles of a job in a domain of the split that it uses."""
    if split.workers is not None:
        exact = -(-split.workers // bundle_workers)
        return exact, exact
    if split.domains == 1:
        return bundle_group.bundles, bundle_group.bundles
    return 1, max(1, bundle_group.bundles - (split.domains - 1))
